/* A kernel that is written once, for whatever numbers it is given, and one that is an expression.
 * Usage: example_template */
#include <bulkhead/array.h>
#include <bulkhead/bulkhead.h>
#include <bulkhead/template.h>
#include <stdio.h>

static bh_detail why;

static int failed(const char *what) {
    return fprintf(stderr, "%s: %s\n", what, why.message), 1;
}

/* Eight numbers of 32 bits, described. */
static bh_buffer *make(bh_context *context, bh_number_kind kind, const void *values) {
    bh_buffer *buffer = NULL;
    bh_description eight = {.struct_size = sizeof eight};
    eight.kind = kind;
    eight.bits = 32;
    eight.rank = 1;
    eight.shape[0] = 8;
    if (bh_buffer_create(context, 32, NULL, &buffer, &why) ||
        bh_buffer_set_description(buffer, &eight, &why) ||
        (values && bh_buffer_write(buffer, 0, values, 32, BH_FOREVER, &why))) {
        return NULL;
    }
    return buffer;
}

int main(void) {
    static const bh_parameter leaky_parameters[] = {
        {"x", BH_PARAMETER_IN, "T"}, {"y", BH_PARAMETER_OUT, "T"}, {"a", BH_PARAMETER_PUSH, "f32"}};
    static const bh_parameter norm_parameters[] = {
        {"u", BH_PARAMETER_IN, NULL}, {"v", BH_PARAMETER_IN, NULL}, {"r", BH_PARAMETER_OUT, "f32"}};
    const float reals[] = {-4, -3, -2, -1, 0, 1, 2, 3};
    const int32_t integers[] = {-4, -3, -2, -1, 0, 1, 2, 3};
    int32_t whole[8];
    float result[8];
    bh_context *context = NULL;
    bh_stream *stream = NULL;
    bh_template *leaky = NULL, *norm = NULL;
    bh_template_options options = {.struct_size = sizeof options};
    options.name = "leaky";
    options.parameters = leaky_parameters;
    options.parameter_count = 3;
    options.body = "y = x < T(0) ? T(x * a) : x;";
    if (bh_context_create(NULL, &context, &why) || bh_stream_create(context, NULL, &stream, &why) ||
        bh_template_create(context, &options, &leaky, &why)) {
        return failed("starting");
    }
    options = (bh_template_options){.struct_size = sizeof(bh_template_options)};
    options.name = "norm";
    options.parameters = norm_parameters;
    options.parameter_count = 3;
    options.expression = "s = u*u + v*v; r = sqrt(f32(s))";
    if (bh_template_create(context, &options, &norm, &why)) {
        return failed("norm");
    }

    bh_buffer *x = make(context, BH_NUMBER_FLOAT, reals);
    bh_buffer *y = make(context, BH_NUMBER_FLOAT, NULL);
    bh_buffer *i = make(context, BH_NUMBER_INT, integers);
    bh_buffer *j = make(context, BH_NUMBER_INT, NULL);
    bh_buffer *r = make(context, BH_NUMBER_FLOAT, NULL);
    if (!x || !y || !i || !j || !r) {
        return failed("buffers");
    }
    /* 0.5 as a float's bytes. The same template twice: a kernel of floats, and one of integers. */
    const bh_argument a = {.name = "a", .dtype = BH_DTYPE_F32, .bits = 0x3f000000};
    const bh_argument of_reals[] = {{.name = "x", .buffer = x}, {.name = "y", .buffer = y}, a};
    const bh_argument of_integers[] = {{.name = "x", .buffer = i}, {.name = "y", .buffer = j}, a};
    const bh_argument both[] = {
        {.name = "u", .buffer = y}, {.name = "v", .buffer = j}, {.name = "r", .buffer = r}};
    if (bh_template_launch(stream, leaky, of_reals, 3, NULL, NULL, &why) ||
        bh_template_launch(stream, leaky, of_integers, 3, NULL, NULL, &why) ||
        bh_template_launch(stream, norm, both, 3, NULL, NULL, &why)) {
        return failed("launching");
    }
    if (bh_buffer_read(y, 0, result, sizeof result, BH_FOREVER, &why) ||
        bh_buffer_read(j, 0, whole, sizeof whole, BH_FOREVER, &why)) {
        return failed("poisoned");
    }
    for (int k = 0; k < 8; k++) {
        printf("%s%g", k ? " " : "leaky ", (double)result[k]);
    }
    for (int k = 0; k < 8; k++) {
        printf("%s%d", k ? " " : "\nleaky ", whole[k]);
    }
    if (bh_buffer_read(r, 0, result, sizeof result, BH_FOREVER, &why)) {
        return failed("poisoned");
    }
    for (int k = 0; k < 8; k++) {
        printf("%s%.4g", k ? " " : "\nnorm ", (double)result[k]);
    }
    printf("\n");
    bh_buffer_release(x), bh_buffer_release(y), bh_buffer_release(i), bh_buffer_release(j);
    bh_buffer_release(r), bh_template_release(leaky), bh_template_release(norm);
    bh_stream_release(stream);
    bh_context_destroy(context);
    return 0;
}

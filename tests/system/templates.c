/* K3: templates with bodies: each combination of types is a kernel of its own, errors are in the
 * body's lines, arguments that do not fit are named. (What expressions compute: eval_values.c.) */
#include "fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 1000, THREADS = 8 };

static bh_context *context;
static bh_stream *stream;
static bh_detail why;

static void begin(void) {
    context = fx_context(NULL);
    stream = fx_stream(context, "templates", FX_SECONDS);
}

/* |kind| and |bits| of |count| elements; count 0: one, without dimensions. */
static bh_buffer *array(bh_number_kind kind, uint32_t bits, uint64_t count) {
    bh_description d = {.struct_size = sizeof d};
    bh_buffer *buffer = fx_buffer(context, bits / 8 * (count ? count : 1));
    d.kind = kind;
    d.bits = bits;
    d.rank = count != 0;
    d.shape[0] = count;
    BHT_EQ(bh_buffer_set_description(buffer, &d, NULL), BH_OK);
    return buffer;
}

static bh_buffer *floats(float first, float step, uint64_t count) {
    bh_buffer *buffer = array(BH_NUMBER_FLOAT, 32, count);
    float *values = (float *)(void *)fx_pointer(buffer);
    for (uint64_t i = 0; i < (count ? count : 1); i++) {
        values[i] = first + step * (float)i;
    }
    return buffer;
}

static bh_template_options options_of(const char *name, const char *body,
                                      const bh_parameter *parameters, uint32_t count) {
    bh_template_options options = {.struct_size = sizeof options};
    options.name = name;
    options.body = body;
    options.parameters = parameters;
    options.parameter_count = count;
    return options;
}

static bh_template *made(const bh_template_options *options) {
    bh_template *t = NULL;
    if (bh_template_create(context, options, &t, &why) != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
    return t;
}

static const bh_parameter x_to_y[] = {{"x", BH_PARAMETER_IN, "T"}, {"y", BH_PARAMETER_OUT, "T"}};

static bh_template *x_to_y_template(const char *name, const char *body) {
    const bh_template_options options = options_of(name, body, x_to_y, 2);
    return made(&options);
}

static void prepare(bh_template *t, bh_buffer *x, bh_buffer *y, bh_template_call *call) {
    const bh_argument arguments[] = {{.name = "x", .buffer = x}, {.name = "y", .buffer = y}};
    if (bh_template_prepare(t, arguments, 2, NULL, call, &why) != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
}

static void launch(bh_template *t, const bh_argument *arguments, uint32_t count,
                   const uint32_t *groups) {
    bh_event *event = NULL;
    if (bh_template_launch(stream, t, arguments, count, groups, &event, &why) != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
    fx_expect(event, BH_OK);
}

static void launch_x_to_y(bh_template *t, bh_buffer *x, bh_buffer *y) {
    const bh_argument arguments[] = {{.name = "x", .buffer = x}, {.name = "y", .buffer = y}};
    launch(t, arguments, 2, NULL);
}

static void submit_both(bh_template_call calls[2]) {
    const bh_command commands[] = {calls[0].command, calls[1].command};
    fx_expect(fx_commands(stream, commands, 2), BH_OK);
    bh_template_call_fini(&calls[0]);
    bh_template_call_fini(&calls[1]);
}

/* -- cases 28 and 29, of templates ----------------------------------------------------------- */

TEST(case_28_one_template_for_halves_and_floats_in_one_batch) {
    begin();
    bh_template *t = x_to_y_template("double", "y = x + x;");
    bh_buffer *x = floats(0, 0.5f, COUNT), *y = floats(0, 0, COUNT);
    bh_buffer *h = array(BH_NUMBER_FLOAT, 16, COUNT), *g = array(BH_NUMBER_FLOAT, 16, COUNT);
    uint16_t *halves = (uint16_t *)(void *)fx_pointer(h);
    for (int i = 0; i < COUNT; i++) {
        halves[i] = (uint16_t)(0x3c00 + i); /* from 1 to 1.98 */
    }
    bh_template_call calls[2];
    prepare(t, x, y, &calls[0]);
    prepare(t, h, g, &calls[1]);
    BHT_TRUE(calls[0].command.dispatch.kernel != calls[1].command.dispatch.kernel);
    submit_both(calls);
    for (int i = 0; i < COUNT; i++) {
        BHT_EQ(((float *)(void *)fx_pointer(y))[i], (float)i);
        BHT_EQ(((uint16_t *)(void *)fx_pointer(g))[i], 0x4000 + i); /* the exponent, one up */
    }
}

TEST(case_29_two_templates_of_one_name_in_one_batch) {
    begin();
    bh_template *twice = x_to_y_template("same", "y = x + x;");
    bh_template *square = x_to_y_template("same", "y = x * x;");
    bh_buffer *x = floats(0, 1, COUNT), *y = floats(0, 0, COUNT), *z = floats(0, 0, COUNT);
    bh_template_call calls[2];
    prepare(twice, x, y, &calls[0]);
    prepare(square, x, z, &calls[1]);
    submit_both(calls);
    for (int i = 0; i < COUNT; i++) {
        BHT_EQ(((float *)(void *)fx_pointer(y))[i], (float)(2 * i));
        BHT_EQ(((float *)(void *)fx_pointer(z))[i], (float)(i * i));
    }
}

/* As many dimensions as a description may have. */
TEST(many_dimensions) {
    begin();
    bh_template *t = x_to_y_template("deep", "y = x + x;");
    bh_buffer *x = floats(1, 1, COUNT), *y = floats(0, 0, COUNT);
    bh_buffer *const both[] = {x, y};
    for (uint32_t rank = 31; rank <= BH_MAX_RANK; rank += rank == 33 ? 31 : 1) {
        bh_description d = {.struct_size = sizeof d};
        d.kind = BH_NUMBER_FLOAT;
        d.bits = 32;
        d.rank = rank;
        for (uint32_t i = 0; i < rank; i++) {
            d.shape[i] = i == rank - 1 ? COUNT : 1;
        }
        for (int i = 0; i < 2; i++) {
            BHT_EQ(bh_buffer_set_description(both[i], &d, NULL), BH_OK);
        }
        launch_x_to_y(t, x, y);
    }
    for (int i = 0; i < COUNT; i++) {
        BHT_EQ(((float *)(void *)fx_pointer(y))[i], (float)(2 * (i + 1)));
    }
}

/* -- bodies ---------------------------------------------------------------------------------- */

/* It may return; what it leaves unassigned is 0; index and count are at hand; functions can be
 * declared; numbers come with the launch; a single element goes with all. */
TEST(a_body_and_its_surroundings) {
    static const bh_parameter parameters[] = {
        {"x", BH_PARAMETER_IN, "T"},        {"one", BH_PARAMETER_IN, "T"},
        {"a", BH_PARAMETER_PUSH, "i16"},    {"y", BH_PARAMETER_OUT, "T"},
        {"last", BH_PARAMETER_OUT, "bool"}, {"sum", BH_PARAMETER_INOUT, "u32"}};
    begin();
    bh_template_options options =
        options_of("body",
                   "sum += i;\n last = i == n - 1u;\n if (x < T(5)) return;\n"
                   " y = twice(x) + one + T(a);",
                   parameters, 6);
    options.declarations = "T twice(T v) { return v + v; }";
    bh_template *t = made(&options);
    bh_buffer *last = array(BH_NUMBER_BOOL, 8, COUNT), *sum = array(BH_NUMBER_UINT, 32, COUNT);
    bh_buffer *y = floats(9, 0, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        fx_pointer(sum)[i] = 7;
    }
    const bh_argument arguments[] = {{.name = "x", .buffer = floats(0, 1, COUNT)},
                                     {.name = "one", .buffer = floats(0.5f, 0, 0)},
                                     {.name = "a", .dtype = BH_DTYPE_I16, .bits = 0xffff}, /* -1 */
                                     {.name = "y", .buffer = y},
                                     {.name = "last", .buffer = last},
                                     {.name = "sum", .buffer = sum}};
    launch(t, arguments, 6, NULL);
    for (uint32_t i = 0; i < COUNT; i++) {
        const float wanted = i < 5 ? 0 : 2 * (float)i - 0.5f;
        BHT_EQ(((float *)(void *)fx_pointer(y))[i], wanted);
        BHT_EQ(((uint8_t *)(void *)fx_pointer(last))[i], i == COUNT - 1);
        BHT_EQ(fx_pointer(sum)[i], 7 + i);
    }
}

/* Sums of rows, by workgroups. */
TEST(a_grid) {
    static const bh_parameter parameters[] = {{"x", BH_PARAMETER_IN, "T"},
                                              {"sums", BH_PARAMETER_OUT, "T"},
                                              {"width", BH_PARAMETER_PUSH, "u32"}};
    enum { ROWS = 5, WIDTH = 24 };
    const uint32_t groups[3] = {ROWS, 1, 1};
    begin();
    bh_template_options options =
        options_of("rows",
                   "const uint row = gl_WorkGroupID.x;\n"
                   "if (gl_LocalInvocationID.x != 0u || row >= sums.length()) return;\n"
                   "T sum = T(0);\n"
                   "for (uint k = 0u; k < width; k++) sum += x[row * width + k];\n"
                   "sums[row] = sum;",
                   parameters, 3);
    options.grid = true;
    options.local_size[0] = 2;
    bh_template *t = made(&options);
    bh_buffer *sums = floats(0, 0, ROWS);
    const bh_argument arguments[] = {{.name = "x", .buffer = floats(0, 1, ROWS * WIDTH)},
                                     {.name = "sums", .buffer = sums},
                                     {.name = "width", .dtype = BH_DTYPE_U32, .bits = WIDTH}};
    launch(t, arguments, 3, groups);
    for (int row = 0; row < ROWS; row++) {
        BHT_EQ(((float *)(void *)fx_pointer(sums))[row],
               (float)(WIDTH * WIDTH * row + WIDTH * (WIDTH - 1) / 2));
    }
    BHT_EQ(bh_template_launch(stream, t, arguments, 3, NULL, NULL, &why), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(why.message, "groups is NULL");
}

/* A number of each type arrives as it is. */
TEST(numbers) {
    static const struct {
        bh_dtype dtype;
        bh_number_kind kind;
        uint32_t bits;
        uint64_t value;
    } cases[] = {
        {BH_DTYPE_F16, BH_NUMBER_FLOAT, 16, 0xc580},
        {BH_DTYPE_F32, BH_NUMBER_FLOAT, 32, 0x3fc00000},
        {BH_DTYPE_F64, BH_NUMBER_FLOAT, 64, 0xc00921fb54442d18},
        {BH_DTYPE_I8, BH_NUMBER_INT, 8, 0x85},
        {BH_DTYPE_U8, BH_NUMBER_UINT, 8, 0x85},
        {BH_DTYPE_I16, BH_NUMBER_INT, 16, 0x8765},
        {BH_DTYPE_U16, BH_NUMBER_UINT, 16, 0x8765},
        {BH_DTYPE_I32, BH_NUMBER_INT, 32, 0x87654321},
        {BH_DTYPE_U32, BH_NUMBER_UINT, 32, 0x87654321},
        {BH_DTYPE_I64, BH_NUMBER_INT, 64, 0x8765432112345678},
        {BH_DTYPE_U64, BH_NUMBER_UINT, 64, 0x8765432112345678},
        {BH_DTYPE_BOOL, BH_NUMBER_BOOL, 8, 1},
    };
    static const bh_parameter parameters[] = {{"a", BH_PARAMETER_PUSH, NULL},
                                              {"z", BH_PARAMETER_OUT, NULL},
                                              {"less", BH_PARAMETER_OUT, "bool"}};
    begin();
    bh_template_options options = options_of("number", NULL, parameters, 3);
    options.expression = "z = a; less = a < 0";
    bh_template *t = made(&options);
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        bh_buffer *z = array(cases[i].kind, cases[i].bits, 0);
        bh_buffer *less = array(BH_NUMBER_BOOL, 8, 0);
        const bool negative =
            (cases[i].kind == BH_NUMBER_INT || cases[i].kind == BH_NUMBER_FLOAT) &&
            cases[i].value >> (cases[i].bits - 1);
        uint64_t got = 0;
        const bh_argument arguments[] = {
            {.name = "z", .buffer = z},
            {.name = "less", .buffer = less},
            {.name = "a", .dtype = cases[i].dtype, .bits = cases[i].value}};
        launch(t, arguments, 3, NULL);
        BHT_EQ(*(uint8_t *)(void *)fx_pointer(less), negative);
        memcpy(&got, fx_pointer(z), cases[i].bits / 8);
        BHT_EQ(got, cases[i].value);
    }
}

/* -- shapes ---------------------------------------------------------------------------------- */

/* A view of a buffer's floats. */
static bh_description shaped(uint32_t rank, const uint64_t *shape) {
    bh_description d = {.struct_size = sizeof d, .kind = BH_NUMBER_FLOAT, .bits = 32};
    d.lanes = 1;
    d.rank = rank;
    memcpy(d.shape, shape, rank * sizeof *shape);
    return d;
}

/* [p,1,r], [q,1], [1,r] and a single element, which make [p,q,r]: one kernel whatever the sizes. */
TEST(inputs_are_stretched) {
    static const bh_parameter parameters[] = {
        {"a", BH_PARAMETER_IN, "T"}, {"b", BH_PARAMETER_IN, "T"},     {"c", BH_PARAMETER_IN, "T"},
        {"d", BH_PARAMETER_IN, "T"}, {"k", BH_PARAMETER_PUSH, "f32"}, {"y", BH_PARAMETER_OUT, "T"}};
    static const uint64_t sizes[][3] = {{5, 3, 7}, {2, 64, 11}, {13, 2, 2}};
    begin();
    const bh_template_options options =
        options_of("stretch", "y = a + b * k + c * k * k + d + T(i == n - 1u);", parameters, 6);
    bh_template *t = made(&options);
    bh_buffer *a = floats(0, 1, COUNT), *b = floats(1, 1, COUNT), *c = floats(2, 1, COUNT);
    bh_buffer *d = floats(0.5f, 0, 0), *y = floats(0, 0, 2 * COUNT);
    bh_kernel *first = NULL;
    const float k = 128;
    uint32_t bits;
    memcpy(&bits, &k, sizeof bits);
    for (size_t n = 0; n < BHT_COUNT(sizes); n++) {
        const uint64_t p = sizes[n][0], q = sizes[n][1], r = sizes[n][2];
        const bh_description da = shaped(3, (uint64_t[]){p, 1, r}),
                             db = shaped(2, (uint64_t[]){q, 1});
        const bh_description dc = shaped(2, (uint64_t[]){1, r}), dy = shaped(3, sizes[n]);
        const bh_argument arguments[] = {{.name = "a", .buffer = a, .description = &da},
                                         {.name = "b", .buffer = b, .description = &db},
                                         {.name = "c", .buffer = c, .description = &dc},
                                         {.name = "d", .buffer = d},
                                         {.name = "k", .dtype = BH_DTYPE_F32, .bits = bits},
                                         {.name = "y", .buffer = y, .description = &dy}};
        bh_template_call call;
        BHT_EQ(bh_template_prepare(t, arguments, 6, NULL, &call, &why), BH_OK);
        first = first ? first : call.command.dispatch.kernel;
        BHT_TRUE(call.command.dispatch.kernel == first);
        fx_expect(fx_commands(stream, &call.command, 1), BH_OK);
        bh_template_call_fini(&call);
        for (uint64_t i = 0; i < p * q * r; i++) {
            const uint64_t own = i / (q * r) * r + i % r;
            BHT_EQ(((float *)(void *)fx_pointer(y))[i], (float)own + (float)(i / r % q + 1) * k +
                                                            (float)(i % r + 2) * k * k + 0.5f +
                                                            (float)(i == p * q * r - 1));
        }
    }
}

/* An input of other elements than the output's is no place for it, though the bytes are the same. */
TEST(what_is_stretched_is_not_written) {
    static const bh_parameter parameters[] = {
        {"x", BH_PARAMETER_IN, NULL}, {"b", BH_PARAMETER_IN, "u8"}, {"y", BH_PARAMETER_OUT, "u8"}};
    begin();
    const bh_template_options options = options_of("alias", "y = uint8_t(x) + b;", parameters, 3);
    bh_template *t = made(&options);
    bh_buffer *x = array(BH_NUMBER_INT, 64, 0);
    bh_description bytes = {.struct_size = sizeof bytes, .kind = BH_NUMBER_UINT, .bits = 8};
    bytes.lanes = 1;
    bytes.rank = 1;
    bytes.shape[0] = 8;
    const bh_argument arguments[] = {{.name = "x", .buffer = x},
                                     {.name = "b", .buffer = array(BH_NUMBER_UINT, 8, 8)},
                                     {.name = "y", .buffer = x, .description = &bytes}};
    bh_template_call call;
    BHT_EQ(bh_template_prepare(t, arguments, 3, NULL, &call, &why), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(why.message, "output 'y' overlaps 'x'");
}

/* -- compiles -------------------------------------------------------------------------------- */

TEST(errors_are_in_the_lines_of_the_body) {
    begin();
    bh_buffer *x = floats(0, 1, COUNT), *y = floats(0, 0, COUNT);
    const bh_argument arguments[] = {{.name = "x", .buffer = x}, {.name = "y", .buffer = y}};
    bh_template *bad = x_to_y_template("my kernel", "\n\n y = nowhere;\n");
    for (int i = 0; i < 2; i++) { /* a failure is not remembered as anything else */
        BHT_EQ(bh_template_launch(stream, bad, arguments, 2, NULL, NULL, &why), BH_COMPILE_FAILED);
        BHT_STR_HAS(why.message, "my_kernel:3: error: 'nowhere'");
    }
    bh_template_options options = options_of("k", "y = x;", x_to_y, 2);
    options.declarations = "\nfloat f() { return g; }";
    bh_template *worse = made(&options);
    BHT_EQ(bh_template_launch(stream, worse, arguments, 2, NULL, NULL, &why), BH_COMPILE_FAILED);
    BHT_STR_HAS(why.message, "k declarations:2: error: 'g'");
}

/* Templates that differ in their numbers alone: one compiler, one kernel, which the worker gets once. */
TEST(written_numbers_compile_no_kernel_of_their_own) {
    begin();
    bh_buffer *x = floats(1, 1, COUNT), *y = floats(0, 0, COUNT);
    bh_stats first = {0};
    for (int k = 0; k < 12; k++) {
        char text[80];
        bh_template_options options = options_of("scale", NULL, x_to_y, 2);
        snprintf(text, sizeof text, "y = %d*x + %d.5", k - 3, 7 * k);
        options.expression = text;
        bh_template *t = made(&options);
        launch_x_to_y(t, x, y);
        for (int i = 0; i < COUNT; i++) {
            BHT_EQ(((float *)(void *)fx_pointer(y))[i],
                   (float)((k - 3) * (i + 1)) + (float)(7 * k) + 0.5f);
        }
        first = k ? first : fx_stats(context);
    }
    const bh_stats last = fx_stats(context);
    BHT_EQ(last.workers_started, first.workers_started); /* compilers are counted, too */
    BHT_EQ(last.kernels_introduced, first.kernels_introduced);
}

/* Two are kept of five, in turns: what went is compiled again, and what is in use stays good. */
TEST(variants_are_bounded) {
    static const uint32_t bits[] = {8, 16, 32, 64};
    begin();
    bh_template_options options = options_of("copy", "y = x;", x_to_y, 2);
    options.variants = 2;
    bh_template *t = made(&options);
    bh_kernel *seen[4] = {NULL};
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < BHT_COUNT(bits); i++) {
            bh_buffer *x = array(BH_NUMBER_INT, bits[i], COUNT);
            bh_buffer *y = array(BH_NUMBER_INT, bits[i], COUNT);
            bh_template_call call, again;
            memset(fx_pointer(x), 0x5a, bits[i] / 8 * COUNT);
            prepare(t, x, y, &call);
            prepare(t, x, y, &again);
            BHT_TRUE(call.command.dispatch.kernel == again.command.dispatch.kernel);
            if (round == 0) {
                seen[i] = call.command.dispatch.kernel, bh_kernel_retain(seen[i]);
            } else { /* the handle is kept above: were it the template's still, it would be the same
                      */
                BHT_TRUE(call.command.dispatch.kernel != seen[i]);
            }
            launch_x_to_y(t, x, y);
            BHT_MEM_EQ(fx_pointer(y), fx_pointer(x), bits[i] / 8 * COUNT);
            bh_template_call_fini(&call);
            bh_template_call_fini(&again);
        }
    }
    for (size_t i = 0; i < BHT_COUNT(bits); i++) {
        bh_kernel_release(seen[i]);
    }
}

struct racer {
    bh_template *t;
    bh_buffer *x, *y;
    bh_template_call call;
    pthread_barrier_t *barrier;
};

static void *race(void *argument) {
    struct racer *racer = argument;
    pthread_barrier_wait(racer->barrier);
    prepare(racer->t, racer->x, racer->y, &racer->call);
    return NULL;
}

/* Case 34, of templates: all are given the one kernel. */
TEST(threads_compile_once) {
    static struct racer racers[THREADS];
    pthread_barrier_t barrier;
    begin();
    bh_template *t = x_to_y_template("once", "y = x;");
    bh_buffer *x = floats(0, 1, COUNT), *y = floats(0, 0, COUNT);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        racers[i] = (struct racer){.t = t, .x = x, .y = y, .barrier = &barrier};
        bht_start(race, &racers[i]);
    }
    bht_join();
    for (int i = 0; i < THREADS; i++) {
        BHT_TRUE(racers[i].call.command.dispatch.kernel == racers[0].call.command.dispatch.kernel);
    }
    for (int i = 0; i < THREADS; i++) {
        bh_template_call_fini(&racers[i].call);
    }
    pthread_barrier_destroy(&barrier);
}

struct caller {
    bh_template *t;
    bh_argument known[2], other[2];
};

static void prepare_in_callback(void *user) {
    struct caller *caller = user;
    bh_template_call call;
    BHT_EQ(bh_template_prepare(caller->t, caller->known, 2, NULL, &call, NULL), BH_OK);
    bh_template_call_fini(&call);
    BHT_EQ(bh_template_prepare(caller->t, caller->other, 2, NULL, &call, NULL), BH_IN_CALLBACK);
    bh_template_call_fini(&call);
}

/* What would have to wait for a compile is refused there; a variant that is there is not. */
TEST(only_a_known_variant_is_prepared_in_a_log_callback) {
    begin();
    struct caller caller = {.t = x_to_y_template("back", "y = x;")};
    bh_buffer *x = floats(0, 1, COUNT), *y = floats(0, 0, COUNT);
    bh_buffer *i = array(BH_NUMBER_INT, 32, COUNT), *j = array(BH_NUMBER_INT, 32, COUNT);
    bh_event *event = NULL;
    caller.known[0] = (bh_argument){.name = "x", .buffer = x};
    caller.known[1] = (bh_argument){.name = "y", .buffer = y};
    caller.other[0] = (bh_argument){.name = "x", .buffer = i};
    caller.other[1] = (bh_argument){.name = "y", .buffer = j};
    BHT_EQ(bh_template_launch(stream, caller.t, caller.known, 2, NULL, &event, &why), BH_OK);
    fx_in_log_callback(prepare_in_callback, &caller);
}

/* -- arguments ------------------------------------------------------------------------------- */

static void refused(bh_template *t, const bh_argument *arguments, uint32_t count,
                    const char *message) {
    BHT_EQ(bh_template_launch(stream, t, arguments, count, NULL, NULL, &why), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(why.message, message);
}

TEST(arguments_that_do_not_fit) {
    begin();
    bh_template *t = x_to_y_template("copy", "y = x;");
    bh_buffer *x = floats(0, 1, COUNT), *y = floats(0, 0, COUNT);
    bh_buffer *i = array(BH_NUMBER_INT, 32, COUNT), *few = floats(0, 0, 3);
    bh_buffer *wide = array(BH_NUMBER_COMPLEX, 64, COUNT), *bytes = fx_buffer(context, 4 * COUNT);
    bh_argument a[] = {{.name = "x", .buffer = x}, {.name = "y", .buffer = y}, {.name = "y"}};
    refused(t, a, 1, "bh_template_launch: output 'y' is missing");
    refused(t, a + 1, 1, "input 'x' is missing");
    refused(t, a, 3, "argument 'y' is given twice");
    a[2].name = "z";
    refused(t, a, 3, "there is no parameter 'z'");
    a[2].name = NULL;
    refused(t, a, 3, "argument 2 has no name");
    a[1].buffer = i;
    refused(t, a, 2, "is f32, but must be i32, as y");
    a[1].buffer = few;
    refused(t, a, 2, "output 'y' is [3], but must be [1000]");
    a[1].buffer = wide;
    refused(t, a, 2, "'y': templates take no complex of 64 bits");
    a[1].buffer = bytes; /* not described: so many bytes */
    refused(t, a, 2, "output 'y' is [4000], but must be [1000]");
    a[1].buffer = NULL;
    refused(t, a, 2, "buffer is NULL or was released");
    bh_description every_other = {.struct_size = sizeof every_other};
    every_other.kind = BH_NUMBER_FLOAT;
    every_other.bits = 32;
    every_other.rank = 1;
    every_other.shape[0] = COUNT / 2;
    every_other.strided = true;
    every_other.strides[0] = 2;
    BHT_EQ(bh_buffer_set_description(y, &every_other, NULL), BH_OK);
    a[1].buffer = y;
    refused(t, a, 2, "'y': its elements are not contiguous");
    bh_template_release(t);
    refused(t, a, 0, "template is NULL or was released");
}

/* An output may be what an input is, element for element, and no other bytes of it. */
TEST(in_place_and_overlapping) {
    begin();
    bh_template *t = x_to_y_template("more", "y = x + T(1);");
    bh_buffer *x = floats(0, 1, COUNT), *part = floats(0, 1, COUNT);
    launch_x_to_y(t, x, x);
    for (int i = 0; i < COUNT; i++) {
        BHT_EQ(((float *)(void *)fx_pointer(x))[i], (float)(i + 1));
    }
    /* Three buffers of one memory would not be told apart; one buffer, two views, is. */
    static const bh_parameter both[] = {
        {"x", BH_PARAMETER_IN, "T"}, {"y", BH_PARAMETER_OUT, "T"}, {"z", BH_PARAMETER_OUT, "T"}};
    const bh_template_options options = options_of("two", "y = x; z = x;", both, 3);
    bh_template *two = made(&options);
    const bh_argument b[] = {
        {.name = "x", .buffer = x}, {.name = "y", .buffer = part}, {.name = "z", .buffer = part}};
    refused(two, b, 3, "output 'y' overlaps 'z'");

    /* Elements of another size begin together, and lie elsewhere from the second on. */
    static const bh_parameter sizes[] = {{"x", BH_PARAMETER_IN, "T"}, {"y", BH_PARAMETER_OUT, "U"}};
    const bh_template_options changes = options_of("changes", "y = U(x);", sizes, 2);
    bh_buffer *memory = fx_buffer(context, 8 * COUNT);
    bh_description narrow = {.struct_size = sizeof narrow, .kind = BH_NUMBER_INT, .bits = 32};
    narrow.lanes = 1;
    narrow.rank = 1;
    narrow.shape[0] = COUNT;
    bh_description wide = narrow;
    wide.bits = 64;
    for (int i = 0; i < 2; i++) {
        const bh_argument d[] = {
            {.name = "x", .buffer = memory, .description = i ? &wide : &narrow},
            {.name = "y", .buffer = memory, .description = i ? &narrow : &wide}};
        refused(made(&changes), d, 2, "output 'y' overlaps 'x'");
    }

    /* Two halves of one buffer touch, and do not overlap. */
    bh_buffer *halves = fx_buffer(context, 8 * COUNT);
    const uint64_t between[] = {4 * COUNT - 4, 4 * COUNT};
    for (int i = 0; i < 2; i++) {
        bh_description lower = {.struct_size = sizeof lower, .kind = BH_NUMBER_FLOAT, .bits = 32};
        lower.lanes = 1;
        lower.rank = 1;
        lower.shape[0] = COUNT;
        bh_description upper = lower;
        upper.offset = between[i];
        const bh_argument c[] = {{.name = "x", .buffer = x},
                                 {.name = "y", .buffer = halves, .description = &lower},
                                 {.name = "z", .buffer = halves, .description = &upper}};
        if (i == 0) {
            refused(two, c, 3, "output 'y' overlaps 'z'");
        } else {
            bh_template_call call = {0};
            BHT_EQ(bh_template_prepare(two, c, 3, NULL, &call, &why), BH_OK);
            bh_template_call_fini(&call);
        }
    }
}

TEST(options_that_make_no_sense) {
    static const bh_parameter bad_name[] = {{"i", BH_PARAMETER_OUT, NULL}};
    static const bh_parameter bad_type[] = {{"y", BH_PARAMETER_OUT, "f 32"}};
#define BYTES_60 "a_name_that_is_as_long_as_a_name_can_be_and_then_some_more__"
    static const bh_parameter long_name[] = {{BYTES_60 "1234", BH_PARAMETER_OUT, NULL}};
    static const bh_parameter long_type[] = {{"y", BH_PARAMETER_OUT, BYTES_60 "1234"}};
    static const bh_parameter no_role[] = {{"y", (bh_parameter_role)9, NULL}};
    static const bh_parameter longest[] = {{BYTES_60 "123", BH_PARAMETER_OUT, BYTES_60 "456"}};
    static const bh_parameter no_output[] = {{"x", BH_PARAMETER_IN, NULL}};
    static const bh_parameter twice[] = {{"y", BH_PARAMETER_OUT, NULL},
                                         {"y", BH_PARAMETER_IN, NULL}};
    static const struct {
        const bh_parameter *parameters;
        uint32_t count;
        const char *why;
    } cases[] = {{bad_name, 1, "'i' cannot be a parameter's name"},
                 {bad_type, 1, "'f 32' is neither a type nor a name for one"},
                 {long_name, 1, "its name is longer than 63 bytes"},
                 {long_type, 1, "has a type whose name is longer than 63 bytes"},
                 {no_role, 1, "has role 9"},
                 {no_output, 1, "there is no output"},
                 {twice, 2, "'y' is given twice"},
                 {NULL, 1, "options.parameters is NULL"}};
    begin();
    bh_template *t = NULL;
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const bh_template_options options =
            options_of(NULL, "y = 1;", cases[i].parameters, cases[i].count);
        BHT_EQ(bh_template_create(context, &options, &t, &why), BH_INVALID_ARGUMENT);
        BHT_STR_HAS(why.message, cases[i].why);
        BHT_TRUE(!t);
    }
    bh_template_options options = options_of(NULL, BYTES_60 "123 = 1;", longest, 1);
    BHT_EQ(bh_template_create(context, &options, &t, &why), BH_OK);
    bh_template_release(t);
    options = options_of(NULL, "y = x;", x_to_y, 2);
    options.expression = "y = x";
    BHT_EQ(bh_template_create(context, &options, &t, &why), BH_INVALID_ARGUMENT);
    BHT_EQ(why.reason, BH_REASON_ARGUMENT);
    BHT_STR_EQ(why.subject_name, "options");
    options.struct_size = 1;
    BHT_EQ(bh_template_create(context, &options, &t, &why), BH_INVALID_ARGUMENT);
    BHT_EQ(why.reason, BH_REASON_STRUCT_SIZE);
}

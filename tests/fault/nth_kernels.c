/* The calls of nth_call.c that are about kernels, sources and templates. */
#include "nth_call.h"
#include "redirect.h"
#include "scene.h"

static bh_status make_kernel(struct scene *scene, bh_kernel **out, bh_detail *detail) {
    static const uint32_t code[] = {0x07230203u, 0x00010000u, 0, 1, 0};
    static const bh_specialization constants[] = {{0, 4, 1}, {1, 8, 2}, {2, 1, 1}};
    bh_kernel_options options = {.struct_size = sizeof options};
    options.specializations = constants;
    options.specialization_count = 3;
    return bh_kernel_create_spirv(scene->context, code, sizeof code, &options, out, detail);
}

bh_status nth_kernel_create(struct scene *scene, bh_detail *detail) {
    bh_kernel *kernel;
    bh_status status = make_kernel(scene, &kernel, detail);
    bh_kernel_release(kernel);
    return status;
}

/* One that is kept in a memfd from the start. */
bh_status nth_large_kernel_create(struct scene *scene, bh_detail *detail) {
    static uint32_t code[50000] = {0x07230203u, 0x00010000u, 0, 1, 0};
    bh_kernel *kernel;
    bh_status status =
        bh_kernel_create_spirv(scene->context, code, sizeof code, NULL, &kernel, detail);
    bh_kernel_release(kernel);
    return status;
}

/* A kernel with constants: its introduction takes several messages. It is refused, as it should. */
bh_status nth_prepare_refused(struct scene *scene, bh_detail *detail) {
    bh_kernel *kernel;
    bh_status status = make_kernel(scene, &kernel, detail);
    bh_event *event = NULL;
    THEN(bh_kernel_prepare(kernel, scene->stream, &event, detail));
    if (status == BH_OK) {
        bh_status end = bht_end(event, bht_where());
        const bool memory = strstr(bht_where(), "alloc at") || strstr(bht_where(), "mmap at");
        if (end != BH_INVALID_KERNEL && end != (memory ? BH_NO_MEMORY : BH_SYSTEM)) {
            BHT_FAIL("%s: %s", bht_where(), bh_status_name(end));
        }
    }
    bh_kernel_release(kernel);
    return status;
}

bh_status nth_prepare(struct scene *scene, bh_detail *detail) {
    bh_kernel *kernel;
    bh_event *event = NULL;
    bh_status status = bht_kernel(scene->context, "square", &kernel, detail);
    THEN(bh_kernel_prepare(kernel, scene->stream, &event, detail));
    THEN(bht_end(event, bht_where()));
    if (status != BH_OK && event) {
        *detail = (bh_detail){.status = status, .message = "the verdict"};
    }
    bh_kernel_release(kernel);
    return status;
}

bh_status nth_reflect(struct scene *scene, bh_detail *detail) {
    bh_kernel *kernel;
    static bh_kernel_info info = {.struct_size = sizeof info};
    bh_status status = bht_kernel(scene->context, "square", &kernel, detail);
    THEN(bh_kernel_reflect(kernel, scene->stream, FX_SECONDS, &info, detail));
    if (status == BH_OK) {
        BHT_EQ(info.binding_count, 2);
    }
    bh_kernel_release(kernel);
    return status;
}

bh_status nth_glsl(struct scene *scene, bh_detail *detail) {
    bh_source source = {.struct_size = sizeof source};
    source.text = "#version 450\nvoid main() {}\n";
    bh_kernel *kernel;
    bh_status status = bh_kernel_create_source(scene->context, &source, NULL, &kernel, detail);
    BHT_EQ(!kernel, status != BH_OK);
    bh_kernel_release(kernel);
    return status;
}

bh_status nth_inspect(struct scene *scene, bh_detail *detail) {
    static bh_inspection said = {.struct_size = sizeof said};
    static char text[100000];
    bh_inspect_options options = {.struct_size = sizeof options};
    options.guarded = true;
    options.text = text;
    options.text_size = sizeof text;
    bh_kernel *kernel;
    bh_status status = bht_kernel(scene->context, "square", &kernel, detail);
    THEN(bh_kernel_inspect(kernel, &options, &said, detail));
    if (status == BH_OK) {
        BHT_EQ(said.binding_count, 2);
    }
    bh_kernel_release(kernel);
    return status;
}

/* Made, asked what comes out, and written down. (glsl compiles.) */
bh_status nth_template_use(struct scene *scene, bh_detail *detail) {
    static const bh_parameter parameters[] = {{"a", BH_PARAMETER_PUSH, NULL},
                                              {"z", BH_PARAMETER_OUT, NULL}};
    const bh_argument argument = {.name = "a", .dtype = BH_DTYPE_F32};
    bh_template_options options = {.struct_size = sizeof options};
    options.parameters = parameters;
    options.parameter_count = 2;
    options.expression = "z = 2*a + f16(a)";
    bh_template *made;
    bh_description description = {.struct_size = sizeof description};
    size_t length;
    bh_status status = bh_template_create(scene->context, &options, &made, detail);
    BHT_EQ(!made, status != BH_OK);
    if (status == BH_OK) {
        description.struct_size = sizeof description;
        status = bh_template_output(made, &argument, 1, "z", &description, detail);
    }
    THEN(bh_template_source(made, &argument, 1, NULL, 0, &length, detail));
    bh_template_release(made);
    return status;
}

/* The whole of a launch, with its compile. */
bh_status nth_template_launch(struct scene *scene, bh_detail *detail) {
    static const bh_parameter parameters[] = {{"z", BH_PARAMETER_OUT, "u8"}};
    bh_template_options options = {.struct_size = sizeof options};
    options.parameters = parameters;
    options.parameter_count = 1;
    options.body = "z = uint8_t(7);";
    bh_template *made;
    bh_template_call call = {0};
    bh_buffer *buffer = NULL;
    bh_status status = bh_template_create(scene->context, &options, &made, detail);
    THEN(bh_buffer_create(scene->context, 64, NULL, &buffer, detail));
    const bh_argument argument = {.name = "z", .buffer = buffer};
    THEN(bh_template_prepare(made, &argument, 1, NULL, &call, detail));
    BHT_EQ(!call.command.dispatch.kernel, status != BH_OK);
    bh_template_call_fini(&call);
    bh_buffer_release(buffer);
    bh_template_release(made);
    return status;
}

/* bh_kernel_create_glsl: has a source compiled, and waits for it. */
#include "base/detail.h"
#include "supervisor/compile/compilation.h"
#include "supervisor/event/event.h"
#include "supervisor/kernel/kernel.h"

#define CALL "bh_kernel_create_glsl"

static bh_status create(bh_context *context, const struct bhi_compile_source *source,
                        const bh_kernel_options *options, bh_kernel **out_kernel,
                        bh_detail *detail) {
    struct bhi_compilation *compilation;
    bh_status status = bhi_compilation_obtain(context, source, CALL, NULL, &compilation, detail);
    if (status != BH_OK) {
        return status;
    }
    /* This wait is bounded, because the worker's start and the submission have deadlines. */
    status = bhi_event_await(compilation->event, BH_FOREVER);
    if (status == BH_OK) {
        status = bhi_compilation_take(compilation, CALL, detail);
        (void)bhi_compilation_log(compilation, source->given.log,
                                  source->given.log ? source->given.log_size : 0);
    }
    if (status == BH_OK) {
        status = bhi_compilation_kernel(context, compilation, options, out_kernel, detail);
    }
    bhi_compilation_unref(context, compilation);
    return status;
}

BH_API bh_status bh_kernel_create_glsl(bh_context *context, const bh_glsl_source *given,
                                       const bh_kernel_options *given_options,
                                       bh_kernel **out_kernel, bh_detail *detail) {
    if (!out_kernel) {
        return BHI_FAIL(detail, CALL, BH_REASON_NULL, "out_kernel");
    }
    *out_kernel = NULL;
    bh_kernel_options options;
    bh_status status = bhi_context_check(context, CALL, detail);
    if (status == BH_OK) {
        status = bhi_kernel_take_options(given_options, CALL, &options, detail);
    }
    if (status == BH_OK) {
        status = bhi_callback_check(CALL, detail);
    }
    if (status != BH_OK) {
        return status;
    }
    struct bhi_compile_source source;
    status = bhi_compile_source_take(&source, given, options.entry, CALL, detail);
    if (status == BH_OK && source.given.log) {
        source.given.log[0] = '\0';
    }
    if (status == BH_OK) {
        status = create(context, &source, &options, out_kernel, detail);
    }
    bhi_compile_source_fini(&source);
    return status;
}

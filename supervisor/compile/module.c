/* bh_module_… and bh_kernel_create_source: what a caller sees of compilations. */
#include "base/detail.h"
#include "supervisor/compile/compilation.h"
#include "supervisor/context/freelist.h"
#include "supervisor/event/event.h"
#include "supervisor/kernel/kernel.h"

#include <errno.h>
#include <string.h>

struct bh_module {
    struct bhi_handle handle;
    bh_context *context;                 /* referenced */
    struct bhi_compilation *compilation; /* referenced */
};

static struct bhi_freelist freelist = BHI_FREELIST_INIT(struct bh_module);

static bh_status compile(bh_context *context, const struct bhi_compile_source *source,
                         const char *call, bh_module **out_module, bh_event **out_event,
                         bh_detail *detail) {
    bh_event *unwanted = NULL;
    struct bh_module *module = bhi_freelist_take(&freelist);
    if (!module) {
        return BHI_FAIL(detail, call, BH_REASON_MEMORY);
    }
    *module = (struct bh_module){.context = context};
    bh_status status = bhi_compilation_obtain(
        context, source, call, out_event ? out_event : &unwanted, &module->compilation, detail);
    bh_event_release(unwanted);
    if (status != BH_OK) {
        bhi_freelist_give(&freelist, module);
        return status;
    }
    bhi_context_retain(context);
    atomic_init(&module->handle.count, 1);
    *out_module = module;
    return BH_OK;
}

BH_API bh_status bh_module_compile(bh_context *context, const bh_source *given,
                                   bh_module **out_module, bh_event **out_event,
                                   bh_detail *detail) {
    static const char call[] = "bh_module_compile";
    if (out_event) {
        *out_event = NULL;
    }
    BHI_NEED(out_module, call, detail);
    *out_module = NULL;
    BHI_TRY(bhi_context_check(context, call, detail));
    struct bhi_compile_source source;
    bh_status status = bhi_compile_source_take(&source, given, NULL, NULL, call, detail);
    if (status == BH_OK && source.given.log) {
        status = BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "source.log",
                          .text = "is not NULL: bh_module_log gives the log");
    }
    if (status == BH_OK) {
        status = compile(context, &source, call, out_module, out_event, detail);
    }
    bhi_compile_source_fini(&source);
    return status;
}

/* Takes the answer of the compiler, if the module and its context live. */
static bh_status take(bh_module *module, const char *call, bh_detail *detail) {
    BHI_NEED_LIVE(module, call, detail);
    BHI_TRY(bhi_context_check(module->context, call, detail));
    return bhi_compilation_take(module->compilation, call, detail);
}

BH_API bh_status bh_module_kernel(bh_module *module, const bh_kernel_options *given,
                                  bh_kernel **out_kernel, bh_detail *detail) {
    static const char call[] = "bh_module_kernel";
    BHI_NEED(out_kernel, call, detail);
    *out_kernel = NULL;
    bh_kernel_options options;
    BHI_TRY(take(module, call, detail));
    const bool cuda = module->compilation->cuda;
    BHI_TRY(bhi_kernel_take_options(given, cuda ? BHI_KERNEL_IMAGE : BHI_KERNEL_SPIRV, call,
                                    &options, detail));
    if (options.entry && (cuda || strcmp(options.entry, "main") != 0)) {
        return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "options.entry",
                        .text = BHI_SAY("is '%.64s'; a compiled module's is %s", options.entry,
                                        cuda ? "its source's: leave it out" : "main"));
    }
    return bhi_compilation_kernel(module->context, module->compilation, &options, out_kernel,
                                  detail);
}

BH_API size_t bh_module_log(bh_module *module, char *text, size_t size) {
    if (size) {
        text[0] = '\0';
    }
    const bh_status status = take(module, "bh_module_log", NULL);
    return status == BH_OK || status == BH_COMPILE_FAILED
               ? bhi_compilation_log(module->compilation, text, size)
               : 0;
}

BH_API void bh_module_retain(bh_module *module) {
    if (module) {
        (void)bhi_handle_retain(&module->handle);
    }
}

BH_API void bh_module_release(bh_module *module) {
    if (module && bhi_context_drop(&module->handle, module->context)) {
        bh_context *context = module->context;
        bhi_compilation_unref(context, module->compilation);
        bhi_freelist_give(&freelist, module);
        bhi_context_unref(context);
    }
}

static bh_status create_kernel(bh_context *context, const struct bhi_compile_source *source,
                               const bh_kernel_options *options, const char *call,
                               bh_kernel **out_kernel, bh_detail *detail) {
    struct bhi_compilation *compilation;
    BHI_TRY(bhi_compilation_obtain(context, source, call, NULL, &compilation, detail));
    /* This wait is bounded, because the worker's start and the submission have deadlines. */
    bh_status status = bhi_event_await(compilation->event, BH_FOREVER);
    if (status == BH_OK) {
        status = bhi_compilation_take(compilation, call, detail);
        (void)bhi_compilation_log(compilation, source->given.log,
                                  source->given.log ? source->given.log_size : 0);
    }
    if (status == BH_OK) {
        status = bhi_compilation_kernel(context, compilation, options, out_kernel, detail);
    }
    bhi_compilation_unref(context, compilation);
    return status;
}

BH_API bh_status bh_kernel_create_source(bh_context *context, const bh_source *given,
                                         const bh_kernel_options *given_options,
                                         bh_kernel **out_kernel, bh_detail *detail) {
    static const char call[] = "bh_kernel_create_source";
    BHI_NEED(out_kernel, call, detail);
    *out_kernel = NULL;
    bh_kernel_options options;
    BHI_TRY(bhi_context_check(context, call, detail));
    BHI_TRY(bhi_callback_check(call, detail));
    struct bhi_compile_source source;
    bh_status status =
        bhi_compile_source_take(&source, given, given_options, &options, call, detail);
    if (status == BH_OK && source.given.log) {
        source.given.log[0] = '\0';
    }
    if (status == BH_OK) {
        status = create_kernel(context, &source, &options, call, out_kernel, detail);
    }
    bhi_compile_source_fini(&source);
    return status;
}

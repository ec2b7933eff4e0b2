/* Kernels, GLSL, inspection and reflection. */
#include "script.h"
#include <bulkhead/inspect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bh_status bh_kernel_create_spirv(bh_context *context, const void *code, size_t code_size,
                                 const bh_kernel_options *options, bh_kernel **out_kernel,
                                 bh_detail *detail) {
    script_counts.kernels++;
    bh_status status = script_answer("SCRIPT_KERNEL", detail);
    if (status != BH_OK) {
        return status;
    }
    *out_kernel = script_new(sizeof **out_kernel);
    snprintf((*out_kernel)->name, sizeof(*out_kernel)->name, "%s", options->name);
    return BH_OK;
}

bh_status bh_kernel_create_source(bh_context *context, const bh_source *source,
                                  const bh_kernel_options *options, bh_kernel **out_kernel,
                                  bh_detail *detail) {
    if (getenv("SCRIPT_OPTIONS")) {
        fprintf(stderr, "source: compile %llu\n", (unsigned long long)source->deadline_ns);
    }
    if (getenv("SCRIPT_GLSL_LOG")) {
        snprintf(source->log, source->log_size, "%s", getenv("SCRIPT_GLSL_LOG"));
    }
    if (getenv("SCRIPT_GLSL_HANG")) {
        script_wait_closed();
        return detail->status = BH_CONTEXT_CLOSED;
    }
    return bh_kernel_create_spirv(context, source->text, source->length, options, out_kernel,
                                  detail);
}

bh_status bh_kernel_inspect(bh_kernel *kernel, const bh_inspect_options *options,
                            bh_inspection *out_inspection, bh_detail *detail) {
    *out_inspection = (bh_inspection){0};
    if (getenv("SCRIPT_GLSL_HANG")) {
        script_wait_closed();
        return detail->status = BH_CONTEXT_CLOSED;
    }
    /* A disassembly that needs a second try. */
    const size_t length = (1 << 20) + 10;
    if (options && options->guarded) {
        out_inspection->text_bytes = length;
        size_t there = options->text_size - 1 < length ? options->text_size - 1 : length;
        memset(options->text, '.', there);
        options->text[there] = '\0';
    }
    return script_answer("SCRIPT_INSPECT", detail);
}

void bh_kernel_hash(const bh_kernel *kernel, uint8_t out_hash[32]) {
    memset(out_hash, 0xAB, 32);
}

bh_status bh_kernel_code(bh_kernel *kernel, void *code, size_t size, size_t *out_size,
                         bh_detail *detail) {
    if (size) {
        memset(code, 0, size);
    }
    *out_size = 4;
    return BH_OK;
}

void bh_kernel_release(bh_kernel *kernel) {
    script_free(kernel);
}

static void reflect_bindings(bh_kernel_info *info) {
    const char *text = getenv("SCRIPT_BINDINGS");
    while (text && *text) {
        bh_kernel_binding *binding = &info->bindings[info->binding_count++];
        char access[8] = "", name[64] = "";
        sscanf(text, "%u.%u:%7[^:]:%63[^,]", &binding->set, &binding->binding, access, name);
        binding->count = 1;
        binding->kind = access[0] == 'u' ? BH_BINDING_UNIFORM_BUFFER : BH_BINDING_STORAGE_BUFFER;
        binding->access = !strcmp(access, "w")    ? BH_ACCESS_WRITE
                          : !strcmp(access, "rw") ? BH_ACCESS_READ_WRITE
                                                  : BH_ACCESS_READ;
        memcpy(binding->name, name, sizeof name);
        text += strcspn(text, ",");
        text += *text == ',';
    }
}

bh_status bh_kernel_prepare(bh_kernel *kernel, bh_stream *stream, bh_event **out_event,
                            bh_detail *detail) {
    bh_event *event = script_new(sizeof *event);
    bh_verdict *verdict = &event->verdict;
    verdict->status = script_answer("SCRIPT_PREPARE", NULL);
    verdict->exit_code = -1;
    verdict->event = verdict->origin = 40;
    verdict->worker_pid = 4321;
    snprintf(verdict->kernel_name, sizeof verdict->kernel_name, "%s", kernel->name);
    if (verdict->status != BH_OK) {
        snprintf(verdict->message, sizeof verdict->message, "%s", script_message());
    }
    event->pending = getenv("SCRIPT_PREPARE_HANG");
    *out_event = event;
    return BH_OK;
}

bh_status bh_kernel_reflect(bh_kernel *kernel, bh_stream *stream, uint64_t timeout_ns,
                            bh_kernel_info *out_info, bh_detail *detail) {
    bh_status status = script_answer("SCRIPT_REFLECT", detail);
    if (status != BH_OK) {
        return status;
    }
    memset(out_info, 0, sizeof *out_info);
    reflect_bindings(out_info);
    out_info->push_size = getenv("SCRIPT_PUSH") ? (uint32_t)atoi(getenv("SCRIPT_PUSH")) : 0;
    return BH_OK;
}

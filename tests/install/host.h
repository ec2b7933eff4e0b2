/* What both consumers do: run one kernel and look at what it wrote. C and C++, warning-free. */
#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 1000u

static int fail(const char *call, const bh_detail *detail) {
    fprintf(stderr, "%s: %s: %s\n", call, bh_status_name(detail->status), detail->message);
    return 1;
}

static int run(bh_context *context, const void *code, size_t code_size, bh_detail *detail) {
    static uint32_t values[COUNT];
    bh_stream *stream = NULL;
    bh_kernel *kernel = NULL;
    bh_buffer *buffer = NULL;
    bh_event *event = NULL;
    if (bh_stream_create(context, NULL, &stream, detail) != BH_OK) {
        return fail("bh_stream_create", detail);
    }
    if (bh_kernel_create_spirv(context, code, code_size, NULL, &kernel, detail) != BH_OK) {
        return fail("bh_kernel_create_spirv", detail);
    }
    if (bh_buffer_create(context, sizeof values, NULL, &buffer, detail) != BH_OK) {
        return fail("bh_buffer_create", detail);
    }
    const bh_binding binding = bh_bind_read_write(0, buffer);
    static bh_command commands[2]; /* as C++17 can, too, which has no designated initialisers */
    commands[0].type = BH_COMMAND_FILL;
    commands[0].fill.dst = buffer;
    commands[0].fill.size = BH_WHOLE_SIZE;
    commands[0].fill.value = 21;
    commands[1].type = BH_COMMAND_DISPATCH;
    commands[1].dispatch.kernel = kernel;
    commands[1].dispatch.groups[0] = COUNT;
    commands[1].dispatch.groups[1] = commands[1].dispatch.groups[2] = 1;
    commands[1].dispatch.bindings = &binding;
    commands[1].dispatch.binding_count = 1;
    static bh_submit_info info;
    info.struct_size = sizeof info;
    info.commands = commands;
    info.command_count = 2;
    if (bh_submit(stream, &info, &event, detail) != BH_OK) {
        return fail("bh_submit", detail);
    }
    bh_status status = bh_event_wait(event, 60u * UINT64_C(1000000000));
    if (status != BH_OK) {
        bh_verdict verdict;
        verdict.struct_size = sizeof verdict;
        if (bh_event_verdict(event, &verdict) == BH_OK) {
            fprintf(stderr, "%s\n", verdict.message);
        }
        fprintf(stderr, "the event is %s\n", bh_status_name(status));
        return 1;
    }
    if (bh_buffer_read(buffer, 0, values, sizeof values, BH_FOREVER, detail) != BH_OK) {
        return fail("bh_buffer_read", detail);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        if (values[i] != 42) {
            fprintf(stderr, "value %u is %u\n", i, values[i]);
            return 1;
        }
    }
    bh_event_release(event);
    bh_buffer_release(buffer);
    bh_kernel_release(kernel);
    bh_stream_release(stream);
    return 0;
}

int main(int argc, char **argv) {
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file) {
        fprintf(stderr, "usage: host KERNEL.spv\n");
        return 2;
    }
    static char code[65536];
    size_t code_size = fread(code, 1, sizeof code, file);
    fclose(file);
    bh_context *context = NULL;
    bh_detail detail;
    if (bh_context_create(NULL, &context, &detail) != BH_OK) {
        return fail("bh_context_create", &detail);
    }
    int result = run(context, code, code_size, &detail);
    bh_context_destroy(context);
    if (result == 0) {
        puts("the kernel has run");
    }
    return result;
}

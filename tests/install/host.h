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
    bh_stream *stream = NULL;
    bh_kernel *kernel = NULL;
    bh_buffer *buffer = NULL;
    bh_event *event = NULL;
    void *pointer = NULL;
    if (bh_stream_create(context, NULL, &stream, detail) != BH_OK) {
        return fail("bh_stream_create", detail);
    }
    if (bh_kernel_create_spirv(context, code, code_size, NULL, &kernel, detail) != BH_OK) {
        return fail("bh_kernel_create_spirv", detail);
    }
    if (bh_buffer_create(context, COUNT * sizeof(uint32_t), &buffer, detail) != BH_OK ||
        bh_buffer_map(buffer, BH_MAP_DISCARD, BH_FOREVER, &pointer, detail) != BH_OK) {
        return fail("bh_buffer", detail);
    }
    uint32_t *values = (uint32_t *)pointer;
    for (uint32_t i = 0; i < COUNT; i++) {
        values[i] = i;
    }
    bh_binding binding;
    binding.set = 0;
    binding.binding = 0;
    binding.buffer = buffer;
    binding.offset = 0;
    binding.size = BH_WHOLE_SIZE;
    binding.access = BH_ACCESS_READ_WRITE;
    binding.element = 0;
    const uint32_t groups[3] = {COUNT, 1, 1};
    if (bh_launch(stream, kernel, groups, &binding, 1, NULL, 0, &event, detail) != BH_OK) {
        return fail("bh_launch", detail);
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
    for (uint32_t i = 0; i < COUNT; i++) {
        if (values[i] != 2 * i) {
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

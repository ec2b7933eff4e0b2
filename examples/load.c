/* Squares what a file holds: load, bind, map. Usage: example_load square.spv FILE.npy
 *                                                    example_load square.spv FILE.safetensors
 * TENSOR The elements have to be floats. */
#include <bulkhead/array.h>
#include <bulkhead/bulkhead.h>
#include <bulkhead/file.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bh_detail why;

static int failed(const char *what) {
    return fprintf(stderr, "%s: %s\n", what, why.message), 1;
}

/* A progress bar would stand here: a load can be asked how far it is while something waits for it.
 */
static bh_status await(bh_buffer *buffer) {
    bh_event *event = NULL;
    bh_status status = bh_buffer_load_event(buffer, &event, &why);
    while (status == BH_OK && (status = bh_event_wait(event, 100000000)) == BH_TIMEOUT) {
        uint64_t done = 0, total = 0;
        status = bh_buffer_load_progress(buffer, &done, &total, NULL);
        if (isatty(2)) {
            fprintf(stderr, "%llu of %llu bytes\n", (unsigned long long)done,
                    (unsigned long long)total);
        }
    }
    bh_verdict verdict = {.struct_size = sizeof verdict};
    if (status != BH_OK && bh_event_verdict(event, &verdict) == BH_OK) {
        memcpy(why.message, verdict.message, sizeof why.message);
    }
    bh_event_release(event);
    return status;
}

int main(int argc, char **argv) {
    static uint8_t code[1 << 20];
    bh_context *context = NULL;
    bh_stream *stream = NULL;
    bh_kernel *kernel = NULL;
    bh_buffer *in = NULL, *out = NULL;
    bh_file_source source = {.struct_size = sizeof source};
    bh_buffer_options from = {.struct_size = sizeof from, .file = &source};
    bh_description array = {.struct_size = sizeof array};
    void *squares = NULL;
    FILE *file = argc > 2 ? fopen(argv[1], "rb") : NULL;
    size_t size = file ? fread(code, 1, sizeof code, file) : 0;
    source.path = argc > 2 ? argv[2] : "";
    source.format = argc > 3 ? BH_FILE_SAFETENSORS : BH_FILE_NPY;
    source.tensor = argc > 3 ? argv[3] : NULL;
    if (bh_context_create(NULL, &context, &why) || bh_stream_create(context, NULL, &stream, &why) ||
        bh_kernel_create_spirv(context, code, size, NULL, &kernel, &why)) {
        return failed("starting");
    }
    /* Its size and what it is are known when the call returns; its bytes are on their way. */
    if (bh_buffer_create(context, 0, &from, &in, &why) || bh_buffer_description(in, &array, &why) ||
        bh_buffer_create(context, bh_buffer_size(in), NULL, &out, &why)) {
        return failed("loading");
    }
    printf("%u dimension%s, %llu bytes\n", array.rank, array.rank == 1 ? "" : "s",
           (unsigned long long)bh_buffer_size(in));
    if (array.kind != BH_NUMBER_FLOAT || array.bits != 32) {
        return fprintf(stderr, "these are no floats\n"), 1;
    }
    /* Bound at once: the kernel runs when they are there. */
    uint64_t count = bh_buffer_size(in) / 4;
    bh_binding bound[] = {bh_bind_read(0, in), bh_bind_write(1, out)};
    if (bh_launch(stream, kernel, (uint32_t[]){(uint32_t)((count + 63) / 64), 1, 1}, bound, 2, NULL,
                  0, NULL, &why)) {
        return failed("submitting");
    }
    if (await(in) != BH_OK) {
        return failed("the load is poisoned");
    }
    /* Mapping waits for the kernel. If the kernel crashed or hung, |why| says what happened. */
    if (bh_buffer_map(out, BH_MAP_READ, BH_FOREVER, &squares, &why)) {
        return failed("poisoned");
    }
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum += ((const float *)squares)[i];
    }
    printf("%llu elements, the squares' sum is %g\n", (unsigned long long)count, sum);
    bh_buffer_release(in), bh_buffer_release(out);
    bh_kernel_release(kernel), bh_stream_release(stream);
    bh_context_destroy(context);
    return 0;
}

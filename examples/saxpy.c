/* y = 2 x + y. Usage: build/bin/example_saxpy build/share/bulkhead/shaders/saxpy.spv */
#include <bulkhead/bulkhead.h>
#include <stdio.h>

int main(int argc, char **argv) {
    static uint8_t code[1 << 20];
    static float x[1024], y[1024];
    struct {
        float a;
        uint32_t n;
    } push = {2, 1024};
    bh_context *context = NULL;
    bh_stream *stream = NULL;
    bh_kernel *kernel = NULL;
    bh_buffer *bx = NULL, *by = NULL;
    bh_detail why = {0};
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    size_t size = file ? fread(code, 1, sizeof code, file) : 0;
    const char *none = argc == 2 ? "the file cannot be read" : "usage: example_saxpy saxpy.spv";
    for (int i = 0; i < 1024; i++) {
        x[i] = y[i] = (float)i;
    }
    if (bh_context_create(NULL, &context, &why) || bh_stream_create(context, NULL, &stream, &why) ||
        bh_kernel_create_spirv(context, code, size, NULL, &kernel, &why) ||
        bh_buffer_create(context, sizeof x, NULL, &bx, &why) ||
        bh_buffer_create(context, sizeof y, NULL, &by, &why) ||
        bh_buffer_write(bx, 0, x, sizeof x, BH_FOREVER, &why) ||
        bh_buffer_write(by, 0, y, sizeof y, BH_FOREVER, &why)) {
        return fprintf(stderr, "%s\n", size ? why.message : none), 2;
    }
    bh_binding bound[] = {bh_bind_read(0, bx), bh_bind_read_write(1, by)};
    uint32_t groups[3] = {4, 1, 1};
    /* Reading y waits for the kernel. If the kernel crashed or hung, |why| says what happened. */
    if (bh_launch(stream, kernel, groups, bound, 2, &push, sizeof push, NULL, &why) ||
        bh_buffer_read(by, 0, y, sizeof y, BH_FOREVER, &why)) {
        return fprintf(stderr, "%s: %s\n", bh_status_name(why.status), why.message), 1;
    }
    printf("y[1023] = %g\n", y[1023]);
    bh_buffer_release(bx), bh_buffer_release(by);
    bh_kernel_release(kernel), bh_stream_release(stream);
    bh_context_destroy(context); /* ends all processes, sockets and files of the library */
    return 0;
}

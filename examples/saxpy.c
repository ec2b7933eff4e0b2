/* y = 2 x + y */
#include <bulkhead/bulkhead.h>
#include <stdio.h>

int main(void) {
    const bh_source saxpy = {
        .struct_size = sizeof saxpy,
        .text = "#version 450\nlayout(local_size_x = 256) in;\n"
                "layout(binding = 0) readonly buffer X { float x[]; };\n"
                "layout(binding = 1) buffer Y { float y[]; };\n"
                "void main() { uint i = gl_GlobalInvocationID.x; y[i] += 2 * x[i]; }\n"};
    static float x[1024], y[1024];
    bh_context *context;
    bh_stream *stream;
    bh_kernel *kernel;
    bh_buffer *bx, *by;
    bh_detail why;
    for (int i = 0; i < 1024; i++) {
        x[i] = y[i] = (float)i;
    }
    if (bh_context_create(NULL, &context, &why) || bh_stream_create(context, NULL, &stream, &why) ||
        bh_kernel_create_source(context, &saxpy, NULL, &kernel, &why) ||
        bh_buffer_create(context, sizeof x, NULL, &bx, &why) ||
        bh_buffer_create(context, sizeof y, NULL, &by, &why) ||
        bh_buffer_write(bx, 0, x, sizeof x, BH_FOREVER, &why) ||
        bh_buffer_write(by, 0, y, sizeof y, BH_FOREVER, &why) ||
        bh_launch(stream, kernel, (uint32_t[]){4, 1, 1},
                  (bh_binding[]){bh_bind_read(0, bx), bh_bind_read_write(1, by)}, 2, NULL, 0, NULL,
                  &why) ||
        /* Waits for the kernel. If the kernel crashed or hung, |why| says what happened. */
        bh_buffer_read(by, 0, y, sizeof y, BH_FOREVER, &why)) {
        return fprintf(stderr, "%s: %s\n", bh_status_name(why.status), why.message), 1;
    }
    printf("y[1023] = %g\n", y[1023]);
    bh_buffer_release(bx), bh_buffer_release(by);
    bh_kernel_release(kernel), bh_stream_release(stream);
    return bh_context_destroy(context); /* ends all processes, sockets and files of the library */
}

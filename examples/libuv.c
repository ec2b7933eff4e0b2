/* A libuv loop that waits for many launches. Usage: example_libuv square.spv */
#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <uv.h>

#define LAUNCHES 100

static int left = LAUNCHES, good;

static void on_readable(uv_poll_t *handle, int status, int events) {
    bh_queue *queue = handle->data;
    bh_completion ended[16];
    size_t count = 0;
    (void)status, (void)events;
    (void)!bh_queue_take(queue, BH_NOW, ended, 16, &count); /* the rest: in the next turn */
    for (size_t i = 0; i < count; i++) {
        good += ended[i].status == BH_OK; /* ended[i].user_data says which it is */
        bh_event_release(ended[i].event);
    }
    if ((left -= (int)count) == 0) {
        uv_close((uv_handle_t *)handle, NULL); /* then uv_run returns */
    }
}

int main(int argc, char **argv) {
    static uint8_t code[1 << 16];
    static const float zeros[64];
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    const size_t size = file ? fread(code, 1, sizeof code, file) : 0;
    bh_context *context = NULL;
    bh_stream *stream = NULL;
    bh_kernel *kernel = NULL;
    bh_buffer *x = NULL, *y = NULL;
    bh_queue *queue = NULL;
    bh_event *event = NULL;
    bh_detail why = {0};
    if (bh_context_create(NULL, &context, &why) || bh_stream_create(context, NULL, &stream, &why) ||
        bh_kernel_create_spirv(context, code, size, NULL, &kernel, &why) ||
        bh_buffer_create(context, sizeof zeros, NULL, &x, &why) ||
        bh_buffer_create(context, sizeof zeros, NULL, &y, &why) || bh_queue_create(&queue, &why) ||
        bh_buffer_write(x, 0, zeros, sizeof zeros, BH_FOREVER, &why)) {
        return fprintf(stderr, "%s\n", why.message), 2;
    }
    const bh_binding bound[] = {bh_bind_read(0, x), bh_bind_write(1, y)};
    for (uint64_t i = 0; i < LAUNCHES; i++) {
        if (bh_launch(stream, kernel, (uint32_t[]){1, 1, 1}, bound, 2, NULL, 0, &event, &why) ||
            bh_queue_add(queue, event, i, &why)) {
            return fprintf(stderr, "%s\n", why.message), 1;
        }
        bh_event_release(event);
    }
    uv_poll_t handle = {.data = queue};
    uv_poll_init(uv_default_loop(), &handle, bh_queue_fd(queue));
    uv_poll_start(&handle, UV_READABLE, on_readable);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    printf("%d of %d launches are READY\n", good, LAUNCHES);

    bh_queue_destroy(queue);
    bh_buffer_release(x), bh_buffer_release(y);
    bh_kernel_release(kernel), bh_stream_release(stream);
    return bh_context_destroy(context);
}

/* Waiting without a thread that waits. Usage: example_epoll FOLDER-OF-SHADERS
 *
 * One descriptor, of a completion queue, stands in an epoll loop for all submissions: one that ends
 * well, one that never ends, and a chain, whose steps are submitted as the steps before end. */
#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define COUNT 64
#define STEPS 4

enum job { SQUARE, HANG, CHAIN, JOBS };

static void must(bh_status status, const bh_detail *why) {
    if (status == BH_OK) {
        return;
    }
    fprintf(stderr, "%s: %s\n", bh_status_name(status), why->message);
    exit(2);
}

static bh_kernel *load(bh_context *context, const char *folder, const char *name) {
    static uint8_t code[1 << 16];
    char path[4096];
    bh_detail why;
    snprintf(path, sizeof path, "%s/%s.spv", folder, name);
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(code, 1, sizeof code, file) : 0;
    if (file) {
        fclose(file);
    }
    bh_kernel *kernel = NULL;
    must(bh_kernel_create_spirv(context, code, size, NULL, &kernel, &why), &why);
    return kernel;
}

/* Launches |kernel|. The queue gives |job| when that has ended. */
static void start(bh_queue *queue, enum job job, bh_stream *stream, bh_kernel *kernel,
                  uint32_t groups, const bh_binding *bound, uint32_t count) {
    const uint32_t all[3] = {groups, groups > 1 ? 64 : 1, 1};
    bh_event *event = NULL;
    bh_detail why;
    must(bh_launch(stream, kernel, all, bound, count, NULL, 0, &event, &why), &why);
    must(bh_queue_add(queue, event, job, &why), &why);
    bh_event_release(event); /* the queue has it */
}

int main(int argc, char **argv) {
    static const char *const names[] = {"square", "hang", "chain"};
    const char *folder = argc > 1 ? argv[1] : ".";
    bh_context *context = NULL;
    bh_stream *host = NULL, *guest = NULL;
    bh_queue *queue = NULL;
    bh_buffer *buffers[5] = {NULL};
    bh_status ends[JOBS];
    float numbers[COUNT];
    bh_detail why;

    must(bh_context_create(NULL, &context, &why), &why);
    bh_stream_options options = {.struct_size = sizeof options};
    options.deadline_ns = 300000000; /* 300 ms */
    must(bh_stream_create(context, &options, &guest, &why), &why);
    must(bh_stream_create(context, NULL, &host, &why), &why);
    must(bh_queue_create(&queue, &why), &why);
    bh_kernel *square = load(context, folder, "square"), *hang = load(context, folder, "hang");
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = 2;
    }
    for (int i = 0; i < 5; i++) {
        must(bh_buffer_create(context, sizeof numbers, NULL, &buffers[i], &why), &why);
        must(bh_buffer_write(buffers[i], 0, numbers, sizeof numbers, BH_FOREVER, &why), &why);
    }
    const bh_binding once[] = {bh_bind_read(0, buffers[0]), bh_bind_write(1, buffers[1])};
    const bh_binding steps[2][2] = {{bh_bind_read(0, buffers[2]), bh_bind_write(1, buffers[3])},
                                    {bh_bind_read(0, buffers[3]), bh_bind_write(1, buffers[2])}};
    const bh_binding alone[] = {bh_bind_read_write(0, buffers[4])};
    start(queue, SQUARE, host, square, 1, once, 2);
    start(queue, HANG, guest, hang, 65535, alone, 1);
    start(queue, CHAIN, host, square, 1, steps[0], 2);

    int loop = epoll_create1(EPOLL_CLOEXEC), step = 1;
    struct epoll_event want = {.events = EPOLLIN}, ready;
    if (epoll_ctl(loop, EPOLL_CTL_ADD, bh_queue_fd(queue), &want) != 0) {
        return perror("epoll_ctl"), 2;
    }
    for (int left = JOBS; left > 0;) {
        bh_completion ended[16];
        size_t count;
        if (epoll_wait(loop, &ready, 1, -1) != 1) {
            return perror("epoll_wait"), 2;
        }
        if (bh_queue_take(queue, BH_NOW, ended, 16, &count) != BH_OK) {
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            const enum job job = (enum job)ended[i].user_data;
            ends[job] = ended[i].status;
            bh_event_release(ended[i].event);
            if (job == CHAIN && ends[job] == BH_OK && step < STEPS) {
                start(queue, CHAIN, host, square, 1, steps[step++ % 2], 2);
            } else {
                left--;
            }
        }
    }
    for (int i = 0; i < JOBS; i++) {
        printf("%-7s %-8s %s%s", names[i], ends[i] == BH_OK ? "READY" : "POISONED",
               bh_status_name(ends[i]), i == CHAIN ? "" : "\n");
    }
    must(bh_buffer_read(buffers[2], 0, numbers, sizeof numbers, 0, &why), &why);
    printf(", %d steps: 2 has become %g\n", step, numbers[COUNT - 1]);

    for (int i = 0; i < 5; i++) {
        bh_buffer_release(buffers[i]);
    }
    bh_kernel_release(square), bh_kernel_release(hang);
    bh_stream_release(host), bh_stream_release(guest);
    close(loop);
    bh_queue_destroy(queue);
    return bh_context_destroy(context);
}

/* Waiting without a thread that waits. Usage: example_epoll FOLDER-OF-SHADERS
 *
 * An epoll loop has a descriptor for each of two submissions, a good one and one that never ends,
 * and one of the program's own, which the last callback of a chain writes to: each step of the
 * chain is submitted when the one before has ended. */
#include <bulkhead/bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define COUNT 64
#define STEPS 4

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

/* -- a chain: the callback of each step submits the next one ----------------------------------- */

struct chain {
    bh_stream *stream;
    bh_kernel *square;
    bh_buffer *buffers[2]; /* in turns: from one into the other */
    int steps;             /* submitted */
    bh_status status;      /* of the last, once |done| is readable */
    int done;
};

static void step_ended(bh_event *event, void *user);

static bh_status submit_step(struct chain *chain, bh_detail *why) {
    bh_buffer *from = chain->buffers[chain->steps % 2],
              *to = chain->buffers[(chain->steps + 1) % 2];
    const bh_binding bound[] = {bh_bind_read(0, from), bh_bind_write(1, to)};
    const uint32_t groups[3] = {1, 1, 1};
    bh_event *event = NULL;
    bh_status status =
        bh_launch(chain->stream, chain->square, groups, bound, 2, NULL, 0, &event, why);
    if (status != BH_OK) {
        return status;
    }
    chain->steps++; /* before the callback can look */
    status = bh_event_on_end(event, step_ended, chain, why);
    bh_event_release(event);
    return status;
}

/* In the context's callback thread: nothing here may wait. */
static void step_ended(bh_event *event, void *user) {
    struct chain *chain = user;
    bh_detail why;
    chain->status = bh_event_wait(event, 0); /* it has ended: this only looks */
    if (chain->status == BH_OK && chain->steps < STEPS &&
        (chain->status = submit_step(chain, &why)) == BH_OK) {
        return;
    }
    const uint64_t one = 1; /* the end, good or bad */
    if (write(chain->done, &one, sizeof one) != sizeof one) {
        abort();
    }
}

/* -- the loop ---------------------------------------------------------------------------------- */

static void watch(int loop, int fd, uint32_t index) {
    struct epoll_event want = {.events = EPOLLIN, .data.u32 = index};
    if (epoll_ctl(loop, EPOLL_CTL_ADD, fd, &want) != 0) {
        perror("epoll_ctl");
        exit(2);
    }
}

static void print(const char *name, bh_status status) {
    printf("%-7s %-8s %s", name, status == BH_OK ? "READY" : "POISONED", bh_status_name(status));
}

int main(int argc, char **argv) {
    static const char *const names[] = {"square", "hang", "chain"};
    const char *folder = argc > 1 ? argv[1] : ".";
    const uint32_t groups[3] = {1, 1, 1}, many[3] = {65535, 64, 1};
    bh_context *context = NULL;
    bh_stream *host = NULL, *guest = NULL;
    bh_buffer *buffers[5] = {NULL};
    bh_event *events[2] = {NULL};
    int fds[3], loop = epoll_create1(EPOLL_CLOEXEC);
    bh_status ends[3];
    float numbers[COUNT];
    bh_detail why;

    must(bh_context_create(NULL, &context, &why), &why);
    bh_stream_options options = {.struct_size = sizeof options};
    options.deadline_ns = 300000000; /* 300 ms */
    must(bh_stream_create(context, &options, &guest, &why), &why);
    must(bh_stream_create(context, NULL, &host, &why), &why);
    bh_kernel *square = load(context, folder, "square"), *hang = load(context, folder, "hang");
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = 2;
    }
    for (int i = 0; i < 5; i++) {
        must(bh_buffer_create(context, sizeof numbers, NULL, &buffers[i], &why), &why);
        must(bh_buffer_write(buffers[i], 0, numbers, sizeof numbers, BH_FOREVER, &why), &why);
    }

    const bh_binding to_1[] = {bh_bind_read(0, buffers[0]), bh_bind_write(1, buffers[1])};
    must(bh_launch(host, square, groups, to_1, 2, NULL, 0, &events[0], &why), &why);
    const bh_binding alone[] = {bh_bind_read_write(0, buffers[4])};
    must(bh_launch(guest, hang, many, alone, 1, NULL, 0, &events[1], &why), &why);
    for (uint32_t i = 0; i < 2; i++) {
        must(bh_event_fd(events[i], &fds[i], &why), &why);
        watch(loop, fds[i], i);
    }
    struct chain chain = {.stream = host, .square = square, .buffers = {buffers[2], buffers[3]}};
    chain.done = fds[2] = eventfd(0, EFD_CLOEXEC);
    watch(loop, fds[2], 2);
    must(submit_step(&chain, &why), &why);

    for (int left = 3; left > 0; left--) {
        struct epoll_event ready;
        if (epoll_wait(loop, &ready, 1, -1) != 1) {
            return perror("epoll_wait"), 2;
        }
        uint32_t i = ready.data.u32;
        uint64_t written;
        if (i == 2 && read(fds[i], &written, sizeof written) != sizeof written) {
            return perror("read"), 2;
        }
        ends[i] = i == 2 ? chain.status : bh_event_wait(events[i], 0);
        /* It stays readable for ever. Closing alone would not do: the library may have another
         * descriptor of it for a moment. */
        epoll_ctl(loop, EPOLL_CTL_DEL, fds[i], NULL);
        close(fds[i]);
    }
    for (int i = 0; i < 3; i++) {
        print(names[i], ends[i]);
        if (i < 2) {
            printf("\n");
        }
    }
    must(bh_buffer_read(buffers[2], 0, numbers, sizeof numbers, 0, &why), &why);
    printf(", %d steps: 2 has become %g\n", chain.steps, numbers[COUNT - 1]);

    for (int i = 0; i < 5; i++) {
        bh_buffer_release(buffers[i]);
    }
    bh_event_release(events[0]), bh_event_release(events[1]);
    bh_kernel_release(square), bh_kernel_release(hang);
    bh_stream_release(host), bh_stream_release(guest);
    close(loop);
    return bh_context_destroy(context);
}

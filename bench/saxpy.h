/* The kernel of bench-memory and bench-overlap, saxpy over two arrays of 64 MiB: launched through
 * the library, and in-process. Every failure ends the program. */
#ifndef BENCH_SAXPY_H
#define BENCH_SAXPY_H

#include "vulkan_device.h"

#define BENCH_SAXPY_BYTES (64ull << 20)

struct bench_saxpy_ours {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *kernel;
};

/* |worker|: its executable; NULL: the library's own. */
void bench_saxpy_open_ours(struct bench_saxpy_ours *side, const char *worker);
void bench_saxpy_close_ours(struct bench_saxpy_ours *side);
/* Writes what binds the arrays, and |count| launches, which refer to |bindings| and |push|. */
void bench_saxpy_launches(const struct bench_saxpy_ours *side, bh_buffer *x, bh_buffer *y,
                          const struct bench_saxpy_push *push, bh_binding bindings[2],
                          bh_command *commands, uint32_t count);

struct bench_saxpy_theirs {
    struct bench_pipeline pipeline;
    VkDescriptorPool descriptors;
    VkDescriptorSet set;
    struct bench_memory arrays[2]; /* x and y, in the device's memory */
};

void bench_saxpy_open_theirs(struct bench_saxpy_theirs *side, const struct bench_device *device);
/* Records |count| launches, with a barrier behind each. */
void bench_saxpy_record(const struct bench_saxpy_theirs *side, VkCommandBuffer commands,
                        const struct bench_saxpy_push *push, uint32_t count);

/* A table of times of both sides, with ratios. */
void bench_saxpy_say_head(void);
void bench_saxpy_say(const char *what, uint64_t ours_ns, uint64_t theirs_ns);

#endif

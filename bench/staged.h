/* In-process copies between the host and the device's own memory, as a careful host makes them: in
 * pieces, several under way, through staging memory that it keeps. */
#ifndef BENCH_STAGED_H
#define BENCH_STAGED_H

#include "vulkan_device.h"

#define BENCH_STAGED_PIECE (2ull << 20) /* as the library's */
#define BENCH_STAGED_MOST  4u           /* under way */

struct bench_staged {
    const struct bench_device *device;
    VkCommandPool pool;
    struct bench_staged_piece {
        struct bench_memory staging;
        VkCommandBuffer commands;
        VkFence done;
        char *to; /* of a download that is under way; NULL: an upload is, or nothing */
        uint64_t bytes;
        bool busy;
    } pieces[BENCH_STAGED_MOST];
    uint32_t next;
};

void bench_staged_open(const struct bench_device *device, struct bench_staged *out);
void bench_staged_close(struct bench_staged *staged);
/* Uploads |bytes| to |target|. The last pieces may still be under way when it returns. */
void bench_staged_upload(struct bench_staged *staged, const struct bench_memory *target,
                         const void *from, uint64_t bytes);
/* Downloads, after what the queue has been given before, and waits for everything. */
void bench_staged_download(struct bench_staged *staged, const struct bench_memory *source, void *to,
                           uint64_t bytes);
/* Waits for what is under way. */
void bench_staged_finish(struct bench_staged *staged);

#endif

/* Copies beside kernels.
 *
 * If the device has a family of queues for transfers alone, with two queues or more, large copies
 * run on the second one (the first one sets abort words, transfer.h), while the compute queue runs
 * what was submitted before them. The buffers belong to both families (VK_SHARING_MODE_CONCURRENT).
 * Copies and kernels never wait for each other on the device: a copy begins only if nothing that
 * runs is in its way, and kernels begin after all copies before them have ended. So a kernel that
 * hangs or is stopped holds no copy that has begun, and fences are all that is needed.
 *
 * A *job* is a record of copies that has begun. Its copies become one or more queue submissions,
 * the *parts*. A source that the device reads through a copy of the host (stage.h) is copied in
 * chunks: the device transfers one chunk while the processor copies the next one.
 *
 * A worker may die while a job is under way beside a kernel. The supervisor then takes the job for
 * one that has not begun, and the next worker runs it again. So no job overwrites what it, or a
 * job before it, has read. */
#ifndef BHI_WORKER_VULKAN_COPY_JOBS_H
#define BHI_WORKER_VULKAN_COPY_JOBS_H

#include "worker/vulkan/device.h"

#define BHI_COPY_JOBS     8u           /* under way at most */
#define BHI_COPY_COMMANDS 16u          /* of a job at most */
#define BHI_COPY_PARTS    16u          /* on the device at most */
#define BHI_COPY_LEAST    (256u << 10) /* bytes: for fewer a queue submission is not worth it */
#define BHI_COPY_CHUNK    (2u << 20)   /* bytes that the processor copies at once */

/* A range that a command uses. */
struct bhi_copy_range {
    uint64_t buffer, begin, end;
    bool write;
};

struct bhi_copy_job {
    const struct bhi_lane_record *record;
    struct bhi_copy_range ranges[2 * BHI_COPY_COMMANDS]; /* source, target, source, target, … */
    uint32_t range_count;
    const struct bhi_cmd_copy *next; /* the first that is not, or not all, submitted; NULL: none */
    uint64_t next_bytes;             /* what is submitted of it */
    uint32_t next_index;
    uint64_t parts_end; /* number after that of its last part; 0: it has none yet */
    uint64_t started_ns;
    struct bhi_error error; /* status BH_OK, or what went wrong: nothing more is submitted */
};

struct bhi_vk_copies {
    VkQueue queue; /* VK_NULL_HANDLE: the device has none for copies, and there are never jobs */
    VkCommandPool pool;
    struct {
        VkCommandBuffer commands;
        VkFence fence;
    } parts[BHI_COPY_PARTS];   /* part n is in n % BHI_COPY_PARTS */
    uint64_t submitted, ended; /* parts so far */
    /* A barrier for the compute queue, which then sees what other queues have written, and how many
     * parts had ended when it was submitted last. UINT64_MAX: it is due. */
    VkCommandBuffer join;
    uint64_t joined;
    struct bhi_copy_job jobs[BHI_COPY_JOBS]; /* a ring */
    uint32_t first, count;
    /* The records on the compute queue, as in bhi_backend_run; |beside_count| 0: none. */
    const struct bhi_lane_record *const *beside;
    const size_t *beside_places;
    uint32_t beside_count;
    uint64_t last_wait_ns; /* how long the last job was waited for */
};

#endif

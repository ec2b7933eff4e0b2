/* The backend from inside, for the files that implement worker/backend.h. The session's thread. */
#ifndef BHI_WORKER_VULKAN_BACKEND_H
#define BHI_WORKER_VULKAN_BACKEND_H

#include "worker/vulkan/abort.h"
#include "worker/vulkan/hazards.h"
#include "worker/vulkan/recordings.h"
#include "worker/vulkan/timing.h"

/* The page behind config.markers, or one of our own. */
struct bhi_marker_page {
    struct bhi_markers markers;
    _Alignas(256) uint32_t scratch[64]; /* written by the warm-up kernel */
};

struct bhi_recorder {
    struct bhi_backend *backend;
    struct bhi_vk_recording *uses; /* lists what the commands use */
    VkCommandBuffer commands;
    struct bhi_error *error;
    bool check_only;                         /* look up and check, record nothing */
    uint64_t seq;                            /* of the record */
    uint32_t slot;                           /* of its abort word, and of its times */
    const struct bhi_vk_kernel *bound_abort; /* the word is bound for this one */
    VkPipeline bound_pipeline;
    const struct bhi_vk_group *bound_group;
};

struct bhi_backend {
    struct bhi_vk_device device;
    struct bhi_vk_kernels kernels;
    struct bhi_map buffers;
    struct bhi_vk_groups groups;
    struct bhi_vk_recordings recordings;
    struct bhi_hazards hazards;
    struct bhi_vk_abort abort;
    struct bhi_vk_cache cache;
    struct bhi_vk_timing timing;
    VkCommandBuffer primer; /* prime.h */
    void (*compiling)(void *user, uint64_t seq, bool over);
    void (*log)(void *user, uint32_t level, const char *line);
    void *user;
    uint64_t compiles; /* the record that has to be compiled first; UINT64_MAX: none */
    VkFence fence;
    bool lost;
    bool starved;   /* a buffer or a kernel was given, and there was no memory to know it by */
    uint64_t run;   /* number of the current or last bhi_backend_run() */
    uint64_t stamp; /* number of the newest recording */

    bool merge; /* config.markers was given */
    struct bhi_marker_page *page;
    struct bhi_vk_buffer page_buffer;
    /* Several records in one command buffer, recorded anew each time; never in a bucket. */
    struct bhi_vk_recording merged;
    struct bhi_recorder merger;

    uint64_t last_wait_ns; /* how long the device took the last time */
    uint64_t queue_submits, imported_bytes;
    size_t staged;     /* buffers that are read through a copy (stage.h) */
    uint64_t barriers; /* recorded so far between dependent commands, for tests */
};

/* record.c: a command buffer for a checked record, an old one or a new one. NULL and *error:
 * the record is refused. */
struct bhi_vk_recording *bhi_vk_record(struct bhi_backend *backend,
                                       const struct bhi_lane_record *record,
                                       struct bhi_error *error);
/* merge.c: the markers, and records in one command buffer. Begin, add records one by one, end
 * with what is to be submitted (VK_NULL_HANDLE: *error). A record that is refused leaves nothing
 * behind; *out_spoiled: it did, and the command buffer cannot be used. |before| is the seq of the
 * record before it, |last| that of the last one, |slot| where its
 * abort word is. */
bool bhi_vk_merge_init(struct bhi_backend *backend, struct bhi_markers *markers,
                       struct bhi_error *error);
void bhi_vk_merge_fini(struct bhi_backend *backend);
bool bhi_vk_merge_begin(struct bhi_backend *backend, struct bhi_error *error);
bool bhi_vk_merge_add(struct bhi_backend *backend, const struct bhi_lane_record *record,
                      uint64_t before, uint32_t slot, struct bhi_error *error, bool *out_spoiled);
VkCommandBuffer bhi_vk_merge_end(struct bhi_backend *backend, uint64_t last,
                                 struct bhi_error *error);
/* Releases what the merged records used; after the device has finished. */
void bhi_vk_merge_clear(struct bhi_backend *backend);

#endif

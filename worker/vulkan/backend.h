/* Internals of the backend, for the files that implement worker/backend.h. The session's thread
 * uses them. */
#ifndef BHI_WORKER_VULKAN_BACKEND_H
#define BHI_WORKER_VULKAN_BACKEND_H

#include "worker/backend/answers.h"
#include "worker/backend/ops.h"
#include "worker/vulkan/abort.h"
#include "worker/vulkan/copy_jobs.h"
#include "worker/vulkan/hazards.h"
#include "worker/vulkan/recordings.h"
#include "worker/vulkan/timing.h"

/* The page that config.markers points to, or one of our own. */
struct bhi_marker_page {
    struct bhi_markers markers;
    _Alignas(256) uint32_t scratch[64]; /* written by the warm-up kernel */
};

struct bhi_recorder {
    struct bhi_vk_backend *backend;
    struct bhi_vk_recording *uses; /* where objects that the commands use are listed */
    VkCommandBuffer commands;
    struct bhi_error *error;
    bool check_only;                         /* look up and check, record nothing */
    bool learns;                             /* there is no record: a kernel is only compiled */
    uint64_t seq;                            /* seq of the record */
    uint32_t slot;                           /* slot of its abort word and of its times */
    const struct bhi_vk_kernel *bound_abort; /* the kernel for which the abort word is bound */
    VkPipeline bound_pipeline;
    const struct bhi_vk_group *bound_group;
};

struct bhi_vk_backend {
    struct bhi_backend base;
    struct bhi_vk_device device;
    struct bhi_vk_kernels kernels;
    struct bhi_map buffers;
    struct bhi_vk_groups groups;
    struct bhi_vk_recordings recordings;
    struct bhi_hazards hazards;
    struct bhi_vk_abort abort;
    struct bhi_vk_copies copies;
    struct bhi_vk_cache cache;
    struct bhi_vk_timing timing;
    VkCommandBuffer primer; /* see prime() in record.c */
    VkFence fence;
    uint64_t run;   /* number of the current or last bhi_backend_run() */
    uint64_t stamp; /* number of the newest recording */

    bool merge; /* config.markers was given, so records may be merged */
    struct bhi_marker_page *page;
    struct bhi_vk_buffer page_buffer;
    /* Several records in one command buffer. It is recorded for each run and not kept in the
     * map. */
    struct bhi_vk_recording merged;
    struct bhi_recorder merger;

    uint64_t last_wait_ns; /* how long the device took for the last submission */
    uint64_t queue_submits, copy_submits, joins, imported_bytes;
    size_t staged;     /* buffers that are read through a copy (stage.h) */
    uint64_t barriers; /* barriers between dependent commands so far, for tests */
};

static inline struct bhi_vk_backend *bhi_vk(struct bhi_backend *backend) {
    return (struct bhi_vk_backend *)backend;
}
static inline const struct bhi_vk_backend *bhi_vk_const(const struct bhi_backend *backend) {
    return (const struct bhi_vk_backend *)backend;
}

/* The functions of worker/backend.h that are not in ops.c. */
bool bhi_vk_run(struct bhi_backend *backend, const struct bhi_lane_record *const *records,
                size_t count, struct bhi_result *results, struct bhi_error *errors);
bool bhi_vk_warm(const struct bhi_backend *backend, const struct bhi_lane_record *record);
bool bhi_vk_learn(struct bhi_backend *backend, uint64_t id, struct bhi_error *error);
bool bhi_vk_copies(const struct bhi_backend *backend, const struct bhi_lane_record *record);
bool bhi_vk_copy_room(const struct bhi_backend *backend);
bool bhi_vk_copy_fits(const struct bhi_backend *backend, const struct bhi_lane_record *record);
void bhi_vk_copy_begin(struct bhi_backend *backend, const struct bhi_lane_record *record);
bool bhi_vk_copy_end(struct bhi_backend *backend, struct bhi_result *result,
                     struct bhi_error *error);

/* copies.c: the queue for copies (copy_jobs.h), and waiting. After bhi_vk_recordings_init(). */
bool bhi_vk_copies_init(struct bhi_vk_backend *backend, struct bhi_error *error);
/* Runs each part once, so that the driver has allocated what it needs. */
bool bhi_vk_copies_warm_up(struct bhi_vk_backend *backend, struct bhi_error *error);
void bhi_vk_copies_fini(struct bhi_vk_backend *backend);
/* Is the barrier to be submitted before the next commands of the compute queue? */
bool bhi_vk_copies_joins(const struct bhi_vk_backend *backend);
/* Call these around the time in which records are on the compute queue. */
void bhi_vk_copies_beside(struct bhi_vk_backend *backend,
                          const struct bhi_lane_record *const *records, const size_t *places,
                          uint32_t count);
void bhi_vk_copies_alone(struct bhi_vk_backend *backend);
/* Waits for |fence| of the compute queue. Copies, if there are any, begin and go on meanwhile. Polls for
 * |poll_ns| before it sleeps. */
VkResult bhi_vk_copies_wait_beside(struct bhi_vk_backend *backend, VkFence fence, uint64_t since_ns,
                                   uint64_t poll_ns);

/* record.c: returns a command buffer for a checked record, a kept one or a new one. NULL and
 * *error: the record is refused. */
struct bhi_vk_recording *bhi_vk_record(struct bhi_vk_backend *backend,
                                       const struct bhi_lane_record *record,
                                       struct bhi_error *error);
/* merge.c: the markers, and several records in one command buffer. Begin, add each record, then
 * end; end returns what to submit, or VK_NULL_HANDLE with *error. A refused record leaves no
 * commands behind; if it did, *out_spoiled is set and the command buffer cannot be used. |before|
 * is the seq of the record before, |last| that of the last one, |slot| the place of its abort
 * word. */
bool bhi_vk_merge_init(struct bhi_vk_backend *backend, struct bhi_markers *markers,
                       struct bhi_error *error);
void bhi_vk_merge_fini(struct bhi_vk_backend *backend);
bool bhi_vk_merge_begin(struct bhi_vk_backend *backend, struct bhi_error *error);
bool bhi_vk_merge_add(struct bhi_vk_backend *backend, const struct bhi_lane_record *record,
                      uint64_t before, uint32_t slot, struct bhi_error *error, bool *out_spoiled);
VkCommandBuffer bhi_vk_merge_end(struct bhi_vk_backend *backend, uint64_t last,
                                 struct bhi_error *error);
/* Releases what the merged records used. Call it after the device has finished. */
void bhi_vk_merge_clear(struct bhi_vk_backend *backend);

#endif

/* The parts of a backend together. */
#ifndef BHI_VK_BACKEND_H
#define BHI_VK_BACKEND_H

#include "vk_hazards.h"
#include "vk_recordings.h"

#define BHI_MAX_MERGED 64u /* records in one vkQueueSubmit */

/* The page behind config.markers, as the device sees it. What the device copies to |markers| lies
 * in |places|, filled in before each submission, so that the command buffers that copy it can be
 * recorded once. */
struct bhi_marker_page {
    struct bhi_markers markers;
    uint8_t pad[256 - sizeof(struct bhi_markers)];
    struct bhi_markers places[BHI_MAX_MERGED + 1];
    _Alignas(256) uint32_t scratch[64]; /* written by the warm-up kernel */
};

struct bhi_backend {
    struct bhi_vk_device device;
    struct bhi_vk_kernels kernels;
    struct bhi_map buffers;
    struct bhi_vk_groups groups;
    struct bhi_vk_recordings recordings;
    struct bhi_hazards hazards;
    VkFence fence;
    bool lost;
    uint64_t run;   /* number of the current or last bhi_backend_run() */
    uint64_t stamp; /* number of the newest recording */

    bool merge;                   /* config.markers was given */
    struct bhi_marker_page *page; /* that, or a page of our own */
    struct bhi_vk_buffer page_buffer;
    /* Copies places[i] to the markers, between record i - 1 and record i. */
    VkCommandBuffer marker_commands[BHI_MAX_MERGED + 1];

    uint64_t submissions, queue_submits, imported_bytes;
    uint32_t last_barriers; /* between the commands of the newest recording, for tests */
};

/* vk_record.c: a command buffer for a checked record, an old one or a new one. NULL and *fault:
 * the record is refused. */
struct bhi_vk_recording *bhi_vk_record(struct bhi_backend *backend,
                                       const struct bhi_lane_record *record,
                                       struct bhi_fault *fault);
/* vk_markers.c: the marker page (config.markers, or one of its own) and what copies it. */
bool bhi_vk_markers_init(struct bhi_backend *backend, struct bhi_markers *markers,
                         struct bhi_fault *fault);
void bhi_vk_markers_fini(struct bhi_backend *backend);
/* vk_backend.c: evicts pipelines beyond the limit that the current run does not use, with the
 * recordings and groups that use them. */
void bhi_vk_evict_pipelines(struct bhi_backend *backend);

#endif

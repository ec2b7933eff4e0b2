/* Ghost memory: memory of a device that is in use and belongs to no live process, or to a worker
 * whose host is gone. What is known of a device's memory becomes a check of bulkhead doctor. */
#ifndef BHI_CLI_GHOST_H
#define BHI_CLI_GHOST_H

#include <bulkhead/bulkhead.h>
#include <bulkhead/device.h>
#include <bulkhead/doctor.h>
#include <jansson.h>

#include "tool/nvml.h"
#include "tool/orphan.h"

/* The driver has some memory that it counts for no process: its own for each context and queue. So
 * much more than all processes together may be in use. */
#define BHI_GHOST_SLACK (256ull << 20)

/* A process that holds memory of the device. */
struct bhi_ghost_holder {
    int32_t pid;
    bool bytes_known;
    uint64_t bytes;
    char title[BHI_PROCESS_TITLE]; /* empty: it cannot be seen from here */
    bool own;                      /* of this command */
    bool orphan;                   /* a worker whose host is gone */
};

enum { BHI_GHOST_HOLDERS = BHI_NVML_PROCESSES };

struct bhi_ghost_view {
    const bh_device_info *device;
    /* False: |why| says why NVML does not tell anything of the device. */
    bool nvml_known;
    struct bhi_nvml_reading nvml;
    char why[BHI_NVML_WHY];
    /* Those that NVML lists; otherwise only orphans, which may hold memory of the device. A process
     * of this command has the device open meanwhile. */
    struct bhi_ghost_holder holders[BHI_GHOST_HOLDERS];
    size_t holder_count;
};

/* The check "device-memory" of one device. */
void bhi_ghost_judge(const struct bhi_ghost_view *view, bh_check *out_check);
/* The same with all numbers. NULL: out of memory. */
json_t *bhi_ghost_json(const struct bhi_ghost_view *view);

#endif

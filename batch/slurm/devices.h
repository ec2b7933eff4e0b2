/* Which device a task of Slurm may use (--device slurm). */
#ifndef BHI_BATCH_SLURM_DEVICES_H
#define BHI_BATCH_SLURM_DEVICES_H

#include "tool/device_list.h"
#include <bulkhead/device.h>

/* What Slurm, or the user, has put into the environment; each may be NULL. */
struct bhi_slurm_grant {
    const char
        *job_gpus; /* SLURM_JOB_GPUS: numbers of the machine, in the order of PCI addresses */
    const char
        *visible; /* CUDA_VISIBLE_DEVICES: numbers, or the beginning of UUIDs, GPU-8932f937 */
};

/* Finds the selector for a stream in |list|. Without a grant it is "", the default device. A task
 * that sees no more GPUs than it was given may use all of them ("any"); so it is where the site
 * confines tasks to their devices. Otherwise the first GPU of the grant is used, and *out_unused is
 * the number of the others. Numbers count the GPUs of the default driver by PCI address. Returns
 * false with a complaint if the grant names no GPU that is here. */
bool bhi_slurm_device(const struct bhi_slurm_grant *grant, const struct bhi_device_list *list,
                      char out_selector[sizeof((bh_device_info *)0)->selector], size_t *out_unused,
                      struct bhi_complaint *complaint);

#endif

/* A probe: a short task that looks, on a machine of the cluster, for what the batch needs there. It
 * runs before the array is submitted. It looks on one machine; others may differ. */
#ifndef BHI_BATCH_SLURM_PROBE_H
#define BHI_BATCH_SLURM_PROBE_H

#include "batch/slurm/client.h"

enum { BHI_PROBE_NONCE = 16 }; /* hexadecimal digits */

/* A path to look for, absolute. */
struct bhi_probe_path {
    const char *path;
    bool folder;  /* it must be a folder that can be written; otherwise the same file as here */
    bool is_seen; /* the answer */
};

struct bhi_probe {
    const char *state; /* the folder of the batch; absolute */
    const struct bhi_slurm_array *array;
    const struct bhi_slurm_client *client;
    uint64_t poll_ns;
    struct bhi_probe_path *paths;
    size_t count;
    void (*waits)(void *user,
                  const char *why); /* called when the probe is pending; with the reason */
    void *user;

    char nonce[BHI_PROBE_NONCE + 1]; /* which probe: only its own answer counts */
    char node[BHI_SLURM_NODE];       /* where it ran */
    char version[64]; /* what `bulkhead version` prints there; "": it cannot be started */
};

enum bhi_slurm_probe_result {
    BHI_PROBE_DONE,
    BHI_PROBE_NOT_SHARED, /* it ran, and what it wrote into the folder is not here */
    BHI_PROBE_REFUSED,    /* by the controller, or cancelled */
    BHI_PROBE_DOWN,       /* the controller was not reached */
    BHI_PROBE_INTERRUPTED,
    BHI_PROBE_FAILED /* no memory, or the state folder cannot be written */
};

/* Submits the probe, waits for it, and sets |is_seen|, |node| and |version|. The complaint is set
 * unless the result is DONE. */
enum bhi_slurm_probe_result bhi_probe_run(struct bhi_probe *probe, struct bhi_complaint *complaint);

/* Sets |is_seen| of the files that |text| lists: records "MODE SIZE SECONDS PATH", each with a zero
 * byte at its end; a file is seen if it is the same here. Returns how many are. */
size_t bhi_probe_take_files(struct bhi_probe *probe, const char *text, size_t size);

#endif

/* A probe: a short task that looks, on a machine of the cluster, for what the batch needs there. It
 * runs before the array is submitted. It looks on one machine; others may differ. */
#ifndef BHI_BATCH_SLURM_PROBE_H
#define BHI_BATCH_SLURM_PROBE_H

#include "batch/slurm/client.h"
#include "batch/slurm/probe_record.h"

/* How long a probe may run: it may have to look for very many files. */
#define BHI_PROBE_RUNS_NS UINT64_C(600000000000)

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
    uint64_t poll_ns, runs_ns;
    struct bhi_probe_path *paths;
    size_t count;
    void (*waits)(void *user,
                  const char *why);          /* called when the probe is pending; with the reason */
    void (*found)(void *user, uint64_t job); /* called for one of an earlier submitter */
    void *user;

    struct bhi_probe_record record;
    bool taken_up;             /* an earlier submitter has submitted it */
    bool may_come;             /* at the end: Slurm's queue may still have it */
    char node[BHI_SLURM_NODE]; /* where it ran */
    char version[64];          /* what `bulkhead version` prints there; "": it cannot be started */
};

enum bhi_slurm_probe_result {
    BHI_PROBE_DONE,
    BHI_PROBE_NOT_SHARED, /* it ran, and what it wrote into the folder is not here */
    BHI_PROBE_REFUSED,    /* by the controller, or cancelled */
    BHI_PROBE_DOWN,       /* the controller was not reached */
    BHI_PROBE_INTERRUPTED,
    BHI_PROBE_CANCELLED, /* by bulkhead batch --cancel */
    BHI_PROBE_FAILED     /* no memory, or the state folder cannot be written */
};

/* Submits the probe, waits for it, and sets |is_seen|, |node| and |version|. If a killed submitter
 * has left one with the same question, that one is waited for; with another question, it is
 * cancelled. The complaint is set unless the result is DONE. */
enum bhi_slurm_probe_result bhi_probe_run(struct bhi_probe *probe, struct bhi_complaint *complaint);

/* Cancels what a killed submitter has left, and forgets it. */
void bhi_probe_drop(const char *state);

/* Sets |is_seen| of the files that |text| lists: records "MODE SIZE SECONDS PATH", each with a zero
 * byte at its end; a file is seen if it is the same here. Returns how many are. */
size_t bhi_probe_take_files(struct bhi_probe *probe, const char *text, size_t size);

#endif

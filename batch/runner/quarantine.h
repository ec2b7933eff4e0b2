/* A quarantine that several batches share, the shards of one, say: a folder with one file for each
 * kernel that was quarantined with certain blame. The file's name is the hash of the kernel's
 * content in hexadecimal; it has an object that says why, for people. A job with such a kernel gets
 * one attempt and no retries (docs/decisions/0019-batches.md).
 *
 * The folder may be on a network file system, and its users on many machines: files are only made,
 * by link or rename, whole; there are no locks. */
#ifndef BHI_BATCH_RUNNER_QUARANTINE_H
#define BHI_BATCH_RUNNER_QUARANTINE_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>

#include "formats/complaint.h"

struct bhi_quarantine {
    int folder;  /* -1: closed */
    bool failed; /* an entry could not be made: */
    struct bhi_complaint why;
};

/* Opens the folder, or makes it (0700). It must belong to this user, and nobody else may write to
 * it. */
bool bhi_quarantine_open(const char *path, struct bhi_quarantine *out_quarantine,
                         struct bhi_complaint *complaint);
/* Is the verdict's kernel in the quarantine? Blocks. */
bool bhi_quarantine_has(const struct bhi_quarantine *quarantine, const bh_verdict *verdict);
/* Adds the kernel of the verdict, if its hash is known. Blocks. */
void bhi_quarantine_put(struct bhi_quarantine *quarantine, const bh_verdict *verdict,
                        const char *job);
void bhi_quarantine_close(struct bhi_quarantine *quarantine);

#endif

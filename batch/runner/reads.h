/* Which files an attempt has read, and the hash of what it got: --resume compares it with what the
 * files have then. A file that a job of the batch makes is left out: --verify compares those. */
#ifndef BHI_BATCH_RUNNER_READS_H
#define BHI_BATCH_RUNNER_READS_H

#include <sys/stat.h>

#include "batch/journal/used.h"
#include "batch/runner/state.h"
#include "request/source.h"

/* The most bytes of an input that are hashed. Of a larger one the size and the times are compared. */
#define BHI_READS_HASHED (UINT64_C(1) << 30)

/* The hashes of the inputs that were read last, for all jobs that read them. */
struct bhi_read_hashes;

/* Returns NULL if out of memory. */
struct bhi_read_hashes *bhi_read_hashes_make(void);
void bhi_read_hashes_free(struct bhi_read_hashes *hashes);

/* The mark of a file in the state |status|, without the hash. */
struct bhi_used_mark bhi_reads_mark(const struct stat *status);
/* Hashes the file at |path| into |mark| if it is, before and afterwards, in the state of |mark|. */
void bhi_reads_hash(const char *path, struct bhi_used_mark *mark);
/* Has the file at |path| the content of |mark|? The hash decides where the times do not. *out_error
 * is 0, or the errno with which it could not be found out. */
bool bhi_reads_is_same(const char *path, const struct bhi_used_mark *mark, int *out_error);
/* Adds a kernel with |code|, and what it includes. Returns false if out of memory. */
bool bhi_reads_add_code(struct bhi_used *used, const char *path, const void *code, size_t size,
                        const struct bhi_source *source);
/* Sets what the attempt has read. The inputs are hashed now, after the job: the files are in the page
 * cache, and no worker waits. Returns false if out of memory. */
bool bhi_reads_collect(const struct bhi_work *work, struct bhi_used *out_used);

#endif

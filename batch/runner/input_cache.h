/* Inputs that are only read: kept for the next job that reads them, as long as there is room and
 * the file is the same. */
#ifndef BHI_BATCH_RUNNER_INPUT_CACHE_H
#define BHI_BATCH_RUNNER_INPUT_CACHE_H

#include <stdint.h>
#include <sys/stat.h>

#include "batch/runner/state.h"

/* Which file it is, and which state of it; compared as bytes. */
struct bhi_input_identity {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified, changed;
    uint64_t place; /* on which streams' device; 0: in the host, for all */
};
/* What |path| is now, and where |work| would have it. False: it cannot be told. */
bool bhi_input_identify(const struct bhi_work *work, const char *path,
                        struct bhi_input_identity *out);

/* Is it kept? |tensor| may be NULL. With the lock. */
bool bhi_input_cache_has(const struct bhi_runner *runner, const char *path, const char *tensor,
                         const struct bhi_input_identity *identity);
/* Frees what was not used for the longest time, and nobody uses. False: there is nothing. With the
 * lock. */
bool bhi_input_cache_evict(struct bhi_runner *runner);
/* Keeps the buffer of input |index| for others, with the work as its first user; where there is no
 * memory it stays the work's. */
void bhi_input_cache_keep(struct bhi_work *work, uint32_t index,
                          const struct bhi_input_identity *identity);
/* Gives the work the buffer that is kept for input |index|. False: there is none. */
bool bhi_input_cache_use(struct bhi_work *work, uint32_t index,
                         const struct bhi_input_identity *identity);
/* |spoilt|: nobody else gets it any more. */
void bhi_input_entry_drop(struct bhi_runner *runner, struct bhi_input_entry *entry, bool spoilt);
/* Those that are only kept for later: descriptors, too, are needed by what runs now. */
void bhi_inputs_drop_unused(struct bhi_runner *runner);
void bhi_inputs_free(struct bhi_runner *runner);

#endif

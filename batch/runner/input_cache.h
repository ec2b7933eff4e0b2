/* Inputs that are only read: kept for later jobs that read them, as long as there is memory and the
 * file has not changed. */
#ifndef BHI_BATCH_RUNNER_INPUT_CACHE_H
#define BHI_BATCH_RUNNER_INPUT_CACHE_H

#include <stdint.h>
#include <sys/stat.h>

#include "batch/runner/state.h"

/* Identifies a file and its present state. Compared as bytes. */
struct bhi_input_identity {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified, changed;
    uint64_t place; /* the device of the streams that can use it; 0: host memory, for all */
};
/* Identifies |path| now, and the place where |work| would have it. Returns false if that fails. */
bool bhi_input_identify(const struct bhi_work *work, const char *path,
                        struct bhi_input_identity *out);

/* Is the input kept? |tensor| may be NULL. Call it with the lock. */
bool bhi_input_cache_has(const struct bhi_runner *runner, const char *path, const char *tensor,
                         const struct bhi_input_identity *identity);
/* Frees the unused entry that was used longest ago. Returns false if there is none. Call it with
 * the lock. */
bool bhi_input_cache_evict(struct bhi_runner *runner);
/* Keeps the buffer of input |index| for others, with the work as its first user. If there is no
 * memory for the entry, the work keeps the buffer. */
void bhi_input_cache_keep(struct bhi_work *work, uint32_t index,
                          const struct bhi_input_identity *identity);
/* Gives the work the kept buffer for input |index|. Returns false if there is none. */
bool bhi_input_cache_use(struct bhi_work *work, uint32_t index,
                         const struct bhi_input_identity *identity);
/* |spoilt|: no other work gets it any more. */
void bhi_input_entry_drop(struct bhi_runner *runner, struct bhi_input_entry *entry, bool spoilt);
/* Frees all entries without a user: their descriptors are needed, too. */
void bhi_inputs_drop_unused(struct bhi_runner *runner);
void bhi_inputs_free(struct bhi_runner *runner);

#endif

/* Reading a range of a file into a memfd, with several threads: through a buffer that stays in the
 * cache, not through a mapping, whose page faults cost more than the second copy. */
#ifndef BHI_WORKER_LOADER_READS_H
#define BHI_WORKER_LOADER_READS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bhi_reads;

/* Where a read failed. */
struct bhi_read_failure {
    uint64_t offset; /* in the file: the first byte that could not be had */
    int error;       /* errno; 0: the file ended */
    bool wrote;      /* it was not the read: what was read could not be written to the memfd */
};

/* pread, until |bytes| are there. */
bool bhi_read_at(int fd, void *out, uint64_t offset, uint64_t bytes,
                 struct bhi_read_failure *failure);

/* Starts the threads. NULL with errno. */
struct bhi_reads *bhi_reads_create(void);
void bhi_reads_destroy(struct bhi_reads *reads);
/* Reads |bytes| from |offset| on into the memfd |out|, from its beginning; |done| counts them as
 * they arrive. When it returns no thread touches |out| any more. Of several failures the one with
 * the lowest offset is told. */
bool bhi_reads_run(struct bhi_reads *reads, int fd, int out, uint64_t offset, uint64_t bytes,
                   _Atomic uint64_t *done, struct bhi_read_failure *failure);

#endif

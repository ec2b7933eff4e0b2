/* Reading a range of a file into memory, with several threads. */
#ifndef BHI_LOADER_READS_H
#define BHI_LOADER_READS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bhi_reads;

/* Where a read failed. */
struct bhi_read_failure {
    uint64_t offset; /* in the file: the first byte that could not be had */
    int error;       /* errno; 0: the file ended */
};

/* pread, until |bytes| are there. */
bool bhi_read_at(int fd, void *out, uint64_t offset, uint64_t bytes,
                 struct bhi_read_failure *failure);

/* Starts the threads. NULL with errno. */
struct bhi_reads *bhi_reads_create(void);
void bhi_reads_destroy(struct bhi_reads *reads);
/* Reads |bytes| from |offset| on to |out|; |done| counts them as they arrive. When it returns no
 * thread touches |out| any more. Of several failures the one with the lowest offset is told. */
bool bhi_reads_run(struct bhi_reads *reads, int fd, void *out, uint64_t offset, uint64_t bytes,
                   _Atomic uint64_t *done, struct bhi_read_failure *failure);

#endif

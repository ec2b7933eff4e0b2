/* Reads a range of a file into a memfd, with several threads. It uses a small buffer that stays in
 * the cache and not a mapping: the page faults of a mapping cost more than the second copy. */
#ifndef BHI_WORKER_LOADER_READS_H
#define BHI_WORKER_LOADER_READS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bhi_reads;

/* Where a read failed. */
struct bhi_read_failure {
    uint64_t offset; /* in the file: of the first byte that was not read */
    int error;       /* errno; 0: the file ended */
    bool wrote;      /* the read worked; writing to the memfd failed */
};

/* Calls pread until |bytes| are read. */
bool bhi_read_at(int fd, void *out, uint64_t offset, uint64_t bytes,
                 struct bhi_read_failure *failure);

/* The same with pwrite. *out_error is its errno. */
bool bhi_write_at(int fd, const uint8_t *from, uint64_t offset, uint64_t bytes, int *out_error);

/* Starts the threads. Returns NULL with errno set on failure. */
struct bhi_reads *bhi_reads_create(void);
void bhi_reads_destroy(struct bhi_reads *reads);
/* Reads |bytes| from |offset| on to the beginning of the memfd |out|. |done| counts the bytes as
 * they arrive. After the return no thread touches |out|. If several reads fail, |failure| is the
 * one with the lowest offset. */
bool bhi_reads_run(struct bhi_reads *reads, int fd, int out, uint64_t offset, uint64_t bytes,
                   _Atomic uint64_t *done, struct bhi_read_failure *failure);

#endif

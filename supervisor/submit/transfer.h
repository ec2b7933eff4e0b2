/* Transfers between the host and a buffer in device memory: submissions to the buffer's stream copy
 * them in pieces, through host memory that the stream's worker is given. That memory comes from the
 * pool, which keeps it for the next transfer (docs/decisions/0071-transfers.md). */
#ifndef BHI_SUPERVISOR_SUBMIT_TRANSFER_H
#define BHI_SUPERVISOR_SUBMIT_TRANSFER_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>

/* Most bytes of a piece where the host waits for none: files, replicas. */
#define BHI_PIECE_BYTES (16ull << 20)

struct bhi_transfer {
    const char *call;         /* for the detail */
    struct bh_buffer *buffer; /* what is written follows it where it moves */
    uint64_t offset;
    uint64_t size;  /* not 0 */
    uint8_t *bytes; /* of the host */
    bool writes;    /* into the buffer; all of it, if |size| is all, and CLEAN then */
};

/* Submits the copies, and waits for them until |deadline_ns|; then cancels those in progress and
 * returns BH_TIMEOUT. Otherwise returns BH_OK, or the status of the first copy that fails. */
bh_status bhi_transfer(const struct bhi_transfer *transfer, uint64_t deadline_ns,
                       bh_detail *detail);

#endif

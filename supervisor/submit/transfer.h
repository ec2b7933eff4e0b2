/* Transfers between the host and a buffer in device memory: submissions to the buffer's stream copy
 * them in pieces, through host memory that the stream's worker is given. That memory comes from the
 * pool, which keeps it for the next transfer (docs/decisions/0061-copies.md). */
#ifndef BHI_SUPERVISOR_SUBMIT_TRANSFER_H
#define BHI_SUPERVISOR_SUBMIT_TRANSFER_H

#ifndef BHI_PIECE_BYTES /* tests have small ones */
/* Most bytes of a piece where the host waits for none: files, replicas. */
#define BHI_PIECE_BYTES (16ull << 20)
/* And where it waits. Measured on an H200. With larger pieces an upload waits too long for the worker
 * to copy the last one (worker/vulkan/stage.h). */
#define BHI_HOST_PIECE_BYTES (2ull << 20)
#endif

#endif

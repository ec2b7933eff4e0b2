/* A file into device memory: a loader reads a piece into host memory while the worker of the
 * buffer's stream copies the one before it. */
#ifndef BHI_SUPERVISOR_LOAD_LOAD_H
#define BHI_SUPERVISOR_LOAD_LOAD_H

#include <bulkhead/bulkhead.h>

struct bhi_cmd_load;
struct bhi_file;
struct bhi_load;

/* Submits the whole load; |command| says what to load, at least one byte. |load| gets the event of
 * its end, referenced, and the pieces. On failure |load| gets nothing, and pieces that were
 * submitted may still fill |buffer|, so the caller must not hand it out. */
bh_status bhi_load_pieces(struct bhi_file *file, struct bh_buffer *buffer,
                          const struct bhi_cmd_load *command, uint64_t deadline_ns,
                          const char *call, struct bhi_load *load, bh_detail *detail);

#endif

/* Moves: a buffer in device memory that a stream on another device writes goes to that device (D4).
 * From then on its content is that of another buffer, its *place*, which nobody else names: a
 * replica (replica.h) that may be written. Submissions that were queued before keep the memory that
 * they were queued for. That is given back when the last of them has ended.
 *
 * Who names the buffer means its place. It is looked up under the lock that the use is queued
 * under. */
#ifndef BHI_SUPERVISOR_BUFFER_MOVE_H
#define BHI_SUPERVISOR_BUFFER_MOVE_H

#include "supervisor/buffer/buffer.h"

/* Returns bhi_buffer_place(), with a reference. No lock. */
struct bh_buffer *bhi_buffer_take_place(struct bh_buffer *buffer);
/* |place| has what |buffer| contains, or will when the submissions that are queued for it have
 * ended: the content is there from now on. The caller has references to both. The memory that the
 * content leaves is given back with the last reference but the owner's. Lock held. */
void bhi_buffer_move(struct bh_buffer *buffer, struct bh_buffer *place);

#endif

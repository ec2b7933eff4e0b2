/* Placement: the device of a stream whose options say "any". It is the least loaded device of the
 * default driver, chosen when the stream gets a worker, and again once it has no worker and no
 * memory on the device. All functions: lock held. */
#ifndef BHI_SUPERVISOR_STREAM_PLACEMENT_H
#define BHI_SUPERVISOR_STREAM_PLACEMENT_H

#include "supervisor/context/context.h"

struct bh_stream;
struct bhi_worker;

/* A worker has reported the devices of its driver, and runs on one of them. */
void bhi_placement_learn(const struct bhi_worker *worker);
/* Gives |stream| a device if it needs one. False: the devices are not known yet, and a worker of
 * another stream is about to tell. */
bool bhi_placement_choose(struct bh_stream *stream);
/* A worker of |stream| could not start. True: the stream may start on another device, and this one
 * is left out for a while. |hopeless|: no other worker could start here, so there is no second try.
 */
bool bhi_placement_failed(struct bh_stream *stream, const bh_detail *why, bool hopeless);
/* |stream| has lost its worker. Its next one may run on another device, unless the stream has
 * memory on this one. */
void bhi_placement_leave(struct bh_stream *stream);
void bhi_placement_fini(bh_context *context);

#endif

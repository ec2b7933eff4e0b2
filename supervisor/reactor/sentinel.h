/* Sentinels: what a worker has running on a GPU when it dies goes on running there, and everybody
 * else on that GPU waits, seconds, until the driver has had enough. So workers hand out the memory
 * of their abort words as they start, and a process of its own, which runs nothing of theirs, sets
 * the words of those that die (worker/sentinel.h, docs/deadlines.md). There is one for each device
 * with workers that have done so; it starts with the first of them. Reactor thread. */
#ifndef BHI_SUPERVISOR_REACTOR_SENTINEL_H
#define BHI_SUPERVISOR_REACTOR_SENTINEL_H

#include "supervisor/worker/worker_proc.h"

/* |worker| says that its words are in its side channel. NULL; else what it did wrong. No lock. */
const char *bhi_sentinel_take_words(struct bhi_worker *worker, const struct bhi_msg_words *words);
/* A sentinel answers. NULL; else what is wrong with that. No lock. */
const char *bhi_sentinel_imported(struct bhi_worker *sentinel,
                                  const struct bhi_msg_imported *answer);
const char *bhi_sentinel_words_set(struct bhi_worker *sentinel,
                                   const struct bhi_msg_words_set *answer);
/* The worker's side channel has hung up: it is dying, however long its device keeps it. No lock. */
void bhi_sentinel_hung_up(struct bhi_worker *worker);
/* |worker|, of whichever kind, is confirmed dead, and is not buried yet. Lock held. */
void bhi_sentinel_worker_gone(struct bhi_worker *worker);
/* Starts sentinels and tells them what is due. Returns when to look again. No lock. */
uint64_t bhi_sentinel_turn(struct bh_context *context);
/* Are there words that a sentinel is about to set? Lock held. */
bool bhi_sentinel_is_busy(struct bh_context *context);

#endif

/* Sentinels. When a worker dies, its kernel goes on running on a GPU, and all other processes on
 * that GPU wait for seconds, until the driver ends it. So workers pass on the memory of their abort
 * words when they start, and the sentinel, a process that runs no kernels, sets the words of
 * workers that die (worker/sentinel.h, docs/trust.md). Each device with such workers has one
 * sentinel, which starts with the first of them. Reactor thread. */
#ifndef BHI_SUPERVISOR_REACTOR_SENTINEL_H
#define BHI_SUPERVISOR_REACTOR_SENTINEL_H

#include "supervisor/worker/worker_proc.h"

/* |worker| reports that its words are in its side channel. Returns NULL, or what is wrong. No lock.
 */
const char *bhi_sentinel_take_words(struct bhi_worker *worker, const struct bhi_msg_words *words);
/* Handle an answer of a sentinel. Return NULL, or what is wrong. No lock. */
const char *bhi_sentinel_imported(struct bhi_worker *sentinel,
                                  const struct bhi_msg_imported *answer);
const char *bhi_sentinel_words_set(struct bhi_worker *sentinel,
                                   const struct bhi_msg_words_set *answer);
/* The worker's side channel has hung up: it is dying, however long its device keeps it. No lock. */
void bhi_sentinel_hung_up(struct bhi_worker *worker);
/* |worker|, of whichever kind, is confirmed dead, and is not buried yet. Lock held. */
void bhi_sentinel_worker_gone(struct bhi_worker *worker);
/* Starts sentinels and sends them the requests that are due. Returns when to call it again. No
 * lock. */
uint64_t bhi_sentinel_turn(struct bh_context *context);
/* Returns true if there are words that a sentinel is about to set. Lock held. */
bool bhi_sentinel_is_busy(struct bh_context *context);

#endif

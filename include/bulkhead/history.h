/* A history of your own program, for `bulkhead chaos --check` (docs/chaos.md, "A history of
 * your own").
 *
 * The program says which request an event serves and what its answer should be, when it has
 * looked at the event's verdict, which data it has used, and what it has answered. The library
 * adds the verdict itself, so the program cannot say that it was another. Each call is a line
 * of a journal, written at once: a program that is killed leaves a journal that says that it
 * is torn.
 *
 * Threads: any; each line is whole. Nothing blocks but for the file, and nothing waits for an
 * event. A worker's death changes nothing here: it is what the verdicts tell. NULL for a
 * history is allowed in each call but bh_history_create, and does nothing, so the calls may
 * stay in a program that keeps none. */
#ifndef BULKHEAD_HISTORY_H
#define BULKHEAD_HISTORY_H

#include <bulkhead/detail.h>
#include <bulkhead/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A journal that is being written. It belongs to no context. */
typedef struct bh_history bh_history;

/* Begins a journal in the file |path|, whose content it replaces. |patience_ns|: a request
 * that is answered later than that after its first attempt is late; BH_FOREVER: none is. The
 * caller owns the history, and ends it with bh_history_finish. It holds a descriptor. Returns
 * BH_OK, BH_INVALID_ARGUMENT (NULL, or a patience of 0), BH_NO_MEMORY, or BH_SYSTEM (the file
 * cannot be written: sys_errno). */
BH_API BH_MUST_USE bh_status bh_history_create(const char *path, uint64_t patience_ns,
                                               bh_history **out_history, bh_detail *detail);
/* |event| was submitted for |request|, a number of the caller's from 1 on. Call it before
 * anything else is said of |event|. |size| bytes at |expected| are what its result must be;
 * NULL: it has none that is used, such as a compile. |once|: what it writes may not be written
 * twice, so another attempt is an error unless this one has not run (bh_verdict.executed).
 * Events of one context only: they are known by bh_event_id. Takes no reference. */
BH_API void bh_history_attempted(bh_history *history, uint64_t request, bh_event *event, bool once,
                                 const void *expected, size_t size);
/* The program has looked at the verdict of |event|, which is written with it (E1). Once for
 * each event. */
BH_API void bh_history_ended(bh_history *history, bh_event *event);
/* The program uses |size| bytes at |data| as the result of |event|. Only a hash is kept. */
BH_API void bh_history_used(bh_history *history, bh_event *event, const void *data, size_t size);
/* |request| was answered: |good|: with its result; otherwise with a failure. Once for each
 * request. */
BH_API void bh_history_answered(bh_history *history, uint64_t request, bool good);
/* The program has nothing in flight. Counts the descriptors of the process: if the last counts
 * are higher than the first ones, it leaks (buffers, events, contexts). Six counts or more are
 * compared. */
BH_API void bh_history_rested(bh_history *history);
/* Says that the journal is whole, closes it and frees |history|, whatever it returns: BH_OK,
 * BH_INVALID_ARGUMENT (NULL), or BH_SYSTEM: a line could not be written (sys_errno: of the
 * first), and the journal is torn. */
BH_API BH_MUST_USE bh_status bh_history_finish(bh_history *history, bh_detail *detail);

#ifdef __cplusplus
}
#endif

#endif

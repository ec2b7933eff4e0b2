/* When a stream whose worker died gets a new one: a budget and a backoff, and how both recover.
 *
 * The budget is kept as time. It grows with the clock up to the window, and each unproductive death
 * costs window / budget. So a stream may lose |budget| workers at once, or one in each window /
 * budget for ever. A death is productive if the worker had completed a submission, or if a
 * submission is to blame. The clock refills nothing between two failed starts in a row, and the
 * second costs as long as it took, if that is more, up to a quarter of the window. So failed starts
 * spend the budget however slowly they fail. The backoff doubles with each unproductive death from the second on. It
 * is reset once a worker has lived for window / budget, or has completed a submission.
 *
 * What others end costs nothing of that: it says nothing about the stream. But no event may wait for
 * ever (E9): so eight times the budget is the limit of such deaths in a row, without a result between
 * them. A worker that was ready, and for which nothing waited, does not count, and ends the row.
 */
#ifndef BHI_CORE_RESTART_H
#define BHI_CORE_RESTART_H

#include <stdbool.h>
#include <stdint.h>

struct bhi_restart {
    uint32_t budget;
    uint64_t window_ns;
    uint64_t credit_ns, credit_at_ns;
    uint32_t losses;       /* unproductive deaths in a row, for the backoff */
    uint64_t taken;        /* unproductive deaths by others in a row */
    uint64_t served_at_ns; /* when the bound worker became ready; 0: it is not ready, or gone */
    bool starting_fails;   /* the last charge was for a failed start; no worker was ready since */
    bool productive;       /* it has completed something */
    uint64_t not_before_ns;
};

void bhi_restart_init(struct bhi_restart *restart, uint32_t budget, uint64_t window_ns,
                      uint64_t now_ns);
/* Restores the full budget: the host has reset the stream, or the window has passed. */
void bhi_restart_refill(struct bhi_restart *restart, uint64_t now_ns);
void bhi_restart_served(struct bhi_restart *restart, uint64_t now_ns);
/* The worker died. |blamed|: it costs nothing, because a submission is to blame, the stream
 * goes to another device, or the worker was retired. Sets not_before_ns. Returns true if the budget is spent. */
bool bhi_restart_lost(struct bhi_restart *restart, bool blamed, uint64_t now_ns);
/* Others ended the worker or its zygote, and no submission pays for it. |waits|: one waits for the next
 * worker. Sets not_before_ns. Returns true if that was one too many in a row. */
bool bhi_restart_taken(struct bhi_restart *restart, bool waits, uint64_t now_ns);
/* The worker's end blocked its device for |took_ns|. That costs a quarter of the budget, and a
 * pause of the same length. Returns true if the budget is spent. */
bool bhi_restart_late(struct bhi_restart *restart, uint64_t took_ns, uint64_t now_ns);

#endif

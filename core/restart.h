/* When a stream whose worker died gets another one: a budget, a backoff, and how both heal.
 *
 * What is left of the budget is kept as time: it refills with the clock up to the window, and an
 * unproductive death costs window / budget. So a stream may lose |budget| workers at once, or one
 * each window / budget for ever. A death is productive where the worker had completed something, or
 * has a submission to blame. The backoff doubles with each unproductive death from the second on,
 * and is forgotten once a worker has lived for window / budget, or has completed something.
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
    uint64_t served_at_ns; /* the bound worker became ready; 0: none has, or it is gone */
    bool productive;       /* it has completed something */
    uint64_t not_before_ns;
};

void bhi_restart_init(struct bhi_restart *restart, uint32_t budget, uint64_t window_ns,
                      uint64_t now_ns);
/* As new: the host has reset the stream, or the window has passed. */
void bhi_restart_refill(struct bhi_restart *restart, uint64_t now_ns);
void bhi_restart_served(struct bhi_restart *restart, uint64_t now_ns);
/* The worker died. |blamed|: with a submission to blame, or of its zygote: that is free. Sets
 * not_before_ns. True: the budget is spent. */
bool bhi_restart_lost(struct bhi_restart *restart, bool blamed, uint64_t now_ns);
/* The worker's end kept its device from everybody for |took_ns|, which costs a quarter
 * of the budget, and as long a pause. True: the budget is spent. */
bool bhi_restart_late(struct bhi_restart *restart, uint64_t took_ns, uint64_t now_ns);

#endif

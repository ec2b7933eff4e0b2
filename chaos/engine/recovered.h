/* Does each stream work again, by the same rule as in the checker (chaos/check/recovery.c)? It must
 * have a READY result of an operation that was submitted after the newest fault took effect, on a
 * worker that none of the last faults has doomed. If the run ended earlier, the checker would say
 * that it gave a stream too little time. */
#ifndef BHI_CHAOS_ENGINE_RECOVERED_H
#define BHI_CHAOS_ENGINE_RECOVERED_H

#include "chaos/history/history.h"

enum { BHI_RECOVERED_HURT = 64 }; /* more than one fault can hit */

struct bhi_recovered {
    uint64_t struck;                   /* operations submitted before the newest fault */
    uint64_t ready[BHI_CHAOS_STREAMS]; /* the newest READY operation */
    int32_t hurt[BHI_RECOVERED_HURT];  /* doomed workers; the oldest are forgotten */
    uint32_t hurt_at;
};

/* Call it for a fault of |kind| on |pids| after |submitted| operations. A bait takes effect
 * when it ends. */
void bhi_recovered_struck(struct bhi_recovered *recovered, enum bhi_fault_kind kind,
                          const int32_t *pids, uint32_t count, uint64_t submitted);
void bhi_recovered_ready(struct bhi_recovered *recovered, uint32_t stream, uint64_t op,
                         int32_t pid);
bool bhi_recovered_all(const struct bhi_recovered *recovered, uint32_t streams);
/* Are workers that it hits doomed? They may still finish something. */
bool bhi_fault_ends_workers(enum bhi_fault_kind kind);

#endif

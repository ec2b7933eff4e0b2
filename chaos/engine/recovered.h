/* Whether each stream works again, as the checker is going to ask it (chaos/check/recovery.c):
 * whether it has had a READY result of something that was submitted after the newest fault had
 * struck, on a worker that none of the last ones was as good as the death of. A run that ends
 * sooner would be said not to have given it the time. */
#ifndef BHI_CHAOS_ENGINE_RECOVERED_H
#define BHI_CHAOS_ENGINE_RECOVERED_H

#include "chaos/history/history.h"

enum { BHI_RECOVERED_HURT = 64 }; /* more than one fault hits */

struct bhi_recovered {
    uint64_t struck;                   /* submitted before the newest fault */
    uint64_t ready[BHI_CHAOS_STREAMS]; /* the newest operation that was READY */
    int32_t hurt[BHI_RECOVERED_HURT];  /* workers; the oldest are forgotten */
    uint32_t hurt_at;
};

/* A fault, when |submitted| operations were: of |kind| on |pids|. A hang and an oom strike when
 * they end. */
void bhi_recovered_struck(struct bhi_recovered *recovered, enum bhi_fault_kind kind,
                          const int32_t *pids, uint32_t count, uint64_t submitted);
void bhi_recovered_ready(struct bhi_recovered *recovered, uint32_t stream, uint64_t op,
                         int32_t pid);
bool bhi_recovered_all(const struct bhi_recovered *recovered, uint32_t streams);
/* What it hits is as good as dead, and may still finish something. */
bool bhi_fault_ends_workers(enum bhi_fault_kind kind);

#endif

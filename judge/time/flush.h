/* Empties the device's caches before a run, by writing more than they hold. */
#ifndef BHI_JUDGE_TIME_FLUSH_H
#define BHI_JUDGE_TIME_FLUSH_H

#include "judge/check/court.h"
#include "judge/check/outcome.h"

/* The worker that writes is no contender's: one that was taken over could leave it out. */
struct bhi_flush {
    bh_stream *stream; /* owned */
    bh_buffer *buffer; /* owned */
    uint64_t size;     /* of |buffer| */
    uint32_t value;    /* that was written last */
};

bool bhi_flush_open(const struct bhi_court *court, struct bhi_flush *out,
                    struct bhi_judge_outcome *outcome);
/* Writes the buffer, and waits until it is written. */
bool bhi_flush_run(struct bhi_flush *flush, struct bhi_judge_outcome *outcome);
/* Takes {0}, too. */
void bhi_flush_close(struct bhi_flush *flush);

#endif

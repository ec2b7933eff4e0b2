/* What the checker makes of a tale. */
#ifndef BULKHEAD_TEST_CHAOS_JUDGE_H
#define BULKHEAD_TEST_CHAOS_JUDGE_H

#include "tale.h"

/* Of the tale that was judged last. */
extern struct bhi_chaos_result result;
const char *all_findings(void);

/* Each gives the tale a sound end, so that only what the test says is wrong, and ends it. */
void judge(struct tale *tale);
void valid(struct tale *tale);
/* Of this kind, and of no other; about the operation |op| (0: whichever), with these words. */
void found(struct tale *tale, enum bhi_anomaly anomaly, uint64_t op, const char *words);

/* A worker of stream 0 is killed while |killed| runs, of which |dependent| needs the output; the
 * stream goes on with worker 1010. */
struct scene {
    struct tale tale;
    uint64_t killed, dependent, innocent;
};
void killed(struct scene *s, enum bhi_fault_kind kind, bh_status status, int signal);
void killed_by_signal(struct scene *s);
/* And then the operation that is returned is with worker 1011 for 5 s: it is 5,040 ms. */
uint64_t compiled_for_5_s(struct scene *s);
/* Operation 3 ends with its deadline of 2 s, |took_ms| after 12 ms; its worker 1000 was stopped
 * from 15 ms on. */
void stopped(struct tale *tale, enum bhi_fault_kind kind, uint64_t lasts_ms, uint64_t took_ms);
/* The table is full from 10 ms to |healed_ms|, which is now. */
void full(struct tale *tale, uint64_t healed_ms);

#endif

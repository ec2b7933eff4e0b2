/* Commands that run to their end. */
#ifndef BHI_JUDGE_CHECK_SUBMIT_H
#define BHI_JUDGE_CHECK_SUBMIT_H

#include <bulkhead/bulkhead.h>

#include "judge/check/outcome.h"

/* How long a submission took. */
struct bhi_clocked {
    uint64_t host_ns;   /* by the judge's clock, from submission to completion */
    uint64_t device_ns; /* what the worker claims; 0: not known */
    uint64_t work_ns;   /* what the kernel counted as the worker's processor time since the end of
                           its last submission; only of a worker on one processor; 0: not known */
};

/* Submits the commands and waits for their end; a signal cancels them. |out|: also measures. */
bool bhi_court_submit(bh_stream *stream, const bh_command *commands, uint32_t count,
                      struct bhi_clocked *out, struct bhi_judge_outcome *outcome);
/* The same, with a deadline that is not the stream's; 0: the stream's. */
bool bhi_court_submit_within(bh_stream *stream, const bh_command *commands, uint32_t count,
                             uint64_t deadline_ns, struct bhi_clocked *out,
                             struct bhi_judge_outcome *outcome);

#endif

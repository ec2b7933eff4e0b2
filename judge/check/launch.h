/* Runs a kernel on the inputs of a trial. */
#ifndef BHI_JUDGE_CHECK_LAUNCH_H
#define BHI_JUDGE_CHECK_LAUNCH_H

#include <sys/types.h>

#include "judge/check/setup.h"

/* Makes a stream with a worker that runs one kernel and nothing else. */
bool bhi_court_stream(const struct bhi_court *court, bh_stream **out_stream,
                      struct bhi_judge_outcome *outcome);
/* One for runs that are timed, on the court's processor. */
bool bhi_court_timed_stream(const struct bhi_court *court, bh_stream **out_stream,
                            struct bhi_judge_outcome *outcome);

/* How long a submission took. */
struct bhi_clocked {
    uint64_t host_ns;   /* by the judge's clock, from submission to completion */
    uint64_t device_ns; /* what the worker claims; 0: not known */
    uint64_t work_ns;   /* what the kernel counted as the worker's processor time since the end of
                           its last submission; only of a worker on one processor; 0: not known */
};
/* The processor time that all threads of a worker have had. */
struct bhi_worked {
    pid_t pid; /* 0: it is not known */
    uint64_t ns;
};

/* Submits the commands and waits for their end; a signal cancels them. |out|: also measures. */
bool bhi_court_submit(bh_stream *stream, const bh_command *commands, uint32_t count,
                      struct bhi_clocked *out, struct bhi_judge_outcome *outcome);
/* The same, with another deadline than the task's. */
bool bhi_court_submit_within(bh_stream *stream, const bh_command *commands, uint32_t count,
                             uint64_t deadline_ns, struct bhi_clocked *out,
                             struct bhi_judge_outcome *outcome);
/* Runs it once. After a failure *out holds nothing. */
bool bhi_court_launch(struct bhi_court *court, bh_stream *stream, const struct bhi_program *program,
                      const struct bhi_trial *trial, struct bhi_launched *out,
                      struct bhi_judge_outcome *outcome);

/* Finds the selector of the stream's device. Waits until the stream has a worker. */
bool bhi_stream_find_device(bh_stream *stream, char out[48], struct bhi_judge_outcome *outcome);
/* Does the stream's driver run kernels on the processor? Waits likewise. */
bool bhi_stream_is_on_processor(bh_stream *stream, bool *out, struct bhi_judge_outcome *outcome);

#endif

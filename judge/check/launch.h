/* Runs a kernel on the inputs of a trial. */
#ifndef BHI_JUDGE_CHECK_LAUNCH_H
#define BHI_JUDGE_CHECK_LAUNCH_H

#include <sys/types.h>

#include "judge/check/setup.h"
#include "judge/check/submit.h"

/* Finds out what the court's device is, when its selector is known, and starts its keeper. bhi_court_close releases
 * that. */
bool bhi_court_open(struct bhi_court *court, struct bhi_judge_outcome *outcome);
void bhi_court_close(struct bhi_court *court);

/* Makes a stream with a worker that runs one kernel and nothing else. */
bool bhi_court_stream(const struct bhi_court *court, bh_stream **out_stream,
                      struct bhi_judge_outcome *outcome);
/* One for the checks of a candidate, in a court that shares: its worker may have run others, all of them CORRECT. */
bool bhi_court_borrow(struct bhi_court *court, bh_stream **out_stream,
                      struct bhi_judge_outcome *outcome);
/* Takes back |stream|, whose candidate was CORRECT, for another one. */
void bhi_court_return(struct bhi_court *court, bh_stream *stream);
/* Ends the workers that candidates share, while no candidate has one. */
void bhi_court_unshare(struct bhi_court *court);
/* One for the reference: an expression runs on the default device, which is Vulkan's. */
bool bhi_court_reference_stream(const struct bhi_court *court, bh_stream **out_stream,
                                struct bhi_judge_outcome *outcome);
/* One for runs that are timed, on the court's processor. */
bool bhi_court_timed_stream(const struct bhi_court *court, bh_stream **out_stream,
                            struct bhi_judge_outcome *outcome);

/* The processor time that all threads of a worker have had. */
struct bhi_worked {
    pid_t pid; /* 0: it is not known */
    uint64_t ns;
};

/* Runs it once. After a failure *out holds nothing. */
bool bhi_court_launch(struct bhi_court *court, bh_stream *stream, const struct bhi_program *program,
                      const struct bhi_trial *trial, struct bhi_launched *out,
                      struct bhi_judge_outcome *outcome);

/* Finds the selector of the stream's device. Waits until the stream has a worker. */
bool bhi_stream_find_device(bh_stream *stream, char out[48], struct bhi_judge_outcome *outcome);
/* Does the stream's driver run kernels on the processor? Waits likewise. */
bool bhi_stream_is_on_processor(bh_stream *stream, bool *out, struct bhi_judge_outcome *outcome);

#endif

/* A contender: a kernel or an expression that is timed, with a worker of its own. */
#ifndef BHI_JUDGE_TIME_CONTENDER_H
#define BHI_JUDGE_TIME_CONTENDER_H

#include "judge/check/expression.h"
#include "judge/check/launch.h"

struct bhi_contender {
    bh_stream *stream;                    /* owned; NULL: it rests */
    struct bhi_judged_kernel kernel;      /* owned; of an expression: none */
    const struct bhi_task_groups *groups; /* of the kernel */
    struct bhi_reference_template cache;  /* of the expression; owned */
    bool is_expression;
    struct bhi_worked worked; /* its worker's, when its last run was complete */
};

/* |trusted|: without the guard. After a failure nothing is owned. */
bool bhi_contender_open(struct bhi_court *court, const struct bhi_kernel_file *file, bool trusted,
                        const struct bhi_task_groups *groups, struct bhi_contender *out,
                        struct bhi_judge_outcome *outcome);
/* The task's reference: a kernel or an expression. */
bool bhi_contender_open_reference(struct bhi_court *court, struct bhi_contender *out,
                                  struct bhi_judge_outcome *outcome);
/* Ends its worker, so that nothing of it runs. Only bhi_contender_renew and bhi_contender_close may
 * follow. */
void bhi_contender_rest(struct bhi_contender *contender);
/* Gives it a fresh worker; ends the one that it has. After a failure it still has that. */
bool bhi_contender_renew(const struct bhi_court *court, struct bhi_contender *contender,
                         struct bhi_judge_outcome *outcome);
/* Takes {0}, too. */
void bhi_contender_close(struct bhi_contender *contender);

/* One run of it: one of the two is there. {0} is none. */
struct bhi_lap {
    struct bhi_setup *setup;
    struct bhi_evaluation *evaluation;
};

/* Makes buffers and command. The memory is near |stream|, which need not be the contender's;
 * that of inputs is |inputs|. */
bool bhi_lap_make(struct bhi_court *court, struct bhi_contender *contender, bh_stream *stream,
                  const struct bhi_trial *trial, const struct bhi_inputs *inputs,
                  struct bhi_lap *out, struct bhi_judge_outcome *outcome);
const bh_command *bhi_lap_command(const struct bhi_lap *lap);
/* Reads |size| bytes from |offset| of array |index|. */
bool bhi_lap_peek(const struct bhi_lap *lap, uint32_t index, uint64_t offset, void *out,
                  uint64_t size, struct bhi_judge_outcome *outcome);
/* Takes the outputs. After a failure *out holds nothing. */
bool bhi_lap_take(const struct bhi_lap *lap, struct bhi_launched *out,
                  struct bhi_judge_outcome *outcome);
/* Takes {0}, too, and leaves it. */
void bhi_lap_free(struct bhi_lap *lap);

#endif

/* A contender: a kernel or an expression that is timed, with a worker of its own. */
#ifndef BHI_JUDGE_TIME_CONTENDER_H
#define BHI_JUDGE_TIME_CONTENDER_H

#include "judge/check/launch.h"
#include "judge/check/material.h"
#include "judge/check/outcome.h"
#include "judge/check/trial.h"

struct bhi_contender {
    bh_stream *stream;                    /* owned; NULL: it rests */
    struct bhi_judged_kernel kernel;      /* owned; of an expression: none */
    const struct bhi_task_groups *groups; /* of the kernel */
    struct bhi_reference_template cache;  /* of the expression; owned */
    struct bhi_tray tray;                 /* of its runs; owned */
    bool is_expression;
    struct bhi_worked worked; /* its worker's, when its last run was complete */
};

/* |trusted|: without the guard. After a failure nothing is owned. */
bool bhi_contender_open(struct bhi_court *court, const struct bhi_kernel_file *file, bool trusted,
                        const struct bhi_task_groups *groups, struct bhi_contender *out,
                        struct bhi_judge_outcome *outcome);
/* What times are compared with: the baseline, or the task's reference, a kernel or an expression. */
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

/* What it runs, borrowed from it. */
struct bhi_program bhi_contender_program(struct bhi_contender *contender);

/* Empties the device's caches before a run, by writing more than they hold. */

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

/* The empty kernel: what a batch costs besides the kernels in it. */

struct bhi_base {
    bh_stream *stream; /* owned */
    struct bhi_base_kernel {
        struct bhi_judged_kernel kernel; /* owned */
        char *source;                    /* owned */
    } kernels[BHI_PLAN_KERNELS];         /* one for each of a candidate's */
    struct bhi_tray tray;                /* of its runs; owned */
    struct bhi_worked worked;            /* as of bhi_contender */
};

/* Makes the stream. */
bool bhi_base_open(const struct bhi_court *court, struct bhi_base *out,
                   struct bhi_judge_outcome *outcome);
/* Makes |out| of the dispatch of a step: one group of a kernel that does nothing, on the same
 * bindings. */
bool bhi_base_command(struct bhi_base *base, struct bhi_court *court, size_t step,
                      const bh_command *of, bh_command *out, struct bhi_judge_outcome *outcome);
/* Takes {0}, too. */
void bhi_base_close(struct bhi_base *base);

#endif

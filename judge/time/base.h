/* The empty kernel: what a batch costs besides the kernels in it. */
#ifndef BHI_JUDGE_TIME_BASE_H
#define BHI_JUDGE_TIME_BASE_H

#include "judge/check/launch.h"

struct bhi_base {
    bh_stream *stream;               /* owned */
    struct bhi_judged_kernel kernel; /* owned */
    char *source;                    /* of |kernel|; owned */
    struct bhi_worked worked;        /* as of bhi_contender */
};

/* Makes the stream. */
bool bhi_base_open(const struct bhi_court *court, struct bhi_base *out,
                   struct bhi_judge_outcome *outcome);
/* Makes |out| of a dispatch: one group of a kernel that does nothing, on the same bindings. */
bool bhi_base_command(struct bhi_base *base, struct bhi_court *court, const bh_command *of,
                      bh_command *out, struct bhi_judge_outcome *outcome);
/* Takes {0}, too. */
void bhi_base_close(struct bhi_base *base);

#endif

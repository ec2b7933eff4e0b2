/* Compares the verdict of a submission that has ended with what the oracle says of it. */
#ifndef MODEL_VERDICTS_H
#define MODEL_VERDICTS_H

#include "world.h"

/* What every verdict must say: stream, times, whether the submission ran. */
void verdict_check_frame(struct world *world, int work, const bh_verdict *verdict);
/* That of a submission which was doomed before it ended. */
void verdict_check_doomed(struct world *world, int work, const bh_verdict *verdict);
/* That of any other: how it ended by itself. Tells the oracle that it is READY, or its cause. */
void verdict_check_own(struct world *world, int work, const bh_verdict *verdict);

#endif

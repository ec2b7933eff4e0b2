/* bulkhead judge --diff. */
#ifndef BHI_CLI_JUDGE_DIFF_H
#define BHI_CLI_JUDGE_DIFF_H

#include "tool/args.h"

/* Compares the runs in the files that are the operands. Returns the exit status. */
int bhi_judge_diff_main(const struct bhi_args *args);

#endif

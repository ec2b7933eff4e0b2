/* A bh_judge_candidate, checked. */
#ifndef BHI_JUDGE_API_CANDIDATE_H
#define BHI_JUDGE_API_CANDIDATE_H

#include <bulkhead/judge.h>

#include "request/kernel_file.h"

/* Takes what a caller gives to |call|, and borrows all but the code. |out|->code is owned, with a NUL
 * behind it, also after a failure; NULL: the file is read. */
bh_status bhi_judge_candidate_take(const bh_judge_candidate *given, const char *call,
                                   struct bhi_kernel_file *out, bh_detail *detail);

#endif

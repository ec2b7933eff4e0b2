/* bulkhead judge --dump: the arrays of candidates that are not right, as files. */
#ifndef BHI_CLI_JUDGE_DUMP_H
#define BHI_CLI_JUDGE_DUMP_H

#include <bulkhead/judge.h>

#include "tool/text.h"

/* Makes the folder, unless it is there and empty. Otherwise nobody knew what in it is of this run. */
bool bhi_judge_dump_begin(const char *path, struct bhi_complaint *complaint);
/* Has a run ended the judging, and is that run to be had again? */
bool bhi_judge_dump_wants(const bh_judgement *judgement);
/* Runs the candidate again, and makes a folder in |path|, whole or not at all. *out_folder is its
 * path, which the caller frees; NULL: none was made. Returns false where something is missing that
 * |complaint| names: the candidate has no "actual" if it does not run to its end now. Blocks;
 * bh_judge_cancel ends it. */
bool bhi_judge_dump(const char *path, bh_judge *judge, const bh_judge_candidate *candidate,
                    const char *name, const bh_judgement *judgement, char **out_folder,
                    struct bhi_complaint *complaint);

#endif

/* Each function runs a command, or a part of one: from its part of the command line to its exit
 * status. The one of `run` is in cli/run/steps.h. */
#ifndef BHI_CLI_MAINS_H
#define BHI_CLI_MAINS_H

#include <stdio.h>

#include "tool/args.h"

int bhi_compile_main(const struct bhi_args *args);
int bhi_inspect_main(const struct bhi_args *args);
int bhi_eval_main(const struct bhi_args *args);
int bhi_batch_main(const struct bhi_args *args);
int bhi_judge_main(const struct bhi_args *args);
int bhi_chaos_main(const struct bhi_args *args);
int bhi_devices_main(const struct bhi_args *args);
int bhi_doctor_main(const struct bhi_args *args);
int bhi_completion_main(const struct bhi_args *args);
int bhi_version_main(const struct bhi_args *args);
int bhi_help_main(const struct bhi_args *args);

/* doctor --trace-driver: traces a driver and prints its calls. */
int bhi_doctor_trace(const struct bhi_args *args);
/* judge --diff: compares the runs in the files that are the operands. */
int bhi_judge_diff_main(const struct bhi_args *args);
/* inspect of a file of arrays: lists them. */
int bhi_inspect_tensors(const struct bhi_args *args);
/* Is |path|, by its name, such a file? Also true for other kinds of array files, which are refused
 * later. */
bool bhi_inspect_is_array(const char *path);
/* batch --status, --cancel and --logs: what others run, seen from outside. */
int bhi_batch_shards(const struct bhi_args *args);
/* Is one of these options given? */
bool bhi_batch_shards_asked(const struct bhi_args *args);

/* Help as text; all of it comes from the tables. */
void bhi_help_overview(FILE *stream);
void bhi_help_command(FILE *stream, const struct bhi_command *command);

#endif

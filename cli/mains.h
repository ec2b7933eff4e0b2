/* Each function runs a command: from its part of the command line to its exit status. The one of
 * `run` is in cli/run/run.h. */
#ifndef BHI_CLI_MAINS_H
#define BHI_CLI_MAINS_H

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

#endif

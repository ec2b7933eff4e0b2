/* Prints the error of a failed command with --json. */
#ifndef BHI_TOOL_ERROR_JSON_H
#define BHI_TOOL_ERROR_JSON_H

#include <stdbool.h>

#include "tool/args.h"

/* Runs |work| and returns its exit status. If |work| fails with a complaint and |wanted| is true,
 * prints {"error": {code, message, file, line, log}} on standard output. |work| must not print
 * another object when it complains, must complain on one thread, and must not call
 * bhi_ending_watch. */
int bhi_error_json(bool wanted, int (*work)(const struct bhi_args *args),
                   const struct bhi_args *args);

#endif

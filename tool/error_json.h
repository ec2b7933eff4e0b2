/* --json of a command that fails: why, as one object. */
#ifndef BHI_TOOL_ERROR_JSON_H
#define BHI_TOOL_ERROR_JSON_H

#include <stdbool.h>

#include "tool/args.h"

/* Runs |work|. If it fails with a complaint and |wanted|, prints {"error": {code, message, file,
 * line, log}} on standard output: a command that complains has printed no other object. Returns
 * |work|'s exit status. For commands that complain on one thread, and do not watch the ending
 * themselves. */
int bhi_error_json(bool wanted, int (*work)(const struct bhi_args *args),
                   const struct bhi_args *args);

#endif

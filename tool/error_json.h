/* The error of a failed command with --json: in each command the key "error" of its object. */
#ifndef BHI_TOOL_ERROR_JSON_H
#define BHI_TOOL_ERROR_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "tool/args.h"
#include "tool/ending.h"

/* {code, reason, subject, message, file, line, log} */
json_t *bhi_error_object(bh_status code, bh_reason reason, bh_subject subject, const char *name,
                         const char *message, const struct bhi_ending *ending);
/* Runs |work| and returns its exit status. If |work| fails with a complaint and |wanted| is true,
 * prints {"error": {code, reason, subject, message, file, line, log}} on standard output, unless |work| has
 * printed an object (bhi_json_print, bhi_ending_answered). |work| must complain on one thread, and
 * must not call bhi_ending_watch. */
int bhi_error_json(bool wanted, int (*work)(const struct bhi_args *args),
                   const struct bhi_args *args);

#endif

/* A session: the one bh_context of the program. All commands create it here. */
#ifndef BHI_TOOL_SESSION_H
#define BHI_TOOL_SESSION_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>

/* Creates a context for |command|. |verbose| prints the library's log. |cache_dir| is the folder of
 * pipeline caches, or NULL. On failure prints a message and returns NULL; *out_exit is the exit
 * status. */
bh_context *bhi_session_open(const char *command, bool verbose, const char *cache_dir,
                             int *out_exit);

/* As bhi_session_open, with the caller's options; only the log is set here. */
bh_context *bhi_session_open_with(const char *command, bool verbose, bh_context_options *options,
                                  int *out_exit);

/* The log of --verbose: a line on standard error. */
void bhi_session_log(bh_log_level level, const char *line, void *user);

/* Returns true if the library's message already says what to do. Then the advice of the status is
 * not printed. |detail| may be NULL, or have no more than a verdict says. */
bool bhi_session_advises(const bh_detail *detail);

/* Prints that |what| failed (NULL: only the detail) and returns the exit status. Adds advice if the
 * machine lacks something. */
int bhi_session_fail(const char *command, const char *what, bh_status status,
                     const bh_detail *detail);

#endif

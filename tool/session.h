/* A session: the one bh_context of the program. Every command makes it the same way. */
#ifndef BHI_TOOL_SESSION_H
#define BHI_TOOL_SESSION_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>

/* Makes a context for |command|; |verbose| prints what it logs; |cache_dir|: for
 * pipeline caches, or NULL. On failure complains and returns
 * NULL with *out_exit. */
bh_context *bhi_session_open(const char *command, bool verbose, const char *cache_dir,
                             int *out_exit);

/* The same with options of the caller's, but for the log. */
bh_context *bhi_session_open_with(const char *command, bool verbose, bh_context_options *options,
                                  int *out_exit);

/* Does the library's |message| itself say what to do? Then the advice of its status is left out. */
bool bhi_session_advises(const char *message);

/* Complains that |what| failed (NULL: only the detail) and returns the exit status. What the
 * environment lacks comes with advice. */
int bhi_session_fail(const char *command, const char *what, bh_status status,
                     const bh_detail *detail);

#endif

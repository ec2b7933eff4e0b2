/* One-line complaints, on stderr. */
#ifndef BHI_TOOL_COMPLAIN_H
#define BHI_TOOL_COMPLAIN_H

/* Says "bulkhead COMMAND: …", as one line that has been cleaned. |command| may be NULL. */
void bhi_complain(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Flushes stdout. Returns |exit_status|; after a write error (disk full), which it reports,
 * BHI_EXIT_ENVIRON in place of BHI_EXIT_READY. If the reader of a pipe is gone, a success ends by
 * SIGPIPE without a message (decision 54); a failure keeps its status. */
int bhi_text_flush(const char *command, int exit_status);

#endif

/* One-line error messages on stderr. */
#ifndef BHI_TOOL_COMPLAIN_H
#define BHI_TOOL_COMPLAIN_H

/* Prints "bulkhead COMMAND: …" as one cleaned line. |command| may be NULL. */
void bhi_complain(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same, and the exit status of that: BHI_EXIT_USAGE, BHI_EXIT_ENVIRON. */
int bhi_complain_usage(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int bhi_complain_environ(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints that memory ran out, which --json blames. Returns the exit status. */
int bhi_complain_memory(const char *command);

/* Flushes stdout and returns |exit_status|. Reports a write error, such as a full disk, and then
 * returns BHI_EXIT_ENVIRON instead of BHI_EXIT_READY. If the reader of a pipe is gone and
 * |exit_status| is a success, the process ends by SIGPIPE without a message (decision 28). A
 * failure keeps its status. */
int bhi_text_flush(const char *command, int exit_status);

/* If |exit_status| is that of a signal, says that it has cancelled |command|; |more| ends the line.
 */
void bhi_complain_cancelled(const char *command, int exit_status, const char *more);

#endif

/* SIGINT and SIGTERM in the command-line program (the library installs no handlers).
 *
 * The first one asks for a clean end: the running submission is cancelled, nothing is written.
 * The second one kills, where it comes half a second after the first or later: `timeout -s INT` and
 * a shell's process group deliver one signal twice, microseconds apart. Without SA_RESTART, so that
 * a blocked read or write of a pipe ends with EINTR and its caller can look here.
 */
#ifndef BHI_TOOL_INTERRUPT_H
#define BHI_TOOL_INTERRUPT_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* Installs the handlers and ignores SIGPIPE: an --out to a closed pipe is a write error with a
 * message. */
void bhi_interrupt_watch(void);
/* Ends the process by SIGPIPE, as if the signal had not been ignored. Returns if the parent ignores
 * or blocks it, and in pid 1 of a pid namespace, which it does not end. */
void bhi_interrupt_pipe(void);
/* The signal that asked for the end; 0: none so far. */
int bhi_interrupt_signal(void);
/* The exit status that it leads to; bhi_run_main says why at the end. */
int bhi_interrupt_exit_status(void);
/* As read(2), once; of what is no regular file, with EINTR where a signal has asked for the end, be
 * it before the call. */
ssize_t bhi_interrupt_read(int fd, void *bytes, size_t size);
/* A stream of the file at |path| ("-": standard input), read as above: it has an error where a
 * signal has asked for the end. The caller's to fclose, which leaves standard input open. NULL:
 * errno says why. */
FILE *bhi_interrupt_open(const char *path);

#endif

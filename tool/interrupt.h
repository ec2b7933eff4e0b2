/* SIGINT and SIGTERM in the command-line program. The library installs no handlers.
 *
 * The first signal asks for a clean end: the running submission is cancelled, and nothing is
 * written. A second signal kills the process if it comes at least half a second later: `timeout -s
 * INT` and a shell's process group can deliver one signal twice, microseconds apart. The handlers
 * are installed without SA_RESTART, so that a blocked read or write of a pipe ends with EINTR and
 * its caller calls bhi_interrupt_signal.
 */
#ifndef BHI_TOOL_INTERRUPT_H
#define BHI_TOOL_INTERRUPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Installs the handlers and ignores SIGPIPE: writing --out to a closed pipe gives an error message.
 */
void bhi_interrupt_watch(void);
/* Ends the process by SIGPIPE, as if the signal were not ignored. Returns if the parent ignores or
 * blocks SIGPIPE, and in pid 1 of a pid namespace, which the signal does not end. */
void bhi_interrupt_pipe(void);
/* The signal that asked for the end; 0: none so far. */
int bhi_interrupt_signal(void);
/* The exit status for that signal. bhi_run_main prints the message at the end. */
int bhi_interrupt_exit_status(void);
/* Returns the exit status for that signal if there was one, else |exit_status|. */
int bhi_interrupt_or(int exit_status);
/* Waits for |ns|. Returns false as soon as a signal has asked for the end, also before the call. */
bool bhi_interrupt_pause(uint64_t ns);
/* Calls read(2) once. Unless |fd| is a regular file, fails with EINTR if a signal has asked for the
 * end, before the call or during it. */
ssize_t bhi_interrupt_read(int fd, void *bytes, size_t size);
/* Opens the file at |path| ("-": standard input) as a stream that reads with bhi_interrupt_read;
 * after a signal has asked for the end, ferror is true. The caller closes it with fclose, which
 * leaves standard input open. Returns NULL with errno set if it cannot. */
FILE *bhi_interrupt_open(const char *path);

#endif

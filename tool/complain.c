#include "tool/complain.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"
#include "base/limits.h"
#include "tool/ending.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/text.h"

__attribute__((format(printf, 2, 0))) static void complain(const char *command, const char *format,
                                                           va_list arguments) {
    char raw[2048], line[2048];
    bhi_vformat(raw, sizeof raw, format, arguments);
    bhi_text_clean(line, sizeof line, raw);
    bhi_ending_note(BH_OK, NULL, line);
    if (command) {
        fprintf(stderr, "bulkhead %s: %s\n", command, line);
    } else {
        fprintf(stderr, "bulkhead: %s\n", line);
    }
}

void bhi_complain(const char *command, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    complain(command, format, arguments);
    va_end(arguments);
}

int bhi_complain_usage(const char *command, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    complain(command, format, arguments);
    va_end(arguments);
    return BHI_EXIT_USAGE;
}

int bhi_complain_environ(const char *command, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    complain(command, format, arguments);
    va_end(arguments);
    return BHI_EXIT_ENVIRON;
}

int bhi_complain_memory(const char *command) {
    const int exit_status = bhi_complain_environ(command, "out of memory");
    bhi_ending_blame(BH_NO_MEMORY);
    return exit_status;
}

/* Returns true if stdout is a pipe and no process can read from it any more. */
static bool reader_is_gone(void) {
    struct pollfd fd = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&fd, 1, 0) == 1 && (fd.revents & POLLERR);
}

int bhi_text_flush(const char *command, int exit_status) {
    const bool flushed = fflush(stdout) == 0;
    if (flushed && !ferror(stdout)) {
        return exit_status;
    }
    /* If an earlier write failed and nothing was left to flush, another call may have overwritten
     * errno. For a pipe, poll tells whether its reader is gone. */
    const int error = errno ? errno : EIO;
    const bool gone = (!flushed && error == EPIPE) || reader_is_gone();
    if (gone && exit_status == BHI_EXIT_READY) {
        bhi_interrupt_pipe();
    }
    if (!gone || exit_status == BHI_EXIT_READY) {
        char limit[BHI_LIMIT_TEXT];
        bhi_complain(command, "cannot write to standard output: %s%s",
                     strerror(gone ? EPIPE : error), bhi_limit_named(gone ? EPIPE : error, limit));
    }
    return exit_status == BHI_EXIT_READY ? BHI_EXIT_ENVIRON : exit_status;
}

void bhi_complain_cancelled(const char *command, int exit_status, const char *more) {
    if (exit_status > BHI_EXIT_SIGNALLED) {
        bhi_complain(command, "cancelled by SIG%s%s",
                     sigabbrev_np(exit_status - BHI_EXIT_SIGNALLED), more);
    }
}

#include "base/detail.h"
#include "base/format.h"
#include "base/limits.h"
#include "base/text.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fill(bh_detail *detail, bh_status status, int sys_errno, const char *format,
                 va_list args) __attribute__((format(printf, 4, 0)));

static void fill(bh_detail *detail, bh_status status, int sys_errno, const char *format,
                 va_list args) {
    *detail = (bh_detail){.status = status, .sys_errno = sys_errno};
    int length = bhi_vformat(detail->message, sizeof detail->message, format, args);
    if (sys_errno && length >= 0 && (size_t)length < sizeof detail->message) {
        char buffer[128], limit[BHI_LIMIT_TEXT];
        bhi_format(detail->message + length, sizeof detail->message - (size_t)length, ": %s%s",
                   strerror_r(sys_errno, buffer, sizeof buffer), bhi_limit_named(sys_errno, limit));
    }
    /* It may quote a path or a name of any bytes. */
    bhi_text_sanitise(detail->message, sizeof detail->message, detail->message,
                      sizeof detail->message);
}

bh_status bhi_fail(bh_detail *detail, bh_status status, int sys_errno, const char *format, ...) {
    if (detail) {
        va_list args;
        va_start(args, format);
        fill(detail, status, sys_errno, format, args);
        va_end(args);
    }
    return status;
}

bh_status bhi_fail_for(bh_detail *detail, bh_status status, bh_reason reason, const char *format,
                       ...) {
    if (detail) {
        va_list args;
        va_start(args, format);
        fill(detail, status, 0, format, args);
        va_end(args);
        detail->reason = reason;
    }
    return status;
}

const char *bhi_signal_name(int signal) {
    static const struct {
        int signal;
        const char *name;
    } names[] = {
        {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
        {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
        {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
        {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"},
        {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"},   {SIGSTOP, "SIGSTOP"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].signal == signal) {
            return names[i].name;
        }
    }
    return "a signal";
}

bool bhi_signal_is_foreign(int signal) {
    switch (signal) {
    case 0:
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGABRT:
    case SIGSYS:
    case SIGPIPE:
    case SIGXFSZ:
        return false;
    default:
        return true;
    }
}

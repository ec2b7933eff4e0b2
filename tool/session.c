#include "tool/session.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "tool/complain.h"
#include "tool/descriptors.h"
#include "tool/ending.h"
#include "tool/exit_status.h"
#include "tool/text.h"
#include "tool/verdict.h"

enum { DESCRIPTORS = 256 }; /* enough for a few streams and their buffers */

void bhi_session_log(bh_log_level level, const char *line, void *user) {
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    char clean[1024];
    (void)user;
    fprintf(stderr, "bulkhead: log %s: %s\n", levels[level > BH_LOG_DEBUG ? BH_LOG_DEBUG : level],
            bhi_text_clean(clean, sizeof clean, line));
}

/* Prints why there is no pipeline cache. The library continues without it, but the user asked for
 * it. */
static void cache_line(bh_log_level level, const char *line, void *user) {
    if (level <= BH_LOG_WARNING && !strncmp(line, "pipeline cache:", 15)) {
        char clean[1024];
        (void)user;
        fprintf(stderr, "bulkhead: %s\n", bhi_text_clean(clean, sizeof clean, line));
    }
}

bh_context *bhi_session_open_with(const char *command, bool verbose, bh_context_options *options,
                                  int *out_exit) {
    bh_context *context = NULL;
    bh_detail detail = {0};
    (void)bhi_descriptors_raise(DESCRIPTORS); /* a low soft limit is for programs with select() */
    if (verbose) {
        options->log = bhi_session_log;
    } else if (options->cache_dir) {
        options->log = cache_line;
    }
    bh_status status = bh_context_create(options, &context, &detail);
    if (status != BH_OK) {
        *out_exit = bhi_session_fail(command, NULL, status, &detail);
    }
    return context;
}

bh_context *bhi_session_open(const char *command, bool verbose, const char *cache_dir,
                             int *out_exit) {
    bh_context_options options = {.struct_size = sizeof options};
    options.spares = BH_OFF; /* one job runs: a spare worker would only cost time */
    options.cache_dir = cache_dir;
    return bhi_session_open_with(command, verbose, &options, out_exit);
}

/* Returns true if the failure is about the machine, and its message ends with what to allow or to
 * correct there: no argument is to blame then. */
static bool is_about_machine(const bh_detail *detail) {
    switch (detail ? detail->reason : BH_REASON_NONE) {
    case BH_REASON_REFUSED:
    case BH_REASON_DRIVER_ABSENT:
    case BH_REASON_DRIVER_BROKEN:
    case BH_REASON_NO_DRIVER:
    case BH_REASON_NO_PROGRAM:
    case BH_REASON_MUTE:
    case BH_REASON_OPENER:
        return true;
    default:
        return false;
    }
}

bool bhi_session_advises(const bh_detail *detail) {
    return is_about_machine(detail) || (detail && detail->advice);
}

/* What the library advises is for a program in two cases. */
static const char *advice_of(bh_status status, char limit[BHI_LIMIT_TEXT]) {
    if (status == BH_NO_MEMORY && *bhi_limit_address_space(limit)) {
        return limit + strlen("; ");
    }
    return status == BH_TIMEOUT ? "see bulkhead doctor" : bh_status_advice(status);
}

int bhi_session_fail(const char *command, const char *what, bh_status status,
                     const bh_detail *detail) {
    const bool ended = status == BH_COMPILE_FAILED && detail && detail->cause != BH_OK;
    const int exit_status = ended ? BHI_EXIT_POISONED : bhi_verdict_exit_status(status);
    char line[1024], limit[BHI_LIMIT_TEXT], message[600];
    snprintf(message, sizeof message, "%s",
             detail && detail->message[0] ? bhi_text_without_call(detail->message)
                                          : bh_status_text(status));
    if (detail && detail->reason == BH_REASON_COMPILE_DEADLINE) {
        bhi_text_append(message, sizeof message, "; --compile-deadline raises it");
    } else if (detail && detail->reason == BH_REASON_ENTRY_POINT) {
        bhi_text_append(message, sizeof message, "; --entry NAME chooses");
    }
    what = is_about_machine(detail) ? NULL : what;
    const bool advise = exit_status == BHI_EXIT_ENVIRON && !bhi_session_advises(detail);
    bhi_complain(command, "%s%s%s (%s)%s%s", what ? what : "", what ? ": " : "", message,
                 bh_status_name(status), advise ? "; " : "",
                 advise ? advice_of(status, limit) : "");
    snprintf(line, sizeof line, "%s%s%s", what ? what : "", what ? ": " : "", message);
    bhi_ending_note(status, detail, line);
    return exit_status;
}

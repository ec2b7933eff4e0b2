#include "tool/verdict.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/sort.h"
#include "tool/complain.h"
#include "tool/ending.h"
#include "tool/error_json.h"
#include "tool/exit_status.h"
#include "tool/json.h"
#include "tool/quantity.h"
#include "tool/text.h"

enum { LABEL = 14 };

int bhi_verdict_exit_status(bh_status status) {
    switch (bh_status_classify(status)) {
    case BH_STATUS_CLASS_GUILTY:
    case BH_STATUS_CLASS_VICTIM:
        return BHI_EXIT_POISONED;
    case BH_STATUS_CLASS_CALLER:
    case BH_STATUS_CLASS_INPUT:
        return BHI_EXIT_USAGE;
    case BH_STATUS_CLASS_NONE:
        return status == BH_OK ? BHI_EXIT_READY : BHI_EXIT_ENVIRON;
    case BH_STATUS_CLASS_ENVIRON:
        break;
    }
    return BHI_EXIT_ENVIRON;
}

/* A verdict with a worker's end or a memory limit means that the compiler gave no answer. */
int bhi_verdict_exit(const bh_verdict *verdict) {
    if (verdict->status == BH_COMPILE_FAILED &&
        (verdict->signal || verdict->exit_code >= 0 || verdict->limit)) {
        return BHI_EXIT_POISONED;
    }
    return bhi_verdict_exit_status(verdict->status);
}

static const char *executed_name(bh_executed executed) {
    switch (executed) {
    case BH_EXECUTED_NO:
        return "no";
    case BH_EXECUTED_YES:
        return "yes";
    case BH_EXECUTED_UNKNOWN:
        break;
    }
    return "unknown";
}

static const char *executed_text(bh_executed executed) {
    switch (executed) {
    case BH_EXECUTED_NO:
        return "no: it never started and had no effect";
    case BH_EXECUTED_YES:
        return "yes: it ran to its end";
    case BH_EXECUTED_UNKNOWN:
        break;
    }
    return "unknown: it had started and did not finish; its results are lost";
}

/* The time since the worker started the submission, or since it was submitted if it never started.
 */
static uint64_t elapsed_ns(const bh_verdict *verdict) {
    uint64_t start = verdict->started_ns ? verdict->started_ns : verdict->submitted_ns;
    return verdict->ended_ns > start ? verdict->ended_ns - start : 0;
}

static void hash_text(const uint8_t hash[32], char out[65]) {
    for (int i = 0; i < 32; i++) {
        snprintf(out + 2 * i, 3, "%02x", hash[i]);
    }
}

static void print_line(const char *label, const char *text) {
    char clean[2048], head[LABEL + 1];
    snprintf(head, sizeof head, "  %s", label);
    bhi_text_hang(stderr, head, bhi_text_clean(clean, sizeof clean, text), LABEL,
                  bhi_text_width(stderr));
}

/* What to do if the driver's compiler, which has no other work, did not come to its end. The guard
 * refuses kernels that need too much memory, and says which variable it is. */
static const char *advice_on_compiling(const bh_verdict *verdict, bool trusted) {
    if (verdict->reason == BH_REASON_COMPILE_DEADLINE) {
        return "raise the compile deadline (--compile-deadline), or simplify the kernel";
    }
    if (verdict->reason == BH_REASON_MEMORY_LIMIT) {
        return trusted
                   ? "keep large arrays in buffers, or raise the limit (--memory-limit); without "
                     "--trusted the guard names the array that is too large"
                   : "keep large arrays in buffers, or raise the limit (--memory-limit)";
    }
    return verdict->signal ? "fix the kernel, or update the driver: its compiler crashed"
                           : bh_status_advice(verdict->status);
}

/* Somebody else has ended the worker. */
static bool is_from_outside(const bh_verdict *verdict) {
    return verdict->signal && verdict->blame == BH_BLAME_NONE &&
           bh_status_classify(verdict->status) != BH_STATUS_CLASS_VICTIM;
}

/* A kernel that had not begun has no endless loop; one whose memory others used up need not be
 * wrong. */
static const char *advice_of(const bh_verdict *verdict, bool trusted) {
    if (verdict->reason == BH_REASON_ADDRESS_SPACE) {
        return "raise the limit on the address space (ulimit -v)";
    }
    if (is_from_outside(verdict)) {
        return "run it again; see who or what ends processes on this machine";
    }
    if (verdict->status == BH_WORKER_SIGNAL && verdict->signal == SIGKILL &&
        verdict->blame == BH_BLAME_SUSPECTED) {
        return "give the machine or its container more memory, or run fewer workers at once";
    }
    if (verdict->status == BH_COMPILE_FAILED) {
        return advice_on_compiling(verdict, trusted);
    }
    return verdict->status == BH_DEADLINE && verdict->executed == BH_EXECUTED_NO
               ? "raise the deadline: it passed before the kernel began"
               : bh_status_advice(verdict->status);
}

void bhi_verdict_print(const char *command, const bh_verdict *verdict, bool trusted) {
    char line[256], hash[65], time[BHI_QUANTITY];
    const char *kernel = verdict->kernel_name[0] ? verdict->kernel_name : "the submission";

    bhi_complain(command, "%s is poisoned: %s (%s)", kernel, bh_status_text(verdict->status),
                 bh_status_name(verdict->status));
    if (verdict->message[0]) {
        print_line("what", verdict->message);
    }
    hash_text(verdict->kernel_hash, hash);
    bhi_format(line, sizeof line, "%.63s, hash %.16s...", kernel, hash);
    print_line("kernel", line);
    print_line("executed", executed_text(verdict->executed));
    if (verdict->worker_pid) {
        int used = snprintf(line, sizeof line, "pid %d", verdict->worker_pid);
        if (verdict->signal) {
            const char *name = sigabbrev_np(verdict->signal);
            bhi_format(line + used, sizeof line - (size_t)used, ", ended by signal %d%s%s",
                       verdict->signal, name ? ", SIG" : "", name ? name : "");
        } else if (verdict->exit_code >= 0 && verdict->status == BH_WORKER_EXIT) {
            snprintf(line + used, sizeof line - (size_t)used, ", exit code %d", verdict->exit_code);
        }
        print_line("worker", line);
    }
    if (is_from_outside(verdict)) {
        print_line("blame", "none: the kernel cannot have ended its worker like this");
    }
    if (verdict->blame == BH_BLAME_SUSPECTED) {
        print_line("blame",
                   verdict->status == BH_DEVICE_LOST
                       ? "suspected: another kernel on the same worker, or another process "
                         "that waited for the GPU, may be the cause"
                   : verdict->status == BH_WORKER_SIGNAL && verdict->signal == SIGKILL
                       ? "suspected: another kernel on the same worker, or a process that used up "
                         "the memory, may be the cause"
                   : verdict->status == BH_COMPILE_FAILED && verdict->signal == SIGKILL
                       ? "suspected: a busy machine, or another kernel on the same worker, may be "
                         "the cause"
                       : "suspected: another kernel ran on the same worker before and may "
                         "be to blame");
    }
    if (verdict->hops) {
        snprintf(line, sizeof line, "event %llu, %u dependencies away",
                 (unsigned long long)verdict->origin, verdict->hops);
        print_line("origin", line);
    }
    if (verdict->ended_ns) {
        print_line("time", bhi_quantity_time(time, elapsed_ns(verdict)));
    }
    print_line("outputs", "none were written");
    print_line("what to do", advice_of(verdict, trusted));
}

struct bhi_spread bhi_spread_of(uint64_t *times, uint64_t count) {
    struct bhi_spread spread = {.known = count > 0};
    if (count == 0) {
        return spread;
    }
    spread.warm_up_ns = times[0];
    const uint64_t n = spread.count = count - 1;
    if (n > 0) {
        bhi_sort_u64(++times, n);
        spread.min_ns = times[0];
        spread.median_ns = n % 2 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
        spread.p99_ns = times[n - n / 100 - 1];
    }
    return spread;
}

static void print_spread(FILE *stream, const char *what, const struct bhi_spread *spread) {
    if (!spread->known) {
        fprintf(stream, "  %-7s unknown: the device gave no timestamps\n", what);
        return;
    }
    fprintf(stream, "  %-7s", what);
    const uint64_t times[] = {spread->warm_up_ns, spread->min_ns, spread->median_ns,
                              spread->p99_ns};
    for (size_t i = 0; i < (spread->count ? sizeof times / sizeof times[0] : 1); i++) {
        char time[BHI_QUANTITY];
        fprintf(stream, "%13s", bhi_quantity_time(time, times[i]));
    }
    fputc('\n', stream);
}

void bhi_verdict_print_times(FILE *stream, const struct bhi_run_outcome *outcome) {
    char count[BHI_QUANTITY];
    fprintf(stream, "%s submission%s\n  %-7s%13s", bhi_quantity_count(count, outcome->submissions),
            outcome->submissions == 1 ? "" : "s", "", "warm-up");
    if (outcome->host.count) {
        fprintf(stream, "%13s%13s%13s", "min", "median", "p99");
    }
    fputc('\n', stream);
    print_spread(stream, "device", &outcome->device);
    print_spread(stream, "host", &outcome->host);
}

/* The verdict's status, or that of the last complaint. */
static bh_status code_of(const bh_verdict *verdict, const struct bhi_end *end) {
    if (end->exit_status == BHI_EXIT_READY) {
        return BH_OK;
    }
    if (end->exit_status == BHI_EXIT_POISONED && verdict->status != BH_OK) {
        return verdict->status;
    }
    return bhi_ending_code(end->ending, end->exit_status);
}

/* REFUSED means that there is no verdict and that no output was written. */
static const char *status_of(const bh_verdict *verdict, const struct bhi_end *end) {
    if (end->exit_status == BHI_EXIT_READY) {
        return "READY";
    }
    if (end->exit_status == BHI_EXIT_POISONED || verdict->status == BH_CANCELLED) {
        return "POISONED";
    }
    return "REFUSED";
}

static json_t *spread_json(const struct bhi_spread *spread) {
    if (!spread->known) {
        return json_null();
    }
    const bool more = spread->count > 0;
    return BHI_JSON({"warm_up_ms", bhi_json_ms(spread->warm_up_ns)},
                    {"min_ms", more ? bhi_json_ms(spread->min_ns) : json_null()},
                    {"median_ms", more ? bhi_json_ms(spread->median_ns) : json_null()},
                    {"p99_ms", more ? bhi_json_ms(spread->p99_ns) : json_null()});
}

static json_t *times_json(const struct bhi_run_outcome *outcome) {
    if (!outcome->timed) {
        return json_null();
    }
    return BHI_JSON({"device", spread_json(&outcome->device)},
                    {"host", spread_json(&outcome->host)});
}

void bhi_verdict_print_json(const struct bhi_run_outcome *outcome, const struct bhi_end *end) {
    static const bh_verdict none = {.exit_code = -1};
    const bh_status code = code_of(&outcome->verdict, end);
    const struct bhi_ending *ending = end->ending;
    /* The verdict of an earlier submission, or of a load that succeeded, does not explain this end.
     */
    const bh_verdict *verdict = outcome->verdict.status == code ? &outcome->verdict : &none;
    const bool ran = verdict == &none && outcome->ready > 0;
    const bool told = verdict->message[0] && end->exit_status == BHI_EXIT_POISONED;
    char hash[65];
    if (end->kernel_hash) {
        hash_text(end->kernel_hash, hash);
    }

    const bh_reason reason = told ? verdict->reason : ending->reason;
    const bh_subject subject = told ? verdict->subject : ending->subject;
    const char *name = told ? verdict->subject_name : ending->subject_name;
    const char *message = told                                 ? verdict->message
                          : end->exit_status == BHI_EXIT_READY ? ""
                                                               : ending->message;
    json_t *object = BHI_JSON({"status", json_string(status_of(verdict, end))},
                              {"code", json_string(bh_status_name(code))});
    bhi_json_why(object, reason, subject, name);
    bhi_json_print(BHI_JSON_ADD(
        object, {"signal", bhi_json_known(verdict->signal)}, {"kernel", bhi_json_text(end->kernel)},
        {"kernel_hash", end->kernel_hash ? json_string(hash) : json_null()},
        {"executed", json_string(ran ? "yes" : executed_name(verdict->executed))},
        {"blame", bhi_json_blame(verdict->blame)},
        {"event", bhi_json_known((int64_t)verdict->event)},
        {"origin", bhi_json_known((int64_t)verdict->origin)},
        {"worker_pid", bhi_json_known(verdict->worker_pid)},
        {"device", bhi_json_text_or_null(verdict->device)},
        {"elapsed_ms", verdict->ended_ns ? bhi_json_ms(elapsed_ns(verdict)) : json_null()},
        {"message", bhi_json_text(message)}, {"file", bhi_json_text_or_null(ending->file)},
        {"line", bhi_json_known(ending->line)},
        {"log", ending->log ? json_string(ending->log) : json_null()},
        {"submissions", bhi_json_number(outcome->submissions)},
        {"min_ms", outcome->ready ? bhi_json_ms(outcome->min_ns) : json_null()},
        {"median_ms", outcome->ready ? bhi_json_ms(outcome->median_ns) : json_null()},
        {"times", times_json(outcome)},
        {"error", end->exit_status == BHI_EXIT_READY
                      ? json_null()
                      : bhi_error_object(code, reason, subject, name, message, ending)}));
}

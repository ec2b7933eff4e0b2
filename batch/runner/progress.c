#include "batch/runner/progress.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tool/clock.h"
#include "tool/text.h"

enum { MOST_FAILURES = 50, LINE = 200 };

static const uint64_t plain_every_ns = 10000000000u;

void bhi_progress_begin(struct bhi_batch_progress *progress) {
    *progress = (struct bhi_batch_progress){.terminal = isatty(STDERR_FILENO) == 1,
                                            .coloured = bhi_text_coloured(stderr),
                                            .began_ns = bhi_clock_ns(),
                                            .told_ns = bhi_clock_ns()};
}

static uint64_t count_ended(const struct bhi_queue_counts *counts) {
    uint64_t ended = 0;
    for (int state = 0; state < BHI_JOB_STATES; state++) {
        if (bhi_job_state_is_end((enum bhi_job_state)state)) {
            ended += counts->of[state];
        }
    }
    return ended;
}

/* Prints "1 h 05 min", "3 min 20 s" or "12 s". */
static void print_time(char *out, size_t capacity, double seconds) {
    const unsigned long whole = (unsigned long)(seconds + 0.5);
    if (whole >= 3600) {
        snprintf(out, capacity, "%lu h %02lu min", whole / 3600, whole % 3600 / 60);
    } else if (whole >= 60) {
        snprintf(out, capacity, "%lu min %02lu s", whole / 60, whole % 60);
    } else {
        snprintf(out, capacity, "%lu s", whole);
    }
}

static void print_line(const struct bhi_batch_progress *progress,
                       const struct bhi_queue_counts *counts, char line[LINE]) {
    const uint64_t *of = counts->of;
    const uint64_t ended = count_ended(counts), failed = of[BHI_JOB_FAILED];
    const double seconds = (double)(bhi_clock_ns() - progress->began_ns) / 1e9;
    const double rate = seconds > 0 ? (double)(ended - progress->ended_before) / seconds : 0;
    int used = snprintf(line, LINE, "%llu of %llu done", (unsigned long long)of[BHI_JOB_DONE],
                        (unsigned long long)counts->total);
    /* In a log all lines but the last have the same fields. */
    if (failed || (!progress->terminal && ended < counts->total)) {
        used +=
            snprintf(line + used, LINE - (size_t)used, ", %llu failed", (unsigned long long)failed);
    }
    if (of[BHI_JOB_QUARANTINED]) {
        used += snprintf(line + used, LINE - (size_t)used, ", %llu quarantined",
                         (unsigned long long)of[BHI_JOB_QUARANTINED]);
    }
    if (of[BHI_JOB_CANCELLED]) {
        used += snprintf(line + used, LINE - (size_t)used, ", %llu cancelled",
                         (unsigned long long)of[BHI_JOB_CANCELLED]);
    }
    if (ended < counts->total) {
        used += snprintf(line + used, LINE - (size_t)used, ", %llu running, %llu waiting",
                         (unsigned long long)of[BHI_JOB_RUNNING],
                         (unsigned long long)(of[BHI_JOB_WAITING] + of[BHI_JOB_SUBMITTED]));
    }
    if (rate > 0 && (seconds >= 0.5 || ended == counts->total)) {
        if (rate < 1) {
            used += snprintf(line + used, LINE - (size_t)used, ", %.1f jobs/min", rate * 60);
        } else {
            used += snprintf(line + used, LINE - (size_t)used,
                             rate < 10 ? ", %.1f jobs/s" : ", %.0f jobs/s", rate);
        }
        /* After the end nothing more runs, even if jobs are left. */
        if (ended < counts->total && !progress->over) {
            char time[40];
            print_time(time, sizeof time, (double)(counts->total - ended) / rate);
            snprintf(line + used, LINE - (size_t)used, ", %s left", time);
        }
    }
}

/* A line that wraps cannot be replaced, so it is cut. */
static int width(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
}

static void erase(struct bhi_batch_progress *progress) {
    if (progress->shown) {
        fputs("\r\033[K", stderr);
    }
    progress->shown = false;
}

static void draw(struct bhi_batch_progress *progress, const struct bhi_queue_counts *counts) {
    char line[LINE];
    print_line(progress, counts, line);
    if (!progress->terminal) {
        fprintf(stderr, "%s\n", line);
        return;
    }
    fprintf(stderr, "\r%.*s\033[K", width(), line);
    fflush(stderr);
    progress->shown = true;
}

void bhi_progress_update(struct bhi_batch_progress *progress,
                         const struct bhi_queue_counts *counts) {
    const uint64_t now = bhi_clock_ns();
    if (!progress->begun) {
        progress->begun = true;
        progress->ended_before = count_ended(counts);
    }
    if (!progress->terminal && now - progress->told_ns < plain_every_ns) {
        return;
    }
    progress->told_ns = now;
    draw(progress, counts);
}

void bhi_progress_tell(struct bhi_batch_progress *progress, const struct bhi_job *job,
                       const struct bhi_attempt *attempt, bool verbose) {
    const bool lost = attempt->next == BHI_JOB_FAILED || attempt->next == BHI_JOB_QUARANTINED;
    const bool again = attempt->next == BHI_JOB_WAITING && verbose;
    char id[300], message[600];
    if (!lost && !again) {
        return;
    }
    if (lost && ++progress->failures > MOST_FAILURES + 1) {
        return;
    }
    erase(progress);
    if (lost && progress->failures > MOST_FAILURES) {
        fputs("further failures are listed at the end\n", stderr);
        return;
    }
    const char *colour = progress->coloured ? lost ? "\033[31m" : "\033[33m" : "";
    fprintf(stderr, "%s%s%s: %s, %s: %s\n", colour, bhi_text_clean(id, sizeof id, job->id),
            progress->coloured ? "\033[0m" : "",
            lost ? bhi_job_state_name(attempt->next) : "tried again",
            bh_status_name(attempt->verdict.status),
            bhi_text_clean(message, sizeof message, attempt->verdict.message));
}

void bhi_progress_stuck(struct bhi_batch_progress *progress, const struct bhi_job *job,
                        const char *why) {
    char id[300], message[600];
    if (++progress->stuck > MOST_FAILURES) {
        return;
    }
    erase(progress);
    fprintf(stderr, "%s%s%s: complete, but cannot be put in place: %s\n",
            progress->coloured ? "\033[33m" : "", bhi_text_clean(id, sizeof id, job->id),
            progress->coloured ? "\033[0m" : "", bhi_text_clean(message, sizeof message, why));
}

void bhi_progress_waits(struct bhi_batch_progress *progress, const char *why) {
    char text[1024];
    erase(progress);
    fprintf(stderr, "waiting before the next try: %s\n", bhi_text_clean(text, sizeof text, why));
}

void bhi_progress_end(struct bhi_batch_progress *progress, const struct bhi_queue_counts *counts) {
    erase(progress);
    progress->over = true;
    if (!progress->terminal) {
        draw(progress, counts);
    }
}

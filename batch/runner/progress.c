#include "batch/runner/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool/clock.h"
#include "tool/quantity.h"
#include "tool/text.h"

enum {
    MOST_FAILURES = 50,
    LINE = 200,
    ENOUGH = 4, /* jobs that must have ended for a rate of the last minute */
};

static const uint64_t second_ns = 1000000000u;
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

/* As all times for people, but in whole seconds: "1 h 05 min", "3 min 20 s" or "12 s". */
static const char *print_time(char out[BHI_QUANTITY], uint64_t seconds) {
    if (seconds >= 60) {
        return bhi_quantity_time(out, seconds * second_ns);
    }
    snprintf(out, BHI_QUANTITY, "%u s", (unsigned)seconds);
    return out;
}

/* -- how fast -------------------------------------------------------------------------------- */

static void note_sample(struct bhi_batch_progress *progress, uint64_t now, uint64_t ended) {
    const size_t newest = progress->sample_count - 1;
    if (progress->sample_count && now - progress->samples[newest].time_ns < second_ns) {
        return;
    }
    if (progress->sample_count == BHI_PROGRESS_SAMPLES) {
        memmove(progress->samples, progress->samples + 1, newest * sizeof *progress->samples);
        progress->sample_count--;
    }
    progress->samples[progress->sample_count++] = (struct bhi_progress_sample){now, ended};
}

/* How many jobs have ended, and in which time: in the last minute, if enough have ended in it to tell,
 * and otherwise since the beginning. */
static struct bhi_progress_sample pace_of(const struct bhi_batch_progress *progress, uint64_t now,
                                          uint64_t ended) {
    struct bhi_progress_sample from = {progress->began_ns, progress->ended_before};
    if (!progress->over && progress->sample_count && ended - progress->samples[0].ended >= ENOUGH) {
        from = progress->samples[0];
    }
    return (struct bhi_progress_sample){now - from.time_ns, ended - from.ended};
}

/* -- what holds it up --------------------------------------------------------------------------- */

/* Returns "" or what has kept jobs from ending for ten seconds. */
static const char *print_stall(const struct bhi_batch_progress *progress, uint64_t now,
                               char out[LINE]) {
    const size_t count = progress->late_count;
    char time[BHI_QUANTITY];
    out[0] = '\0';
    if (now - progress->moved_ns < plain_every_ns || progress->over) {
        return out;
    }
    if (!count) {
        print_time(time, (now - progress->moved_ns) / second_ns);
        snprintf(out, LINE, "no job has ended for %s", time);
        return out;
    }
    const int used =
        snprintf(out, LINE,
                 count == 1 ? "1 job runs into its deadline" : "%zu jobs run into their deadline%s",
                 count, progress->late_same ? "" : "s");
    if (progress->late_same) {
        snprintf(out + used, LINE - (size_t)used, " of %s",
                 progress->late_ns % second_ns ? bhi_quantity_time(time, progress->late_ns)
                                               : print_time(time, progress->late_ns / second_ns));
    }
    return out;
}

/* An attempt has passed its deadline, and the job is tried again: so the counts do not show it. */
static void note_late(struct bhi_batch_progress *progress, const struct bhi_job *job,
                      const struct bhi_attempt *attempt) {
    if (attempt->next != BHI_JOB_WAITING || attempt->verdict.status != BH_DEADLINE) {
        return;
    }
    progress->late_same =
        !progress->late_count || (progress->late_same && progress->late_ns == attempt->deadline_ns);
    progress->late_ns = attempt->deadline_ns;
    for (size_t i = 0; i < progress->late_count; i++) {
        if (progress->late[i] == job->number) {
            return;
        }
    }
    if (progress->late_count < BHI_PROGRESS_LATE) {
        progress->late[progress->late_count++] = job->number;
    }
}

/* -- the line ----------------------------------------------------------------------------------- */

/* Adds a field if all of it fits into |width|, and none was left out before it. */
static void add(char line[LINE], int width, bool *full, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void add(char line[LINE], int width, bool *full, const char *format, ...) {
    const size_t used = strlen(line);
    char field[LINE];
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(field, sizeof field, format, list);
    va_end(list);
    *full = *full || (int)used + (used ? 2 : 0) + length > width;
    if (!*full) {
        snprintf(line + used, LINE - used, "%s%s", used ? ", " : "", field);
    }
}

static void print_line(const struct bhi_batch_progress *progress,
                       const struct bhi_queue_counts *counts, int width, char line[LINE]) {
    const uint64_t *of = counts->of;
    const uint64_t now = bhi_clock_ns(), ended = count_ended(counts);
    const bool told = now - progress->began_ns >= second_ns / 2 || ended == counts->total;
    const struct bhi_progress_sample pace = pace_of(progress, now, ended);
    const bool paced = told && pace.time_ns > 0 && pace.ended > 0;
    bool full = false;
    char text[LINE], first[BHI_QUANTITY], second[BHI_QUANTITY];
    line[0] = '\0';
    /* First what matters most: a narrow terminal shows only the beginning. After the end nothing
     * more runs, even if jobs are left. */
    if (paced && ended < counts->total && !progress->over) {
        const double most = 1e9, left = (double)(counts->total - ended) / (double)pace.ended *
                                        (double)pace.time_ns / (double)second_ns;
        print_time(first, (uint64_t)((left < most ? left : most) + 0.5));
        add(line, width, &full, "%s left", first);
    }
    if (ended < counts->total && *print_stall(progress, now, text)) {
        add(line, width, &full, "%s", text);
    }
    add(line, width, &full, "%s of %s done", bhi_quantity_count(first, of[BHI_JOB_DONE]),
        bhi_quantity_count(second, counts->total));
    /* In a log all lines but the last have the same fields. */
    if (of[BHI_JOB_FAILED] || (!progress->terminal && ended < counts->total)) {
        add(line, width, &full, "%s failed", bhi_quantity_count(first, of[BHI_JOB_FAILED]));
    }
    if (of[BHI_JOB_QUARANTINED]) {
        bhi_quantity_count(first, of[BHI_JOB_QUARANTINED]);
        add(line, width, &full, "%s quarantined", first);
    }
    if (of[BHI_JOB_CANCELLED]) {
        add(line, width, &full, "%s cancelled", bhi_quantity_count(first, of[BHI_JOB_CANCELLED]));
    }
    if (ended < counts->total) {
        bhi_quantity_count(second, of[BHI_JOB_WAITING] + of[BHI_JOB_SUBMITTED]);
        add(line, width, &full, "%s running, %s waiting",
            bhi_quantity_count(first, of[BHI_JOB_RUNNING]), second);
    }
    if (paced) {
        add(line, width, &full, "%s", bhi_quantity_rate(first, pace.ended, pace.time_ns));
    }
}

static void erase(struct bhi_batch_progress *progress) {
    if (progress->shown) {
        fputs("\r\033[K", stderr);
    }
    progress->shown = false;
}

static void draw(struct bhi_batch_progress *progress, const struct bhi_queue_counts *counts) {
    char line[LINE];
    /* On a terminal a line that wraps cannot be replaced. */
    print_line(progress, counts, bhi_text_width(stderr) - (progress->terminal ? 1 : 0), line);
    if (!progress->terminal) {
        fprintf(stderr, "%s\n", line);
        return;
    }
    fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
    progress->shown = true;
}

void bhi_progress_update(struct bhi_batch_progress *progress,
                         const struct bhi_queue_counts *counts) {
    const uint64_t now = bhi_clock_ns(), ended = count_ended(counts);
    if (!progress->begun) {
        progress->begun = true;
        progress->ended_before = progress->moved_to = ended;
        progress->moved_ns = now;
    }
    if (ended != progress->moved_to) {
        progress->moved_to = ended;
        progress->moved_ns = now;
        progress->late_count = 0;
    }
    note_sample(progress, now, ended);
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
    note_late(progress, job, attempt);
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

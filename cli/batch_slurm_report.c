/* What `bulkhead batch --executor slurm` says of the jobs, from the shards' feeds. */
#include "cli/batch_slurm_parts.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/slurm/watch.h"
#include "tool/clock.h"
#include "tool/complain.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/quantity.h"

void bhi_batch_slurm_progress(struct bhi_shards *shards, const char *state) {
    struct bhi_complaint ignored; /* the report at the end says what is wrong */
    struct bhi_queue_counts counts;
    char number[2][BHI_QUANTITY];
    bool more;
    if ((!shards->path && !bhi_shards_open(state, shards, &ignored)) ||
        !bhi_shards_poll(shards, &more, &ignored)) {
        return;
    }
    bhi_shards_counts(shards, &counts);
    const uint64_t failed = counts.of[BHI_JOB_FAILED] + counts.of[BHI_JOB_QUARANTINED];
    fprintf(stderr, "%s of %s jobs done, ", bhi_quantity_count(number[0], counts.of[BHI_JOB_DONE]),
            bhi_quantity_count(number[1], counts.total));
    if (failed) {
        fprintf(stderr, "%s failed, ", bhi_quantity_count(number[0], failed));
    }
}

/* Returns the first shard whose records do not say how each of its jobs ended; all of |report| if
 * there is none. |out_ended|: how many jobs of it have ended. */
static uint32_t find_open(const struct bhi_slurm_report *report, uint64_t *out_ended) {
    const struct bhi_shards *shards = report->shards;
    size_t k = 0; /* they are in the order of their numbers, and one may be gone */
    for (uint32_t i = 0; i < report->count; i++) {
        while (k < shards->count && strtoul(shards->shards[k].name, NULL, 10) < i) {
            k++;
        }
        *out_ended = 0;
        if (k < shards->count && strtoul(shards->shards[k].name, NULL, 10) == i) {
            const uint64_t *of = shards->shards[k].of;
            *out_ended = of[BHI_JOB_DONE] + of[BHI_JOB_FAILED] + of[BHI_JOB_QUARANTINED];
        }
        if (*out_ended != report->sizes[i]) {
            return i;
        }
    }
    return report->count;
}

/* Reads what the shards have recorded. If all tasks have ended well, so have all jobs; a network
 * file system may show the last of them later. */
static bool read_all(struct bhi_slurm_report *report, struct bhi_complaint *complaint) {
    const uint64_t end = bhi_clock_ns() + BHI_WATCH_SETTLES_NS;
    const bool well = !report->stuck && !report->cancelled;
    do {
        if (!bhi_shards_read(report->shards, complaint)) {
            report->open = report->count;
            return false;
        }
        report->open = well ? find_open(report, &report->ended) : report->count;
    } while (report->open < report->count && bhi_clock_ns() < end &&
             bhi_interrupt_pause(BHI_WATCH_TICK_NS));
    return true;
}

static int print(struct bhi_slurm_report *report, struct bhi_shards *shards) {
    struct bhi_shards_report *what = &report->what;
    struct bhi_complaint complaint;
    struct bhi_queue_counts counts;
    bool good = read_all(report, &complaint);
    bhi_shards_counts(shards, &counts);
    const bool failed =
        counts.of[BHI_JOB_FAILED] + counts.of[BHI_JOB_QUARANTINED] + what->bad_count > 0;
    const bool open = report->open < report->count;
    what->exit_status = report->cancelled       ? BHI_EXIT_SIGNALLED + SIGTERM
                        : report->stuck || open ? BHI_EXIT_ENVIRON
                        : failed                ? BHI_EXIT_POISONED
                                                : BHI_EXIT_READY;
    if (bhi_interrupt_signal()) {
        return bhi_interrupt_exit_status();
    }
    good = good && bhi_shards_report(shards, what, &complaint);
    if (!good) {
        if (!ferror(stdout)) { /* otherwise the end of the program reports it */
            bhi_complain("batch", "%s", complaint.text);
        }
        return BHI_EXIT_ENVIRON;
    }
    if (report->again && !what->json) {
        printf("\n%u task%s submitted again\n", report->again,
               report->again == 1 ? " was" : "s were");
    }
    return what->exit_status;
}

int bhi_batch_slurm_report(struct bhi_slurm_report *report) {
    struct bhi_complaint complaint;
    struct bhi_shards *shards = report->shards;
    if (!shards->path && !bhi_shards_open(report->state, shards, &complaint)) {
        return bhi_complain_environ("batch", "%s", complaint.text);
    }
    const int exit_status = print(report, shards);
    char who[BHI_SHARDS_WHO];
    (void)bhi_shards_cancelled_by(shards->folder, who);
    if (bhi_interrupt_signal()) {
        return exit_status;
    }
    if (report->stuck) {
        bhi_complain("batch", "%u shard%s stuck: fix what is said above before you continue",
                     report->stuck, report->stuck == 1 ? " is" : "s are");
    }
    if (report->open < report->count) {
        bhi_complain("batch",
                     "shard %u: its task ended well, but its records say so of %llu of its %llu "
                     "jobs: they are damaged or gone. Remove %.600s/shards/%04u/ended; then "
                     "--resume runs the jobs that have not ended",
                     report->open, (unsigned long long)report->ended,
                     (unsigned long long)report->sizes[report->open], report->state, report->open);
    }
    if (report->cancelled) {
        bhi_complain("batch", "cancelled (--cancel)%s%s: %u shard%s not ended", *who ? " " : "",
                     who, report->cancelled, report->cancelled == 1 ? " has" : "s have");
    }
    return exit_status;
}

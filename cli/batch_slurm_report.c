#include "cli/batch_slurm_report.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tool/complain.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/report/quantity.h"

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

static int print(struct bhi_slurm_report *report, struct bhi_shards *shards) {
    struct bhi_shards_report *what = &report->what;
    struct bhi_complaint complaint;
    struct bhi_queue_counts counts;
    bool good = bhi_shards_read(shards, &complaint);
    bhi_shards_counts(shards, &counts);
    const bool failed =
        counts.of[BHI_JOB_FAILED] + counts.of[BHI_JOB_QUARANTINED] + what->bad_count > 0;
    what->exit_status = report->cancelled ? BHI_EXIT_SIGNALLED + SIGTERM
                        : report->stuck   ? BHI_EXIT_ENVIRON
                        : failed          ? BHI_EXIT_POISONED
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
        bhi_complain("batch", "%s", complaint.text);
        return BHI_EXIT_ENVIRON;
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
    if (report->cancelled) {
        bhi_complain("batch", "cancelled (--cancel)%s%s: %u shard%s not ended", *who ? " " : "",
                     who, report->cancelled, report->cancelled == 1 ? " has" : "s have");
    }
    return exit_status;
}

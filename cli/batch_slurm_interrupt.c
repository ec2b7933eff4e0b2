/* A signal during bulkhead batch --executor slurm. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/owner.h"
#include "batch/runner/cancel.h"
#include "cli/batch_slurm.h"
#include "cli/batch_slurm_parts.h"
#include "tool/complain.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"

static bool wants_cancel(const struct bhi_slurm_batch *batch) {
    char answer[16];
    if (batch->options->on_interrupt != BHI_INTERRUPT_ASKS) {
        return batch->options->on_interrupt == BHI_INTERRUPT_CANCELS;
    }
    if (bhi_interrupt_signal() != SIGINT || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        return false;
    }
    fprintf(stderr, "\nCancel the job array? Otherwise it goes on. [y/N] ");
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static bool has_submitted(const struct bhi_slurm_batch *batch) {
    bool has = false;
    for (size_t i = 0; i < batch->array.round_count; i++) {
        has |= batch->array.rounds[i].job > 0;
    }
    return has;
}

/* What an sbatch that was cut off has sent may come to the controller after the first look. The
 * file ends what comes even later, when it begins. */
static bool cancel_array(struct bhi_slurm_batch *batch, uint32_t *out_tasks,
                         struct bhi_complaint *complaint) {
    bool good = bhi_slurm_cancel_all(batch->array.id, out_tasks, complaint);
    if (good && batch->watch.unsure) {
        const int mark = openat(batch->folder.fd, BHI_CANCEL_FILE,
                                O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (mark >= 0) {
            close(mark);
        }
        if (!*out_tasks) {
            sleep(1);
            good = bhi_slurm_cancel_all(batch->array.id, out_tasks, complaint);
        }
    }
    return good;
}

int bhi_batch_slurm_end_interrupted(struct bhi_slurm_batch *batch) {
    struct bhi_complaint complaint;
    uint32_t tasks;
    BHI_AUTO_FREE char *word = bhi_batch_slurm_word(batch->given_state);
    const char *state = word ? word : batch->given_state;
    const char *name = sigabbrev_np(bhi_interrupt_signal());
    const bool submitted = has_submitted(batch) || batch->watch.unsure;
    batch->continues = submitted;
    if (!submitted) {
        bhi_complain("batch", "cancelled by SIG%s; nothing%s was submitted", name,
                     batch->resume ? " more" : "");
    } else if (bhi_watch_is_over(&batch->watch)) {
        batch->continues = bhi_watch_stuck(&batch->watch, &tasks) > 0;
        bhi_complain("batch", "SIG%s: all tasks have ended; bulkhead batch --status %s reports",
                     name, state);
    } else if (wants_cancel(batch)) {
        if (!cancel_array(batch, &tasks, &complaint)) {
            bhi_complain("batch", "SIG%s: the job array is not cancelled: %s", name,
                         complaint.text);
        } else if (tasks) {
            bhi_complain("batch", "SIG%s: the job array is cancelled; --resume continues", name);
        } else {
            bhi_complain("batch",
                         "SIG%s: Slurm's queue has no task of this batch; --resume continues",
                         name);
        }
    } else if (batch->watch.unsure) {
        bhi_complain("batch",
                     "SIG%s: the answer of sbatch did not come, and it may have submitted %s; "
                     "--resume finds out and follows it, bulkhead batch --cancel %s ends it",
                     name, has_submitted(batch) ? "one more job array" : "the job array", state);
    } else {
        bhi_complain("batch",
                     "SIG%s: what is submitted goes on; --resume follows it again, bulkhead batch "
                     "--cancel %s "
                     "ends it",
                     name, state);
    }
    return bhi_interrupt_exit_status();
}

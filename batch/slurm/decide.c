#include "batch/slurm/decide.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "tool/exit_status.h"

#define SECOND     UINT64_C(1000000000)
#define MOST_DELAY (60 * SECOND)

static void name_place(const struct bhi_slurm_shard_observation *seen,
                       char out[BHI_SLURM_NODE + 8]) {
    const char *node = *seen->node ? seen->node : seen->ending ? seen->ending->node : "";
    bhi_format(out, BHI_SLURM_NODE + 8, "%s%.63s", *node ? " on " : "", node);
}

/* What Slurm says, and what the task said where that is more. */
static void describe(const struct bhi_slurm_shard_observation *seen, char *out, size_t capacity) {
    char place[BHI_SLURM_NODE + 8];
    name_place(seen, place);
    const int status = seen->ending ? seen->ending->status : 0;
    if (seen->state != BHI_SLURM_ENDED && (seen->state != BHI_SLURM_GONE || !seen->ending)) {
        bhi_format(out, capacity, "%.31s%s", *seen->name ? seen->name : "vanished", place);
    } else if (!seen->ending) {
        bhi_format(out, capacity, "its task ended%s and left no word", place);
    } else if (status > BHI_EXIT_SIGNALLED) {
        const char *signal = sigabbrev_np(status - BHI_EXIT_SIGNALLED);
        bhi_format(out, capacity, "its batch was ended by SIG%s%s", signal ? signal : "?", place);
    } else {
        bhi_format(out, capacity, "its batch ended with status %d%s", status, place);
    }
}

static void decide_again(const struct bhi_slurm_shard_observation *seen,
                         struct bhi_slurm_shard_decision *decision) {
    const uint32_t fruitless = seen->progressed ? 0 : seen->fruitless;
    describe(seen, decision->why, sizeof decision->why);
    if (seen->busy) {
        const size_t used = strlen(decision->why);
        snprintf(decision->why + used, sizeof decision->why - used,
                 " (an earlier task of it still runs)");
    }
    decision->action = BHI_SLURM_SHARD_AGAIN;
    if (fruitless > 0) {
        decision->delay_ns = SECOND << (fruitless < 7 ? fruitless - 1 : 6);
        decision->delay_ns = decision->delay_ns < MOST_DELAY ? decision->delay_ns : MOST_DELAY;
    }
    if (!seen->progressed && !seen->busy && fruitless + 1 >= BHI_SLURM_SHARD_FRUITLESS) {
        const size_t used = strlen(decision->why);
        decision->action = BHI_SLURM_SHARD_STUCK;
        snprintf(decision->why + used, sizeof decision->why - used,
                 ", and no job ended in %u tasks in a row", fruitless + 1);
    }
}

/* The task has used up what it had. If a job ended in it, the others may fit into the next one. */
static void decide_limit(const struct bhi_slurm_shard_observation *seen, const char *limit,
                         const char *remedy, struct bhi_slurm_shard_decision *decision) {
    if (seen->progressed) {
        decide_again(seen, decision);
        return;
    }
    char place[BHI_SLURM_NODE + 8];
    name_place(seen, place);
    decision->action = BHI_SLURM_SHARD_STUCK;
    bhi_format(decision->why, sizeof decision->why, "%.31s%s: %s before a job ended%s%.120s: %s",
               seen->name, place, limit, *seen->cut_off ? "; it was running " : "", seen->cut_off,
               remedy);
}

static void decide(const struct bhi_slurm_shard_observation *seen,
                   struct bhi_slurm_shard_decision *out_decision) {
    *out_decision = (struct bhi_slurm_shard_decision){.action = BHI_SLURM_SHARD_WAITS};
    const int status = seen->ending ? seen->ending->status : -1;
    if (status == BHI_EXIT_READY || status == BHI_EXIT_POISONED) {
        out_decision->action = BHI_SLURM_SHARD_ENDED;
        out_decision->status = status;
        return;
    }
    if (status == BHI_EXIT_USAGE) {
        out_decision->action = BHI_SLURM_SHARD_STUCK;
        snprintf(out_decision->why, sizeof out_decision->why, "its batch was refused (status 2)");
        return;
    }
    switch (seen->state) {
    case BHI_SLURM_UNKNOWN:
    case BHI_SLURM_PENDING:
    case BHI_SLURM_RUNNING:
        return;
    case BHI_SLURM_ENDED:
    case BHI_SLURM_GONE:
        if (seen->ending || seen->settled) {
            decide_again(seen, out_decision);
        }
        return;
    case BHI_SLURM_VICTIM:
        decide_again(seen, out_decision);
        return;
    case BHI_SLURM_TIME:
        decide_limit(seen, "the time limit passed", "give more (--time)", out_decision);
        return;
    case BHI_SLURM_MEMORY:
        decide_limit(seen, "the task's memory was used up",
                     "give more (--sbatch-option --mem=SIZE), or fewer --streams", out_decision);
        return;
    case BHI_SLURM_CANCELLED:
        describe(seen, out_decision->why, sizeof out_decision->why);
        out_decision->action = BHI_SLURM_SHARD_STUCK;
        return;
    }
}

bool bhi_slurm_shard_looks_cancelled(const struct bhi_slurm_shard_observation *seen) {
    return seen->state == BHI_SLURM_CANCELLED ||
           (seen->ending && seen->ending->status == BHI_EXIT_SIGNALLED + SIGTERM) ||
           (seen->state == BHI_SLURM_GONE && !seen->ending);
}

void bhi_slurm_shard_decide(const struct bhi_slurm_shard_observation *seen,
                            struct bhi_slurm_shard_decision *out_decision) {
    decide(seen, out_decision);
    if (seen->cancelled &&
        (out_decision->action == BHI_SLURM_SHARD_AGAIN ||
         (out_decision->action == BHI_SLURM_SHARD_STUCK && seen->state == BHI_SLURM_CANCELLED))) {
        out_decision->action = BHI_SLURM_SHARD_STUCK;
        out_decision->cancelled = true;
        snprintf(out_decision->why, sizeof out_decision->why, BHI_SLURM_SHARD_CANCELLED);
    }
}

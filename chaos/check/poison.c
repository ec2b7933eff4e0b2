/* Collateral: every POISONED operation was a fault itself, or its worker was hit by one, or
 * something that it needed was poisoned, and its verdict says which (E5, E7, E14). */
#include "chaos/check/rules.h"
#include "chaos/history/fields.h"

#include <string.h>

typedef unsigned long long ull;

static void blame(struct bhi_check *check, const struct bhi_ledger_op *op, const char *why) {
    bhi_find(check, BHI_ANOMALY_COLLATERAL, op->number, op->end,
             "operation %llu is POISONED (%s), %s", (ull)op->number,
             bhi_status_word(op->end->end.status), why);
}

static void judge_blame(struct bhi_check *check, const struct bhi_ledger_op *op,
                        enum bhi_blame found) {
    switch (found) {
    case BHI_BLAME_FAULT:
        return;
    case BHI_BLAME_MACHINE:
        bhi_find(check, BHI_ANOMALY_UNKNOWN, op->number, op->end,
                 "operation %llu is POISONED (%s), and nothing explains it except that the machine "
                 "stood still",
                 (ull)op->number, bhi_status_word(op->end->end.status));
        return;
    case BHI_BLAME_NONE:
        blame(check, op, "and no fault explains it");
        return;
    }
}

/* -- poison from elsewhere ------------------------------------------------------------------- */

/* Returns true if |op| has the verdict of |need|, one hop further from the origin. */
static bool comes_from(const struct bhi_ledger_op *op, const struct bhi_ledger_op *need) {
    if (!bhi_ledger_poisoned(need)) {
        return false;
    }
    const struct bhi_record *end = op->end, *cause = need->end;
    return cause->end.origin == end->end.origin && cause->end.hops + 1 == end->end.hops &&
           cause->end.status == end->end.status && cause->end.signal == end->end.signal &&
           cause->end.worker_pid == end->end.worker_pid;
}

/* Outputs in device memory are moved, and read back, by copies of the library's own, which run on a
 * worker of the stream that the memory was made for, and are not in the history. They are made again
 * if that worker dies. */
static bool has_copies(const struct bhi_check *check, uint32_t stream) {
    for (size_t i = 0; i < check->ledger.op_count; i++) {
        const struct bhi_record *submit = check->ledger.ops[i].submit;
        if (submit->submit.device && submit->stream == stream) {
            return true;
        }
    }
    return false;
}

/* Returns true if |op| lost the output of |need|, which was READY: the copies of it passed their
 * deadlines. Such a copy is made once more, so that takes a device that stands still. */
static bool lost_content_of(const struct bhi_ledger_op *op, const struct bhi_ledger_op *need) {
    return bhi_ledger_ready(need) && need->submit->submit.device &&
           op->end->end.status == BH_DEADLINE && op->end->end.hops == 1 &&
           op->end->end.origin == need->submit->submit.event;
}

/* Checks a verdict whose poison came from a dependency. The same check of that dependency leads on,
 * down to the operation where the poison began. */
static void check_inherited(struct bhi_check *check, const struct bhi_ledger_op *op) {
    const struct bhi_record *end = op->end;
    bool found = comes_from(op, op->wait), lost = false;
    for (uint32_t i = 0; i < op->submit->submit.input_count; i++) {
        found |= comes_from(op, op->inputs[i]);
        lost |= lost_content_of(op, op->inputs[i]);
    }
    if (!bhi_ledger_find_event(&check->ledger, end->end.origin)) {
        blame(check, op, "and its origin is not an operation of the run");
    } else if (end->end.origin == op->submit->submit.event) {
        blame(check, op, "and its verdict names itself as the origin, at a distance");
    } else if (!found && lost) {
        judge_blame(check, op, bhi_blame_of_copy(check, op));
    } else if (!found) {
        blame(check, op, "and no dependency of it has the same verdict with one hop less");
    }
}

/* Returns true if |op| was on no worker yet, because an operation of another stream that it needs
 * had not ended (E15). */
static bool was_held(const struct bhi_ledger_op *op) {
    const struct bhi_ledger_op *needs[BHI_CHAOS_INPUTS + 1];
    memcpy(needs, op->inputs, sizeof op->inputs);
    needs[BHI_CHAOS_INPUTS] = op->wait;
    for (size_t i = 0; i < BHI_CHAOS_INPUTS + 1; i++) {
        if (bhi_ledger_ready(needs[i]) && needs[i]->submit->stream != op->submit->stream &&
            needs[i]->end->end.ended_ns > op->end->end.ended_ns + BHI_CLOCK_SLACK_NS) {
            return true;
        }
    }
    return false;
}

/* Returns true if |op| ran when its worker died. If poison from elsewhere had reached |op| while it
 * ran, its verdict describes that poison, and says of its own run only that it had begun and not
 * finished. */
static bool ended_its_worker(const struct bhi_ledger_op *op) {
    if (!bhi_ledger_poisoned(op)) {
        return false;
    }
    if (op->end->end.hops) {
        return op->end->end.started_ns && op->end->end.executed != BH_EXECUTED_YES;
    }
    return op->end->end.origin == op->submit->submit.event;
}

/* Checks an operation that was lost with a worker, whose death another operation had caused. */
static void check_neighbour(struct bhi_check *check, const struct bhi_ledger_op *op) {
    const struct bhi_record *end = op->end;
    const struct bhi_ledger_op *culprit = bhi_ledger_find_event(&check->ledger, end->end.origin);
    if (end->end.status != BH_WORKER_LOST) {
        blame(check, op, "its status is not WORKER_LOST, and its origin is another event");
    } else if (!culprit) {
        blame(check, op, "and its origin is not an operation of the run");
    } else if (culprit == op || !ended_its_worker(culprit)) {
        blame(check, op, "and the operation that it names as its origin did not end its worker");
    } else if (culprit->end->end.worker_pid != end->end.worker_pid || !end->end.worker_pid ||
               culprit->submit->stream != op->submit->stream) {
        blame(check, op, "and the operation that it names as its origin ran on another worker");
    }
}

/* -- its own cause --------------------------------------------------------------------------- */

static void check_own(struct bhi_check *check, const struct bhi_ledger_op *op) {
    const bool by_copy = op->end->end.status == BH_WORKER_LOST && op->end->end.worker_pid &&
                         has_copies(check, op->submit->stream);
    judge_blame(check, op, by_copy ? bhi_blame_of_copy(check, op) : bhi_blame_of(check, op));
}

/* -- calls ----------------------------------------------------------------------------------- */

static void check_refused(struct bhi_check *check, const struct bhi_record *record) {
    bh_status status = record->refused.status;
    if (bhi_is_shortage(status) && bhi_was_full(check, record->at_ns, record->at_ns)) {
        return;
    }
    bhi_find(check, BHI_ANOMALY_COLLATERAL, record->op, record,
             "%s for operation %llu was refused (%s), and no injected shortage explains it",
             record->refused.call, (ull)record->op, bhi_status_word(status));
}

void bhi_check_poison(struct bhi_check *check) {
    const struct bhi_ledger *ledger = &check->ledger;
    BHI_LEDGER_OPS(op, ledger) {
        if (!bhi_ledger_poisoned(op)) {
            continue;
        }
        const char *times = bhi_impossible_times(op);
        if (times) {
            blame(check, op, times);
        } else if (op->end->end.status == BH_OK) {
            blame(check, op, "and its status says that nothing is wrong");
        } else if (op->end->end.hops) {
            check_inherited(check, op);
        } else if (op->end->end.worker_pid && was_held(op)) {
            blame(check, op, "and a worker had it before its dependencies had ended");
        } else if (op->end->end.origin != op->submit->submit.event) {
            check_neighbour(check, op);
        } else {
            check_own(check, op);
        }
    }
    BHI_RECORDS_OF(record, check->history, BHI_RECORD_REFUSED) {
        check_refused(check, record);
    }
}

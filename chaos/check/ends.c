/* Lost: each operation has exactly one end, in time (E9). Changed: every look gives the same answer
 * (E1, E2). */
#include "chaos/check/rules.h"

typedef unsigned long long ull;

/* Returns what is impossible about the times of an operation, or NULL. All times are of one clock.
 * The run noted when it was about to submit, and when it had seen the end. */
const char *bhi_impossible_times(const struct bhi_ledger_op *op) {
    const struct bhi_record *end = op->end;
    const uint64_t submitted_ns = end->end.submitted_ns, started_ns = end->end.started_ns;
    if (bhi_later(submitted_ns, BHI_CLOCK_SLACK_NS) < op->submit->at_ns) {
        return "its verdict dates the submission before the call";
    }
    if (end->end.ended_ns > bhi_later(end->at_ns, BHI_CLOCK_SLACK_NS)) {
        return "its verdict dates the end after the wait returned";
    }
    if (submitted_ns > end->end.ended_ns ||
        (started_ns && (submitted_ns > started_ns || started_ns > end->end.ended_ns))) {
        return "the times in its verdict are out of order";
    }
    return NULL;
}

/* Returns true if the end was seen long after it came. The collector may have waited for an earlier
 * operation first, but at most for the run's patience. A longer delay can only come from a late
 * wake-up of the waiting thread. */
static bool was_told_late(const struct bhi_record *end, uint64_t patience_ns) {
    const uint64_t most_ns = bhi_later(patience_ns, patience_ns);
    return patience_ns && end->at_ns > bhi_later(end->end.ended_ns, most_ns);
}

static void check_lost(struct bhi_check *check, const struct bhi_ledger_op *op) {
    const struct bhi_history *history = check->history;
    uint64_t patience_ns = history->header.patience_ns;
    uint64_t begin_ns = op->submit->at_ns;
    if (!op->end) {
        if (history->complete && !history->overflow) {
            bhi_find(check, BHI_ANOMALY_LOST, op->number, op->submit,
                     "operation %llu has no end, and was not waited for", (ull)op->number);
        }
        return;
    }
    bool late = !op->end->end.lost && patience_ns && op->end->end.ended_ns > begin_ns &&
                op->end->end.ended_ns - begin_ns > patience_ns;
    bool pending = !op->end->end.lost && op->end->end.state == BH_EVENT_PENDING;
    bool untold = !op->end->end.lost && was_told_late(op->end, patience_ns);
    if (!op->end->end.lost && !late && !pending && !untold) {
        return;
    }
    /* The run gave up before the patience was over; then a slow machine is no excuse. */
    bool premature = op->end->end.lost && op->end->at_ns < bhi_later(begin_ns, patience_ns);
    uint64_t stalled_ns =
        bhi_ledger_held_up(&check->ledger, op->submit->stream, begin_ns, op->end->at_ns);
    const char *how = op->end->end.lost ? "did not end within the run's patience"
                      : late            ? "ended later than the run's patience"
                      : pending         ? "was still pending when its end was recorded"
                                        : "ended, but no wait returned within the run's patience";
    if (!pending && !premature && stalled_ns && patience_ns && stalled_ns >= patience_ns / 4) {
        bhi_find(check, BHI_ANOMALY_UNKNOWN, op->number, op->end,
                 "operation %llu %s; the machine stood still for %llu ms of it", (ull)op->number,
                 how, (ull)(stalled_ns / BHI_MS));
    } else {
        bhi_find(check, BHI_ANOMALY_LOST, op->number, op->end, "operation %llu %s (%llu ms)",
                 (ull)op->number, how, (ull)(patience_ns / BHI_MS));
    }
}

void bhi_check_ends(struct bhi_check *check) {
    const struct bhi_history *history = check->history;
    BHI_LEDGER_OPS(op, &check->ledger) {
        check_lost(check, op);
    }
    BHI_RECORDS_OF(record, history, BHI_RECORD_END) {
        const struct bhi_ledger_op *op = bhi_ledger_find(&check->ledger, record->op);
        if (op && op->end != record) {
            bhi_find(check, BHI_ANOMALY_CHANGED, op->number, record, "operation %llu ended twice",
                     (ull)op->number);
        }
        if (record->end.changed) {
            bhi_find(check, BHI_ANOMALY_CHANGED, record->op, record,
                     "a later look at the event of operation %llu gave another answer",
                     (ull)record->op);
        }
    }
}

/* Recovery: after each fault, each stream that it hit must have a READY result within the bound.
 * Its operation must have begun after the fault, on a worker that the fault did not end. If another
 * fault hits the stream earlier, the bound counts from that fault. */
#include "base/sort.h"
#include "chaos/check/rules.h"

#include <stdlib.h>

typedef unsigned long long ull;

/* What is known of one stream. */
struct lane {
    const struct bhi_record **ready; /* ENDs, by when they began */
    size_t ready_count;
    struct blow *blows; /* by time */
    size_t blow_count;
    uint64_t last_submitted_ns;
};

/* A fault as seen by one stream. */
struct blow {
    uint64_t at_ns;    /* a READY that began after this is a recovery */
    uint64_t since_ns; /* the bound counts from here */
    const struct bhi_ledger_fault *fault;
};

struct recoveries {
    struct lane lanes[BHI_CHAOS_STREAMS];
    uint64_t *times_ns;
    size_t count, capacity;
};

/* -- collecting ------------------------------------------------------------------------------ */

/* Returns false if the fault did nothing to a worker. */
static bool blow_of(const struct bhi_check *check, const struct bhi_ledger_fault *fault,
                    struct blow *out_blow) {
    *out_blow = (struct blow){.at_ns = fault->begin_ns, .since_ns = fault->end_ns, .fault = fault};
    if (fault->record->fault.kind == BHI_FAULT_STOP) {
        out_blow->since_ns = fault->begin_ns;
    }
    if (!bhi_fault_is_bait(fault->record->fault.kind)) {
        return true;
    }
    /* A bait takes effect when it ends, and has none if it never reached a worker. */
    const struct bhi_ledger_op *bait = bhi_ledger_find(&check->ledger, fault->record->op);
    if (!bhi_ledger_poisoned(bait) || bait->end->end.hops) {
        return false;
    }
    out_blow->at_ns = out_blow->since_ns = bait->end->end.ended_ns;
    return true;
}

BHI_ORDER_AT(by_begin, struct bhi_record, end.started_ns)

BHI_ORDER(by_time, struct blow, at_ns)

static bool collect_ready(const struct bhi_check *check, struct lane *lane, uint32_t stream) {
    const struct bhi_ledger *ledger = &check->ledger;
    lane->ready = calloc(ledger->op_count + 1, sizeof *lane->ready);
    if (!lane->ready) {
        return false;
    }
    BHI_LEDGER_OPS(op, ledger) {
        if (op->submit->stream != stream) {
            continue;
        }
        if (op->submit->at_ns > lane->last_submitted_ns) {
            lane->last_submitted_ns = op->submit->at_ns;
        }
        if (bhi_ledger_ready(op)) {
            lane->ready[lane->ready_count++] = op->end;
        }
    }
    qsort(lane->ready, lane->ready_count, sizeof *lane->ready, by_begin);
    return true;
}

static bool collect_blows(const struct bhi_check *check, struct lane *lane, uint32_t stream) {
    const struct bhi_ledger *ledger = &check->ledger;
    lane->blows = calloc(ledger->fault_count + 1, sizeof *lane->blows);
    if (!lane->blows) {
        return false;
    }
    for (size_t i = 0; i < ledger->fault_count; i++) {
        const struct bhi_ledger_fault *fault = &ledger->faults[i];
        if (bhi_ledger_hit_stream(ledger, fault, stream) &&
            blow_of(check, fault, &lane->blows[lane->blow_count])) {
            lane->blow_count++;
        }
    }
    qsort(lane->blows, lane->blow_count, sizeof *lane->blows, by_time);
    return true;
}

/* -- judging --------------------------------------------------------------------------------- */

/* Returns true if a worker that the fault had hit still finished |ready|: that is no recovery. (A
 * stopped worker may be woken when another fault ends.) */
static bool by_the_dead(const struct bhi_record *ready, const struct bhi_record *fault) {
    enum bhi_fault_kind kind = fault->fault.kind;
    if (kind != BHI_FAULT_KILL && kind != BHI_FAULT_SEGV && kind != BHI_FAULT_GARBAGE &&
        kind != BHI_FAULT_CLOSE && kind != BHI_FAULT_ZYGOTE && kind != BHI_FAULT_DEVICE) {
        return false;
    }
    for (uint32_t i = 0; i < fault->fault.pid_count; i++) {
        if (fault->fault.pids[i] == ready->end.worker_pid) {
            return true;
        }
    }
    return false;
}

static const struct bhi_record *next_ready(const struct lane *lane, const struct blow *blow) {
    BHI_BISECT(low, lane->ready_count, lane->ready[middle]->end.started_ns < blow->at_ns)
    while (low < lane->ready_count && by_the_dead(lane->ready[low], blow->fault->record)) {
        low++;
    }
    return low < lane->ready_count ? lane->ready[low] : NULL;
}

static void judge(struct bhi_check *check, const struct lane *lane, uint32_t stream,
                  const struct blow *blow, const struct bhi_record *ready) {
    uint64_t bound_ns = check->history->header.recovery_ns;
    uint64_t until_ns = ready ? ready->end.ended_ns : check->ledger.last_ns;
    uint64_t took_ns = until_ns > blow->since_ns ? until_ns - blow->since_ns : 0;
    const struct bhi_record *record = blow->fault->record;
    const char *name = bhi_fault_name(record->fault.kind);
    if (!ready && (lane->last_submitted_ns < blow->since_ns ||
                   lane->last_submitted_ns - blow->since_ns < bound_ns)) {
        bhi_find(check, BHI_ANOMALY_UNKNOWN, 0, record,
                 "stream %u had no READY result after fault %llu (%s), but the run ended before it "
                 "was due",
                 stream, (ull)record->fault.number, name);
        return;
    }
    if (ready && took_ns <= bound_ns) {
        return;
    }
    uint64_t stalled_ns = bhi_ledger_held_up(&check->ledger, stream, blow->since_ns, until_ns);
    if (stalled_ns && took_ns <= bhi_later(bound_ns, stalled_ns)) {
        bhi_find(check, BHI_ANOMALY_UNKNOWN, ready ? ready->op : 0, record,
                 "stream %u had a READY result %llu ms after fault %llu (%s); the machine stood "
                 "still for %llu ms of it",
                 stream, (ull)(took_ns / BHI_MS), (ull)record->fault.number, name,
                 (ull)(stalled_ns / BHI_MS));
    } else {
        bhi_find(check, BHI_ANOMALY_RECOVERY, ready ? ready->op : 0, record,
                 "stream %u had no READY result within %llu ms of fault %llu (%s), but %s%llu ms",
                 stream, (ull)(bound_ns / BHI_MS), (ull)record->fault.number, name,
                 ready ? "after " : "none at all for ", (ull)(took_ns / BHI_MS));
    }
}

static void check_lane(struct bhi_check *check, struct recoveries *recoveries, uint32_t stream) {
    const struct lane *lane = &recoveries->lanes[stream];
    for (size_t i = 0; i < lane->blow_count; i++) {
        const struct blow *blow = &lane->blows[i];
        const struct bhi_record *ready = next_ready(lane, blow);
        if (ready) {
            recoveries->times_ns[recoveries->count++] = ready->end.ended_ns - blow->at_ns;
        }
        /* The stream was hit again within the bound. If nothing was READY before that, the bound
         * counts from the second fault. */
        if (i + 1 < lane->blow_count &&
            lane->blows[i + 1].at_ns <=
                bhi_later(blow->since_ns, check->history->header.recovery_ns)) {
            continue;
        }
        judge(check, lane, stream, blow, ready);
    }
}

/* -- the histogram --------------------------------------------------------------------------- */

static void summarise(struct bhi_chaos_result *result, struct recoveries *recoveries) {
    size_t count = recoveries->count;
    bhi_sort_u64(recoveries->times_ns, count);
    for (size_t i = 0; i < count; i++) {
        uint32_t bucket = 0;
        for (uint64_t hundreds = recoveries->times_ns[i] / 100000; hundreds > 1; hundreds /= 2) {
            bucket++;
        }
        result->recovery[bucket < BHI_RECOVERY_BUCKETS ? bucket : BHI_RECOVERY_BUCKETS - 1]++;
    }
    result->recovery_count = count;
    if (!count) {
        return;
    }
    /* By nearest rank: the smallest value that is at least as large as this share of the values;
     * with few values, the longest. */
    result->recovery_p50_ns = recoveries->times_ns[(count * 50 + 99) / 100 - 1];
    result->recovery_p99_ns = recoveries->times_ns[(count * 99 + 99) / 100 - 1];
    result->recovery_max_ns = recoveries->times_ns[count - 1];
}

bool bhi_check_recovery(struct bhi_check *check) {
    struct recoveries recoveries = {0};
    uint32_t streams = check->history->header.streams;
    bool good = true;
    for (uint32_t s = 0; s < streams && s < BHI_CHAOS_STREAMS && good; s++) {
        struct lane *lane = &recoveries.lanes[s];
        good = collect_ready(check, lane, s) && collect_blows(check, lane, s);
        recoveries.capacity += lane->blow_count;
    }
    if (good) {
        recoveries.times_ns = calloc(recoveries.capacity + 1, sizeof *recoveries.times_ns);
    }
    good = good && recoveries.times_ns;
    for (uint32_t s = 0; s < streams && s < BHI_CHAOS_STREAMS && good; s++) {
        check_lane(check, &recoveries, s);
    }
    if (good) {
        summarise(check->result, &recoveries);
    }
    for (uint32_t s = 0; s < BHI_CHAOS_STREAMS; s++) {
        free(recoveries.lanes[s].ready);
        free(recoveries.lanes[s].blows);
    }
    free(recoveries.times_ns);
    return good;
}

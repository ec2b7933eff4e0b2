/* Finds the fault that can have ended an operation whose verdict says that poison began with it. A
 * verdict names a worker, and a fault names the workers that it hit. Pids are reused after a while,
 * so the times must fit, too, and the status must be one that such a fault causes (E14).
 *
 * In the comments below, "it" is the operation whose END is |end|. */
#include "chaos/check/rules.h"

#include <signal.h>

static uint64_t recovery_of(const struct bhi_check *check) {
    return check->history->header.recovery_ns;
}

/* Returns until when a verdict may be blamed on the fault. */
static uint64_t reach_of(const struct bhi_check *check, const struct bhi_ledger_fault *fault) {
    if (fault->record->fault.kind == BHI_FAULT_STOP) {
        return UINT64_MAX; /* permanent: a stopped spare may get its stream much later */
    }
    return bhi_later(fault->end_ns, recovery_of(check));
}

/* Time in which the machine stood still does not count. */
static uint64_t held_up(const struct bhi_check *check, uint64_t from_ns, uint64_t to_ns) {
    return bhi_ledger_held_up(&check->ledger, UINT32_MAX, from_ns, to_ns);
}

static bool in_reach(const struct bhi_check *check, const struct bhi_ledger_fault *fault,
                     uint64_t ended_ns) {
    const uint64_t reach_ns = reach_of(check, fault);
    return fault->begin_ns <= bhi_later(ended_ns, BHI_CLOCK_SLACK_NS) &&
           (ended_ns <= reach_ns ||
            ended_ns <= bhi_later(reach_ns, held_up(check, fault->end_ns, ended_ns)));
}

/* -- deadlines ------------------------------------------------------------------------------- */

static uint64_t overlap(uint64_t a, uint64_t b, uint64_t from, uint64_t to) {
    uint64_t begin = a > from ? a : from, end = b < to ? b : to;
    return begin < end ? end - begin : 0;
}

/* Returns when it began on a worker. If no start was recorded, the submission is the earliest
 * time. */
static uint64_t began_ns(const struct bhi_record *end) {
    return end->end.started_ns ? end->end.started_ns : end->end.submitted_ns;
}

/* Returns how long its worker was stopped between the two times. */
static uint64_t stopped_for(const struct bhi_check *check, const struct bhi_record *end,
                            uint64_t from_ns, uint64_t to_ns) {
    size_t count;
    uint64_t total_ns = 0;
    const struct bhi_ledger_hit *hit = bhi_ledger_hits(&check->ledger, end->end.worker_pid, &count);
    for (; count > 0; count--, hit++) {
        const struct bhi_ledger_fault *fault = hit->fault;
        uint64_t until_ns = fault->end_ns;
        if (fault->record->fault.kind == BHI_FAULT_STOP) {
            until_ns = UINT64_MAX;
        } else if (fault->record->fault.kind != BHI_FAULT_SLOW) {
            continue;
        }
        total_ns += overlap(fault->begin_ns, until_ns, from_ns, to_ns);
    }
    return total_ns;
}

/* Returns how long its worker was stopped while it was on the worker. */
static uint64_t stopped_while_on(const struct bhi_check *check, const struct bhi_record *end) {
    return stopped_for(check, end, began_ns(end), end->end.ended_ns);
}

/* Returns true if a fault had cut its worker off from the host, so that its end could not be
 * reported. */
static bool was_cut_off(const struct bhi_check *check, const struct bhi_record *end) {
    size_t count;
    const struct bhi_ledger_hit *hit = bhi_ledger_hits(&check->ledger, end->end.worker_pid, &count);
    for (; count > 0; count--, hit++) {
        enum bhi_fault_kind kind = hit->fault->record->fault.kind;
        if ((kind == BHI_FAULT_GARBAGE || kind == BHI_FAULT_CLOSE) &&
            in_reach(check, hit->fault, end->end.ended_ns)) {
            return true;
        }
    }
    return false;
}

/* Returns true if a fault hit the worker of |bait|, a hang, while the hang ran: then nothing could
 * stop the kernel. */
static bool was_orphaned(const struct bhi_check *check, const struct bhi_record *bait) {
    size_t count;
    const struct bhi_ledger_hit *hit =
        bhi_ledger_hits(&check->ledger, bait->end.worker_pid, &count);
    for (; count > 0; count--, hit++) {
        if (hit->fault->begin_ns <= bhi_later(bait->end.ended_ns, BHI_CLOCK_SLACK_NS) &&
            bait->end.started_ns <= bhi_later(hit->fault->end_ns, BHI_CLOCK_SLACK_NS)) {
            return true;
        }
    }
    return false;
}

/* Returns for how long, while it was on the worker, a hang can have held the device (E16: one
 * shared GPU may slow healthy streams). Nothing stops a hang without the guard. */
static uint64_t held_for(const struct bhi_check *check, const struct bhi_record *end) {
    uint64_t held_ns = 0;
    for (size_t i = 0; i < check->ledger.fault_count && check->history->header.accelerator; i++) {
        const struct bhi_record *record = check->ledger.faults[i].record;
        const bool guarded = record->fault.kind == BHI_FAULT_HANG;
        if (!guarded && record->fault.kind != BHI_FAULT_UNGUARDED) {
            continue;
        }
        const struct bhi_ledger_op *bait = bhi_ledger_find(&check->ledger, record->op);
        if (!bhi_ledger_poisoned(bait) || !bait->end->end.started_ns ||
            (guarded && !was_orphaned(check, bait->end))) {
            continue;
        }
        const uint64_t ns =
            overlap(bait->end->end.started_ns, bhi_later(bait->end->end.ended_ns, BHI_HELD_NS),
                    began_ns(end), end->end.ended_ns);
        held_ns = ns > held_ns ? ns : held_ns;
    }
    return held_ns;
}

/* Returns true if its worker waited for a processor for a quarter of |limit_ns| or more. */
static bool was_starved(const struct bhi_check *check, const struct bhi_record *end,
                        uint64_t from_ns, uint64_t limit_ns) {
    const uint64_t starved_ns =
        bhi_ledger_starved(&check->ledger, end->end.worker_pid, from_ns, end->end.ended_ns);
    return starved_ns && starved_ns >= limit_ns / 4;
}

/* Judges a DEADLINE. If the worker was stopped for a quarter of the deadline or more, the fault is
 * the cause. If it was stopped for less, or the machine stood still, nothing can be said. */
static enum bhi_blame blame_of_deadline(const struct bhi_check *check,
                                        const struct bhi_ledger_op *op, uint64_t deadline_ns) {
    const struct bhi_record *end = op->end;
    uint64_t from_ns = began_ns(end), took_ns = end->end.ended_ns - from_ns;
    if (end->end.ended_ns < from_ns || bhi_later(took_ns, BHI_CLOCK_SLACK_NS) < deadline_ns) {
        return BHI_BLAME_NONE; /* the deadline had not passed */
    }
    uint64_t stopped_ns = stopped_while_on(check, end);
    if (stopped_ns >= deadline_ns / 4) {
        return BHI_BLAME_FAULT;
    }
    /* The deadline counts from the start. If no start was recorded, only a worker that stood still
     * can have failed to record it. */
    const bool starved = was_starved(check, end, from_ns, deadline_ns);
    if (!end->end.started_ns) {
        return stopped_ns || starved ? BHI_BLAME_MACHINE : BHI_BLAME_NONE;
    }
    if (was_cut_off(check, end) || held_for(check, end) >= deadline_ns / 4) {
        return BHI_BLAME_FAULT;
    }
    uint64_t stalled_ns = bhi_ledger_stalled(&check->ledger, from_ns, end->end.ended_ns);
    return stopped_ns || starved || (stalled_ns && stalled_ns >= deadline_ns / 4)
               ? BHI_BLAME_MACHINE
               : BHI_BLAME_NONE;
}

/* Judges a WORKER_LOST: its worker was killed for another operation, which had ended before the
 * signal came. So the worker was stopped for a quarter or more of that operation's deadline. All
 * deadlines are equal. */
static enum bhi_blame blame_of_loss(const struct bhi_check *check, const struct bhi_ledger_op *op) {
    const uint64_t stopped_ns = stopped_while_on(check, op->end);
    const uint64_t deadline_ns = op->submit->submit.deadline_ns;
    if (stopped_ns && stopped_ns >= deadline_ns / 4) {
        return BHI_BLAME_FAULT;
    }
    return stopped_ns || was_starved(check, op->end, op->end->end.submitted_ns, deadline_ns)
               ? BHI_BLAME_MACHINE
               : BHI_BLAME_NONE;
}

/* Judges a COMPILE_FAILED by SIGKILL. If no fault has hit the compiler, its deadline killed it. */
static enum bhi_blame blame_of_compile(const struct bhi_check *check,
                                       const struct bhi_record *end) {
    const uint64_t said_ns = check->history->header.compile_ns;
    const uint64_t limit_ns = said_ns ? said_ns : BHI_CHAOS_COMPILE_NS;
    const uint64_t stalled_ns =
        bhi_ledger_stalled(&check->ledger, end->end.submitted_ns, end->end.ended_ns);
    const bool slow =
        stalled_ns >= limit_ns / 4 || was_starved(check, end, end->end.submitted_ns, limit_ns);
    return end->end.signal == SIGKILL && slow ? BHI_BLAME_MACHINE : BHI_BLAME_NONE;
}

/* -- workers that were hit ------------------------------------------------------------------- */

/* Returns true if an operation can end like this after |kind| has hit its worker. */
static bool fits(enum bhi_fault_kind kind, const struct bhi_record *end) {
    bh_status status = end->end.status;
    int signal = end->end.signal;
    switch (kind) {
    case BHI_FAULT_KILL:
    case BHI_FAULT_DEVICE: /* no kernel can do that, so none is to blame (T2) */
        return signal == SIGKILL &&
               (status == BH_OUT_OF_HOST_MEMORY ||
                (status == BH_WORKER_SIGNAL && end->end.blame != BH_BLAME_CERTAIN));
    case BHI_FAULT_SEGV: /* during a compile it is the compiler that crashes */
        return (status == BH_WORKER_SIGNAL || status == BH_OUT_OF_HOST_MEMORY ||
                status == BH_COMPILE_FAILED) &&
               signal == SIGSEGV;
    case BHI_FAULT_GARBAGE:
    case BHI_FAULT_CLOSE: /* the worker notices it and exits, or is killed */
        return status == BH_PROTOCOL || status == BH_WORKER_EXIT || status == BH_COMPILE_FAILED ||
               (status == BH_WORKER_SIGNAL && (signal == SIGKILL || signal == SIGPIPE));
    case BHI_FAULT_ZYGOTE:
        return status == BH_ZYGOTE_LOST || (status == BH_WORKER_SIGNAL && signal == SIGKILL);
    case BHI_FAULT_STOP:
        return status == BH_COMPILE_FAILED && signal == SIGKILL; /* the compile deadline */
    case BHI_FAULT_SLOW:
    case BHI_FAULT_HANG:
    case BHI_FAULT_OOM:
    case BHI_FAULT_UNGUARDED:
    case BHI_FAULT_ILLEGAL:
    case BHI_FAULT_FULL:
    case BHI_FAULT_KINDS:
        break;
    }
    return false;
}

static bool worker_was_hit(const struct bhi_check *check, const struct bhi_record *end) {
    size_t count;
    const struct bhi_ledger_hit *hit = bhi_ledger_hits(&check->ledger, end->end.worker_pid, &count);
    for (; count > 0; count--, hit++) {
        if (fits(hit->fault->record->fault.kind, end) &&
            in_reach(check, hit->fault, end->end.ended_ns)) {
            return true;
        }
    }
    return false;
}

/* Returns true if a fault hit a zygote at that time. The fault's list of workers may lack those
 * that were just starting. */
static bool zygote_was_hit(const struct bhi_check *check, uint64_t ended_ns) {
    for (size_t i = 0; i < check->ledger.fault_count; i++) {
        const struct bhi_ledger_fault *fault = &check->ledger.faults[i];
        if (fault->record->fault.kind == BHI_FAULT_ZYGOTE && in_reach(check, fault, ended_ns)) {
            return true;
        }
    }
    return false;
}

/* -- baits ----------------------------------------------------------------------------------- */

/* Returns true if |bait| was on the worker of |op|, or could have been there while |op| ran. */
static bool shared_worker(const struct bhi_ledger_op *bait, const struct bhi_ledger_op *op) {
    const struct bhi_record *end = op->end;
    if (bait->submit->stream != op->submit->stream ||
        bait->submit->at_ns > bhi_later(end->end.ended_ns, BHI_CLOCK_SLACK_NS)) {
        return false;
    }
    return !bait->end || bait->end->end.ended_ns >= began_ns(end) ||
           bait->end->end.worker_pid == end->end.worker_pid;
}

/* Returns true if a bait on the same worker explains the end of |op|. All operations of a worker
 * share its memory limit, so a bait can make another one's allocation fail. And a worker that is
 * killed for a bait may die after the bait has ended, and take the operations behind it with it.
 * The end of a bait itself is judged below. */
static bool bait_explains(const struct bhi_check *check, const struct bhi_ledger_op *op) {
    bh_status status = op->end->end.status;
    bool memory = status == BH_OUT_OF_HOST_MEMORY || status == BH_OUT_OF_DEVICE_MEMORY ||
                  (status == BH_WORKER_SIGNAL && op->end->end.signal != SIGKILL) ||
                  status == BH_WORKER_EXIT || status == BH_COMPILE_FAILED ||
                  status == BH_DEVICE_LOST || status == BH_VULKAN;
    if (!op->end->end.worker_pid || (!memory && status != BH_WORKER_LOST)) {
        return false;
    }
    for (size_t i = 0; i < check->ledger.fault_count; i++) {
        const struct bhi_record *record = check->ledger.faults[i].record;
        bool oom = record->fault.kind == BHI_FAULT_OOM;
        if (!bhi_fault_is_bait(record->fault.kind) || (memory && !oom)) {
            continue;
        }
        const struct bhi_ledger_op *bait = bhi_ledger_find(&check->ledger, record->op);
        if (bait && bait != op && shared_worker(bait, op)) {
            return true;
        }
    }
    return false;
}

/* Returns true if the deadline of |bait| had passed, counted from its start on a worker. */
static bool overran(const struct bhi_ledger_op *bait) {
    const struct bhi_record *end = bait->end;
    const uint64_t deadline_ns = bait->submit->submit.deadline_ns, ended_ns = end->end.ended_ns;
    if (!end->end.worker_pid || !end->end.started_ns || end->end.started_ns > ended_ns ||
        end->end.submitted_ns > end->end.started_ns) {
        return false;
    }
    return bhi_later(ended_ns - end->end.started_ns, BHI_CLOCK_SLACK_NS) >= deadline_ns;
}

/* Returns true if the worker's memory limit can have caused this end. How a worker ends at the
 * limit depends on the driver; some drivers continue without the memory. */
static bool ran_out(const struct bhi_record *end) {
    switch (end->end.status) {
    case BH_OUT_OF_HOST_MEMORY:
    case BH_OUT_OF_DEVICE_MEMORY:
    case BH_NO_MEMORY:
    case BH_COMPILE_FAILED:
    case BH_WORKER_SIGNAL:
    case BH_WORKER_EXIT:
    case BH_WORKER_LOST:
    case BH_DEVICE_LOST:
    case BH_VULKAN:
        return end->end.worker_pid != 0;
    default:
        return false;
    }
}

/* Returns true if an accelerator's driver can have ended it: such a driver has a timeout for
 * endless work, and may then fail. */
static bool driver_ended(const struct bhi_check *check, const struct bhi_record *end) {
    bh_status status = end->end.status;
    return check->history->header.accelerator && end->end.worker_pid && end->end.started_ns &&
           (status == BH_DEVICE_LOST || status == BH_VULKAN || status == BH_WORKER_SIGNAL ||
            status == BH_WORKER_EXIT || status == BH_WORKER_LOST);
}

/* Returns true if the bait's worker had been stopped, and was killed for an earlier operation that
 * had ended long before. The bait started when that one ended, so its own time on the worker shows
 * no stop. */
static bool was_behind_a_stop(const struct bhi_check *check, const struct bhi_record *end) {
    return end->end.status == BH_WORKER_LOST && end->end.worker_pid &&
           stopped_for(check, end, 0, end->end.ended_ns);
}

/* Returns true if a bait ended as its own fault ends an operation. Whether another fault hit it is
 * checked as for any operation. */
static bool is_its_own_fault(const struct bhi_check *check, const struct bhi_ledger_op *op) {
    if (!op->submit->submit.bait) {
        return false;
    }
    if (!op->bait) { /* unknown which fault it is; that is reported already */
        return true;
    }
    if (op->end->end.status == BH_DEADLINE) {
        return overran(op);
    }
    if (was_behind_a_stop(check, op->end)) {
        return true;
    }
    switch (op->bait->record->fault.kind) {
    case BHI_FAULT_OOM:
        return ran_out(op->end);
    case BHI_FAULT_ILLEGAL:
        return op->end->end.status == BH_DEVICE_FAULT && op->end->end.worker_pid &&
               op->end->end.started_ns;
    default:
        return driver_ended(check, op->end);
    }
}

/* -- the machine ----------------------------------------------------------------------------- */

/* Returns true if kernels without the guard had kept the device from all others so often that their
 * tenant's budget was spent. All streams of a run are of one tenant. On a CPU, kernels end with
 * their process. */
static bool tenant_was_charged(const struct bhi_check *check, uint64_t ended_ns) {
    uint64_t count = 0, last_ns = 0;
    for (size_t i = 0; i < check->ledger.fault_count && check->history->header.accelerator; i++) {
        const struct bhi_record *record = check->ledger.faults[i].record;
        const struct bhi_ledger_op *bait = bhi_ledger_find(&check->ledger, record->op);
        if (record->fault.kind != BHI_FAULT_UNGUARDED || !bhi_ledger_poisoned(bait) ||
            bait->end->end.hops || !bait->end->end.worker_pid ||
            bait->end->end.ended_ns > bhi_later(ended_ns, BHI_CLOCK_SLACK_NS)) {
            continue;
        }
        count++;
        last_ns = bait->end->end.ended_ns > last_ns ? bait->end->end.ended_ns : last_ns;
    }
    return count >= BHI_CHARGES && ended_ns <= bhi_later(last_ns, BHI_CHARGED_NS);
}

/* Returns true if the stream of |op| could get no worker: there was no zygote to start one, no
 * descriptors were left, or its tenant had been charged too often. Other deaths of workers are no
 * reason, because a run's restart budget is never spent. */
static bool no_worker_was_to_be_had(const struct bhi_check *check, const struct bhi_ledger_op *op) {
    for (size_t i = 0; i < check->ledger.fault_count; i++) {
        const struct bhi_ledger_fault *fault = &check->ledger.faults[i];
        enum bhi_fault_kind kind = fault->record->fault.kind;
        if ((kind == BHI_FAULT_ZYGOTE || kind == BHI_FAULT_FULL) &&
            in_reach(check, fault, op->end->end.ended_ns)) {
            return true;
        }
    }
    return tenant_was_charged(check, op->end->end.ended_ns);
}

bool bhi_was_full(const struct bhi_check *check, uint64_t from_ns, uint64_t to_ns) {
    for (size_t i = 0; i < check->ledger.fault_count; i++) {
        const struct bhi_ledger_fault *fault = &check->ledger.faults[i];
        if (fault->record->fault.kind == BHI_FAULT_FULL &&
            fault->begin_ns <= bhi_later(to_ns, BHI_CLOCK_SLACK_NS) &&
            from_ns <= bhi_later(fault->end_ns,
                                 BHI_AFTERMATH_NS + held_up(check, fault->end_ns, from_ns))) {
            return true;
        }
    }
    return false;
}

bool bhi_is_shortage(bh_status status) {
    return status == BH_NO_MEMORY || status == BH_SYSTEM || status == BH_UNAVAILABLE;
}

static bool table_was_full(const struct bhi_check *check, const struct bhi_ledger_op *op) {
    return bhi_was_full(check, op->submit->at_ns, op->end->end.ended_ns);
}

enum bhi_blame bhi_blame_of_copy(const struct bhi_check *check, const struct bhi_ledger_op *op) {
    size_t count;
    const struct bhi_ledger_hit *hit =
        bhi_ledger_hits(&check->ledger, op->end->end.worker_pid, &count);
    for (; count > 0; count--, hit++) {
        if (hit->fault->record->fault.kind != BHI_FAULT_SLOW &&
            in_reach(check, hit->fault, op->end->end.ended_ns)) {
            return BHI_BLAME_FAULT;
        }
    }
    if (zygote_was_hit(check, op->end->end.ended_ns) || bait_explains(check, op) ||
        held_for(check, op->end)) {
        return BHI_BLAME_FAULT;
    }
    return blame_of_loss(check, op);
}

enum bhi_blame bhi_blame_of(const struct bhi_check *check, const struct bhi_ledger_op *op) {
    const struct bhi_record *end = op->end;
    if (is_its_own_fault(check, op)) {
        return BHI_BLAME_FAULT;
    }
    if (end->end.worker_pid && worker_was_hit(check, end)) {
        return BHI_BLAME_FAULT;
    }
    if (bait_explains(check, op)) {
        return BHI_BLAME_FAULT;
    }
    bool explained = false;
    switch (end->end.status) {
    case BH_DEADLINE:
        return blame_of_deadline(check, op, op->submit->submit.deadline_ns);
    case BH_WORKER_LOST:
        return blame_of_loss(check, op);
    case BH_COMPILE_FAILED:
        return blame_of_compile(check, end);
    case BH_ZYGOTE_LOST:
        explained = zygote_was_hit(check, end->end.ended_ns);
        break;
    case BH_UNAVAILABLE:
        explained = no_worker_was_to_be_had(check, op);
        break;
    case BH_NO_MEMORY:
    case BH_SYSTEM:
        explained = table_was_full(check, op);
        break;
    default:
        break;
    }
    return explained ? BHI_BLAME_FAULT : BHI_BLAME_NONE;
}

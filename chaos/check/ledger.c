#include "chaos/check/ledger.h"
#include "base/sort.h"

#include <stdarg.h>
#include <stdlib.h>

struct builder {
    struct bhi_ledger *ledger;
    void (*doubt)(void *user, const struct bhi_record *record, const char *text);
    void *user;
};

__attribute__((format(printf, 3, 4))) static void
doubt(const struct builder *builder, const struct bhi_record *record, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    builder->doubt(builder->user, record, text);
}

/* -- looking up ------------------------------------------------------------------------------ */

BHI_ORDER_2(by_number, struct bhi_ledger_op, number, submit)

static struct bhi_ledger_op *find(const struct bhi_ledger *ledger, uint64_t number) {
    /* Nearly always all numbers are present, from 1 on. */
    if (number && number <= ledger->op_count && ledger->ops[number - 1].number == number) {
        return &ledger->ops[number - 1];
    }
    BHI_BISECT(at, ledger->op_count, ledger->ops[middle].number < number)
    return at < ledger->op_count && ledger->ops[at].number == number ? &ledger->ops[at] : NULL;
}

const struct bhi_ledger_op *bhi_ledger_find(const struct bhi_ledger *ledger, uint64_t number) {
    return find(ledger, number);
}

BHI_ORDER_AT(by_event, struct bhi_ledger_op, submit->submit.event)

const struct bhi_ledger_op *bhi_ledger_find_event(const struct bhi_ledger *ledger, uint64_t event) {
    const struct bhi_ledger_op *const *events = ledger->events;
    BHI_BISECT(at, ledger->op_count, events[middle]->submit->submit.event < event)
    return at < ledger->op_count && events[at]->submit->submit.event == event ? events[at] : NULL;
}

BHI_ORDER_2(by_pid, struct bhi_ledger_hit, pid, fault)

const struct bhi_ledger_hit *bhi_ledger_hits(const struct bhi_ledger *ledger, int32_t pid,
                                             size_t *out_count) {
    BHI_BISECT(low, ledger->hit_count, ledger->hits[middle].pid < pid)
    size_t end = low;
    while (end < ledger->hit_count && ledger->hits[end].pid == pid) {
        end++;
    }
    *out_count = end - low;
    return ledger->hits ? ledger->hits + low : NULL;
}

BHI_ORDER_2(by_worker, struct bhi_ledger_worker, pid, stream)

bool bhi_ledger_hit_stream(const struct bhi_ledger *ledger, const struct bhi_ledger_fault *fault,
                           uint32_t stream) {
    const struct bhi_record *record = fault->record;
    if (record->fault.kind == BHI_FAULT_ZYGOTE || record->fault.kind == BHI_FAULT_FULL) {
        return true;
    }
    if (!record->fault.outside) { /* the host aimed it at a stream */
        return record->stream == stream;
    }
    for (uint32_t i = 0; i < record->fault.pid_count; i++) {
        const struct bhi_ledger_worker worker = {.pid = record->fault.pids[i], .stream = stream};
        if (bsearch(&worker, ledger->workers, ledger->worker_count, sizeof worker, by_worker)) {
            return true;
        }
    }
    return false;
}

/* Returns how much of a stall lies between the two times. */
static uint64_t part_between(const struct bhi_record *stall, uint64_t from_ns, uint64_t to_ns) {
    const uint64_t lasted_ns = stall->stall.lasted_ns;
    uint64_t end_ns = stall->at_ns, begin_ns = lasted_ns < end_ns ? end_ns - lasted_ns : 0;
    if (begin_ns < from_ns) {
        begin_ns = from_ns;
    }
    if (end_ns > to_ns) {
        end_ns = to_ns;
    }
    return begin_ns < end_ns ? end_ns - begin_ns : 0;
}

uint64_t bhi_ledger_stalled(const struct bhi_ledger *ledger, uint64_t from_ns, uint64_t to_ns) {
    uint64_t stalled_ns = 0;
    for (size_t i = 0; i < ledger->stall_count; i++) {
        stalled_ns += part_between(ledger->stalls[i], from_ns, to_ns);
    }
    return stalled_ns;
}

uint64_t bhi_ledger_starved(const struct bhi_ledger *ledger, int32_t pid, uint64_t from_ns,
                            uint64_t to_ns) {
    uint64_t starved_ns = 0;
    for (size_t i = 0; pid && i < ledger->starved_count; i++) {
        if (ledger->starved[i]->stall.pid == pid) {
            starved_ns += part_between(ledger->starved[i], from_ns, to_ns);
        }
    }
    return starved_ns;
}

static bool served(const struct bhi_ledger *ledger, int32_t pid, uint32_t stream) {
    const struct bhi_ledger_worker worker = {.pid = pid, .stream = stream};
    return bsearch(&worker, ledger->workers, ledger->worker_count, sizeof worker, by_worker);
}

static bool is_anothers(const struct bhi_ledger *ledger, int32_t pid, uint32_t stream) {
    if (stream == UINT32_MAX || served(ledger, pid, stream)) {
        return false;
    }
    for (uint32_t other = 0; other < ledger->history->header.streams; other++) {
        if (served(ledger, pid, other)) {
            return true;
        }
    }
    return false;
}

uint64_t bhi_ledger_held_up(const struct bhi_ledger *ledger, uint32_t stream, uint64_t from_ns,
                            uint64_t to_ns) {
    const uint64_t stalled_ns = bhi_ledger_stalled(ledger, from_ns, to_ns);
    uint64_t starved_ns = 0;
    for (size_t i = 0; i < ledger->starved_count;) {
        const uint64_t at_ns = ledger->starved[i]->at_ns;
        uint64_t most_ns = 0; /* the longest of the waits that were seen at the same time */
        for (; i < ledger->starved_count && ledger->starved[i]->at_ns == at_ns; i++) {
            const uint64_t ns = part_between(ledger->starved[i], from_ns, to_ns);
            if (ns > most_ns && !is_anothers(ledger, ledger->starved[i]->stall.pid, stream)) {
                most_ns = ns;
            }
        }
        starved_ns += most_ns;
    }
    return stalled_ns > starved_ns ? stalled_ns : starved_ns;
}

BHI_ORDER_AT(by_moment, struct bhi_record, at_ns)

/* -- building -------------------------------------------------------------------------------- */

static bool allocate(struct bhi_ledger *ledger) {
    const struct bhi_history *history = ledger->history;
    size_t ops = 0, ends = 0, faults = 0, hits = 0, stalls = 0;
    BHI_RECORDS(record, history) {
        ops += record->kind == BHI_RECORD_OP;
        ends += record->kind == BHI_RECORD_END;
        stalls += record->kind == BHI_RECORD_STALL;
        if (record->kind == BHI_RECORD_FAULT) {
            faults++;
            hits += record->fault.pid_count;
        }
        if (record->at_ns > ledger->last_ns) {
            ledger->last_ns = record->at_ns;
        }
    }
    ledger->ops = calloc(ops + 1, sizeof *ledger->ops);
    ledger->events = calloc(ops + 1, sizeof *ledger->events);
    ledger->faults = calloc(faults + 1, sizeof *ledger->faults);
    ledger->hits = calloc(hits + 1, sizeof *ledger->hits);
    ledger->workers = calloc(ends + 1, sizeof *ledger->workers);
    ledger->stalls = calloc(stalls + 1, sizeof *ledger->stalls);
    ledger->starved = calloc(stalls + 1, sizeof *ledger->starved);
    return ledger->ops && ledger->events && ledger->faults && ledger->hits && ledger->workers &&
           ledger->stalls && ledger->starved;
}

static bool is_bait(const struct bhi_record *fault) {
    return bhi_fault_is_bait(fault->fault.kind);
}

BHI_ORDER_2(by_time, struct bhi_ledger_fault, begin_ns, record)

BHI_ORDER_2(by_fault_number, struct bhi_ledger_fault, record->fault.number, record)

/* Ends a fault. All faults are still in the order of their numbers. */
static void heal(const struct builder *builder, const struct bhi_record *record) {
    struct bhi_ledger *ledger = builder->ledger;
    BHI_BISECT(low, ledger->fault_count,
               ledger->faults[middle].record->fault.number < record->healed.number)
    struct bhi_ledger_fault *fault = &ledger->faults[low];
    if (low == ledger->fault_count || fault->record->fault.number != record->healed.number) {
        doubt(builder, record, "fault %llu was healed, and never injected",
              (unsigned long long)record->healed.number);
    } else if (record->at_ns > fault->end_ns) {
        fault->end_ns = record->at_ns;
    }
}

static void collect_faults(const struct builder *builder) {
    struct bhi_ledger *ledger = builder->ledger;
    const struct bhi_history *history = ledger->history;
    BHI_RECORDS_OF(record, history, BHI_RECORD_FAULT) {

        ledger->faults[ledger->fault_count++] =
            (struct bhi_ledger_fault){.record = record,
                                      .begin_ns = record->at_ns,
                                      .end_ns = record->at_ns + record->fault.lasts_ns};
    }
    qsort(ledger->faults, ledger->fault_count, sizeof *ledger->faults, by_fault_number);
    for (size_t i = 1; i < ledger->fault_count; i++) {
        if (ledger->faults[i].record->fault.number == ledger->faults[i - 1].record->fault.number) {
            doubt(builder, ledger->faults[i].record, "fault %llu was injected twice",
                  (unsigned long long)ledger->faults[i].record->fault.number);
        }
    }
    BHI_RECORDS_OF(record, history, BHI_RECORD_HEALED) {
        heal(builder, record);
    }
    size_t kept = 0;
    for (size_t i = 0; i < ledger->fault_count; i++) {
        if (!ledger->faults[i].record->fault.missed) {
            ledger->faults[kept++] = ledger->faults[i];
        }
    }
    ledger->fault_count = kept;
    qsort(ledger->faults, ledger->fault_count, sizeof *ledger->faults, by_time);
}

/* Returns true if a fault of |kind| that has not missed names at least one worker. A zygote may
 * have had no worker. */
static bool hits_a_worker(enum bhi_fault_kind kind) {
    return kind == BHI_FAULT_KILL || kind == BHI_FAULT_SEGV || kind == BHI_FAULT_STOP ||
           kind == BHI_FAULT_GARBAGE || kind == BHI_FAULT_CLOSE || kind == BHI_FAULT_SLOW ||
           kind == BHI_FAULT_DEVICE;
}

static void check_faults(const struct builder *builder) {
    const struct bhi_history *history = builder->ledger->history;
    const bool whole = history->complete && !history->overflow;
    const uint64_t last = bhi_history_last_op(history);
    BHI_RECORDS_OF(record, history, BHI_RECORD_FAULT) {
        const unsigned long long number = record->fault.number;
        if (!(history->header.fault_set & 1u << record->fault.kind)) {
            doubt(builder, record, "fault %llu is of kind %s, which line 1 does not list", number,
                  bhi_fault_name(record->fault.kind));
        }
        if (!record->fault.missed && !record->fault.pid_count &&
            hits_a_worker(record->fault.kind)) {
            doubt(builder, record, "fault %llu counts as a hit, but names no worker", number);
        }
        if (whole && record->fault.after_op > last) {
            doubt(builder, record,
                  "fault %llu came after operation %llu, but the last operation is %llu", number,
                  (unsigned long long)record->fault.after_op, (unsigned long long)last);
        }
    }
}

static void collect_hits(const struct builder *builder) {
    struct bhi_ledger *ledger = builder->ledger;
    for (size_t i = 0; i < ledger->fault_count; i++) {
        const struct bhi_ledger_fault *fault = &ledger->faults[i];
        for (uint32_t p = 0; p < fault->record->fault.pid_count; p++) {
            ledger->hits[ledger->hit_count++] =
                (struct bhi_ledger_hit){.pid = fault->record->fault.pids[p], .fault = fault};
        }
        if (!is_bait(fault->record)) {
            continue;
        }
        struct bhi_ledger_op *op = find(ledger, fault->record->op);
        if (!op || !op->submit->submit.bait) {
            doubt(builder, fault->record,
                  "fault %llu names an operation that was not submitted as a fault",
                  (unsigned long long)fault->record->fault.number);
        } else if (op->bait) {
            doubt(builder, fault->record, "two faults name operation %llu",
                  (unsigned long long)op->number);
        } else {
            op->bait = fault;
        }
    }
    qsort(ledger->hits, ledger->hit_count, sizeof *ledger->hits, by_pid);
}

static void collect_ops(const struct builder *builder) {
    struct bhi_ledger *ledger = builder->ledger;
    const struct bhi_history *history = ledger->history;
    BHI_RECORDS(record, history) {
        if (record->kind == BHI_RECORD_OP) {
            ledger->ops[ledger->op_count++] =
                (struct bhi_ledger_op){.number = record->op, .submit = record};
        }
        if (record->kind == BHI_RECORD_STALL && record->stall.pid) {
            ledger->starved[ledger->starved_count++] = record;
        } else if (record->kind == BHI_RECORD_STALL) {
            ledger->stalls[ledger->stall_count++] = record;
        }
    }
    qsort(ledger->starved, ledger->starved_count, sizeof *ledger->starved, by_moment);
    qsort(ledger->ops, ledger->op_count, sizeof *ledger->ops, by_number);
    size_t kept = 0;
    for (size_t i = 0; i < ledger->op_count; i++) {
        if (kept && ledger->ops[kept - 1].number == ledger->ops[i].number) {
            doubt(builder, ledger->ops[i].submit, "operation %llu was submitted twice",
                  (unsigned long long)ledger->ops[i].number);
        } else {
            ledger->ops[kept++] = ledger->ops[i];
        }
    }
    ledger->op_count = kept;
    for (size_t i = 0; i < kept; i++) {
        ledger->events[i] = &ledger->ops[i];
    }
    qsort(ledger->events, kept, sizeof *ledger->events, by_event);
    for (size_t i = 1; i < kept; i++) {
        if (ledger->events[i]->submit->submit.event ==
            ledger->events[i - 1]->submit->submit.event) {
            doubt(builder, ledger->events[i]->submit, "operations %llu and %llu have one event",
                  (unsigned long long)ledger->events[i - 1]->number,
                  (unsigned long long)ledger->events[i]->number);
        }
    }
}

/* Returns operation |number|, which |op| needs: it must have been submitted earlier and still have
 * its output. */
static const struct bhi_ledger_op *
needed(const struct builder *builder, const struct bhi_ledger_op *op, uint64_t number, bool reads) {
    const struct bhi_ledger_op *found = number < op->number ? find(builder->ledger, number) : NULL;
    if (!found) {
        doubt(builder, op->submit, "operation %llu needs %llu, which was not submitted before it",
              (unsigned long long)op->number, (unsigned long long)number);
    } else if (reads && found->submit->submit.work.words < op->submit->submit.work.words) {
        doubt(builder, op->submit, "operation %llu reads more of %llu than there is",
              (unsigned long long)op->number, (unsigned long long)number);
    } else if (reads && found->taken_by) {
        doubt(builder, op->submit, "operation %llu reads %llu, which %llu was to overwrite",
              (unsigned long long)op->number, (unsigned long long)number,
              (unsigned long long)found->taken_by->number);
    } else {
        return found;
    }
    return reads ? NULL : found;
}

static void link_op(const struct builder *builder, struct bhi_ledger_op *op) {
    const struct bhi_record *submit = op->submit;
    for (uint32_t i = 0; i < submit->submit.input_count; i++) {
        op->inputs[i] = needed(builder, op, submit->submit.inputs[i], true);
    }
    if (submit->submit.wait) {
        op->wait = needed(builder, op, submit->submit.wait, false);
    }
    uint64_t reuses = submit->submit.reuses;
    struct bhi_ledger_op *taken =
        reuses && reuses < op->number ? find(builder->ledger, reuses) : NULL;
    if (reuses && (!taken || taken->taken_by)) {
        doubt(builder, submit, "operation %llu overwrites what %llu does not have",
              (unsigned long long)op->number, (unsigned long long)reuses);
    } else if (taken) {
        taken->taken_by = op;
    }
    if (submit->submit.bait && !op->bait) {
        doubt(builder, submit,
              "operation %llu was submitted as a fault, but the history has no such fault",
              (unsigned long long)op->number);
    }
}

static void collect_ends(const struct builder *builder) {
    struct bhi_ledger *ledger = builder->ledger;
    const struct bhi_history *history = ledger->history;
    BHI_RECORDS(record, history) {
        if (record->kind != BHI_RECORD_END && record->kind != BHI_RECORD_RESULT) {
            continue;
        }
        const char *what = record->kind == BHI_RECORD_END ? "ended" : "was read back";
        struct bhi_ledger_op *op = find(ledger, record->op);
        if (!op) {
            doubt(builder, record, "operation %llu %s, and was never submitted",
                  (unsigned long long)record->op, what);
        } else if (record < op->submit || record->at_ns < op->submit->at_ns) {
            doubt(builder, record, "operation %llu %s before it was submitted",
                  (unsigned long long)record->op, what);
        }
        if (op && record->kind == BHI_RECORD_RESULT) {
            if (op->read_back) {
                doubt(builder, record, "operation %llu was read back twice",
                      (unsigned long long)record->op);
            }
            op->read_back = true;
        }
        if (!op || record->kind != BHI_RECORD_END) {
            continue;
        }
        if (!op->end) {
            op->end = record;
        }
        if (!record->end.hops && record->end.worker_pid) {
            ledger->workers[ledger->worker_count++] = (struct bhi_ledger_worker){
                .pid = record->end.worker_pid, .stream = op->submit->stream};
        }
    }
    qsort(ledger->workers, ledger->worker_count, sizeof *ledger->workers, by_worker);
}

bool bhi_ledger_init(struct bhi_ledger *ledger, const struct bhi_history *history,
                     void (*doubt_function)(void *user, const struct bhi_record *record,
                                            const char *text),
                     void *user) {
    const struct builder builder = {.ledger = ledger, .doubt = doubt_function, .user = user};
    *ledger = (struct bhi_ledger){.history = history};
    if (!allocate(ledger)) {
        bhi_ledger_fini(ledger);
        return false;
    }
    collect_ops(&builder);
    collect_faults(&builder);
    check_faults(&builder);
    collect_hits(&builder);
    for (size_t i = 0; i < ledger->op_count; i++) {
        link_op(&builder, &ledger->ops[i]);
    }
    collect_ends(&builder);
    return true;
}

void bhi_ledger_fini(struct bhi_ledger *ledger) {
    free(ledger->ops);
    free(ledger->events);
    free(ledger->faults);
    free(ledger->hits);
    free(ledger->workers);
    free(ledger->stalls);
    free(ledger->starved);
    *ledger = (struct bhi_ledger){0};
}

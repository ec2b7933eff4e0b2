/* The checker against a simulated supervisor: it accepts whatever that does, and no change of one
 * thing in it that is a lie. */
#include "chaos/check/check.h"
#include "harness.h"
#include "simulate.h"

#include <unistd.h>

enum { SEEDS = 40, NIGHTLY_SEEDS = 1000 };
#if BHI_SANITIZED /* much slower, and what more seeds would show the other builds do */
enum { LIE_SEEDS = 12 };
#else
enum { LIE_SEEDS = SEEDS };
#endif

static uint64_t random_state;

static uint64_t below(uint64_t end) {
    return sim_random(&random_state) % end;
}

static uint64_t seeds(uint64_t count) {
    return getenv("BULKHEAD_TEST_NIGHTLY") ? NIGHTLY_SEEDS : count;
}

static const char *first_finding(const struct bhi_chaos_result *result) {
    return result->finding_count ? result->findings[0].text : "nothing found";
}

static bool is_end(const struct bhi_history *history, const struct bhi_record *record) {
    return record->kind == BHI_RECORD_END;
}

static bool is_lost_with(const struct bhi_history *history, const struct bhi_record *record) {
    return is_end(history, record) && record->end.status == BH_WORKER_LOST && !record->end.hops;
}

/* Whose event it is got its poison from another. */
static bool was_doomed(const struct bhi_history *history, uint64_t event) {
    uint64_t op = 0;
    for (size_t i = 0; i < history->count; i++) {
        if (history->records[i].kind == BHI_RECORD_OP &&
            history->records[i].submit.event == event) {
            op = history->records[i].op;
        }
    }
    for (size_t i = 0; i < history->count; i++) {
        if (is_end(history, &history->records[i]) && history->records[i].op == op) {
            return history->records[i].end.hops > 0;
        }
    }
    return false;
}

TEST(whatever_it_does_is_valid) {
    uint64_t faults[BHI_FAULT_KINDS] = {0}, hops = 0, lost = 0, by_doomed = 0;
    for (uint64_t seed = 1; seed <= seeds(SEEDS); seed++) {
        struct bhi_history history;
        struct simulated tally;
        struct bhi_chaos_result result;
        simulate(seed, &history, &tally);
        BHT_TRUE(bhi_chaos_check(&history, &result));
        if (result.verdict != BHI_CHAOS_VALID) {
            BHT_FAIL("seed %llu: %s", (unsigned long long)seed, first_finding(&result));
        }
        BHT_EQ(result.operations, tally.operations);
        BHT_EQ(result.ready, tally.ready);
        BHT_EQ(result.poisoned, tally.poisoned);
        BHT_EQ(result.refused, tally.refused);
        for (int kind = 0; kind < BHI_FAULT_KINDS; kind++) {
            faults[kind] += result.faults[kind];
        }
        for (size_t i = 0; i < history.count; i++) {
            const struct bhi_record *record = &history.records[i];
            hops += record->kind == BHI_RECORD_END && record->end.hops > 1;
            lost += record->kind == BHI_RECORD_END && record->end.status == BH_WORKER_LOST;
            by_doomed += is_lost_with(&history, record) && was_doomed(&history, record->end.origin);
        }
        bhi_history_free(&history);
    }
    for (int kind = 0; kind < BHI_FAULT_KINDS; kind++) {
        BHT_GT(faults[kind], 0);
    }
    BHT_TRUE(hops > 0 && lost > 0 && by_doomed > 0);
}

/* -- one lie ------------------------------------------------------------------------------------
 */

/* A random record of which |fits| says so; NULL: there is none. */
static struct bhi_record *any(struct bhi_history *history,
                              bool (*fits)(const struct bhi_history *history,
                                           const struct bhi_record *record)) {
    size_t first = below(history->count);
    for (size_t i = 0; i < history->count; i++) {
        struct bhi_record *record = &history->records[(first + i) % history->count];
        if (fits(history, record)) {
            return record;
        }
    }
    return NULL;
}

static const struct bhi_record *submit_of(const struct bhi_history *history, uint64_t op) {
    for (size_t i = 0; i < history->count; i++) {
        if (history->records[i].kind == BHI_RECORD_OP && history->records[i].op == op) {
            return &history->records[i];
        }
    }
    return NULL;
}

static bool is_op(const struct bhi_history *history, const struct bhi_record *record) {
    return record->kind == BHI_RECORD_OP;
}

static bool is_ready(const struct bhi_history *history, const struct bhi_record *record) {
    return is_end(history, record) && record->end.state == BH_EVENT_READY;
}

static bool is_result(const struct bhi_history *history, const struct bhi_record *record) {
    return record->kind == BHI_RECORD_RESULT && record->result.status == BH_OK;
}

static bool is_inherited(const struct bhi_history *history, const struct bhi_record *record) {
    return is_end(history, record) && record->end.hops > 0;
}

/* A bait was queued on its stream, or had been on its worker: that may take others along. */
static bool was_near_bait(const struct bhi_history *history, const struct bhi_record *record) {
    const uint32_t stream = submit_of(history, record->op)->stream;
    for (size_t i = 0; i < history->count; i++) {
        const struct bhi_record *end = &history->records[i];
        const struct bhi_record *bait = is_end(history, end) ? submit_of(history, end->op) : NULL;
        if (bait && bait->submit.bait && bait->stream == stream &&
            bait->at_ns <= record->end.ended_ns + 1000000000 &&
            (end->end.ended_ns >= record->end.started_ns ||
             end->end.worker_pid == record->end.worker_pid)) {
            return true;
        }
    }
    return false;
}

/* Poison began with it, and it was on a worker that was ended for it alone. */
static bool is_own(const struct bhi_history *history, const struct bhi_record *record) {
    if (!is_end(history, record) || record->end.state != BH_EVENT_POISONED || record->end.hops ||
        !record->end.worker_pid) {
        return false;
    }
    const struct bhi_record *submit = submit_of(history, record->op);
    return !submit->submit.bait && record->end.status != BH_ZYGOTE_LOST &&
           record->end.origin == submit->submit.event && !was_near_bait(history, record);
}

static bool hits(const struct bhi_record *fault, int32_t pid) {
    for (uint32_t p = 0; fault->kind == BHI_RECORD_FAULT && p < fault->fault.pid_count; p++) {
        if (fault->fault.pids[p] == pid) {
            return true;
        }
    }
    return false;
}

/* What |record| says of its worker a fault explains that has nothing to do with it. */
static bool was_hit(const struct bhi_history *history, int32_t pid) {
    for (size_t i = 0; i < history->count; i++) {
        if (hits(&history->records[i], pid) && !history->records[i].fault.missed) {
            return true;
        }
    }
    return false;
}

static bool is_ready_by_the_unhurt(const struct bhi_history *history,
                                   const struct bhi_record *record) {
    return is_ready(history, record) && !was_hit(history, record->end.worker_pid) &&
           !was_near_bait(history, record);
}

/* It has an input, and is READY. */
static bool has_read(const struct bhi_history *history, const struct bhi_record *record) {
    if (!is_op(history, record) || !record->submit.input_count) {
        return false;
    }
    for (size_t i = 0; i < history->count; i++) {
        if (is_ready(history, &history->records[i]) && history->records[i].op == record->op) {
            return true;
        }
    }
    return false;
}

/* It hit a stream; a bait may not run. */
static bool is_hit(const struct bhi_history *history, const struct bhi_record *record) {
    return record->kind == BHI_RECORD_FAULT && !record->fault.missed && !record->op;
}

static bool is_last_look(const struct bhi_history *history, const struct bhi_record *record) {
    return record->kind == BHI_RECORD_MEMORY && record->memory.last;
}

static void forget(struct bhi_history *history, struct bhi_record *record) {
    size_t at = (size_t)(record - history->records);
    memmove(record, record + 1, (history->count - at - 1) * sizeof *record);
    history->count--;
}

/* What each makes of a record that it fits. */
static void flip_a_bit(struct bhi_history *history, struct bhi_record *record) {
    record->result.digest[below(BHI_CHAOS_DIGEST)] ^= (uint8_t)(1u << below(8));
}

static void poison_the_innocent(struct bhi_history *history, struct bhi_record *record) {
    static const bh_status ways[] = {BH_WORKER_SIGNAL, BH_DEADLINE,  BH_PROTOCOL,
                                     BH_WORKER_EXIT,   BH_CANCELLED, BH_CONTEXT_CLOSED};
    record->end.state = BH_EVENT_POISONED;
    record->end.status = ways[below(6)];
    record->end.signal = below(2) ? SIGKILL : 0;
    record->end.executed = BH_EXECUTED_UNKNOWN;
    for (size_t i = 0; i < history->count; i++) { /* whoever read it back saw it, too */
        if (history->records[i].kind == BHI_RECORD_RESULT && history->records[i].op == record->op) {
            history->records[i].result.status = record->end.status;
        }
    }
}

/* What was not written is read. */
static void retire(struct bhi_history *history, struct bhi_record *record) {
    const struct bhi_record result = {
        .kind = BHI_RECORD_RESULT, .at_ns = record->at_ns, .op = record->op};
    record->end.state = BH_EVENT_READY;
    record->end.status = BH_OK;
    record->end.executed = BH_EXECUTED_YES;
    bhi_history_note(history, &result);
}

/* With the right bytes, as if the device had written them: that they cannot be is the lie. */
static void ready_although_poisoned(struct bhi_history *history, struct bhi_record *record) {
    record->end.hops = 0;
    record->end.origin = submit_of(history, record->op)->submit.event;
    record->end.started_ns = record->end.ended_ns;
    retire(history, record);
}

static void too_many_hops(struct bhi_history *history, struct bhi_record *record) {
    record->end.hops += 1000;
}

/* Says that it began with one that is READY. */
static void blame_the_innocent(struct bhi_history *history, struct bhi_record *record) {
    record->end.origin = submit_of(history, any(history, is_ready)->op)->submit.event;
}

static void another_story(struct bhi_history *history, struct bhi_record *record) {
    record->end.status = record->end.status == BH_SECCOMP ? BH_VULKAN : BH_SECCOMP;
}

static void another_worker(struct bhi_history *history, struct bhi_record *record) {
    record->end.worker_pid = 7;
}

/* The next fault from |*at| on that hit the worker of |pid|; NULL: there is none. */
static struct bhi_record *next_hit(struct bhi_history *history, int32_t pid, size_t *at) {
    while (*at < history->count) {
        struct bhi_record *fault = &history->records[(*at)++];
        if (hits(fault, pid)) {
            return fault;
        }
    }
    return NULL;
}

static void no_such_fault(struct bhi_history *history, struct bhi_record *record) {
    size_t at = 0;
    for (struct bhi_record *fault; (fault = next_hit(history, record->end.worker_pid, &at));) {
        fault->fault.missed = true;
    }
}

static void another_fault(struct bhi_history *history, struct bhi_record *record) {
    size_t at = 0;
    for (struct bhi_record *fault; (fault = next_hit(history, record->end.worker_pid, &at));) {
        /* Neither ends a worker so. */
        fault->fault.kind = record->end.status == BH_DEADLINE ? BHI_FAULT_KILL : BHI_FAULT_SLOW;
    }
}

static void changed_its_mind(struct bhi_history *history, struct bhi_record *record) {
    record->end.changed = true;
}

static void ended_twice(struct bhi_history *history, struct bhi_record *record) {
    const struct bhi_record again = *record;
    bhi_history_note(history, &again);
}

static void was_given_up_on(struct bhi_history *history, struct bhi_record *record) {
    record->end.lost = true;
}

static void was_never_run(struct bhi_history *history, struct bhi_record *record) {
    if (below(2)) {
        record->end.started_ns = 0;
    } else {
        record->end.executed = BH_EXECUTED_NO;
    }
}

static void read_something_else(struct bhi_history *history, struct bhi_record *record) {
    const uint64_t input = record->submit.inputs[0];
    while (record->submit.inputs[0] == input) {
        record->submit.inputs[0] = any(history, is_ready)->op;
    }
}

static void lost_a_stream(struct bhi_history *history, struct bhi_record *record) {
    const uint32_t stream = record->stream;
    uint64_t from_ns = 0;
    for (size_t i = 0; i < history->count; i++) {
        if (is_hit(history, &history->records[i]) && history->records[i].stream == stream) {
            from_ns = history->records[i].at_ns;
        }
    }
    for (size_t i = 0; i < history->count; i++) {
        struct bhi_record *end = &history->records[i];
        if (is_ready(history, end) && end->end.started_ns >= from_ns &&
            submit_of(history, end->op)->stream == stream) {
            end->end.state = BH_EVENT_POISONED; /* with an excuse */
            end->end.status = BH_UNAVAILABLE;
            end->end.executed = BH_EXECUTED_NO;
            end->end.worker_pid = 0;
        }
    }
}

static void leak_descriptors(struct bhi_history *history, struct bhi_record *record) {
    uint32_t more = 0;
    for (size_t i = 0; i < history->count; i++) {
        if (history->records[i].kind == BHI_RECORD_SAMPLE) {
            history->records[i].sample.descriptors += 15 * more++;
        }
    }
}

static void leak_memory(struct bhi_history *history, struct bhi_record *record) {
    record->memory.unused -= 128ull << 20;
}

static void refused_for_nothing(struct bhi_history *history, struct bhi_record *record) {
    const struct bhi_record refused = {
        .kind = BHI_RECORD_REFUSED,
        .at_ns = 20000000,
        .op = 100000,
        .refused = {.status = BH_NO_MEMORY, .call = "bh_buffer_create"}};
    bhi_history_note(history, &refused);
}

static const struct lie {
    const char *name;
    bool (*fits)(const struct bhi_history *history, const struct bhi_record *record);
    void (*tell)(struct bhi_history *history, struct bhi_record *record);
    enum bhi_anomaly anomaly; /* what it is, whatever else is found */
} lies[] = {
    {"drop an end", is_end, forget, BHI_ANOMALY_LOST},
    {"drop an operation", is_op, forget, BHI_ANOMALY_UNKNOWN},
    {"drop a result", is_result, forget, BHI_ANOMALY_UNKNOWN},
    {"flip a bit", is_result, flip_a_bit, BHI_ANOMALY_FALSE_SUCCESS},
    {"poison the innocent", is_ready_by_the_unhurt, poison_the_innocent, BHI_ANOMALY_COLLATERAL},
    {"ready although poisoned", is_inherited, ready_although_poisoned, BHI_ANOMALY_FALSE_SUCCESS},
    {"ready although dead", is_own, retire, BHI_ANOMALY_FALSE_SUCCESS},
    {"too many hops", is_inherited, too_many_hops, BHI_ANOMALY_COLLATERAL},
    {"another origin", is_inherited, blame_the_innocent, BHI_ANOMALY_COLLATERAL},
    {"another story", is_inherited, another_story, BHI_ANOMALY_COLLATERAL},
    {"lost with the innocent", is_lost_with, blame_the_innocent, BHI_ANOMALY_COLLATERAL},
    {"another worker", is_own, another_worker, BHI_ANOMALY_COLLATERAL},
    {"no such fault", is_own, no_such_fault, BHI_ANOMALY_COLLATERAL},
    {"another fault", is_own, another_fault, BHI_ANOMALY_COLLATERAL},
    {"changed its mind", is_end, changed_its_mind, BHI_ANOMALY_CHANGED},
    {"ended twice", is_end, ended_twice, BHI_ANOMALY_CHANGED},
    {"was given up on", is_end, was_given_up_on, BHI_ANOMALY_LOST},
    {"was never run", is_ready, was_never_run, BHI_ANOMALY_FALSE_SUCCESS},
    {"read something else", has_read, read_something_else, BHI_ANOMALIES},
    {"lost a stream", is_hit, lost_a_stream, BHI_ANOMALY_RECOVERY},
    {"leaks descriptors", is_op, leak_descriptors, BHI_ANOMALY_LEAK},
    {"leaks device memory", is_last_look, leak_memory, BHI_ANOMALY_LEAK},
    {"refused for nothing", is_op, refused_for_nothing, BHI_ANOMALY_COLLATERAL},
};

TEST(no_lie_is_valid) {
    for (size_t l = 0; l < sizeof lies / sizeof *lies; l++) {
        uint64_t told = 0;
        for (uint64_t seed = 1; seed <= seeds(LIE_SEEDS); seed++) {
            struct bhi_history history;
            struct simulated tally;
            struct bhi_chaos_result result;
            random_state = seed * 1000 + l;
            simulate(seed, &history, &tally);
            struct bhi_record *record = any(&history, lies[l].fits);
            if (record) {
                lies[l].tell(&history, record);
            }
            BHT_TRUE(bhi_chaos_check(&history, &result));
            bool found = lies[l].anomaly == BHI_ANOMALIES ? result.verdict != BHI_CHAOS_VALID
                                                          : result.by_anomaly[lies[l].anomaly] > 0;
            if (record && (!found || result.verdict == BHI_CHAOS_VALID)) {
                BHT_FAIL("%s, seed %llu: %s (%s)", lies[l].name, (unsigned long long)seed,
                         bhi_chaos_verdict_name(result.verdict), first_finding(&result));
            }
            told += !!record;
            bhi_history_free(&history);
        }
        if (told < seeds(LIE_SEEDS) / 4) {
            BHT_FAIL("%s: told only %llu times", lies[l].name, (unsigned long long)told);
        }
    }
}

/* The same on disk. */
TEST(it_can_be_saved) {
    struct bhi_history history, again;
    struct simulated tally;
    struct bhi_complaint complaint;
    struct bhi_chaos_result before, after;
    char path[] = "/tmp/chaos-random-XXXXXX";
    int fd = mkstemp(path);
    BHT_GE(fd, 0);
    close(fd);
    simulate(5, &history, &tally);
    BHT_TRUE(bhi_chaos_check(&history, &before));
    BHT_TRUE(bhi_history_save(&history, path, &complaint));
    if (!bhi_history_load(path, &again, &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
    BHT_TRUE(bhi_chaos_check(&again, &after));
    BHT_MEM_EQ(&before, &after, sizeof before);
    bhi_history_free(&again);
    bhi_history_free(&history);
    remove(path);
}

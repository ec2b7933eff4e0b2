#include "simulate.h"
#include "chaos/check/oracle.h"

#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000ull

enum { STREAMS = 3, OPS = 1200, WORDS = 8, RECENT = 12, LANE = 3, DEADLINE_MS = 400, HANG_MS = 30 };
enum { WARM_MS = 40, RUN_MS = 1500, RECOVERY_MS = 2000, CALM_MS = 3600 };

/* QUEUED: not on a worker. BEGUN: on one. */
enum state { QUEUED, BEGUN, READY, POISONED };

struct op {
    struct bhi_record submit;
    enum state state;
    bool doomed; /* its verdict is decided, it may still be on a worker */
    uint64_t began_ms;
    struct bhi_record end;
    uint32_t words[WORDS];
    bool taken; /* its memory is another's */
};

struct stream {
    int32_t pid; /* 0: there is none yet */
    uint64_t served_ms, stopped_until_ms, due_ms;
    uint64_t lane[LANE], lane_count; /* begun; the first one runs */
    uint64_t fault;                  /* slow: to be healed at stopped_until_ms */
};

struct sim {
    struct bhi_history *history;
    uint64_t random, now_ms, faults, full_until_ms, full_fault;
    uint64_t count, ended; /* all up to |ended| have */
    int32_t next_pid;
    struct op ops[OPS + 2]; /* by number, from 1 */
    struct stream streams[STREAMS];
    uint64_t recent[RECENT];
};

uint64_t sim_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static uint64_t below(struct sim *sim, uint64_t end) {
    return sim_random(&sim->random) % end;
}

static void note(struct sim *sim, struct bhi_record record) {
    record.at_ns = sim->now_ms * MS;
    bhi_history_note(sim->history, &record);
}

/* -- ends ---------------------------------------------------------------------------------------
 */

static void finish(struct sim *sim, struct op *op, enum state state) {
    op->state = state;
    op->end.kind = BHI_RECORD_END;
    op->end.op = op->submit.op;
    op->end.end.state = state == READY ? BH_EVENT_READY : BH_EVENT_POISONED;
    op->end.end.submitted_ns = op->submit.at_ns;
    op->end.end.ended_ns = sim->now_ms * MS;
    note(sim, op->end);
    if (state != READY) {
        return;
    }
    struct bhi_record result = {.kind = BHI_RECORD_RESULT, .op = op->submit.op};
    bhi_oracle_digest(op->words, WORDS, result.result.digest);
    note(sim, result); /* a map takes no descriptor: a full table is none of its concern */
}

static bool needs(const struct op *op, uint64_t number) {
    for (uint32_t i = 0; i < op->submit.submit.input_count; i++) {
        if (op->submit.submit.inputs[i] == number) {
            return true;
        }
    }
    return op->submit.submit.wait == number;
}

static void doom(struct sim *sim, struct op *op, const struct op *cause);

/* All that need it, at once. */
static void spread(struct sim *sim, const struct op *cause) {
    for (uint64_t n = cause->submit.op + 1; n <= sim->count; n++) {
        struct op *op = &sim->ops[n];
        if ((op->state == QUEUED || op->state == BEGUN) && !op->doomed &&
            needs(op, cause->submit.op)) {
            doom(sim, op, cause);
        }
    }
}

static void doom(struct sim *sim, struct op *op, const struct op *cause) {
    op->doomed = true;
    op->end.end = cause->end.end;
    op->end.end.hops++;
    op->end.end.executed = BH_EXECUTED_NO;
    op->end.end.started_ns = 0;
    if (op->state == QUEUED) {
        finish(sim, op, POISONED);
    }
    spread(sim, op);
}

/* |origin|: 0 for itself. */
static void die(struct sim *sim, struct op *op, bh_status status, int signal, int32_t pid,
                uint64_t origin) {
    if (op->doomed) { /* it has its verdict, but for what became of it here */
        op->end.end.started_ns = op->began_ms * MS;
        op->end.end.executed = BH_EXECUTED_UNKNOWN;
        finish(sim, op, POISONED);
        return;
    }
    op->end.end.status = status;
    op->end.end.signal = signal;
    op->end.end.worker_pid = pid;
    op->end.end.executed = pid ? BH_EXECUTED_UNKNOWN : BH_EXECUTED_NO;
    op->end.end.origin = origin ? origin : op->submit.submit.event;
    finish(sim, op, POISONED);
    spread(sim, op);
}

static void end_worker(struct sim *sim, struct stream *stream) {
    if (stream->fault) { /* somebody tries to wake it all the same */
        note(sim, (struct bhi_record){.kind = BHI_RECORD_HEALED, .healed.number = stream->fault});
    }
    *stream = (struct stream){.served_ms = sim->now_ms + 1 + below(sim, 15)};
}

/* The one that runs is to blame (but for a zygote), also where its own verdict was decided before;
 * what had begun goes with it, in order. */
static void worker_dies(struct sim *sim, struct stream *stream, bh_status status, int signal) {
    uint64_t culprit = 0;
    for (uint64_t i = 0; i < stream->lane_count; i++) {
        struct op *op = &sim->ops[stream->lane[i]];
        bool all = status == BH_ZYGOTE_LOST || !culprit;
        die(sim, op, all ? status : BH_WORKER_LOST, signal, stream->pid,
            all ? 0 : sim->ops[culprit].submit.submit.event);
        if (!culprit) {
            culprit = stream->lane[i];
        }
    }
    end_worker(sim, stream);
}

/* -- the streams --------------------------------------------------------------------------------
 */

static bool is_there(const struct sim *sim, const struct op *op, uint64_t need) {
    const struct op *other = &sim->ops[need];
    return !need || other->state == READY ||
           (other->state == BEGUN && other->submit.stream == op->submit.stream);
}

static bool may_begin(const struct sim *sim, const struct op *op) {
    bool all = is_there(sim, op, op->submit.submit.wait);
    for (uint32_t i = 0; i < op->submit.submit.input_count; i++) {
        all &= is_there(sim, op, op->submit.submit.inputs[i]);
    }
    return all;
}

static void fill(struct sim *sim, uint32_t s) {
    struct stream *stream = &sim->streams[s];
    uint64_t many = 1 + below(sim, LANE);
    while (sim->ops[sim->ended + 1].state >= READY && sim->ended < sim->count) {
        sim->ended++;
    }
    for (uint64_t n = sim->ended + 1; n <= sim->count && stream->lane_count < many; n++) {
        struct op *op = &sim->ops[n];
        if (op->submit.stream != s || op->state != QUEUED) {
            continue;
        }
        if (!may_begin(sim, op)) {
            break;
        }
        op->state = BEGUN;
        op->end.end.started_ns = sim->now_ms * MS;
        op->began_ms = sim->now_ms;
        stream->lane[stream->lane_count++] = n;
    }
    const struct op *first = &sim->ops[stream->lane[0]];
    stream->due_ms = sim->now_ms + (first->submit.submit.bait ? HANG_MS : 1 + below(sim, 4));
}

static void pop(struct stream *stream) {
    memmove(stream->lane, stream->lane + 1, sizeof stream->lane - sizeof *stream->lane);
    stream->lane_count--;
}

static enum bhi_fault_kind kind_of(const struct sim *sim, const struct op *bait) {
    for (size_t i = 0; i < sim->history->count; i++) {
        if (sim->history->records[i].kind == BHI_RECORD_FAULT &&
            sim->history->records[i].op == bait->submit.op) {
            return sim->history->records[i].fault.kind;
        }
    }
    abort();
}

static void inject(struct sim *sim, uint32_t s, enum bhi_fault_kind kind);

static void end_bait(struct sim *sim, struct stream *stream, struct op *op) {
    const enum bhi_fault_kind kind = kind_of(sim, op);
    if (kind == BHI_FAULT_HANG && below(sim, 2)) { /* it is told to end, and its worker goes on */
        die(sim, op, BH_DEADLINE, 0, stream->pid, 0);
        pop(stream);
        stream->due_ms = sim->now_ms + 1;
        if (stream->lane_count && below(sim, 2)) { /* what comes next may be poisoned by now */
            inject(sim, (uint32_t)(stream - sim->streams), BHI_FAULT_KILL);
        }
    } else {
        const bool illegal = kind == BHI_FAULT_ILLEGAL;
        worker_dies(sim, stream,
                    illegal                 ? BH_DEVICE_FAULT
                    : kind == BHI_FAULT_OOM ? BH_OUT_OF_HOST_MEMORY
                                            : BH_DEADLINE,
                    illegal ? 0 : SIGKILL);
    }
}

static void succeed(struct sim *sim, struct stream *stream, struct op *op) {
    if (op->doomed) {
        op->end.end.started_ns = op->began_ms * MS;
        op->end.end.executed = BH_EXECUTED_YES;
        finish(sim, op, POISONED);
    } else {
        op->end.end.status = BH_OK;
        op->end.end.executed = BH_EXECUTED_YES;
        op->end.end.worker_pid = stream->pid;
        op->end.end.origin = op->submit.submit.event;
        finish(sim, op, READY);
    }
    pop(stream);
    stream->due_ms = sim->now_ms + 1;
    if (stream->lane_count && sim->ops[stream->lane[0]].submit.submit.bait) {
        stream->due_ms = sim->now_ms + HANG_MS;
    }
}

static void turn(struct sim *sim, uint32_t s) {
    struct stream *stream = &sim->streams[s];
    if (!stream->pid && stream->served_ms <= sim->now_ms) {
        stream->pid = sim->next_pid++;
    }
    if (!stream->pid) {
        return;
    }
    if (stream->fault && stream->stopped_until_ms <= sim->now_ms) {
        note(sim, (struct bhi_record){.kind = BHI_RECORD_HEALED, .healed.number = stream->fault});
        stream->fault = 0;
    }
    if (!stream->lane_count) {
        fill(sim, s);
    }
    if (!stream->lane_count) {
        return;
    }
    struct op *op = &sim->ops[stream->lane[0]];
    if (stream->stopped_until_ms > sim->now_ms) {
        if (sim->now_ms >= op->began_ms + DEADLINE_MS) {
            worker_dies(sim, stream, BH_DEADLINE, SIGKILL);
        }
        return;
    }
    if (sim->now_ms < stream->due_ms) {
        return;
    }
    if (op->submit.submit.bait) {
        end_bait(sim, stream, op);
    } else {
        succeed(sim, stream, op);
    }
}

/* -- what is submitted --------------------------------------------------------------------------
 */

static uint64_t draw_recent(struct sim *sim, bool bait) {
    uint64_t n = sim->recent[below(sim, RECENT)];
    return n && !sim->ops[n].taken && (bait || !sim->ops[n].submit.submit.bait) ? n : 0;
}

static void compute(struct sim *sim, struct op *op) {
    const uint32_t *inputs[BHI_CHAOS_INPUTS];
    for (uint32_t i = 0; i < op->submit.submit.input_count; i++) {
        inputs[i] = sim->ops[op->submit.submit.inputs[i]].words;
    }
    bhi_oracle_compute(&op->submit.submit.work, inputs, op->submit.submit.input_count, op->words);
}

static void plan(struct sim *sim, struct op *op) {
    for (uint64_t wanted = below(sim, 3); wanted > 0; wanted--) {
        uint64_t input = draw_recent(sim, false);
        if (input && sim->ops[input].state != POISONED) {
            op->submit.submit.inputs[op->submit.submit.input_count++] = input;
        } else if (input && below(sim, 6) == 0) {
            op->submit.submit.inputs[op->submit.submit.input_count++] = input;
        }
    }
    uint64_t wait = below(sim, 6) == 0 ? draw_recent(sim, true) : 0;
    if (sim->count > 1 && sim->ops[sim->count - 1].submit.submit.bait && below(sim, 2)) {
        wait = sim->count - 1;
    }
    if (wait && (sim->ops[wait].state != POISONED || below(sim, 6) == 0)) {
        op->submit.submit.wait = wait;
    }
    uint64_t old = draw_recent(sim, false);
    if (old && below(sim, 3) == 0 && !needs(op, old)) {
        op->submit.submit.reuses = old;
        sim->ops[old].taken = true;
    }
    op->submit.submit.work =
        (struct bhi_chaos_work){WORDS, (uint32_t)below(sim, 1u << 20) | 1,
                                (uint32_t)below(sim, UINT32_MAX), (uint32_t)below(sim, 32), 2};
}

static bool submit(struct sim *sim, uint32_t s, bool bait) {
    if (sim->count == OPS) {
        return false;
    }
    struct op *op = &sim->ops[++sim->count];
    op->submit = (struct bhi_record){
        .kind = BHI_RECORD_OP, .at_ns = sim->now_ms * MS, .op = sim->count, .stream = s};
    op->submit.submit.event = 3 * sim->count;
    op->submit.submit.bait = bait;
    op->submit.submit.deadline_ns = (bait ? HANG_MS : DEADLINE_MS) * MS;
    if (!bait) {
        plan(sim, op);
    } else if (below(sim, 4) == 0) {
        op->submit.submit.wait = draw_recent(sim, true);
    }
    if (sim->full_until_ms && !bait && below(sim, 3) == 0) { /* no descriptor for its buffer */
        struct bhi_record refused = {
            .kind = BHI_RECORD_REFUSED, .op = sim->count, .stream = s, .refused.status = BH_SYSTEM};
        strcpy(refused.refused.call, "bh_buffer_create");
        if (op->submit.submit.reuses) {
            sim->ops[op->submit.submit.reuses].taken = false;
        }
        op->state = POISONED; /* nobody may need it */
        op->taken = true;
        note(sim, refused);
        return false;
    }
    compute(sim, op);
    note(sim, op->submit);
    sim->recent[below(sim, RECENT)] = sim->count;
    for (uint64_t n = 1; n < sim->count && !op->doomed; n++) {
        if (needs(op, n) && (sim->ops[n].state == POISONED || sim->ops[n].doomed)) {
            doom(sim, op, &sim->ops[n]);
        }
    }
    if (sim->full_until_ms && !op->doomed && below(sim, 4) == 0) {
        die(sim, op, BH_NO_MEMORY, 0, 0, 0);
    }
    return true;
}

/* -- what breaks --------------------------------------------------------------------------------
 */

static void inject(struct sim *sim, uint32_t s, enum bhi_fault_kind kind) {
    struct stream *stream = &sim->streams[s];
    struct bhi_record fault = {.kind = BHI_RECORD_FAULT, .stream = s};
    bool bait = bhi_fault_is_bait(kind);
    bool host = kind == BHI_FAULT_FULL;
    fault.fault.kind = kind;
    fault.fault.number = ++sim->faults;
    fault.fault.after_op = sim->count;
    if ((!bait && !host && (!stream->pid || stream->stopped_until_ms > sim->now_ms)) ||
        (host && sim->full_until_ms) || (bait && !submit(sim, s, true))) {
        fault.fault.missed = true;
        note(sim, fault);
        return;
    }
    if (bait) {
        fault.op = sim->count;
    } else if (kind == BHI_FAULT_ZYGOTE) {
        for (uint32_t i = 0; i < STREAMS; i++) { /* one that starts is not seen */
            if (sim->streams[i].pid && sim->streams[i].pid != sim->next_pid - 1) {
                fault.fault.pids[fault.fault.pid_count++] = sim->streams[i].pid;
            }
        }
    } else if (!host) {
        fault.fault.pids[fault.fault.pid_count++] = stream->pid;
    }
    uint64_t lasts_ms = 5 + below(sim, 80);
    if (host || kind == BHI_FAULT_SLOW) {
        fault.fault.lasts_ns = lasts_ms * MS;
    }
    note(sim, fault);
    switch (kind) {
    case BHI_FAULT_KILL:
    case BHI_FAULT_DEVICE:
        worker_dies(sim, stream, BH_WORKER_SIGNAL, SIGKILL);
        break;
    case BHI_FAULT_SEGV:
        worker_dies(sim, stream, below(sim, 4) ? BH_WORKER_SIGNAL : BH_COMPILE_FAILED, SIGSEGV);
        break;
    case BHI_FAULT_GARBAGE:
        worker_dies(sim, stream, BH_PROTOCOL, SIGKILL);
        break;
    case BHI_FAULT_CLOSE:
        worker_dies(sim, stream, BH_WORKER_EXIT, 0);
        break;
    case BHI_FAULT_ZYGOTE:
        for (uint32_t i = 0; i < STREAMS; i++) {
            if (sim->streams[i].pid) {
                worker_dies(sim, &sim->streams[i], BH_ZYGOTE_LOST, 0);
            }
        }
        break;
    case BHI_FAULT_STOP:
        stream->stopped_until_ms = UINT64_MAX;
        break;
    case BHI_FAULT_SLOW:
        stream->stopped_until_ms = sim->now_ms + lasts_ms;
        stream->fault = fault.fault.number;
        break;
    case BHI_FAULT_FULL:
        sim->full_until_ms = sim->now_ms + lasts_ms;
        sim->full_fault = fault.fault.number;
        break;
    case BHI_FAULT_HANG:
    case BHI_FAULT_OOM:
    case BHI_FAULT_UNGUARDED:
    case BHI_FAULT_ILLEGAL:
    case BHI_FAULT_KINDS:
        break;
    }
}

/* -- a run --------------------------------------------------------------------------------------
 */

static void sample(struct sim *sim) {
    struct bhi_record record = {.kind = BHI_RECORD_SAMPLE};
    record.sample.descriptors = 20 + (uint32_t)below(sim, 8);
    record.sample.processes = 4 + (uint32_t)below(sim, 2);
    record.sample.files = 3;
    record.sample.rss_bytes = (40 + below(sim, 8)) << 20;
    record.sample.idle = true;
    note(sim, record);
}

/* Before the run, and after it: a little more is in use, or a little less. It takes no number from
 * the run's sequence. */
static void look(struct sim *sim, bool last) {
    uint64_t random = sim->history->header.seed * 2 + last;
    struct bhi_record record = {.kind = BHI_RECORD_MEMORY, .memory = {.device = "gpu:0"}};
    record.memory.last = last;
    record.memory.budget = record.memory.nvml = record.memory.utilised = true;
    record.memory.total = 8ull << 30;
    record.memory.unused = (5ull << 30) + (sim_random(&random) % 64 << 20);
    record.memory.used = (1ull << 30) + (sim_random(&random) % 64 << 20);
    record.memory.utilisation = (uint32_t)(sim_random(&random) % 6);
    note(sim, record);
}

static bool at_rest(const struct sim *sim) {
    for (uint64_t n = sim->ended + 1; n <= sim->count; n++) {
        if (sim->ops[n].state == QUEUED || sim->ops[n].state == BEGUN) {
            return false;
        }
    }
    return true;
}

static void pass(struct sim *sim, bool works, bool breaks) {
    sim->now_ms++;
    if (sim->full_until_ms && sim->full_until_ms <= sim->now_ms) {
        note(sim, (struct bhi_record){.kind = BHI_RECORD_HEALED, .healed.number = sim->full_fault});
        sim->full_until_ms = 0;
    }
    if (works && below(sim, 4) == 0) {
        (void)submit(sim, (uint32_t)below(sim, STREAMS), false);
    }
    uint32_t s = (uint32_t)below(sim, STREAMS);
    if (breaks && below(sim, 60) == 0) {
        /* Hangs more often: in what comes of them there is most chance. */
        const uint64_t kind = below(sim, BHI_FAULT_KINDS + 6);
        inject(sim, s, kind < BHI_FAULT_KINDS ? (enum bhi_fault_kind)kind : BHI_FAULT_HANG);
    }
    for (s = 0; s < STREAMS; s++) {
        turn(sim, s);
    }
}

static void header(struct bhi_history *history, uint64_t seed) {
    struct bhi_history_header *h = &history->header;
    strcpy(h->version, "0.1.0");
    h->seed = seed;
    h->streams = STREAMS;
    h->fault_set = (1u << BHI_FAULT_KINDS) - 1;
    h->patience_ns = 5000 * MS;
    h->recovery_ns = RECOVERY_MS * MS;
}

void simulate(uint64_t seed, struct bhi_history *out_history, struct simulated *out_tally) {
    struct sim *sim = calloc(1, sizeof *sim);
    if (!sim || sodium_init() < 0) {
        abort();
    }
    bhi_history_init(out_history);
    header(out_history, seed);
    sim->history = out_history;
    sim->random = seed;
    sim->next_pid = 1000;
    look(sim, false);
    for (int i = 0; i < WARM_MS; i++) {
        pass(sim, true, false);
    }
    for (int part = 0; part < 5; part++) {
        while (!at_rest(sim)) {
            pass(sim, false, false);
        }
        sample(sim);
        for (int i = 0; i < RUN_MS / 5; i++) {
            pass(sim, true, true);
        }
    }
    for (int i = 0; i < CALM_MS; i++) {
        pass(sim, true, false);
    }
    while (!at_rest(sim)) {
        pass(sim, false, false);
    }
    sample(sim);
    look(sim, true);
    out_history->complete = true;
    *out_tally = (struct simulated){0};
    for (uint64_t n = 1; n <= sim->count; n++) {
        bool refused = sim->ops[n].end.kind != BHI_RECORD_END;
        out_tally->refused += refused;
        out_tally->operations += !refused;
        out_tally->ready += !refused && sim->ops[n].state == READY;
        out_tally->poisoned += !refused && sim->ops[n].state == POISONED;
    }
    free(sim);
}

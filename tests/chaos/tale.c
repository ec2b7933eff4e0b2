#include "tale.h"
#include "chaos/check/oracle.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 16 };

static struct bhi_record *note(struct tale *tale, struct bhi_record record) {
    record.at_ns = tale->now_ms * TALE_MS;
    bhi_history_note(&tale->history, &record);
    return tale_last(tale);
}

void tale_begin(struct tale *tale) {
    *tale = (struct tale){.now_ms = 1};
    if (sodium_init() < 0) {
        abort();
    }
    bhi_history_init(&tale->history);
    struct bhi_history_header *header = &tale->history.header;
    header->streams = 2;
    header->fault_set = (1u << BHI_FAULT_KINDS) - 1;
    header->patience_ns = 30000 * TALE_MS;
    header->recovery_ns = 5000 * TALE_MS;
    tale->history.complete = true;
    tale_sample(tale, 20, 50);
    tale_works(tale, 1000);
}

void tale_end(struct tale *tale) {
    bhi_history_free(&tale->history);
}

uint64_t tale_event(uint64_t op) {
    return 100 + op;
}

struct bhi_record *tale_last(struct tale *tale) {
    return &tale->history.records[tale->history.count - 1];
}

static struct bhi_record *find(struct tale *tale, enum bhi_record_kind kind, uint64_t op) {
    for (size_t i = tale->history.count; i > 0; i--) {
        if (tale->history.records[i - 1].kind == kind && tale->history.records[i - 1].op == op) {
            return &tale->history.records[i - 1];
        }
    }
    abort();
}

struct bhi_record *tale_submit(struct tale *tale, uint64_t op) {
    return find(tale, BHI_RECORD_OP, op);
}

struct bhi_record *tale_ended(struct tale *tale, uint64_t op) {
    return find(tale, BHI_RECORD_END, op);
}

uint64_t tale_op(struct tale *tale, uint32_t stream, uint64_t a, uint64_t b) {
    struct bhi_record record = {.kind = BHI_RECORD_OP, .op = ++tale->ops, .stream = stream};
    record.submit.event = tale_event(record.op);
    record.submit.deadline_ns = 2000 * TALE_MS;
    record.submit.work = (struct bhi_chaos_work){WORDS, 3, (uint32_t)record.op, 7, 2};
    if (a) {
        record.submit.inputs[record.submit.input_count++] = a;
    }
    if (b) {
        record.submit.inputs[record.submit.input_count++] = b;
    }
    note(tale, record);
    return record.op;
}

static void compute(struct tale *tale, uint64_t op, uint32_t out[WORDS]) {
    const struct bhi_record *submit = tale_submit(tale, op);
    uint32_t words[BHI_CHAOS_INPUTS][WORDS];
    const uint32_t *inputs[BHI_CHAOS_INPUTS];
    for (uint32_t i = 0; i < submit->submit.input_count; i++) {
        compute(tale, submit->submit.inputs[i], words[i]);
        inputs[i] = words[i];
    }
    bhi_oracle_compute(&submit->submit.work, inputs, submit->submit.input_count, out);
}

void tale_result(struct tale *tale, uint64_t op) {
    uint32_t words[WORDS];
    struct bhi_record record = {.kind = BHI_RECORD_RESULT, .op = op};
    compute(tale, op, words);
    bhi_oracle_digest(words, WORDS, record.result.digest);
    note(tale, record);
}

static struct bhi_record *ended(struct tale *tale, uint64_t op, uint64_t from_ms) {
    struct bhi_record record = {.kind = BHI_RECORD_END, .op = op};
    record.end.origin = tale_event(op);
    record.end.submitted_ns = tale_submit(tale, op)->at_ns;
    record.end.started_ns = from_ms * TALE_MS;
    record.end.ended_ns = tale->now_ms * TALE_MS;
    return note(tale, record);
}

void tale_ready(struct tale *tale, uint64_t op, int32_t pid, uint64_t from_ms) {
    struct bhi_record *end = ended(tale, op, from_ms);
    end->end.state = BH_EVENT_READY;
    end->end.executed = BH_EXECUTED_YES;
    end->end.worker_pid = pid;
    tale_result(tale, op);
}

void tale_poisoned(struct tale *tale, uint64_t op, bh_status status, int signal, int32_t pid,
                   uint64_t from_ms) {
    struct bhi_record *end = ended(tale, op, from_ms);
    end->end.state = BH_EVENT_POISONED;
    end->end.status = status;
    end->end.executed = from_ms ? BH_EXECUTED_UNKNOWN : BH_EXECUTED_NO;
    end->end.signal = signal;
    end->end.worker_pid = pid;
}

void tale_inherits(struct tale *tale, uint64_t op, uint64_t cause) {
    ended(tale, op, 0);
    const struct bhi_record *from = tale_ended(tale, cause);
    struct bhi_record *end = tale_last(tale);
    end->end.state = BH_EVENT_POISONED;
    end->end.status = from->end.status;
    end->end.signal = from->end.signal;
    end->end.worker_pid = from->end.worker_pid;
    end->end.origin = from->end.origin;
    end->end.hops = from->end.hops + 1;
}

void tale_lost_with(struct tale *tale, uint64_t op, uint64_t culprit, uint64_t from_ms) {
    const struct bhi_record from = *tale_ended(tale, culprit);
    tale_poisoned(tale, op, BH_WORKER_LOST, from.end.signal, from.end.worker_pid, from_ms);
    tale_last(tale)->end.origin = tale_event(culprit);
}

uint64_t tale_fault(struct tale *tale, enum bhi_fault_kind kind, uint32_t stream, int32_t pid) {
    struct bhi_record record = {.kind = BHI_RECORD_FAULT, .stream = stream};
    record.fault.number = ++tale->faults;
    record.fault.kind = kind;
    record.fault.after_op = tale->ops;
    record.fault.pid_count = pid != 0;
    record.fault.pids[0] = pid;
    note(tale, record);
    return record.fault.number;
}

uint64_t tale_bait(struct tale *tale, enum bhi_fault_kind kind, uint32_t stream) {
    uint64_t op = tale_op(tale, stream, 0, 0);
    tale_last(tale)->submit.bait = true;
    tale_last(tale)->submit.deadline_ns = 100 * TALE_MS;
    tale_fault(tale, kind, stream, 0);
    tale_last(tale)->op = op;
    return op;
}

void tale_healed(struct tale *tale, uint64_t fault) {
    note(tale, (struct bhi_record){.kind = BHI_RECORD_HEALED, .healed.number = fault});
}

void tale_sample(struct tale *tale, uint32_t descriptors, uint64_t mib) {
    note(tale, (struct bhi_record){.kind = BHI_RECORD_SAMPLE,
                                   .sample = {.descriptors = descriptors,
                                              .processes = 4,
                                              .files = 3,
                                              .rss_bytes = mib << 20,
                                              .idle = true}});
}

void tale_memory(struct tale *tale, const char *device, bool last) {
    struct bhi_record record = {.kind = BHI_RECORD_MEMORY,
                                .memory = {.last = last,
                                           .budget = true,
                                           .total = 8ull << 30,
                                           .unused = 5ull << 30,
                                           .nvml = true,
                                           .used = 1ull << 30,
                                           .listed = true,
                                           .utilised = true,
                                           .utilisation = 7}};
    strcpy(record.memory.device, device);
    note(tale, record);
}

void tale_stall(struct tale *tale, uint64_t ms) {
    note(tale, (struct bhi_record){.kind = BHI_RECORD_STALL, .stall.lasted_ns = ms * TALE_MS});
}

void tale_starved(struct tale *tale, int32_t pid, uint64_t ms) {
    tale_stall(tale, ms);
    tale_last(tale)->stall.pid = pid;
}

void tale_refused(struct tale *tale, bh_status status) {
    struct bhi_record record = {.kind = BHI_RECORD_REFUSED, .op = ++tale->ops};
    record.refused.status = status;
    strcpy(record.refused.call, "bh_buffer_create");
    note(tale, record);
}

void tale_works(struct tale *tale, int32_t pid) {
    uint64_t from_ms = tale->now_ms;
    uint64_t op[2] = {tale_op(tale, 0, 0, 0), tale_op(tale, 1, 0, 0)};
    tale->now_ms += 2;
    for (int stream = 0; stream < 2; stream++) {
        tale_ready(tale, op[stream], pid + stream, from_ms + 1);
    }
}

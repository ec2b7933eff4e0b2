#include "chaos/history/fields.h"

#include <string.h>

/* Limits for an operation: a few times what the engine asks for (workload.c), and quickly computed
 * by a checker. A line of 300 bytes must not take a minute. */
#define MOST_WORDS  (1u << 14)
#define MOST_ROUNDS 64

/* A row of a table. If |struct_| is bhi_record, |member| names the part of the union. */
#define NUMBER(type_, struct_, member, key_, least_, most_)                                        \
    {.key = key_,                                                                                  \
     .type = BHI_FIELD_##type_,                                                                    \
     .offset = offsetof(struct struct_, member),                                                   \
     .least = least_,                                                                              \
     .most = most_}
#define PLAIN(type_, struct_, member, key_) NUMBER(type_, struct_, member, key_, 0, 0)
#define TEXT(struct_, member, key_, size)   NUMBER(TEXT, struct_, member, key_, 0, size)
#define NAME(member, key_, names_)                                                                 \
    {.key = key_,                                                                                  \
     .type = BHI_FIELD_NAME,                                                                       \
     .offset = offsetof(struct bhi_record, member),                                                \
     .names = names_}
#define ARRAY(type_, member, counted_, key_, most_)                                                \
    {.key = key_,                                                                                  \
     .type = BHI_FIELD_##type_,                                                                    \
     .offset = offsetof(struct bhi_record, member),                                                \
     .counted = offsetof(struct bhi_record, counted_),                                             \
     .least = 1,                                                                                   \
     .most = most_}
#define END {.key = NULL}
#define OPTIONAL(type_, struct_, member, key_, most_)                                              \
    {.key = key_,                                                                                  \
     .type = BHI_FIELD_##type_,                                                                    \
     .offset = offsetof(struct struct_, member),                                                   \
     .most = most_,                                                                                \
     .optional = true}
#define TIME(member, key_)       NUMBER(U64, bhi_record, member, key_, 0, INT64_MAX)
#define OP_OR_NONE(member, key_) NUMBER(U64, bhi_record, member, key_, 0, INT64_MAX)
#define AT_NS                    TIME(at_ns, "at_ns")
#define OP                       NUMBER(U64, bhi_record, op, "op", 1, INT64_MAX)
#define STREAM                   NUMBER(U32, bhi_record, stream, "stream", 0, BHI_CHAOS_STREAMS - 1)

const struct bhi_field bhi_header_fields[] = {
    NUMBER(U32, bhi_history_header, schema, "bulkhead_chaos", 1, 1),
    TEXT(bhi_history_header, version, "version", 32),
    NUMBER(U64, bhi_history_header, seed, "seed", 0, UINT64_MAX),
    NUMBER(U64, bhi_history_header, duration_ns, "duration_ns", 0, UINT64_MAX),
    NUMBER(U64, bhi_history_header, faults_asked, "faults_asked", 0, INT64_MAX),
    NUMBER(U32, bhi_history_header, streams, "streams", 1, BHI_CHAOS_STREAMS),
    PLAIN(FAULTS, bhi_history_header, fault_set, "faults"),
    PLAIN(REAL, bhi_history_header, rate, "rate"),
    OPTIONAL(REAL, bhi_history_header, find_rate, "find_rate", 0),
    PLAIN(BOOL, bhi_history_header, outside, "outside"),
    PLAIN(BOOL, bhi_history_header, accelerator, "accelerator"),
    NUMBER(U64, bhi_history_header, patience_ns, "patience_ns", 1, UINT64_MAX),
    NUMBER(U64, bhi_history_header, recovery_ns, "recovery_ns", 1, UINT64_MAX),
    OPTIONAL(U64, bhi_history_header, compile_ns, "compile_ns", UINT64_MAX),
    TEXT(bhi_history_header, device, "device", 64),
    TEXT(bhi_history_header, driver, "driver", 128),
    END,
};

static const struct bhi_field submit_fields[] = {
    AT_NS,
    OP,
    STREAM,
    NUMBER(U64, bhi_record, submit.event, "event", 1, INT64_MAX),
    PLAIN(BOOL, bhi_record, submit.bait, "bait"),
    OPTIONAL(BOOL, bhi_record, submit.device, "device", 0),
    ARRAY(U64S, submit.inputs, submit.input_count, "inputs", BHI_CHAOS_INPUTS),
    OP_OR_NONE(submit.wait, "wait"),
    OP_OR_NONE(submit.reuses, "reuses"),
    NUMBER(U64, bhi_record, submit.deadline_ns, "deadline_ns", 0, UINT64_MAX),
    NUMBER(U32, bhi_record, submit.work.words, "words", 0, MOST_WORDS),
    NUMBER(U32, bhi_record, submit.work.multiplier, "multiplier", 0, UINT32_MAX),
    NUMBER(U32, bhi_record, submit.work.addend, "addend", 0, UINT32_MAX),
    NUMBER(U32, bhi_record, submit.work.shift, "shift", 0, UINT32_MAX),
    NUMBER(U32, bhi_record, submit.work.rounds, "rounds", 0, MOST_ROUNDS),
    END,
};

static const struct bhi_field refused_fields[] = {
    AT_NS,
    OP,
    STREAM,
    PLAIN(STATUS, bhi_record, refused.status, "status"),
    TEXT(bhi_record, refused.call, "call", 32),
    END,
};

static const char *const states[] = {[BH_EVENT_PENDING] = "pending",
                                     [BH_EVENT_READY] = "ready",
                                     [BH_EVENT_POISONED] = "poisoned",
                                     NULL};
static const char *const executed[] = {
    [BH_EXECUTED_NO] = "no", [BH_EXECUTED_UNKNOWN] = "unknown", [BH_EXECUTED_YES] = "yes", NULL};

static const char *const blames[] = {[BH_BLAME_NONE] = "none",
                                     [BH_BLAME_SUSPECTED] = "suspected",
                                     [BH_BLAME_CERTAIN] = "certain",
                                     NULL};

static const struct bhi_field end_fields[] = {
    AT_NS,
    OP,
    PLAIN(BOOL, bhi_record, end.lost, "lost"),
    NAME(end.state, "state", states),
    PLAIN(STATUS, bhi_record, end.status, "status"),
    NAME(end.executed, "executed", executed),
    NUMBER(I32, bhi_record, end.signal, "signal", 0, 64),
    NUMBER(I32, bhi_record, end.worker_pid, "worker_pid", 0, INT32_MAX),
    NUMBER(U64, bhi_record, end.origin, "origin", 0, INT64_MAX),
    NUMBER(U32, bhi_record, end.hops, "hops", 0, UINT32_MAX),
    TIME(end.submitted_ns, "submitted_ns"),
    TIME(end.started_ns, "started_ns"),
    TIME(end.ended_ns, "ended_ns"),
    NAME(end.blame, "blame", blames),
    PLAIN(BOOL, bhi_record, end.changed, "changed"),
    END,
};

static const struct bhi_field result_fields[] = {
    AT_NS,
    OP,
    PLAIN(STATUS, bhi_record, result.status, "status"),
    PLAIN(DIGEST, bhi_record, result.digest, "digest"),
    END,
};

static const struct bhi_field fault_fields[] = {
    AT_NS,
    OP_OR_NONE(op, "op"),
    STREAM,
    NUMBER(U64, bhi_record, fault.number, "number", 1, INT64_MAX),
    NAME(fault.kind, "fault", bhi_fault_names),
    PLAIN(BOOL, bhi_record, fault.outside, "outside"),
    PLAIN(BOOL, bhi_record, fault.missed, "missed"),
    ARRAY(I32S, fault.pids, fault.pid_count, "pids", BHI_CHAOS_STREAMS),
    OP_OR_NONE(fault.after_op, "after_op"),
    TIME(fault.lasts_ns, "lasts_ns"),
    END,
};

static const struct bhi_field healed_fields[] = {
    AT_NS,
    NUMBER(U64, bhi_record, healed.number, "number", 1, INT64_MAX),
    END,
};

static const struct bhi_field sample_fields[] = {
    AT_NS,
    NUMBER(U32, bhi_record, sample.descriptors, "descriptors", 0, UINT32_MAX),
    NUMBER(U32, bhi_record, sample.processes, "processes", 0, UINT32_MAX),
    NUMBER(U32, bhi_record, sample.files, "files", 0, UINT32_MAX),
    NUMBER(U64, bhi_record, sample.rss_bytes, "rss_bytes", 0, INT64_MAX),
    PLAIN(BOOL, bhi_record, sample.idle, "idle"),
    END,
};

static const struct bhi_field memory_fields[] = {
    AT_NS,
    TEXT(bhi_record, memory.device, "device", 48),
    PLAIN(BOOL, bhi_record, memory.last, "last"),
    PLAIN(BOOL, bhi_record, memory.budget, "budget"),
    NUMBER(U64, bhi_record, memory.total, "total", 0, UINT64_MAX),
    NUMBER(U64, bhi_record, memory.unused, "free", 0, UINT64_MAX),
    PLAIN(BOOL, bhi_record, memory.nvml, "nvml"),
    NUMBER(U64, bhi_record, memory.used, "used", 0, UINT64_MAX),
    PLAIN(BOOL, bhi_record, memory.listed, "listed"),
    NUMBER(U64, bhi_record, memory.others, "others", 0, UINT64_MAX),
    NUMBER(U32, bhi_record, memory.other_processes, "other_processes", 0, UINT32_MAX),
    PLAIN(BOOL, bhi_record, memory.utilised, "utilised"),
    NUMBER(U32, bhi_record, memory.utilisation, "utilisation", 0, 100),
    TIME(memory.waited_ns, "waited_ns"),
    END,
};

static const struct bhi_field attempt_fields[] = {
    AT_NS,
    OP,
    NUMBER(U64, bhi_record, attempt.request, "request", 1, INT64_MAX),
    PLAIN(BOOL, bhi_record, attempt.once, "once"),
    PLAIN(BOOL, bhi_record, attempt.expects, "expects"),
    PLAIN(DIGEST, bhi_record, attempt.expected, "expected"),
    END,
};

static const struct bhi_field answer_fields[] = {
    AT_NS,
    NUMBER(U64, bhi_record, answer.request, "request", 1, INT64_MAX),
    PLAIN(BOOL, bhi_record, answer.good, "good"),
    END,
};

static const struct bhi_field stall_fields[] = {
    AT_NS,
    TIME(stall.lasted_ns, "lasted_ns"),
    OPTIONAL(I32, bhi_record, stall.pid, "pid", INT32_MAX),
    END,
};

const struct bhi_fields bhi_record_fields[BHI_RECORD_KINDS] = {
    [BHI_RECORD_OP] = {"op", submit_fields},
    [BHI_RECORD_REFUSED] = {"refused", refused_fields},
    [BHI_RECORD_END] = {"end", end_fields},
    [BHI_RECORD_RESULT] = {"result", result_fields},
    [BHI_RECORD_FAULT] = {"fault", fault_fields},
    [BHI_RECORD_HEALED] = {"healed", healed_fields},
    [BHI_RECORD_SAMPLE] = {"sample", sample_fields},
    [BHI_RECORD_STALL] = {"stall", stall_fields},
    [BHI_RECORD_MEMORY] = {"memory", memory_fields},
    [BHI_RECORD_ATTEMPT] = {"attempt", attempt_fields},
    [BHI_RECORD_ANSWER] = {"answer", answer_fields},
};

/* Every enum above must have the size of an unsigned int. */
_Static_assert(sizeof(bh_event_state) == sizeof(unsigned) &&
                   sizeof(bh_executed) == sizeof(unsigned) &&
                   sizeof(bh_blame) == sizeof(unsigned) &&
                   sizeof(enum bhi_fault_kind) == sizeof(unsigned) &&
                   sizeof(bh_status) == sizeof(unsigned),
               "a field of names is an unsigned int");

static const struct {
    bh_status status;
    const char *word;
} statuses[] = {
#define BH_STATUS(NAME, value, CLASS, text, advice) {BH_##NAME, #NAME},
#include "base/status.def"
#undef BH_STATUS
};

const char *bhi_status_word(bh_status status) {
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        if (statuses[i].status == status) {
            return statuses[i].word;
        }
    }
    return NULL;
}

bool bhi_status_parse(const char *word, bh_status *out_status) {
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        if (!strcmp(statuses[i].word, word)) {
            *out_status = statuses[i].status;
            return true;
        }
    }
    return false;
}

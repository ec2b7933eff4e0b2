#include "tale.h"
#include "chaos/check/oracle.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>

enum { WORDS = 16 };

struct tale tale;
struct bhi_chaos_result result;

/* -- records ------------------------------------------------------------------------------------
 */

static struct bhi_record *note(struct bhi_record record) {
    record.at_ns = tale.now_ms * TALE_MS;
    bhi_history_note(&tale.history, &record);
    return last();
}

struct bhi_record *last(void) {
    return &tale.history.records[tale.history.count - 1];
}

uint64_t event_of(uint64_t op) {
    return 100 + op;
}

static struct bhi_record *find(enum bhi_record_kind kind, uint64_t op) {
    for (size_t i = tale.history.count; i > 0; i--) {
        if (tale.history.records[i - 1].kind == kind && tale.history.records[i - 1].op == op) {
            return &tale.history.records[i - 1];
        }
    }
    BHT_FAIL("operation %" PRIu64 " has no such record", op);
}

struct bhi_record *submitted(char name) {
    return find(BHI_RECORD_OP, tale.named[(int)name]);
}

struct bhi_record *ended(char name) {
    return find(BHI_RECORD_END, tale.named[(int)name]);
}

struct bhi_record *first_fault(void) {
    size_t i = 0;
    while (tale.history.records[i].kind != BHI_RECORD_FAULT) {
        BHT_LT(++i, tale.history.count);
    }
    return &tale.history.records[i];
}

static uint64_t submit(uint32_t stream) {
    struct bhi_record record = {.kind = BHI_RECORD_OP, .op = ++tale.ops, .stream = stream};
    record.submit.event = event_of(record.op);
    record.submit.deadline_ns = 2000 * TALE_MS;
    record.submit.work = (struct bhi_chaos_work){WORDS, 3, (uint32_t)record.op, 7, 2};
    note(record);
    return record.op;
}

static void compute(uint64_t op, uint32_t out[WORDS]) {
    const struct bhi_record *of = find(BHI_RECORD_OP, op);
    uint32_t words[BHI_CHAOS_INPUTS][WORDS];
    const uint32_t *inputs[BHI_CHAOS_INPUTS];
    for (uint32_t i = 0; i < of->submit.input_count; i++) {
        compute(of->submit.inputs[i], words[i]);
        inputs[i] = words[i];
    }
    bhi_oracle_compute(&of->submit.work, inputs, of->submit.input_count, out);
}

static void read_back(uint64_t op) {
    uint32_t words[WORDS];
    struct bhi_record record = {.kind = BHI_RECORD_RESULT, .op = op};
    compute(op, words);
    bhi_oracle_digest(words, WORDS, record.result.digest);
    note(record);
}

static struct bhi_record *finish(uint64_t op, uint64_t from_ms) {
    struct bhi_record record = {.kind = BHI_RECORD_END, .op = op};
    record.end.origin = event_of(op);
    record.end.submitted_ns = find(BHI_RECORD_OP, op)->at_ns;
    record.end.started_ns = from_ms * TALE_MS;
    record.end.ended_ns = tale.now_ms * TALE_MS;
    record.end.state = BH_EVENT_POISONED;
    record.end.executed = from_ms ? BH_EXECUTED_UNKNOWN : BH_EXECUTED_NO;
    return note(record);
}

static void be_ready(uint64_t op, int32_t pid, uint64_t from_ms) {
    struct bhi_record *end = finish(op, from_ms);
    end->end.state = BH_EVENT_READY;
    end->end.executed = BH_EXECUTED_YES;
    end->end.worker_pid = pid;
    read_back(op);
}

static void work(int32_t pid) {
    const uint64_t from_ms = tale.now_ms, op[2] = {submit(0), submit(1)};
    tale.now_ms += 2;
    for (int stream = 0; stream < 2; stream++) {
        be_ready(op[stream], pid + stream, from_ms + 1);
    }
}

static void sample(uint32_t descriptors, uint64_t mib) {
    note((struct bhi_record){.kind = BHI_RECORD_SAMPLE,
                             .sample = {.descriptors = descriptors,
                                        .processes = 4,
                                        .files = 3,
                                        .rss_bytes = mib << 20,
                                        .idle = true}});
}

static void begin(void) {
    tale = (struct tale){.begun = true, .now_ms = 1};
    if (sodium_init() < 0) {
        abort();
    }
    bhi_history_init(&tale.history);
    struct bhi_history_header *header = &tale.history.header;
    header->streams = 2;
    header->fault_set = (1u << BHI_FAULT_KINDS) - 1;
    header->patience_ns = 30000 * TALE_MS;
    header->recovery_ns = 5000 * TALE_MS;
    tale.history.complete = true;
    sample(20, 50);
    work(1000);
}

void end_tale(void) {
    bhi_history_free(&tale.history);
    tale.begun = false;
}

/* -- words --------------------------------------------------------------------------------------
 */

static char *rest; /* of the statement */

static bool is(const char *word, const char *other) {
    return !strcmp(word, other);
}

/* The next word; NULL: there is none. */
static const char *word(void) {
    return strtok_r(NULL, " ", &rest);
}

static uint64_t value(const char *text) {
    static const struct {
        const char *name;
        uint64_t value;
    } names[] = {
        {"KILL", SIGKILL},
        {"SEGV", SIGSEGV},
        {"ABRT", SIGABRT},
        {"PENDING", BH_EVENT_PENDING},
        {"PIPE", SIGPIPE},
        {"READY", BH_EVENT_READY},
        {"UNKNOWN", BH_EXECUTED_UNKNOWN},
        {"YES", BH_EXECUTED_YES},
        {"CERTAIN", BH_BLAME_CERTAIN},
    };
    if (*text >= '0' && *text <= '9') {
        return strtoull(text, NULL, 10);
    }
    if (!text[1]) {
        return tale.named[(int)*text];
    }
    for (size_t i = 0; i < BHT_COUNT(names); i++) {
        if (is(text, names[i].name)) {
            return names[i].value;
        }
    }
    for (int status = 0; status < 256; status++) {
        if (is(text, bh_status_name((bh_status)status))) {
            return (uint64_t)status;
        }
    }
    BHT_FAIL("what is '%s'?", text);
}

/* The value of the next word; 0: there is none. */
static uint64_t next(void) {
    const char *text = word();
    return text ? value(text) : 0;
}

static enum bhi_fault_kind next_kind(void) {
    const char *name = word();
    for (int kind = 0; kind < BHI_FAULT_KINDS; kind++) {
        if (is(name, bhi_fault_name((enum bhi_fault_kind)kind))) {
            return (enum bhi_fault_kind)kind;
        }
    }
    BHT_FAIL("no fault is a '%s'", name);
}

static void inject(enum bhi_fault_kind kind, uint64_t op) {
    struct bhi_record record = {.kind = BHI_RECORD_FAULT, .op = op, .stream = (uint32_t)next()};
    const int32_t pid = (int32_t)next();
    record.fault.number = ++tale.faults;
    record.fault.kind = kind;
    record.fault.after_op = tale.ops;
    record.fault.pid_count = pid != 0;
    record.fault.pids[0] = pid;
    for (const char *what; (what = word());) {
        if (is(what, "lasts")) {
            record.fault.lasts_ns = next() * TALE_MS;
        } else if (is(what, "after")) {
            record.fault.after_op = next();
        } else if (is(what, "number")) {
            record.fault.number = next();
        } else {
            record.fault.outside |= is(what, "outside");
            record.fault.missed |= is(what, "missed");
        }
    }
    note(record);
}

static void submit_as_told(char name) {
    tale.named[(int)name] = submit((uint32_t)next());
    struct bhi_record *of = last();
    uint64_t *one = NULL; /* what a name is now; NULL: an input */
    for (const char *what; (what = word());) {
        if (is(what, "needs")) {
            one = NULL;
        } else if (is(what, "waits")) {
            one = &of->submit.wait;
        } else if (is(what, "reuses")) {
            one = &of->submit.reuses;
        } else if (what[1]) {
            of->submit.device |= is(what, "device");
            of->submit.bait |= is(what, "bait");
        } else {
            *(one ? one : &of->submit.inputs[of->submit.input_count++]) = value(what);
        }
    }
}

static void bait(char name) {
    const enum bhi_fault_kind kind = next_kind();
    const uint64_t op = submit((uint32_t)strtoul(rest, NULL, 10));
    tale.named[(int)name] = op;
    last()->submit.bait = true;
    last()->submit.deadline_ns = 100 * TALE_MS;
    inject(kind, op);
}

static void set_field(char name) {
    static const struct {
        const char *name;
        size_t at, size;
    } fields[] = {
#define FIELD(field) {#field, offsetof(struct bhi_record, end.field), sizeof(last()->end.field)}
        FIELD(lost),   FIELD(state),      FIELD(status),    FIELD(executed),
        FIELD(signal), FIELD(worker_pid), FIELD(origin),    FIELD(hops),
        FIELD(blame),  FIELD(changed),    FIELD(started_ns)};
    const char *field = word();
    for (size_t i = 0; i < BHT_COUNT(fields); i++) {
        if (is(field, fields[i].name)) {
            const bool of_op = is(field, "origin") && rest && *rest >= 'a';
            const uint64_t set = next(), whole = of_op ? event_of(set) : set;
            memcpy((char *)ended(name) + fields[i].at, &whole,
                   fields[i].size); /* little end first */
            return;
        }
    }
    BHT_FAIL("an end has no '%s'", field);
}

static void poison(uint64_t op) {
    const bh_status status = (bh_status)next();
    const int signal = (int)next();
    const int32_t pid = (int32_t)next();
    struct bhi_record *end = finish(op, next());
    end->end.status = status;
    end->end.signal = signal;
    end->end.worker_pid = pid;
}

static void inherit(uint64_t op, const char *cause) {
    finish(op, 0);
    const struct bhi_record *from = ended(*cause);
    struct bhi_record *end = last();
    end->end.executed = BH_EXECUTED_NO;
    end->end.status = from->end.status;
    end->end.signal = from->end.signal;
    end->end.worker_pid = from->end.worker_pid;
    end->end.origin = from->end.origin;
    end->end.hops = from->end.hops + 1;
}

static void lose_with(uint64_t op, const char *culprit) {
    const struct bhi_record from = *ended(*culprit);
    struct bhi_record *end = finish(op, next());
    end->end.status = BH_WORKER_LOST;
    end->end.signal = from.end.signal;
    end->end.worker_pid = from.end.worker_pid;
    end->end.origin = event_of(from.op);
}

static void tell_of(char name, const char *verb) {
    const uint64_t op = tale.named[(int)name];
    if (is(verb, "on")) {
        submit_as_told(name);
    } else if (is(verb, "baits")) {
        bait(name);
    } else if (is(verb, "ready")) {
        const int32_t pid = (int32_t)next();
        be_ready(op, pid, next());
    } else if (is(verb, "poisoned")) {
        poison(op);
    } else if (is(verb, "inherits")) {
        inherit(op, word());
    } else if (is(verb, "lost")) {
        (void)word();
        lose_with(op, word());
    } else if (is(verb, "has")) {
        set_field(name);
    } else if (is(verb, "result")) {
        read_back(op);
    } else if (is(verb, "read")) {
        find(BHI_RECORD_RESULT, op)->result.status = (bh_status)next();
    } else if (is(verb, "wrong")) {
        find(BHI_RECORD_RESULT, op)->result.digest[7] ^= 1;
    } else if (is(verb, "unread")) {
        struct bhi_record *record = find(BHI_RECORD_RESULT, op);
        record->kind = BHI_RECORD_STALL;
        record->stall.lasted_ns = 0;
    } else {
        BHT_FAIL("what does it do: %c %s?", name, verb);
    }
}

static void look_at_memory(const char *device) {
    struct bhi_record record = {.kind = BHI_RECORD_MEMORY,
                                .memory = {.last = !!word(),
                                           .budget = true,
                                           .total = 8ull << 30,
                                           .unused = 5ull << 30,
                                           .nvml = true,
                                           .used = 1ull << 30,
                                           .listed = true,
                                           .utilised = true,
                                           .utilisation = 7}};
    strcpy(record.memory.device, device);
    note(record);
}

static void refuse(bh_status status) {
    struct bhi_record record = {.kind = BHI_RECORD_REFUSED, .op = ++tale.ops};
    record.refused.status = status;
    strcpy(record.refused.call, "bh_buffer_create");
    note(record);
}

static void tell_statement(const char *what) {
    if (!what[1]) {
        tell_of(*what, word());
    } else if (is(what, "at")) {
        tale.now_ms = next();
    } else if (is(what, "after")) {
        tale.now_ms += next();
    } else if (is(what, "fault")) {
        inject(next_kind(), 0);
    } else if (is(what, "healed")) {
        note((struct bhi_record){.kind = BHI_RECORD_HEALED, .healed.number = next()});
    } else if (is(what, "sample")) {
        const uint32_t descriptors = (uint32_t)next();
        sample(descriptors, next());
    } else if (is(what, "stall") || is(what, "starved")) {
        const int32_t pid = is(what, "starved") ? (int32_t)next() : 0;
        note((struct bhi_record){.kind = BHI_RECORD_STALL,
                                 .stall = {.lasted_ns = next() * TALE_MS, .pid = pid}});
    } else if (is(what, "refused")) {
        refuse((bh_status)next());
    } else if (is(what, "works")) {
        work((int32_t)next());
    } else if (is(what, "memory")) {
        look_at_memory(word());
    } else if (is(what, "accelerator")) {
        tale.history.header.accelerator = true;
    } else if (is(what, "incomplete")) {
        tale.history.complete = false;
    } else {
        BHT_FAIL("what is '%s'?", what);
    }
}

__attribute__((format(printf, 1, 0))) static void tell_all(const char *story, va_list list) {
    char text[2048], *save;
    if (!tale.begun) {
        begin();
    }
    if (!story) {
        return;
    }
    BHT_LT(vsnprintf(text, sizeof text, story, list), (int)sizeof text);
    for (char *one = strtok_r(text, ";", &save); one; one = strtok_r(NULL, ";", &save)) {
        const char *what = strtok_r(one, " ", &rest);
        if (what) {
            tell_statement(what);
        }
    }
}

void tell(const char *story, ...) {
    va_list list;
    va_start(list, story);
    tell_all(story, list);
    va_end(list);
}

/* -- what the checker makes of it ---------------------------------------------------------------
 */

const char *all_findings(void) {
    static char text[8192];
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < result.finding_count; i++) {
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "\n    %s: %s",
                             bhi_anomaly_name(result.findings[i].anomaly), result.findings[i].text);
    }
    return text;
}

void check(void) {
    BHT_TRUE(bhi_chaos_check(&tale.history, &result));
}

void judge(void) {
    tell("after 100; works 1100; after 100; sample 20 50");
    BHT_TRUE(!tale.history.overflow);
    check();
    end_tale();
}

void valid(const char *story, ...) {
    va_list list;
    va_start(list, story);
    tell_all(story, list);
    va_end(list);
    judge();
    if (result.verdict != BHI_CHAOS_VALID) {
        BHT_FAIL("%s: %s:%s", story ? story : "", bhi_chaos_verdict_name(result.verdict),
                 all_findings());
    }
}

void found(enum bhi_anomaly anomaly, char name, const char *words, const char *story, ...) {
    va_list list;
    va_start(list, story);
    tell_all(story, list);
    va_end(list);
    const uint64_t op = name ? tale.named[(int)name] : 0;
    judge();
    bool good =
        result.by_anomaly[anomaly] > 0 &&
        result.verdict == (anomaly == BHI_ANOMALY_UNKNOWN ? BHI_CHAOS_UNKNOWN : BHI_CHAOS_INVALID);
    for (int other = 0; other < BHI_ANOMALIES; other++) {
        good &= other == (int)anomaly || !result.by_anomaly[other];
    }
    bool said = false;
    for (size_t i = 0; i < result.finding_count; i++) {
        said |= strstr(result.findings[i].text, words) && (!op || result.findings[i].op == op);
    }
    if (!good || !said) {
        BHT_FAIL("%s: %s, not %s of %" PRIu64 " ('%s'):%s", story ? story : "",
                 bhi_chaos_verdict_name(result.verdict), bhi_anomaly_name(anomaly), op, words,
                 all_findings());
    }
}

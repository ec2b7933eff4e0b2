/* K5: a kernel that has ended workers is refused before it reaches another. */
#include "fixture.h"

#include <stdio.h>

/* Kernels that do not end; the driver has them as they are. */
struct stage {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *gate, *square;
    bh_buffer *word;
    uint32_t *open;
};

static bh_stream *stream_of(struct stage *s, const char *name, const char *tenant,
                            uint64_t deadline_ns) {
    bh_stream_options options = fx_stream_options();
    options.name = name;
    options.tenant = tenant;
    options.deadline_ns = deadline_ns;
    bh_stream *stream = fx_stream_with(s->context, options);
    fx_ready(stream);
    return stream;
}

static void make_rest(struct stage *s) {
    s->gate = fx_kernel_trusted(s->context, "gate");
    s->square = fx_kernel(s->context, "square");
    s->word = fx_words(s->context, 2, 0);
    s->open = fx_pointer(s->word);
}

static struct stage stage_open_with(bh_context_options options, const char *faults,
                                    uint64_t deadline_ns) {
    struct stage s = {.context = fx_context_with(options, faults)};
    s.stream = stream_of(&s, "s", NULL, deadline_ns);
    make_rest(&s);
    return s;
}

static struct stage stage_open(uint32_t deaths, uint64_t keep_ns, const char *faults,
                               uint64_t deadline_ns) {
    bh_context_options options = fx_options();
    options.quarantine_deaths = deaths ? deaths : BH_OFF;
    options.quarantine_ns = keep_ns ? keep_ns : BH_OFF;
    return stage_open_with(options, faults, deadline_ns);
}

/* A fresh word each time: the last one is poisoned, and may still be written. */
static void fresh_word(struct stage *s) {
    bh_buffer_release(s->word);
    s->word = fx_words(s->context, 2, 0);
    s->open = fx_pointer(s->word);
}

static bh_event *fresh_gate(struct stage *s, bh_stream *stream) {
    fresh_word(s);
    return fx_gate(stream, s->gate, s->word);
}

/* The gate runs on |stream|, and its worker gets |signal|. */
static bh_verdict die_of(struct stage *s, bh_stream *stream, int signal, bh_status status) {
    pid_t pid = fx_ready(stream);
    bh_event *event = fresh_gate(s, stream);
    fx_await_gate(s->word);
    fx_kill(pid, signal);
    return fx_expect(event, status);
}

static bh_verdict die(struct stage *s, bh_stream *stream) {
    return die_of(s, stream, SIGSEGV, BH_WORKER_SIGNAL);
}

/* The gate is refused, and no worker hears of it. */
static bh_verdict refused(struct stage *s, bh_stream *stream) {
    const bh_stats before = fx_stats(s->context);
    bh_event *event = fresh_gate(s, stream);
    BHT_EQ(bh_event_query(event), BH_EVENT_POISONED); /* at once */
    bh_verdict verdict = fx_expect(event, BH_QUARANTINED);
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    BHT_EQ(verdict.hops, 0);
    BHT_EQ(verdict.worker_pid, 0);
    BHT_STR_EQ(verdict.kernel_name, "gate");
    BHT_STR_HAS(verdict.message, "quarantined");
    BHT_EQ(bh_verdict_classify(&verdict), BH_STATUS_CLASS_INPUT);
    const bh_stats after = fx_stats(s->context);
    BHT_EQ(after.kernels_introduced, before.kernels_introduced);
    return verdict;
}

/* It runs. */
static void accepted(struct stage *s, bh_stream *stream) {
    fresh_word(s);
    fx_open(s->open);
    fx_expect(fx_gate(stream, s->gate, s->word), BH_OK);
}

TEST(two_deaths_are_enough) {
    struct stage s = stage_open(2, BH_FOREVER, NULL, BH_FOREVER);
    die(&s, s.stream);
    BHT_EQ(fx_quarantined(s.context), 0);
    bh_verdict last = die(&s, s.stream);
    bh_verdict verdict = refused(&s, s.stream);
    BHT_EQ(verdict.origin, last.event);
    BHT_STR_HAS(verdict.message, "SIGSEGV");
    BHT_STR_HAS(verdict.message, "expires never");
    char event[32];
    snprintf(event, sizeof event, "event %" PRIu64, last.event);
    BHT_STR_HAS(verdict.message, event);
    bh_quarantined entry = {.struct_size = sizeof entry};
    size_t count;
    BHT_EQ(bh_quarantine_list(s.context, &entry, 1, &count, NULL), BH_OK);
    BHT_EQ(count, 1);
    uint8_t hash[32];
    bh_kernel_hash(s.gate, hash);
    BHT_MEM_EQ(entry.kernel_hash, hash, sizeof hash);
    BHT_STR_EQ(entry.kernel_name, "gate");
    BHT_STR_EQ(entry.tenant, "");
    BHT_EQ(entry.status, BH_QUARANTINED);
    BHT_EQ(entry.cause, BH_WORKER_SIGNAL);
    BHT_EQ(entry.signal, SIGSEGV);
    BHT_EQ(entry.deaths, 2);
    BHT_EQ(entry.origin, last.event);
    BHT_EQ(entry.expires_ns, BH_FOREVER);
    BHT_TRUE(entry.since_ns < bht_now_ns());
    /* It is the kernel, not its handle, its name or its stream. */
    bh_kernel *again = fx_kernel_trusted(s.context, "gate");
    bh_kernel *old = s.gate;
    s.gate = again;
    bh_stream *other = stream_of(&s, "other", "", BH_FOREVER);
    refused(&s, other);
    bh_kernel_release(old);
    refused(&s, s.stream);
    fx_expect_healthy(s.context, s.stream);
}

/* What reads its output is poisoned with it; a submission that has it among others is refused
 * whole. */
TEST(refusals_are_verdicts_like_others) {
    struct stage s = stage_open(1, BH_FOREVER, NULL, BH_FOREVER);
    bh_verdict last = die(&s, s.stream);
    fresh_word(&s);
    bh_buffer *x = fx_words(s.context, 64, 0), *y = fx_words(s.context, 64, 0);
    const bh_binding word = bh_bind_read_write(0, s.word);
    const bh_binding pair[] = {bh_bind_read(0, s.word), bh_bind_write(1, y)};
    const bh_command commands[] = {
        {.type = BH_COMMAND_FILL, .fill = {.dst = x, .size = BH_WHOLE_SIZE, .value = 7}},
        fx_dispatch(s.gate, &word, 1)};
    bh_event *first = fx_commands(s.stream, commands, 2);
    bh_event *dependent = fx_command(s.stream, fx_dispatch(s.square, pair, 2), NULL, 0);
    bh_verdict verdict = fx_expect(first, BH_QUARANTINED);
    BHT_EQ(verdict.command_index, 1);
    verdict = fx_expect(dependent, BH_QUARANTINED);
    BHT_EQ(verdict.hops, 1);
    BHT_EQ(verdict.origin, last.event);
    BHT_EQ(fx_content(x), BH_QUARANTINED);
    /* To prepare it is to use it. */
    BHT_EQ(bh_kernel_prepare(s.gate, s.stream, &first, NULL), BH_OK);
    fx_expect(first, BH_QUARANTINED);
    fx_expect_healthy(s.context, s.stream);
}

enum { QUEUED = 8 };

/* Those that were queued before it was known are refused when their turn comes. */
TEST(what_is_queued_is_refused_too) {
    struct stage s = stage_open(2, BH_FOREVER, NULL, 50 * bht_slowness() * FX_MS);
    bh_event *events[QUEUED];
    bh_buffer *words[QUEUED];
    for (int i = 0; i < QUEUED; i++) {
        words[i] = fx_words(s.context, 2, 0);
        events[i] = fx_gate(s.stream, s.gate, words[i]);
    }
    uint64_t deaths[2];
    for (int i = 0; i < QUEUED; i++) {
        bh_verdict verdict = fx_expect(events[i], i < 2 ? BH_DEADLINE : BH_QUARANTINED);
        if (i < 2) {
            deaths[i] = verdict.event;
        } else {
            BHT_EQ(verdict.origin, deaths[1]);
        }
    }
    fx_expect_healthy(s.context, s.stream);
}

TEST(other_tenants_are_not_touched) {
    struct stage s = stage_open(2, BH_FOREVER, NULL, BH_FOREVER);
    bh_stream *a = stream_of(&s, "a", "alice", BH_FOREVER);
    bh_stream *b = stream_of(&s, "b", "bob", BH_FOREVER);
    die(&s, a);
    die(&s, b);
    BHT_EQ(fx_quarantined(s.context), 0); /* one each */
    accepted(&s, a);
    die(&s, a);
    refused(&s, a);
    accepted(&s, b);
    accepted(&s, s.stream);
    bh_stream *second = stream_of(&s, "a2", "alice", BH_FOREVER);
    refused(&s, second);
}

TEST(it_is_released) {
    struct stage s = stage_open(1, BH_FOREVER, NULL, BH_FOREVER);
    uint8_t hash[32], other[32];
    bh_kernel_hash(s.gate, hash);
    bh_kernel_hash(s.square, other);
    die(&s, s.stream);
    BHT_EQ(bh_quarantine_release(s.context, NULL, other, NULL), BH_OK);
    BHT_EQ(bh_quarantine_release(s.context, "alice", NULL, NULL), BH_OK);
    refused(&s, s.stream);
    BHT_EQ(bh_quarantine_release(s.context, "", hash, NULL), BH_OK);
    BHT_EQ(fx_quarantined(s.context), 0);
    accepted(&s, s.stream);
    die(&s, s.stream); /* and is counted anew */
    refused(&s, s.stream);
    BHT_EQ(bh_quarantine_release(s.context, NULL, NULL, NULL), BH_OK);
    accepted(&s, s.stream);
    size_t count;
    BHT_EQ(bh_quarantine_list(s.context, NULL, 1, &count, NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_quarantine_list(s.context, NULL, 0, NULL, NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_quarantine_list(NULL, NULL, 0, &count, NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_quarantine_release(NULL, NULL, NULL, NULL), BH_INVALID_ARGUMENT);
}

TEST(it_expires) {
    struct stage s = stage_open(1, BHT_SECOND_MS * FX_MS, NULL, BH_FOREVER);
    die(&s, s.stream);
    fx_ready(s.stream);
    WAIT_UNTIL(fx_quarantined(s.context) == 0, 20000);
    accepted(&s, s.stream);
}

/* Each of these ends a worker; what it ends with is in tests/system/death.c. */
TEST(every_kind_of_death_counts) {
    static const struct {
        const char *fault;
        bh_status status;
    } kinds[] = {
        {"1:submitted:1=sigsys", BH_SECCOMP},
        {"1:submitted:1=exit7", BH_WORKER_EXIT},
        {"1:submitted:1=abort", BH_WORKER_SIGNAL},
        {"1:vk:*=lost", BH_DEVICE_LOST},
    };
    for (size_t i = 0; i < BHT_COUNT(kinds); i++) {
        struct stage s = stage_open(1, BH_FOREVER, kinds[i].fault, BH_FOREVER);
        fx_open(s.open);
        bh_event *event = fx_gate(s.stream, s.gate, s.word);
        bh_verdict verdict = fx_verdict(event);
        if (verdict.status != kinds[i].status) {
            BHT_FAIL("%s: %s: %s", kinds[i].fault, bh_status_name(verdict.status), verdict.message);
        }
        BHT_EQ(refused(&s, s.stream).origin, verdict.event);
        fx_release_all();
    }
}

/* T2: a kernel cannot send its worker these signals, nor stop it. */
TEST(what_came_from_outside_counts_for_nobody) {
    static const int signals[] = {SIGKILL, SIGTERM, SIGXCPU, SIGSTOP};
    struct stage s = stage_open(1, BH_FOREVER, NULL, BH_FOREVER);
    bh_stream *limited = stream_of(&s, "limited", NULL, BHT_SECOND_MS * FX_MS);
    for (size_t i = 0; i < BHT_COUNT(signals); i++) {
        const bool stops = signals[i] == SIGSTOP;
        const bh_verdict verdict = die_of(&s, stops ? limited : s.stream, signals[i],
                                          stops ? BH_DEADLINE : BH_WORKER_SIGNAL);
        BHT_EQ(verdict.signal, stops ? SIGKILL : signals[i]);
        BHT_EQ(verdict.blame, BH_BLAME_NONE);
        BHT_EQ(bh_verdict_classify(&verdict), BH_STATUS_CLASS_VICTIM);
        BHT_STR_HAS(verdict.message,
                    stops ? "somebody had stopped the worker (SIGSTOP)" : "from outside");
        BHT_EQ(fx_quarantined(s.context), 0);
    }
    accepted(&s, s.stream);
}

TEST(a_compiler_that_runs_out_of_memory_counts) {
    struct stage s = stage_open(1, BH_FOREVER, NULL, BH_FOREVER);
    bh_stream_options options = fx_stream_options();
    options.memory_limit = 256ull << 20;
    bh_stream *stream = fx_stream_with(s.context, options);
    bh_kernel_release(s.gate);
    s.gate = fx_kernel_trusted(s.context, "memory_bomb");
    fresh_word(&s);
    fx_expect(fx_run(stream, s.gate, s.word), BH_COMPILE_FAILED);
    BHT_EQ(fx_quarantined(s.context), 1);
}

/* A worker that dies idle, a submission that is cancelled or refused, one that is lost with its
 * worker through another's fault: none of them is the kernel's doing. */
TEST(what_does_not_count) {
    struct stage s = stage_open(1, BH_FOREVER, NULL, BH_FOREVER);
    for (int i = 0; i < 2; i++) {
        bh_event *event = fresh_gate(&s, s.stream);
        fx_await_gate(s.word);
        BHT_EQ(bh_event_cancel(event), BH_OK);
        fx_expect(event, BH_CANCELLED);
    }
    pid_t pid = fx_ready(s.stream);
    fx_kill(pid, SIGKILL);
    WAIT_UNTIL(bh_stream_worker_pid(s.stream) != pid, 20000);
    bh_buffer *empty = fx_buffer(s.context, 0);
    fx_expect(fx_run(s.stream, s.square, empty), BH_BINDING_MISMATCH); /* it wants two */
    BHT_EQ(fx_quarantined(s.context), 0);
    accepted(&s, s.stream);
}

/* Which of two different kernels it was nobody knows; two names of one are one. */
TEST(a_death_among_several_kernels_counts_for_none) {
    struct stage s = stage_open(1, BH_FOREVER, NULL, BH_FOREVER);
    bh_buffer *y = fx_words(s.context, 64, 0);
    for (int same = 0; same < 2; same++) {
        pid_t pid = fx_ready(s.stream);
        fresh_word(&s);
        bh_kernel *other =
            same ? fx_kernel_trusted(s.context, "gate") : fx_kernel(s.context, "empty");
        const bh_binding words[] = {bh_bind_read_write(0, s.word), bh_bind_read_write(0, y)};
        const bh_command commands[] = {fx_dispatch(s.gate, &words[0], 1),
                                       fx_dispatch(other, &words[1], same ? 1 : 0)};
        bh_event *event = fx_commands(s.stream, commands, 2);
        WAIT_UNTIL(((volatile uint32_t *)s.open)[1] != 0, 20000);
        fx_kill(pid, SIGSEGV);
        fx_expect(event, BH_WORKER_SIGNAL);
        BHT_EQ(fx_quarantined(s.context), same);
    }
}

/* Runs the gate on a worker that can stop it at its deadline. */
struct late {
    struct stage stage;
    bh_kernel *guarded;
    bh_stream *stream;
    pid_t pid;
};

static struct late late_open(uint64_t deadlines, bh_isolation isolation) {
    bh_context_options context_options = fx_options();
    context_options.quarantine_deaths = 1;
    context_options.quarantine_ns = BH_FOREVER;
    context_options.quarantine_deadlines = deadlines;
    struct late l = {.stage = stage_open_with(context_options, NULL, BH_FOREVER)};
    l.guarded = fx_kernel_guarded(l.stage.context, "gate");
    bh_stream_options options = fx_stream_options();
    options.isolation = isolation;
    options.deadline_ns = 100 * bht_slowness() * FX_MS;
    options.grace_ns = FX_SECONDS; /* a busy machine may take its time */
    l.stream = fx_stream_with(l.stage.context, options);
    l.pid = fx_ready(l.stream);
    return l;
}

static void passes_its_deadline(struct late *l) {
    fresh_word(&l->stage);
    bh_event *event = fx_gate(l->stream, l->guarded, l->stage.word);
    bh_verdict verdict = fx_expect(event, BH_DEADLINE);
    if (verdict.signal) {
        BHT_FAIL("%s", verdict.message);
    }
}

/* What is ended at its deadline with its worker alive costs nobody a worker. */
TEST(an_abort_does_not_count) {
    struct late l = late_open(0, BH_ISOLATION_STREAM);
    passes_its_deadline(&l);
    passes_its_deadline(&l);
    BHT_EQ(fx_quarantined(l.stage.context), 0);
    BHT_EQ(bh_stream_worker_pid(l.stream), l.pid);
}

TEST(deadlines_in_a_row_count_if_the_host_wants_it) {
    struct late l = late_open(2, BH_ISOLATION_STREAM);
    passes_its_deadline(&l);
    fresh_word(&l.stage);
    fx_open(l.stage.open);
    bh_event *event = fx_gate_within(l.stream, l.guarded, l.stage.word, FX_SECONDS);
    fx_expect(event, BH_OK); /* starts the count anew */
    passes_its_deadline(&l);
    BHT_EQ(fx_quarantined(l.stage.context), 0);
    passes_its_deadline(&l);
    BHT_EQ(fx_quarantined(l.stage.context), 1);
    event = fx_gate(l.stream, l.guarded, l.stage.word);
    bh_verdict verdict = fx_expect(event, BH_QUARANTINED);
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    BHT_STR_HAS(verdict.message, "its last 2 launches have passed their deadline, the last one at");
    BHT_EQ(bh_stream_worker_pid(l.stream), l.pid);
}

/* Whatever else is launched with it: it was in time. Each runs on a worker of its own, so that blame
 * is certain. */
TEST(in_time_among_other_kernels_starts_the_count_anew) {
    struct late l = late_open(2, BH_ISOLATION_KERNEL);
    passes_its_deadline(&l);
    fresh_word(&l.stage);
    fx_open(l.stage.open);
    bh_kernel *empty = fx_kernel(l.stage.context, "empty");
    const bh_binding binding = bh_bind_read_write(0, l.stage.word);
    const bh_command commands[] = {fx_dispatch(l.guarded, &binding, 1),
                                   fx_dispatch(empty, NULL, 0)};
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = commands,
                                 .command_count = 2,
                                 .deadline_ns = FX_SECONDS};
    fx_expect(fx_submit(l.stream, &info), BH_OK);
    passes_its_deadline(&l);
    BHT_EQ(fx_quarantined(l.stage.context), 0);
    passes_its_deadline(&l);
    BHT_EQ(fx_quarantined(l.stage.context), 1);
}

/* Of tenant alice; what is submitted waits for the worker, so that it compiles is seen only later. */
static struct stage compiling_open(const char *faults) {
    struct stage s = {.context = fx_context(faults)};
    bh_stream_options options = fx_stream_options();
    options.deadline_ns = BH_FOREVER;
    options.compile_deadline_ns = FX_SECONDS / 10; /* four times as long at most */
    options.tenant = "alice";
    s.stream = fx_stream_with(s.context, options);
    make_rest(&s);
    fx_open(s.open);
    return s;
}

/* A compile that passes its deadline proves nothing (T2), not even twice, on workers that compiled
 * nothing else: it is tried on a fresh worker each time, and runs once it can be compiled. */
TEST(a_compile_deadline_is_only_suspected) {
    struct stage s = compiling_open("1:compile:1=spin,2:compile:1=spin");
    pid_t pids[2];
    for (int i = 0; i < 2; i++) {
        bh_event *event = fx_gate(s.stream, s.gate, s.word);
        const bh_verdict verdict = fx_verdict(event);
        BHT_EQ(verdict.status, BH_COMPILE_FAILED);
        BHT_EQ(verdict.reason, BH_REASON_COMPILE_DEADLINE);
        BHT_EQ(verdict.blame, BH_BLAME_SUSPECTED);
        BHT_EQ(verdict.executed, BH_EXECUTED_NO);
        BHT_EQ(verdict.signal, SIGKILL);
        BHT_EQ(fx_quarantined(s.context), 0);
        pids[i] = verdict.worker_pid;
        fresh_word(&s);
        fx_open(s.open);
    }
    BHT_NE(pids[0], pids[1]);
    accepted(&s, s.stream);
}

/* The driver's compiler dies of a kernel: once is enough. */
TEST(what_ended_the_compiler_is_not_compiled_again) {
    static const struct {
        const char *fault, *words;
        int signal;
    } ends[] = {
        {"1:compile:1=segv", "SIGSEGV", SIGSEGV},
        {"1:compile:1=exit7", "exited with code 7", 0},
    };
    for (size_t i = 0; i < BHT_COUNT(ends); i++) {
        struct stage s = compiling_open(ends[i].fault);
        bh_event *event = fx_gate(s.stream, s.gate, s.word);
        bh_verdict first = fx_verdict(event);
        BHT_EQ(first.status, BH_COMPILE_FAILED);
        BHT_EQ(first.signal, ends[i].signal);
        pid_t pid = fx_ready(s.stream);
        BHT_EQ(fx_quarantined(s.context), 1);
        for (int again = 0; again < 2; again++) {
            event = fresh_gate(&s, s.stream);
            BHT_EQ(bh_event_query(event), BH_EVENT_POISONED); /* at once */
            bh_verdict verdict = fx_expect(event, BH_COMPILE_FAILED);
            BHT_EQ(verdict.origin, first.event);
            BHT_EQ(verdict.executed, BH_EXECUTED_NO);
            BHT_EQ(verdict.reason, BH_REASON_NOT_AGAIN);
            BHT_STR_HAS(verdict.message, ends[i].words);
            BHT_STR_HAS(verdict.message, "expires in ");
        }
        fx_expect_healthy(s.context, s.stream);
        BHT_EQ(bh_stream_worker_pid(s.stream), pid);
        bh_stream *other = stream_of(&s, "other", "bob", BH_FOREVER);
        accepted(&s, other);
        uint8_t hash[32];
        bh_kernel_hash(s.gate, hash);
        BHT_EQ(bh_quarantine_release(s.context, "alice", hash, NULL), BH_OK);
        accepted(&s, s.stream);
        fx_release_all();
    }
}

/* A module that the compiler refuses costs nobody a worker: each submission gets its own answer. */
TEST(what_is_refused_is_not_remembered) {
    struct stage s = stage_open(1, BH_FOREVER, NULL, BH_FOREVER);
    static const uint32_t garbage[] = {0x07230203, 0x00010000, 0, 8, 0, 0x12345678};
    bh_kernel *bad = NULL;
    BHT_EQ(bh_kernel_create_spirv(s.context, garbage, sizeof garbage, NULL, &bad, NULL), BH_OK);
    for (int i = 0; i < 3; i++) {
        fresh_word(&s);
        bh_event *event = fx_run(s.stream, bad, s.word);
        bh_verdict verdict = fx_expect(event, BH_INVALID_KERNEL);
        BHT_EQ(verdict.origin, verdict.event);
    }
    BHT_EQ(fx_quarantined(s.context), 0);
}

TEST(it_can_be_switched_off) {
    struct stage s = stage_open(0, BH_FOREVER, NULL, BH_FOREVER);
    for (int i = 0; i < 3; i++) {
        die(&s, s.stream);
    }
    BHT_EQ(fx_quarantined(s.context), 0);
    accepted(&s, s.stream);
}

TEST(by_default_there_are_two_in_ten_minutes) {
    bh_context_options options = fx_options();
    options.quarantine_deaths = BH_DEFAULT;
    options.quarantine_ns = BH_DEFAULT;
    struct stage s = stage_open_with(options, NULL, FX_SECONDS);
    die(&s, s.stream);
    BHT_EQ(fx_quarantined(s.context), 0);
    const uint64_t before = bht_now_ns();
    die(&s, s.stream);
    bh_quarantined entry = {.struct_size = sizeof entry};
    size_t count;
    BHT_EQ(bh_quarantine_list(s.context, &entry, 1, &count, NULL), BH_OK);
    BHT_EQ(count, 1);
    BHT_GT(entry.expires_ns, before + 600 * 1000 * FX_MS);
    BHT_GT(bht_now_ns() + 600 * 1000 * FX_MS, entry.expires_ns);
    bh_context *context = fx_context(NULL);
    bh_stream_options stream_options = fx_stream_options();
    BHT_TRUE(!stream_options.tenant);
    char tenant[65];
    memset(tenant, 't', sizeof tenant);
    tenant[64] = 0;
    stream_options.tenant = tenant;
    bh_stream *stream;
    bh_detail detail;
    BHT_EQ(bh_stream_create(context, &stream_options, &stream, &detail), BH_INVALID_ARGUMENT);
    BHT_EQ(detail.reason, BH_REASON_TOO_LONG);
    BHT_STR_EQ(detail.subject_name, "options.tenant");
    tenant[63] = 0;
    BHT_EQ(bh_stream_create(context, &stream_options, &stream, &detail), BH_OK);
}

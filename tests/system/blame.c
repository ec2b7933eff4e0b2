/* T2, T6: what a worker does, or says, after it has been given one kernel proves nothing about the
 * next one; what it says against what it has shown itself is a lie. */
#include "fixture.h"

struct stage {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *square, *gate; /* square comes first: it may have left the worker as it likes */
    bh_buffer *word;
    volatile uint32_t *open;
    uint64_t deadline_ns;
};

static struct stage stage_open(const char *faults, uint64_t deadline_ns) {
    bh_context_options options = fx_options();
    options.quarantine_deaths = 1;
    options.quarantine_ns = BH_FOREVER;
    struct stage s = {.context = fx_context_with(options, faults), .deadline_ns = deadline_ns};
    s.stream = fx_stream(s.context, "s", deadline_ns);
    fx_ready(s.stream);
    s.square = fx_kernel(s.context, "square");
    s.gate = fx_kernel_trusted(s.context, "gate");
    return s;
}

static size_t held(const struct stage *s) {
    return fx_quarantined(s->context);
}

/* Runs square on the stream: from then on its worker may be anybody's. Its pid. */
static pid_t taint(struct stage *s) {
    fx_expect_healthy(s->context, s->stream);
    return fx_ready(s->stream);
}

/* Another word each time: the last one may be poisoned. */
static bh_event *start_gate(struct stage *s, uint32_t open, bool alone) {
    s->word = fx_words(s->context, 2, 0);
    s->open = fx_pointer(s->word);
    s->open[0] = open;
    const bh_binding binding = bh_bind_read_write(0, s->word);
    bh_command command = fx_dispatch(s->gate, &binding, 1);
    command.dispatch.groups[0] = open == FX_GATE_OPEN ? 1 : 8192;
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = &command, .command_count = 1, .alone = alone};
    return fx_submit(s->stream, &info);
}

/* It says in word 1 that it runs. */
static void await_gate(struct stage *s) {
    WAIT_UNTIL(s->open[1] != 0, 20000);
}

static bh_verdict expect(bh_event *event, bh_status status, bh_blame blame) {
    const bh_verdict verdict = fx_expect(event, status);
    BHT_EQ(verdict.blame, blame);
    return verdict;
}

/* The gate, open, and what became of it. */
static bh_verdict pass_gate(struct stage *s, bh_status status, bh_blame blame) {
    return expect(start_gate(s, FX_GATE_OPEN, false), status, blame);
}

/* The gate runs, and its worker is killed. Its pid. */
static pid_t die_in_gate(struct stage *s, bh_blame blame) {
    bh_event *event = start_gate(s, 0, false);
    await_gate(s);
    const pid_t pid = bh_stream_worker_pid(s->stream);
    fx_kill(pid, SIGSEGV);
    expect(event, BH_WORKER_SIGNAL, blame);
    return pid;
}

/* The case that was seen: square ends well, and leaves a worker that claims to compile what comes
 * next, and crashes. The innocent kernel is neither refused nor held. */
TEST(a_forged_compile_failure_accuses_nobody) {
    struct stage s = stage_open("1:lie_compile:2=fail", FX_SECONDS);
    const pid_t pid = taint(&s);
    const bh_verdict verdict = pass_gate(&s, BH_COMPILE_FAILED, BH_BLAME_SUSPECTED);
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    BHT_EQ(verdict.worker_pid, pid);
    BHT_EQ(held(&s), 0);
    pass_gate(&s, BH_OK, BH_BLAME_NONE);
}

/* The same kernel, on a worker that was given nothing else: there is nobody else to blame. */
TEST(alone_it_is_certain) {
    struct stage s = stage_open("1:lie_compile:1=fail", FX_SECONDS);
    pass_gate(&s, BH_COMPILE_FAILED, BH_BLAME_CERTAIN);
    BHT_EQ(held(&s), 1);
    /* It is refused for what is proven. */
    BHT_EQ(pass_gate(&s, BH_COMPILE_FAILED, BH_BLAME_CERTAIN).worker_pid, 0);
}

/* A worker is left wedged: the next submission runs into its deadline, and is not quarantined. */
TEST(a_wedged_worker_accuses_nobody) {
    struct stage s = stage_open("1:started:2=hang", BHT_SECOND_MS * FX_MS);
    taint(&s);
    pass_gate(&s, BH_DEADLINE, BH_BLAME_SUSPECTED);
    BHT_EQ(held(&s), 0);
    pass_gate(&s, BH_OK, BH_BLAME_NONE);
}

/* Also where the worker lives on: what it says of the kernel proves nothing, and the next launch
 * runs on another worker. */
TEST(a_forged_refusal_is_tried_on_a_fresh_worker) {
    struct stage s = stage_open("1:lie_invalid:2=fail", FX_SECONDS);
    const pid_t pid = taint(&s);
    pass_gate(&s, BH_INVALID_KERNEL, BH_BLAME_SUSPECTED);
    BHT_EQ(bh_stream_worker_pid(s.stream), pid);
    pass_gate(&s, BH_OK, BH_BLAME_NONE);
    const pid_t fresh = fx_ready(s.stream);
    BHT_TRUE(fresh != pid);
    /* It has stood its trial: it shares a worker again. */
    BHT_EQ(taint(&s), fresh);
    pass_gate(&s, BH_OK, BH_BLAME_NONE);
    BHT_EQ(fx_ready(s.stream), fresh);
}

/* A submission of several kernels that a fresh worker completes ends the trial of each. */
TEST(a_launch_among_other_kernels_ends_the_trial) {
    struct stage s = stage_open("1:lie_invalid:2=fail", FX_SECONDS);
    const pid_t pid = taint(&s);
    pass_gate(&s, BH_INVALID_KERNEL, BH_BLAME_SUSPECTED);
    const bh_binding binding = bh_bind_read_write(0, fx_words(s.context, 2, FX_GATE_OPEN));
    const bh_command commands[] = {fx_dispatch(fx_kernel(s.context, "empty"), NULL, 0),
                                   fx_dispatch(s.gate, &binding, 1)};
    fx_expect(fx_commands(s.stream, commands, 2), BH_OK);
    const pid_t fresh = fx_ready(s.stream);
    BHT_TRUE(fresh != pid);
    pass_gate(&s, BH_OK, BH_BLAME_NONE);
    BHT_EQ(fx_ready(s.stream), fresh);
}

/* A GPU is lost after seconds of a kernel: its driver may have ended it because others waited. It
 * is not quarantined, and the verdict says what to do. */
TEST(a_gpu_that_is_lost_late_accuses_nobody) {
    struct stage s = stage_open("*:poses_as_gpu:*=fail,1:waited:1=fail", BH_FOREVER);
    bh_event *event = start_gate(&s, 0, true);
    await_gate(&s);
    const uint64_t late_ns = bht_now_ns() + 3600 * FX_MS;
    WAIT_UNTIL(bht_now_ns() > late_ns, 20000);
    fx_open(s.open);
    const bh_verdict verdict = expect(event, BH_DEVICE_LOST, BH_BLAME_SUSPECTED);
    BHT_STR_HAS(verdict.message, "split the work over several launches");
    BHT_EQ(held(&s), 0);
}

/* A kernel that does end its workers is found out all the same, one death later. */
TEST(a_trial_convicts) {
    struct stage s = stage_open(NULL, BH_FOREVER);
    taint(&s);
    const pid_t first = die_in_gate(&s, BH_BLAME_SUSPECTED);
    BHT_EQ(held(&s), 0);
    const pid_t tainted = taint(&s), second = die_in_gate(&s, BH_BLAME_CERTAIN);
    BHT_TRUE(second != tainted && second != first);
    BHT_EQ(held(&s), 1);
    pass_gate(&s, BH_QUARANTINED, BH_BLAME_CERTAIN);
}

enum { AROUND = 16 };

/* It waits for what is before it, no longer, and holds up what is behind it until it has ended. */
TEST(a_trial_among_others) {
    struct stage s = stage_open("1:lie_compile:2=fail", FX_SECONDS);
    bh_event *events[2 * AROUND];
    bh_buffer *x = fx_words(s.context, 64, 0);
    taint(&s);
    pass_gate(&s, BH_COMPILE_FAILED, BH_BLAME_SUSPECTED);
    bh_event *trial = NULL;
    for (int i = 0; i < 2 * AROUND; i++) {
        trial = i == AROUND ? start_gate(&s, FX_GATE_OPEN, false) : trial;
        events[i] = fx_square(s.stream, s.square, x, fx_words(s.context, 64, 0));
    }
    pid_t before = 0, behind = 0;
    for (int i = 0; i < 2 * AROUND; i++) {
        const bh_verdict verdict = fx_expect(events[i], BH_OK);
        pid_t *pid = i < AROUND ? &before : &behind;
        BHT_TRUE(!*pid || *pid == verdict.worker_pid);
        *pid = verdict.worker_pid;
    }
    bh_verdict verdict = fx_expect(trial, BH_OK);
    BHT_TRUE(verdict.worker_pid != before);
    BHT_EQ(verdict.worker_pid, behind); /* whose turn comes when the trial is over */
}

/* The host may ask for it. Nothing else is given to that worker meanwhile, or it could have been
 * that one. */
TEST(what_is_submitted_alone_is_certain) {
    struct stage s = stage_open(NULL, BH_FOREVER);
    const pid_t tainted = taint(&s);
    bh_event *gate = start_gate(&s, 0, true);
    await_gate(&s);
    const pid_t pid = bh_stream_worker_pid(s.stream);
    BHT_TRUE(pid != tainted);
    bh_buffer *x = fx_words(s.context, 64, 0), *y = fx_words(s.context, 64, 0);
    bh_event *behind = fx_square(s.stream, s.square, x, y);
    fx_kill(pid, SIGSEGV);
    expect(gate, BH_WORKER_SIGNAL, BH_BLAME_CERTAIN);
    fx_expect(behind, BH_OK);
}

/* What is in the lane behind it counts, too: when a worker came to what is its own word. */
TEST(what_is_behind_it_counts) {
    struct stage s = stage_open(NULL, BH_FOREVER);
    bh_event *gate = start_gate(&s, 0, false);
    await_gate(&s);
    bh_buffer *x = fx_words(s.context, 64, 0), *y = fx_words(s.context, 64, 0);
    bh_event *behind = fx_square(s.stream, s.square, x, y);
    fx_kill(bh_stream_worker_pid(s.stream), SIGSEGV);
    expect(gate, BH_WORKER_SIGNAL, BH_BLAME_SUSPECTED);
    fx_expect(behind, BH_OK);
}

/* Replacing a worker so that a trial is fair is planned: it costs the stream no restart. */
TEST(a_planned_replacement_is_free) {
    bh_context_options options = fx_options();
    options.restart_budget = 1;
    options.restart_window_ns = 3600 * 1000 * FX_MS;
    struct stage s = {.context = fx_context_with(options, NULL)};
    s.stream = fx_stream(s.context, "s", FX_SECONDS);
    s.square = fx_kernel(s.context, "square");
    s.gate = fx_kernel_trusted(s.context, "gate");
    pid_t last = 0;
    for (int i = 0; i < 4; i++) {
        taint(&s);
        const bh_verdict verdict = fx_expect(start_gate(&s, FX_GATE_OPEN, true), BH_OK);
        BHT_TRUE(verdict.worker_pid != last);
        last = verdict.worker_pid;
    }
}

/* Who waits for a dependent hears what the origin's verdict proves. */
TEST(a_dependent_tells_its_origins_blame) {
    struct stage s = stage_open("1:lie_compile:2=fail", FX_SECONDS);
    taint(&s);
    bh_event *gate = start_gate(&s, FX_GATE_OPEN, false);
    bh_buffer *y = fx_words(s.context, 2, 0);
    bh_event *reader = fx_square(s.stream, s.square, s.word, y);
    expect(gate, BH_COMPILE_FAILED, BH_BLAME_SUSPECTED);
    BHT_EQ(expect(reader, BH_COMPILE_FAILED, BH_BLAME_SUSPECTED).hops, 1);
}

/* T6. What a worker has run it can compile. */
TEST(it_cannot_compile_what_it_has_run) {
    static const char *const lies[] = {"1:lie_compile:2=fail", "1:lie_invalid:2=fail",
                                       "1:lie_pretend:2=fail"};
    for (size_t i = 0; i < BHT_COUNT(lies); i++) {
        struct stage s = stage_open(lies[i], BHT_SECOND_MS * FX_MS);
        pass_gate(&s, BH_OK, BH_BLAME_NONE);
        const bh_verdict verdict = fx_verdict(start_gate(&s, FX_GATE_OPEN, false));
        if (verdict.status != BH_PROTOCOL) {
            BHT_FAIL("%s: %s: %s", lies[i], bh_status_name(verdict.status), verdict.message);
        }
        BHT_STR_HAS(verdict.message, "a kernel that it has run");
        BHT_EQ(verdict.executed, BH_EXECUTED_UNKNOWN); /* it is not believed that it did not run */
        BHT_EQ(verdict.blame, BH_BLAME_CERTAIN);
        BHT_EQ(held(&s), 0);
        pass_gate(&s, BH_OK, BH_BLAME_NONE);
        fx_release_all();
    }
}

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

static void stage_close(struct stage *s) {
    bh_kernel_release(s->square);
    bh_kernel_release(s->gate);
    bh_buffer_release(s->word);
    bh_stream_release(s->stream);
    BHT_EQ(bh_context_destroy(s->context), BH_OK);
}

static size_t held(const struct stage *s) {
    size_t count = 99;
    BHT_EQ(bh_quarantine_list(s->context, NULL, 0, &count, NULL), BH_OK);
    return count;
}

/* Runs square on the stream: from then on its worker may be anybody's. Its pid. */
static pid_t taint(struct stage *s) {
    fx_expect_healthy(s->context, s->stream);
    return fx_ready(s->stream);
}

/* Another word each time: the last one may be poisoned. */
static bh_event *start_gate(struct stage *s, uint32_t open, bool alone) {
    bh_buffer_release(s->word);
    s->word = fx_words(s->context, 2, 0);
    s->open = fx_pointer(s->word);
    s->open[0] = open;
    const bh_binding binding = bh_bind_read_write(0, s->word);
    const bh_command command = {.type = BH_COMMAND_DISPATCH,
                                .dispatch = {.kernel = s->gate,
                                             .groups = {open == FX_GATE_OPEN ? 1 : 8192, 1, 1},
                                             .bindings = &binding,
                                             .binding_count = 1}};
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = &command, .command_count = 1, .alone = alone};
    bh_event *event = NULL;
    BHT_EQ(bh_submit(s->stream, &info, &event, NULL), BH_OK);
    return event;
}

/* It says in word 1 that it runs. */
static void await_gate(struct stage *s) {
    WAIT_UNTIL(s->open[1] != 0, 20000);
}

static bh_verdict end_gate(bh_event *event) {
    bh_verdict verdict = fx_verdict(event);
    bh_event_release(event);
    return verdict;
}

/* The gate, open, and what became of it. */
static bh_verdict pass_gate(struct stage *s) {
    return end_gate(start_gate(s, FX_GATE_OPEN, false));
}

/* The gate runs, and its worker is killed. */
static bh_verdict die_in_gate(struct stage *s, bool alone, pid_t *out_pid) {
    bh_event *event = start_gate(s, 0, alone);
    await_gate(s);
    *out_pid = bh_stream_worker_pid(s->stream);
    fx_kill(*out_pid, SIGSEGV);
    return end_gate(event);
}

/* The case that was seen: square ends well, and leaves a worker that claims to compile what comes
 * next, and crashes. The innocent kernel is neither refused nor held. */
TEST(a_forged_compile_failure_accuses_nobody) {
    struct stage s = stage_open("1:lie_compile:2=fail", FX_SECONDS);
    const pid_t pid = taint(&s);
    bh_verdict verdict = pass_gate(&s);
    BHT_EQ(verdict.status, BH_COMPILE_FAILED);
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    BHT_EQ(verdict.worker_pid, pid);
    BHT_EQ(verdict.blame, BH_BLAME_SUSPECTED);
    BHT_EQ(held(&s), 0);
    verdict = pass_gate(&s);
    BHT_EQ(verdict.status, BH_OK);
    BHT_EQ(verdict.blame, BH_BLAME_NONE);
}

/* The same kernel, on a worker that was given nothing else: there is nobody else to blame. */
TEST(alone_it_is_certain) {
    struct stage s = stage_open("1:lie_compile:1=fail", FX_SECONDS);
    bh_verdict verdict = pass_gate(&s);
    BHT_EQ(verdict.status, BH_COMPILE_FAILED);
    BHT_EQ(verdict.blame, BH_BLAME_CERTAIN);
    BHT_EQ(held(&s), 1);
    verdict = pass_gate(&s);
    BHT_EQ(verdict.status, BH_COMPILE_FAILED);
    BHT_EQ(verdict.worker_pid, 0);
    BHT_EQ(verdict.blame, BH_BLAME_CERTAIN); /* it is refused for what is proven */
}

/* A worker is left wedged: the next submission runs into its deadline, and is not quarantined. */
TEST(a_wedged_worker_accuses_nobody) {
    struct stage s = stage_open("1:started:2=hang", BHT_SECOND_MS * FX_MS);
    taint(&s);
    bh_verdict verdict = pass_gate(&s);
    BHT_EQ(verdict.status, BH_DEADLINE);
    BHT_EQ(verdict.blame, BH_BLAME_SUSPECTED);
    BHT_EQ(held(&s), 0);
    BHT_EQ(pass_gate(&s).status, BH_OK);
}

/* Also where the worker lives on: what it says of the kernel proves nothing, and the next launch
 * runs on another worker. */
TEST(a_forged_refusal_is_tried_on_a_fresh_worker) {
    struct stage s = stage_open("1:lie_invalid:2=fail", FX_SECONDS);
    const pid_t pid = taint(&s);
    bh_verdict verdict = pass_gate(&s);
    BHT_EQ(verdict.status, BH_INVALID_KERNEL);
    BHT_EQ(verdict.blame, BH_BLAME_SUSPECTED);
    BHT_EQ(bh_stream_worker_pid(s.stream), pid);
    verdict = pass_gate(&s);
    BHT_EQ(verdict.status, BH_OK);
    const pid_t fresh = fx_ready(s.stream);
    BHT_TRUE(fresh != pid);
    /* It has stood its trial: it shares a worker again. */
    BHT_EQ(taint(&s), fresh);
    BHT_EQ(pass_gate(&s).status, BH_OK);
    BHT_EQ(fx_ready(s.stream), fresh);
}

/* A submission of several kernels that a fresh worker completes ends the trial of each. */
TEST(a_launch_among_other_kernels_ends_the_trial) {
    struct stage s = stage_open("1:lie_invalid:2=fail", FX_SECONDS);
    bh_kernel *empty = fx_kernel(s.context, "empty");
    const pid_t pid = taint(&s);
    BHT_EQ(pass_gate(&s).blame, BH_BLAME_SUSPECTED);
    bh_buffer *word = fx_words(s.context, 2, 0);
    const bh_binding binding = bh_bind_read_write(0, word);
    const bh_command commands[] = {
        {.type = BH_COMMAND_DISPATCH, .dispatch = {.kernel = empty, .groups = {1, 1, 1}}},
        {.type = BH_COMMAND_DISPATCH,
         .dispatch = {
             .kernel = s.gate, .groups = {1, 1, 1}, .bindings = &binding, .binding_count = 1}}};
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = commands, .command_count = 2};
    ((uint32_t *)fx_pointer(word))[0] = FX_GATE_OPEN;
    bh_event *event = NULL;
    BHT_EQ(bh_submit(s.stream, &info, &event, NULL), BH_OK);
    fx_expect(event, BH_OK);
    bh_event_release(event);
    const pid_t fresh = fx_ready(s.stream);
    BHT_TRUE(fresh != pid);
    BHT_EQ(pass_gate(&s).status, BH_OK);
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
    const bh_verdict verdict = end_gate(event);
    BHT_EQ(verdict.status, BH_DEVICE_LOST);
    BHT_EQ(verdict.blame, BH_BLAME_SUSPECTED);
    BHT_STR_HAS(verdict.message, "split the work over several launches");
    BHT_EQ(held(&s), 0);
}

/* A kernel that does end its workers is found out all the same, one death later. */
TEST(a_trial_convicts) {
    struct stage s = stage_open(NULL, BH_FOREVER);
    pid_t first, second;
    taint(&s);
    bh_verdict verdict = die_in_gate(&s, false, &first);
    BHT_EQ(verdict.status, BH_WORKER_SIGNAL);
    BHT_EQ(verdict.blame, BH_BLAME_SUSPECTED);
    BHT_EQ(held(&s), 0);
    const pid_t tainted = taint(&s);
    verdict = die_in_gate(&s, false, &second);
    BHT_TRUE(second != tainted && second != first);
    BHT_EQ(verdict.status, BH_WORKER_SIGNAL);
    BHT_EQ(verdict.blame, BH_BLAME_CERTAIN);
    BHT_EQ(held(&s), 1);
    verdict = pass_gate(&s);
    BHT_EQ(verdict.status, BH_QUARANTINED);
    BHT_EQ(verdict.blame, BH_BLAME_CERTAIN);
}

enum { AROUND = 16 };

/* It waits for what is before it, no longer, and holds up what is behind it until it has ended. */
TEST(a_trial_among_others) {
    struct stage s = stage_open("1:lie_compile:2=fail", FX_SECONDS);
    bh_event *events[2 * AROUND];
    bh_buffer *x = fx_words(s.context, 64, 0), *y[2 * AROUND];
    taint(&s);
    BHT_EQ(pass_gate(&s).blame, BH_BLAME_SUSPECTED);
    for (int i = 0; i < 2 * AROUND; i++) {
        y[i] = fx_words(s.context, 64, 0);
    }
    for (int i = 0; i < AROUND; i++) {
        events[i] = fx_square(s.stream, s.square, x, y[i]);
    }
    bh_event *trial = start_gate(&s, FX_GATE_OPEN, false);
    for (int i = AROUND; i < 2 * AROUND; i++) {
        events[i] = fx_square(s.stream, s.square, x, y[i]);
    }
    pid_t before = 0, behind = 0;
    for (int i = 0; i < 2 * AROUND; i++) {
        bh_verdict verdict = end_gate(events[i]);
        BHT_EQ(verdict.status, BH_OK);
        pid_t *pid = i < AROUND ? &before : &behind;
        BHT_TRUE(!*pid || *pid == verdict.worker_pid);
        *pid = verdict.worker_pid;
        bh_buffer_release(y[i]);
    }
    bh_verdict verdict = end_gate(trial);
    BHT_EQ(verdict.status, BH_OK);
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
    bh_verdict verdict = end_gate(gate);
    BHT_EQ(verdict.status, BH_WORKER_SIGNAL);
    BHT_EQ(verdict.blame, BH_BLAME_CERTAIN);
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
    BHT_EQ(end_gate(gate).blame, BH_BLAME_SUSPECTED);
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
        bh_verdict verdict = end_gate(start_gate(&s, FX_GATE_OPEN, true));
        BHT_EQ(verdict.status, BH_OK);
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
    BHT_EQ(end_gate(gate).blame, BH_BLAME_SUSPECTED);
    bh_verdict verdict = end_gate(reader);
    BHT_EQ(verdict.hops, 1);
    BHT_EQ(verdict.blame, BH_BLAME_SUSPECTED);
}

/* T6. What a worker has run it can compile. */
TEST(it_cannot_compile_what_it_has_run) {
    static const char *const lies[] = {"1:lie_compile:2=fail", "1:lie_invalid:2=fail",
                                       "1:lie_pretend:2=fail"};
    for (size_t i = 0; i < BHT_COUNT(lies); i++) {
        struct stage s = stage_open(lies[i], BHT_SECOND_MS * FX_MS);
        BHT_EQ(pass_gate(&s).status, BH_OK);
        bh_verdict verdict = pass_gate(&s);
        if (verdict.status != BH_PROTOCOL) {
            BHT_FAIL("%s: %s: %s", lies[i], bh_status_name(verdict.status), verdict.message);
        }
        BHT_STR_HAS(verdict.message, "a kernel that it has run");
        BHT_EQ(verdict.executed, BH_EXECUTED_UNKNOWN); /* it is not believed that it did not run */
        BHT_EQ(verdict.blame, BH_BLAME_CERTAIN);
        BHT_EQ(held(&s), 0);
        BHT_EQ(pass_gate(&s).status, BH_OK);
        stage_close(&s);
    }
}

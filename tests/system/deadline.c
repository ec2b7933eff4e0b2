/* What ends what does not end by itself: the abort word, and where that cannot be, the death of the
 * worker; compiling and running have deadlines of their own (docs/trust.md). Cases 33, 43, 47,
 * 52; rules E4, E13, E14, K4, K5. */
#include "fixture.h"

#include <stdio.h>

#define LIMIT_MS (150 * bht_slowness()) /* what has not begun by then is killed, not ended */
#define LIMIT_NS (LIMIT_MS * FX_MS)
/* Honest kernels are compiled in less processor time. A wait of a test takes longer than four such
 * deadlines, after which a busy machine's compile is ended. */
#define COMPILE_NS (FX_SECONDS / 10)
/* A busy machine takes its time to end what has tens of thousands of workgroups: the grace time is
 * long where a worker is to survive. */

struct stage {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *gate;
    bh_buffer *data;
    uint64_t deadline_ns; /* of what is to run into it; others have time */
    pid_t pid;
};

static struct stage open_stage(const char *faults, uint64_t deadline_ns, uint64_t compile_ns,
                               uint64_t grace_ns) {
    struct stage s = {.context = fx_context(faults), .deadline_ns = deadline_ns};
    s.stream = fx_stream_with(
        s.context, (bh_stream_options){.name = "deadline",
                                       .deadline_ns = FX_SECONDS,
                                       .compile_deadline_ns =
                                           compile_ns ? compile_ns : 60000 * FX_MS * bht_slowness(),
                                       .grace_ns = grace_ns});
    s.gate = fx_kernel_guarded(s.context, "gate");
    s.data = fx_words(s.context, 64, 0);
    s.pid = fx_ready(s.stream);
    fx_expect_healthy_after(s.context, s.stream);
    return s;
}

static bh_event *launch(struct stage *s, bh_kernel *kernel, uint32_t count, uint64_t deadline_ns) {
    const bh_binding binding = bh_bind_read_write(0, s->data);
    return fx_launch(s->stream, kernel, count, &binding, 1, deadline_ns);
}

/* So many workgroups that it takes long where a driver cuts loops short, and not so many that a
 * busy machine takes long to end them. */
#define GROUPS 2048

static bh_event *run(struct stage *s, bh_kernel *kernel) {
    return launch(s, kernel, GROUPS, s->deadline_ns);
}

/* A closed gate, which runs when this returns. */
static bh_event *run_closed(struct stage *s) {
    volatile uint32_t *words = fx_pointer(s->data);
    words[0] = words[1] = 0;
    bh_event *event = launch(s, s->gate, GROUPS, s->deadline_ns);
    WAIT_UNTIL(words[1] == 1, 20000);
    return event;
}

/* A gate that is open, with so few invocations that it takes no time. */
static bh_event *run_open(struct stage *s) {
    fx_pointer(s->data)[0] = FX_GATE_OPEN;
    return launch(s, s->gate, 1, 0);
}

static bh_verdict cancel(bh_event *event) {
    BHT_EQ(bh_event_cancel(event), BH_OK);
    return fx_expect(event, BH_CANCELLED);
}

/* How late a deadline may be enforced, beyond it and the grace time: for the machine's other work.
 */
#define SLACK_NS (2 * BHT_SECOND_MS * FX_MS)

/* It was ended for its deadline, no earlier than |least_ns| after its turn, and soon after that. */
static void expect_within(const bh_verdict *verdict, uint64_t least_ns, uint64_t slack_ns) {
    BHT_GE(verdict->ended_ns - verdict->started_ns, least_ns);
    BHT_LE(verdict->ended_ns - verdict->started_ns, least_ns + slack_ns);
}
static void expect_in_time(const bh_verdict *verdict, uint64_t least_ns) {
    expect_within(verdict, least_ns, SLACK_NS);
}

enum { DEVICES = 8 };

/* Writes the machine's devices, up to DEVICES of them, and returns how many it wrote. */
static size_t list_devices(bh_context *context, bh_device_info out_devices[DEVICES]) {
    size_t count = 0;
    out_devices->struct_size = sizeof *out_devices;
    BHT_EQ(bh_devices(context, out_devices, DEVICES, &count, NULL), BH_OK);
    return count < DEVICES ? count : DEVICES;
}

/* The slack of a kernel whose abort word nobody set and whose worker was killed. A GPU goes on with
 * the kernel. The death is known once the GPU's driver ends it, 4 to 5 s later (docs/bench.md). */
static uint64_t slack_of_kill(bh_context *context) {
    static bh_device_info devices[DEVICES] = {{.struct_size = sizeof devices[0]}};
    const size_t count = list_devices(context, devices);
    for (size_t i = 0; i < count; i++) {
        if (devices[i].device_type != 4 /* VK_PHYSICAL_DEVICE_TYPE_CPU */) {
            return SLACK_NS + 6 * BHT_SECOND_MS * FX_MS;
        }
    }
    return SLACK_NS;
}

/* |killed|: and its worker with it. */
static bh_verdict expect_ended(struct stage *s, bh_event *event, bh_status status, bool killed) {
    const bh_verdict verdict = fx_expect(event, status);
    /* On a busy machine a killed worker may not have begun it (E13). */
    const bool unbegun = strstr(verdict.message, "the submission had not begun");
    BHT_EQ(verdict.executed, unbegun ? BH_EXECUTED_NO : BH_EXECUTED_UNKNOWN);
    BHT_EQ(verdict.origin, bh_event_id(event));
    BHT_EQ(verdict.worker_pid, s->pid);
    BHT_EQ(verdict.signal, killed ? SIGKILL : 0);
    BHT_EQ(verdict.exit_code, -1);
    BHT_STR_HAS(verdict.kernel_name, "hang");
    BHT_STR_HAS(verdict.message, killed ? "was killed" : "the submission was stopped, and worker ");
    BHT_EQ(fx_ready(s->stream) == s->pid, !killed);
    return verdict;
}

/* -- the abort word ------------------------------------------------------------------------------
 */

TEST(a_deadline_leaves_the_worker_alive) {
    struct stage s = open_stage(NULL, LIMIT_NS, 0, FX_SECONDS);
    for (int i = 0; i < 3; i++) {
        (void)fx_pointer(s.data); /* clean again */
        bh_event *event = run(&s, fx_kernel(s.context, "hang"));
        bh_verdict verdict = expect_ended(&s, event, BH_DEADLINE, false);
        BHT_EQ(verdict.limit, LIMIT_NS);
        expect_in_time(&verdict, LIMIT_NS);
        char said[64];
        snprintf(said, sizeof said, "the deadline of %d ms passed", LIMIT_MS);
        BHT_STR_HAS(verdict.message, LIMIT_MS < 1000 ? said : "the deadline of ");
    }
    /* Another kernel is served, by the same. (From then on the first is only suspected, and would
     * be tried on a fresh worker: T2.) */
    fx_expect_healthy(s.context, s.stream);
    BHT_EQ(bh_stream_worker_pid(s.stream), s.pid);
}

/* SwiftShader has no conditional rendering: it begins every workgroup of a grid, and a large one
 * outlives the grace time (docs/trust.md). */
static bool begins_every_workgroup(bh_context *context) {
    static bh_device_info devices[DEVICES] = {{.struct_size = sizeof devices[0]}};
    return list_devices(context, devices) == 1 && strcmp(devices[0].selector, "swiftshader:0") == 0;
}

static void end_grids(const char *kernel) {
    struct stage s = open_stage(NULL, LIMIT_NS, 0, FX_SECONDS);
    const bool killed = begins_every_workgroup(s.context);
    if (killed) {
        s = open_stage(NULL, LIMIT_NS, 0, 100 * FX_MS);
    }
    bh_kernel *hang = fx_kernel(s.context, kernel);
    const bh_binding binding = bh_bind_read_write(0, s.data);
    static const uint32_t grids[][3] = {{65535, 64, 1}, {65535, 65535, 1}, {1024, 65535, 63}};
    /* The driver allocates for each part, and AddressSanitizer keeps what is freed: more than the
     * worker's limit for 16,384 of them. */
    for (size_t i = 0; i < (BHT_ASAN ? 1 : BHT_COUNT(grids)); i++) {
        (void)fx_pointer(s.data); /* clean again */
        bh_command command = fx_dispatch(hang, &binding, 1);
        memcpy(command.dispatch.groups, grids[i], sizeof grids[i]);
        const bh_submit_info info = {.struct_size = sizeof info,
                                     .commands = &command,
                                     .command_count = 1,
                                     .deadline_ns = LIMIT_NS};
        (void)expect_ended(&s, fx_submit(s.stream, &info), BH_DEADLINE, killed);
        s.pid = fx_ready(s.stream);
    }
}

/* Whatever the grid: four billion workgroups, the most that 32 bits count, take minutes to begin
 * and leave one by one. Also for a kernel that reads how many there are. */
TEST(the_grid_does_not_matter) {
    end_grids("hang");
    end_grids("hang_counts");
}

TEST(a_cancel_leaves_the_worker_alive) {
    struct stage s = open_stage(NULL, BH_FOREVER, 0, FX_SECONDS);
    const bh_verdict verdict = cancel(run_closed(&s));
    BHT_EQ(verdict.executed, BH_EXECUTED_UNKNOWN);
    BHT_EQ(verdict.signal, 0);
    BHT_EQ(bh_stream_worker_pid(s.stream), s.pid);
}

/* It shares a queue submission with one before it and one behind it, both READY (E4, E13). */
TEST(its_neighbours_are_ready) {
    struct stage s = open_stage(NULL, BH_FOREVER, 0, FX_SECONDS);
    bh_kernel *square = fx_kernel(s.context, "square");
    bh_buffer *x = fx_words(s.context, 64, 0x40000000), *y = fx_words(s.context, 64, 0);
    bh_buffer *z = fx_words(s.context, 64, 0);
    volatile uint32_t *words = fx_pointer(s.data);
    uint32_t *first = fx_pointer(y), *last = fx_pointer(z);
    for (int i = 0; i < 30; i++) { /* all is compiled, and took little time */
        bh_event *first_of_two = run_open(&s);
        fx_expect(fx_square(s.stream, square, x, y), BH_OK);
        fx_expect(first_of_two, BH_OK);
    }
    words[0] = words[1] = 0;
    first[0] = 0;
    fx_stop(s.pid);
    bh_event *before = fx_square(s.stream, square, x, y);
    bh_event *event = launch(&s, s.gate, GROUPS, s.deadline_ns);
    bh_event *behind = fx_square(s.stream, square, x, z);
    fx_kill(s.pid, SIGCONT);
    WAIT_UNTIL(words[1] == 1, 20000);
    cancel(event);
    fx_expect(before, BH_OK);
    fx_expect(behind, BH_OK);
    BHT_EQ(first[0], 0x40800000);
    BHT_EQ(last[0], 0x40800000);
    BHT_EQ(bh_stream_worker_pid(s.stream), s.pid);
}

/* Its worker goes on to what is next in the lane; that is poisoned all the same (B5). */
TEST(what_depends_on_it_is_poisoned) {
    struct stage s = open_stage(NULL, LIMIT_NS, 0, FX_SECONDS);
    bh_event *event = run(&s, fx_kernel(s.context, "hang"));
    bh_event *dependent = run(&s, s.gate);
    fx_expect(dependent, BH_DEADLINE);
    BHT_EQ(fx_verdict(dependent).origin, bh_event_id(event));
    BHT_EQ(fx_verdict(dependent).hops, 1);
    (void)expect_ended(&s, event, BH_DEADLINE, false);
}

/* -- where it does not help ----------------------------------------------------------------------
 */

/* A grace time in which a worker hears that it is to end, and does not. The kernel takes all
 * processors for as long. */
#define DEAF_NS (BHT_SECOND_MS / 4 * FX_MS)

TEST(who_does_not_answer_is_killed) {
    struct stage s = open_stage("1:abort:*=fail", LIMIT_NS, 0, DEAF_NS);
    bh_event *event = run(&s, fx_kernel(s.context, "hang"));
    bh_verdict verdict = expect_ended(&s, event, BH_DEADLINE, true);
    BHT_EQ(verdict.limit, LIMIT_NS);
    expect_within(&verdict, LIMIT_NS + DEAF_NS, slack_of_kill(s.context));
    BHT_STR_HAS(verdict.message, "within the grace time of ");
}

TEST(who_does_not_answer_a_cancel_is_killed) {
    struct stage s = open_stage("1:abort:*=fail", BH_FOREVER, 0, DEAF_NS);
    const bh_verdict verdict = cancel(run_closed(&s));
    BHT_EQ(verdict.signal, SIGKILL);
    BHT_STR_HAS(verdict.message, "did not stop within");
}

TEST(a_trusted_one_is_killed_at_once) {
    struct stage s = open_stage(NULL, LIMIT_NS, 0, FX_SECONDS);
    bh_event *event = run(&s, fx_kernel_trusted(s.context, "hang"));
    const bh_verdict verdict = expect_ended(&s, event, BH_DEADLINE, true);
    expect_within(&verdict, LIMIT_NS, slack_of_kill(s.context));
    BHT_STR_HAS(verdict.message, "passed; a trusted kernel cannot be stopped; worker ");
}

/* Case 52: a stopped worker hears nothing. */
TEST(a_stopped_worker_is_killed) {
    struct stage s = open_stage(NULL, LIMIT_NS, 0, 100 * FX_MS);
    bh_event *event = run_closed(&s);
    const uint64_t seen_ns = bht_now_ns(); /* by the host, whatever a worker says */
    fx_kill(s.pid, SIGSTOP);
    const bh_verdict verdict = fx_expect(event, BH_DEADLINE);
    BHT_EQ(verdict.signal, SIGKILL);
    const uint64_t slack_ns = slack_of_kill(s.context);
    expect_within(&verdict, LIMIT_NS + 100 * FX_MS, slack_ns);
    BHT_LE(verdict.ended_ns, seen_ns + LIMIT_NS + 100 * FX_MS + slack_ns);
}

/* Somebody stops the worker before the kernel begins: at the deadline the next one gets it (E13). */
TEST(what_a_stopped_worker_had_not_begun_runs_again) {
    struct stage s = open_stage(NULL, LIMIT_NS, 0, FX_SECONDS);
    fx_expect(run_open(&s), BH_OK); /* the worker knows the kernel and the buffer */
    fx_kill(s.pid, SIGSTOP);
    const bh_verdict verdict = fx_expect(launch(&s, s.gate, 1, s.deadline_ns), BH_OK);
    BHT_NE(verdict.worker_pid, s.pid);
}

/* A worker that has an end by deadline to report was told to end something. */
TEST(an_answer_without_a_question_is_a_lie) {
    struct stage s = open_stage("1:lie_deadline:1=fail", FX_SECONDS, 0, 0);
    const bh_verdict verdict = fx_expect(run_open(&s), BH_PROTOCOL);
    BHT_STR_HAS(verdict.message, "it stopped a submission that nobody had cancelled");
}

/* -- compiling -----------------------------------------------------------------------------------
 */

#define RUN_NS (BHT_SECOND_MS * FX_MS)

/* The compiler stands still for longer than what runs may take. */
static bh_event *compile_slowly(struct stage *s, bh_event *event) {
    pid_t pid = fx_await_stopped();
    BHT_EQ(pid, s->pid);
    BHT_EQ(bh_event_wait(event, RUN_NS + RUN_NS / 2), BH_TIMEOUT);
    fx_kill(pid, SIGCONT);
    return event;
}

/* An honest kernel that takes the compiler a while. */
TEST(a_slow_compiler_is_no_hang) {
    struct stage s = open_stage("1:compile:1=stop", RUN_NS, 0, 0);
    fx_open(fx_pointer(s.data));
    bh_event *event = compile_slowly(&s, launch(&s, s.gate, 1, RUN_NS));
    fx_expect(event, BH_OK);
    BHT_EQ(bh_stream_worker_pid(s.stream), s.pid);
}

/* And what does not end after it has been compiled gets no more than its own deadline. */
TEST(a_hang_after_a_slow_compiler_is_one) {
    struct stage s = open_stage("1:compile:1=stop", LIMIT_NS, 0, FX_SECONDS);
    bh_event *event = compile_slowly(&s, run(&s, fx_kernel(s.context, "hang")));
    (void)expect_ended(&s, event, BH_DEADLINE, false);
}

static bh_verdict expect_not_compiled(struct stage *s, const char *words) {
    bh_event *event = run(s, s->gate);
    bh_buffer *x = fx_words(s->context, 64, 0), *y = fx_words(s->context, 64, 1);
    bh_kernel *square = fx_kernel(s->context, "square");
    bh_event *innocent = fx_square(s->stream, square, x, y);
    const bh_verdict verdict = fx_expect(event, BH_COMPILE_FAILED);
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    BHT_EQ(verdict.worker_pid, s->pid);
    BHT_STR_HAS(verdict.kernel_name, "gate");
    BHT_STR_HAS(verdict.message, words);
    /* What was in the lane behind it was never started: another worker runs it (E13). */
    fx_expect(innocent, BH_OK);
    BHT_TRUE(fx_ready(s->stream) != s->pid);
    return verdict;
}

TEST(a_compiler_that_does_not_end) {
    struct stage s = open_stage("1:compile:1=spin", BH_FOREVER, COMPILE_NS, 0);
    bh_verdict verdict = expect_not_compiled(&s, "the compile deadline of");
    BHT_EQ(verdict.signal, SIGKILL);
    BHT_EQ(verdict.limit, COMPILE_NS);
    BHT_GE(verdict.ended_ns - verdict.started_ns, COMPILE_NS);
}

/* The processors are others' for longer than the compile deadline. (It is stopped, and so uses no
 * processor time.) */
TEST(a_compile_without_a_processor_is_no_hang) {
    const uint64_t compile_ns = 2 * BHT_SECOND_MS * FX_MS;
    struct stage s = open_stage("1:compile:1=stop", BH_FOREVER, compile_ns, 0);
    bh_event *event = run_open(&s);
    BHT_EQ(fx_await_stopped(), s.pid);
    BHT_EQ(bh_event_wait(event, compile_ns + compile_ns / 4), BH_TIMEOUT);
    fx_kill(s.pid, SIGCONT);
    fx_expect(event, BH_OK);
    BHT_EQ(bh_stream_worker_pid(s.stream), s.pid);
}

/* A compile that does nothing ends, too, and says so. */
TEST(a_compiler_that_sleeps) {
    const uint64_t compile_ns = BHT_SECOND_MS / 4 * FX_MS; /* nothing else is compiled here */
    struct stage s = open_stage("1:compile:1=hang", BH_FOREVER, compile_ns, 0);
    fx_expect_healthy_after(NULL, NULL); /* it would have to be compiled in this time */
    const bh_verdict verdict = fx_expect(run_open(&s), BH_COMPILE_FAILED);
    BHT_GE(verdict.ended_ns - verdict.started_ns, 4 * compile_ns);
    BHT_STR_HAS(verdict.message, " ms of processor time; worker ");
    BHT_EQ(verdict.blame, BH_BLAME_SUSPECTED);
}

TEST(a_compiler_that_crashes) {
    for (int exits = 0; exits < 2; exits++) {
        const char *fault = exits ? "1:compile:1=exit7" : "1:compile:1=segv";
        fprintf(stderr, "%s\n", fault);
        struct stage s = open_stage(fault, FX_SECONDS, 0, 0);
        bh_verdict verdict = expect_not_compiled(&s, "died while compiling: worker ");
        BHT_EQ(verdict.signal, exits ? 0 : SIGSEGV);
        BHT_EQ(verdict.exit_code, exits ? 7 : -1);
        fx_expect_healthy(s.context, s.stream);
    }
}

/* No compiler kills itself like that: it was somebody else, and the next worker compiles it. */
TEST(a_compiler_that_is_killed) {
    struct stage s = open_stage("1:compile:1=kill,2:compile:1=kill", FX_SECONDS, 0, 0);
    BHT_NE(fx_expect(run_open(&s), BH_OK).worker_pid, s.pid);
    BHT_EQ(fx_quarantined(s.context), 0);
}

TEST(cancelled_while_it_is_compiled) {
    struct stage s = open_stage("1:compile:1=stop", BH_FOREVER, BH_FOREVER, 0);
    bh_event *event = run(&s, s.gate);
    (void)fx_await_stopped();
    const bh_verdict verdict = cancel(event);
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    BHT_EQ(verdict.signal, SIGKILL);
    BHT_STR_HAS(verdict.message, "cancelled while it was compiled");
}

/* -- loops that a driver cuts short ---------------------------------------------------------------
 */

/* Mesa's llvmpipe does it before 25, and from there on nobody may say so of it. */
static bool runs_whole_loops(bh_context *context) {
    static bh_device_info devices[DEVICES] = {{.struct_size = sizeof devices[0]}};
    unsigned major = 0;
    bool whole = false;
    BHT_GT(list_devices(context, devices), 0);
    for (uint32_t i = 0; i < devices[0].feature_count; i++) {
        whole |= strcmp(devices[0].features[i], "wholeLoops") == 0;
    }
    if (strstr(devices[0].name, "llvmpipe")) {
        BHT_EQ(sscanf(devices[0].driver_info, "Mesa %u.", &major), 1);
        BHT_EQ(whole, major >= 25);
    } else {
        BHT_TRUE(whole);
    }
    return whole;
}

static bh_event *run_steps(struct stage *s, bh_kernel *kernel, uint32_t steps, uint32_t *out) {
    uint32_t *words = fx_pointer(s->data);
    words[0] = steps;
    words[1] = 0;
    *out = 1;
    for (uint32_t i = 0; i < steps; i++) {
        *out = *out * 1664525u + 1013904223u;
    }
    return launch(s, kernel, 1, 0);
}

/* A result that is wrong is never READY: where the driver ends long loops, it is poisoned. What is
 * far from its limit is not. */
TEST(a_loop_that_is_cut_short) {
    struct stage s = open_stage(NULL, FX_SECONDS, 0, 0);
    bh_kernel *kernel = fx_kernel(s.context, "long_loop");
    const bool whole = runs_whole_loops(s.context);
    static const uint32_t steps[] = {1000, 100000, 20000, 1000000, 7};
    for (size_t i = 0; i < BHT_COUNT(steps); i++) {
        uint32_t expected;
        bh_verdict verdict = fx_verdict(run_steps(&s, kernel, steps[i], &expected));
        if (whole || steps[i] < 65535) {
            BHT_EQ(verdict.status, BH_OK);
            BHT_EQ(fx_pointer(s.data)[1], expected);
        } else {
            BHT_EQ(verdict.status, BH_LOOP_LIMIT);
            BHT_EQ(verdict.executed, BH_EXECUTED_YES);
            BHT_EQ(verdict.reason, BH_REASON_LOOP_CUT);
            BHT_STR_EQ(verdict.subject_name, verdict.kernel_name);
            BHT_STR_HAS(bh_status_advice(verdict.status), "Mesa 25");
        }
        BHT_EQ(bh_stream_worker_pid(s.stream), s.pid);
    }
}

/* Priming: the driver compiles, and nothing runs. An endless kernel is ready to be run, and a cold
 * one that counts has counted once. */
TEST(priming_runs_nothing) {
    struct stage s = open_stage(NULL, FX_SECONDS, 0, FX_SECONDS);
    bh_kernel *hang = fx_kernel(s.context, "hang"), *mix = fx_kernel(s.context, "mix");
    bh_event *event = NULL;
    BHT_EQ(bh_kernel_prepare(hang, s.stream, &event, NULL), BH_OK);
    fx_expect(event, BH_OK);
    bh_buffer *one = fx_words(s.context, 64, 1), *counted = fx_words(s.context, 64, 1);
    const bh_binding bindings[] = {
        bh_bind_read_write(0, counted),
        bh_bind_read(1, one),
    };
    const uint32_t groups[3] = {1, 1, 1}, push[2] = {3, 1};
    BHT_EQ(bh_launch(s.stream, mix, groups, bindings, 2, push, sizeof push, &event, NULL), BH_OK);
    fx_expect(event, BH_OK);
    BHT_EQ(fx_pointer(counted)[0], 4); /* 1 * 3 + 1 */
    BHT_EQ(bh_stream_worker_pid(s.stream), s.pid);
}

/* A driver that compiles a variant for the values of uniforms does not do it in the kernel's time. */
TEST(values_of_uniforms_compile_nothing) {
    struct stage s = open_stage(NULL, FX_SECONDS, 0, FX_SECONDS);
    bh_kernel *kernel = fx_kernel(s.context, "choice");
    bh_buffer *choice = fx_words(s.context, 4, 0);
    const bh_binding bindings[] = {
        bh_bind_read_write(0, s.data),
        bh_bind_read(1, choice),
    };
    for (uint32_t value = 1; value <= 5; value += 4) { /* without the branch, and with it */
        fx_pointer(choice)[0] = value;
        fx_expect(fx_launch(s.stream, kernel, 1, bindings, 2, LIMIT_NS), BH_OK);
    }
    BHT_EQ(bh_stream_worker_pid(s.stream), s.pid);
}

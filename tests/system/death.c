/* Every way for a worker to die, and what its events say of it (E9, E11, E12, E13, E14). */
#include "fixture.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* A gate kernel that runs on the stream, and the worker that runs it. */
struct running {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *hang;
    bh_buffer *gate;
    bh_event *event;
    pid_t pid;
};

/* The deadline is the gate's alone: what comes after it is honest, and may be slow. */
static struct running start_hanging(uint64_t deadline_ns) {
    struct running r = {.context = fx_context(NULL)};
    r.stream = fx_stream(r.context, "victim", BH_FOREVER);
    r.pid = fx_ready(r.stream);
    r.hang = fx_kernel(r.context, "gate");
    r.gate = fx_words(r.context, 64, 0);
    r.event = fx_gate_within(r.stream, r.hang, r.gate, deadline_ns);
    if (deadline_ns == BH_FOREVER) { /* another may pass before the gate is reached */
        fx_await_gate(r.gate);
        BHT_EQ(bh_event_wait(r.event, 0), BH_TIMEOUT); /* E10: nothing has changed */
    }
    return r;
}

static void dies_of(int signal) {
    struct running r = start_hanging(BH_FOREVER);
    fx_kill(r.pid, signal);
    bh_verdict verdict = fx_expect(r.event, BH_WORKER_SIGNAL);
    BHT_EQ(verdict.signal, signal);
    BHT_EQ(verdict.exit_code, -1);
    BHT_EQ(verdict.executed, BH_EXECUTED_UNKNOWN);
    BHT_EQ(verdict.worker_pid, r.pid);
    BHT_EQ(verdict.origin, bh_event_id(r.event));
    BHT_EQ(verdict.hops, 0);
    BHT_STR_EQ(verdict.kernel_name, "gate");
    BHT_STR_EQ(verdict.stream_name, "victim");
    uint8_t hash[32];
    bh_kernel_hash(r.hang, hash);
    BHT_MEM_EQ(verdict.kernel_hash, hash, 32);
    BHT_GE(verdict.started_ns, verdict.submitted_ns);
    BHT_GE(verdict.ended_ns, verdict.started_ns);
    fx_expect_healthy(r.context, r.stream); /* case 47: new work on a new worker */
    BHT_NE(bh_stream_worker_pid(r.stream), r.pid);
    fx_expect(r.event, BH_WORKER_SIGNAL); /* E12: the old verdict stands */
}

TEST(sigsegv) {
    dies_of(SIGSEGV);
}
TEST(sigabrt) {
    dies_of(SIGABRT);
}
TEST(sigkill) {
    dies_of(SIGKILL);
}

TEST(a_kernel_that_crashes_the_driver) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "crash", FX_SECONDS);
    bh_kernel *crash = fx_kernel_trusted(context, "crash_shared");
    bh_buffer *data = fx_words(context, 64, 1);
    bh_event *event = fx_run(stream, crash, data);
    if (fx_drops_outside(context)) {
        fx_expect(event, BH_OK);
    } else {
        const bh_verdict verdict = fx_expect(event, BH_WORKER_SIGNAL);
        BHT_EQ(verdict.signal, SIGSEGV);
        BHT_STR_EQ(verdict.kernel_name, "crash_shared");
    }
    fx_expect_healthy(context, stream);
}

TEST(a_hang_ends_at_its_deadline) {
    const uint64_t deadline_ns = 200 * FX_MS;
    struct running r = start_hanging(deadline_ns);
    const bh_verdict verdict = fx_expect(r.event, BH_DEADLINE);
    BHT_EQ(verdict.limit, deadline_ns);
    BHT_GE(verdict.ended_ns - verdict.started_ns, deadline_ns);
    BHT_STR_HAS(verdict.message, "200 ms");
    fx_expect_healthy(r.context, r.stream);
}

/* Launches square on a worker that meets |fault|; then the stream must be well again. */
static bh_verdict launch_with(const char *fault) {
    bh_context *context = fx_context(fault);
    bh_stream *stream = fx_stream(context, "faulty", FX_SECONDS);
    bh_buffer *x = fx_words(context, 64, 0), *y = fx_words(context, 64, 0);
    bh_verdict verdict = fx_verdict(fx_square(stream, fx_kernel(context, "square"), x, y));
    /* B5: what it declared to write is poisoned, what it only read is not. */
    BHT_EQ(fx_content(x), BH_OK);
    BHT_EQ(fx_content(y), verdict.status);
    fx_expect_healthy(context, stream);
    fx_release_all();
    return verdict;
}

TEST(exit_7_in_mid_job) {
    bh_verdict verdict = launch_with("1:submitted:1=exit7");
    BHT_EQ(verdict.status, BH_WORKER_EXIT);
    BHT_EQ(verdict.exit_code, 7);
}

TEST(a_forbidden_system_call) {
    bh_verdict verdict = launch_with("1:submitted:1=sigsys");
    BHT_EQ(verdict.status, BH_SECCOMP);
    BHT_EQ(verdict.signal, SIGSYS);
}

/* E13: queued behind the culprit, of other submissions, independent: they run on the next worker,
 * in order; what depends on the culprit does not. */
TEST(the_innocent_run_on_the_next_worker) {
    struct running r = start_hanging(200 * FX_MS);
    bh_kernel *square = fx_kernel(r.context, "square");
    bh_buffer *x = fx_words(r.context, 256, 0), *y = fx_words(r.context, 256, 0);
    bh_buffer *z = fx_words(r.context, 256, 0);
    bh_event *innocent = fx_square(r.stream, square, x, y);
    bh_event *second = fx_square(r.stream, square, y, z); /* after the first */
    bh_event *dependent = fx_square(r.stream, square, r.gate, z);
    fx_expect(r.event, BH_DEADLINE);
    fx_expect(innocent, BH_OK);
    fx_expect(second, BH_OK);
    const bh_verdict verdict = fx_expect(dependent, BH_DEADLINE);
    BHT_EQ(verdict.origin, bh_event_id(r.event));
    BHT_EQ(verdict.hops, 1);
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
}

/* The memory bomb: the verdict says which limit, and only this worker feels it. */
TEST(a_memory_bomb_runs_into_the_limit) {
    bh_context *context = fx_context(NULL);
    bh_stream_options options = fx_stream_options();
    options.name = "bomb";
    options.memory_limit = 256ull << 20;
    bh_stream *stream = fx_stream_with(context, options);
    bh_kernel *bomb = fx_kernel_trusted(context, "memory_bomb");
    bh_event *event = fx_run(stream, bomb, fx_words(context, 64, 0));
    const bh_verdict verdict = fx_expect(event, BH_COMPILE_FAILED);
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    BHT_EQ(verdict.limit, 256ull << 20);
    BHT_STR_HAS(verdict.message, "256 MiB");
    fx_expect_healthy(context, stream);
}

#if !BHT_ASAN /* its shadow is over any limit: the worker sets none */
/* Without a memory cgroup, as for an ordinary user, RLIMIT_DATA holds, and the verdict is the same.
 */
TEST(a_memory_bomb_without_cgroup) {
    fx_hide_cgroups();
    a_memory_bomb_runs_into_the_limit();
}
#endif

TEST(no_device_can_be_created) {
    bh_context_options options = fx_options();
    options.restart_budget = 3;
    bh_context *context = fx_context_with(options, "*:device:1=fail");
    bh_stream *stream = fx_stream(context, "none", FX_SECONDS);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = fx_words(context, 64, 0), *y = fx_words(context, 64, 0);
    bh_event *event = fx_square(stream, square, x, y);
    bh_detail detail;
    bh_status status = bh_stream_wait_ready(stream, FX_SECONDS, &detail);
    BHT_EQ(bh_status_classify(status), BH_STATUS_CLASS_ENVIRON);
    BHT_TRUE(detail.message[0]);
    BHT_EQ(fx_verdict(event).status, status);
    BHT_EQ(fx_verdict(event).executed, BH_EXECUTED_NO);
    /* Case 50: typed, and later submissions get the same answer at once. */
    fx_expect(fx_square(stream, square, x, y), status);
}

/* A worker that must not be given work: the stream says why it has none. */
static void never_gets_work(const char *fault, const char *says) {
    bh_context_options options = fx_options();
    options.restart_budget = 1;
    bh_context *context = fx_context_with(options, fault);
    bh_stream *stream = fx_stream(context, "impostor", FX_SECONDS);
    bh_detail detail;
    BHT_EQ(bh_stream_wait_ready(stream, FX_SECONDS, &detail), BH_UNAVAILABLE);
    BHT_STR_HAS(detail.message, says);
    BHT_EQ(bh_stream_worker_pid(stream), 0);
}

/* It does not know the one-time token. */
TEST(a_worker_with_a_wrong_token) {
    never_gets_work("*:token:1=fail", "token");
}

/* It says that it is ready, and /proc says that it is not isolated. */
TEST(a_worker_that_kept_its_rights) {
    never_gets_work("*:capabilities:1=fail", "Cap");
}

static void the_first_start_fails(const char *faults) {
    bh_context *context = fx_context(faults);
    bh_stream *stream = fx_stream(context, "second-try", FX_SECONDS);
    fx_expect_healthy(context, stream);
    fx_release_all();
}

/* They speak over different sockets: `ready` can come before `spawned`. */
TEST(a_worker_that_is_faster_than_its_zygote) {
    the_first_start_fails("*:spawned:1=fail");
}

TEST(death_at_each_step_of_starting) {
    static const char *const points[] = {"sandbox", "connect",   "hello", "device",
                                         "warm_up", "lock_down", "ready"};
    for (size_t i = 0; i < BHT_COUNT(points); i++) {
        char faults[64];
        snprintf(faults, sizeof faults, "1:%s:1=kill", points[i]);
        the_first_start_fails(faults);
    }
}

/* It had not started, or it may have: READY on the next worker, or poisoned. Never a hang, never a
 * success that is none. */
TEST(death_while_attaching_and_creating) {
    static const char *const faults[] = {"1:attach:1=kill", "1:kernel_create:1=kill",
                                         "1:started:1=kill"};
    for (size_t i = 0; i < BHT_COUNT(faults); i++) {
        const bh_status status = launch_with(faults[i]).status;
        BHT_TRUE(status == BH_OK || status == BH_WORKER_SIGNAL);
    }
}

/* On a slow machine the time may be over before the worker comes to where it stands still: then it
 * is given more. */
TEST(a_worker_that_does_not_start_in_time) {
    for (uint64_t timeout_ms = 300;; timeout_ms *= 4) {
        bh_context_options options = fx_options();
        options.start_timeout_ns = timeout_ms * FX_MS;
        options.restart_budget = 1;
        bh_context *context = fx_context_with(options, "?*:warm_up:1=hang");
        bh_stream *stream = fx_stream(context, "slow", FX_SECONDS);
        bh_detail detail;
        BHT_EQ(bh_stream_wait_ready(stream, FX_SECONDS, &detail), BH_UNAVAILABLE);
        BHT_STR_HAS(detail.message, "not ready in time");
        const bool reached = strstr(detail.message, "(step warm-up)");
        fx_release_all();
        if (reached) {
            break;
        }
        BHT_LT(timeout_ms, 10000 * bht_slowness());
    }
}

TEST(a_start_timeout_of_0_is_the_default) {
    bh_context_options options = fx_options();
    options.start_timeout_ns = 0;
    options.restart_budget = 1;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *stream = fx_stream(context, "default", FX_SECONDS);
    BHT_EQ(bh_stream_wait_ready(stream, FX_SECONDS, NULL), BH_OK);
}

#if !BHT_ASAN && !BHT_TSAN /* they take processor time of this process, too */
/* The soft limit is the host's own: workers get the hard one. Linux ends what reaches that, which
 * is no kernel's fault (T2), and the message names the limit. */
TEST(the_host_limits_processor_time) {
    const struct rlimit limit = {1, 2};
    BHT_EQ(setrlimit(RLIMIT_CPU, &limit), 0);
    struct running r = start_hanging(BH_FOREVER);
    const bh_verdict verdict = fx_expect(r.event, BH_WORKER_SIGNAL);
    BHT_EQ(verdict.signal, SIGKILL);
    BHT_EQ(verdict.blame, BH_BLAME_NONE);
    BHT_STR_HAS(verdict.message,
                "the host allows a process 2 s of processor time (raise ulimit -t)");
}
#endif

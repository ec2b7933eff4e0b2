/* Step by action: what a worker, or its zygote, does at each step of the protocol
 * (tests/hostile/faults.h), and what the submission that it meets says then. The neighbour is
 * unharmed but for a zygote's death; the stream is in good health afterwards. */
#include "plan.h"

#include <poll.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <unistd.h>

#define MAX_VERDICTS 4

struct row {
    const char *point, *action;
    bh_status verdicts[MAX_VERDICTS]; /* what it may be; those left out are BH_OK, which is allowed
                                         only where it is named first, or stands alone */
};

#define RUNS {BH_OK}

/* What happens before it is given work costs nothing: the next worker runs it. */
static const struct row starting[] = {
    {"sandbox", "kill", RUNS},
    {"sandbox", "segv", RUNS},
    {"sandbox", "exit0", RUNS},
    {"connect", "kill", RUNS},
    {"connect", "fail", RUNS}, /* What it opens next takes the numbers of what it closed. */
    {"connect", "close", {BH_OK, BH_DEADLINE, BH_WORKER_EXIT, BH_PROTOCOL}},
    {"token", "fail", RUNS},
    {"hello", "kill", RUNS},
    {"hello", "exit7", RUNS},
    {"hello", "fail", RUNS},
    {"hello", "close", RUNS},
    {"hello", "stop", RUNS},
    {"device", "segv", RUNS},
    {"device", "hang", RUNS},
    {"device", "flood", RUNS},
    {"warm_up", "stop", RUNS},
    {"warm_up", "garbage", RUNS},
    {"warm_up", "abort", RUNS},
    {"warm_up", "close", RUNS},
    {"lock_down", "kill", RUNS},
    {"lock_down", "stop", RUNS},
    {"ready", "kill", RUNS},
    {"ready", "exit0", RUNS},
    {"ready", "close", RUNS},
    {"ready", "flood", RUNS},
};

/* It was asked for another worker: those that it has die with it. */
static const struct row zygote[] = {
    {"fork_request", "segv", RUNS},  {"fork_request", "exit0", RUNS},
    {"fork_request", "close", RUNS}, {"fork_request", "hang", RUNS},
    {"before_fork", "segv", RUNS},   {"before_fork", "exit7", RUNS},
    {"after_fork", "segv", RUNS},    {"after_fork", "exit0", RUNS},
    {"after_fork", "close", RUNS},   {"after_fork", "hang", RUNS},
    {"say", "fail", RUNS},           {"say", "segv", RUNS},
};

static const struct row running[] = {
    {"attach", "kill", {BH_OK}},
    {"attach", "segv", {BH_OK}},
    {"attach", "stop", {BH_OK}}, /* it had not begun (decision 160) */
    {"attach", "exit0", {BH_OK}},
    {"attach", "fail", {BH_OUT_OF_HOST_MEMORY}},
    {"attach", "close", {BH_OK, BH_WORKER_EXIT, BH_WORKER_SIGNAL, BH_PROTOCOL}},
    {"kernel_create", "kill", {BH_OK}},
    {"kernel_create", "stop", {BH_OK}},
    {"kernel_create", "fail", {BH_OUT_OF_HOST_MEMORY}},
    {"kernel_create", "close", {BH_OK, BH_WORKER_EXIT, BH_WORKER_SIGNAL, BH_PROTOCOL}},
    {"started", "kill", {BH_WORKER_SIGNAL}},
    {"started", "stop", {BH_DEADLINE}},
    {"started", "exit0", {BH_WORKER_EXIT}},
    {"started", "garbage", {BH_PROTOCOL}},
    {"submitted", "kill", {BH_WORKER_SIGNAL}},
    {"submitted", "segv", {BH_WORKER_SIGNAL}},
    {"submitted", "sigsys", {BH_SECCOMP}},
    {"submitted", "spin", {BH_DEADLINE}},
    {"submitted", "exit7", {BH_WORKER_EXIT}},
    {"submitted", "flood", {BH_PROTOCOL, BH_DEADLINE}},
    {"submitted", "close", {BH_OK, BH_WORKER_EXIT, BH_WORKER_SIGNAL, BH_PROTOCOL}},
    /* Case 44: the data is there, the record is not, or half of it. */
    {"before_record", "kill", {BH_WORKER_SIGNAL}},
    {"before_record", "stop", {BH_DEADLINE}},
    {"before_record", "garbage", {BH_PROTOCOL}},
    {"torn_record", "kill", {BH_WORKER_SIGNAL}},
    {"torn_record", "segv", {BH_WORKER_SIGNAL}},
    {"torn_record", "stop", {BH_DEADLINE}},
    {"torn_record", "exit0", {BH_WORKER_EXIT}},
    {"torn_record", "fail", {BH_PROTOCOL}}, /* published like that */
    /* Case 45: it is there. */
    {"after_record", "kill", {BH_OK}},
    {"after_record", "segv", {BH_OK}},
    {"after_record", "stop", {BH_OK}},
    {"after_record", "exit0", {BH_OK}},
    {"after_record", "close", {BH_OK}},
};

struct scene {
    bh_context *context;
    bh_stream *neighbour;
    char what[64];
};

static struct scene begin(void) {
    bh_context_options options = fx_options();
    options.start_timeout_ns = BHT_SECOND_MS * FX_MS; /* who stands still while starting */
    struct scene scene = {.context = fx_context_with(options, bht_plan_open())};
    scene.neighbour = fx_stream(scene.context, "neighbour", FX_SECONDS);
    fx_expect_healthy(scene.context, scene.neighbour);
    return scene;
}

static bh_status meet(struct scene *scene, const struct row *row, bh_stream *stream) {
    bh_kernel *square = fx_kernel(scene->context, "square");
    bh_buffer *x = fx_words(scene->context, 64, 0x40000000u), *y = fx_words(scene->context, 64, 0);
    bh_event *event = fx_square(stream, square, x, y);
    bh_verdict verdict = fx_verdict(event);
    WAIT_UNTIL(bht_plan_fired(), 5000);
    bool allowed = verdict.status == row->verdicts[0];
    for (size_t i = 1; i < MAX_VERDICTS; i++) {
        allowed = allowed || (row->verdicts[i] != BH_OK && verdict.status == row->verdicts[i]);
    }
    if (!allowed) {
        BHT_FAIL("%s: %s: %s", scene->what, bh_status_name(verdict.status), verdict.message);
    }
    BHT_TRUE(verdict.status == BH_OK || verdict.message[0]);
    /* B5: the input stays clean, the output carries the verdict, and READY means that it is right.
     */
    void *pointer;
    fx_mapped(x);
    BHT_EQ(bh_buffer_map(y, BH_MAP_READ, FX_SECONDS, &pointer, NULL), verdict.status);
    for (int i = 0; verdict.status == BH_OK && i < 64; i++) {
        BHT_TRUE(((float *)pointer)[i] == 4.0f);
    }
    bh_kernel_release(square); /* the next one may be refused no more */
    return verdict.status;
}

static void run(const struct row *rows, size_t count, bool served) {
    struct scene scene = begin();
    for (size_t i = 0; i < count; i++) {
        if (!bht_mine(i)) {
            continue;
        }
        const struct row *row = &rows[i];
        snprintf(scene.what, sizeof scene.what, "%s: %s", row->point, row->action);
        pid_t neighbour = fx_ready(scene.neighbour), pid = 0;
        bh_stream *stream = NULL;
        if (served) {
            stream = fx_stream(scene.context, "one", BHT_SECOND_MS * FX_MS);
            pid = fx_ready(stream);
        }
        bht_plan_arm(row->point, row->action, 1);
        if (!served) {
            stream = fx_stream(scene.context, "one", BHT_SECOND_MS * FX_MS);
        }
        bh_status status = meet(&scene, row, stream);
        WAIT_UNTIL(bht_plan_fired(), 20000); /* it may come after the result */
        bht_plan_disarm();
        if (served && status == BH_OK && strcmp(row->action, "stop") == 0) {
            kill(pid, SIGKILL); /* it would stand in the way until a deadline */
        }
        fx_expect_healthy(scene.context, stream);
        if (rows != zygote) {
            BHT_EQ(fx_ready(scene.neighbour), neighbour);
        }
        fx_expect_healthy(scene.context, scene.neighbour);
        bh_stream_release(stream);
    }
    fx_expect_healthy(scene.context, scene.neighbour);
}

TEST_WITH(each_step_of_starting, 150, 0) {
    run(starting, BHT_COUNT(starting), false);
}
TEST_WITH(each_step_of_the_zygote, 150, 0) {
    run(zygote, BHT_COUNT(zygote), false);
}
TEST_WITH(each_step_of_a_submission, 150, 0) {
    run(running, BHT_COUNT(running), true);
}

/* A worker is killed in mid-job, and |action| happens at |point| of its zygote. Returns what the
 * job ended with; its stream is healthy again. */
static bh_verdict kill_in_job(struct scene *scene, const char *point, const char *action) {
    bh_stream *stream = fx_stream(scene->context, "one", BHT_SECOND_MS * FX_MS);
    pid_t pid = fx_ready(stream);
    const struct fx_held held = fx_hold(scene->context, stream);
    bht_plan_arm(point, action, 1);
    fx_kill(pid, SIGKILL);
    bh_verdict verdict = fx_verdict(held.event);
    WAIT_UNTIL(bht_plan_fired(), 5000);
    bht_plan_disarm();
    fx_expect_healthy(scene->context, stream);
    return verdict;
}

/* The zygote dies while it has a worker's end to report: everybody's work ends typed. */
TEST(the_zygote_dies_with_an_obituary_in_hand) {
    static const char *const actions[] = {"segv", "exit0", "hang", "close"};
    struct scene scene = begin();
    for (size_t i = 0; i < BHT_COUNT(actions); i++) {
        BHT_EQ(kill_in_job(&scene, "exit_report", actions[i]).status, BH_ZYGOTE_LOST);
        fx_expect_healthy(scene.context, scene.neighbour);
    }
    fx_expect_healthy(scene.context, scene.neighbour);
}

/* To take a body away can take long (zygote.c, reap): nobody waits for it. */
TEST(a_death_is_told_before_the_body_is_gone) {
    struct scene scene = begin();
    const bh_verdict verdict = kill_in_job(&scene, "reap", "hang");
    BHT_EQ(verdict.status, BH_WORKER_SIGNAL);
    BHT_EQ(verdict.signal, SIGKILL);
    fx_expect_healthy(scene.context, scene.neighbour);
}

/* The zygote stands still meanwhile, so that it meets all of it at once. */
static void kill_while_stopped(pid_t forker, const pid_t *pids, size_t count) {
    fx_kill(forker, SIGSTOP);
    WAIT_UNTIL(bht_process_state(forker) == 'T', 20000);
    for (size_t i = 0; i < count; i++) {
        struct pollfd end = {.fd = pidfd_open(pids[i], 0), .events = POLLIN};
        BHT_GE(end.fd, 0);
        fx_kill(pids[i], SIGKILL);
        BHT_EQ(poll(&end, 1, 20000 * (int)bht_slowness()), 1); /* with its last thread */
        close(end.fd);
    }
}

/* Two workers have died: the second death does not wait until the first body is gone. */
TEST(deaths_are_told_before_a_body_is_gone) {
    struct scene scene = begin();
    bh_event *events[2];
    pid_t pids[2];
    for (int i = 0; i < 2; i++) {
        bh_stream *stream = fx_stream(scene.context, i ? "two" : "one", FX_SECONDS);
        pids[i] = fx_ready(stream);
        events[i] = fx_hold(scene.context, stream).event;
    }
    const pid_t forker = fx_parent(pids[0]);
    bht_plan_arm("reap", "hang", 1);
    kill_while_stopped(forker, pids, 2);
    fx_kill(forker, SIGCONT);
    for (int i = 0; i < 2; i++) {
        const bh_verdict verdict = fx_verdict(events[i]);
        BHT_EQ(verdict.status, BH_WORKER_SIGNAL);
        BHT_EQ(verdict.signal, SIGKILL);
    }
    WAIT_UNTIL(bht_plan_fired(), 5000);
    bht_plan_disarm();
    fx_expect_healthy(scene.context, scene.neighbour);
}

/* The stream's next worker is there although the last one's body is not gone. */
TEST(a_start_comes_before_the_body_is_gone) {
    struct scene scene = begin();
    bh_stream *stream = fx_stream(scene.context, "one", FX_SECONDS);
    fx_expect_healthy(scene.context, stream);
    const pid_t pid = fx_ready(stream), forker = fx_parent(pid);
    bht_plan_arm("reap", "hang", 1);
    kill_while_stopped(forker, &pid, 1);
    WAIT_UNTIL(fx_describes(scene.context, "being forked"), 20000);
    fx_kill(forker, SIGCONT);
    BHT_EQ(fx_parent(fx_ready(stream)), forker);
    fx_expect_healthy(scene.context, stream);
    WAIT_UNTIL(bht_plan_fired(), 5000);
    bht_plan_disarm();
    fx_expect_healthy(scene.context, scene.neighbour);
}

/* A SIGSYS is followed by a trace of the driver, at some time. It runs what a worker runs. */
TEST(a_trace_does_not_meet_a_planned_fault) {
    struct scene scene = begin();
    bh_trace seen = {.struct_size = sizeof seen};
    bh_traced_call calls[1] = {{.struct_size = sizeof calls[0]}};
    size_t count = 0;
    bht_plan_arm("submitted", "kill", 1);
    BHT_EQ(bh_trace_driver(scene.context, "lavapipe", &seen, calls, 1, &count, NULL), BH_OK);
    BHT_TRUE(seen.complete);
    BHT_TRUE(!bht_plan_disarm());
    fx_expect_healthy(scene.context, scene.neighbour);
}

/* Case 54, and nobody's deadline: a worker that has closed its sockets and stays is noticed when it
 * is to be told something. */
static void closed_without_a_deadline(const char *action) {
    struct scene scene = begin();
    bh_stream *stream = fx_stream(scene.context, "one", BH_FOREVER);
    fx_ready(stream);
    bht_plan_arm("after_record", action, 1);
    fx_expect_healthy(scene.context, stream);
    WAIT_UNTIL(bht_plan_fired(), 20000);
    bht_plan_disarm();
    bh_event *event = bht_square(scene.context, stream, NULL);
    bh_status status = bht_end(event, "after its sockets are closed");
    BHT_TRUE(status == BH_OK || status == BH_PROTOCOL || status == BH_WORKER_EXIT);
    fx_expect_healthy(scene.context, stream);
    fx_expect_healthy(scene.context, scene.neighbour);
}

TEST(closed_sockets_without_a_deadline) {
    closed_without_a_deadline("close");
}
TEST(hung_up_without_a_deadline) {
    closed_without_a_deadline("hang_up");
}

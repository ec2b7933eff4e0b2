/* Kills and stops at the named steps inside the supervisor (seam.c), synchronously: when
 * the library goes on, the worker is dead, or stands still. Case 49: a death in the middle of a
 * ring write. Everything ends typed, in bounded time; the neighbour is unharmed; the stream serves
 * on. */
#include "scene.h"
#include "supervisor/context/context.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/worker_proc.h"
#include "supervisor/worker/zygote.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum victim { WORKER, ZYGOTE, WARDEN };

/* What the hook is to hit. Found before, where the step tells nothing of it. */
static struct {
    enum victim victim;
    int signal;
    pid_t worker, zygote;
    _Atomic bool hit;
} plan;

/* Sends the signal and waits until it has done its work. */
static void hit(pid_t pid) {
    BHT_GT(pid, 1);
    kill(pid, plan.signal);
    bool stops = plan.signal == SIGSTOP;
    WAIT_UNTIL(strchr(stops ? "TtZX" : "ZX", bht_process_state(pid)), 5000);
    plan.hit = true;
}

static void at_worker_step(void *object) {
    (void)object;
    pid_t worker = plan.worker;
    hit(plan.victim == WORKER ? worker : plan.zygote);
}

/* Half a record lies beyond what is published, so that no worker, dead or alive, reads it. */
static void at_torn_record(void *object) {
    const struct bhi_lane *lane = object;
    BHT_EQ(atomic_load(&lane->header->head), lane->head);
    hit(plan.worker);
}

/* Steps of a worker that is not known before. */
static void at_birth(void *object) {
    const struct bhi_worker *worker = object;
    if (plan.victim == WORKER) {
        if (worker->core.pid > 0) {
            hit(worker->core.pid);
        }
    } else {
        hit(plan.zygote);
    }
}

static void at_zygote_step(void *object) {
    (void)object;
    pid_t below[8];
    BHT_EQ(bht_descendants(getpid(), below, BHT_COUNT(below)) >= 1, true);
    hit(below[0]); /* the warden is there, and perhaps not yet more */
}

struct row {
    const char *step;
    bht_hook *hook;
    enum victim victim;
    int signal;
    bh_status verdict;  /* of the submission that is under way: this, or BH_OK where it may be */
    bool may_run;       /* it was not started, or had ended: it runs, or has run, to its end */
    bool must_end_well; /* E11: its record was there, or it was never started */
};

static void set(const struct row *row, pid_t worker) {
    plan.victim = row->victim;
    plan.signal = row->signal;
    plan.worker = worker;
    plan.zygote = worker > 0 ? fx_parent(worker) : 0;
    plan.hit = false;
}

static bh_status check(const struct row *row, bh_event *event) {
    char what[128];
    snprintf(what, sizeof what, "%s, signal %d", row->step, row->signal);
    bh_verdict verdict = fx_verdict(event);
    /* Whoever took in the result published it first, and may still be at its step. */
    WAIT_UNTIL(plan.hit, 10000);
    if (verdict.status == BH_OK ? !row->may_run
                                : row->must_end_well || verdict.status != row->verdict) {
        BHT_FAIL("%s: %s: %s", what, bh_status_name(verdict.status), verdict.message);
    }
    return bht_end(event, what);
}

/* -- while a submission is under way ------------------------------------------------------------
 */

/* 0, 1, 2, … */
static bh_buffer *ramp(bh_context *context) {
    bh_buffer *x = fx_words(context, 1024, 0);
    float *in = (float *)(void *)fx_pointer(x);
    for (int i = 0; i < 1024; i++) {
        in[i] = (float)i;
    }
    return x;
}

/* Its squares, or |status|: no torn read is taken as data. */
static void expect_squares(bh_buffer *y, bh_status status) {
    void *out;
    BHT_EQ(bh_buffer_map(y, BH_MAP_READ, FX_SECONDS, &out, NULL), status);
    for (int i = 0; status == BH_OK && i < 1024; i++) {
        BHT_TRUE(((float *)out)[i] == (float)i * (float)i);
    }
}

static void run_row(const struct row *row) {
    bh_context *context = fx_context(NULL);
    bh_stream *neighbour = fx_stream(context, "neighbour", FX_SECONDS);
    bh_stream *stream = fx_stream(context, "one", BHT_SECOND_MS * FX_MS);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = ramp(context), *y = fx_words(context, 1024, 0);
    fx_expect_healthy(context, neighbour);
    /* In no way the first: what is half written may look like what was there before. */
    fx_expect_healthy(context, stream);
    set(row, fx_ready(stream));
    bht_at_step(row->step, 1, row->hook);
    expect_squares(y, check(row, fx_square(stream, square, x, y)));
    if (row->signal == SIGSTOP) {
        kill(plan.worker, SIGKILL); /* it would stand in the way of the next one until a deadline */
    }
    fx_expect_healthy(context, stream);
    fx_expect_healthy(context, neighbour);
}

static const struct row submission_rows[] = {
    /* Case 49: half of a record, all of it, nothing said of it. It is the library's own thread that
     * writes: the worker cannot have seen it, and the submission runs on the next one. */
    {"lane_half_written", at_torn_record, WORKER, SIGKILL, BH_WORKER_SIGNAL, true, true},
    {"lane_half_written", at_torn_record, WORKER, SIGSTOP, BH_DEADLINE, true, false},
    {"lane_half_written", at_worker_step, ZYGOTE, SIGKILL, BH_ZYGOTE_LOST, true, true},
    {"lane_written", at_worker_step, WORKER, SIGKILL, BH_WORKER_SIGNAL, true, true},
    {"lane_written", at_worker_step, ZYGOTE, SIGKILL, BH_ZYGOTE_LOST, true, true},
    {"submission_published", at_worker_step, WORKER, SIGKILL, BH_WORKER_SIGNAL, true, false},
    {"submission_published", at_worker_step, WORKER, SIGSTOP, BH_DEADLINE, true, false},
    /* An attach: before and after its descriptor, after its message. */
    {"descriptor_due", at_worker_step, WORKER, SIGKILL, BH_WORKER_SIGNAL, true, true},
    {"descriptor_due", at_worker_step, WORKER, SIGSTOP, BH_DEADLINE, true, false},
    {"descriptor_due", at_worker_step, ZYGOTE, SIGKILL, BH_ZYGOTE_LOST, true, true},
    {"descriptor_sent", at_worker_step, WORKER, SIGKILL, BH_WORKER_SIGNAL, true, true},
    {"descriptor_sent", at_worker_step, ZYGOTE, SIGKILL, BH_ZYGOTE_LOST, true, true},
    {"control_sent", at_worker_step, WORKER, SIGKILL, BH_WORKER_SIGNAL, true, true},
    {"control_sent", at_worker_step, WORKER, SIGSTOP, BH_DEADLINE, true, false},
    /* Case 45: its record is read, its event is not published. */
    {"result_read", at_worker_step, WORKER, SIGKILL, BH_OK, true, true},
    {"result_read", at_worker_step, ZYGOTE, SIGKILL, BH_OK, true, true},
    {"event_due", at_worker_step, WORKER, SIGKILL, BH_OK, true, true},
    {"event_due", at_worker_step, WORKER, SIGSTOP, BH_OK, true, true},
};

static void run_rows(const struct row *rows, size_t count, enum victim victim, int signal) {
    size_t ran = 0;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].victim == victim && rows[i].signal == signal) {
            run_row(&rows[i]);
            ran++;
        }
    }
    BHT_GT(ran, 0);
}

TEST(worker_killed_at_each_step) {
    run_rows(submission_rows, BHT_COUNT(submission_rows), WORKER, SIGKILL);
}
TEST(worker_stopped_at_each_step) {
    run_rows(submission_rows, BHT_COUNT(submission_rows), WORKER, SIGSTOP);
}
TEST(zygote_killed_at_each_step) {
    run_rows(submission_rows, BHT_COUNT(submission_rows), ZYGOTE, SIGKILL);
}

/* Case 49 once more, with a lane that is in use: records lie before the torn one and behind it, and
 * what lies before it is not run twice. */
TEST(a_torn_record_among_others) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "one", FX_SECONDS);
    enum { COUNT = 32, TORN = 17 };
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = ramp(context), *y[COUNT];
    const struct row row = {.victim = WORKER, .signal = SIGKILL};
    set(&row, fx_ready(stream));
    bht_at_step("lane_half_written", TORN, at_torn_record);
    bh_event *events[COUNT];
    for (int i = 0; i < COUNT; i++) {
        y[i] = fx_words(context, 1024, 0);
        events[i] = fx_square(stream, square, x, y[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        bh_verdict verdict = fx_verdict(events[i]);
        bool before = i < TORN - 1;
        /* What was in flight is READY, or lost with its worker; what came later runs. */
        if (verdict.status != BH_OK &&
            (!before || (verdict.status != BH_WORKER_SIGNAL && verdict.status != BH_WORKER_LOST))) {
            BHT_FAIL("submission %d: %s: %s", i, bh_status_name(verdict.status), verdict.message);
        }
        expect_squares(y[i], verdict.status);
    }
    BHT_TRUE(plan.hit);
    fx_expect_healthy(context, stream);
}

/* -- while a worker, or its zygote, starts -------------------------------------------------------
 */

static const struct row birth_rows[] = {
    {"spawn_requested", at_birth, ZYGOTE, SIGKILL, 0, 0, 0},
    {"spawn_answered", at_birth, WORKER, SIGKILL, 0, 0, 0},
    {"spawn_answered", at_birth, ZYGOTE, SIGKILL, 0, 0, 0},
    {"hello", at_birth, ZYGOTE, SIGKILL, 0, 0, 0},
    {"ready", at_birth, WORKER, SIGKILL, 0, 0, 0},
    {"ready", at_birth, ZYGOTE, SIGKILL, 0, 0, 0},
    {"ready", at_birth, WORKER, SIGSTOP, 0, 0, 0},
    {"worker_due", at_birth, ZYGOTE, SIGKILL, 0, 0, 0},
};

/* A second stream's worker is being born, on the zygote that the first one uses. */
TEST(death_at_each_step_of_a_birth) {
    for (size_t i = 0; i < BHT_COUNT(birth_rows); i++) {
        const struct row *row = &birth_rows[i];
        bh_context *context = fx_context(NULL);
        bh_stream *first = fx_stream(context, "first", FX_SECONDS);
        set(row, fx_ready(first));
        bht_at_step(row->step, 1, row->hook);
        bh_stream *second = fx_stream(context, "second", BHT_SECOND_MS * FX_MS);
        bh_kernel *square = fx_kernel(context, "square");
        bh_buffer *x = fx_words(context, 64, 0), *y = fx_words(context, 64, 0);
        if (strcmp(row->step, "worker_due") == 0) {
            pid_t pid = fx_ready(second);
            fx_kill(pid, SIGKILL);
        }
        bh_event *event = fx_square(second, square, x, y);
        bh_verdict verdict = fx_verdict(event);
        WAIT_UNTIL(plan.hit || bht_steps_passed() > 0, 5000);
        bht_at_step(NULL, 0, NULL);
        /* It had not started when they died: it runs on the next one; a worker that stands still is
         * found by the deadline. */
        if (verdict.status != BH_OK && !(verdict.status == BH_DEADLINE && row->signal == SIGSTOP)) {
            BHT_FAIL("%s: %s: %s", row->step, bh_status_name(verdict.status), verdict.message);
        }
        fx_expect_healthy(context, second);
        fx_expect_healthy(context, first);
        bh_context_destroy(context);
    }
}

static void the_warden_dies_at(const char *step) {
    bh_context *context = fx_context(NULL);
    const struct row row = {.victim = WARDEN, .signal = SIGKILL};
    set(&row, 0);
    bht_at_step(step, 1, at_zygote_step);
    bh_stream *stream = fx_stream(context, "one", FX_SECONDS);
    fx_expect_healthy(context, stream);
    BHT_TRUE(plan.hit);
    bh_context_destroy(context);
    /* A zygote that the warden had just made dies by itself; it comes to us, not to init. */
    WAIT_UNTIL(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, 5000);
}

TEST(the_warden_is_killed_before_it_is_told_anything) {
    the_warden_dies_at("warden_started");
}
TEST(the_warden_is_killed_once_it_was_told) {
    the_warden_dies_at("zygote_told");
}

#define MANY 8

static _Atomic uint32_t buried, sentenced;

/* The first one is about to be buried, and nobody has been taken from the list. */
static void at_the_first_burial(void *object) {
    bh_context *context = ((struct bhi_worker *)object)->context;
    bhi_context_lock(context);
    BHI_LIST_FOR(const struct bhi_worker, worker, &context->workers, link) {
        buried++;
        sentenced +=
            worker->core.life.state >= BHI_KILLED && worker->core.life.kill == BHI_KILL_RETIRED;
    }
    bhi_context_unlock(context);
}

/* A context does not end its workers one after the other: all are killed before it waits for any.
 * Idle ones, one that runs what nothing else ends, one that stands still. */
TEST(all_are_killed_before_any_is_waited_for) {
    bh_context *context = fx_context(NULL);
    bh_stream *streams[MANY];
    for (int i = 0; i < MANY; i++) {
        streams[i] = fx_stream(context, "many", BH_FOREVER);
    }
    for (int i = 0; i < MANY; i++) {
        fx_ready(streams[i]);
    }
    const struct fx_held held = fx_hold(context, streams[1]);
    fx_kill(fx_ready(streams[2]), SIGSTOP);
    bht_at_step("worker_due", 1, at_the_first_burial);
    BHT_EQ(bh_context_destroy(context), BH_OK);
    BHT_EQ(bht_steps_passed(), MANY);
    BHT_EQ(buried, MANY);
    BHT_EQ(sentenced, MANY);
    fx_expect(held.event, BH_CONTEXT_CLOSED);
}

/* The submission can run and nobody else knows: here it has run before this thread goes on. */
static void at_publication(void *object) {
    struct bhi_worker *worker = object;
    bhi_lane_wake(&worker->lane);
    WAIT_UNTIL(atomic_load(&worker->progress.header->completed_seq) > worker->core.harvested,
               20000);
    plan.hit = true;
}

/* What an honest worker says of its time on the device is no lie, however late the host looks. */
TEST(one_that_ends_before_it_is_known_to_begin) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "quick", FX_SECONDS);
    bh_buffer *buffer = fx_words(context, 1 << 20, 0);
    const bh_command command = {.type = BH_COMMAND_FILL,
                                .fill = {.dst = buffer, .size = BH_WHOLE_SIZE, .value = 7}};
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = &command,
                                 .command_count = 1,
                                 .flags = BH_SUBMIT_TIMED};
    fx_ready(stream);
    plan.hit = false;
    for (int i = 0; i < 2; i++) {
        if (i == 1) { /* the worker has the buffer */
            bht_at_step("submission_published", 1, at_publication);
        }
        const bh_verdict verdict = fx_verdict(fx_submit(stream, &info));
        BHT_EQ(verdict.status, BH_OK);
        BHT_GE(verdict.device_ns, 1);
        BHT_LE(verdict.device_ns, verdict.ended_ns - verdict.started_ns);
    }
    BHT_TRUE(plan.hit);
}

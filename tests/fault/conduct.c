/* What a worker that was taken over may cost its host (T4, T5): it blocks what it shares with the
 * supervisor, rings, floods, spins. It is killed, and says what for in its obituary; nobody else
 * notices. */
#include "supervisor/worker/conduct.h"
#include "plan.h"
#include "supervisor/worker/worker_proc.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static bh_context *open_context(const char *more) {
    char faults[256];
    snprintf(faults, sizeof faults, "%s%s", bht_plan_open(), more);
    bh_context_options options = fx_options();
    fx_keep_log(&options);
    return fx_context_with(options, faults);
}

/* A budget that is used up at once, also where the machine is busy and the reactor wakes seldom. */
static void tighten(void) {
    bhi_conduct_limits.rings = 16;
    bhi_conduct_limits.rings_per_s = 1;
    bhi_conduct_limits.mutes = 4;
    bhi_conduct_limits.lines = 20;
    bhi_conduct_limits.lines_per_s = 1;
    bhi_conduct_limits.lines_dropped = 100;
}

/* A spinner is judged by its share of a processor, and has next to none of one that others keep
 * busy. This one seems to have used a thousand times what it has: as if it had been alone. Linked
 * with --wrap. */
static _Atomic pid_t spinner; /* -1: each worker */

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out) {
    const int rc = __real_clock_gettime(clock, out);
    const pid_t pid = spinner;
    clockid_t of_spinner = clock;
    if (rc == 0 && clock < 0 && pid != 0 &&
        (pid < 0 || clock_getcpuclockid(pid, &of_spinner) == 0) && clock == of_spinner) {
        *out = (struct timespec){out->tv_sec * 1000 + out->tv_nsec / FX_MS,
                                 out->tv_nsec % FX_MS * 1000};
    }
    return rc;
}

static void look_often(void) {
    bhi_conduct_limits.look_ns = 100 * FX_MS;
    bhi_conduct_limits.idle_cpu_ns = 30 * FX_MS;
}

/* -- T4 ---------------------------------------------------------------------------------------- */

static _Atomic bool drained;

/* The reactor has been told of a ring, and what it was told of is gone when it looks. It is the
 * worker's open file as well as ours: that one has cleared O_NONBLOCK, and could do this. */
static void drain(void *object) {
    const struct bhi_worker *worker = object;
    BHT_EQ(fcntl(worker->doorbell, F_GETFL) & O_NONBLOCK, 0);
    struct pollfd rung = {.fd = worker->doorbell, .events = POLLIN};
    uint64_t count;
    BHT_EQ(poll(&rung, 1, 0), 1);
    BHT_EQ(read(worker->doorbell, &count, sizeof count), sizeof count);
    drained = true;
}

/* Deadlines are kept, the neighbour is served, and the context ends. */
TEST(a_drained_doorbell_blocks_nobody) {
    bh_context *context = open_context(",*:hello:1=unblock");
    bh_stream *stream = fx_stream(context, "one", BHT_SECOND_MS * FX_MS);
    bh_stream *neighbour = fx_stream(context, "neighbour", FX_SECONDS);
    fx_ready(stream);
    fx_expect_healthy(context, neighbour);
    drained = false;
    bht_at_step("doorbell", 1, drain);
    bht_square(context, stream, NULL); /* nobody waits: its worker rings */
    WAIT_UNTIL(drained, 20000);
    bh_kernel *gate = fx_kernel(context, "gate");
    fx_expect(fx_gate(stream, gate, fx_words(context, 64, 0)), BH_DEADLINE);
    fx_expect_healthy(context, neighbour);
}

/* The same as it is done, as often as it can: one of these meets the reactor between its epoll and
 * what it does then. */
TEST(a_worker_that_rings_and_drains) {
    tighten();
    bh_context *context = open_context(",*:hello:1=unblock");
    bh_stream *stream = fx_stream(context, "one", BH_FOREVER);
    bh_stream *neighbour = fx_stream(context, "neighbour", FX_SECONDS);
    fx_ready(stream);
    fx_expect_healthy(context, neighbour);
    bht_plan_arm("before_record", "drain", 1);
    const bh_verdict verdict = fx_expect(bht_square(context, stream, NULL), BH_PROTOCOL);
    BHT_STR_HAS(verdict.message, "it rang its doorbell far too often");
    BHT_TRUE(bht_plan_disarm());
    fx_expect_healthy(context, neighbour);
    fx_expect_healthy(context, stream);
}

/* -- T5 ---------------------------------------------------------------------------------------- */

/* What it does once its result is there: that counts, it is killed, and the stream is served on. */
static void idle(const char *what, const char *obituary) {
    tighten();
    bh_context *context = open_context("");
    bh_stream *stream = fx_stream(context, "one", FX_SECONDS);
    bh_stream *neighbour = fx_stream(context, "neighbour", FX_SECONDS);
    fx_expect_healthy(context, neighbour);
    const pid_t pid = fx_ready(stream);
    spinner = strcmp(what, "spin") == 0 ? pid : 0;
    fx_forget_log();
    bht_plan_arm("after_record", what, 1);
    fx_expect(bht_square(context, stream, NULL), BH_OK);
    WAIT_UNTIL(fx_logged(obituary) > 0, 20000);
    BHT_TRUE(bht_plan_disarm());
    BHT_LT(fx_logged(""), bhi_conduct_limits.lines + 20); /* its own lines among them */
    WAIT_UNTIL(strchr("XZ", bht_process_state(pid)), 20000);
    fx_expect_healthy(context, stream);
    fx_expect_healthy(context, neighbour);
    BHT_NE(fx_ready(stream), pid);
}

TEST(ringing_with_nothing_in_flight) {
    idle("ring", "died while it was idle: it rang its doorbell far too often");
}

TEST(flooding_with_nothing_in_flight) {
    idle("flood", "died while it was idle: it sent far too many log lines");
}

TEST(spinning_with_nothing_in_flight) {
    look_often();
    idle("spin", "s of processor time in ");
}

enum { JOBS = 40 };

/* Honest and busy: what is in flight was published long ago, all at once, and it rings for each of
 * them, for somebody has to know. Each brings a buffer of its own, so that none is merged. */
TEST(rings_for_what_was_published_at_once) {
    tighten();
    bhi_conduct_limits.mutes = 0;
    bh_context *context = open_context("");
    bh_stream *stream = fx_stream(context, "one", BH_FOREVER);
    const pid_t pid = fx_ready(stream);
    bh_kernel *gate = fx_kernel(context, "gate");
    volatile uint32_t *words[JOBS];
    bh_queue *queue = NULL;
    BHT_EQ(bh_queue_create(&queue, NULL), BH_OK);
    for (int i = 0; i < JOBS; i++) {
        bh_buffer *data = fx_words(context, 64, 0);
        words[i] = fx_pointer(data);
        BHT_EQ(bh_queue_add(queue, fx_gate(stream, gate, data), 0, NULL), BH_OK);
    }
    for (int i = 0; i < JOBS; i++) {
        fx_open(words[i]);
        bh_completion ended; /* once there is one, the reactor has answered that ring */
        size_t count;
        BHT_EQ(bh_queue_take(queue, FX_SECONDS, &ended, 1, &count), BH_OK);
        BHT_EQ(ended.status, BH_OK);
        bh_event_release(ended.event); /* the queue's reference, and that of the launch */
        bh_event_release(ended.event);
    }
    BHT_EQ(fx_ready(stream), pid);
}

/* A loader has no device; its processor time counts like any other's. */
TEST(a_loader_that_spins) {
    look_often();
    char path[64];
    snprintf(path, sizeof path, "%s/f", bht_folder());
    bht_put("0123456789abcdef", "%s", path);
    bh_context *context = open_context("");
    bh_file_source source = {.struct_size = sizeof source};
    source.path = path;
    source.format = BH_FILE_RAW;
    fx_forget_log();
    spinner = -1;
    bht_plan_arm("after_record", "spin", 1);
    fx_mapped(fx_load(context, &source));
    WAIT_UNTIL(fx_logged("s of processor time in ") > 0, 20000);
    spinner = 0;
    BHT_TRUE(bht_plan_disarm());
    BHT_MEM_EQ(fx_mapped(fx_load(context, &source)), "0123456789abcdef", 16);
}

/* Idle and honest: looks find nothing, however many there are. */
TEST(the_idle_are_left_alone) {
    bhi_conduct_limits.look_ns = 5 * FX_MS;
    bh_context *context = open_context("");
    bh_stream *stream = fx_stream(context, "one", FX_SECONDS);
    const pid_t pid = fx_ready(stream);
    for (int i = 0; i < 20; i++) {
        fx_expect_healthy(context, stream);
    }
    BHT_EQ(fx_ready(stream), pid);
    /* Its share of a busy processor is smaller than its host's. */
    const int host = getpriority(PRIO_PROCESS, 0), worker = getpriority(PRIO_PROCESS, (id_t)pid);
    BHT_TRUE(worker > host || host == 19);
}

/* libzmq aborts the process where its threads start and there is no descriptor left for one of
 * them. The supervisor holds open what they need, and more, until the moment before. */
#include "scene.h"
#include "supervisor/context/context.h"
#include "supervisor/worker/worker_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define STARTS 5  /* as in supervisor/reactor/reactor.c: fewer, and libzmq aborts */
#define HELD   13 /* with those for what other threads open at that moment */

static struct rlimit before;

static void leave_free(unsigned count) {
    struct rlimit limit = before;
    for (limit.rlim_cur = 0; count; limit.rlim_cur++) {
        count -= fcntl((int)limit.rlim_cur, F_GETFD) < 0;
    }
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void others_take_their_share(void *object) {
    (void)object;
    leave_free(STARTS);
}

/* The margin is gone at the worst moment, and libzmq starts all the same. */
TEST(room_goes_when_libzmq_starts) {
    BHT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    bht_at_step("libzmq_starts", 1, others_take_their_share);
    bh_context *context = fx_context(NULL);
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    fx_expect_healthy(context, stream);
}

static void others_take_all(void *object) {
    (void)object;
    leave_free(HELD - 1);
}

/* Before that it is an error like others. */
TEST(room_goes_before_libzmq_starts) {
    BHT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    bht_at_step("libzmq_is_due", 1, others_take_all);
    bh_context_options options = fx_options();
    options.worker_path = BHT_WORKER;
    bh_context *context = NULL;
    bh_detail detail = {0};
    BHT_EQ(bh_context_create(&options, &context, &detail), BH_SYSTEM);
    BHT_EQ(detail.sys_errno, EMFILE);
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Takes all that are below |most|. Returns how many it took. */
static size_t take_all(int *taken, size_t most) {
    struct rlimit limit = before;
    size_t count = 0;
    limit.rlim_cur = most;
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int fd; (fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0;) {
        taken[count++] = fd;
    }
    BHT_EQ(errno, EMFILE);
    return count;
}

/* What the pools keep is worth less than what is to run: a kernel and its buffers are handed out,
 * and there is no descriptor for that but those of free blocks. */
TEST(pools_give_theirs_to_what_runs) {
    BHT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    bh_context_options options = fx_options();
    options.spares = BH_OFF;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    bh_kernel *square = fx_kernel(context, "square");
    fx_expect_healthy(context, stream);
    bh_buffer *free[8], *x = fx_words(context, 64, 0x40000000u), *y = fx_words(context, 64, 0);
    for (size_t i = 0; i < BHT_COUNT(free); i++) {
        free[i] = fx_words(context, 64, 0);
    }
    for (size_t i = 0; i < BHT_COUNT(free); i++) {
        bh_buffer_release(free[i]);
    }
    BHT_GE(fx_stats(context).pool_blocks, BHT_COUNT(free));
    int taken[256];
    const size_t count = take_all(taken, BHT_COUNT(taken));
    bh_event *event = fx_square(stream, square, x, y);
    const bh_verdict verdict = fx_verdict(event);
    for (size_t i = 0; i < count; i++) {
        close(taken[i]);
    }
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    if (verdict.status != BH_OK) {
        BHT_FAIL("%s", verdict.message);
    }
    BHT_TRUE(((const float *)fx_mapped(y))[63] == 4.0f);
    BHT_EQ(fx_stats(context).pool_blocks, 0);
}

static int taken[256];
static size_t taken_count;

/* The second worker was asked for, and all is taken: what was reserved for its birth, too. */
static void all_goes_before_a_birth(void *object) {
    struct bhi_worker *worker = object;
    bht_at_step(NULL, 0, NULL);
    bhi_room_give(&worker->room);
    taken_count = take_all(taken, BHT_COUNT(taken));
}

/* The host cannot receive the descriptor of a worker until its start is overdue. That start has
 * failed, and no other: what runs beside it goes on. */
TEST(a_birth_without_a_descriptor_costs_no_other_worker) {
    BHT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    bh_context_options options = fx_options();
    options.spares = BH_OFF;
    options.start_timeout_ns = 3 * FX_SECONDS / 20;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *first = fx_stream(context, "first", BH_FOREVER), *second = NULL;
    const pid_t pid = fx_ready(first), zygote = fx_parent(pid);
    const struct fx_held held = fx_hold(context, first);
    const size_t processes = bht_count_descendants(getpid());
    bht_at_step("spawn_requested", 1, all_goes_before_a_birth);
    BHT_EQ(bh_stream_create(context, NULL, &second, NULL), BH_OK);
    /* The start has failed, and another one is refused. */
    bh_detail detail;
    BHT_EQ(bh_stream_wait_ready(second, 3 * FX_SECONDS, &detail), BH_SYSTEM);
    BHT_EQ(detail.sys_errno, EMFILE);
    BHT_EQ(bh_event_query(held.event), BH_EVENT_PENDING);
    BHT_EQ(bh_stream_worker_pid(first), pid);
    while (taken_count > 0) {
        close(taken[--taken_count]);
    }
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    WAIT_UNTIL(bh_stream_wait_ready(second, 100 * FX_MS, &detail) == BH_OK, 60000);
    BHT_EQ(fx_parent(fx_ready(second)), zygote);
    /* The one that was born meanwhile is gone: there are those of |second| more, and no others. */
    WAIT_UNTIL(bht_count_descendants(getpid()) == processes + PROCESSES_A_WORKER, 20000);
    fx_open(held.word);
    fx_expect(held.event, BH_OK);
}

/* Nor does a zygote that cannot receive what a start, or a trace, needs end with all its workers. */
TEST(a_zygote_without_descriptors_refuses_a_start) {
    bh_context_options options = fx_options();
    options.spares = BH_OFF;
    options.restart_budget = 1;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *first = fx_stream(context, "first", FX_SECONDS), *second = NULL;
    const pid_t pid = fx_ready(first), zygote = fx_parent(pid);
    BHT_EQ(prlimit(zygote, RLIMIT_NOFILE, NULL, &before), 0);
    const struct rlimit none = {3, before.rlim_max};
    BHT_EQ(prlimit(zygote, RLIMIT_NOFILE, &none, NULL), 0);
    BHT_EQ(bh_stream_create(context, NULL, &second, NULL), BH_OK);
    bh_detail detail;
    BHT_EQ(bh_stream_wait_ready(second, 3 * FX_SECONDS, &detail), BH_UNAVAILABLE);
    BHT_STR_HAS(detail.message, "could not fork: EMFILE");
    bh_trace trace = {.struct_size = sizeof trace};
    size_t calls = 0;
    BHT_EQ(bh_trace_driver(context, NULL, &trace, NULL, 0, &calls, &detail), BH_UNAVAILABLE);
    BHT_STR_HAS(detail.message, "not traced");
    fx_expect_healthy(context, first);
    BHT_EQ(bh_stream_worker_pid(first), pid);
    BHT_EQ(prlimit(zygote, RLIMIT_NOFILE, &before, NULL), 0);
    BHT_EQ(bh_stream_reset(second, NULL), BH_OK);
    BHT_EQ(fx_parent(fx_ready(second)), zygote);
}

/* The memory limit without a memory cgroup: RLIMIT_DATA for honest workers, RLIMIT_AS (set by the
 * supervisor) and the filters for those that get around it. And who goes first when the machine's
 * memory is at its end. docs/sandbox.md, "Memory". */
#include "fixture.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define LIMIT (160ull << 20) /* a worker with SwiftShader does not start with 96 */
#define ROOM  (64ull << 20)  /* as in supervisor/worker/address_space.c */
#define BIG   (320ull << 20)

#if !BHT_ASAN /* its shadow is over any limit: the worker sets none */

static bh_stream *limited_stream(bh_context *context) {
    bh_stream_options options = fx_stream_options();
    options.deadline_ns = FX_SECONDS;
    options.name = "limited";
    options.memory_limit = LIMIT;
    return fx_stream_with(context, options);
}

static uint64_t address_space(pid_t pid) {
    struct rlimit limit;
    BHT_EQ(prlimit(pid, RLIMIT_AS, NULL, &limit), 0);
    return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit.rlim_cur;
}

static uint64_t mapped(pid_t pid) {
    return (uint64_t)bht_proc_number(pid, "statm", "", 0) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Whatever is mapped counts, but buffers beyond the limit can be had: each raises it first. */
TEST(the_address_space_follows_the_buffers) {
    fx_hide_cgroups();
    bh_context_options options = fx_options();
    options.pool_limit = BH_OFF; /* what is released is the worker's no more */
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *stream = limited_stream(context);
    const pid_t pid = fx_ready(stream);
    const uint64_t first = address_space(pid);
    BHT_LE(first, mapped(pid) + LIMIT + 2 * ROOM);
    BHT_GE(first, LIMIT + ROOM);
    bh_buffer *big = fx_buffer(context, BIG);
    fx_expect(fx_fill(stream, big, 7), BH_OK);
    const uint64_t second = address_space(pid);
    BHT_GE(second, first + BIG);
    BHT_LE(second, first + BIG + ROOM);
    bh_buffer_release(big);
    /* One after the other they need no more than one. */
    for (int i = 0; i < 3; i++) {
        bh_buffer *next = fx_buffer(context, BIG);
        fx_expect(fx_fill(stream, next, 7), BH_OK);
        bh_buffer_release(next);
    }
    BHT_LE(address_space(pid), second + ROOM);
    fx_expect_healthy(context, stream);
    BHT_EQ(bh_stream_worker_pid(stream), pid);
}

/* Pages that were written and are read-only again do not count as data. This worker would have
 * them until it had eight times its limit; it aborts when it is refused. */
TEST(a_worker_that_hides_its_memory_is_refused) {
    fx_hide_cgroups();
    bh_context *context = fx_context("1:started:1=hoard");
    bh_stream *stream = limited_stream(context);
    bh_buffer *buffer = fx_words(context, 64, 0);
    bh_event *event = fx_fill(stream, buffer, 7);
    BHT_EQ(fx_verdict(event).signal, SIGABRT);
    BHT_EQ(fx_verdict(event).exit_code, -1);
}

/* What is bounded without one is bounded for honest workers; of the others the doctor says so. */
TEST(the_doctor_names_what_is_open) {
    fx_hide_cgroups();
    bh_context *context = fx_context(NULL);
    const bh_check *check = fx_doctor_says(context, "memory-cgroup");
    BHT_EQ(check->result, BH_CHECK_ABSENT);
    BHT_STR_HAS(check->text, "none, so a hostile worker can hold more than its limit: ");
    check = fx_doctor_says(context, "memory-rlimit");
    BHT_EQ(check->result, BH_CHECK_HOLDS);
    BHT_STR_HAS(check->text,
                "; ways around it that are closed: shared pages, shared pages given back, "
                "growing down, huge pages, made read-only, reservations");
}

/* With one it is the cgroup that counts, and its address space is its own affair. */
TEST(a_cgroup_needs_no_such_limit) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = limited_stream(context);
    const pid_t pid = fx_ready(stream);
    BHT_EQ(address_space(pid) == UINT64_MAX, fx_in_group(pid));
}

#endif

static long long score_of(pid_t pid) {
    return bht_proc_number(pid, "oom_score_adj", "", -2000);
}

/* Workers before all others; warden and zygote as their host. */
TEST(a_worker_goes_first) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "first", FX_SECONDS);
    const pid_t pid = fx_ready(stream);
    pid_t below[32];
    const size_t count = bht_descendants(getpid(), below, BHT_COUNT(below));
    size_t as_we = 0;
    BHT_EQ(score_of(pid), 1000);
    for (size_t i = 0; i < count; i++) {
        as_we += score_of(below[i]) == score_of(getpid());
    }
    BHT_GE(as_we, 2);
}

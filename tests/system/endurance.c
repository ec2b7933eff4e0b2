/* Case 18: caught failures in a row leave the process as it was: memory, descriptors, threads,
 * processes (E9). The default runs are short; with $BULKHEAD_TEST_NIGHTLY=1 there are 100,000. */
#include "fixture.h"

#include <stdio.h>
#include <unistd.h>

/* What an allocator may keep: a leak of 32 bytes a failure would be as much. The sanitizers hold on
 * to what is freed, and count more. */
#define GROWTH ((BHT_ASAN || BHT_TSAN ? 300ull : 3ull) << 20)

struct footprint {
    size_t descriptors, threads, descendants;
    uint64_t resident;
};

/* With |workers| of them there: none is on its way in or out. */
static struct footprint measure(size_t workers) {
    const size_t descendants = PROCESSES_A_CONTEXT + workers * PROCESSES_A_WORKER;
    WAIT_UNTIL(bht_count_descendants(getpid()) == descendants, 20000);
    return (struct footprint){
        .descriptors = bht_count_descriptors(getpid()),
        .threads = bht_count_self().threads,
        .descendants = descendants,
        .resident = bht_resident_bytes(getpid()),
    };
}

/* ZeroMQ closes its sockets a little later. */
static void expect_flat(bh_context *context, const struct footprint *before) {
    BHT_EQ(bh_context_trim(context, 0, NULL), BH_OK); /* what the pool keeps is no leak */
    WAIT_UNTIL(bht_count_descendants(getpid()) == before->descendants, 20000);
    WAIT_UNTIL(bht_count_descriptors(getpid()) <= before->descriptors + 4, 20000);
    BHT_EQ(bht_count_self().threads, before->threads);
    BHT_LT(bht_resident_bytes(getpid()), before->resident + GROWTH);
}

/* -- failures of every cheap kind -------------------------------------------------------------- */

/* |parked| runs a gate that stays closed: what waits for it stays queued, what comes behind it
 * stays in its lane. On |busy| submissions are refused, |other| has what depends on them. */
struct stage {
    bh_context *context;
    bh_stream *parked, *busy, *other;
    bh_kernel *gate, *square;
    bh_buffer *closed, *x, *y, *z;
    bh_event *park;
    unsigned long failures;
};

static void park(struct stage *s) {
    s->park = fx_gate(s->parked, s->gate, s->closed);
    fx_await_gate(s->closed);
}

/* The gate is cancelled, too: a death, and a failure. */
static void unpark(struct stage *s) {
    BHT_EQ(bh_event_cancel(s->park), BH_OK);
    fx_expect(s->park, BH_CANCELLED);
    bh_event_release(s->park);
    s->failures++;
}

static void expect_nobody(void) {
    fx_release_all();
    BHT_EQ(bht_count_descendants(getpid()), 0);
}

static bh_context *make_context(void) {
    bh_context_options options = fx_options();
    options.spares = 1;
    options.restart_budget = UINT32_MAX; /* some die before they have run anything */
    bht_end_with(expect_nobody);
    return fx_context_with(options, NULL);
}

static struct stage set_up(void) {
    struct stage s = {.context = make_context()};
    s.parked = fx_stream(s.context, "parked", BH_FOREVER);
    s.busy = fx_stream(s.context, "busy", FX_SECONDS);
    s.other = fx_stream(s.context, "other", FX_SECONDS);
    fx_ready(s.parked);
    fx_ready(s.busy);
    fx_ready(s.other);
    s.gate = fx_kernel(s.context, "gate");
    s.square = fx_kernel(s.context, "square");
    s.closed = fx_words(s.context, 64, 0);
    s.x = fx_words(s.context, 64, 0);
    s.y = fx_words(s.context, 64, 0);
    s.z = fx_words(s.context, 64, 0);
    return s;
}

static bh_event *refused(struct stage *s) {
    const bh_binding one[] = {bh_bind_write(1, s->y)};
    bh_event *event = NULL;
    BHT_EQ(bh_launch(s->busy, s->square, (uint32_t[]){1, 1, 1}, one, 1, NULL, 0, &event, NULL),
           BH_OK);
    return event;
}

static bh_event *fill_after(bh_stream *stream, bh_buffer *buffer, bh_event *wait) {
    const bh_command fill = {.type = BH_COMMAND_FILL, .fill = {.dst = buffer, .size = 256}};
    return fx_command(stream, fill, &wait, wait ? 1 : 0);
}

static void expect_caught(struct stage *s, bh_event *event, bh_status status, bh_event *origin) {
    BHT_EQ(fx_expect(event, status).origin, bh_event_id(origin));
    s->failures++;
}

/* Eight failures. */
static void fail_in_every_way(struct stage *s) {
    bh_event *bad = refused(s);
    bh_event *reader = fx_square(s->other, s->square, s->y, s->z); /* of what it wrote */
    bh_event *waiter = fill_after(s->busy, s->x, bad);
    bh_event *queued = fill_after(s->other, s->x, s->park);
    bh_event *dependent = fill_after(s->busy, s->x, queued);
    bh_event *in_lane = fill_after(s->parked, s->x, NULL);
    bh_event *behind = fill_after(s->other, s->x, in_lane);
    BHT_EQ(bh_event_cancel(queued), BH_OK);
    BHT_EQ(bh_event_cancel(in_lane), BH_OK);
    /* After the fact: poisoned as it is submitted. */
    expect_caught(s, bad, BH_BINDING_MISMATCH, bad);
    bh_event *late = fill_after(s->other, s->x, bad);
    expect_caught(s, late, BH_BINDING_MISMATCH, bad);
    expect_caught(s, reader, BH_BINDING_MISMATCH, bad);
    expect_caught(s, waiter, BH_BINDING_MISMATCH, bad);
    expect_caught(s, queued, BH_CANCELLED, queued);
    expect_caught(s, dependent, BH_CANCELLED, queued);
    expect_caught(s, in_lane, BH_CANCELLED, in_lane);
    expect_caught(s, behind, BH_CANCELLED, in_lane);
    bh_event *const events[] = {bad, reader, waiter, queued, dependent, in_lane, behind, late};
    for (size_t i = 0; i < BHT_COUNT(events); i++) {
        bh_event_release(events[i]);
    }
}

TEST(caught_failures) {
    const unsigned long wanted = bht_nightly() ? 100000 : BHT_ASAN || BHT_TSAN ? 1500 : 8000;
    enum { A_PARK = BHT_ASAN || BHT_TSAN ? 50 : 250 };
    struct stage s = set_up();
    struct footprint before = {0};
    for (unsigned round = 0; s.failures < wanted; round++) {
        if (round == 1) { /* warm: everything has happened before */
            before = measure(4);
        }
        park(&s);
        for (unsigned i = 0; i < A_PARK && s.failures < wanted; i++) {
            fail_in_every_way(&s);
        }
        unpark(&s);
        fx_ready(s.parked);
    }
    fx_expect_healthy(s.context, s.busy);
    fx_expect_healthy(s.context, s.other);
    fx_expect_healthy(s.context, s.parked);
    expect_flat(s.context, &before);
    BHT_GE(s.failures, wanted);
}

/* -- deaths -------------------------------------------------------------------------------------
 */

/* A running submission, its worker killed, the event poisoned; on the stream's next worker the same
 * again. */
TEST_WITH(many_deaths, 200, 0) {
    const int deaths = bht_nightly() ? 10000 : BHT_ASAN || BHT_TSAN ? 150 : 400;
    enum { WARM_UP = 50 };
    bh_context *context = make_context();
    bh_stream *stream = fx_stream(context, "phoenix", BH_FOREVER);
    bh_kernel *hang = fx_kernel(context, "gate");
    bh_buffer *gate = fx_words(context, 64, 0);
    struct footprint before = {0};
    for (int i = 0; i < deaths; i++) {
        pid_t pid = fx_ready(stream);
        if (i == WARM_UP) {
            before = measure(2);
        }
        fx_pointer(gate); /* DISCARD: the last death has poisoned it */
        bh_event *event = fx_gate(stream, hang, gate);
        /* Mostly while it runs; now and then at whatever moment it is. */
        bool early = i % 8 == 7;
        if (!early) {
            fx_await_gate(gate);
        }
        fx_kill(pid, SIGKILL);
        if (early) {
            /* It may not have started: then it runs on the next worker (E13). */
            (void)!bh_event_wait(event, 20 * FX_MS);
            BHT_EQ(bh_event_cancel(event), BH_OK);
        }
        bh_status status = bh_event_wait(event, FX_SECONDS);
        BHT_TRUE(status == BH_WORKER_SIGNAL || (early && status == BH_CANCELLED));
        bh_event_release(event);
        /* A cancelled one can end before its worker's death is seen. */
        WAIT_UNTIL(bh_stream_worker_pid(stream) != pid, 20000);
    }
    fx_expect_healthy(context, stream);
    expect_flat(context, &before);
}

/* Refused submissions cost no worker; 20,000 that nobody waits for cost nothing that stays. */
TEST(many_refused_submissions) {
    enum { COUNT = 20000 };
    struct stage s = set_up();
    pid_t pid = fx_ready(s.busy);
    uint64_t resident = 0;
    for (int i = 0; i < COUNT; i++) {
        bh_event *event = refused(&s);
        if (i % 64 == 0) {
            fx_expect(event, BH_BINDING_MISMATCH);
        }
        bh_event_release(event);
        if (i == 1000) {
            resident = bht_resident_bytes(getpid());
        }
    }
    BHT_EQ(bh_stream_synchronize(s.busy, FX_SECONDS, NULL), BH_BINDING_MISMATCH);
    BHT_EQ(bh_stream_worker_pid(s.busy), pid);
    BHT_LT(bht_resident_bytes(getpid()), resident + GROWTH);
}

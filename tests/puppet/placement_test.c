/* Which device a stream gets that may run on any (supervisor/stream/placement.h). Workers report two
 * devices of a default driver, "red". */
#include "puppet.h"
#include "supervisor/stream/placement.h"

#include <stdio.h>

#define DEVICES 2
#define MEMORY  1000u
#define LOAD_NS (UINT64_C(1000000) * 100)

static bh_stream *any;         /* the subject */
static uint64_t clock_late_ns; /* so much later it is */

BHT_WRAP(uint64_t, bhi_now_ns, void) {
    return __real_bhi_now_ns() + clock_late_ns;
}

static bh_stream *stream_on(const char *device) {
    bh_stream_options options = fx_stream_options();
    options.device = device;
    return fx_stream_with(puppet.context, options);
}

/* A worker on device |chosen| reports all of them. Returns whether that wakes who waits for it. */
static bool tell(uint32_t chosen) {
    struct bhi_worker *worker = puppet_worker(BHI_RUNNING);
    bhi_context_lock(puppet.context);
    worker->devices = calloc(DEVICES, sizeof *worker->devices);
    BHT_TRUE(worker->devices);
    for (uint32_t i = 0; i < DEVICES; i++) {
        struct bhi_msg_device *device = &worker->devices[worker->device_count++];
        device->index = i;
        device->memory_bytes = MEMORY;
        device->chosen = i == chosen;
        snprintf(device->name, sizeof device->name, "the \n%u", i);
    }
    puppet.context->wake_reactor = false;
    bhi_placement_learn(worker);
    const bool wakes = puppet.context->wake_reactor;
    bhi_context_pump_unlock(puppet.context);
    puppet_bury(worker);
    return wakes;
}

static char heard[512]; /* the last line of the log */

static void hear(bh_log_level level, const char *line, void *user) {
    (void)level, (void)user;
    snprintf(heard, sizeof heard, "%s", line);
}

static void set_up(void) {
    puppet.context->settings.log = hear;
    snprintf(puppet.zygote->driver, sizeof puppet.zygote->driver, "red");
    any = stream_on("any");
}

BHT_AT_START(puppet_around(set_up, NULL))

static bool choose(bh_stream *stream) {
    bhi_context_lock(puppet.context);
    const bool chosen = bhi_placement_choose(stream);
    BHT_EQ(stream->placed, chosen);
    bhi_context_pump_unlock(puppet.context);
    return chosen;
}

static bool failed(bool hopeless) {
    const bh_detail why = {.message = "as the test says"};
    bhi_context_lock(puppet.context);
    const bool other = bhi_placement_failed(any, &why, hopeless);
    bhi_context_pump_unlock(puppet.context);
    return other;
}

static bool leave(bh_stream *stream) {
    bhi_context_lock(puppet.context);
    stream->runs_on.known = true;
    bhi_placement_leave(stream);
    const bool left = !stream->placed;
    BHT_EQ(stream->runs_on.known, !left);
    BHT_TRUE(!left || !stream->device[0]);
    bhi_context_pump_unlock(puppet.context);
    return left;
}

/* Which it is. Device 0 has the selector of streams that name none. */
static uint32_t place(void) {
    BHT_TRUE(choose(any) && choose(any));
    BHT_TRUE(!any->device[0] || strcmp(any->device, "1") == 0);
    return any->device[0] ? 1 : 0;
}

static uint32_t place_anew(void) {
    BHT_TRUE(leave(any));
    return place();
}

static void set_load(bh_stream *stream, uint64_t usual_ns, uint64_t bytes) {
    bhi_context_lock(puppet.context);
    stream->usual_ns = usual_ns;
    stream->device_memory = bytes;
    puppet.context->device_memory = bytes;
    bhi_context_unlock(puppet.context);
}

/* It waits for the worker of another stream, if one is to come that will tell. */
TEST(it_waits_for_who_will_tell) {
    enum { WANTING, UNAVAILABLE, RESTS, MAKES };
    static const struct {
        const char *device;
        int is;
        bool waits;
    } rows[] = {{NULL, WANTING, true},   {"1", WANTING, true},       {"red:1", WANTING, false},
                {"any", WANTING, false}, {NULL, UNAVAILABLE, false}, {NULL, RESTS, false},
                {NULL, MAKES, false}};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        bh_stream_release(puppet.stream);
        bh_stream *other = stream_on(rows[i].device);
        bhi_context_lock(puppet.context);
        other->core.state = rows[i].is == UNAVAILABLE ? BHI_STREAM_UNAVAILABLE : other->core.state;
        puppet.context->settings.worker_idle_ns = rows[i].is == RESTS;
        other->kind = rows[i].is == MAKES ? BHI_WORKER_LOADER : BHI_WORKER_DEVICE;
        bhi_context_unlock(puppet.context);
        if (choose(any) == rows[i].waits) {
            BHT_FAIL("row %zu", i);
        }
        other->kind = BHI_WORKER_DEVICE;
        if (rows[i].waits) {
            BHT_TRUE(tell(0) && !tell(0));
            BHT_TRUE(choose(any));
        }
    }
}

TEST(another_driver_tells_nothing) {
    snprintf(puppet.zygote->requested, sizeof puppet.zygote->requested, "blue");
    (void)tell(0);
    BHT_TRUE(bhi_list_empty(&puppet.context->places));
    puppet.zygote->requested[0] = 0;
    (void)tell(0);
    (void)tell(1); /* the same ones */
    size_t count = 0;
    BHI_LIST_EACH(node, &puppet.context->places) {
        count++;
    }
    BHT_EQ(count, DEVICES);
}

/* The least loaded device, by the time that is still to run there; then that with the most memory free;
 * then the first. A stream of its own counts for nothing, nor does another driver's. */
TEST(the_least_loaded_device) {
    static const struct {
        const char *device; /* of another stream; NULL: the default, 0 */
        uint32_t jobs;
        uint64_t usual_ns, bytes;
        bool own;       /* the load is its own, on device 0 */
        uint32_t place; /* that it gets */
    } rows[] = {
        {"1", 0, 0, 0, false, 0},
        {NULL, 0, 0, 0, false, 1}, /* one that has nothing to do may get work */
        {"red:0", 0, 0, 0, false, 1},
        {"blue:0", 2, LOAD_NS, 0, false, 0},
        {"1", 2, LOAD_NS, 0, false, 0},
        {NULL, 1, LOAD_NS, 0, false, 1},
        {"any", 1, LOAD_NS, 0, false, 0}, /* it is nowhere yet */
        {NULL, 2, LOAD_NS, MEMORY + 1, true, 0},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        (void)tell(0);
        bh_stream_release(puppet.stream);
        bh_stream *other = rows[i].own ? any : stream_on(rows[i].device);
        BHT_TRUE(choose(any));
        for (uint32_t k = 0; k < rows[i].jobs; k++) {
            fx_fill(other, puppet.buffer, 7);
        }
        set_load(other, rows[i].usual_ns, rows[i].own ? 0 : rows[i].bytes);
        const uint32_t got = place_anew();
        if (got != rows[i].place) {
            BHT_FAIL("row %zu: device %u", i, got);
        }
        set_load(other, 0, 0);
    }
}

/* Of two that are as busy. */
TEST(the_one_with_the_most_memory_free) {
    static const struct {
        uint64_t bytes[DEVICES];
        uint32_t place;
    } rows[] = {{{0, 0}, 0},
                {{1, 0}, 1},
                {{0, 1}, 0},
                {{2, 1}, 1},
                {{MEMORY, MEMORY + 1}, 0},
                {{MEMORY + 1, MEMORY}, 0},
                {{MEMORY + 1, MEMORY - 1}, 1}};
    (void)tell(0);
    bh_stream *others[DEVICES] = {puppet.stream, stream_on("1")};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        bhi_context_lock(puppet.context);
        for (int k = 0; k < DEVICES; k++) {
            others[k]->device_memory = rows[i].bytes[k];
        }
        bhi_context_unlock(puppet.context);
        const uint32_t got = place_anew();
        if (got != rows[i].place) {
            BHT_FAIL("row %zu: device %u", i, got);
        }
    }
    others[0]->device_memory = others[1]->device_memory = 0;
}

/* What is in a lane counts, too. */
TEST(what_is_in_flight_is_load) {
    (void)tell(0);
    bh_stream *other = stream_on("1");
    struct bhi_worker *worker = puppet_serving();
    bh_event *event = puppet_submit();
    (void)fx_fill(other, puppet.buffer, 7);
    set_load(puppet.stream, LOAD_NS, 0);
    set_load(other, LOAD_NS / 2, 0);
    BHT_EQ(place(), 1);
    puppet_complete(worker, 1);
    fx_expect(event, BH_OK);
    BHT_EQ(place_anew(), 0);
    puppet_killed(worker, SIGKILL);
    (void)puppet_submit(); /* so is what is queued */
    BHT_EQ(place_anew(), 1);
}

/* One that has memory there, or a worker, stays; and one that has named its device. */
TEST(who_stays_where_it_is) {
    (void)tell(0);
    bh_stream *named = stream_on("1");
    BHT_EQ(place(), 0);
    set_load(any, 0, 1);
    BHT_TRUE(!leave(any));
    set_load(any, 0, 0);
    struct bhi_worker *worker = puppet_worker(BHI_RUNNING);
    puppet_bind(worker, any);
    BHT_TRUE(!leave(any));
    puppet_killed(worker, SIGKILL);
    BHT_TRUE(leave(any));
    BHT_TRUE(!leave(named));
    BHT_STR_EQ(named->device, "1");
}

/* Workers do not start on a device: at the second time, or at once where none other can, it is left
 * out; not by who has named it, or has memory there, nor where there is no other one. A start that
 * succeeds ends the count. */
TEST(a_device_where_nothing_starts) {
    for (int hopeless = 0; hopeless < 2; hopeless++) {
        puppet_again();
        BHT_TRUE(!failed(true)); /* nobody has told */
        (void)tell(0);
        BHT_EQ(place(), 1); /* |puppet.stream| is on the other */
        if (!hopeless) {
            BHT_TRUE(!failed(false));
            (void)tell(1);
            BHT_TRUE(!failed(false));
        }
        BHT_EQ(puppet.context->line_count, 0);
        BHT_TRUE(failed(hopeless));
        bhi_context_log_said(puppet.context);
        BHT_STR_HAS(heard, "device red:1 (the  1) is left out for 60 s, since workers do not start "
                           "there: as the test says;");
        BHT_EQ(place_anew(), 0);
        BHT_TRUE(!failed(true)); /* the last one */
        BHT_EQ(place_anew(), 1); /* of two that are left out, as of any two */
        (void)tell(0);
        BHT_EQ(place_anew(), 0);
        (void)tell(1);
        BHT_EQ(place_anew(), 1);
        set_load(any, 0, 1);
        BHT_TRUE(!failed(true));
        set_load(any, 0, 0);
        BHT_EQ(place_anew(), 0);
    }
}

/* Its stream goes elsewhere, and pays nothing; nor does a device for a worker that was to go. */
TEST(a_start_that_fails_costs_its_device) {
    enum { ALONE, CLOSED, RETIRED, WAYS };
    for (int way = ALONE; way < WAYS; way++) {
        puppet_again();
        (void)tell(0);
        BHT_EQ(place(), 1);
        struct bhi_worker *worker = puppet_worker(BHI_HELD);
        bhi_progress_step_failed(puppet_side(worker),
                                 &(struct bhi_why){.status = BH_NO_DEVICE, .text = "none"});
        puppet_bind(worker, any);
        bhi_context_lock(puppet.context);
        if (way == RETIRED) {
            bhi_core_worker_kill(&worker->core, BHI_KILL_RETIRED, 0, "it is to go");
        }
        puppet.context->closed = way == CLOSED;
        bhi_context_pump_unlock(puppet.context);
        puppet_end_process(worker, CLD_EXITED, 3);
        puppet_bury(worker);
        puppet.context->closed = false;
        BHT_EQ(puppet.context->line_count, way == ALONE);
        if (way == ALONE) {
            BHT_EQ(any->core.state, BHI_STREAM_WANTING);
            BHT_EQ(any->core.restart.losses, 0);
            BHT_TRUE(!any->placed);
        }
        bhi_context_log_said(puppet.context);
    }
}

/* A minute later it is tried again. */
TEST(a_device_is_left_out_for_a_while) {
    (void)tell(0);
    BHT_EQ(place(), 1);
    BHT_TRUE(failed(true));
    BHT_EQ(place_anew(), 0);
    clock_late_ns = UINT64_C(59000000000);
    BHT_EQ(place_anew(), 0);
    clock_late_ns = UINT64_C(61000000000);
    BHT_EQ(place_anew(), 1);
    clock_late_ns = 0;
}

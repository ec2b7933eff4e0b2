/* A thread that waits for several events: what it is told, which locks it takes, when it sleeps. */
#include "puppet.h"
#include "supervisor/event/event.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static unsigned unlocks;

BHT_WRAP(void, bhi_context_pump_unlock, bh_context *context) {
    __real_bhi_context_pump_unlock(context);
    unlocks++;
}

BHT_WRAP(bool, bhi_event_observe, struct bh_event *event, struct bhi_observer *observer) {
    BHT_EQ(pthread_mutex_trylock(&event->context->lock), EBUSY); /* its own context's is held */
    return __real_bhi_event_observe(event, observer);
}

/* It lets others have the lock now and then, when it comes and when it goes. */
TEST(a_wait_for_many_lets_others_in) {
    enum { MANY = 600, BATCHES = 3 }; /* wait.c: BATCH */
    bh_event *events[MANY];
    size_t index;
    for (int i = 0; i < MANY; i++) {
        events[i] = puppet_submit();
    }
    unlocks = 0;
    BHT_EQ(bh_event_wait_any(events, MANY, 0, &index), BH_TIMEOUT);
    BHT_EQ(unlocks, 2 * BATCHES);
}

/* One lock at a time: two threads could wait for the same two contexts in different orders. */
TEST(a_wait_for_events_of_two_contexts_takes_each_ones_lock) {
    bh_event *events[3] = {puppet_submit(), NULL, puppet_submit()};
    size_t index;
    puppet_beside();
    events[1] = puppet_submit();
    unlocks = 0;
    BHT_EQ(bh_event_wait_any(events, 3, 0, &index), BH_TIMEOUT);
    BHT_EQ(unlocks, 2 * 3);
}

/* -- what it is told ---------------------------------------------------------------------------- */

static const bh_context *others; /* their process has forked, and this is the child */
static unsigned alone;           /* waits for one event */
static const bh_event *last_alone;

static bh_event *ending; /* it ends when somebody looks whether this is a child */

BHT_WRAP(bool, bhi_context_forked, const bh_context *context) {
    if (ending) {
        bh_event *event = ending;
        ending = NULL;
        BHT_EQ(bh_event_cancel(event), BH_OK);
    }
    return context == others || __real_bhi_context_forked(context);
}

BHT_WRAP(bh_status, bhi_event_await, struct bh_event *event, uint64_t deadline_ns) {
    alone++;
    last_alone = event;
    return __real_bhi_event_await(event, deadline_ns);
}

/* One that is pending. */
static bh_event *queue(bh_stream *stream) {
    return fx_fill(stream, fx_buffer(puppet.context, 64), 7);
}

/* Makes events that a worker has ended (r), cancelled ones (x) and queued ones (p). */
static size_t make_events(const char *states, bh_event **events) {
    struct bhi_worker *worker = puppet_serving();
    bh_stream *idle = puppet_stream(NULL, NULL);
    for (size_t i = 0; i < strlen(states); i++) {
        events[i] = queue(states[i] == 'r' ? puppet.stream : idle);
        if (states[i] == 'r') {
            puppet_complete(worker, 1);
            BHT_EQ(bh_event_query(events[i]), BH_EVENT_READY);
        } else if (states[i] == 'x') {
            BHT_EQ(bh_event_cancel(events[i]), BH_OK);
        }
    }
    return strlen(states);
}

TEST(which_of_several_it_is) {
    static const struct {
        const char *states;
        bh_status any, all;
        size_t any_index, all_index;
    } rows[] = {
        {"p", BH_TIMEOUT, BH_TIMEOUT, 1, 0}, {"r", BH_OK, BH_OK, 0, 1},
        {"x", BH_OK, BH_CANCELLED, 0, 0},    {"pp", BH_TIMEOUT, BH_TIMEOUT, 2, 0},
        {"rp", BH_OK, BH_TIMEOUT, 0, 1},     {"pr", BH_OK, BH_TIMEOUT, 1, 0},
        {"xp", BH_OK, BH_TIMEOUT, 0, 1},     {"rr", BH_OK, BH_OK, 0, 2},
        {"rx", BH_OK, BH_CANCELLED, 0, 1},   {"xrx", BH_OK, BH_CANCELLED, 0, 0},
        {"prpx", BH_OK, BH_TIMEOUT, 1, 0},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        bh_event *events[4];
        size_t index = 99;
        puppet_again();
        const size_t count = make_events(rows[i].states, events);
        const bool pending = strchr(rows[i].states, 'p');
        unlocks = alone = 0;
        BHT_EQ(bh_event_wait_any(events, count, 0, &index), rows[i].any);
        BHT_EQ(index, rows[i].any_index);
        BHT_EQ(unlocks != 0, rows[i].any == BH_TIMEOUT); /* what is known takes no lock */
        BHT_EQ(alone, pending && count == 1);
        unlocks = alone = 0;
        BHT_EQ(bh_event_wait_all(events, count, 0, &index), rows[i].all);
        BHT_EQ(alone, pending && count == 1);
        BHT_EQ(index, rows[i].all_index);
        BHT_EQ(bh_event_wait_all(events, count, 0, NULL), rows[i].all);
        BHT_EQ(unlocks != 0, pending);
    }
}

TEST(what_it_cannot_wait_for) {
    bh_event *good = puppet_submit();
    bh_event *none[] = {NULL, NULL}, *holed[] = {good, NULL}, *begun[] = {NULL, good};
    bh_event **const bad[] = {NULL, none, holed, begun};
    size_t index = 99;
    for (size_t i = 0; i < BHT_COUNT(bad); i++) {
        BHT_EQ(bh_event_wait_any(bad[i], 2, 0, &index), BH_INVALID_ARGUMENT);
        BHT_EQ(index, 99);
        BHT_EQ(bh_event_wait_all(bad[i], 2, 0, &index), BH_INVALID_ARGUMENT);
        BHT_EQ(bh_event_wait_all(bad[i], 2, 0, NULL), BH_INVALID_ARGUMENT);
        BHT_EQ(index, 2);
        index = 99;
    }
    bh_verdict verdict = {.struct_size = sizeof verdict};
    BHT_EQ(bh_event_wait(NULL, 0), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_event_query(NULL), BH_EVENT_POISONED);
    BHT_EQ(bh_event_verdict(NULL, &verdict), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_event_verdict(good, NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_event_verdict(good, &verdict), BH_PENDING);
    BHT_EQ(bh_event_cancel(NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_event_id(NULL), 0);
    bh_event_retain(NULL);
    bh_event_release(NULL);
    BHT_EQ(bh_event_wait_any(&good, 1, 0, NULL), BH_INVALID_ARGUMENT);
    for (int i = 0; i < 2; i++) {
        BHT_EQ(bh_event_wait_any(i ? &good : NULL, 0, 0, &index), BH_INVALID_ARGUMENT);
        BHT_EQ(bh_event_wait_all(i ? &good : NULL, 0, 0, &index), BH_OK);
        BHT_EQ(index, 0);
        index = 99;
    }
}

/* A child has no workers: what is pending there stays so, and what has ended has ended. */
TEST(a_child_waits_for_no_event_of_its_parents) {
    const bh_context *parents = puppet.context;
    bh_event *theirs = puppet_submit();
    puppet_beside();
    bh_event *mine = puppet_submit();
    for (int row = 0; row < 4; row++) {
        const bool ended = row / 2;
        bh_event *events[] = {row % 2 ? mine : theirs, row % 2 ? theirs : mine};
        size_t index;
        if (ended) {
            BHT_EQ(bh_event_cancel(theirs), BH_OK);
        }
        bh_verdict verdict = {.struct_size = sizeof verdict};
        unlocks = 0;
        others = parents;
        const bh_status one = bh_event_wait(theirs, 0), cancelled = bh_event_cancel(theirs),
                        told = bh_event_verdict(theirs, &verdict);
        const bh_event_state state = bh_event_query(theirs);
        BHT_EQ(unlocks, 0); /* another thread of the parent's may have had the lock */
        const bh_status any = bh_event_wait_any(events, 2, 0, &index);
        const bh_status all = bh_event_wait_all(events, 2, 0, &index);
        others = NULL;
        BHT_EQ(one, ended ? BH_CANCELLED : BH_FORKED);
        BHT_EQ(cancelled, ended ? BH_OK : BH_FORKED);
        BHT_EQ(told, ended ? BH_OK : BH_FORKED);
        BHT_EQ(state, ended ? BH_EVENT_POISONED : BH_EVENT_PENDING);
        BHT_EQ(any, ended ? BH_OK : BH_FORKED);
        BHT_EQ(all, ended ? BH_TIMEOUT : BH_FORKED);
    }
}

/* It was pending, and has ended before the lock is taken. */
TEST(a_cancel_that_comes_just_too_late) {
    bh_event *event = puppet_submit();
    ending = event;
    BHT_EQ(bh_event_cancel(event), BH_OK);
    BHT_TRUE(!ending);
    BHT_EQ(bh_event_query(event), BH_EVENT_POISONED);
}

static struct {
    bh_event **events;
    uint64_t timeout_ns;
    bh_status any, all;
} called_back;

static void wait_in_callback(bh_log_level level, const char *line, void *user) {
    (void)level, (void)line, (void)user;
    size_t index;
    called_back.any = bh_event_wait_any(called_back.events, 2, called_back.timeout_ns, &index);
    called_back.all = bh_event_wait_all(called_back.events, 2, called_back.timeout_ns, &index);
}

/* It may ask, and may not sleep. */
TEST(a_callback_waits_for_none_of_several) {
    bh_event *events[2];
    (void)make_events("pp", events);
    called_back.events = events;
    for (int i = 0; i < 2; i++) {
        called_back.timeout_ns = i * 1000 * FX_MS;
        puppet.context->settings.log = wait_in_callback;
        bhi_context_log(puppet.context, BH_LOG_INFO, "%s", "so");
        puppet.context->settings.log = NULL;
        BHT_EQ(called_back.any, i ? BH_IN_CALLBACK : BH_TIMEOUT);
        BHT_EQ(called_back.all, i ? BH_IN_CALLBACK : BH_TIMEOUT);
    }
}

/* -- when it sleeps ----------------------------------------------------------------------------- */

enum { FEW = 16, ENDS = FEW + 3 }; /* wait.c: FEW */

static struct {
    bool on;
    bh_event **events; /* of |count| that end in turn, one in each sleep but the first; or: */
    size_t count;
    bool at_once; /* in the second, all, the last first */
    unsigned sleeps, wakes, callocs, frees;
    bool no_memory;
    void *memory;
    struct bhi_worker *late; /* it completes two in the next sleep, which nobody is told */
} nap;

static void end(size_t i) {
    BHT_EQ(bh_event_cancel(nap.events[i]), BH_OK);
}

BHT_WRAP(int, bhi_futex_wait, const _Atomic uint32_t *word, uint32_t expected, bool shared,
         uint64_t deadline_ns) {
    if (nap.late) {
        puppet_complete(nap.late, 2);
        nap.late = NULL;
    }
    if (!nap.on || bhi_now_ns() >= deadline_ns) {
        return __real_bhi_futex_wait(word, expected, shared, deadline_ns);
    }
    if (nap.sleeps > (nap.at_once ? 1 : nap.count)) {
        BHT_FAIL("it sleeps, and all have ended");
    }
    if (nap.sleeps && !nap.at_once) {
        end(nap.sleeps - 1);
    }
    for (size_t i = nap.count; nap.sleeps && nap.at_once && i > 0; i--) {
        end(i - 1);
    }
    nap.sleeps++;
    return 0;
}

BHT_WRAP(void, bhi_futex_wake, const _Atomic uint32_t *word, bool shared, int how_many) {
    nap.wakes += nap.on;
    __real_bhi_futex_wake(word, shared, how_many);
}

BHT_WRAP(void *, calloc, size_t count, size_t size) {
    if (!nap.on || count != nap.count) {
        return __real_calloc(count, size);
    }
    nap.callocs++;
    return nap.no_memory ? NULL : (nap.memory = __real_calloc(count, size));
}

BHT_WRAP(void, free, void *memory) {
    nap.frees += nap.on && memory && memory == nap.memory;
    __real_free(memory);
}

static void make_naps(bh_event **events, size_t count) {
    puppet_again();
    for (size_t i = 0; i < count; i++) {
        events[i] = puppet_submit();
    }
    memset(&nap, 0, sizeof nap);
    nap.events = events;
    nap.count = count;
}

/* Waked for nothing, it sleeps on; what it waits for wakes it once. A few need no memory. */
TEST(several_wake_a_thread_once) {
    static const size_t counts[] = {2, 3, FEW, FEW + 1};
    for (size_t i = 0; i < 2 * BHT_COUNT(counts); i++) {
        const bool all = i % 2;
        const size_t count = counts[i / 2];
        bh_event *events[FEW + 1];
        size_t index = 99;
        make_naps(events, count);
        nap.at_once = !all;
        nap.on = true;
        const bh_status status = all ? bh_event_wait_all(events, count, BH_FOREVER, &index)
                                     : bh_event_wait_any(events, count, BH_FOREVER, &index);
        nap.on = false;
        BHT_EQ(status, all ? BH_CANCELLED : BH_OK);
        BHT_EQ(index, 0);
        BHT_EQ(nap.sleeps, all ? 1 + count : 2);
        BHT_EQ(nap.wakes, 1);
        BHT_EQ(nap.callocs, count > FEW);
        BHT_EQ(nap.frees, count > FEW);
    }
}

/* A result that nobody has read when the time is over counts. */
TEST(it_looks_once_more_when_its_time_is_over) {
    for (int all = 0; all < 2; all++) {
        puppet_again();
        size_t index = 99;
        struct bhi_worker *worker = puppet_serving();
        bh_event *events[] = {queue(puppet.stream), queue(puppet.stream)};
        nap.late = worker;
        BHT_EQ((all ? bh_event_wait_all : bh_event_wait_any)(events, 2, 20 * FX_MS, &index), BH_OK);
        BHT_TRUE(!nap.late);
        BHT_EQ(index, all ? 2 : 0);
    }
}

/* Without memory it waits for all in turn, from the last on, and for any not at all. */
TEST(without_memory_it_waits_in_turn) {
    enum { MANY = FEW + 1, MIDDLE = 3 };
    static const struct {
        bool middle; /* all others have ended */
        uint64_t timeout_ns;
        bh_status any, all;
        size_t index, waited; /* for so many */
    } rows[] = {
        {false, 0, BH_NO_MEMORY, BH_TIMEOUT, 0, 1},
        {true, 0, BH_OK, BH_TIMEOUT, MIDDLE, MANY - MIDDLE},
        {false, BH_FOREVER, BH_NO_MEMORY, BH_CANCELLED, 0, MANY},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        bh_event *events[MANY];
        size_t index = 99;
        make_naps(events, MANY);
        for (size_t k = 0; k < MANY; k++) {
            if (rows[i].middle && k != MIDDLE) {
                end(k);
            }
        }
        alone = 0;
        nap.no_memory = nap.at_once = nap.on = true;
        const bh_status any = bh_event_wait_any(events, MANY, rows[i].timeout_ns, &index);
        const bh_status all = bh_event_wait_all(events, MANY, rows[i].timeout_ns, &index);
        nap.on = false;
        BHT_EQ(any, rows[i].any);
        BHT_EQ(all, rows[i].all);
        BHT_EQ(index, rows[i].index);
        BHT_EQ(alone, rows[i].waited);
        BHT_TRUE(last_alone == events[MANY - rows[i].waited]);
    }
}

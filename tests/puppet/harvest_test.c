/* Who takes in what a worker has completed, and whom that wakes. */
#include "memory_worker.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/event/event.h"
#include "supervisor/event/harvest.h"
#include "supervisor/submit/internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

TEST(asking_takes_in_what_is_there) {
    struct bhi_worker *worker = puppet_serving();
    bh_event *event = puppet_submit();
    BHT_EQ(worker->core.published, 1);
    BHT_EQ(bh_event_query(event), BH_EVENT_PENDING);
    puppet_complete(worker, 1);
    BHT_EQ(worker->core.harvested, 0); /* nobody has looked */
    BHT_EQ(bh_event_query(event), BH_EVENT_READY);
    BHT_EQ(worker->core.harvested, 1);
}

/* What is queued waits for another stream's: asking for the former takes in the latter. Asking for
 * several at once does, too. */
TEST(asking_takes_in_what_it_waits_for) {
    for (int several = 0; several < 2; several++) {
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        bh_event *first = puppet_submit();
        bh_stream *other = puppet_stream(NULL, NULL);
        const bh_submit_info info = {.struct_size = sizeof info, .waits = &first, .wait_count = 1};
        bh_event *events[2] = {fx_submit(other, &info), fx_submit(other, &info)};
        puppet_complete(worker, 1);
        BHT_EQ(worker->core.harvested, 0);
        if (several) {
            size_t index = 2;
            BHT_EQ(bh_event_wait_any(events, 2, 0, &index), BH_TIMEOUT);
        } else {
            BHT_EQ(bh_event_query(events[0]), BH_EVENT_PENDING); /* its stream has no worker */
        }
        BHT_EQ(worker->core.harvested, 1);
        BHT_EQ(bhi_event_state(first), BH_EVENT_READY);
    }
}

/* A worker has room for so many results: what comes on top stays in the queue until one of them
 * has been taken in, though the lane would hold it. */
TEST(no_more_in_flight_than_there_are_slots) {
    struct bhi_worker *worker = puppet_serving();
    bh_event *first = puppet_submit(), *second = puppet_submit(), *last = NULL;
    for (uint32_t i = 2; i < BHI_PROGRESS_RESULTS + 2; i++) {
        last = puppet_submit();
    }
    BHT_EQ(worker->core.published, BHI_PROGRESS_RESULTS);
    BHT_GT(bhi_lane_space(&worker->lane, 0), 4096);
    BHT_TRUE(!bhi_list_empty(&puppet.stream->core.queue));
    puppet_complete(worker, 1);
    BHT_EQ(worker->core.published, BHI_PROGRESS_RESULTS);
    BHT_EQ(bh_event_query(first), BH_EVENT_READY);
    BHT_EQ(worker->core.published, BHI_PROGRESS_RESULTS + 1);
    BHT_TRUE(!bhi_list_empty(&puppet.stream->core.queue));
    puppet_complete(worker, BHI_PROGRESS_RESULTS);
    BHT_EQ(bh_event_query(second), BH_EVENT_READY);
    BHT_EQ(bh_event_query(last), BH_EVENT_PENDING);
    BHT_TRUE(bhi_list_empty(&puppet.stream->core.queue));
    puppet_complete(worker, 1);
    BHT_EQ(bh_event_query(last), BH_EVENT_READY);
}

/* T6: only a call of Vulkan's that has failed tells that memory cannot be imported. A worker that
 * claims it together with another end lies, also in a copy of the library's own, which the next
 * worker makes again: the memory is still good. */
TEST(a_lost_device_is_no_bad_memory) {
    static const bh_status ends[] = {BH_DEVICE_LOST, BH_OUT_OF_DEVICE_MEMORY, BH_OK};
    for (size_t i = 0; i < BHT_COUNT(ends); i++) {
        puppet_again();
        struct memory_worker *w = &memory.workers[A];
        bh_buffer *device = memory_create(A, MEMORY_BYTES);
        bh_buffer *host = fx_buffer(puppet.context, MEMORY_BYTES);
        const struct bhi_internal_copy copy = {
            .call = "test", .src = device, .dst = host, .bytes = MEMORY_BYTES};
        bh_event *events[2] = {NULL, NULL};
        for (int k = 0; k < 2; k++) { /* the first is READY, so the memory is made */
            BHT_EQ(bhi_internal_submit_copy(w->stream, &copy, &events[k], NULL), BH_OK);
            if (k == 0) {
                (void)memory_worker_run(w, MEMORY_LIVES);
                memory_worker_harvest(w);
                BHT_EQ(bhi_event_state(events[0]), BH_EVENT_READY);
            }
        }
        const struct bhi_result lie = {.seq = 2,
                                       .status = ends[i],
                                       .command_index = BHI_NO_COMMAND,
                                       .executed = BH_EXECUTED_UNKNOWN,
                                       .bad_memory = device->id};
        puppet_begins(w->worker, 2);
        bhi_progress_result(w->progress, &lie, &(struct bhi_why){.text = "as the test says"});
        bhi_progress_publish(w->progress, 2, w->worker->lane.head);
        memory_worker_harvest(w);
        BHT_TRUE(w->worker->core.life.violated);
        BHT_TRUE(!device->device->bad);
        memory_worker_die(w);
        memory_worker_bury(w);
        memory_worker_begin(A);
        BHT_TRUE(memory_worker_run(w, MEMORY_LIVES).good);
        memory_worker_harvest(w);
        BHT_EQ(bhi_event_state(events[1]), BH_EVENT_READY);
        bhi_event_unref(events[0]);
        bhi_event_unref(events[1]);
    }
}

/* -- time-outs -------------------------------------------------------------------------------- */

static bool floods;  /* what is waited for changes for ever */
static int too_late; /* waits that have begun after their time */

static int wait_in_flood(int result, uint64_t deadline_ns) {
    if (floods && bhi_now_ns() >= deadline_ns && ++too_late > 3) {
        BHT_FAIL("it waits on after its time is up");
    }
    return floods ? 0 : result;
}

BHT_WRAP(int, bhi_futex_wait, const _Atomic uint32_t *word, uint32_t expected, bool shared,
         uint64_t deadline_ns) {
    return wait_in_flood(__real_bhi_futex_wait(word, expected, shared, deadline_ns), deadline_ns);
}

static uint64_t clock_ns; /* stands still at this time; 0: the real one */
static uint64_t nap_ns;   /* that a thread sleeps then */
static unsigned naps;

BHT_WRAP(uint64_t, bhi_now_ns, void) {
    return clock_ns ? clock_ns : __real_bhi_now_ns();
}

BHT_WRAP(int, bhi_futex_wait_any, const struct bhi_futex_wait *waits, size_t count,
         uint64_t deadline_ns) {
    if (clock_ns) {
        clock_ns += nap_ns;
        naps++;
        BHT_EQ(waits[1].expected, atomic_load(waits[1].word)); /* or it would not sleep */
        return clock_ns < deadline_ns ? 0 : -ETIMEDOUT;
    }
    return wait_in_flood(__real_bhi_futex_wait_any(waits, count, deadline_ns), deadline_ns);
}

/* E9: a worker that changes its words again and again keeps nobody beyond the time-out. */
TEST(e9_a_flood_of_wake_ups_is_no_time) {
    for (int several = 0; several < 2; several++) {
        puppet_again();
        (void)puppet_serving();
        bh_event *events[2] = {puppet_submit(), puppet_submit()};
        size_t index;
        too_late = 0;
        floods = true;
        const bh_status status = several ? bh_event_wait_any(events, 2, 5 * FX_MS, &index)
                                         : bh_event_wait(events[0], 5 * FX_MS);
        floods = false;
        BHT_EQ(status, BH_TIMEOUT);
    }
}

/* Whichever stream it is on, the earliest failure is reported. */
TEST(the_earliest_failure_of_a_context) {
    for (int row = 0; row < 4; row++) {
        const int first = row % 2;
        const bool released = row / 2; /* their streams are gone */
        puppet_again();
        bh_stream *streams[2] = {puppet_stream("a", NULL), puppet_stream("b", NULL)};
        bh_event *events[2];
        for (int i = 0; i < 2; i++) {
            events[i] = fx_fill(streams[i ^ first], puppet.buffer, 7);
        }
        for (int i = 0; i < 2; i++) {
            BHT_EQ(bh_event_cancel(events[1 - i]), BH_OK);
            if (released) {
                bh_stream_release(streams[1 - i]);
            }
        }
        bh_detail detail;
        BHT_EQ(bh_context_synchronize(puppet.context, 0, &detail), BH_CANCELLED);
        BHT_STR_HAS(detail.message, first ? "stream b" : "stream a");
    }
}

/* -- the doorbell ----------------------------------------------------------------------------- */

static uint64_t rings_at(const struct bhi_worker *worker) {
    BHT_EQ(atomic_load(&worker->lane.header->harvested), worker->core.harvested);
    return atomic_load(&worker->lane.header->notify_at);
}

static bh_event *wait_on_another_stream(bh_event *event) {
    const bh_submit_info info = {.struct_size = sizeof info, .waits = &event, .wait_count = 1};
    return fx_submit(puppet_stream(NULL, NULL), &info);
}

/* Another stream waits, and no thread: the worker rings, whether it had the submission before or gets
 * it now, and also if others end before it. Then nobody waits any more. */
TEST(e9_it_rings_for_what_others_wait_for) {
    for (int before = 0; before < 2; before++) {
        puppet_again();
        struct bhi_worker *worker = before ? puppet_serving() : NULL;
        bh_event *events[2] = {puppet_submit(), puppet_submit()};
        wait_on_another_stream(events[1]);
        worker = worker ? worker : puppet_serving();
        for (uint64_t i = 0; i < 2; i++) {
            BHT_EQ(rings_at(worker), i + 1);
            puppet_complete(worker, 1);
            BHT_EQ(bh_event_query(events[i]), BH_EVENT_READY);
        }
        BHT_EQ(rings_at(worker), 0);
    }
}

static struct bhi_worker *hasty; /* completes another one after the supervisor has looked */

BHT_WRAP(void, bhi_core_worker_settle, struct bhi_core_worker *core) {
    if (hasty) {
        puppet_complete(hasty, 1);
        hasty = NULL;
    }
    __real_bhi_core_worker_settle(core);
}

static unsigned woken; /* the reactor */
static bool hushed;    /* it is closed, and counts only */

BHT_WRAP(void, bhi_poller_wake, struct bhi_poller *poller) {
    if (!hushed) {
        __real_bhi_poller_wake(poller);
    }
    woken++;
}

/* It may have ended before the worker could see that it has to ring: then the reactor looks. */
TEST(e9_what_ended_before_it_was_to_ring_is_taken_in) {
    for (int later = 0; later < 2; later++) {
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        bh_event *events[2] = {puppet_submit(), puppet_submit()};
        puppet.context->poller.stopped = false;
        hushed = true;
        woken = 0;
        if (!later) {
            puppet_complete(worker, 1);
            wait_on_another_stream(events[0]);
        } else {
            wait_on_another_stream(events[1]);
            BHT_EQ(woken, 1); /* for the other stream */
            puppet_complete(worker, 1);
            hasty = worker;
            BHT_EQ(bh_event_query(events[0]), BH_EVENT_READY);
        }
        BHT_EQ(woken, 2);
        puppet.context->poller.stopped = true;
        hushed = false;
        BHT_EQ(bhi_event_state(events[later]), BH_EVENT_PENDING);
    }
}

static unsigned looks, ends; /* after so many looks |late| completes so many */
static bool restless;        /* until then it wakes who waits again and again */
static struct bhi_worker *late;

BHT_WRAP(void, bhi_worker_harvest, struct bhi_worker *worker) {
    __real_bhi_worker_harvest(worker);
    if (looks && restless) {
        atomic_fetch_add(&puppet_side(late)->header->completed_word, 1);
    }
    if (looks && --looks == 0) {
        puppet_complete(late, ends);
    }
}

/* A worker cannot keep a thread from its timeout by waking it. */
TEST(e10_a_worker_that_wakes_again_and_again) {
    late = puppet_serving();
    bh_event *event = puppet_submit();
    restless = true, looks = 1000, ends = 1;
    BHT_EQ(bh_event_wait(event, 0), BH_TIMEOUT);
    BHT_GT(looks, 900);
    looks = 0;
}

/* Who asks for one, any or all of two looks at each when it comes and once more before it goes: so what
 * has ended by then has ended, in the first look or in the second. */
TEST(e10_what_ends_at_the_last_moment_has_ended) {
    enum { ONE, ANY, ALL, WAYS };
    for (unsigned i = 0; i < 2 * WAYS; i++) {
        puppet_again();
        late = puppet_serving();
        bh_event *events[2] = {puppet_submit(), puppet_submit()};
        const unsigned way = i % WAYS;
        ends = way == ALL ? 2 : 1;
        if (i < WAYS) {
            puppet_complete(late, ends);
        } else {
            looks = way == ONE ? 1 : 2;
        }
        size_t index = 2;
        const bh_status status = way == ONE   ? bh_event_wait(events[0], 0)
                                 : way == ANY ? bh_event_wait_any(events, 2, 0, &index)
                                              : bh_event_wait_all(events, 2, 0, &index);
        BHT_EQ(looks, 0);
        BHT_EQ(status, BH_OK);
        BHT_EQ(index, way == ANY ? 0 : 2);
    }
}

/* -- lies ------------------------------------------------------------------------------------- */

/* Two records are in its lane. The first has ended well before, where there are two steps. */
TEST(t6_impossible_progress_is_seen) {
    static const struct {
        const char *what;
        uint64_t completed, taken; /* records */
        struct bhi_result result;  /* of the last that it has completed; seq 0: a good one */
        int steps;
    } rows[] = {
        {"more than there is", 3, 2, {0}, 1},
        {"taken more than there is", 2, 3, {0}, 1},
        {"ended what it has not taken", 2, 1, {0}, 1},
        {"fewer than before", 0, 1, {0}, 2},
        {"given a record back", 2, 0, {0}, 2},
        {"of another number", 1, 1, {.seq = 2}, 1},
        {"neither run nor not", 1, 1, {.seq = 1, .executed = 3}, 1},
        {"no status", 1, 1, {.seq = 1, .status = 9999}, 1},
        {"a loader's status", 1, 1, {.seq = 1, .status = BH_LOAD_FAILED}, 1},
        {"bad memory that it could use", 1, 1, {.seq = 1, .bad_memory = 7}, 1},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        struct bhi_progress *side = puppet_side(worker);
        bh_event *events[2] = {puppet_submit(), puppet_submit()};
        const uint64_t record = worker->lane.head / 2;
        if (rows[i].steps == 2) {
            puppet_complete(worker, 1);
            BHT_EQ(bh_event_query(events[0]), BH_EVENT_READY);
        }
        for (uint64_t seq = 1; seq <= 3; seq++) {
            const bool bad = rows[i].result.seq && seq == rows[i].completed;
            side->results[seq & side->mask] =
                bad ? rows[i].result : (struct bhi_result){.seq = seq, .executed = BH_EXECUTED_YES};
        }
        bhi_progress_publish(side, rows[i].completed, rows[i].taken * record);
        bh_event *last = events[rows[i].steps - 1];
        BHT_EQ(bh_event_query(last), BH_EVENT_PENDING);
        if (!worker->core.life.violated) {
            BHT_FAIL("%s: nobody has seen it", rows[i].what);
        }
        if (rows[i].result.status == BH_LOAD_FAILED) {
            BHT_STR_HAS(worker->core.life.kill_text, "its result is LOAD_FAILED, which");
        }
        /* From now on nothing is taken in that it says. */
        side->results[1] = (struct bhi_result){.seq = 1, .executed = BH_EXECUTED_YES};
        bhi_progress_publish(side, 2, 2 * record);
        BHT_EQ(bh_event_query(last), BH_EVENT_PENDING);
    }
}

/* T6: it has said that there is no memory, and says that it has run what needs it. */
TEST(t6_it_has_run_without_memory) {
    struct memory_worker *w = &memory.workers[A];
    bh_event *event = fx_fill(w->stream, memory_create(A, MEMORY_BYTES), 7);
    w->device_full = 2; /* it is asked twice */
    for (int i = 0; i < 2; i++) {
        memory_worker_listen(w);
        memory_worker_harvest(w);
    }
    BHT_TRUE(!w->worker->core.life.violated);
    puppet_begins(w->worker, 1);
    puppet_complete(w->worker, 1);
    BHT_EQ(bh_event_query(event), BH_EVENT_PENDING);
    BHT_TRUE(w->worker->core.life.violated);
    BHT_STR_HAS(w->worker->core.life.kill_text, "without device memory");
    memory_worker_die(w);
    memory_worker_bury(w);
}

/* T6: it says that it could not import memory that it was not told to import: the host's, or some for which
 * it had no room. */
TEST(t6_bad_memory_that_it_did_not_get) {
    for (int on_device = 0; on_device < 2; on_device++) {
        puppet_again();
        struct memory_worker *w = &memory.workers[A];
        bh_buffer *buffer =
            on_device ? memory_create(A, MEMORY_BYTES) : fx_buffer(puppet.context, MEMORY_BYTES);
        bh_event *event = fx_fill(w->stream, buffer, 7);
        w->device_full = 2; /* it is asked twice */
        for (int i = 0; i < 2; i++) {
            memory_worker_listen(w);
            memory_worker_harvest(w);
        }
        const struct bhi_result lie = {.seq = 1,
                                       .status = BH_VULKAN,
                                       .command_index = BHI_NO_COMMAND,
                                       .executed = BH_EXECUTED_NO,
                                       .bad_memory = buffer->id};
        puppet_begins(w->worker, 1);
        bhi_progress_result(w->progress, &lie, &(struct bhi_why){.text = "as the test says"});
        bhi_progress_publish(w->progress, 1, w->worker->lane.head);
        BHT_EQ(bh_event_query(event), BH_EVENT_PENDING);
        BHT_TRUE(w->worker->core.life.violated);
        BHT_STR_HAS(w->worker->core.life.kill_text, "was not told to import");
        memory_worker_die(w);
        memory_worker_bury(w);
    }
}

/* -- what a worker says ------------------------------------------------------------------------ */

/* All that a worker says of an end is in the verdict, and nothing else; what its kind cannot know is not
 * believed. */
TEST(e14_what_a_worker_says_is_in_the_verdict) {
    static const struct {
        enum bhi_worker_kind kind;
        struct bhi_result says;
        bh_reason reason;
        int32_t sys_errno;
    } rows[] = {
        {BHI_WORKER_DEVICE,
         {.status = BH_VULKAN, .vk_result = -3, .executed = BH_EXECUTED_NO},
         BH_REASON_DEVICE_STEP,
         0},
        {BHI_WORKER_DEVICE,
         {.status = BH_LIMIT_EXCEEDED, .executed = BH_EXECUTED_UNKNOWN},
         BH_REASON_GUARD_LIMIT,
         0},
        {BHI_WORKER_DEVICE, /* for a fill, as for any kernel that it has not run */
         {.status = BH_COMPILE_FAILED, .executed = BH_EXECUTED_NO},
         BH_REASON_NONE,
         0},
        {BHI_WORKER_LOADER,
         {.status = BH_LOAD_FAILED, .vk_result = 5, .executed = BH_EXECUTED_NO},
         BH_REASON_FILE_READ,
         5},
        {BHI_WORKER_LOADER,
         {.status = BH_LOAD_FAILED, .vk_result = -5, .executed = BH_EXECUTED_NO},
         BH_REASON_FILE_READ,
         0},
        {BHI_WORKER_LOADER,
         {.status = BH_LOAD_FAILED, .vk_result = 4096, .executed = BH_EXECUTED_NO},
         BH_REASON_FILE_READ,
         0},
        {BHI_WORKER_DEVICE,
         {.vk_result = -3, .command_index = 7, .executed = BH_EXECUTED_YES},
         BH_REASON_NONE,
         0},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        worker->kind = rows[i].kind;
        snprintf(worker->core.device, sizeof worker->core.device, "red:1");
        bh_event *event = puppet_submit();
        const struct bhi_why why = {.reason = rows[i].reason,
                                    .name = "it",
                                    .subject = BH_SUBJECT_BUFFER,
                                    .value = 11,
                                    .limit = 12,
                                    .text = "a place"};
        struct bhi_result says = rows[i].says;
        says.seq = 1;
        says.started_ns = bhi_now_ns();
        says.ended_ns = says.started_ns + 1;
        puppet_begins(worker, 1);
        const bool good = says.status == BH_OK;
        bhi_progress_result(puppet_side(worker), &says, good ? NULL : &why);
        bhi_progress_publish(puppet_side(worker), 1, worker->lane.head);
        const bh_verdict verdict = fx_verdict(event);
        BHT_EQ(verdict.status, says.status);
        BHT_EQ(verdict.executed, says.executed);
        BHT_EQ(verdict.reason, rows[i].reason);
        BHT_EQ(verdict.subject, good ? BH_SUBJECT_NONE : BH_SUBJECT_BUFFER);
        BHT_STR_EQ(verdict.subject_name, good ? "" : "it");
        BHT_EQ(verdict.value, good ? 0 : 11);
        BHT_EQ(verdict.limit, good ? 0 : 12);
        BHT_EQ(verdict.vk_result, rows[i].kind == BHI_WORKER_DEVICE ? says.vk_result : 0);
        BHT_EQ(verdict.sys_errno, rows[i].sys_errno);
        BHT_EQ(verdict.command_index, good ? BH_NO_COMMAND : 0);
        BHT_EQ(verdict.worker_pid, 4242);
        BHT_STR_EQ(verdict.device, "red:1");
        BHT_EQ(verdict.started_ns, says.started_ns);
        BHT_EQ(verdict.ended_ns, says.ended_ns);
        BHT_EQ(verdict.message[0] != 0, !good);
        worker->kind = BHI_WORKER_DEVICE;
    }
}

/* A result of a device that is lost, or that has had a fault, says why its worker ends; not again, when
 * a kernel has been blamed for it. */
TEST(a_lost_device_is_reported) {
    static const bh_status statuses[] = {BH_DEVICE_LOST, BH_DEVICE_FAULT, BH_VULKAN};
    for (size_t k = 0; k < 2 * BHT_COUNT(statuses); k++) {
        const bh_status status = statuses[k / 2];
        const bool blamed = k % 2;
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        bh_event *event = puppet_submit();
        worker->core.life.loss = blamed ? BHI_LOSS_BLAMED : BHI_LOSS_NONE;
        const struct bhi_result result = {
            .seq = 1, .status = status, .executed = BH_EXECUTED_UNKNOWN};
        puppet_begins(worker, 1);
        bhi_progress_result(puppet_side(worker), &result, &(struct bhi_why){.text = "so"});
        bhi_progress_publish(puppet_side(worker), 1, worker->lane.head);
        fx_expect(event, status);
        BHT_EQ(worker->core.life.loss, blamed                ? BHI_LOSS_BLAMED
                                       : status == BH_VULKAN ? BHI_LOSS_NONE
                                                             : BHI_LOSS_REPORTED);
    }
}

/* A failure may be that of a buffer, whose memory nobody gets again then. One that was skipped has not
 * failed. */
TEST(what_was_skipped_spoils_no_memory) {
    static const bh_status statuses[] = {BH_CANCELLED, BH_LIMIT_EXCEEDED};
    for (size_t i = 0; i < BHT_COUNT(statuses); i++) {
        const bh_status status = statuses[i];
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        bh_event *event = puppet_submit();
        puppet_begins(worker, 1);
        BHT_EQ(bh_event_cancel(event), BH_OK); /* too late to withdraw it */
        const struct bhi_result result = {.seq = 1, .status = status};
        bhi_progress_result(puppet_side(worker), &result, &(struct bhi_why){.text = "so"});
        bhi_progress_publish(puppet_side(worker), 1, worker->lane.head);
        fx_expect(event, status);
        BHT_EQ(puppet.buffer->block->spoilt, status != BH_CANCELLED);
    }
}

/* An average, in which none counts for more than its deadline. */
TEST(what_a_submission_usually_takes) {
    static const struct {
        uint64_t takes_ns, usual_ns;
    } rows[] = {{800, 800}, {0, 800}, {1600, 825}, {1, 721}};
    struct bhi_worker *worker = puppet_serving();
    puppet.stream->deadline_ns = 1000;
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        bh_event *event = puppet_submit();
        const uint64_t now_ns = bhi_now_ns();
        const struct bhi_result result = {.seq = i + 1,
                                          .started_ns = now_ns,
                                          .ended_ns = now_ns + rows[i].takes_ns,
                                          .command_index = BHI_NO_COMMAND,
                                          .executed = BH_EXECUTED_YES};
        puppet_begins(worker, i + 1);
        bhi_progress_result(puppet_side(worker), &result, NULL);
        bhi_progress_publish(puppet_side(worker), i + 1, worker->lane.head);
        while (bhi_now_ns() < result.ended_ns) { /* nothing ends in the future */
        }
        fx_expect(event, BH_OK);
        BHT_EQ(puppet.stream->usual_ns, rows[i].usual_ns);
    }
}

/* -- several who wait for one ------------------------------------------------------------------ */

#define WAITERS 4

struct waiter {
    pthread_t thread;
    bh_event *event;
    _Atomic int tid;
    _Atomic bool woken;
    bh_status status;
};

static void *wait_for_it(void *argument) {
    struct waiter *waiter = argument;
    atomic_store(&waiter->tid, (int)syscall(SYS_gettid));
    waiter->status = bh_event_wait(waiter->event, BH_FOREVER);
    atomic_store(&waiter->woken, true);
    return NULL;
}

/* All of them sleep on |event|: each has counted itself, and then blocks nowhere else. */
static void start_waiters(struct waiter waiters[WAITERS], bh_event *event) {
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct waiter){.event = event};
        BHT_EQ(pthread_create(&waiters[i].thread, NULL, wait_for_it, &waiters[i]), 0);
    }
    WAIT_UNTIL(atomic_load(&event->sleepers) == WAITERS, 20000);
    for (int i = 0; i < WAITERS; i++) {
        WAIT_UNTIL(bht_process_state(atomic_load(&waiters[i].tid)) == 'S', 20000);
    }
}

/* They wait for ever: one that is not woken stays asleep. */
static void join_waiters(struct waiter waiters[WAITERS], bh_status status) {
    for (int i = 0; i < WAITERS; i++) {
        WAIT_UNTIL(atomic_load(&waiters[i].woken), 5000);
        BHT_EQ(pthread_join(waiters[i].thread, NULL), 0);
        BHT_EQ(waiters[i].status, status);
    }
}

/* It is in no lane yet: the event's own word is all that they have. */
TEST(all_who_wait_for_one_that_is_queued_are_woken) {
    bh_event *event = puppet_submit();
    struct waiter waiters[WAITERS];
    start_waiters(waiters, event);
    BHT_EQ(bh_event_cancel(event), BH_OK);
    join_waiters(waiters, BH_CANCELLED);
}

/* A worker gets it while they sleep: they follow that one from now on. */
TEST(all_who_wait_follow_the_worker_that_gets_it) {
    bh_event *event = puppet_submit();
    struct waiter waiters[WAITERS];
    start_waiters(waiters, event);
    struct bhi_worker *worker = puppet_serving();
    WAIT_UNTIL(atomic_load(&worker->lane.header->waiters) == WAITERS, 5000);
    puppet_complete(worker, 1);
    bhi_progress_wake(puppet_side(worker));
    join_waiters(waiters, BH_OK);
}

/* Their worker dies before it begins, and there is no other yet: nobody keeps the dead one. */
TEST(all_who_wait_let_go_of_the_worker_that_dies) {
    struct bhi_worker *worker = puppet_serving();
    bh_event *event = puppet_submit();
    struct waiter waiters[WAITERS];
    start_waiters(waiters, event);
    bhi_worker_retain(worker);
    puppet_killed(worker, SIGKILL);
    BHT_TRUE(!bhi_list_empty(&puppet.stream->core.queue));
    WAIT_UNTIL(atomic_load(&worker->refs) == 1, 5000);
    bhi_worker_release(worker);
    worker = puppet_serving();
    WAIT_UNTIL(atomic_load(&worker->lane.header->waiters) == WAITERS, 5000);
    puppet_complete(worker, 1);
    bhi_progress_wake(puppet_side(worker));
    join_waiters(waiters, BH_OK);
}

static void (*unlocked)(void); /* once, when the lock has been dropped */

BHT_WRAP(void, bhi_context_pump_unlock, bh_context *context) {
    __real_bhi_context_pump_unlock(context);
    if (unlocked) {
        void (*act)(void) = unlocked;
        unlocked = NULL;
        act();
    }
}

static struct bhi_worker *running;

static void complete_and_fail_another(void) {
    puppet_complete(running, 1);
    BHT_EQ(bh_event_cancel(fx_fill(puppet_stream("late", NULL), puppet.buffer, 7)), BH_OK);
}

/* What was submitted, and failed, after a thread began to wait for all is not what it waits for. */
TEST(a_failure_after_synchronize_has_begun) {
    running = puppet_serving();
    bh_event *event = puppet_submit();
    unlocked = complete_and_fail_another;
    BHT_EQ(bh_context_synchronize(puppet.context, BH_FOREVER, NULL), BH_OK);
    fx_expect(event, BH_OK);
    BHT_EQ(bh_context_synchronize(puppet.context, 0, NULL), BH_CANCELLED);
}

static void serve_and_complete(void) {
    puppet_complete(puppet_serving(), 1);
}

/* The worker gets it, and completes it, after a thread has looked and before it sleeps. */
TEST(one_that_is_about_to_sleep_follows_the_worker_that_gets_it) {
    struct waiter waiter = {.event = puppet_submit()};
    unlocked = serve_and_complete;
    BHT_EQ(pthread_create(&waiter.thread, NULL, wait_for_it, &waiter), 0);
    WAIT_UNTIL(atomic_load(&waiter.woken), 5000);
    BHT_EQ(pthread_join(waiter.thread, NULL), 0);
    BHT_EQ(waiter.status, BH_OK);
}

/* It is in a lane: they sleep on what its worker publishes as well, and one of them takes it in. */
TEST(all_who_wait_for_one_that_runs_are_woken) {
    struct bhi_worker *worker = puppet_serving();
    bh_event *event = puppet_submit();
    struct waiter waiters[WAITERS];
    start_waiters(waiters, event);
    BHT_EQ(atomic_load(&worker->lane.header->waiters), WAITERS);
    puppet_complete(worker, 1); /* and wakes nobody */
    BHT_EQ(bh_event_query(event), BH_EVENT_READY);
    join_waiters(waiters, BH_OK);
}

/* The worker wakes all who follow it, whichever of them is the first to look. */
TEST(a_worker_wakes_all_who_follow_it) {
    struct bhi_worker *worker = puppet_serving();
    bh_event *events[2] = {puppet_submit(), puppet_submit()};
    struct waiter first[WAITERS];
    start_waiters(first, events[0]);
    puppet_complete(worker, 1);
    bhi_progress_wake(puppet_side(worker));
    join_waiters(first, BH_OK);
    BHT_EQ(bh_event_query(events[1]), BH_EVENT_PENDING);
    puppet_complete(worker, 1);
    BHT_EQ(bh_event_query(events[1]), BH_EVENT_READY);
}

/* Nobody is counted who sleeps no more, whether woken or out of time: the worker would make a system call
 * at each result. */
TEST(who_sleeps_no_more_is_not_counted) {
    const struct bhi_worker *worker = puppet_serving();
    bh_event *event = puppet_submit();
    BHT_EQ(bh_event_wait(event, 0), BH_TIMEOUT);
    BHT_EQ(atomic_load(&event->sleepers), 0);
    BHT_EQ(atomic_load(&worker->lane.header->waiters), 0);
}

/* -- spinning ----------------------------------------------------------------------------------- */

static _Atomic unsigned spins;
static unsigned false_spins;        /* so many of the first end though nothing has ended */
static struct bhi_worker *spun_for; /* completes its next one in the first other; NULL: truly */

BHT_WRAP(bool, bhi_spin_wait, struct bhi_spin *spin, const _Atomic uint32_t *word,
         uint32_t expected) {
    if (!spun_for) {
        spins++;
        return __real_bhi_spin_wait(spin, word, expected);
    }
    if (spins++ == false_spins) {
        puppet_complete(spun_for, 1);
    }
    return true;
}

/* A thread spins for the next result of a worker alone: while others come first, that takes processor time
 * from the worker. */
TEST(who_waits_for_the_next_spins) {
    (void)puppet_serving();
    bh_event *events[2] = {puppet_submit(), puppet_submit()};
    for (unsigned i = 0; i < 2; i++) {
        spins = 0;
        BHT_EQ(bh_event_wait(events[i], 0), BH_TIMEOUT);
        BHT_EQ(spins, i == 0);
    }
}

/* Spins that fail make the next ones shorter. One that would have succeeded with all of its time gives the
 * next all of it, and none that has taken longer. */
TEST(a_spin_that_was_too_short_is_the_last) {
    static const struct {
        uint64_t nap_ns;
        uint32_t budget_ns;
    } rows[] = {{BHI_SPIN_MAX_NS - 1, BHI_SPIN_MAX_NS}, {BHI_SPIN_MAX_NS, 0}};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        bh_event *events[2] = {puppet_submit(), puppet_submit()};
        puppet_complete(worker, 1);
        BHT_EQ(bh_event_query(events[0]), BH_EVENT_READY);
        BHT_GT(atomic_load(&worker->progress.header->completed_word), 0);
        atomic_store(&worker->stream_spin.budget_ns, 0);
        naps = 0;
        nap_ns = rows[i].nap_ns;
        clock_ns = __real_bhi_now_ns() + 1000 * FX_SECONDS; /* its time is over after one nap */
        const bh_status status = bh_event_wait(events[1], 0);
        clock_ns = 0;
        BHT_EQ(status, BH_TIMEOUT);
        BHT_EQ(naps, 1);
        BHT_EQ(atomic_load(&worker->stream_spin.budget_ns), rows[i].budget_ns);
    }
}

/* What is queued waits for two, of which the first has ended: the thread spins if the second is the next of
 * the same worker. */
TEST(who_waits_for_what_is_queued_spins_for_what_holds_it) {
    for (int same = 0; same < 2; same++) {
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        bh_stream *other = puppet_stream(NULL, NULL);
        puppet_bind(puppet_worker(BHI_RUNNING), other);
        bh_event *first = puppet_submit(), *second = NULL;
        for (int i = 0; i < (same ? 1 : 2); i++) { /* the second submission of its worker */
            second = same ? puppet_submit() : fx_fill(other, fx_buffer(puppet.context, 64), 7);
        }
        const bh_submit_info info = {
            .struct_size = sizeof info, .waits = (bh_event *[]){first, second}, .wait_count = 2};
        bh_event *event = fx_submit(puppet_stream(NULL, NULL), &info);
        puppet_complete(worker, 1);
        spins = 0;
        BHT_EQ(bh_event_wait(event, 0), BH_TIMEOUT);
        BHT_EQ(bhi_event_state(first), BH_EVENT_READY);
        BHT_EQ(spins, same);
    }
}

/* A worker can end a spin without a result. The thread waits on. */
TEST(a_spin_that_ends_for_nothing_is_no_timeout) {
    spun_for = puppet_serving();
    bh_event *event = puppet_submit();
    spins = 0;
    false_spins = 3;
    BHT_EQ(bh_event_wait(event, BH_FOREVER), BH_OK);
    BHT_EQ(spins, 4);
    spun_for = NULL;
}

/* -- callbacks ---------------------------------------------------------------------------------- */

static bh_event *asked_in_callback;
static bh_status answered[2]; /* with any time, and then at once */

static void wait_in_callback(bh_log_level level, const char *line, void *user) {
    (void)level, (void)line, (void)user;
    for (int i = 0; i < 2; i++) {
        answered[i] = bh_event_wait(asked_in_callback, i ? 0 : BH_FOREVER);
    }
}

/* It is refused, unless the event has ended, and does not keep the worker. */
TEST(a_wait_in_a_callback_keeps_nothing) {
    for (int ended = 0; ended < 2; ended++) {
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        asked_in_callback = puppet_submit();
        puppet_complete(worker, ended);
        puppet.context->settings.log = wait_in_callback;
        const uint32_t refs = atomic_load(&worker->refs);
        bhi_context_log(puppet.context, BH_LOG_INFO, "%s", "so");
        puppet.context->settings.log = NULL;
        BHT_EQ(answered[0], ended ? BH_OK : BH_IN_CALLBACK);
        BHT_EQ(answered[1], ended ? BH_OK : BH_TIMEOUT);
        BHT_EQ(atomic_load(&worker->refs), refs);
    }
}

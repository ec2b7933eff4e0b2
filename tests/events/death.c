/* Cases 43 to 49 of docs/semantics.md: what a worker's death does to the events that it owed. */
#include "stage.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tamper.h"

static bool is_dead(pid_t pid) {
    char state = bht_process_state(pid);
    return state == 'X' || state == 'Z';
}

/* -- 43: many events, many waiters ------------------------------------------------------------ */

enum { OUTSTANDING = 50, WAITERS = 16 };

struct waiter {
    bh_event *const *events; /* it waits for all of them, its own first */
    size_t first;
    uint64_t awake_ns;
};

static _Atomic int waiting;

static void *wait_for_them(void *argument) {
    struct waiter *waiter = argument;
    atomic_fetch_add(&waiting, 1);
    for (size_t i = 0; i < OUTSTANDING; i++) {
        BHT_EQ(bh_event_wait(waiter->events[(waiter->first + i) % OUTSTANDING], FX_SECONDS),
               BH_WORKER_SIGNAL);
    }
    waiter->awake_ns = bht_now_ns();
    return NULL;
}

/* Fifty: one running, 24 in the lane, 15 in its stream's queue, 10 in another's. Each ends once,
 * and wakes all that wait for it: two or more of the sixteen begin with the same one. */
TEST(case_43_fifty_events_and_sixteen_waiters) {
    struct stage s = stage_open_with(NULL, BH_FOREVER);
    enum { EARLIER = 5, INNOCENT = 10 };
    bh_event *earlier[EARLIER], *innocent[INNOCENT], *events[OUTSTANDING];
    bh_buffer *buffers[EARLIER + INNOCENT], *outs[3];
    for (int i = 0; i < EARLIER + INNOCENT; i++) {
        buffers[i] = fx_words(s.context, STAGE_FLOATS, 0);
    }
    for (int i = 0; i < 3; i++) {
        outs[i] = fx_words(s.context, STAGE_FLOATS, 0);
    }
    for (int i = 0; i < EARLIER; i++) {
        earlier[i] = ev_square(&s, s.a, s.x, buffers[i], NULL, 0);
    }
    WAIT_UNTIL(bh_event_query(earlier[EARLIER - 1]) == BH_EVENT_READY, 20000);
    stage_gate(&s);
    const struct fx_held gate_b = fx_hold(s.context, s.b);
    bh_event *held_by = gate_b.event;
    int count = 0;
    events[count++] = s.bad;
    while (count < 25) {
        events[count++] = ev_square(&s, s.a, s.gate, outs[0], NULL, 0);
    }
    for (int i = 0; i < INNOCENT; i++) {
        innocent[i] = ev_square(&s, s.a, s.x, buffers[EARLIER + i], NULL, 0);
    }
    /* Held by b: it and all behind it stay in the queue of a. */
    while (count < 40) {
        events[count++] = ev_square(&s, s.a, s.gate, outs[1], &held_by, 1);
    }
    while (count < OUTSTANDING) {
        events[count++] = ev_square(&s, s.b, s.gate, outs[2], NULL, 0);
    }

    bh_queue *queue = NULL;
    BHT_EQ(bh_queue_create(&queue, NULL), BH_OK);
    for (uint64_t i = 0; i < OUTSTANDING; i++) {
        BHT_EQ(bh_queue_add(queue, events[i], i, NULL), BH_OK);
    }
    struct waiter waiters[WAITERS];
    for (size_t i = 0; i < WAITERS; i++) {
        waiters[i] = (struct waiter){.events = events, .first = i / 2 * 7};
        bht_start(wait_for_them, &waiters[i]);
    }
    WAIT_UNTIL(atomic_load(&waiting) == WAITERS, 20000);
    uint64_t killed_ns = bht_now_ns();
    fx_kill(s.pid, SIGKILL);
    bht_join();
    for (size_t i = 0; i < WAITERS; i++) {
        BHT_LT(waiters[i].awake_ns - killed_ns, 2 * BHT_SECOND_MS * FX_MS);
    }
    for (int i = 0; i < OUTSTANDING; i++) {
        bh_verdict verdict = ev_poisoned(events[i], BH_WORKER_SIGNAL, s.bad, i ? 1 : 0,
                                         i ? BH_EXECUTED_NO : BH_EXECUTED_UNKNOWN);
        BHT_EQ(verdict.other_causes, 0);
        BHT_EQ(verdict.worker_pid, s.pid);
    }
    for (int i = 0; i < EARLIER; i++) {
        ev_ready(earlier[i]);
        BHT_EQ(fx_verdict(earlier[i]).worker_pid, s.pid);
        ev_squares(buffers[i], 1);
    }
    for (int i = 0; i < INNOCENT; i++) {
        ev_ready(innocent[i]);
        ev_squares(buffers[EARLIER + i], 1);
    }
    BHT_EQ(bh_event_query(held_by), BH_EVENT_PENDING);
    fx_open(gate_b.word);
    ev_ready(held_by);
    ev_well(&s);
    bh_context_destroy(s.context);
    bh_completion given[OUTSTANDING];
    bool is_given[OUTSTANDING] = {false};
    size_t ended = 0;
    BHT_EQ(bh_queue_take(queue, BH_NOW, given, OUTSTANDING, &ended), BH_OK);
    BHT_EQ(ended, OUTSTANDING);
    for (int i = 0; i < OUTSTANDING; i++) {
        BHT_TRUE(!is_given[given[i].user_data]);
        is_given[given[i].user_data] = true;
        BHT_EQ(given[i].status, BH_WORKER_SIGNAL);
        bh_event_release(given[i].event);
    }
    BHT_EQ(bh_queue_take(queue, BH_NOW, given, 1, &ended), BH_TIMEOUT); /* each once */
}

/* -- 44, 45: around the completion record ----------------------------------------------------- */

TEST(case_44_death_between_data_and_record) {
    struct stage s = stage_open_with("1:before_record:1=kill", FX_SECONDS);
    const float *y = (const float *)(const void *)fx_pointer(s.y);
    bh_event *event = ev_square(&s, s.a, s.x, s.y, NULL, 0);
    bh_event *dependent = ev_square(&s, s.b, s.y, s.z, NULL, 0);
    bh_verdict verdict = ev_poisoned(event, BH_WORKER_SIGNAL, event, 0, BH_EXECUTED_UNKNOWN);
    BHT_EQ(verdict.worker_pid, s.pid);
    ev_poisoned(dependent, BH_WORKER_SIGNAL, event, 1, BH_EXECUTED_NO);
    for (uint32_t i = 0; i < STAGE_FLOATS; i++) {
        BHT_TRUE(y[i] == (float)(i * i)); /* the data is there: that is what this case is about */
    }
    ev_content_poisoned(s.y, BH_WORKER_SIGNAL);
    ev_content_poisoned(s.z, BH_WORKER_SIGNAL);
    ev_squares(s.x, 0);
    ev_well(&s);
}

/* Nobody waits, and the worker dies before it has woken anybody: the obituary reads the record. */
TEST(case_45_read_by_the_obituary) {
    struct stage s = stage_open_with("1:after_record:1=kill", FX_SECONDS);
    bh_event *event = ev_square(&s, s.a, s.x, s.y, NULL, 0);
    WAIT_UNTIL(bh_stream_worker_pid(s.a) != s.pid, 20000);
    BHT_EQ(bh_event_query(event), BH_EVENT_READY);
    ev_ready(event);
    BHT_EQ(fx_verdict(event).worker_pid, s.pid);
    ev_squares(s.y, 1);
    BHT_EQ(bh_stream_synchronize(s.a, FX_SECONDS, NULL), BH_OK);
    ev_well(&s);
}

/* A stopped zygote does not tell how its worker died: it is dead, and not yet buried. Who waits
 * then reads the record himself. */
TEST(case_45_read_before_the_burial) {
    struct stage s = stage_open_with("1:after_record:1=kill", FX_SECONDS);
    pid_t zygote = fx_parent(s.pid);
    BHT_GT(zygote, 1);
    fx_stop(zygote);
    bh_event *event = ev_square(&s, s.a, s.x, s.y, NULL, 0);
    WAIT_UNTIL(is_dead(s.pid), 20000);
    ev_ready(event);
    ev_squares(s.y, 1);
    fx_kill(zygote, SIGCONT);
    ev_well(&s);
    ev_ready(event);
}

/* With dependents: those go on, on the other stream and on the same. */
TEST(case_45_dependents_of_the_recorded_one_run) {
    struct stage s = stage_open_with("1:after_record:1=kill", FX_SECONDS);
    bh_event *event = ev_square(&s, s.a, s.x, s.y, NULL, 0);
    bh_event *other = ev_square(&s, s.b, s.y, s.z, NULL, 0);
    bh_event *same = ev_square(&s, s.a, s.z, s.w, NULL, 0);
    ev_ready(same);
    ev_ready(other);
    ev_ready(event);
    ev_squares(s.w, 3);
    BHT_NE(fx_verdict(same).worker_pid, s.pid);
    ev_well(&s);
}

/* -- 46 to 48: after the death ---------------------------------------------------------------- */

/* The dead worker's progress memory is still mapped here: it says now that its first submission
 * has completed. Neither the old event nor the new worker's first one may believe it. */
TEST(case_46_late_completion_of_a_dead_generation) {
    struct stage s = stage_open();
    struct bhi_progress late = fx_progress();
    BHT_EQ(atomic_load(&late.header->started_seq), 1); /* it is the one of a's worker */
    stage_fail_unseen(&s);
    bh_verdict before = ev_poisoned(s.bad, BH_WORKER_SIGNAL, s.bad, 0, BH_EXECUTED_UNKNOWN);
    fx_ready(s.a);
    const struct fx_held gate = fx_hold(s.context, s.a); /* submission 1 of the new worker */
    bh_event *behind = ev_square(&s, s.a, gate.data, s.y, NULL, 0);
    fx_complete(&late, 1, 1 << 12);
    atomic_store(&late.header->started_seq, 1000);
    atomic_store(&late.header->step, UINT32_MAX);
    for (int i = 0; i < 3; i++) {
        fx_complete(&late, 2 + (uint64_t)i, UINT64_MAX); /* impossible ones, too */
        fx_expect_healthy(s.context, s.b);               /* everybody has had a turn */
        BHT_EQ(bh_event_wait(gate.event, FX_MS), BH_TIMEOUT);
        BHT_EQ(bh_event_query(behind), BH_EVENT_PENDING);
        bh_verdict after = ev_poisoned(s.bad, BH_WORKER_SIGNAL, s.bad, 0, BH_EXECUTED_UNKNOWN);
        ev_same_verdict(&before, &after);
        ev_content_poisoned(s.gate, BH_WORKER_SIGNAL);
    }
    fx_open(gate.word);
    ev_ready(gate.event);
    ev_ready(behind);
    BHT_NE(bh_stream_worker_pid(s.a), 0);
    ev_well(&s);
    bhi_progress_unmap(&late);
}

/* The kernel's number of an eventfd; -1: |fd| of |pid| is none. */
static long long eventfd_id(pid_t pid, int fd) {
    char name[32];
    snprintf(name, sizeof name, "fdinfo/%d", fd);
    return bht_proc_number(pid, name, "eventfd-id:", -1);
}

/* Our descriptor of the doorbell of |pid|: the one eventfd that it shares with us. */
static int doorbell_of(pid_t pid) {
    for (int theirs = 0; theirs < 64; theirs++) {
        const long long id = eventfd_id(pid, theirs);
        for (int ours = 0; id >= 0 && ours < 256; ours++) {
            if (eventfd_id(getpid(), ours) == id) {
                return ours;
            }
        }
    }
    BHT_FAIL("worker %d has no doorbell", (int)pid);
}

/* How many descriptors |epoll| watches; or those that are |fd|. */
static size_t watched_by(int epoll, const char *fd) {
    char name[32];
    snprintf(name, sizeof name, "fdinfo/%d", epoll);
    return bht_proc_lines(getpid(), name, fd);
}

/* Who kept the dead worker's doorbell rings it: the open file description is still there, and so
 * could be what watches it. */
TEST(case_46_late_rings_of_a_dead_generation) {
    struct stage s = stage_open_with(NULL, FX_SECONDS);
    bh_stream *c = fx_stream(s.context, "c", FX_SECONDS);
    pid_t pid = fx_ready(c);
    const int ours = doorbell_of(pid), bell = fcntl(ours, F_DUPFD_CLOEXEC, 512);
    BHT_GE(bell, 0);
    char line[32];
    snprintf(line, sizeof line, "tfd: %8d ", ours);
    int epoll = 0; /* the reactor's */
    while (watched_by(epoll, line) == 0) {
        BHT_LT(++epoll, 256);
    }
    const size_t watched = watched_by(epoll, "tfd:");
    bh_event *lost = fx_hold(s.context, c).event;
    fx_kill(pid, SIGKILL);
    bh_verdict verdict = ev_poisoned(lost, BH_WORKER_SIGNAL, lost, 0, BH_EXECUTED_UNKNOWN);
    pid_t next_pid = fx_ready(c);
    BHT_NE(next_pid, pid);
    WAIT_UNTIL(watched_by(epoll, "tfd:") == watched, 20000); /* as many, not the old bell */
    const struct fx_held gate = fx_hold(s.context, c);
    bh_event *next = gate.event;
    for (int i = 0; i < 1000; i++) {
        BHT_EQ(eventfd_write(bell, 1), 0);
    }
    fx_expect_healthy(s.context, s.b); /* everybody has had a turn */
    BHT_EQ(bh_event_query(next), BH_EVENT_PENDING);
    fx_open(gate.word);
    ev_ready(next);
    BHT_EQ(fx_verdict(next).worker_pid, next_pid); /* nobody took it for that one's rings */
    bh_verdict after = ev_agree(lost, BH_WORKER_SIGNAL);
    ev_same_verdict(&verdict, &after);
    ev_well(&s);
    close(bell);
}

/* It has said what the kernel binds, and is killed before it records that it compiled it: the next
 * worker compiles it, and says so again. */
TEST(case_46_late_reflection_of_a_dead_generation) {
    struct stage s = stage_open_with("1:before_record:1=kill", FX_SECONDS);
    static bh_kernel_info info = {.struct_size = sizeof info};
    bh_detail detail;
    BHT_EQ(bh_kernel_reflect(s.square, s.a, FX_SECONDS, &info, &detail), BH_OK);
    BHT_EQ(info.binding_count, 2);
    BHT_NE(bh_stream_worker_pid(s.a), s.pid);
    BHT_EQ(bh_kernel_reflect(s.square, s.a, FX_SECONDS, &info, &detail), BH_OK);
    BHT_EQ(bh_stream_synchronize(s.a, FX_SECONDS, NULL), BH_OK);
    ev_well(&s);
}

TEST(case_47_old_verdicts_stand_and_new_work_succeeds) {
    struct stage s = stage_open();
    static const int signals[] = {SIGKILL, SIGSEGV, SIGABRT};
    enum { LIVES = BHT_COUNT(signals) };
    bh_event *events[LIVES];
    bh_verdict verdicts[LIVES] = {{.struct_size = sizeof verdicts[0]}};
    pid_t pids[LIVES];
    for (int i = 0; i < LIVES; i++) {
        events[i] = i ? fx_hold(s.context, s.a).event : s.bad;
        pids[i] = fx_ready(s.a);
        fx_kill(pids[i], signals[i]);
        verdicts[i] = ev_poisoned(events[i], BH_WORKER_SIGNAL, events[i], 0, BH_EXECUTED_UNKNOWN);
        BHT_EQ(verdicts[i].signal, signals[i]);
        BHT_EQ(verdicts[i].worker_pid, pids[i]);
        bh_event *work = ev_square(&s, s.a, s.x, s.y, NULL, 0);
        ev_ready(work);
        ev_squares(s.y, 1);
        BHT_NE(fx_verdict(work).worker_pid, pids[i]);
        for (int old = 0; old <= i; old++) {
            bh_verdict now = ev_agree(events[old], BH_WORKER_SIGNAL);
            ev_same_verdict(&verdicts[old], &now);
        }
    }
    ev_well(&s);
}

/* Waited for on a stream that has nothing to do with it, when its own stream is long gone. */
TEST(case_48_an_event_carries_its_verdict_to_another_stream) {
    struct stage s = stage_open();
    bh_stream *c = fx_stream(s.context, "c", FX_SECONDS);
    bh_event *early = ev_square(&s, s.b, s.x, s.y, &s.bad, 1);
    stage_fail_unseen(&s);
    bh_stream_release(s.a);
    s.a = NULL;
    bh_event *late = ev_square(&s, c, s.x, s.z, &s.bad, 1);
    bh_event *next = ev_square(&s, c, s.x, s.w, &early, 1);
    ev_poisoned(early, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
    ev_poisoned(late, BH_WORKER_SIGNAL, s.bad, 1, BH_EXECUTED_NO);
    bh_verdict verdict = ev_poisoned(next, BH_WORKER_SIGNAL, s.bad, 2, BH_EXECUTED_NO);
    BHT_EQ(verdict.signal, SIGKILL);
    BHT_EQ(verdict.worker_pid, s.pid);
    BHT_STR_EQ(verdict.stream_name, "c");
    BHT_STR_EQ(verdict.kernel_name, "gate");
    BHT_STR_HAS(verdict.message, "2 hops");
    BHT_STR_HAS(verdict.message, "SIGKILL");
    fx_expect_healthy(s.context, s.b);
    fx_expect_healthy(s.context, c);
}

/* -- 49: in the middle of writing ------------------------------------------------------------- */

/* The two sides share no lock: a worker only reads the lane, and the host only reads progress. So
 * what is left is a death, or a stop, between two stores. */

/* Eight in one batch; the worker meets |action| at the |nth| time that it passes |point| in it. */
static void dies_in_a_batch(const char *point, int nth, const char *action, uint64_t deadline_ns,
                            bh_status cause) {
    enum { WARM = 20, COUNT = 8 };
    char faults[64];
    snprintf(faults, sizeof faults, "1:%s:%d=%s", point, WARM + nth, action);
    struct stage s = stage_open_with(faults, deadline_ns);
    bh_buffer *outs[COUNT];
    bh_event *events[COUNT];
    for (int i = 0; i < COUNT; i++) {
        outs[i] = fx_words(s.context, STAGE_FLOATS, 0);
    }
    for (int i = 0; i < WARM; i++) { /* so that it knows that these are short, and merges them */
        bh_event *warm = ev_square(&s, s.a, s.x, s.y, NULL, 0);
        fx_expect(warm, BH_OK);
    }
    fx_stop(s.pid); /* until all are in the lane */
    for (int i = 0; i < COUNT; i++) {
        events[i] = ev_square(&s, s.a, s.x, outs[i], NULL, 0);
    }
    fx_kill(s.pid, SIGCONT);
    bool recorded = strcmp(point, "after_record") == 0;
    uint64_t culprit = 0;
    int lost = 0;
    for (int i = 0; i < COUNT; i++) {
        bh_verdict verdict = fx_verdict(events[i]);
        verdict = ev_agree(events[i], verdict.status);
        if (verdict.status == BH_OK) {
            ev_ready(events[i]);
            ev_squares(outs[i], 1);
        } else {
            lost++;
            /* After a record it stopped before it began the next one. */
            BHT_EQ(verdict.executed, recorded ? BH_EXECUTED_NO : BH_EXECUTED_UNKNOWN);
            BHT_EQ(verdict.hops, 0);
            BHT_EQ(verdict.worker_pid, s.pid);
            if (!culprit) {
                culprit = verdict.origin;
                BHT_EQ(verdict.event, culprit);
            }
            BHT_EQ(verdict.origin, culprit);
            BHT_EQ(verdict.status, verdict.event == culprit ? cause : BH_WORKER_LOST);
            ev_content_poisoned(outs[i], verdict.status);
        }
    }
    /* Stopped after a record it never gets to the next one, if that was not in the same batch. */
    if (recorded) {
        BHT_LE(lost, cause == BH_DEADLINE ? 1 : 0);
    } else {
        BHT_GE(lost, 1);
    }
    ev_squares(s.x, 0);
    ev_well(&s);
}

TEST(case_49_killed_in_mid_batch) {
    static const int nth[] = {1, 4, 8};
    for (size_t i = 0; i < BHT_COUNT(nth); i++) {
        dies_in_a_batch("started", nth[i], "kill", BH_FOREVER, BH_WORKER_SIGNAL);
        dies_in_a_batch("before_record", nth[i], "kill", BH_FOREVER, BH_WORKER_SIGNAL);
        dies_in_a_batch("after_record", nth[i], "kill", BH_FOREVER, BH_WORKER_SIGNAL);
    }
}

TEST(case_49_stopped_in_mid_batch) {
    dies_in_a_batch("started", 4, "stop", STAGE_DEADLINE_NS, BH_DEADLINE);
    dies_in_a_batch("before_record", 4, "stop", STAGE_DEADLINE_NS, BH_DEADLINE);
    dies_in_a_batch("after_record", 4, "stop", STAGE_DEADLINE_NS, BH_DEADLINE);
}

/* What a worker writes when it records, in its order, without the last store that says that all of
 * it is there: the first |stores| of them. */
static void record_in_part(struct bhi_progress *progress, int stores) {
    const struct bhi_result whole = {.seq = 1, .status = BH_OK, .executed = BH_EXECUTED_YES};
    bhi_progress_result(progress, &whole, &(struct bhi_why){.text = "half of a text"});
    if (stores > 1) {
        atomic_store(&progress->header->tail, 8);
    }
    if (stores > 2) {
        atomic_store(&progress->header->completed_word, 1);
    }
    if (stores > 3) {
        atomic_store(&progress->markers->completed, 1);
    }
    bhi_progress_wake(progress);
}

/* Half a record is there, and nothing that says that it is whole. */
TEST(case_49_killed_in_mid_record) {
    for (int stores = 1; stores <= 4; stores++) {
        struct stage s = stage_open();
        struct bhi_progress progress = fx_progress();
        fx_stop(s.pid);
        record_in_part(&progress, stores);
        BHT_EQ(bh_event_wait(s.bad, FX_MS), BH_TIMEOUT);
        fx_kill(s.pid, SIGKILL);
        bh_verdict verdict = ev_poisoned(s.bad, BH_WORKER_SIGNAL, s.bad, 0, BH_EXECUTED_UNKNOWN);
        BHT_TRUE(!strstr(verdict.message, "half"));
        BHT_EQ(verdict.command_index, 0);
        ev_content_poisoned(s.gate, BH_WORKER_SIGNAL);
        ev_well(&s);
        bhi_progress_unmap(&progress);
        bh_context_destroy(s.context);
    }
}

/* Published, and torn all the same: no honest worker does that. */
TEST(case_49_a_torn_record_is_no_data) {
    struct stage s = stage_open();
    bh_event *behind = ev_square(&s, s.a, s.x, s.y, NULL, 0);
    struct bhi_progress progress = fx_progress();
    fx_stop(s.pid);
    struct bhi_result torn = {.seq = 1, .status = 0x00FF00FF, .executed = 0x7F};
    bhi_progress_result(&progress, &torn, &(struct bhi_why){.text = "\x1b[31m torn \xff"});
    bhi_progress_publish(&progress, 1, atomic_load(&progress.header->tail));
    bhi_progress_wake(&progress);
    bh_verdict verdict = ev_poisoned(s.bad, BH_PROTOCOL, s.bad, 0, BH_EXECUTED_UNKNOWN);
    BHT_STR_HAS(verdict.message, "malformed");
    /* It may have run what was behind, whatever it says: that is lost, and does not run twice. */
    verdict = ev_poisoned(behind, BH_WORKER_LOST, s.bad, 0, BH_EXECUTED_UNKNOWN);
    BHT_STR_HAS(verdict.message, "malformed");
    ev_well(&s);
    bhi_progress_unmap(&progress);
}

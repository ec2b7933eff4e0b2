/* Copies of the library's own in the core, by hand. */
#include "stage.h"

static bool seen; /* a caller sees the next copy's event */

/* Submits a copy of content that |content_of| wrote; 0: no caller's. */
static struct bh_event *copy(struct line *line, struct bh_event *after, uint64_t content_of) {
    struct bhi_submission *submission = make(line);
    submission->event->library = !seen;
    submission->event->content_of = content_of;
    submission->deadline_ns = 1000;
    submission->repeat = BHI_REPEAT_ALWAYS;
    submission->failure_reported = !seen;
    return enqueue(submission, after, NULL);
}

/* The worker has begun the next |begun| in its lane, and dies of |status|; another one takes over.
 * |late|: it was killed at the deadline of |late|. */
static void die_of(struct line *line, unsigned begun, bh_status status,
                   const struct bh_event *late) {
    struct bhi_death death = {.outcome = BHI_OUTCOME_INIT};
    death.outcome.status = status;
    death.outcome.signal = 9;
    death.outcome.message = "worker 7 was killed";
    death.snapshot.started = line->worker.harvested + begun;
    death.snapshot.marker = (uint32_t)line->worker.harvested;
    if (late) {
        bhi_core_worker_kill(&line->worker, BHI_KILL_DEADLINE, late->id, "late");
    }
    (void)bhi_core_worker_died(&line->worker, &death);
    next_worker(line);
}

static void die(struct line *line, unsigned begun, const struct bh_event *late) {
    die_of(line, begun, late ? BH_DEADLINE : BH_WORKER_SIGNAL, late);
}

/* D2: the worker dies in the copies between a producer and its consumer. They are made again, in
 * order, and nobody is poisoned; nor does that cost the stream anything. */
TEST(test_a_copy_runs_again) {
    struct bh_event *producer = submit(&a, NULL, NULL);
    result(&a, BH_OK);
    struct bh_event *down = copy(&a, producer, producer->id);
    struct bh_event *up = copy(&b, down, producer->id);
    struct bh_event *consumer = submit(&b, up, NULL);
    for (int i = 0; i < 3; i++) {
        die(&a, 1, NULL);
    }
    BHT_EQ(a.stream.restart.losses, 0);
    BHT_EQ(bhi_event_state(consumer), BH_EVENT_PENDING);
    result(&a, BH_OK);
    die(&b, 1, up);
    result(&b, BH_OK);
    result(&b, BH_OK);
    BHT_EQ(bhi_event_state(up), BH_EVENT_READY);
    BHT_EQ(bhi_event_state(consumer), BH_EVENT_READY);
}

/* What a helper does for a call runs again after the death of its zygote, also with a copy behind it. */
TEST(test_a_helpers_work_before_a_copy) {
    struct bh_event *work = submit(&a, NULL, NULL);
    work->submission->repeat = BHI_REPEAT_VICTIM;
    struct bh_event *behind = copy(&a, NULL, 0);
    die_of(&a, 2, BH_ZYGOTE_LOST, NULL);
    BHT_EQ(bhi_event_state(work), BH_EVENT_PENDING);
    result(&a, BH_OK);
    result(&a, BH_OK);
    BHT_EQ(bhi_event_state(work), BH_EVENT_READY);
    BHT_EQ(bhi_event_state(behind), BH_EVENT_READY);
}

/* The same with a caller's submission behind it, which the worker had begun: that one is lost. */
TEST(test_a_helpers_work_before_a_callers) {
    struct bh_event *work = submit(&a, NULL, NULL);
    work->submission->repeat = BHI_REPEAT_VICTIM;
    struct bh_event *behind = submit(&a, NULL, NULL);
    die_of(&a, 2, BH_ZYGOTE_LOST, NULL);
    BHT_EQ(behind->verdict.status, BH_ZYGOTE_LOST);
    result(&a, BH_OK);
    BHT_EQ(bhi_event_state(work), BH_EVENT_READY);
}

/* A helper that dies by itself may do so of what it was given: the call is told. */
TEST(test_a_helpers_own_death_ends_its_work) {
    struct bh_event *work = submit(&a, NULL, NULL);
    work->submission->repeat = BHI_REPEAT_VICTIM;
    die(&a, 1, NULL);
    BHT_EQ(work->verdict.status, BH_WORKER_SIGNAL);
    BHT_EQ(work->verdict.blame, BH_BLAME_CERTAIN);
}

/* E9: nobody is to blame if a zygote dies, and that costs the stream nothing. The deaths are counted
 * all the same, of copies and of helpers' work: what no zygote survives must end. */
TEST(test_deaths_of_zygotes_are_counted) {
    for (enum bhi_repeat kind = BHI_REPEAT_VICTIM; kind <= BHI_REPEAT_ALWAYS; kind++) {
        again();
        struct bh_event *work =
            kind == BHI_REPEAT_ALWAYS ? copy(&a, NULL, 0) : submit(&a, NULL, NULL);
        work->submission->repeat = kind;
        int deaths = 0;
        for (; bhi_event_state(work) == BH_EVENT_PENDING && deaths < 100; deaths++) {
            die_of(&a, 1, BH_ZYGOTE_LOST, NULL);
            BHT_EQ(a.stream.restart.losses, 0);
        }
        BHT_EQ(deaths, 8);
        BHT_EQ(work->verdict.status, BH_ZYGOTE_LOST);
        BHT_EQ(work->verdict.blame, BH_BLAME_NONE);
    }
}

/* A worker that says it has begun a submission behind a copy loses it: it is its own origin, since
 * nobody can look up the copy. |given_up|: that is the copy's last chance. */
static void lose_behind_a_copy(bool given_up) {
    again();
    struct bh_event *first = copy(&a, NULL, 0);
    struct bh_event *behind = submit(&a, NULL, NULL);
    for (int i = 0; given_up && i < 7; i++) {
        die(&a, 1, NULL);
    }
    die(&a, 2, NULL);
    BHT_EQ(behind->verdict.status, BH_WORKER_LOST);
    BHT_EQ(behind->verdict.origin, behind->id);
    BHT_EQ(behind->verdict.hops, 0);
    BHT_STR_HAS(behind->verdict.message, "its worker died while it worked for the library");
    if (!given_up) {
        result(&a, BH_OK);
    }
    BHT_EQ(bhi_event_state(first), given_up ? BH_EVENT_POISONED : BH_EVENT_READY);
}

TEST(test_lost_behind_a_copy) {
    lose_behind_a_copy(false);
    lose_behind_a_copy(true);
}

/* E7, E9: the copy does not survive any worker. The content is lost: the origin is the submission
 * that wrote it, though that was READY, and copies are no hops. Of content that no submission
 * wrote, the origin is who needed it. No kernel is to blame. |late|: each time it took too long. */
static void give_up(bool written, bool late) {
    again();
    struct bh_event *producer = submit(&a, NULL, NULL);
    result(&a, BH_OK);
    struct bh_event *down = copy(&a, producer, written ? producer->id : 0);
    struct bh_event *up = copy(&b, down, written ? producer->id : 0);
    struct bh_event *consumer = submit(&b, up, NULL);
    struct bh_event *next = submit(&c, consumer, NULL);
    int deaths = 0;
    for (; bhi_event_state(down) == BH_EVENT_PENDING && deaths < 100; deaths++) {
        die(&a, 1, late ? down : NULL);
    }
    BHT_EQ(deaths, late ? 2 : 8);
    const bh_status status = late ? BH_DEADLINE : BH_WORKER_SIGNAL;
    BHT_EQ(consumer->verdict.status, written ? status : BH_WORKER_LOST);
    BHT_EQ(consumer->verdict.origin, written ? producer->id : consumer->id);
    BHT_EQ(consumer->verdict.hops, written ? 1 : 0);
    BHT_EQ(consumer->verdict.other_causes, 0);
    BHT_EQ(consumer->verdict.blame, BH_BLAME_NONE);
    BHT_EQ(consumer->verdict.executed, BH_EXECUTED_NO);
    BHT_STR_EQ(strstr(consumer->verdict.message, "a copy"), /* once, of however many copies */
               "a copy of the content failed: worker 7 was killed");
    BHT_EQ(next->verdict.origin, consumer->verdict.origin);
    BHT_EQ(next->verdict.hops, written ? 2 : 1);
    BHT_STR_HAS(next->verdict.message, "a copy of the content failed: worker 7 was killed");
    /* Another copy of it that fails is the same cause. */
    struct bh_event *another = copy(&a, producer, written ? producer->id : 0);
    result(&a, BH_VULKAN);
    struct bh_event *both = submit(&b, another, down);
    BHT_EQ(both->verdict.origin, written ? producer->id : both->id);
    BHT_EQ(both->verdict.other_causes, 0);
}

TEST(test_lost_content) {
    give_up(true, false);
    give_up(true, true);
    give_up(false, false);
    give_up(false, true);
}

/* D5: the device is lost in a copy. The worker's results end there, whatever it says it had begun,
 * and the copy is made again, but not for ever. What is behind it runs then. */
TEST(test_a_copy_loses_the_device) {
    struct bh_event *down = copy(&a, NULL, 0);
    struct bh_event *behind = submit(&a, NULL, NULL);
    int losses = 0;
    for (; bhi_event_state(down) == BH_EVENT_PENDING && losses < 100; losses++) {
        BHT_TRUE(!ends(&a, (struct bhi_outcome){.status = BH_DEVICE_LOST}));
        BHT_EQ(a.worker.life.kill, BHI_KILL_LOST);
        BHT_EQ(fake.kills, losses + 1);
        die(&a, 0, NULL);
    }
    BHT_EQ(losses, 8);
    result(&a, BH_OK);
    BHT_EQ(bhi_event_state(behind), BH_EVENT_READY);
}

/* A submission that runs already loses both copies that it needs: that is one cause. */
TEST(test_two_lost_copies) {
    fake.late = true;
    struct bh_event *one = copy(&a, NULL, 0), *two = copy(&a, NULL, 0);
    struct bh_event *needs = submit(&a, one, two);
    result(&a, BH_VULKAN);
    result(&a, BH_VULKAN);
    result(&a, BH_OK);
    BHT_EQ(needs->verdict.origin, needs->id);
    BHT_EQ(needs->verdict.other_causes, 0);
}

/* E4, E5: a copy serves others, too. So it is no business of a strict stream that has failed, nor
 * of a cancel of all that the caller has submitted. */
TEST(test_a_copy_is_not_the_streams) {
    a.stream.strict = true;
    copy(&a, NULL, 0);
    submit(&a, NULL, NULL);
    result(&a, BH_OK);
    struct bh_event *between = copy(&a, NULL, 0);
    result(&a, BH_VULKAN);
    struct bh_event *behind = copy(&a, NULL, 0);
    BHT_EQ(behind->submission->state, BHI_RELEASED);
    struct bh_event *strict = submit(&a, NULL, NULL);
    BHT_EQ(strict->verdict.status, BH_STREAM_FAILED);
    bhi_stream_cancel(&a.stream);
    result(&a, BH_OK);
    result(&a, BH_OK);
    BHT_EQ(bhi_event_state(between), BH_EVENT_READY);
    BHT_EQ(bhi_event_state(behind), BH_EVENT_READY);
}

/* The load of an array ends with a copy whose event a caller has: a cancel of the stream cancels it,
 * it fails a strict stream, and with one. Its worker's death is still survived. */
TEST(test_a_copy_that_a_caller_sees_is_the_streams) {
    seen = true;
    a.stream.strict = true;
    struct bh_event *load = copy(&a, NULL, 0);
    die(&a, 1, NULL);
    BHT_EQ(load->submission->state, BHI_RELEASED);
    bhi_stream_cancel(&a.stream);
    BHT_EQ(load->verdict.status, BH_CANCELLED);
    struct bh_event *behind = copy(&a, NULL, 0);
    BHT_EQ(behind->verdict.status, BH_STREAM_FAILED);
    BHT_EQ(behind->verdict.origin, load->id);
    seen = false;
}

/* E7: a copy that is doomed, and is left to its worker, which is to die, does not run again. That its
 * worker dies, or loses its device, is one more cause. */
TEST(test_a_doomed_copy_does_not_run_again) {
    for (int lost = 0; lost < 2; lost++) {
        again();
        struct bh_event *doomed = copy(&a, submit(&a, NULL, NULL), 0);
        bhi_core_worker_kill(&a.worker, BHI_KILL_RETIRED, 0, "as the test says");
        result(&a, BH_VULKAN);
        BHT_TRUE(doomed->submission->doomed && !doomed->submission->skip_requested);
        if (lost) {
            BHT_TRUE(ends(&a, (struct bhi_outcome){.status = BH_DEVICE_LOST}));
        } else {
            die(&a, 1, NULL);
        }
        BHT_EQ(bhi_event_state(doomed), BH_EVENT_POISONED);
        BHT_EQ(doomed->verdict.status, BH_VULKAN);
        BHT_EQ(doomed->verdict.other_causes, 1);
    }
}

/* What had taken too long when its zygote died, and was asked to stop, has a new turn on the next worker,
 * and all of its time. */
TEST(test_a_turn_ends_with_its_worker) {
    struct bh_event *first = copy(&a, NULL, 0), *late = submit(&a, NULL, NULL);
    late->submission->repeat = BHI_REPEAT_VICTIM;
    late->submission->deadline_ns = 1000;
    late->submission->abortable = a.worker.can_abort = true;
    a.stream.grace_ns = 1000000;
    const struct bhi_progress_snapshot merged = {.started = 2, .marker = 1};
    for (int look = 0; look < 2; look++) {
        fake.now_ns += 2000;
        (void)bhi_core_worker_deadline(&a.worker, fake.now_ns, &merged);
        BHT_EQ(fake.aborts, look);
    }
    die_of(&a, 2, BH_ZYGOTE_LOST, NULL);
    BHT_EQ(late->submission->end_requested, BHI_KILL_NONE);
    fake.now_ns += 5000;
    const uint64_t turn_ns = fake.now_ns;
    BHT_TRUE(ends(&a, (struct bhi_outcome){.executed = BH_EXECUTED_YES, .ended_ns = turn_ns}));
    BHT_EQ(bhi_event_state(first), BH_EVENT_READY);
    die(&a, 1, NULL);
    BHT_EQ(late->verdict.status, BH_WORKER_SIGNAL);
    BHT_EQ(late->verdict.started_ns, turn_ns);
}

/* D4: a copy that nobody needs any more, and that its worker has come to. A living worker ends it in
 * peace; after the death of one that was killed it does not run again. */
TEST(test_what_is_let_go) {
    enum { LIVES, DIES, KILLED, ENDS };
    for (int ends = 0; ends < ENDS; ends++) {
        const bool killed = ends == KILLED;
        again();
        struct bh_event *event = copy(&a, NULL, 0);
        const struct bhi_progress_snapshot begun = {.started = 1};
        fake.late = true;
        if (killed) {
            bhi_core_worker_kill(&a.worker, BHI_KILL_RETIRED, 0, "as the test says");
        }
        bhi_submission_let_go(event->submission);
        if (killed) {
            BHT_TRUE(event->submission->cancel_requested);
            die(&a, 1, NULL);
            BHT_EQ(bhi_event_state(event), BH_EVENT_POISONED);
        } else if (ends == DIES) {
            die(&a, 1, NULL);
            BHT_EQ(event->verdict.status, BH_WORKER_SIGNAL); /* it had begun: it is not CANCELLED */
        } else {
            (void)bhi_core_worker_deadline(&a.worker, a.worker.running_since_ns + 1, &begun);
            BHT_EQ(fake.kills + fake.aborts, 0);
            result(&a, BH_OK);
            BHT_EQ(bhi_event_state(event), BH_EVENT_READY);
        }
    }
}

/* E7: of two that are lost with a copy, each by itself, the earlier one is the origin of what needs both. */
TEST(test_the_earlier_of_two_lost_with_a_copy) {
    (void)copy(&a, NULL, 0);
    struct bh_event *earlier = submit(&a, NULL, NULL), *later = submit(&a, NULL, NULL);
    die(&a, 3, NULL);
    BHT_EQ(earlier->verdict.origin, earlier->id);
    BHT_EQ(later->verdict.origin, later->id);
    BHT_EQ(submit(&b, later, earlier)->verdict.origin, earlier->id);
    BHT_EQ(submit(&b, earlier, later)->verdict.origin, earlier->id);
    result(&a, BH_OK);
}

/* E9: of two copies in a lane the death counts against the one that ran. */
TEST(a_death_counts_against_the_running_copy) {
    struct bh_event *first = copy(&a, NULL, 0), *second = copy(&a, NULL, 0);
    dead(&a, BH_WORKER_SIGNAL, "", (struct bhi_progress_snapshot){.started = 2, .marker = 1});
    BHT_EQ(first->submission->deaths, 0);
    BHT_EQ(second->submission->deaths, 1);
    bhi_stream_end_queued(&a.stream, BH_CANCELLED, "");
}

/* E7: a caller whose copy of the library's failed is no culprit: it lost what it needed. That the device
 * is full is its doing, and what was nobody's fault stays so. */
TEST(what_is_inherited_from_a_copy) {
    static const struct {
        bool library, copies, between; /* another one of the library's is between */
        bh_status status, inherits;
    } rows[] = {
        {true, true, false, BH_VULKAN, BH_WORKER_LOST},
        {true, true, true, BH_VULKAN, BH_WORKER_LOST},
        {true, true, false, BH_OUT_OF_DEVICE_MEMORY, BH_OUT_OF_DEVICE_MEMORY},
        {true, true, false, BH_CONTEXT_CLOSED, BH_CONTEXT_CLOSED},
        {true, false, false, BH_VULKAN, BH_VULKAN}, /* no copy */
        {true, false, true, BH_VULKAN, BH_VULKAN},
        {false, false, false, BH_VULKAN, BH_VULKAN},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        again();
        struct bhi_submission *producer = make(&a), *middle = make(&b);
        producer->event->library = rows[i].library;
        producer->repeat = rows[i].copies ? BHI_REPEAT_ALWAYS : BHI_REPEAT_NEVER;
        middle->event->library = true;
        struct bh_event *cause = enqueue(producer, NULL, NULL);
        struct bh_event *between = enqueue(middle, rows[i].between ? cause : NULL, NULL);
        struct bh_event *last = submit(&c, rows[i].between ? between : cause, NULL);
        ends(&a, (struct bhi_outcome){.status = rows[i].status,
                                      .executed = BH_EXECUTED_YES,
                                      .reason = BH_REASON_DEVICE_TIME,
                                      .subject = BH_SUBJECT_BUFFER,
                                      .subject_name = "x"});
        const bool renamed = rows[i].inherits != rows[i].status;
        if (last->verdict.status != rows[i].inherits) {
            BHT_FAIL("row %zu: %s", i, bh_status_name(last->verdict.status));
        }
        BHT_EQ(last->verdict.reason, renamed ? BH_REASON_NONE : BH_REASON_DEVICE_TIME);
        BHT_EQ(last->verdict.subject, renamed ? BH_SUBJECT_NONE : BH_SUBJECT_BUFFER);
        BHT_STR_EQ(last->verdict.subject_name, renamed ? "" : "x");
        BHT_EQ(last->verdict.hops, !rows[i].library);
        BHT_EQ(last->verdict.executed, BH_EXECUTED_NO);
        if (rows[i].between) {
            BHT_EQ(between->verdict.status, rows[i].status);
        } else {
            result(&b, BH_OK);
        }
    }
}

/* Copies of the library's own in the core, by hand. */
#include "stage.h"

static bool seen; /* a caller sees the next copy's event */

/* Submits a copy of content that |content_of| wrote; 0: no caller's. */
static struct bh_event *copy(struct stage *s, struct line *line, struct bh_event *after,
                             uint64_t content_of) {
    struct bhi_submission *submission = malloc(sizeof *submission);
    struct bh_event *event = calloc(1, sizeof *event);
    bhi_event_init(event, &s->core);
    event->id = ++fake.next_id;
    event->library = !seen;
    event->content_of = content_of;
    bhi_submission_init(submission, &line->stream, event);
    submission->deadline_ns = 1000;
    submission->repeat = BHI_REPEAT_ALWAYS;
    submission->failure_reported = !seen;
    bhi_event_ref(event);
    BHT_TRUE(bhi_submission_depend(submission, &after, after ? 1 : 0));
    bhi_submission_enqueue(submission);
    bhi_core_pump(&s->core);
    return event;
}

/* The worker has begun the next |begun| in its lane, and dies of |status|; another one takes over.
 * |late|: it was killed at the deadline of |late|. */
static void die_of(struct stage *s, struct line *line, unsigned begun, bh_status status,
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
    bhi_core_worker_fini(&line->worker);
    bhi_core_worker_init(&line->worker, &s->core);
    bhi_stream_bind(&line->stream, &line->worker);
    bhi_stream_served(&line->stream);
    bhi_core_pump(&s->core);
}

static void die(struct stage *s, struct line *line, unsigned begun, const struct bh_event *late) {
    die_of(s, line, begun, late ? BH_DEADLINE : BH_WORKER_SIGNAL, late);
}

static void drop_all(struct bh_event **events, int count) {
    for (int i = 0; i < count; i++) {
        bhi_event_unref(events[i]);
    }
}

/* D2: the worker dies in the copies between a producer and its consumer. They are made again, in
 * order, and nobody is poisoned; nor does that cost the stream anything. */
TEST(test_a_copy_runs_again) {
    struct stage s;
    set_up(&s);
    struct bh_event *producer = submit(&s, &s.a, NULL, NULL);
    result(&s, &s.a, BH_OK);
    struct bh_event *down = copy(&s, &s.a, producer, producer->id);
    struct bh_event *up = copy(&s, &s.b, down, producer->id);
    struct bh_event *consumer = submit(&s, &s.b, up, NULL);
    for (int i = 0; i < 3; i++) {
        die(&s, &s.a, 1, NULL);
    }
    BHT_EQ(s.a.stream.restart.losses, 0);
    BHT_EQ(bhi_event_state(consumer), BH_EVENT_PENDING);
    result(&s, &s.a, BH_OK);
    die(&s, &s.b, 1, up);
    result(&s, &s.b, BH_OK);
    result(&s, &s.b, BH_OK);
    BHT_EQ(bhi_event_state(up), BH_EVENT_READY);
    BHT_EQ(bhi_event_state(consumer), BH_EVENT_READY);
    struct bh_event *events[] = {producer, down, up, consumer};
    drop_all(events, 4);
    tear_down(&s);
}

/* What a helper does for a call runs again after the death of its zygote, also with a copy behind it. */
TEST(test_a_helpers_work_before_a_copy) {
    struct stage s;
    set_up(&s);
    struct bh_event *work = submit(&s, &s.a, NULL, NULL);
    work->submission->repeat = BHI_REPEAT_VICTIM;
    struct bh_event *behind = copy(&s, &s.a, NULL, 0);
    die_of(&s, &s.a, 2, BH_ZYGOTE_LOST, NULL);
    BHT_EQ(bhi_event_state(work), BH_EVENT_PENDING);
    result(&s, &s.a, BH_OK);
    result(&s, &s.a, BH_OK);
    BHT_EQ(bhi_event_state(work), BH_EVENT_READY);
    BHT_EQ(bhi_event_state(behind), BH_EVENT_READY);
    struct bh_event *events[] = {work, behind};
    drop_all(events, 2);
    tear_down(&s);
}

/* The same with a caller's submission behind it, which the worker had begun: that one is lost. */
TEST(test_a_helpers_work_before_a_callers) {
    struct stage s;
    set_up(&s);
    struct bh_event *work = submit(&s, &s.a, NULL, NULL);
    work->submission->repeat = BHI_REPEAT_VICTIM;
    struct bh_event *behind = submit(&s, &s.a, NULL, NULL);
    die_of(&s, &s.a, 2, BH_ZYGOTE_LOST, NULL);
    BHT_EQ(behind->verdict.status, BH_ZYGOTE_LOST);
    result(&s, &s.a, BH_OK);
    BHT_EQ(bhi_event_state(work), BH_EVENT_READY);
    struct bh_event *events[] = {work, behind};
    drop_all(events, 2);
    tear_down(&s);
}

/* A helper that dies by itself may do so of what it was given: the call is told. */
TEST(test_a_helpers_own_death_ends_its_work) {
    struct stage s;
    set_up(&s);
    struct bh_event *work = submit(&s, &s.a, NULL, NULL);
    work->submission->repeat = BHI_REPEAT_VICTIM;
    die(&s, &s.a, 1, NULL);
    BHT_EQ(work->verdict.status, BH_WORKER_SIGNAL);
    BHT_EQ(work->verdict.blame, BH_BLAME_CERTAIN);
    bhi_event_unref(work);
    tear_down(&s);
}

/* E9: nobody is to blame if a zygote dies, and that costs the stream nothing. The deaths are counted
 * all the same, of copies and of helpers' work: what no zygote survives must end. */
TEST(test_deaths_of_zygotes_are_counted) {
    for (enum bhi_repeat kind = BHI_REPEAT_VICTIM; kind <= BHI_REPEAT_ALWAYS; kind++) {
        struct stage s;
        set_up(&s);
        struct bh_event *work =
            kind == BHI_REPEAT_ALWAYS ? copy(&s, &s.a, NULL, 0) : submit(&s, &s.a, NULL, NULL);
        work->submission->repeat = kind;
        int deaths = 0;
        for (; bhi_event_state(work) == BH_EVENT_PENDING && deaths < 100; deaths++) {
            die_of(&s, &s.a, 1, BH_ZYGOTE_LOST, NULL);
            BHT_EQ(s.a.stream.restart.losses, 0);
        }
        BHT_EQ(deaths, 8);
        BHT_EQ(work->verdict.status, BH_ZYGOTE_LOST);
        BHT_EQ(work->verdict.blame, BH_BLAME_NONE);
        bhi_event_unref(work);
        tear_down(&s);
    }
}

/* A worker that says it has begun a submission behind a copy loses it: it is its own origin, since
 * nobody can look up the copy. |given_up|: that is the copy's last chance. */
static void lose_behind_a_copy(bool given_up) {
    struct stage s;
    set_up(&s);
    struct bh_event *first = copy(&s, &s.a, NULL, 0);
    struct bh_event *behind = submit(&s, &s.a, NULL, NULL);
    for (int i = 0; given_up && i < 7; i++) {
        die(&s, &s.a, 1, NULL);
    }
    die(&s, &s.a, 2, NULL);
    BHT_EQ(behind->verdict.status, BH_WORKER_LOST);
    BHT_EQ(behind->verdict.origin, behind->id);
    BHT_EQ(behind->verdict.hops, 0);
    BHT_STR_HAS(behind->verdict.message, "its worker died while it worked for the library");
    if (!given_up) {
        result(&s, &s.a, BH_OK);
    }
    BHT_EQ(bhi_event_state(first), given_up ? BH_EVENT_POISONED : BH_EVENT_READY);
    struct bh_event *events[] = {first, behind};
    drop_all(events, 2);
    tear_down(&s);
}

TEST(test_lost_behind_a_copy) {
    lose_behind_a_copy(false);
    lose_behind_a_copy(true);
}

/* E7, E9: the copy does not survive any worker. The content is lost: the origin is the submission
 * that wrote it, though that was READY, and copies are no hops. Of content that no submission
 * wrote, the origin is who needed it. No kernel is to blame. |late|: each time it took too long. */
static void give_up(bool written, bool late) {
    struct stage s;
    set_up(&s);
    struct bh_event *producer = submit(&s, &s.a, NULL, NULL);
    result(&s, &s.a, BH_OK);
    struct bh_event *down = copy(&s, &s.a, producer, written ? producer->id : 0);
    struct bh_event *up = copy(&s, &s.b, down, written ? producer->id : 0);
    struct bh_event *consumer = submit(&s, &s.b, up, NULL);
    struct bh_event *next = submit(&s, &s.c, consumer, NULL);
    int deaths = 0;
    for (; bhi_event_state(down) == BH_EVENT_PENDING && deaths < 100; deaths++) {
        die(&s, &s.a, 1, late ? down : NULL);
    }
    BHT_EQ(deaths, late ? 2 : 8);
    const bh_status status = late ? BH_DEADLINE : BH_WORKER_SIGNAL;
    BHT_EQ(consumer->verdict.status, written ? status : BH_WORKER_LOST);
    BHT_EQ(consumer->verdict.origin, written ? producer->id : consumer->id);
    BHT_EQ(consumer->verdict.hops, written ? 1 : 0);
    BHT_EQ(consumer->verdict.other_causes, 0);
    BHT_EQ(consumer->verdict.blame, BH_BLAME_NONE);
    BHT_EQ(consumer->verdict.executed, BH_EXECUTED_NO);
    BHT_STR_HAS(consumer->verdict.message, "a copy of the content failed: worker 7 was killed");
    BHT_EQ(next->verdict.origin, consumer->verdict.origin);
    BHT_EQ(next->verdict.hops, written ? 2 : 1);
    BHT_STR_HAS(next->verdict.message, "a copy of the content failed: worker 7 was killed");
    /* Another copy of it that fails is the same cause. */
    struct bh_event *again = copy(&s, &s.a, producer, written ? producer->id : 0);
    result(&s, &s.a, BH_VULKAN);
    struct bh_event *both = submit(&s, &s.b, again, down);
    BHT_EQ(both->verdict.origin, written ? producer->id : both->id);
    BHT_EQ(both->verdict.other_causes, 0);
    struct bh_event *events[] = {producer, down, up, consumer, next, again, both};
    drop_all(events, 7);
    tear_down(&s);
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
    struct stage s;
    set_up(&s);
    struct bh_event *down = copy(&s, &s.a, NULL, 0);
    struct bh_event *behind = submit(&s, &s.a, NULL, NULL);
    int losses = 0;
    for (; bhi_event_state(down) == BH_EVENT_PENDING && losses < 100; losses++) {
        struct bhi_outcome outcome = BHI_OUTCOME_INIT;
        outcome.status = BH_DEVICE_LOST;
        BHT_TRUE(!bhi_core_worker_result(&s.a.worker, &outcome));
        BHT_EQ(s.a.worker.life.kill, BHI_KILL_LOST);
        BHT_EQ(fake.kills, losses + 1);
        die(&s, &s.a, 0, NULL);
    }
    BHT_EQ(losses, 8);
    result(&s, &s.a, BH_OK);
    BHT_EQ(bhi_event_state(behind), BH_EVENT_READY);
    struct bh_event *events[] = {down, behind};
    drop_all(events, 2);
    tear_down(&s);
}

/* A submission that runs already loses both copies that it needs: that is one cause. */
TEST(test_two_lost_copies) {
    struct stage s;
    set_up(&s);
    fake.late = true;
    struct bh_event *one = copy(&s, &s.a, NULL, 0), *two = copy(&s, &s.a, NULL, 0);
    struct bh_event *needs = submit(&s, &s.a, one, two);
    result(&s, &s.a, BH_VULKAN);
    result(&s, &s.a, BH_VULKAN);
    result(&s, &s.a, BH_OK);
    BHT_EQ(needs->verdict.origin, needs->id);
    BHT_EQ(needs->verdict.other_causes, 0);
    struct bh_event *events[] = {one, two, needs};
    drop_all(events, 3);
    tear_down(&s);
}

/* E4, E5: a copy serves others, too. So it is no business of a strict stream that has failed, nor
 * of a cancel of all that the caller has submitted. */
TEST(test_a_copy_is_not_the_streams) {
    struct stage s;
    set_up(&s);
    s.a.stream.strict = true;
    struct bh_event *before = copy(&s, &s.a, NULL, 0);
    struct bh_event *bad = submit(&s, &s.a, NULL, NULL);
    result(&s, &s.a, BH_OK);
    struct bh_event *between = copy(&s, &s.a, NULL, 0);
    result(&s, &s.a, BH_VULKAN);
    struct bh_event *behind = copy(&s, &s.a, NULL, 0);
    BHT_EQ(behind->submission->state, BHI_RELEASED);
    struct bh_event *strict = submit(&s, &s.a, NULL, NULL);
    BHT_EQ(strict->verdict.status, BH_STREAM_FAILED);
    bhi_stream_cancel(&s.a.stream);
    result(&s, &s.a, BH_OK);
    result(&s, &s.a, BH_OK);
    BHT_EQ(bhi_event_state(between), BH_EVENT_READY);
    BHT_EQ(bhi_event_state(behind), BH_EVENT_READY);
    struct bh_event *events[] = {before, bad, between, behind, strict};
    drop_all(events, 5);
    tear_down(&s);
}

/* The load of an array ends with a copy whose event a caller has: a cancel of the stream cancels it,
 * it fails a strict stream, and with one. Its worker's death is still survived. */
TEST(test_a_copy_that_a_caller_sees_is_the_streams) {
    struct stage s;
    set_up(&s);
    seen = true;
    s.a.stream.strict = true;
    struct bh_event *load = copy(&s, &s.a, NULL, 0);
    die(&s, &s.a, 1, NULL);
    BHT_EQ(load->submission->state, BHI_RELEASED);
    bhi_stream_cancel(&s.a.stream);
    BHT_EQ(load->verdict.status, BH_CANCELLED);
    struct bh_event *behind = copy(&s, &s.a, NULL, 0);
    BHT_EQ(behind->verdict.status, BH_STREAM_FAILED);
    BHT_EQ(behind->verdict.origin, load->id);
    seen = false;
    struct bh_event *events[] = {load, behind};
    drop_all(events, 2);
    tear_down(&s);
}

/* The core by hand, for schedules that real workers take too rarely to be a test: streams, and
 * workers that do as they are told. Each test begins with three of both. */
#ifndef BHT_CORE_STAGE_H
#define BHT_CORE_STAGE_H

#include "core/core.h"
#include "core/submission.h"
#include "core/worker.h"
#include "harness.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Workers that do as they are told: nothing ends but by result(). */
static struct {
    uint64_t now_ns;
    bool late;        /* a worker has always come to what is to be withdrawn */
    int publish;      /* what it returns */
    uint64_t lags_ns; /* after it has published, until it returns */
    bool stopped;     /* somebody has stopped the workers */
    uint64_t cpu_ns;  /* what each worker has used; 0: unknown */
    int kills, aborts, ended, asked, withdrawn, unrefs, written, changed;
    uint64_t armed_ns; /* the earliest look that was asked for */
    uint64_t next_id;
} fake;

static uint64_t now_ns(struct bhi_core *core) {
    (void)core;
    return ++fake.now_ns;
}
static int publish(struct bhi_core_worker *worker, struct bhi_submission *submission,
                   enum bhi_apart apart, uint64_t seq) {
    (void)worker, (void)submission, (void)apart, (void)seq;
    fake.now_ns += fake.lags_ns;
    return fake.publish;
}
static bool withdraw(struct bhi_core_worker *worker, uint64_t seq) {
    (void)worker, (void)seq;
    fake.asked++;
    return !fake.late;
}
static void withdrawn(struct bhi_core_worker *worker, uint64_t seq) {
    (void)worker, (void)seq;
    fake.withdrawn++;
}
static bool stopped(const struct bhi_core_worker *worker) {
    (void)worker;
    return fake.stopped;
}
static uint64_t cpu_ns(const struct bhi_core_worker *worker) {
    (void)worker;
    return fake.cpu_ns;
}
static void kill_worker(struct bhi_core_worker *worker) {
    (void)worker;
    fake.kills++;
}
static void abort_one(struct bhi_core_worker *worker, uint64_t seq) {
    (void)worker, (void)seq;
    fake.aborts++;
}
static void notify(struct bhi_core_worker *worker) {
    (void)worker;
}
static void arm(struct bhi_core *core, uint64_t when_ns) {
    (void)core;
    if (when_ns < fake.armed_ns) {
        fake.armed_ns = when_ns;
    }
}
static void turned(struct bh_event *event) {
    (void)event;
}
static void ended(struct bh_event *event) {
    (void)event;
    fake.ended++;
}
static void free_event(struct bh_event *event) {
    free(event);
}
static void name_kernel(const struct bhi_submission *submission, uint32_t command_index,
                        bh_verdict *verdict) {
    (void)submission, (void)command_index, (void)verdict;
}
static void free_submission(struct bhi_submission *submission) {
    free(submission);
}
static void unref_buffer(struct bhi_content *content) {
    (void)content;
    fake.unrefs++;
}
static void writes_on(struct bhi_core_worker *worker, struct bhi_content *content) {
    (void)worker, (void)content;
    fake.written++;
}
static void stream_port(struct bhi_core_stream *stream) {
    (void)stream;
}
static void stream_changed(struct bhi_core_stream *stream) {
    (void)stream;
    fake.changed++;
}

static bool refuse(const struct bhi_submission *submission, struct bhi_outcome *out) {
    (void)submission, (void)out;
    return false;
}

static bool on_trial(const struct bhi_submission *submission) {
    (void)submission;
    return false;
}

static const struct bhi_core_ops ops = {
    .now_ns = now_ns,
    .publish = publish,
    .withdraw = withdraw,
    .withdrawn = withdrawn,
    .stopped = stopped,
    .cpu_ns = cpu_ns,
    .kill = kill_worker,
    .abort = abort_one,
    .notify = notify,
    .arm = arm,
    .turned = turned,
    .ended = ended,
    .free_event = free_event,
    .name_kernel = name_kernel,
    .free_submission = free_submission,
    .unref_buffer = unref_buffer,
    .writes_on = writes_on,
    .unref_stream = stream_port,
    .ref_stream = stream_port,
    .stream_changed = stream_changed,
    .refuse = refuse,
    .on_trial = on_trial,
};

static struct bhi_core core;
static struct line { /* a stream and its worker */
    struct bhi_core_stream stream;
    struct bhi_core_worker worker;
} a, b, c;
static struct bh_event *held[128]; /* referenced: all that were submitted */
static int held_count;
static uint64_t next_deadline_ns;

static void set_up(void) {
    memset(&fake, 0, sizeof fake);
    held_count = 0;
    next_deadline_ns = BH_FOREVER;
    bhi_core_init(&core, &ops);
    struct line *lines[] = {&a, &b, &c};
    for (int i = 0; i < 3; i++) {
        struct line *line = lines[i];
        memset(line, 0xb5, sizeof *line);
        bhi_stream_init(&line->stream, &core, 16, 1000000);
        bhi_core_worker_init(&line->worker, &core);
        bhi_stream_bind(&line->stream, &line->worker);
        bhi_stream_served(&line->stream);
    }
}

static void tear_down(void) {
    for (int i = 0; i < held_count; i++) {
        bhi_event_unref(held[i]);
    }
    struct line *lines[] = {&a, &b, &c};
    for (int i = 0; i < 3; i++) {
        bhi_stream_fini(&lines[i]->stream);
        bhi_core_worker_fini(&lines[i]->worker);
    }
}

BHT_AT_START(bht_around(set_up, tear_down))

/* For the next row of a table. */
static inline void again(void) {
    tear_down();
    set_up();
}

static struct bhi_submission *make(struct line *line) {
    struct bhi_submission *submission = malloc(sizeof *submission);
    struct bh_event *event = malloc(sizeof *event);
    BHT_TRUE(submission && event && held_count < (int)BHT_COUNT(held));
    /* Fresh memory is not zero. */
    memset(submission, 0xb5, sizeof *submission);
    memset(event, 0xb5, sizeof *event);
    bhi_event_init(event, &core);
    event->id = ++fake.next_id;
    bhi_submission_init(submission, &line->stream, event);
    submission->deadline_ns = next_deadline_ns;
    bhi_event_ref(event);
    held[held_count++] = event;
    return submission;
}

static struct bh_event *enqueue(struct bhi_submission *submission, struct bh_event *first,
                                struct bh_event *second) {
    struct bh_event *waits[] = {first, second}, *event = submission->event;
    BHT_TRUE(bhi_submission_depend(submission, waits, !first ? 0 : !second ? 1 : 2));
    bhi_submission_enqueue(submission);
    bhi_core_pump(&core);
    return event;
}

/* Submits to a line, waiting for up to two events. */
static struct bh_event *submit(struct line *line, struct bh_event *first, struct bh_event *second) {
    return enqueue(make(line), first, second);
}

/* The worker says how its next one ended. Returns whether it is believed. */
static bool ends(struct line *line, struct bhi_outcome outcome) {
    outcome.exit_code = -1;
    outcome.command_index = BH_NO_COMMAND;
    const bool believed = bhi_core_worker_result(&line->worker, &outcome);
    bhi_core_worker_settle(&line->worker);
    bhi_core_pump(&core);
    return believed;
}

static void result(struct line *line, bh_status status) {
    while (bhi_core_worker_skip(&line->worker))
        ;
    BHT_TRUE(ends(line, (struct bhi_outcome){.status = status, .executed = BH_EXECUTED_YES}));
}

/* Its worker is gone, and another one takes over. */
static inline void next_worker(struct line *line) {
    bhi_core_worker_fini(&line->worker);
    memset(&line->worker, 0xb5, sizeof line->worker);
    bhi_core_worker_init(&line->worker, &core);
    bhi_stream_bind(&line->stream, &line->worker);
    bhi_stream_served(&line->stream);
    bhi_core_pump(&core);
}

/* Its worker is dead of |status|, which |text| explains. */
static inline bool dead(struct line *line, bh_status status, const char *text,
                        struct bhi_progress_snapshot snapshot) {
    struct bhi_death death = {.outcome = BHI_OUTCOME_INIT, .snapshot = snapshot};
    death.outcome.status = status;
    death.outcome.message = text;
    return bhi_core_worker_died(&line->worker, &death);
}

#endif

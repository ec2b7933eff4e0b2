#include "core/crew.h"
#include "base/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define SKIP_NS        (5000ull * 1000000) /* for a lane full of withdrawn ones */
#define MARKER_LOOK_NS (5ull * 1000000)    /* between two looks at the marker, at least */

void bhi_crew_init(struct bhi_crew *crew, struct bhi_core *core) {
    *crew = (struct bhi_crew){.core = core};
    bhi_list_init(&crew->inflight);
}

void bhi_crew_fini(struct bhi_crew *crew) {
    BHI_CHECK(bhi_list_empty(&crew->inflight));
    bhi_idset_fini(&crew->withdrawn);
}

void bhi_crew_kill(struct bhi_crew *crew, enum bhi_kill reason, uint64_t event, const char *format,
                   ...) {
    if (crew->kill == BHI_KILL_NONE) {
        crew->kill = reason;
        crew->kill_event = event;
        va_list args;
        va_start(args, format);
        vsnprintf(crew->kill_text, sizeof crew->kill_text, format, args);
        va_end(args);
    }
    crew->core->ports->kill(crew);
}

void bhi_crew_liar(struct bhi_crew *crew, const char *what) {
    crew->lied = true;
    bhi_crew_kill(crew, BHI_KILL_PROTOCOL, 0, "%s", what);
}

/* -- the lane --------------------------------------------------------------------------------- */

static struct bhi_submission *head_of(const struct bhi_crew *crew) {
    return BHI_CONTAINER(crew->inflight.next, struct bhi_submission, link);
}

static uint64_t after_ns(uint64_t since_ns, uint64_t ns) {
    return ns == BH_FOREVER || since_ns + ns < since_ns ? BH_FOREVER : since_ns + ns;
}

/* When something has to be done about |running|. |limit_ns|: how long it may take. */
static uint64_t due_ns(const struct bhi_crew *crew, const struct bhi_submission *running,
                       uint64_t limit_ns) {
    if (running->asked)
        return after_ns(crew->asked_ns, crew->stream->grace_ns);
    return running->cancelled ? 0 : after_ns(crew->running_since_ns, limit_ns);
}

/* Nobody knows yet whether it compiles or runs. */
static uint64_t shorter_ns(const struct bhi_crew *crew, const struct bhi_submission *submission) {
    uint64_t compile_ns = crew->stream->compile_deadline_ns;
    return submission->deadline_ns < compile_ns ? submission->deadline_ns : compile_ns;
}

/* When to look again, if there is something to do about |running| at |look|. What comes behind it
 * may begin without anybody being told, where they share a queue submission: its time runs from the
 * look that sees it, so that look must not be late. */
static uint64_t look_ns(const struct bhi_crew *crew, const struct bhi_submission *running,
                        uint64_t look, uint64_t now_ns) {
    if ((crew->shortest_ns == BH_FOREVER && !crew->cancels) ||
        crew->inflight.prev == &running->link)
        return look;
    uint64_t pause = crew->shortest_ns / 8;
    if (crew->cancels || pause < MARKER_LOOK_NS)
        pause = MARKER_LOOK_NS;
    return now_ns + pause < look ? now_ns + pause : look;
}

static void arm(struct bhi_crew *crew, uint64_t now_ns) {
    const struct bhi_submission *head = head_of(crew);
    uint64_t due = due_ns(crew, head, shorter_ns(crew, head));
    crew->core->ports->arm(crew->core, look_ns(crew, head, due, now_ns));
}

static enum bhi_apart apart_of(const struct bhi_submission *submission) {
    enum bhi_apart apart = submission->stream->apart;
    if (submission->apart > apart)
        apart = submission->apart;
    if (apart == BHI_APART_NOT && submission->stream->core->ports->on_trial(submission))
        apart = BHI_APART_CODE;
    return apart;
}

static enum bhi_publish release(struct bhi_crew *crew, struct bhi_submission *submission,
                                enum bhi_apart apart) {
    struct bhi_core *core = crew->core;
    enum bhi_publish result = core->ports->publish(crew, submission, crew->published + 1);
    if (result != BHI_PUBLISHED)
        return result;
    bool first = bhi_list_empty(&crew->inflight);
    bool second = !first && crew->inflight.next == crew->inflight.prev;
    bhi_past_add(&crew->past, submission, apart, first);
    bhi_list_remove(&submission->link);
    bhi_list_append(&crew->inflight, &submission->link);
    submission->state = BHI_RELEASED;
    submission->crew = crew;
    submission->seq = ++crew->published;
    submission->released_ns = core->ports->now_ns(core);
    if (first) {
        crew->running_since_ns = submission->released_ns;
        crew->marker_seen = crew->harvested;
        crew->shortest_ns = BH_FOREVER;
    }
    uint64_t limit_ns = shorter_ns(crew, submission);
    bool shorter = limit_ns < crew->shortest_ns;
    if (shorter)
        crew->shortest_ns = limit_ns;
    /* While there was one alone nobody had to look whether the next has begun. */
    if (shorter || (second && crew->shortest_ns != BH_FOREVER))
        arm(crew, submission->released_ns);
    core->ports->turned(submission->event);
    return BHI_PUBLISHED;
}

/* The machine has nothing left for it, and no worker is to blame. */
static void refuse(struct bhi_submission *submission, enum bhi_publish why) {
    struct bhi_core *core = submission->stream->core;
    struct bhi_outcome outcome = BHI_OUTCOME_INIT;
    const bool memory = why == BHI_PUBLISH_NO_MEMORY;
    outcome.status = memory ? BH_NO_MEMORY : BH_SYSTEM;
    outcome.sys_errno = memory ? 0 : EMFILE;
    outcome.executed = BH_EXECUTED_NO;
    outcome.ended_ns = core->ports->now_ns(core);
    outcome.message = memory ? bh_status_text(BH_NO_MEMORY)
                             : "no descriptor is left for what its worker is handed";
    bhi_submission_end(submission, &outcome);
}

/* What comes next is for another worker: this one is replaced once its lane is empty. Planned, and
 * nobody's fault. */
static void make_way(struct bhi_crew *crew) {
    if (!bhi_list_empty(&crew->inflight)) {
        crew->backlog = true;
        crew->core->ports->notify(crew);
        return;
    }
    bhi_crew_kill(crew, BHI_KILL_RETIRED, 0, "what comes next is not for it");
}

void bhi_crew_fill(struct bhi_core_stream *stream) {
    struct bhi_crew *crew = stream->crew;
    const struct bhi_ports *ports = stream->core->ports;
    if (stream->state != BHI_STREAM_SERVED || crew->kill != BHI_KILL_NONE)
        return;
    ports->ref_stream(stream);
    crew->backlog = false;
    while (!bhi_list_empty(&stream->queue)) {
        struct bhi_submission *next =
            BHI_CONTAINER(stream->queue.next, struct bhi_submission, link);
        if (next->holds)
            break; /* what comes after it waits too: a stream is in order */
        struct bhi_outcome refusal;
        if (ports->refuse(next, &refusal)) {
            bhi_submission_end(next, &refusal);
            continue;
        }
        const enum bhi_apart apart = apart_of(next);
        if (!bhi_past_suits(&crew->past, next, apart, bhi_list_empty(&crew->inflight))) {
            make_way(crew);
            break;
        }
        next->notify |= stream->apart == BHI_APART_ALL; /* its worker is replaced then */
        enum bhi_publish result = release(crew, next, apart);
        if (result == BHI_LANE_FULL) {
            crew->backlog = true;
            ports->notify(crew);
            if (bhi_list_empty(&crew->inflight)) /* all of it is withdrawn: see check_idle */
                ports->arm(crew->core, crew->running_since_ns + SKIP_NS);
            break;
        }
        if (result != BHI_PUBLISHED)
            refuse(next, result);
    }
    ports->unref_stream(stream);
}

bool bhi_crew_withdraw(struct bhi_crew *crew, struct bhi_submission *submission) {
    if (crew->dead || crew->lied || crew->kill != BHI_KILL_NONE || submission->withdrawn ||
        !bhi_idset_reserve(&crew->withdrawn, 1))
        return false;
    submission->withdrawn = true;
    if (!crew->core->ports->withdraw(crew, submission->seq))
        return false;
    bhi_idset_add(&crew->withdrawn, submission->seq);
    /* The turn of the next one comes only now: the time of this one is not its. */
    if (submission == head_of(crew)) {
        crew->running_since_ns = crew->core->ports->now_ns(crew->core);
        crew->core->ports->arm(crew->core, 0); /* for its deadline, which nobody waited for */
    }
    return true;
}

/* -- results ---------------------------------------------------------------------------------- */

void bhi_crew_hasten(struct bhi_crew *crew, struct bhi_submission *submission) {
    if (!submission->hastened)
        crew->cancels++;
    submission->hastened = true;
    crew->core->ports->arm(crew->core, 0);
}

bool bhi_crew_skip(struct bhi_crew *crew) {
    if (!bhi_idset_remove(&crew->withdrawn, crew->harvested + 1))
        return false;
    crew->harvested++;
    crew->core->ports->withdrawn(crew, crew->harvested);
    crew->running_since_ns = crew->core->ports->now_ns(crew->core);
    return true;
}

/* "100 ms", or where that is not the whole of it "100000001 ns". */
static const char *in_words(uint64_t ns, char text[32]) {
    bool whole_ms = ns % 1000000 == 0;
    snprintf(text, 32, "%llu %s", (unsigned long long)(ns / (whole_ms ? 1000000 : 1)),
             whole_ms ? "ms" : "ns");
    return text;
}

/* It has ended |submission| as it was told to: the verdict says why it was told. */
static void aborted(const struct bhi_crew *crew, const struct bhi_submission *submission,
                    struct bhi_outcome *outcome, char message[160]) {
    char limit[32];
    *outcome = (struct bhi_outcome){.status = BH_DEADLINE,
                                    .executed = BH_EXECUTED_UNKNOWN,
                                    .exit_code = -1,
                                    .command_index = BH_NO_COMMAND,
                                    .worker_pid = crew->pid,
                                    .started_ns = outcome->started_ns,
                                    .ended_ns = outcome->ended_ns,
                                    .message = message};
    /* A worker on a busy machine begins late what is its turn: that was a part of the time. */
    if (submission->turn_ns < outcome->started_ns)
        outcome->started_ns = submission->turn_ns;
    if (submission->asked == BHI_KILL_CANCEL) {
        outcome->status = BH_CANCELLED;
        snprintf(message, 160, "cancelled while it ran; worker %d has ended it, and goes on",
                 crew->pid);
    } else {
        outcome->limit = submission->deadline_ns;
        const uint64_t told_ns = after_ns(submission->turn_ns, submission->deadline_ns);
        if (outcome->ended_ns < told_ns) /* its own clock */
            outcome->ended_ns = told_ns;
        snprintf(message, 160, "its deadline of %s passed; worker %d has ended it, and goes on",
                 in_words(submission->deadline_ns, limit), crew->pid);
    }
}

bool bhi_crew_result(struct bhi_crew *crew, struct bhi_outcome *outcome) {
    struct bhi_submission *submission = head_of(crew);
    char message[160];
    BHI_CHECK(!bhi_list_empty(&crew->inflight) && submission->seq == crew->harvested + 1);
    if (submission->withdrawn)
        crew->core->ports->withdrawn(crew, submission->seq);
    if (outcome->status == BH_CANCELLED && !submission->withdrawn) {
        bhi_crew_liar(crew, "it skipped what nobody had cancelled");
        return false;
    }
    if (outcome->status == BH_DEADLINE && !submission->asked) {
        bhi_crew_liar(crew, "it ended what nobody had told it to end");
        return false;
    }
    crew->harvested++;
    if (outcome->started_ns < submission->released_ns)
        outcome->started_ns = submission->released_ns;
    if (outcome->ended_ns < outcome->started_ns)
        outcome->ended_ns = outcome->started_ns;
    if (crew->running_since_ns < outcome->ended_ns) /* a later one may have been seen to begin */
        crew->running_since_ns = outcome->ended_ns;
    if (outcome->status == BH_CANCELLED) {
        bhi_submission_end_unstarted(submission, BH_CANCELLED, BHI_CANCELLED_UNSTARTED, crew->pid);
        return true;
    }
    if (outcome->status == BH_DEADLINE)
        aborted(crew, submission, outcome, message);
    outcome->blame = bhi_past_blame(&crew->past, submission, outcome->status);
    if (crew->stream)
        crew->stream->restart.productive = true;
    bhi_submission_end(submission, outcome);
    return true;
}

void bhi_crew_settle(struct bhi_crew *crew) {
    const struct bhi_ports *ports = crew->core->ports;
    if (!bhi_list_empty(&crew->inflight)) {
        const struct bhi_submission *head = head_of(crew);
        if (crew->running_since_ns < head->released_ns)
            crew->running_since_ns = head->released_ns;
        if (head->cancelled || crew->cancels || crew->shortest_ns != BH_FOREVER)
            arm(crew, ports->now_ns(crew->core));
    }
    if (crew->backlog && crew->stream)
        bhi_stream_wants_pump(crew->stream);
    /* Its successor need not wait for the next submission, nor this one live until then. */
    if (crew->stream && crew->stream->apart == BHI_APART_ALL && crew->past.used &&
        bhi_list_empty(&crew->inflight) && crew->kill == BHI_KILL_NONE)
        make_way(crew);
}

/* -- deadlines -------------------------------------------------------------------------------- */

/* All that is in the lane has been withdrawn: the worker has to skip it, and there is nobody whose
 * deadline it would be if it did not. */
static uint64_t check_idle(struct bhi_crew *crew, uint64_t now_ns) {
    if (!crew->withdrawn.count || !crew->backlog)
        return BH_FOREVER;
    uint64_t due = crew->running_since_ns + SKIP_NS;
    if (due > now_ns)
        return due;
    bhi_crew_kill(crew, BHI_KILL_DEADLINE, 0, "it does not take what was withdrawn");
    return BH_FOREVER;
}

/* Which of those in flight the device works on. Several can share one queue submission, and then
 * one completion record; the device's own marker tells them apart. *out_reached: how far it is. */
static struct bhi_submission *running_of(const struct bhi_crew *crew, const struct bhi_sight *sight,
                                         uint64_t *out_reached) {
    uint32_t moved = sight->marker - (uint32_t)crew->harvested;
    *out_reached = crew->harvested + (moved <= BHI_MERGED_AT_MOST ? moved : 0);
    struct bhi_submission *running = head_of(crew);
    BHI_LIST_EACH(node, &crew->inflight) {
        struct bhi_submission *submission = BHI_CONTAINER(node, struct bhi_submission, link);
        if (submission != running && submission->seq > sight->started)
            break; /* all that was started is done, and not recorded: the last of it lingers */
        running = submission;
        if (submission->seq > *out_reached)
            break;
    }
    return running;
}

/* Does it still compile |running|? The time to run begins at the look that sees that it does not,
 * and only once. */
static bool compiling(struct bhi_crew *crew, const struct bhi_submission *running,
                      const struct bhi_sight *sight, uint64_t now_ns) {
    if (sight->compiles != running->seq || crew->compiled == running->seq)
        return false;
    if (!sight->compiled)
        return true;
    crew->compiled = running->seq;
    crew->running_since_ns = now_ns;
    return false;
}

static void kill_for(struct bhi_crew *crew, const struct bhi_submission *running, bool compiles) {
    enum bhi_kill reason = running->asked       ? running->asked
                           : running->cancelled ? BHI_KILL_CANCEL
                           : compiles           ? BHI_KILL_COMPILE
                                                : BHI_KILL_DEADLINE;
    char limit[32], grace[32], late[96] = "";
    if (running->asked)
        snprintf(late, sizeof late, "%s it did not end within %s of being told to",
                 reason == BHI_KILL_CANCEL ? ";" : ", and",
                 in_words(crew->stream->grace_ns, grace));
    if (reason == BHI_KILL_CANCEL)
        bhi_crew_kill(crew, reason, running->event->id, "cancelled while it %s%s",
                      compiles ? "was compiled" : "ran", late);
    else if (reason == BHI_KILL_COMPILE)
        bhi_crew_kill(crew, reason, running->event->id, "compiling it did not end within %s",
                      in_words(crew->stream->compile_deadline_ns, limit));
    else
        bhi_crew_kill(crew, reason, running->event->id, "its deadline of %s passed%s",
                      in_words(running->deadline_ns, limit), late);
}

uint64_t bhi_crew_deadline(struct bhi_crew *crew, uint64_t now_ns, const struct bhi_sight *sight) {
    if (crew->kill != BHI_KILL_NONE)
        return BH_FOREVER;
    if (bhi_list_empty(&crew->inflight))
        return check_idle(crew, now_ns);
    uint64_t reached;
    struct bhi_submission *running = running_of(crew, sight, &reached);
    if (reached > crew->harvested && reached > crew->marker_seen) {
        /* It has its time from the moment we saw it begin. (Where nothing is merged the marker is
         * an old one, and the time of the last result counts.) */
        crew->marker_seen = reached;
        crew->running_since_ns = now_ns;
    }
    bool compiles = compiling(crew, running, sight, now_ns);
    uint64_t grace_ns = crew->stream->grace_ns;
    uint64_t due =
        due_ns(crew, running, compiles ? crew->stream->compile_deadline_ns : running->deadline_ns);
    if (due > now_ns) {
        /* Where it has neither begun to compile nor been seen to be done with it, it may begin
         * after this look. */
        uint64_t look = due_ns(crew, running, shorter_ns(crew, running));
        bool open = !compiles && crew->compiled != running->seq && look > now_ns;
        return look_ns(crew, running, open ? look : due, now_ns);
    }
    if (!running->asked)
        running->turn_ns = crew->running_since_ns;
    if (running->asked || compiles || !running->abortable || !crew->aborts || !grace_ns ||
        running->seq > sight->started) {
        kill_for(crew, running, compiles);
        return BH_FOREVER;
    }
    running->asked = running->cancelled ? BHI_KILL_CANCEL : BHI_KILL_DEADLINE;
    crew->asked_ns = now_ns;
    crew->core->ports->abort(crew, running->seq);
    return look_ns(crew, running, after_ns(now_ns, grace_ns), now_ns);
}

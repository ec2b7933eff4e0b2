/* bh_context_describe: writes what every part of a context is doing, for the case that nothing
 * happens. */
#include "base/futex.h"
#include "supervisor/context/context.h"
#include "supervisor/context/payload.h"
#include "supervisor/event/event.h"
#include "supervisor/event/harvest.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/reactor/lessons.h"
#include "supervisor/stats.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/worker_proc.h"
#include "supervisor/worker/zygote.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#define PATIENCE_NS (1000ull * 1000000) /* how long to wait for the context's lock */
#define PAUSE_NS    1000000
#define MAX_NAMES   3 /* the most kernels that are named of one submission */

/* -- helpers ---------------------------------------------------------------------------------- */

static struct bhi_submission *first_of(const struct bhi_list *list) {
    return bhi_list_empty(list) ? NULL : BHI_CONTAINER(list->next, struct bhi_submission, link);
}

/* Returns the first event that keeps the submission in the queue, or NULL. */
static const struct bh_event *holder(const struct bhi_submission *submission) {
    for (uint32_t i = 0; i < submission->edge_count; i++) {
        const struct bhi_edge *edge = &submission->edges[i];
        if (edge->holds_consumer && bhi_event_state(edge->producer) == BH_EVENT_PENDING) {
            return edge->producer;
        }
    }
    return NULL;
}

static const char *stream_of(const struct bh_event *event) {
    return event->submission ? event->submission->stream->name : "?";
}

/* -- text -------------------------------------------------------------------------------------- */

struct out {
    char *text;
    size_t size;
    size_t length; /* the length of the whole text, which may not have fitted */
};

__attribute__((format(printf, 2, 3))) static void say(struct out *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    size_t room = out->length < out->size ? out->size - out->length : 0;
    int length = vsnprintf(room ? out->text + out->length : NULL, room, format, args);
    va_end(args);
    out->length += length > 0 ? (size_t)length : 0;
}

static unsigned long long ms(uint64_t ns) {
    return (unsigned long long)(ns / 1000000);
}

/* Writes |what| and the time left until the deadline; only |none| if there is no deadline. */
static void say_left(struct out *out, const char *what, const char *none, uint64_t deadline_ns,
                     uint64_t now_ns) {
    if (deadline_ns == BH_FOREVER) {
        say(out, "%s", none);
    } else if (deadline_ns < now_ns) {
        say(out, "%soverdue by %llu ms", what, ms(now_ns - deadline_ns));
    } else {
        say(out, "%sin %llu ms", what, ms(deadline_ns - now_ns));
    }
}

static void say_count(struct out *out, uint64_t count, const char *what) {
    say(out, ", %llu %s%s", (unsigned long long)count, what, count == 1 ? "" : "s");
}

static const char *const stream_states[] = {[BHI_STREAM_WANTING] = "needs a worker",
                                            [BHI_STREAM_SERVED] = "has a worker",
                                            [BHI_STREAM_UNAVAILABLE] = "unavailable"};
static const char *const zygote_states[] = {
    [BHI_ZYGOTE_STARTING] = "starting", [BHI_ZYGOTE_READY] = "ready", [BHI_ZYGOTE_LOST] = "lost"};

static void describe_worker(struct out *out, const struct bhi_worker *worker, uint64_t now_ns) {
    static const char *const names[] = {
        [BHI_SPAWNING] = "being forked", [BHI_HELD] = "starting", [BHI_RUNNING] = "ready"};
    const struct bhi_life *life = &worker->core.life;
    bool going = !bhi_life_is_alive(life);
    bool spare = !worker->core.stream && !going;
    say(out, "%s %d",
        worker->kind == BHI_WORKER_SENTINEL ? "sentinel"
        : spare                             ? "spare worker"
                                            : "worker",
        (int)worker->core.pid);
    say(out, ", %s", names[life->came_to]);
    if (spare && worker->lessons.adopted) {
        say(out, ", for tenant \"%s\"", worker->lessons.tenant);
        say_count(out, bhi_lessons_known(worker), "known kernel");
    }
    if (worker->lessons.kernel) {
        say(out, ", compiles kernel \"%s\" for %llu ms", worker->lessons.name,
            ms(now_ns - worker->lessons.since_ns));
    }
    if (!bhi_worker_served(worker)) {
        say(out, " (step %s", bhi_step_name(atomic_load(&worker->progress.header->step)));
        say_left(out, "; must be ready ", "", life->start_by_ns, now_ns);
        say(out, ")");
    }
    if (worker->core.left_by) {
        say(out, ", dying; stream \"%s\" has gone on without it", worker->core.left_by->name);
    } else if (life->kill != BHI_KILL_NONE) {
        say(out, ", killed: %s", life->kill_text);
    }
    if (life->state >= BHI_EXITED) {
        say(out, ", has ended%s",
            life->state >= BHI_CONFIRMED ? ""
            : life->state == BHI_EXITED  ? ", its exit status is not known yet"
                                         : ", its device is not released yet");
    }
    if (life->violated) {
        say(out, ", broke the protocol");
    }
    if (worker->words.state == BHI_WORDS_REFUSED) {
        say(out, ", no sentinel takes its abort words");
    } else if (worker->words.state == BHI_WORDS_KEPT || worker->words.state == BHI_WORDS_ASKED) {
        say(out, ", its abort words wait for a sentinel");
    }
}

/* The numbers that the worker has written are shown unchecked, because nothing depends on them. */
static void describe_lane(struct out *out, const struct bhi_worker *worker) {
    const struct bhi_progress_header *header = worker->progress.header;
    say(out, "; submissions: %llu sent, %llu read, %llu completed, %llu started; %s",
        (unsigned long long)worker->core.published, (unsigned long long)worker->core.harvested,
        (unsigned long long)atomic_load(&header->completed_seq),
        (unsigned long long)atomic_load(&header->started_seq),
        atomic_load(&header->sleeping) ? "asleep" : "awake");
    if (worker->core.queue_waits) {
        say(out, worker->cache.state == BHI_CACHE_WAITING ? ", waits for its pipeline cache"
                                                          : ", its queue is full");
    }
}

static void describe_running(struct out *out, const struct bhi_worker *worker,
                             struct bhi_submission *running, uint64_t now_ns) {
    uint64_t since_ns = worker->core.running_since_ns;
    const struct bhi_progress_snapshot snapshot = bhi_worker_progress_snapshot(worker);
    bool compiles = snapshot.compiles == running->seq && !snapshot.compile_ended;
    uint64_t limit_ns = compiles ? running->stream->compile_deadline_ns : running->deadline_ns;
    const struct bhi_payload *payload = bhi_payload_of(running);
    for (uint32_t i = 0; i < payload->kernel_count && i < MAX_NAMES; i++) {
        say(out, "%s\"%s\"", i ? ", " : ", kernel ", payload->kernels[i]->name);
    }
    if (payload->kernel_count > MAX_NAMES) {
        say(out, " and %u more", payload->kernel_count - MAX_NAMES);
    }
    if (since_ns < running->released_ns) {
        since_ns = running->released_ns;
    }
    say(out, ", %sfor %llu ms", compiles ? "compiling " : "",
        ms(now_ns > since_ns ? now_ns - since_ns : 0));
    uint64_t due = since_ns + limit_ns;
    bool none = limit_ns == BH_FOREVER || due < since_ns;
    if (running->end_requested) {
        say(out, ", asked to stop %llu ms ago",
            ms(now_ns > worker->core.asked_ns ? now_ns - worker->core.asked_ns : 0));
    }
    say_left(out, ", its deadline is ", ", it has no deadline", none ? BH_FOREVER : due, now_ns);
}

static void describe_oldest(struct out *out, const struct bh_stream *stream, uint64_t now_ns) {
    const struct bhi_worker *worker = bhi_stream_worker(stream);
    struct bhi_submission *running = worker ? first_of(&worker->core.inflight) : NULL;
    const struct bhi_submission *queued = first_of(&stream->core.queue);
    if (running) {
        say(out, "; event %llu is with the worker%s", (unsigned long long)running->event->id,
            running->cancel_requested ? ", cancelled" : "");
        describe_running(out, worker, running, now_ns);
    }
    if (!queued) {
        return;
    }
    const struct bh_event *held_by = holder(queued);
    say(out, "; event %llu is queued", (unsigned long long)queued->event->id);
    if (held_by) {
        say(out, ", waits for event %llu of stream \"%s\"", (unsigned long long)held_by->id,
            stream_of(held_by));
    } else if (stream->core.state != BHI_STREAM_SERVED) {
        say(out, ", waits for a worker");
    } else if (worker && worker->core.life.kill != BHI_KILL_NONE) {
        say(out, ", waits for the worker to end");
    } else if (worker && worker->core.queue_waits) {
        say(out, ", waits for room in the queue of the worker");
    } else {
        say(out, ", can be sent now");
    }
}

static void describe_stream(struct out *out, const struct bh_stream *stream, uint64_t now_ns) {
    const struct bhi_core_stream *core = &stream->core;
    const struct bhi_worker *worker = bhi_stream_worker(stream);
    say(out, "stream \"%s\"%s: %s; ", core->name, core->strict ? " (strict)" : "",
        bhi_stream_rests(stream) ? "idle" : stream_states[core->state]);
    if (stream->anywhere && stream->runs_on.known) {
        say(out, "any device, now %s; ", stream->runs_on.selector);
    }
    if (worker) {
        describe_worker(out, worker, now_ns);
        describe_lane(out, worker);
    } else {
        say(out, "no worker");
        if (core->state == BHI_STREAM_WANTING && core->restart.not_before_ns > now_ns) {
            say_left(out, ", the next is started ", "", core->restart.not_before_ns, now_ns);
        }
    }
    say(out, "; %llu in flight, %llu queued", (unsigned long long)core->in_flight,
        (unsigned long long)core->queued);
    describe_oldest(out, stream, now_ns);
    if (core->trouble.status != BH_OK) {
        say(out, "; trouble: %s", core->trouble.message);
    }
    if (core->failure && bhi_event_state(core->failure) == BH_EVENT_POISONED) {
        say(out, "; first failure: event %llu, %s", (unsigned long long)core->failure->id,
            bh_status_name(core->failure->verdict.status));
    }
    say(out, "\n");
}

static void describe_all(struct out *out, bh_context *context) {
    uint64_t now_ns = bhi_now_ns();
    say(out, "context: %s, newest id %llu", context->closed ? "being destroyed" : "open",
        (unsigned long long)context->next_id);
    uint64_t processes[BH_PROCESS_KINDS] = {0}, workers = 0;
    bh_stats stats;
    bhi_stats_of_context(context, &stats);
    for (size_t kind = 0; kind < BH_PROCESS_KINDS; kind++) {
        for (size_t state = 0; state < BH_PROCESS_STATES; state++) {
            processes[kind] += stats.processes[kind][state];
        }
        workers += kind == BH_PROCESS_ZYGOTE ? 0 : processes[kind];
    }
    say_count(out, stats.streams, "stream");
    say_count(out, workers, "worker");
    say_count(out, processes[BH_PROCESS_ZYGOTE], "zygote");
    say(out, "\n");
    BHI_LIST_EACH(node, &context->streams)
    describe_stream(out, BHI_CONTAINER(node, struct bh_stream, link), now_ns);
    BHI_LIST_FOR(const struct bhi_worker, worker, &context->workers, link) {
        if (worker->core.stream) {
            continue;
        }
        describe_worker(out, worker, now_ns);
        say(out, "\n");
    }
    BHI_LIST_FOR(const struct bhi_zygote, zygote, &context->zygotes, link) {
        say(out, "zygote \"%s\": %s%s%s\n", zygote->driver[0] ? zygote->driver : zygote->requested,
            zygote_states[zygote->state], zygote->failure.status != BH_OK ? "; " : "",
            zygote->failure.status != BH_OK ? zygote->failure.message : "");
    }
}

/* Waits for the lock for a bounded time. Not pthread_mutex_clocklock, which the sanitizers of older
 * compilers do not know. */
static bool try_lock(bh_context *context) {
    uint64_t deadline_ns = bhi_deadline_ns(PATIENCE_NS);
    while (pthread_mutex_trylock(&context->lock) == EBUSY) {
        if (bhi_now_ns() >= deadline_ns) {
            return false;
        }
        const struct timespec pause = {.tv_nsec = PAUSE_NS};
        nanosleep(&pause, NULL);
    }
    return true;
}

BH_API size_t bh_context_describe(bh_context *context, char *text, size_t size) {
    struct out out = {text, text ? size : 0, 0};
    if (!context) {
        say(&out, "no context\n");
    } else if (!bhi_handle_live(&context->handle)) {
        say(&out, "the context was destroyed\n");
    } else if (bhi_context_forked(context)) {
        say(&out, "the context belongs to the parent process\n");
    } else if (!try_lock(context)) {
        say(&out,
            "context: its lock has been held for the last %llu ms; no more details are available\n",
            (unsigned long long)(PATIENCE_NS / 1000000));
    } else {
        describe_all(&out, context);
        pthread_mutex_unlock(&context->lock);
    }
    return out.length;
}

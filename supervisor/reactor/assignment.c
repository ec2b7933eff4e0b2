#include "supervisor/reactor/assignment.h"
#include "base/detail.h"
#include "base/futex.h"
#include "base/limits.h"
#include "ipc/fdpass.h"
#include "ipc/refusal.h"
#include "supervisor/context/context.h"
#include "supervisor/context/room.h"
#include "supervisor/reactor/spares.h"
#include "supervisor/reactor/spawn.h"
#include "supervisor/stream/placement.h"
#include "supervisor/stream/stream.h"
#include "supervisor/stream/tenant.h"
#include "supervisor/worker/launch.h"
#include "supervisor/worker/outbox.h"
#include "supervisor/worker/selector.h"
#include "supervisor/worker/worker_proc.h"

#include <errno.h>
#include <string.h>

#define MUTE_STARTS    3 /* in a row without a message, and none was ever READY: given up */
#define SPARE_PAUSE_NS (1000ull * 1000000) /* pause after a spare could not be started */

static bool serves(const struct bhi_zygote *zygote, const char *driver) {
    return strcmp(zygote->requested, driver) == 0 ||
           (zygote->state == BHI_ZYGOTE_READY && strcmp(zygote->driver, driver) == 0);
}

/* Lock held. */
static struct bhi_zygote *find_zygote(bh_context *context, const char *driver) {
    BHI_LIST_FOR(struct bhi_zygote, zygote, &context->zygotes, link) {
        if (zygote->state != BHI_ZYGOTE_LOST && serves(zygote, driver)) {
            return zygote;
        }
    }
    return NULL;
}

/* Lock held. Returns a zygote, a ready one if possible. Work that needs no driver can use any. */
static struct bhi_zygote *find_any_zygote(bh_context *context) {
    struct bhi_zygote *starting = NULL;
    BHI_LIST_FOR(struct bhi_zygote, zygote, &context->zygotes, link) {
        if (zygote->state == BHI_ZYGOTE_READY) {
            return zygote;
        }
        if (zygote->state == BHI_ZYGOTE_STARTING) {
            starting = zygote;
        }
    }
    return starting;
}

static bool wants(const struct bh_stream *stream) {
    return stream->core.state == BHI_STREAM_WANTING && !stream->core.worker &&
           !bhi_stream_rests(stream);
}

/* There is no zygote for |driver|. This is charged to each stream that wants one, so that it is
 * tried a limited number of times, with pauses. |hopeless|: not tried again until the streams heal.
 */
static void no_zygote(bh_context *context, const char *driver, const bh_detail *why,
                      bool hopeless) {
    bhi_streams_hold(context);
    BHI_LIST_FOR(struct bh_stream, stream, &context->streams, link) {
        char wanted[BHI_DRIVER_NAME];
        uint32_t index;
        bhi_selector_parse(stream->device, wanted, &index);
        if (!wants(stream) || strcmp(wanted, driver) != 0) {
            continue;
        }
        if (why->status == BH_NO_DEVICE || why->status == BH_UNSUPPORTED) {
            bhi_stream_unavailable(&stream->core, why, false);
        } else if (hopeless) {
            bhi_stream_unavailable(&stream->core, why, true);
        } else if (bhi_room_is_short(why)) {
            bhi_stream_starved(&stream->core, why);
        } else {
            bhi_stream_lost_worker(&stream->core, false, why);
        }
    }
    bhi_streams_let_go(context);
}

/* No zygote serves |driver|, and only this thread starts zygotes. The list owns the new one. If it
 * dies at once, this thread buries it in its next turn. */
static void start_zygote(bh_context *context, const char *driver) {
    struct bhi_zygote *zygote = bhi_zygote_start(context, driver);
    if (!zygote) {
        bh_detail why;
        BHI_FAIL(&why, "", BH_REASON_MEMORY, .place = "starting the driver's process (zygote)");
        bhi_context_lock(context);
        no_zygote(context, driver, &why, false);
        bhi_context_pump_unlock(context);
    } else if (zygote->state == BHI_ZYGOTE_LOST) {
        bhi_assignment_zygote_failed(zygote);
    }
}

static void bind_worker(struct bh_stream *stream, struct bhi_worker *worker) {
    bhi_stream_bind(&stream->core, &worker->core);
    bhi_worker_retain(worker);
    bhi_worker_serve(worker, stream->core.name);
    if (bhi_worker_served(worker)) {
        bhi_stream_learn_device(stream, worker);
        bhi_stream_served(&stream->core);
    }
}

/* A worker to start, or first the zygote for it. Chosen under the lock, started without it. */
struct job {
    struct bh_stream *stream; /* NULL: a spare */
    struct bhi_zygote *zygote;
    char device[48];
    char driver[BHI_DRIVER_NAME];
    uint32_t index;
    uint64_t memory_limit;
    uint32_t processor, nice;
    enum bhi_worker_kind kind;
};

/* Lock held. Returns a job that starts a worker of the kind that |stream| uses. */
static struct job job_like(bh_context *context, const struct bh_stream *stream) {
    struct job job = {.memory_limit = stream->memory_limit,
                      .processor = stream->processor,
                      .nice = stream->nice,
                      .kind = stream->kind};
    memcpy(job.device, stream->device, sizeof job.device);
    bhi_selector_parse(stream->device, job.driver, &job.index);
    job.zygote = job.kind == BHI_WORKER_DEVICE || job.driver[0] ? find_zygote(context, job.driver)
                                                                : find_any_zygote(context);
    return job;
}

/* Lock held. Finds the next job for a stream. On the way, binds the workers that can be bound. */
static bool next_job(bh_context *context, struct job *job, uint64_t now_ns, uint64_t *look_again) {
    BHI_LIST_FOR(struct bh_stream, stream, &context->streams, link) {
        if (!wants(stream)) {
            continue;
        }
        uint64_t not_before_ns = bhi_tenant_not_before(stream->owner);
        if (not_before_ns < stream->core.restart.not_before_ns) {
            not_before_ns = stream->core.restart.not_before_ns;
        }
        if (not_before_ns > now_ns) {
            *look_again = bhi_earlier_ns(*look_again, not_before_ns);
            continue;
        }
        if (!bhi_placement_choose(stream)) {
            continue; /* a worker that is starting will report the devices */
        }
        struct bhi_worker *unbound = bhi_spares_choose(context, stream);
        const bool ready = unbound && bhi_worker_served(unbound);
        const uint64_t patience_ns = ready ? 0 : bhi_spares_patience(context, stream);
        if (patience_ns > now_ns) {
            *look_again = bhi_earlier_ns(*look_again, patience_ns);
            continue;
        }
        if (unbound) {
            bind_worker(stream, unbound);
            continue;
        }
        *job = job_like(context, stream);
        job->stream = stream;
        if (job->zygote && job->zygote->state != BHI_ZYGOTE_READY) {
            continue; /* the zygote is starting */
        }
        return true;
    }
    return false;
}

/* Returns true if each worker of the stream runs one submission only, and the present worker has
 * got its one: the next worker is needed soon (T3). */
static bool wants_successor(const struct bh_stream *stream) {
    return stream->core.apart == BHI_APART_ALL && stream->core.state == BHI_STREAM_SERVED &&
           stream->core.worker->past.used;
}

/* Lock held. Returns true if there are fewer free workers like those of |stream| than streams like
 * it that want a successor. */
static bool lacks_successor(bh_context *context, const struct bh_stream *stream) {
    uint32_t wanted = 0;
    BHI_LIST_FOR(const struct bh_stream, other, &context->streams, link) {
        wanted += wants_successor(other) && bhi_spare_serves_both(other, stream);
    }
    BHI_LIST_FOR(const struct bhi_worker, worker, &context->workers, link) {
        if (wanted && bhi_spare_has_place(worker) && bhi_spare_is_like(worker, stream) &&
            !worker->lessons.adopted) {
            wanted--;
        }
    }
    return wanted > 0;
}

/* Lock held. Chooses a stream whose next worker is started while its used-up worker still works.
 * The number of spares does not limit such workers. */
static bool next_successor(bh_context *context, struct job *job) {
    BHI_LIST_FOR(const struct bh_stream, stream, &context->streams, link) {
        if (!wants_successor(stream) || !lacks_successor(context, stream)) {
            continue;
        }
        *job = job_like(context, stream);
        return job->zygote && job->zygote->state == BHI_ZYGOTE_READY;
    }
    return false;
}

/* Lock held. */
static bool next_spare(bh_context *context, struct job *job) {
    const struct bh_stream *stream = bhi_spares_wanted(context);
    if (!stream) {
        return false;
    }
    *job = job_like(context, stream);
    return job->zygote && job->zygote->state == BHI_ZYGOTE_READY;
}

/* Lock not held. The stream is referenced. */
static void start_worker(bh_context *context, const struct job *job) {
    bh_detail detail = {0};
    struct bhi_worker *worker =
        bhi_worker_spawn(context, job->zygote, job->device, job->index, job->memory_limit,
                         job->processor, job->nice, job->kind, &detail);
    bhi_context_lock(context);
    if (!job->stream && !worker) {
        context->spare_at_ns = bhi_now_ns() + SPARE_PAUSE_NS;
    }
    const bool later = bhi_room_is_short(&detail) || bhi_fdpass_is_late(-detail.sys_errno);
    if (job->stream && !worker && wants(job->stream) && later) {
        bhi_stream_starved(&job->stream->core, &detail);
    } else if (job->stream && !worker && wants(job->stream)) {
        bhi_stream_lost_worker(&job->stream->core, false, &detail);
    } else if (job->stream && worker && wants(job->stream)) {
        bind_worker(job->stream, worker);
    }
    bhi_context_pump_unlock(context);
}

/* Lock held. Ends the compiles whose deadline has passed while they waited for a compiler. */
static void end_late_compiles(bh_context *context, uint64_t now_ns, uint64_t *look_again) {
    bhi_streams_hold(context);
    BHI_LIST_FOR(struct bh_stream, stream, &context->streams, link) {
        if (stream->kind != BHI_WORKER_COMPILER || bhi_list_empty(&stream->core.queue)) {
            continue;
        }
        struct bhi_submission *compile =
            BHI_CONTAINER(stream->core.queue.next, struct bhi_submission, link);
        if (!compile->due_ns) {
            continue;
        }
        if (compile->due_ns > now_ns) {
            *look_again = bhi_earlier_ns(*look_again, compile->due_ns);
            continue;
        }
        char driver[BHI_DRIVER_NAME], text[BHI_ZYGOTE_LOADING];
        uint32_t index;
        bh_detail why;
        bhi_selector_parse(stream->device, driver, &index);
        const struct bhi_zygote *zygote = driver[0] ? find_zygote(context, driver) : NULL;
        const char *loading = zygote ? bhi_zygote_loading(zygote, text) : NULL;
        BHI_FAIL(&why, "", loading ? BH_REASON_COMPILER_LATE : BH_REASON_COMPILE_DEADLINE,
                 .status = BH_DEADLINE, .limit = compile->deadline_ns, .text = loading);
        bhi_submission_end_unavailable(compile, &why);
    }
    bhi_streams_let_go(context);
}

/* |spares|: streams only, or also what is started before anybody needs it. */
static uint64_t turn(bh_context *context, bool spares) {
    uint64_t now_ns = bhi_now_ns(), look_again = BH_FOREVER;
    for (;;) {
        struct job job;
        bhi_context_lock(context);
        end_late_compiles(context, now_ns, &look_again);
        bool found = !context->closed && next_job(context, &job, now_ns, &look_again);
        if (found) {
            bhi_stream_ref(job.stream);
        } else if (spares && !context->closed && context->spare_at_ns <= now_ns) {
            found = next_successor(context, &job) ||
                    (context->way_until_ns <= now_ns && next_spare(context, &job));
        }
        if (found && job.zygote) {
            bhi_zygote_retain(job.zygote);
        }
        if (!found && spares) {
            const uint64_t due_ns = bhi_spares_turn(context, now_ns);
            look_again = due_ns < look_again ? due_ns : look_again;
        }
        bhi_context_pump_unlock(context);
        if (!found) {
            break;
        }
        if (job.zygote) {
            start_worker(context, &job);
        } else {
            start_zygote(context, job.driver);
        }
        bhi_zygote_release(job.zygote);
        bhi_stream_unref(job.stream);
    }
    if (context->spare_at_ns > now_ns) {
        look_again = bhi_earlier_ns(look_again, context->spare_at_ns);
    }
    if (context->way_until_ns > now_ns) {
        look_again = bhi_earlier_ns(look_again, context->way_until_ns);
    }
    return look_again;
}

void bhi_assignment_serve(bh_context *context) {
    (void)turn(context, false);
}

uint64_t bhi_assignment_turn(bh_context *context) {
    return turn(context, true);
}

void bhi_assignment_zygote_failed(struct bhi_zygote *zygote) {
    bh_context *context = zygote->context;
    bhi_context_lock(context);
    bh_detail why = zygote->failure;
    const bool mute = why.status == BH_OK || zygote->mute;
    if (why.status == BH_OK) {
        BHI_FAIL(&why, "", BH_REASON_PROCESS_DIED, "the driver's process (zygote)");
    }
    context->mute_starts = mute ? context->mute_starts + 1 : 0;
    /* An executable that has run before may be replaced at this moment: it is tried again. */
    bool hopeless = !context->has_had_zygote && zygote->no_program;
    if (!context->has_had_zygote && context->mute_starts >= MUTE_STARTS) {
        char limits[200];
        const bool limited = bhi_limits_list(limits, sizeof limits) > 0;
        hopeless = true;
        BHI_FAIL(&why, "", BH_REASON_MUTE, context->settings.worker_path, .value = MUTE_STARTS,
                 .text = limited ? limits : NULL,
                 .advice = limited ? "raise the limits" : context->settings.worker_remedy);
    }
    no_zygote(context, zygote->requested, &why, hopeless);
    bhi_context_pump_unlock(context);
}

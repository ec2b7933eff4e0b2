#include "supervisor/reactor/spares.h"
#include "supervisor/context/payload.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/kernel/usage.h"
#include "supervisor/reactor/lessons.h"
#include "supervisor/worker/zygote.h"

#include <stdio.h>
#include <string.h>

#define MOST_SPARES 64u                 /* of all kinds together */
#define MOST_KINDS  16u                 /* devices, memory limits and processors that have spares */
#define PATIENCE_NS (50ull * 1000000)   /* about as long as a worker takes to start */
#define QUEUE_LOOK  8u                  /* submissions whose kernels count most */
#define EXCHANGE_NS (1000ull * 1000000) /* between two spares that are given up */
#define WAY_NS      (20ull * 1000000)   /* for the first job of a stream that goes on */
#define WAY_REST_NS (80ull * 1000000)   /* between two such pauses */
#define FAILED_NS   (1000ull * 1000000) /* pause after a spare has died while it started */

/* -- which worker is a spare, and for whom ----------------------------------------------------- */

bool bhi_spare_is_free(const struct bhi_worker *worker) {
    return !worker->core.stream && bhi_life_is_alive(&worker->core.life) &&
           worker->kind != BHI_WORKER_SENTINEL;
}

/* A spare has died, or was killed for what was wrong with it, before it was ready. */
static bool has_failed(const struct bhi_worker *worker) {
    const struct bhi_core_worker *core = &worker->core;
    return !core->stream && !bhi_worker_served(worker) && !bhi_life_is_alive(&core->life) &&
           core->life.kill != BHI_KILL_RETIRED && worker->kind != BHI_WORKER_SENTINEL;
}

bool bhi_spare_has_place(const struct bhi_worker *worker) {
    return bhi_spare_is_free(worker) || has_failed(worker);
}

/* What a worker was started with, and what a stream wants its workers to be started with. */
struct make {
    enum bhi_worker_kind kind;
    uint64_t memory_limit;
    uint32_t processor, nice;
    const char *device;
};

static struct make of_worker(const struct bhi_worker *worker) {
    return (struct make){worker->kind, worker->memory_limit, worker->processor, worker->nice,
                         worker->device};
}

static struct make of_stream(const struct bh_stream *stream) {
    return (struct make){stream->kind, stream->memory_limit, stream->processor, stream->nice,
                         stream->device};
}

static bool are_same(struct make a, struct make b) {
    return a.kind == b.kind && a.memory_limit == b.memory_limit && a.processor == b.processor &&
           a.nice == b.nice && strcmp(a.device, b.device) == 0;
}

bool bhi_spare_is_like(const struct bhi_worker *worker, const struct bh_stream *stream) {
    return are_same(of_worker(worker), of_stream(stream));
}

bool bhi_spare_serves_both(const struct bh_stream *a, const struct bh_stream *b) {
    return are_same(of_stream(a), of_stream(b));
}

static bool are_alike(const struct bhi_worker *a, const struct bhi_worker *b) {
    return are_same(of_worker(a), of_worker(b));
}

static bool is_tenants(const struct bhi_worker *worker, const char *tenant) {
    return worker->lessons.adopted && strcmp(worker->lessons.tenant, tenant) == 0;
}

/* Can it be told a kernel, or run one, now? */
static bool is_at_rest(const struct bhi_worker *worker) {
    return bhi_worker_served(worker) && !worker->lessons.kernel;
}

static bool may_serve(const struct bhi_worker *worker, const struct bh_stream *stream) {
    return bhi_spare_is_free(worker) && bhi_spare_is_like(worker, stream) &&
           worker->zygote->state != BHI_ZYGOTE_LOST &&
           (!worker->lessons.adopted || is_tenants(worker, stream->tenant)) &&
           bhi_core_worker_suits(&worker->core, &stream->core);
}

/* How much of what the stream will run the spare knows. What waits in the queue counts more than
 * what its tenant uses. */
static uint64_t worth(const struct bhi_worker *worker, const struct bh_stream *stream) {
    const struct bhi_worker_kernels *known = &worker->kernels;
    struct bhi_usage *usage = NULL;
    uint64_t worth = 0;
    uint32_t looked = 0;
    if (!worker->lessons.adopted) {
        return 0;
    }
    BHI_LIST_EACH(node, &stream->core.queue) {
        const struct bhi_payload *payload =
            bhi_payload_of(BHI_CONTAINER(node, struct bhi_submission, link));
        for (uint32_t i = 0; i < payload->kernel_count; i++) {
            const bool has = bhi_worker_kernels_has(known, payload->kernels[i]->body->id);
            worth += has ? 1ull << 32 : 0;
        }
        if (++looked == QUEUE_LOOK) {
            break;
        }
    }
    usage = bhi_usage_find(worker->context->usages, stream->device, stream->tenant);
    for (uint32_t i = 0; usage && i < usage->count; i++) {
        const bool has = bhi_worker_kernels_has(known, usage->kernels[i].id);
        worth += has ? usage->kernels[i].uses : 0;
    }
    return worth + 1; /* others cannot use it */
}

struct bhi_worker *bhi_spares_choose(bh_context *context, const struct bh_stream *stream) {
    struct bhi_worker *best = NULL;
    uint64_t best_worth = 0;
    int best_rank = -1;
    BHI_LIST_FOR(struct bhi_worker, worker, &context->workers, link) {
        if (!may_serve(worker, stream) || worker->lessons.kernel) {
            continue;
        }
        const int rank = bhi_worker_served(worker);
        const uint64_t its_worth = worth(worker, stream);
        if (rank > best_rank || (rank == best_rank && its_worth > best_worth)) {
            best = worker;
            best_rank = rank;
            best_worth = its_worth;
        }
    }
    return best;
}

uint64_t bhi_spares_patience(const bh_context *context, const struct bh_stream *stream) {
    uint64_t until_ns = 0;
    BHI_LIST_FOR(const struct bhi_worker, worker, &context->workers, link) {
        const uint64_t due_ns = worker->lessons.since_ns + PATIENCE_NS;
        if (worker->lessons.kernel && due_ns > until_ns && may_serve(worker, stream)) {
            until_ns = due_ns;
        }
    }
    return until_ns;
}

/* -- how many ---------------------------------------------------------------------------------- */

/* A device, a memory limit and a processor that streams use, by the newest of these streams. */
struct kinds {
    const struct bh_stream *newest[MOST_KINDS];
    uint32_t count;
};

static void find_kinds(const bh_context *context, struct kinds *kinds) {
    kinds->count = 0;
    for (struct bhi_list *node = context->streams.prev;
         node != &context->streams && kinds->count < MOST_KINDS; node = node->prev) {
        const struct bh_stream *stream = BHI_CONTAINER(node, struct bh_stream, link);
        uint32_t i = 0;
        if (stream->kind != BHI_WORKER_DEVICE || !stream->placed) {
            continue;
        }
        while (i < kinds->count && !bhi_spare_serves_both(kinds->newest[i], stream)) {
            i++;
        }
        if (i == kinds->count) {
            kinds->newest[kinds->count++] = stream;
        }
    }
}

struct counts {
    uint32_t all, free;
};

/* |like|: of its kind. */
static struct counts count_free(const bh_context *context, const struct bh_stream *like) {
    struct counts counts = {0};
    BHI_LIST_FOR(const struct bhi_worker, worker, &context->workers, link) {
        if (!bhi_spare_has_place(worker) || worker->kind != BHI_WORKER_DEVICE) {
            continue;
        }
        counts.all++;
        if (bhi_spare_is_like(worker, like)) {
            counts.free++;
        }
    }
    return counts;
}

/* Gives up a spare of a kind that no stream uses any more, to make place for one that is wanted. */
static void give_up_unused(bh_context *context, const struct kinds *kinds) {
    BHI_LIST_FOR(struct bhi_worker, worker, &context->workers, link) {
        bool used = worker->kind != BHI_WORKER_DEVICE || !bhi_spare_is_free(worker) ||
                    !bhi_worker_served(worker);
        for (uint32_t i = 0; i < kinds->count; i++) {
            used = used || bhi_spare_is_like(worker, kinds->newest[i]);
        }
        if (!used) {
            bhi_core_worker_kill(&worker->core, BHI_KILL_RETIRED, 0,
                                 "no stream uses its device with its memory limit");
            return;
        }
    }
}

const struct bh_stream *bhi_spares_wanted(bh_context *context) {
    struct kinds kinds;
    if (!context->settings.spares) {
        return NULL;
    }
    find_kinds(context, &kinds);
    for (uint32_t i = 0; i < kinds.count; i++) {
        const struct bh_stream *stream = kinds.newest[i];
        const struct counts counts = count_free(context, stream);
        /* Until it is served, it is the one that needs a worker. */
        if (stream->core.state != BHI_STREAM_SERVED || counts.free >= context->settings.spares ||
            counts.all >= MOST_SPARES) {
            continue;
        }
        give_up_unused(context, &kinds);
        return stream;
    }
    return NULL;
}

void bhi_spares_make_way(bh_context *context, uint64_t now_ns) {
    if (!context->way_until_ns || now_ns >= context->way_until_ns + WAY_REST_NS) {
        context->way_until_ns = now_ns + WAY_NS;
    }
}

void bhi_spares_worker_gone(struct bhi_worker *worker, uint64_t now_ns) {
    const struct bhi_core_worker *core = &worker->core;
    if (core->stream && bhi_worker_served(worker) && worker->kind == BHI_WORKER_DEVICE &&
        core->stream->apart == BHI_APART_NOT) {
        bhi_spares_make_way(worker->context, now_ns);
    } else if (has_failed(worker)) {
        worker->context->spare_at_ns = now_ns + FAILED_NS;
        worker->context->wake_reactor = true; /* to look again after the pause */
    }
}

/* -- tenants ----------------------------------------------------------------------------------- */

/* Returns true if not all that can come to a spare like |worker| is of one tenant and may meet its
 * other kernels. Tenants count that have streams there, or have had. */
static bool is_shared(const bh_context *context, const struct bhi_worker *worker) {
    const char *tenant = NULL;
    BHI_LIST_FOR(const struct bhi_usage, usage, &context->usages->all, link) {
        if (strcmp(usage->device, worker->device) != 0) {
            continue;
        }
        if (tenant && strcmp(usage->tenant, tenant) != 0) {
            return true;
        }
        tenant = usage->tenant;
    }
    BHI_LIST_FOR(const struct bh_stream, stream, &context->streams, link) {
        if (!bhi_spare_is_like(worker, stream)) {
            continue;
        }
        if (stream->core.apart != BHI_APART_NOT ||
            (tenant && strcmp(stream->tenant, tenant) != 0)) {
            return true;
        }
        tenant = stream->tenant;
    }
    return false;
}

/* Returns true if the tenant has a stream that may take a spare like |worker| with its kernels. */
static bool has_stream(const bh_context *context, const struct bhi_worker *worker,
                       const char *tenant) {
    BHI_LIST_FOR(const struct bh_stream, stream, &context->streams, link) {
        if (bhi_spare_is_like(worker, stream) && stream->core.apart == BHI_APART_NOT &&
            strcmp(stream->tenant, tenant) == 0) {
            return true;
        }
    }
    return false;
}

/* Of those like |worker|: how many spares are the tenant's; NULL: how many are untold. */
static uint32_t count_of(const bh_context *context, const struct bhi_worker *worker,
                         const char *tenant) {
    uint32_t count = 0;
    BHI_LIST_FOR(const struct bhi_worker, other, &context->workers, link) {
        count += bhi_spare_is_free(other) && are_alike(other, worker) &&
                 (tenant ? is_tenants(other, tenant) : !other->lessons.adopted);
    }
    return count;
}

/* Returns the tenant that has the fewest spares like |worker|, of several the one that uses its
 * kernels most; NULL: none has anything to teach. */
static struct bhi_usage *choose_tenant(bh_context *context, const struct bhi_worker *worker,
                                       uint64_t now_ns) {
    struct bhi_usage *best = NULL;
    uint32_t fewest = 0;
    BHI_LIST_FOR(struct bhi_usage, usage, &context->usages->all, link) {
        if (strcmp(usage->device, worker->device) != 0 ||
            !bhi_lesson_find(context, worker, usage, now_ns) ||
            !has_stream(context, worker, usage->tenant)) {
            continue;
        }
        const uint32_t count = count_of(context, worker, usage->tenant);
        if (!best || count < fewest || (count == fewest && usage->uses > best->uses)) {
            best = usage;
            fewest = count;
        }
    }
    return best;
}

/* -- lessons ----------------------------------------------------------------------------------- */

/* Tells one spare what to learn next. Returns when to look again. */
static uint64_t teach(bh_context *context, struct bhi_worker *worker, uint64_t now_ns) {
    struct bhi_lessons *lessons = &worker->lessons;
    struct bhi_usage *usage = lessons->adopted
                                  ? bhi_usage_find(context->usages, worker->device, lessons->tenant)
                                  : choose_tenant(context, worker, now_ns);
    if (!usage) {
        return BH_FOREVER;
    }
    if (usage->quiet_until_ns > now_ns) {
        return usage->quiet_until_ns;
    }
    const struct bhi_used_kernel *lesson = bhi_lesson_find(context, worker, usage, now_ns);
    if (!lesson) {
        return BH_FOREVER;
    }
    if (!lessons->adopted) {
        if (is_shared(context, worker) && count_of(context, worker, NULL) < 2) {
            return BH_FOREVER;
        }
        lessons->adopted = true;
        snprintf(lessons->tenant, sizeof lessons->tenant, "%s", usage->tenant);
    }
    bhi_lesson_give(worker, usage, lesson, now_ns);
    return BH_FOREVER;
}

/* Returns true if the spare should make place for another: all like it are taken by tenants while
 * others have none, or its tenant has no stream any more and another has. */
static bool is_in_the_way(bh_context *context, const struct bhi_worker *worker, uint64_t now_ns) {
    const uint32_t untold = count_of(context, worker, NULL);
    uint32_t all = untold;
    BHI_LIST_FOR(const struct bhi_worker, other, &context->workers, link) {
        all += bhi_spare_is_free(other) && are_alike(other, worker) && other->lessons.adopted;
    }
    if (all < context->settings.spares || untold > 1) {
        return false; /* there is room for another */
    }
    if (!untold) {
        return is_shared(context, worker);
    }
    const struct bhi_usage *heir = choose_tenant(context, worker, now_ns);
    return heir && !count_of(context, worker, heir->tenant) &&
           !has_stream(context, worker, worker->lessons.tenant);
}

/* Gives one spare up where that makes place for another. Returns when to look again. */
static uint64_t exchange(bh_context *context, uint64_t now_ns) {
    struct bhi_worker *victim = NULL;
    uint64_t least = 0;
    BHI_LIST_FOR(struct bhi_worker, worker, &context->workers, link) {
        if (!bhi_spare_is_free(worker) || !worker->lessons.adopted || !is_at_rest(worker) ||
            !is_in_the_way(context, worker, now_ns)) {
            continue;
        }
        const struct bhi_usage *usage =
            bhi_usage_find(context->usages, worker->device, worker->lessons.tenant);
        const bool missed = has_stream(context, worker, worker->lessons.tenant);
        const uint64_t uses = missed && usage ? usage->uses + 1ull : 0;
        if (!victim || uses < least) {
            victim = worker;
            least = uses;
        }
    }
    if (!victim) {
        return BH_FOREVER;
    }
    if (context->exchange_at_ns > now_ns) {
        return context->exchange_at_ns;
    }
    context->exchange_at_ns = now_ns + EXCHANGE_NS;
    bhi_core_worker_kill(&victim->core, BHI_KILL_RETIRED, 0,
                         "another tenant needs a spare, and this one knows a tenant's kernels");
    return BH_FOREVER;
}

uint64_t bhi_spares_turn(bh_context *context, uint64_t now_ns) {
    uint64_t look_again = BH_FOREVER;
    if (!context->spares_due || context->closed || !context->settings.spare_kernels) {
        return look_again;
    }
    BHI_LIST_FOR(struct bhi_worker, worker, &context->workers, link) {
        if (worker->kind == BHI_WORKER_DEVICE && bhi_spare_is_free(worker) && is_at_rest(worker)) {
            const uint64_t due_ns = teach(context, worker, now_ns);
            look_again = due_ns < look_again ? due_ns : look_again;
        }
    }
    const uint64_t due_ns = exchange(context, now_ns);
    look_again = due_ns < look_again ? due_ns : look_again;
    context->spares_due = look_again != BH_FOREVER;
    return look_again;
}

#include "puppet.h"
#include "base/memfd.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/context.h"
#include "supervisor/context/payload.h"
#include "supervisor/event/event.h"
#include "supervisor/file/opener.h"
#include "supervisor/load/loaders.h"
#include "supervisor/reactor/pipeline_cache.h"
#include "supervisor/reactor/reactor.h"

#include <sys/mman.h>

struct puppet puppet;

static void (*begin_test)(void), (*end_test)(void);

/* What the worker that this is writes. */
static struct side {
    struct bhi_progress progress;
    struct side *next;
} *sides; /* of all since the puppet was made */

struct body {
    struct bhi_worker worker; /* freed as such */
    struct side *side;
};

/* Not among what fx_release_all destroys. */
bh_status __real_bh_context_create(const bh_context_options *options, bh_context **out,
                                   bh_detail *detail);

static void add_zygote(void) {
    struct bhi_zygote *zygote = calloc(1, sizeof *zygote);
    BHT_TRUE(zygote);
    atomic_init(&zygote->refs, 1);
    zygote->context = puppet.context;
    bhi_list_init(&zygote->sentinels);
    bhi_context_retain(puppet.context);
    zygote->runtime_lock = zygote->cgroup.lock_fd = -1;
    zygote->socket = zygote->pidfd = zygote->warden_pidfd = zygote->proc = -1;
    zygote->state = BHI_ZYGOTE_READY;
    bhi_list_append(&puppet.context->zygotes, &zygote->link);
    puppet.zygote = zygote;
}

/* A lock that is not taken, or taken twice, ends the test (bhi_context_unlock checks the error). */
static void be_strict(pthread_mutex_t *lock) {
    pthread_mutexattr_t strict;
    BHT_EQ(pthread_mutex_destroy(lock), 0);
    BHT_EQ(pthread_mutexattr_init(&strict), 0);
    BHT_EQ(pthread_mutexattr_settype(&strict, PTHREAD_MUTEX_ERRORCHECK), 0);
    BHT_EQ(pthread_mutex_init(lock, &strict), 0);
    BHT_EQ(pthread_mutexattr_destroy(&strict), 0);
}

static void open_puppet(void) {
    bh_context_options options = {.struct_size = sizeof options};
    options.worker_path = "/proc/self/exe"; /* never run */
    options.spares = BH_OFF;
    options.quarantine_deaths = BH_OFF;
    bh_detail detail;
    puppet = (struct puppet){0};
    if (__real_bh_context_create(&options, &puppet.context, &detail) != BH_OK) {
        BHT_FAIL("%s", detail.message);
    }
    bhi_reactor_stop(puppet.context);
    be_strict(&puppet.context->lock);
    add_zygote();
    puppet.stream = fx_stream(puppet.context, "one", BH_FOREVER);
    puppet.buffer = fx_buffer(puppet.context, 4096);
    if (begin_test) {
        begin_test();
    }
}

/* -- what is true whenever the lock is free ------------------------------------------------------ */

static size_t count(const struct bhi_list *list) {
    size_t nodes = 0;
    BHI_LIST_EACH(node, list) {
        nodes++;
    }
    return nodes;
}

static bool is_in(const struct bhi_list *wanted, const struct bhi_list *list) {
    BHI_LIST_EACH(node, list) {
        if (node == wanted) {
            return true;
        }
    }
    return false;
}

/* What is FREE is counted, can be taken by whom it is safe for, and by nobody else (B3). */
static void check_pool(const struct bhi_pool *pool) {
    uint64_t bytes = 0;
    BHT_EQ(pool->stats.blocks, count(&pool->ages));
    BHI_LIST_FOR(const struct bhi_block, block, &pool->ages, age) {
        const struct bhi_list *shelves = pool->shelves;
        bytes += block->bytes;
        BHT_TRUE(block->pool == pool && block->fd >= 0 && !block->spoilt);
        if (count(&block->exposures) == 1) {
            const struct bhi_exposure *only =
                BHI_CONTAINER(block->exposures.next, struct bhi_exposure, of_block);
            shelves = only->writes ? only->worker->pool.shelves : only->worker->pool.unwritten;
        }
        BHT_EQ(is_in(&block->shelf, &shelves[block->size_class]), count(&block->exposures) < 2);
    }
    BHT_EQ(pool->stats.bytes, bytes);
}

static void check_worker(const struct bhi_worker *worker) {
    /* What it was told to forget is in none of these. */
    BHT_LE(worker->written.map.count, worker->buffers.map.count);
    BHT_LE(worker->constants.map.count, worker->buffers.map.count);
    BHT_TRUE(bhi_list_empty(&worker->makes) || worker->owes_since_ns);
    BHI_LIST_FOR(const struct bhi_exposure, exposure, &worker->pool.exposures, of_worker) {
        BHT_TRUE(exposure->worker == worker);
        BHT_TRUE(is_in(&exposure->of_block, &exposure->block->exposures));
        /* D3: it can write all device memory that it was given. */
        BHT_TRUE(exposure->writes || exposure->block->pool == puppet.context->pool);
    }
    BHI_LIST_FOR(const struct bhi_make, make, &worker->makes, link) {
        BHT_TRUE(make->worker == worker && (!make->memory || make->memory->make == make));
        BHT_TRUE(!make->memory ||
                 make->memory->state == (make->clears ? BHI_DEVICE_CLEARING : BHI_DEVICE_MAKING));
    }
    BHI_LIST_FOR(const struct bhi_submission, submission, &worker->core.inflight, link) {
        for (uint32_t i = 0; i < submission->use_count; i++) {
            BHT_TRUE(
                !BHI_CONTAINER(submission->uses[i].content, struct bh_buffer, content)->followed);
        }
    }
    /* A number comes again: then nobody may have withdrawn it. */
    const uint64_t harvested = worker->core.harvested;
    BHT_TRUE(harvested != worker->core.published ||
             !atomic_load(&worker->lane.header->withdrawn[harvested % BHI_LANE_WITHDRAWN / 64]));
}

static size_t in_lanes(const bh_stream *stream) {
    size_t submissions = 0;
    BHI_LIST_FOR(const struct bhi_worker, worker, &puppet.context->workers, link) {
        BHI_LIST_FOR(const struct bhi_submission, submission, &worker->core.inflight, link) {
            submissions += submission->stream == &stream->core;
        }
    }
    return submissions;
}

void puppet_check(void) {
    bh_context *context = puppet.context;
    uint64_t device_memory = 0;
    size_t pending = 0;
    bhi_context_lock(context);
    BHI_LIST_FOR(const struct bh_stream, stream, &context->streams, link) {
        device_memory += stream->device_memory;
        pending += stream->core.queued + stream->core.in_flight;
        BHT_EQ(stream->core.queued, count(&stream->core.queue));
        BHT_EQ(stream->core.in_flight, in_lanes(stream));
    }
    BHT_EQ(count(&context->pending), pending); /* what bh_context_synchronize waits for */
    BHT_EQ(context->device_memory, device_memory);
    BHT_EQ(context->tenants.idle_count, count(&context->tenants.idle));
    check_pool(context->pool);
    check_pool(context->device_pool);
    BHI_LIST_FOR(const struct bhi_worker, worker, &context->workers, link) {
        check_worker(worker);
    }
    bhi_context_unlock(context);
}

/* Nothing is left of what the test did. */
static void check_end(const bh_context *context) {
    const struct bhi_list *none[] = {&context->streams,     &context->workers, &context->zygotes,
                                     &context->loaders,     &context->pending, &context->replicas,
                                     &context->tenants.busy};
    for (size_t i = 0; i < BHT_COUNT(none); i++) {
        BHT_TRUE(bhi_list_empty(none[i]));
    }
    BHT_EQ(context->device_memory, 0);
    BHT_EQ(context->counts.load_bytes, 0);
    BHT_EQ(context->pool->stats.used, 0);
    BHT_EQ(context->device_pool->stats.used, 0);
    BHT_EQ(atomic_load(&context->refs), 1); /* each object that is left has one */
}

/* As bh_context_destroy does it, whose reactor still runs. */
static void close_puppet(void) {
    bh_context *context = puppet.context;
    puppet_check();
    fx_release_all();
    if (end_test) {
        end_test();
    }
    bhi_context_lock(context);
    context->closed = true;
    bhi_streams_hold(context);
    BHI_LIST_FOR(struct bh_stream, stream, &context->streams, link) {
        bhi_stream_end_queued(&stream->core, BH_CONTEXT_CLOSED, "the test has ended");
    }
    bhi_streams_let_go(context);
    bhi_context_pump_unlock(context);
    BHI_LIST_EACH_SAFE(node, &context->workers)
    puppet_bury(BHI_CONTAINER(node, struct bhi_worker, link));
    BHI_LIST_FOR_SAFE(struct bhi_zygote, zygote, &context->zygotes, link) {
        bhi_list_remove(&zygote->link);
        bhi_zygote_release(zygote);
    }
    puppet_check();
    BHT_EQ(bhi_handle_drop(&context->handle), BHI_DROPPED_LAST);
    bhi_pipeline_cache_stop(context);
    bhi_loaders_stop(context);
    bhi_opener_stop(context);
    bhi_pending_forget(context);
    bhi_context_lock(context);
    bhi_pool_close(context->pool);
    bhi_pool_close(context->device_pool);
    bhi_context_pump_unlock(context);
    check_end(context);
    bhi_context_unref(context);
    for (struct side *next; sides; sides = next) {
        next = sides->next;
        bhi_progress_unmap(&sides->progress);
        free(sides);
    }
}

static struct puppet first; /* of two */

static void close_all(void) {
    close_puppet();
    if (first.context) {
        puppet = first;
        first = (struct puppet){0};
        close_puppet();
    }
}

BHT_AT_START(bht_around(open_puppet, close_all))

void puppet_around(void (*begin)(void), void (*end)(void)) {
    begin_test = begin;
    end_test = end;
}

void puppet_again(void) {
    close_puppet();
    open_puppet();
}

void puppet_beside(void) {
    BHT_TRUE(!first.context);
    first = puppet;
    open_puppet();
}

bh_stream *puppet_stream(const char *name, const char *tenant) {
    bh_stream_options options = fx_stream_options();
    options.name = name;
    options.tenant = tenant;
    options.deadline_ns = BH_FOREVER;
    return fx_stream_with(puppet.context, options);
}

struct bhi_worker *puppet_worker(enum bhi_life_state state) {
    struct body *body = calloc(1, sizeof *body);
    struct side *side = calloc(1, sizeof *side);
    BHT_TRUE(body && side);
    struct bhi_worker *worker = &body->worker;
    atomic_init(&worker->refs, 1);
    worker->context = puppet.context;
    bhi_context_retain(puppet.context);
    worker->zygote = puppet.zygote;
    bhi_zygote_retain(puppet.zygote);
    memcpy(worker->device, puppet.stream->device, sizeof worker->device);
    worker->memory_limit = puppet.stream->memory_limit;
    worker->kind = puppet.stream->kind;
    worker->oom_kills = bhi_oom_kills();
    worker->fdpass = worker->doorbell = worker->pidfd = worker->channel.fd = -1;
    worker->cache.area = worker->words.fd = -1;
    bhi_core_worker_init(&worker->core, &puppet.context->core);
    puppet_has_come_to(worker, state);
    worker->core.pid = 4242;
    bhi_list_init(&worker->link);
    bhi_list_init(&worker->outbox);
    bhi_list_init(&worker->makes);
    bhi_list_init(&worker->reflections);
    bhi_pool_user_init(&worker->pool);
    bhi_worker_kernels_init(&worker->kernels);
    BHT_EQ(bhi_lane_create(&worker->lane, BHI_LANE_CAPACITY, BHI_PROGRESS_RESULTS), 0);
    BHT_EQ(bhi_progress_create(&worker->progress, BHI_PROGRESS_RESULTS), 0);
    BHT_EQ(bhi_progress_map(&side->progress, worker->progress.fd, worker->progress.bytes), 0);
    side->next = sides;
    body->side = sides = side;
    bhi_context_lock(puppet.context);
    worker->id = bhi_context_new_id(puppet.context);
    bhi_list_append(&puppet.context->workers, &worker->link);
    bhi_context_pump_unlock(puppet.context);
    return worker;
}

void puppet_has_come_to(struct bhi_worker *worker, enum bhi_life_state state) {
    BHT_LE(state, BHI_RUNNING);
    worker->core.life.state = worker->core.life.came_to = state;
}

void puppet_bind(struct bhi_worker *worker, bh_stream *stream) {
    bhi_context_lock(puppet.context);
    bhi_stream_bind(&stream->core, &worker->core);
    bhi_worker_retain(worker);
    if (worker->core.life.state == BHI_RUNNING) {
        bhi_stream_served(&stream->core);
    }
    bhi_context_pump_unlock(puppet.context);
}

struct bhi_worker *puppet_serving(void) {
    struct bhi_worker *worker = puppet_worker(BHI_RUNNING);
    puppet_bind(worker, puppet.stream);
    return worker;
}

void puppet_dies(struct bhi_worker *worker) {
    struct bhi_life *life = &worker->core.life;
    (void)bhi_life_step(life, BHI_LIFE_HANG_UP, bhi_now_ns());
    (void)bhi_life_step(life, BHI_LIFE_SEEN, bhi_now_ns());
}

struct bhi_block *puppet_block(bool on_device, struct bhi_pool_need *out_need) {
    *out_need = (struct bhi_pool_need){0};
    struct bhi_block *block;
    if (on_device) {
        out_need->device_of = puppet.stream;
        out_need->size = 64;
        block = bhi_pool_order(puppet.stream, 64);
        BHT_TRUE(block);
        block->fd = bhi_memfd_create("puppet", 4096, 0);
        BHT_GE(block->fd, 0);
    } else {
        const uint64_t bytes = bhi_pool_round(puppet.context->pool, 1, &out_need->size_class);
        const int fd = bhi_memfd_create("puppet", bytes, 0);
        BHT_GE(fd, 0);
        void *pointer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        BHT_TRUE(pointer != MAP_FAILED);
        block = bhi_pool_adopt(puppet.context, out_need->size_class, fd, pointer, bytes);
        BHT_TRUE(block);
    }
    return block;
}

bh_event *puppet_submit(void) {
    return fx_fill(puppet.stream, puppet.buffer, 7);
}

struct bhi_progress *puppet_side(struct bhi_worker *worker) {
    return &BHI_CONTAINER(worker, struct body, worker)->side->progress;
}

void puppet_begins(struct bhi_worker *worker, uint64_t seq) {
    atomic_store(&puppet_side(worker)->header->started_seq, seq);
}

void puppet_complete(struct bhi_worker *worker, uint64_t count) {
    struct bhi_progress *side = puppet_side(worker);
    const uint64_t done = atomic_load(&side->header->completed_seq);
    BHT_LE(done + count, worker->core.published);
    const uint64_t record = worker->lane.head / worker->core.published; /* all are alike */
    for (uint64_t seq = done + 1; seq <= done + count; seq++) {
        const uint64_t now_ns = bhi_now_ns();
        const struct bhi_result result = {.seq = seq,
                                          .started_ns = now_ns,
                                          .ended_ns = now_ns,
                                          .status = BH_OK,
                                          .command_index = BHI_NO_COMMAND,
                                          .executed = BH_EXECUTED_YES};
        puppet_begins(worker, seq);
        bhi_progress_result(side, &result, NULL);
        bhi_progress_publish(side, seq, seq * record);
    }
}

void puppet_end_process(struct bhi_worker *worker, int code_kind, int status) {
    if (code_kind) {
        bhi_life_status(&worker->core.life, code_kind, status, bhi_now_ns());
    }
}

void puppet_bury(struct bhi_worker *worker) {
    bh_context *context = worker->context;
    puppet.obituary = (struct bhi_obituary){.line = "unwritten"};
    bhi_context_lock(context);
    bhi_worker_died(worker, &puppet.obituary);
    bhi_context_pump_unlock(context);
    bhi_worker_release(worker);
}

void puppet_killed(struct bhi_worker *worker, int signal) {
    puppet_end_process(worker, CLD_KILLED, signal);
    puppet_bury(worker);
}

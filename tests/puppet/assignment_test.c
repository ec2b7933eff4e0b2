/* Which stream gets which worker, when, and what a worker that dies costs it; and which memory a
 * worker is given. */
#include "puppet.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/context/context.h"
#include "supervisor/reactor/assignment.h"
#include "supervisor/worker/outbox.h"

#include <sys/resource.h>
#include <unistd.h>

TEST(a_spare_is_taken) {
    struct bhi_worker *worker = puppet_worker(BHI_RUNNING);
    worker->devices = calloc(1, sizeof *worker->devices); /* released with it */
    BHT_TRUE(worker->devices);
    worker->devices[0].chosen = worker->device_count = worker->device_capacity = 1;
    BHT_EQ(bhi_assignment_turn(puppet.context), BH_FOREVER);
    BHT_TRUE(puppet.stream->core.worker == &worker->core);
    BHT_EQ(puppet.stream->core.state, BHI_STREAM_SERVED);
    BHT_TRUE(puppet.stream->runs_on.known);
    const struct bhi_list *first = worker->outbox.next; /* it is told for whom it works */
    BHT_EQ(BHI_CONTAINER(first, struct bhi_outgoing, link)->message.type, BHI_MSG_SERVE);
}

/* A spare that differs in anything that the stream was promised is not for it. */
TEST(a_spare_of_another_kind_is_left) {
    puppet.zygote->state = BHI_ZYGOTE_STARTING; /* nobody else can be had */
    struct bhi_worker *roomy = puppet_worker(BHI_RUNNING);
    roomy->memory_limit = puppet.stream->memory_limit + 4096;
    struct bhi_worker *narrow = puppet_worker(BHI_RUNNING);
    narrow->memory_limit = puppet.stream->memory_limit / 2 + 1;
    struct bhi_worker *elsewhere = puppet_worker(BHI_RUNNING);
    elsewhere->device[0] = 'x';
    struct bhi_worker *loader = puppet_worker(BHI_RUNNING);
    loader->kind = BHI_WORKER_LOADER;
    struct bhi_worker *doomed = puppet_worker(BHI_RUNNING);
    bhi_context_lock(puppet.context);
    bhi_core_worker_kill(&doomed->core, BHI_KILL_RETIRED, 0, "it is to go");
    bhi_context_pump_unlock(puppet.context);
    struct bhi_worker *dead = puppet_worker(BHI_RUNNING);
    puppet_end_process(dead, CLD_EXITED, 0);
    BHT_EQ(bhi_assignment_turn(puppet.context), BH_FOREVER);
    BHT_TRUE(!puppet.stream->core.worker);
    BHT_EQ(puppet.stream->core.state, BHI_STREAM_WANTING);
    roomy->memory_limit = puppet.stream->memory_limit;
    (void)bhi_assignment_turn(puppet.context);
    BHT_TRUE(puppet.stream->core.worker == &roomy->core);
}

/* The pause after a loss: a worker that is there is not bound before it is over, and the reactor is
 * told when that is. */
TEST(a_pause_is_kept) {
    struct bhi_worker *worker = puppet_worker(BHI_RUNNING);
    const uint64_t until_ns = bhi_now_ns() + 3600 * UINT64_C(1000000000);
    puppet.stream->core.restart.not_before_ns = until_ns;
    BHT_TRUE(bhi_assignment_turn(puppet.context) == until_ns);
    BHT_TRUE(!puppet.stream->core.worker);
    puppet.stream->core.restart.not_before_ns = bhi_now_ns();
    BHT_TRUE(bhi_assignment_turn(puppet.context) == BH_FOREVER);
    BHT_TRUE(puppet.stream->core.worker == &worker->core);
}

/* -- what a death costs ------------------------------------------------------------------------ */

static const struct {
    enum bhi_life_state state;
    int signal; /* 0: its zygote dies, and nobody tells how it ended */
    uint64_t used_s;
    bool charged;
} deaths[] = {
    {BHI_RUNNING, SIGSEGV, 0, true},
    {BHI_RUNNING, SIGKILL, 0, false},
    {BHI_RUNNING, SIGTERM, 0, false},
    {BHI_RUNNING, 0, 0, false},
    {BHI_HELD, SIGSEGV, 0, true},
    {BHI_HELD, SIGSYS, 0, true},
    {BHI_HELD, SIGKILL, 0, false},
    {BHI_HELD, 0, 0, false},
    /* The host allows it 1000 s of processor time, and that is why it was killed. Each start would be. */
    {BHI_HELD, SIGKILL, 1000, true},
    {BHI_RUNNING, SIGKILL, 1000, false},
};

/* Its worker dies with nothing in its lane, and a submission waits: what does that cost the stream? What
 * others end, or the death of the zygote, says nothing about it. */
TEST(what_others_end_is_nobodys_fault) {
    const struct rlimit limit = {1000, 1000};
    BHT_EQ(setrlimit(RLIMIT_CPU, &limit), 0);
    for (size_t i = 0; i < BHT_COUNT(deaths); i++) {
        puppet_again();
        struct bhi_worker *worker = puppet_worker(deaths[i].state);
        puppet_bind(worker, puppet.stream);
        worker->core.life.limited_ns = (deaths[i].used_s + 1) * UINT64_C(1000000000) - 1;
        if (deaths[i].signal) {
            puppet_end_process(worker, CLD_KILLED, deaths[i].signal);
        } else {
            puppet.zygote->state = BHI_ZYGOTE_LOST;
        }
        const struct bhi_restart *restart = &puppet.stream->core.restart;
        const uint64_t credit_ns = restart->credit_ns;
        puppet_bury(worker);
        BHT_EQ(puppet.stream->core.state, BHI_STREAM_WANTING);
        BHT_EQ(restart->losses, 1); /* the next one is backed off, whoever ends it */
        if ((restart->credit_ns < credit_ns) != deaths[i].charged ||
            restart->taken != (!deaths[i].charged && deaths[i].state == BHI_HELD)) {
            BHT_FAIL("row %zu: it costs %llu ns, and is number %llu in a row", i,
                     (unsigned long long)(credit_ns - restart->credit_ns),
                     (unsigned long long)restart->taken);
        }
    }
}

/* -- memory ------------------------------------------------------------------------------------ */

enum trust { TRUSTED, LIED, KILLED, STARTING };

/* |worker| has had a block, which is free: is a buffer for its stream given it? */
static bool given_again(enum trust trust, bool on_device) {
    struct bhi_pool_need need;
    puppet_again();
    struct bhi_worker *worker = puppet_worker(BHI_RUNNING);
    bhi_context_lock(puppet.context);
    struct bhi_block *block = puppet_block(on_device, &need);
    BHT_TRUE(bhi_pool_expose(block, worker, true));
    bhi_pool_give(block);
    worker->core.life.violated = trust == LIED;
    worker->core.life.kill = trust == KILLED ? BHI_KILL_DEADLINE : BHI_KILL_NONE;
    puppet_has_come_to(worker, trust == STARTING ? BHI_HELD : BHI_RUNNING);
    need.worker = worker;
    bool own;
    struct bhi_block *taken = bhi_pool_take(block->pool, &need, &own);
    const bool given = taken;
    BHT_EQ(own, given);
    BHT_TRUE(!taken || taken == block);
    if (taken) {
        bhi_pool_give(taken);
    }
    bhi_context_pump_unlock(puppet.context);
    return given;
}

/* One that lied, or is about to be killed, may do anything with what it still has mapped. */
TEST(one_that_is_to_die_is_given_no_memory) {
    for (int on_device = 0; on_device < 2; on_device++) {
        BHT_TRUE(given_again(TRUSTED, on_device));
        BHT_TRUE(!given_again(LIED, on_device));
        BHT_TRUE(!given_again(KILLED, on_device));
        BHT_TRUE(!given_again(STARTING, on_device));
    }
}

/* Nobody could take it before one of them dies. The host waits for that, but gives it up first; a
 * GPU has less to spare. */
TEST(memory_that_two_workers_have_goes_first) {
    for (int on_device = 0; on_device < 2; on_device++) {
        struct bhi_pool_need need;
        puppet_again();
        struct bhi_worker *worker = puppet_worker(BHI_RUNNING), *other = puppet_worker(BHI_RUNNING);
        bhi_context_lock(puppet.context);
        struct bhi_block *older = puppet_block(on_device, &need),
                         *shared = puppet_block(on_device, &need);
        const struct bhi_pool *pool = older->pool;
        bhi_pool_give(older);
        BHT_TRUE(bhi_pool_expose(shared, worker, true) && bhi_pool_expose(shared, other, true));
        bhi_pool_give(shared);
        BHT_EQ(pool->stats.blocks, on_device ? 1 : 2);
        BHT_TRUE(on_device || pool->ages.next == &shared->age);
        need.worker = worker;
        bool own;
        BHT_TRUE(bhi_pool_take(older->pool, &need, &own) == older);
        BHT_TRUE(!own && !bhi_pool_take(older->pool, &need, &own));
        bhi_pool_give(older);
        bhi_pool_worker_died(other);
        BHT_TRUE(bhi_pool_take(older->pool, &need, &own) == (on_device ? older : shared));
        BHT_EQ(own, !on_device);
        bhi_pool_give(on_device ? older : shared);
        bhi_context_pump_unlock(puppet.context);
    }
}

/* What an upload goes through, no worker can write: else one that was taken over could change what
 * the next one uploads in its place (B5). */
TEST(uploads_get_what_no_worker_can_write) {
    struct bhi_worker *worker = puppet_worker(BHI_RUNNING), *next = puppet_worker(BHI_RUNNING);
    struct bhi_pool_need other;
    bool own;
    bhi_context_lock(puppet.context);
    struct bhi_block *read = puppet_block(false, &other), *written = puppet_block(false, &other);
    struct bhi_pool *pool = puppet.context->pool;
    struct bhi_pool_need uploads = other, later = other;
    other.worker = uploads.worker = worker;
    later.worker = next;
    uploads.unwritten = later.unwritten = true;
    BHT_TRUE(bhi_pool_expose(written, worker, false));
    BHT_TRUE(bhi_pool_expose(written, worker, true));
    BHT_TRUE(bhi_pool_expose(written, worker, false)); /* it may still have the other mapping */
    BHT_TRUE(bhi_pool_expose(read, worker, false));
    bhi_pool_give(read);
    bhi_pool_give(written);
    BHT_TRUE(bhi_pool_take(pool, &uploads, &own) == read);
    BHT_TRUE(own);
    BHT_TRUE(!bhi_pool_take(pool, &uploads, &own));
    BHT_TRUE(!own);
    bhi_pool_give(read);
    /* Another buffer gets the one that no upload can use, and the other one if it must. */
    BHT_TRUE(bhi_pool_take(pool, &other, &own) == written);
    BHT_TRUE(bhi_pool_take(pool, &other, &own) == read);
    BHT_TRUE(own);
    bhi_pool_give(read);
    bhi_pool_give(written);
    bhi_pool_worker_died(worker);
    for (int i = 0; i < 2; i++) { /* the host clears them first */
        BHT_TRUE(bhi_pool_take(pool, &later, &own));
        BHT_TRUE(!own);
    }
    bhi_pool_give(read);
    bhi_pool_give(written);
    const uint64_t evictions = pool->stats.evictions;
    pool->most = 1; /* of two */
    bhi_pool_give(bhi_pool_take(pool, &later, &own));
    BHT_EQ(pool->stats.blocks, 1);
    bhi_pool_trim(pool, 0);
    BHT_EQ(pool->stats.evictions, evictions + 2);
    bhi_context_pump_unlock(puppet.context);
}

/* A class has one size, which wastes a quarter at most, and nothing of few pages. What is as large as
 * the whole pool is kept. */
TEST(size_classes) {
    struct bhi_pool *pool = puppet.context->pool;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint32_t last_class = 0;
    uint64_t last = page;
    pool->limit = 2048 * page;
    for (uint64_t pages = 1; pages <= 2049; pages++) {
        uint32_t size_class, again;
        const uint64_t bytes = bhi_pool_round(pool, pages * page, &size_class);
        BHT_WITHIN(bytes, pages * page, pages <= 4 ? pages * page : pages * page / 4 * 5);
        BHT_EQ(size_class == BHI_POOL_CLASSES, pages > 2048);
        BHT_EQ(bytes > last, size_class > last_class);
        BHT_EQ(bhi_pool_round(pool, bytes, &again), bytes);
        BHT_EQ(again, size_class);
        last = bytes;
        last_class = size_class;
    }
}

/* A host without descriptors is asked again for 400 ms, each time that it has none: a worker that serves
 * in between ends it. */
TEST(patience_with_a_starved_host_begins_anew) {
    struct bhi_core_stream *stream = &puppet.stream->core;
    const bh_detail why = {.status = BH_UNAVAILABLE};
    for (int served = 1; served >= 0; served--) {
        bhi_context_lock(puppet.context);
        bhi_stream_starved(stream, &why);
        BHT_EQ(stream->state, BHI_STREAM_WANTING);
        stream->starved_since_ns -= UINT64_C(1000000000);
        bhi_context_settle_unlock(puppet.context);
        if (served) {
            puppet_killed(puppet_serving(), SIGKILL);
        }
        bhi_context_lock(puppet.context);
        bhi_stream_starved(stream, &why);
        BHT_EQ(stream->state, served ? BHI_STREAM_WANTING : BHI_STREAM_UNAVAILABLE);
        if (!served) { /* soon, whatever the window of its restarts is */
            BHT_GT(stream->restart.window_ns, UINT64_C(1000000000));
            BHT_LE(stream->heals_at_ns, bhi_now_ns() + UINT64_C(1000000000));
        }
        bhi_context_pump_unlock(puppet.context);
    }
}

/* The pool of device memory (supervisor/buffer/pool.h): who gets what a buffer has left
 * behind, what is in it, and what makes it go (B3, D3, D5, D6). Workers make and clear files that
 * stand for memory (memory_worker.h). */
#include "base/memfd.h"
#include "ipc/layers.h"
#include "memory_worker.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/context/context.h"
#include "supervisor/event/harvest.h"

#include <stdio.h>

enum {
    A,
    A2,
    B,
    C,
    STREAMS
}; /* tenant and device of |A|: one more of both, another's, elsewhere */

struct scene {
    struct puppet p;
    bh_stream *streams[STREAMS];
    struct memory_worker workers[STREAMS];
    struct memory_worker *all[MEMORY_OTHERS];
    struct memory_past past;
    uint64_t page;
};

static const struct {
    const char *name, *tenant;
    uint32_t tenant_number, device;
} who[STREAMS] = {{"a", "red", 0, 1}, {"a2", "red", 0, 1}, {"b", "blue", 1, 1}, {"c", "red", 0, 2}};

static void begin_worker(struct scene *s, int i) {
    memory_worker_begin(&s->workers[i], &s->p, s->streams[i], who[i].tenant_number, s->all,
                        &s->past);
}

static struct scene *set_up(void) {
    static struct scene scene;
    struct scene *s = &scene;
    *s = (struct scene){.page = bhi_page_round(1)};
    puppet_open(&s->p);
    for (int i = 0; i < STREAMS; i++) {
        bh_stream_options options = {.struct_size = sizeof options};
        options.name = who[i].name;
        options.tenant = who[i].tenant;
        options.deadline_ns = BH_FOREVER;
        BHT_EQ(bh_stream_create(s->p.context, &options, &s->streams[i], NULL), BH_OK);
        bhi_context_lock(s->p.context);
        s->streams[i]->runs_on = (struct bhi_stream_device){
            .known = true, .is_discrete = true, .features = BHI_FEATURE_MEMORY_EXPORT};
        s->streams[i]->runs_on.uuid[0] = (uint8_t)who[i].device;
        bhi_context_unlock(s->p.context);
        s->all[i] = &s->workers[i];
        begin_worker(s, i);
    }
    return s;
}

static void bury(struct scene *s, int i) {
    memory_worker_die(&s->workers[i]);
    memory_worker_bury(&s->workers[i]);
}

static void tear_down(struct scene *s) {
    for (int i = 0; i < STREAMS; i++) {
        if (s->workers[i].worker) {
            bury(s, i);
        }
        bh_stream_release(s->streams[i]);
    }
    BHT_EQ(s->p.context->device_memory, 0);
    puppet_close(&s->p);
}

static bh_stats stats(const struct scene *s) {
    bh_stats stats = {.struct_size = sizeof stats};
    BHT_EQ(bh_context_stats(s->p.context, &stats, NULL, 0, NULL, NULL), BH_OK);
    return stats;
}

static bh_status create_on(struct scene *s, int i, uint64_t size, bh_buffer **out) {
    bh_buffer_options options = {.struct_size = sizeof options};
    options.stream = s->streams[i];
    options.memory = BH_MEMORY_DEVICE;
    return bh_buffer_create(s->p.context, size, &options, out, NULL);
}

static bh_buffer *create(struct scene *s, int i) {
    bh_buffer *buffer = NULL;
    BHT_EQ(create_on(s, i, MEMORY_BYTES, &buffer), BH_OK);
    return buffer;
}

static bh_event *submit(struct scene *s, int i, const bh_command *command) {
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = command,
                                 .command_count = 1,
                                 .deadline_ns = BH_FOREVER};
    bh_event *event = NULL;
    bh_detail detail;
    if (bh_submit(s->streams[i], &info, &event, &detail) != BH_OK) {
        BHT_FAIL("%s", detail.message);
    }
    return event;
}

static bh_event *fill(struct scene *s, int i, bh_buffer *buffer) {
    return submit(
        s, i,
        &(bh_command){.type = BH_COMMAND_FILL,
                      .fill = {.dst = buffer, .size = BH_WHOLE_SIZE, .value = 0x11111111}});
}

static void run(struct scene *s, int i) {
    while (memory_worker_has_work(&s->workers[i])) {
        (void)memory_worker_run(&s->workers[i], MEMORY_LIVES);
        memory_worker_harvest(&s->workers[i]);
    }
}

static void run_all(struct scene *s) {
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < STREAMS; i++) {
            if (s->workers[i].worker && !s->workers[i].dead) {
                run(s, i);
            }
        }
    }
}

static void expect(bh_event *event, bh_status status) {
    BHT_EQ(puppet_verdict(event).status, status);
    bh_event_release(event);
}

static void fill_now(struct scene *s, int i, bh_buffer *buffer) {
    bh_event *event = fill(s, i, buffer);
    run_all(s);
    expect(event, BH_OK);
}

/* Each word that stream |i| reads in |buffer| is |word|. */
static void expect_words(struct scene *s, int i, bh_buffer *buffer, uint32_t word) {
    bh_buffer *host = NULL;
    BHT_EQ(bh_buffer_create(s->p.context, MEMORY_BYTES, NULL, &host, NULL), BH_OK);
    bh_event *event =
        submit(s, i,
               &(bh_command){.type = BH_COMMAND_COPY,
                             .copy = {.src = buffer, .dst = host, .size = BH_WHOLE_SIZE}});
    run_all(s);
    expect(event, BH_OK);
    void *words = NULL;
    BHT_EQ(bh_buffer_map(host, BH_MAP_READ, 0, &words, NULL), BH_OK);
    for (size_t at = 0; at < MEMORY_BYTES / 4; at++) {
        BHT_EQ(((const uint32_t *)words)[at], word);
    }
    bh_buffer_release(host);
}

/* A buffer of |maker| that |user| (or nobody: -1) has used, too, is gone. */
static void leave(struct scene *s, int maker, int user) {
    bh_buffer *buffer = create(s, maker);
    fill_now(s, maker, buffer);
    if (user >= 0) {
        fill_now(s, user, buffer);
    }
    bh_buffer_release(buffer);
}

/* Does a new buffer of stream |i| get kept memory? In any case it is zero. */
static bool gets(struct scene *s, int i) {
    const uint64_t hits = stats(s).device_pool_hits;
    bh_buffer *buffer = create(s, i);
    const bool got = stats(s).device_pool_hits > hits;
    if (s->workers[i].worker) {
        expect_words(s, i, buffer, 0);
    }
    bh_buffer_release(buffer);
    return got;
}

/* -- B3: who gets it -------------------------------------------------------------------------- */

TEST(b3_its_own_stream_gets_it_again) {
    struct scene *s = set_up();
    leave(s, A, -1);
    BHT_EQ(stats(s).device_pool_blocks, 1);
    BHT_EQ(stats(s).device_pool_bytes, s->page);
    BHT_TRUE(gets(s, A));
    BHT_TRUE(gets(s, A));
    BHT_EQ(stats(s).device_pool_blocks, 1);
    BHT_EQ(s->past.count, 1); /* nobody has made any more */
    tear_down(s);
}

TEST(b3_no_other_stream_while_the_worker_lives) {
    struct scene *s = set_up();
    leave(s, A, -1);
    BHT_TRUE(!gets(s, A2));
    bh_stream_release(s->streams[A2]), s->streams[A2] = NULL;
    tear_down(s);
    s = set_up();
    leave(s, A, -1);
    bury(s, A);
    BHT_TRUE(gets(s, A2)); /* of its tenant */
    begin_worker(s, A);
    BHT_TRUE(!gets(s, A)); /* |a2|'s worker has it now */
    tear_down(s);
}

TEST(b3_no_other_tenant_ever) {
    struct scene *s = set_up();
    leave(s, A, -1);
    BHT_TRUE(!gets(s, B));
    tear_down(s);
    s = set_up();
    leave(s, A, -1);
    bury(s, A);
    BHT_TRUE(!gets(s, B));
    bury(s, B);
    BHT_TRUE(gets(s, B)); /* its own */
    BHT_TRUE(gets(s, A2));
    tear_down(s);
}

TEST(b3_no_other_device) {
    struct scene *s = set_up();
    leave(s, A, -1);
    BHT_TRUE(!gets(s, C));
    tear_down(s);
    s = set_up();
    leave(s, A, -1);
    bury(s, A);
    BHT_TRUE(!gets(s, C));
    tear_down(s);
}

TEST(b3_no_other_size) {
    static const uint64_t sizes[] = {MEMORY_BYTES - 4, MEMORY_BYTES + 1, 2 * MEMORY_BYTES};
    struct scene *s = set_up();
    leave(s, A, -1);
    for (size_t i = 0; i < BHT_COUNT(sizes); i++) {
        bh_buffer *buffer = NULL;
        BHT_EQ(create_on(s, A, sizes[i], &buffer), BH_OK);
        BHT_EQ(stats(s).device_pool_hits, 0);
        bh_buffer_release(buffer);
    }
    BHT_EQ(stats(s).device_pool_blocks, 1); /* what nobody has made is not kept */
    tear_down(s);
}

/* Nobody could have it before one of them is dead: it is given back. */
TEST(b3_what_two_workers_have_is_not_kept) {
    struct scene *s = set_up();
    leave(s, A, A2);
    BHT_EQ(stats(s).device_pool_blocks, 0);
    bh_buffer *buffer = create(s, A);
    fill_now(s, A, buffer);
    fill_now(s, A2, buffer);
    bury(s, A2);
    bh_buffer_release(buffer);
    BHT_EQ(stats(s).device_pool_blocks, 1);
    BHT_TRUE(gets(s, A));
    tear_down(s);
}

enum trust { TRUSTED, LIED, KILLED, STARTING };

static void distrust(struct scene *s, int i, enum trust trust) {
    struct bhi_worker *worker = s->workers[i].worker;
    bhi_context_lock(s->p.context);
    worker->core.life.violated = trust == LIED;
    worker->core.life.kill = trust == KILLED ? BHI_KILL_DEADLINE : BHI_KILL_NONE;
    puppet_has_come_to(worker, trust == STARTING ? BHI_HELD : BHI_RUNNING);
    bhi_context_unlock(s->p.context);
}

/* One that lied, or is about to be killed, may do anything with what it still has. */
TEST(b3_none_from_a_worker_that_is_to_die) {
    for (enum trust trust = TRUSTED; trust <= STARTING; trust++) {
        struct scene *s = set_up();
        leave(s, A, -1);
        distrust(s, A, trust);
        bh_buffer *buffer = create(s, A);
        BHT_EQ(stats(s).device_pool_hits, trust == TRUSTED);
        bh_buffer_release(buffer);
        distrust(s, A, TRUSTED);
        bury(s, A);
        begin_worker(s, A);
        BHT_TRUE(gets(s, A));
        tear_down(s);
    }
}

/* A buffer has got it already, and no worker has cleared it: then its worker lies. Another stream
 * of the tenant does not take what that worker can still write. */
TEST(b3_one_that_lied_had_it_before_it_was_cleared) {
    struct scene *s = set_up();
    leave(s, A, -1);
    const ino_t memory = s->workers[A].had[0];
    bh_buffer *buffer = create(s, A);
    BHT_EQ(stats(s).device_pool_hits, 1);
    distrust(s, A, LIED);
    expect_words(s, A2, buffer, 0);
    BHT_EQ(s->workers[A2].had_count, 1);
    BHT_TRUE(s->workers[A2].had[0] != memory);
    distrust(s, A, TRUSTED);
    bh_buffer_release(buffer);
    tear_down(s);
}

/* -- D3: what is in it ------------------------------------------------------------------------ */

/* The worker that has to clear it dies before, in the middle, and afterwards; it is the one that
 * had it, or another one. */
TEST(d3_the_clearer_dies) {
    static const enum memory_end ends[] = {MEMORY_DIES_UNTOLD, MEMORY_DIES_TELLING,
                                           MEMORY_DIES_CLEARING, MEMORY_DIES_MADE,
                                           MEMORY_DIES_STARTED};
    for (size_t i = 0; i < 2 * BHT_COUNT(ends); i++) {
        const enum memory_end end = ends[i / 2];
        struct scene *s = set_up();
        leave(s, A, -1);
        if (i % 2) {
            bury(s, A);
            begin_worker(s, A);
        }
        bh_buffer *buffer = create(s, A), *host = NULL;
        BHT_EQ(stats(s).device_pool_hits, 1);
        BHT_EQ(bh_buffer_create(s->p.context, MEMORY_BYTES, NULL, &host, NULL), BH_OK);
        bh_event *event =
            submit(s, A,
                   &(bh_command){.type = BH_COMMAND_COPY,
                                 .copy = {.src = buffer, .dst = host, .size = BH_WHOLE_SIZE}});
        (void)memory_worker_run(&s->workers[A], end);
        memory_worker_bury(&s->workers[A]);
        begin_worker(s, A);
        run_all(s);
        expect(event, end == MEMORY_DIES_STARTED ? BH_WORKER_SIGNAL : BH_OK);
        expect_words(s, A, buffer, 0);
        bh_buffer_release(host);
        bh_buffer_release(buffer);
        tear_down(s);
    }
}

/* What was written after it was cleared is not cleared once more. */
TEST(d3_it_is_cleared_once) {
    struct scene *s = set_up();
    leave(s, A, -1);
    bh_buffer *buffer = create(s, A);
    BHT_EQ(stats(s).device_pool_hits, 1);
    fill_now(s, A, buffer);
    expect_words(s, A2, buffer, 0x11111111);
    bury(s, A);
    begin_worker(s, A);
    expect_words(s, A, buffer, 0x11111111);
    bh_buffer_release(buffer);
    tear_down(s);
}

/* Another stream needs it first: the worker that has had it must not use it before it is clear. */
TEST(d3_the_owner_waits_for_who_clears_it) {
    struct scene *s = set_up();
    leave(s, A, -1);
    bh_buffer *buffer = create(s, A), *hosts[2] = {NULL, NULL};
    bh_event *events[2];
    for (int i = 0; i < 2; i++) {
        BHT_EQ(bh_buffer_create(s->p.context, MEMORY_BYTES, NULL, &hosts[i], NULL), BH_OK);
        events[i] =
            submit(s, i ? A : A2,
                   &(bh_command){.type = BH_COMMAND_COPY,
                                 .copy = {.src = buffer, .dst = hosts[i], .size = BH_WHOLE_SIZE}});
    }
    BHT_TRUE(memory_worker_has_work(&s->workers[A2]));
    BHT_TRUE(!memory_worker_has_work(&s->workers[A]));
    run_all(s);
    for (int i = 0; i < 2; i++) {
        expect(events[i], BH_OK);
        bh_buffer_release(hosts[i]);
    }
    expect_words(s, A, buffer, 0);
    bh_buffer_release(buffer);
    tear_down(s);
}

/* It cannot be cleared: the memory is made anew, and nobody is poisoned. */
TEST(d3_what_cannot_be_cleared_is_made_anew) {
    struct scene *s = set_up();
    leave(s, A, -1);
    bh_buffer *buffer = create(s, A);
    s->workers[A].cannot_clear = true;
    expect_words(s, A, buffer, 0);
    BHT_EQ(s->past.count, 2);
    fill_now(s, A2, buffer);
    expect_words(s, A, buffer, 0x11111111); /* both have the new one */
    bh_buffer_release(buffer);
    tear_down(s);
}

/* -- D5 --------------------------------------------------------------------------------------- */

TEST(d5_a_lost_device_keeps_nothing) {
    struct scene *s = set_up();
    leave(s, A, -1);
    leave(s, B, -1);
    leave(s, C, -1);
    BHT_EQ(stats(s).device_pool_blocks, 3);
    bh_buffer *buffer = NULL;
    BHT_EQ(create_on(s, A, 8, &buffer), BH_OK);
    bh_event *event = fill(s, A, buffer);
    (void)memory_worker_run(&s->workers[A], MEMORY_LOSES_DEVICE);
    memory_worker_harvest(&s->workers[A]);
    expect(event, BH_DEVICE_LOST);
    BHT_EQ(stats(s).device_pool_blocks, 1); /* of the other device */
    bh_buffer_release(buffer);
    tear_down(s);
}

/* -- D6 --------------------------------------------------------------------------------------- */

TEST(d6_it_is_bounded_and_the_oldest_goes_first) {
    struct scene *s = set_up();
    s->p.context->device_pool->limit = 2 * s->page;
    leave(s, A, -1);
    leave(s, B, -1);
    leave(s, C, -1);
    BHT_EQ(stats(s).device_pool_bytes, 2 * s->page);
    BHT_TRUE(!gets(s, A));
    s->p.context->device_pool->limit = s->page - 1;
    leave(s, A, -1);
    BHT_EQ(stats(s).device_pool_blocks, 1); /* one that is too large sends nobody away */
    BHT_EQ(bh_context_trim(s->p.context, s->page, NULL), BH_OK);
    BHT_EQ(stats(s).device_pool_blocks, 1);
    BHT_EQ(bh_context_trim(s->p.context, 0, NULL), BH_OK);
    BHT_EQ(stats(s).device_pool_blocks, 0);
    BHT_EQ(stats(s).device_pool_bytes, 0);
    tear_down(s);
}

TEST(d6_it_makes_room_within_the_limit) {
    struct scene *s = set_up();
    s->p.context->device_memory_limit = 3 * s->page;
    leave(s, A, -1);
    leave(s, B, -1);
    bh_buffer *one = NULL, *two = NULL, *none = NULL;
    BHT_EQ(create_on(s, A, 8, &one), BH_OK);
    BHT_EQ(stats(s).device_pool_blocks, 2);
    BHT_EQ(create_on(s, A, 8, &two), BH_OK);
    BHT_EQ(stats(s).device_pool_blocks, 1); /* not |a|'s, the oldest */
    BHT_TRUE(gets(s, B));
    bh_buffer *third = create(s, B); /* what is kept becomes what is in use */
    BHT_EQ(stats(s).device_pool_blocks, 0);
    BHT_EQ(create_on(s, A, 8, &none), BH_OUT_OF_DEVICE_MEMORY);
    bh_buffer_release(one);
    bh_buffer_release(two);
    bh_buffer_release(third);
    tear_down(s);
}

/* The driver has none left: what is kept is given up, whoever's it is, before that is a verdict. */
TEST(d6_it_makes_room_on_a_full_device) {
    for (uint32_t times = 1; times <= 2; times++) {
        struct scene *s = set_up();
        leave(s, A, -1);
        leave(s, B, -1);
        leave(s, C, -1);
        bh_buffer *buffer = NULL;
        BHT_EQ(create_on(s, A2, MEMORY_BYTES, &buffer), BH_OK);
        bh_event *event = fill(s, A2, buffer);
        s->workers[A2].device_full = times;
        run_all(s);
        expect(event, times == 1 ? BH_OK : BH_OUT_OF_DEVICE_MEMORY);
        BHT_EQ(stats(s).device_pool_blocks, 1); /* of the other device */
        memory_worker_listen(&s->workers[A]);
        BHT_EQ(s->workers[A].hold_count, 0);
        fill_now(s, A2, buffer);
        bh_buffer_release(buffer);
        tear_down(s);
    }
}

/* The buffer is gone when its maker says that there is none left. */
TEST(d6_nobody_needs_it_any_more) {
    for (int clears = 0; clears < 2; clears++) {
        struct scene *s = set_up();
        if (clears) {
            leave(s, A, -1);
        }
        bh_buffer *buffer = create(s, A), *other = create(s, A);
        bh_event *event = fill(s, A, buffer), *next = fill(s, A, other);
        s->workers[A].device_full = clears ? 0 : 1;
        s->workers[A].cannot_clear = clears;
        BHT_EQ(bh_event_cancel(event), BH_OK);
        bh_buffer_release(buffer);
        run_all(s);
        expect(event, BH_CANCELLED);
        expect(next, BH_OK);
        BHT_EQ(s->workers[A].owed, 0);
        BHT_EQ(s->workers[A].hold_count, 1);
        expect_words(s, A, other, 0x11111111);
        bh_buffer_release(other);
        tear_down(s);
    }
}

/* A worker that waits for memory takes messages before their turn. So what fails for want of memory
 * takes away no buffer that the lane still needs. */
TEST(d6_what_follows_keeps_its_buffers) {
    struct scene *s = set_up();
    bh_buffer *host = NULL, *one = create(s, A), *two = create(s, A);
    BHT_EQ(bh_buffer_create(s->p.context, MEMORY_BYTES, NULL, &host, NULL), BH_OK);
    const bh_command copies[] = {
        {.type = BH_COMMAND_COPY, .copy = {.src = host, .dst = one, .size = BH_WHOLE_SIZE}},
        {.type = BH_COMMAND_COPY, .copy = {.src = host, .dst = two, .size = BH_WHOLE_SIZE}}};
    bh_event *first = submit(s, A, &copies[0]);
    s->workers[A].device_full = 2;
    (void)memory_worker_run(&s->workers[A], MEMORY_LIVES);
    bh_event *second = submit(s, A, &copies[1]);
    memory_worker_harvest(&s->workers[A]); /* not before |second| was in the lane */
    s->workers[A].device_full = 1;
    run_all(s);
    expect(first, BH_OUT_OF_DEVICE_MEMORY);
    expect(second, BH_OK);
    bh_buffer_release(host);
    bh_buffer_release(one);
    bh_buffer_release(two);
    tear_down(s);
}

/* -- moves and replicas (D4) ------------------------------------------------------------------ */

TEST(d4_a_move_leaves_its_memory_to_the_next) {
    struct scene *s = set_up();
    bh_buffer *buffer = create(s, A);
    fill_now(s, A, buffer);
    fill_now(s, C, buffer);
    BHT_EQ(stats(s).device_pool_blocks, 1);
    BHT_EQ(s->streams[A]->device_memory, 0);
    expect_words(s, C, buffer, 0x11111111);
    fill_now(s, A, buffer); /* and back, to where it was */
    BHT_EQ(stats(s).device_pool_hits, 1);
    BHT_EQ(stats(s).device_pool_blocks, 1);
    expect_words(s, A, buffer, 0x11111111);
    bh_buffer_release(buffer);
    BHT_EQ(stats(s).device_pool_blocks, 2);
    tear_down(s);
}

/* Nothing uses it when the buffer moves. */
TEST(d4_a_move_leaves_it_at_once) {
    struct scene *s = set_up();
    bh_buffer *buffer = create(s, A);
    fill_now(s, A, buffer);
    expect_words(s, C, buffer, 0x11111111);
    bh_event *event = fill(s, C, buffer); /* where it was read it can be written */
    BHT_EQ(s->streams[A]->device_memory, 0);
    BHT_EQ(stats(s).device_pool_blocks, 1);
    run_all(s);
    expect(event, BH_OK);
    bh_buffer_release(buffer);
    tear_down(s);
}

/* Something still uses the memory that it has left, and it moves on: where it was in between is not
 * kept as a copy. */
TEST(d4_no_copy_outlives_a_move) {
    struct scene *s = set_up();
    bh_buffer *buffer = create(s, A), *host = NULL;
    BHT_EQ(bh_buffer_create(s->p.context, MEMORY_BYTES, NULL, &host, NULL), BH_OK);
    fill_now(s, A, buffer);
    const bh_command read = {.type = BH_COMMAND_COPY,
                             .copy = {.src = buffer, .dst = host, .size = BH_WHOLE_SIZE}};
    bh_event *slow = submit(s, A2, &read);
    const struct memory_worker idle = s->workers[A2];
    s->workers[A2].dead = true; /* it does not run until the end */
    expect_words(s, C, buffer, 0x11111111);
    fill_now(s, C, buffer);
    fill_now(s, A, buffer);
    BHT_EQ(s->streams[C]->device_memory, 0);
    s->workers[A2].dead = idle.dead;
    run_all(s);
    expect(slow, BH_OK);
    bh_buffer_release(host);
    bh_buffer_release(buffer);
    tear_down(s);
}

TEST(d4_a_replica_leaves_its_memory_to_the_next) {
    struct scene *s = set_up();
    bh_buffer *buffer = create(s, A);
    fill_now(s, A, buffer);
    expect_words(s, B, buffer, 0x11111111);
    fill_now(s, A, buffer); /* another version: the replica of the old one goes */
    BHT_EQ(stats(s).device_pool_blocks, 1);
    expect_words(s, B, buffer, 0x11111111);
    BHT_EQ(stats(s).device_pool_hits, 1);
    BHT_EQ(s->past.count, 2);
    bh_buffer_release(buffer);
    BHT_EQ(stats(s).device_pool_blocks, 2);
    tear_down(s);
}

/* A buffer that outlives the context leaves nothing behind; what is counted is the descriptors. */
/* E9: it is asked to make memory for a submission that is cancelled, does nothing, and owes an
 * answer for which another stream waits. It has no deadline in its lane. */
TEST(e9_one_that_does_not_answer) {
    struct scene *s = set_up();
    struct bhi_worker *worker = s->workers[A].worker;
    bh_buffer *buffer = create(s, A);
    bh_event *cancelled = fill(s, A, buffer);
    BHT_EQ(bh_event_cancel(cancelled), BH_OK);
    expect(cancelled, BH_CANCELLED);
    bh_event *event = fill(s, A2, buffer);
    run(s, A2);
    BHT_EQ(bh_event_query(event), BH_EVENT_PENDING);
    bhi_context_lock(s->p.context);
    const uint64_t due_ns = bhi_worker_check_deadline(worker, bhi_now_ns());
    BHT_TRUE(due_ns != BH_FOREVER && worker->core.life.kill == BHI_KILL_NONE);
    BHT_TRUE(bhi_worker_check_deadline(worker, due_ns) == BH_FOREVER);
    BHT_EQ(worker->core.life.kill, BHI_KILL_PROTOCOL);
    bhi_context_pump_unlock(s->p.context);
    bury(s, A);
    run(s, A2);
    expect(event, BH_OK);
    bh_buffer_release(buffer);
    tear_down(s);
}

TEST(it_ends_with_the_context) {
    struct scene *s = set_up();
    leave(s, A, -1);
    bh_buffer *buffer = create(s, A), *other = create(s, A);
    fill_now(s, A, other);
    bh_buffer_release(other);
    BHT_EQ(stats(s).device_pool_blocks, 1);
    bhi_context_lock(s->p.context);
    bhi_pool_close(s->p.context->device_pool);
    bhi_context_pump_unlock(s->p.context);
    BHT_EQ(stats(s).device_pool_blocks, 0);
    bh_buffer_release(buffer);
    BHT_EQ(stats(s).device_pool_blocks, 0);
    tear_down(s);
}

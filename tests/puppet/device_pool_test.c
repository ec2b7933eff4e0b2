/* The pool of device memory (supervisor/buffer/pool.h): who gets what a buffer has left
 * behind, what is in it, and what makes it go (B3, D3, D5, D6). Workers make and clear files that
 * stand for memory (memory_worker.h). */
#include "base/fd.h"
#include "base/memfd.h"
#include "ipc/fdpass.h"
#include "ipc/layers.h"
#include "memory_worker.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/context/context.h"
#include "supervisor/event/event.h"
#include "supervisor/event/harvest.h"
#include "supervisor/submit/internal.h"

#include <bulkhead/cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGE bhi_page_round(1)
#define WORD 0x11111111u /* in each fill */

static bh_stats stats(void) {
    return fx_stats(puppet.context);
}

static bh_buffer *create(int i) {
    return memory_create(i, MEMORY_BYTES);
}

static bh_buffer *create_host(void) {
    return fx_buffer(puppet.context, MEMORY_BYTES);
}

static bh_event *fill(int i, bh_buffer *buffer) {
    return fx_fill(memory.streams[i], buffer, WORD);
}

static void bury(int i) {
    memory_worker_die(&memory.workers[i]);
    memory_worker_bury(&memory.workers[i]);
}

static void run(int i) {
    while (memory_worker_has_work(&memory.workers[i])) {
        (void)memory_worker_run(&memory.workers[i], MEMORY_LIVES);
        memory_worker_harvest(&memory.workers[i]);
    }
}

static void fill_now(int i, bh_buffer *buffer) {
    bh_event *event = fill(i, buffer);
    memory_run_all();
    fx_expect(event, BH_OK);
}

/* Each word that stream |i| reads in |buffer| is |word|. */
static void expect_words(int i, bh_buffer *buffer, uint32_t word) {
    bh_buffer *host = create_host();
    bh_event *event = fx_copy(memory.streams[i], buffer, host);
    memory_run_all();
    fx_expect(event, BH_OK);
    const uint32_t *words = fx_mapped(host);
    for (size_t at = 0; at < MEMORY_BYTES / 4; at++) {
        BHT_EQ(words[at], word);
    }
    bh_buffer_release(host);
}

static bool is_known(int i, uint64_t buffer) {
    bhi_context_lock(puppet.context);
    const bool known = bhi_idset_has(&memory.workers[i].worker->buffers, buffer);
    bhi_context_unlock(puppet.context);
    return known;
}

/* A buffer of |maker| that |user| (or nobody: -1) has used, too, is gone. */
static void leave(int maker, int user) {
    bh_buffer *buffer = create(maker);
    fill_now(maker, buffer);
    if (user >= 0) {
        fill_now(user, buffer);
    }
    bh_buffer_release(buffer);
}

/* Does a new buffer of stream |i| get kept memory? In any case it is zero. */
static bool gets(int i) {
    const uint64_t hits = stats().device_pool_hits;
    bh_buffer *buffer = create(i);
    const bool got = stats().device_pool_hits > hits;
    if (memory.workers[i].worker) {
        expect_words(i, buffer, 0);
    }
    bh_buffer_release(buffer);
    return got;
}

/* -- B3: who gets it -------------------------------------------------------------------------- */

TEST(b3_its_own_stream_gets_it_again) {
    leave(A, -1);
    BHT_EQ(stats().device_pool_blocks, 1);
    BHT_EQ(stats().device_pool_bytes, PAGE);
    BHT_TRUE(gets(A));
    BHT_TRUE(gets(A));
    BHT_EQ(stats().device_pool_blocks, 1);
    BHT_EQ(memory.made_count, 1); /* nobody has made any more */
}

TEST(b3_no_other_stream_while_the_worker_lives) {
    leave(A, -1);
    BHT_TRUE(!gets(A2));
    puppet_again();
    leave(A, -1);
    bury(A);
    BHT_TRUE(gets(A2)); /* of its tenant */
    memory_worker_begin(A);
    BHT_TRUE(!gets(A)); /* |a2|'s worker has it now */
}

TEST(b3_no_other_tenant_ever) {
    leave(A, -1);
    BHT_TRUE(!gets(B));
    puppet_again();
    leave(A, -1);
    bury(A);
    BHT_TRUE(!gets(B));
    bury(B);
    BHT_TRUE(gets(B)); /* its own */
    BHT_TRUE(gets(A2));
}

TEST(b3_no_other_device) {
    leave(A, -1);
    BHT_TRUE(!gets(C));
    puppet_again();
    leave(A, -1);
    bury(A);
    BHT_TRUE(!gets(C));
}

TEST(b3_no_other_size) {
    static const uint64_t sizes[] = {MEMORY_BYTES - 4, MEMORY_BYTES + 1, 2 * MEMORY_BYTES};
    leave(A, -1);
    for (size_t i = 0; i < BHT_COUNT(sizes); i++) {
        bh_buffer *buffer = memory_create(A, sizes[i]);
        BHT_EQ(stats().device_pool_hits, 0);
        bh_buffer_release(buffer);
    }
    BHT_EQ(stats().device_pool_blocks, 1); /* what nobody has made is not kept */
}

/* Nobody could have it before one of them is dead: it is given back. */
TEST(b3_what_two_workers_have_is_not_kept) {
    leave(A, A2);
    BHT_EQ(stats().device_pool_blocks, 0);
    bh_buffer *buffer = create(A);
    fill_now(A, buffer);
    fill_now(A2, buffer);
    bury(A2);
    bh_buffer_release(buffer);
    BHT_EQ(stats().device_pool_blocks, 1);
    BHT_TRUE(gets(A));
}

/* Its worker may have failed to map or to import it: it is told of it anew; at once if memory was
 * short, else when a buffer is made of it again. */
TEST(b3_what_failed_is_introduced_again) {
    static const bh_status failures[] = {BH_VULKAN, BH_CUDA, BH_OUT_OF_HOST_MEMORY,
                                         BH_LIMIT_EXCEEDED};
    for (size_t i = 0; i < 2 * BHT_COUNT(failures); i++) {
        const bh_status status = failures[i / 2];
        const bool on_device = i % 2;
        puppet_again();
        const bh_buffer_options options = {.stream = memory.streams[A],
                                           .memory = on_device ? BH_MEMORY_DEVICE : BH_MEMORY_HOST};
        bh_buffer *buffer = fx_buffer_with(puppet.context, MEMORY_BYTES, options);
        fill_now(A, buffer);
        memory.workers[A].fails_as = status;
        bh_event *event = fill(A, buffer);
        run(A);
        fx_expect(event, status);
        const uint64_t hits = on_device ? 0 : stats().pool_hits;
        if (status == BH_LIMIT_EXCEEDED) {
            bh_buffer_release(buffer);
            buffer = fx_buffer_with(puppet.context, MEMORY_BYTES, options);
            BHT_EQ(on_device ? stats().device_pool_hits : stats().pool_hits - hits, 1);
        }
        fill_now(A, buffer);
        expect_words(A, buffer, WORD);
        BHT_EQ(memory.made_count, on_device);
        /* Once: what has not failed since is not introduced another time. */
        bh_buffer_release(buffer);
        const uint32_t told = memory.workers[A].worker->control_sent;
        fill_now(A, fx_buffer_with(puppet.context, MEMORY_BYTES, options));
        BHT_EQ(memory.workers[A].worker->control_sent, told + on_device); /* cleared */
    }
}

enum trust { TRUSTED, LIED, KILLED, STARTING };

static void distrust(int i, enum trust trust) {
    struct bhi_worker *worker = memory.workers[i].worker;
    bhi_context_lock(puppet.context);
    worker->core.life.violated = trust == LIED;
    worker->core.life.kill = trust == KILLED ? BHI_KILL_DEADLINE : BHI_KILL_NONE;
    puppet_has_come_to(worker, trust == STARTING ? BHI_HELD : BHI_RUNNING);
    bhi_context_unlock(puppet.context);
}

/* One that lied, or is about to be killed, may do anything with what it still has. */
TEST(b3_none_from_a_worker_that_is_to_die) {
    for (enum trust trust = TRUSTED; trust <= STARTING; trust++) {
        puppet_again();
        leave(A, -1);
        distrust(A, trust);
        bh_buffer *buffer = create(A);
        BHT_EQ(stats().device_pool_hits, trust == TRUSTED);
        bh_buffer_release(buffer);
        distrust(A, TRUSTED);
        bury(A);
        memory_worker_begin(A);
        BHT_TRUE(gets(A));
    }
}

/* A buffer has got it already, and no worker has cleared it: then its worker lies, or is killed.
 * Another stream of the tenant does not take what that worker can still write. */
TEST(b3_one_that_lied_had_it_before_it_was_cleared) {
    for (enum trust trust = LIED; trust <= KILLED; trust++) {
        puppet_again();
        leave(A, -1);
        const ino_t had = memory.workers[A].had[0];
        bh_buffer *buffer = create(A);
        BHT_EQ(stats().device_pool_hits, 1);
        distrust(A, trust);
        expect_words(A2, buffer, 0);
        BHT_EQ(memory.workers[A2].had_count, 1);
        BHT_TRUE(memory.workers[A2].had[0] != had);
        distrust(A, TRUSTED);
    }
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
        puppet_again();
        leave(A, -1);
        if (i % 2) {
            bury(A);
            memory_worker_begin(A);
        }
        bh_buffer *buffer = create(A), *host = create_host();
        BHT_EQ(stats().device_pool_hits, 1);
        bh_event *event = fx_copy(memory.streams[A], buffer, host);
        (void)memory_worker_run(&memory.workers[A], end);
        memory_worker_bury(&memory.workers[A]);
        memory_worker_begin(A);
        memory_run_all();
        fx_expect(event, end == MEMORY_DIES_STARTED ? BH_WORKER_SIGNAL : BH_OK);
        expect_words(A, buffer, 0);
    }
}

/* What was written after it was cleared is not cleared once more. */
TEST(d3_it_is_cleared_once) {
    leave(A, -1);
    bh_buffer *buffer = create(A);
    BHT_EQ(stats().device_pool_hits, 1);
    fill_now(A, buffer);
    BHT_TRUE(is_known(A, buffer->id));
    expect_words(A2, buffer, WORD);
    bury(A);
    memory_worker_begin(A);
    expect_words(A, buffer, WORD);
}

static uint64_t rings_at(int i) {
    return atomic_load(&memory.workers[i].worker->lane.header->notify_at);
}

/* Another stream needs it first: the worker that has had it must not use it before it is clear. The one
 * that clears it rings then, also if it ends something else before. */
TEST(d3_the_owner_waits_for_who_clears_it) {
    leave(A, -1);
    bh_buffer *buffer = create(A), *hosts[2] = {create_host(), create_host()};
    bh_event *events[2], *before = fx_copy(memory.streams[A2], create_host(), create_host());
    for (int i = 0; i < 2; i++) {
        BHT_EQ(rings_at(A2), 0);
        events[i] = fx_copy(memory.streams[i ? A : A2], buffer, hosts[i]);
    }
    BHT_TRUE(!memory_worker_has_work(&memory.workers[A]));
    BHT_EQ(rings_at(A2), 1);
    (void)memory_worker_run(&memory.workers[A2], MEMORY_LIVES);
    fx_expect(before, BH_OK);
    BHT_EQ(rings_at(A2), 2);
    BHT_TRUE(!memory_worker_has_work(&memory.workers[A]));
    memory_run_all();
    BHT_EQ(rings_at(A2), 0);
    for (int i = 0; i < 2; i++) {
        fx_expect(events[i], BH_OK);
    }
    expect_words(A, buffer, 0);
}

/* It cannot be cleared: the memory is made anew, and nobody is poisoned. */
TEST(d3_what_cannot_be_cleared_is_made_anew) {
    leave(A, -1);
    bh_buffer *buffer = create(A);
    memory.workers[A].cannot_clear = true;
    expect_words(A, buffer, 0);
    BHT_EQ(memory.made_count, 2);
    fill_now(A2, buffer);
    expect_words(A, buffer, WORD); /* both have the new one */
}

/* -- D5 --------------------------------------------------------------------------------------- */

TEST(d5_a_lost_device_keeps_nothing) {
    leave(A, -1);
    leave(B, -1);
    leave(C, -1);
    BHT_EQ(stats().device_pool_blocks, 3);
    bh_buffer *buffer = memory_create(A, 8);
    bh_event *event = fill(A, buffer);
    (void)memory_worker_run(&memory.workers[A], MEMORY_LOSES_DEVICE);
    memory_worker_harvest(&memory.workers[A]);
    fx_expect(event, BH_DEVICE_LOST);
    BHT_EQ(stats().device_pool_blocks, 1); /* of the other device */
}

/* A copy of the library's own runs again on the next worker. So what this one says after the loss is
 * not heard. */
TEST(d5_nothing_counts_after_a_lost_device) {
    struct memory_worker *w = &memory.workers[A];
    bh_buffer *one = create(A), *two = create(A);
    fill_now(A, one);
    const struct bhi_internal_copy copy = {
        .call = "test", .src = one, .dst = create_host(), .bytes = MEMORY_BYTES};
    bh_event *copied = NULL;
    BHT_EQ(bhi_internal_submit_copy(memory.streams[A], &copy, &copied, NULL), BH_OK);
    bh_event *event = fill(A, two);
    (void)memory_worker_run(w, MEMORY_LOSES_DEVICE);
    memory_worker_harvest(w);
    BHT_EQ(w->worker->core.life.loss, BHI_LOSS_FINAL);
    const uint64_t harvested = w->worker->core.harvested;
    const struct bhi_result lie = {.seq = harvested + 2, .executed = BH_EXECUTED_YES};
    bhi_progress_result(w->progress, &lie, NULL);
    bhi_progress_publish(w->progress, harvested + 2, w->worker->lane.head);
    memory_worker_harvest(w);
    BHT_EQ(w->worker->core.harvested, harvested);
    BHT_EQ(bhi_event_state(event), BH_EVENT_PENDING);
    memory_worker_bury(w);
    memory_worker_begin(A);
    memory_run_all();
    BHT_EQ(bhi_event_state(copied), BH_EVENT_READY);
    fx_expect(event, BH_OK);
    bhi_event_unref(copied);
}

/* -- D6 --------------------------------------------------------------------------------------- */

TEST(d6_it_is_bounded_and_the_oldest_goes_first) {
    puppet.context->device_pool->limit = 2 * PAGE;
    leave(A, -1);
    leave(B, -1);
    leave(C, -1);
    BHT_EQ(stats().device_pool_bytes, 2 * PAGE);
    BHT_TRUE(!gets(A));
    puppet.context->device_pool->limit = PAGE - 1;
    leave(A, -1);
    BHT_EQ(stats().device_pool_blocks, 1); /* one that is too large sends nobody away */
    BHT_EQ(bh_context_trim(puppet.context, PAGE, NULL), BH_OK);
    BHT_EQ(stats().device_pool_blocks, 1);
    BHT_EQ(bh_context_trim(puppet.context, 0, NULL), BH_OK);
    BHT_EQ(stats().device_pool_blocks, 0);
    BHT_EQ(stats().device_pool_bytes, 0);
}

TEST(d6_it_makes_room_within_the_limit) {
    puppet.context->device_memory_limit = 3 * PAGE;
    leave(A, -1);
    leave(B, -1);
    bh_buffer_options options = {.struct_size = sizeof options};
    options.stream = memory.streams[A];
    options.memory = BH_MEMORY_DEVICE;
    bh_buffer *none = NULL;
    (void)memory_create(A, 8);
    BHT_EQ(stats().device_pool_blocks, 2);
    (void)memory_create(A, 8);
    BHT_EQ(stats().device_pool_blocks, 1); /* not |a|'s, the oldest */
    BHT_TRUE(gets(B));
    (void)create(B); /* what is kept becomes what is in use */
    BHT_EQ(stats().device_pool_blocks, 0);
    BHT_EQ(bh_buffer_create(puppet.context, 8, &options, &none, NULL), BH_OUT_OF_DEVICE_MEMORY);
}

/* So do copies that nobody reads now, whoever's they are where the context's limit is short. */
TEST(d6_copies_make_room) {
    for (int of_stream = 0; of_stream < 2; of_stream++) {
        puppet_again();
        puppet.context->device_memory_limit = of_stream ? 0 : 2 * PAGE;
        memory.streams[B]->device_memory_limit = of_stream ? PAGE : 0;
        bh_buffer *buffer = create(A);
        fill_now(A, buffer);
        expect_words(B, buffer, WORD);
        BHT_EQ(memory.streams[B]->device_memory, PAGE);
        (void)create(of_stream ? B : C);
        BHT_EQ(memory.streams[B]->device_memory, of_stream ? PAGE : 0);
        BHT_TRUE(bhi_list_empty(&puppet.context->replicas));
    }
}

/* The driver has none left: what is kept is given up, whoever's it is, before that is a verdict. */
TEST(d6_it_makes_room_on_a_full_device) {
    for (uint32_t row = 0; row < 4; row++) {
        const uint32_t times = 1 + row / 2;
        const bool kept = row % 2; /* there is something to give up, and the worker waits for it */
        puppet_again();
        if (kept) {
            leave(A, -1);
            leave(B, -1);
        }
        leave(C, -1);
        bh_buffer *buffer = create(A2);
        bh_event *event = fill(A2, buffer);
        memory.workers[A2].device_full = times;
        memory_run_all();
        fx_expect(event, times == 1 ? BH_OK : BH_OUT_OF_DEVICE_MEMORY);
        BHT_EQ(memory.workers[A2].patience_ms != 0, kept);
        BHT_EQ(stats().device_pool_blocks, 1); /* of the other device */
        memory_worker_listen(&memory.workers[A]);
        BHT_EQ(memory.workers[A].hold_count, 0);
        fill_now(A2, buffer);
    }
}

/* The buffer is gone when its maker says that there is none left. */
/* A submission runs out of device memory: what is kept for later is given up. */
TEST(d6_what_is_kept_gives_way_to_what_runs) {
    leave(A, -1);
    BHT_EQ(stats().device_pool_blocks, 1);
    bh_event *event = fx_fill(memory.streams[A], create_host(), WORD);
    memory.workers[A].fails_as = BH_OUT_OF_DEVICE_MEMORY;
    run(A);
    fx_expect(event, BH_OUT_OF_DEVICE_MEMORY);
    BHT_EQ(stats().device_pool_blocks, 0);
}

TEST(d6_nobody_needs_it_any_more) {
    for (int clears = 0; clears < 2; clears++) {
        puppet_again();
        if (clears) {
            leave(A, -1);
        }
        bh_buffer *buffer = create(A), *other = create(A);
        bh_event *event = fill(A, buffer), *next = fill(A, other);
        memory.workers[A].device_full = clears ? 0 : 1;
        memory.workers[A].cannot_clear = clears;
        BHT_EQ(bh_event_cancel(event), BH_OK);
        bh_buffer_release(buffer);
        BHT_EQ(stats().device_pool_blocks, 0); /* or the answer would be about the next one's */
        memory_run_all();
        fx_expect(event, BH_CANCELLED);
        fx_expect(next, BH_OK);
        BHT_EQ(memory.workers[A].want_count, 0);
        BHT_EQ(memory.workers[A].hold_count, 1);
        expect_words(A, other, WORD);
    }
}

/* It is made all the same, and its descriptor is closed. */
TEST(d6_what_nobody_needs_is_closed) {
    bh_buffer *other = create(A);
    fill_now(A, other);
    const size_t before = bht_count_self().descriptors;
    bh_buffer *buffer = create(A);
    bh_event *event = fill(A, buffer);
    BHT_EQ(bh_event_cancel(event), BH_OK);
    bh_buffer_release(buffer);
    fill_now(A, other);
    BHT_EQ(memory.made_count, 2);
    BHT_EQ(memory.workers[A].hold_count, 1);
    BHT_EQ(bht_count_self().descriptors, before);
}

/* A worker that waits for memory takes messages before their turn. So what fails for want of memory
 * takes away no buffer that the lane still needs. */
TEST(d6_what_follows_keeps_its_buffers) {
    bh_buffer *host = create_host(), *one = create(A), *two = create(A);
    bh_event *first = fx_copy(memory.streams[A], host, one);
    memory.workers[A].device_full = 2;
    (void)memory_worker_run(&memory.workers[A], MEMORY_LIVES);
    bh_event *second = fx_copy(memory.streams[A], host, two);
    memory_worker_harvest(&memory.workers[A]); /* not before |second| was in the lane */
    memory.workers[A].device_full = 1;
    memory_run_all();
    fx_expect(first, BH_OUT_OF_DEVICE_MEMORY);
    fx_expect(second, BH_OK);
}

/* A host without standard input: the descriptor of what its worker makes is 0. */
TEST(b1_memory_may_be_descriptor_0) {
    const int input = dup(STDIN_FILENO);
    bh_buffer *buffer = create(A);
    bh_event *event = fill(A, buffer);
    (void)memory_worker_run(&memory.workers[A], MEMORY_LIVES);
    BHT_EQ(close(STDIN_FILENO), 0);
    memory_worker_harvest(&memory.workers[A]);
    fx_expect(event, BH_OK);
    BHT_EQ(buffer->device->block->fd, STDIN_FILENO);
    expect_words(A2, buffer, WORD);
    buffer->device->block->fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    BHT_EQ(dup2(input, STDIN_FILENO), STDIN_FILENO);
    BHT_EQ(close(input), 0);
}

/* -- memory that cannot be had ---------------------------------------------------------------- */

/* A buffer of A with WORD, which A2 cannot import, and A2's submission that has found it out. What else
 * is in the lane of A was queued before that. */
static bh_event *refuse_import(bh_buffer *buffer) {
    memory.workers[A2].cannot_import = buffer->id;
    bh_event *event = fx_copy(memory.streams[A2], buffer, create_host());
    run(A2);
    BHT_EQ(fx_expect(event, BH_VULKAN).blame,
           BH_BLAME_SUSPECTED); /* T2: of what another has made */
    BHT_STR_HAS(fx_verdict(event).message, "which worker 4242 made, cannot be imported");
    BHT_TRUE(buffer->device->bad);
    return event;
}

/* It is poisoned until all of it is written, in new memory; and that stays its memory. */
TEST(t8_it_is_made_anew_once) {
    bh_buffer *buffer = create(A), *host = create_host();
    fill_now(A, buffer);
    bh_event *cause = refuse_import(buffer);
    BHT_EQ(fx_verdict(fx_copy(memory.streams[A], buffer, host)).origin, bh_event_id(cause));
    for (int i = 0; i < 3; i++) {
        const bh_command command = {
            .type = BH_COMMAND_FILL,
            .fill = {.dst = buffer, .size = i ? 4 : BH_WHOLE_SIZE, .value = WORD}};
        bh_event *event = fx_command(memory.streams[i % 2 ? A2 : A], command, NULL, 0);
        memory_run_all();
        fx_expect(event, BH_OK);
        BHT_EQ(memory.made_count, 2);
        expect_words(A, buffer, WORD);
    }
}

/* Whoever writes it: the worker that has the old memory gets the new one, too. */
TEST(t8_who_has_the_old_memory_gets_the_new) {
    bh_buffer *buffer = create(A);
    fill_now(A, buffer);
    refuse_import(buffer);
    bh_event *event = fx_fill(memory.streams[A2], buffer, WORD + 1);
    memory_run_all();
    fx_expect(event, BH_OK);
    expect_words(A, buffer, WORD + 1);
}

/* There was no memory to note that the content is lost: a view waits for a worker to find it out. */
TEST(t8_bad_memory_has_no_view) {
    bh_buffer *buffer = create(A);
    bh_cuda_view *view;
    fill_now(A, buffer);
    bhi_context_lock(puppet.context);
    strcpy(memory.streams[A]->runs_on.selector, "cuda:0");
    buffer->device->bad = true;
    bhi_context_unlock(puppet.context);
    BHT_EQ(bh_cuda_view_create(buffer, BH_MAP_READ, 0, &view, NULL), BH_TIMEOUT);
}

/* Of several that a submission reads, the one is bad that the worker names. */
TEST(t8_the_one_that_is_named_is_bad) {
    for (int bad = 0; bad < 2; bad++) {
        puppet_again();
        const struct memory_worker *w = &memory.workers[A2];
        bh_buffer *buffers[2] = {create(A), create(A)};
        bh_command commands[2];
        for (int i = 0; i < 2; i++) {
            fill_now(A, buffers[i]);
            commands[i] = (bh_command){
                .type = BH_COMMAND_COPY,
                .copy = {.src = buffers[i], .dst = create_host(), .size = BH_WHOLE_SIZE}};
        }
        bh_event *event = fx_commands(memory.streams[A2], commands, 2);
        const struct bhi_result result = {.seq = 1,
                                          .status = BH_VULKAN,
                                          .command_index = BHI_NO_COMMAND,
                                          .executed = BH_EXECUTED_NO,
                                          .bad_memory = buffers[bad]->id};
        puppet_begins(w->worker, 1);
        bhi_progress_result(w->progress, &result, &(struct bhi_why){.text = "as the test says"});
        bhi_progress_publish(w->progress, 1, w->worker->lane.head);
        fx_expect(event, BH_VULKAN);
        BHT_TRUE(buffers[bad]->device->bad && !buffers[!bad]->device->bad);
    }
}

/* What reads it and writes it was queued before: its own memory is good, and new one would be zero. */
TEST(t8_what_reads_keeps_it) {
    bh_buffer *buffer = create(A), *host = create_host();
    fill_now(A, buffer);
    memory.workers[A2].cannot_import = buffer->id;
    bh_event *cause = fx_copy(memory.streams[A2], buffer, host);
    bh_buffer *back = create_host();
    const bh_command commands[] = {
        {.type = BH_COMMAND_COPY, .copy = {.src = buffer, .dst = back, .size = BH_WHOLE_SIZE}},
        {.type = BH_COMMAND_FILL, .fill = {.dst = buffer, .size = 4}}};
    bh_event *event = fx_commands(memory.streams[A], commands, 2);
    BHT_TRUE(!memory_worker_has_work(&memory.workers[A])); /* it waits for who reads */
    memory_run_all();
    fx_expect(cause, BH_VULKAN);
    fx_expect(event, BH_OK);
    BHT_EQ(*(const uint32_t *)fx_mapped(back), WORD);
}

/* Who makes it anew still has something to do with the old one; and handles messages before their turn,
 * since it waits for other memory. */
TEST(t8_what_is_in_flight_keeps_it) {
    bh_buffer *buffer = create(A), *fresh = create(A), *back = create_host();
    fill_now(A, buffer);
    bh_event *first = fill(A, fresh), *reads = fx_copy(memory.streams[A], buffer, back);
    refuse_import(buffer);
    bh_event *writes = fill(A, buffer);
    memory.workers[A].device_full = 1;
    memory_run_all();
    fx_expect(first, BH_OK);
    fx_expect(reads, BH_OK);
    fx_expect(writes, BH_OK);
    BHT_EQ(*(const uint32_t *)fx_mapped(back), WORD);
    expect_words(A, buffer, WORD);
}

/* A copy fails for want of memory: its buffers are told anew, unless something behind it needs them. */
TEST(e9_what_failed_is_told_anew) {
    bh_buffer *one = create(A), *host = create_host();
    memory.workers[A].fails_at = 1;
    bh_event *first = fx_copy(memory.streams[A], host, one);
    bh_event *second = fx_copy(memory.streams[A], host, one);
    (void)memory_worker_run(&memory.workers[A], MEMORY_LIVES);
    memory_worker_harvest(&memory.workers[A]);
    fx_expect(first, BH_OUT_OF_HOST_MEMORY);
    BHT_TRUE(is_known(A, one->id) && is_known(A, host->id));
    run(A);
    fx_expect(second, BH_OK);
    memory.workers[A].fails_at = 3;
    bh_event *third = fx_copy(memory.streams[A], host, one);
    run(A);
    fx_expect(third, BH_OUT_OF_HOST_MEMORY);
    BHT_TRUE(!is_known(A, one->id) && !is_known(A, host->id));
    fill_now(A, one);
    BHT_EQ(memory.made_count, 1);
    expect_words(A, one, WORD);
}

static struct rlimit room;
static int taken[256];
static size_t taken_count;

static void take_all_descriptors(void) {
    BHT_EQ(getrlimit(RLIMIT_NOFILE, &room), 0);
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &(struct rlimit){BHT_COUNT(taken), room.rlim_max}), 0);
    for (int fd; (fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0;) {
        taken[taken_count++] = fd;
    }
    BHT_EQ(errno, EMFILE);
}

static void give_descriptors_back(void) {
    if (taken_count) {
        while (taken_count) {
            close(taken[--taken_count]);
        }
        BHT_EQ(setrlimit(RLIMIT_NOFILE, &room), 0);
    }
}

/* Both pools give theirs, whichever of them has one; what was introduced before they did goes on. */
TEST(e9_the_pools_give_their_descriptors_to_what_runs) {
    enum { HOST = 1, DEVICE = 2 };
    for (unsigned i = 0; i < 2 * (HOST + DEVICE + 1); i++) {
        const unsigned kept = i / 2;
        const bool half = i % 2;
        puppet_again();
        bh_buffer *one = create(A2), *two = create(A2);
        bh_buffer *free[2] = {create_host(), create_host()};
        bh_event *made[2] = {fill(A2, one), fill(A2, two)};
        memory_run_all();
        fx_expect(made[0], BH_OK), fx_expect(made[1], BH_OK);
        if (kept & DEVICE) {
            leave(B, -1), leave(C, -1);
        }
        if (kept & HOST) {
            bh_buffer_release(free[0]), bh_buffer_release(free[1]);
        }
        const uint32_t told = memory.workers[A].worker->control_sent;
        take_all_descriptors();
        if (half) {
            close(taken[--taken_count]); /* for the first of two */
        }
        bh_event *event = fx_copy(memory.streams[A], one, two);
        const uint64_t blocks = stats().pool_blocks + stats().device_pool_blocks;
        give_descriptors_back();
        BHT_EQ(blocks, 0);
        if (!kept) { /* nothing to give */
            BHT_EQ(fx_verdict(event).sys_errno, EMFILE);
            continue;
        }
        run(A);
        fx_expect(event, BH_OK);
        BHT_EQ(memory.workers[A].worker->control_sent, told + 2);
        expect_words(A, two, WORD);
    }
}

/* A worker has made memory, and the host has no room for its descriptor: that is nobody's fault, and
 * costs what needs it. What is kept goes, and later the memory is made again. */
TEST(d6_a_descriptor_for_which_there_is_no_room) {
    for (int fails = 0; fails < 2; fails++) {
        puppet_again();
        struct memory_worker *w = &memory.workers[A];
        leave(C, -1);
        bh_buffer *buffer = create(A);
        bh_event *event = fill(A, buffer);
        w->fails_as = fails ? BH_LIMIT_EXCEEDED : BH_OK;
        (void)memory_worker_run(w, MEMORY_LIVES);
        take_all_descriptors();
        memory_worker_harvest(w);
        give_descriptors_back();
        const bh_verdict verdict = fx_expect(event, fails ? BH_LIMIT_EXCEEDED : BH_SYSTEM);
        BHT_EQ(verdict.sys_errno, fails ? 0 : EMFILE);
        BHT_TRUE(!w->worker->core.life.violated && w->worker->make_descriptor_lost);
        BHT_EQ(buffer->device->state, BHI_DEVICE_UNMADE);
        BHT_EQ(stats().device_pool_blocks, 0);
        fill_now(A, buffer);
        BHT_EQ(memory.made_count, 3);
        expect_words(A, buffer, WORD);
    }
}

/* It is told so for what it was to clear: there is no descriptor in that answer, and none was lost. */
TEST(t6_a_failure_needs_its_answers_too) {
    for (int clears = 0; clears < 2; clears++) {
        puppet_again();
        struct memory_worker *w = &memory.workers[A];
        if (clears) {
            leave(A, -1);
        }
        fill(A, create(A));
        const uint64_t seq = w->worker->core.published;
        const struct bhi_result result = {
            .seq = seq, .status = BH_VULKAN, .executed = BH_EXECUTED_NO};
        bhi_progress_result(w->progress, &result, &(struct bhi_why){.text = "as the test says"});
        bhi_progress_publish(w->progress, seq, w->worker->lane.head);
        memory_worker_harvest(w);
        BHT_TRUE(w->worker->core.life.violated);
        bury(A);
    }
}

/* -- host memory ------------------------------------------------------------------------------ */

static bh_buffer *create_for(int stream, uint32_t flags) {
    return fx_buffer_with(puppet.context, MEMORY_BYTES,
                          (bh_buffer_options){.stream = memory.streams[stream], .flags = flags});
}

/* Who reads gets no descriptor to write with before it writes (B5); and that again once, in the place
 * of the other. */
TEST(b5_who_reads_and_then_writes) {
    bh_buffer *buffer = create_for(A, 0), *device = create(A);
    const struct memory_worker *w = &memory.workers[A];
    uint64_t attached = 0;
    for (int i = 0; i < 4; i++) {
        const bool writes = i % 2;
        bh_event *event = writes ? fill(A, buffer) : fx_copy(memory.streams[A], buffer, device);
        memory_run_all();
        fx_expect(event, BH_OK);
        const struct bhi_exposure *exposure =
            BHI_CONTAINER(buffer->block->exposures.next, struct bhi_exposure, of_block);
        BHT_EQ(exposure->writes, i > 0);
        attached = i ? attached : w->worker->space.attached;
        BHT_EQ(w->worker->space.attached, attached);
    }
    expect_words(A2, buffer, WORD);
}

/* B6: bytes that others may have written, or for which there is no stream, are cleared, whatever the
 * caller would do without. */
TEST(b6_old_bytes_are_for_who_wrote_them) {
    static const struct {
        int user, getter; /* streams; -1: nobody, without a stream */
        bool user_dies, maker_dies, uninitialized, old;
    } rows[] = {
        {-1, A, false, false, true, true},  {-1, A, false, false, false, false},
        {A2, A, true, false, true, false},  {A2, A, true, false, false, false},
        {-1, -1, false, true, true, false}, {-1, A2, false, true, true, false},
        {A2, A2, false, true, true, false},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        bh_buffer *buffer = create_for(A, 0);
        fill_now(A, buffer);
        if (rows[i].user >= 0) {
            bh_event *event = fx_copy(memory.streams[rows[i].user], buffer, create_host());
            memory_run_all();
            fx_expect(event, BH_OK);
        }
        bh_buffer_release(buffer);
        if (rows[i].user_dies) {
            bury(rows[i].user);
        }
        if (rows[i].maker_dies) {
            bury(A);
        }
        const uint64_t hits = stats().pool_hits;
        const uint32_t flags = rows[i].uninitialized ? BH_BUFFER_UNINITIALIZED : 0;
        buffer = rows[i].getter < 0 ? fx_buffer_with(puppet.context, MEMORY_BYTES,
                                                     (bh_buffer_options){.flags = flags})
                                    : create_for(rows[i].getter, flags);
        BHT_EQ(stats().pool_hits, hits + 1);
        if ((*fx_pointer(buffer) == WORD) != rows[i].old) {
            BHT_FAIL("row %zu: %08x", i, *fx_pointer(buffer));
        }
        /* It is its stream's alone from now on, if the stream has it alone. */
        if (rows[i].getter == A && rows[i].uninitialized) {
            fill_now(A, buffer);
            bh_buffer_release(buffer);
            BHT_EQ(*fx_pointer(create_for(A, flags)), WORD);
        }
    }
}

/* A worker that was taken over has punched a hole into it: nobody gets it, nor is it counted. */
TEST(b3_a_block_with_a_hole) {
    for (int own = 0; own < 2; own++) {
        puppet_again();
        const uint32_t flags = own ? BH_BUFFER_UNINITIALIZED : 0;
        bh_buffer *buffer = create_for(A, 0);
        fill_now(A, buffer);
        BHT_EQ(fallocate(buffer->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)PAGE),
               0);
        bh_buffer_release(buffer);
        const bh_stats old = stats();
        buffer = create_for(A, flags);
        BHT_EQ(*fx_pointer(buffer), 0);
        const bh_stats now = stats();
        BHT_EQ(now.pool_hits, old.pool_hits);
        BHT_EQ(now.pool_misses, old.pool_misses + 1);
        BHT_EQ(now.pool_evictions, old.pool_evictions + 1);
        BHT_EQ(now.pool_zeroed_bytes, old.pool_zeroed_bytes);
        BHT_EQ(now.pool_blocks, old.pool_blocks - 1);
    }
}

static int cannot_make; /* an errno, once */

BHT_WRAP(int, bhi_memfd_create, const char *name, uint64_t bytes, int leave_open) {
    const int error = cannot_make;
    cannot_make = 0;
    return error ? -error : __real_bhi_memfd_create(name, bytes, leave_open);
}

/* What both pools keep is worth less than a new buffer, if it is that of which there is too little. */
TEST(b3_the_pools_give_way_to_a_new_buffer) {
    static const struct {
        int error;
        bh_status status;
        bool gives_way;
    } rows[] = {{ENOMEM, BH_OK, true},
                {ENOSPC, BH_OK, true},
                {EMFILE, BH_OK, true},
                {ENFILE, BH_OK, true},
                {EPERM, BH_SYSTEM, false}};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        leave(A, -1);
        bh_buffer_release(create_host());
        BHT_TRUE(stats().pool_blocks && stats().device_pool_blocks);
        bh_buffer *buffer = NULL;
        bh_detail detail = {0};
        cannot_make = rows[i].error;
        BHT_EQ(bh_buffer_create(puppet.context, 3 * PAGE, NULL, &buffer, &detail), rows[i].status);
        BHT_EQ(detail.sys_errno, rows[i].status == BH_OK ? 0 : rows[i].error);
        BHT_EQ(stats().pool_blocks == 0, rows[i].gives_way);
        BHT_EQ(stats().device_pool_blocks == 0, rows[i].gives_way);
    }
}

/* The limits of stream and context count no buffer that could not be made. */
TEST(d6_what_is_not_made_is_not_counted) {
    bh_stream *stream = memory.streams[A];
    stream->runs_on.is_cpu = true; /* so it is memory of the host */
    stream->device_memory_limit = puppet.context->device_memory_limit = PAGE;
    for (int i = 0; i < 2; i++) {
        bh_buffer *buffer = NULL;
        bh_detail detail = {0};
        cannot_make = EPERM;
        BHT_EQ(bhi_buffer_make_device(stream, PAGE, "test", &buffer, &detail), BH_SYSTEM);
        BHT_EQ(detail.sys_errno, EPERM);
        BHT_EQ(stream->device_memory, 0);
        BHT_EQ(puppet.context->device_memory, 0);
    }
    puppet.context->device_memory_limit = 0;
}

/* D1. By itself a buffer gets the memory of a GPU that has its own and can share it. */
TEST(d1_which_memory_a_buffer_gets) {
    static const struct {
        uint64_t memory;
        bool cpu, discrete, exports;
        bh_status status;
        bool device;
    } rows[] = {
        {BH_MEMORY_AUTO, false, true, true, BH_OK, true},
        {BH_MEMORY_AUTO, false, true, false, BH_OK, false},
        {BH_MEMORY_AUTO, false, false, true, BH_OK, false}, /* it uses the host's */
        {BH_MEMORY_AUTO, true, false, true, BH_OK, false},
        {BH_MEMORY_HOST, false, true, true, BH_OK, false},
        {BH_MEMORY_DEVICE, false, false, true, BH_OK, true},
        {BH_MEMORY_DEVICE, false, true, false, BH_UNSUPPORTED, false},
        {BH_MEMORY_DEVICE, true, false, false, BH_OK, true},
        {BH_MEMORY_AUTO + 1, false, true, true, BH_INVALID_ARGUMENT, false},
    };
    bh_stream *stream = memory.streams[A];
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        bool device = !rows[i].device;
        stream->runs_on.is_cpu = rows[i].cpu;
        stream->runs_on.is_discrete = rows[i].discrete;
        stream->runs_on.features = rows[i].exports ? BHI_FEATURE_MEMORY_EXPORT : 0;
        BHT_EQ(bhi_device_memory_resolve(stream, rows[i].memory, "test", &device, NULL),
               rows[i].status);
        if (device != rows[i].device) {
            BHT_FAIL("row %zu: it is %sthe device's", i, device ? "" : "not ");
        }
    }
}

/* The caller's own memory is in use, and not of the pool. */
TEST(b1_wrapped_memory_is_not_counted) {
    const uint64_t used = puppet.context->pool->stats.used;
    const int fd = memfd_create("mine", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    BHT_EQ(ftruncate(fd, (off_t)PAGE), 0);
    bh_buffer *buffer = NULL;
    BHT_EQ(fx_wrap(puppet.context, fd, 0, &buffer, NULL), BH_OK);
    close(fd);
    fill_now(A, buffer);
    BHT_EQ(puppet.context->pool->stats.used, used);
    bh_buffer_release(buffer);
    memory_worker_listen(&memory.workers[A]);
    BHT_EQ(memory.workers[A].hold_count, 0); /* who had it gives it up */
    BHT_EQ(puppet.context->pool->stats.used, used);
}

/* -- moves and replicas (D4) ------------------------------------------------------------------ */

TEST(d4_a_move_leaves_its_memory_to_the_next) {
    bh_buffer *buffer = create(A);
    fill_now(A, buffer);
    fill_now(C, buffer);
    BHT_EQ(stats().device_pool_blocks, 1);
    BHT_EQ(memory.streams[A]->device_memory, 0);
    expect_words(C, buffer, WORD);
    fill_now(A, buffer); /* and back, to where it was */
    BHT_EQ(stats().device_pool_hits, 1);
    BHT_EQ(stats().device_pool_blocks, 1);
    expect_words(A, buffer, WORD);
    bh_buffer_release(buffer);
    BHT_EQ(stats().device_pool_blocks, 2);
}

/* Nothing uses it when the buffer moves. */
TEST(d4_a_move_leaves_it_at_once) {
    bh_buffer *buffer = create(A);
    fill_now(A, buffer);
    expect_words(C, buffer, WORD);
    bh_event *event = fill(C, buffer); /* where it was read it can be written */
    BHT_EQ(memory.streams[A]->device_memory, 0);
    BHT_EQ(stats().device_pool_blocks, 1);
    memory_run_all();
    fx_expect(event, BH_OK);
}

/* Something still uses the memory that it has left, and it moves on: where it was in between is not
 * kept as a copy. */
TEST(d4_no_copy_outlives_a_move) {
    bh_buffer *buffer = create(A), *host = create_host();
    fill_now(A, buffer);
    bh_event *slow = fx_copy(memory.streams[A2], buffer, host);
    memory.workers[A2].dead = true; /* it does not run until the end */
    expect_words(C, buffer, WORD);
    fill_now(C, buffer);
    bh_buffer *place = bhi_buffer_take_place(buffer);
    BHT_TRUE(place != buffer && place->owner == buffer);
    fill_now(A, buffer);
    BHT_TRUE(!place->owner); /* it is nobody's now */
    bhi_buffer_unref(place);
    BHT_EQ(memory.streams[C]->device_memory, 0);
    place = bhi_buffer_take_place(buffer);
    bh_buffer_release(buffer);
    memory.workers[A2].dead = false;
    memory_run_all();
    fx_expect(slow, BH_OK);
    BHT_TRUE(!place->owner); /* and this one since the buffer is gone */
    bhi_buffer_unref(place);
}

TEST(d4_a_replica_leaves_its_memory_to_the_next) {
    bh_buffer *buffer = create(A);
    fill_now(A, buffer);
    expect_words(B, buffer, WORD);
    fill_now(A, buffer); /* another version: the replica of the old one goes */
    BHT_EQ(stats().device_pool_blocks, 1);
    expect_words(B, buffer, WORD);
    BHT_EQ(stats().device_pool_hits, 1);
    BHT_EQ(memory.made_count, 2);
    bh_buffer_release(buffer);
    BHT_EQ(stats().device_pool_blocks, 2);
}

/* A buffer that outlives the context leaves nothing behind; what is counted is the descriptors. */
/* E9: it is asked to make memory for a submission that is cancelled, does nothing, and owes an
 * answer for which another stream waits. It has no deadline in its lane. */
TEST(e9_one_that_does_not_answer) {
    struct bhi_worker *worker = memory.workers[A].worker;
    bh_buffer *buffer = create(A);
    bh_event *cancelled = fill(A, buffer);
    BHT_EQ(bh_event_cancel(cancelled), BH_OK);
    fx_expect(cancelled, BH_CANCELLED);
    bh_event *event = fill(A2, buffer);
    run(A2);
    BHT_EQ(bh_event_query(event), BH_EVENT_PENDING);
    bh_event *busy = fx_fill(memory.streams[A], puppet.buffer, 7); /* which has its own deadline */
    BHT_TRUE(!bhi_list_empty(&worker->core.inflight));
    bhi_context_lock(puppet.context);
    (void)bhi_worker_check_deadline(worker, bhi_now_ns() + UINT64_C(20000000000));
    BHT_EQ(worker->core.life.kill, BHI_KILL_NONE);
    bhi_context_pump_unlock(puppet.context);
    BHT_EQ(bh_event_cancel(busy), BH_OK);
    fx_expect(busy, BH_CANCELLED);
    bhi_context_lock(puppet.context);
    /* Its time counts from when it had nothing else to do, and from its last answer. */
    for (int since = 0; since < 2; since++) {
        const uint64_t now_ns = bhi_now_ns();
        worker->core.running_since_ns = since ? now_ns : now_ns - 5;
        worker->owes_since_ns = since ? now_ns - 5 : now_ns;
        BHT_EQ(bhi_worker_check_deadline(worker, now_ns), now_ns + UINT64_C(10000000000));
    }
    const uint64_t due_ns = bhi_worker_check_deadline(worker, bhi_now_ns());
    BHT_TRUE(due_ns != BH_FOREVER && worker->core.life.kill == BHI_KILL_NONE);
    BHT_TRUE(bhi_worker_check_deadline(worker, due_ns) == BH_FOREVER);
    BHT_EQ(worker->core.life.kill, BHI_KILL_PROTOCOL);
    bhi_context_pump_unlock(puppet.context);
    bury(A);
    run(A2);
    fx_expect(event, BH_OK);
}

static bool hasty; /* A runs its next record before anybody has looked how far it is */

BHT_WRAP(int, bhi_progress_poll, struct bhi_progress_view *view, uint64_t published, uint64_t head,
         uint64_t *out_completed, uint64_t *out_tail) {
    if (hasty) {
        hasty = false;
        (void)memory_worker_run(&memory.workers[A], MEMORY_LIVES);
    }
    return __real_bhi_progress_poll(view, published, head, out_completed, out_tail);
}

/* The answer comes when the supervisor has just looked for one, and the record ends at once: it has come in
 * time. */
TEST(t6_an_answer_that_comes_with_the_result) {
    bh_event *event = fill(A, create(A));
    hasty = true;
    memory_worker_harvest(&memory.workers[A]);
    BHT_TRUE(!hasty);
    fx_expect(event, BH_OK);
}

/* One that has ended owes nothing, when all that had come was taken. */
TEST(e9_one_that_has_ended_owes_nothing) {
    struct bhi_worker *worker = memory.workers[A].worker;
    (void)fill(A, create(A));
    BHT_TRUE(!bhi_list_empty(&worker->makes));
    bhi_fd_close(&worker->fdpass);
    memory_worker_harvest(&memory.workers[A]);
    BHT_TRUE(!worker->core.life.violated && !bhi_list_empty(&worker->makes));
}

/* T6: an answer that is no answer. Its descriptor is closed, and nothing becomes memory. */
TEST(t6_false_answers) {
    static const struct {
        const char *what;
        bool clears;   /* it was to clear, not to make */
        int none;      /* it comes without a descriptor */
        uint32_t type; /* 0: the right one, and so on */
        uint32_t magic, id;
        size_t length;
        bool small, no_room; /* the host has no descriptor for it */
    } rows[] = {
        {.what = "another number", .id = 1},
        {.what = "another word", .magic = 1},
        {.what = "another message", .type = BHI_MSG_WORDS},
        {.what = "too short", .length = sizeof(struct bhi_fd_tag) - 4},
        {.what = "too long", .length = sizeof(struct bhi_fd_tag) + 4},
        {.what = "too small", .small = true},
        {.what = "cleared what it was to make", .type = BHI_MSG_BUFFER_CLEAR},
        {.what = "the same without memory", .type = BHI_MSG_BUFFER_CLEAR, .none = 1},
        {.what = "other memory, cleared", .clears = true},
        {.what = "other memory", .clears = true, .type = BHI_MSG_BUFFER_MAKE},
        {.what = "other memory, cleared, and no room", .clears = true, .no_room = true},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        struct memory_worker *w = &memory.workers[A];
        if (rows[i].clears) {
            leave(A, -1);
        }
        bh_buffer *buffer = create(A);
        (void)fx_fill(w->stream, create_host(), WORD); /* needs none of it */
        fill(A, buffer);
        struct {
            struct bhi_fd_tag tag;
            uint32_t more;
        } answer = {{.magic = BHI_WIRE_MAGIC + rows[i].magic,
                     .type = rows[i].type     ? rows[i].type
                             : rows[i].clears ? BHI_MSG_BUFFER_CLEAR
                                              : BHI_MSG_BUFFER_MAKE,
                     .id = buffer->id + rows[i].id},
                    0};
        const int old = buffer->device->block ? buffer->device->block->fd : -1;
        const size_t before = bht_count_self().descriptors;
        const int fd = memfd_create("memory", MFD_CLOEXEC);
        BHT_EQ(ftruncate(fd, (off_t)PAGE - rows[i].small), 0);
        BHT_EQ(bhi_fdpass_send(w->socket, &answer,
                               rows[i].length ? rows[i].length : sizeof answer.tag, &fd,
                               rows[i].none ? 0 : 1),
               0);
        close(fd);
        if (rows[i].no_room) {
            take_all_descriptors();
        }
        /* Nor does what it says of another record count from now on. */
        const uint64_t harvested = w->worker->core.harvested;
        puppet_begins(w->worker, harvested + 1);
        puppet_complete(w->worker, 1);
        memory_worker_harvest(w);
        give_descriptors_back();
        BHT_EQ(w->worker->core.harvested, harvested);
        if (!w->worker->core.life.violated) {
            BHT_FAIL("%s: nobody has seen it", rows[i].what);
        }
        BHT_EQ(buffer->device->block ? buffer->device->block->fd : -1, old);
        BHT_EQ(bht_count_self().descriptors, before);
        bury(A);
    }
}

TEST(it_ends_with_the_context) {
    leave(A, -1);
    bh_buffer *buffer = create(A), *other = create(A);
    fill_now(A, other);
    bh_buffer_release(other);
    BHT_EQ(stats().device_pool_blocks, 1);
    bhi_context_lock(puppet.context);
    bhi_pool_close(puppet.context->device_pool);
    bhi_context_pump_unlock(puppet.context);
    BHT_EQ(stats().device_pool_blocks, 0);
    bh_buffer_release(buffer);
    BHT_EQ(stats().device_pool_blocks, 0);
}

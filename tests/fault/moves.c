/* Moves (supervisor/buffer/buffer.h): a buffer in device memory that is written on another device
 * (D4). The driver has two devices, and computes with lavapipe on both (tests/system/fake_pair.c).
 * Each test runs twice: as it is, with host memory underneath (D7), and where the devices pose as
 * GPUs, whose memory workers make and import. Under ThreadSanitizer it runs the second way alone.
 */
#include "../system/device_scene.h"
#include "../system/fake_driver.h"
#include "plan.h"
#include "redirect.h"
#include "scene.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/worker_proc.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1024ull * 1024)

/* Each test twice: |posing| or not. Under ThreadSanitizer the threads do the same with either. */
#define EXPORTED(name)                                                                             \
    static void name(bool posing);                                                                 \
    TEST(name##_exported) {                                                                        \
        name(true);                                                                                \
    }
#if BHT_TSAN
#define HOST_MEMORY(name)
#else
#define HOST_MEMORY(name)                                                                          \
    TEST(name##_host_memory) {                                                                     \
        name(false);                                                                               \
    }
#endif
#define BOTH(name) EXPORTED(name) HOST_MEMORY(name) static void name(bool posing)

struct pair {
    bh_context *context;
    bh_stream *a, *b; /* on the first device, on the second; of one tenant */
    bh_buffer *buffer;
    uint32_t *words; /* its content */
};

static bh_stream *stream_on(bh_context *context, const char *name, const char *device,
                            const char *tenant, uint64_t limit) {
    bh_stream *stream = device_stream_on(context, name, device, tenant, limit);
    fx_ready(stream);
    return stream;
}

/* |faults| beside the posing; |limit|: of |b|. */
static struct pair open_pair(bool posing, uint64_t size, uint64_t limit, const char *faults) {
    char all[256];
    snprintf(all, sizeof all, "%s%s%s", posing ? "*:poses_as_gpu:*=fail" : "",
             posing && faults ? "," : "", faults ? faults : "");
    if (fx_on_cuda()) {
        fx_cuda_install("FAKE_CUDA_DEVICES=2\n");
    } else {
        fake_driver_install(BHT_FAKE_PAIR);
    }
    bh_context_options options = fx_options();
    options.spares = BH_OFF;
    struct pair p = {.context = fx_context_with(options, *all ? all : NULL)};
    p.a = stream_on(p.context, "a", "0", NULL, 0);
    p.b = stream_on(p.context, "b", "1", NULL, limit);
    p.buffer = device_buffer(p.context, p.a, size, BH_MEMORY_DEVICE);
    p.words = bht_own(device_pattern(size, 1));
    device_put(p.buffer, p.words, size);
    return p;
}

static uint64_t in_use(bh_stream *stream) {
    bhi_context_lock(stream->context);
    const uint64_t bytes = stream->device_memory;
    bhi_context_unlock(stream->context);
    return bytes;
}

/* What its worker has been given so far, copies of the library among it. */
static uint64_t given(bh_stream *stream) {
    bhi_context_lock(stream->context);
    const uint64_t count = stream->core.worker ? stream->core.worker->published : 0;
    bhi_context_unlock(stream->context);
    return count;
}

static bh_command filling(bh_buffer *buffer, uint64_t word, uint32_t value) {
    return (bh_command){.type = BH_COMMAND_FILL,
                        .fill = {.dst = buffer, .offset = 4 * word, .size = 4, .value = value}};
}

static bh_event *fill(bh_stream *stream, bh_buffer *buffer, uint64_t word, uint32_t value) {
    return fx_command(stream, filling(buffer, word, value), NULL, 0);
}

/* Reads 4 bytes into |host|, and then writes them. */
static bh_status read_and_fill_to(bh_stream *stream, bh_buffer *buffer, bh_buffer *host,
                                  uint32_t value, bh_event **out_event, bh_detail *detail) {
    const bh_command commands[] = {
        {.type = BH_COMMAND_COPY,
         .copy = {.src = buffer, .dst = host, .dst_offset = 128, .size = 4}},
        {.type = BH_COMMAND_FILL, .fill = {.dst = buffer, .size = 4, .value = value}}};
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = commands, .command_count = 2};
    return bh_submit(stream, &info, out_event, detail);
}

static bh_event *read_and_fill(bh_stream *stream, bh_buffer *buffer, bh_buffer *host) {
    bh_event *event = NULL;
    BHT_EQ(read_and_fill_to(stream, buffer, host, 0, &event, NULL), BH_OK);
    return event;
}

static void expect_read(bh_stream *stream, bh_buffer *buffer, const void *bytes, uint64_t size) {
    bh_buffer *host = fx_buffer(stream->context, size);
    device_expect_ready(device_copy(stream, buffer, host));
    BHT_TRUE(memcmp(fx_mapped(host), bytes, size) == 0);
    bh_buffer_release(host);
}

/* Written there, read back here and there, written here again: the content is whole, the number
 * grows with each change, and the memory that it was in is given back. */
BOTH(content_moves) {
    const uint64_t size = 33 * MIB + 4; /* three pieces */
    struct pair p = open_pair(posing, size, 0, NULL);
    const uint64_t charged = in_use(p.a), first = bh_buffer_version(p.buffer);
    BHT_TRUE(charged >= size && in_use(p.b) == 0);
    device_expect_ready(fill(p.b, p.buffer, 7, p.words[7] = 4711));
    const uint64_t second = bh_buffer_version(p.buffer);
    BHT_TRUE(second > first);
    WAIT_UNTIL(in_use(p.a) == 0, 20000);
    BHT_EQ(in_use(p.b), charged);
    BHT_EQ(bh_buffer_memory(p.buffer), BH_MEMORY_DEVICE);
    device_expect(p.buffer, p.words, size);
    expect_read(p.b, p.buffer, p.words, size);
    expect_read(p.a, p.buffer, p.words, size); /* a copy of it */
    BHT_EQ(bh_buffer_version(p.buffer), second);
    device_put(p.buffer, p.words, 16); /* the host's writes follow it */
    BHT_EQ(in_use(p.b), charged);
    BHT_EQ(in_use(p.a), 0);
    device_expect_ready(fill(p.a, p.buffer, 8, p.words[8] = 4712));
    WAIT_UNTIL(in_use(p.b) == 0, 20000);
    BHT_EQ(in_use(p.a), charged);
    BHT_TRUE(bh_buffer_version(p.buffer) > second);
    device_expect(p.buffer, p.words, size);
}

/* Of each version. Who reads there and then writes there has one made. */
BOTH(one_copy_of_each_version) {
    struct pair p = open_pair(posing, 256, 0, NULL);
    uint64_t before = given(p.a);
    expect_read(p.b, p.buffer, p.words, 256);
    expect_read(p.b, p.buffer, p.words, 256);
    BHT_EQ(given(p.a), before + 1);
    const uint64_t charged = in_use(p.b);
    device_expect_ready(fill(p.b, p.buffer, 0, p.words[0] = 1));
    BHT_EQ(in_use(p.b), charged); /* the copy is where it lives now */
    device_expect_ready(fill(p.b, p.buffer, 1, p.words[1] = 2));
    expect_read(p.b, p.buffer, p.words, 256);
    BHT_EQ(given(p.a), before + 1);
    before = given(p.b);
    expect_read(p.a, p.buffer, p.words, 256);
    expect_read(p.a, p.buffer, p.words, 256);
    device_expect_ready(fill(p.a, p.buffer, 2, p.words[2] = 3));
    BHT_EQ(given(p.b), before + 1);
    /* Read and written by the commands of one submission. */
    bh_buffer *host = fx_buffer(p.context, 256);
    const bh_command commands[] = {
        {.type = BH_COMMAND_COPY, .copy = {.src = p.buffer, .dst = host, .size = 128}},
        {.type = BH_COMMAND_FILL, .fill = {.dst = p.buffer, .offset = 12, .size = 4, .value = 4}},
        {.type = BH_COMMAND_COPY,
         .copy = {.src = p.buffer, .dst = host, .dst_offset = 128, .size = 128}}};
    before = given(p.a);
    device_expect_ready(fx_commands(p.b, commands, 3));
    BHT_EQ(given(p.a), before + 1);
    const uint32_t *found = fx_mapped(host);
    BHT_TRUE(memcmp(found, p.words, 128) == 0);
    p.words[3] = 4;
    BHT_TRUE(memcmp(found + 32, p.words, 128) == 0);
    device_expect(p.buffer, p.words, 256);
}

/* In the order in which they were submitted, and nobody waits for any of it. */
BOTH(in_stream_order) {
    enum { ROUNDS = 20 };
    struct pair p = open_pair(posing, 256, 0, NULL);
    const struct fx_held held = fx_hold(p.context, p.a); /* all of it waits for |a| */
    bh_event *last = NULL;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        last = fill(i % 2 ? p.a : p.b, p.buffer, i % 3, i);
        p.words[i % 3] = i;
    }
    BHT_EQ(bh_event_query(last), BH_EVENT_PENDING);
    fx_open(held.word);
    fx_expect(last, BH_OK);
    device_expect(p.buffer, p.words, 256);
    WAIT_UNTIL(in_use(p.a) + in_use(p.b) <= 4096, 20000); /* one of them has it */
}

/* A worker dies, or loses its device, in each piece of a move. The piece is copied again, and nobody
 * is poisoned (D2, D5). What is behind the last piece is the caller's own submission. */
BOTH(lost_in_each_piece) {
    static const struct {
        const char *point, *what;
    } ways[] = {
        {"submitted", "kill"}, {"before_record", "kill"}, {"waited", "fail"}, {"started", "segv"}};
    enum { COPIES = 4 };
    const uint64_t size = 16 * MIB + 4; /* two pieces, down and up */
    struct pair p = open_pair(posing, size, 0, bht_plan_open());
    bh_buffer *host = fx_buffer(p.context, 256);
    bool on_a = true;
    for (size_t i = 0; i < (posing ? BHT_COUNT(ways) : 1); i++) {
        for (unsigned nth = 1; nth <= COPIES; nth++, on_a = !on_a) {
            bht_plan_arm(ways[i].point, ways[i].what, nth);
            device_expect_ready(read_and_fill(on_a ? p.b : p.a, p.buffer, host));
            BHT_TRUE(bht_plan_disarm());
            BHT_EQ(((const uint32_t *)fx_mapped(host))[32], p.words[0]);
            p.words[0] = 0;
            device_expect(p.buffer, p.words, size);
        }
    }
    bht_plan_arm("submitted", "kill", COPIES + 1);
    bh_event *own = fill(on_a ? p.b : p.a, p.buffer, 0, 1);
    fx_expect(own, BH_WORKER_SIGNAL);
    BHT_TRUE(bht_plan_disarm());
    BHT_EQ(fx_verdict(own).origin, fx_verdict(own).event);
}

/* Where a worker merges all that it can, a copy of the library's still shares no queue submission
 * with what is behind it. So its worker's death in the copy hurts nobody. */
BOTH(a_copy_runs_alone) {
    char faults[160];
    snprintf(faults, sizeof faults, "*:merge:*=fail,%s", bht_plan_open());
    struct pair p = open_pair(posing, 256, 0, faults);
    bh_buffer *other = fx_buffer(p.context, 256);
    device_expect_ready(fill(p.a, other, 0, 1)); /* its worker knows this buffer by now */
    const struct fx_held held = fx_hold(p.context, p.a);
    bh_event *moved = fill(p.b, p.buffer, 0, p.words[0] = 1);
    bh_event *behind[3];
    for (uint32_t i = 0; i < 3; i++) {
        behind[i] = fill(p.a, other, i, 7);
    }
    bht_plan_arm("before_record", "kill", 2); /* the first is of the gate */
    fx_open(held.word);
    fx_expect(held.event, BH_OK);
    for (uint32_t i = 0; i < 3; i++) {
        device_expect_ready(behind[i]);
    }
    device_expect_ready(moved);
    BHT_TRUE(bht_plan_disarm());
    device_expect(p.buffer, p.words, 256);
}

/* No worker survives the copy: the content is lost. It was |written| by a submission, which is the
 * origin then, though it was READY; or by the host. Who writes a part of it is not poisoned, so the
 * buffer is, until all of it is written (B5). */
static void lost_too_often(bool posing, bool written) {
    char faults[200];
    int used = snprintf(faults, sizeof faults, "1:submitted:%d=kill", written ? 3 : 2);
    for (int worker = 3; worker <= 9; worker++) {
        used +=
            snprintf(faults + used, sizeof faults - (size_t)used, ",%d:submitted:1=kill", worker);
    }
    struct pair p = open_pair(posing, 256, 0, faults);
    bh_buffer *host = fx_buffer(p.context, 256), *other = fx_buffer(p.context, 256);
    bh_event *producer = written ? fill(p.a, p.buffer, 0, 1) : NULL;
    bh_event *write = read_and_fill(p.b, p.buffer, host), *part = fill(p.b, p.buffer, 0, 1);
    bh_event *dependent = device_copy(p.a, host, other);
    fx_expect(write, written ? BH_WORKER_SIGNAL : BH_WORKER_LOST);
    const bh_verdict verdict = fx_verdict(write), next = fx_verdict(dependent);
    BHT_EQ(verdict.origin, written ? fx_verdict(producer).event : verdict.event);
    BHT_EQ(verdict.hops, written ? 1 : 0);
    BHT_EQ(verdict.executed, BH_EXECUTED_NO);
    BHT_EQ(verdict.blame, BH_BLAME_NONE);
    BHT_EQ(bh_verdict_classify(&verdict), BH_STATUS_CLASS_VICTIM);
    BHT_STR_EQ(verdict.device, fx_on_cuda() ? "cuda:0" : "lavapipe:0");
    BHT_STR_HAS(verdict.message, "a copy of the content failed: worker ");
    BHT_EQ(next.origin, verdict.origin);
    BHT_EQ(next.hops, verdict.hops + 1);
    uint32_t found[64];
    BHT_EQ(bh_buffer_read(p.buffer, 0, found, 256, FX_SECONDS, NULL), verdict.status);
    fx_expect(part, BH_OK);
    fx_expect_healthy(p.context, p.a);
    device_put(p.buffer, p.words, 256);
    device_expect(p.buffer, p.words, 256);
}

BOTH(written_content_is_lost) {
    lost_too_often(posing, true);
}

BOTH(the_hosts_content_is_lost) {
    lost_too_often(posing, false);
}

/* The stream that the content is on has failed, and is strict; what it runs is cancelled. The copy
 * serves another stream, which is not poisoned (E5). */
BOTH(a_strict_stream_gives_its_content) {
    struct pair p = open_pair(posing, 256, 0, NULL);
    bh_stream_options options = fx_stream_options();
    options.device = "0";
    options.strict = true;
    bh_stream *strict = fx_stream_with(p.context, options);
    fx_ready(strict);
    bh_buffer *buffer = device_buffer(p.context, strict, 256, BH_MEMORY_DEVICE);
    uint32_t *words = bht_own(device_pattern(256, 1));
    device_put(buffer, words, 256);
    const struct fx_held held = fx_hold(p.context, strict);
    bh_event *queued = read_and_fill(p.b, buffer, held.data);
    BHT_EQ(bh_stream_cancel(strict), BH_OK);
    fx_expect(held.event, BH_CANCELLED);
    fx_expect(queued, BH_OK);
    words[0] = 0;
    device_expect(buffer, words, 256);
    fx_expect(fill(strict, buffer, 0, 2), BH_STREAM_FAILED);
}

/* A copy that had not begun is made by the next worker (E13), and nobody is poisoned. */
BOTH(killed_before_the_copy) {
    struct pair p = open_pair(posing, 256, 0, NULL);
    const struct fx_held held = fx_hold(p.context, p.a);
    bh_event *write = fill(p.b, p.buffer, 0, p.words[0] = 1);
    fx_kill(bh_stream_worker_pid(p.a), SIGKILL);
    fx_expect(held.event, BH_WORKER_SIGNAL);
    fx_expect(write, BH_OK);
    device_expect(p.buffer, p.words, 256);
    /* It survives the death of the worker that has it now (D2). */
    fx_kill(bh_stream_worker_pid(p.b), SIGKILL);
    device_expect(p.buffer, p.words, 256);
}

/* Poison moves, too, with its origin; and all of it written there cleans it (B5). */
BOTH(poison_moves) {
    struct pair p = open_pair(posing, 256, 0, NULL);
    bh_buffer *ones = fx_words(p.context, 64, 1);
    const struct fx_held held = fx_hold(p.context, p.a);
    bh_event *lost = fill(p.a, p.buffer, 0, 1);
    BHT_EQ(bh_event_cancel(lost), BH_OK);
    bh_event *write = read_and_fill(p.b, p.buffer, held.data);
    fx_expect(write, BH_CANCELLED);
    BHT_EQ(fx_verdict(write).origin, fx_verdict(lost).event);
    device_expect_ready(device_copy(p.b, ones, p.buffer));
    device_expect(p.buffer, fx_mapped(ones), 256);
    BHT_EQ(bh_event_cancel(held.event), BH_OK);
}

/* What is refused moves nothing: over the limit of who would write (D6), a bad command behind a
 * good one, another tenant. */
BOTH(what_is_refused_moves_nothing) {
    struct pair p = open_pair(posing, 2 * MIB, MIB, NULL);
    bh_stream *other = stream_on(p.context, "other", "1", "somebody else", 0);
    const uint64_t charged = in_use(p.a), version = bh_buffer_version(p.buffer);
    bht_refused(p.b, filling(p.buffer, 0, 1), BH_OUT_OF_DEVICE_MEMORY,
                "2097152 bytes of device memory");
    bht_refused(other, filling(p.buffer, 0, 1), BH_INVALID_ARGUMENT, "stream a");
    bh_stream *wide = stream_on(p.context, "wide", "1", NULL, 0);
    const bh_command commands[] = {{.type = BH_COMMAND_FILL, .fill = {.dst = p.buffer, .size = 4}},
                                   {.type = BH_COMMAND_FILL, .fill = {.dst = p.buffer, .size = 0}}};
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = commands, .command_count = 2};
    BHT_EQ(bh_submit(wide, &info, NULL, NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_buffer_version(p.buffer), version);
    BHT_EQ(in_use(p.a), charged);
    device_expect(p.buffer, p.words, 2 * MIB);
    expect_read(p.a, p.buffer, p.words, 2 * MIB);
    BHT_EQ(in_use(p.a), charged);
    /* It is read from where it has moved to, by others, too. */
    device_expect_ready(fill(wide, p.buffer, 0, p.words[0] = 1));
    expect_read(other, p.buffer, p.words, 2 * MIB);
    bht_refused(other, filling(p.buffer, 0, 1), BH_INVALID_ARGUMENT, "stream wide");
    bh_stream_release(wide); /* the buffer keeps it */
    device_expect(p.buffer, p.words, 2 * MIB);
}

/* The buffer, and the stream that it was made for, are released while copies are under way. */
BOTH(released_meanwhile) {
    struct pair p = open_pair(posing, 256, 0, NULL);
    bh_buffer *host = fx_words(p.context, 64, 0);
    const struct fx_held held = fx_hold(p.context, p.a);
    fill(p.b, p.buffer, 0, p.words[0] = 1);
    bh_event *read = device_copy(p.b, p.buffer, host);
    bh_buffer_release(p.buffer);
    bh_stream_release(p.a);
    fx_open(held.word);
    fx_expect(read, BH_OK);
    BHT_TRUE(memcmp(fx_mapped(host), p.words, 256) == 0);
    WAIT_UNTIL(in_use(p.b) == 0, 20000);
}

/* Each call that the submission makes fails once: it is refused and nothing has moved, or it ends
 * as any other. */
BOTH(each_call_fails) {
    struct pair p = open_pair(posing, 256, 0, NULL);
    bh_buffer *host = fx_buffer(p.context, 256);
    unsigned fired = 0;
    for (int kind = 0; kind < BHT_KINDS; kind++) {
        bool met = true;
        for (unsigned nth = 1; met; nth++) {
            bh_detail detail = {0};
            bh_event *event = NULL;
            bhi_context_lock(p.context);
            const bool on_a = bhi_buffer_place(p.buffer)->device->stream == p.a;
            bhi_context_unlock(p.context);
            bht_arm((struct bht_fault){.kind = kind, .nth = nth, .side = BHT_THIS_THREAD});
            const bh_status status =
                read_and_fill_to(on_a ? p.b : p.a, p.buffer, host, nth, &event, &detail);
            met = bht_disarm();
            fired += met;
            bht_check_detail(status, &detail, bht_where());
            if (status == BH_OK && bht_end(event, bht_where()) == BH_OK) {
                p.words[0] = nth;
            } else if (status == BH_OK) {
                device_put(p.buffer, p.words, 256); /* it was poisoned */
            }
            device_expect(p.buffer, p.words, 256);
        }
    }
    BHT_GE(fired, 20);
    bh_buffer_release(host);
    WAIT_UNTIL(in_use(p.a) + in_use(p.b) <= 4096, 20000);
}

/* The buffer outlives the context. */
BOTH(the_context_ends_first) {
    struct pair p = open_pair(posing, 256, 0, NULL);
    device_expect_ready(fill(p.b, p.buffer, 0, 1));
    bh_stream_release(p.a);
    bh_stream_release(p.b);
    BHT_EQ(bh_context_destroy(p.context), BH_OK);
    uint32_t word;
    BHT_EQ(bh_buffer_read(p.buffer, 0, &word, 4, FX_SECONDS, NULL), BH_CLOSED);
    BHT_EQ(bh_buffer_memory(p.buffer), BH_MEMORY_DEVICE);
    BHT_TRUE(bh_buffer_version(p.buffer) > 0);
}

static struct {
    bh_stream *stream;
    bh_buffer *buffer;
    uint32_t word, value;
} meanwhile;

static void write_meanwhile(void *object) {
    (void)object;
    bh_event_release(fill(meanwhile.stream, meanwhile.buffer, meanwhile.word, meanwhile.value));
}

/* What another thread submits when the copy has been queued, and before the buffer has moved, is
 * not lost: it is copied once more. */
BOTH(written_before_it_moves) {
    struct pair p = open_pair(posing, 256, 0, NULL);
    meanwhile.stream = p.a, meanwhile.buffer = p.buffer;
    meanwhile.word = 5, meanwhile.value = p.words[5] = 4711;
    bht_at_step("replica_made", 1, write_meanwhile);
    device_expect_ready(fill(p.b, p.buffer, 6, p.words[6] = 4712));
    BHT_EQ(bht_steps_passed(), 2);
    device_expect(p.buffer, p.words, 256);
    WAIT_UNTIL(in_use(p.a) == 0, 20000);
}

/* It moves between two pieces of a write of the host, and before the first: the write goes on where
 * it is then. */
BOTH(moved_under_a_write) {
    const uint64_t size = 5 * MIB; /* three pieces */
    struct pair p = open_pair(posing, size, 0, NULL);
    uint32_t *words = bht_own(device_pattern(size, 1));
    meanwhile.buffer = p.buffer;
    for (unsigned piece = 1; piece <= 3; piece++) {
        meanwhile.stream = piece % 2 ? p.b : p.a;
        meanwhile.word = 0, meanwhile.value = 4711;
        bht_at_step("piece_due", piece, write_meanwhile);
        words[0] = piece == 1 ? 4712 : 4711; /* before the first piece, or after it */
        words[1] = piece;
        uint32_t *written = bht_own(device_pattern(size, 1));
        written[0] = 4712, written[1] = piece;
        device_put(p.buffer, written, size);
        BHT_EQ(bht_steps_passed(), 4); /* one of them twice */
        device_expect(p.buffer, words, size);
    }
}

struct hammer {
    struct pair *p;
    _Atomic bool stop;
};

static void *move_it(void *argument) {
    struct hammer *hammer = argument;
    for (uint32_t i = 0; !hammer->stop; i++) {
        device_expect_ready(fill(i % 2 ? hammer->p->a : hammer->p->b, hammer->p->buffer, 0, i));
    }
    return NULL;
}

/* A write of the host in pieces, while the buffer moves to and fro: no piece is lost on the way. */
BOTH(host_writes_follow) {
    enum { ROUNDS = BHT_TSAN ? 1 : 4 }; /* the moves beside it take what processors there are */
    const uint64_t size = 33 * MIB;
    struct pair p = open_pair(posing, size, 0, NULL);
    struct hammer hammer = {.p = &p};
    pthread_t thread;
    BHT_EQ(pthread_create(&thread, NULL, move_it, &hammer), 0);
    uint32_t *words = NULL;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        words = bht_own(device_pattern(size, i));
        device_put(p.buffer, words, size);
    }
    hammer.stop = true;
    pthread_join(thread, NULL);
    uint32_t *found = bht_own(malloc(size));
    BHT_EQ(bh_buffer_read(p.buffer, 0, found, size, FX_SECONDS, NULL), BH_OK);
    BHT_TRUE(memcmp(found + 1, words + 1, size - 4) == 0);
}

/* A session on a device with a queue for copies (tests/system/fake_transfer.c): copies begin before
 * it is their turn, and nobody can tell by what comes of it. */
#include "fake_driver.h"
#include "fake_engine_page.h"
#include "fake_supervisor.h"

#include "base/futex.h"
#include "worker/vulkan/copy_jobs.h"

#include <sched.h>
#include <stdlib.h>

#define SLICE   BHI_COPY_LEAST
#define SLICES  6u
#define WORDS   (SLICE / 4)
#define BUFFERS 4u
#define ROUNDS  600u

static struct fake_engine *engine;

static void install(void) {
    if (!getenv("BULKHEAD_TEST_GPU")) { /* that of a GPU has such queues itself */
        fake_driver_install(BHT_FAKE_COPIES);
        engine = fake_driver_engine();
    }
}
BHT_AT_START(bht_around(install, NULL))

struct copy_record {
    struct bhi_lane_record record;
    struct bhi_cmd_copy copies[2];
};

/* A part of a buffer, in slices. */
struct part {
    uint32_t buffer, first, count;
};

static struct bhi_cmd_copy copy_command(const struct part *from, const struct part *to) {
    return (struct bhi_cmd_copy){
        .header = {.type = BHI_CMD_COPY, .size = sizeof(struct bhi_cmd_copy)},
        .src = from->buffer,
        .dst = to->buffer,
        .src_offset = (uint64_t)from->first * SLICE,
        .dst_offset = (uint64_t)to->first * SLICE,
        .bytes = (uint64_t)to->count * SLICE};
}

/* -- random programs and what they must compute ------------------------------------------------ */

struct program {
    uint64_t state; /* of the random numbers */
    uint32_t *words[BUFFERS + 1];
    uint32_t *expected[BUFFERS + 1]; /* in the order of the lane */
};

static uint32_t next(struct program *p, uint32_t below) {
    p->state = p->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(p->state >> 33) % below;
}

static struct part next_part(struct program *p, uint32_t count) {
    struct part part = {.buffer = 1 + next(p, BUFFERS), .count = count};
    part.first = next(p, SLICES - count + 1);
    return part;
}

static uint32_t *expected_at(const struct program *p, const struct part *part) {
    return p->expected[part->buffer] + (size_t)part->first * WORDS;
}

static bool apart(const struct part *a, const struct part *b) {
    return a->buffer != b->buffer || a->first + a->count <= b->first ||
           b->first + b->count <= a->first;
}

static void publish_copy(struct program *p) {
    struct copy_record record = {
        .record = {.size = sizeof record.record, .command_count = 1 + next(p, 2)}};
    for (uint32_t i = 0; i < record.record.command_count; i++) {
        struct part from, to;
        do {
            to = next_part(p, 1 + next(p, 3));
            from = next_part(p, to.count);
        } while (!apart(&from, &to));
        record.copies[i] = copy_command(&from, &to);
        record.record.size += sizeof record.copies[i];
        memcpy(expected_at(p, &to), expected_at(p, &from), (size_t)to.count * SLICE);
    }
    fake_publish(&record.record, 0);
}

static void publish_add(struct program *p) {
    struct part from, to;
    do {
        to = next_part(p, 1 + next(p, 2));
        from = next_part(p, to.count);
    } while (!apart(&from, &to));
    const uint32_t c = next(p, 1000);
    struct fake_record record = fake_add(7, from.buffer, (uint64_t)from.first * SLICE, to.buffer,
                                         (uint64_t)to.first * SLICE, (uint64_t)to.count * SLICE, c);
    const uint32_t *x = expected_at(p, &from);
    uint32_t *y = expected_at(p, &to);
    for (uint32_t i = 0; i < to.count * WORDS; i++) {
        y[i] = x[i] + c;
    }
    fake_publish(&record.record, 0);
}

static void publish_fill(struct program *p) {
    const struct part to = next_part(p, 1);
    const uint32_t value = next(p, 1000);
    struct fake_record record = fake_fill(to.buffer, (uint64_t)to.first * SLICE, SLICE, value);
    uint32_t *y = expected_at(p, &to);
    for (uint32_t i = 0; i < WORDS; i++) {
        y[i] = value;
    }
    fake_publish(&record.record, 0);
}

static void harvest(uint64_t until) {
    fake_wait(until);
    while (fake.harvested < until) {
        struct bhi_result result;
        char text[BHI_ERROR_TEXT];
        fake_harvest(&result, text);
        if (result.status != BH_OK) {
            BHT_FAIL("record %llu: status %u: %s", (unsigned long long)result.seq, result.status,
                     text);
        }
        BHT_GE(result.ended_ns, result.started_ns);
    }
}

static void begin_program(struct program *p, uint64_t seed) {
    memset(p, 0, sizeof *p);
    p->state = seed;
    fake_open_ready();
    fake_kernel(7, CODE(add));
    for (uint32_t b = 1; b <= BUFFERS; b++) {
        p->words[b] = fake_buffer(b, (uint64_t)SLICES * SLICE);
        p->expected[b] = bht_own(malloc((size_t)SLICES * SLICE));
        for (uint32_t i = 0; i < SLICES * WORDS; i++) {
            p->words[b][i] = p->expected[b][i] = b * 1000003u + i;
        }
    }
}

static void end_program(struct program *p) {
    harvest(fake.published);
    for (uint32_t b = 1; b <= BUFFERS; b++) {
        BHT_MEM_EQ(p->words[b], p->expected[b], (size_t)SLICES * SLICE);
    }
}

/* The lane is kept full, so that there is always something ahead. */
TEST(random_programs) {
    for (uint64_t seed = 1; seed <= 3; seed++) {
        static struct program p;
        begin_program(&p, seed);
        for (uint32_t i = 0; i < ROUNDS; i++) {
            const uint32_t kind = next(&p, 10);
            if (kind < 5) {
                publish_copy(&p);
            } else if (kind < 9) {
                publish_add(&p);
            } else {
                publish_fill(&p);
            }
            if (i % 50 == 49) { /* now and then all of it has to be there */
                harvest(fake.published);
                for (uint32_t b = 1; b <= BUFFERS; b++) {
                    BHT_MEM_EQ(p.words[b], p.expected[b], (size_t)SLICES * SLICE);
                }
            }
        }
        end_program(&p);
    }
}

/* -- what the supervisor sees ----------------------------------------------------------------- */

static uint64_t started(void) {
    return atomic_load(&fake.view.header->started_seq);
}

static struct copy_record copy_of_all(uint32_t src, uint32_t dst) {
    const struct part from = {src, 0, SLICES}, to = {dst, 0, SLICES};
    return (struct copy_record){
        .record = {.size = sizeof(struct bhi_lane_record) + sizeof(struct bhi_cmd_copy),
                   .command_count = 1},
        .copies = {copy_command(&from, &to)}};
}

static void publish_all(struct program *p, uint32_t src, uint32_t dst) {
    struct copy_record record = copy_of_all(src, dst);
    fake_publish(&record.record, 0);
    memcpy(p->expected[dst], p->expected[src], (size_t)SLICES * SLICE);
}

static uint64_t completed(void) {
    uint64_t seq, tail;
    BHT_EQ(bhi_progress_poll(&fake.view, fake.published, fake.lane.head, &seq, &tail), 0);
    return seq;
}

/* The second has begun when the device has not done anything yet, and a third as soon as it is there,
 * behind the end of the first: whoever wants to withdraw one sees that. */
TEST(they_begin_as_they_come) {
    static struct program p;
    begin_program(&p, 1);
    const uint64_t done = atomic_load(&engine->done);
    atomic_store(&engine->held, 1);
    publish_all(&p, 1, 2);
    publish_all(&p, 1, 3);
    WAIT_UNTIL(started() == 2, 10000);
    BHT_EQ(atomic_load(&engine->done), done);
    atomic_store(&engine->steps, 1);
    harvest(1);
    publish_all(&p, 2, 4);
    WAIT_UNTIL(started() == 3, 10000);
    BHT_EQ(atomic_load(&engine->done), done + 1);
    atomic_store(&engine->held, 0);
    end_program(&p);
}

/* E13: of those that have begun, the one whose turn it was is lost with the device; the others run on
 * the next worker. */
TEST(those_ahead_are_not_to_blame) {
    static struct program p;
    begin_program(&p, 1);
    atomic_store(&engine->held, 1);
    publish_all(&p, 1, 2);
    publish_all(&p, 1, 3);
    publish_all(&p, 1, 4);
    WAIT_UNTIL(started() == 3, 10000);
    atomic_store(&engine->lost, 1);
    BHT_EQ(fake_join(), BHI_EXIT_DEVICE_LOST);
    BHT_EQ(completed(), 1);
    BHT_EQ(started(), 1);
    struct bhi_result result;
    char text[BHI_ERROR_TEXT];
    fake_harvest(&result, text);
    BHT_EQ(result.status, BH_DEVICE_LOST);
    atomic_store(&engine->lost, 0);
    atomic_store(&engine->held, 0);
    rig_layer_reset(); /* it does not like what is destroyed in use */
}

/* -- what runs together ----------------------------------------------------------------------- */

/* What is in the lane when a session looks, a letter for each record: (f)ill; one to run (a)lone; of a
 * (k)ernel that is not compiled; a (c)opy for the other queue; (w)ithdrawn; one that needs a (m)essage.
 * |together|: the same letter for those in one queue submission; a small one: if there is time. */
static const struct lane {
    const char *records, *together;
} lanes[] = {{"fff", "AAA"}, {"ffaff", "AABcc"}, {"fkf", "ABC"},
             {"fcf", "ABC"}, {"fwff", "ABcc"},   {"fmf", "Abb"}};

static void publish_kind(char kind, uint32_t at) {
    struct fake_record fill = fake_fill(kind == 'm' ? 4 : 3, (uint64_t)at * 4, 4, at + 1);
    struct fake_record add = fake_add(7, 1, 0, 2, 0, SLICE, 1);
    struct copy_record copy = copy_of_all(1, 2);
    struct bhi_lane_record *record = kind == 'k'   ? &add.record
                                     : kind == 'c' ? &copy.record
                                                   : &fill.record;
    record->flags |= kind == 'a' ? BHI_RECORD_ALONE : 0;
    if (kind == 'w') {
        bhi_lane_withdraw(&fake.lane, fake.published + 1, true);
    }
    fake_publish(record, kind == 'm');
}

/* All of it is there when the session sees the first: it has been held up in a copy. */
static void run_lane(const struct lane *lane) {
    const size_t count = strlen(lane->records);
    struct bhi_result results[8];
    fake_open_ready();
    fake_kernel(7, CODE(add));
    for (uint32_t b = 1; b <= 3; b++) {
        fake_buffer(b, (uint64_t)SLICES * SLICE);
    }
    atomic_store(&engine->held, 1);
    struct copy_record first = copy_of_all(1, 2);
    fake_publish(&first.record, 0);
    WAIT_UNTIL(started() == 1, 10000);
    for (uint32_t i = 0; i < count; i++) {
        publish_kind(lane->records[i], i);
    }
    atomic_store(&engine->held, 0);
    if (strchr(lane->records, 'm')) {
        fake_wait(2);
        fake_buffer(4, SLICE);
    }
    fake_wait(1 + count);
    for (size_t i = 0; i <= count; i++) {
        char text[BHI_ERROR_TEXT];
        fake_harvest(&results[i], text);
        if (results[i].status != (i > 0 && lane->records[i - 1] == 'w' ? BH_CANCELLED : BH_OK)) {
            BHT_FAIL("%s: record %zu: status %u: %s", lane->records, i, results[i].status, text);
        }
    }
    for (size_t i = 1; i < count; i++) {
        const bool same = results[i].started_ns == results[i + 1].started_ns;
        const char of = lane->together[i - 1], next = lane->together[i];
        if (of != next ? same : of < 'a' && !same) {
            BHT_FAIL("%s: records %zu and %zu: %s", lane->records, i, i + 1,
                     same ? "together" : "apart");
        }
    }
}

TEST(what_runs_together) {
    for (size_t i = 0; i < BHT_COUNT(lanes); i++) {
        run_lane(&lanes[i]);
    }
}

/* A copy that has been withdrawn does not begin, although it could. */
TEST(a_withdrawn_copy_does_not_begin) {
    static struct program p;
    begin_program(&p, 1);
    struct copy_record first = copy_of_all(1, 2), second = copy_of_all(1, 3);
    harvest(0);
    bhi_lane_withdraw(&fake.lane, 2, true);
    fake_publish(&first.record, 0);
    fake_publish(&second.record, 0);
    memcpy(p.expected[2], p.expected[1], (size_t)SLICES * SLICE);
    struct bhi_result result;
    char text[BHI_ERROR_TEXT];
    fake_wait(2);
    fake_harvest(&result, text);
    BHT_EQ(result.status, BH_OK);
    fake_harvest(&result, text);
    BHT_EQ(result.status, BH_CANCELLED);
    bhi_lane_withdraw(&fake.lane, 2, false);
    end_program(&p);
}

/* A copy that needs a message which has not come does not begin, and what is behind it neither: the
 * message puts other memory in the place of its target. */
TEST(a_copy_waits_for_its_messages) {
    static struct program p;
    begin_program(&p, 1);
    struct copy_record first = copy_of_all(1, 2), second = copy_of_all(1, 3),
                       third = copy_of_all(3, 4);
    fake_publish(&first.record, 0);
    fake_publish(&second.record, 1);
    fake_publish(&third.record, 1);
    harvest(1);
    BHT_EQ(atomic_load(&fake.view.header->started_seq), 1);
    const uint32_t *old = p.words[3];
    p.words[3] = fake_buffer(3, (uint64_t)SLICES * SLICE);
    harvest(3);
    BHT_MEM_EQ(old, p.expected[3], (size_t)SLICES * SLICE); /* nothing came there */
    for (uint32_t b = 2; b <= 4; b++) {
        memcpy(p.expected[b], p.expected[1], (size_t)SLICES * SLICE);
    }
    end_program(&p);
}

/* Copies on a queue of their own, beside what the compute queue runs: when they may begin, and what
 * comes of them. The driver is tests/system/fake_transfer.c, whose engine really copies. */
#include "fake_driver.h"
#include "fake_engine_page.h"
#include "rig.h"
#include "worker/vulkan/backend.h"

#include <stdlib.h>
#include <unistd.h>

#define SLICE BHI_COPY_LEAST
#define BYTES ((uint64_t)8 * SLICE)

/* What the rig's call of |meanwhile| does. */
static struct {
    void (*act)(void);
    bool watches; /* each time, not only the first */
    unsigned calls;
} scene;

static struct fake_engine *engine;

static void meanwhile(void *user) {
    (void)user;
    scene.calls++;
    if (scene.watches || (scene.act && scene.calls == 1)) {
        scene.act();
    }
}

static void open_rig(void) {
    const struct rig_options options = {.meanwhile = meanwhile};
    scene.act = NULL;
    scene.watches = false;
    rig_open(&options);
    BHT_TRUE(bhi_vk(rig.backend)->copies.queue != VK_NULL_HANDLE);
    scene.calls = 0;
}

static void set_up(void) {
    if (!getenv("BULKHEAD_TEST_GPU")) { /* that of a GPU has such queues itself */
        fake_driver_install(BHT_FAKE_COPIES);
        engine = fake_driver_engine();
    }
    open_rig();
}
BHT_AT_START(bht_around(set_up, NULL))

static void pattern(uint32_t *words, uint64_t bytes, uint32_t seed) {
    for (uint64_t i = 0; i < bytes / sizeof *words; i++) {
        words[i] = (uint32_t)i * 2654435761u + seed;
    }
}

/* A record beside those that the rig runs. */
static struct bhi_lane_record *make_copy(uint64_t src, uint64_t from, uint64_t dst, uint64_t to,
                                         uint64_t bytes) {
    struct {
        struct bhi_lane_record record;
        struct bhi_cmd_copy copy;
    } *made = bht_own(calloc(1, sizeof *made));
    made->record =
        (struct bhi_lane_record){.size = sizeof *made, .seq = ++rig.seq, .command_count = 1};
    made->copy = (struct bhi_cmd_copy){.header = {.type = BHI_CMD_COPY, .size = sizeof made->copy},
                                       .src = src,
                                       .dst = dst,
                                       .src_offset = from,
                                       .dst_offset = to,
                                       .bytes = bytes};
    return &made->record;
}

static bool copy_fits(uint64_t src, uint64_t from, uint64_t dst, uint64_t to, uint64_t bytes) {
    struct bhi_lane_record *record = make_copy(src, from, dst, to, bytes);
    return bhi_backend_copy_fits(rig.backend, record);
}

static void end_ok(const struct bhi_lane_record *record) {
    struct bhi_result result;
    struct bhi_error error;
    BHT_TRUE(bhi_backend_copy_end(rig.backend, &result, &error));
    if (result.status != BH_OK) {
        BHT_FAIL("status %u: %s", result.status, bhi_error_line(&error));
    }
    BHT_EQ(result.seq, record->seq);
    BHT_EQ(result.executed, BH_EXECUTED_YES);
    BHT_EQ(result.command_index, BHI_NO_COMMAND);
    BHT_NE(result.started_ns, 0);
    BHT_GE(result.ended_ns, result.started_ns);
}

static uint64_t copy_submits(void) {
    return rig_counts().copy_submits;
}

static void dispatch_add(uint64_t x, uint64_t from, uint64_t y, uint64_t to, uint64_t bytes,
                         uint32_t c) {
    rig_dispatch(
        1, (uint32_t)(bytes / 256), 1, 1,
        BINDINGS(
            {.buffer = x, .binding = 0, .access = BH_ACCESS_READ, .offset = from, .size = bytes},
            {.buffer = y, .binding = 1, .access = BH_ACCESS_WRITE, .offset = to, .size = bytes}),
        &c, sizeof c);
}

/* -- beside a kernel -------------------------------------------------------------------------- */

static struct bhi_lane_record *begun;
static PFN_vkGetFenceStatus real_status;
static PFN_vkWaitForFences real_wait;
static VkFence held_fence;
static const volatile uint32_t
    *awaited; /* the fence is not ready before this has |awaited_value| */
static uint32_t awaited_value;

static bool is_held(VkFence fence) {
    return fence == held_fence && *awaited != awaited_value;
}

static VKAPI_ATTR VkResult VKAPI_CALL held_status(VkDevice device, VkFence fence) {
    return is_held(fence) ? VK_NOT_READY : real_status(device, fence);
}

static VKAPI_ATTR VkResult VKAPI_CALL held_wait(VkDevice device, uint32_t count,
                                                const VkFence *fences, VkBool32 all,
                                                uint64_t timeout) {
    return is_held(fences[0]) ? VK_TIMEOUT : real_wait(device, count, fences, all, timeout);
}

static void begin_three_to_four(void) {
    begun = make_copy(3, 0, 4, 0, BYTES);
    BHT_TRUE(bhi_backend_copy_fits(rig.backend, begun));
    bhi_backend_copy_begin(rig.backend, begun);
}

/* Buffers 1 to 4, each with a pattern of its own. */
static void make_buffers(uint32_t *words[5]) {
    for (uint64_t id = 1; id <= 4; id++) {
        words[id] = rig_buffer(id, BYTES);
        pattern(words[id], BYTES, (uint32_t)id);
    }
}

/* The kernel does not end before the copy has. */
TEST(a_copy_runs_beside_a_kernel) {
    uint32_t *words[5];
    make_buffers(words);
    rig_kernel(1, CODE(add));
    rig_begin();
    dispatch_add(1, 0, 2, 0, BYTES, 5);
    rig_run_ok();
    const uint32_t last = BYTES / 4 - 1;
    held_fence = bhi_vk(rig.backend)->fence;
    awaited = &words[4][last];
    awaited_value = words[3][last];
    BHT_NE(*awaited, awaited_value);
    real_status = bhi_vk(rig.backend)->device.api.GetFenceStatus;
    real_wait = bhi_vk(rig.backend)->device.api.WaitForFences;
    bhi_vk(rig.backend)->device.api.GetFenceStatus = held_status;
    bhi_vk(rig.backend)->device.api.WaitForFences = held_wait;
    scene.act = begin_three_to_four;
    scene.calls = 0;
    rig_begin();
    dispatch_add(1, 0, 2, 0, BYTES, 7);
    rig_run_ok();
    BHT_EQ(words[2][9], words[1][9] + 7);
    BHT_EQ(rig.markers->started, (uint32_t)begun->seq - 1); /* not the copy, so far */
    end_ok(begun);
    BHT_EQ(rig.markers->started, (uint32_t)begun->seq);
    BHT_EQ(rig.markers->completed, (uint32_t)begun->seq - 1);
    BHT_MEM_EQ(words[4], words[3], BYTES);
    BHT_EQ(copy_submits(), 1);
}

/* While a kernel reads slices 0 and 1 of buffer 1 and writes slices 2 and 3 of buffer 2, a command
 * copies slice 4 of buffer 1 to slice 5 of buffer 2, and another one fills slice 6 of buffer 2. */
static void look_at_hazards(void) {
    static const struct {
        uint64_t src, from, dst, to, slices;
        bool fits;
    } cases[] = {
        {3, 0, 4, 0, 8, true},                          /* nothing in common */
        {1, 0, 4, 0, 2, true},                          /* both read */
        {1, 0, 4, 0, 8, true},                          /* also what the copy reads */
        {3, 0, 1, 0, 1, false},                         /* write after read, the beginning */
        {3, 0, 1, 1, 1, false},                         /* the end */
        {3, 0, 1, 2, 2, true},                          /* between what is read */
        {3, 0, 1, 4, 1, false},                         /* write after the copy's read */
        {3, 0, 1, 5, 3, true},  {2, 2, 4, 0, 1, false}, /* read after write */
        {2, 3, 4, 0, 1, false}, {2, 0, 4, 0, 2, true},
        {2, 4, 4, 0, 1, true},  {2, 5, 4, 0, 1, false}, /* after the copy's */
        {2, 6, 4, 0, 1, false},                         /* after the fill's */
        {2, 7, 4, 0, 1, true},  {3, 0, 2, 1, 2, false}, /* write after write, overlapping */
        {3, 0, 2, 5, 1, false}, {3, 0, 2, 6, 2, false},
        {3, 0, 2, 0, 2, true},  {3, 0, 2, 7, 1, true},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        if (copy_fits(cases[i].src, cases[i].from * SLICE, cases[i].dst, cases[i].to * SLICE,
                      cases[i].slices * SLICE) != cases[i].fits) {
            BHT_FAIL("case %zu", i);
        }
    }
    /* A byte decides. */
    BHT_TRUE(!copy_fits(3, 0, 1, 2 * SLICE - 1, SLICE));
    BHT_TRUE(!copy_fits(2, 4 * SLICE - 1, 4, 0, SLICE));
    BHT_TRUE(!copy_fits(2, SLICE + 1, 4, 0, SLICE));
}

TEST(a_hazard_holds_it_back) {
    for (uint64_t id = 1; id <= 4; id++) {
        rig_buffer(id, BYTES);
    }
    rig_kernel(1, CODE(add));
    for (int round = 0; round < 3; round++) { /* compiled and alone, then kept, then merged */
        scene.calls = 0;
        scene.act = look_at_hazards;
        rig_begin();
        dispatch_add(1, 0, 2, (uint64_t)2 * SLICE, (uint64_t)2 * SLICE, 1);
        if (round == 2) {
            rig_begin();
        }
        rig_copy(1, (uint64_t)4 * SLICE, 2, (uint64_t)5 * SLICE, SLICE);
        rig_fill(2, (uint64_t)6 * SLICE, SLICE, 9);
        rig_run_ok();
        BHT_GE(scene.calls, 1);
    }
    BHT_TRUE(copy_fits(3, 0, 1, 0, BYTES)); /* nothing runs any more */
    BHT_EQ(copy_submits(), 0);
}

/* -- beside each other ------------------------------------------------------------------------ */

TEST(copies_in_order) {
    uint32_t *words[5];
    make_buffers(words);
    uint32_t *expected = bht_own(malloc(BYTES));
    memcpy(expected, words[1], BYTES);
    memcpy(expected, words[2] + SLICE / 4, SLICE); /* the last one to write there */
    struct bhi_lane_record *records[] = {
        make_copy(1, 0, 3, 0, BYTES),     /* all of it */
        make_copy(2, SLICE, 3, 0, SLICE), /* write after write */
        make_copy(3, 0, 4, 0, BYTES),     /* read after write */
    };
    for (size_t i = 0; i < BHT_COUNT(records); i++) {
        BHT_TRUE(bhi_backend_copy_fits(rig.backend, records[i]));
        bhi_backend_copy_begin(rig.backend, records[i]);
    }
    rig_begin();
    rig_copy(1, 0, 4, 0, SLICE);
    rig_copy(2, 3 * SLICE, 4, SLICE, SLICE);
    bhi_backend_copy_begin(rig.backend, rig.records[0]);
    /* What has been read must not change: the next worker may have to read it again. */
    BHT_TRUE(!copy_fits(4, 0, 1, 0, SLICE));
    BHT_TRUE(!copy_fits(4, 0, 2, SLICE, SLICE));
    BHT_TRUE(!copy_fits(4, 0, 2, 3 * SLICE, SLICE));
    BHT_TRUE(copy_fits(4, 0, 2, 0, SLICE));
    for (size_t i = 0; i < BHT_COUNT(records); i++) {
        end_ok(records[i]);
    }
    end_ok(rig.records[0]);
    rig.record_count = 0;
    BHT_MEM_EQ(words[3], expected, BYTES);
    memcpy(expected, words[1], SLICE);
    memcpy(expected + SLICE / 4, words[2] + 3 * SLICE / 4, SLICE);
    BHT_MEM_EQ(words[4], expected, BYTES);
}

TEST(there_is_room_for_some) {
    rig_buffer(1, BYTES);
    rig_buffer(2, BYTES);
    struct bhi_lane_record *records[BHI_COPY_JOBS];
    for (size_t i = 0; i < BHI_COPY_JOBS; i++) {
        BHT_TRUE(bhi_backend_copy_room(rig.backend));
        records[i] = make_copy(1, 0, 2, 0, SLICE);
        bhi_backend_copy_begin(rig.backend, records[i]);
    }
    BHT_TRUE(!bhi_backend_copy_room(rig.backend));
    BHT_TRUE(!copy_fits(1, 0, 2, 0, SLICE));
    for (size_t i = 0; i < BHI_COPY_JOBS; i++) {
        end_ok(records[i]);
    }
}

/* -- which records ---------------------------------------------------------------------------- */

#define PART(from, at, to, at_to, count)                                                           \
    {.src = from, .src_offset = at, .dst = to, .dst_offset = at_to, .bytes = count}

static void expect_kind(const char *what, bool copies) {
    const struct bhi_lane_record *record = rig.records[rig.record_count - 1];
    if (bhi_backend_copies(rig.backend, record) != copies ||
        bhi_backend_copy_fits(rig.backend, record) != copies) {
        BHT_FAIL("%s: it is %s copy", what, copies ? "no" : "a");
    }
    rig.record_count = 0;
}

TEST(which_records_are_copies) {
    for (uint64_t id = 1; id <= 3; id++) {
        rig_buffer(id, BYTES);
    }
    static const struct {
        const char *what;
        bool copies;
        struct bhi_cmd_copy parts[3];
    } cases[] = {
        {"nothing", false, {{.bytes = 0}}},
        {"one", true, {PART(1, 0, 2, 0, SLICE)}},
        {"too few bytes", false, {PART(1, 0, 2, 0, SLICE - 1)}},
        {"enough together", true, {PART(1, 0, 2, 0, SLICE / 2), PART(1, 0, 3, 0, SLICE / 2)}},
        {"out of range", false, {PART(1, BYTES - SLICE + 1, 2, 0, SLICE)}},
        {"no such buffer", false, {PART(1, 0, 9, 0, SLICE)}},
        {"one after the other", true, {PART(1, 0, 2, 0, SLICE), PART(2, 0, 3, 0, SLICE)}},
        {"it overwrites what it has read",
         false,
         {PART(1, 0, 2, 0, SLICE), PART(3, 0, 1, SLICE - 4, SLICE)}},
        {"it overwrites what its second has read",
         false,
         {PART(1, 0, 2, 0, SLICE), PART(3, 0, 2, SLICE, SLICE), PART(1, 0, 3, SLICE - 4, SLICE)}},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        rig_begin();
        for (int k = 0; k < 3 && cases[i].parts[k].bytes > 0; k++) {
            const struct bhi_cmd_copy *part = &cases[i].parts[k];
            rig_copy(part->src, part->src_offset, part->dst, part->dst_offset, part->bytes);
        }
        expect_kind(cases[i].what, cases[i].copies);
    }
    rig_begin();
    rig_copy(1, 0, 2, 0, SLICE);
    rig.records[0]->flags = BHI_RECORD_TIMED;
    expect_kind("timed: its device time is that of the compute queue", false);
    rig_begin();
    rig_copy(1, 0, 2, 0, SLICE);
    rig_fill(3, 0, 4, 1);
    expect_kind("a fill behind it", false);
    for (uint32_t count = BHI_COPY_COMMANDS; count <= BHI_COPY_COMMANDS + 1; count++) {
        rig_begin();
        for (uint32_t i = 0; i < count; i++) {
            rig_copy(1, 0, 2, 0, SLICE);
        }
        expect_kind("many", count == BHI_COPY_COMMANDS);
    }
    rig_attach_again(2, BHI_ATTACH_READ);
    rig_begin();
    rig_copy(1, 0, 2, 0, SLICE);
    expect_kind("it may not be written", false);
}

/* -- sources that are read through a copy ----------------------------------------------------- */

static void run_one(uint64_t src, uint64_t from, uint64_t dst, uint64_t bytes) {
    struct bhi_lane_record *record = make_copy(src, from, dst, 0, bytes);
    BHT_TRUE(bhi_backend_copy_fits(rig.backend, record));
    bhi_backend_copy_begin(rig.backend, record);
    end_ok(record);
}

static uint64_t joins(void) {
    return rig_counts().joins;
}

static VkQueue compute;
static VkCommandBuffer first_of_two;
static PFN_vkQueueSubmit real_submit;

static VKAPI_ATTR VkResult VKAPI_CALL look_at_submit(VkQueue queue, uint32_t count,
                                                     const VkSubmitInfo *infos, VkFence fence) {
    if (queue == compute) {
        BHT_EQ(count, 1);
        first_of_two = infos->commandBufferCount == 2 ? infos->pCommandBuffers[0] : VK_NULL_HANDLE;
    }
    return real_submit(queue, count, infos, fence);
}

/* The barrier for what the other queue has written comes before the first commands after a copy,
 * and only before these. */
TEST(a_barrier_comes_after_copies_alone) {
    uint32_t *words[5];
    make_buffers(words);
    rig_kernel(1, CODE(add));
    compute = bhi_vk(rig.backend)->device.queue;
    real_submit = bhi_vk(rig.backend)->device.api.QueueSubmit;
    bhi_vk(rig.backend)->device.api.QueueSubmit = look_at_submit;
    const uint64_t before = joins();
    for (uint64_t round = 0; round < 4; round++) {
        run_one(3, 0, 1, BYTES);
        for (int run = 0; run < 3; run++) { /* recorded, kept, kept */
            rig_begin();
            dispatch_add(1, 0, 2, 0, BYTES, 7);
            if (round >= 2) { /* merged */
                rig_begin();
                dispatch_add(2, 0, 4, 0, BYTES, 7);
            }
            rig_run_ok();
            BHT_TRUE((first_of_two == bhi_vk(rig.backend)->copies.join) == (run == 0));
            BHT_EQ(words[2][9], words[3][9] + 7);
        }
        BHT_EQ(joins(), before + round + 1);
    }
    /* The abort words, too, are written by another queue. */
    BHT_TRUE(bhi_vk(rig.backend)->abort.remote);
    for (int run = 0; run < 3; run++) { /* stopped, after that, and after that */
        rig_begin();
        dispatch_add(1, 0, 2, 0, BYTES, 7);
        if (run == 0) {
            bhi_backend_abort(rig.backend, rig.seq);
        }
        BHT_TRUE(rig_run());
        BHT_EQ(rig.results[0].status, run == 0 ? BH_DEADLINE : BH_OK);
        BHT_TRUE((first_of_two == bhi_vk(rig.backend)->copies.join) == (run == 1));
    }
}

/* -- parts ------------------------------------------------------------------------------------ */

static uint64_t most, still;

/* Lets the engine begin when nothing more is submitted. */
static void watch_parts(void) {
    const uint64_t parts =
        bhi_vk(rig.backend)->copies.submitted - bhi_vk(rig.backend)->copies.ended;
    BHT_LE(parts, BHI_COPY_PARTS);
    still = parts == most ? still + 1 : 0;
    most = parts > most ? parts : most;
    if (still == 3) {
        atomic_store(&engine->held, 0);
    }
}

/* Each has a command buffer, which is recorded anew when the device is done with it, not sooner. */
TEST(no_more_parts_than_command_buffers) {
    const uint64_t bytes = (uint64_t)(BHI_COPY_PARTS + 4) * BHI_COPY_CHUNK;
    uint32_t *source = rig_buffer(1, bytes);
    uint32_t *target = rig_buffer(2, bytes);
    struct bhi_lane_record *record = make_copy(1, 0, 2, 0, bytes);
    pattern(source, bytes, 1);
    rig_attach_again(1, BHI_ATTACH_READ); /* so it goes in chunks */
    scene.act = watch_parts;
    scene.watches = true;
    atomic_store(&engine->held, 1);
    bhi_backend_copy_begin(rig.backend, record);
    end_ok(record);
    BHT_EQ(most, BHI_COPY_PARTS);
    BHT_MEM_EQ(target, source, bytes);
}

/* -- memory of the device --------------------------------------------------------------------- */

static void expect_bytes(uint64_t id, const void *bytes, uint64_t size) {
    uint8_t *found = rig_buffer(8, size);
    memset(found, 0x5e, size);
    rig_begin();
    rig_copy(id, 0, 8, 0, size);
    rig_run_ok();
    BHT_MEM_EQ(found, bytes, size);
}

/* D3, B6: whatever it held. */
TEST(memory_is_zero_when_made_and_when_cleared) {
    static const uint64_t sizes[] = {1, 13, 4096, 4099, SLICE + 6};
    for (size_t i = 0; i < BHT_COUNT(sizes); i++) {
        uint32_t *words = rig_buffer(1, SLICE * 2);
        uint8_t *zeros = bht_own(calloc(1, sizes[i]));
        pattern(words, SLICE * 2, 1);
        int fd = bhi_backend_make(rig.backend, 2, sizes[i]);
        BHT_GE(fd, 0);
        expect_bytes(2, zeros, sizes[i]);
        rig_begin();
        rig_copy(1, 0, 2, 0, sizes[i]);
        rig_run_ok();
        bhi_backend_import(rig.backend, 3, fd, sizes[i]); /* as another worker does */
        expect_bytes(3, words, sizes[i]);
        BHT_TRUE(bhi_backend_clear(rig.backend, 2));
        expect_bytes(3, zeros, sizes[i]);
    }
}

/* More chunks than there are parts, and an odd end. */
TEST(a_read_only_source_goes_in_chunks) {
    const uint64_t bytes = (uint64_t)(BHI_COPY_PARTS + 4) * BHI_COPY_CHUNK + 12;
    uint32_t *source = rig_buffer(1, bytes);
    uint32_t *target = rig_buffer(2, bytes);
    rig_attach_again(1, BHI_ATTACH_READ);
    for (uint32_t round = 1; round <= 2; round++) {
        pattern(source, bytes, round); /* the host may always change it */
        run_one(1, 0, 2, bytes);
        BHT_MEM_EQ(target, source, bytes);
        BHT_EQ(copy_submits(), round * (BHI_COPY_PARTS + 5));
    }
    /* Its copy in the host is made anew: so nothing that reads it may run. */
    struct bhi_lane_record *record = make_copy(1, 0, 2, 0, SLICE);
    bhi_backend_copy_begin(rig.backend, record);
    BHT_TRUE(!copy_fits(1, SLICE - 4, 2, 0, SLICE));
    BHT_TRUE(copy_fits(1, SLICE, 2, 0, SLICE));
    end_ok(record);
}

TEST(a_constant_source_is_copied_once) {
    const uint64_t bytes = (uint64_t)3 * BHI_COPY_CHUNK;
    uint32_t *source = rig_buffer(1, bytes);
    uint32_t *target = rig_buffer(2, bytes);
    uint32_t *old = bht_own(malloc(bytes));
    pattern(source, bytes, 1);
    memcpy(old, source, bytes);
    rig_attach_again(1, BHI_ATTACH_CONSTANT);
    run_one(1, BHI_COPY_CHUNK, 2, BHI_COPY_CHUNK); /* the middle */
    BHT_MEM_EQ(target, old + BHI_COPY_CHUNK / 4, BHI_COPY_CHUNK);
    run_one(1, 0, 2, bytes); /* around it */
    BHT_MEM_EQ(target, old, bytes);
    pattern(source, bytes, 2); /* nobody does that; what was copied is not read again */
    run_one(1, 0, 2, bytes);
    BHT_MEM_EQ(target, old, bytes);
    struct bhi_lane_record *record = make_copy(1, 0, 2, 0, SLICE);
    bhi_backend_copy_begin(rig.backend, record);
    BHT_TRUE(copy_fits(1, 0, 2, SLICE, SLICE)); /* both only read it */
    end_ok(record);
    static const uint64_t parts[][2][2] = {
        {{2 * BHI_COPY_CHUNK, BHI_COPY_CHUNK}, {0, BHI_COPY_CHUNK}}, /* with a gap between them */
        {{0, BHI_COPY_CHUNK}, {2 * BHI_COPY_CHUNK, BHI_COPY_CHUNK}},
        {{0, BHI_COPY_CHUNK / 2}, {0, BHI_COPY_CHUNK / 4}}, /* half a chunk */
    };
    for (size_t i = 0; i < BHT_COUNT(parts); i++) { /* no more than that is taken for copied */
        source = rig_buffer(3 + i, bytes);
        pattern(source, bytes, 3);
        rig_attach_again(3 + i, BHI_ATTACH_CONSTANT);
        for (size_t k = 0; k < 2; k++) {
            run_one(3 + i, parts[i][k][0], 2, parts[i][k][1]);
        }
        memset(target, 0, bytes);
        run_one(3 + i, 0, 2, bytes);
        BHT_MEM_EQ(target, source, bytes);
    }
}

/* -- what the host sees ----------------------------------------------------------------------- */

/* What a command buffer has written, and no barrier has shown to the host yet; and what a barrier
 * shows to its copies of all that was written before it. */
static struct {
    struct bhi_vk_api real;
    VkAccessFlags hidden, shown;
    unsigned ended, writers;
} watched;

static VKAPI_ATTR VkResult VKAPI_CALL watch_end(VkCommandBuffer commands) {
    BHT_EQ(watched.hidden, 0);
    watched.ended++;
    watched.shown = 0;
    return watched.real.EndCommandBuffer(commands);
}

#define WRITES(name, access, parameters, ...)                                                      \
    static VKAPI_ATTR void VKAPI_CALL watch_##name parameters {                                    \
        watched.hidden |= (access);                                                                \
        watched.writers++;                                                                         \
        watched.real.name(__VA_ARGS__);                                                            \
    }
WRITES(CmdCopyBuffer, VK_ACCESS_TRANSFER_WRITE_BIT,
       (VkCommandBuffer a, VkBuffer b, VkBuffer c, uint32_t d, const VkBufferCopy *e), a, b, c, d,
       e)
WRITES(CmdFillBuffer, VK_ACCESS_TRANSFER_WRITE_BIT,
       (VkCommandBuffer a, VkBuffer b, VkDeviceSize c, VkDeviceSize d, uint32_t e), a, b, c, d, e)
WRITES(CmdUpdateBuffer, VK_ACCESS_TRANSFER_WRITE_BIT,
       (VkCommandBuffer a, VkBuffer b, VkDeviceSize c, VkDeviceSize d, const void *e), a, b, c, d,
       e)
WRITES(CmdDispatch, VK_ACCESS_SHADER_WRITE_BIT,
       (VkCommandBuffer a, uint32_t b, uint32_t c, uint32_t d), a, b, c, d)

/* To the host, or to all that comes on the device: what only that sees. */
static VKAPI_ATTR void VKAPI_CALL watch_barrier(VkCommandBuffer commands, VkPipelineStageFlags from,
                                                VkPipelineStageFlags to, VkDependencyFlags flags,
                                                uint32_t count, const VkMemoryBarrier *memory,
                                                uint32_t b, const VkBufferMemoryBarrier *buffers,
                                                uint32_t i, const VkImageMemoryBarrier *images) {
    const bool shows =
        (to & VK_PIPELINE_STAGE_HOST_BIT && memory->dstAccessMask & VK_ACCESS_HOST_READ_BIT) ||
        (to & VK_PIPELINE_STAGE_ALL_COMMANDS_BIT &&
         memory->dstAccessMask & VK_ACCESS_MEMORY_READ_BIT);
    if (from & VK_PIPELINE_STAGE_ALL_COMMANDS_BIT && to & VK_PIPELINE_STAGE_TRANSFER_BIT &&
        memory->srcAccessMask & VK_ACCESS_MEMORY_WRITE_BIT) {
        watched.shown = memory->dstAccessMask;
    }
    if (shows && from & VK_PIPELINE_STAGE_TRANSFER_BIT) {
        watched.hidden &= ~(memory->srcAccessMask & VK_ACCESS_TRANSFER_WRITE_BIT);
    }
    if (shows && from & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT) {
        watched.hidden &= ~(memory->srcAccessMask & VK_ACCESS_SHADER_WRITE_BIT);
    }
    watched.real.CmdPipelineBarrier(commands, from, to, flags, count, memory, b, buffers, i,
                                    images);
}

/* Of a copy on its own queue: it reads what other queues have written. */
static VKAPI_ATTR void VKAPI_CALL watch_part(VkCommandBuffer commands, VkBuffer from, VkBuffer to,
                                             uint32_t count, const VkBufferCopy *regions) {
    BHT_TRUE(watched.shown & VK_ACCESS_TRANSFER_READ_BIT);
    watch_CmdCopyBuffer(commands, from, to, count, regions);
}

/* E11: whoever sees a result finds the content. (Lavapipe needs no barrier for it.) */
TEST(whatever_is_written_is_shown) {
    uint32_t *words[5];
    make_buffers(words);
    rig_kernel(1, CODE(add));
    rig_begin();
    dispatch_add(1, 0, 2, 0, SLICE, 5);
    rig_run_ok();
    struct bhi_vk_api *api = &bhi_vk(rig.backend)->device.api;
    watched.real = *api;
    api->EndCommandBuffer = watch_end;
    api->CmdCopyBuffer = watch_CmdCopyBuffer;
    api->CmdFillBuffer = watch_CmdFillBuffer;
    api->CmdUpdateBuffer = watch_CmdUpdateBuffer;
    api->CmdDispatch = watch_CmdDispatch;
    api->CmdPipelineBarrier = watch_barrier;
    for (uint32_t i = 0; i < 6; i++) { /* three alone, three together */
        rig_begin();
        if (i % 3 == 0) {
            dispatch_add(1, 0, 2, 0, SLICE, 7 + i);
        } else if (i % 3 == 1) {
            rig_copy(2, 0, 3, i, SLICE - 8);
        } else {
            rig_fill(3, 0, 4, i);
        }
        if (i < 3 || i == 5) {
            rig_run_ok();
        }
    }
    BHT_EQ(watched.ended, 3 + 1);
    BHT_EQ(watched.writers, 3 + 3 + 4); /* with the markers around the three that are merged */
    api->CmdCopyBuffer = watch_part;
    run_one(1, 0, 4, BYTES);
    BHT_EQ(watched.ended, 5);
    BHT_EQ(watched.writers, 11);
    int fd = bhi_backend_make(rig.backend, 5, SLICE);
    BHT_GE(fd, 0);
    close(fd);
    BHT_EQ(watched.ended, 6);
    BHT_EQ(watched.writers, 12);
}

/* -- failures --------------------------------------------------------------------------------- */

static PFN_vkQueueSubmit real_submit;
static VkQueue failing_queue;
static unsigned good_submits; /* before one fails */
static VkResult submit_result;

static VKAPI_ATTR VkResult VKAPI_CALL failing_submit(VkQueue queue, uint32_t count,
                                                     const VkSubmitInfo *infos, VkFence fence) {
    if (queue == failing_queue && good_submits-- == 0) {
        failing_queue = VK_NULL_HANDLE;
        return submit_result;
    }
    return real_submit(queue, count, infos, fence);
}

static void fail_submit(unsigned good, VkResult result) {
    real_submit = bhi_vk(rig.backend)->device.api.QueueSubmit;
    bhi_vk(rig.backend)->device.api.QueueSubmit = failing_submit;
    failing_queue = bhi_vk(rig.backend)->copies.queue;
    good_submits = good;
    submit_result = result;
}

TEST(one_that_cannot_be_submitted_fails_alone) {
    for (unsigned good = 0; good <= 1; good++) {
        struct bhi_result result;
        struct bhi_error error;
        open_rig();
        uint32_t *source = rig_buffer(1, (uint64_t)2 * BHI_COPY_CHUNK);
        uint32_t *target = rig_buffer(2, (uint64_t)2 * BHI_COPY_CHUNK);
        pattern(source, (uint64_t)2 * BHI_COPY_CHUNK, 1);
        rig_attach_again(1, BHI_ATTACH_READ);
        fail_submit(good, VK_ERROR_OUT_OF_DEVICE_MEMORY);
        struct bhi_lane_record *bad = make_copy(1, 0, 2, 0, (uint64_t)2 * BHI_COPY_CHUNK);
        struct bhi_lane_record *next = make_copy(2, 0, 2, BHI_COPY_CHUNK, SLICE);
        bhi_backend_copy_begin(rig.backend, bad);
        bhi_backend_copy_begin(rig.backend, next);
        BHT_TRUE(bhi_backend_copy_end(rig.backend, &result, &error));
        BHT_EQ(result.seq, bad->seq);
        BHT_EQ(result.status, BH_OUT_OF_DEVICE_MEMORY);
        BHT_EQ(result.vk_result, VK_ERROR_OUT_OF_DEVICE_MEMORY);
        BHT_EQ(result.command_index, 0);
        BHT_EQ(result.executed, good ? BH_EXECUTED_UNKNOWN : BH_EXECUTED_NO);
        BHT_STR_EQ(bhi_error_line(&error), "submitting a copy: VK_ERROR_OUT_OF_DEVICE_MEMORY");
        end_ok(next);
        run_one(1, 0, 2, SLICE);
        BHT_MEM_EQ(target, source, SLICE);
    }
}

/* The second command of a record: the first fills a part. */
TEST(the_command_is_named) {
    struct bhi_result result;
    struct bhi_error error;
    rig_buffer(1, BHI_COPY_CHUNK);
    rig_buffer(2, (uint64_t)2 * BHI_COPY_CHUNK);
    rig_attach_again(1, BHI_ATTACH_READ);
    rig_begin();
    rig_copy(1, 0, 2, 0, BHI_COPY_CHUNK);
    rig_copy(1, 0, 2, BHI_COPY_CHUNK, BHI_COPY_CHUNK);
    fail_submit(1, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    bhi_backend_copy_begin(rig.backend, rig.records[0]);
    BHT_TRUE(bhi_backend_copy_end(rig.backend, &result, &error));
    BHT_EQ(result.status, BH_OUT_OF_DEVICE_MEMORY);
    BHT_EQ(result.command_index, 1);
    rig.record_count = 0;
}

TEST(a_lost_device_loses_all_of_them) {
    struct bhi_result result;
    struct bhi_error error;
    struct bhi_lane_record *records[2];
    rig_buffer(1, BYTES);
    rig_buffer(2, BYTES);
    fail_submit(0, VK_ERROR_DEVICE_LOST);
    for (size_t i = 0; i < BHT_COUNT(records); i++) {
        records[i] = make_copy(1, 0, 2, 0, SLICE);
        bhi_backend_copy_begin(rig.backend, records[i]);
    }
    for (size_t i = 0; i < BHT_COUNT(records); i++) {
        BHT_TRUE(!bhi_backend_copy_end(rig.backend, &result, &error));
        BHT_EQ(result.seq, records[i]->seq);
        BHT_EQ(result.status, BH_DEVICE_LOST);
    }
    BHT_TRUE(!copy_fits(1, 0, 2, 0, SLICE));
}

/* -- a device that is lost when all parts are on it ------------------------------------------------ */

enum { LOST_JOBS = 2 };

/* Who finds it out. */
enum finder { STATUS, RESET, WAIT, KERNEL };

static struct {
    enum finder finder;
    VkResult result;
    uint64_t from, first_lost; /* parts */
    PFN_vkGetFenceStatus status;
    PFN_vkResetFences reset;
    PFN_vkWaitForFences wait;
} loss;

static bool all_are_on_it(void) {
    return bhi_vk(rig.backend)->copies.submitted == loss.from + LOST_JOBS;
}

/* Of a part that is lost; no part ends before all are submitted. */
static bool is_lost(VkFence fence) {
    const struct bhi_vk_copies *c = &bhi_vk(rig.backend)->copies;
    return fence == c->parts[c->ended % BHI_COPY_PARTS].fence && c->ended >= loss.first_lost;
}

static VKAPI_ATTR VkResult VKAPI_CALL losing_status(VkDevice device, VkFence fence) {
    if (!all_are_on_it()) {
        return VK_NOT_READY;
    }
    if (loss.finder == KERNEL && fence == bhi_vk(rig.backend)->fence) {
        return loss.result;
    }
    if (is_lost(fence) && loss.finder != RESET) {
        return loss.finder == STATUS ? loss.result : VK_NOT_READY;
    }
    return loss.status(device, fence);
}

static VKAPI_ATTR VkResult VKAPI_CALL losing_reset(VkDevice device, uint32_t count,
                                                   const VkFence *fences) {
    return is_lost(fences[0]) ? loss.result : loss.reset(device, count, fences);
}

static VKAPI_ATTR VkResult VKAPI_CALL losing_wait(VkDevice device, uint32_t count,
                                                  const VkFence *fences, VkBool32 all,
                                                  uint64_t timeout) {
    if (!all_are_on_it()) {
        return VK_TIMEOUT;
    }
    return is_lost(fences[0]) && loss.finder == WAIT
               ? loss.result
               : loss.wait(device, count, fences, all, timeout);
}

static void begin_lost(void) {
    for (int i = 0; i < LOST_JOBS; i++) {
        bhi_backend_copy_begin(rig.backend, make_copy(1, 0, 2, 0, SLICE));
    }
}

/* The first |good| copies have ended by then. All the others are lost, whatever the driver calls
 * it: nothing is left to be submitted, and nobody knows what of them was done. */
static void lose_after(enum finder finder, VkResult result, uint64_t good) {
    struct bhi_vk_api *api = &bhi_vk(rig.backend)->device.api;
    const uint64_t from = bhi_vk(rig.backend)->copies.submitted;
    rig_buffer(1, BYTES);
    rig_buffer(2, BYTES);
    loss.finder = finder, loss.result = result;
    loss.from = from, loss.first_lost = from + good;
    loss.status = api->GetFenceStatus, api->GetFenceStatus = losing_status;
    loss.reset = api->ResetFences, api->ResetFences = losing_reset;
    loss.wait = api->WaitForFences, api->WaitForFences = losing_wait;
    if (finder == KERNEL) {
        scene.act = begin_lost;
        rig_begin();
        rig_fill(3, 0, 4, 1);
        BHT_TRUE(!rig_run());
        BHT_EQ(rig.results[0].status, BH_DEVICE_LOST);
    } else {
        begin_lost();
    }
    bool alive = true;
    for (uint64_t i = 0; i < LOST_JOBS; i++) {
        struct bhi_result got;
        struct bhi_error error;
        alive = bhi_backend_copy_end(rig.backend, &got, &error);
        if (i < good
                ? got.status != BH_OK
                : alive || got.status != BH_DEVICE_LOST || got.executed != BH_EXECUTED_UNKNOWN) {
            BHT_FAIL("copy %d of %d good ones, found out by %d, ends %s, executed %u, device %s",
                     (int)i + 1, (int)good, (int)finder, bh_status_name((bh_status)got.status),
                     got.executed, alive ? "alive" : "lost");
        }
    }
    BHT_TRUE(!alive && !copy_fits(1, 0, 2, 0, SLICE));
    /* It is not, in truth: nothing is taken down while it works. */
    BHT_EQ(api->DeviceWaitIdle(bhi_vk(rig.backend)->device.device), VK_SUCCESS);
}

TEST(d5_a_device_lost_after_the_last_part) {
    static const struct {
        enum finder finder;
        VkResult result;
    } rows[] = {{STATUS, VK_ERROR_DEVICE_LOST},
                {RESET, VK_ERROR_OUT_OF_DEVICE_MEMORY},
                {WAIT, VK_ERROR_DEVICE_LOST},
                {WAIT, VK_ERROR_OUT_OF_HOST_MEMORY},
                {KERNEL, VK_ERROR_DEVICE_LOST}};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        /* What a kernel's loss finds ended is the driver's affair. */
        for (uint64_t good = 0; good < (rows[i].finder == KERNEL ? 1 : LOST_JOBS); good++) {
            open_rig();
            rig_buffer(3, 4096);
            lose_after(rows[i].finder, rows[i].result, good);
        }
    }
}

/* Memory of timed runs: what they read and where, and who may share it. Nothing runs: buffers are memory
 * of this process (--wrap). */
#include "judge/check/material.h"

#include "../batch/faulty_memory.h"
#include "harness.h"
#include "judge/check/content.h"
#include "judge/check/maker.h"
#include "judge/check/submit.h"

enum {
    X,
    W,
    V,
    Y,
    ARRAYS,
    RUNS = 3,
    PAGE = BHI_LAP_ALIGNMENT,
    STRIDE = 2 * PAGE,
    MOST_BUFFERS = 12
};

static struct fake {
    uint64_t size;
    int references;
    unsigned writes;
    uint8_t bytes[RUNS * STRIDE];
} fakes[MOST_BUFFERS];
static size_t made;

/* What the judge's memory is, and what was asked of its source. */
static bool mapped, makes_words, is_full;
static bh_command submitted;
static unsigned submissions, makings;
static struct bhi_maker_array asked[RUNS * ARRAYS];
static size_t asked_count;

static struct fake *fake_of(const bh_buffer *of) {
    return (struct fake *)(uintptr_t)of;
}

BHT_WRAP(bool, bhi_content_make, bh_context *context, bh_stream *near, uint64_t size,
         bh_buffer **out_buffer, struct bhi_judge_outcome *to) {
    BHT_TRUE(near == (bh_stream *)&submissions);
    BHT_LT(made, (size_t)MOST_BUFFERS);
    BHT_LE(size, sizeof fakes[0].bytes);
    if (is_full) {
        return bhi_judge_outcome_memory(to);
    }
    fakes[made] = (struct fake){.size = size, .references = 1};
    memset(fakes[made].bytes, 0x5a, sizeof fakes[0].bytes);
    *out_buffer = (bh_buffer *)(void *)&fakes[made++];
    return true;
}

BHT_WRAP(bool, bhi_content_is_mapped, const bh_buffer *of) {
    BHT_EQ(fake_of(of)->references, 1);
    return mapped;
}

BHT_WRAP(bool, bhi_content_begin, bh_buffer *of, uint64_t size, void **out_room,
         struct bhi_judge_outcome *to) {
    BHT_TRUE(mapped);
    BHT_LE(size, fake_of(of)->size);
    fake_of(of)->writes++;
    *out_room = fake_of(of)->bytes;
    return !is_full || bhi_judge_outcome_memory(to);
}

BHT_WRAP(bool, bhi_content_write, bh_buffer *of, uint64_t offset, const void *bytes, uint64_t size,
         struct bhi_judge_outcome *to) {
    BHT_TRUE(!mapped);
    BHT_LE(offset + size, fake_of(of)->size);
    memcpy(fake_of(of)->bytes + offset, bytes, size);
    fake_of(of)->writes++;
    return !is_full || bhi_judge_outcome_memory(to);
}

BHT_WRAP(void, bh_buffer_release, bh_buffer *of) {
    if (of) {
        BHT_EQ(fake_of(of)->references--, 1);
    }
}

BHT_WRAP(uint64_t, bh_buffer_size, const bh_buffer *of) {
    return fake_of(of)->size;
}

BHT_WRAP(bool, bhi_court_submit, bh_stream *stream, const bh_command *commands, uint32_t count,
         struct bhi_clocked *out, struct bhi_judge_outcome *to) {
    BHT_TRUE(stream == (bh_stream *)&submissions && count == 1 && !out);
    submitted = *commands;
    submissions++;
    return true;
}

BHT_WRAP(bool, bhi_maker_can, const struct bhi_maker *maker, const struct bhi_filler *filler,
         bh_dtype dtype) {
    return dtype == BH_DTYPE_F32 || (makes_words && dtype == BH_DTYPE_U32);
}

BHT_WRAP(bool, bhi_maker_make, const struct bhi_maker *maker, const struct bhi_maker_array *arrays,
         size_t count, bh_buffer *into, struct bhi_judge_outcome *to) {
    BHT_LE(count, BHT_COUNT(asked));
    memcpy(asked, arrays, count * sizeof *arrays);
    asked_count = count;
    makings++;
    fake_of(into)->writes++;
    for (size_t i = 0; i < count; i++) {
        bhi_filler_fill(&arrays[i].filler, arrays[i].place, arrays[i].dtype, arrays[i].count,
                        fake_of(into)->bytes + arrays[i].offset);
    }
    return true;
}

BHT_WRAP(bool, bhi_maker_open, const struct bhi_court *court, bh_stream *stream,
         const struct bhi_maker_array *needs, size_t count, struct bhi_maker *out,
         struct bhi_judge_outcome *to) {
    BHT_TRUE(stream == (bh_stream *)&submissions);
    BHT_LE(count, BHT_COUNT(asked));
    memcpy(asked, needs, count * sizeof *needs);
    asked_count = count;
    return true;
}

static struct bhi_maker maker;
static struct bhi_task task;
static struct bhi_court court = {.task = &task, .source = (bh_stream *)&submissions};
static struct bhi_judge_outcome outcome;
static const struct bhi_trial *trial;

static void open_court(void) {
    static const char text[] =
        "{\"sizes\": [{\"n\": 5}], \"groups\": [\"n\"],\n"
        "\"in\": {\"X\": {\"dtype\": \"f32\", \"shape\": [\"n\"], \"fill\": \"uniform\"},\n"
        "         \"W\": {\"dtype\": \"u32\", \"shape\": [4], \"fill\": \"bits\"}},\n"
        "\"inout\": {\"V\": {\"dtype\": \"u8\", \"shape\": [3], \"fill\": \"bits\"}},\n"
        "\"out\": {\"Y\": {\"dtype\": \"f32\", \"shape\": [\"n\"]}},\n"
        "\"reference\": {\"kernel\": \"r.comp\"}}";
    struct bhi_complaint complaint;
    BHT_TRUE(bhi_task_parse("t.json", "", text, &task, &complaint));
    BHT_TRUE(bhi_trials_make(&task, NULL, 0, &court.trials, &complaint));
    BHT_EQ(task.array_count, (size_t)ARRAYS);
    trial = &court.trials.list[0];
}

static void close_court(void) {
    bhi_trials_free(&task, &court.trials);
    bhi_task_free(&task);
    for (size_t i = 0; i < made; i++) {
        BHT_EQ(fakes[i].references, 0);
    }
}

BHT_AT_START(bht_around(open_court, close_court))

TEST(a_lap_takes_whole_pages) {
    BHT_EQ(bhi_lap_bytes(0), 0u);
    BHT_EQ(bhi_lap_bytes(1), (uint64_t)PAGE);
    BHT_EQ(bhi_lap_bytes(PAGE), (uint64_t)PAGE);
    BHT_EQ(bhi_lap_bytes(PAGE + 1), 2u * PAGE);
}

/* -- outputs -------------------------------------------------------------------------------------- */

TEST(a_tray_is_made_anew_for_other_slots) {
    struct bhi_tray tray = {.buffer = NULL};
    BHT_TRUE(bhi_tray_fit(&tray, &court, 4, PAGE, &outcome));
    BHT_TRUE(bhi_tray_fit(&tray, &court, 4, PAGE, &outcome));
    BHT_EQ(made, 1u);
    BHT_EQ(fakes[0].size, 4u * PAGE);
    BHT_TRUE(bhi_tray_fit(&tray, &court, 2, 2 * PAGE, &outcome)); /* as large, but cut otherwise */
    BHT_EQ(made, 2u);
    BHT_EQ(fakes[0].references, 0);
    BHT_EQ(tray.stride, 2u * PAGE);
    BHT_TRUE(bhi_tray_fit(&tray, &court, 1, 2 * PAGE, &outcome));
    BHT_EQ(made, 3u);
    is_full = true;
    BHT_TRUE(!bhi_tray_fit(&tray, &court, 2, 2 * PAGE, &outcome));
    BHT_TRUE(!tray.buffer);
    bhi_tray_close(&tray);
}

TEST(a_tray_holds_a_word_in_the_slots_of_a_round) {
    struct bhi_tray tray = {.buffer = NULL};
    mapped = true;
    BHT_TRUE(bhi_tray_fit(&tray, &court, 4, PAGE, &outcome));
    BHT_TRUE(bhi_tray_fill(&tray, &court, 1, 2, 0x01020304, &outcome));
    for (size_t i = 0; i < 4 * PAGE; i += 4) {
        uint32_t word;
        memcpy(&word, fakes[0].bytes + i, 4);
        BHT_EQ(word, i >= PAGE && i < 3 * PAGE ? 0x01020304u : 0x5a5a5a5au);
    }
    BHT_EQ(submissions, 0u);
    is_full = true;
    BHT_TRUE(!bhi_tray_fill(&tray, &court, 1, 2, 0, &outcome));
    bhi_tray_close(&tray);
}

TEST(a_device_fills_its_tray_itself) {
    struct bhi_tray tray = {.buffer = NULL};
    BHT_TRUE(bhi_tray_fit(&tray, &court, 4, PAGE, &outcome));
    BHT_TRUE(bhi_tray_fill(&tray, &court, 1, 2, 0x01020304, &outcome));
    BHT_EQ(submissions, 1u);
    BHT_EQ(submitted.type, BH_COMMAND_FILL);
    BHT_TRUE(submitted.fill.dst == tray.buffer);
    BHT_EQ(submitted.fill.offset, (uint64_t)PAGE);
    BHT_EQ(submitted.fill.size, 2u * PAGE);
    BHT_EQ(submitted.fill.value, 0x01020304u);
    bhi_tray_close(&tray);
}

/* -- inputs --------------------------------------------------------------------------------------- */

static const uint64_t seeds[RUNS] = {11, 12, 13}, others[RUNS] = {21, 22, 23};

/* Finds each input of a run where |at| says, as its seed makes it. */
static void expect_inputs(const struct bhi_lap_place *at, uint64_t seed) {
    const struct fake *fake = fake_of(at->inputs);
    struct bhi_trial own;
    if (!bhi_trial_anew(&task, trial, seed, NULL, &own)) {
        return; /* this is the allocation that fails */
    }
    for (uint32_t i = X; i <= W; i++) {
        uint8_t bytes[64];
        const uint64_t size = own.arrays[i].form.bytes;
        const uint64_t begin = bhi_lap_input(at, &task, trial, i);
        BHT_EQ(begin, at->inputs_begin + i * PAGE);
        bhi_trial_write(&own.arrays[i], own.arrays[i].count, bytes);
        BHT_MEM_EQ(fake->bytes + begin, bytes, size);
    }
    bhi_trial_free(&task, &own);
}

/* Each reader gets each run; |shared|: all in one buffer. */
static void expect_given(struct bhi_material *material, const uint64_t *of, bool shared) {
    const bh_buffer *first = NULL;
    for (uint32_t reader = 0; reader < BHI_MATERIAL_READERS; reader++) {
        for (size_t i = 0; i < RUNS; i++) {
            struct bhi_lap_place at = {.word = 9};
            BHT_TRUE(bhi_material_give(material, reader, i, &at, &outcome));
            BHT_EQ(at.inputs_begin, i * STRIDE);
            BHT_EQ(at.word, 9u);
            expect_inputs(&at, of[i]);
            first = reader ? first : at.inputs;
            BHT_TRUE((at.inputs == first) == (shared || reader == 0));
            BHT_EQ(fake_of(at.inputs)->writes, 1u); /* however many runs there are */
        }
    }
}

static void expect_trials(const struct bhi_material *material, bool kept) {
    BHT_EQ(material->count, (size_t)RUNS);
    for (size_t i = 0; i < RUNS; i++) {
        BHT_TRUE(material->trials[i].timed);
        BHT_TRUE(!!material->trials[i].arrays[W].before == kept);
    }
}

static void expect_nothing(const struct bhi_material *material) {
    BHT_TRUE(!material->trials && !material->count && !material->is_made);
    for (size_t i = 0; i < BHI_MATERIAL_READERS; i++) {
        BHT_TRUE(!material->buffers[i] && !material->written[i]);
    }
}

TEST(readers_share_host_memory) {
    struct bhi_material material;
    mapped = true;
    bhi_material_open(&court, trial, &material);
    BHT_TRUE(bhi_material_make(&material, seeds, RUNS, &outcome));
    expect_trials(&material, true);
    expect_given(&material, seeds, true);
    BHT_TRUE(bhi_material_make(&material, others, RUNS, &outcome));
    BHT_EQ(fakes[0].references, 0);
    expect_given(&material, others, true);
    BHT_EQ(made, 2u);
    bhi_material_drop(&material);
    expect_nothing(&material);
    bhi_material_close(&material);
}

TEST(each_reader_has_its_own_device_memory) {
    struct bhi_material material;
    bhi_material_open(&court, trial, &material);
    BHT_TRUE(bhi_material_make(&material, seeds, RUNS, &outcome));
    expect_trials(&material, true);
    expect_given(&material, seeds, false);
    BHT_EQ(made, (size_t)BHI_MATERIAL_READERS);
    BHT_TRUE(bhi_material_make(&material, others, RUNS, &outcome)); /* written again */
    expect_given(&material, others, false);
    bhi_material_drop(&material);
    expect_nothing(&material);
    bhi_material_close(&material);
}

TEST(a_maker_makes_all_inputs_or_none) {
    struct bhi_material material;
    court.maker = &maker;
    bhi_material_open(&court, trial, &material);
    BHT_TRUE(bhi_material_make(&material, seeds, RUNS, &outcome)); /* it has no words */
    BHT_TRUE(!material.is_made);
    expect_given(&material, seeds, false);
    BHT_EQ(makings, 0u);
    bhi_material_close(&material);

    made = 0;
    makes_words = true; /* but no bytes: V is a run's own */
    bhi_material_open(&court, trial, &material);
    BHT_TRUE(bhi_material_make(&material, seeds, RUNS, &outcome));
    BHT_TRUE(material.is_made && !material.content);
    expect_trials(&material, false);
    BHT_EQ(made, 0u); /* until somebody reads */
    expect_given(&material, seeds, false);
    BHT_EQ(makings, (unsigned)BHI_MATERIAL_READERS);
    BHT_EQ(asked_count, 2u * RUNS);
    bhi_material_drop(&material);
    expect_nothing(&material);
    bhi_material_close(&material);
}

TEST(a_maker_is_opened_for_what_generators_make) {
    struct bhi_maker unused;
    BHT_TRUE(bhi_maker_open_for(&court, trial, &unused, &outcome));
    BHT_EQ(asked_count, 3u); /* X, W and V */
    BHT_EQ(asked[0].dtype, BH_DTYPE_F32);
    BHT_EQ(asked[1].dtype, BH_DTYPE_U32);
    BHT_EQ(asked[2].dtype, BH_DTYPE_U8);
    BHT_EQ(asked[2].count, 3u);
}

TEST(inputs_without_memory_leave_nothing) {
    struct bhi_material material;
    struct bhi_lap_place at;
    bhi_material_open(&court, trial, &material);
    is_full = true;
    BHT_TRUE(!bhi_material_make(&material, seeds, RUNS, &outcome));
    expect_nothing(&material);
    is_full = false;
    BHT_TRUE(bhi_material_make(&material, seeds, RUNS, &outcome));
    is_full = true;
    BHT_TRUE(!bhi_material_give(&material, 1, 0, &at, &outcome)); /* no buffer */
    BHT_TRUE(!bhi_material_give(&material, 0, 0, &at, &outcome)); /* not written */
    is_full = false;
    expect_inputs(&(struct bhi_lap_place){.inputs = material.buffers[0]}, seeds[0]);
    BHT_TRUE(bhi_material_give(&material, 0, 0, &at, &outcome)); /* but now it is */
    BHT_EQ(fake_of(at.inputs)->writes, 2u);
    bhi_material_close(&material);
}

/* |at|: the allocation that fails. */
static void use_all(long at) {
    struct bhi_material material;
    struct bhi_maker unused;
    struct bhi_lap_place place;
    bool good = true;
    for (int i = 0; i < 4; i++) { /* of a device, made there; of the host */
        made = 0;
        mapped = i == 3;
        court.maker = i == 2 ? &maker : NULL;
        makes_words = true;
        bhi_material_open(&court, trial, &material);
        good &= bhi_material_make(&material, seeds, RUNS, &outcome) &&
                bhi_material_make(&material, others, RUNS - (i == 1), &outcome) &&
                bhi_material_give(&material, 1, 1, &place, &outcome) &&
                bhi_maker_open_for(&court, trial, &unused, &outcome);
        if (bhi_material_make(&material, seeds, RUNS, &outcome) && /* whatever failed before */
            bhi_material_give(&material, 0, RUNS - 1, &place, &outcome)) {
            expect_inputs(&place, seeds[RUNS - 1]);
        }
        bhi_material_close(&material);
        for (size_t k = 0; k < made; k++) {
            BHT_EQ(fakes[k].references, 0);
        }
    }
    BHT_TRUE(good || faulty_memory_seen() >= at);
}

TEST(memory_that_runs_out_is_not_lost) {
    long at = 1;
    while (faulty_memory_run(at, use_all)) {
        at++;
    }
    BHT_GT(at, 20);
}

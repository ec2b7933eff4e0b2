/* What follows from the runs of a candidate, and of the reference: nothing runs, what each run
 * leaves is said here. The judge's own functions that run something are replaced (--wrap). */
#include "judge/check/candidate.h"

#include "harness.h"

#include <stdio.h>
#include <unistd.h>

#include "formats/npy.h"
#include "judge/check/reference.h"

/* Two sizes, the second one smaller, each with the seed of the task, which is run twice, and a hidden one. */
static const char text[] =
    "{\"sizes\": [{\"n\": 3}, {\"n\": 2}], \"seeds\": [5], \"groups\": [1],\n"
    "\"in\": {\"X\": {\"dtype\": \"f32\", \"shape\": [\"n\"], \"fill\": \"uniform\"}},\n"
    "\"out\": {\"Y\": {\"dtype\": \"f32\", \"shape\": [\"n\"], \"ulp\": 1},\n"
    "          \"Z\": {\"dtype\": \"u8\", \"shape\": [2]}},\n"
    "\"reference\": {\"kernel\": \"r.comp\", \"groups\": [2]},\n"
    "\"limits\": {\"compile_deadline\": \"3s\"}, \"fills\": []}";
enum { X, Y, Z, ARRAYS, TRIALS = 4, RUNS = 6 };
/* The trial of each run. */
static const size_t trial_of[RUNS] = {0, 0, 1, 2, 2, 3};

static struct bhi_task task;
static struct bhi_court court;
static struct bhi_candidate candidate;
static struct bhi_judge_outcome outcome;

/* What is odd. Runs are counted from 1; 0: none is. */
static struct scene {
    int differs;      /* this run leaves other bits, all of them right */
    int wrong;        /* this one leaves a wrong element */
    int strays;       /* this one writes outside */
    int64_t stray_at; /* there */
    int fails;        /* this one fails like this: */
    bh_status status;
    bh_blame blame;
    bh_reason reason;
    bool unmade, unfit; /* the kernel cannot be made, or has other bindings */
    int nan, infinite;  /* the two runs of this trial leave a NaN, or an infinity */
    uint32_t array;     /* of which all of this is */
    uint32_t reads;     /* a bit for each array: what is behind it makes an element wrong */
    bool varies;        /* and another one in each run */
    bool races;         /* and not the next time, with the same noise */
    bool of_cuda;       /* its groups have one order */
    int misses;         /* from this look on what is looked at once more is wrong; 0: none is */
} scene;
static int runs;
static const struct bhi_task_groups *groups; /* with which they have to be run */
static uint32_t noise;                       /* of the kernel that was made last */
static bh_kernel *const opposite = (bh_kernel *)(void *)&noise; /* which nothing runs */
enum { NUMBER = 40 }; /* of the first run is the next one */
static int looks;     /* at a run once more: without what is behind arrays */

/* -- in place of what runs ------------------------------------------------------------------------
 */

BHT_WRAP(bool, bhi_judged_kernel_make, const struct bhi_court *of,
         const struct bhi_kernel_file *file, bool trusted, uint32_t with,
         struct bhi_judged_kernel *out, struct bhi_judge_outcome *why) {
    BHT_TRUE(!trusted);
    noise = with;
    *out = (struct bhi_judged_kernel){.name = "kernel",
                                      .steps = {{.opposite = scene.of_cuda ? NULL : opposite}},
                                      .has_content = true,
                                      .content = {9}};
    BHT_EQ(file->deadline_ns, 3 * UINT64_C(1000000000));
    return !scene.unmade || bhi_judge_outcome_fail(why, BH_COMPILE_FAILED, "not compiled");
}

BHT_WRAP(bool, bhi_court_check_kernel, const struct bhi_court *of,
         const struct bhi_judged_kernel *kernel, const struct bhi_task_groups *with,
         struct bhi_judge_outcome *why) {
    BHT_TRUE(with == groups);
    return !scene.unfit || bhi_judge_outcome_fail(why, BH_BINDING_MISMATCH, "no such binding");
}

BHT_WRAP(bool, bhi_court_stream, const struct bhi_court *of, bh_stream **out_stream,
         struct bhi_judge_outcome *why) {
    *out_stream = NULL;
    return true;
}

BHT_WRAP(bool, bhi_court_reference_stream, const struct bhi_court *of, bh_stream **out_stream,
         struct bhi_judge_outcome *why) {
    *out_stream = NULL;
    return true;
}

BHT_WRAP(bool, bhi_stream_find_device, bh_stream *stream, char out[48],
         struct bhi_judge_outcome *why) {
    strcpy(out, "device");
    return true;
}

static uint64_t numbers[RUNS]; /* of the runs of a candidate, as they are asked for */
static bool opposites[RUNS];   /* have they the opposite order? */

BHT_WRAP(bool, bhi_court_launch, struct bhi_court *of, bh_stream *stream,
         const struct bhi_program *program, const struct bhi_trial *trial, struct bhi_launched *out,
         struct bhi_judge_outcome *why) {
    /* To look once more, without what is behind arrays, is no other run. */
    const bool again = program->exact || (program->number && program->number != BHI_NO_NOISE);
    const int run = again ? runs : ++runs;
    looks += program->exact != 0;
    /* A candidate's have the same noise; a reference's differ, as its runs do. */
    if (again || groups != &task.groups) {
        BHT_EQ(program->number, again && groups == &task.groups ? (uint64_t)(NUMBER + run) : 0);
    } else if (run <= RUNS) {
        numbers[run - 1] = program->number;
        opposites[run - 1] = program->opposite;
    }
    if (again && groups == &task.groups && run <= RUNS) {
        BHT_EQ(program->opposite, opposites[run - 1]);
    }
    BHT_STR_EQ(program->kernel->name, "kernel");
    BHT_TRUE(program->groups == groups);
    BHT_EQ(!program->rack, program->number == BHI_NO_NOISE); /* that run has no memory of another */
    if (run == scene.fails || scene.fails < 0) {
        bhi_judge_outcome_fail(why, scene.status, "it failed");
        why->blame = scene.blame;
        bhi_judge_outcome_why(why, scene.reason, BH_SUBJECT_KERNEL, "kernel");
        return false;
    }
    *out = (struct bhi_launched){.number = (uint64_t)(NUMBER + run),
                                 .strayed = run == scene.strays,
                                 .stray_place = task.arrays[scene.array].place,
                                 .stray_bytes = trial->arrays[scene.array].form.bytes,
                                 .stray_offset = scene.stray_at};
    for (uint32_t i = Y; i < ARRAYS; i++) {
        out->outputs[i] = calloc(1, trial->arrays[i].form.bytes);
        BHT_TRUE(out->outputs[i]);
    }
    /* The last element, so that each of them has to be looked at. */
    const bool differs = program->exact ? (run + 1) / 2 == (scene.differs + 1) / 2 && looks % 2
                                        : run == scene.differs;
    uint32_t bits = differs ? 1 : run == scene.wrong ? 2 : 0;
    if (scene.reads & ~program->exact) {
        bits = scene.varies ? 100 + (uint32_t)run : 3;
    }
    bits = again && !program->exact && scene.races ? 0 : bits;
    bits = program->exact && scene.misses && looks >= scene.misses ? 4 : bits;
    bits = scene.nan && (run + 1) / 2 == scene.nan ? 0x7fc00000 : bits;
    bits = scene.infinite && (run + 1) / 2 == scene.infinite ? 0x7f800000 : bits;
    if (scene.array == Y) {
        memcpy((uint32_t *)out->outputs[Y] + trial->arrays[Y].count - 1, &bits, sizeof bits);
    } else if (scene.array == Z) {
        ((uint8_t *)out->outputs[Z])[1] = (uint8_t)bits;
    }
    return true;
}

/* -- the court ----------------------------------------------------------------------------------
 */

static void open_court(void) {
    static const uint64_t hidden[] = {77};
    struct bhi_complaint complaint;
    BHT_TRUE(bhi_task_parse("t.json", "", text, &task, &complaint));
    court.task = &task;
    BHT_TRUE(bhi_trials_make(&task, hidden, 1, &court.trials, &complaint));
    BHT_EQ(court.trials.count, TRIALS);
    groups = &task.groups;
}

static void expect_zeros(void) {
    for (size_t i = 0; i < TRIALS; i++) {
        for (uint32_t k = Y; k < ARRAYS; k++) {
            struct bhi_trial_array *array = &court.trials.list[i].arrays[k];
            free(array->expected);
            array->expected = calloc(1, array->form.bytes);
        }
    }
}

static void close_court(void) {
    bhi_trials_free(&task, &court.trials);
    bhi_task_free(&task);
}

BHT_AT_START(bht_around(open_court, close_court))

/* Returns the verdict of a candidate in |what|. */
static bh_judge_verdict judge(struct scene what) {
    scene = what;
    runs = looks = 0;
    expect_zeros();
    candidate = (struct bhi_candidate){.judged = false};
    BHT_TRUE(bhi_candidate_judge(&court, &candidate, &outcome));
    BHT_TRUE(candidate.judged && candidate.judgement.hashed);
    BHT_EQ(candidate.judgement.content[0], 9);
    return candidate.judgement.verdict;
}

static void expect_located(int run) {
    const bh_judgement *got = &candidate.judgement;
    const size_t trial = trial_of[run - 1];
    BHT_TRUE(got->located && !got->deterministic);
    BHT_EQ(got->size_index, 1 - trial / 2); /* with the fewest bytes first */
    BHT_EQ(got->hidden, trial % 2);
    BHT_EQ(got->seed, trial % 2 ? 77 : 5);
    BHT_EQ(runs, run); /* and nothing ran after it */
}

/* -- trials -------------------------------------------------------------------------------------
 */

/* Writes an array of at most four words. */
static void put_npy(const char *path, bh_dtype dtype, uint32_t rank, const uint64_t *shape) {
    static const uint32_t words[4] = {1, 2, 3, 4};
    struct bhi_array array = {.dtype = dtype, .dimensions = rank};
    struct bhi_complaint complaint;
    uint8_t header[BHI_NPY_WRITE_CAPACITY];
    FILE *file = fopen(path, "we");
    memcpy(array.shape, shape, rank * sizeof *shape);
    BHT_TRUE(file && bhi_array_measure(&array, &complaint));
    BHT_EQ(fwrite(header, bhi_npy_write_header(&array, header, sizeof header), 1, file), 1);
    BHT_EQ(fwrite(words, array.bytes, 1, file), 1);
    BHT_EQ(fclose(file), 0);
}

/* An input, and what is expected, must have the type and the shape that the task says. */
TEST(files_are_of_the_type_and_shape_in_the_task) {
    static const struct {
        bh_dtype dtype;
        uint32_t rank;
        uint64_t shape[3];
        bool taken;
    } cases[] = {{BH_DTYPE_F32, 2, {2, 2}, true},  {BH_DTYPE_I32, 2, {2, 2}, false},
                 {BH_DTYPE_F32, 1, {4}, false},    {BH_DTYPE_F32, 2, {1, 4}, false},
                 {BH_DTYPE_F32, 2, {4, 1}, false}, {BH_DTYPE_F32, 3, {2, 2, 1}, false},
                 {BH_DTYPE_F64, 2, {2, 1}, false}, {BH_DTYPE_F32, 1, {2}, false},
                 {BH_DTYPE_F32, 0, {0}, false}};
    static const uint64_t shape[] = {2, 2};
    static const char of_files[] =
        "{\"sizes\": [{}], \"groups\": [1],\n"
        "\"in\": {\"X\": {\"dtype\": \"f32\", \"shape\": [2, 2], \"fill\": {\"file\": "
        "\"x.npy\"}}},\n"
        "\"out\": {\"Y\": {\"dtype\": \"f32\", \"shape\": [2, 2]}},\n"
        "\"reference\": {\"files\": {\"Y\": \"y.npy\"}}}";
    const char *const folder = bht_folder();
    char x[160], y[160];
    struct bhi_task from;
    struct bhi_trials trials;
    struct bhi_complaint complaint;
    BHT_TRUE(bhi_task_parse("t.json", folder, of_files, &from, &complaint));
    snprintf(x, sizeof x, "%s/x.npy", folder);
    snprintf(y, sizeof y, "%s/y.npy", folder);
    for (size_t i = 0; i < 2 * BHT_COUNT(cases); i++) {
        const char *const odd = i % 2 ? x : y;
        put_npy(i % 2 ? y : x, BH_DTYPE_F32, 2, shape);
        put_npy(odd, cases[i / 2].dtype, cases[i / 2].rank, cases[i / 2].shape);
        if (bhi_trials_make(&from, NULL, 0, &trials, &complaint) != cases[i / 2].taken) {
            BHT_FAIL("case %zu: %s", i, complaint.text);
        }
        if (cases[i / 2].taken) {
            BHT_EQ(((uint32_t *)trials.list[0].arrays[0].before)[3], 4);
            BHT_EQ(((uint32_t *)trials.list[0].arrays[1].expected)[3], 4);
            bhi_trials_free(&from, &trials);
        } else {
            BHT_STR_HAS(complaint.text, odd);
            BHT_STR_HAS(complaint.text, "its type or shape is not the one in the task");
        }
        BHT_EQ(unlink(odd), 0);
        BHT_TRUE(!bhi_trials_make(&from, NULL, 0, &trials, &complaint));
        BHT_STR_HAS(complaint.text, "No such file");
    }
    bhi_task_free(&from);
}

TEST(files_of_small_floats_have_their_bits) {
    static const struct {
        bh_dtype dtype;
        bool taken;
    } cases[] = {{BH_DTYPE_U16, true},
                 {BH_DTYPE_BF16, true}, /* as --dump writes it */
                 {BH_DTYPE_F16, false},
                 {BH_DTYPE_I16, false}};
    static const uint64_t shape[] = {2, 2};
    static const char of_files[] =
        "{\"sizes\": [{}], \"groups\": [1],\n"
        "\"in\": {\"X\": {\"dtype\": \"bf16\", \"shape\": [2, 2], \"fill\": {\"file\": "
        "\"x.npy\"}}},\n"
        "\"out\": {\"Y\": {\"dtype\": \"f32\", \"shape\": []}},\n"
        "\"reference\": {\"kernel\": \"r.comp\"}}";
    const char *const folder = bht_folder();
    char x[160];
    struct bhi_task from;
    struct bhi_trials trials;
    struct bhi_complaint complaint;
    BHT_TRUE(bhi_task_parse("t.json", folder, of_files, &from, &complaint));
    snprintf(x, sizeof x, "%s/x.npy", folder);
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        put_npy(x, cases[i].dtype, 2, shape);
        BHT_EQ(bhi_trials_make(&from, NULL, 0, &trials, &complaint), cases[i].taken);
        if (cases[i].taken) {
            BHT_EQ(((uint16_t *)trials.list[0].arrays[0].before)[2], 2); /* words of 32 bits */
            bhi_trials_free(&from, &trials);
        }
    }
    bhi_task_free(&from);
}

/* A copy, until so many others have been asked for. */
static const void *input(const struct bhi_trial *trial, uint32_t array) {
    static uint32_t copies[4][400], next;
    uint32_t *const copy = copies[next++ % BHT_COUNT(copies)];
    BHT_TRUE(trial->arrays[array].form.bytes <= sizeof copies[0]);
    bhi_trial_write(&trial->arrays[array], trial->arrays[array].count, copy);
    return copy;
}

/* What is generated depends on seed, size and array, and on nothing else; a timed run has inputs that
 * nobody has seen, and files as they are. */
TEST(each_seed_has_inputs_of_its_own) {
    static const char three[] =
        "{\"sizes\": [{}], \"seeds\": [5, 6], \"groups\": [1],\n"
        "\"in\": {\"A\": {\"dtype\": \"f32\", \"shape\": [2, 2], \"fill\": \"uniform\"},\n"
        "\"B\": {\"dtype\": \"f32\", \"shape\": [2, 2], \"fill\": \"uniform\"},\n"
        "\"C\": {\"dtype\": \"f32\", \"shape\": [2, 2], \"fill\": {\"file\": \"c.npy\"}}},\n"
        "\"out\": {\"Y\": {\"dtype\": \"u8\", \"shape\": []}},\n"
        "\"reference\": {\"kernel\": \"r.comp\"}, \"fills\": []}";
    enum { A, B, C, OUT, BYTES = 16 };
    static const uint64_t shape[] = {2, 2}, seven[] = {7};
    const char *const folder = bht_folder();
    char path[160];
    struct bhi_task from;
    struct bhi_trials trials, again;
    struct bhi_trial one, other;
    struct bhi_complaint complaint;
    snprintf(path, sizeof path, "%s/c.npy", folder);
    put_npy(path, BH_DTYPE_F32, 2, shape);
    BHT_TRUE(bhi_task_parse("t.json", folder, three, &from, &complaint));
    BHT_TRUE(bhi_trials_make(&from, seven, 1, &trials, &complaint));
    BHT_TRUE(bhi_trials_make(&from, seven, 1, &again, &complaint));
    BHT_EQ(trials.count, 3);
    for (size_t i = 0; i < 3; i++) {
        BHT_NE(memcmp(input(&trials.list[i], A), input(&trials.list[i], B), BYTES), 0);
        BHT_MEM_EQ(input(&trials.list[i], A), input(&again.list[i], A), BYTES);
        for (size_t k = 0; k < i; k++) {
            BHT_NE(memcmp(input(&trials.list[i], A), input(&trials.list[k], A), BYTES), 0);
        }
    }
    BHT_TRUE(bhi_trial_anew(&from, &trials.list[0], 8, NULL, &one));
    BHT_TRUE(bhi_trial_anew(&from, &trials.list[0], 9, NULL, &other));
    BHT_TRUE(one.timed && !trials.list[0].timed);
    BHT_TRUE(!one.arrays[OUT].before && !one.arrays[OUT].expected);
    BHT_EQ(one.arrays[OUT].form.bytes, 1);
    for (uint32_t k = A; k <= C; k++) {
        BHT_EQ(one.arrays[k].count, 4);
        BHT_EQ(one.arrays[k].before == trials.list[0].arrays[k].before, k == C);
        BHT_EQ(!memcmp(input(&one, k), input(&other, k), BYTES), k == C);
        BHT_EQ(!memcmp(input(&one, k), input(&trials.list[0], k), BYTES), k == C);
    }
    BHT_NE(memcmp(input(&one, A), input(&one, B), BYTES), 0);
    bhi_trial_free(&from, &one);
    bhi_trial_free(&from, &other);
    bhi_trials_free(&from, &trials);
    bhi_trials_free(&from, &again);
    bhi_task_free(&from);
}

/* Indices of an array: each run has those of its own size. */
TEST(ends_of_integers_follow_the_size) {
    static const char gather[] =
        "{\"sizes\": [{\"n\": 3}, {\"n\": 200}], \"groups\": [1],\n"
        "\"in\": {\"A\": {\"dtype\": \"u32\", \"shape\": [400], \"fill\": {\"integers\":\n"
        "         [\"n - 2\", \"n - 1\"]}, \"fills\": [\"ends\", {\"integers\": [0, \"n\"]}]}},\n"
        "\"out\": {\"Y\": {\"dtype\": \"u8\", \"shape\": []}},\n"
        "\"reference\": {\"kernel\": \"r.comp\"}}";
    enum { SIZES = 2, OF_EACH = 4 /* two seeds, two fills */, COUNT = 400 };
    static const uint64_t seven[] = {7};
    struct bhi_task from;
    struct bhi_trials trials;
    struct bhi_trial anew;
    struct bhi_complaint complaint;
    BHT_TRUE(bhi_task_parse("t.json", ".", gather, &from, &complaint));
    BHT_TRUE(bhi_trials_make(&from, seven, 1, &trials, &complaint));
    for (size_t i = 0; i < 2 * trials.count; i++) {
        const struct bhi_trial *trial = &trials.list[i % trials.count];
        const uint32_t n = (uint32_t)from.sizes[trial->size].values[0];
        const bool timed = i >= trials.count; /* its inputs are the generator's, of any fill */
        if (timed) {
            BHT_TRUE(bhi_trial_anew(&from, trial, 8, NULL, &anew));
        }
        const uint32_t *values = input(timed ? &anew : trial, 0);
        const uint32_t first = !timed && trial->fill == 2 ? 0 : n - 2;
        const uint32_t last = !timed && trial->fill == 2 ? n : n - 1;
        uint32_t least = UINT32_MAX, most = 0;
        for (size_t k = 0; k < COUNT; k++) {
            least = values[k] < least ? values[k] : least;
            most = values[k] > most ? values[k] : most;
        }
        BHT_WITHIN(least, first, first + 8); /* of so many numbers the ends, or nearly */
        BHT_WITHIN(most, last < 8 ? last : last - 8, last);
        if (timed) {
            bhi_trial_free(&from, &anew);
        }
    }
    BHT_EQ(trials.count, SIZES * OF_EACH);
    bhi_trials_free(&from, &trials);
    bhi_task_free(&from);
}

/* Makes the trials again, with these fills; "": the usual ones. */
static void open_with(const char *fills) {
    static const uint64_t hidden[] = {77};
    struct bhi_complaint complaint;
    char with[1024];
    bhi_trials_free(&task, &court.trials);
    bhi_task_free(&task);
    snprintf(with, sizeof with, "%.*s%s}", (int)(sizeof text - 1 - strlen(", \"fills\": []}")),
             text, fills);
    BHT_TRUE(bhi_task_parse("t.json", "", with, &task, &complaint));
    BHT_TRUE(bhi_trials_make(&task, hidden, 1, &court.trials, &complaint));
}

TEST(the_usual_fills_have_one_quick_size_and_the_hidden_seed) {
    open_with("");
    BHT_EQ(court.trials.count, TRIALS + 5);
    for (size_t i = 0; i < court.trials.count; i++) {
        const struct bhi_trial *trial = &court.trials.list[i];
        BHT_EQ(trial->fill, i < TRIALS ? 0 : i - TRIALS + 1);
        if (trial->fill) {
            BHT_EQ(trial->size, 0);
            BHT_TRUE(trial->hidden && trial->seed == 77 && !trial->repeats);
        }
    }
    const float *const equal = court.trials.list[TRIALS].arrays[X].before;
    const float *const sorted = court.trials.list[TRIALS + 1].arrays[X].before;
    BHT_TRUE(equal[0] == equal[1] && equal[1] == equal[2]);
    BHT_TRUE(sorted[0] < sorted[1] && sorted[1] < sorted[2]);
}

/* Of two sizes below and one above 1 MiB; of two above the smaller. */
TEST(the_usual_fills_have_the_largest_size_that_is_quick) {
    static const struct {
        const char *sizes;
        size_t size;
    } cases[] = {{"[{`n`: 10}, {`n`: 300000}, {`n`: 1000}]", 2},
                 {"[{`n`: 300000}, {`n`: 400000}]", 0},
                 {"[{`n`: 400000}, {`n`: 300000}]", 1}};
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        char whole[512];
        struct bhi_task of;
        struct bhi_trials trials;
        struct bhi_complaint complaint;
        snprintf(
            whole, sizeof whole,
            "{`sizes`: %s, `groups`: [1], `in`: {`X`: {`dtype`: `u8`, `shape`: [`n`, 4], `fill`: "
            "`bits`}}, `out`: {`Y`: {`dtype`: `u8`, `shape`: []}}, `reference`: {`kernel`: `r`}}",
            cases[i].sizes);
        BHT_TRUE(bhi_task_parse("t.json", "", bht_quoted(whole), &of, &complaint));
        BHT_TRUE(bhi_trials_make(&of, NULL, 0, &trials, &complaint));
        size_t fills = 0;
        for (size_t k = 0; k < trials.count; k++) {
            fills += trials.list[k].fill && trials.list[k].size == cases[i].size;
        }
        BHT_EQ(fills, 5);
        BHT_EQ(trials.count, of.size_count + 5);
        bhi_trials_free(&of, &trials);
        bhi_task_free(&of);
    }
}

TEST(fills_of_the_task_have_each_size) {
    open_with(", \"fills\": [\"huge\", \"ties\"]");
    BHT_EQ(court.trials.count, TRIALS + 4);
}

/* Everybody can compute what is right for a task's own seeds, and nobody that for a hidden size's. */
TEST(a_hidden_size_has_hidden_seeds_alone) {
    static const uint64_t hidden[] = {77, 78};
    struct bhi_complaint complaint;
    open_with(", \"fills\": [], \"hidden_sizes\": {\"n\": [20, 30], \"count\": 2}");
    bhi_trials_free(&task, &court.trials);
    BHT_TRUE(bhi_task_draw_sizes(&task, 1, &complaint));
    BHT_TRUE(bhi_trials_make(&task, hidden, 2, &court.trials, &complaint));
    BHT_EQ(court.trials.count, 2 * 3 + 2 * 2);
    size_t twice = 0;
    for (size_t i = 0; i < court.trials.count; i++) {
        const struct bhi_trial *trial = &court.trials.list[i];
        BHT_EQ(trial->hidden, trial->seed != 5);
        BHT_TRUE(trial->size < 2 || trial->hidden);
        twice += trial->repeats;
    }
    BHT_EQ(twice, 4); /* once for each size */
    char said[BHI_TRIAL_TEXT];
    (void)bhi_trial_text(&task, &court.trials.list[court.trials.count - 1], said);
    BHT_TRUE(!strncmp(said, "hidden size n=2", strlen("hidden size n=2")));
}

/* What is looked for there is no matter of rounding. Two steps are wrong where the task allows one. */
TEST(only_the_usual_fills_have_a_large_tolerance) {
    open_with("");
    for (size_t i = 0; i < court.trials.count; i++) {
        for (uint32_t k = Y; k < ARRAYS; k++) {
            court.trials.list[i].arrays[k].expected =
                calloc(1, court.trials.list[i].arrays[k].form.bytes);
        }
    }
    const struct scene there = {.wrong = RUNS + 1, .array = Y};
    scene = there;
    runs = 0;
    BHT_TRUE(bhi_candidate_try(&court, &candidate, &outcome));
    BHT_EQ(candidate.judgement.verdict, BH_JUDGE_CORRECT);
    BHT_EQ(candidate.judgement.errors[0].ulp, 0);
    BHT_EQ(runs, RUNS + 5);
    task.default_fills = false;
    runs = 0;
    BHT_TRUE(bhi_candidate_try(&court, &candidate, &outcome));
    BHT_EQ(candidate.judgement.verdict, BH_JUDGE_WRONG);
    BHT_EQ(runs, RUNS + 1);
    BHT_STR_EQ(candidate.judgement.fill, "equal");
    BHT_STR_HAS(candidate.judgement.message, "(n=3, hidden seed 77, inputs: equal)");
}

/* -- candidates ---------------------------------------------------------------------------------
 */

/* Not only the last: one that computes the same twice says nothing of another. */
TEST(each_trial_that_is_run_twice_decides_about_determinism) {
    static const bool decides[RUNS + 1] = {false, true, true, false, true, true, false};
    for (uint32_t array = Y; array < ARRAYS; array++) {
        for (int run = 0; run <= RUNS; run++) {
            if (array == Z && run) {
                task.arrays[Z].tolerance =
                    (struct bhi_tolerance){.kind = BHI_TOLERANCE_ULP, .ulp = 1};
            }
            BHT_EQ(judge((struct scene){.differs = run, .array = array}), BH_JUDGE_CORRECT);
            BHT_EQ(candidate.judgement.deterministic, !decides[run]);
            BHT_EQ(candidate.judgement.runs, RUNS);
            BHT_EQ(runs, RUNS);
            BHT_TRUE(!candidate.judgement.located);
        }
    }
}

/* The largest of all runs; a run that is checked with a larger tolerance does not count. */
TEST(a_candidate_that_is_right_has_the_errors_of_its_outputs) {
    for (int run = 0; run <= RUNS; run++) {
        BHT_EQ(judge((struct scene){.differs = run, .array = Y}), BH_JUDGE_CORRECT);
        BHT_EQ(candidate.judgement.error_count, 2);
        BHT_STR_EQ(candidate.judgement.errors[0].output, "Y");
        BHT_STR_EQ(candidate.judgement.errors[1].output, "Z");
        BHT_EQ(candidate.judgement.errors[0].ulp, run > 0);
        BHT_TRUE((candidate.judgement.errors[0].absolute > 0) == (run > 0));
        BHT_EQ(candidate.judgement.errors[1].ulp, 0);
    }
    bhi_judgement_end(&task, NULL, BH_JUDGE_SLOWER, &candidate.judgement);
    BHT_EQ(candidate.judgement.error_count, 2);
    bhi_judgement_end(&task, NULL, BH_JUDGE_TIMING_FORGED, &candidate.judgement);
    BHT_EQ(candidate.judgement.error_count, 0);
    BHT_EQ(judge((struct scene){.wrong = 3, .array = Y}), BH_JUDGE_WRONG);
    BHT_EQ(candidate.judgement.error_count, 0);
}

/* A kernel may look for noise in its output, or behind an array. */
TEST(a_repetition_has_no_noise) {
    BHT_EQ(judge((struct scene){.array = Y}), BH_JUDGE_CORRECT);
    for (int i = 0; i < RUNS; i++) {
        const bool repeats = i > 0 && trial_of[i] == trial_of[i - 1];
        BHT_EQ(numbers[i], repeats ? BHI_NO_NOISE : 0);
    }
}

/* So a race between workgroups leaves something else. The message says so, unless there is one order. */
TEST(a_repetition_has_its_groups_in_the_opposite_order) {
    static const char said[] = "; repeated, with other noise and workgroups in the opposite order";
    for (int of_cuda = 0; of_cuda < 2; of_cuda++) {
        const struct scene right = {.array = Y, .of_cuda = of_cuda};
        BHT_EQ(judge(right), BH_JUDGE_CORRECT);
        BHT_STR_EQ(candidate.judgement.message, "");
        for (int i = 0; i < RUNS; i++) {
            const bool repeats = i > 0 && trial_of[i] == trial_of[i - 1];
            BHT_EQ(opposites[i], repeats && !of_cuda);
        }
        for (int run = 1; run <= RUNS; run++) {
            struct scene wrong = right;
            wrong.wrong = run;
            BHT_EQ(judge(wrong), BH_JUDGE_WRONG);
            BHT_EQ(!!strstr(candidate.judgement.message, said), opposites[run - 1]);
        }
    }
}

TEST(the_first_run_that_is_wrong_ends_it) {
    for (uint32_t array = Y; array < ARRAYS; array++) {
        for (int run = 1; run <= RUNS; run++) {
            BHT_EQ(judge((struct scene){.wrong = run, .array = array}), BH_JUDGE_WRONG);
            expect_located(run);
            BHT_EQ(candidate.judgement.runs, run);
            BHT_STR_EQ(candidate.judgement.output, array == Y ? "Y" : "Z");
            BHT_EQ(candidate.judgement.wrong, 1);
            BHT_EQ(candidate.judgement.status, BH_NOT_CORRECT);
            BHT_EQ(candidate.judgement.elements, array == Z ? 2 : run < 4 ? 2 : 3);
            BHT_EQ(candidate.judgement.rank, 1);
            BHT_EQ(candidate.judgement.ulp, 2);
            BHT_STR_EQ(candidate.judgement.expected, "0");
            BHT_STR_EQ(candidate.judgement.got, array == Z ? "2" : "2.80259693e-45");
            BHT_STR_HAS(candidate.judgement.message, ", 2 ULP; 1 of ");
            BHT_EQ(candidate.judgement.index[0], array == Y ? (run < 4 ? 1 : 2) : 1);
        }
    }
}

/* What is right once there is nothing behind an array has read that; otherwise it is merely wrong. */
TEST(a_kernel_that_reads_past_an_array_is_told_which) {
    static const char *const named[] = {"X", "Y", "Z"};
    for (uint32_t array = X; array < ARRAYS; array++) {
        BHT_EQ(judge((struct scene){.reads = 1u << array, .array = Y}), BH_JUDGE_STRAY_READ);
        BHT_STR_EQ(candidate.judgement.output, named[array]);
        char said[64];
        snprintf(said, sizeof said, "it reads past the end of %s (n=2, seed 5)", named[array]);
        BHT_STR_EQ(candidate.judgement.message, said);
        BHT_EQ(candidate.judgement.runs, 1);
        BHT_TRUE(candidate.judgement.located && !candidate.judgement.wrong);
        BHT_STR_EQ(candidate.judgement.got, "");
    }
    BHT_STR_EQ(bh_judge_verdict_name(BH_JUDGE_STRAY_READ, BH_OK), "STRAY_READ");
    BHT_EQ(judge((struct scene){.reads = 1, .wrong = 1, .array = Y}), BH_JUDGE_WRONG);
    task.robust = true;
    BHT_EQ(judge((struct scene){.reads = 1, .array = Y}), BH_JUDGE_WRONG);
    BHT_EQ(runs, 1);
}

/* One that is right by chance is not right once more. */
TEST(a_kernel_that_is_right_once_has_read_nothing) {
    for (int misses = 1; misses <= 2; misses++) {
        BHT_EQ(judge((struct scene){.reads = 1, .misses = misses, .array = Y}), BH_JUDGE_WRONG);
        BHT_EQ(looks, misses);
        BHT_EQ(candidate.judgement.wrong, 1);
    }
}

TEST(a_race_that_is_right_the_next_time_has_read_nothing) {
    BHT_EQ(judge((struct scene){.reads = 1, .races = true, .array = Y}), BH_JUDGE_WRONG);
    BHT_EQ(candidate.judgement.wrong, 1);
}

TEST(of_several_arrays_that_it_reads_past_the_first_is_named) {
    BHT_EQ(judge((struct scene){.reads = 1u << Y | 1u << Z, .array = Y}), BH_JUDGE_STRAY_READ);
    BHT_STR_EQ(candidate.judgement.output, "Y");
}

/* So that one that reads workgroup memory before it writes it is wrong, and cannot know what is there. */
TEST(each_candidate_has_noise_of_its_own_in_workgroup_memory) {
    uint32_t seen[3];
    for (size_t i = 0; i < BHT_COUNT(seen); i++) {
        BHT_EQ(judge((struct scene){.array = Y}), BH_JUDGE_CORRECT);
        seen[i] = noise;
        BHT_NE(noise, 0);
        for (size_t k = 0; k < i; k++) {
            BHT_NE(seen[k], noise);
        }
    }
    court.noise_seed++;
    atomic_fetch_sub(&court.runs, 1);
    BHT_EQ(judge((struct scene){.array = Y}), BH_JUDGE_CORRECT);
    BHT_NE(noise, seen[2]);
}

/* And comes before a wrong output. */
TEST(the_first_run_that_writes_outside_ends_it) {
    static const struct {
        int64_t at;
        const char *said;
    } cases[] = {{-1, "it wrote at byte 1 in front of Z"},
                 {-4096, "it wrote at byte 4096 in front of Z"},
                 {2, "it wrote at byte 1 past the end of Z"},
                 {3, "it wrote at byte 2 past the end of Z"}};
    for (int run = 1; run <= RUNS; run++) {
        for (size_t i = 0; i < BHT_COUNT(cases); i++) {
            const struct scene what = {
                .strays = run, .wrong = run, .stray_at = cases[i].at, .array = Z};
            BHT_EQ(judge(what), BH_JUDGE_STRAY_WRITE);
            expect_located(run);
            BHT_STR_EQ(candidate.judgement.output, "Z");
            BHT_STR_HAS(candidate.judgement.message, cases[i].said);
        }
    }
}

TEST(a_kernel_that_cannot_run_fails) {
    BHT_EQ(judge((struct scene){.unmade = true}), BH_JUDGE_FAILED);
    BHT_EQ(candidate.judgement.status, BH_COMPILE_FAILED);
    BHT_EQ(judge((struct scene){.unfit = true}), BH_JUDGE_FAILED);
    BHT_EQ(candidate.judgement.status, BH_BINDING_MISMATCH);
    BHT_TRUE(!candidate.judgement.located && !candidate.judgement.deterministic);
    BHT_EQ(runs, 0);
    BHT_STR_EQ(candidate.judgement.name, "kernel");
}

/* How often a run that fails is tried again, and whether that is a verdict at all. */
TEST(what_others_may_have_caused_is_tried_again) {
    enum { ONCE, AGAIN, NEVER };
    static const struct {
        bh_status status;
        bh_blame blame;
        bh_reason reason;
        int then;
    } cases[] = {
        {BH_DEADLINE, BH_BLAME_CERTAIN, BH_REASON_NONE, ONCE},
        {BH_DEADLINE, BH_BLAME_CERTAIN, BH_REASON_COMPILE_DEADLINE, AGAIN},
        {BH_DEADLINE, BH_BLAME_SUSPECTED, BH_REASON_NONE, AGAIN},
        {BH_DEADLINE, BH_BLAME_NONE, BH_REASON_NONE, AGAIN},
        {BH_WORKER_SIGNAL, BH_BLAME_CERTAIN, BH_REASON_NONE, ONCE},
        {BH_WORKER_SIGNAL, BH_BLAME_NONE, BH_REASON_NONE, AGAIN},
        {BH_WORKER_LOST, BH_BLAME_NONE, BH_REASON_NONE, AGAIN}, /* a victim */
        {BH_COMPILE_FAILED, BH_BLAME_NONE, BH_REASON_NONE, ONCE},
        {BH_SYSTEM, BH_BLAME_NONE, BH_REASON_NONE, NEVER},
        {BH_NO_MEMORY, BH_BLAME_NONE, BH_REASON_NONE, NEVER},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const struct scene what = {.fails = 4,
                                   .status = cases[i].status,
                                   .blame = cases[i].blame,
                                   .reason = cases[i].reason};
        scene = what;
        runs = 0;
        expect_zeros();
        candidate.judged = true;
        const bool known = bhi_candidate_try(&court, &candidate, &outcome);
        if (known != (cases[i].then != NEVER) ||
            (known && candidate.judged != (cases[i].then == ONCE))) {
            BHT_FAIL("case %zu", i);
        }
        BHT_EQ(candidate.judgement.status, cases[i].status);
        BHT_EQ(candidate.judgement.blame, cases[i].blame);
        BHT_EQ(candidate.judgement.reason, cases[i].reason);
        BHT_EQ(candidate.judgement.subject, BH_SUBJECT_KERNEL);
        BHT_STR_EQ(candidate.judgement.subject_name, "kernel");
        BHT_STR_EQ(candidate.judgement.message, "it failed");
        BHT_EQ(candidate.judgement.runs, 3);
        expect_located(4);
        /* It fails once: the second time all goes well. */
        runs = 0;
        BHT_EQ(bhi_candidate_judge(&court, &candidate, &outcome), known);
        BHT_EQ(candidate.judged, known);
        BHT_EQ(candidate.judgement.verdict,
               cases[i].then == AGAIN ? BH_JUDGE_CORRECT : BH_JUDGE_FAILED);
        BHT_EQ(runs, cases[i].then == AGAIN ? 4 + RUNS : 4);
        /* It fails each time: at the third it is judged. */
        scene.fails = -1;
        runs = 0;
        BHT_EQ(bhi_candidate_judge(&court, &candidate, &outcome), known);
        BHT_EQ(candidate.judged, known);
        BHT_EQ(candidate.judgement.verdict, BH_JUDGE_FAILED);
        BHT_EQ(runs, cases[i].then == AGAIN ? 3 : 1);
    }
}

/* One that is right, and slow, is as deterministic as it was. */
TEST(who_is_slower_is_no_more_deterministic) {
    BHT_EQ(judge((struct scene){.differs = 1, .array = Y}), BH_JUDGE_CORRECT);
    bhi_judgement_end(&task, NULL, BH_JUDGE_SLOWER, &candidate.judgement);
    BHT_TRUE(!candidate.judgement.deterministic && !candidate.judgement.located);
    BHT_EQ(judge((struct scene){.array = Y}), BH_JUDGE_CORRECT);
    bhi_judgement_end(&task, NULL, BH_JUDGE_SLOWER, &candidate.judgement);
    BHT_TRUE(candidate.judgement.deterministic);
    bhi_judgement_end(&task, NULL, BH_JUDGE_TIMING_FORGED, &candidate.judgement);
    BHT_TRUE(!candidate.judgement.deterministic);
}

/* -- the reference ------------------------------------------------------------------------------
 */

/* Returns whether a reference in |what| can say what is right. */
static bool is_taken(struct scene what) {
    scene = what;
    runs = 0;
    for (size_t i = 0; i < court.trials.count; i++) {
        for (uint32_t k = Y; k < ARRAYS; k++) {
            free(court.trials.list[i].arrays[k].expected);
            court.trials.list[i].arrays[k].expected = NULL;
        }
    }
    outcome = (struct bhi_judge_outcome){.status = BH_OK};
    const bool taken = bhi_reference_run(&court, &outcome);
    BHT_EQ(taken, outcome.status == BH_OK);
    return taken;
}

static void expect_refused(struct scene what, const char *why) {
    if (is_taken(what)) {
        BHT_FAIL("not refused: %s", why);
    }
    BHT_STR_HAS(outcome.message, why);
}

/* Each trial is run twice, whatever its seed. */
TEST(a_reference_is_refused_in_each_of_its_runs) {
    groups = &task.reference_groups;
    BHT_TRUE(is_taken((struct scene){.array = Y}));
    BHT_EQ(runs, 2 * TRIALS);
    BHT_EQ(court.reference[0], 9);
    BHT_STR_EQ(court.device, "device");
    for (int run = 1; run <= 2 * TRIALS; run++) {
        for (uint32_t array = Y; array < ARRAYS; array++) {
            expect_refused((struct scene){.differs = run, .array = array},
                           "it is not deterministic: ");
            BHT_EQ(runs, (run + 1) / 2 * 2); /* and the next trial is not run */
        }
        expect_refused((struct scene){.fails = run, .status = BH_DEADLINE}, "it failed");
        BHT_EQ(runs, run);
        expect_refused((struct scene){.strays = run, .array = Z}, "it writes outside of output Z");
        BHT_EQ(runs, run);
    }
    for (int trial = 1; trial <= TRIALS; trial++) {
        expect_refused((struct scene){.nan = trial, .array = Y}, "it computes a NaN: Y[");
        BHT_EQ(runs, 2 * trial);
    }
    expect_refused((struct scene){.unmade = true}, "not compiled");
    expect_refused((struct scene){.unfit = true}, "no such binding");
    BHT_EQ(runs, 0);
}

TEST(a_reference_that_reads_past_an_array_is_told_so) {
    groups = &task.reference_groups;
    expect_refused((struct scene){.reads = 1, .varies = true, .array = Y},
                   "it reads past the end of an array: Y[1] is ");
    task.robust = true;
    expect_refused((struct scene){.reads = 1, .varies = true, .array = Y},
                   "it is not deterministic: Y[1] is ");
}

TEST(a_usual_fill_with_which_the_reference_cannot_judge_is_dropped) {
    static const struct scene cases[] = {{.nan = TRIALS + 1, .array = Y},
                                         {.differs = 2 * TRIALS + 1, .array = Y},
                                         {.infinite = TRIALS + 1, .array = Y}};
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        open_with("");
        groups = &task.reference_groups;
        BHT_TRUE(is_taken(cases[i]));
        BHT_EQ(runs, 2 * (TRIALS + 5));
        BHT_EQ(court.trials.count, TRIALS + 4);
        BHT_EQ(court.trials.list[TRIALS].fill, 2);
        BHT_EQ(court.trials.list[TRIALS + 3].fill, 5);
    }
    open_with("");
    groups = &task.reference_groups;
    expect_refused((struct scene){.fails = 2 * TRIALS + 1, .status = BH_DEADLINE}, "it failed");
}

TEST(a_fill_of_the_task_with_which_the_reference_cannot_judge_is_refused) {
    open_with(", \"fills\": [\"ties\"]");
    groups = &task.reference_groups;
    expect_refused((struct scene){.nan = 6, .array = Y},
                   "(n=3, hidden seed 77, inputs: ties); the task");
    expect_refused((struct scene){.differs = 12, .array = Y},
                   "(n=3, hidden seed 77, inputs: ties)");
    BHT_TRUE(is_taken((struct scene){.infinite = 6, .array = Y}));
}

/* What is expected is there, and nothing runs; a NaN in it is refused as one that is computed. */
TEST(a_reference_of_files_is_looked_at) {
    uint32_t nan = 0x7fc00000;
    task.reference = BHI_REFERENCE_FILES;
    expect_zeros();
    BHT_TRUE(bhi_reference_run(&court, &outcome));
    BHT_STR_EQ(court.device, "device");
    memcpy(court.trials.list[0].arrays[Y].expected, &nan, sizeof nan);
    BHT_TRUE(!bhi_reference_run(&court, &outcome));
    BHT_STR_HAS(outcome.message, "it computes a NaN: Y[0]");
    task.arrays[Y].tolerance.nan = BHI_NAN_EQUAL;
    BHT_TRUE(bhi_reference_run(&court, &outcome));
    struct bhi_reference reference;
    struct bhi_launched launched;
    BHT_TRUE(bhi_reference_open(&court, &reference, &outcome));
    BHT_TRUE(bhi_reference_compute(&reference, &court.trials.list[1], &launched, &outcome));
    BHT_EQ(memcmp(launched.outputs[Y], &nan, sizeof nan),
           0); /* of the only trial that files have */
    bhi_launched_free(&launched);
    bhi_reference_close(&reference);
    BHT_EQ(runs, 0);
    uint32_t *const expected = court.trials.list[0].arrays[Y].expected;
    task.arrays[Y].tolerance.by = BHI_BY_MULTISET;
    BHT_TRUE(court.trials.list[0].arrays[Y].count > 1);
    BHT_TRUE(bhi_reference_run(&court, &outcome));
    BHT_TRUE(expected[0] == 0 && expected[court.trials.list[0].arrays[Y].count - 1] != 0);
}

/* A reference and a candidate on a library that is a script (tests/cli/scripted): whatever it refuses, of
 * the candidate is said what is known, and nothing is left of any run. */
#include "harness.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "../batch/faulty_memory.h"
#include "../cli/scripted/script.h"
#include "judge/check/candidate.h"
#include "judge/check/expected.h"
#include "judge/check/kernel_make.h"
#include "judge/check/launch.h"
#include "judge/check/reference.h"
#include "judge/check/weak.h"

/* What a kernel writes is what it reads, plus SCRIPT_ADD: both outputs are X, over and over. */
static const char text[] =
    "{\"sizes\": [{\"n\": 3}], \"groups\": [1],\n"
    "\"in\": {\"X\": {\"dtype\": \"u8\", \"shape\": [\"n\"], \"fill\": \"bits\"}},\n"
    "\"inout\": {\"V\": {\"dtype\": \"u8\", \"shape\": [5], \"fill\": \"bits\"}},\n"
    "\"out\": {\"Y\": {\"dtype\": \"u8\", \"shape\": [2, \"n\"]}},\n"
    "\"reference\": {\"kernel\": \"r.comp\"}, \"fills\": []}";
static const char of_expression[] =
    "{\"sizes\": [{\"n\": 3}], \"groups\": [1],\n"
    "\"in\": {\"X\": {\"dtype\": \"u8\", \"shape\": [\"n\"], \"fill\": \"bits\"}},\n"
    "\"out\": {\"Y\": {\"dtype\": \"u8\", \"shape\": [\"n\"]}},\n"
    "\"reference\": {\"eval\": \"X +\\n X\"}, \"fills\": []}";
/* Of each seed 3.3 MB, 2.2 of them expected. */
static const char of_large_arrays[] =
    "{\"sizes\": [{\"n\": 1100000}], \"seeds\": [5, 6, 7], \"groups\": [1],\n"
    "\"in\": {\"X\": {\"dtype\": \"u8\", \"shape\": [\"n\"], \"fill\": \"bits\"}},\n"
    "\"inout\": {\"V\": {\"dtype\": \"u8\", \"shape\": [5], \"fill\": \"bits\"}},\n"
    "\"out\": {\"Y\": {\"dtype\": \"u8\", \"shape\": [2, \"n\"]}},\n"
    "\"reference\": {\"kernel\": \"r.comp\"}, \"fills\": []}";
enum { ARRAYS = 3 };

static struct bhi_task task;
static struct bhi_court court;
static struct bhi_candidate candidate;
static struct bhi_judge_outcome outcome;
static bool on_device; /* the memory of buffers is */

/* -- what the script does not have --------------------------------------------------------------
 */

BHT_WRAP(bh_status, bhi_kernel_types_ask, bh_kernel *kernel, uint64_t deadline_ns,
         struct bhi_kernel_types **out_types, bh_detail *detail) {
    static const char *const names[ARRAYS] = {"X", "V", "Y"};
    const bh_status status = script_answer("SCRIPT_TYPES", detail);
    if (status != BH_OK) {
        return status;
    }
    struct bhi_kernel_types *types = script_new(sizeof *types + ARRAYS * sizeof types->types[0]);
    script_objects--; /* the judge frees it */
    types->local_size[0] = types->local_size[1] = types->local_size[2] = 1;
    for (uint32_t i = 0; i < ARRAYS; i++) {
        struct bhi_kernel_type *type = &types->types[types->count++];
        type->slot.binding = i;
        type->count = 1;
        type->access = i ? BH_ACCESS_READ_WRITE : BH_ACCESS_READ;
        strcpy(type->type, "u8[]");
        strcpy(type->name, names[i]);
    }
    *out_types = types;
    return BH_OK;
}

static bh_stream_options asked; /* of the last stream */
static unsigned streams_made;

BHT_WRAP(bh_status, bh_stream_create, bh_context *context, const bh_stream_options *options,
         bh_stream **out_stream, bh_detail *detail) {
    asked = *options;
    streams_made++;
    return __real_bh_stream_create(context, options, out_stream, detail);
}

/* The options of the last two kernels, newest last. */
static bh_kernel_options kernels[2];
static unsigned kernels_made;

BHT_WRAP(bh_status, bh_kernel_create_spirv, bh_context *context, const void *code, size_t size,
         const bh_kernel_options *options, bh_kernel **out_kernel, bh_detail *detail) {
    kernels[0] = kernels[1];
    kernels[1] = *options;
    kernels_made++;
    return __real_bh_kernel_create_spirv(context, code, size, options, out_kernel, detail);
}

BHT_WRAP(bh_status, bh_buffer_create, bh_context *context, uint64_t size,
         const bh_buffer_options *options, bh_buffer **out_buffer, bh_detail *detail) {
    BHT_EQ(options->memory, options->stream ? BH_MEMORY_AUTO : BH_MEMORY_HOST);
    return __real_bh_buffer_create(context, size, options, out_buffer, detail);
}

BHT_WRAP(bh_status, bh_stream_device, bh_stream *stream, char out[48]) {
    strcpy(out, "script:0");
    return script_answer("SCRIPT_DEVICE", NULL);
}

BHT_WRAP(bh_memory, bh_buffer_memory, const bh_buffer *buffer) {
    return on_device ? BH_MEMORY_DEVICE : BH_MEMORY_HOST;
}

BHT_WRAP(bh_status, bh_buffer_map, bh_buffer *buffer, bh_map_intent intent, uint64_t timeout_ns,
         void **out_pointer, bh_detail *detail) {
    BHT_TRUE(!on_device && timeout_ns < BH_FOREVER);
    return __real_bh_buffer_map(buffer, intent, timeout_ns, out_pointer, detail);
}

BHT_WRAP(bh_status, bh_buffer_write, bh_buffer *buffer, uint64_t offset, const void *bytes,
         uint64_t size, uint64_t timeout_ns, bh_detail *detail) {
    BHT_TRUE(on_device && offset + size <= buffer->size);
    memcpy(buffer->bytes + offset, bytes, size);
    return script_answer("SCRIPT_WRITE", detail);
}

/* -- the court ----------------------------------------------------------------------------------
 */

static void open_court(const char *of) {
    static const uint64_t hidden[] = {77};
    static char context;
    struct bhi_complaint complaint;
    BHT_TRUE(bhi_task_parse("t.json", "", of, &task, &complaint));
    court = (struct bhi_court){
        .task = &task, .context = (bh_context *)(void *)&context, .selector = ""};
    BHT_TRUE(bhi_trials_make(&task, hidden, 1, &court.trials, &complaint));
}

static void close_court(void) {
    bhi_trials_free(&task, &court.trials);
    bhi_task_free(&task);
    BHT_EQ(script_objects, 0);
}

static bool run_reference(void) {
    outcome = (struct bhi_judge_outcome){.status = BH_OK};
    for (size_t i = 0; i < court.trials.count; i++) {
        for (size_t k = 0; k < task.array_count; k++) {
            free(court.trials.list[i].arrays[k].expected);
            court.trials.list[i].arrays[k].expected = NULL;
        }
    }
    const bool good = bhi_reference_run(&court, &outcome);
    BHT_EQ(good, outcome.status == BH_OK);
    BHT_EQ(script_objects, 0);
    return good;
}

/* Returns whether it is known what the candidate is worth. */
static bool judge(void) {
    outcome = (struct bhi_judge_outcome){.status = BH_OK};
    candidate =
        (struct bhi_candidate){.file = {.path = "c.comp", .code = "void main() {}", .size = 14}};
    const bool known = bhi_candidate_judge(&court, &candidate, &outcome);
    BHT_EQ(known, candidate.judged);
    BHT_EQ(script_objects, 0);
    return known;
}

/* The file of the reference is in the folder of the test. */
static void make_files(void) {
    const char *const folder = bht_folder();
    bht_put("void main() {}", "%s/r.comp", folder);
    BHT_EQ(chdir(folder), 0);
}

static const struct {
    const char *call, *status;
    bool on_device, on_host, known;
    bh_judge_verdict verdict;
    bh_status expected;
    uint32_t runs;
} cases[] = {
    {"SCRIPT_NONE", "OK", true, true, true, BH_JUDGE_CORRECT, BH_OK, 3},
    {"SCRIPT_EVENT", "INVALID_KERNEL", true, true, true, BH_JUDGE_FAILED, BH_INVALID_KERNEL, 0},
    {"SCRIPT_EVENT", "DEADLINE", true, true, true, BH_JUDGE_FAILED, BH_DEADLINE, 0},
    {"SCRIPT_EVENT", "NO_MEMORY", true, true, false, 0, BH_NO_MEMORY, 0},
    {"SCRIPT_SUBMIT", "LIMIT_EXCEEDED", true, true, true, BH_JUDGE_FAILED, BH_LIMIT_EXCEEDED, 0},
    {"SCRIPT_SUBMIT", "UNAVAILABLE", true, true, false, 0, BH_UNAVAILABLE, 0},
    {"SCRIPT_BUFFER", "NO_MEMORY", true, true, false, 0, BH_NO_MEMORY, 0},
    {"SCRIPT_BUFFER", "LIMIT_EXCEEDED", true, true, true, BH_JUDGE_FAILED, BH_LIMIT_EXCEEDED, 0},
    {"SCRIPT_MAP", "SYSTEM", true, true, false, 0, BH_SYSTEM, 0}, /* or what reads */
    {"SCRIPT_WRITE", "SYSTEM", true, false, false, 0, BH_SYSTEM, 0},
    {"SCRIPT_KERNEL", "INVALID_KERNEL", true, true, true, BH_JUDGE_FAILED, BH_INVALID_KERNEL, 0},
    {"SCRIPT_KERNEL", "INVALID_ARGUMENT", true, true, true, BH_JUDGE_FAILED, BH_INVALID_KERNEL, 0},
    {"SCRIPT_TYPES", "COMPILE_FAILED", true, true, true, BH_JUDGE_FAILED, BH_COMPILE_FAILED, 0},
    {"SCRIPT_STREAM", "NO_DEVICE", true, true, false, 0, BH_NO_DEVICE, 0},
};
static size_t row;

/* The candidate; the same of a reference is no reference. */
static void run_row(long at) {
    setenv(cases[row].call, cases[row].status, 1);
    const bool known = judge();
    const bh_judgement *got = &candidate.judgement;
    if (known != cases[row].known || got->runs != cases[row].runs ||
        (known && got->verdict != cases[row].verdict) || got->status != cases[row].expected ||
        (cases[row].expected != BH_OK && !strstr(got->message, "as scripted")) || !got->hashed ||
        strcmp(got->name, "c") != 0) {
        BHT_FAIL("row %zu, %s: %s: %s", row, on_device ? "device" : "host",
                 bh_judge_verdict_name(got->verdict, got->status), got->message);
    }
    if (run_reference() != (cases[row].expected == BH_OK)) {
        BHT_FAIL("row %zu: the reference is taken", row);
    }
    unsetenv(cases[row].call);
    BHT_TRUE(run_reference());
}

TEST(what_the_library_refuses) {
    make_files();
    open_court(text);
    BHT_TRUE(run_reference());
    BHT_STR_EQ(court.device, "script:0");
    for (int i = 0; i < 2; i++) {
        on_device = i;
        for (row = 0; row < BHT_COUNT(cases); row++) {
            if (on_device ? cases[row].on_device : cases[row].on_host) {
                BHT_TRUE(!faulty_memory_run(LONG_MAX, run_row)); /* and nothing is forgotten */
            }
        }
    }
    setenv("SCRIPT_ADD", "1", 1);
    BHT_TRUE(judge());
    BHT_EQ(candidate.judgement.verdict, BH_JUDGE_WRONG);
    BHT_STR_EQ(candidate.judgement.output, "V"); /* the first that it writes */
    BHT_EQ(candidate.judgement.wrong, 5);
    close_court();
}

/* -- bounded memory ------------------------------------------------------------------------------
 */

/* What the trials hold. */
static uint64_t held(void) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < court.trials.count; i++) {
        for (size_t k = 0; k < task.array_count; k++) {
            const struct bhi_trial_array *array = &court.trials.list[i].arrays[k];
            bytes +=
                (array->before ? array->form.bytes : 0) + (array->expected ? array->form.bytes : 0);
        }
    }
    return bytes;
}

static void open_large(void) {
    make_files();
    open_court(of_large_arrays);
    BHT_TRUE(run_reference());
    BHT_EQ(court.trials.count, 4);
}

TEST(trials_hold_no_more_than_twice_their_arrays) {
    open_large();
    BHT_TRUE(held() <= BHI_TRIALS_LEAST + 2 * court.trials.list[0].bytes);
    BHT_TRUE(court.trials.list[0].arrays[0].before && !court.trials.list[3].arrays[0].before);
    BHT_TRUE(!court.trials.list[0].forgotten && court.trials.list[3].forgotten);
    BHT_TRUE(bhi_trials_forget(&task, &court.trials, 0)); /* before runs that are timed */
    BHT_TRUE(held() <= 2 * BHI_TRIALS_LEAST);
    close_court();
}

/* Nobody notices that something was forgotten. */
TEST(what_was_forgotten_comes_back) {
    struct bhi_weakness weak[BHI_TASK_ARRAYS];
    struct bhi_recalled known;
    size_t count;
    open_large();
    const struct bhi_trial *last = &court.trials.list[3];
    const uint64_t n = last->arrays[0].count;
    uint8_t *x = malloc(n);
    BHT_TRUE(x && bhi_expected_recall(&court, last, &known, &outcome));
    bhi_trial_write(&last->arrays[0], n, x);
    BHT_MEM_EQ(known.trial.arrays[2].expected, x, n);
    BHT_TRUE(!last->arrays[2].expected);
    bhi_recalled_free(&task, &known);
    candidate =
        (struct bhi_candidate){.file = {.path = "c.comp", .code = "void main() {}", .size = 14}};
    BHT_TRUE(bhi_candidate_judge(&court, &candidate, &outcome));
    BHT_EQ(candidate.judgement.verdict, BH_JUDGE_CORRECT);
    BHT_EQ(candidate.judgement.runs, 5);
    BHT_TRUE(bhi_weaknesses_find(&court, weak, &count, &outcome) && count == 0);
    setenv("SCRIPT_ADD", "1", 1); /* the reference computes something else now */
    BHT_TRUE(!bhi_expected_recall(&court, last, &known, &outcome));
    BHT_TRUE(outcome.called && outcome.status == BH_INVALID_ARGUMENT);
    unsetenv("SCRIPT_ADD");
    bhi_expected_close(&court);
    free(x);
    close_court();
}

/* A race shows rarely: a task may ask for more. */
TEST(a_task_says_how_often_runs_are_repeated) {
    make_files();
    open_court(text);
    BHT_TRUE(run_reference());
    BHT_EQ(task.repeats, 1);
    task.repeats = 4;
    BHT_TRUE(judge());
    BHT_EQ(candidate.judgement.verdict, BH_JUDGE_CORRECT);
    BHT_EQ(candidate.judgement.runs, 2 + 4);
    close_court();
}

/* The streams of candidates, and those whose runs are timed. */
TEST(what_streams_are_asked_for) {
    static const struct {
        uint64_t deadline_ns;
        uint32_t slowdown;
        uint64_t timed_ns;
    } rows[] = {{7, 0, 7}, {7, 3, 21}, {BH_FOREVER / 3, 3, BH_FOREVER / 3}, {0, 0, 0}};
    bh_stream_options defaults = {.struct_size = sizeof defaults};
    bh_stream *stream;
    open_court(text);
    court.selector = "gpu:1";
    court.processor = 6;
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        task.deadline_ns = rows[i].deadline_ns;
        task.compile_deadline_ns = i ? 8 : 0;
        task.memory_limit = i ? 9 : 0;
        court.slowdown = rows[i].slowdown;
        for (int timed = 0; timed < 2; timed++) {
            BHT_TRUE(
                (timed ? bhi_court_timed_stream : bhi_court_stream)(&court, &stream, &outcome));
            bh_stream_release(stream);
            BHT_STR_EQ(asked.device, "gpu:1");
            BHT_EQ(asked.isolation, BH_ISOLATION_KERNEL);
            BHT_EQ(asked.processor, timed ? 6 : 0);
            BHT_EQ(asked.deadline_ns, timed ? rows[i].timed_ns : rows[i].deadline_ns);
            BHT_EQ(asked.compile_deadline_ns, i ? 8 : defaults.compile_deadline_ns);
            BHT_EQ(asked.memory_limit, i ? 9 : defaults.memory_limit);
        }
    }
    close_court();
}

/* Who is CORRECT leaves its worker to the next one. Anybody else takes it along, and is judged by what one of
 * its own says. */
TEST(workers_are_shared_by_those_that_are_correct) {
    static const struct {
        const char *call, *status;
        unsigned streams;
        bh_isolation last;
        bh_judge_verdict verdict;
        size_t left;
    } rows[] = {
        {"SCRIPT_NONE", "OK", 1, BH_ISOLATION_STREAM, BH_JUDGE_CORRECT, 1},
        {"SCRIPT_NONE", "OK", 0, BH_ISOLATION_STREAM, BH_JUDGE_CORRECT, 1},
        {"SCRIPT_EVENT", "INVALID_KERNEL", 1, BH_ISOLATION_KERNEL, BH_JUDGE_FAILED, 0},
        {"SCRIPT_ADD", "1", 2, BH_ISOLATION_KERNEL, BH_JUDGE_WRONG, 0},
        {"SCRIPT_NONE", "OK", 1, BH_ISOLATION_STREAM, BH_JUDGE_CORRECT, 1},
    };
    make_files();
    open_court(text);
    BHT_TRUE(run_reference());
    court.shares = true;
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        setenv(rows[i].call, rows[i].status, 1);
        streams_made = 0;
        outcome = (struct bhi_judge_outcome){.status = BH_OK};
        candidate = (struct bhi_candidate){
            .file = {.path = "c.comp", .code = "void main() {}", .size = 14}};
        BHT_TRUE(bhi_candidate_judge(&court, &candidate, &outcome));
        unsetenv(rows[i].call);
        if (candidate.judgement.verdict != rows[i].verdict || court.shared_count != rows[i].left ||
            streams_made != rows[i].streams || asked.isolation != rows[i].last) {
            BHT_FAIL("row %zu: %s, %zu left, %u streams, the last with isolation %d", i,
                     bh_judge_verdict_name(candidate.judgement.verdict, candidate.judgement.status),
                     court.shared_count, streams_made, (int)asked.isolation);
        }
        BHT_TRUE(candidate.judgement.hashed);
        BHT_STR_EQ(candidate.judgement.name, "c");
    }
    bhi_court_close(&court);
    BHT_EQ(court.shared_count, 0);
    court.shares = false;
    close_court();
}

/* On a CUDA device expressions are SPIR-V, for which another device is asked. */
TEST(a_reference_runs_where_it_can) {
    bh_stream *stream;
    open_court(text);
    court.selector = "cuda:1";
    for (int i = 0; i < 4; i++) {
        task.reference = i / 2 ? BHI_REFERENCE_EVAL : BHI_REFERENCE_KERNEL;
        court.cuda = i % 2;
        BHT_TRUE(bhi_court_reference_stream(&court, &stream, &outcome));
        bh_stream_release(stream);
        BHT_STR_EQ(asked.device, i == 3 ? "" : "cuda:1");
        BHT_STR_EQ(asked.name, "judge");
    }
    task.reference = BHI_REFERENCE_KERNEL;
    court.cuda = false;
    close_court();
}

/* Noise is of the guard's, and then there is the opposite, too. */
TEST(what_kernels_are_asked_for) {
    static const uint32_t code[] = {0x07230203, 0, 0, 0, 0};
    static const bh_specialization spec = {.constant_id = 3};
    const struct bhi_kernel_file file = {.path = "d/own.spv",
                                         .code = code,
                                         .size = sizeof code,
                                         .language = BHI_LANGUAGE_SPIRV,
                                         .entry = "go",
                                         .specs = &spec,
                                         .spec_count = 1};
    open_court(text);
    for (unsigned i = 0; i < 4; i++) {
        const bool trusted = i % 2, noise = i / 2;
        struct bhi_judged_kernel kernel;
        kernels_made = 0;
        if (!bhi_judged_kernel_make(&court, &file, trusted, noise ? 6 : 0, &kernel, &outcome)) {
            BHT_FAIL("%s", outcome.message);
        }
        BHT_EQ(kernels_made, noise ? 2u : 1u);
        BHT_TRUE(!!kernel.steps[0].opposite == noise);
        BHT_EQ(kernels[1].noise, noise ? 7u : 0u);
        BHT_TRUE(!noise || kernels[0].noise == 6);
        for (unsigned k = noise ? 0 : 1; k < 2; k++) {
            BHT_EQ(kernels[k].trusted, trusted);
            BHT_STR_EQ(kernels[k].entry, "go");
            BHT_EQ(kernels[k].specialization_count, 1u);
            BHT_TRUE(kernels[k].specializations == &spec);
        }
        BHT_STR_EQ(kernel.name, "own");
        BHT_TRUE(kernel.has_content);
        bhi_judged_kernel_free(&kernel);
    }
    BHT_EQ(script_objects, 0);
    close_court();
}

/* Whatever fails: nothing is known, or all is well; nobody is called wrong. */
static void run_both(long at) {
    const bool judges = task.reference == BHI_REFERENCE_KERNEL;
    if (!run_reference() || (judges && !judge())) {
        BHT_STR_HAS(outcome.message, "out of memory");
    } else if (judges && candidate.judgement.verdict != BH_JUDGE_CORRECT) {
        BHT_FAIL("at %ld: %s", at, candidate.judgement.message);
    }
}

TEST(memory_runs_out) {
    make_files();
    for (int kind = 0; kind < 4; kind++) {
        long at = 1;
        on_device = kind % 2;
        open_court(kind < 2 ? text : of_expression);
        while (faulty_memory_run(at, run_both)) {
            at++;
        }
        BHT_GT(at, 10);
        close_court();
    }
}

BHT_AT_START(faulty_memory_set_up())

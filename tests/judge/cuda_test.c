/* CUDA candidates with real workers, on the fake driver and the fake NVRTC: what they may look like, how those end that
 * are wrong, and which of those that cheat are found. The kernels are those of cuda/cheats.c. */
#include "fixture.h"

#include "../system/fake_driver.h"
#include <bulkhead/judge.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char *folder;
static bh_detail why;
static bh_judge *judge; /* the last one that was made */
static void *cubin;     /* all kernels */
static size_t cubin_size;

static void end_judge(void) {
    bh_judge_destroy(judge);
    judge = NULL;
}

static void begin(void) {
    char path[200];
    struct stat info;
    BHT_EQ(unsetenv("CUDA_HOME"), 0);
    BHT_EQ(unsetenv("CUDA_PATH"), 0);
    fx_cuda_install("");
    folder = bht_folder();
    snprintf(path, sizeof path, "%s/libnvrtc-builtins.so.12.8", folder);
    fake_library_copy(BHT_FAKE_NVRTC_BUILTINS, path);
    snprintf(path, sizeof path, "%s/libnvrtc.so.12", folder);
    fake_library_copy(BHT_FAKE_NVRTC, path);
    BHT_EQ(setenv("BULKHEAD_NVRTC", path, 1), 0);
    snprintf(path, sizeof path, "%s/cheats.cubin", folder);
    fake_library_copy(BHT_CHEATS, path);
    FILE *file = fopen(path, "re");
    BHT_TRUE(file && fstat(fileno(file), &info) == 0);
    cubin_size = (size_t)info.st_size;
    cubin = bht_own(malloc(cubin_size));
    BHT_EQ(fread(cubin, 1, cubin_size, file), cubin_size);
    fclose(file);
}

BHT_AT_START(bht_around(begin, end_judge))

/* z = a * x + y, and where the task has an "inout" y, y = a * x + y. */
static bh_status refer(const bh_judge_case *one, bh_detail *detail, void *user) {
    const bh_judge_array *const last = &one->arrays[one->array_count - 1];
    const float *x = one->arrays[0].before, *y = one->arrays[1].before;
    float *const z = last->after, a = (float)one->pushes[0].value;
    (void)detail;
    (void)user;
    for (uint64_t i = 0; i < last->count; i++) {
        z[i] = a * x[i] + y[i];
    }
    return BH_OK;
}

#define ARRAY(name, more) "\"" name "\": {\"dtype\": \"f32\", \"shape\": [\"n\"], " more "}"
#define INPUTS                                                                                     \
    "\"in\": {" ARRAY("x", "\"fill\": \"normal\"") ", " ARRAY(                                     \
        "y", "\"fill\": \"normal\"") "},\n"                                                        \
                                     "\"out\": {" ARRAY("z", "\"abs\": 1e-5, \"rel\": 1e-5") "}"
#define IN_PLACE                                                                                   \
    "\"in\": {" ARRAY(                                                                             \
        "x", "\"fill\": \"normal\"") "},\n"                                                        \
                                     "\"inout\": {" ARRAY(                                         \
                                         "y",                                                      \
                                         "\"fill\": \"normal\", \"abs\": 1e-5, \"rel\": 1e-5") "}"

/* |rest|: more keys of the task, each with a comma in front. */
static bh_status make_with(bh_judge_options options, const char *arrays, const char *rest) {
    static char text[4096];
    end_judge();
    snprintf(text, sizeof text,
             "{\"sizes\": [{\"n\": 1000}], \"check_sizes\": [{\"n\": 1}], %s,\n"
             "\"push\": {\"a\": 2.5, \"n\": \"n\"}, \"groups\": [\"ceildiv(n, local_x)\"],\n"
             "\"limits\": {\"deadline\": \"%us\"}%s}",
             arrays, 20 * bht_slowness(), rest);
    options.struct_size = sizeof options;
    options.task_text = text;
    options.folder = folder;
    options.device = options.device ? options.device : "cuda";
    options.reference = strstr(rest, "\"reference\"") ? NULL : refer;
    const bh_status status = bh_judge_create(&options, &judge, &why);
    return status == BH_OK ? bh_judge_prepare(judge, &why) : status;
}

static void make(const char *arrays, const char *rest) {
    if (make_with((bh_judge_options){0}, arrays, rest) != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
}

static bh_judgement run(bh_judge_candidate given) {
    bh_judgement out = {.struct_size = sizeof out};
    given.struct_size = sizeof given;
    if (bh_judge_run(judge, &given, &out, &why) != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
    return out;
}

/* |words|: of the message. */
static void ends(bh_judge_candidate given, const char *verdict, const char *words) {
    const bh_judgement out = run(given);
    const char *const name = bh_judge_verdict_name(out.verdict, out.status);
    if (strcmp(name, verdict) != 0 || !strstr(out.message, words)) {
        BHT_FAIL("%s: %s: %s", given.entry ? given.entry : "it", name, out.message);
    }
}

static bh_judge_candidate kernel(const char *entry) {
    return (bh_judge_candidate){.code = cubin, .size = cubin_size, .entry = entry};
}

static bh_judge_candidate text(const char *code) {
    return (bh_judge_candidate){.code = code};
}

struct row {
    const char *entry, *verdict, *words;
};

static void judge_rows(const struct row *rows, size_t count) {
    make(INPUTS, ", \"block\": 64");
    for (size_t i = 0; i < count; i++) {
        ends(kernel(rows[i].entry), rows[i].verdict, rows[i].words);
    }
}

#define ROWS(...)                                                                                  \
    do {                                                                                           \
        static const struct row rows[] = {__VA_ARGS__};                                            \
        judge_rows(rows, BHT_COUNT(rows));                                                         \
    } while (0)

/* -- what a candidate may look like ----------------------------------------------------------- */

#define PARAMETERS "(const float *x, float *y, float a, unsigned n)"
#define SOURCE     "__global__ void saxpy" PARAMETERS " {}\n"
#define PTX(block)                                                                                 \
    ".version 6.0\n.target sm_60\n.address_size 64\n"                                              \
    ".visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n) " block     \
    " { ret; }\n"

TEST(each_form_of_a_kernel_is_taken) {
    make(IN_PLACE, "");
    ends(text("// bulkhead: block=64\n" SOURCE), "CORRECT", "");
    ends(text("// bulkhead: block=32,1 grid=ceildiv(n,32) entry=saxpy shared=1024\n" SOURCE),
         "CORRECT", "");
    ends(
        text("// bulkhead: {\"block\": 64, \"parameters\": [\"x\", \"y\", \"a\", \"n\"]}\n" SOURCE),
        "CORRECT", "");
    ends(text("// bulkhead: block=64\n" PTX("")), "CORRECT", "");
    ends(text("{\"source\": \"__global__ void saxpy" PARAMETERS " {}\", \"block\": [64]}"),
         "CORRECT", "");
    ends((bh_judge_candidate){.code = SOURCE, .language = BH_LANGUAGE_CUDA}, "BINDING_MISMATCH",
         "nothing says how many threads");
    make(INPUTS, ", \"block\": 64");
    ends(kernel("honest"), "CORRECT", "");
    ends(kernel(NULL), "INVALID_ARGUMENT", "\"entry\"");
    ends(kernel("nobody"), "INVALID_KERNEL", "nobody");
    bht_put("{\"kernel\": \"cheats.cubin\", \"entry\": \"honest\", \"block\": 32}",
            "%s/honest.json", folder);
    char path[200];
    snprintf(path, sizeof path, "%s/honest.json", folder);
    ends((bh_judge_candidate){.path = path}, "CORRECT", "");
}

TEST(a_kernel_says_its_own_block) {
    make(IN_PLACE, ", \"block\": 1000");
    /* The device takes no more than 1,024 threads: which block it was shows in what is too much. */
    ends(text(PTX(".maxntid 1024, 2")), "LIMIT_EXCEEDED", "2048");
    ends(text(PTX(".reqntid 1024, 3 .maxntid 1024, 2")), "LIMIT_EXCEEDED", "3072");
    ends(text("// bulkhead: block=1024,4\n" PTX(".maxntid 1024, 2")), "LIMIT_EXCEEDED", "4096");
    ends(text("// bulkhead: block=64\n" PTX(".reqntid 32")), "BINDING_MISMATCH",
         "\"block\": its blocks have 32x1x1 threads");
    ends(text("// bulkhead: shared=4294967296\n" SOURCE), "BINDING_MISMATCH", "more than 4 GiB");
    ends(text("// bulkhead: shared=1000000\n" SOURCE), "LIMIT_EXCEEDED", "shared memory");
    ends(text(SOURCE), "CORRECT", "");
}

TEST(shared_memory_is_as_much_as_the_plan_says) {
    char path[200];
    make(INPUTS, "");
    bht_put("{\"kernel\": \"cheats.cubin\", \"entry\": \"wants_shared\", \"block\": 32,"
            " \"shared\": \"n - n + 128\"}",
            "%s/shared.json", folder);
    snprintf(path, sizeof path, "%s/shared.json", folder);
    ends((bh_judge_candidate){.path = path}, "CORRECT", "");
    bht_put("{\"kernel\": \"cheats.cubin\", \"entry\": \"wants_shared\", \"block\": 32}",
            "%s/shared.json", folder);
    ends((bh_judge_candidate){.path = path}, "WRONG", "");
}

TEST(parameters_are_in_order) {
    make(IN_PLACE, ", \"block\": 64, \"parameters\": [\"x\", \"y\", \"a\", \"n\"]");
    ends(text(SOURCE), "CORRECT", "");
    ends(text("// bulkhead: parameters=x,y,n,a\n" SOURCE), "BINDING_MISMATCH", "'a' is u32");
    ends(text("// bulkhead: parameters=x,a,y,n\n" SOURCE), "BINDING_MISMATCH",
         "parameter 2, y, has 4 bytes and is no pointer");
    ends(text("// bulkhead: parameters=x,y,a\n" SOURCE), "BINDING_MISMATCH",
         "it takes 4 parameters, and there are 3: x, y, a");
    ends(text("// bulkhead: parameters=x,y,a,m\n" SOURCE), "BINDING_MISMATCH",
         "parameter 3: there is no array and no push constant \"m\"");
    ends(text("// bulkhead: parameters=x,x,a,n\n" SOURCE), "INVALID_ARGUMENT",
         "\"x\" is there twice");
    ends(text("// bulkhead: parameters=a,y,a,n\n" SOURCE), "INVALID_ARGUMENT",
         "\"a\" is there twice");
    ends(text("// bulkhead: block=64 colour=red\n" SOURCE), "INVALID_ARGUMENT", "'colour=red'");
    make(IN_PLACE, ", \"block\": 64, \"parameters\": [\"y\", \"x\", \"a\", \"n\"]");
    ends(text(SOURCE), "DEVICE_FAULT", ""); /* it writes x */
    BHT_EQ(make_with((bh_judge_options){0}, IN_PLACE, ", \"parameters\": [\"y\", \"a\", \"n\"]"),
           BH_INVALID_ARGUMENT);
    BHT_STR_HAS(why.message, "\"parameters\": array \"x\" is not there");
}

/* The task has a bool p, a whole q below 0, a real r and drawn s, which may be below 0. */
TEST(a_number_is_as_wide_as_its_parameter) {
    static const struct {
        const char *types[4], *verdict, *words;
    } cases[] = {
        /* It computes nothing, so it is WRONG if it runs. */
        {{".u8 p", ".u32 q", ".f32 r", ".s32 s"}, "WRONG", ""},
        {{".u32 p", ".s64 q", ".f64 r", ".u64 s"}, "WRONG", ""},
        {{".b32 p", ".b32 q", ".b64 r", ".b32 s"}, "WRONG", ""},
        {{".u8 p", ".f32 q", ".f32 r", ".f32 s"}, "WRONG", ""},
        {{".u32 p", ".u32 q", ".u32 r", ".u32 s"}, "BINDING_MISMATCH", "'r' is u32"},
        {{".u32 p", ".u8 q", ".f32 r", ".align 4 .b8 s[12]"},
         "BINDING_MISMATCH",
         "parameter 6, s, has 12 bytes and is no number"},
    };
    static const char task[] =
        "{\"sizes\": [{\"n\": 10}], " INPUTS ", \"push\": {\"p\": true, \"q\": -3, \"r\": 2.5,"
        " \"s\": {\"integers\": [-5, -1]}}, \"groups\": [1], \"block\": 1}";
    bh_judge_options options = {.struct_size = sizeof options};
    options.task_text = task;
    options.device = "cuda";
    options.reference = refer;
    BHT_EQ(bh_judge_create(&options, &judge, &why), BH_OK);
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const char *const *types = cases[i].types;
        char code[512];
        snprintf(code, sizeof code,
                 ".version 6.0\n.target sm_60\n.entry nothing(.param .u64 x, .param .u64 y,"
                 " .param .u64 z, .param %s, .param %s, .param %s, .param %s) { ret; }",
                 types[0], types[1], types[2], types[3]);
        ends(text(code), cases[i].verdict, cases[i].words);
    }
}

TEST(several_kernels_with_scratch_are_one_candidate) {
    char path[200];
    make(INPUTS, "");
    snprintf(path, sizeof path, "%s/plan.json", folder);
    for (int past = 0; past < 2; past++) {
        bht_put(
            past ? "{\"kernels\": [{\"kernel\": \"cheats.cubin\", \"entry\": \"first\", \"block\": "
                   "64, \"parameters\": [\"x\", \"T\", \"a\", \"n\"]},\n"
                   "{\"kernel\": \"cheats.cubin\", \"entry\": \"second_past\", \"block\": 32, "
                   "\"parameters\": [\"n\", \"T\", \"y\", \"z\"]}],\n"
                   "\"scratch\": {\"T\": {\"dtype\": \"f32\", \"shape\": [\"n\"]}}}"
                 : "{\"kernels\": [{\"kernel\": \"cheats.cubin\", \"entry\": \"first\", \"block\": "
                   "64, \"parameters\": [\"x\", \"T\", \"a\", \"n\"]},\n"
                   "{\"kernel\": \"cheats.cubin\", \"entry\": \"second\", \"block\": 32, "
                   "\"parameters\": [\"n\", \"T\", \"y\", \"z\"]}],\n"
                   "\"scratch\": {\"T\": {\"dtype\": \"f32\", \"shape\": [\"n\"]}}}",
            "%s/plan.json", folder);
        ends((bh_judge_candidate){.path = path}, past ? "STRAY_WRITE" : "CORRECT",
             past ? "past the end of T" : "");
    }
}

/* The default device, of which a reference is asked where nothing else is known, takes 65,535. */
TEST(a_grid_is_as_large_as_a_cuda_device_takes) {
    static const char task[] =
        "{\"sizes\": [{\"n\": 10}], " INPUTS ", \"push\": {\"a\": 2.5, \"n\": \"n\"},"
        " \"groups\": [70000], \"block\": 1, \"fills\": [], \"reference\": {\"kernel\": "
        "\"r.json\"}}";
    bh_judge_options options = {.struct_size = sizeof options};
    bht_put("{\"kernel\": \"cheats.cubin\", \"entry\": \"honest\"}", "%s/r.json", folder);
    options.task_text = task;
    options.folder = folder;
    options.device = "cuda";
    BHT_EQ(bh_judge_create(&options, &judge, &why), BH_OK);
    ends(kernel("honest"), "CORRECT", "");
}

/* -- those that are wrong, and those that cheat -------------------------------------------------- */

TEST(a_wrong_or_broken_kernel_ends_alone) {
    ROWS({"honest", "CORRECT", ""}, {"half", "WRONG", "z[0] is "}, {"swapped", "WRONG", ""},
         {"traps", "DEVICE_FAULT", "CUDA_ERROR_LAUNCH_FAILED"},
         {"wild", "DEVICE_FAULT", "CUDA_ERROR_ILLEGAL_ADDRESS"}, {"honest", "CORRECT", ""});
}

/* Elsewhere it would be refused the third time. */
TEST(a_broken_kernel_is_judged_as_often_as_it_is_given) {
    ROWS({"wild", "DEVICE_FAULT", "CUDA_ERROR_ILLEGAL_ADDRESS"},
         {"wild", "DEVICE_FAULT", "CUDA_ERROR_ILLEGAL_ADDRESS"},
         {"wild", "DEVICE_FAULT", "CUDA_ERROR_ILLEGAL_ADDRESS"});
}

TEST(an_endless_kernel_is_killed) {
    make(INPUTS, ", \"block\": 64");
    end_judge();
    bh_judge_options options = {.struct_size = sizeof options};
    options.task_text = "{\"sizes\": [{\"n\": 10}], " INPUTS
                        ", \"push\": {\"a\": 2.5, \"n\": \"n\"}, \"groups\": [1],"
                        " \"block\": 64, \"limits\": {\"deadline\": \"200ms\"}}";
    options.device = "cuda:0";
    options.reference = refer;
    BHT_EQ(bh_judge_create(&options, &judge, &why), BH_OK);
    ends(kernel("endless"), "DEADLINE", "200 ms");
}

TEST(an_input_cannot_be_written) {
    ROWS({"writes_input", "DEVICE_FAULT", "CUDA_ERROR_ILLEGAL_ADDRESS"});
}

TEST(a_write_on_either_side_of_an_output_is_seen) {
    ROWS({"no_bound", "STRAY_WRITE", "past the end of z"},
         {"writes_in_front", "STRAY_WRITE", "in front of z"});
}

TEST(a_read_behind_an_array_is_seen) {
    ROWS({"reads_past", "STRAY_READ", "past the end of y"},
         {"reads_past_output", "STRAY_READ", "past the end of z"});
}

TEST(a_kernel_that_looks_for_noise_is_wrong) {
    ROWS({"looks_behind", "WRONG", ""}, {"looks_at_output", "WRONG", ""});
}

TEST(nothing_of_others_is_in_the_memory_that_it_reaches) {
    ROWS({"finds_nothing", "CORRECT", ""});
}

TEST(what_an_earlier_run_has_left_does_not_help) {
    ROWS({"remembers", "WRONG", ""});
}

TEST(each_candidate_has_a_worker_of_its_own) {
    ROWS({"leaves_a_mark", "CORRECT", ""}, {"finds_no_mark", "CORRECT", ""});
}

/* -- times --------------------------------------------------------------------------------------- */

/* Beside "heavy". The check has the size 1, timed runs have not: that is how "puts_off" tells them apart. */
static void make_timed(void) {
    fx_cuda_install("FAKE_CUDA_GRANULARITY=65536\n");
    bht_put("{\"kernel\": \"cheats.cubin\", \"entry\": \"heavy\","
            " \"parameters\": [\"n\", \"x\", \"y\", \"z\", \"a\"]}",
            "%s/heavy.json", folder);
    const bh_judge_options options = {.timed = true, .warm = true, .timed_runs = 5};
    if (make_with(options, INPUTS,
                  ", \"block\": 64, \"fills\": [],"
                  " \"reference\": {\"kernel\": \"heavy.json\"}") != BH_OK) {
        BHT_FAIL("%s", why.message);
    }
}

TEST(a_kernel_beside_itself_is_timed_by_the_device) {
    char path[200];
    make_timed();
    snprintf(path, sizeof path, "%s/heavy.json", folder);
    const bh_judgement out = run((bh_judge_candidate){.path = path});
    BHT_EQ(out.verdict, BH_JUDGE_CORRECT);
    BHT_EQ(out.timing_count, 1);
    BHT_TRUE(out.timings[0].device && out.timings[0].median_ns > 0);
}

TEST(a_time_that_a_kernel_forges_is_found) {
    make_timed();
    ends(kernel("forges"), "TIMING_FORGED", "its worker claims ");
}

TEST(work_that_is_put_off_is_found) {
    make_timed();
    ends(kernel("puts_off"), "TIMING_FORGED",
         "its output z has changed after its run was reported to be complete");
}

/* -- tasks and devices that do not fit ------------------------------------------------------------ */

TEST(what_does_not_fit_is_refused) {
    static const struct {
        const char *device, *rest;
        bool timed, guard_cost;
        const char *words;
    } cases[] = {
        {"lavapipe:0", ", \"block\": 64", false, false, "\"block\": it is for CUDA kernels"},
        {"lavapipe:0", ", \"parameters\": [\"x\", \"y\", \"z\"]", false, false,
         "\"parameters\": it is for CUDA kernels"},
        {"cuda", ", \"robust\": true", false, false, "\"robust\": a CUDA kernel has no guard"},
        {"cuda", ", \"block\": 0", false, false, "\"block\": it must be a number of threads"},
        {"cuda", ", \"block\": [1, 2, 3, 4]", false, false, "\"block\": it must be"},
        {"cuda", ", \"block\": [\"n\"]", false, false, "\"block\": it must be"},
        {"cuda", ", \"parameters\": []", false, false, "\"parameters\": it must be an array"},
        {"cuda", ", \"parameters\": [\"x\", 1]", false, false, "\"parameters\" [1]: it must be"},
        {"cuda", ", \"parameters\": [\"x\", \"w\"]", false, false,
         "\"parameters\" [1]: there is no array and no push constant \"w\""},
        {"cuda", ", \"reference\": {\"kernel\": \"r.comp\"}", false, false,
         "a CUDA device runs CUDA C++"},
        {"lavapipe:0", ", \"reference\": {\"kernel\": \"r.cu\"}", false, false,
         "it is for CUDA, and the device is not"},
        {"cuda", ", \"reference\": {\"eval\": \"z = x + y\"}", true, false,
         "needs a CUDA kernel as the reference"},
        {"cuda", ", \"reference\": {\"kernel\": \"r.cu\"}", true, true, "they have no guard"},
    };
    bht_put("#version 450\nvoid main() {}\n", "%s/r.comp", folder);
    bht_put(SOURCE, "%s/r.cu", folder);
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const bh_judge_options options = {
            .device = cases[i].device, .timed = cases[i].timed, .guard_cost = cases[i].guard_cost};
        BHT_EQ(make_with(options, INPUTS, cases[i].rest), BH_INVALID_ARGUMENT);
        BHT_STR_HAS(why.message, cases[i].words);
    }
}

TEST(a_candidate_of_the_other_kind_is_told_where_to_go) {
    make(IN_PLACE, "");
    ends(text("#version 450\nvoid main() {}\n"), "INVALID_KERNEL", "judge it on a Vulkan device");
    BHT_EQ(make_with((bh_judge_options){.device = "lavapipe:0"}, IN_PLACE, ""), BH_OK);
    ends(text(SOURCE), "INVALID_KERNEL", "judge it on a CUDA device");
    ends(text(PTX("")), "INVALID_KERNEL", "judge it on a CUDA device");
    ends(text("// bulkhead: block=64\n#version 450\nvoid main() {}\n"), "INVALID_ARGUMENT",
         "\"block\": it is for CUDA kernels");
}

/* Plans of candidates: what is taken, what is refused and where, and which files one may name. */
#include "judge/check/form.h"

#include "harness.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char task_text[] =
    "{\"sizes\": [{\"n\": 100, \"m\": 3}], \"groups\": [1],\n"
    "\"in\": {\"X\": {\"dtype\": \"f32\", \"shape\": [\"n\"], \"fill\": \"uniform\"}},\n"
    "\"out\": {\"Y\": {\"dtype\": \"f32\", \"shape\": [\"n\"]}},\n"
    "\"reference\": {\"kernel\": \"reference.comp\"}%s}";

static const char *folder;
static struct bhi_task task;
static struct bhi_complaint complaint;
static struct bhi_judge_outcome outcome;

static void read_task(const char *more) {
    char text[1024];
    snprintf(text, sizeof text, task_text, more);
    bhi_task_free(&task);
    if (!bhi_task_parse("t.json", folder, text, &task, &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
}

static void begin(void) {
    folder = bht_folder();
    read_task("");
}

static void end(void) {
    bhi_task_free(&task);
}

BHT_AT_START(bht_around(begin, end))

static struct bhi_judge_plan *parse(const char *text, bool in_source) {
    const struct bhi_judge_plan_place place = {text, strlen(text), 5};
    struct bhi_judge_plan *plan = NULL;
    complaint.text[0] = '\0';
    BHT_EQ(bhi_judge_plan_parse("c.json", &place, in_source, &task, &plan, &complaint), !!plan);
    return plan;
}

/* -- what a plan may say -------------------------------------------------------------------------- */

TEST(a_plan_has_kernels_and_scratch) {
    struct bhi_judge_plan *plan =
        parse("{\"kernels\": [{\"kernel\": \"a.comp\", \"groups\": [\"ceildiv(n, local_x)\", 2],\n"
              " \"D\": {\"N\": 4, \"R\": 0.5, \"T\": \"float\", \"ON\": true},\n"
              " \"spec\": {\"7\": \"u32:64\"}, \"I\": [\"lib\"]},\n"
              "{\"source\": \"void main\", \"entry\": \"go\", \"language\": \"hlsl\"}],\n"
              "\"scratch\": {\"tmp\": {\"dtype\": \"i32\", \"shape\": [\"n\", 2]}}}",
              false);
    BHT_TRUE(plan);
    BHT_EQ(plan->kernel_count, 2);
    const struct bhi_judge_plan_kernel *a = &plan->kernels[0], *b = &plan->kernels[1];
    BHT_STR_EQ(a->path, "a.comp");
    BHT_TRUE(a->has_groups && !b->has_groups);
    BHT_STR_EQ(a->groups.along[0].expression, "ceildiv(n, local_x)");
    BHT_EQ(a->groups.along[1].value, 2);
    BHT_EQ(a->groups.along[2].value, 1);
    BHT_EQ(a->source.define_count, 4);
    const char *const values[] = {"4", "0.5", "float"};
    for (size_t i = 0; i < BHT_COUNT(values); i++) {
        BHT_STR_EQ(a->source.defines[i].value, values[i]);
    }
    BHT_TRUE(!a->source.defines[3].value);
    BHT_EQ(a->spec_count, 1);
    BHT_EQ(a->specs[0].constant_id, 7);
    BHT_EQ(a->specs[0].bits, 64);
    BHT_STR_EQ(a->includes[0], "lib");
    BHT_STR_EQ(a->fields[BHI_PLAN_GROUPS], "c.json:5: \"kernels\" [0] \"groups\"");
    BHT_STR_EQ(b->fields[BHI_PLAN_KERNEL], "c.json:8: \"kernels\" [1] \"kernel\"");
    BHT_STR_EQ(b->text, "void main");
    BHT_STR_EQ(b->entry, "go");
    BHT_EQ(b->language, BHI_LANGUAGE_HLSL);
    BHT_EQ(plan->scratch_count, 1);
    BHT_STR_EQ(plan->scratch[0].array.place, "tmp");
    BHT_EQ(plan->scratch[0].array.dtype, BH_DTYPE_I32);
    struct bhi_array forms[BHI_PLAN_SCRATCH];
    BHT_TRUE(bhi_judge_plan_shapes(plan, &task, 0, 800, forms, &complaint));
    BHT_EQ(forms[0].bytes, 800);
    bhi_judge_plan_free(plan);
}

TEST(what_is_wrong_is_named_with_its_line) {
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"{", "c.json:5: not JSON: "},
        {"{\n\"kernel\" 1}", "c.json:6: not JSON: "},
        {"[]", "c.json:5: it must be an object"},
        {"{\"kernel\": \"a\", \"kernel\": \"b\"}", "not JSON: duplicate"},
        {"{\"groops\": [1]}", "c.json:5: \"groops\": unknown key: did you mean \"groups\"?"},
        {"{}", "there is no \"kernel\" and no \"source\""},
        {"{\"kernel\": \"\"}", "\"kernel\": it must be a string that is not empty"},
        {"{\"kernel\": \"a\", \"source\": \"b\"}", "exclude each other"},
        {"{\"kernel\": \"a\", \"language\": \"spirv\"}", "\"language\": it must be \"glsl\","},
        {"{\"kernel\": \"a\",\n\"groups\": [0]}", "c.json:6: \"groups\" [0]: it must be a whole"},
        {"{\"kernel\": \"a\", \"groups\": [1, 1, 1, 1]}", "\"groups\": it must be an array of"},
        {"{\"kernel\": \"a\", \"D\": [\"A\"]}", "\"D\": it must be an object"},
        {"{\"kernel\": \"a\", \"D\": {\"A\": false}}", "\"D\" \"A\": it must be a string"},
        {"{\"kernel\": \"a\", \"D\": {\"1A\": 1}}", "\"D\" \"1A\": '1A' is not a name"},
        {"{\"kernel\": \"a\", \"D\": {\"A\": \"1\\n#include\"}}", "more than one line"},
        {"{\"kernel\": \"a\", \"spec\": {\"x\": \"u32:1\"}}", "\"spec\" \"x\": "},
        {"{\"kernel\": \"a\", \"spec\": {\"0\": 5}}", "\"spec\" \"0\": "},
        {"{\"kernel\": \"a\", \"spec\": {\"0\": \"u32:1\", \"00\": \"u32:1\"}}", "given twice"},
        {"{\"kernel\": \"a\", \"I\": \"lib\"}", "\"I\": it must be an array"},
        {"{\"kernel\": \"a\", \"I\": [1]}", "\"I\" [0]: it must be the name of a file"},
        {"{\"kernels\": []}", "\"kernels\": it must be an array of one to 16 kernels"},
        {"{\"kernels\": [{\"kernel\": \"a\"}, {\"groups\": [1]}]}",
         "\"kernels\" [1]: there is no \"kernel\""},
        {"{\"kernels\": [{\"kernel\": \"a\", \"scratch\": {}}]}",
         "\"kernels\" [0] \"scratch\": unkn"},
        {"{\"kernels\": [{\"kernel\": \"a\"}], \"groups\": [1]}",
         "\"groups\": it belongs to a kernel: write it in \"kernels\""},
        {"{\"kernel\": \"a\", \"scratch\": []}", "\"scratch\": it must be an object of bindings"},
        {"{\"kernel\": \"a\", \"scratch\": {\"t\": {\"dtype\": \"f12\", \"shape\": []}}}",
         "\"scratch\" \"t\" \"dtype\": it must be one of"},
        {"{\"kernel\": \"a\", \"scratch\": {\"t\": {\"dtype\": \"f32\"}}}",
         "\"t\" \"shape\": it must"},
        {"{\"kernel\": \"a\", \"scratch\": {\"t\": {\"dtype\": \"f32\", \"shape\": [], \"fill\": "
         "1}}}",
         "\"scratch\" \"t\" \"fill\": unknown key"},
        {"{\"kernel\": \"a\", \"scratch\": {\"X\": {\"dtype\": \"f32\", \"shape\": []}}}",
         "\"scratch\" \"X\": the task has an array of this name"},
        {"{\"kernel\": \"a\", \"scratch\": {\"a=b\": {\"dtype\": \"f32\", \"shape\": []}}}",
         "no binding is called so"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        BHT_TRUE(!parse(cases[i].text, false));
        BHT_STR_HAS(complaint.text, cases[i].why);
        BHT_TRUE(!strncmp(complaint.text, "c.json:", 7));
    }
    bhi_judge_plan_free(parse("{\"groups\": [1]}", true)); /* of the source in which it is */
    BHT_STR_EQ(complaint.text, "");
}

TEST(a_plan_may_be_short) {
    struct bhi_judge_plan *plan = parse("  block=16,16,2  shared=n*4 grid=ceildiv(n,(16)),max(n,m) "
                                        "entry=scale<float,2> parameters=X,Y,n\t",
                                        true);
    BHT_TRUE(plan);
    const struct bhi_judge_plan_kernel *it = &plan->kernels[0];
    BHT_EQ(it->cuda.block[0], 16);
    BHT_EQ(it->cuda.block[1], 16);
    BHT_EQ(it->cuda.block[2], 2);
    BHT_STR_EQ(it->cuda.shared.expression, "n*4");
    BHT_STR_EQ(it->groups.along[0].expression, "ceildiv(n,(16))");
    BHT_STR_EQ(it->groups.along[1].expression, "max(n,m)");
    BHT_EQ(it->groups.along[2].value, 1);
    BHT_STR_EQ(it->entry, "scale<float,2>");
    BHT_EQ(it->cuda.parameter_count, 3);
    BHT_STR_EQ(it->cuda.parameters[2], "n");
    BHT_STR_EQ(it->cuda.field, "c.json:5: \"parameters\"");
    bhi_judge_plan_free(plan);
    plan = parse("block=256", true);
    BHT_TRUE(plan && !plan->kernels[0].has_groups && !plan->kernels[0].entry);
    BHT_EQ(plan->kernels[0].cuda.block[0], 256);
    BHT_EQ(plan->kernels[0].cuda.block[1], 1);
    bhi_judge_plan_free(plan);
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"block=256 color=red", "c.json:5: 'color=red': neither JSON nor one of block=256"},
        {"block=1 block=2", "'block=2'"},
        {"block=", "'block='"},
        {"block", "'block'"},
        {"block = 256", "'block'"},
        {"block=0", "c.json:5: \"block\": it must be a number of threads from 1 to 1024"},
        {"block=1,2,3,4", "\"block\": it must be"},
        {"block=64,", "\"block\": it must be"},
        {"block=1025", "\"block\": it must be"},
        {"grid=0", "\"groups\" [0]: it must be a whole number"},
        {"shared=0", "\"shared\": it must be a whole number"},
        {"parameters=X,,n", "\"parameters\" [1]: it must be the name"},
        {"parameters=X,n,X", "\"parameters\" [2]: \"X\" is there twice"},
        {"entry=5", "\"entry\": it must be a string"},
        {"[]", "'[]'"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        BHT_TRUE(!parse(cases[i].text, true));
        BHT_STR_HAS(complaint.text, cases[i].why);
    }
    BHT_TRUE(!parse("block=256", false)); /* a file of its own is JSON */
    BHT_STR_HAS(complaint.text, "not JSON");
}

/* A plan with |count| times |item|, separated by commas; %zu is its number. */
static bool takes(const char *before, const char *item, size_t count, const char *after) {
    char text[8192], one[128];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", before);
    for (size_t i = 0; i < count; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(one, sizeof one, item, i);
#pragma GCC diagnostic pop
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? "," : "", one);
    }
    snprintf(text + used, sizeof text - used, "%s", after);
    struct bhi_judge_plan *plan = parse(text, true);
    bhi_judge_plan_free(plan);
    return plan;
}

TEST(as_many_as_there_may_be) {
    static const struct {
        const char *before, *item, *after;
        size_t most;
    } cases[] = {
        {"{\"kernels\": [", "{\"groups\": [1%zu]}", "]}", BHI_PLAN_KERNELS},
        {"{\"scratch\": {", "\"t%zu\": {\"dtype\": \"u8\", \"shape\": []}", "}}", BHI_PLAN_SCRATCH},
        {"{\"spec\": {", "\"%zu\": \"u32:1\"", "}}", BHI_PLAN_SPECS},
        {"{\"I\": [", "\"f%zu\"", "]}", BHI_PLAN_INCLUDES},
        {"{\"D\": {", "\"A%zu\": 1", "}}", BHI_MAX_DEFINES},
        {"{\"parameters\": [", "\"p%zu\"", "]}", BHI_CUDA_LIST},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        BHT_TRUE(takes(cases[i].before, cases[i].item, cases[i].most, cases[i].after));
        BHT_TRUE(!takes(cases[i].before, cases[i].item, cases[i].most + 1, cases[i].after));
    }
}

TEST(the_plan_of_a_source_is_on_one_line) {
    static const struct {
        const char *source, *text;
        size_t line;
    } cases[] = {
        {"// bulkhead: {}\n#version 450\n", " {}", 1},
        {"#version 450\n \t//bulkhead:{}", "{}", 2},
        {"// bulkhead\n// a bulkhead: {}\nint bulkhead; // bulkhead: {}\n/", NULL, 0},
        {"", NULL, 0},
        {"// bulkhead", NULL, 0},
    };
    struct bhi_judge_plan_place place;
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const char *const source = cases[i].source;
        BHT_TRUE(bhi_judge_plan_find("a.comp", source, strlen(source), &place, &complaint));
        BHT_EQ(!place.text, !cases[i].text);
        BHT_EQ(place.line, cases[i].line);
        if (place.text) {
            BHT_EQ(place.length, strlen(cases[i].text));
            BHT_MEM_EQ(place.text, cases[i].text, place.length);
        }
    }
    static const char two[] = "// bulkhead: {}\n\n// bulkhead: {}\n";
    BHT_TRUE(!bhi_judge_plan_find("a.comp", two, strlen(two), &place, &complaint));
    BHT_STR_EQ(complaint.text, "a.comp:3: a second plan: the first is on line 1");
}

/* -- how much scratch ----------------------------------------------------------------------------- */

static bool has_room(const char *limits, uint64_t bytes, uint64_t arrays) {
    struct bhi_array forms[BHI_PLAN_SCRATCH];
    char text[200];
    read_task(limits);
    snprintf(text, sizeof text,
             "{\"scratch\": {\"a\": {\"dtype\": \"u8\", \"shape\": [1]},\n"
             "\"b\": {\"dtype\": \"u8\", \"shape\": [%llu]}}}",
             (unsigned long long)bytes - 1);
    struct bhi_judge_plan *plan = parse(text, true);
    BHT_TRUE(plan);
    const bool fits = bhi_judge_plan_shapes(plan, &task, 0, arrays, forms, &complaint);
    if (!fits) {
        BHT_STR_HAS(complaint.text, "more than ");
        BHT_STR_HAS(complaint.text, "(with n=100, m=3)");
    }
    bhi_judge_plan_free(plan);
    return fits;
}

TEST(scratch_is_limited) {
    const uint64_t mib = 1 << 20;
    BHT_TRUE(has_room("", 16 * mib, 10) && !has_room("", 16 * mib + 1, 10));
    BHT_TRUE(has_room("", 80 * mib, 10 * mib) && !has_room("", 80 * mib + 1, 10 * mib));
    static const char two[] = ", \"limits\": {\"scratch\": \"2K\"}";
    BHT_TRUE(has_room(two, 2048, 10 * mib) && !has_room(two, 2049, 10 * mib));
    BHT_TRUE(!has_room(", \"limits\": {\"scratch\": \"0\"}", 2, 10));
    BHT_TRUE(has_room(", \"limits\": {\"scratch\": \"none\"}", UINT64_C(1) << 40, 10));
}

TEST(a_shape_that_a_size_does_not_have) {
    struct bhi_array forms[BHI_PLAN_SCRATCH];
    struct bhi_judge_plan *plan =
        parse("{\"scratch\": {\"a\": {\"dtype\": \"u8\",\n\"shape\": [\"n - 100\"]}}}", true);
    BHT_TRUE(plan && !bhi_judge_plan_shapes(plan, &task, 0, 10, forms, &complaint));
    BHT_STR_EQ(complaint.text,
               "c.json:5: \"scratch\" \"a\" \"shape\": dimension 0 is 0 (with n=100, m=3)");
    bhi_judge_plan_free(plan);
}

/* -- its files ------------------------------------------------------------------------------------ */

static void put(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    BHT_TRUE(file && fputs(text, file) >= 0);
    BHT_EQ(fclose(file), 0);
}

static struct bhi_judged_form form;

/* Reads c.json with this |text|. */
static bool read_form(const char *text, struct bhi_kernel_file file) {
    char path[256];
    snprintf(path, sizeof path, "%s/c.json", folder);
    put("c.json", text);
    file.path = path;
    bhi_judged_form_free(&form);
    return bhi_judged_form_read(&file, &task, &form, &outcome);
}

static void make_files(void) {
    char path[256], to[256];
    snprintf(path, sizeof path, "%s/lib", folder);
    BHT_EQ(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/inc", folder);
    BHT_EQ(mkdir(path, 0700), 0);
    put("a.comp", "// a\n");
    put("lib/b.comp", "// b\n");
    put("reference.comp", "// r\n");
    snprintf(to, sizeof to, "%s/link.comp", folder);
    BHT_EQ(symlink("/etc/passwd", to), 0);
    snprintf(to, sizeof to, "%s/linked", folder);
    BHT_EQ(symlink("/etc", to), 0);
}

/* What waits for the pipe waits for ever. */
TEST_WITH(a_plan_names_files_of_its_folder_alone, 10, 0) {
    static const struct {
        const char *name, *why;
    } cases[] = {
        {"a.comp", NULL},
        {"lib/b.comp", NULL},
        {"./lib//b.comp", NULL},
        {"/etc/passwd", "it must be in the candidate's folder"},
        {"../a.comp", "it must be in the candidate's folder"},
        {"lib/../a.comp", "it must be in the candidate's folder"},
        {"lib/..", "it must be in the candidate's folder"},
        {"link.comp", "a symbolic link"},
        {"linked/passwd", "a symbolic link"},
        {"none.comp", "No such file"},
        {"pipe.comp", "not a regular file"}, /* nobody waits for who writes it */
        {"reference.comp", "is the task's reference"},
        {"lib/./../reference.comp", "it must be in the candidate's folder"},
    };
    char pipe[256];
    make_files();
    snprintf(pipe, sizeof pipe, "%s/pipe.comp", folder);
    BHT_EQ(mkfifo(pipe, 0600), 0);
    for (size_t i = 0; i < 2 * BHT_COUNT(cases); i++) {
        char text[200];
        const bool included = i % 2;
        snprintf(text, sizeof text, "{\"%s, \"%s\": %s\"%s\"%s}",
                 included ? "kernel\": \"a.comp\"" : "language\": \"glsl\"",
                 included ? "I" : "kernel", included ? "[" : "", cases[i / 2].name,
                 included ? "]" : "");
        const bool good = read_form(text, (struct bhi_kernel_file){.size = 0});
        BHT_EQ(good, !cases[i / 2].why);
        if (!good) {
            BHT_EQ(outcome.status, BH_LOAD_FAILED);
            BHT_STR_HAS(outcome.message, cases[i / 2].why);
            BHT_STR_HAS(outcome.message, included ? "c.json:1: \"I\": " : "c.json:1: \"kernel\": ");
            BHT_TRUE(!form.has_content);
        }
    }
    BHT_EQ(unlink(pipe), 0);
    /* A folder is included with all that is in it. */
    BHT_TRUE(!read_form("{\"kernel\": \"a.comp\", \"I\": [\".\"]}",
                        (struct bhi_kernel_file){.size = 0}));
    BHT_STR_HAS(outcome.message, "is the task's reference");
    bhi_judged_form_free(&form);
    struct bhi_kernel_file memory = {.path = "c.json", .code = "{\"kernel\": \"a.comp\"}"};
    memory.size = strlen(memory.code);
    BHT_TRUE(!bhi_judged_form_read(&memory, &task, &form, &outcome));
    BHT_STR_HAS(outcome.message, "a candidate in memory has no files: give \"source\"");
}

/* Whatever decides what runs is the identity. */
TEST(a_form_is_known_by_all_that_it_is_made_of) {
    static const char plan[] =
        "{\"kernels\": [{\"kernel\": \"a.comp\"}, {\"kernel\": \"lib/b.comp\", \"I\": [\"inc\"]}]}";
    static bh_source_define define = {"N", "4"}, other = {"N", "5"};
    static bh_source_include include = {"x.h", "//", 0};
    static const bh_specialization spec = {0, 4, 1};
    enum { OPTIONS = 6, FORMS = OPTIONS + 2 };
    struct bhi_kernel_file with[FORMS] = {{.entry = NULL}};
    char a[256];
    make_files();
    snprintf(a, sizeof a, "%s/a.comp", folder);
    with[1].source = (struct bhi_source){.defines = &define, .define_count = 1, .given = true};
    with[2].source = (struct bhi_source){.defines = &other, .define_count = 1, .given = true};
    with[3].source = (struct bhi_source){.includes = &include, .include_count = 1, .given = true};
    with[4].specs = &spec;
    with[4].spec_count = 1;
    with[5].entry = "go";
    for (int planned = 0; planned < 2; planned++) {
        uint8_t all[FORMS][BHI_CONTENT_HASH];
        for (int i = 0; i < (planned ? FORMS : OPTIONS); i++) {
            for (int again = 0; again < 2; again++) {
                put("lib/b.comp", i == OPTIONS ? "// c\n" : "// b\n");
                put("inc/x.h", i == OPTIONS + 1 ? "// y\n" : "// x\n");
                with[i].path = a;
                bhi_judged_form_free(&form);
                BHT_TRUE(planned ? read_form(plan, with[i])
                                 : bhi_judged_form_read(&with[i], &task, &form, &outcome));
                BHT_TRUE(form.has_content);
                BHT_EQ(form.count, planned ? 2 : 1);
                if (again) {
                    BHT_MEM_EQ(form.content, all[i], sizeof all[i]);
                }
                memcpy(all[i], form.content, sizeof all[i]);
            }
            for (int k = 0; k < i; k++) {
                BHT_NE(memcmp(all[k], all[i], sizeof all[i]), 0);
            }
        }
    }
    BHT_TRUE(!read_form("{\"kernel\": \"a.comp\", \"D\": {\"N\": 5}}", with[1]));
    BHT_STR_HAS(outcome.message, "\"D\": the judge defines N");
    BHT_TRUE(!read_form("{\"kernel\": \"a.comp\", \"spec\": {\"0\": \"u32:5\"}}", with[4]));
    BHT_STR_HAS(outcome.message, "\"spec\": the judge sets constant 0");
    BHT_TRUE(!read_form("{\"groups\"", with[0]) &&
             form.has_content); /* it is no plan next time either */
    BHT_EQ(outcome.status, BH_INVALID_ARGUMENT);
    bhi_judged_form_free(&form);
}

/* Lines of a JOBS.jsonl: what they may say, and what is said about those that may not. */
#include "support.h"

#include <errno.h>
#include <stdio.h>

#include "batch/job/file.h"
#include "batch/job/request.h"

#define REST ", \"kernel\": \"k.spv\", \"groups\": [1]}"

static bool parse(const char *line, struct bhi_job_spec *spec, struct bhi_complaint *complaint) {
    complaint->text[0] = '\0';
    return bhi_job_parse(line, strlen(line), spec, complaint);
}

static void expect_refused(const char *line, const char *words) {
    struct bhi_job_spec spec;
    struct bhi_complaint complaint;
    if (parse(line, &spec, &complaint)) {
        BHT_FAIL("accepted: %.200s", line);
    }
    if (!strstr(complaint.text, words)) {
        BHT_FAIL("%.200s: \"%s\" has no \"%s\"", line, complaint.text, words);
    }
    BHT_EQ(spec.text, NULL);
}

static struct bhi_job_spec accept(const char *line) {
    struct bhi_job_spec spec;
    struct bhi_complaint complaint;
    if (!parse(line, &spec, &complaint)) {
        BHT_FAIL("%.200s: %s", line, complaint.text);
    }
    return spec;
}

static const char everything[] =
    "{\"id\": \"j1\", \"kernel\": \"kernels/k.comp\", \"groups\": [4, 1, 2], \"in\": {\"0\": "
    "\"x.npy\", \"1.2\": \"m.safetensors:w\"}, \"out\": {\"1\": \"y.npy:u32[256]\"}, \"inout\": "
    "{\"2\": \"z.npy\", \"3\": \"a.npy:b.npy\"}, \"push\": \"u32:256\", \"spec\": {\"0\": "
    "\"f32:1.5\"}, \"D\": {\"N\": \"4\", \"FAST\": null}, \"I\": [\"common.glsl\", \"/inc\"], "
    "\"entry\": \"other\", \"trusted\": true, \"deadline\": \"500ms\", \"retries\": 3, "
    "\"priority\": -7, \"depends_on\": [\"j0\", \"z\"]}";

TEST(test_every_key) {
    static const char *const reads[] = {"x.npy", "m.safetensors", "z.npy", "a.npy"};
    static const char *const writes[] = {"y.npy", "z.npy", "b.npy"};
    struct bhi_job_spec spec = accept(everything);
    BHT_STR_EQ(spec.id, "j1");
    BHT_STR_EQ(spec.kernel, "kernels/k.comp");
    BHT_EQ(spec.retries, 3);
    BHT_EQ(spec.priority, -7);
    BHT_EQ(spec.depends_count, 2);
    BHT_STR_EQ(spec.depends_on[0], "j0");
    BHT_STR_EQ(spec.depends_on[1], "z");
    BHT_EQ(spec.read_count, 4);
    for (size_t i = 0; i < 4; i++) {
        BHT_STR_EQ(spec.reads[i], reads[i]);
    }
    BHT_EQ(spec.write_count, 3);
    for (size_t i = 0; i < 3; i++) {
        BHT_STR_EQ(spec.writes[i], writes[i]);
    }
    bhi_job_spec_free(&spec);
}

TEST(test_what_is_left_out) {
    struct bhi_job_spec spec = accept("{\"id\": \"a\"" REST);
    BHT_EQ(spec.retries, -1);
    BHT_EQ(spec.priority, 0);
    BHT_EQ(spec.depends_count + spec.read_count + spec.write_count, 0);
    BHT_STR_EQ(spec.text, "{\"groups\":[1,1,1],\"id\":\"a\",\"kernel\":\"k.spv\"}");
    bhi_job_spec_free(&spec);
}

TEST(test_the_request_is_that_of_run) {
    char include[] = "/tmp/bulkhead-jobs-XXXXXX", line[512];
    struct bhi_complaint complaint = {.text = ""};
    struct bhi_job_request request;
    BHT_NE(mkdtemp(include), NULL);
    snprintf(line, sizeof line, "%s/common.glsl", include);
    FILE *file = fopen(line, "we");
    BHT_NE(file, NULL);
    fputs("int one() { return 1; }\n", file);
    BHT_EQ(fclose(file), 0);

    struct bhi_job_spec spec = accept(everything);
    char *found = strstr(spec.text, ",\"/inc\"");
    BHT_NE(found, NULL);
    memmove(found, found + 7, strlen(found + 7) + 1);
    if (!bhi_job_request_parse(spec.text, include, true, &request, &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
    const struct bhi_run_request *run = &request.run;
    snprintf(line, sizeof line, "%s/kernels/k.comp", include);
    BHT_STR_EQ(run->kernel_path, line);
    BHT_STR_EQ(run->kernel_name, "k");
    BHT_STR_EQ(run->entry, "other");
    BHT_EQ(run->groups[0], 4);
    BHT_EQ(run->groups[1], 1);
    BHT_EQ(run->groups[2], 2);
    BHT_EQ(run->binding_count, 5);
    BHT_EQ(run->push.size, 4);
    BHT_EQ(run->spec_count, 1);
    BHT_TRUE(run->trusted);
    BHT_EQ(run->deadline_ns, 500000000);
    BHT_EQ(run->source.define_count, 2);
    BHT_EQ(run->source.include_count, 1);
    BHT_STR_EQ(run->source.includes[0].name, "common.glsl");
    const struct bhi_run_binding *tensor =
        bhi_run_request_find(run, (struct bhi_slot){.set = 1, .binding = 2});
    BHT_NE(tensor, NULL);
    BHT_STR_EQ(tensor->tensor, "w");
    snprintf(line, sizeof line, "%s/m.safetensors", include);
    BHT_STR_EQ(tensor->in_path, line);
    bhi_job_request_free(&request);

    snprintf(line, sizeof line, "%s/common.glsl", include);
    unlink(line);
    BHT_TRUE(!bhi_job_request_parse(spec.text, include, true, &request, &complaint));
    BHT_STR_HAS(complaint.text, "\"I\" \"common.glsl\": No such file");
    BHT_EQ(request.error, ENOENT);
    /* Who makes no kernel of it does not look. */
    if (!bhi_job_request_parse(spec.text, include, false, &request, &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
    BHT_EQ(request.run.source.include_count, 0);
    bhi_job_request_free(&request);
    rmdir(include);
    bhi_job_spec_free(&spec);
}

TEST(test_an_expression) {
    struct bhi_complaint complaint;
    struct bhi_job_request request;
    struct bhi_job_spec spec = accept(
        "{\"id\": \"e\", \"eval\": \"t>0?t:a*t\", \"set\": {\"a\": \"f32:0.5\"}, \"out\": {\"y\": "
        "\"y.npy\"}, \"in\": {\"t\": \"m.safetensors:w\"}, \"piece\": \"4K\", \"memory\": \"1G\", "
        "\"device\": \"0\", \"deadline\": \"2s\"}");
    BHT_EQ(spec.kernel, NULL);
    BHT_EQ(spec.read_count, 1);
    BHT_STR_EQ(spec.reads[0], "m.safetensors");
    BHT_STR_EQ(spec.writes[0], "y.npy");
    BHT_EQ(strstr(spec.text, "groups"), NULL);
    if (!bhi_job_request_parse(spec.text, "/f", true, &request, &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
    const struct bhi_eval_request *eval = request.run.eval;
    BHT_STR_EQ(eval->expression, "t>0?t:a*t");
    BHT_EQ(eval->inputs, 1);
    BHT_EQ(eval->outputs, 1);
    BHT_EQ(eval->count, 3);
    BHT_EQ(eval->piece, 4096);
    BHT_STR_EQ(eval->parameters[2].name, "a");
    BHT_EQ(eval->arguments[2].bits, 0x3f000000);
    BHT_STR_EQ(request.run.bindings[1].out_path, "/f/y.npy");
    BHT_STR_EQ(request.run.kernel_name, "eval");
    BHT_STR_EQ(request.run.device, "0");
    BHT_TRUE(request.run.limits_memory);
    BHT_EQ(request.run.memory_limit, UINT64_C(1) << 30);
    bhi_job_request_free(&request);
    bhi_job_spec_free(&spec);
}

/* Two lines that mean the same have the same text, which is a line that means the same. */
TEST(test_the_text_is_canonical) {
    static const char *const same[][2] = {
        {"{\"id\": \"a\"" REST, "{\"groups\":\"1,1\",\"kernel\":\"k.spv\" ,\t\"id\":\"\\u0061\"}"},
        {"{\"id\": \"a\", \"in\": {}, \"D\": {}, \"I\": [], \"depends_on\": [], \"trusted\": "
         "false" REST,
         "{\"id\": \"a\"" REST},
        {"{\"id\": 7, \"depends_on\": [8, -9, \"x\"]" REST,
         "{\"id\": \"7\", \"depends_on\": [\"8\", \"-9\", \"x\"]" REST},
        {"{\"id\": \"a\", \"kernel\": \"k\", \"groups\": 16}",
         "{\"id\": \"a\", \"kernel\": \"k\", \"groups\": [16, 1, 1]}"},
        {"{\"id\": \"a\", \"push\": [1, -2, 4294967295, 2.5, 3.0, \"u8:4\", \"f64:1,2\"]" REST,
         "{\"id\": \"a\", \"push\": "
         "\":1,:-2,:4294967295,:2.5,:3.0,u8:4,f64:1,2\"" REST},
        {"{\"id\": \"a\", \"kernel\": \"k\", \"grid\": \"4,2\", \"block\": 64}",
         "{\"id\": \"a\", \"kernel\": \"k\", \"groups\": [4, 2], \"block\": \"64,1\", \"shared\": "
         "0}"},
        {"{\"id\": \"a\", \"push\": []" REST, "{\"id\": \"a\"" REST},
        {"{\"id\": \"a\", \"push\": {}" REST, "{\"id\": \"a\"" REST},
        {"{\"id\": \"a\", \"push\": {\"v\": [1, 2.5], \"on\": true, \"n\": \"u32:3\"}" REST,
         "{\"id\": \"a\", \"push\": \"n=u32:3,on=true,v=1,2.5\"" REST},
        {"{\"id\": \"a\", \"in\": {\"1\": \"x\", \"0\": \"y\"}" REST,
         "{\"id\": \"a\", \"in\": {\"0\": \"y\", \"1\": \"x\"}" REST},
    };
    for (size_t i = 0; i < BHT_COUNT(same); i++) {
        struct bhi_job_spec a = accept(same[i][0]), b = accept(same[i][1]), c = accept(a.text);
        BHT_STR_EQ(a.text, b.text);
        BHT_STR_EQ(a.text, c.text);
        bhi_job_spec_free(&a);
        bhi_job_spec_free(&b);
        bhi_job_spec_free(&c);
    }
}

/* In all of them ` is ". */
TEST(test_refusals) {
    static const struct {
        const char *line, *words;
    } cases[] = {
        {"", "not JSON"},
        {"# a comment", "not JSON"},
        {"{`id`: `a`", "not JSON"},
        {"{`id`: `a`" REST " x", "not JSON"},
        {"{`id`: `a\\u0000b`" REST, "not JSON"},
        {"{`id`: `a\xff`" REST, "not JSON"},
        {"{`id`: `a`, `eval`: `y=x`}", "there is no `out`"},
        {"{`id`: `a`, `eval`: `y=x`, `out`: {}}", "`out`: there is no output"},
        {"{`id`: `a`, `eval`: ``, `out`: {`y`: `y`}}", "the expression is empty"},
        {"{`id`: `a`, `eval`: `y=x`, `out`: {`y`: `y`}, `set`: {`a`: `1`}}",
         "`set` `a`: '1' has no type: write a=f32:1"},
        {"{`id`: `a`, `eval`: `y=x`, `out`: {`y`: `y.safetensors`}}",
         "`out` `y`: no array: write y.safetensors:NAME"},
        {"{`id`: `a`, `eval`: `y=x`, `in`: {`x`: `-`}, `out`: {`y`: `y`}}",
         "`in`: a job cannot use standard input"},
        {"{`id`: `a`, `eval`: `y=x`, `out`: {`y`: `y`}, `piece`: `x`}", "`piece`: "},
        {"[1]", "it must be an object"},
        {"{`kernel`: `k`, `groups`: [1]}", "there is no `id`"},
        {"{`id`: `a`, `groups`: [1]}", "there is no `kernel`"},
        {"{`id`: `a`, `kernel`: `k`}", "there is no `groups`"},
        {"{`id`: 7.5" REST, "`id`: it must be a string or a whole number"},
        {"{`id`: 7, `depends_on`: [`7`]" REST, "it depends on itself"},
        {"{`id`: 7, `depends_on`: [8, `8`]" REST, "`8` is named twice"},
        {"{`id`: 7, `depends_on`: [true]" REST, "an array of strings or whole numbers"},
        {"{`id`: ``" REST, "an id is empty"},
        {"{`id`: `a\\nb`" REST, "control character"},
        {"{`id`: `a\\u007f`" REST, "control character"},
        {"{`id`: `a\\u009b`" REST, "control character"},
        {"{`id`: `a`, `groups`: [1], `kernel`: ``}", "`kernel`: the file name is empty"},
        {"{`id`: `a`, `groups`: [1], `kernel`: `-`}", "`kernel`: a job cannot use standard"},
        {"{`id`: `a`, `kernel`: `k`, `groups`: []}", "`groups`: it must be a number, an"},
        {"{`id`: `a`, `kernel`: `k`, `groups`: 0}", "at least one group"},
        {"{`id`: `a`, `kernel`: `k`, `groups`: 4294967296}", "`groups`: '4294967296'"},
        {"{`id`: `a`, `kernel`: `k`, `groups`: [1,1,1,1]}", "`groups`: it must be"},
        {"{`id`: `a`, `kernel`: `k`, `groups`: [1.5]}", "`groups`: it must be"},
        {"{`id`: `a`, `kernel`: `k`, `groups`: [0]}", "at least one group"},
        {"{`id`: `a`, `kernel`: `k`, `groups`: [-1]}", "`groups`: '-1' is not"},
        {"{`id`: `a`, `kernel`: `k`, `grid`: [0]}",
         "`grid`: '0': there must be at least one group"},
        {"{`id`: `a`, `kernel`: `k`, `grid`: 1, `groups`: 1}", "`grid` and `groups` are the same"},
        {"{`id`: `a`, `kernel`: `k`, `grid`: 1, `block`: `64,0`}",
         "`block`: there must be at least one thread"},
        {"{`id`: `a`, `kernel`: `k`, `grid`: 1, `block`: [1,0]}",
         "`block`: '0': there must be at least one thread"},
        {"{`id`: `a`, `kernel`: `k`, `grid`: 1, `block`: 1.5}", "`block`: it must be a number, an"},
        {"{`id`: `a`, `kernel`: `k`, `grid`: 1, `shared`: -1}", "`shared`: -1 is not a number of"},
        {"{`id`: `a`, `kernel`: `k`, `grid`: 1, `shared`: 4294967296}", "`shared`: 4294967296 is"},
        {"{`id`: `a`, `kernel`: `k`, `grid`: 1, `shared`: `1`}", "`shared`: it must be a whole"},
        {"{`id`: `a`, `kernel`: `k`, `groups`: [4294967296]}", "`groups`: '4294967296'"},
        {"{`id`: `a`, `eval`: `z = x`, `in`: {`x`: `x.npy`}, `out`: {`z`: `z.npy:like:x`}}",
         "eval infers type and shape; write z=z.npy"},
    };
    /* Of a job that is fine otherwise. */
    static const struct {
        const char *keys, *words;
    } fields[] = {
        {"`id`: `b`", "duplicate"},
        {"`eval`: `y=x`, `out`: {`y`: `y`}",
         "`kernel`: only a job with a kernel has it, not one with `eval`"},
        {"`set`: {`a`: `f32:1`}", "`set`: only a job with `eval` has it, not one with a kernel"},
        {"`depend_on`: []", "unknown key `depend_on`: did you mean `depends_on`?"},
        {"`dead-line`: `1s`", "did you mean `deadline`?"},
        {"`device`: ``", "`device`: the selector is empty"},
        {"`device`: 0", "`device`: it must be a string"},
        {"`memory`: `4k`", "`memory`: "},
        {"`deadline`: 5", "`deadline`: it must be a string such as `500ms`"},
        {"`memory`: 512", "`memory`: it must be a string such as `512M`"},
        {"`inputs`: {}", "unknown key `inputs`: did you mean `in`?"},
        /* as of commands and options: what was left out is its end */
        {"`compile`: `1s`", "did you mean `compile_deadline`?"},
        {"`tenants`: `0`", "unknown key `tenants`; the keys are id, "},
        {"`repeat`: 2", "unknown key `repeat`; the keys"},
        {"`in`: [`x`]", "`in`: it must be an object of strings"},
        {"`in`: {`0`: null}", "`in`: it must be an object of strings"},
        {"`in`: {`1x`: `x.npy`}", "`in` `1x`: '1x' is not a binding"},
        {"`out`: {`1`: `y.npy:like:1`}", "out 1=y.npy:like:1: like names the output itself"},
        {"`push`: {`a`: null}", "`push`: it must be a string, or an array of"},
        {"`push`: {`a`: [[[1]]]}", "`push` `a`: the elements of a vector must be numbers"},
        {"`push`: {`a`: [[]]}", "`push` `a`: no value"},
        {"`push`: {`a`: []}", "`push` `a`: no value"},
        {"`push`: {`a,b`: 1}", "`push` `a,b`: no such name"},
        {"`push`: {`a`: ``}", "`push` `a`: `` is not a value"},
        {"`in`: {`0=y`: `x.npy`}", "`in` `0=y`: there is a '='"},
        {"`in`: {`0`: ``}", "`in` `0`: the file name is empty"},
        {"`in`: {`0`: `-`}", "`in`: a job cannot use standard input"},
        {"`out`: {`0`: `-:u32[1]`}", "`out`: a job cannot use standard"},
        {"`inout`: {`0`: `x:-`}", "`inout`: a job cannot use standard"},
        {"`in`: {`0`: `x`, `0.0`: `y`}", "binding 0.0 is given twice"},
        {"`in`: {`0`: `m.safetensors`}", "no array: write"},
        {"`out`: {`0`: `y.npy`}", "`out` `0`: no dtype and shape"},
        {"`out`: {`0`: `y.npy:u33[1]`}", "'u33' is not a dtype"},
        {"`out`: {`0`: `y:u8[1]`, `1`: `y:u8[1]`}", "two bindings"},
        {"`in`: {`0`: `x`}, `out`: {`1`: `x:u8[1]`}",
         "`out` 1=x:u8[1]: `in` 0=x reads that file: to replace it, use `inout`"},
        {"`in`: {`0`: `x`}, `inout`: {`1`: `y:x`}", "`inout` 1=y:x: `in` 0=x reads that file"},
        {"`out`: {`0`: `y.safetensors:u8[1]`}", "`out` `0`: no array: write y.safetensors:NAME"},
        {"`out`: {`0`: `y.jpeg:u8[1]`}",
         "`out` `0`: outputs are .npy files, and a name that ends in .jpeg may be"},
        {"`push`: `7`", "`push`: '7' has no type"},
        {"`push`: 7", "`push`: it must be a string, or an array of"},
        {"`push`: [true]", "`push`: it must be a string, or an array of"},
        {"`push`: [1, `7`]", "`push`: value 2, `7`, has no type: write `f32:7`"},
        {"`push`: [4294967296]",
         "`push`: value 1, 4294967296, needs more than 32 bits: write `i64:4294967296`"},
        {"`push`: [1e300]", "`push`: "},
        {"`push`: [`x:1`]", "`push`: 'x' is not a type"},
        {"`spec`: {`0`: `7`}", "`spec` `0`: '0=7' has no type"},
        {"`spec`: {`0`: `u8:1`, `00`: `u8:1`}", "0 is given twice"},
        {"`D`: {``: `1`}", "`D` ``: it has no name"},
        {"`D`: {`A=B`: null}", "`D` `A=B`: there is a '='"},
        {"`D`: {`A`: 1}", "an object of strings and nulls"},
        {"`I`: `x`", "`I`: it must be an array of strings"},
        {"`I`: [``]", "`I`: the file name is empty"},
        {"`entry`: ``", "`entry`: the name is empty"},
        {"`reinterpret`: `x`", "`reinterpret`: it must be true or false"},
        {"`trusted`: 1", "`trusted`: it must be true or false"},
        {"`trusted`: null", "`trusted`: it must be true or false"},
        {"`deadline`: `5x`", "`deadline`: '5x': unknown unit"},
        {"`retries`: -1", "`retries`: -1 is not from 0 to 1000"},
        {"`retries`: 1001", "`retries`: 1001 is not"},
        {"`retries`: 1.0", "`retries`: it must be a whole number"},
        {"`priority`: 1000001", "`priority`: 1000001 is not"},
        {"`depends_on`: `b`", "`depends_on`: it must be an array"},
        {"`depends_on`: [`a`]", "it depends on itself"},
        {"`depends_on`: [`b`, `c`, `b`]", "`b` is named twice"},
        {"`depends_on`: [``]", "`depends_on`: an id is empty"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        expect_refused(bht_quoted(cases[i].line), bht_quoted(cases[i].words));
    }
    for (size_t i = 0; i < BHT_COUNT(fields); i++) {
        char line[512];
        snprintf(line, sizeof line, "{\"id\": \"a\", %s" REST, bht_quoted(fields[i].keys));
        expect_refused(line, bht_quoted(fields[i].words));
    }
}

TEST(test_bounds) {
    char *line = malloc(BHI_JOB_TEXT + 64), id[BHI_JOB_ID + 2];
    BHT_NE(line, NULL);
    memset(id, 'x', sizeof id);
    id[BHI_JOB_ID] = '\0';
    snprintf(line, 1024, "{\"id\": \"%s\"" REST, id);
    struct bhi_job_spec spec = accept(line);
    bhi_job_spec_free(&spec);
    id[BHI_JOB_ID] = 'x';
    id[BHI_JOB_ID + 1] = '\0';
    snprintf(line, 1024, "{\"id\": \"%s\"" REST, id);
    expect_refused(line, "is longer than 255 bytes");

    size_t used = (size_t)snprintf(line, 64, "{\"id\": \"a\", \"depends_on\": [");
    for (int i = 0; i <= BHI_JOB_DEPENDENCIES; i++) {
        used += (size_t)snprintf(line + used, 64, "\"%d\",", i);
    }
    snprintf(line + used - 1, 64, "]" REST);
    expect_refused(line, "more than 4096");
    used -= 7;
    snprintf(line + used - 1, 64, "]" REST);
    spec = accept(line);
    BHT_EQ(spec.depends_count, BHI_JOB_DEPENDENCIES);
    bhi_job_spec_free(&spec);

    memset(line, ' ', BHI_JOB_TEXT + 1);
    memcpy(line, "{\"id\": \"a\"" REST, sizeof "{\"id\": \"a\"" REST - 1);
    line[BHI_JOB_TEXT] = '\0';
    spec = accept(line);
    bhi_job_spec_free(&spec);
    line[BHI_JOB_TEXT] = ' ';
    line[BHI_JOB_TEXT + 1] = '\0';
    expect_refused(line, "longer than 1048576 bytes");

    /* A line that is short enough, but not as it is recorded: [1] becomes [1,1,1]. */
    static const char begin[] = "{\"groups\":[1],\"id\":\"a\",\"kernel\":\"";
    memset(line, 'k', BHI_JOB_TEXT);
    memcpy(line, begin, sizeof begin - 1);
    memcpy(line + BHI_JOB_TEXT - 6, "\"}", 3);
    spec = accept(line);
    struct bhi_job_spec same = accept(spec.text);
    bhi_job_spec_free(&same);
    bhi_job_spec_free(&spec);
    memcpy(line + BHI_JOB_TEXT - 6, "kk\"}", 5);
    expect_refused(line, "longer than 1048576 bytes");
    free(line);
}

/* -- files --------------------------------------------------------------------------------------
 */

struct seen {
    char text[4096];
    size_t enough;
};

static bool see(void *user, size_t line, struct bhi_job_spec *spec, const char *id,
                const struct bhi_complaint *complaint) {
    struct seen *seen = user;
    char *end = seen->text + strlen(seen->text);
    if (spec) {
        BHT_EQ(spec->line, line);
        sprintf(end, "%zu:%s ", line, spec->id);
        bhi_job_spec_free(spec);
    } else {
        sprintf(end, "%zu!%.30s ", line, complaint->text);
    }
    return line != seen->enough;
}

static void expect_file(const char *content, size_t size, size_t enough, const char *expected) {
    char path[] = "/tmp/bulkhead-jobs-XXXXXX";
    struct bhi_complaint complaint = {.text = ""};
    struct seen seen = {.enough = enough};
    int error, fd = mkstemp(path);
    BHT_GE(fd, 0);
    BHT_EQ(write(fd, content, size), size);
    close(fd);
    if (!bhi_job_file_read(path, see, &seen, &error, &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
    unlink(path);
    BHT_STR_EQ(seen.text, expected);
}

TEST(test_files) {
    static const char jobs[] =
        "{\"id\": \"a\"" REST "\r\n\n \t\r\nnonsense\n{\"id\": \"b\"" REST "\n{\"id\": \"c\"" REST;
    expect_file(jobs, sizeof jobs - 1, 0, "1:a 4!not JSON: '[' or '{' expected  5:b 6:c ");
    expect_file(jobs, sizeof jobs - 1, 4, "1:a 4!not JSON: '[' or '{' expected  ");
    expect_file("", 0, 0, "");
    expect_file("\n\n", 2, 0, "");
    static const char comments[] = "# first\n{\"id\": 7" REST "\n \t# {\"id\": 8" REST "\n#\r\n"
                                   "{\"id\": \"#\"" REST "\n#";
    expect_file(comments, sizeof comments - 1, 0, "2:7 5:# ");
    /* The mark of UTF-8 begins a file, and no other line. */
    static const char marked[] =
        "\xef\xbb\xbf{\"id\": \"a\"" REST "\n\xef\xbb\xbf{\"id\": \"b\"" REST;
    expect_file(marked, sizeof marked - 1, 0, "1:a 2!not JSON: '[' or '{' expected  ");
    expect_file("\xef\xbb\xbf# text", 9, 0, "");
    expect_file("\xef\xbb\xbf", 3, 0, "");
    expect_file("\xef\xbb", 2, 0, "1!not JSON: unable to decode byt ");
    expect_file("\0\n", 2, 0, "1!not JSON: '[' or '{' expected  ");
}

TEST(test_a_line_too_long_is_one_bad_line) {
    const size_t size = BHI_JOB_TEXT + 100;
    char *content = malloc(size + 64);
    BHT_NE(content, NULL);
    memset(content, ' ', size);
    strcpy(content + size, "\n{\"id\": \"b\"" REST "\n");
    expect_file(content, size + strlen(content + size), 0, "1!longer than 1048576 bytes 2:b ");
    content[7] = '#'; /* a comment may be long */
    expect_file(content, size + strlen(content + size), 0, "2:b ");
    memset(content, 'x', size);
    expect_file(content, size + strlen(content + size), 0, "1!longer than 1048576 bytes 2:b ");
    free(content);
}

TEST(test_files_that_cannot_be_read) {
    struct bhi_complaint complaint;
    struct seen seen = {.enough = 0};
    int error;
    BHT_TRUE(!bhi_job_file_read("/nonexistent/jobs", see, &seen, &error, &complaint));
    BHT_STR_EQ(complaint.text, "/nonexistent/jobs: No such file or directory");
    BHT_EQ(error, ENOENT);
    BHT_TRUE(!bhi_job_file_read("/", see, &seen, &error, &complaint));
    BHT_STR_EQ(complaint.text, "/: cannot be read: Is a directory");
}

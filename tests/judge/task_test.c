/* A task's file: what is read from it, and that each mistake is refused with its line and field. */
#include "judge/task/task.h"

#include "harness.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "formats/dtype.h"

static const char whole[] =
    "{\n"
    "  \"name\": \"scale\",\n"
    "  \"sizes\": [{\"n\": 1000, \"m\": 3}, {\"m\": 4, \"n\": 64}],\n"
    "  \"check_sizes\": [{\"n\": 1, \"m\": 1}],\n"
    "  \"seeds\": [5, 6],\n"
    "  \"in\": {\n"
    "    \"X\": {\"dtype\": \"f32\", \"shape\": [\"n\", \"m\"], \"fill\": {\"normal\": [0, 2], "
    "\"special\": 0.5}}\n"
    "  },\n"
    "  \"inout\": {\"Z\": {\"dtype\": \"u8\", \"shape\": [], \"fill\": \"bits\"}},\n"
    "  \"out\": {\"Y\": {\"dtype\": \"f16\", \"shape\": [\"n * m\", 2], \"ulp\": 3, \"nan\": "
    "\"any\"}},\n"
    "  \"push\": {\"a\": 2.5, \"b\": -3, \"on\": true, \"n\": \"n + 1\"},\n"
    "  \"groups\": [\"ceildiv(n, local_x)\", \"m\"],\n"
    "  \"reference\": {\"kernel\": \"ref.comp\"},\n"
    "  \"limits\": {\"deadline\": \"1s\", \"compile_deadline\": \"2s\", \"memory\": \"1G\"},\n"
    "  \"bytes\": \"4 * n * m\",\n"
    "  \"operations\": 7\n"
    "}\n";

static struct bhi_task task;
static struct bhi_complaint complaint;

static void parse(const char *text) {
    bhi_task_free(&task);
    if (!bhi_task_parse("t.json", "dir", text, &task, &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
}

static void refuse_text(const char *text, const char *why) {
    bhi_task_free(&task);
    if (bhi_task_parse("t.json", "dir", text, &task, &complaint)) {
        BHT_FAIL("not refused: %s", why);
    }
    BHT_STR_EQ(complaint.text, why);
}

/* The whole with |before| replaced by |after|. In all of them ` is ". Valid until the next call. */
static const char *replaced(const char *before, const char *after) {
    static char text[8192];
    const char *const piece = bht_quoted(before), *const at = strstr(whole, piece);
    if (!at) {
        BHT_FAIL("'%s' is not in it", piece);
    }
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, bht_quoted(after),
             at + strlen(piece));
    return text;
}

/* That is refused for what is in its |line|. */
static void refuse(int line, const char *before, const char *after, const char *why) {
    char said[600];
    snprintf(said, sizeof said, "t.json:%d: %s", line, bht_quoted(why));
    refuse_text(replaced(before, after), said);
}

TEST(all_of_it) {
    parse(whole);
    BHT_STR_EQ(task.name, "scale");
    BHT_EQ(task.parameter_count, 2);
    BHT_EQ(task.size_count, 3);
    BHT_EQ(task.sizes[1].values[0], 64); /* by name, not by place */
    BHT_EQ(task.sizes[1].values[1], 4);
    BHT_TRUE(!task.sizes[1].check_only);
    BHT_TRUE(task.sizes[2].check_only);
    BHT_EQ(task.seed_count, 2);
    BHT_EQ(task.seeds[1], 6);
    BHT_EQ(task.array_count, 3);
    BHT_STR_EQ(task.arrays[0].place, "X");
    BHT_EQ(task.arrays[0].filler.kind, BHI_FILLER_NORMAL);
    BHT_TRUE(task.arrays[0].filler.high == 2);
    BHT_TRUE(task.arrays[0].filler.special == 0.5);
    BHT_EQ(task.arrays[1].role, BHI_TASK_INOUT);
    BHT_EQ(task.arrays[1].rank, 0);
    BHT_EQ(task.arrays[2].dtype, BH_DTYPE_F16);
    BHT_EQ(task.arrays[2].tolerance.kind, BHI_TOLERANCE_ULP);
    BHT_EQ(task.arrays[2].tolerance.ulp, 3);
    BHT_EQ(task.arrays[2].tolerance.nan, BHI_NAN_ANY);
    BHT_STR_EQ(task.reference_kernel.path, "dir/ref.comp");
    BHT_EQ(task.deadline_ns, 1000000000);
    BHT_EQ(task.compile_deadline_ns, 2000000000);
    BHT_EQ(task.memory_limit, 1 << 30);
    BHT_TRUE(!bhi_task_is_fixed(&task));
}

/* Is a kernel that stores the results of this input like one that computes them? */
static bool is_storable(const char *in) {
    static char text[1024];
    snprintf(text, sizeof text,
             "{\"sizes\": [{}], \"groups\": [1], %s\n"
             "\"out\": {\"Y\": {\"dtype\": \"f32\", \"shape\": [4]}},\n"
             "\"reference\": {\"kernel\": \"ref.comp\"}}",
             in);
    parse(text);
    return bhi_task_is_storable(&task);
}

static bool is_storable_from(const char *fill) {
    char in[256];
    snprintf(in, sizeof in, "\"in\": {\"X\": {\"dtype\": \"f32\", \"shape\": [4], \"fill\": %s}},",
             fill);
    return is_storable(in);
}

TEST(inputs_that_never_vary) {
    static const char *const same[] = {"{\"file\": \"x.npy\"}", "{\"uniform\": [2, 2]}",
                                       "{\"normal\": [2, 0]}", "{\"integers\": [3, 3]}",
                                       "{\"integers\": [\"1 + 2\", \"1 + 2\"]}"};
    static const char *const vary[] = {"\"uniform\"",
                                       "\"normal\"",
                                       "\"bits\"",
                                       "\"special\"",
                                       "{\"integers\": [3, 4]}",
                                       "{\"integers\": [\"1 + 2\", \"2 + 2\"]}",
                                       "{\"integers\": [1, \"1 + 2\"]}",
                                       "{\"uniform\": [2, 2], \"special\": 0.1}",
                                       "{\"normal\": [2, 0], \"special\": 0.1}",
                                       "{\"integers\": [3, 3], \"special\": 0.1}"};
    BHT_TRUE(is_storable(""));
    for (size_t i = 0; i < BHT_COUNT(same); i++) {
        BHT_TRUE(is_storable_from(same[i]));
    }
    for (size_t i = 0; i < BHT_COUNT(vary); i++) {
        BHT_TRUE(!is_storable_from(vary[i]));
    }
}

TEST(what_it_computes) {
    static const uint32_t local_size[3] = {64, 1, 1};
    struct bhi_array array;
    uint32_t groups[3];
    char *push, size[BHI_SIZE_TEXT];
    parse(whole);
    BHT_TRUE(bhi_task_shape(&task, 1, &task.arrays[2], &array, &complaint));
    BHT_EQ(array.dimensions, 2);
    BHT_EQ(array.shape[0], 256);
    BHT_EQ(array.bytes, 1024);
    BHT_TRUE(bhi_task_groups_for(&task, 0, &task.groups, local_size, groups, &complaint));
    BHT_EQ(groups[0], 16);
    BHT_EQ(groups[1], 3);
    BHT_EQ(groups[2], 1);
    BHT_TRUE(bhi_task_push_text(&task, 0, 0, &push, &complaint));
    BHT_STR_EQ(push, "a=2.5,b=-3,on=true,n=1001");
    free(push);
    BHT_STR_EQ(bhi_task_size_text(&task, 1, size), "n=64, m=4");
    uint64_t amount;
    BHT_TRUE(bhi_task_amount(&task, 1, &task.bytes, &amount, &complaint));
    BHT_EQ(amount, 1024);
    BHT_TRUE(bhi_task_amount(&task, 1, &task.operations, &amount, &complaint));
    BHT_EQ(amount, 7);
    task.bytes = (struct bhi_task_number){0}; /* not given */
    BHT_TRUE(bhi_task_amount(&task, 1, &task.bytes, &amount, &complaint));
    BHT_EQ(amount, 0);
}

TEST(what_may_be_left_out) {
    parse("{\"sizes\": [{\"n\": 4}], \"out\": {\"0\": {\"dtype\": \"f32\", \"shape\": [\"n\"], "
          "\"rel\": 0.5, \"abs\": 1}}, \"groups\": [1], \"reference\": {\"kernel\": \"/r.comp\", "
          "\"groups\": [2]}}");
    BHT_STR_EQ(task.name, "");
    BHT_TRUE(task.arrays[0].tolerance.absolute == 1 && task.arrays[0].tolerance.relative == 0.5);
    BHT_EQ(task.seed_count, 1);
    BHT_EQ(task.seeds[0], 1);
    BHT_EQ(task.deadline_ns, 0);
    BHT_EQ(task.memory_limit, 0);
    BHT_EQ(task.arrays[0].tolerance.kind, BHI_TOLERANCE_NEAR);
    BHT_EQ(task.arrays[0].tolerance.nan, BHI_NAN_REFUSED);
    BHT_STR_EQ(task.reference_kernel.path, "/r.comp");
    BHT_EQ(task.reference_groups.along[0].value, 2);
    BHT_EQ(task.groups.along[0].value, 1);
    parse("{\"sizes\": [{}], \"out\": {\"0\": {\"dtype\": \"f32\", \"shape\": []}}, \"groups\": "
          "[1], \"reference\": {\"kernel\": \"/r.comp\"}, \"limits\": {\"memory\": \"1G\"}}");
    BHT_EQ(task.deadline_ns, 0);
    BHT_EQ(task.memory_limit, 1 << 30);
    char size[BHI_SIZE_TEXT] = "other";
    BHT_STR_EQ(bhi_task_size_text(&task, 0, size), "the only size");
}

TEST(fields_that_are_wrong) {
    refuse(2, "`name`", "`nam`", "`nam`: unknown key: did you mean `name`?");
    refuse(2, "`scale`", "``", "`name`: it must be a string of 1 to 63 bytes");
    refuse(2, "`scale`", "7", "`name`: it must be a string of 1 to 63 bytes");
    refuse(2, "`scale`", "`0123456789012345678901234567890123456789012345678901234567890123`",
           "`name`: it must be a string of 1 to 63 bytes");
    refuse(3, "`n`: 1000", "`n`: 0",
           "`sizes` [0] `n`: it must be a whole number from 1; 0 may be among `check_sizes`");
    refuse(3, "`m`: 4, ", "", "`sizes` [1]: each size must have the same names");
    refuse(3, "`m`: 4", "`k`: 4",
           "`sizes` [1]: there is no `m`; each size must have the same names");
    refuse(3, "`n`: 1000", "`n-k`: 1000",
           "`sizes` [0] `n-k`: no name: a letter or _, then letters, digits and _, at most 31, and "
           "not min, max or ceildiv");
    refuse(3, "`n`: 1000", "`local_x`: 1000",
           "`sizes` [0] `local_x`: names that begin with local_ are the workgroup's");
    refuse(4, "[{`n`: 1, `m`: 1}]", "7",
           "`check_sizes`: it must be an array of objects such as {`n`: 1024}");
    refuse(5, "[5, 6]", "[5, -6]", "`seeds` [1]: it must be a whole number from 0");
    refuse(5, "[5, 6]", "5", "`seeds`: it must be an array of at most 16 numbers");
    refuse(7, "`f32`", "`f33`",
           "`in` `X` `dtype`: it must be one of " BHI_DTYPE_NAMES " " BHI_SMALL_FLOAT_NAMES);
    refuse(7, "[`n`, `m`]", "[`n`, -1]",
           "`in` `X` `shape` [1]: it must be a whole number from 1, or an expression such as `n` "
           "or `n * m`");
    refuse(7, "[`n`, `m`]", "[`n`, `k`]",
           "`in` `X` `shape`: 'k': column 1: there is no size 'k' (with n=1000, m=3)");
    refuse(9, "`fill`: `bits`", "`ulp`: 1", "`inout` `Z`: there is no `fill`");
    refuse(7, "`X`", "``", "`in` ``: no binding is called so");
    refuse(7, "`X`", "`a=b`", "`in` `a=b`: no binding is called so");
    refuse(7, "`X`", "`a,b`", "`in` `a,b`: no binding is called so");
    refuse(10, "`Y`", "`X`", "`out` `X`: it is in `in`, too");
    refuse(10, "`ulp`", "`abs`: 1, `ulp`", "`out` `Y` `ulp`: it excludes `abs` and `rel`");
    refuse(10, "`ulp`: 3", "`ulp`: 0.5", "`out` `Y` `ulp`: it must be a whole number from 0");
    refuse(10, "`ulp`: 3", "`rel`: -1", "`out` `Y` `rel`: it must not be less than 0");
    refuse(10, "`any`", "`all`", "`out` `Y` `nan`: it must be `refuse`, `equal` or `any`");
    refuse(11, "2.5", "[2.5]",
           "`push` `a`: it must be a number, true, false, an expression such as `n`, or "
           "{`uniform`: [0.1, "
           "4]}, {`normal`: [0, 1]} or {`integers`: [1, 9]}");
    refuse(11, "2.5", "{`uniform`: [1]}",
           "`push` `a` `uniform`: it must be an array of two numbers");
    static const char *const beyond[] = {"`uniform`: [0, 1e39]", "`uniform`: [-1e39, 0]",
                                         "`normal`: [0, 3e37]", "`normal`: [-3.4e38, 1e37]"};
    for (size_t i = 0; i < BHT_COUNT(beyond); i++) {
        char value[64], said[160];
        snprintf(value, sizeof value, "{%s}", beyond[i]);
        snprintf(said, sizeof said,
                 "`push` `a` %.*s: f32 does not hold all that it draws: its largest number is "
                 "3.4e38",
                 (int)strcspn(beyond[i], ":"), beyond[i]);
        refuse(11, "2.5", value, said);
    }
    parse(replaced("2.5", "{`uniform`: [-3.4028234663852886e38, 3.4028234663852886e38]}"));
    parse(replaced("2.5", "{`normal`: [0, 2e37]}"));
    refuse(11, "`a`", "`a-b`",
           "`push` `a-b`: no name: a letter or _, then letters, digits and _, at most 31, and not "
           "min, max or ceildiv");
    refuse(12, "`ceildiv(n, local_x)`", "0",
           "`groups` [0]: it must be a whole number from 1, or an expression such as `n` or `n * "
           "m`");
    refuse(14, "`memory`", "`memori`", "`limits` `memori`: unknown key: did you mean `memory`?");
    refuse(11, "`n + 1`", "`n - 9999`",
           "`push`: 'n - 9999': column 3: less than 0 (with n=1000, m=3)");
    refuse(12, "[`ceildiv(n, local_x)`, `m`]", "[]",
           "`groups`: it must be an array of one to three, such as [`ceildiv(n, local_x)`]");
    refuse(12, "local_x)`, `m`]", "local_x)`, `4294967295 + m`]",
           "`groups`: 4294967298 groups along y: from 1 to 4294967295 are possible (with n=1000, "
           "m=3)");
    refuse(12, "local_x)`, `m`]", "local_x)`, `m / 2`]",
           "`groups`: 0 groups along y: from 1 to 4294967295 are possible (with n=1, m=1)");
    refuse(14, "`1s`", "1", "`limits` `deadline`: it must be a string such as `500ms`");
    refuse(14, "`1s`", "`none`", "`limits` `deadline`: none is not allowed here: the run must end");
    refuse(15, "4 * n * m", "4 * k",
           "`bytes`: '4 * k': column 5: there is no size 'k' (with n=1000, m=3)");
    refuse(15, "4 * n * m", "n / 1001", "`bytes`: it is 0 (with n=1000, m=3)");
    refuse(
        16, "s`: 7", "s`: 0",
        "`operations`: it must be a whole number from 1, or an expression such as `n` or `n * m`");
    refuse(17, "s`: 7", "s`: 7,\n`repeats`: 0",
           "`repeats`: it must be a whole number from 1 to 1000");
    refuse(17, "s`: 7", "s`: 7,\n`repeats`: 1001",
           "`repeats`: it must be a whole number from 1 to 1000");
    refuse(16, "s`: 7", "s`: `n - 2`",
           "`operations`: 'n - 2': column 3: less than 0 (with n=1, m=1)");
}

/* As many of each as a task may have are taken, and one more is refused: in the place of |before|,
 * |count| times |item|. */
TEST(as_many_as_there_may_be) {
    static const struct {
        const char *before, *open, *item, *close;
        unsigned most;
        const char *why;
    } cases[] = {
        {"[{`n`: 1, `m`: 1}]", "[", "{`n`: 1, `m`: #}", "]", BHI_TASK_SIZES - 2,
         "t.json:4: `check_sizes` [62]: more than 64 sizes"},
        {"{`n`: 1000, `m`: 3}, {`m`: 4, `n`: 64}", "", "{`n`: 1, `m`: #}", "", BHI_TASK_SIZES - 1,
         "t.json:4: `check_sizes` [0]: more than 64 sizes"},
        {"[{`n`: 1000, `m`: 3}, {`m`: 4, `n`: 64}],\n  `check_sizes`: [{`n`: 1, `m`: 1}]",
         "[{`n`: 1, `m`: 1, ", "`p#`: 1", "}]", BHI_TASK_PARAMETERS - 2,
         "t.json:3: `sizes` [0]: more than 16 sizes"},
        {"[5, 6]", "[", "#", "]", BHI_TASK_SEEDS,
         "t.json:5: `seeds`: it must be an array of at most 16 numbers"},
        {"`X`: {", "", "`A#`: {`dtype`: `u8`, `shape`: [], `fill`: `bits`}", ", `X`: {",
         BHI_TASK_ARRAYS - 3, "t.json:10: `out` `Y`: more than 32 arrays"},
        {"[`n`, `m`]", "[", "#", "]", BHI_TASK_RANK,
         "t.json:7: `in` `X` `shape`: it must be an array of at most 8 lengths, such as [`n`, 3]"},
        {"`a`: 2.5", "", "`p#`: 1", "", BHI_TASK_PUSHES - 3, "t.json:11: `push` `n`: more than 32"},
        {"[`ceildiv(n, local_x)`, `m`]", "[", "#", "]", 3,
         "t.json:12: `groups`: it must be an array of one to three, such as "
         "[`ceildiv(n, local_x)`]"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        for (unsigned count = cases[i].most; count <= cases[i].most + 1; count++) {
            static char text[16384];
            const char *const before = bht_quoted(cases[i].before), *at = strstr(whole, before);
            BHT_TRUE(at);
            const char *const rest = at + strlen(before);
            size_t used = (size_t)sprintf(text, "%.*s%s", (int)(at - whole), whole,
                                          bht_quoted(cases[i].open));
            for (unsigned k = 1; k <= count; k++) { /* # is its number */
                const char *const item = bht_quoted(cases[i].item), *number = strchr(item, '#');
                used += (size_t)sprintf(text + used, "%s%.*s%u%s", k > 1 ? ", " : "",
                                        (int)(number - item), item, k, number + 1);
            }
            sprintf(text + used, "%s%s", bht_quoted(cases[i].close), rest);
            if (count == cases[i].most) {
                parse(text);
            } else {
                refuse_text(text, bht_quoted(cases[i].why));
            }
        }
    }
    bhi_task_free(&task);
}

TEST(values_at_their_limits) {
    static const struct {
        const char *before, *after;
    } cases[] = {
        {"`scale`", "`012345678901234567890123456789012345678901234567890123456789012`"},
        {"`scale`", "`s`"},
        {"[5, 6]", "[0, 9223372036854775807]"},
        {"`special`: 0.5", "`special`: 0"},
        {"`special`: 0.5", "`special`: 1"},
        {"`ulp`: 3", "`ulp`: 0"},
        {"`ulp`: 3", "`abs`: 0, `rel`: 0"},
        {"`bits`", "{`uniform`: [-8e307, 8e307]}"},
        {"[`ceildiv(n, local_x)`, `m`]", "[4294967295, 4294967295, 4294967295]"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        parse(replaced(cases[i].before, cases[i].after));
    }
}

/* Each limit alone makes a tolerance; without any, all bits count. */
TEST(what_makes_a_tolerance) {
    static const struct {
        const char *after;
        struct bhi_tolerance tolerance;
    } cases[] = {
        {"`abs`: 0.5", {.kind = BHI_TOLERANCE_NEAR, .absolute = 0.5}},
        {"`rel`: 0.25", {.kind = BHI_TOLERANCE_NEAR, .relative = 0.25}},
        {"`rel`: 1, `abs`: 2", {.kind = BHI_TOLERANCE_NEAR, .absolute = 2, .relative = 1}},
        {"`ulp`: 9", {.kind = BHI_TOLERANCE_ULP, .ulp = 9}},
        {"`nan`: `equal`", {.kind = BHI_TOLERANCE_EXACT, .nan = BHI_NAN_EQUAL}},
        {"`nan`: `refuse`", {.kind = BHI_TOLERANCE_EXACT, .nan = BHI_NAN_REFUSED}},
        {"`compare`: `elements`", {.by = BHI_BY_ELEMENTS}},
        {"`compare`: `unordered`, `ulp`: 1",
         {.by = BHI_BY_MULTISET, .kind = BHI_TOLERANCE_ULP, .ulp = 1}},
        {"`compare`: `unordered`, `nan`: `equal`", {.by = BHI_BY_MULTISET, .nan = BHI_NAN_EQUAL}},
        {"`compare`: `norm`, `rel`: 0.5, `nan`: `any`",
         {.by = BHI_BY_NORM, .kind = BHI_TOLERANCE_NEAR, .relative = 0.5, .nan = BHI_NAN_ANY}},
        {"`compare`: `check`, `nan`: `any`", {.by = BHI_BY_CHECK, .nan = BHI_NAN_ANY}},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const struct bhi_tolerance *const got = &task.arrays[2].tolerance;
        parse(replaced("`ulp`: 3, `nan`: `any`", cases[i].after));
        BHT_EQ(got->kind, cases[i].tolerance.kind);
        BHT_EQ(got->absolute, cases[i].tolerance.absolute);
        BHT_EQ(got->relative, cases[i].tolerance.relative);
        BHT_EQ(got->ulp, cases[i].tolerance.ulp);
        BHT_EQ(got->nan, cases[i].tolerance.nan);
        BHT_EQ(got->by, cases[i].tolerance.by);
    }
}

TEST(comparisons_that_are_wrong) {
    static const char *const cases[][2] = {
        {"`compare`: `sorted`", "it must be `elements`, `unordered`, `norm` or `check`"},
        {"`compare`: 1", "it must be `elements`, `unordered`, `norm` or `check`"},
        {"`compare`: `norm`", "`norm` needs `rel`, and no `abs` or `ulp`"},
        {"`compare`: `norm`, `rel`: 1, `abs`: 1", "`norm` needs `rel`, and no `abs` or `ulp`"},
        {"`compare`: `norm`, `ulp`: 1", "`norm` needs `rel`, and no `abs` or `ulp`"},
        {"`compare`: `check`, `ulp`: 1", "`check` excludes `abs`, `rel` and `ulp`"},
        {"`compare`: `check`, `rel`: 1", "`check` excludes `abs`, `rel` and `ulp`"},
        {"`compare`: `unordered`, `nan`: `any`", "`unordered` excludes `nan`: `any`"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        char why[256];
        snprintf(why, sizeof why, "`out` `Y` `compare`: %s", cases[i][1]);
        refuse(10, "`ulp`: 3, `nan`: `any`", cases[i][0], why);
    }
}

TEST(generators_that_are_wrong) {
    refuse(9, "`bits`", "`random`",
           "`inout` `Z` `fill`: there is no generator 'random'; there are uniform, normal, "
           "integers, bits, special, file");
    refuse(9, "`bits`", "`integers`",
           "`inout` `Z` `fill`: 'integers' needs a value: {`integers`: [0, 9]}");
    refuse(9, "`bits`", "{`gauss`: [0, 1]}",
           "`inout` `Z` `fill` `gauss`: there is no such generator; there are uniform, normal, "
           "integers, bits, special, file");
    refuse(9, "`bits`", "{`special`: 0.5}",
           "`inout` `Z` `fill`: there must be one generator; it has 0");
    refuse(9, "`bits`", "{`uniform`: [0, 1], `normal`: [0, 1]}",
           "`inout` `Z` `fill`: there must be one generator; it has 2");
    refuse(9, "`bits`", "{`uniform`: [-1e308, 1e308]}",
           "`inout` `Z` `fill` `uniform`: the first number is greater than the last, or they are "
           "further apart than f64 can count");
    refuse(9, "`bits`", "{`uniform`: [1, 0]}",
           "`inout` `Z` `fill` `uniform`: the first number is greater than the last, or they are "
           "further apart than f64 can count");
    refuse(7, "0.5}", "-0.5}", "`in` `X` `fill` `special`: it must be from 0 to 1");
    refuse(9, "`bits`", "{`integers`: [0, 1.5]}",
           "`inout` `Z` `fill` `integers`: it must be an array of two whole numbers, or "
           "expressions such as `n - 1`");
    refuse(9, "`bits`", "{`integers`: [`k`, 9]}",
           "`inout` `Z` `fill`: 'k': column 1: there is no size 'k' (with n=1000, m=3)");
    refuse(9, "`bits`", "{`integers`: [0, `m - 4`]}",
           "`inout` `Z` `fill`: 'm - 4': column 3: less than 0 (with n=1000, m=3)");
    refuse(9, "`bits`", "{`integers`: [3, `m - 1`]}",
           "`inout` `Z` `fill`: the first number, 3, is greater than the last, 2 (with n=1000, "
           "m=3)");
    refuse(9, "`bits`", "{`integers`: [0, `9223372036854775808`]}",
           "`inout` `Z` `fill`: '9223372036854775808' is more than 63 bits (with n=1000, m=3)");
    refuse(9, "`bits`", "`bits`, `fills`: [`equal`, {`integers`: [2, `m - 2`]}]",
           "`inout` `Z` `fills`: the first number, 2, is greater than the last, 1 (with n=1000, "
           "m=3)");
    refuse(11, "2.5", "{`integers`: [4, `m`]}",
           "`push`: the first number, 4, is greater than the last, 3 (with n=1000, m=3)");
    refuse(9, "`bits`", "{`uniform`: [`0`, 1]}",
           "`inout` `Z` `fill` `uniform`: it must be a number");
    refuse(9, "`bits`", "{`normal`: [0, `1`]}", "`inout` `Z` `fill` `normal`: it must be a number");
    refuse(9, "`bits`", "{`normal`: [0, 1, 2]}",
           "`inout` `Z` `fill` `normal`: it must be an array of two numbers");
    refuse(9, "`bits`", "{`integers`: [2, 1]}",
           "`inout` `Z` `fill` `integers`: the first number is greater than the last");
    refuse(7, "[0, 2]", "[0, -2]", "`in` `X` `fill` `normal`: the deviation is less than 0");
    refuse(7, "0.5}", "1.5}", "`in` `X` `fill` `special`: it must be from 0 to 1");
    refuse(9, "`bits`", "{`file`: ``}", "`inout` `Z` `fill` `file`: it must be the name of a file");
    refuse(9, "`bits`", "{`file`: `z.npy`, `special`: 0.5}",
           "`inout` `Z` `fill`: a file has no `special` values");
}

TEST(shapes_that_do_not_multiply) {
    refuse(10, "`n * m`", "`n * 9223372036854775807`",
           "`out` `Y` `shape`: 'n * 9223372036854775807': column 3: more than 64 bits (with "
           "n=1000, m=3)");
    refuse(
        10, "`n * m`", "9223372036854775807",
        "`out` `Y` `shape`: the shape has more elements than 64 bits can count (with n=1000, m=3)");
    refuse(10, "`n * m`", "`n / 64`", "`out` `Y` `shape`: dimension 0 is 0 (with n=1, m=1)");
}

TEST(references_that_are_wrong) {
    refuse(13, "{`kernel`: `ref.comp`}", "{}",
           "`reference`: it must have one of `kernel`, `eval` and `files`");
    refuse(13, "`ref.comp`", "`ref.comp`, `eval`: `Y = X`",
           "`reference`: it must have one of `kernel`, `eval` and `files`");
    refuse(13, "`kernel`", "`kernels`",
           "`reference` `kernels`: unknown key: did you mean `kernel`?");
    refuse(13, "`kernel`: `ref.comp`", "`eval`: `Y = X`",
           "`reference` `eval`: an expression cannot have an `inout`; `Z` is one");
    refuse(13, "`kernel`: `ref.comp`", "`kernel`: 7",
           "`reference` `kernel`: it must be the name of a file");
    refuse(13, "`kernel`: `ref.comp`", "`kernel`: `ref.comp`, `groups`: [`n - 1`]",
           "`reference` `groups`: 0 groups along x: from 1 to 4294967295 are possible (with n=1, "
           "m=1)");
    refuse(13, "`kernel`: `ref.comp`", "`files`: {`Y`: 7}",
           "`reference` `files` `Y`: it must be the name of a file");
    refuse(13, "`kernel`: `ref.comp`", "`eval`: `Y = X`, `groups`: [1]",
           "`reference`: `groups` are a kernel's");
    refuse(13, "`kernel`: `ref.comp`", "`files`: {`Y`: `y.npy`}",
           "`reference` `files`: output `Z` has no file");
    refuse(13, "`kernel`: `ref.comp`", "`files`: {`X`: `x.npy`}",
           "`reference` `files` `X`: there is no such output");
    refuse(13, "`kernel`: `ref.comp`", "`files`: {`Y`: `y.npy`, `Z`: `z.npy`}",
           "`reference`: `files` are the outputs for one size and for inputs that are files: there "
           "are several sizes");
}

#define FILES(sizes, fill)                                                                         \
    "{`sizes`: [" sizes "], `groups`: [`n - 1`],\n"                                                \
    "`in`: {`X`: {`dtype`: `f32`, `shape`: [4], `fill`: " fill "}},\n"                             \
    "`out`: {`Y`: {`dtype`: `f32`, `shape`: [4]}},\n"

/* Outputs in files are those of one size, and of inputs in files. */
TEST(what_a_reference_may_be) {
    static const char files[] = "`reference`: {`files`: {`Y`: `y.npy`}}}";
    static const char eval[] = "`reference`: {`eval`: `Y = X`}, `push`: {`a`: 2.0, `b`: 1e300}}";
    char text[1024], *push;
    snprintf(text, sizeof text, "%s%s", bht_quoted(FILES("{`n`: 2}", "{`file`: `x.npy`}")),
             bht_quoted(files));
    parse(text);
    BHT_EQ(task.reference, BHI_REFERENCE_FILES);
    BHT_STR_EQ(task.arrays[1].expected.path, "dir/y.npy");
    BHT_STR_EQ(task.arrays[0].file.path, "dir/x.npy");
    BHT_TRUE(bhi_task_is_fixed(&task));
    snprintf(text, sizeof text, "%s%s", bht_quoted(FILES("{`n`: 2}", "`normal`")),
             bht_quoted(files));
    refuse_text(text, "t.json:4: \"reference\": \"files\" are the outputs for one size and for "
                      "inputs that are files: an input is generated");
    snprintf(text, sizeof text, "%s%s",
             bht_quoted(FILES("{`n`: 2}, {`n`: 3}", "{`file`: `x.npy`}")), bht_quoted(files));
    refuse_text(text, "t.json:4: \"reference\": \"files\" are the outputs for one size and for "
                      "inputs that are files: there are several sizes");
    snprintf(text, sizeof text, "%s%s",
             bht_quoted(FILES("{`n`: 2}], `hidden_sizes`: {`n`: [2, 9]}, `seeds`: [1",
                              "{`file`: `x.npy`}")),
             bht_quoted(files));
    refuse_text(text, "t.json:4: \"reference\": \"files\" are the outputs for one size and for "
                      "inputs that are files: there are hidden sizes");
    snprintf(text, sizeof text, "%s%s", bht_quoted(FILES("{`n`: 2}, {`n`: 3}", "`normal`")),
             bht_quoted(eval));
    parse(text);
    BHT_EQ(task.reference, BHI_REFERENCE_EVAL);
    BHT_STR_EQ(task.reference_eval, "Y = X");
    BHT_STR_EQ(task.reference_eval_field, "t.json:4: \"reference\" \"eval\"");
    BHT_TRUE(bhi_task_push_text(&task, 0, 0, &push, &complaint));
    BHT_STR_EQ(push, "a=2.0,b=1.0000000000000001e+300"); /* both are floats */
    free(push);
    parse(whole);
    BHT_EQ(task.reference, BHI_REFERENCE_KERNEL);
    parse(replaced("  `reference`: {`kernel`: `ref.comp`},\n", ""));
    BHT_EQ(task.reference, BHI_REFERENCE_CALLBACK);
}

/* The whole with "hidden_sizes" of that value. */
static const char *with_hidden(const char *value) {
    static char after[256];
    snprintf(after, sizeof after, "`seeds`: [5, 6], `hidden_sizes`: %s", value);
    return replaced("`seeds`: [5, 6]", after);
}

static bool is_prime(uint64_t number) {
    uint64_t i = 2;
    while (i < number && number % i != 0) {
        i++;
    }
    return i == number;
}

TEST(hidden_sizes_are_drawn_from_the_range_that_is_written) {
    parse(with_hidden("5"));
    BHT_EQ(task.size_count, 3);
    for (uint64_t seed = 0; seed < 50; seed++) {
        BHT_TRUE(bhi_task_draw_sizes(&task, seed, &complaint));
        BHT_EQ(task.size_count, 8);
        for (size_t i = 3; i < 8; i++) {
            const struct bhi_task_size *size = &task.sizes[i];
            const uint64_t n = size->values[0], m = size->values[1];
            BHT_TRUE(size->hidden && size->check_only);
            BHT_TRUE(n >= 1 && n <= 1000 && m >= 1 && m <= 4);
            BHT_TRUE(i % 3 != 0 || (is_prime(n) && is_prime(m)));
            BHT_TRUE(i % 3 != 1 || (n % 2 && m % 2));
            BHT_TRUE(i % 3 != 2 || (n > 900 && m == 4));
        }
    }
    BHT_TRUE(!task.sizes[2].hidden);
}

TEST(a_seed_draws_the_same_hidden_sizes_again) {
    uint64_t first[3], varied = 0;
    parse(with_hidden("{`n`: [16, 1600, 16]}"));
    BHT_TRUE(bhi_task_draw_sizes(&task, 7, &complaint));
    BHT_EQ(task.size_count, 6);
    for (size_t i = 0; i < 3; i++) {
        first[i] = task.sizes[3 + i].values[0];
        BHT_EQ(first[i] % 16, 0);
    }
    for (uint64_t seed = 8; seed < 20; seed++) {
        BHT_TRUE(bhi_task_draw_sizes(&task, seed, &complaint));
        varied += task.sizes[3].values[0] != first[0];
    }
    BHT_TRUE(varied > 6);
    BHT_TRUE(bhi_task_draw_sizes(&task, 7, &complaint));
    for (size_t i = 0; i < 3; i++) {
        BHT_EQ(task.sizes[3 + i].values[0], first[i]);
    }
}

/* The first size of "check_sizes" that has a 0: arrays may be empty there, and nowhere else. */
TEST(a_size_of_0_has_empty_arrays_and_a_group) {
    static const uint32_t local[3] = {64, 1, 1};
    uint32_t groups[3];
    struct bhi_array form;
    parse(replaced("[{`n`: 1, `m`: 1}]", "[{`n`: 0, `m`: 2}]"));
    BHT_TRUE(bhi_task_has_zero(&task, 2) && !bhi_task_has_zero(&task, 1));
    BHT_TRUE(bhi_task_shape(&task, 2, &task.arrays[0], &form, &complaint));
    BHT_TRUE(form.bytes == 0 && form.shape[0] == 0 && form.shape[1] == 2);
    BHT_TRUE(bhi_task_groups_for(&task, 2, &task.groups, local, groups, &complaint));
    BHT_TRUE(groups[0] == 1 && groups[1] == 2);
    parse(with_hidden("{`n`: [0, 1]}"));
    parse(bht_quoted(
        "{`sizes`: [{`n`: 9}], `check_sizes`: [{`n`: 0}], `groups`: [1],"
        " `in`: {`X`: {`dtype`: `u32`, `shape`: [`n`], `fill`: {`integers`: [0, `n - 1`]}}},"
        " `out`: {`Y`: {`dtype`: `u8`, `shape`: []}}, `reference`: {`kernel`: `r`}}"));
    refuse(4, "[{`n`: 1, `m`: 1}]", "[{`n`: 0, `m`: -1}]",
           "`check_sizes` [0] `m`: it must be a whole number from 0");
}

TEST(hidden_sizes_for_which_nothing_can_be_computed_are_refused) {
    refuse_text(with_hidden("0"),
                bht_quoted("t.json:5: `hidden_sizes`: it must be from 1 to 16, or an "
                           "object with a range for each name"));
    refuse_text(
        with_hidden("{`count`: 17}"),
        bht_quoted("t.json:5: `hidden_sizes` `count`: it must be from 1 to 16, or an object with "
                   "a range for each name"));
    refuse_text(with_hidden("{`k`: [1, 2]}"),
                bht_quoted("t.json:5: `hidden_sizes` `k`: no size has this name"));
    refuse_text(
        with_hidden("{`n`: [3, 2]}"),
        bht_quoted(
            "t.json:5: `hidden_sizes` `n`: it must be [LEAST, GREATEST] or [LEAST, GREATEST, "
            "STEP], whole numbers, of which only LEAST may be 0"));
    refuse_text(
        with_hidden("{`n`: [1, 9223372036854775807]}"),
        bht_quoted(
            "t.json:7: `in` `X` `shape`: the shape has more elements than 64 bits can count (with "
            "n=9223372036854775807, m=4)"));
    refuse_text("{\"sizes\": [{}], \"hidden_sizes\": 3, \"groups\": [1]}",
                "t.json:1: \"hidden_sizes\": the sizes have no names");
}

/* Each name and each size is drawn for itself. */
TEST(hidden_sizes_are_not_alike) {
    parse(with_hidden("{`n`: [2, 200000, 2], `m`: [2, 200000, 2], `count`: 5}"));
    BHT_TRUE(bhi_task_draw_sizes(&task, 7, &complaint));
    BHT_EQ(task.size_count, 8);
    for (size_t i = 3; i < 8; i++) {
        BHT_NE(task.sizes[i].values[0], task.sizes[i].values[1]);
        for (size_t k = 3; k < i; k++) {
            BHT_NE(task.sizes[i].values[0], task.sizes[k].values[0]);
        }
    }
}

/* With ranges, and without a count there are three, or as many as there is room for. */
TEST(hidden_sizes_have_the_room_that_is_left) {
    for (size_t written = BHI_TASK_SIZES - 4; written <= BHI_TASK_SIZES; written++) {
        const size_t room = BHI_TASK_SIZES - written;
        char text[2048] = "{`sizes`: [{`n`: 1}";
        for (size_t i = 1; i < written; i++) {
            strcat(text, ", {`n`: 2}");
        }
        strcat(text,
               "], `hidden_sizes`: {`n`: [1, 5]}, `out`: {`Y`: {`dtype`: `u8`, `shape`: [`n`]}},"
               " `groups`: [1], `reference`: {`kernel`: `r`}}");
        if (!room) {
            refuse_text(bht_quoted(text), "t.json:1: \"hidden_sizes\": there are 64 sizes already");
            continue;
        }
        parse(bht_quoted(text));
        BHT_TRUE(bhi_task_draw_sizes(&task, 1, &complaint));
        BHT_EQ(task.size_count, written + (room < 3 ? room : 3));
    }
}

/* The ends of its range are possible, and some numbers between are not: no kernel is blamed for them. */
TEST(a_hidden_size_that_turns_out_impossible_is_the_tasks_fault) {
    parse(bht_quoted("{`sizes`: [{`n`: 2}, {`n`: 4}], `hidden_sizes`: {`n`: [2, 640]},"
                     " `out`: {`Y`: {`dtype`: `u8`, `shape`: [`n`]}}, `groups`: [`(n + 1) % 4`],"
                     " `reference`: {`kernel`: `ref.comp`}}"));
    bool refused = false;
    for (uint64_t seed = 0; seed < 20 && !refused; seed++) {
        refused = !bhi_task_draw_sizes(&task, seed, &complaint);
    }
    BHT_TRUE(refused);
    BHT_STR_HAS(complaint.text,
                "\"hidden_sizes\": 0 groups along x: from 1 to 4294967295 are possible");
}

TEST(a_hidden_size_that_the_reference_cannot_have_is_the_tasks_fault) {
    parse(bht_quoted("{`sizes`: [{`n`: 2}, {`n`: 4}], `hidden_sizes`: {`n`: [2, 640]},"
                     " `out`: {`Y`: {`dtype`: `u8`, `shape`: [`n`]}}, `groups`: [1],"
                     " `reference`: {`kernel`: `ref.comp`, `groups`: [`(n + 1) % 4`]}}"));
    bool refused = false;
    for (uint64_t seed = 0; seed < 20 && !refused; seed++) {
        refused = !bhi_task_draw_sizes(&task, seed, &complaint);
    }
    BHT_TRUE(refused);
    BHT_STR_HAS(complaint.text, "\"hidden_sizes\": 0 groups along x");
}

TEST(a_push_constant_that_is_drawn_varies_with_seed_and_size) {
    char *text[4];
    parse(replaced("2.5", "{`uniform`: [0.5, 4]}"));
    BHT_TRUE(!bhi_task_is_fixed(&task));
    for (size_t i = 0; i < 4; i++) {
        float value;
        BHT_TRUE(bhi_task_push_text(&task, i == 3, i % 3 / 2 + 1, &text[i], &complaint));
        BHT_EQ(sscanf(text[i], "a=%f,", &value), 1);
        BHT_TRUE(value >= 0.5F && value <= 4);
    }
    BHT_STR_EQ(text[0], text[1]);
    BHT_TRUE(strcmp(text[0], text[2]) != 0);
    BHT_TRUE(strncmp(text[0], text[3], strchr(text[0], ',') - text[0]) != 0);
    for (size_t i = 0; i < 4; i++) {
        free(text[i]);
    }
    parse(replaced("2.5", "{`integers`: [-3, -3]}"));
    BHT_TRUE(bhi_task_push_text(&task, 0, 1, &text[0], &complaint));
    BHT_STR_HAS(text[0], "a=-3,");
    free(text[0]);
    parse(replaced("2.5", "{`integers`: [`m + 1`, `m + 1`]}"));
    BHT_TRUE(bhi_task_push_text(&task, 0, 1, &text[0], &complaint));
    BHT_STR_HAS(text[0], "a=4,");
    free(text[0]);
}

/* Two of them are two numbers, also if they are drawn from the same range. */
TEST(each_push_constant_is_drawn_for_itself) {
    char *text = NULL;
    long long a, b;
    parse(
        "{\"sizes\": [{}], \"groups\": [1], \"out\": {\"Y\": {\"dtype\": \"u8\", \"shape\": []}},\n"
        "\"push\": {\"a\": {\"integers\": [0, 1000000000]}, \"b\": {\"integers\": [0, "
        "1000000000]}},\n"
        "\"reference\": {\"kernel\": \"ref.comp\"}}");
    BHT_TRUE(!bhi_task_is_fixed(&task) && !bhi_task_is_storable(&task));
    BHT_TRUE(bhi_task_push_text(&task, 0, 1, &text, &complaint));
    BHT_EQ(sscanf(text, "a=%lld,b=%lld", &a, &b), 2);
    BHT_NE(a, b);
    free(text);
    parse(
        "{\"sizes\": [{}], \"groups\": [1], \"out\": {\"Y\": {\"dtype\": \"u8\", \"shape\": []}},\n"
        "\"push\": {\"a\": {\"integers\": [4, 4]}, \"b\": 2.5}, \"reference\": {\"kernel\": "
        "\"r.comp\"}}");
    BHT_TRUE(bhi_task_is_storable(&task));
}

TEST(types_may_have_the_names_that_arrays_give_them) {
    static const char *const names[] = {"float16", "float32", "float64",  "int8",   "uint8",
                                        "int16",   "uint16",  "int32",    "uint32", "int64",
                                        "uint64",  "bool",    "bfloat16", "f8e4m3", "float8_e5m2"};
    static const char *const ours[] = {"f16", "f32",  "f64",  "i8",      "u8",
                                       "i16", "u16",  "i32",  "u32",     "i64",
                                       "u64", "bool", "bf16", "f8_e4m3", "f8_e5m2"};
    for (size_t i = 0; i < BHT_COUNT(names); i++) {
        char after[64];
        snprintf(after, sizeof after, "`dtype`: `%s`, `shape`: []", names[i]);
        parse(replaced("`dtype`: `u8`, `shape`: []", after));
        BHT_STR_EQ(bhi_dtype_name(task.arrays[1].dtype), ours[i]);
    }
}

/* An input with "fill" and these "fills", and the task's "fills", unless they are "". */
static void parse_fills(const char *fill, const char *own, const char *common) {
    char text[1024];
    snprintf(text, sizeof text,
             "{`sizes`: [{`n`: 4}], `in`: {`X`: {`dtype`: `f32`, `shape`: [4], `fill`: %s%s%s}},"
             " `out`: {`Y`: {`dtype`: `f32`, `shape`: [4]}}, `groups`: [1]%s%s,"
             " `reference`: {`kernel`: `x.comp`}}",
             fill, *own ? ", `fills`: " : "", own, *common ? ", `fills`: " : "", common);
    parse(bht_quoted(text));
}

TEST(a_task_that_says_nothing_has_the_usual_fills) {
    char text[BHI_FILL_TEXT];
    parse_fills("`normal`", "", "");
    BHT_TRUE(task.default_fills);
    BHT_EQ(task.arrays[0].fill_count, 5);
    BHT_STR_EQ(bhi_task_fill_text(&task, 0, text), "equal");
    BHT_STR_EQ(bhi_task_fill_text(&task, 4, text), "ends");
    BHT_EQ(task.arrays[0].fills[4].arrangement, BHI_ARRANGE_ENDS);
    BHT_EQ(task.arrays[0].fills[4].filler.kind, BHI_FILLER_NORMAL);
}

TEST(inputs_that_never_vary_have_no_fills) {
    parse_fills("{`uniform`: [1, 1]}", "", "");
    BHT_EQ(task.arrays[0].fill_count, 0);
    parse_fills("{`file`: `x.npy`}", "", "");
    BHT_EQ(task.arrays[0].fill_count, 0);
}

TEST(fills_are_those_of_the_input_else_those_of_the_task) {
    char text[BHI_FILL_TEXT];
    parse_fills("`normal`", "", "[]");
    BHT_TRUE(!task.default_fills);
    BHT_EQ(task.arrays[0].fill_count, 0);
    parse_fills("`normal`", "", "[`huge`, {`uniform`: [5, 6], `special`: 0.5}, `bits`]");
    BHT_TRUE(!task.default_fills);
    BHT_EQ(task.arrays[0].fill_count, 3);
    BHT_EQ(task.arrays[0].fills[0].arrangement, BHI_ARRANGE_HUGE);
    BHT_EQ(task.arrays[0].fills[1].arrangement, BHI_ARRANGE_NONE);
    BHT_TRUE(task.arrays[0].fills[1].filler.low == 5 &&
             task.arrays[0].fills[1].filler.special == 0.5);
    BHT_STR_EQ(bhi_task_fill_text(&task, 1, text), "uniform");
    BHT_STR_EQ(bhi_task_fill_text(&task, 2, text), "bits");
    parse_fills("`normal`", "[`sorted`]", "[`huge`, `tiny`]");
    BHT_EQ(task.arrays[0].fill_count, 1);
    BHT_EQ(task.arrays[0].fills[0].arrangement, BHI_ARRANGE_SORTED);
}

TEST(fills_that_differ_are_named_with_their_inputs) {
    char text[BHI_FILL_TEXT];
    parse(
        replaced("`dtype`: `u8`, `shape`: [], `fill`: `bits`",
                 "`dtype`: `u8`, `shape`: [], `fill`: `bits`, `fills`: [`ends`, `ties`, `equal`]"));
    BHT_STR_EQ(bhi_task_fill_text(&task, 2, text), "equal");
    parse(replaced("`normal`: [0, 2], `special`: 0.5}", "`normal`: [0, 2]}, `fills`: [`sorted`]"));
    BHT_STR_EQ(bhi_task_fill_text(&task, 0, text), "sorted");
}

TEST(fills_that_there_are_not_are_refused) {
    refuse(9, "`fill`: `bits`", "`fill`: `bits`, `fills`: 7",
           "`inout` `Z` `fills`: it must be an array of at most 16: equal, sorted, reversed, ties, "
           "ends, "
           "zeros, tiny, huge, permutation, or generators");
    refuse(9, "`fill`: `bits`", "`fill`: `bits`, `fills`: [`ties`, `tie`]",
           "`inout` `Z` `fills` [1]: there is no 'tie'; there are equal, sorted, reversed, ties, "
           "ends, "
           "zeros, tiny, huge, permutation, and the generators of `fill`");
    refuse(9, "`fill`: `bits`", "`fill`: `bits`, `fills`: [{`file`: `x.npy`}]",
           "`inout` `Z` `fills` [0]: a file is no fill");
    refuse(9, "`fill`: `bits`", "`fill`: {`file`: `x.npy`}, `fills`: [`ties`]",
           "`inout` `Z` `fills`: its content is that of a file");
}

TEST(no_outputs_no_sizes) {
    refuse_text("{\"sizes\": [{}], \"groups\": [1]}",
                "t.json:1: there is no \"out\" and no \"inout\"");
    refuse_text("{\"groups\": [1]}", "t.json:1: there is no \"sizes\"");
    refuse_text("[]", "t.json:1: it must be an object");
}

TEST(no_json) {
    refuse_text("{\n  \"name\": \"x\"\n  \"sizes\"\n}",
                "t.json:3: not JSON: '}' expected near '\"sizes\"' (column 9)");
    refuse_text("{\"name\": \"x\",\n\"name\": \"y\"}",
                "t.json:2: not JSON: duplicate object key near '\"name\"' (column 6)");
}

/* A key with an escape is found in the text as it is written there, or not at all: then the line is
 * that of the object around it. */
TEST(lines_of_odd_texts) {
    refuse(6, "  `in`: {\n", "  `in`: {\n    `a\\`}]b`: {`dtype`: `}{`},\n",
           "`in` `a`}]b` `dtype`: it must be one of " BHI_DTYPE_NAMES " " BHI_SMALL_FLOAT_NAMES);
    refuse(3, "`scale`,\n  `sizes`: [{`n`: 1000", "`a\\`}]{b`,\n  `sizes`: [{`n`: 0",
           "`sizes` [0] `n`: it must be a whole number from 1; 0 may be among `check_sizes`");
    refuse(4, "`m`: 3}, {`m`: 4", "`m`: 3},\n{`m`: 0",
           "`sizes` [1] `m`: it must be a whole number from 1; 0 may be among `check_sizes`");
    refuse(5, "[{`n`: 1, `m`: 1}]", "[{`n`: 1, `m`: 1},\n{`n`: 1, `m`: -1},\n{`n`: 0}]",
           "`check_sizes` [1] `m`: it must be a whole number from 0");
    refuse(11, "`X`: {`dtype`: `f32`", "`X`\n:\n{\n`dtype`:\n1",
           "`in` `X` `dtype`: it must be one of " BHI_DTYPE_NAMES " " BHI_SMALL_FLOAT_NAMES);
}

TEST(from_a_file) {
    int error = 0;
    char path[] = "/tmp/bulkhead-judge-XXXXXX";
    const int fd = mkstemp(path);
    BHT_GE(fd, 0);
    BHT_EQ(write(fd, whole, sizeof whole - 1), (ssize_t)sizeof whole - 1);
    BHT_TRUE(bhi_task_read(path, &task, &error, &complaint));
    BHT_STR_EQ(task.reference_kernel.path, "/tmp/ref.comp");
    bhi_task_free(&task);
    BHT_EQ(write(fd, "", 1), 1);
    BHT_TRUE(!bhi_task_read(path, &task, &error, &complaint));
    BHT_STR_HAS(complaint.text, "not JSON: it contains a NUL byte");
    BHT_EQ(error, 0);
    close(fd);
    unlink(path);
    BHT_TRUE(!bhi_task_read(path, &task, &error, &complaint));
    BHT_STR_HAS(complaint.text, "No such file or directory");
    BHT_EQ(error, ENOENT);
    BHT_TRUE(!bhi_task_read("saxpy.comp", &task, &error, &complaint));
    BHT_STR_HAS(complaint.text, "saxpy.comp: it has the name of a kernel; a task is a JSON file");
    BHT_EQ(error, 0);
}

static void free_task(void) {
    bhi_task_free(&task);
}

BHT_AT_START(bht_end_with(free_task))

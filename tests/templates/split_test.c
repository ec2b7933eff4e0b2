/* How expressions with reductions are split into stages. */
#include "harness.h"
#include "templates/split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct bhi_kernel_form plain = {.arguments = ""};

/* Writes the kernels of all stages, one a line, as "NAME: TEXT". */
static char *plan(const char *source, const char *first, const char *second,
                  struct bhi_complaint *complaint) {
    const char *outputs[] = {first, second};
    struct bhi_expression expression;
    struct bhi_split made;
    struct bhi_pen pen = {0};
    if (!bhi_expression_parse(source, strlen(source), &expression, complaint) ||
        !bhi_split_make(&expression, outputs, second ? 2 : 1, &made, complaint)) {
        return NULL;
    }
    for (uint32_t i = 0; i < made.count; i++) {
        const struct bhi_kernel_stage *stage = &made.stages[i];
        bhi_pen_put(&pen, "%s%s%s: ", stage->result, *stage->output && *stage->result ? " " : "",
                    stage->output);
        bhi_kernel_stage_write(&made, stage, &plain, &pen);
        bhi_pen_put(&pen, "|");
    }
    bhi_split_fini(&made);
    return pen.text;
}

static void expect(const char *source, const char *first, const char *second, const char *wanted) {
    struct bhi_complaint complaint = {.text = ""};
    char *text = plan(source, first, second, &complaint);
    if (!text) {
        BHT_FAIL("%s: %s", source, complaint.text);
    }
    BHT_STR_EQ(text, wanted);
    free(text);
}

TEST(a_reduction_is_a_stage_and_what_follows_is_one) {
    expect("z = sum(x)", "z", NULL, "_0 z: z = sum(x)|");
    expect("z = mean(exp(x - max(x, axis=-1)), axis=(0, 1))", "z", NULL,
           "_0: z =              max(x, axis=(-1))|"
           "_1 z: z = mean(exp(x - (_0           )), axis=(0,1))|");
    expect("z = 1 + sum(x) / 3", "z", NULL, "_0: z =     sum(x)|z: z = 1 + (_0  ) / 3|");
}

TEST(a_stage_has_only_the_statements_that_it_needs) {
    expect("t = x * y; u = x + 1; s = sum(t); z = s + u", "z", NULL,
           "_0: t = x * y;          ; s = sum(t)|"
           "z:          ; u = x + 1; s = (_0  ); z = s + u|");
    expect("s = sum(x); dead = max(y); z = s * 2; later = z", "z", NULL,
           "_0: s = sum(x)|z: s = (_0  );              ; z = s * 2           |");
}

TEST(each_output_is_a_stage) {
    expect("m = mean(x); z = x - m", "m", "z", "_0 m: m = mean(x)|z: m = (_0   ); z = x - m|");
    expect("a = x + 1; b = max(a)", "a", "b",
           "_0 b: a = x + 1; b = max(a)|a: a = x + 1            |");
}

TEST(the_last_value_of_a_name_counts) {
    expect("x = x + 1; x = x * sum(x); z = x", "z", NULL,
           "_0: x = x + 1; x =     sum(x)|z: x = x + 1; x = x * (_0  ); z = x|");
}

TEST(results_have_names_that_nothing_else_has) {
    expect("z = sum(x + _3)", "z", NULL, "r0 z: z = sum(x + _3)|");
}

TEST(lines_and_columns_stay) {
    expect("z = (1 +\n sum(x,\n axis=0))", "z", NULL,
           "_0: z =(    \n sum(x, axis=(0)))\n|z: z = (1 +\n (_0   \n       ))|");
}

TEST(refusals) {
    static const struct {
        const char *source, *why;
    } cases[] = {
        {"z = sum(x, 1)", "column 5: sum takes 1 argument, not 2; an axis is written axis=0"},
        {"z = sum()", "column 5: sum takes 1 argument, not 0"},
        {"z = sum(axis=1)", "column 13: '=' where ',' or ')' was expected"},
        {"z = max(x, y, axis=1)",
         "column 5: max takes 1 argument, not 2; an axis is written axis=0"},
        {"z = exp(x, axis=1)", "column 16: '=' where ',' or ')' was expected"},
        {"z = sum(x, axis=y)",
         "column 17: 'y' where an axis, such as 1, -1 or (0, 2), was expected"},
        {"z = sum(x, axis=(0 1))", "column 20: '1' where ',' or ')' was expected"},
        {"z = sum(x, axis=99999999999)", "column 17: the number is too large"},
        {"z = sum(x, keepdims=2)", "column 21: '2' where true or false was expected"},
        {"z = sum(x, axis=0, axis=1)", "column 20: axis is given twice"},
        {"z = sum(x, y=1)", "column 12: 'y=' where axis=... or keepdims=... was expected"},
        {"z = sum(x, parts=0)", "column 18: there are no 0 parts"},
        {"z = sum(x, parts=4)", "column 5: sum takes an array, axis=... and keepdims=..."},
        {"z = argmax(x, y, k)", "column 5: argmax takes an array, axis=... and keepdims=..."},
        {"sum = x; z = sum(x)",
         "column 1: 'sum' is a function here, so nothing else can have that name"},
        {"z = sum(x) + sum",
         "column 14: 'sum' is a function here, so nothing else can have that name"},
        {"z = cumsum(x)",
         "column 5: there is no function 'cumsum'; a running sum is a kernel of its "
         "own: write it in GLSL (bulkhead run)"},
        {"z = matmul(x, y)",
         "column 5: there is no function 'matmul'; a matrix product is a kernel "
         "of its own: write it in GLSL (bulkhead run)"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        struct bhi_complaint complaint = {.text = ""};
        char *text = plan(cases[i].source, "z", NULL, &complaint);
        if (text) {
            BHT_FAIL("%s is taken: %s", cases[i].source, text);
        }
        BHT_STR_EQ(complaint.text, cases[i].why);
    }
}

TEST(more_reductions_than_there_may_be_are_refused) {
    char source[1024] = "z = x";
    struct bhi_complaint complaint = {.text = ""};
    for (int i = 0; i < BHI_EXPRESSION_REDUCTIONS; i++) {
        strcat(source, " + sum(x)");
    }
    char *text = plan(source, "z", NULL, &complaint);
    BHT_TRUE(text);
    free(text);
    strcat(source, " + sum(x)");
    BHT_TRUE(!plan(source, "z", NULL, &complaint));
    BHT_STR_EQ(complaint.text, "column 585: more than 64 reductions");
}

TEST(a_text_that_leaves_no_room_for_a_kernel_is_refused) {
    static char source[BHI_EXPRESSION_BYTES + 1];
    struct bhi_complaint complaint = {.text = ""};
    memset(source, ' ', BHI_EXPRESSION_BYTES - BHI_KERNEL_STAGE_MORE);
    memcpy(source, "z = sum(x)", 10);
    char *text = plan(source, "z", NULL, &complaint);
    BHT_TRUE(text);
    free(text);
    source[strlen(source)] = ' ';
    BHT_TRUE(!plan(source, "z", NULL, &complaint));
    BHT_STR_EQ(complaint.text, "longer than 15360 bytes");
}

/* What shape and type a reduction has, what it refuses, and how it walks. */
#include "harness.h"
#include "templates/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct bhi_shape parse(const char *text) {
    struct bhi_shape shape = {.count = 1};
    for (const char *at = text; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        shape.size[shape.rank] = strtoull(at, NULL, 10);
        shape.count *= shape.size[shape.rank++];
    }
    return shape;
}

static bool reduce(const char *source, const char *shape, struct bhi_reduced *out,
                   struct bhi_complaint *complaint) {
    struct bhi_expression e;
    const struct bhi_shape operand = parse(shape);
    if (!bhi_expression_parse(source, strlen(source), &e, complaint)) {
        BHT_FAIL("%s: %s", source, complaint->text);
    }
    const bool good = bhi_reduction_shape(&e, &e.reductions[0], &operand, out, complaint);
    bhi_expression_fini(&e);
    return good;
}

TEST(shapes_are_numpys) {
    static const struct {
        const char *source, *shape, *result;
        uint64_t length;
    } cases[] = {
        {"z = sum(x)", "3,4", "[]", 12},
        {"z = sum(x, axis=None)", "3,4", "[]", 12},
        {"z = sum(x, axis=0)", "3,4", "[4]", 3},
        {"z = sum(x, axis=-1)", "3,4", "[3]", 4},
        {"z = sum(x, axis=(0,-1))", "3,4,5", "[4]", 15},
        {"z = sum(x, axis=())", "3,4", "[3,4]", 1},
        {"z = sum(x, axis=1, keepdims=true)", "3,4", "[3,1]", 4},
        {"z = sum(x, keepdims=1)", "3,4", "[1,1]", 12},
        {"z = sum(x, axis=1)", "3,0", "[3]", 0},
        {"z = max(x, axis=1)", "0,3", "[0]", 3},
        {"z = sum(x, axis=1, parts=8)", "3,4", "[3,8]", 4},
        {"z = sum(x, axis=1, parts=-8)", "3,4", "[8,3]", 4},
        {"z = sum(x)", "1048576,1048576", "[]", UINT64_C(1) << 40},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        struct bhi_complaint complaint = {.text = ""};
        struct bhi_reduced reduced;
        char text[128];
        if (!reduce(cases[i].source, cases[i].shape, &reduced, &complaint)) {
            BHT_FAIL("%s: %s", cases[i].source, complaint.text);
        }
        BHT_STR_EQ(bhi_shape_text(&reduced.result, text, sizeof text), cases[i].result);
        BHT_EQ(reduced.length, cases[i].length);
    }
}

TEST(what_has_no_result_is_refused) {
    static const struct {
        const char *source, *shape, *why;
    } cases[] = {
        {"z = sum(x, axis=2)", "3,4", "column 5: sum: there is no axis 2 of [3,4]"},
        {"z = sum(x, axis=-3)", "3,4", "column 5: sum: there is no axis -3 of [3,4]"},
        {"z = sum(x, axis=0)", "", "column 5: sum: there is no axis 0 of []"},
        {"z = sum(x, axis=(1,-1))", "3,4", "column 5: sum: axis -1 of [3,4] is given twice"},
        {"z = argmax(x, axis=(0,1))", "3,4", "column 5: argmax takes one axis, or all"},
        {"z = max(x, axis=1)", "3,0",
         "column 5: max of [3,0]: there is no max of no elements along the axes that are reduced"},
        {"z = argmin(x)", "0",
         "column 5: argmin of [0]: there is no argmin of no elements along the axes that are "
         "reduced"},
        {"z = sum(x)", "1048576,1048577",
         "column 5: sum of [1048576,1048577]: more than 2^40 elements"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        struct bhi_complaint complaint = {.text = ""};
        struct bhi_reduced reduced;
        BHT_TRUE(!reduce(cases[i].source, cases[i].shape, &reduced, &complaint));
        BHT_STR_EQ(complaint.text, cases[i].why);
    }
}

/* Which part has an element, as the shader finds it: each has one, and no part has more than its share. */
TEST(each_element_is_in_one_part) {
    static const uint64_t lengths[] = {0, 1, 2, 7, 255, 256, 257, 1000, 65536, 65537, 100000};
    static const uint32_t parts[] = {1, 2, 3, 4, 64, 100, 256, 512, 768, 1024};
    static uint8_t seen[100000];
    for (size_t i = 0; i < BHT_COUNT(lengths) * BHT_COUNT(parts); i++) {
        const uint64_t length = lengths[i % BHT_COUNT(lengths)];
        const struct bhi_reduction reduction = {.parts = parts[i / BHT_COUNT(lengths)]};
        const uint64_t share = (length + reduction.parts - 1) / reduction.parts;
        uint32_t walk[BHI_WALK_WORDS];
        uint64_t all = 0;
        bhi_reduction_walk(&reduction, length, walk);
        memset(seen, 0, sizeof seen);
        for (uint32_t part = 0; part < reduction.parts; part++) {
            const uint64_t begin = (uint64_t)(part / walk[BHI_WALK_WIDTH]) * walk[BHI_WALK_SPAN];
            uint64_t own = 0;
            for (uint64_t k = begin + part % walk[BHI_WALK_WIDTH];
                 k < begin + walk[BHI_WALK_SPAN] && k < length; k += walk[BHI_WALK_WIDTH]) {
                BHT_EQ(seen[k], 0);
                seen[k] = 1;
                own++;
            }
            BHT_TRUE(own <= share);
            all += own;
        }
        BHT_EQ(all, length);
    }
}

TEST(a_template_is_one_reduction) {
    static const char *const refused[] = {"z = sum(x) + 1", "t = sum(x); z = t", "z = sum(sum(x))",
                                          "z = sum(x); y = x"};
    struct bhi_complaint complaint;
    for (size_t i = 0; i < BHT_COUNT(refused); i++) {
        struct bhi_form form = {.is_expression = true, .count = 2};
        form.parameters[0] = (struct bhi_parameter){"x", BHI_ROLE_IN, BH_DTYPE_NONE, ""};
        form.parameters[1] = (struct bhi_parameter){"z", BHI_ROLE_OUT, BH_DTYPE_NONE, ""};
        BHT_TRUE(
            bhi_expression_parse(refused[i], strlen(refused[i]), &form.expression, &complaint));
        BHT_TRUE(!bhi_form_check(&form, &complaint));
        BHT_TRUE(
            strstr(complaint.text, "a template is one kernel: of sum it can be NAME = sum(...)"));
        bhi_form_fini(&form);
    }
}

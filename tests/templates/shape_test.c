/* K3: which shapes go together, and what comes of it. */
#include "harness.h"
#include "templates/shape.h"

#include <stdio.h>
#include <string.h>

/* "2,3" and so on; "" is one element without dimensions. */
static struct bhi_shape parse(const char *text) {
    struct bhi_shape shape = {.count = 1};
    int used = 0;
    unsigned long long size;
    while (sscanf(text, "%llu%n", &size, &used) == 1) {
        shape.size[shape.rank++] = size;
        shape.count *= size;
        text += used + (text[used] == ',');
    }
    return shape;
}

TEST(test_join) {
    static const struct {
        const char *a, *b, *joined; /* NULL: refused */
    } cases[] = {
        {"3", "3", "[3]"},     {"2,3", "2,3", "[2,3]"}, {"", "3", "[3]"}, {"3", "1", "[3]"},
        {"1,1", "3", "[1,3]"}, {"2,3", "1", "[2,3]"},   {"", "", "[]"},   {"1", "1,1", "[1,1]"},
        {"0", "1", "[0]"},     {"0", "0", "[0]"},       {"3", "4", NULL}, {"2,3", "3,2", NULL},
        {"2,3", "3", NULL},    {"6", "2,3", NULL},      {"0", "3", NULL}, {"1,3", "3", NULL},
        {"5,0", "0", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct bhi_named_shape arrays[] = {{"x", parse(cases[i].a)},
                                                 {"y", parse(cases[i].b)}};
        struct bhi_complaint complaint = {.text = ""};
        struct bhi_shape joined;
        char text[64];
        const bool good = bhi_shape_join(arrays, 2, &joined, &complaint);
        if (good != !!cases[i].joined) {
            BHT_FAIL("[%s] and [%s]: %s", cases[i].a, cases[i].b, complaint.text);
        }
        if (good) {
            BHT_STR_EQ(bhi_shape_text(&joined, text, sizeof text), cases[i].joined);
        } else {
            BHT_STR_HAS(complaint.text, "shapes must be the same");
        }
    }
}

TEST(test_counts) {
    struct bhi_complaint complaint;
    struct bhi_shape joined;
    const struct bhi_named_shape arrays[] = {{"x", parse("1")}, {"y", parse("4,5")}};
    BHT_TRUE(bhi_shape_join(arrays, 2, &joined, &complaint));
    BHT_EQ(joined.count, 20);
    BHT_TRUE(bhi_shape_join(arrays, 0, &joined, &complaint));
    BHT_EQ(joined.count, 1);
    BHT_EQ(joined.rank, 0);
}

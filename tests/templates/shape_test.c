/* K3: which shapes go together, and what comes of it. */
#include "harness.h"
#include "templates/constants.h"

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
        const char *a, *b, *c, *joined; /* NULL: refused */
        const char *why;
    } cases[] = {
        {"3", "3", "", "[3]", NULL},
        {"2,3", "2,3", "", "[2,3]", NULL},
        {"", "3", "", "[3]", NULL},
        {"3", "1", "", "[3]", NULL},
        {"1,1", "3", "", "[1,3]", NULL},
        {"", "", "", "[]", NULL},
        {"1", "1,1", "", "[1,1]", NULL},
        {"2,3", "3", "", "[2,3]", NULL},
        {"1,3", "3", "", "[1,3]", NULL},
        {"3,1", "4", "", "[3,4]", NULL},
        {"2,1,4", "3,1", "1,1,1,1", "[1,2,3,4]", NULL},
        {"0", "1", "", "[0]", NULL},
        {"0", "0", "", "[0]", NULL},
        {"5,0", "0", "", "[5,0]", NULL},
        {"3,1", "0", "", "[3,0]", NULL},
        {"4294967296,1", "2147483647", "", "[4294967296,2147483647]", NULL},
        {"9223372036854775807", "1", "", "[9223372036854775807]", NULL},
        {"4294967296,1", "2147483648", "", NULL, "[4294967296,2147483648]: more than 2^63 - 1"},
        {"3", "3", "4", NULL, "x is [3] and z is [4]"},
        {"3", "4", "", NULL, "x is [3] and y is [4]: axis -1 has 3 and 4 elements"},
        {"2,3", "3,2", "", NULL, "x is [2,3] and y is [3,2]: axis -1 has 3 and 2 elements"},
        {"2,1", "3,1", "", NULL, "x is [2,1] and y is [3,1]: axis -2 has 2 and 3 elements"},
        {"6", "2,3", "", NULL, "x is [6] and y is [2,3]"},
        {"0", "3", "", NULL, "x is [0] and y is [3]: axis -1 has 0 and 3 elements"},
        {"3,1", "1,4", "5", NULL, "y is [1,4] and z is [5]: axis -1 has 4 and 5 elements"},
        {"4294967296,1", "4294967296", "", NULL, "[4294967296,4294967296]: more than 2^63 - 1"},
        {"4294967296,1,1", "4294967296,1", "0", NULL, "[4294967296,4294967296,0]: more than"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct bhi_named_shape arrays[] = {
            {"x", parse(cases[i].a)}, {"y", parse(cases[i].b)}, {"z", parse(cases[i].c)}};
        struct bhi_complaint complaint = {.text = ""};
        struct bhi_shape joined;
        char text[64];
        const bool good = bhi_shape_join(arrays, 3, &joined, &complaint);
        if (good != !!cases[i].joined) {
            BHT_FAIL("[%s], [%s] and [%s]: %s", cases[i].a, cases[i].b, cases[i].c, complaint.text);
        }
        if (good) {
            BHT_STR_EQ(bhi_shape_text(&joined, text, sizeof text), cases[i].joined);
        } else {
            BHT_STR_HAS(complaint.text, cases[i].why);
        }
    }
}

TEST(test_equal) {
    static const struct {
        const char *a, *b;
        bool equal;
    } rows[] = {{"", "", true},
                {"2,3", "2,3", true},
                {"2,3", "2,4", false},
                {"2", "2,3", false},
                {"", "1", false}};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        const struct bhi_shape a = parse(rows[i].a), b = parse(rows[i].b);
        BHT_EQ(bhi_shape_equal(&a, &b), rows[i].equal);
        BHT_EQ(bhi_shape_equal(&b, &a), rows[i].equal);
    }
}

/* The axes' sizes, and for each array the axes that it has. */
TEST(test_axes) {
    static const struct {
        const char *a, *b, *axes;
    } cases[] = {
        {"2,3,4", "2,3,4", "24: 1 1"}, /* as flat as can be */
        {"2,3,4", "", "24: 1 0"},
        {"2,3,4", "1,1", "24: 1 0"},
        {"", "", "1: 1 1"},
        {"1,1", "1", "1: 1 1"},
        {"0,3", "1", "0: 1 1"}, /* nothing is read */
        {"2,3,4", "4", "6 4: 3 2"},
        {"2,3,4", "3,4", "2 12: 3 2"},
        {"2,3,4", "2,1,1", "2 12: 3 1"},
        {"2,3,4", "2,1,4", "2 3 4: 7 5"},
        {"2,1,4", "3,1", "2 3 4: 5 2"},
        {"5,1", "7", "5 7: 1 2"},
        {"1,5,1,1,6", "5,2,1,1", "5 2 6: 5 3"}, /* sizes of 1 are no axes */
        {"2,1,2,1,2,1,2,1", "1,3,1,3,1,3,1,3", "2 3 2 3 2 3 2 3: 85 170"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct bhi_named_shape arrays[] = {{"x", parse(cases[i].a)},
                                                 {"y", parse(cases[i].b)}};
        struct bhi_complaint complaint = {.text = ""};
        struct bhi_shape joined;
        struct bhi_axes axes;
        uint8_t has[2];
        char text[80] = "";
        BHT_TRUE(bhi_shape_join(arrays, 2, &joined, &complaint));
        BHT_TRUE(bhi_shape_axes(&joined, arrays, 2, &axes, has, &complaint));
        for (uint32_t k = 0; k < axes.count; k++) {
            sprintf(text + strlen(text), "%s%u", k ? " " : "", axes.size[k]);
        }
        sprintf(text + strlen(text), ": %u %u", has[0], has[1]);
        BHT_STR_EQ(text, cases[i].axes);
    }
    const struct bhi_named_shape many[] = {{"x", parse("2,1,2,1,2,1,2,1,2")},
                                           {"y", parse("1,2,1,2,1,2,1,2,1")}};
    struct bhi_complaint complaint = {.text = ""};
    struct bhi_shape joined;
    struct bhi_axes axes;
    uint8_t has[2];
    BHT_TRUE(bhi_shape_join(many, 2, &joined, &complaint));
    BHT_TRUE(!bhi_shape_axes(&joined, many, 2, &axes, has, &complaint));
    BHT_STR_HAS(complaint.text, "the result is [2,2,2,2,2,2,2,2,2], and its arrays are stretched");
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

/* What the shader does with the constants of an axis (bh_quotient). */
static uint32_t quotient(uint32_t v, uint32_t size, uint32_t factor) {
    const uint32_t high = (uint32_t)((uint64_t)v * factor >> 32);
    return (((v - high) >> 1) + high) >> (31 - __builtin_clz(size - 1));
}

TEST(test_division_by_sizes) {
    static const uint32_t sizes[] = {2,          3,          4,          5,          7,
                                     10,         255,        256,        257,        641,
                                     65535,      65536,      65537,      6700417,    2147483647,
                                     2147483648, 2147483649, 3000000000, 4294901759, 4294901760};
    for (size_t i = 0; i < BHT_COUNT(sizes); i++) {
        const struct bhi_axes axes = {.count = 2, .size = {1, sizes[i]}};
        uint32_t words[3] = {0};
        bhi_constants_put_axes(&axes, words);
        BHT_EQ(words[1], sizes[i]);
        for (uint64_t k = 0; k < 5000; k++) {
            /* around the multiples of the size, and all over the range */
            const uint64_t near = (k / 4) * sizes[i] + k % 4 - 1;
            const uint32_t of[] = {(uint32_t)near, (uint32_t)(k * 858989 + 7),
                                   UINT32_MAX - (uint32_t)k};
            for (int n = 0; n < 3; n++) {
                if (quotient(of[n], sizes[i], words[2]) != of[n] / sizes[i]) {
                    BHT_FAIL("%u / %u is not %u", of[n], sizes[i],
                             quotient(of[n], sizes[i], words[2]));
                }
            }
        }
    }
}

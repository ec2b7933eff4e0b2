/* What inputs are filled with. The expected bits come from another program (Python, from the same
 * formulas), those of Philox from its authors. */
#include "judge/data/filler.h"

#include "harness.h"

#include <math.h>

#include "formats/dtype.h"

static const struct bhi_filler_place place = {.seed = 7, .trial = 1, .array = 2};

TEST(philox_is_philox) {
    static const struct {
        uint64_t key;
        struct bhi_philox counter, result;
    } cases[] = {
        {0, {{0}}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
        {UINT64_MAX,
         {{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}},
         {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
        {0x299f31d0a4093822,
         {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
         {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const struct bhi_philox got = bhi_philox(cases[i].key, cases[i].counter);
        BHT_MEM_EQ(got.words, cases[i].result.words, sizeof got.words);
    }
}

TEST(normal_is_exact) {
    static const uint64_t expected[] = {0xbfe4788d448220a8, 0x3fbebdbb0a378957, 0x3fee942d814b960b,
                                        0x3ff53a26abfaf6cf, 0xbff59f3aa27d8b4b, 0x3fcbbd675acc4fd5};
    const struct bhi_filler filler = {.kind = BHI_FILLER_NORMAL, .high = 1};
    uint64_t got[6];
    bhi_filler_fill(&filler, place, BH_DTYPE_F64, 6, got);
    BHT_MEM_EQ(got, expected, sizeof got);
}

TEST(uniform_is_exact) {
    static const uint32_t expected[] = {0xbe83aae0, 0x3d829682, 0xbf673ca1,
                                        0xbf6af58e, 0xbf0217b6, 0x3f1a932e};
    const struct bhi_filler filler = {.kind = BHI_FILLER_UNIFORM, .low = -1, .high = 1};
    uint32_t got[6];
    bhi_filler_fill(&filler, place, BH_DTYPE_F32, 6, got);
    BHT_MEM_EQ(got, expected, sizeof got);
}

TEST(integers_are_exact) {
    static const int64_t expected[] = {2, 4, -2, -2, -1, 6, 6, -2, 6, 0};
    const struct bhi_filler filler = {.kind = BHI_FILLER_INTEGERS, .first = -3, .last = 6};
    int64_t wide[10];
    int8_t narrow[10];
    float real[10];
    bhi_filler_fill(&filler, place, BH_DTYPE_I64, 10, wide);
    bhi_filler_fill(&filler, place, BH_DTYPE_I8, 10, narrow);
    bhi_filler_fill(&filler, place, BH_DTYPE_F32, 10, real);
    BHT_MEM_EQ(wide, expected, sizeof wide);
    for (int i = 0; i < 10; i++) {
        BHT_EQ(narrow[i], expected[i]);
        BHT_TRUE(real[i] == (float)expected[i]);
    }
}

TEST(noise_is_exact) {
    static const uint32_t expected[] = {0x3beefd8e, 0xe0ddd4d2, 0xd4df056b, 0xbf0f7f14};
    uint8_t got[16], part[19];
    bhi_filler_noise((struct bhi_filler_place){.seed = 7, .array = 3}, got, sizeof got);
    BHT_MEM_EQ(got, expected, sizeof got);
    memset(part, 0, sizeof part);
    bhi_filler_noise((struct bhi_filler_place){.seed = 7, .array = 3}, part, 7);
    BHT_MEM_EQ(part, expected, 7);
    BHT_EQ(part[7], 0);
}

/* The whole range of 64 bits has no width that 64 bits can count. */
TEST(integers_of_the_whole_range) {
    const struct bhi_filler filler = {
        .kind = BHI_FILLER_INTEGERS, .first = INT64_MIN, .last = INT64_MAX};
    int64_t got[64];
    int negative = 0;
    bhi_filler_fill(&filler, place, BH_DTYPE_I64, 64, got);
    for (int i = 0; i < 64; i++) {
        negative += got[i] < 0;
    }
    BHT_WITHIN(negative, 16, 48);
}

/* A number that the type does not have becomes the nearest that it has. */
TEST(what_does_not_fit_is_clamped) {
    static const struct {
        bh_dtype dtype;
        double value;
        uint64_t bits;
    } cases[] = {{BH_DTYPE_I8, 1e30, 127},
                 {BH_DTYPE_I8, -1e30, 0x80},
                 {BH_DTYPE_I8, 128, 127},
                 {BH_DTYPE_U8, 1e30, 255},
                 {BH_DTYPE_U8, -1e30, 0},
                 {BH_DTYPE_I64, 1e30, INT64_MAX},
                 {BH_DTYPE_I64, -1e30, (uint64_t)INT64_MIN},
                 {BH_DTYPE_U64, 1e30, UINT64_MAX},
                 {BH_DTYPE_U64, -1e30, 0},
                 {BH_DTYPE_BOOL, 1e30, 1}};
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const struct bhi_filler filler = {
            .kind = BHI_FILLER_UNIFORM, .low = cases[i].value, .high = cases[i].value};
        uint64_t bits = 0;
        bhi_filler_fill(&filler, place, cases[i].dtype, 1, &bits);
        BHT_EQ(bits, cases[i].bits);
    }
}

/* All special values of f32 occur, and no other. */
TEST(special_values_of_a_float) {
    static const uint32_t expected[] = {0x7f800000, 0x00000000, 0x00000001, 0x007fffff, 0x00800000,
                                        0x7f7fffff, 0x3f800000, 0x3f7fffff, 0x7fc00000};
    const struct bhi_filler filler = {.kind = BHI_FILLER_BITS, .special = 1};
    uint32_t got[1000];
    int seen[BHT_COUNT(expected)][2] = {{0}};
    bhi_filler_fill(&filler, place, BH_DTYPE_F32, BHT_COUNT(got), got);
    for (size_t i = 0; i < BHT_COUNT(got); i++) {
        size_t k = 0;
        while (k < BHT_COUNT(expected) && (got[i] & 0x7fffffff) != expected[k]) {
            k++;
        }
        BHT_LT(k, BHT_COUNT(expected));
        seen[k][got[i] >> 31]++;
    }
    for (size_t k = 0; k < BHT_COUNT(expected); k++) {
        BHT_GT(seen[k][0], 0);
        BHT_GT(seen[k][1], 0);
    }
}

TEST(special_values_of_an_integer) {
    const struct bhi_filler filler = {.kind = BHI_FILLER_BITS, .special = 1};
    int16_t got[200];
    int seen[5] = {0};
    bhi_filler_fill(&filler, place, BH_DTYPE_I16, BHT_COUNT(got), got);
    for (size_t i = 0; i < BHT_COUNT(got); i++) {
        const int which = got[i] == 0           ? 0
                          : got[i] == 1         ? 1
                          : got[i] == -1        ? 2
                          : got[i] == INT16_MIN ? 3
                                                : 4;
        seen[which]++;
        BHT_TRUE(which < 4 || got[i] == INT16_MAX);
    }
    for (int i = 0; i < 5; i++) {
        BHT_GT(seen[i], 0);
    }
}

/* A share of special values leaves the other elements as they are without it. */
TEST(some_special_values) {
    const struct bhi_filler plain = {.kind = BHI_FILLER_UNIFORM, .high = 1};
    const struct bhi_filler mixed = {.kind = BHI_FILLER_UNIFORM, .high = 1, .special = 0.1};
    static double a[10000], b[10000];
    int different = 0, small = 0;
    bhi_filler_fill(&plain, place, BH_DTYPE_F64, 10000, a);
    bhi_filler_fill(&mixed, place, BH_DTYPE_F64, 10000, b);
    for (int i = 0; i < 10000; i++) {
        different += memcmp(&a[i], &b[i], sizeof a[i]) != 0;
        small += b[i] > 0 && b[i] < 0.1 && b[i] > 0x1p-1000;
    }
    BHT_WITHIN(different, 900, 1100);
    BHT_WITHIN(small, 800, 1000); /* which they replace does not depend on the value */
}

TEST(seeds_trials_and_arrays_differ) {
    const struct bhi_filler filler = {.kind = BHI_FILLER_BITS};
    const struct bhi_filler_place others[] = {{8, 1, 2}, {7, 0, 2}, {7, 1, 3}};
    uint64_t first[4], other[4];
    bhi_filler_fill(&filler, place, BH_DTYPE_U64, 4, first);
    for (size_t i = 0; i < BHT_COUNT(others); i++) {
        bhi_filler_fill(&filler, others[i], BH_DTYPE_U64, 4, other);
        for (int k = 0; k < 4; k++) {
            BHT_TRUE(first[k] != other[k]);
        }
    }
    bhi_filler_fill(&filler, place, BH_DTYPE_U64, 4, other);
    BHT_MEM_EQ(first, other, sizeof first);
}

TEST(normal_has_its_mean_and_deviation) {
    const struct bhi_filler filler = {.kind = BHI_FILLER_NORMAL, .low = 5, .high = 2};
    static double x[20000];
    double sum = 0, squares = 0;
    bhi_filler_fill(&filler, place, BH_DTYPE_F64, 20000, x);
    for (int i = 0; i < 20000; i++) {
        sum += x[i];
        squares += (x[i] - 5) * (x[i] - 5);
    }
    BHT_TRUE(fabs(sum / 20000 - 5) < 0.1);
    BHT_TRUE(fabs(sqrt(squares / 20000) - 2) < 0.1);
}

/* Several threads fill a large array. */
TEST(an_element_does_not_depend_on_the_size_of_its_array) {
    enum { TWO_PARTS = 2 << 15, MORE = (3 << 15) + 5 };
    static float all[MORE], fewer[TWO_PARTS];
    const struct bhi_filler filler = {.kind = BHI_FILLER_NORMAL, .high = 1};
    bhi_filler_fill(&filler, place, BH_DTYPE_F32, MORE, all);
    bhi_filler_fill(&filler, place, BH_DTYPE_F32, TWO_PARTS, fewer);
    BHT_MEM_EQ(all, fewer, sizeof fewer);
    bhi_filler_fill(&filler, place, BH_DTYPE_F32, 1000, fewer); /* one thread */
    BHT_MEM_EQ(all, fewer, 1000 * sizeof fewer[0]);
    BHT_TRUE(all[MORE - 1] != 0);
}

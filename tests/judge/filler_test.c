/* What inputs are filled with. The expected bits come from another program (Python, from the same
 * formulas), those of Philox from its authors; those of small floats follow from those of f64. */
#include "judge/data/filler.h"

#include "harness.h"

#include <inttypes.h>
#include <math.h>

#include "formats/dtype.h"
#include "judge/data/draw.h"

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

/* All special values of a type occur, and no other. */
TEST(special_values_of_a_float) {
    enum { VALUES = 9 };
    static const struct {
        bh_dtype dtype;
        uint32_t values[VALUES];
    } types[] = {{BH_DTYPE_F32,
                  {0x7f800000, 0, 1, 0x007fffff, 0x00800000, 0x7f7fffff, 0x3f800000, 0x3f7fffff,
                   0x7fc00000}},
                 {BH_DTYPE_BF16, {0x7f80, 0, 1, 0x7f, 0x80, 0x7f7f, 0x3f80, 0x3f7f, 0x7fc0}},
                 {BH_DTYPE_F8_E5M2, {0x7c, 0, 1, 0x03, 0x04, 0x7b, 0x3c, 0x3b, 0x7e}},
                 /* Without infinities. */
                 {BH_DTYPE_F8_E4M3, {0x7f, 0, 1, 0x07, 0x08, 0x7e, 0x38, 0x37, 0x7f}}};
    const struct bhi_filler filler = {.kind = BHI_FILLER_BITS, .special = 1};
    uint32_t got[1000];
    for (size_t t = 0; t < BHT_COUNT(types); t++) {
        const uint32_t size = bhi_dtype_size(types[t].dtype), top = 8 * size - 1;
        int seen[VALUES][2] = {{0}};
        bhi_filler_fill(&filler, place, types[t].dtype, BHT_COUNT(got), got);
        for (size_t i = 0; i < BHT_COUNT(got); i++) {
            uint32_t one = 0;
            bool found = false;
            memcpy(&one, (const uint8_t *)got + i * size, size);
            for (size_t k = 0; k < VALUES; k++) {
                const bool is_it = (one & ((1u << top) - 1)) == types[t].values[k];
                seen[k][one >> top] += is_it;
                found |= is_it;
            }
            BHT_TRUE(found);
        }
        for (size_t k = 0; k < VALUES; k++) {
            BHT_GT(seen[k][0], 0);
            BHT_GT(seen[k][1], 0);
        }
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

static uint64_t hash_of(const uint8_t *bytes, size_t size) { /* FNV-1a */
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    }
    return hash;
}

TEST(small_floats_are_those_nearest_to_the_numbers_of_f64) {
    enum { COUNT = 5000 };
    static const struct bhi_filler fillers[] = {
        {.kind = BHI_FILLER_UNIFORM, .low = -2, .high = 3},
        {.kind = BHI_FILLER_NORMAL, .low = 3, .high = 1000},
        {.kind = BHI_FILLER_INTEGERS, .first = -70000, .last = 70000}};
    static const struct {
        bh_dtype dtype;
        double most; /* beyond it infinity; E4M3 has none */
    } types[] = {{BH_DTYPE_BF16, INFINITY}, {BH_DTYPE_F8_E4M3, 448}, {BH_DTYPE_F8_E5M2, INFINITY}};
    static double reals[COUNT];
    static uint8_t got[2 * COUNT];
    for (size_t i = 0; i < BHT_COUNT(fillers) * BHT_COUNT(types); i++) {
        const struct bhi_filler *filler = &fillers[i / BHT_COUNT(types)];
        const bh_dtype dtype = types[i % BHT_COUNT(types)].dtype;
        const double most = types[i % BHT_COUNT(types)].most;
        const uint32_t size = bhi_dtype_size(dtype);
        bhi_filler_fill(filler, place, BH_DTYPE_F64, COUNT, reals);
        bhi_filler_fill(filler, place, dtype, COUNT, got);
        for (size_t k = 0; k < COUNT; k++) {
            uint64_t bits = 0;
            memcpy(&bits, got + k * size, size);
            BHT_EQ(bits, bhi_dtype_from_double(dtype, fmax(-most, fmin(most, reals[k]))));
        }
    }
}

/* Whoever has published a seed wants these bytes: they must never change. */
TEST(every_type_has_the_same_bytes_forever) {
    enum { COUNT = 70001 }; /* several threads, and a block that is not full */
    static const struct {
        struct bhi_filler filler;
        uint64_t hashes[BHI_ELEMENT_COUNT];
    } rows[] = {
        {{.kind = BHI_FILLER_UNIFORM, .low = -1.5, .high = 1.5},
         {0x58610b2fad67d1a7, 0x1b1cb974ba1fcd17, 0x2d49fe4769dbc244, 0x5610ab3a7607d92f,
          0xf1472a47e6a48b3d, 0xcfca815b8c1cc2c5, 0x0b4de838fef7d755, 0x2663b84bb40b4005,
          0x294dfaaf27640885, 0xbd309cb1cbc9b965, 0x714b502682d421e5, 0xf1472a47e6a48b3d,
          0x69252df5ac0fad0e, 0xf3abab8ce71ba580, 0x0aaf5f93864d9bab}},
        {{.kind = BHI_FILLER_UNIFORM, .low = -70000, .high = 1e10},
         {0x4014bbbe864910f9, 0xadb447adc6280339, 0x3fcd40c198be2457, 0xb2e4e4ba43e9d1fe,
          0x3fb59b158beed47e, 0xfd5747dbd9153e83, 0xf4cf547bf462e503, 0x1e8dda1b12c634e1,
          0x71daed7578255291, 0xe51e39a86910cfe1, 0xe51e39a86910cfe1, 0xe974c3a146e5c9bc,
          0xf2a5c7482542a558, 0xe61603f74be8de61, 0xc7e5d12c474cfc3b}},
        {{.kind = BHI_FILLER_NORMAL, .low = 0, .high = 1},
         {0x2a3adbe4b89b8d09, 0x9e6e6e1747a7a7c7, 0x531e14441f0b324a, 0xd8afb0802e2376dc,
          0x5a88c91da29462f4, 0xb0c8d2cd6196b587, 0xb95a5d0ec3ffeafa, 0xe0410e4484980319,
          0x26fb82dc7bd88492, 0xbf914b8589bd193d, 0x2158f3f92b687502, 0xbebf26b458691335,
          0x3813b79a42119197, 0xc60ca2578b1369ba, 0xa9e1a849a42f07c4}},
        {{.kind = BHI_FILLER_NORMAL, .low = 3, .high = 1e5},
         {0xb6363ee6a4a4a245, 0xcaabd1fbae2e23d4, 0xaa86c244b48514eb, 0x9cef9aa502fbe7a8,
          0x3bb42a487aa902c3, 0x5069422a9a885ee1, 0x6fe19a1473b331dd, 0xb9a3c153ef3633f8,
          0x222c639c36498b38, 0xdb493a524de09f4c, 0xd7e15f06e32e73c8, 0x9ef6994b52fb7ea5,
          0x87d2018b5b2e2eeb, 0x40b923794ee7e1d6, 0x37b0c95622cd5420}},
        {{.kind = BHI_FILLER_INTEGERS, .first = -3, .last = 6},
         {0x60a8c5b0bd3d8d1c, 0x860b13c645758a75, 0xb32dda60684aeb09, 0x36a4401f71924758,
          0xe8f4ea59882a5fe6, 0xe9bbbe305e4ff6d3, 0xfb281c993387d5cc, 0xabc24bd2c9804481,
          0xdea77dec9d979c34, 0x9b6e1dfe82b7c9dd, 0x0e40706d9f548c44, 0xa9994baadae1b080,
          0x67404212f314531d, 0xdc749aa8f63924d9, 0xd2d44dbcf3a1c334}},
        {{.kind = BHI_FILLER_INTEGERS, .first = -5000000000, .last = 70000000000},
         {0x09fd0e65727cac79, 0xc70c841042f8b3a2, 0x1da5d1df1dd3fa31, 0x245473ce6fd51909,
          0xff30c0ff99818189, 0x331a98b3334be5e1, 0x549516b7fa473961, 0x6c8756d14e229e35,
          0x7b8bd0be202801d7, 0xea88694eebcaa8ad, 0xdb98b4526c7fa765, 0xb82c1002511f62b5,
          0x7fc6e6e8eff860e4, 0x7595faf1c0e839e1, 0x0a69521b2198b0bb}},
        {{.kind = BHI_FILLER_INTEGERS, .first = INT64_MIN, .last = INT64_MAX},
         {0x542e7d45627a9cf9, 0xc6616fca733bfdfe, 0x4a789b1e50778361, 0xcadc1b414fa1fb42,
          0x629c5dd2275cabc2, 0x58607813a32388a7, 0x0a13ec0c04493327, 0xb3f7ab772f87b379,
          0x1e528f5871e7a5f9, 0xf80d4a2f3ec44495, 0x06ca75dc616b93b1, 0xca99f68ee3c2e300,
          0xcad9e08d7f0457c9, 0xce5b721ab56a5961, 0x738ceec158dc403b}},
        {{.kind = BHI_FILLER_BITS},
         {0x1db1ffb2d12e013f, 0x5047735b72356aeb, 0x993196e272cb3f15, 0x6aa5495acc398198,
          0x6aa5495acc398198, 0x1db1ffb2d12e013f, 0x1db1ffb2d12e013f, 0x5047735b72356aeb,
          0x5047735b72356aeb, 0x993196e272cb3f15, 0x993196e272cb3f15, 0xb3b6d92e1c2aa31c,
          0x1db1ffb2d12e013f, 0x6aa5495acc398198, 0x6aa5495acc398198}},
        {{.kind = BHI_FILLER_NORMAL, .high = 1e6, .special = 0.25},
         {0x41632eb4d35816d9, 0x17cb2bad018e08a7, 0x79192f10608156fa, 0x967b345c542aa65a,
          0x427367a43505bbbc, 0x5b9f0762288399f3, 0xe1012af05e040223, 0xde54a6ce8859556e,
          0x081f3a5e7dd45faa, 0x074aa0bc781b6862, 0x61b2b1c35208948e, 0xc685828fd7815e6f,
          0x8646c90ed1cb35eb, 0xea564145b932fe0e, 0x34ad010bab9355b9}},
    };
    static uint64_t got[COUNT];
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        for (size_t k = 0; k < BHI_ELEMENT_COUNT; k++) {
            bhi_filler_fill(&rows[i].filler, place, bhi_dtypes[k], COUNT, got);
            const uint64_t hash =
                hash_of((const uint8_t *)got, (size_t)COUNT * bhi_dtype_size(bhi_dtypes[k]));
            if (hash != rows[i].hashes[k]) {
                BHT_FAIL("row %zu, %s: 0x%016" PRIx64, i, bhi_dtype_name(bhi_dtypes[k]), hash);
            }
        }
    }
}

TEST(noise_has_the_same_bytes_forever) {
    static uint8_t got[100003];
    bhi_filler_noise(place, got, sizeof got);
    BHT_EQ(hash_of(got, sizeof got), 0x99a30f3c88f43e8e);
}

/* With instructions of some processors, and with those of all. */
TEST(draws_are_alike_on_every_processor) {
    static const uint64_t keys[] = {0, UINT64_MAX, 0x299f31d0a4093822};
    static struct bhi_draws one, other;
    uint32_t offsets[BHI_BLOCK];
    for (uint32_t i = 0; i < BHI_BLOCK; i++) {
        offsets[i] = i * 7 % BHI_BLOCK;
    }
    for (size_t i = 0; i < BHT_COUNT(keys); i++) {
        const struct bhi_philox first = {{0xFFFFFE00u, (uint32_t)i, 0x80000001u, 7}};
        bhi_draw(keys[i], first, offsets, BHI_BLOCK, &one);
        bhi_draw_plainly(keys[i], first, offsets, BHI_BLOCK, &other);
        BHT_MEM_EQ(&one, &other, sizeof one);
        for (uint32_t k = 0; k < BHI_BLOCK; k++) {
            struct bhi_philox counter = first;
            counter.words[0] += offsets[k];
            const struct bhi_philox bits = bhi_philox(keys[i], counter);
            for (int word = 0; word < 4; word++) {
                BHT_EQ(one.words[word][k], bits.words[word]);
            }
        }
    }
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

/* Only operations that IEEE 754 defines to the last bit are used (+ - * / sqrt), in one order, and
 * none is contracted with another (CMakeLists.txt). So the numbers do not depend on the machine,
 * its libm or the compiler.
 *
 * Elements are made in blocks, step by step: loops without branches, which the compiler turns into
 * instructions that work on several elements at once. */
#include "judge/data/filler.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "formats/dtype.h"
#include "judge/data/draw.h"
#include "judge/data/team.h"
#include "judge/data/wide.h"

/* |PART|: elements that a thread is worth. |BLOCK| fits the first cache, with all that is made of it. */
enum { BLOCK = BHI_BLOCK, PART = BLOCK << 7 };

/* What a counter is for, so that no two uses share numbers. */
enum use { VALUE, CHOICE, NOISE };

/* The elements of a block, of any type. */
union elements {
    uint8_t bytes[BLOCK * sizeof(uint64_t)];
    uint16_t halves[BLOCK];
    uint32_t words[BLOCK];
    uint64_t wide[BLOCK];
    float singles[BLOCK];
    double doubles[BLOCK];
};

/* Draws for the elements |begin| + |offsets|[i], where |begin| is a multiple of BLOCK and offsets
 * are less. |count| is a multiple of BHI_LANES. */
static void draw(struct bhi_filler_place place, enum use use, uint32_t attempt, uint64_t begin,
                 const uint32_t offsets[BLOCK], uint32_t count, struct bhi_draws *out) {
    const struct bhi_philox first = {{(uint32_t)begin, (uint32_t)(begin >> 32),
                                      place.trial << 16 | (place.array & 0xFFFFu),
                                      (uint32_t)use << 24 | attempt}};
    bhi_draw(place.seed, first, offsets, count, out);
}

/* The bits (high << 32 | low) >> 11 as a number from 0 to below 1, in steps of 2^-53. All that is
 * computed on the way is exact. Only signed numbers of 32 bits are quick to convert. */
BHI_PART double unit_of(uint32_t high, uint32_t low) {
    const double upper = (double)(int32_t)(high ^ 0x80000000u) + 0x1p31;
    return upper * 0x1p-32 + (double)(int32_t)(low >> 11) * 0x1p-53;
}

/* -- normal ---------------------------------------------------------------------------------- */

BHI_PART double double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

BHI_PART uint64_t bits_of_double(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The natural logarithm of a normal number 0 < x < 1, within some units of the last place:
 * ln x = e ln 2 + ln m, and ln m = 2 artanh((m - 1) / (m + 1)) by its series. */
BHI_PART double logarithm(double x) {
    static const double terms[] = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                                   1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
    const uint64_t bits = bits_of_double(x);
    /* As frexp: x = half * 2^exponent, 0.5 <= half < 1. Both conversions are exact. */
    const double half = double_of((bits & 0x000FFFFFFFFFFFFFu) | 0x3FE0000000000000u);
    const double exponent = double_of(bits >> 52 | 0x4330000000000000u) - (0x1p52 + 1022);
    const bool doubled = half < 0.70710678118654752;
    const double m = doubled ? half * 2 : half;
    const double e = doubled ? exponent - 1 : exponent;
    const double z = (m - 1) / (m + 1), square = z * z;
    double sum = terms[0];
#pragma GCC unroll 11
    for (size_t i = 1; i < sizeof terms / sizeof terms[0]; i++) {
        sum = sum * square + terms[i];
    }
    return e * 0.69314718055994531 + 2 * z * sum;
}

BHI_PART uint32_t lanes_of(uint32_t count) {
    return (count + BHI_LANES - 1) / BHI_LANES * BHI_LANES;
}

/* Marsaglia's polar method. Of each pair one number is used, so that each element has its own. A
 * pair that is outside of the circle is drawn again: of those elements |again| has the offsets. */
BHI_PART uint32_t try_normal(const struct bhi_draws *draws, const uint32_t offsets[BLOCK],
                             uint32_t count, double out[BLOCK], uint32_t again[BLOCK]) {
    double values[BLOCK];
    uint64_t missed[BLOCK];
    uint32_t more = 0;
    for (uint32_t i = 0; i < lanes_of(count); i++) {
        const double x = 2 * unit_of(draws->words[0][i], draws->words[1][i]) - 1;
        const double y = 2 * unit_of(draws->words[2][i], draws->words[3][i]) - 1;
        const double s = x * x + y * y;
        const bool good = (s > 0) & (s < 1);
        const double inside = good ? s : 0.5;
        values[i] = x * sqrt(-2 * logarithm(inside) / inside);
        missed[i] = !good;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t offset = offsets[i]; /* may be where |again| is written */
        out[offset] = values[i];
        again[more] = offset;
        more += (uint32_t)missed[i];
    }
    return more;
}

BHI_PART void normal(struct bhi_filler_place place, uint64_t begin, const uint32_t all[BLOCK],
                     double out[BLOCK]) {
    uint32_t rest[BLOCK] = {0};
    struct bhi_draws draws;
    draw(place, VALUE, 0, begin, all, BLOCK, &draws);
    uint32_t count = try_normal(&draws, all, BLOCK, out, rest);
    for (uint32_t attempt = 1; count; attempt++) {
        draw(place, VALUE, attempt, begin, rest, lanes_of(count), &draws);
        count = try_normal(&draws, rest, count, out, rest);
    }
}

/* -- values ---------------------------------------------------------------------------------- */

/* The integers of a type of 32 bits or fewer. */
struct range {
    int64_t least, most;
};

BHI_PART struct range range_of(bh_dtype dtype) {
    switch (dtype) {
    case BH_DTYPE_BOOL:
        return (struct range){0, 1};
    case BH_DTYPE_I8:
        return (struct range){INT8_MIN, INT8_MAX};
    case BH_DTYPE_U8:
        return (struct range){0, UINT8_MAX};
    case BH_DTYPE_I16:
        return (struct range){INT16_MIN, INT16_MAX};
    case BH_DTYPE_U16:
        return (struct range){0, UINT16_MAX};
    case BH_DTYPE_I32:
        return (struct range){INT32_MIN, INT32_MAX};
    default:
        return (struct range){0, UINT32_MAX};
    }
}

/* The nearest integer of 64 bits; halves to even. */
static uint64_t wide_of(bh_dtype dtype, double value) {
    const double whole = rint(value);
    if (dtype == BH_DTYPE_I64) {
        return whole >= 0x1p63   ? INT64_MAX
               : whole < -0x1p63 ? 1ull << 63
                                 : (uint64_t)(int64_t)whole;
    }
    return whole >= 0x1p64 ? UINT64_MAX : whole < 0 ? 0 : (uint64_t)whole;
}

/* Keeps of each element the bytes that the type has: little endian. */
BHI_PART void store_bits(bh_dtype dtype, const uint64_t bits[BLOCK], union elements *out) {
    switch (bhi_dtype_size(dtype)) {
    case 1:
        for (int i = 0; i < BLOCK; i++) {
            out->bytes[i] = (uint8_t)bits[i];
        }
        break;
    case 2:
        for (int i = 0; i < BLOCK; i++) {
            out->halves[i] = (uint16_t)bits[i];
        }
        break;
    case 4:
        for (int i = 0; i < BLOCK; i++) {
            out->words[i] = (uint32_t)bits[i];
        }
        break;
    default:
        memcpy(out->wide, bits, sizeof out->wide);
    }
}

BHI_PART void store_reals(bh_dtype dtype, const double values[BLOCK], union elements *out) {
    uint64_t bits[BLOCK];
    switch (dtype) {
    case BH_DTYPE_F16:
        for (int i = 0; i < BLOCK; i++) {
            out->halves[i] = bhi_f16_from_double(values[i]);
        }
        return;
    case BH_DTYPE_BF16:
        for (int i = 0; i < BLOCK; i++) {
            out->halves[i] = bhi_float_from_double(bhi_bf16, values[i]);
        }
        return;
    case BH_DTYPE_F8_E4M3:
        for (int i = 0; i < BLOCK; i++) {
            out->bytes[i] = (uint8_t)bhi_f8_e4m3_nearest(values[i]);
        }
        return;
    case BH_DTYPE_F8_E5M2:
        for (int i = 0; i < BLOCK; i++) {
            out->bytes[i] = (uint8_t)bhi_float_from_double(bhi_f8_e5m2, values[i]);
        }
        return;
    case BH_DTYPE_F32:
        for (int i = 0; i < BLOCK; i++) {
            out->singles[i] = (float)values[i];
        }
        return;
    case BH_DTYPE_F64:
        memcpy(out->doubles, values, sizeof out->doubles);
        return;
    case BH_DTYPE_I64:
    case BH_DTYPE_U64:
        for (int i = 0; i < BLOCK; i++) {
            out->wide[i] = wide_of(dtype, values[i]);
        }
        return;
    default:;
    }
    /* The nearest integer, halves to even, is what the addition leaves in the lower bits. */
    const double least = (double)range_of(dtype).least, most = (double)range_of(dtype).most;
    for (int i = 0; i < BLOCK; i++) {
        const double above = values[i] < least ? least : values[i];
        const double inside = above > most ? most : above;
        bits[i] = bits_of_double(inside + 0x1.8p52);
    }
    store_bits(dtype, bits, out);
}

BHI_PART void store_wholes(bh_dtype dtype, const int64_t values[BLOCK], union elements *out) {
    uint64_t bits[BLOCK];
    double reals[BLOCK];
    const bool is_real = bhi_dtype_is_float(dtype);
    if (is_real) {
        for (int i = 0; i < BLOCK; i++) {
            reals[i] = (double)values[i];
        }
        store_reals(dtype, reals, out);
        return;
    }
    const bool is_wide = bhi_dtype_size(dtype) == 8;
    const struct range range =
        is_wide ? (struct range){dtype == BH_DTYPE_I64 ? INT64_MIN : 0, INT64_MAX}
                : range_of(dtype);
    for (int i = 0; i < BLOCK; i++) {
        const int64_t above = values[i] < range.least ? range.least : values[i];
        bits[i] = (uint64_t)(above > range.most ? range.most : above);
    }
    store_bits(dtype, bits, out);
}

/* -- special values -------------------------------------------------------------------------- */

static uint64_t special_float(uint32_t choice, bh_dtype dtype) {
    const struct bhi_float f = bhi_float_of(dtype);
    const uint64_t sign = UINT64_C(1) << (f.exponent + f.mantissa);
    const uint64_t one = ((UINT64_C(1) << (f.exponent - 1)) - 1) << f.mantissa;
    const uint64_t values[] = {
        f.top,                           /* infinity */
        0,                               /* zero */
        1,                               /* the smallest denormal number */
        (UINT64_C(1) << f.mantissa) - 1, /* the largest */
        UINT64_C(1) << f.mantissa,       /* the smallest normal number */
        f.top - 1,                       /* the largest */
        one,                             /* 1 */
        one - 1,                         /* the number before it */
        f.nan,                           /* NaN */
    };
    const uint32_t count = sizeof values / sizeof values[0];
    const uint32_t which = choice % (2 * count);
    return values[which / 2] | (which % 2 ? sign : 0);
}

static uint64_t special_integer(uint32_t choice, bh_dtype dtype) {
    switch (dtype) {
    case BH_DTYPE_BOOL:
        return choice % 2;
    case BH_DTYPE_U8:
    case BH_DTYPE_U16:
    case BH_DTYPE_U32:
    case BH_DTYPE_U64: {
        const uint64_t values[] = {0, 1, UINT64_MAX, UINT64_MAX - 1};
        return values[choice % 4]; /* cut to the type's bytes when it is stored */
    }
    default: {
        const uint64_t least = UINT64_C(1) << (bhi_dtype_size(dtype) * 8 - 1);
        const uint64_t values[] = {0, 1, UINT64_MAX, least, least - 1};
        return values[choice % 5];
    }
    }
}

static uint64_t special(uint32_t choice, bh_dtype dtype) {
    return (bhi_dtype_is_float(dtype) ? special_float : special_integer)(choice, dtype);
}

/* -- all ------------------------------------------------------------------------------------- */

BHI_PART uint64_t joined(const struct bhi_draws *draws, int i) {
    return (uint64_t)draws->words[1][i] << 32 | draws->words[0][i];
}

BHI_PART void make_uniform(const struct bhi_filler *filler, const struct bhi_draws *draws,
                           double out[BLOCK]) {
    const double low = filler->low, width = filler->high - filler->low;
    for (int i = 0; i < BLOCK; i++) {
        out[i] = low + width * unit_of(draws->words[0][i], draws->words[1][i]);
    }
}

BHI_PART void make_wholes(const struct bhi_filler *filler, const struct bhi_draws *draws,
                          int64_t out[BLOCK]) {
    const uint64_t range = (uint64_t)filler->last - (uint64_t)filler->first + 1;
    const uint64_t first = (uint64_t)filler->first;
    /* The upper half of random * range, which is below |range|; that is 0 for all 2^64 numbers. */
    if (!(range >> 32) && range) {
        for (int i = 0; i < BLOCK; i++) {
            const uint64_t lower = draws->words[0][i] * range >> 32;
            out[i] = (int64_t)(first + ((draws->words[1][i] * range + lower) >> 32));
        }
        return;
    }
    for (int i = 0; i < BLOCK; i++) {
        const uint64_t random = joined(draws, i);
        const uint64_t step = (uint64_t)((unsigned __int128)random * range >> 64);
        out[i] = (int64_t)(first + (range ? step : random));
    }
}

BHI_PART void make_bits(bh_dtype dtype, const struct bhi_draws *draws, uint64_t out[BLOCK]) {
    const uint64_t mask = dtype == BH_DTYPE_BOOL ? 1 : UINT64_MAX;
    for (int i = 0; i < BLOCK; i++) {
        out[i] = joined(draws, i) & mask;
    }
}

/* What is made of a block on the way to its elements. */
union numbers {
    double reals[BLOCK];
    int64_t wholes[BLOCK];
    uint64_t bits[BLOCK];
};

BHI_PART void make_block(const struct bhi_filler *filler, struct bhi_filler_place place,
                         bh_dtype dtype, uint64_t begin, const uint32_t all[BLOCK],
                         union elements *out) {
    union numbers numbers;
    struct bhi_draws draws;
    if (filler->kind == BHI_FILLER_NORMAL) {
        normal(place, begin, all, numbers.reals);
        for (int i = 0; i < BLOCK; i++) {
            numbers.reals[i] = filler->low + filler->high * numbers.reals[i];
        }
        store_reals(dtype, numbers.reals, out);
        return;
    }
    draw(place, VALUE, 0, begin, all, BLOCK, &draws);
    if (filler->kind == BHI_FILLER_INTEGERS) {
        make_wholes(filler, &draws, numbers.wholes);
        store_wholes(dtype, numbers.wholes, out);
    } else if (filler->kind == BHI_FILLER_BITS) {
        make_bits(dtype, &draws, numbers.bits);
        store_bits(dtype, numbers.bits, out);
    } else {
        make_uniform(filler, &draws, numbers.reals);
        store_reals(dtype, numbers.reals, out);
    }
}

/* Puts special values in the places of some. */
BHI_PART void sprinkle(double share, struct bhi_filler_place place, bh_dtype dtype, uint64_t begin,
                       const uint32_t all[BLOCK], union elements *out) {
    const uint32_t size = bhi_dtype_size(dtype);
    struct bhi_draws draws;
    draw(place, CHOICE, 0, begin, all, BLOCK, &draws);
    for (int i = 0; i < BLOCK; i++) {
        if (unit_of(draws.words[0][i], draws.words[1][i]) < share) {
            const uint64_t bits = special(draws.words[2][i], dtype);
            memcpy(out->bytes + (uint32_t)i * size, &bits, size); /* little endian */
        }
    }
}

/* A part of an array, which one thread fills. */
struct part {
    const struct bhi_filler *filler;
    struct bhi_filler_place place;
    bh_dtype dtype;
    uint64_t begin, end; /* |begin| is a multiple of BLOCK */
    uint8_t *out;        /* of element |begin| */
};

BHI_PART void offsets_init(uint32_t all[BLOCK]) {
    for (uint32_t i = 0; i < BLOCK; i++) {
        all[i] = i;
    }
}

BHI_PART void fill_blocks(const struct part *part) {
    const uint32_t size = bhi_dtype_size(part->dtype);
    uint32_t all[BLOCK];
    union elements elements;
    offsets_init(all);
    for (uint64_t i = part->begin; i < part->end; i += BLOCK) {
        const uint64_t count = part->end - i < BLOCK ? part->end - i : BLOCK;
        make_block(part->filler, part->place, part->dtype, i, all, &elements);
        if (part->filler->special > 0) {
            sprinkle(part->filler->special, part->place, part->dtype, i, all, &elements);
        }
        memcpy(part->out + (i - part->begin) * size, &elements, count * size);
    }
}

BHI_PART void fill_noise(struct bhi_filler_place place, uint8_t *out, uint64_t size) {
    uint32_t all[BLOCK], words[BLOCK][4];
    struct bhi_draws draws;
    offsets_init(all);
    for (uint64_t done = 0; done < size; done += sizeof words) {
        const uint64_t here = size - done < sizeof words ? size - done : sizeof words;
        const uint32_t count = (uint32_t)((here + sizeof words[0] - 1) / sizeof words[0]);
        draw(place, NOISE, 0, done / sizeof words[0], all, lanes_of(count), &draws);
        for (uint32_t i = 0; i < count; i++) {
            for (int k = 0; k < 4; k++) {
                words[i][k] = draws.words[k][i];
            }
        }
        memcpy(out + done, words, here);
    }
}

/* -- by processor ---------------------------------------------------------------------------- */

static void fill_plainly(const struct part *part) {
    fill_blocks(part);
}

BHI_WIDE static void fill_widely(const struct part *part) {
    fill_blocks(part);
}

static void noise_plainly(struct bhi_filler_place place, uint8_t *out, uint64_t size) {
    fill_noise(place, out, size);
}

BHI_WIDE static void noise_widely(struct bhi_filler_place place, uint8_t *out, uint64_t size) {
    fill_noise(place, out, size);
}

static void fill_part(const struct part *part) {
    (bhi_is_wide() ? fill_widely : fill_plainly)(part);
}

static void fill_step(void *job, uint64_t index) {
    struct part part = *(const struct part *)job; /* the whole array */
    part.begin = PART * index;
    part.out += part.begin * bhi_dtype_size(part.dtype);
    part.end = part.end - part.begin < PART ? part.end : part.begin + PART;
    fill_part(&part);
}

void bhi_filler_fill(const struct bhi_filler *filler, struct bhi_filler_place place, bh_dtype dtype,
                     uint64_t count, void *out) {
    struct part all = {.filler = filler, .place = place, .dtype = dtype, .end = count, .out = out};
    bhi_team_run((count + PART - 1) / PART, fill_step, &all);
}

void bhi_filler_fill_part(const struct bhi_filler *filler, struct bhi_filler_place place,
                          bh_dtype dtype, uint64_t first, uint64_t count, void *out) {
    struct part part = {.filler = filler,
                        .place = place,
                        .dtype = dtype,
                        .begin = first,
                        .end = first + count,
                        .out = out};
    fill_part(&part);
}

void bhi_filler_noise(struct bhi_filler_place place, void *out, uint64_t size) {
    (bhi_is_wide() ? noise_widely : noise_plainly)(place, out, size);
}

#include "judge/data/arrange.h"

#include <string.h>

#include "formats/dtype.h"
#include "judge/data/sort.h"

const char *const bhi_arrangement_names[BHI_ARRANGEMENTS] = {
    [BHI_ARRANGE_EQUAL] = "equal",
    [BHI_ARRANGE_SORTED] = "sorted",
    [BHI_ARRANGE_REVERSED] = "reversed",
    [BHI_ARRANGE_TIES] = "ties",
    [BHI_ARRANGE_ENDS] = "ends",
    [BHI_ARRANGE_ZEROS] = "zeros",
    [BHI_ARRANGE_TINY] = "tiny",
    [BHI_ARRANGE_HUGE] = "huge",
    [BHI_ARRANGE_PERMUTATION] = "permutation",
};

enum { MOST = 8 }; /* numbers to choose from */

/* Chooses one of |of| numbers, a power of two of them, for each element. */
static void choose(const uint64_t numbers[MOST], uint32_t of, struct bhi_filler_place place,
                   uint32_t size, uint64_t count, uint8_t *out) {
    enum { AT_ONCE = 4096 };
    uint8_t random[AT_ONCE];
    for (uint64_t i = 0; i < count; i++) {
        if (i % AT_ONCE == 0) {
            struct bhi_filler_place part = place;
            part.seed += i / AT_ONCE;
            bhi_filler_noise(part, random, sizeof random);
        }
        memcpy(out + i * size, &numbers[random[i % AT_ONCE] % of], size); /* little endian */
    }
}

/* -- numbers of the generator ---------------------------------------------------------------- */

static uint64_t one_of(const struct bhi_filler *filler, struct bhi_filler_place place,
                       bh_dtype dtype) {
    uint64_t bits = 0;
    bhi_filler_fill(filler, place, dtype, 1, &bits);
    return bits;
}

/* The numbers at the end of the range. */
static void find_ends(const struct bhi_filler *filler, struct bhi_filler_place place,
                      bh_dtype dtype, uint64_t out[2]) {
    static const double deviations = 4;
    for (int i = 0; i < 2; i++) {
        struct bhi_filler end = *filler;
        end.special = 0;
        if (filler->kind == BHI_FILLER_INTEGERS) {
            end.first = end.last = i ? filler->last : filler->first;
        } else if (filler->kind == BHI_FILLER_UNIFORM) {
            end.low = end.high = i ? filler->high : filler->low;
        } else if (filler->kind == BHI_FILLER_NORMAL) {
            end.low += (i ? deviations : -deviations) * filler->high;
            end.high = 0;
        } else {
            place.seed += (uint64_t)i; /* random bits have no end */
        }
        out[i] = one_of(&end, place, dtype);
    }
}

/* -- whatever the generator makes ------------------------------------------------------------ */

static void list_floats(enum bhi_arrangement arrangement, bh_dtype dtype, uint64_t out[MOST]) {
    const struct bhi_float f = bhi_float_of(dtype);
    const uint64_t sign = UINT64_C(1) << (f.exponent + f.mantissa);
    const uint64_t normal = UINT64_C(1) << f.mantissa; /* the smallest */
    const uint64_t zeros[MOST / 2] = {0, 0, 0, 0},
                                tiny[MOST / 2] = {1, normal - 1, normal, normal + 1},
                                huge[MOST / 2] = {f.top - 1, f.top - 2, f.top - normal,
                                                  f.top - normal - 1};
    const uint64_t *const numbers = arrangement == BHI_ARRANGE_ZEROS  ? zeros
                                    : arrangement == BHI_ARRANGE_TINY ? tiny
                                                                      : huge;
    for (int i = 0; i < MOST; i++) {
        out[i] = numbers[i / 2] | (i % 2 ? sign : 0);
    }
}

static void list_integers(enum bhi_arrangement arrangement, bh_dtype dtype, uint64_t out[MOST]) {
    const uint64_t sign = UINT64_C(1) << (8 * bhi_dtype_size(dtype) - 1);
    const bool has_sign = bhi_dtype_is_signed(dtype);
    for (uint64_t i = 0; i < MOST; i++) {
        const uint64_t most = has_sign ? (i % 2 ? sign : sign - 1) : sign | (sign - 1);
        out[i] = arrangement == BHI_ARRANGE_ZEROS  ? 0
                 : arrangement == BHI_ARRANGE_TINY ? (i % 2 && has_sign ? UINT64_MAX : 1)
                 : dtype == BH_DTYPE_BOOL          ? 1
                 : i / 2 % 2                       ? most / 2
                                                   : most;
    }
}

/* The number |i|, or what the type holds of it. */
static uint64_t whole(bh_dtype dtype, uint64_t i) {
    const double value = (double)i;
    return dtype == BH_DTYPE_F8_E4M3   ? bhi_f8_e4m3_nearest(value)
           : bhi_dtype_is_float(dtype) ? bhi_dtype_from_double(dtype, value)
           : dtype == BH_DTYPE_BOOL    ? i % 2
                                       : i;
}

/* Fisher and Yates. */
static void permute(struct bhi_filler_place place, bh_dtype dtype, uint64_t count, uint8_t *out) {
    const uint32_t size = bhi_dtype_size(dtype);
    uint8_t other[8];
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t bits = whole(dtype, i);
        memcpy(out + i * size, &bits, size);
    }
    for (uint64_t i = count; i-- > 1;) {
        const struct bhi_filler_place part = {place.seed + i, place.trial, place.array};
        uint64_t random;
        bhi_filler_noise(part, &random, sizeof random);
        uint8_t *const a = out + i * size, *const b = out + random % (i + 1) * size;
        memcpy(other, a, size);
        memmove(a, b, size);
        memcpy(b, other, size);
    }
}

/* -- all ------------------------------------------------------------------------------------- */

void bhi_arrange(enum bhi_arrangement arrangement, const struct bhi_filler *filler,
                 struct bhi_filler_place place, bh_dtype dtype, uint64_t count, void *out) {
    uint64_t numbers[MOST];
    uint32_t of = MOST;
    switch (arrangement) {
    case BHI_ARRANGE_NONE:
    case BHI_ARRANGE_SORTED:
    case BHI_ARRANGE_REVERSED:
        bhi_filler_fill(filler, place, dtype, count, out);
        if (arrangement != BHI_ARRANGE_NONE) {
            bhi_sort(dtype, arrangement == BHI_ARRANGE_REVERSED, count, out);
        }
        return;
    case BHI_ARRANGE_PERMUTATION:
        permute(place, dtype, count, out);
        return;
    case BHI_ARRANGE_EQUAL:
    case BHI_ARRANGE_TIES:
        of = arrangement == BHI_ARRANGE_EQUAL ? 1 : 4;
        for (uint32_t i = 0; i < of; i++) {
            struct bhi_filler_place part = place;
            part.seed += i;
            numbers[i] = one_of(filler, part, dtype);
        }
        break;
    case BHI_ARRANGE_ENDS:
        of = 2;
        find_ends(filler, place, dtype, numbers);
        break;
    default:
        (bhi_dtype_is_float(dtype) ? list_floats : list_integers)(arrangement, dtype, numbers);
    }
    choose(numbers, of, place, bhi_dtype_size(dtype), count, out);
}

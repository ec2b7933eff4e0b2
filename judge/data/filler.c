/* Only operations that IEEE 754 defines to the last bit are used (+ - * / sqrt), in one order, and
 * none is contracted with another (CMakeLists.txt). So the numbers do not depend on the machine,
 * its libm or the compiler. */
#include "judge/data/filler.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "formats/dtype.h"

enum { THREADS = 8, LEAST_PART = 1 << 15 }; /* elements that a thread is worth */

/* What a counter is for, so that no two uses share numbers. */
enum use { VALUE, CHOICE, NOISE };

static struct bhi_philox draw(struct bhi_filler_place place, enum use use, uint32_t attempt,
                              uint64_t index) {
    const struct bhi_philox counter = {{(uint32_t)index, (uint32_t)(index >> 32),
                                        place.trial << 16 | (place.array & 0xFFFFu),
                                        (uint32_t)use << 24 | attempt}};
    return bhi_philox(place.seed, counter);
}

/* From 0 to below 1, in steps of 2^-53. */
static double unit_of(uint32_t high, uint32_t low) {
    const uint64_t bits = (uint64_t)high << 32 | low;
    return (double)(bits >> 11) * 0x1p-53;
}

/* -- normal ---------------------------------------------------------------------------------- */

/* The natural logarithm of 0 < x < 1, within some units of the last place: ln x = e ln 2 + ln m,
 * and ln m = 2 artanh((m - 1) / (m + 1)) by its series. */
static double logarithm(double x) {
    int exponent;
    double m = frexp(x, &exponent);
    if (m < 0.70710678118654752) {
        m *= 2;
        exponent--;
    }
    static const double terms[] = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                                   1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
    const double z = (m - 1) / (m + 1), square = z * z;
    double sum = 0;
    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++) {
        sum = sum * square + terms[i];
    }
    return exponent * 0.69314718055994531 + 2 * z * sum;
}

/* Marsaglia's polar method. Of each pair one number is used, so that each element has its own. */
static double normal(struct bhi_filler_place place, uint64_t index) {
    for (uint32_t attempt = 0;; attempt++) {
        const struct bhi_philox bits = draw(place, VALUE, attempt, index);
        const double x = 2 * unit_of(bits.words[0], bits.words[1]) - 1;
        const double y = 2 * unit_of(bits.words[2], bits.words[3]) - 1;
        const double s = x * x + y * y;
        if (s > 0 && s < 1) {
            return x * sqrt(-2 * logarithm(s) / s);
        }
    }
}

/* -- values ---------------------------------------------------------------------------------- */

/* The nearest integer that |dtype| holds; halves to even. Not for floats. */
static uint64_t integer_of(bh_dtype dtype, double value) {
    const bool has_sign = dtype == BH_DTYPE_I8 || dtype == BH_DTYPE_I16 || dtype == BH_DTYPE_I32 ||
                          dtype == BH_DTYPE_I64;
    const int bits = dtype == BH_DTYPE_BOOL ? 1 : (int)bhi_dtype_size(dtype) * 8;
    const double whole = rint(value);
    if (has_sign) {
        const double end = ldexp(1, bits - 1);
        const uint64_t least = UINT64_C(1) << (bits - 1); /* its upper bits are cut off */
        return whole >= end ? least - 1 : whole < -end ? least : (uint64_t)(int64_t)whole;
    }
    return whole >= ldexp(1, bits) ? UINT64_MAX >> (64 - bits) : whole < 0 ? 0 : (uint64_t)whole;
}

static uint64_t bits_of(bh_dtype dtype, double value) {
    float single;
    uint32_t word;
    uint64_t wide;
    switch (dtype) {
    case BH_DTYPE_F16:
        return bhi_f16_from_double(value);
    case BH_DTYPE_F32:
        single = (float)value;
        memcpy(&word, &single, sizeof word);
        return word;
    case BH_DTYPE_F64:
        memcpy(&wide, &value, sizeof wide);
        return wide;
    default:
        return integer_of(dtype, value);
    }
}

static uint64_t whole_of(const struct bhi_filler *filler, bh_dtype dtype,
                         const struct bhi_philox *bits) {
    const uint64_t random = (uint64_t)bits->words[1] << 32 | bits->words[0];
    const uint64_t range = (uint64_t)filler->last - (uint64_t)filler->first + 1;
    /* The product's upper half is below |range|, which is 0 for all 2^64 numbers. */
    const uint64_t step = range ? (uint64_t)((unsigned __int128)random * range >> 64) : random;
    const int64_t value = (int64_t)((uint64_t)filler->first + step);
    switch (dtype) {
    case BH_DTYPE_I64:
        return (uint64_t)value;
    case BH_DTYPE_U64:
        return value < 0 ? 0 : (uint64_t)value;
    default:
        return bits_of(dtype, (double)value);
    }
}

/* -- special values -------------------------------------------------------------------------- */

static uint64_t special_float(uint32_t choice, int exponent_bits, int mantissa_bits) {
    const uint64_t sign = UINT64_C(1) << (exponent_bits + mantissa_bits);
    const uint64_t infinity = ((UINT64_C(1) << exponent_bits) - 1) << mantissa_bits;
    const uint64_t one = ((UINT64_C(1) << (exponent_bits - 1)) - 1) << mantissa_bits;
    const uint64_t values[] = {
        infinity,                                      /* infinity */
        0,                                             /* zero */
        1,                                             /* the smallest denormal number */
        (UINT64_C(1) << mantissa_bits) - 1,            /* the largest */
        UINT64_C(1) << mantissa_bits,                  /* the smallest normal number */
        infinity - 1,                                  /* the largest */
        one,                                           /* 1 */
        one - 1,                                       /* the number before it */
        infinity | UINT64_C(1) << (mantissa_bits - 1), /* NaN */
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
    switch (dtype) {
    case BH_DTYPE_F16:
        return special_float(choice, 5, 10);
    case BH_DTYPE_F32:
        return special_float(choice, 8, 23);
    case BH_DTYPE_F64:
        return special_float(choice, 11, 52);
    default:
        return special_integer(choice, dtype);
    }
}

/* -- all ------------------------------------------------------------------------------------- */

static uint64_t element(const struct bhi_filler *filler, struct bhi_filler_place place,
                        bh_dtype dtype, uint64_t index) {
    if (filler->special > 0) {
        const struct bhi_philox choice = draw(place, CHOICE, 0, index);
        if (unit_of(choice.words[0], choice.words[1]) < filler->special) {
            return special(choice.words[2], dtype);
        }
    }
    if (filler->kind == BHI_FILLER_NORMAL) {
        return bits_of(dtype, filler->low + filler->high * normal(place, index));
    }
    const struct bhi_philox bits = draw(place, VALUE, 0, index);
    if (filler->kind == BHI_FILLER_INTEGERS) {
        return whole_of(filler, dtype, &bits);
    }
    if (filler->kind == BHI_FILLER_BITS) {
        const uint64_t random = (uint64_t)bits.words[1] << 32 | bits.words[0];
        return dtype == BH_DTYPE_BOOL ? random & 1 : random;
    }
    const double unit = unit_of(bits.words[0], bits.words[1]);
    return bits_of(dtype, filler->low + (filler->high - filler->low) * unit);
}

/* A part of an array, which one thread fills. */
struct part {
    pthread_t thread;
    const struct bhi_filler *filler;
    struct bhi_filler_place place;
    bh_dtype dtype;
    uint64_t begin, end;
    uint8_t *out; /* of the whole array */
};

static void *fill_part(void *argument) {
    const struct part *part = argument;
    const uint32_t size = bhi_dtype_size(part->dtype);
    uint8_t *at = part->out + part->begin * size;
    for (uint64_t i = part->begin; i < part->end; i++, at += size) {
        const uint64_t bits = element(part->filler, part->place, part->dtype, i);
        memcpy(at, &bits, size); /* little endian */
    }
    return NULL;
}

void bhi_filler_fill(const struct bhi_filler *filler, struct bhi_filler_place place, bh_dtype dtype,
                     uint64_t count, void *out) {
    struct part parts[THREADS];
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const uint64_t most = processors > 1 && processors < THREADS ? (uint64_t)processors : THREADS;
    const uint64_t fitting = count / LEAST_PART;
    const uint64_t used = processors < 2 || fitting < 2 ? 1 : fitting < most ? fitting : most;
    uint64_t started = 0;
    for (uint64_t i = 0; i < used; i++) {
        parts[i] = (struct part){.filler = filler,
                                 .place = place,
                                 .dtype = dtype,
                                 .begin = count / used * i,
                                 .end = i + 1 < used ? count / used * (i + 1) : count,
                                 .out = out};
    }
    while (started + 1 < used &&
           pthread_create(&parts[started].thread, NULL, fill_part, &parts[started]) == 0) {
        started++;
    }
    for (uint64_t i = started; i < used; i++) {
        (void)fill_part(&parts[i]);
    }
    for (uint64_t i = 0; i < started; i++) {
        BHI_CHECK(pthread_join(parts[i].thread, NULL) == 0);
    }
}

void bhi_filler_noise(struct bhi_filler_place place, void *out, uint64_t size) {
    uint8_t *at = out;
    for (uint64_t done = 0; done < size; done += 16) {
        const struct bhi_philox bits = draw(place, NOISE, 0, done / 16);
        memcpy(at + done, bits.words, size - done < 16 ? (size_t)(size - done) : 16);
    }
}

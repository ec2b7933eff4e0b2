#include "judge/data/sort.h"

#include <string.h>

#include "formats/dtype.h"
#include "judge/data/team.h"

/* |LEAST_SHARED|: keys that several threads are worth. */
enum { FEW = 32, DIGIT = 8, FIRST_DIGIT = 11, LEAST_SHARED = 1 << 16 };

/* The key that sorts as the number does: NaNs at the ends. |sign| is the bit. */
static inline uint64_t key_of(bool is_float, bool is_signed, uint64_t sign, uint64_t bits,
                              bool back) {
    if (!is_float) {
        return is_signed ? bits ^ sign : bits;
    }
    const bool negative = back ? !(bits & sign) : bits & sign;
    return negative ? ~bits & (sign | (sign - 1)) : bits ^ sign;
}

static inline uint64_t load(const uint8_t *at, uint32_t size) {
    uint64_t bits = 0;
    switch (size) { /* so that each copy is one instruction */
    case 1:
        return *at;
    case 2:
        memcpy(&bits, at, 2);
        return bits;
    case 4:
        memcpy(&bits, at, 4);
        return bits;
    default:
        memcpy(&bits, at, 8);
        return bits;
    }
}

static inline void store(uint64_t bits, uint8_t *at, uint32_t size) {
    switch (size) {
    case 1:
        *at = (uint8_t)bits;
        break;
    case 2:
        memcpy(at, &bits, 2);
        break;
    case 4:
        memcpy(at, &bits, 4);
        break;
    default:
        memcpy(at, &bits, 8);
    }
}

static void insert(uint8_t *keys, uint64_t count, uint32_t size) {
    for (uint64_t i = 1; i < count; i++) {
        const uint64_t key = load(keys + i * size, size);
        uint64_t to = i;
        for (; to > 0 && load(keys + (to - 1) * size, size) > key; to--) {
            store(load(keys + (to - 1) * size, size), keys + to * size, size);
        }
        store(key, keys + to * size, size);
    }
}

/* In place, as arrays may be large: brings each key to the part of those that have the same digit, the
 * |bits| from bit |low| on. |end| gets where each part ends. */
static void split(uint8_t *keys, uint64_t count, uint32_t size, uint32_t low, uint32_t bits,
                  uint64_t *next, uint64_t *end) {
    const uint64_t values = UINT64_C(1) << bits, mask = values - 1;
    memset(end, 0, values * sizeof *end);
    for (uint64_t i = 0; i < count; i++) {
        end[load(keys + i * size, size) >> low & mask]++;
    }
    for (uint64_t value = 0, begin = 0; value < values; value++) {
        next[value] = begin;
        begin += end[value];
        end[value] = begin;
    }
    for (uint64_t value = 0; value < values; value++) {
        while (next[value] < end[value]) {
            uint64_t key = load(keys + next[value] * size, size);
            for (uint64_t of; (of = key >> low & mask) != value;) {
                uint8_t *const place = keys + next[of]++ * size;
                const uint64_t other = load(place, size);
                store(key, place, size);
                key = other;
            }
            store(key, keys + next[value]++ * size, size);
        }
    }
}

/* By the lowest |bits|: each part by those below its digit. */
static void sort(uint8_t *keys, uint64_t count, uint32_t size, uint32_t bits) {
    uint64_t next[1 << DIGIT], end[1 << DIGIT];
    if (count <= FEW || bits == 0) {
        insert(keys, count, size);
        return;
    }
    const uint32_t digit = bits < DIGIT ? bits : DIGIT, low = bits - digit;
    split(keys, count, size, low, digit, next, end);
    for (uint64_t value = 0, begin = 0; value < UINT64_C(1) << digit && low; value++) {
        sort(keys + begin * size, end[value] - begin, size, low);
        begin = end[value];
    }
}

/* The parts of the first digit, which a team sorts. */
struct parts {
    uint8_t *keys;
    uint32_t size, rest; /* |rest|: bits below that digit */
    uint64_t end[1 << FIRST_DIGIT];
};

static void sort_part(void *job, uint64_t value) {
    const struct parts *parts = job;
    const uint64_t begin = value ? parts->end[value - 1] : 0;
    sort(parts->keys + begin * parts->size, parts->end[value] - begin, parts->size, parts->rest);
}

static void sort_all(uint8_t *keys, uint64_t count, uint32_t size) {
    uint64_t next[1 << FIRST_DIGIT];
    const uint32_t digit = size == 1 ? DIGIT : FIRST_DIGIT;
    struct parts parts = {.keys = keys, .size = size, .rest = 8 * size - digit};
    if (count < LEAST_SHARED) {
        sort(keys, count, size, 8 * size);
        return;
    }
    split(keys, count, size, parts.rest, digit, next, parts.end);
    bhi_team_run(UINT64_C(1) << digit, sort_part, &parts);
}

void bhi_sort(bh_dtype dtype, bool reversed, uint64_t count, void *elements) {
    uint8_t *const out = elements;
    const uint32_t size = bhi_dtype_size(dtype);
    const bool is_float = bhi_dtype_is_float(dtype), is_signed = bhi_dtype_is_signed(dtype);
    const uint64_t sign = UINT64_C(1) << (8 * size - 1);
    const uint64_t flip = reversed ? UINT64_MAX : 0;
    for (uint64_t i = 0; i < count; i++) {
        store(key_of(is_float, is_signed, sign, load(out + i * size, size), false) ^ flip,
              out + i * size, size);
    }
    sort_all(out, count, size);
    for (uint64_t i = 0; i < count; i++) {
        store(key_of(is_float, is_signed, sign,
                     load(out + i * size, size) ^ (flip >> (64 - 8 * size)), true),
              out + i * size, size);
    }
}

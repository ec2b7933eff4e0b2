#include "judge/data/sort.h"

#include <string.h>

#include "formats/dtype.h"

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

/* In place, as arrays may be large: each key goes to the part of those that have the same byte
 * |byte|, then each part is sorted by the bytes below. */
static void sort(uint8_t *keys, uint64_t count, uint32_t size, uint32_t byte) {
    enum { FEW = 32, VALUES = 256 };
    uint64_t next[VALUES], end[VALUES] = {0};
    if (count <= FEW) {
        insert(keys, count, size);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        end[keys[i * size + byte]]++; /* little endian */
    }
    for (uint64_t value = 0, begin = 0; value < VALUES; value++) {
        next[value] = begin;
        begin += end[value];
        end[value] = begin;
    }
    for (uint64_t value = 0; value < VALUES; value++) {
        while (next[value] < end[value]) {
            uint64_t key = load(keys + next[value] * size, size);
            for (uint64_t of = key >> (8 * byte) & 255; of != value; of = key >> (8 * byte) & 255) {
                uint8_t *const place = keys + next[of]++ * size;
                const uint64_t other = load(place, size);
                store(key, place, size);
                key = other;
            }
            store(key, keys + next[value]++ * size, size);
        }
    }
    for (uint64_t value = 0, begin = 0; value < VALUES && byte; value++) {
        sort(keys + begin * size, end[value] - begin, size, byte - 1);
        begin = end[value];
    }
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
    sort(out, count, size, size - 1);
    for (uint64_t i = 0; i < count; i++) {
        store(key_of(is_float, is_signed, sign,
                     load(out + i * size, size) ^ (flip >> (64 - 8 * size)), true),
              out + i * size, size);
    }
}

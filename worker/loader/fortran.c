/* The array is cut into boxes that fit the cache. What a box has in a row in the file are elements
 * along the first dimensions, and in memory those along the last ones; so a box is long in both. */
#include "worker/loader/fortran.h"

#include <errno.h>
#include <stdlib.h>

enum { BOX = 256 << 10 }; /* bytes */

struct box {
    const struct bhi_array *array;
    uint32_t size;                     /* of an element */
    uint64_t most[BHI_MAX_DIMENSIONS]; /* elements along each dimension, unless the array ends */
    uint64_t begin[BHI_MAX_DIMENSIONS], count[BHI_MAX_DIMENSIONS]; /* of this one */
};

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* The first dimensions get the square root of the elements that fit, the last ones what is left. */
static void box_init(struct box *box, const struct bhi_array *array) {
    *box = (struct box){.array = array, .size = bhi_dtype_size(array->dtype)};
    uint64_t all = BOX / box->size, room = 1;
    while (room * room * 4 <= all) {
        room *= 2;
    }
    for (uint32_t i = 0; i < array->dimensions; i++) {
        box->most[i] = least(array->shape[i], room);
        room /= box->most[i];
        all /= box->most[i];
    }
    for (uint32_t i = array->dimensions; i-- > 0;) {
        const uint64_t longer = least(array->shape[i], box->most[i] * all);
        all = all * box->most[i] / longer;
        box->most[i] = longer;
    }
}

/* Takes the next box, or the first one. */
static bool box_next(struct box *box, bool first) {
    const struct bhi_array *array = box->array;
    bool more = first;
    for (uint32_t i = 0; i < array->dimensions && !more; i++) {
        box->begin[i] += box->most[i];
        more = box->begin[i] < array->shape[i];
        box->begin[i] = more ? box->begin[i] : 0;
    }
    for (uint32_t i = 0; i < array->dimensions; i++) {
        box->count[i] = least(box->most[i], array->shape[i] - box->begin[i]);
    }
    return more;
}

/* Reads a box from the file or, with |writes|, writes it to memory: run by run of what is in a row
 * there. */
static bool move(const struct box *box, bool writes, int fd, uint64_t offset, uint8_t *bytes,
                 struct bhi_read_failure *failure) {
    const uint32_t dimensions = box->array->dimensions;
    uint64_t stride[BHI_MAX_DIMENSIONS], index[BHI_MAX_DIMENSIONS] = {0};
    uint64_t run = box->size, next = box->size, at = offset;
    uint32_t inside = 0;
    bool whole = true, more = true;
    /* Dimensions in the order in which they count there. */
#define DIMENSION(k) (writes ? dimensions - 1 - (k) : (k))
    for (uint32_t k = 0; k < dimensions; k++) {
        const uint32_t d = DIMENSION(k);
        stride[k] = next;
        next *= box->array->shape[d];
        at += box->begin[d] * stride[k];
        if (whole) {
            run *= box->count[d];
            inside = k + 1;
            whole = box->count[d] == box->array->shape[d];
        }
    }
    for (; more; bytes += run) {
        int error = 0;
        if (writes && !bhi_write_at(fd, bytes, at, run, &error)) {
            *failure = (struct bhi_read_failure){at, error, true};
            return false;
        }
        if (!writes && !bhi_read_at(fd, bytes, at, run, failure)) {
            return false;
        }
        more = false;
        for (uint32_t k = inside; k < dimensions && !more; k++) {
            more = ++index[k] < box->count[DIMENSION(k)];
            at += stride[k];
            if (!more) {
                at -= index[k] * stride[k];
                index[k] = 0;
            }
        }
    }
#undef DIMENSION
    return true;
}

bool bhi_fortran_read(int fd, int out, uint64_t offset, const struct bhi_array *array,
                      _Atomic uint64_t *done, struct bhi_read_failure *failure) {
    uint8_t *const from = malloc(BOX), *const to = malloc(BOX);
    struct box box;
    bool good = from && to;
    if (!good) {
        *failure = (struct bhi_read_failure){offset, ENOMEM, false};
    }
    box_init(&box, array);
    for (bool more = box_next(&box, true); more && good; more = box_next(&box, false)) {
        uint64_t elements = 1;
        for (uint32_t i = 0; i < array->dimensions; i++) {
            elements *= box.count[i];
        }
        good = move(&box, false, fd, offset, from, failure);
        if (good) {
            bhi_array_transpose(box.size, array->dimensions, box.count, from, to);
            good = move(&box, true, out, 0, to, failure);
            atomic_fetch_add_explicit(done, elements * box.size, memory_order_relaxed);
        }
    }
    free(from);
    free(to);
    return good;
}

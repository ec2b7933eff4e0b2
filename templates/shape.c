#include "templates/shape.h"

#include <stdio.h>
#include <string.h>

const char *bhi_shape_text(const struct bhi_shape *shape, char *out, size_t capacity) {
    size_t used = (size_t)snprintf(out, capacity, "[");
    for (uint32_t i = 0; i < shape->rank && used < capacity; i++) {
        used += (size_t)snprintf(out + used, capacity - used, "%s%llu", i ? "," : "",
                                 (unsigned long long)shape->size[i]);
    }
    if (used < capacity) {
        snprintf(out + used, capacity - used, "]");
    }
    return out;
}

bool bhi_shape_equal(const struct bhi_shape *a, const struct bhi_shape *b) {
    return a->rank == b->rank && !memcmp(a->size, b->size, a->rank * sizeof a->size[0]);
}

/* The size of a dimension, counted from the last one. */
static uint64_t from_right(const struct bhi_shape *shape, uint32_t axis) {
    return axis < shape->rank ? shape->size[shape->rank - 1 - axis] : 1;
}

bool bhi_shape_join(const struct bhi_named_shape *arrays, uint32_t count,
                    struct bhi_shape *out_shape, struct bhi_complaint *complaint) {
    char a[128], b[128];
    *out_shape = (struct bhi_shape){.count = 1};
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t rank = arrays[i].shape.rank;
        out_shape->rank = rank > out_shape->rank ? rank : out_shape->rank;
    }
    uint64_t product = 1; /* of the sizes that are not 0 */
    for (uint32_t axis = 0; axis < out_shape->rank; axis++) {
        const struct bhi_named_shape *first = NULL;
        uint64_t size = 1;
        for (uint32_t i = 0; i < count; i++) {
            const uint64_t own = from_right(&arrays[i].shape, axis);
            if (first && own != 1 && own != size) {
                return bhi_refuse(complaint,
                                  "%s is %s and %s is %s: axis -%u has %llu and %llu elements; "
                                  "only an axis of 1 is stretched",
                                  first->name, bhi_shape_text(&first->shape, a, sizeof a),
                                  arrays[i].name, bhi_shape_text(&arrays[i].shape, b, sizeof b),
                                  axis + 1, (unsigned long long)size, (unsigned long long)own);
            }
            if (!first && own != 1) {
                first = &arrays[i];
                size = own;
            }
        }
        out_shape->size[out_shape->rank - 1 - axis] = size;
        out_shape->count *= size;
        if (size && __builtin_mul_overflow(product, size, &product)) {
            product = UINT64_MAX;
        }
    }
    return product <= INT64_MAX ||
           bhi_refuse(complaint, "the result is %s: more than 2^63 - 1 elements",
                      bhi_shape_text(out_shape, a, sizeof a));
}

bool bhi_shape_axes(const struct bhi_shape *result, const struct bhi_named_shape *arrays,
                    uint32_t count, struct bhi_axes *out_axes, uint8_t *out_has,
                    struct bhi_complaint *complaint) {
    char text[128];
    uint32_t axes = 0;
    *out_axes = (struct bhi_axes){.count = 1, .size = {(uint32_t)result->count}};
    memset(out_has, 1, count);
    if (result->count <= 1) { /* of no element it does not matter which one is read */
        return true;
    }
    for (uint32_t k = 0; k < result->rank; k++) {
        const uint64_t size = result->size[k];
        bool apart = axes == 0; /* from the axis before */
        if (size == 1) {
            continue;
        }
        for (uint32_t i = 0; i < count; i++) {
            const bool has = from_right(&arrays[i].shape, result->rank - 1 - k) != 1;
            apart |= axes && has != (out_has[i] >> (axes - 1) & 1);
        }
        if (!apart) {
            out_axes->size[axes - 1] *= (uint32_t)size;
            continue;
        }
        if (axes == BHI_MAX_AXES) {
            return bhi_refuse(complaint,
                              "the result is %s, and its arrays are stretched along too many "
                              "axes: more than %d remain when those alike are taken together",
                              bhi_shape_text(result, text, sizeof text), BHI_MAX_AXES);
        }
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t has = from_right(&arrays[i].shape, result->rank - 1 - k) != 1;
            out_has[i] = (uint8_t)((axes ? out_has[i] : 0u) | has << axes);
        }
        out_axes->size[axes++] = (uint32_t)size;
    }
    out_axes->count = axes;
    return true;
}

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

bool bhi_shape_join(const struct bhi_named_shape *arrays, uint32_t count,
                    struct bhi_shape *out_shape, struct bhi_complaint *complaint) {
    const struct bhi_named_shape *widest = NULL;
    uint32_t rank = 0;
    char a[128], b[128];
    for (uint32_t i = 0; i < count; i++) {
        const struct bhi_shape *shape = &arrays[i].shape;
        if (shape->rank > rank) {
            rank = shape->rank;
        }
        if (shape->count == 1) {
            continue;
        }
        if (widest && !bhi_shape_equal(&widest->shape, shape)) {
            return bhi_refuse(complaint,
                              "%s is %s and %s is %s: shapes must be the same; only a single "
                              "element fits every shape",
                              widest->name, bhi_shape_text(&widest->shape, a, sizeof a),
                              arrays[i].name, bhi_shape_text(shape, b, sizeof b));
        }
        widest = &arrays[i];
    }
    const uint32_t own = widest ? widest->shape.rank : 0;
    *out_shape = (struct bhi_shape){.rank = rank, .count = widest ? widest->shape.count : 1};
    for (uint32_t i = 0; i < rank; i++) {
        out_shape->size[i] = i < rank - own ? 1 : widest->shape.size[i - (rank - own)];
    }
    return true;
}

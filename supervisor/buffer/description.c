/* The description of a buffer's bytes: checks and keeps what the caller sets, and returns it. */
#include "base/detail.h"
#include "formats/dtype.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/context/layout.h"

#include <errno.h>
#include <stdlib.h>

#define CALL "bh_buffer_set_description"

void bhi_description_init(bh_description *description) {
    *description = (bh_description){.struct_size = sizeof *description, .lanes = 1};
}

static bool known_type(bh_number_kind kind, uint32_t bits) {
    switch (kind) {
    case BH_NUMBER_INT:
    case BH_NUMBER_UINT:
    case BH_NUMBER_FLOAT:
        return bits == 8 || bits == 16 || bits == 32 || bits == 64;
    case BH_NUMBER_BFLOAT:
        return bits == 16;
    case BH_NUMBER_COMPLEX:
        return bits == 64 || bits == 128;
    case BH_NUMBER_BOOL:
    case BH_NUMBER_F8_E4M3:
    case BH_NUMBER_F8_E5M2:
    case BH_NUMBER_F8_E8M0:
        return bits == 8;
    }
    return false;
}

/* Counts the elements. Returns false if the dimensions, without those of 0, multiply to more than
 * 2^63 - 1: even if a dimension of 0 makes the count 0. */
static bool count_elements(const bh_description *d, int64_t *out_count) {
    int64_t count = 1;
    bool none = false;
    for (uint32_t i = 0; i < d->rank; i++) {
        none |= d->shape[i] == 0;
        if (d->shape[i] && __builtin_mul_overflow(count, d->shape[i], &count)) {
            return false;
        }
    }
    *out_count = none ? 0 : count;
    return true;
}

/* Fills in strides without gaps. The products fit because count_elements has succeeded. */
static void compact(bh_description *d) {
    int64_t stride = 1;
    for (uint32_t i = d->rank; i-- > 0;) {
        d->strides[i] = stride;
        stride *= d->shape[i] ? (int64_t)d->shape[i] : 1;
    }
}

/* Computes the distances, in elements, from element 0 to the farthest element before it (0 or
 * negative) and after it. Returns false if one overflows. */
static bool reach(const bh_description *d, int64_t *out_before, int64_t *out_after) {
    int64_t before = 0, after = 0;
    for (uint32_t i = 0; i < d->rank; i++) {
        int64_t distance;
        if (__builtin_mul_overflow((int64_t)d->shape[i] - 1, d->strides[i], &distance) ||
            __builtin_add_overflow(distance < 0 ? before : after, distance,
                                   distance < 0 ? &before : &after)) {
            return false;
        }
    }
    *out_before = before;
    *out_after = after;
    return true;
}

/* |d| is a copy of the caller's description. Fills in its strides if it has none. */
static bh_status check(bh_description *d, uint64_t size, const char *call, bh_detail *detail) {
    if (!known_type(d->kind, d->bits)) {
        return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "kind", .value = (uint64_t)d->kind,
                        .text =
                            BHI_SAY("%d with %u bits is no element type", (int)d->kind, d->bits));
    }
    if (d->lanes < 1 || d->lanes > UINT16_MAX) {
        return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "lanes", .text = "is not 1 to 65535",
                        .value = d->lanes, .limit = UINT16_MAX);
    }
    if (d->rank > BH_MAX_RANK) {
        return BHI_FAIL(detail, call, BH_REASON_OVER, "rank", .value = d->rank,
                        .limit = BH_MAX_RANK);
    }
    int64_t count, bytes, before = 0, after = 0;
    const int64_t element = (int64_t)d->bits / 8 * d->lanes;
    if (!count_elements(d, &count) || __builtin_mul_overflow(count, element, &bytes)) {
        return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "shape",
                        .text = "has more than 2^63 - 1 elements or bytes");
    }
    if (!d->strided) {
        compact(d);
    }
    if (d->offset > size) {
        return BHI_FAIL(detail, call, BH_REASON_OUTSIDE, "offset", .value = d->offset,
                        .limit = size, .text = "buffer");
    }
    if (!count) {
        return BH_OK;
    }
    if (!reach(d, &before, &after) || __builtin_mul_overflow(before, element, &before) ||
        __builtin_add_overflow(after, 1, &after) ||
        __builtin_mul_overflow(after, element, &after)) {
        return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "strides",
                        .text = "put two elements more than 2^63 bytes apart");
    }
    /* |before| is negated as an unsigned number, because it may be -2^63. */
    if (0 - (uint64_t)before > d->offset || (uint64_t)after > size - d->offset) {
        return BHI_FAIL(detail, call, BH_REASON_OUTSIDE, "offset", .value = d->offset,
                        .limit = size,
                        .text = BHI_SAY("buffer, with elements from %lld to %lld bytes around it,",
                                        (long long)before, (long long)after));
    }
    return BH_OK;
}

/* Clears the fields that were not checked: those of dimensions beyond the rank. */
static void clear_rest(bh_description *d) {
    d->strided = true;
    for (uint32_t i = d->rank; i < BH_MAX_RANK; i++) {
        d->shape[i] = 0;
        d->strides[i] = 0;
    }
}

bh_status bhi_description_take(const bh_buffer *buffer, const bh_description *given,
                               const char *call, bh_description *out, bh_detail *detail) {
    bh_status status =
        bhi_layout_take(BHI_OURS(bh_description), out, given, call, "description", detail);
    if (status == BH_OK) {
        out->lanes = out->lanes ? out->lanes : 1;
        status = check(out, buffer->size, call, detail);
    }
    if (status == BH_OK) {
        clear_rest(out);
    }
    return status;
}

BH_API bh_status bh_buffer_set_description(bh_buffer *buffer, const bh_description *description,
                                           bh_detail *detail) {
    BHI_NEED_LIVE(buffer, CALL, detail);
    BHI_TRY(bhi_context_check_fork(buffer->context, CALL, detail));
    bh_description *copy = NULL;
    if (description) {
        copy = malloc(sizeof *copy);
        if (!copy) {
            return BHI_FAIL(detail, CALL, BH_REASON_MEMORY);
        }
        const bh_status status = bhi_description_take(buffer, description, CALL, copy, detail);
        if (status != BH_OK) {
            free(copy);
            return status;
        }
    }
    bhi_context_lock(buffer->context);
    bh_description *old = buffer->description;
    buffer->description = copy;
    bhi_context_unlock(buffer->context);
    free(old);
    return BH_OK;
}

static void describe_bytes(uint64_t size, bh_description *out) {
    bhi_description_init(out);
    out->kind = BH_NUMBER_UINT;
    out->bits = 8;
    out->rank = 1;
    out->strided = true;
    out->shape[0] = size;
    out->strides[0] = 1;
}

/* Describes the loaded array. Returns false for plain bytes, or if a stride would overflow. */
static bool describe_array(const bh_array_info *array, bh_description *out) {
    if (array->dtype == BH_DTYPE_NONE) {
        return false;
    }
    bhi_description_init(out);
    out->kind = bhi_dtype_number(array->dtype);
    out->bits = 8 * bhi_dtype_any_size(array->dtype);
    out->rank = array->rank;
    out->strided = true;
    int64_t stride = 1;
    for (uint32_t i = out->rank; i-- > 0;) {
        out->shape[i] = array->shape[i];
        out->strides[i] = stride;
        /* Only an empty array can overflow: the bytes of any other are in its file. */
        if (array->shape[i] && __builtin_mul_overflow(stride, array->shape[i], &stride)) {
            return false;
        }
    }
    return true;
}

BH_API bh_status bh_buffer_description(bh_buffer *buffer, bh_description *out_description,
                                       bh_detail *detail) {
    BHI_NEED_LIVE(buffer, "bh_buffer_description", detail);
    BHI_TRY(bhi_context_check_fork(buffer->context, "bh_buffer_description", detail));
    BHI_TRY(bhi_layout_check(BHI_OURS(bh_description), out_description, "bh_buffer_description",
                             "out_description", detail));
    bh_description description;
    bhi_context_lock(buffer->context);
    if (buffer->description) {
        description = *buffer->description;
    } else if (!buffer->load || !describe_array(&buffer->load->array, &description)) {
        describe_bytes(buffer->size, &description);
    }
    bhi_context_unlock(buffer->context);
    bhi_layout_give(out_description, &description, sizeof description);
    return BH_OK;
}

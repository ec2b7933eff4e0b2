#include "request/push.h"

#include <stdio.h>
#include <string.h>

/* Parses a scalar type, or a vector of it such as "f32x3". Returns false for other types. */
static bool push_type(const char *type, bh_dtype *out_dtype, uint32_t *out_width) {
    const size_t name = strcspn(type, "x");
    *out_width = 1;
    if (!bhi_dtype_find(type, name, out_dtype)) {
        return false;
    }
    if (!type[name]) {
        return true;
    }
    *out_width = (uint32_t)(type[name + 1] - '0');
    return *out_width >= 2 && *out_width <= 4 && !type[name + 2];
}

/* Reads the number at *cursor, at most BHI_MAX_PUSH; 0 if there is none. */
static uint32_t take_count(const char **cursor) {
    uint32_t count = 0;
    for (; **cursor >= '0' && **cursor <= '9' && count <= BHI_MAX_PUSH; ++*cursor) {
        count = count * 10 + (uint32_t)(**cursor - '0');
    }
    return count <= BHI_MAX_PUSH ? count : 0;
}

bool bhi_push_shape(const struct bhi_kernel_member *member, struct bhi_push_shape *out) {
    const char *at = member->type + strcspn(member->type, "x[");
    *out = (struct bhi_push_shape){.count = 1, .width = 1};
    if (!bhi_dtype_find(member->type, (size_t)(at - member->type), &out->dtype)) {
        return false;
    }
    if (*at == 'x') {
        at++;
        out->width = take_count(&at);
    }
    if (*at == 'x' || *at == '[') {
        const char *end = *at++ == '[' ? "]" : "";
        out->count = take_count(&at);
        if (strncmp(at, end, strlen(end)) != 0) {
            return false;
        }
        at += strlen(end);
    }
    const uint64_t last = member->offset + (uint64_t)(out->count - 1) * member->stride +
                          (uint64_t)(out->width - 1) * member->step;
    /* Numbers that overlap are no valid layout. */
    return !*at && out->count && out->width && last + bhi_dtype_size(out->dtype) <= BHI_MAX_PUSH &&
           (out->count == 1 || member->stride) && (out->width == 1 || member->step);
}

uint32_t bhi_push_place(const struct bhi_kernel_member *member, uint32_t element, uint32_t index) {
    return member->offset + element * member->stride + index * member->step;
}

/* -- one value ----------------------------------------------------------------------------------
 */

/* A member, and the type of the number at some offset of it. */
struct found {
    const struct bhi_kernel_member *member;
    bh_dtype dtype;
};

static bool find_number(const struct bhi_kernel_types *types, uint32_t at, struct found *out) {
    uint32_t width;
    for (uint32_t i = 0; i < types->member_count; i++) {
        out->member = &types->members[i];
        if (at < out->member->offset || !push_type(out->member->type, &out->dtype, &width)) {
            continue;
        }
        const uint32_t size = bhi_dtype_size(out->dtype), in = at - out->member->offset;
        if (in % size == 0 && in / size < width) {
            return true;
        }
    }
    return false;
}

/* Finds the first number at or after |used| that lies at a multiple of its size. */
static bool find_next(const struct bhi_kernel_types *types, uint32_t used, struct found *out) {
    uint32_t nearest = UINT32_MAX;
    for (uint32_t size = 1; size <= 8; size *= 2) {
        const uint32_t at = (used + size - 1) / size * size;
        struct found found;
        if (at < nearest && find_number(types, at, &found) && bhi_dtype_size(found.dtype) == size) {
            *out = found;
            nearest = at;
        }
    }
    return nearest != UINT32_MAX;
}

/* A value is the same as i32 and as u32 unless its sign bit is set. */
static bool is_same_integer(const struct bhi_push_value *value, bh_dtype dtype) {
    const char given = bhi_dtype_name(value->dtype)[0], wanted = bhi_dtype_name(dtype)[0];
    const uint32_t size = bhi_dtype_size(dtype);
    uint64_t bits;
    struct bhi_complaint unused;
    return (given == 'i' || given == 'u') && (wanted == 'i' || wanted == 'u') &&
           bhi_dtype_size(value->dtype) == size &&
           (!bhi_dtype_parse(value->dtype, value->text, &bits, &unused) /* reported later */ ||
            !(bits >> (size * 8 - 1)));
}

struct order {
    const struct bhi_kernel_types *types;
    const char *option;
};

static const char *name_of(const struct bhi_kernel_member *member, char out[80]) {
    if (member->name[0]) {
        snprintf(out, 80, "'%s'", member->name);
    } else {
        snprintf(out, 80, "the push constant at byte %u", member->offset);
    }
    return out;
}

static bool take(void *user, struct bhi_push_value *value, struct bhi_complaint *complaint) {
    const struct order *order = user;
    struct found found;
    char name[80];
    if (!value->typed) {
        uint64_t bits;
        struct bhi_complaint inner;
        if (!find_next(order->types, value->used, &found)) {
            return true;
        }
        value->dtype = found.dtype;
        return bhi_dtype_parse(found.dtype, value->text, &bits, &inner) ||
               bhi_refuse(complaint, "%s is %s: %.600s", name_of(found.member, name),
                          found.member->type, inner.text);
    }
    const uint32_t size = bhi_push_size(value->dtype);
    if (!find_number(order->types, (value->used + size - 1) / size * size, &found) ||
        found.dtype == value->dtype || is_same_integer(value, found.dtype)) {
        return true;
    }
    if (value->dtype == BH_DTYPE_BOOL &&
        (found.dtype == BH_DTYPE_U32 || found.dtype == BH_DTYPE_I32)) {
        return true; /* a bool in the source */
    }
    return bhi_refuse(complaint,
                      "%s is %s, but the value is %s:%.100s; %s takes its bytes as they are",
                      name_of(found.member, name), found.member->type, bhi_dtype_name(value->dtype),
                      value->text, order->option);
}

/* -- all of a request ---------------------------------------------------------------------------
 */

bool bhi_run_match_order(struct bhi_run_request *request, const struct bhi_kernel_types *types,
                         const char *dashes, const char *option, struct bhi_complaint *complaint) {
    char members[BHI_NAMED_LIST] = "";
    struct order order = {.types = types, .option = option};
    struct bhi_complaint inner;
    struct bhi_push push;
    if (request->push_order) {
        if (!bhi_parse_push_as(request->push_order, take, &order, &push, &inner)) {
            return bhi_refuse(complaint, "%spush %.200s: %.700s", dashes, request->push_order,
                              inner.text);
        }
        request->push = push;
        return true;
    }
    if (request->push_text_count > 0 || types->member_count == 0) {
        return true;
    }
    bhi_kernel_types_list_members(types, members);
    return bhi_refuse(complaint, "%spush is missing: the kernel has %u bytes of push constants, %s",
                      dashes, (types->push_size + 3) / 4 * 4, members);
}

#include "request/types.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bhi_kernel_types *bhi_kernel_types_take(const bh_inspection *inspection) {
    struct bhi_kernel_types *types =
        calloc(1, sizeof *types + inspection->binding_count * sizeof types->types[0]);
    for (uint32_t i = 0; types && i < inspection->binding_count; i++) {
        const bh_inspected_binding *from = &inspection->bindings[i];
        struct bhi_kernel_type *to = &types->types[types->count++];
        to->slot = (struct bhi_slot){from->set, from->binding, 0};
        to->count = from->count;
        to->kind = from->kind;
        to->access = from->access;
        to->measured = from->measured;
        memcpy(to->type, from->type, sizeof to->type);
        memcpy(to->name, from->name, sizeof to->name);
    }
    if (types) {
        types->push_size = inspection->push_size;
        memcpy(types->local_size, inspection->local_size, sizeof types->local_size);
    }
    for (uint32_t i = 0; types && i < inspection->member_count && i < BHI_MAX_MEMBERS; i++) {
        const bh_inspected_member *from = &inspection->members[i];
        struct bhi_kernel_member *to = &types->members[types->member_count++];
        to->offset = from->offset;
        to->stride = from->stride;
        to->step = from->step;
        memcpy(to->type, from->type, sizeof to->type);
        memcpy(to->name, from->name, sizeof to->name);
    }
    return types;
}

/* -- their names --------------------------------------------------------------------------------
 */

void bhi_list_named(char out[BHI_NAMED_LIST], const char *name, const char *more) {
    static const char cut[] = ", ...";
    const size_t used = strlen(out), room = BHI_NAMED_LIST - sizeof cut;
    const size_t needed = strlen(name) + strlen(more) + sizeof ", '' ()";
    if (used >= room) {
        return; /* the list was cut already */
    }
    if (used + needed >= room) {
        snprintf(out + used, BHI_NAMED_LIST - used, "%s%*s", cut, (int)(room - used), "");
    } else {
        snprintf(out + used, BHI_NAMED_LIST - used, *name ? "%s'%s' (%s)" : "%s%s%s",
                 used ? ", " : "", name, more);
    }
}

void bhi_kernel_types_list_members(const struct bhi_kernel_types *types, char out[BHI_NAMED_LIST]) {
    *out = 0;
    for (uint32_t i = 0; i < types->member_count; i++) {
        bhi_list_named(out, types->members[i].name, types->members[i].type);
    }
}

/* -- one type -----------------------------------------------------------------------------------
 */

/* A scalar in the text of a type. */
struct scalar {
    const char *text;
    size_t length;
};

/* Takes the next scalar of the declaration at *cursor. Returns false if there is none. */
static bool take_scalar(const char **cursor, const char *end, struct scalar *out) {
    const char *at = *cursor;
    while (at < end && !isalpha((unsigned char)*at)) {
        at += *at == '[' ? strcspn(at, "]") : 1;
    }
    out->text = at;
    while (at < end && isalpha((unsigned char)*at) && *at != 'x') {
        at++;
    }
    while (at < end && isdigit((unsigned char)*at)) {
        at++;
    }
    out->length = (size_t)(at - out->text);
    while (at < end && (*at == 'x' || isdigit((unsigned char)*at))) { /* a vector's size */
        at++;
    }
    *cursor = at;
    return out->length > 0;
}

static bool is_scalar(const struct scalar *scalar, const char *name) {
    return strlen(name) == scalar->length && !memcmp(scalar->text, name, scalar->length);
}

static bool scalar_takes(const struct scalar *scalar, bh_dtype dtype) {
    switch (dtype) {
    case BH_DTYPE_NONE:
        return true;
    case BH_DTYPE_BOOL:
    case BH_DTYPE_F8_E4M3:
    case BH_DTYPE_F8_E5M2:
    case BH_DTYPE_F8_E8M0:
        return is_scalar(scalar, "u8") || is_scalar(scalar, "i8");
    case BH_DTYPE_BF16:
        return is_scalar(scalar, "u16") || is_scalar(scalar, "i16");
    default:
        return is_scalar(scalar, bhi_dtype_any_name(dtype));
    }
}

static bool declaration_takes(const char *text, const char *end, bh_dtype dtype) {
    struct scalar first, other;
    if (!take_scalar(&text, end, &first)) {
        return true;
    }
    while (take_scalar(&text, end, &other)) {
        if (other.length != first.length || memcmp(other.text, first.text, first.length) != 0) {
            return true; /* a struct with several scalars */
        }
    }
    return scalar_takes(&first, dtype);
}

/* Returns true if a part of the type is unknown, which "?" means. "[?]" is only an unknown
 * length. */
static bool is_unknown(const char *type) {
    for (const char *at = type; (at = strchr(at, '?')); at++) {
        if (at == type || at[-1] != '[') {
            return true;
        }
    }
    return !*type || strstr(type, "...");
}

bool bhi_type_takes(const char *type, bh_dtype dtype) {
    static const char between[] = " | ";
    if (is_unknown(type)) {
        return true;
    }
    for (;;) {
        const char *next = strstr(type, between);
        if (declaration_takes(type, next ? next : type + strlen(type), dtype)) {
            return true;
        }
        if (!next) {
            return false;
        }
        type = next + strlen(between);
    }
}

/* Of one declaration. A vector of three may take 12 bytes or 16. */
static uint32_t element_of(const char *text, const char *end) {
    const char *at = text;
    struct scalar scalar;
    bh_dtype dtype;
    uint32_t columns = 1;
    if (text == end || !isalpha((unsigned char)*text) || !take_scalar(&at, end, &scalar) ||
        !bhi_dtype_find(scalar.text, scalar.length, &dtype)) {
        return 0;
    }
    for (at = scalar.text + scalar.length; at < end && *at == 'x'; at += 2) {
        columns *= at[1] == '3' ? 1 : (uint32_t)(at[1] - '0');
    }
    return columns * bhi_dtype_size(dtype);
}

uint32_t bhi_type_element(const char *type) {
    static const char between[] = " | ";
    uint32_t least = UINT32_MAX;
    bool more = !is_unknown(type);
    while (more) {
        const char *next = strstr(type, between);
        const uint32_t one = element_of(type, next ? next : type + strlen(type));
        least = one < least ? one : least;
        more = next;
        type = next ? next + strlen(between) : type;
    }
    return least == UINT32_MAX ? 0 : least;
}

/* -- all of a request ---------------------------------------------------------------------------
 */

/* Returns the dtype of an input's file, or of the file that an output will write. */
static bh_dtype dtype_of(const struct bhi_run_binding *binding) {
    if (binding->tensor) {
        return binding->tensor_dtype;
    }
    return binding->array.dtype;
}

static void refuse_type(const struct bhi_run_binding *given, const struct bhi_kernel_type *wanted,
                        struct bhi_slot slot, const char *option, struct bhi_complaint *complaint) {
    const char *name = bhi_dtype_any_name(dtype_of(given));
    bhi_refuse(
        complaint,
        "%s is %s, the kernel declares %s at binding %s%s%s%s: %s, or bind the bytes as they are "
        "with %s",
        given->in_path ? "the array" : "the output", name ? name : "bytes", wanted->type,
        bhi_slot_describe(slot, wanted->count > 1).text, *wanted->name ? " ('" : "", wanted->name,
        *wanted->name ? "')" : "",
        given->in_path ? "convert the array" : "declare it with that type", option);
}

const struct bhi_run_binding *bhi_run_find_mismatch(const struct bhi_run_request *request,
                                                    const struct bhi_kernel_types *types,
                                                    const char *option,
                                                    struct bhi_complaint *complaint) {
    for (uint32_t i = 0; i < types->count; i++) {
        const struct bhi_kernel_type *wanted = &types->types[i];
        struct bhi_slot slot = wanted->slot;
        for (; slot.element < wanted->count; slot.element++) {
            const struct bhi_run_binding *given = bhi_run_request_find(request, slot);
            if (!given || bhi_type_takes(wanted->type, dtype_of(given))) {
                continue;
            }
            refuse_type(given, wanted, slot, option, complaint);
            return given;
        }
    }
    return NULL;
}

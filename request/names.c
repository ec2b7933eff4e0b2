#include "request/names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "request/missing.h"
#include "request/push.h"
#include "tool/nearest.h"

/* -- parsing ------------------------------------------------------------------------------------
 */

/* One item of "a=2,n=u32:5,v=1,2,3". */
struct push_item {
    char name[64]; /* empty: a further value of the previous item */
    char type[16]; /* empty: not given */
    char value[128];
};

/* Takes the item at *cursor, and moves to the next item or to the end. */
static bool take_item(const char **cursor, const char *text, struct push_item *out,
                      struct bhi_complaint *complaint) {
    const char *at = *cursor;
    const size_t length = strcspn(at, ","), name = strcspn(at, "=,");
    const bool named = at[name] == '=';
    const char *value = named ? at + name + 1 : at;
    size_t rest = length - (size_t)(value - at);
    const char *colon = memchr(value, ':', rest);
    const size_t type = colon ? (size_t)(colon - value) : 0;
    *cursor = at + length + (at[length] == ',' && at[length + 1]);
    rest -= colon ? type + 1 : 0;
    if ((named && name == 0) || (colon && type == 0) || rest == 0 ||
        (at[length] == ',' && !at[length + 1])) {
        return bhi_refuse(complaint, "'%.100s' is not NAME=VALUE,...", text);
    }
    if (name >= sizeof out->name || type >= sizeof out->type || rest >= sizeof out->value) {
        return bhi_refuse(complaint, "'%.*s' is too long", length > 60 ? 60 : (int)length, at);
    }
    snprintf(out->name, sizeof out->name, "%.*s", named ? (int)name : 0, at);
    snprintf(out->type, sizeof out->type, "%.*s", (int)type, value);
    snprintf(out->value, sizeof out->value, "%.*s", (int)rest, colon ? colon + 1 : value);
    return true;
}

bool bhi_run_parse_push_names(struct bhi_run_request *request, const char *text,
                              struct bhi_complaint *complaint) {
    struct push_item item;
    for (const char *cursor = text; cursor == text || *cursor;) {
        const bool first = cursor == text;
        if (!take_item(&cursor, text, &item, complaint)) {
            return false;
        }
        if (first && !item.name[0]) {
            return bhi_refuse(complaint, "the first value has no name; others have");
        }
    }
    if (request->push_text_count == BHI_MAX_PUSH_TEXTS) {
        return bhi_refuse(complaint, "more than %d", BHI_MAX_PUSH_TEXTS);
    }
    request->push_texts[request->push_text_count++] = text;
    return true;
}

bool bhi_run_has_names(const struct bhi_run_request *request) {
    bool has = request->push_text_count > 0;
    for (uint32_t i = 0; i < request->binding_count; i++) {
        has |= request->bindings[i].name[0] != 0;
    }
    return has;
}

/* -- bindings -----------------------------------------------------------------------------------
 */

/* A name that differs only in case is the best suggestion, also if it is short. */
static void try_name(struct bhi_nearest *nearest, const char *candidate) {
    if (!strcasecmp(nearest->word, candidate)) {
        nearest->best = candidate;
        nearest->distance = 0;
    }
    bhi_nearest_try(nearest, candidate);
}

/* For a message about an unknown name: the names that exist. */
struct names {
    char there[BHI_NAMED_LIST];
    struct bhi_nearest nearest;
    bool named; /* at least one has a name */
};

static void offer(struct names *names, const char *name, const char *more) {
    bhi_list_named(names->there, name, more);
    try_name(&names->nearest, name);
    names->named |= *name != 0;
}

/* Refuses an unknown name. |none| is the message if the kernel has nothing of this kind, |what| is
 * the kind; |stripped| is for a module without names: what has none, and what to write instead. */
static bool refuse_name(const struct names *names, const char *none, const char *what,
                        const char *stripped, struct bhi_complaint *complaint) {
    char hint[160];
    if (!*names->there) {
        return bhi_refuse(complaint, "%s", none);
    }
    if (!names->named) {
        return bhi_refuse(complaint, "the kernel's module has no names %s %s", stripped,
                          names->there);
    }
    return bhi_refuse(complaint, "the kernel has no %s '%s'; it has %s%s", what,
                      names->nearest.word, names->there,
                      bhi_nearest_hint(&names->nearest, "", hint));
}

static bool refuse_binding(const char *name, const struct bhi_kernel_types *types,
                           struct bhi_complaint *complaint) {
    struct names names = {.nearest = {.word = name}};
    for (uint32_t i = 0; i < types->count; i++) {
        offer(&names, types->types[i].name, bhi_slot_describe(types->types[i].slot, false).text);
    }
    return refuse_name(&names, "the kernel has no bindings", "binding",
                       "(they were stripped from it): write the number of the binding; it has",
                       complaint);
}

static bool find_slot(struct bhi_run_binding *binding, const struct bhi_kernel_types *types,
                      struct bhi_complaint *complaint) {
    const struct bhi_kernel_type *found = NULL;
    for (uint32_t i = 0; i < types->count; i++) {
        const struct bhi_kernel_type *one = &types->types[i];
        if (strcmp(one->name, binding->name) != 0) {
            continue;
        }
        if (found) {
            return bhi_refuse(complaint,
                              "'%s' is ambiguous: %s and %s are both called that; write the number",
                              binding->name, bhi_slot_describe(found->slot, false).text,
                              bhi_slot_describe(one->slot, false).text);
        }
        found = one;
    }
    if (!found) {
        return refuse_binding(binding->name, types, complaint);
    }
    if (binding->slot.element >= found->count) {
        return bhi_refuse(complaint, "'%s' has %u buffer%s: [%u] does not exist", binding->name,
                          found->count, found->count == 1 ? "" : "s", binding->slot.element);
    }
    binding->slot.set = found->slot.set;
    binding->slot.binding = found->slot.binding;
    return true;
}

static bool check_once(const struct bhi_run_request *request, uint32_t index,
                       struct bhi_complaint *complaint) {
    const struct bhi_run_binding *binding = &request->bindings[index];
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *other = &request->bindings[i];
        if (i != index && bhi_slot_is(other->slot, binding->slot)) {
            return bhi_refuse(complaint, "binding %s is given twice: as %.200s, too",
                              bhi_slot_describe(binding->slot, false).text, other->text);
        }
    }
    return true;
}

/* -- push constants -----------------------------------------------------------------------------
 */

static bool refuse_member(const char *name, const struct bhi_kernel_types *types,
                          struct bhi_complaint *complaint) {
    struct names names = {.nearest = {.word = name}};
    for (uint32_t i = 0; i < types->member_count; i++) {
        offer(&names, types->members[i].name, types->members[i].type);
    }
    return refuse_name(&names, "the kernel has no push constants", "push constant",
                       "for its push constants (they were stripped from it): give the values in "
                       "order; they are",
                       complaint);
}

static bool find_member(const char *name, const struct bhi_kernel_types *types, uint32_t *out_index,
                        struct bhi_complaint *complaint) {
    *out_index = UINT32_MAX;
    for (uint32_t i = 0; i < types->member_count; i++) {
        if (strcmp(types->members[i].name, name) != 0) {
            continue;
        }
        if (*out_index != UINT32_MAX) {
            return bhi_refuse(complaint,
                              "'%s' is ambiguous: two push constants are called that; give the "
                              "values in order",
                              name);
        }
        *out_index = i;
    }
    return *out_index != UINT32_MAX || refuse_member(name, types, complaint);
}

/* A source's bool is a 32-bit word in the module. */
static bool is_bool_value(const struct push_item *item) {
    return !strcmp(item->type, "bool") ||
           (!item->type[0] && (!strcmp(item->value, "true") || !strcmp(item->value, "false")));
}

/* The state while push constants are filled in. */
struct filling {
    const struct bhi_kernel_types *types;
    struct bhi_push *push;
    uint8_t given[BHI_MAX_PUSH];            /* by byte: a number that begins there was given */
    const struct bhi_kernel_member *member; /* the member that the next value is for */
    struct bhi_push_shape shape;            /* that member's shape */
    uint32_t first, end, next; /* of that member's numbers: the named range, and the next one */
};

/* Finds the member that "NAME" or "NAME[ELEMENT]" names. */
static bool begin_member(struct filling *filling, const char *name,
                         struct bhi_complaint *complaint) {
    const size_t length = strlen(name);
    const char *bracket = strrchr(name, '[');
    uint32_t index, element = 0;
    bool whole = true;
    for (uint32_t i = 0; i < filling->types->member_count; i++) {
        whole &= strcmp(filling->types->members[i].name, name) != 0;
    }
    if (whole && bracket && bracket > name && name[length - 1] == ']' &&
        bhi_parse_element(bracket, length - (size_t)(bracket - name), &element)) {
        char array[64];
        snprintf(array, sizeof array, "%.*s", (int)(bracket - name), name);
        if (!find_member(array, filling->types, &index, complaint)) {
            return false;
        }
        whole = false;
    } else {
        if (!find_member(name, filling->types, &index, complaint)) {
            return false;
        }
        whole = true;
    }
    filling->member = &filling->types->members[index];
    if (!bhi_push_shape(filling->member, &filling->shape)) {
        return bhi_refuse(complaint,
                          "'%s' is %s, which cannot be set by name: give all values in order",
                          filling->member->name, filling->member->type);
    }
    const struct bhi_push_shape *shape = &filling->shape;
    if (!whole && shape->count == 1) {
        return bhi_refuse(complaint, "'%s' is a single %s: [%u] does not exist",
                          filling->member->name, filling->member->type, element);
    }
    if (!whole && element >= shape->count) {
        return bhi_refuse(complaint, "'%s' is %s: [%u] does not exist", filling->member->name,
                          filling->member->type, element);
    }
    filling->first = filling->next = whole ? 0 : element * shape->width;
    filling->end = whole ? shape->count * shape->width : filling->first + shape->width;
    for (uint32_t i = filling->first; i < filling->end; i++) {
        if (filling->given[bhi_push_place(filling->member, i / shape->width, i % shape->width)]) {
            return bhi_refuse(complaint, "'%s' is given twice", name);
        }
    }
    return true;
}

static bool put(struct filling *filling, const struct push_item *item,
                struct bhi_complaint *complaint) {
    const struct bhi_kernel_member *member = filling->member;
    const struct bhi_push_shape *shape = &filling->shape;
    const bh_dtype dtype = shape->dtype;
    const uint32_t most = filling->end - filling->first;
    bh_dtype named;
    uint64_t bits;
    if (filling->next == filling->end) {
        return shape->count * shape->width == 1
                   ? bhi_refuse(complaint, "'%s' is a single %s, but several values are given",
                                member->name, member->type)
                   : bhi_refuse(complaint, "'%s' is %s, and %s more than %u value%s", member->name,
                                member->type,
                                most < shape->count * shape->width ? "one of it is given"
                                                                   : "is given",
                                most, most == 1 ? "" : "s");
    }
    const bool is_bool = dtype == BH_DTYPE_U32 && is_bool_value(item);
    if (item->type[0] && !is_bool &&
        (!bhi_dtype_find(item->type, strlen(item->type), &named) || named != dtype)) {
        return bhi_refuse(complaint, "'%s' is %s, not %s", member->name, member->type, item->type);
    }
    if (!bhi_dtype_parse(is_bool ? BH_DTYPE_BOOL : dtype, item->value, &bits, complaint)) {
        const struct bhi_complaint inner = *complaint;
        if (dtype == BH_DTYPE_U32 && isalpha((unsigned char)item->value[0])) {
            return bhi_refuse(complaint, "'%s' is %s: '%s' is neither a number nor true or false",
                              member->name, member->type, item->value);
        }
        return bhi_refuse(complaint, "'%s' is %s: %.600s", member->name, member->type, inner.text);
    }
    const uint32_t at =
        bhi_push_place(member, filling->next / shape->width, filling->next % shape->width);
    memcpy(filling->push->bytes + at, &bits, bhi_dtype_size(dtype)); /* little endian */
    filling->given[at] = 1;
    filling->next++;
    return true;
}

static bool put_all(struct filling *filling, const char *text, struct bhi_complaint *complaint) {
    struct push_item item;
    for (const char *cursor = text; cursor == text || *cursor;) {
        if (!take_item(&cursor, text, &item, complaint)) {
            return false;
        }
        if ((item.name[0] && !begin_member(filling, item.name, complaint)) ||
            !put(filling, &item, complaint)) {
            return false;
        }
    }
    return true;
}

/* Returns how many numbers of |member| are given, and sets *out_all to how many it has. */
static uint32_t count_given(const struct filling *filling, const struct bhi_kernel_member *member,
                            uint32_t *out_all) {
    struct bhi_push_shape shape;
    uint32_t given = 0;
    const bool known = bhi_push_shape(member, &shape);
    *out_all = known ? shape.count * shape.width : 1;
    for (uint32_t k = 0; known && k < *out_all; k++) {
        given += filling->given[bhi_push_place(member, k / shape.width, k % shape.width)];
    }
    return given;
}

/* Every number must be given. A missing one was probably forgotten: zero is a value like any
 * other. */
static bool check_all(const struct filling *filling, struct bhi_complaint *complaint) {
    char missing[BHI_NAMED_LIST] = "";
    uint32_t all, count = 0;
    for (uint32_t i = 0; i < filling->types->member_count; i++) {
        const struct bhi_kernel_member *member = &filling->types->members[i];
        if (count_given(filling, member, &all) == 0) {
            bhi_list_named(missing, member->name, member->type);
            count++;
        }
    }
    if (count) {
        return bhi_refuse(complaint, "%s %s missing", missing, count == 1 ? "is" : "are");
    }
    for (uint32_t i = 0; i < filling->types->member_count; i++) {
        const struct bhi_kernel_member *member = &filling->types->members[i];
        const uint32_t given = count_given(filling, member, &all);
        if (given < all) {
            return bhi_refuse(complaint, "'%s' is %s: %u value%s given, it has %u", member->name,
                              member->type, given, given == 1 ? "" : "s", all);
        }
    }
    return true;
}

static bool fill_push(struct bhi_run_request *request, const struct bhi_kernel_types *types,
                      const char *dashes, struct bhi_complaint *complaint) {
    struct filling filling = {.types = types, .push = &request->push};
    struct bhi_complaint inner;
    memset(&request->push, 0, sizeof request->push);
    if (types->member_count == BHI_MAX_MEMBERS) { /* others may be unlisted, and would be 0 */
        return bhi_refuse(complaint,
                          "%spush: a kernel with %d push constants or more cannot be given them by "
                          "name: give all values in order",
                          dashes, BHI_MAX_MEMBERS);
    }
    for (uint32_t i = 0; i < request->push_text_count; i++) {
        if (!put_all(&filling, request->push_texts[i], &inner)) {
            return bhi_refuse(complaint, "%spush %.200s: %.700s", dashes, request->push_texts[i],
                              inner.text);
        }
    }
    if (!check_all(&filling, &inner)) {
        return bhi_refuse(complaint, "%spush: %.800s", dashes, inner.text);
    }
    if (types->push_size > sizeof request->push.bytes) {
        return bhi_refuse(complaint, "%spush: more than %d bytes", dashes, BHI_MAX_PUSH);
    }
    request->push.size = (types->push_size + 3) / 4 * 4;
    return true;
}

/* -- all of a request ---------------------------------------------------------------------------
 */

bool bhi_run_resolve_names(struct bhi_run_request *request, const struct bhi_kernel_types *types,
                           const char *dashes, struct bhi_complaint *complaint) {
    for (uint32_t i = 0; i < request->binding_count; i++) {
        struct bhi_run_binding *binding = &request->bindings[i];
        struct bhi_complaint inner;
        if (binding->name[0] &&
            (!find_slot(binding, types, &inner) || !check_once(request, i, &inner))) {
            return bhi_refuse(complaint, "%s%s %.200s: %.700s", dashes, binding->option,
                              binding->text, inner.text);
        }
    }
    return bhi_run_check_missing(request, types, dashes, complaint) &&
           (request->push_text_count == 0 || fill_push(request, types, dashes, complaint));
}

#include "request/missing.h"
#include "base/format.h"

#include <stdio.h>
#include <string.h>

const char *bhi_kernel_type_describe(const struct bhi_kernel_type *type, int64_t element,
                                     char out[BHI_DECLARED]) {
    char name[80] = "", number[32] = "", index[32] = "";
    if (type->name[0]) {
        bhi_format(name, sizeof name, "'%.63s', ", type->name);
    }
    if (type->count > 1 && element == BHI_WHOLE_BINDING) {
        strcpy(index, "[]");
        snprintf(number, sizeof number, "%u ", type->count);
    } else if (type->count > 1) {
        snprintf(index, sizeof index, "[%u]", (uint32_t)element);
    }
    bhi_format(out, BHI_DECLARED, "%u.%u%s (%s%s%s buffer%s, %s)", type->slot.set,
               type->slot.binding, index, name, number,
               type->kind == BH_BINDING_UNIFORM_BUFFER ? "uniform" : "storage", *number ? "s" : "",
               type->access == BH_ACCESS_READ    ? "read"
               : type->access == BH_ACCESS_WRITE ? "written"
                                                 : "read and written");
    return out;
}

const struct bhi_kernel_type *bhi_kernel_types_find(const struct bhi_kernel_types *types,
                                                    struct bhi_slot slot) {
    for (uint32_t i = 0; i < types->count; i++) {
        const struct bhi_kernel_type *type = &types->types[i];
        if (type->slot.set == slot.set && type->slot.binding == slot.binding &&
            slot.element < type->count) {
            return type;
        }
    }
    return NULL;
}

/* The first binding that is given and that the kernel does not have; NULL: none. */
static const struct bhi_run_binding *find_unknown(const struct bhi_run_request *request,
                                                  const struct bhi_kernel_types *types) {
    for (uint32_t i = 0; i < request->binding_count; i++) {
        if (!bhi_kernel_types_find(types, request->bindings[i].slot)) {
            return &request->bindings[i];
        }
    }
    return NULL;
}

/* Appends the missing elements of |type| to the list, as many as fit; the number of all is added to
 * |count|. */
static void list_missing(const struct bhi_run_request *request, const struct bhi_kernel_type *type,
                         char *list, size_t capacity, uint64_t *count, uint64_t *listed) {
    struct bhi_slot slot = type->slot;
    char described[BHI_DECLARED];
    for (slot.element = 0; slot.element < type->count; slot.element++) {
        if (bhi_run_request_find(request, slot)) {
            continue;
        }
        const size_t used = strlen(list);
        bhi_kernel_type_describe(type, slot.element, described);
        if (*listed == *count && used + strlen(described) + sizeof ", " < capacity) {
            bhi_format(list + used, capacity - used, "%s%s", used ? ", " : "", described);
            ++*listed;
        }
        ++*count;
    }
}

bool bhi_run_check_missing(const struct bhi_run_request *request,
                           const struct bhi_kernel_types *types, const char *dashes,
                           struct bhi_complaint *complaint) {
    char list[480] = "", more[32] = "", push[100] = "", unknown[100] = "";
    uint64_t count = 0, listed = 0;
    for (uint32_t i = 0; i < types->count; i++) {
        list_missing(request, &types->types[i], list, sizeof list, &count, &listed);
    }
    if (!count) {
        return true;
    }
    if (listed < count) {
        snprintf(more, sizeof more, " and %llu more", (unsigned long long)(count - listed));
    }
    if (types->push_size && !request->push.size && !request->push_text_count) {
        bhi_format(push, sizeof push, "; %spush is missing, too: %u bytes", dashes,
                   (types->push_size + 3) / 4 * 4);
    }
    const struct bhi_run_binding *other = find_unknown(request, types);
    if (other) {
        bhi_format(unknown, sizeof unknown, "; %s is no binding of this kernel",
                   bhi_slot_describe(other->slot, false).text);
    }
    return bhi_refuse(complaint, "the kernel binds %s%s, which %s missing: give %s %s%s%s", list,
                      more, count == 1 ? "is" : "are", count == 1 ? "it" : "them",
                      request->sources ? request->sources
                      : *dashes        ? "with --in, --out or --inout"
                                       : "in \"in\", \"out\" or \"inout\"",
                      push, unknown);
}

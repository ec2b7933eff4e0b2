#include "cli/run/match.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request/missing.h"

/* Returns the bindings of the compiled kernel in the form of an inspection; NULL: out of memory. */
static struct bhi_kernel_types *types_of(const bh_kernel_info *info) {
    struct bhi_kernel_types *types =
        calloc(1, sizeof *types + info->binding_count * sizeof types->types[0]);
    for (uint32_t i = 0; types && i < info->binding_count; i++) {
        const bh_kernel_binding *from = &info->bindings[i];
        struct bhi_kernel_type *to = &types->types[types->count++];
        to->slot = (struct bhi_slot){from->set, from->binding, 0};
        to->count = from->count;
        to->kind = from->kind;
        to->access = from->access;
        snprintf(to->name, sizeof to->name, "%s", from->name);
    }
    if (types) {
        types->push_size = info->push_size;
    }
    return types;
}

static bool refuse_unknown(const struct bhi_run_binding *given,
                           const struct bhi_kernel_types *types, struct bhi_complaint *complaint) {
    char list[512] = "", one[BHI_DECLARED];
    if (types->count == 0) {
        return bhi_refuse(complaint, "--%s %s: the kernel has no bindings", given->option,
                          given->text);
    }
    for (uint32_t i = 0; i < types->count; i++) {
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                 bhi_kernel_type_describe(&types->types[i], BHI_WHOLE_BINDING, one));
    }
    return bhi_refuse(complaint, "--%s %.200s: the kernel has no binding %s; it has %s",
                      given->option, given->text, bhi_slot_describe(given->slot, false).text, list);
}

static bool match_push(const struct bhi_run_request *request, const bh_kernel_info *info,
                       struct bhi_complaint *complaint) {
    uint32_t wanted = (info->push_size + 3) / 4 * 4; /* rounded up as --push does */
    if (request->push.size == wanted) {
        return true;
    }
    if (wanted == 0) {
        return bhi_refuse(complaint, "--push: the kernel has no push constants");
    }
    if (request->push.size == 0) {
        return bhi_refuse(complaint, "--push is missing: the kernel has %u bytes of push constants",
                          wanted);
    }
    return bhi_refuse(complaint,
                      "--push: %u bytes given, the kernel has %u bytes of push constants",
                      request->push.size, wanted);
}

static bool match_access(const struct bhi_run_request *request,
                         const struct bhi_kernel_types *types, struct bhi_complaint *complaint) {
    char described[BHI_DECLARED];
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *given = &request->bindings[i];
        const struct bhi_kernel_type *wanted = bhi_kernel_types_find(types, given->slot);
        if (!wanted) {
            return refuse_unknown(given, types, complaint);
        }
        bhi_kernel_type_describe(wanted, given->slot.element, described);
        if ((given->access & BH_ACCESS_WRITE) && wanted->access == BH_ACCESS_READ) {
            return bhi_refuse(complaint, "--%s %s: the kernel does not write %s; use --in",
                              given->option, given->text, described);
        }
        if (given->access == BH_ACCESS_READ && wanted->access == BH_ACCESS_WRITE) {
            return bhi_refuse(complaint, "--%s %s: the kernel does not read %s; use --out",
                              given->option, given->text, described);
        }
    }
    return true;
}

bool bhi_run_match(const struct bhi_run_request *request, const bh_kernel_info *info,
                   struct bhi_complaint *complaint) {
    struct bhi_kernel_types *types = types_of(info);
    const bool matches = types ? bhi_run_check_missing(request, types, "--", complaint) &&
                                     match_access(request, types, complaint) &&
                                     match_push(request, info, complaint)
                               : bhi_refuse(complaint, "out of memory");
    free(types);
    return matches;
}

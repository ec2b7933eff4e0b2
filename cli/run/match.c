#include "cli/run/match.h"

#include <string.h>

enum { WHOLE = -1 }; /* in place of an element: the whole binding */

/* Writes "0.1 ('y', storage buffer, read and written)"; for an element of an array "0.1[2] (…",
 * for the whole array "0.1[] ('y', 3 storage buffers, …". */
static void describe(const bh_kernel_binding *binding, int64_t element, char *out,
                     size_t capacity) {
    char name[80] = "", number[32] = "", index[32] = "";
    if (binding->name[0]) {
        snprintf(name, sizeof name, "'%.63s', ", binding->name);
    }
    if (binding->count > 1 && element == WHOLE) {
        strcpy(index, "[]");
        snprintf(number, sizeof number, "%u ", binding->count);
    } else if (binding->count > 1) {
        snprintf(index, sizeof index, "[%u]", (uint32_t)element);
    }
    snprintf(out, capacity, "%u.%u%s (%s%s%s buffer%s, %s)", binding->set, binding->binding, index,
             name, number, binding->kind == BH_BINDING_UNIFORM_BUFFER ? "uniform" : "storage",
             *number ? "s" : "",
             binding->access == BH_ACCESS_READ    ? "read"
             : binding->access == BH_ACCESS_WRITE ? "written"
                                                  : "read and written");
}

static const bh_kernel_binding *find(const bh_kernel_info *info, struct bhi_slot slot) {
    for (uint32_t i = 0; i < info->binding_count; i++) {
        if (info->bindings[i].set == slot.set && info->bindings[i].binding == slot.binding &&
            slot.element < info->bindings[i].count) {
            return &info->bindings[i];
        }
    }
    return NULL;
}

/* The first that is given and that the kernel does not have; NULL: none. */
static const struct bhi_run_binding *find_unknown(const struct bhi_run_request *request,
                                                  const bh_kernel_info *info) {
    for (uint32_t i = 0; i < request->binding_count; i++) {
        if (!find(info, request->bindings[i].slot)) {
            return &request->bindings[i];
        }
    }
    return NULL;
}

static bool refuse_unknown(const struct bhi_run_binding *given, const bh_kernel_info *info,
                           struct bhi_complaint *complaint) {
    char list[512] = "";
    if (info->binding_count == 0) {
        return bhi_refuse(complaint, "--%s %s: the kernel has no bindings", given->option,
                          given->text);
    }
    for (uint32_t i = 0; i < info->binding_count; i++) {
        char one[160];
        size_t used = strlen(list);
        describe(&info->bindings[i], WHOLE, one, sizeof one);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", one);
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

bool bhi_run_match(const struct bhi_run_request *request, const bh_kernel_info *info,
                   struct bhi_complaint *complaint) {
    char described[160];
    for (uint32_t i = 0; i < info->binding_count; i++) {
        struct bhi_slot slot = {info->bindings[i].set, info->bindings[i].binding, 0};
        while (slot.element < info->bindings[i].count && bhi_run_request_find(request, slot)) {
            slot.element++;
        }
        if (slot.element >= info->bindings[i].count) {
            continue;
        }
        describe(&info->bindings[i], slot.element, described, sizeof described);
        const struct bhi_run_binding *unknown = find_unknown(request, info);
        return bhi_refuse(
            complaint,
            "the kernel binds %s, which is missing: give it with --in, --out or --inout%s%s%s",
            described, unknown ? "; " : "",
            unknown ? bhi_slot_describe(unknown->slot, false).text : "",
            unknown ? " is no binding of this kernel" : "");
    }
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *given = &request->bindings[i];
        const bh_kernel_binding *wanted = find(info, given->slot);
        if (!wanted) {
            return refuse_unknown(given, info, complaint);
        }
        describe(wanted, given->slot.element, described, sizeof described);
        if ((given->access & BH_ACCESS_WRITE) && wanted->access == BH_ACCESS_READ) {
            return bhi_refuse(complaint, "--%s %s: the kernel does not write %s; use --in",
                              given->option, given->text, described);
        }
        if (given->access == BH_ACCESS_READ && wanted->access == BH_ACCESS_WRITE) {
            return bhi_refuse(complaint, "--%s %s: the kernel does not read %s; use --out",
                              given->option, given->text, described);
        }
    }
    return match_push(request, info, complaint);
}

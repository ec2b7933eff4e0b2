#include "run_match.h"

#include <string.h>

/* "0.1 ('y', storage buffer, read and written)" */
static void describe(const bh_kernel_binding *binding, char *out, size_t capacity) {
    char name[80] = "";
    if (binding->name[0])
        snprintf(name, sizeof name, "'%.63s', ", binding->name);
    snprintf(out, capacity, "%u.%u (%s%s, %s)", binding->set, binding->binding, name,
             binding->kind == BH_UNIFORM_BUFFER ? "uniform buffer" : "storage buffer",
             binding->access == BH_READ    ? "read"
             : binding->access == BH_WRITE ? "written"
                                           : "read and written");
}

static const bh_kernel_binding *find(const bh_kernel_info *info, struct bhi_slot slot) {
    for (uint32_t i = 0; i < info->binding_count; i++) {
        if (info->bindings[i].set == slot.set && info->bindings[i].binding == slot.binding)
            return &info->bindings[i];
    }
    return NULL;
}

static bool refuse_unknown(const struct bhi_run_binding *given, const bh_kernel_info *info,
                           struct bhi_complaint *complaint) {
    char list[512] = "";
    if (info->binding_count == 0)
        return bhi_refuse(complaint, "--%s %s: the kernel binds nothing", given->option,
                          given->text);
    for (uint32_t i = 0; i < info->binding_count; i++) {
        char one[160];
        size_t used = strlen(list);
        describe(&info->bindings[i], one, sizeof one);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", one);
    }
    return bhi_refuse(complaint, "--%s %.200s: the kernel has no binding %u.%u; it has %s",
                      given->option, given->text, given->slot.set, given->slot.binding, list);
}

static bool match_push(const struct bhi_run_request *request, const bh_kernel_info *info,
                       struct bhi_complaint *complaint) {
    uint32_t wanted = (info->push_size + 3) / 4 * 4; /* as --push pads */
    if (request->push.size == wanted)
        return true;
    if (wanted == 0)
        return bhi_refuse(complaint, "--push: the kernel has no push constants");
    if (request->push.size == 0)
        return bhi_refuse(complaint, "--push is missing: the kernel has %u bytes of push constants",
                          wanted);
    return bhi_refuse(complaint,
                      "--push: %u bytes given, the kernel has %u bytes of push constants",
                      request->push.size, wanted);
}

bool bhi_run_match(const struct bhi_run_request *request, const bh_kernel_info *info,
                   struct bhi_complaint *complaint) {
    char described[160];
    for (uint32_t i = 0; i < info->binding_count; i++) {
        struct bhi_slot slot = {info->bindings[i].set, info->bindings[i].binding};
        if (bhi_run_request_find(request, slot))
            continue;
        describe(&info->bindings[i], described, sizeof described);
        return bhi_refuse(complaint, "the kernel binds %s: give it with --in, --out or --inout",
                          described);
    }
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *given = &request->bindings[i];
        const bh_kernel_binding *wanted = find(info, given->slot);
        if (!wanted)
            return refuse_unknown(given, info, complaint);
        describe(wanted, described, sizeof described);
        if ((given->access & BH_WRITE) && wanted->access == BH_READ)
            return bhi_refuse(complaint, "--%s %s: the kernel does not write %s; use --in",
                              given->option, given->text, described);
        if (given->access == BH_READ && wanted->access == BH_WRITE)
            return bhi_refuse(complaint, "--%s %s: the kernel does not read %s; use --out",
                              given->option, given->text, described);
    }
    return match_push(request, info, complaint);
}

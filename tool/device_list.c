#include "tool/device_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/detail.h"
#include "base/format.h"
#include "tool/session.h"
#include "tool/task.h"

enum { CAPACITY = 64 };

bh_status bhi_device_list_fetch(bh_context *context, struct bhi_device_list *out_list,
                                bh_detail *detail) {
    *out_list = (struct bhi_device_list){0};
    bh_device_info *devices = calloc(CAPACITY, sizeof *devices);
    size_t count = 0;
    if (!devices) {
        return BH_NO_MEMORY;
    }
    devices->struct_size = sizeof *devices;
    bh_status status = bh_devices(context, devices, CAPACITY, &count, detail);
    if (status == BH_OK && count == 0) {
        status = BH_NO_DEVICE;
    }
    if (status != BH_OK) {
        free(devices);
        return status;
    }
    out_list->devices = devices;
    out_list->count = count < CAPACITY ? count : CAPACITY;
    return BH_OK;
}

struct question {
    bh_context *context;
    struct bhi_device_list *list;
    bh_status status;
    bh_detail detail;
};

static void ask(void *argument) {
    struct question *question = argument;
    question->status = bhi_device_list_fetch(question->context, question->list, &question->detail);
}

bh_status bhi_device_list_ask(const char *command, bh_context **context,
                              struct bhi_device_list *out_list, int *out_exit) {
    struct question question = {.context = *context, .list = out_list};
    *out_list = (struct bhi_device_list){0};
    if (!bhi_task_run(command, context, ask, &question, out_exit)) {
        bhi_device_list_free(out_list);
        return BH_CLOSED;
    }
    if (question.status != BH_OK) {
        *out_exit = bhi_session_fail(command, NULL, question.status, &question.detail);
    }
    return question.status;
}

void bhi_device_list_free(struct bhi_device_list *list) {
    free(list->devices);
    *list = (struct bhi_device_list){0};
}

bh_status bhi_device_list_find(const struct bhi_device_list *list, const char *part,
                               const bh_device_info **out_device, bh_detail *detail) {
    char found[400] = "", all[400] = "";
    size_t matches = 0;
    /* A number is an index. It is not looked for in names, which contain versions: "llvmpipe (LLVM
     * 19.1.7)". */
    const bool index = part[strspn(part, "0123456789")] == '\0';
    for (size_t i = 0; i < list->count; i++) {
        const bh_device_info *device = &list->devices[i];
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, " %s", device->selector);
        if (strcmp(device->selector, part) != 0 &&
            (index || bhi_device_is_cuda(device) ||
             (!strcasestr(device->name, part) && !strcasestr(device->driver, part)))) {
            continue;
        }
        used = strlen(found);
        snprintf(found + used, sizeof found - used, " %s", device->selector);
        *out_device = device;
        matches++;
    }
    char shown[101];
    bhi_format(shown, sizeof shown, "%s", part);
    if (matches > 1) {
        return BHI_FAIL(detail, "", BH_REASON_SELECTOR_SEVERAL, shown, .text = found);
    }
    return matches ? BH_OK : BHI_FAIL(detail, "", BH_REASON_SELECTOR, shown, .text = all);
}

static bool is_any(const char *device) {
    return strcmp(device, "any") == 0;
}

const bh_device_info *bhi_device_list_select(const struct bhi_device_list *list,
                                             const char *device) {
    const bh_device_info *found = NULL;
    if (!device || !*device || is_any(device)) {
        return list->count ? &list->devices[0] : NULL;
    }
    for (size_t i = 0; i < list->count; i++) {
        const char *selector = list->devices[i].selector;
        const char *colon = strchr(selector, ':');
        const size_t driver = colon ? (size_t)(colon - selector) : strlen(selector);
        if (!strcmp(selector, device) || (colon && !strcmp(colon + 1, device)) ||
            (strlen(device) == driver && !memcmp(selector, device, driver))) {
            return &list->devices[i];
        }
    }
    return bhi_device_list_find(list, device, &found, NULL) == BH_OK ? found : NULL;
}

/* Returns true for a device of the default driver, which is the driver of the first device. */
static bool is_default(const struct bhi_device_list *list, const bh_device_info *device) {
    const size_t length = strcspn(list->devices[0].selector, ":");
    return strncmp(device->selector, list->devices[0].selector, length) == 0 &&
           (device->selector[length] == ':' || !device->selector[length]);
}

bool bhi_device_list_serves(const struct bhi_device_list *list, const char *device,
                            const bh_device_info *candidate) {
    return device && is_any(device) ? is_default(list, candidate)
                                    : bhi_device_list_select(list, device) == candidate;
}

bool bhi_device_list_limits(const struct bhi_device_list *list, const char *device,
                            uint64_t *out_range, uint32_t *out_alignment) {
    const bool any = device && is_any(device);
    const bh_device_info *chosen = bhi_device_list_select(list, device);
    if (!chosen) {
        return false;
    }
    *out_range = chosen->max_storage_range;
    *out_alignment = chosen->storage_alignment;
    for (size_t i = 0; any && i < list->count; i++) {
        const bh_device_info *other = &list->devices[i];
        if (is_default(list, other)) {
            *out_range =
                other->max_storage_range < *out_range ? other->max_storage_range : *out_range;
            *out_alignment = other->storage_alignment > *out_alignment ? other->storage_alignment
                                                                       : *out_alignment;
        }
    }
    return true;
}

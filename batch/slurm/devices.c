#include "batch/slurm/devices.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GPUS = 64, HEX = 2 * sizeof((bh_device_info *)0)->uuid };

struct gpus {
    const bh_device_info *at[MOST_GPUS];
    size_t count;
};

static int by_address(const void *a, const void *b) {
    const bh_device_info *const *x = a, *const *y = b;
    return strcmp((*x)->pci, (*y)->pci);
}

/* The GPUs of the first driver that has one: the default driver, where there is a GPU at all. */
static void find_gpus(const struct bhi_device_list *list, struct gpus *out_gpus) {
    out_gpus->count = 0;
    for (size_t i = 0; i < list->count && out_gpus->count < MOST_GPUS; i++) {
        const bh_device_info *device = &list->devices[i];
        const char *colon = strchr(device->selector, ':');
        const size_t driver = colon ? (size_t)(colon - device->selector) : 0;
        if (!bhi_device_is_cpu(device) && !bhi_device_is_cuda(device) &&
            (!out_gpus->count ||
             !strncmp(out_gpus->at[0]->selector, device->selector, driver + 1))) {
            out_gpus->at[out_gpus->count++] = device;
        }
    }
    qsort(out_gpus->at, out_gpus->count, sizeof *out_gpus->at, by_address);
}

/* Is |text| of |length| bytes, such as GPU-8932f937-d72c, the beginning of the device's UUID? */
static bool is_uuid(const bh_device_info *device, const char *text, size_t length) {
    char digits[HEX + 1];
    size_t at = 0;
    if (length < 5 || strncmp(text, "GPU-", 4) != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof device->uuid; i++) {
        snprintf(digits + 2 * i, 3, "%02x", device->uuid[i]);
    }
    for (size_t i = 4; i < length; i++) {
        if (text[i] != '-' && (at == HEX || tolower((unsigned char)text[i]) != digits[at++])) {
            return false;
        }
    }
    return at > 0;
}

/* Finds the GPU of one entry of a list. */
static const bh_device_info *find_gpu(const struct gpus *gpus, const char *text, size_t length) {
    char *end;
    for (size_t i = 0; i < gpus->count; i++) {
        if (is_uuid(gpus->at[i], text, length)) {
            return gpus->at[i];
        }
    }
    const unsigned long number =
        isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : MOST_GPUS;
    return number < gpus->count && end == text + length ? gpus->at[number] : NULL;
}

static size_t count_entries(const char *list) {
    size_t count = 0;
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        count += *at != ',';
    }
    return count;
}

bool bhi_slurm_device(const struct bhi_slurm_grant *grant, const struct bhi_device_list *list,
                      char out_selector[sizeof((bh_device_info *)0)->selector], size_t *out_unused,
                      struct bhi_complaint *complaint) {
    const char *given = grant->job_gpus && *grant->job_gpus ? grant->job_gpus : grant->visible;
    struct gpus gpus;
    out_selector[0] = '\0';
    *out_unused = 0;
    if (!given || !*given) {
        return true;
    }
    find_gpus(list, &gpus);
    const size_t count = count_entries(given);
    if (!gpus.count) {
        return bhi_refuse(complaint,
                          "Slurm gave this task the GPUs %.100s, but Vulkan shows none: "
                          "see bulkhead devices",
                          given);
    }
    if (gpus.count <= count) {
        snprintf(out_selector, sizeof((bh_device_info *)0)->selector, "%s",
                 gpus.count == 1 ? gpus.at[0]->selector : "any");
        return true;
    }
    for (const char *at = given; *at; at += strcspn(at, ","), at += *at == ',') {
        const bh_device_info *gpu = find_gpu(&gpus, at, strcspn(at, ","));
        if (gpu) {
            snprintf(out_selector, sizeof((bh_device_info *)0)->selector, "%s", gpu->selector);
            *out_unused = count - 1;
            return true;
        }
    }
    return bhi_refuse(complaint,
                      "Slurm gave this task the GPUs %.100s, and none of the %zu GPUs "
                      "that Vulkan shows is one of them",
                      given, gpus.count);
}

#include "supervisor/kernel/usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DEATHS 2u

void bhi_usages_init(struct bhi_usages *usages) {
    bhi_list_init(&usages->all);
    usages->count = 0;
}

static void drop(struct bhi_usages *usages, struct bhi_usage *usage) {
    bhi_list_remove(&usage->link);
    usages->count--;
    free(usage);
}

void bhi_usages_fini(struct bhi_usages *usages) {
    BHI_LIST_EACH_SAFE(node, &usages->all)
    drop(usages, BHI_CONTAINER(node, struct bhi_usage, link));
}

/* Mostly it is the one with the latest news. */
struct bhi_usage *bhi_usage_find(const struct bhi_usages *usages, const char *device,
                                 const char *tenant) {
    for (struct bhi_list *node = usages->all.prev; node != &usages->all; node = node->prev) {
        struct bhi_usage *usage = BHI_CONTAINER(node, struct bhi_usage, link);
        if (strcmp(usage->tenant, tenant) == 0 && strcmp(usage->device, device) == 0) {
            return usage;
        }
    }
    return NULL;
}

static struct bhi_usage *add(struct bhi_usages *usages, const char *device, const char *tenant) {
    struct bhi_usage *usage = calloc(1, sizeof *usage);
    if (!usage) {
        return NULL;
    }
    if (usages->count == BHI_USAGE_TENANTS) {
        drop(usages, BHI_CONTAINER(usages->all.next, struct bhi_usage, link));
    }
    snprintf(usage->device, sizeof usage->device, "%s", device);
    snprintf(usage->tenant, sizeof usage->tenant, "%s", tenant);
    bhi_list_append(&usages->all, &usage->link);
    usages->count++;
    return usage;
}

struct bhi_used_kernel *bhi_usage_kernel(struct bhi_usage *usage, uint64_t id) {
    for (uint32_t i = 0; i < usage->count; i++) {
        if (usage->kernels[i].id == id) {
            return &usage->kernels[i];
        }
    }
    return NULL;
}

static void remove_kernel(struct bhi_usage *usage, struct bhi_used_kernel *kernel) {
    usage->uses -= kernel->uses;
    *kernel = usage->kernels[--usage->count];
}

static void age(struct bhi_usage *usage) {
    usage->aged = 0;
    usage->uses = 0;
    for (uint32_t i = usage->count; i-- > 0;) {
        struct bhi_used_kernel *kernel = &usage->kernels[i];
        kernel->uses /= 2;
        usage->uses += kernel->uses;
        if (!kernel->uses && !kernel->barred && !kernel->deaths) {
            remove_kernel(usage, kernel);
        }
    }
}

/* A kernel that must not be told again gives way last. */
static struct bhi_used_kernel *place_for_one(struct bhi_usage *usage) {
    if (usage->count < BHI_USAGE_KERNELS) {
        return &usage->kernels[usage->count++];
    }
    struct bhi_used_kernel *victim = &usage->kernels[0];
    for (uint32_t i = 1; i < usage->count; i++) {
        struct bhi_used_kernel *kernel = &usage->kernels[i];
        const bool same = kernel->barred == victim->barred;
        if (same ? kernel->uses < victim->uses : victim->barred) {
            victim = kernel;
        }
    }
    usage->uses -= victim->uses;
    return victim;
}

bool bhi_usage_note(struct bhi_usages *usages, const char *device, const char *tenant,
                    const struct bhi_used_kernel *used) {
    struct bhi_usage *usage = bhi_usage_find(usages, device, tenant);
    if (!usage && !(usage = add(usages, device, tenant))) {
        return false;
    }
    if (usages->all.prev != &usage->link) {
        bhi_list_remove(&usage->link);
        bhi_list_append(&usages->all, &usage->link);
    }
    struct bhi_used_kernel *kernel = bhi_usage_kernel(usage, used->id);
    if (!kernel) {
        kernel = place_for_one(usage);
        *kernel = *used;
        kernel->uses = kernel->deaths = 0;
        kernel->barred = false;
    }
    kernel->compile_ns = used->compile_ns;
    kernel->uses++;
    usage->uses++;
    const bool worth_it = kernel->uses == BHI_USAGE_LEAST && !kernel->barred;
    if (++usage->aged < BHI_USAGE_PERIOD) {
        return worth_it;
    }
    age(usage);
    return true;
}

void bhi_usage_ended_spare(struct bhi_usage *usage, uint64_t id, bool guilty) {
    struct bhi_used_kernel *kernel = bhi_usage_kernel(usage, id);
    if (!kernel) {
        return;
    }
    kernel->deaths++;
    kernel->barred = kernel->barred || guilty || kernel->deaths >= MOST_DEATHS;
    usage->uses -= kernel->uses;
    kernel->uses = 0;
}

void bhi_usages_forget(struct bhi_usages *usages, uint64_t id) {
    BHI_LIST_FOR(struct bhi_usage, usage, &usages->all, link) {
        struct bhi_used_kernel *kernel = bhi_usage_kernel(usage, id);
        if (kernel) {
            remove_kernel(usage, kernel);
        }
    }
}

void bhi_usages_refuse(struct bhi_usages *usages, const char *tenant, const uint8_t hash[32]) {
    BHI_LIST_FOR(struct bhi_usage, usage, &usages->all, link) {
        for (uint32_t i = 0; i < usage->count && strcmp(usage->tenant, tenant) == 0; i++) {
            struct bhi_used_kernel *kernel = &usage->kernels[i];
            if (memcmp(kernel->hash, hash, sizeof kernel->hash) == 0) {
                usage->uses -= kernel->uses;
                kernel->uses = 0;
            }
        }
    }
}

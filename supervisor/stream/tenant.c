#include "supervisor/stream/tenant.h"
#include "base/detail.h"
#include "base/futex.h"

#include <stdlib.h>
#include <string.h>

/* FNV-1a */
static uint64_t hash(const char *name) {
    uint64_t key = 0xcbf29ce484222325;
    for (; *name; name++) {
        key = (key ^ (uint8_t)*name) * 0x100000001b3;
    }
    return key;
}

static struct bhi_tenant *find(const bh_context *context, const char *name) {
    struct bhi_chain *node = bhi_map_get(&context->tenants.names, hash(name));
    for (; node; node = node->next) {
        struct bhi_tenant *tenant = BHI_CONTAINER(node, struct bhi_tenant, chain);
        if (strcmp(tenant->name, name) == 0) {
            return tenant;
        }
    }
    return NULL;
}

static void init_late(const bh_context *context, struct bhi_tenant *tenant) {
    bhi_restart_init(&tenant->late, context->settings.restart_budget,
                     context->settings.restart_window_ns, bhi_now_ns());
    tenant->until_ns = 0;
}

static struct bhi_tenant *make(bh_context *context, const char *name) {
    struct bhi_tenant *tenant =
        bhi_map_reserve(&context->tenants.names, 1) ? calloc(1, sizeof *tenant) : NULL;
    if (tenant) {
        strcpy(tenant->name, name);
        init_late(context, tenant);
        bhi_list_init(&tenant->link);
        bhi_list_init(&tenant->streams);
        bhi_map_link(&context->tenants.names, hash(name), &tenant->chain);
        context->tenants.idle_count++;
    }
    return tenant;
}

struct bhi_tenant *bhi_tenant_join(bh_context *context, const char *name, struct bhi_list *link) {
    struct bhi_tenant *tenant = find(context, name);
    if (!tenant && !(tenant = make(context, name))) {
        return NULL;
    }
    if (bhi_list_empty(&tenant->streams)) {
        context->tenants.idle_count--;
        bhi_list_remove(&tenant->link);
        bhi_list_append(&context->tenants.busy, &tenant->link);
    }
    bhi_list_append(&tenant->streams, link);
    return tenant;
}

static void forget(bh_context *context, struct bhi_tenant *tenant) {
    bhi_stats_add(&context->counts.tenants, &tenant->gone);
    context->tenants.idle_count--;
    bhi_map_unlink(&context->tenants.names, &tenant->chain);
    bhi_list_remove(&tenant->link);
    free(tenant);
}

/* Its budget is not full yet, or its delays have not passed. Sums of a window may overflow: it may be
 * BH_FOREVER. */
static bool is_charged(const struct bhi_tenant *tenant, uint64_t now_ns) {
    const struct bhi_restart *late = &tenant->late;
    return now_ns - late->credit_at_ns < late->window_ns - late->credit_ns ||
           now_ns < late->not_before_ns || now_ns < tenant->until_ns;
}

void bhi_tenant_leave(bh_context *context, struct bhi_tenant *tenant, struct bhi_list *link,
                      const struct bhi_stats *stats) {
    struct bhi_tenants *all = &context->tenants;
    bhi_stats_add(&tenant->gone, stats);
    bhi_list_remove(link);
    if (!bhi_list_empty(&tenant->streams)) {
        return;
    }
    bhi_list_remove(&tenant->link);
    bhi_list_append(&all->idle, &tenant->link);
    if (++all->idle_count <= BHI_TENANTS) {
        return;
    }
    const uint64_t now_ns = bhi_now_ns();
    BHI_LIST_FOR_SAFE(struct bhi_tenant, oldest, &all->idle, link) {
        if (all->idle_count > BHI_TENANTS && !is_charged(oldest, now_ns)) {
            forget(context, oldest);
        }
    }
}

void bhi_tenant_lost_late(struct bhi_tenant *tenant, const char *stream, uint64_t took_ns) {
    const uint64_t now_ns = bhi_now_ns();
    if (bhi_restart_late(&tenant->late, took_ns, now_ns)) {
        const uint64_t until_ns = now_ns + tenant->late.window_ns;
        tenant->until_ns = until_ns < now_ns ? BH_FOREVER : until_ns;
        BHI_FAIL(&tenant->trouble, "", BH_REASON_LATE_ENDS, stream, .limit = took_ns,
                 .text = tenant->name);
    }
}

uint64_t bhi_tenant_not_before(const struct bhi_tenant *tenant) {
    return tenant ? tenant->late.not_before_ns : 0;
}

const bh_detail *bhi_tenant_trouble(const struct bhi_tenant *tenant, uint64_t *out_until_ns) {
    if (!tenant || !tenant->until_ns || tenant->until_ns <= bhi_now_ns()) {
        return NULL;
    }
    if (out_until_ns) {
        *out_until_ns = tenant->until_ns;
    }
    return &tenant->trouble;
}

void bhi_tenant_forgive(const bh_context *context, struct bhi_tenant *tenant) {
    init_late(context, tenant);
}

void bhi_tenants_fini(bh_context *context) {
    BHI_LIST_EACH_SAFE(node, &context->tenants.idle)
    forget(context, BHI_CONTAINER(node, struct bhi_tenant, link));
    bhi_map_fini(&context->tenants.names);
}

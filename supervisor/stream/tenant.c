#include "supervisor/stream/tenant.h"
#include "base/detail.h"
#include "base/futex.h"
#include "core/restart.h"

#include <stdlib.h>
#include <string.h>

struct tenant {
    struct bhi_list link; /* context->tenants */
    char name[BHI_TENANT];
    struct bhi_restart restart; /* counts only late ends */
    uint64_t until_ns;          /* its streams are UNAVAILABLE until then; 0: they are not */
    bh_detail trouble;
};

static void drop(struct tenant *tenant) {
    bhi_list_remove(&tenant->link);
    free(tenant);
}

static struct tenant *find(const bh_context *context, const char *name) {
    BHI_LIST_EACH(node, &context->tenants) {
        struct tenant *tenant = BHI_CONTAINER(node, struct tenant, link);
        if (strcmp(tenant->name, name) == 0) {
            return tenant;
        }
    }
    return NULL;
}

/* Forgets the tenants whose budget is full again and whose delays have passed. */
static void forget_old(bh_context *context, uint64_t now_ns) {
    BHI_LIST_EACH_SAFE(node, &context->tenants) {
        struct tenant *tenant = BHI_CONTAINER(node, struct tenant, link);
        const struct bhi_restart *restart = &tenant->restart;
        if (now_ns - restart->credit_at_ns >= restart->window_ns &&
            now_ns >= restart->not_before_ns && now_ns >= tenant->until_ns) {
            drop(tenant);
        }
    }
}

static struct tenant *make(bh_context *context, const char *name, uint64_t now_ns) {
    struct tenant *tenant = calloc(1, sizeof *tenant);
    if (tenant) {
        strcpy(tenant->name, name);
        bhi_restart_init(&tenant->restart, context->settings.restart_budget,
                         context->settings.restart_window_ns, now_ns);
        bhi_list_append(&context->tenants, &tenant->link);
    }
    return tenant;
}

void bhi_tenant_lost_late(bh_context *context, const char *tenant, const char *stream,
                          uint64_t took_ns) {
    const uint64_t now_ns = bhi_now_ns();
    forget_old(context, now_ns);
    struct tenant *charged = find(context, tenant);
    if (!charged && !(charged = make(context, tenant, now_ns))) {
        return; /* out of memory: this late end is not charged */
    }
    if (bhi_restart_late(&charged->restart, took_ns, now_ns)) {
        const uint64_t until_ns = now_ns + charged->restart.window_ns;
        charged->until_ns = until_ns < now_ns ? BH_FOREVER : until_ns;
        BHI_FAIL(&charged->trouble, "", BH_REASON_LATE_ENDS, stream, .limit = took_ns,
                 .text = tenant);
    }
}

uint64_t bhi_tenant_not_before(const bh_context *context, const char *tenant) {
    const struct tenant *charged = find(context, tenant);
    return charged ? charged->restart.not_before_ns : 0;
}

const bh_detail *bhi_tenant_trouble(const bh_context *context, const char *tenant,
                                    uint64_t *out_until_ns) {
    const struct tenant *charged = find(context, tenant);
    if (!charged || charged->until_ns <= bhi_now_ns()) {
        return NULL;
    }
    if (out_until_ns) {
        *out_until_ns = charged->until_ns;
    }
    return &charged->trouble;
}

void bhi_tenant_forgive(bh_context *context, const char *tenant) {
    struct tenant *found = find(context, tenant);
    if (found) {
        drop(found);
    }
}

void bhi_tenants_fini(bh_context *context) {
    BHI_LIST_EACH_SAFE(node, &context->tenants)
    drop(BHI_CONTAINER(node, struct tenant, link));
}

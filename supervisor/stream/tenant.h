/* Tenants: what their streams have done together, and the late ends of their workers. A late end: a
 * kernel without the guard kept a device from all others until the driver reset it. It is charged to
 * the tenant, so that it cannot try again with another stream. A tenant without streams is
 * remembered, but no more than BHI_TENANTS of them unless they are charged. The library's own streams
 * have no tenant here. All functions: lock held. */
#ifndef BHI_SUPERVISOR_STREAM_TENANT_H
#define BHI_SUPERVISOR_STREAM_TENANT_H

#include "core/restart.h"
#include "supervisor/context/context.h"

#define BHI_TENANTS 1024u

struct bhi_tenant {
    struct bhi_chain chain;  /* context->tenants.names */
    struct bhi_list link;    /* context->tenants.busy or idle */
    struct bhi_list streams; /* bh_stream.of_owner */
    char name[BHI_TENANT];
    struct bhi_stats gone;   /* of its streams that are gone */
    struct bhi_restart late; /* counts only late ends */
    uint64_t until_ns;       /* its streams are UNAVAILABLE until then; 0: they are not */
    bh_detail trouble;
};

/* Finds or makes the tenant of a new stream, and adds |link|, its bh_stream.of_owner. NULL: out of
 * memory. */
struct bhi_tenant *bhi_tenant_join(bh_context *context, const char *name, struct bhi_list *link);
/* The stream is going; it has counted |stats|. */
void bhi_tenant_leave(bh_context *context, struct bhi_tenant *tenant, struct bhi_list *link,
                      const struct bhi_stats *stats);
/* The device kept a worker of |stream| for |took_ns| although its words were set. Workers for
 * streams of the tenant start after a pause as long as that. */
void bhi_tenant_lost_late(struct bhi_tenant *tenant, const char *stream, uint64_t took_ns);
/* Returns the time before which no worker starts for the tenant; 0: it is not charged, or NULL. */
uint64_t bhi_tenant_not_before(const struct bhi_tenant *tenant);
/* Returns why the tenant's streams are UNAVAILABLE, also those that have a worker, until
 * *out_until_ns (may be NULL). NULL: they are not, or |tenant| is NULL. */
const bh_detail *bhi_tenant_trouble(const struct bhi_tenant *tenant, uint64_t *out_until_ns);
/* The host has reset a stream of the tenant. */
void bhi_tenant_forgive(const bh_context *context, struct bhi_tenant *tenant);
void bhi_tenants_fini(bh_context *context);

#endif

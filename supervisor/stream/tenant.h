/* Late ends of a tenant's workers: a kernel without the guard kept a device from all others until
 * the driver reset it. They are charged to the tenant, so that it cannot try again with another
 * stream. All functions: lock held. */
#ifndef BHI_SUPERVISOR_STREAM_TENANT_H
#define BHI_SUPERVISOR_STREAM_TENANT_H

#include "supervisor/context/context.h"

/* The device kept a worker of |stream| for |took_ns| although its words were set. Workers for
 * streams of the tenant start after a pause as long as that. */
void bhi_tenant_lost_late(bh_context *context, const char *tenant, const char *stream,
                          uint64_t took_ns);
/* Returns the time before which no worker starts for the tenant; 0: it is not charged. */
uint64_t bhi_tenant_not_before(const bh_context *context, const char *tenant);
/* Returns why the tenant's streams are UNAVAILABLE, also those that have a worker, until
 * *out_until_ns (may be NULL). NULL: they are not. */
const bh_detail *bhi_tenant_trouble(const bh_context *context, const char *tenant,
                                    uint64_t *out_until_ns);
/* The host has reset a stream of the tenant. */
void bhi_tenant_forgive(bh_context *context, const char *tenant);
void bhi_tenants_fini(bh_context *context);

#endif

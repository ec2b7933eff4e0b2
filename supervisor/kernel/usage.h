/* Which kernels each tenant uses most on each device, for spares to learn (reactor/spares.h).
 *
 * Only launches that ended READY count. Counts age: after every BHI_USAGE_PERIOD of a tenant's
 * launches on a device all its counts are halved. The number of tenants, and of their kernels, is
 * limited: the tenant without news for the longest time is forgotten first, and the kernel with the
 * fewest uses. The kernels of one tenant have no effect on another's. A kernel is forgotten with
 * its body. A kernel that has ended a spare stays in the table, barred.
 *
 * No lock, no clock, no I/O. */
#ifndef BHI_SUPERVISOR_KERNEL_USAGE_H
#define BHI_SUPERVISOR_KERNEL_USAGE_H

#include "base/list.h"
#include "supervisor/context/context.h"
#include <stdbool.h>
#include <stdint.h>

#define BHI_USAGE_TENANTS 64u /* pairs of a tenant and a device, at most */
#define BHI_USAGE_KERNELS 32u /* kernels of each, at most */
#define BHI_USAGE_PERIOD  1024u
#define BHI_USAGE_LEAST   2u /* uses before a kernel is worth a spare's time */

struct bhi_kernel_body;

struct bhi_used_kernel {
    const struct bhi_kernel_body *body;
    uint64_t id;         /* the body's */
    uint8_t hash[32];    /* the body's */
    uint64_t compile_ns; /* compile deadline of the stream that used it last */
    uint32_t uses;
    uint32_t deaths; /* of spares that compiled it, whatever ended them */
    bool barred;     /* no spare compiles it any more */
    char name[64];
};

/* What one tenant uses on one device. */
struct bhi_usage {
    struct bhi_list link;    /* the longest without news first */
    char device[48];         /* selector, as of its streams */
    char tenant[BHI_TENANT]; /* its name */
    uint64_t quiet_until_ns; /* no spare is told anything before; the caller's to write */
    uint32_t uses;           /* of all its kernels */
    uint32_t aged;           /* uses since the counts were halved */
    uint32_t count;
    struct bhi_used_kernel kernels[BHI_USAGE_KERNELS];
};

struct bhi_usages {
    struct bhi_list all; /* bhi_usage.link */
    uint32_t count;
};

void bhi_usages_init(struct bhi_usages *usages);
void bhi_usages_fini(struct bhi_usages *usages);
/* Counts that |tenant| has used |kernel| on |device|. Of |kernel|, uses, deaths and barred are not
 * read. Returns true if there may now be more for a spare to learn. Counts nothing if out of
 * memory. */
bool bhi_usage_note(struct bhi_usages *usages, const char *device, const char *tenant,
                    const struct bhi_used_kernel *kernel);
/* Returns NULL if nothing is known. */
struct bhi_usage *bhi_usage_find(const struct bhi_usages *usages, const char *device,
                                 const char *tenant);
struct bhi_used_kernel *bhi_usage_kernel(struct bhi_usage *usage, uint64_t id); /* NULL: unknown */
/* The kernel has ended a spare. |guilty|: it is barred now; else it is after another one, and has
 * to be used again before that. */
void bhi_usage_ended_spare(struct bhi_usage *usage, uint64_t id, bool guilty);
/* Forgets a kernel: its body is going. */
void bhi_usages_forget(struct bhi_usages *usages, uint64_t id);
/* Forgets how often |tenant| has used a kernel: it is refused (quarantine.h). */
void bhi_usages_refuse(struct bhi_usages *usages, const char *tenant, const uint8_t hash[32]);

#endif

/* What a kernel is, whatever it is called: module, entry point, constants, options (K1).
 *
 * Kernels of one context that are the same share one body: one copy of the code, one id on the
 * wire, and so one compile in each worker, however many callers create it, and from however many
 * threads. The hash finds a body, all of its bytes decide: two that were different and had one hash
 * would be two bodies. A body lives as long as the kernels that have it. */
#ifndef BHI_SUPERVISOR_KERNEL_BODY_H
#define BHI_SUPERVISOR_KERNEL_BODY_H

#include "base/map.h"
#include "supervisor/context/context.h"
#include <bulkhead/bulkhead.h>

struct bhi_kernel_body {
    struct bhi_doomed doomed; /* first */
    struct bhi_chain chain;   /* lock: in context->kernels */
    uint32_t refs;            /* lock: kernels that have it, and who compares it */
    bh_context *context;      /* of those kernels, whose references keep it */
    uint64_t id;              /* on the wire */
    uint8_t hash[32];
    char entry[256];
    bool trusted;
    uint64_t code_size;
    /* One of the two. What is small costs no descriptor: there may be many thousand of them. */
    void *code;
    int fd;                             /* a memfd, sealed also against writing; -1 */
    bh_specialization *specializations; /* by constant_id */
    uint32_t specialization_count;
};

/* All bodies of a context, by their hash. Lock. */
struct bhi_kernel_table {
    struct bhi_map map; /* by the beginning of their hashes */
    uint64_t count, bytes;
    uint64_t shared;     /* how often what was to be made was there */
    uint64_t introduced; /* how often a worker was told of one */
    uint64_t evicted;    /* how often a worker was told to forget one that is still there */
};

void bhi_kernel_table_fini(struct bhi_kernel_table *table);

/* What bh_kernel_create_spirv was given, checked. No lock held. *out_body: the one that is there
 * already, or a new one, with a reference. */
bh_status bhi_kernel_body_intern(bh_context *context, const void *code, size_t code_size,
                                 const bh_kernel_options *options,
                                 struct bhi_kernel_body **out_body, bh_detail *detail);
/* Lock held. With the last reference its workers forget it. */
void bhi_kernel_body_unref_locked(struct bhi_kernel_body *body);
/* Has all workers forget it. Lock held. */
void bhi_kernel_body_forget(struct bhi_kernel_body *body);
/* A descriptor of the code for one worker, sealed against everything. The caller's to close.
 * -errno. */
int bhi_kernel_body_descriptor(const struct bhi_kernel_body *body);

#endif

/* The body of a kernel, which is all of it but its name and its usual block: module or image, entry
 * point, constants, options (K1).
 *
 * Equal kernels of a context share one body: one copy of the code, one id on the wire, and so one
 * compile in each worker, however many callers and threads create it. A body is found by its hash,
 * then compared byte by byte, so different kernels with the same hash have different bodies. A body
 * lives as long as the kernels that have it. */
#ifndef BHI_SUPERVISOR_KERNEL_BODY_H
#define BHI_SUPERVISOR_KERNEL_BODY_H

#include "base/kernel_format.h"
#include "base/map.h"
#include "supervisor/context/context.h"
#include <bulkhead/bulkhead.h>
#include <string.h>

struct bhi_kernel_body {
    struct bhi_doomed doomed; /* first */
    struct bhi_chain chain;   /* lock: in context->kernels */
    uint32_t refs;            /* lock: kernels that have it, and threads that compare it */
    bh_context *context;      /* of those kernels, whose references keep it */
    uint64_t id;              /* on the wire */
    uint8_t hash[32];
    char entry[256];
    enum bhi_kernel_format format;
    bool trusted;
    uint32_t noise;
    uint64_t code_size;
    /* Small code takes no descriptor: there may be many thousand kernels. */
    void *code;                         /* owned, or the mapping of |fd| */
    int fd;                             /* a memfd, sealed also against writing; -1 */
    bh_specialization *specializations; /* by constant_id */
    uint32_t specialization_count;
};

/* Tells the body's code from other code (bhi_submission.code). The number comes from the hash, so a
 * kernel that is made anew for each launch has the same number. */
static inline uint64_t bhi_kernel_body_code(const struct bhi_kernel_body *body) {
    uint64_t code;
    memcpy(&code, body->hash, sizeof code);
    return code | 1;
}

/* All bodies of a context, by their hash. Lock. */
struct bhi_kernel_table {
    struct bhi_map map; /* by the beginning of their hashes */
    uint64_t count, bytes;
    uint64_t shared;     /* how often a new kernel found its body */
    uint64_t introduced; /* how often a body was introduced to a worker for a submission */
    uint64_t told;       /* how often to a spare, ahead of use */
    uint64_t evicted;    /* how often a worker had to forget one that still exists */
};

void bhi_kernel_table_fini(struct bhi_kernel_table *table);

/* What a caller has given. */
struct bhi_kernel_code {
    const char *call; /* the public function, for the detail */
    enum bhi_kernel_format format;
    const void *bytes;
    size_t size;
};

/* Finds or makes the body for code and options that are checked. *out_body is referenced. No lock
 * held. */
bh_status bhi_kernel_body_intern(bh_context *context, const struct bhi_kernel_code *code,
                                 const bh_kernel_options *options,
                                 struct bhi_kernel_body **out_body, bh_detail *detail);
/* Lock held. After the last reference the workers forget the body. */
void bhi_kernel_body_unref_locked(struct bhi_kernel_body *body);
/* Makes all workers forget the body, and the table of what is used most. Lock held. */
void bhi_kernel_body_forget(struct bhi_kernel_body *body);
/* Returns a descriptor of the code for one worker, with all seals, which the caller closes; or
 * -errno. */
int bhi_kernel_body_descriptor(const struct bhi_kernel_body *body);

#endif

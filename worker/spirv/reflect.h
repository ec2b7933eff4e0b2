/* What a validated module's entry point binds: buffers, push constants, workgroup size. */
#ifndef BHI_WORKER_SPIRV_REFLECT_H
#define BHI_WORKER_SPIRV_REFLECT_H

#include "worker/backend.h"

#define BHI_MAX_BINDINGS 256u
#define BHI_MAX_SETS     32u

struct bhi_reflected_binding {
    uint32_t set, binding;
    uint32_t kind;      /* bh_binding_kind */
    uint32_t access;    /* bh_access: what the decorations permit and the code may do */
    bool stores;        /* the code can store to it */
    bool measured;      /* the code asks for its length */
    uint32_t min_bytes; /* uniform buffers: size of the block */
    uint32_t count;     /* its buffers: 1, or the length of an array of buffers */
    uint32_t first;     /* index of its first buffer among all buffers of the kernel */
    char name[64];      /* of the variable, else of the block; may be empty */
};

struct bhi_module_bindings {
    uint32_t binding_count;
    uint32_t buffer_count; /* the sum of all |count|, at most BHI_MAX_BINDINGS */
    uint32_t set_count;    /* highest set + 1 */
    uint32_t push_bytes;
    uint32_t local_size[3];
    uint64_t shared_bytes;                                   /* of workgroup memory, at least */
    struct bhi_reflected_binding bindings[BHI_MAX_BINDINGS]; /* sorted by set, binding */
};

/* Variables that share a binding become one, with joined accesses. Refuses bound resources that are
 * no storage or uniform buffer, arrays of buffers without a length, and more than 256 buffers. */
bool bhi_reflect(const uint32_t *code, size_t words, const char *entry,
                 const struct bhi_spec_constant *constants, uint32_t constant_count,
                 struct bhi_module_bindings *out, struct bhi_error *error);

#endif

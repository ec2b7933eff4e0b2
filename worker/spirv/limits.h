/* Limits for an untrusted kernel. We measured what drivers' compilers do beyond them
 * (docs/kernels.md): they take minutes or gigabytes, or overflow their stack. No real kernel that we
 * know comes near the limits. Each refusal is LIMIT_EXCEEDED, and names the limit, the value, the
 * instruction (its number in the module, from 1) and what to do. */
#ifndef BHI_WORKER_SPIRV_LIMITS_H
#define BHI_WORKER_SPIRV_LIMITS_H

#include "worker/backend.h"

#define BHI_LIMIT_MODULE_BYTES    (4u << 20)
#define BHI_LIMIT_ID_BOUND        (1u << 20)
#define BHI_LIMIT_TYPES           16384u
#define BHI_LIMIT_TYPE_NESTING    64u
#define BHI_LIMIT_PARTS           32768u /* of a type: it, and those of what it is made of */
#define BHI_LIMIT_CONTROL_NESTING 256u   /* nested constructs (if, switch, loop) */
#define BHI_LIMIT_CALL_NESTING    64u
#define BHI_LIMIT_INLINED         (1u << 20) /* instructions with all calls inlined */
#define BHI_LIMIT_VALUE           16384u     /* scalars in one value: constant, load, argument… */
#define BHI_LIMIT_VARIABLE        16384u     /* scalars in a Function or Private variable */
#define BHI_LIMIT_VARIABLES       65536u     /* scalars in all such variables */
#define BHI_LIMIT_INITIALISED     4096u      /* scalars in one variable with an initialiser */

/* Checks what can be seen in the words alone, in a module that may be malformed: it assumes
 * nothing, and leaves malformed instructions to the validator. Call it first: the validator and the
 * reflection recurse, too. */
bool bhi_guard_limits(const uint32_t *code, size_t words, struct bhi_error *error);

/* Checks sizes of values and variables with these specialization constants, in a module that has
 * passed bhi_validate(). Refuses an array whose length is 0 or cannot be computed here. */
bool bhi_guard_limits_sizes(const uint32_t *code, size_t words, const char *entry,
                            const struct bhi_spec_constant *constants, uint32_t constant_count,
                            struct bhi_error *error);

#endif

/* Limits of what an untrusted kernel may be: what drivers' compilers do with more than this was
 * measured (docs/guard.md), and it is minutes, gigabytes or a stack overflow. No real kernel that
 * we know comes near them. Each refusal is LIMIT_EXCEEDED and names the limit, the value, the
 * instruction (its number in the module, from 1) and what to do. */
#ifndef BHI_WORKER_SPIRV_LIMITS_H
#define BHI_WORKER_SPIRV_LIMITS_H

#include "worker/backend.h"

#define BHI_LIMIT_MODULE_BYTES    (4u << 20)
#define BHI_LIMIT_ID_BOUND        (1u << 20)
#define BHI_LIMIT_TYPES           16384u
#define BHI_LIMIT_TYPE_NESTING    64u
#define BHI_LIMIT_CONTROL_NESTING 256u /* constructs (if, switch, loop) inside each other */
#define BHI_LIMIT_CALL_NESTING    64u
#define BHI_LIMIT_INLINED         (1u << 20) /* instructions, once all calls are inlined */
#define BHI_LIMIT_VALUE           16384u     /* scalars in one value: constant, load, argument… */
#define BHI_LIMIT_VARIABLE        16384u     /* scalars in a Function or Private variable */
#define BHI_LIMIT_VARIABLES       65536u     /* scalars in all of them */
#define BHI_LIMIT_INITIALISED     4096u      /* scalars in one that has an initialiser */

/* What can be told from the words alone. For modules that nobody has validated yet: it assumes
 * nothing, and leaves what is malformed to the validator. Call it first: the validator and the
 * reflection are recursive, too. */
bool bhi_guard_limits(const uint32_t *code, size_t words, struct bhi_error *error);

/* Sizes of values and variables with these specialization constants, for a module that has passed
 * bhi_validate(). An array whose length is 0, or cannot be computed here, is refused. */
bool bhi_guard_limits_sizes(const uint32_t *code, size_t words, const char *entry,
                            const struct bhi_spec_constant *constants, uint32_t constant_count,
                            struct bhi_error *error);

#endif

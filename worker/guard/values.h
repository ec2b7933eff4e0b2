/* The values of integers that are constant after the specialization constants are set. */
#ifndef BHI_WORKER_GUARD_VALUES_H
#define BHI_WORKER_GUARD_VALUES_H

#include "worker/guard/locals.h"
#include "worker/spirv/module.h"

struct bhi_values {
    struct bhi_ir *ir;
    const struct bhi_module *module; /* made from the original words */
    uint64_t *steps;                 /* that may still be simulated, in the whole module */
    bool no_wrap;                    /* the module has decorations that promise no overflow */
};

/* Returns 8 to 64, or 0 if |type| is no integer. */
uint32_t bhi_int_bits(const struct bhi_ir *ir, uint32_t type);
/* Applies |op| to two integers of |bits| bits. |wraps| says whether the result left the range: 1 as
 * an unsigned number, 2 as a signed one, or the sum. Returns false if the operation is unknown or
 * has no result. */
bool bhi_int_apply(SpvOp op, uint32_t bits, uint64_t a, uint64_t b, uint64_t *out, uint32_t *wraps);
/* Reads a constant of the module or of the guard. */
bool bhi_constant_of(const struct bhi_ir *ir, const struct bhi_module *module, uint32_t id,
                     uint64_t *out);
/* Computes the value of |id|, truncated to its width. Returns false if it is unknown. */
bool bhi_value_of(const struct bhi_values *values, uint32_t id, uint64_t *out);

#endif

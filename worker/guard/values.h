/* The values of integers that are constant once the specialization constants are set. */
#ifndef BHI_WORKER_GUARD_VALUES_H
#define BHI_WORKER_GUARD_VALUES_H

#include "worker/guard/locals.h"
#include "worker/spirv/module.h"

struct bhi_values {
    struct bhi_ir *ir;
    const struct bhi_module *module; /* of the words as they came */
    uint64_t *steps;                 /* that may still be played through, in all of the module */
    bool no_wrap;                    /* the module has decorations that forbid wrapping */
};

/* 8 to 64; 0: |type| is no integer. */
uint32_t bhi_int_bits(const struct bhi_ir *ir, uint32_t type);
uint64_t bhi_int_truncate(uint64_t value, uint32_t bits);
int64_t bhi_int_signed(uint64_t value, uint32_t bits);
/* |op| on two integers of |bits| bits. |wraps| gets what of it left the range: 1 as unsigned, 2 as
 * signed numbers. False: not an operation that is known, or one without a result. */
bool bhi_int_apply(SpvOp op, uint32_t bits, uint64_t a, uint64_t b, uint64_t *out, uint32_t *wraps);
/* Of a constant of the module, or one that the guard has made. */
bool bhi_constant_of(const struct bhi_ir *ir, const struct bhi_module *module, uint32_t id,
                     uint64_t *out);
/* The value of |id|, truncated to its width. False: not known. */
bool bhi_value_of(const struct bhi_values *values, uint32_t id, uint64_t *out);

#endif

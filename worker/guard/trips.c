/* The most times that a loop runs. This is a security boundary: a loop that is wrongly taken for
 * short cannot be stopped. So there is no reasoning: the count is simulated with the kernel's own
 * arithmetic. If it leaves the range of its type, the number of trips is unknown. */
#include "worker/guard/trips.h"

#include "worker/guard/cfg.h"
#include "worker/guard/induction.h"
#include "worker/guard/values.h"

static bool holds(SpvOp op, uint32_t bits, uint64_t a, uint64_t b) {
    const int64_t sa = bhi_int_signed(a, bits), sb = bhi_int_signed(b, bits);
    switch (op) {
    case SpvOpIEqual:
        return a == b;
    case SpvOpINotEqual:
        return a != b;
    case SpvOpULessThan:
        return a < b;
    case SpvOpULessThanEqual:
        return a <= b;
    case SpvOpUGreaterThan:
        return a > b;
    case SpvOpUGreaterThanEqual:
        return a >= b;
    case SpvOpSLessThan:
        return sa < sb;
    case SpvOpSLessThanEqual:
        return sa <= sb;
    case SpvOpSGreaterThan:
        return sa > sb;
    case SpvOpSGreaterThanEqual:
        return sa >= sb;
    default:
        return true;
    }
}

/* Does this kind of overflow (bhi_int_apply) make the comparison meaningless? */
static bool spoiled(const struct bhi_values *values, SpvOp op, uint32_t wraps) {
    if (values->no_wrap) {
        return wraps != 0; /* after an overflow the value can be anything */
    }
    switch (op) {
    case SpvOpIEqual:
    case SpvOpINotEqual:
        return wraps == 3;
    case SpvOpSLessThan:
    case SpvOpSLessThanEqual:
    case SpvOpSGreaterThan:
    case SpvOpSGreaterThanEqual:
        return (wraps & 2) != 0;
    default:
        return (wraps & 1) != 0;
    }
}

/* Is the bound too far for BHI_TRIPS_MAX steps? Then they need not be simulated. */
static bool far(SpvOp op, uint32_t bits, uint64_t value, uint64_t operand, uint64_t bound) {
    if (op != SpvOpIAdd && op != SpvOpISub) {
        return false;
    }
    const uint64_t up = bhi_int_truncate(bound - value, bits);
    const uint64_t down = bhi_int_truncate(value - bound, bits);
    const uint64_t back = bhi_int_truncate(0 - operand, bits);
    const uint64_t step = operand < back ? operand : back;
    return step == 0 || (up < down ? up : down) / step > BHI_TRIPS_MAX;
}

static uint64_t play(const struct bhi_values *values, const struct bhi_loop_exit *exit) {
    const struct bhi_induction *induction = &exit->induction;
    const uint32_t bits = bhi_int_bits(values->ir, induction->type);
    uint64_t value, operand, bound;
    uint32_t wrapped = 0;
    if (induction->initial == 0 || !bhi_value_of(values, induction->initial, &value) ||
        !bhi_value_of(values, induction->operand, &operand) ||
        !bhi_value_of(values, exit->bound, &bound) ||
        far(induction->op, bits, value, operand, bound)) {
        return BHI_TRIPS_UNKNOWN;
    }
    for (uint64_t trips = 1; trips <= BHI_TRIPS_MAX && *values->steps > 0; trips++) {
        --*values->steps;
        uint64_t next;
        uint32_t wraps;
        if (!bhi_int_apply(induction->op, bits, value, operand, &next, &wraps)) {
            return BHI_TRIPS_UNKNOWN;
        }
        if (exit->after) {
            wrapped |= wraps;
        }
        if (spoiled(values, exit->op, wrapped)) {
            return BHI_TRIPS_UNKNOWN;
        }
        if (!holds(exit->op, bits, exit->after ? next : value, bound)) {
            return trips;
        }
        wrapped |= wraps;
        value = next;
    }
    return BHI_TRIPS_UNKNOWN;
}

/* A loop on a conjunction ends as soon as one side is false. */
static uint64_t trips_of(const struct bhi_values *values, const struct bhi_loop *loop,
                         struct bhi_basic_block *block, uint32_t condition, bool goes_on_where,
                         unsigned depth) {
    const struct bhi_ins *ins = bhi_ir_definition(values->ir, condition);
    if (!ins || depth == 0) {
        return BHI_TRIPS_UNKNOWN;
    }
    const SpvOp op = bhi_ins_op(ins);
    if (op == SpvOpLogicalNot) {
        return trips_of(values, loop, block, ins->words[3], !goes_on_where, depth - 1);
    }
    if (op == (goes_on_where ? SpvOpLogicalAnd : SpvOpLogicalOr)) {
        const uint64_t a = trips_of(values, loop, block, ins->words[3], goes_on_where, depth - 1);
        return a != BHI_TRIPS_UNKNOWN
                   ? a
                   : trips_of(values, loop, block, ins->words[4], goes_on_where, depth - 1);
    }
    struct bhi_loop_exit exit;
    return bhi_exit_find(values, loop, block, condition, goes_on_where, &exit) ? play(values, &exit)
                                                                               : BHI_TRIPS_UNKNOWN;
}

uint64_t bhi_guard_trips(const struct bhi_values *values, const struct bhi_loop *loop) {
    /* Goes through the blocks that every iteration reaches. */
    for (struct bhi_basic_block *block = loop->latch;; block = block->dominator) {
        uint32_t condition;
        bool goes_on_where;
        if (bhi_loop_exit_branch(values->ir, loop, block, &condition, &goes_on_where)) {
            const uint64_t trips = trips_of(values, loop, block, condition, goes_on_where, 4);
            if (trips != BHI_TRIPS_UNKNOWN) {
                return trips;
            }
        }
        if (block == loop->header) {
            return BHI_TRIPS_UNKNOWN;
        }
    }
}

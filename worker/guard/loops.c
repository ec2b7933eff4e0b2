/* Decides the fate of each loop. Called functions are handled before their callers. */
#include "worker/guard/state.h"

#include "worker/guard/cfg.h"
#include "worker/guard/cut.h"
#include "worker/guard/induction.h"
#include "worker/guard/locals.h"
#include "worker/guard/lower.h"
#include "worker/guard/poll.h"
#include "worker/guard/values.h"

#include <bulkhead/bulkhead.h>

/* The most times that a loop runs. This is a security boundary: a loop that is wrongly taken for
 * short cannot be stopped. So there is no reasoning: the count is simulated with the kernel's own
 * arithmetic. If it leaves the range of its type, the number of trips is unknown. */

/* The most iterations of a loop that is left alone, with those of its inner loops. */
#define TRIPS_MAX     4096u
#define TRIPS_UNKNOWN UINT64_MAX

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

/* Is the bound too far for TRIPS_MAX steps? Then they need not be simulated. */
static bool far(SpvOp op, uint32_t bits, uint64_t value, uint64_t operand, uint64_t bound) {
    if (op != SpvOpIAdd && op != SpvOpISub) {
        return false;
    }
    const uint64_t up = bhi_int_truncate(bound - value, bits);
    const uint64_t down = bhi_int_truncate(value - bound, bits);
    const uint64_t back = bhi_int_truncate(0 - operand, bits);
    const uint64_t step = operand < back ? operand : back;
    return step == 0 || (up < down ? up : down) / step > TRIPS_MAX;
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
        return TRIPS_UNKNOWN;
    }
    for (uint64_t trips = 1; trips <= TRIPS_MAX && *values->steps > 0; trips++) {
        --*values->steps;
        uint64_t next;
        uint32_t wraps;
        if (!bhi_int_apply(induction->op, bits, value, operand, &next, &wraps)) {
            return TRIPS_UNKNOWN;
        }
        if (exit->after) {
            wrapped |= wraps;
        }
        if (spoiled(values, exit->op, wrapped)) {
            return TRIPS_UNKNOWN;
        }
        if (!holds(exit->op, bits, exit->after ? next : value, bound)) {
            return trips;
        }
        wrapped |= wraps;
        value = next;
    }
    return TRIPS_UNKNOWN;
}

/* A loop on a conjunction ends as soon as one side is false. */
static uint64_t trips_of(const struct bhi_values *values, const struct bhi_loop *loop,
                         struct bhi_basic_block *block, uint32_t condition, bool goes_on_where,
                         unsigned depth) {
    const struct bhi_ins *ins = bhi_ir_definition(values->ir, condition);
    if (!ins || depth == 0) {
        return TRIPS_UNKNOWN;
    }
    const SpvOp op = bhi_ins_op(ins);
    if (op == SpvOpLogicalNot) {
        return trips_of(values, loop, block, ins->words[3], !goes_on_where, depth - 1);
    }
    if (op == (goes_on_where ? SpvOpLogicalAnd : SpvOpLogicalOr)) {
        const uint64_t a = trips_of(values, loop, block, ins->words[3], goes_on_where, depth - 1);
        return a != TRIPS_UNKNOWN
                   ? a
                   : trips_of(values, loop, block, ins->words[4], goes_on_where, depth - 1);
    }
    struct bhi_loop_exit exit;
    return bhi_exit_find(values, loop, block, condition, goes_on_where, &exit) ? play(values, &exit)
                                                                               : TRIPS_UNKNOWN;
}

/* Returns the most times that |loop|'s header runs, or TRIPS_UNKNOWN if that is unknown or more
 * than TRIPS_MAX. |loop| must be marked. */
static uint64_t most_trips(const struct bhi_values *values, const struct bhi_loop *loop) {
    /* Goes through the blocks that every iteration reaches. */
    for (struct bhi_basic_block *block = loop->latch;; block = block->dominator) {
        uint32_t condition;
        bool goes_on_where;
        if (bhi_loop_exit_branch(values->ir, loop, block, &condition, &goes_on_where)) {
            const uint64_t trips = trips_of(values, loop, block, condition, goes_on_where, 4);
            if (trips != TRIPS_UNKNOWN) {
                return trips;
            }
        }
        if (block == loop->header) {
            return TRIPS_UNKNOWN;
        }
    }
}

/* A loop whose iterations pass an inner loop's poll needs no poll of its own, unless an iteration
 * does more than this besides. */
#define COVERED_WEIGHT       64u
#define COVERED_ACCESSES     16u
#define COVERED_INSTRUCTIONS 4096u

/* How much an access of a buffer weighs. If the buffer is host memory, one access takes a GPU
 * microseconds, and 4096 iterations with several take longer than the grace time. */
#define ACCESS_WEIGHT 16u

/* This many instructions of a body count as one more iteration. */
#define WEIGHED_INSTRUCTIONS 256u

/* The most that a loop which is left alone may do in all, together with what its function did
 * before. */
#define ALONE_ACCESSES     65536u
#define ALONE_INSTRUCTIONS (1u << 20)

/* Limit for all counts together: enough for 2,000 honest loops, and a bound for hostile modules. */
#define MAX_STEPS UINT64_C(2000000)

static uint64_t add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t multiply(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static struct bhi_ir_function *callee(const struct bhi_guard *g, const struct bhi_ins *call) {
    return call->words[3] < g->functions_bound ? g->functions[call->words[3]] : NULL;
}

static bool accesses_buffer(const struct bhi_ir *ir, const struct bhi_ins *ins) {
    const SpvOp op = bhi_ins_op(ins);
    uint32_t id;
    if (op == SpvOpLoad || (op >= SpvOpAtomicLoad && op <= SpvOpAtomicXor)) {
        id = ins->words[op == SpvOpAtomicStore ? 1 : 3];
    } else if (op == SpvOpStore) {
        id = ins->words[1];
    } else {
        return false;
    }
    const struct bhi_ins *pointer = bhi_ir_definition(ir, id);
    const struct bhi_ins *type = pointer ? bhi_ir_definition(ir, pointer->type) : NULL;
    return type && bhi_ins_op(type) == SpvOpTypePointer &&
           (type->words[2] == SpvStorageClassStorageBuffer ||
            type->words[2] == SpvStorageClassUniform);
}

/* Adds up what runs without a poll, for each loop or for the function itself: instructions,
 * accesses of buffers, and what called functions do. */
static void weigh(struct bhi_guard *g, struct bhi_ir_function *f) {
    for (uint32_t i = 0; i < f->reachable; i++) {
        struct bhi_loop *loop = f->rpo[i]->loop;
        uint64_t *accesses = loop ? &loop->accesses : &f->accesses;
        uint64_t *instructions = loop ? &loop->instructions : &f->instructions;
        for (const struct bhi_ins *ins = f->rpo[i]->body.first; ins; ins = ins->next) {
            *instructions = add(*instructions, 1);
            *accesses = add(*accesses, accesses_buffer(&g->ir, ins));
            if (bhi_ins_op(ins) != SpvOpFunctionCall) {
                continue;
            }
            const struct bhi_ir_function *called = callee(g, ins);
            const uint64_t cost = called ? called->cost : UINT64_MAX;
            const bool polls = !called || called->polls;
            *(loop ? &loop->weight : &f->cost) = add(loop ? loop->weight : f->cost, cost);
            *(loop ? &loop->calls : &f->polls) |= polls;
            *accesses = add(*accesses, called ? called->accesses : 0);
            *instructions = add(*instructions, called ? called->instructions : 0);
        }
    }
}

/* Does each iteration of |loop| pass an inner loop's poll that can return? */
static bool is_covered(const struct bhi_loop *loop) {
    for (const struct bhi_basic_block *b = loop->latch; b != loop->header; b = b->dominator) {
        const struct bhi_loop *inner = b->loop;
        if (inner->header == b && !inner->in_continue &&
            (inner->fate == BHI_LOOP_POLLED || inner->fate == BHI_LOOP_LOWERED)) {
            return true;
        }
    }
    return false;
}

/* Finds a block that every iteration reaches and that may leave the loop. */
static void find_exit(struct bhi_guard *g, struct bhi_loop *loop) {
    uint32_t condition;
    for (struct bhi_basic_block *b = loop->latch;; b = b->dominator) {
        if (bhi_loop_exit_branch(&g->ir, loop, b, &condition, &loop->goes_on_where)) {
            loop->leaves = b;
            return;
        }
        if (b == loop->header) {
            BHI_IR_REFUSE(
                &g->ir, BH_REASON_KERNEL_RULE,
                "the loop at %s is in the continue construct of another loop, from which the guard "
                "cannot return, and it has no exit that every iteration reaches; move it into the "
                "body of the other loop, or mark the kernel trusted",
                bhi_ir_describe(&g->ir, SpvOpLabel, loop->header->label));
        }
    }
}

/* May the loop be left alone? After cut.c has rewritten the function: only a loop whose rounds are
 * not counted. */
static bool is_short(const struct bhi_ir_function *f, const struct bhi_loop *loop) {
    const struct bhi_loop *parent = loop->parent;
    if (f->counted) {
        return loop->trips != TRIPS_UNKNOWN && loop->header->rounds == 0;
    }
    return loop->trips != TRIPS_UNKNOWN && multiply(loop->trips, loop->weight) <= TRIPS_MAX &&
           add(multiply(loop->trips, loop->accesses), parent ? 0 : f->accesses) <= ALONE_ACCESSES &&
           add(multiply(loop->trips, loop->instructions), parent ? 0 : f->instructions) <=
               ALONE_INSTRUCTIONS;
}

static void decide(struct bhi_guard *g, const struct bhi_values *values, struct bhi_ir_function *f,
                   uint32_t index) {
    struct bhi_loop *loop = f->loops[index];
    loop->blocks = bhi_loop_mark(loop);
    loop->weight = add(loop->weight, 1);
    loop->trips = loop->unbounded || loop->calls ? TRIPS_UNKNOWN : most_trips(values, loop);
    if (is_short(f, loop)) {
        struct bhi_loop *parent = loop->parent;
        uint64_t *cost = parent ? &parent->weight : &f->cost;
        uint64_t *accesses = parent ? &parent->accesses : &f->accesses;
        uint64_t *instructions = parent ? &parent->instructions : &f->instructions;
        loop->fate = BHI_LOOP_ALONE;
        *cost = add(*cost, loop->trips * loop->weight);
        *accesses = add(*accesses, loop->trips * loop->accesses);
        *instructions = add(*instructions, loop->trips * loop->instructions);
        return;
    }
    *(loop->parent ? &loop->parent->unbounded : &f->polls) = true;
    /* If rounds are counted, each loop polls itself. */
    if (loop->weight - 1 <= COVERED_WEIGHT && loop->accesses <= COVERED_ACCESSES &&
        loop->instructions <= COVERED_INSTRUCTIONS && !g->options->count_iterations &&
        !loop->in_continue && is_covered(loop)) {
        loop->fate = BHI_LOOP_COVERED;
        return;
    }
    if (loop->in_continue) {
        find_exit(g, loop);
        loop->parent->calls = true; /* the outer loop then polls itself, as it does after a call */
        loop->fate = BHI_LOOP_POLLED;
        return;
    }
    if (!loop->calls && bhi_guard_can_lower(g, values, loop)) {
        loop->fate = BHI_LOOP_LOWERED;
        return;
    }
    loop->fate = BHI_LOOP_POLLED;
}

/* Adds what a loop costs that no lane enters, for a driver that does not skip it (cut.c): as much as a
 * round of it. One that every round reaches is not entered only where the last lanes leave the loop
 * around it, and so once. */
static void weigh_untaken(struct bhi_ir_function *f, const struct bhi_loop *loop) {
    struct bhi_loop *parent = loop->parent;
    if (loop->fate == BHI_LOOP_ALONE) {
        return; /* decide() has added more */
    }
    uint64_t *cost = !parent                                      ? &f->cost
                     : bhi_dominates(loop->header, parent->latch) ? &parent->skipped
                                                                  : &parent->weight;
    *cost = add(*cost, add(loop->weight, loop->skipped));
    if (loop->fate == BHI_LOOP_LOWERED) { /* is two loops */
        *cost = add(*cost, 1);
    }
}

/* Decides inner loops first. All decisions come before the first edit. Edits do not change what the
 * analysis says about the old blocks. */
static void analyse(struct bhi_guard *g, struct bhi_ir_function *f) {
    bhi_cfg_build(&g->ir, f);
    bhi_locals_find(&g->ir, f);
    const struct bhi_values values = {
        .ir = &g->ir, .module = &g->module, .steps = &g->steps, .no_wrap = g->no_wrap};
    f->cost = f->accesses = f->instructions = 0;
    f->polls = false;
    weigh(g, f);
    for (uint32_t i = f->loop_count; i-- > 0;) {
        decide(g, &values, f, i);
        if (g->options->count_iterations) {
            weigh_untaken(f, f->loops[i]);
        }
    }
}

static void guard_function(struct bhi_guard *g, struct bhi_ir_function *f) {
    analyse(g, f);
    if (g->options->count_iterations && f->live && bhi_guard_cut_loops(g, f)) {
        f->counted = true;
        analyse(g, f);
    }
    for (uint32_t i = f->loop_count; i-- > 0;) {
        struct bhi_loop *loop = f->loops[i];
        loop->due = add(add(loop->weight, loop->instructions / WEIGHED_INSTRUCTIONS),
                        multiply(ACCESS_WEIGHT, loop->accesses));
        switch (loop->fate) {
        case BHI_LOOP_ALONE:
            g->out->left_alone++;
            break;
        case BHI_LOOP_COVERED:
            g->out->covered++;
            break;
        case BHI_LOOP_LOWERED:
            bhi_guard_lower(g, loop);
            g->out->lowered++;
            break;
        default:
            if (loop->leaves) {
                bhi_guard_poll_exit(g, loop);
            } else {
                bhi_guard_poll(g, loop);
            }
            g->out->polled++;
            break;
        }
    }
    g->out->loops += f->loop_count;
}

/* Returns the next call in |f| after |from| (NULL: the first) of a function that is not guarded
 * yet. */
static struct bhi_ins *next_call(const struct bhi_guard *g, const struct bhi_ir_function *f,
                                 struct bhi_ins *from) {
    struct bhi_basic_block *block = from ? from->block : f->first;
    struct bhi_ins *ins = from ? from->next : block ? block->body.first : NULL;
    while (block) {
        for (; ins; ins = ins->next) {
            const struct bhi_ir_function *called =
                bhi_ins_op(ins) == SpvOpFunctionCall ? callee(g, ins) : NULL;
            if (called && !called->guarded) {
                return ins;
            }
        }
        block = block->next;
        ins = block ? block->body.first : NULL;
    }
    return NULL;
}

/* Guards the functions that |f| calls, then |f|. It does not recurse: the module decides how long
 * call chains are. */
static void guard_with_callees(struct bhi_guard *g, struct bhi_ir_function *f) {
    f->caller = NULL;
    f->call = NULL;
    f->open = true;
    while (f) {
        f->call = next_call(g, f, f->call);
        if (f->call) {
            struct bhi_ir_function *called = callee(g, f->call);
            if (called->open) {
                BHI_IR_REFUSE(&g->ir, BH_REASON_KERNEL_RULE,
                              "%s calls itself; kernels cannot: make it a loop",
                              bhi_ir_describe(&g->ir, SpvOpFunction, called->id));
            }
            called->open = true;
            called->caller = f;
            called->call = NULL;
            f = called;
            continue;
        }
        guard_function(g, f);
        f->guarded = true;
        f->open = false;
        f = f->caller;
    }
}

/* Marks the functions that the entry point calls, directly or not. */
static void find_live(struct bhi_guard *g) {
    struct bhi_ir_function *work = g->entry;
    g->entry->live = true;
    while (work) {
        struct bhi_ir_function *f = work;
        work = f->caller;
        for (const struct bhi_basic_block *b = f->first; b; b = b->next) {
            for (const struct bhi_ins *ins = b->body.first; ins; ins = ins->next) {
                struct bhi_ir_function *called =
                    bhi_ins_op(ins) == SpvOpFunctionCall ? callee(g, ins) : NULL;
                if (called && !called->live) {
                    called->live = true;
                    called->caller = work;
                    work = called;
                }
            }
        }
    }
}

void bhi_guard_loops(struct bhi_guard *g) {
    struct bhi_ir *ir = &g->ir;
    g->functions_bound = ir->bound;
    g->functions = bhi_ir_alloc(ir, ir->bound * sizeof *g->functions);
    for (struct bhi_ir_function *f = ir->first; f; f = f->next) {
        g->functions[f->id] = f;
    }
    find_live(g);
    g->steps = MAX_STEPS;
    g->no_wrap = bhi_ir_decoration(ir, SpvDecorationNoSignedWrap, NULL) ||
                 bhi_ir_decoration(ir, SpvDecorationNoUnsignedWrap, NULL);
    for (struct bhi_ir_function *f = ir->first; f; f = f->next) {
        if (!f->guarded) {
            guard_with_callees(g, f);
        }
    }
}

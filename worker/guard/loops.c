/* Decides the fate of each loop. Called functions are handled before their callers. */
#include "worker/guard/loops.h"

#include "worker/guard/cfg.h"
#include "worker/guard/cut.h"
#include "worker/guard/induction.h"
#include "worker/guard/locals.h"
#include "worker/guard/lower.h"
#include "worker/guard/poll.h"
#include "worker/guard/state.h"
#include "worker/guard/trips.h"
#include "worker/guard/values.h"

#include <bulkhead/bulkhead.h>

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
            bhi_ir_refuse(
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
        return loop->trips != BHI_TRIPS_UNKNOWN && loop->header->rounds == 0;
    }
    return loop->trips != BHI_TRIPS_UNKNOWN &&
           multiply(loop->trips, loop->weight) <= BHI_TRIPS_MAX &&
           add(multiply(loop->trips, loop->accesses), parent ? 0 : f->accesses) <= ALONE_ACCESSES &&
           add(multiply(loop->trips, loop->instructions), parent ? 0 : f->instructions) <=
               ALONE_INSTRUCTIONS;
}

static void decide(struct bhi_guard *g, const struct bhi_values *values, struct bhi_ir_function *f,
                   uint32_t index) {
    struct bhi_loop *loop = f->loops[index];
    loop->blocks = bhi_loop_mark(loop);
    loop->weight = add(loop->weight, 1);
    loop->trips =
        loop->unbounded || loop->calls ? BHI_TRIPS_UNKNOWN : bhi_guard_trips(values, loop);
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
                bhi_ir_refuse(&g->ir, BH_REASON_KERNEL_RULE,
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
    for (const struct bhi_ins *ins = ir->sections[BHI_IR_DECORATIONS].first; ins; ins = ins->next) {
        g->no_wrap |=
            bhi_ins_op(ins) == SpvOpDecorate && (ins->words[2] == SpvDecorationNoSignedWrap ||
                                                 ins->words[2] == SpvDecorationNoUnsignedWrap);
    }
    for (struct bhi_ir_function *f = ir->first; f; f = f->next) {
        if (!f->guarded) {
            guard_with_callees(g, f);
        }
    }
}

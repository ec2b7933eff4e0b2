/* The guard's parts, in the order in which guard.c calls them. */
#ifndef BHI_WORKER_GUARD_INTERNAL_H
#define BHI_WORKER_GUARD_INTERNAL_H

#include "worker/guard/cfg.h"
#include "worker/guard/induction.h"
#include "worker/guard/types.h"

/* Increments of the counter between two looks at the word. */
#define BHI_GUARD_LIMIT 4096u
/* Iterations that a loop may have and be left alone, those of what is in it included. */
#define BHI_TRIPS_MAX     4096u
#define BHI_TRIPS_UNKNOWN UINT64_MAX

struct bhi_guard {
    struct bhi_ir ir;
    const struct bhi_guard_options *options;
    struct bhi_guarded *out;
    struct bhi_ir_function *entry;
    struct bhi_ir_function **functions; /* by id */
    uint32_t functions_bound;
    uint64_t steps;           /* bhi_values */
    bool no_wrap;             /* bhi_values */
    struct bhi_module module; /* the words as they came, for the values of constants */
    /* Ids of what was added. */
    uint32_t type_uint, type_bool;
    uint32_t buffer;                     /* the storage buffer's variable */
    uint32_t word_pointer;               /* type of a pointer into it */
    uint32_t counter;                    /* uint, Private: iterations since the last look */
    uint32_t cells, cell_pointer, group; /* cut.c's variables; 0: not needed so far */
    uint32_t zero, limit;                /* constants */
};

/* words.c: the buffer, the counter, and the code that looks at them. */
void bhi_guard_add_words(struct bhi_guard *g);
/* Appends to |block|: a pointer to a member of struct bhi_guard_words; its value. */
enum { BHI_WORD_ABORT, BHI_WORD_FLAGS, BHI_WORD_ALIVE, BHI_WORD_GROUPS };
uint32_t bhi_guard_word(struct bhi_guard *g, struct bhi_basic_block *block, uint32_t member);
uint32_t bhi_guard_load(struct bhi_guard *g, struct bhi_basic_block *block, uint32_t member);
/* Appends to |block|: is the word set? Returns the id of a bool. */
uint32_t bhi_guard_load_abort(struct bhi_guard *g, struct bhi_basic_block *block);
/* Makes |block|, of |function|, one that returns. */
void bhi_guard_return(struct bhi_guard *g, const struct bhi_ir_function *function,
                      struct bhi_basic_block *block);
/* Appends to |block|: counter += |amount| (an id). Returns the id of a bool: time to look. */
uint32_t bhi_guard_count(struct bhi_guard *g, struct bhi_basic_block *block, uint32_t amount);

/* The entry point for compute lists |variable| in its interface; all of them do. */
void bhi_guard_add_to_interface(struct bhi_guard *g, uint32_t variable);
void bhi_guard_add_to_compute(struct bhi_guard *g, uint32_t variable);

/* entry.c: returns at once when the word is set. */
void bhi_guard_entry_check(struct bhi_guard *g);
/* The first instruction of a function's first block that is no variable, nor a line before one. */
struct bhi_ins *bhi_guard_after_variables(const struct bhi_basic_block *block);

/* clamp.c: indices into memory that is not a buffer's. */
void bhi_guard_clamp(struct bhi_guard *g);

/* grid.c: how many workgroups there are, of a grid that runs in parts. */
void bhi_guard_grid(struct bhi_guard *g);

/* zero.c: workgroup memory begins as zero. */
void bhi_guard_zero(struct bhi_guard *g);

/* purity.c */
bool bhi_ins_is_arithmetic(const struct bhi_ir *ir, const struct bhi_ins *ins);
/* That, or a load of something: may run twice. */
bool bhi_ins_is_repeatable(const struct bhi_ir *ir, const struct bhi_ins *ins);
/* Does |pointer| point to what no invocation can write? */
bool bhi_pointer_is_constant(const struct bhi_ir *ir, uint32_t pointer);

/* poll.c: a poll in the loop's header. */
void bhi_guard_poll(struct bhi_guard *g, struct bhi_loop *loop);
/* The same in the exit of a loop in a continue construct. */
void bhi_guard_poll_exit(struct bhi_guard *g, struct bhi_loop *loop);
/* What an iteration adds to the counter: the id of a constant. */
uint32_t bhi_guard_weight(struct bhi_guard *g, const struct bhi_loop *loop);
/* Ends |from|: if |due|, look at the word: set, |aborted| returns; else |reset| clears the counter.
 * Then |to|. */
void bhi_guard_look(struct bhi_guard *g, const struct bhi_loop *loop, struct bhi_basic_block *from,
                    uint32_t due, struct bhi_basic_block *look, struct bhi_basic_block *aborted,
                    struct bhi_basic_block *reset, struct bhi_basic_block *to);

/* lower.c. |loop| is marked; if it can, loop->exit says how. */
bool bhi_guard_can_lower(struct bhi_guard *g, const struct bhi_values *values,
                         struct bhi_loop *loop);
void bhi_guard_lower(struct bhi_guard *g, struct bhi_loop *loop);
/* Of an OpLoopMerge: what asks for unrolling and peeling. Mesa would unroll a chunk 1024 times. */
void bhi_guard_drop_hints(struct bhi_guard *g, struct bhi_ins *merge);

/* trips.c: how often |loop|'s header runs, at most; BHI_TRIPS_UNKNOWN: not known, or more
 * than BHI_TRIPS_MAX times. |loop| is marked. */
uint64_t bhi_guard_trips(const struct bhi_values *values, const struct bhi_loop *loop);

/* cut.c: counts what the driver counts. The fates of |function|'s loops are known, and
 * nothing is rewritten yet; its control flow must be built again where this returns true. */
bool bhi_guard_cut_loops(struct bhi_guard *g, struct bhi_ir_function *function);
/* Before |at|, at the beginning of the kernel. */
void bhi_guard_cut_start(struct bhi_guard *g, struct bhi_basic_block *block, struct bhi_ins *at);
/* Appends to |block|, where |loop| looks at the word: has it counted too many? Returns the block
 * that goes on. */
struct bhi_basic_block *bhi_guard_cut_look(struct bhi_guard *g, const struct bhi_loop *loop,
                                           struct bhi_basic_block *block);

/* loops.c: decides for each loop, and does it. */
void bhi_guard_loops(struct bhi_guard *g);

#endif

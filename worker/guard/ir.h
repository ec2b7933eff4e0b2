/* A SPIR-V module that can be edited: sections and functions, as lists of instructions. The module
 * owns all memory and frees it at its end. If memory runs out or the module is refused, the code
 * jumps (longjmp) to guard.c, which made the module; so no edit has an error path of its own. */
#ifndef BHI_WORKER_GUARD_IR_H
#define BHI_WORKER_GUARD_IR_H

#include "worker/backend.h"
#include "worker/error.h"

#include <setjmp.h>
#include <spirv/unified1/spirv.h>

struct bhi_ins {
    struct bhi_ins *prev, *next;
    struct bhi_basic_block *block; /* NULL: not in a block */
    uint32_t *words;               /* words[0]: length and opcode, as in the module */
    uint32_t type, result;         /* 0: none */
    struct bhi_local *local;       /* of an OpVariable in a function, see locals.h */
    uint64_t ids; /* bit n: words[n] is an id; the first 64 words of original instructions */
};

struct bhi_ins_list {
    struct bhi_ins *first, *last;
};

struct bhi_loop; /* cfg.h */

struct bhi_basic_block {
    struct bhi_basic_block *prev, *next;
    struct bhi_ir_function *function;
    uint32_t label;
    struct bhi_ins_list before; /* OpLine and the like between the block before and OpLabel */
    struct bhi_ins_list body;   /* without OpLabel, with the terminator */
    /* bhi_cfg_build() fills this in; edits do not update it. Later blocks have order 0. */
    uint32_t order; /* 1, 2, …: reverse post-order; 0: unreachable */
    struct bhi_basic_block *dominator;
    uint32_t enters, leaves; /* numbers from a walk through the tree of dominators */
    struct bhi_basic_block **preds;
    uint32_t pred_count;
    struct bhi_loop *loop;       /* innermost */
    const struct bhi_loop *mark; /* bhi_loop_mark() */
    struct bhi_basic_block *next_marked;
    uint32_t rounds; /* cut.c, for a header: id of the number of rounds; 0: none */
};

struct bhi_ir_function {
    struct bhi_ir_function *next;
    uint32_t id;
    struct bhi_ins_list before; /* between the function before and OpFunction */
    struct bhi_ins_list head;   /* OpFunction and OpFunctionParameters */
    struct bhi_basic_block *first, *last;
    struct bhi_ins_list end;      /* what precedes OpFunctionEnd */
    struct bhi_basic_block **rpo; /* bhi_cfg_build(): reachable ones, reverse post-order */
    uint32_t reachable;
    struct bhi_basic_block **unreachable; /* the others */
    uint32_t unreachable_count;
    struct bhi_loop **loops; /* outer before inner */
    uint32_t loop_count;
    /* loops.c */
    uint64_t cost;                   /* the most iterations in a call, of loops without a poll */
    uint64_t accesses, instructions; /* what a call does without a poll: of buffers, of all kinds */
    bool polls;                      /* it has loops that poll, or calls a function that has */
    bool live;                       /* reached from the entry point */
    bool counted;                    /* cut.c has rewritten it */
    bool guarded;
    bool open; /* it, or a function that it calls, is being guarded */
    struct bhi_ir_function *caller;
    struct bhi_ins *call;
};

/* In the order of a module. */
enum bhi_ir_section {
    BHI_IR_CAPABILITIES,
    BHI_IR_EXTENSIONS,
    BHI_IR_IMPORTS,
    BHI_IR_MEMORY_MODEL,
    BHI_IR_ENTRY_POINTS,
    BHI_IR_MODES,
    BHI_IR_SOURCES,
    BHI_IR_NAMES,
    BHI_IR_PROCESSED,
    BHI_IR_DECORATIONS,
    BHI_IR_GLOBALS, /* types, constants, variables */
    BHI_IR_SECTIONS
};

struct bhi_ir {
    uint32_t version, generator, bound;
    struct bhi_ins_list sections[BHI_IR_SECTIONS];
    struct bhi_ir_function *first, *last;
    struct bhi_ins_list tail;        /* after the last function */
    struct bhi_ins **definitions;    /* by id, NULL: none */
    struct bhi_basic_block **blocks; /* by id of the label */
    uint32_t capacity;               /* of both */
    struct {
        uint32_t type, value, id;
    } constants[64]; /* found or made last; the place depends on type and value */
    struct bhi_ir_chunk *chunks;
    struct bhi_error *error;
    jmp_buf escape;
};

/* The caller sets ir->error and ir->escape, and all else to zero. */
void bhi_ir_parse(struct bhi_ir *ir, const uint32_t *code, size_t words);
void bhi_ir_fini(struct bhi_ir *ir);
/* Returns the module as words, which the caller frees. */
uint32_t *bhi_ir_words(struct bhi_ir *ir, size_t *out_words);

void *bhi_ir_alloc(struct bhi_ir *ir, size_t bytes); /* zeroed */
/* Jumps out of the edit with the error that is set. */
_Noreturn void bhi_ir_escape(struct bhi_ir *ir);
#define BHI_IR_REFUSE(ir, reason, ...)                                                             \
    (BHI_ERROR_SAY((ir)->error, reason, __VA_ARGS__), bhi_ir_escape(ir))
/* Returns "OpLoopMerge %12 ("name")" for refusals; the name is the id's OpName. The module owns the
 * text. */
const char *bhi_ir_describe(struct bhi_ir *ir, SpvOp op, uint32_t id);

static inline SpvOp bhi_ins_op(const struct bhi_ins *ins) {
    return (SpvOp)(ins->words[0] & SpvOpCodeMask);
}
static inline uint32_t bhi_ins_length(const struct bhi_ins *ins) {
    return ins->words[0] >> SpvWordCountShift;
}
/* Returns the instruction that defines |id|; NULL if none does, or it is a label. */
static inline struct bhi_ins *bhi_ir_definition(const struct bhi_ir *ir, uint32_t id) {
    return id < ir->bound ? ir->definitions[id] : NULL;
}
static inline struct bhi_basic_block *bhi_ir_block(const struct bhi_ir *ir, uint32_t label) {
    return label < ir->bound ? ir->blocks[label] : NULL;
}

/* -- making instructions --------------------------------------------------------------------- */

uint32_t bhi_ir_id(struct bhi_ir *ir);
/* The new instruction is in no list yet. |type| and |result| are 0 if it has none; they come before
 * the operands. */
struct bhi_ins *bhi_ins_new(struct bhi_ir *ir, SpvOp op, uint32_t type, uint32_t result,
                            const uint32_t *operands, size_t count);
/* Replaces everything after type and result by |operands|. */
void bhi_ins_set(struct bhi_ir *ir, struct bhi_ins *ins, const uint32_t *operands, size_t count);
void bhi_ins_append(struct bhi_ins_list *list, struct bhi_ins *ins);
/* |at| NULL inserts at the end. */
void bhi_ins_insert(struct bhi_ins_list *list, struct bhi_ins *at, struct bhi_ins *ins);
void bhi_ins_remove(struct bhi_ins_list *list, struct bhi_ins *ins);

#define BHI_OPERANDS(...)                                                                          \
    (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)

/* Append an instruction to a block: without a result, and with one. The second returns its id. */
void bhi_block_do(struct bhi_ir *ir, struct bhi_basic_block *block, SpvOp op,
                  const uint32_t *operands, size_t count);
uint32_t bhi_block_value(struct bhi_ir *ir, struct bhi_basic_block *block, SpvOp op, uint32_t type,
                         const uint32_t *operands, size_t count);
/* The same, but before |at| in |block|. */
void bhi_block_do_before(struct bhi_ir *ir, struct bhi_basic_block *block, struct bhi_ins *at,
                         SpvOp op, const uint32_t *operands, size_t count);
uint32_t bhi_block_value_before(struct bhi_ir *ir, struct bhi_basic_block *block,
                                struct bhi_ins *at, SpvOp op, uint32_t type,
                                const uint32_t *operands, size_t count);

/* -- blocks ---------------------------------------------------------------------------------- */

/* Makes an empty block after |at|. */
struct bhi_basic_block *bhi_block_new(struct bhi_ir *ir, struct bhi_basic_block *at);
/* Moves |from| and all that follow it to the end of |to|. */
void bhi_block_move_tail(struct bhi_basic_block *block, struct bhi_ins *from,
                         struct bhi_basic_block *to);
static inline struct bhi_ins *bhi_block_terminator(const struct bhi_basic_block *block) {
    return block->body.last;
}
/* Returns the OpLoopMerge or OpSelectionMerge, or NULL. */
struct bhi_ins *bhi_block_merge(const struct bhi_basic_block *block);
/* Returns the first instruction that is neither an OpPhi nor a line before one. */
struct bhi_ins *bhi_block_after_phis(const struct bhi_basic_block *block);
/* The same for OpVariables, in a function's first block. */
struct bhi_ins *bhi_block_after_variables(const struct bhi_basic_block *block);
/* Lists the targets of the terminator, one entry for each edge, so a target may come twice. The
 * module owns the array. */
uint32_t bhi_block_successors(struct bhi_ir *ir, const struct bhi_basic_block *block,
                              const uint32_t **out_labels);
/* Redirects the edges from |block| to |from| so that they lead to |to|. */
void bhi_block_retarget(struct bhi_ir *ir, struct bhi_basic_block *block, uint32_t from,
                        uint32_t to);
/* |phi| belongs to a loop's header. The values that come from blocks other than |latch| go into a
 * new phi at the end of |before|; |phi| then gets that one from |before|. Returns the new phi. */
struct bhi_ins *bhi_phi_split(struct bhi_ir *ir, struct bhi_ins *phi,
                              struct bhi_basic_block *before, uint32_t latch);
/* In the phis of |block|, renames the predecessor |from| to |to|. */
void bhi_block_rename_pred(struct bhi_basic_block *block, uint32_t from, uint32_t to);
/* |block| has the terminator that |from| had: renames the predecessor in its successors' phis. */
void bhi_block_took_over(struct bhi_ir *ir, struct bhi_basic_block *block, uint32_t from);

/* -- globals: what there is, else made ------------------------------------------------------- */

/* Returns the first global with these operands. */
uint32_t bhi_ir_shared(struct bhi_ir *ir, SpvOp op, uint32_t type, const uint32_t *operands,
                       size_t count);
uint32_t bhi_ir_type_pointer(struct bhi_ir *ir, SpvStorageClass class, uint32_t type);
/* For types of 32 bits. */
uint32_t bhi_ir_constant(struct bhi_ir *ir, uint32_t type, uint32_t value);
uint32_t bhi_ir_null(struct bhi_ir *ir, uint32_t type);
/* Appends to the globals. Returns the result id. */
uint32_t bhi_ir_global(struct bhi_ir *ir, SpvOp op, uint32_t type, const uint32_t *operands,
                       size_t count);
/* Returns the next OpDecorate with |decoration| after |after| (NULL: the first), or NULL. */
const struct bhi_ins *bhi_ir_decoration(const struct bhi_ir *ir, SpvDecoration decoration,
                                        const struct bhi_ins *after);
bool bhi_ir_is_decorated(const struct bhi_ir *ir, uint32_t id, SpvDecoration decoration);
/* Returns the lowest number that is neither the value of such a decoration nor in |others|. */
uint32_t bhi_ir_free_number(struct bhi_ir *ir, SpvDecoration decoration, const uint32_t *others,
                            uint32_t other_count);
/* Returns the last variable of the builtin that has the type |pointer| (0: any). If there is none,
 * makes one of uint, called |name|. */
uint32_t bhi_ir_builtin(struct bhi_ir *ir, SpvBuiltIn builtin, uint32_t pointer, uint32_t type_uint,
                        const char *name);
/* Appends an OpDecorate or OpMemberDecorate. */
void bhi_ir_decorate(struct bhi_ir *ir, SpvOp op, const uint32_t *operands, size_t count);
void bhi_ir_set_name(struct bhi_ir *ir, uint32_t id, const char *name);
void bhi_ir_extension(struct bhi_ir *ir, const char *name);          /* unless it is there */
void bhi_ir_capability(struct bhi_ir *ir, SpvCapability capability); /* unless it is there */
bool bhi_ir_has_capability(const struct bhi_ir *ir, SpvCapability capability);

#endif

#include "worker/guard/ir.h"

#include "worker/error.h"
#include "worker/spirv/tools.h"

#include <bulkhead/bulkhead.h>

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES ((size_t)64 << 10)

struct bhi_ir_chunk {
    struct bhi_ir_chunk *next;
    size_t used, size;
    alignas(16) unsigned char bytes[];
};

/* Returns NULL if there is no memory. */
static void *try_alloc(struct bhi_ir *ir, size_t bytes) {
    bytes = (bytes + 15) & ~(size_t)15;
    struct bhi_ir_chunk *chunk = ir->chunks;
    if (!chunk || chunk->size - chunk->used < bytes) {
        const size_t size = bytes > CHUNK_BYTES / 4 ? bytes : CHUNK_BYTES;
        chunk = calloc(1, sizeof *chunk + size);
        if (!chunk) {
            return NULL;
        }
        chunk->size = size;
        if (size == bytes && ir->chunks) { /* it is full at once: keep the chunk in use in front */
            chunk->next = ir->chunks->next;
            ir->chunks->next = chunk;
        } else {
            chunk->next = ir->chunks;
            ir->chunks = chunk;
        }
    }
    void *at = &chunk->bytes[chunk->used];
    chunk->used += bytes;
    return at;
}

_Noreturn void bhi_ir_escape(struct bhi_ir *ir) {
    longjmp(ir->escape, 1);
}

_Noreturn static void starve(struct bhi_ir *ir) {
    BHI_IR_REFUSE(ir, BH_REASON_HOST_MEMORY, "the guard");
}

void *bhi_ir_alloc(struct bhi_ir *ir, size_t bytes) {
    void *at = try_alloc(ir, bytes);
    if (!at) {
        starve(ir);
    }
    return at;
}

void bhi_ir_fini(struct bhi_ir *ir) {
    while (ir->chunks) {
        struct bhi_ir_chunk *chunk = ir->chunks;
        ir->chunks = chunk->next;
        free(chunk);
    }
}

static enum bhi_ir_section section_of(SpvOp op) {
    switch (op) {
    case SpvOpCapability:
        return BHI_IR_CAPABILITIES;
    case SpvOpExtension:
        return BHI_IR_EXTENSIONS;
    case SpvOpExtInstImport:
        return BHI_IR_IMPORTS;
    case SpvOpMemoryModel:
        return BHI_IR_MEMORY_MODEL;
    case SpvOpEntryPoint:
        return BHI_IR_ENTRY_POINTS;
    case SpvOpExecutionMode:
    case SpvOpExecutionModeId:
        return BHI_IR_MODES;
    case SpvOpString:
    case SpvOpSource:
    case SpvOpSourceExtension:
    case SpvOpSourceContinued:
        return BHI_IR_SOURCES;
    case SpvOpName:
    case SpvOpMemberName:
        return BHI_IR_NAMES;
    case SpvOpModuleProcessed:
        return BHI_IR_PROCESSED;
    case SpvOpDecorate:
    case SpvOpMemberDecorate:
    case SpvOpDecorationGroup:
    case SpvOpGroupDecorate:
    case SpvOpGroupMemberDecorate:
    case SpvOpDecorateId:
    case SpvOpDecorateString:
    case SpvOpMemberDecorateString:
        return BHI_IR_DECORATIONS;
    default:
        return BHI_IR_GLOBALS;
    }
}

void bhi_ins_insert(struct bhi_ins_list *list, struct bhi_ins *at, struct bhi_ins *ins) {
    ins->next = at;
    ins->prev = at ? at->prev : list->last;
    *(ins->prev ? &ins->prev->next : &list->first) = ins;
    *(at ? &at->prev : &list->last) = ins;
}

void bhi_ins_append(struct bhi_ins_list *list, struct bhi_ins *ins) {
    bhi_ins_insert(list, NULL, ins);
}

/* Used inside spvBinaryParse(), which is C++: a callback must return, and not longjmp. */
struct parser {
    struct bhi_ir *ir;
    struct bhi_ir_function *function;
    struct bhi_basic_block *block;
    struct bhi_ins_list between; /* what belongs before the next label or function */
};

static bool is_terminator(SpvOp op) {
    switch (op) {
    case SpvOpBranch:
    case SpvOpBranchConditional:
    case SpvOpSwitch:
    case SpvOpReturn:
    case SpvOpReturnValue:
    case SpvOpKill:
    case SpvOpUnreachable:
    case SpvOpTerminateInvocation:
    case SpvOpIgnoreIntersectionKHR:
    case SpvOpTerminateRayKHR:
    case SpvOpEmitMeshTasksEXT:
        return true;
    default:
        return false;
    }
}

static struct bhi_ins *copy_parsed(struct bhi_ir *ir, const spv_parsed_instruction_t *parsed) {
    struct bhi_ins *ins = try_alloc(ir, sizeof *ins);
    uint32_t *words = try_alloc(ir, parsed->num_words * sizeof *words);
    if (!ins || !words) {
        return NULL;
    }
    memcpy(words, parsed->words, parsed->num_words * sizeof *words);
    ins->words = words;
    ins->type = parsed->type_id;
    ins->result = parsed->result_id;
    for (uint16_t i = 0; i < parsed->num_operands; i++) {
        const spv_parsed_operand_t *operand = &parsed->operands[i];
        if ((operand->type == SPV_OPERAND_TYPE_ID || operand->type == SPV_OPERAND_TYPE_SCOPE_ID ||
             operand->type == SPV_OPERAND_TYPE_MEMORY_SEMANTICS_ID) &&
            operand->offset < 64) {
            ins->ids |= UINT64_C(1) << operand->offset;
        }
    }
    if (ins->result != 0) {
        ir->definitions[ins->result] = ins;
    }
    return ins;
}

static spv_result_t open_function(struct parser *p, struct bhi_ins *ins) {
    struct bhi_ir_function *function = try_alloc(p->ir, sizeof *function);
    if (!function) {
        return SPV_ERROR_OUT_OF_MEMORY;
    }
    function->id = ins->result;
    function->before = p->between;
    p->between = (struct bhi_ins_list){0};
    *(p->ir->last ? &p->ir->last->next : &p->ir->first) = function;
    p->ir->last = function;
    p->function = function;
    bhi_ins_append(&function->head, ins);
    return SPV_SUCCESS;
}

static spv_result_t open_block(struct parser *p, uint32_t label) {
    struct bhi_basic_block *block = try_alloc(p->ir, sizeof *block);
    if (!block || !p->function) {
        return !block ? SPV_ERROR_OUT_OF_MEMORY : SPV_ERROR_INVALID_BINARY;
    }
    block->label = label;
    block->function = p->function;
    block->before = p->between;
    p->between = (struct bhi_ins_list){0};
    block->prev = p->function->last;
    *(block->prev ? &block->prev->next : &p->function->first) = block;
    p->function->last = block;
    p->ir->blocks[label] = block;
    p->ir->definitions[label] = NULL;
    p->block = block;
    return SPV_SUCCESS;
}

static spv_result_t take_instruction(void *user, const spv_parsed_instruction_t *parsed) {
    struct parser *p = user;
    const SpvOp op = (SpvOp)parsed->opcode;
    if (parsed->result_id >= p->ir->bound) {
        return SPV_ERROR_INVALID_ID;
    }
    if (op == SpvOpLabel) {
        return open_block(p, parsed->result_id);
    }
    if (op == SpvOpFunctionEnd) {
        if (!p->function) {
            return SPV_ERROR_INVALID_BINARY;
        }
        p->function->end = p->between;
        p->between = (struct bhi_ins_list){0};
        p->function = NULL;
        p->block = NULL;
        return SPV_SUCCESS;
    }
    struct bhi_ins *ins = copy_parsed(p->ir, parsed);
    if (!ins) {
        return SPV_ERROR_OUT_OF_MEMORY;
    }
    if (op == SpvOpFunction) {
        return open_function(p, ins);
    }
    if (p->block) {
        ins->block = p->block;
        bhi_ins_append(&p->block->body, ins);
        if (is_terminator(op)) {
            p->block = NULL;
        }
    } else if (p->function && !p->function->first) {
        bhi_ins_append(&p->function->head, ins);
    } else if (p->ir->first) {
        bhi_ins_append(&p->between, ins);
    } else {
        bhi_ins_append(&p->ir->sections[section_of(op)], ins);
    }
    return SPV_SUCCESS;
}

static spv_result_t take_header(void *user, spv_endianness_t endian, uint32_t magic,
                                uint32_t version, uint32_t generator, uint32_t id_bound,
                                uint32_t reserved) {
    struct parser *p = user;
    (void)endian;
    (void)magic;
    (void)reserved;
    p->ir->version = version;
    p->ir->generator = generator;
    p->ir->bound = id_bound;
    p->ir->capacity = id_bound + id_bound / 4 + 256;
    p->ir->definitions = try_alloc(p->ir, p->ir->capacity * sizeof *p->ir->definitions);
    p->ir->blocks = try_alloc(p->ir, p->ir->capacity * sizeof *p->ir->blocks);
    return p->ir->definitions && p->ir->blocks ? SPV_SUCCESS : SPV_ERROR_OUT_OF_MEMORY;
}

void bhi_ir_parse(struct bhi_ir *ir, const uint32_t *code, size_t words) {
    spv_context context = spvContextCreate(SPV_ENV_UNIVERSAL_1_6);
    if (!context) {
        starve(ir);
    }
    struct parser parser = {.ir = ir};
    spv_diagnostic diagnostic = NULL;
    spv_result_t result =
        spvBinaryParse(context, &parser, code, words, take_header, take_instruction, &diagnostic);
    char why[BHI_REASON_TEXT];
    snprintf(why, sizeof why, "%s", diagnostic ? diagnostic->error : "it is not whole");
    spvDiagnosticDestroy(diagnostic);
    spvContextDestroy(context);
    if (result == SPV_ERROR_OUT_OF_MEMORY) {
        starve(ir);
    }
    if (result != SPV_SUCCESS || parser.function) {
        BHI_IR_REFUSE(ir, BH_REASON_KERNEL_RULE, "the guard cannot read the module: %s", why);
    }
    ir->tail = parser.between;
}

/* -- writing --------------------------------------------------------------------------------- */

struct writer {
    uint32_t *words; /* NULL: only counts */
    size_t count;
};

static void put(struct writer *w, const uint32_t *words, size_t count) {
    if (w->words) {
        memcpy(&w->words[w->count], words, count * sizeof *words);
    }
    w->count += count;
}

static void put_list(struct writer *w, const struct bhi_ins_list *list) {
    for (const struct bhi_ins *ins = list->first; ins; ins = ins->next) {
        put(w, ins->words, bhi_ins_length(ins));
    }
}

static void put_module(struct writer *w, const struct bhi_ir *ir) {
    static const uint32_t end[1] = {1u << SpvWordCountShift | SpvOpFunctionEnd};
    const uint32_t header[5] = {SpvMagicNumber, ir->version, ir->generator, ir->bound, 0};
    put(w, header, 5);
    for (int i = 0; i < BHI_IR_SECTIONS; i++) {
        put_list(w, &ir->sections[i]);
    }
    for (const struct bhi_ir_function *f = ir->first; f; f = f->next) {
        put_list(w, &f->before);
        put_list(w, &f->head);
        for (const struct bhi_basic_block *b = f->first; b; b = b->next) {
            const uint32_t label[2] = {2u << SpvWordCountShift | SpvOpLabel, b->label};
            put_list(w, &b->before);
            put(w, label, 2);
            put_list(w, &b->body);
        }
        put_list(w, &f->end);
        put(w, end, 1);
    }
    put_list(w, &ir->tail);
}

uint32_t *bhi_ir_words(struct bhi_ir *ir, size_t *out_words) {
    struct writer w = {0};
    put_module(&w, ir);
    w.words = malloc(w.count * sizeof *w.words);
    if (!w.words) {
        starve(ir);
    }
    w.count = 0;
    put_module(&w, ir);
    *out_words = w.count;
    return w.words;
}

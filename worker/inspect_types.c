#include "inspect_types.h"

#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 8u

static SpvOp opcode(const uint32_t *at) {
    return (SpvOp)(at[0] & SpvOpCodeMask);
}

static size_t length_of(const uint32_t *at) {
    return at[0] >> SpvWordCountShift;
}

const uint32_t *bhi_inspect_definition(const struct bhi_module *module, uint32_t id) {
    return id < module->bound && module->definitions[id] != 0
               ? &module->code[module->definitions[id]]
               : NULL;
}

/* The next instruction before the functions; NULL at their beginning. From NULL on. */
static const uint32_t *next(const struct bhi_module *module, const uint32_t *at) {
    at = at == NULL ? module->code + 5 : at + length_of(at);
    return at < module->code + module->words && opcode(at) != SpvOpFunction ? at : NULL;
}

void bhi_inspect_name(const struct bhi_module *module, uint32_t id, char out[BHI_INSPECT_NAME]) {
    out[0] = '\0';
    for (const uint32_t *at = NULL; (at = next(module, at)) != NULL;) {
        if (opcode(at) == SpvOpName && at[1] == id) {
            const char *name = (const char *)&at[2];
            bhi_text_sanitise(out, BHI_INSPECT_NAME, name, strlen(name));
            return;
        }
    }
}

bool bhi_inspect_decoration(const struct bhi_module *module, uint32_t id, uint32_t decoration,
                            uint32_t *out) {
    for (const uint32_t *at = NULL; (at = next(module, at)) != NULL;) {
        if (opcode(at) == SpvOpDecorate && at[1] == id && at[2] == decoration &&
            length_of(at) > 3) {
            *out = at[3];
            return true;
        }
    }
    return false;
}

uint32_t bhi_inspect_pointee(const struct bhi_module *module, const uint32_t *variable) {
    const uint32_t *pointer = bhi_inspect_definition(module, variable[1]);
    return pointer != NULL && opcode(pointer) == SpvOpTypePointer ? pointer[3] : 0;
}

/* -- types ------------------------------------------------------------------------------------ */

struct text {
    char *out;
    size_t used;
    bool full;
};

static void __attribute__((format(printf, 2, 3))) put(struct text *text, const char *format, ...) {
    if (text->full) {
        return;
    }
    const size_t room = BHI_INSPECT_NAME - text->used;
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text->out + text->used, room, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= room) {
        text->full = true;
        strcpy(text->out + BHI_INSPECT_NAME - 4, "...");
    } else {
        text->used += (size_t)length;
    }
}

static void put_type(struct text *text, const struct bhi_module *module, uint32_t type,
                     unsigned depth) {
    const uint32_t *at = bhi_inspect_definition(module, type);
    if (at == NULL || depth > MAX_DEPTH) {
        put(text, "?");
        return;
    }
    uint64_t count;
    switch (opcode(at)) {
    case SpvOpTypeBool:
        put(text, "bool");
        break;
    case SpvOpTypeInt:
        put(text, "%c%u", at[3] != 0 ? 'i' : 'u', at[2]);
        break;
    case SpvOpTypeFloat:
        put(text, "f%u", at[2]);
        break;
    case SpvOpTypeVector:
    case SpvOpTypeMatrix:
        put_type(text, module, at[2], depth + 1);
        put(text, "x%u", at[3]);
        break;
    case SpvOpTypeRuntimeArray:
        put_type(text, module, at[2], depth + 1);
        put(text, "[]");
        break;
    case SpvOpTypeArray:
        put_type(text, module, at[2], depth + 1);
        if (bhi_module_constant(module, at[3], &count)) {
            put(text, "[%llu]", (unsigned long long)count);
        } else {
            put(text, "[?]");
        }
        break;
    case SpvOpTypeStruct:
        put(text, "{");
        for (size_t i = 2; i < length_of(at) && !text->full; i++) {
            put(text, i == 2 ? "" : ", ");
            put_type(text, module, at[i], depth + 1);
        }
        put(text, "}");
        break;
    default:
        put(text, "?");
        break;
    }
}

void bhi_inspect_type(const struct bhi_module *module, uint32_t type, char out[BHI_INSPECT_NAME]) {
    struct text text = {.out = out};
    out[0] = '\0';
    /* Of a block with one member, which is how GLSL has arrays, that member is the type. */
    const uint32_t *at = bhi_inspect_definition(module, type);
    if (at != NULL && opcode(at) == SpvOpTypeStruct && length_of(at) == 3) {
        type = at[2];
    }
    put_type(&text, module, type, 0);
}

uint32_t bhi_inspect_members(const struct bhi_module *module, uint32_t type,
                             struct bhi_inspected_member *out) {
    const uint32_t *block = bhi_inspect_definition(module, type);
    if (block == NULL || opcode(block) != SpvOpTypeStruct) {
        return 0;
    }
    const size_t members = length_of(block) - 2;
    const uint32_t count = members > BHI_INSPECT_MEMBERS ? BHI_INSPECT_MEMBERS : (uint32_t)members;
    for (uint32_t i = 0; i < count; i++) {
        bhi_inspect_type(module, block[2 + i], out[i].type);
    }
    for (const uint32_t *at = NULL; (at = next(module, at)) != NULL;) {
        if (opcode(at) == SpvOpMemberName && at[1] == type && at[2] < count) {
            const char *name = (const char *)&at[3];
            bhi_text_sanitise(out[at[2]].name, BHI_INSPECT_NAME, name, strlen(name));
        } else if (opcode(at) == SpvOpMemberDecorate && at[1] == type && at[2] < count &&
                   at[3] == SpvDecorationOffset && length_of(at) > 4) {
            out[at[2]].offset = at[4];
        }
    }
    return count;
}

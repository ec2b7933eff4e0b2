#include "worker/compiler/inspect_types.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 8u

void bhi_inspect_name(const struct bhi_module *module, uint32_t id, char out[BHI_INSPECT_NAME]) {
    out[0] = '\0';
    for (const uint32_t *at = NULL; (at = bhi_spv_next(module->code, module->words, at));) {
        if (bhi_spv_op(at) == SpvOpName && at[1] == id) {
            const char *name = (const char *)&at[2];
            bhi_text_line(out, BHI_INSPECT_NAME, name, strlen(name));
            return;
        }
    }
}

bool bhi_inspect_decoration(const struct bhi_module *module, uint32_t id, uint32_t decoration,
                            uint32_t *out) {
    for (const uint32_t *at = NULL; (at = bhi_spv_next(module->code, module->words, at));) {
        if (bhi_spv_op(at) == SpvOpDecorate && at[1] == id && at[2] == decoration &&
            bhi_spv_length(at) > 3) {
            *out = at[3];
            return true;
        }
    }
    return false;
}

int bhi_inspect_axis(const struct bhi_module *module, uint32_t id) {
    const uint32_t *size = bhi_module_definition(module, module->work_group_size);
    for (const uint32_t *at = NULL;
         !size && (at = bhi_spv_next(module->code, module->words, at));) {
        if (bhi_spv_op(at) == SpvOpExecutionModeId && bhi_spv_length(at) == 6 &&
            at[1] == module->code[module->entry + 2] && at[2] == SpvExecutionModeLocalSizeId) {
            size = at;
        }
    }
    for (int axis = 0; size && bhi_spv_length(size) == 6 && axis < 3; axis++) {
        if (size[3 + axis] == id) {
            return axis;
        }
    }
    return -1;
}

uint32_t bhi_inspect_pointee(const struct bhi_module *module, const uint32_t *variable) {
    const uint32_t *pointer = bhi_module_definition(module, variable[1]);
    return pointer && bhi_spv_op(pointer) == SpvOpTypePointer ? pointer[3] : 0;
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
    const uint32_t *at = bhi_module_definition(module, type);
    if (!at || depth > MAX_DEPTH) {
        put(text, "?");
        return;
    }
    uint64_t count;
    switch (bhi_spv_op(at)) {
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
        for (size_t i = 2; i < bhi_spv_length(at) && !text->full; i++) {
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
    /* If a block has one member, as arrays in GLSL do, the type is that of the member. */
    const uint32_t *at = bhi_module_definition(module, type);
    if (at && bhi_spv_op(at) == SpvOpTypeStruct && bhi_spv_length(at) == 3) {
        type = at[2];
    }
    put_type(&text, module, type, 0);
}

/* -- members ---------------------------------------------------------------------------------- */

#define MAX_STEPS 256u /* a limit: structs may have no members, and arrays no end */

struct members {
    const struct bhi_module *module;
    struct bhi_inspected_member *out;
    uint32_t count, steps;
};

/* Where a member of a struct lies, and how its matrices are laid out. */
struct place {
    uint32_t offset, matrix_stride;
    bool by_row;
    char name[BHI_INSPECT_NAME];
};

/* Writes |before|, |separator| and |name|, cut if there is too little room. */
static void put_name(char out[BHI_INSPECT_NAME], const char *before, const char *separator,
                     const char *name) {
    const char *const parts[] = {before, separator, name};
    size_t used = 0;
    for (size_t i = 0; i < 3; i++) {
        const size_t length = strnlen(parts[i], BHI_INSPECT_NAME - 1 - used);
        memcpy(out + used, parts[i], length);
        used += length;
    }
    out[used] = '\0';
}

static struct place place_of(const struct bhi_module *module, uint32_t type, uint32_t member,
                             const struct place *outer) {
    struct place place = {.offset = outer->offset};
    char name[BHI_INSPECT_NAME] = "";
    for (const uint32_t *at = NULL; (at = bhi_spv_next(module->code, module->words, at));) {
        if (bhi_spv_op(at) == SpvOpMemberName && at[1] == type && at[2] == member) {
            bhi_text_line(name, sizeof name, (const char *)&at[3], strlen((const char *)&at[3]));
        } else if (bhi_spv_op(at) == SpvOpMemberDecorate && at[1] == type && at[2] == member) {
            if (at[3] == SpvDecorationOffset && bhi_spv_length(at) > 4) {
                place.offset = outer->offset + at[4];
            } else if (at[3] == SpvDecorationMatrixStride && bhi_spv_length(at) > 4) {
                place.matrix_stride = at[4];
            } else if (at[3] == SpvDecorationRowMajor) {
                place.by_row = true;
            }
        }
    }
    if (name[0] != '\0') { /* without a name it has none, whatever it is part of */
        put_name(place.name, outer->name, outer->name[0] != '\0' ? "." : "", name);
    }
    return place;
}

/* Returns the bytes of a number's type; 0 if the type is no number. */
static uint32_t bytes_of(const struct bhi_module *module, uint32_t type) {
    const uint32_t *at = bhi_module_definition(module, type);
    return at && (bhi_spv_op(at) == SpvOpTypeInt || bhi_spv_op(at) == SpvOpTypeFloat) ? at[2] / 8
                                                                                      : 0;
}

static void add_leaf(struct members *m, uint32_t type, const struct place *place) {
    struct bhi_inspected_member *out = &m->out[m->count++];
    const uint32_t *at = bhi_module_definition(m->module, type);
    out->offset = place->offset;
    memcpy(out->name, place->name, sizeof out->name);
    bhi_inspect_type(m->module, type, out->type);
    if (at && bhi_spv_op(at) == SpvOpTypeArray) {
        (void)bhi_inspect_decoration(m->module, type, SpvDecorationArrayStride, &out->stride);
        at = bhi_module_definition(m->module, at[2]);
    }
    if (at && bhi_spv_op(at) == SpvOpTypeMatrix) {
        const uint32_t *column = bhi_module_definition(m->module, at[2]);
        const uint32_t unit = column ? bytes_of(m->module, column[2]) : 0;
        out->stride = place->by_row ? unit : place->matrix_stride;
        out->step = place->by_row ? place->matrix_stride : unit;
    } else if (at) {
        out->step = bytes_of(m->module, bhi_spv_op(at) == SpvOpTypeVector ? at[2] : at[1]);
    }
}

static void add_members(struct members *m, uint32_t type, const struct place *outer);

/* Adds what a member consists of: numbers, vectors and matrices of structs, and arrays of numbers
 * and of vectors. */
static void add(struct members *m, uint32_t type, const struct place *place) {
    const uint32_t *at = bhi_module_definition(m->module, type);
    if (m->count == BHI_INSPECT_MEMBERS || m->steps == 0) {
        return;
    }
    m->steps--;
    if (at && bhi_spv_op(at) == SpvOpTypeStruct) {
        add_members(m, type, place);
        return;
    }
    const uint32_t *element =
        at && bhi_spv_op(at) == SpvOpTypeArray ? bhi_module_definition(m->module, at[2]) : NULL;
    uint64_t count;
    uint32_t stride = 0;
    if (!element || bhi_spv_op(element) == SpvOpTypeInt || bhi_spv_op(element) == SpvOpTypeFloat ||
        bhi_spv_op(element) == SpvOpTypeVector || !bhi_module_constant(m->module, at[3], &count)) {
        add_leaf(m, type, place);
        return;
    }
    (void)bhi_inspect_decoration(m->module, type, SpvDecorationArrayStride, &stride);
    for (uint64_t i = 0; i < count && m->count < BHI_INSPECT_MEMBERS && m->steps > 0; i++) {
        struct place part = *place;
        char index[24];
        snprintf(index, sizeof index, "[%u]", (unsigned)i);
        part.offset = place->offset + (uint32_t)i * stride;
        if (place->name[0] != '\0') {
            put_name(part.name, place->name, "", index);
        }
        add(m, at[2], &part);
    }
}

/* The recursion ends, because a module defines each struct before the structs that contain it. */
static void add_members(struct members *m, uint32_t type, const struct place *outer) {
    const uint32_t *at = bhi_module_definition(m->module, type);
    for (uint32_t i = 0;
         i + 2 < bhi_spv_length(at) && m->count < BHI_INSPECT_MEMBERS && m->steps > 0; i++) {
        const struct place place = place_of(m->module, type, i, outer);
        add(m, at[2 + i], &place);
    }
}

uint32_t bhi_inspect_members(const struct bhi_module *module, uint32_t type,
                             struct bhi_inspected_member *out) {
    const uint32_t *block = bhi_module_definition(module, type);
    struct members members = {.module = module, .out = out, .steps = MAX_STEPS};
    const struct place whole = {.offset = 0};
    if (block && bhi_spv_op(block) == SpvOpTypeStruct) {
        add_members(&members, type, &whole);
    }
    return members.count;
}

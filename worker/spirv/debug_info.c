#include "worker/spirv/debug_info.h"

#include <spirv/unified1/spirv.h>
#include <stdlib.h>
#include <string.h>

/* The most ids that SPIR-V lets a module have. */
#define MAX_BOUND 0x400000u

enum {
    /* Of SPV_KHR_relaxed_extended_instruction, which the headers do not know yet: an OpExtInst that
     * refers to what comes later. */
    EXT_INST_FORWARD = 4433,
};

struct ids {
    uint8_t *removed; /* a bit for each */
    uint32_t bound;
};

static bool has(const struct ids *ids, uint32_t id) {
    return id < ids->bound && (ids->removed[id / 8] >> id % 8 & 1) != 0;
}

static void add(struct ids *ids, uint32_t id) {
    if (id < ids->bound) {
        ids->removed[id / 8] |= (uint8_t)(1u << id % 8);
    }
}

bool bhi_debug_info_import(const char *name) {
    return strncmp(name, "NonSemantic.", 12) == 0 || strcmp(name, "OpenCL.DebugInfo.100") == 0;
}

static bool is_text(const uint32_t *at, size_t words, const char *text) {
    const size_t size = strlen(text) + 1;
    return size <= words * sizeof *at && memcmp(at, text, size) == 0;
}

/* Does the instruction go? Its result's id is then among |ids|. */
static bool goes(struct ids *ids, const uint32_t *at, size_t length) {
    switch (at[0] & SpvOpCodeMask) {
    case SpvOpExtension:
        return is_text(&at[1], length - 1, "SPV_KHR_non_semantic_info") ||
               is_text(&at[1], length - 1, "SPV_KHR_relaxed_extended_instruction");
    case SpvOpExtInstImport:
        if (length > 2 && memchr(&at[2], 0, (length - 2) * sizeof *at) &&
            bhi_debug_info_import((const char *)&at[2])) {
            add(ids, at[1]);
            return true;
        }
        return false;
    case SpvOpExtInst:
    case EXT_INST_FORWARD:
        if (length > 4 && has(ids, at[3])) {
            add(ids, at[2]);
            return true;
        }
        return false;
    default:
        return false;
    }
}

/* Is it a name or a decoration of what goes? */
static bool describes(const struct ids *ids, const uint32_t *at, size_t length) {
    const uint32_t op = at[0] & SpvOpCodeMask;
    return length > 1 && (op == SpvOpName || op == SpvOpDecorate) && has(ids, at[1]);
}

size_t bhi_debug_info_normalise(uint32_t *code, size_t words) {
    if (words < 5 || code[0] != SpvMagicNumber || code[3] > MAX_BOUND) {
        return words;
    }
    struct ids ids = {.removed = calloc(code[3] / 8 + 1, 1), .bound = code[3]};
    bool any = false, whole = !!ids.removed;
    for (size_t i = 5, length; whole && i < words; i += length) {
        uint32_t *at = &code[i];
        length = at[0] >> SpvWordCountShift;
        whole = length > 0 && length <= words - i;
        if (!whole) {
            break;
        }
        any |= goes(&ids, at, length);
        if ((at[0] & SpvOpCodeMask) == SpvOpSource && length > 1 && at[1] > SpvSourceLanguageHLSL) {
            at[1] = SpvSourceLanguageUnknown;
        }
    }
    size_t left = words;
    if (whole && any) {
        left = 5;
        for (size_t i = 5, length; i < words; i += length) {
            const uint32_t *at = &code[i];
            length = at[0] >> SpvWordCountShift;
            if (!goes(&ids, at, length) && !describes(&ids, at, length)) {
                memmove(&code[left], at, length * sizeof *at);
                left += length;
            }
        }
    }
    free(ids.removed);
    return left;
}

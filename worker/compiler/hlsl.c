#include "worker/compiler/hlsl.h"
#include "base/format.h"

#include <ctype.h>
#include <spirv/unified1/spirv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ENTRIES   16
#define HEADER_WORDS  5
#define MAX_RESOURCES 256

/* -- the entry point -------------------------------------------------------------------------- */

static bool in_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* Skips what cannot be code: blanks, comments, and lines of the preprocessor. */
static const char *skip_blank(const char *at, bool line_begins) {
    for (;;) {
        if (*at == '\n') {
            line_begins = true;
            at++;
        } else if (isspace((unsigned char)*at)) {
            at++;
        } else if (at[0] == '/' && at[1] == '/') {
            at += strcspn(at, "\n");
        } else if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            at = !end ? at + strlen(at) : end + 2;
        } else if (*at == '#' && line_begins) {
            at += strcspn(at, "\n");
        } else {
            return at;
        }
    }
}

static bool is_word(const char *at, const char *word) {
    const size_t length = strlen(word);
    return strncmp(at, word, length) == 0 && !in_word(at[length]);
}

struct function {
    char name[BHI_HLSL_NAME]; /* empty: no function */
    char type[40];            /* its return type, cut if too long */
    const char *at;           /* where its name stands in the text */
};

static void keep_word(char *out, size_t size, const char *word, size_t length) {
    bhi_format(out, size, "%.*s", (int)(length < size ? length : size - 1), word);
}

/* Finds the function that the attribute at |at| belongs to: the last word before the parameters,
 * after further attributes and the type. Returns where to go on. */
static const char *take_function(const char *at, struct function *out) {
    size_t length = 0;
    int depth = 1; /* brackets of the attribute or of a type */
    *out = (struct function){.at = NULL};
    for (at = skip_blank(at, false); *at != '\0'; at = skip_blank(at, false)) {
        if (*at == '[' || *at == '<') {
            depth++;
            at++;
        } else if (*at == ']' || *at == '>') {
            depth--;
            at++;
        } else if (depth > 0) {
            at++;
        } else if (in_word(*at)) {
            if (out->at) {
                keep_word(out->type, sizeof out->type, out->at, length);
            }
            out->at = at;
            while (in_word(*at)) {
                at++;
            }
            length = (size_t)(at - out->at);
        } else {
            break;
        }
    }
    if (*at == '(' && out->at && length < BHI_HLSL_NAME) {
        keep_word(out->name, sizeof out->name, out->at, length);
    }
    return at;
}

static size_t find_functions(const char *text, struct function functions[MAX_ENTRIES]) {
    size_t count = 0;
    for (const char *at = skip_blank(text, true); *at != '\0' && count < MAX_ENTRIES;
         at = skip_blank(at, false)) {
        if (in_word(*at)) {
            while (in_word(*at)) {
                at++;
            }
        } else if (*at == '"') {
            at++;
            while (*at != '\0' && *at != '"' && *at != '\n') {
                at += at[0] == '\\' && at[1] != '\0' ? 2 : 1;
            }
            at += *at == '"';
        } else if (*at == '[') {
            at = skip_blank(at + 1, false);
            if (is_word(at, "numthreads")) {
                at = take_function(at, &functions[count]);
                count += functions[count].name[0] != '\0';
            }
        } else {
            at++;
        }
    }
    return count;
}

bool bhi_hlsl_find_entry(const char *text, const char *wanted, char out_name[BHI_HLSL_NAME],
                         char *why, size_t why_size) {
    struct function functions[MAX_ENTRIES];
    char list[512] = "";
    const size_t count = find_functions(text, functions);
    const char *chosen = count == 1 && wanted[0] == '\0' ? functions[0].name : NULL;
    for (size_t i = 0; i < count; i++) {
        const size_t used = strlen(list);
        if (strcmp(functions[i].name, wanted[0] == '\0' ? "main" : wanted) == 0) {
            chosen = functions[i].name;
        }
        bhi_format(list + used, sizeof list - used, "%s%.127s", i == 0 ? "" : ", ",
                   functions[i].name);
    }
    if (chosen) {
        bhi_format(out_name, BHI_HLSL_NAME, "%.127s", chosen);
    } else if (count == 0) {
        snprintf(why, why_size, "no function has [numthreads(X, Y, Z)], which makes it a kernel");
    } else if (wanted[0] != '\0') {
        bhi_format(why, why_size, "no function '%.100s' has [numthreads]; there are: %s", wanted,
                   list);
    } else {
        bhi_format(why, why_size, "several functions have [numthreads], choose the entry point: %s",
                   list);
    }
    return chosen;
}

/* -- what it returns -------------------------------------------------------------------------- */

/* Does the function whose name is at |at| have a parameter that it writes? */
static bool writes_parameter(const char *at) {
    int depth = 0;
    for (at = strchr(at, '('); at && *at != '\0'; at = skip_blank(at, false)) {
        if (*at == '(' || *at == ')') {
            depth += *at == '(' ? 1 : -1;
            if (depth == 0) {
                return false;
            }
        } else if (in_word(*at)) {
            if (is_word(at, "out") || is_word(at, "inout")) {
                return true;
            }
            while (in_word(*at)) {
                at++;
            }
            continue;
        }
        at++;
    }
    return false;
}

/* Returns the line, from 1, of the function |name| in |text|, which is not preprocessed; 0 if it is
 * not there. */
static unsigned find_line(const char *text, const char *name) {
    struct function functions[MAX_ENTRIES];
    const size_t count = find_functions(text, functions);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(functions[i].name, name) == 0) {
            unsigned line = 1;
            for (const char *at = text; at < functions[i].at; at++) {
                line += *at == '\n';
            }
            return line;
        }
    }
    return 0;
}

bool bhi_hlsl_check_result(const struct bhi_glsl *source, const char *text, const char *entry,
                           char *place, size_t place_size, char *why, size_t why_size) {
    struct function functions[MAX_ENTRIES];
    const size_t count = find_functions(text, functions);
    const struct function *it = NULL;
    for (size_t i = 0; i < count && !it; i++) {
        it = strcmp(functions[i].name, entry) == 0 ? &functions[i] : NULL;
    }
    const bool returns = it && it->type[0] != '\0' && strcmp(it->type, "void") != 0;
    if (!it || (!returns && !writes_parameter(it->at))) {
        return true;
    }
    const char *file = source->name.bytes;
    unsigned line = find_line(source->text.bytes, entry);
    for (size_t i = 0; line == 0 && i < source->include_count; i++) {
        line = find_line(source->includes[i].text.bytes, entry);
        file = line == 0 ? file : source->includes[i].name.bytes;
    }
    if (line != 0) {
        bhi_format(place, place_size, "%.1000s:%u", file, line);
    }
    bhi_format(why, why_size,
               "'%.100s' %s%s, but a kernel cannot return values: make it void, and write to a "
               "RWStructuredBuffer",
               entry, returns ? "returns " : "has an out parameter", returns ? it->type : "");
    return false;
}

/* -- numbers and attributes ------------------------------------------------------------------- */

/* glslang keeps only as many bits as these need, and drops the others silently. */
#define MAX_BINDING 65534u
#define MAX_SPACE   31u

static bool is_over(const char *at, uint64_t limit) {
    uint64_t number = 0;
    for (; isdigit((unsigned char)*at) && number <= limit; at++) {
        number = number * 10 + (uint64_t)(*at - '0');
    }
    return number > limit;
}

/* Returns the place after |mark| and the blanks and comments around it, or NULL if it is not
 * there. */
static const char *behind(const char *at, const char *mark) {
    at = at ? skip_blank(at, false) : NULL;
    const size_t length = strlen(mark);
    return at && strncmp(at, mark, length) == 0 ? skip_blank(at + length, false) : NULL;
}

/* Returns the number that is too large in register(u1, space2) or [[vk::binding(1, 2)]] at |at|, or
 * NULL. */
static const char *find_over(const char *at, bool *out_space) {
    const bool in_register = is_word(at, "register");
    if (!in_register) {
        at = is_word(at, "vk") ? behind(behind(at + 2, "::"), "binding") : NULL;
    } else {
        at += strlen("register");
    }
    at = behind(at, "(");
    if (!at) {
        return NULL;
    }
    *out_space = in_register && strncmp(at, "space", 5) == 0;
    if (!*out_space) {
        at += in_register && isalpha((unsigned char)*at);
        if (is_over(at, MAX_BINDING)) {
            return at;
        }
        at = behind(at + strspn(at, "0123456789"), ",");
    }
    *out_space = true;
    at = in_register ? behind(at, "space") : at;
    return at && is_over(at, MAX_SPACE) ? at : NULL;
}

/* Is [[vk::push_constant]] at |at| on something other than a cbuffer? glslang silently makes that a
 * uniform buffer. */
static bool is_lost_push(const char *at) {
    at = is_word(at, "vk") ? behind(behind(at + 2, "::"), "push_constant") : NULL;
    at = behind(behind(at, "]"), "]");
    return at && *at != '[' && !is_word(at, "cbuffer") && !is_word(at, "ConstantBuffer");
}

bool bhi_hlsl_check_attributes(const char *text, char *why, size_t why_size) {
    for (const char *at = skip_blank(text, true); *at != '\0'; at = skip_blank(at, false)) {
        bool space = false;
        const char *number = find_over(at, &space);
        if (number) {
            const int digits = (int)strspn(number, "0123456789");
            bhi_format(why, why_size, "%s %.*s is too large: %s", space ? "set" : "binding",
                       digits < 32 ? digits : 32, number,
                       space ? "sets go up to 31" : "bindings go up to 65534");
            return false;
        }
        if (is_lost_push(at)) {
            snprintf(why, why_size,
                     "[[vk::push_constant]] is for a cbuffer here: "
                     "[[vk::push_constant]] cbuffer NAME { ... };");
            return false;
        }
        if (!in_word(*at)) {
            at++;
            continue;
        }
        while (in_word(*at)) {
            at++;
        }
    }
    return true;
}

/* -- clashes ---------------------------------------------------------------------------------- */

/* What the module says of an id. |name| points into the module. */
struct fact {
    const char *name;
    uint32_t type; /* the id's type; of a pointer or an array: what it points to or consists of */
    uint32_t binding, set;
    bool bound;
};

struct resource {
    const char *name;
    uint32_t binding, set;
};

/* Returns the number of words of the instruction at |code|, at least 1; 0 if it does not fit. */
static size_t length_of(const uint32_t *code, size_t left) {
    const size_t length = code[0] >> 16;
    return length <= left ? length : 0;
}

/* A variable without a name, such as that of a cbuffer, is called by the name of its type. */
static const char *name_of(const struct fact *facts, uint32_t bound, uint32_t variable,
                           uint32_t type) {
    const char *name = facts[variable].name;
    for (int i = 0; (!name || *name == '\0') && type < bound && i < 3; i++) {
        name = facts[type].name;
        type = facts[type].type;
    }
    return !name || *name == '\0' ? "a resource without a name" : name;
}

static size_t find_resources(const uint32_t *code, size_t words, struct resource *out) {
    const uint32_t bound = words > HEADER_WORDS ? code[3] : 0;
    struct fact *facts = bound < (1u << 22) ? calloc(bound + 1, sizeof *facts) : NULL;
    size_t count = 0, length;
    for (size_t i = HEADER_WORDS; facts && i < words; i += length) {
        const uint32_t *at = code + i;
        length = length_of(at, words - i);
        if (length == 0) {
            break;
        }
        const uint32_t op = at[0] & 0xffff;
        const uint32_t id = length > 1 ? at[1] : bound;
        if (op == SpvOpName && length > 2 && id < bound) {
            facts[id].name = (const char *)(at + 2);
        } else if (op == SpvOpDecorate && length > 3 && id < bound) {
            if (at[2] == SpvDecorationBinding) {
                facts[id].binding = at[3];
                facts[id].bound = true;
            } else if (at[2] == SpvDecorationDescriptorSet) {
                facts[id].set = at[3];
            }
        } else if (op == SpvOpTypePointer && length > 3 && id < bound) {
            facts[id].type = at[3];
        } else if ((op == SpvOpTypeArray || op == SpvOpTypeRuntimeArray) && length > 2 &&
                   id < bound) {
            facts[id].type = at[2];
        } else if (op == SpvOpVariable && length > 3 && at[2] < bound && facts[at[2]].bound &&
                   count < MAX_RESOURCES) {
            out[count++] = (struct resource){.name = name_of(facts, bound, at[2], at[1]),
                                             .binding = facts[at[2]].binding,
                                             .set = facts[at[2]].set};
        }
    }
    free(facts);
    return count;
}

/* Returns the line, from 1, where |name| is given a register, else where it occurs first; 0 if
 * nowhere. Writes the register's name if it is on that line. */
static unsigned find_place(const struct bhi_glsl_text *text, const char *name,
                           char out_register[16]) {
    const size_t length = strlen(name);
    unsigned line = 1, first = 0;
    out_register[0] = '\0';
    for (const char *at = text->bytes; *at != '\0'; at++) {
        line += *at == '\n';
        if (strncmp(at, name, length) != 0 || in_word(at[length]) ||
            (at > text->bytes && in_word(at[-1]))) {
            continue;
        }
        first = first == 0 ? line : first;
        const char *end = at + strcspn(at, ";{\n");
        const char *mark = strstr(at, "register");
        if (mark && mark < end) {
            mark += strlen("register");
            mark += strspn(mark, " \t(");
            const size_t digits = strspn(mark, "abcdefghijklmnopqrstuvwxyz0123456789");
            bhi_format(out_register, 16, "%.*s", (int)(digits < 15 ? digits : 15), mark);
            return line;
        }
    }
    return first;
}

static void say_clash(const struct bhi_glsl *source, const struct resource *a,
                      const struct resource *b, char *log, size_t log_size) {
    char registers[2][16], place[16] = "", shown[2][40] = {"", ""};
    const char *file = source->name.bytes;
    (void)find_place(&source->text, a->name, registers[0]);
    unsigned line = find_place(&source->text, b->name, registers[1]);
    for (size_t i = 0; line == 0 && i < source->include_count; i++) {
        line = find_place(&source->includes[i].text, b->name, registers[1]);
        file = line == 0 ? file : source->includes[i].name.bytes;
    }
    if (line != 0) {
        snprintf(place, sizeof place, ":%u", line);
    }
    for (int i = 0; i < 2; i++) {
        if (registers[i][0] != '\0') {
            bhi_format(shown[i], sizeof shown[i], " (%s)", registers[i]);
        }
    }
    bhi_format(
        log, log_size,
        "%s%s: error: '%.100s'%s and '%.100s'%s are both binding %u of set %u: the number of "
        "a register is its binding, for t, u, b and s alike; give each a different number\n",
        file, place, b->name, shown[1], a->name, shown[0], b->binding, b->set);
}

size_t bhi_hlsl_find_clashes(const struct bhi_glsl *source, const uint32_t *code, size_t words,
                             char *log, size_t log_size) {
    struct resource resources[MAX_RESOURCES];
    const size_t count = find_resources(code, words, resources);
    size_t clashes = 0;
    log[0] = '\0';
    for (size_t i = 1; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (resources[i].binding == resources[k].binding &&
                resources[i].set == resources[k].set) {
                const size_t used = strlen(log);
                say_clash(source, &resources[k], &resources[i], log + used, log_size - used);
                clashes++;
                break;
            }
        }
    }
    return clashes;
}

/* -- the name --------------------------------------------------------------------------------- */

uint32_t *bhi_hlsl_rename_entry(const uint32_t *code, size_t words, size_t *out_words) {
    static const char name[8] = "main"; /* two words, with its NUL */
    uint32_t *out = malloc((words + 2) * sizeof *out);
    if (!out) {
        return NULL;
    }
    memcpy(out, code, words * sizeof *out);
    *out_words = words;
    for (size_t i = HEADER_WORDS, length; i < words; i += length) {
        length = length_of(code + i, words - i);
        if (length == 0) {
            return out;
        }
        if ((code[i] & 0xffff) != SpvOpEntryPoint || length < 4) {
            continue;
        }
        /* The words are: word count, execution model, function; the name; the interface. */
        const char *old = (const char *)(code + i + 3);
        const size_t room = (length - 3) * sizeof *code;
        const size_t old_words = strnlen(old, room) / sizeof *code + 1;
        const size_t rest = i + 3 + old_words;
        if (old_words > length - 3) {
            return out;
        }
        out[i] = (uint32_t)((length - old_words + 2) << 16) | SpvOpEntryPoint;
        memcpy(out + i + 3, name, sizeof name);
        memcpy(out + i + 5, code + rest, (words - rest) * sizeof *out);
        *out_words = words - old_words + 2;
        return out;
    }
    return out;
}

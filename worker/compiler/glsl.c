#include "worker/compiler/glsl.h"

#include "base/format.h"
#include "base/text.h"
#include "worker/compiler/answer.h"
#include "worker/compiler/hlsl.h"
#include "worker/compiler/optimize.h"
#include "worker/error.h"
#include "worker/spirv/index.h"

#include <ctype.h>
#include <limits.h>
#include <shaderc/shaderc.h>
#include <spirv/unified1/spirv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limits to how much includes can enlarge a source. A file that includes itself reaches the first;
 * two files that include each other twice reach the others. */
#define MAX_DEPTH          64u
#define MAX_INCLUSIONS     4096u
#define MAX_INCLUDED_BYTES (64u << 20)
#define MAX_NAME           1024u

struct shaderc_compiler *bhi_glsl_compiler_create(void) {
    return shaderc_compiler_initialize();
}

void bhi_glsl_compiler_destroy(struct shaderc_compiler *compiler) {
    shaderc_compiler_release(compiler);
}

/* -- includes --------------------------------------------------------------------------------- */

struct inclusions {
    const struct bhi_glsl *glsl;
    size_t count;
    uint64_t bytes;
    char beside[MAX_NAME]; /* was not found beside the file that includes it; "": nothing */
};

struct inclusion {
    shaderc_include_result result; /* comes first, because the compiler returns a pointer to it */
    char text[640];                /* the message when an include is refused */
};

/* Resolves |name| relative to the folder of |from|, without "." and "..". Returns false if the
 * result lies outside the set or is too long. */
static bool resolve(const char *from, const char *name, char out[MAX_NAME]) {
    const char *slash = strrchr(from, '/');
    const size_t folder = !slash ? 0 : (size_t)(slash - from) + 1;
    char joined[MAX_NAME];
    const int length = snprintf(joined, sizeof joined, "%.*s%s", (int)folder, from, name);
    if (folder > INT_MAX || length < 0 || (size_t)length >= sizeof joined) {
        return false;
    }
    size_t used = 0;
    for (const char *at = joined; *at != '\0';) {
        const size_t part = strcspn(at, "/");
        if (part == 2 && at[0] == '.' && at[1] == '.') {
            if (used == 0) {
                return false;
            }
            out[used - 1] = '\0'; /* removes the slash */
            const char *above = strrchr(out, '/');
            used = !above ? 0 : (size_t)(above - out) + 1;
        } else if (part > 0 && !(part == 1 && at[0] == '.')) {
            memcpy(out + used, at, part);
            used += part;
            out[used] = '\0';
            if (at[part] == '/') {
                out[used++] = '/';
                out[used] = '\0';
            }
        }
        at += part + (at[part] == '/');
    }
    out[used] = '\0';
    return used > 0;
}

static const struct bhi_glsl_pair *find(const struct bhi_glsl *glsl, const char *from,
                                        const char *name) {
    char shown[MAX_NAME], wanted[MAX_NAME];
    if (strlen(name) >= sizeof shown) {
        return NULL;
    }
    /* The supervisor has cleaned the given names in the same way. */
    bhi_text_line(shown, sizeof shown, name, strlen(name));
    if (!resolve(from, shown, wanted)) {
        return NULL;
    }
    for (size_t i = 0; i < glsl->include_count; i++) {
        char given[MAX_NAME];
        if (resolve("", glsl->includes[i].name.bytes, given) && strcmp(given, wanted) == 0) {
            return &glsl->includes[i];
        }
    }
    return NULL;
}

/* Appends to the text of an inclusion. */
static void append(char *text, const char *before, const char *value, const char *after) {
    const size_t used = strlen(text), room = sizeof((struct inclusion *)NULL)->text;
    bhi_format(text + used, room - used, "%s%.100s%s", before, value, after);
}

/* Says where |name| was looked for, and which files there are. The compiler asks for a name in
 * quotes a second time, as if it were in angle brackets, and shows only the second answer. */
static void refuse(struct inclusions *inclusions, const char *from, const char *name, bool relative,
                   char *text) {
    enum { LISTED = 5 };
    const struct bhi_glsl *glsl = inclusions->glsl;
    char plain[MAX_NAME], more[32], *beside = inclusions->beside;
    if (relative && !resolve(from, name, beside)) {
        beside[0] = 0;
    }
    const bool below = beside[0], inside = resolve("", name, plain);
    text[0] = 0;
    append(text, "no file named '", name, "' was given for #include");
    if (glsl->include_count == 0) {
        append(text, "; none was given", "", "");
    } else if (!below && !inside) {
        append(text, "; it leads out of the files that were given", "", "");
    } else if (below && (!inside || strcmp(beside, plain) != 0)) {
        append(text, "; looked for '", beside, "'");
        if (inside) {
            append(text, ", then for '", plain, "'");
        }
    }
    for (size_t i = 0; i < glsl->include_count && i < LISTED; i++) {
        append(text, i ? ", '" : "; given: '", glsl->includes[i].name.bytes, "'");
    }
    if (glsl->include_count > LISTED) {
        snprintf(more, sizeof more, "%zu", glsl->include_count - LISTED);
        append(text, " and ", more, " more");
    }
    if (!relative) {
        beside[0] = 0;
    }
}

static shaderc_include_result *give(struct inclusion *inclusion, const char *name, size_t length,
                                    const char *text, size_t text_length) {
    inclusion->result = (shaderc_include_result){.source_name = name,
                                                 .source_name_length = length,
                                                 .content = text,
                                                 .content_length = text_length,
                                                 .user_data = inclusion};
    return &inclusion->result;
}

static shaderc_include_result *include(void *data, const char *name, int type, const char *from,
                                       size_t depth) {
    struct inclusions *inclusions = data;
    struct inclusion *inclusion = calloc(1, sizeof *inclusion);
    if (!inclusion) {
        abort(); /* the callback cannot report an error; the failed allocation was counted */
    }
    const struct bhi_glsl_pair *found = NULL;
    if (type == shaderc_include_type_relative) {
        found = find(inclusions->glsl, from, name);
    }
    if (!found) {
        found = find(inclusions->glsl, "", name);
    }
    inclusions->count++;
    inclusions->bytes += !found ? 0 : found->text.length;
    if (!found) {
        refuse(inclusions, from, name, type == shaderc_include_type_relative, inclusion->text);
    } else if (depth > MAX_DEPTH) {
        bhi_format(inclusion->text, sizeof inclusion->text,
                   "'%.150s': includes are nested deeper than %u; does it include itself?", name,
                   MAX_DEPTH);
    } else if (inclusions->count > MAX_INCLUSIONS || inclusions->bytes > MAX_INCLUDED_BYTES) {
        bhi_format(inclusion->text, sizeof inclusion->text,
                   "'%.150s': more than %u inclusions, or %u MiB included", name, MAX_INCLUSIONS,
                   MAX_INCLUDED_BYTES >> 20);
    } else {
        return give(inclusion, found->name.bytes, found->name.length, found->text.bytes,
                    found->text.length);
    }
    return give(inclusion, "", 0, inclusion->text, strlen(inclusion->text));
}

static void release_include(void *data, shaderc_include_result *result) {
    (void)data;
    free(result->user_data);
}

/* -- the #version line ------------------------------------------------------------------------ */

/* Skips blanks, joined lines and comments. */
static const char *skip_blanks(const char *at) {
    for (;;) {
        if (*at == ' ' || *at == '\t') {
            at++;
        } else if (!strncmp(at, "\\\n", 2) || !strncmp(at, "\\\r\n", 3)) {
            at += at[1] == '\r' ? 3 : 2;
        } else if (!strncmp(at, "//", 2)) {
            while (*at && *at != '\n') {
                at += !strncmp(at, "\\\r\n", 3) ? 3 : at[0] == '\\' && at[1] ? 2 : 1;
            }
        } else if (!strncmp(at, "/*", 2)) {
            const char *end = strstr(at + 2, "*/");
            at = end ? end + 2 : at + strlen(at);
        } else {
            return at;
        }
    }
}

/* Returns true if |text| has the directive #version outside of comments. */
static bool has_version(const char *text) {
    static const char word[] = "version";
    for (const char *at = text; *at; at += *at != '\0') {
        at = skip_blanks(at);
        if (*at == '#') {
            at = skip_blanks(at + 1);
            if (!strncmp(at, word, sizeof word - 1) &&
                !isalnum((unsigned char)at[sizeof word - 1]) && at[sizeof word - 1] != '_') {
                return true;
            }
        }
        while (*at && *at != '\n') {
            const char *behind = skip_blanks(at);
            at = behind > at ? behind : at + 1;
        }
    }
    return false;
}

/* -- the answer ------------------------------------------------------------------------------- */

/* A source without #version is one of GLSL 1.10, which has no compute shaders. The compiler says
 * of it that its version is too low. */
static void name_missing_version(const struct bhi_glsl *glsl, struct bhi_compile_answer *answer) {
    if (!glsl->hlsl && !has_version(glsl->text.bytes)) {
        answer->log_bytes = (uint32_t)bhi_format(
            answer->log, sizeof answer->log,
            "%.1000s:1: error: there is no #version line; make the first line '#version 450'\n",
            glsl->name.bytes);
    }
}

static shaderc_compile_options_t make_options(const struct bhi_glsl *glsl,
                                              struct inclusions *inclusions) {
    shaderc_compile_options_t options = shaderc_compile_options_initialize();
    if (!options) {
        return NULL;
    }
    /* shaderc must not optimise: it would drop unused bindings and all names. */
    shaderc_compile_options_set_target_env(options, shaderc_target_env_vulkan,
                                           shaderc_env_version_vulkan_1_1);
    shaderc_compile_options_set_source_language(options, glsl->hlsl ? shaderc_source_language_hlsl
                                                                    : shaderc_source_language_glsl);
    /* A resource without a register gets a free binding. */
    shaderc_compile_options_set_auto_bind_uniforms(options, glsl->hlsl);
    shaderc_compile_options_set_include_callbacks(options, include, release_include, inclusions);
    for (size_t i = 0; i < glsl->define_count; i++) {
        const struct bhi_glsl_pair *define = &glsl->defines[i];
        shaderc_compile_options_add_macro_definition(options, define->name.bytes,
                                                     define->name.length, define->text.bytes,
                                                     define->text.length);
    }
    return options;
}

static bool out_of_memory(struct bhi_error *error) {
    BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "the compiler");
    return false;
}

/* Writes the final module, optimised if that is requested and works. */
static bool take_module(const uint32_t *module, size_t words, const struct bhi_glsl *glsl,
                        struct bhi_compile_answer *answer, void *code, uint64_t room,
                        struct bhi_error *error) {
    uint32_t *renamed = NULL, *optimized = NULL;
    if (glsl->hlsl) {
        if (bhi_hlsl_find_clashes(glsl, module, words, answer->log, sizeof answer->log) > 0) {
            answer->refused = 1;
            answer->log_bytes = (uint32_t)strlen(answer->log);
            return true;
        }
        renamed = bhi_hlsl_rename_entry(module, words, &words);
        if (!renamed) {
            return out_of_memory(error);
        }
        module = renamed;
    }
    if (glsl->optimize && bhi_optimize(module, words, &optimized, &words)) {
        module = optimized;
    }
    bhi_answer_code(answer, module, words * sizeof *module, code, room);
    free(optimized);
    free(renamed);
    return true;
}

/* Returns false if the compiler is out of memory or has failed internally. */
static bool take_result(shaderc_compilation_result_t result, const struct bhi_glsl *glsl,
                        struct bhi_compile_answer *answer, void *code, uint64_t room,
                        struct bhi_error *error) {
    const shaderc_compilation_status status = !result
                                                  ? shaderc_compilation_status_null_result_object
                                                  : shaderc_result_get_compilation_status(result);
    if (status == shaderc_compilation_status_compilation_error) {
        answer->refused = 1;
        name_missing_version(glsl, answer);
        bhi_answer_log(answer, shaderc_result_get_error_message(result));
        return true;
    }
    if (status != shaderc_compilation_status_success) {
        BHI_ERROR_SAY(error, BH_REASON_COMPILER, "compile GLSL (shaderc status %d)", (int)status);
        return false;
    }
    bhi_answer_log(answer, shaderc_result_get_error_message(result)); /* the warnings */
    const char *bytes = shaderc_result_get_bytes(result);
    return take_module((const uint32_t *)(const void *)bytes, shaderc_result_get_length(result) / 4,
                       glsl, answer, code, room, error);
}

/* GLSL's entry point is main. HLSL's is searched for in the preprocessed source. If preprocessing
 * fails, the compile reports why. Returns false if there is no entry point; the answer says so. */
static bool find_entry(struct shaderc_compiler *compiler, const struct bhi_glsl *glsl,
                       shaderc_compile_options_t options, char name[BHI_HLSL_NAME],
                       struct bhi_compile_answer *answer) {
    char why[700], place[1024];
    bool good = true;
    snprintf(name, BHI_HLSL_NAME, "main");
    bhi_format(place, sizeof place, "%.1000s", glsl->name.bytes);
    if (!glsl->hlsl) {
        return true;
    }
    shaderc_compilation_result_t result = shaderc_compile_into_preprocessed_text(
        compiler, glsl->text.bytes, glsl->text.length, shaderc_glsl_compute_shader,
        glsl->name.bytes, "main", options);
    if (result &&
        shaderc_result_get_compilation_status(result) == shaderc_compilation_status_success) {
        const char *text = shaderc_result_get_bytes(result);
        good = bhi_hlsl_find_entry(text, glsl->entry.bytes, name, why, sizeof why) &&
               bhi_hlsl_check_result(glsl, text, name, place, sizeof place, why, sizeof why) &&
               bhi_hlsl_check_attributes(text, why, sizeof why);
    }
    if (result) {
        shaderc_result_release(result);
    }
    if (!good) {
        answer->refused = 1;
        answer->log_bytes =
            (uint32_t)bhi_format(answer->log, sizeof answer->log, "%s: error: %s\n", place, why);
    }
    return good;
}

static shaderc_compilation_result_t make_module(struct shaderc_compiler *compiler,
                                                struct inclusions *inclusions,
                                                shaderc_compile_options_t options,
                                                const char *entry) {
    const struct bhi_glsl *glsl = inclusions->glsl;
    inclusions->count = 0; /* forgets those of an earlier run */
    inclusions->bytes = 0;
    return shaderc_compile_into_spv(compiler, glsl->text.bytes, glsl->text.length,
                                    shaderc_glsl_compute_shader, glsl->name.bytes, entry, options);
}

/* Returns true if the module converts a specialization constant in a way that SPIR-V has from 1.4
 * on. The compiler does that whatever the version; of all else that is newer it keeps clear. */
static bool needs_1_4(shaderc_compilation_result_t result) {
    if (!result ||
        shaderc_result_get_compilation_status(result) != shaderc_compilation_status_success) {
        return false;
    }
    const uint32_t *code = (const uint32_t *)(const void *)shaderc_result_get_bytes(result);
    const size_t words = shaderc_result_get_length(result) / sizeof *code;
    for (const uint32_t *at = NULL; (at = bhi_spv_next(code, words, at));) {
        if (bhi_spv_op(at) == SpvOpSpecConstantOp && at[3] == SpvOpUConvert) {
            return true;
        }
    }
    return false;
}

/* SPIR-V 1.3 is the usual, 1.4 what a few sources need. All supported devices take both. */
static shaderc_compilation_result_t compile(struct shaderc_compiler *compiler,
                                            struct inclusions *inclusions,
                                            shaderc_compile_options_t options, const char *entry) {
    shaderc_compilation_result_t result = make_module(compiler, inclusions, options, entry);
    if (needs_1_4(result)) {
        shaderc_result_release(result);
        shaderc_compile_options_set_target_spirv(options, shaderc_spirv_version_1_4);
        result = make_module(compiler, inclusions, options, entry);
    }
    return result;
}

bool bhi_glsl_compile(struct shaderc_compiler *compiler, const struct bhi_glsl *glsl,
                      struct bhi_compile_answer *answer, void *code, uint64_t room,
                      struct bhi_error *error) {
    struct inclusions inclusions = {.glsl = glsl};
    memset(answer, 0, sizeof *answer);
    shaderc_compile_options_t options = make_options(glsl, &inclusions);
    if (!options) {
        return out_of_memory(error);
    }
    char entry[BHI_HLSL_NAME];
    if (!find_entry(compiler, glsl, options, entry, answer)) {
        shaderc_compile_options_release(options);
        return true;
    }
    shaderc_compilation_result_t result = compile(compiler, &inclusions, options, entry);
    const bool good = take_result(result, glsl, answer, code, room, error);
    if (result) {
        shaderc_result_release(result);
    }
    shaderc_compile_options_release(options);
    return good;
}

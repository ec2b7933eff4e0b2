#include "judge/task/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/task/parser.h"
#include "tool/values.h"

/* -- where it is ----------------------------------------------------------------------------- */

/* What follows "// bulkhead:" on the line, without the blanks around it; NULL: it is another line. */
static const char *after_mark(const char *line, const char *end) {
    static const char slashes[] = "//", mark[] = "bulkhead:";
    const size_t first = sizeof slashes - 1, second = sizeof mark - 1;
    while (line < end && (*line == ' ' || *line == '\t')) {
        line++;
    }
    if ((size_t)(end - line) < first || memcmp(line, slashes, first) != 0) {
        return NULL;
    }
    for (line += first; line < end && *line == ' '; line++) {
    }
    return (size_t)(end - line) >= second && !memcmp(line, mark, second) ? line + second : NULL;
}

bool bhi_judge_plan_find(const char *name, const char *source, size_t size,
                         struct bhi_judge_plan_place *out, struct bhi_complaint *complaint) {
    const char *at = source, *const all = source + size;
    *out = (struct bhi_judge_plan_place){.text = NULL};
    for (size_t line = 1; at < all; line++) {
        const char *newline = memchr(at, '\n', (size_t)(all - at));
        const char *end = newline ? newline : all, *text = after_mark(at, end);
        if (text && out->text) {
            return bhi_refuse(complaint, "%.200s:%zu: a second plan: the first is on line %zu",
                              name, line, out->line);
        }
        if (text) {
            *out = (struct bhi_judge_plan_place){text, (size_t)(end - text), line};
        }
        at = newline ? newline + 1 : all;
    }
    return true;
}

/* -- a kernel -------------------------------------------------------------------------------- */

/* Takes a text, if there is one. */
static bool take_text(struct parser *parser, const json_t *object, const char *key,
                      const char **out) {
    const json_t *value = json_object_get(object, key);
    *out = json_string_value(value);
    enter(parser, key);
    if (value && (!*out || !**out)) {
        return refuse(parser, "it must be a string that is not empty");
    }
    return leave(parser);
}

static bool take_language(struct parser *parser, const json_t *object, enum bhi_language *out) {
    struct bhi_complaint unused;
    const char *name;
    if (!take_text(parser, object, "language", &name)) {
        return false;
    }
    enter(parser, "language");
    *out = BHI_LANGUAGE_UNKNOWN;
    if (name && (!bhi_language_parse(name, out, &unused) || *out == BHI_LANGUAGE_SPIRV)) {
        return refuse(parser, "it must be \"glsl\", \"hlsl\" or \"cuda\"");
    }
    return leave(parser);
}

/* {"N": 4, "T": "float", "FAST": true}: as -D has them. */
static bool take_defines(struct parser *parser, const json_t *defines, struct bhi_source *out) {
    const char *name;
    json_t *value;
    enter(parser, "D");
    if (defines && !json_is_object(defines)) {
        return refuse(parser, "it must be an object, name to value");
    }
    json_object_foreach((json_t *)defines, name, value) {
        char number[40];
        const char *text = json_string_value(value);
        enter(parser, name);
        if (json_is_integer(value)) {
            snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
            text = number;
        } else if (json_is_real(value)) {
            snprintf(number, sizeof number, "%.17g", json_real_value(value));
            text = number;
        } else if (!text && !json_is_true(value)) {
            return refuse(parser, "it must be a string, a number, or true: without a value");
        }
        if (!bhi_source_define(out, name, strlen(name), text, parser->reading.complaint)) {
            return bhi_reading_blame(&parser->reading);
        }
        leave(parser);
    }
    return leave(parser);
}

/* {"0": "u32:64"}: as --spec has them. */
static bool take_specs(struct parser *parser, const json_t *specs,
                       struct bhi_judge_plan_kernel *out) {
    const char *id;
    json_t *value;
    enter(parser, "spec");
    if (specs && !json_is_object(specs)) {
        return refuse(parser, "it must be an object such as {\"0\": \"u32:64\"}");
    }
    json_object_foreach((json_t *)specs, id, value) {
        bh_specialization *spec = &out->specs[out->spec_count];
        enter(parser, id);
        if (out->spec_count == BHI_PLAN_SPECS) {
            return refuse(parser, "more than %d", BHI_PLAN_SPECS);
        }
        if (!bhi_parse_constant(id, strlen(id), json_string_value(value), spec,
                                parser->reading.complaint)) {
            return bhi_reading_blame(&parser->reading);
        }
        for (uint32_t i = 0; i < out->spec_count; i++) {
            if (out->specs[i].constant_id == spec->constant_id) {
                return refuse(parser, "constant %u is given twice", spec->constant_id);
            }
        }
        out->spec_count++;
        leave(parser);
    }
    return leave(parser);
}

static bool take_includes(struct parser *parser, const json_t *includes,
                          struct bhi_judge_plan_kernel *out) {
    json_t *path;
    size_t i;
    enter(parser, "I");
    if (includes && (!json_is_array(includes) || json_array_size(includes) > BHI_PLAN_INCLUDES)) {
        return refuse(parser, "it must be an array of at most %d files and folders",
                      BHI_PLAN_INCLUDES);
    }
    json_array_foreach(includes, i, path) {
        enter_element(parser, i);
        if (!json_is_string(path) || !*json_string_value(path)) {
            return refuse(parser, "it must be the name of a file or a folder");
        }
        leave(parser);
        out->includes[out->include_count++] = json_string_value(path);
    }
    return leave(parser);
}

/* Its place, and what it is made of. */
static bool take_kernel(struct parser *parser, const json_t *object, bool in_source,
                        struct bhi_judge_plan_kernel *out) {
    static const char *const keys[BHI_PLAN_FIELDS] = {"kernel", "groups", "D", "spec", "I"};
    for (size_t i = 0; i < BHI_PLAN_FIELDS; i++) {
        enter(parser, keys[i]);
        if (!(out->fields[i] = bhi_reading_field(&parser->reading))) {
            return bhi_refuse_memory(parser->reading.complaint);
        }
        leave(parser);
    }
    if (!take_text(parser, object, "kernel", &out->path) ||
        !take_text(parser, object, "source", &out->text) ||
        !take_text(parser, object, "entry", &out->entry) ||
        !take_language(parser, object, &out->language)) {
        return false;
    }
    if (out->path && out->text) {
        return refuse(parser, "\"kernel\" and \"source\" exclude each other");
    }
    if (!out->path && !out->text && !in_source) {
        return refuse(parser, "there is no \"kernel\" and no \"source\"");
    }
    out->has_groups = json_object_get(object, "groups");
    return (!out->has_groups || bhi_parser_take_groups(parser, object, &out->groups)) &&
           bhi_parser_take_cuda(parser, object, &out->cuda) &&
           take_defines(parser, json_object_get(object, "D"), &out->source) &&
           take_specs(parser, json_object_get(object, "spec"), out) &&
           take_includes(parser, json_object_get(object, "I"), out);
}

/* -- all of it ------------------------------------------------------------------------------- */

static bool take_kernels(struct parser *parser, bool in_source, struct bhi_judge_plan *out) {
    static const char *const keys[] = {"kernel", "source", "entry", "language",   "groups", "D",
                                       "spec",   "I",      "block", "parameters", "shared", NULL};
    const json_t *kernels = json_object_get(out->json, "kernels");
    json_t *kernel;
    size_t i;
    if (!kernels) {
        out->kernel_count = 1;
        return take_kernel(parser, out->json, in_source, &out->kernels[0]);
    }
    for (i = 0; keys[i]; i++) {
        if (json_object_get(out->json, keys[i])) {
            enter(parser, keys[i]);
            return refuse(parser, "it belongs to a kernel: write it in \"kernels\"");
        }
    }
    enter(parser, "kernels");
    if (!json_is_array(kernels) || !json_array_size(kernels) ||
        json_array_size(kernels) > BHI_PLAN_KERNELS) {
        return refuse(parser, "it must be an array of one to %d kernels", BHI_PLAN_KERNELS);
    }
    json_array_foreach(kernels, i, kernel) {
        enter_element(parser, i);
        if (!bhi_reading_check_keys(&parser->reading, kernel, keys) ||
            !take_kernel(parser, kernel, in_source, &out->kernels[out->kernel_count++])) {
            return false;
        }
        leave(parser);
    }
    return leave(parser);
}

static bool take_scratch(struct parser *parser, struct bhi_judge_plan *out) {
    static const char *const keys[] = {"dtype", "shape", NULL};
    const json_t *scratch = json_object_get(out->json, "scratch");
    const char *name;
    json_t *object;
    enter(parser, "scratch");
    if (scratch && !json_is_object(scratch)) {
        return refuse(parser, "it must be an object of bindings");
    }
    json_object_foreach((json_t *)scratch, name, object) {
        struct bhi_judge_plan_scratch *one = &out->scratch[out->scratch_count];
        enter(parser, name);
        if (out->scratch_count == BHI_PLAN_SCRATCH) {
            return refuse(parser, "more than %d", BHI_PLAN_SCRATCH);
        }
        out->scratch_count++;
        one->array = (struct bhi_task_array){.place = name, .role = BHI_TASK_SCRATCH};
        if (!(one->field = bhi_reading_field(&parser->reading))) {
            return bhi_refuse_memory(parser->reading.complaint);
        }
        if (!*name || strpbrk(name, "=,")) {
            return refuse(parser, "no binding is called so");
        }
        for (size_t i = 0; i < parser->task->array_count; i++) {
            if (!strcmp(parser->task->arrays[i].place, name)) {
                return refuse(parser, "the task has an array of this name");
            }
        }
        if (!bhi_reading_check_keys(&parser->reading, object, keys) ||
            !bhi_parser_take_dtype(parser, json_object_get(object, "dtype"), &one->array.dtype) ||
            !bhi_parser_take_shape(parser, json_object_get(object, "shape"), &one->array)) {
            return false;
        }
        leave(parser);
    }
    return leave(parser);
}

static bool take_all(struct parser *parser, bool in_source, struct bhi_judge_plan *out) {
    static const char *const keys[] = {"kernels",  "scratch", "kernel",     "source", "entry",
                                       "language", "groups",  "D",          "spec",   "I",
                                       "block",    "shared",  "parameters", NULL};
    return bhi_reading_check_keys(&parser->reading, out->json, keys) &&
           take_kernels(parser, in_source, out) && take_scratch(parser, out);
}

/* The text as JSON. A short one is made that first: then |*text| is another. */
static json_t *load(const char *name, const struct bhi_judge_plan_place *place, bool in_source,
                    char **text, struct bhi_complaint *complaint) {
    const char *const begin = *text + strspn(*text, " \t\r");
    json_error_t error;
    if (in_source && *begin != '{') {
        json_t *json = bhi_judge_plan_line(name, place->line, begin, strlen(begin), complaint);
        free(*text);
        *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
        if (json && !*text) {
            json_decref(json);
            bhi_refuse_memory(complaint);
            return NULL;
        }
        return json;
    }
    json_t *json = json_loadb(place->text, place->length, JSON_REJECT_DUPLICATES, &error);
    if (!json && json_error_code(&error) == json_error_out_of_memory) {
        bhi_refuse_memory(complaint);
    } else if (!json) {
        bhi_refuse(complaint, "%.200s:%zu: not JSON: %.200s (column %d)", name,
                   place->line + (size_t)(error.line > 0 ? error.line - 1 : 0), error.text,
                   error.column);
    }
    return json;
}

bool bhi_judge_plan_parse(const char *name, const struct bhi_judge_plan_place *place,
                          bool in_source, const struct bhi_task *task,
                          struct bhi_judge_plan **out_plan, struct bhi_complaint *complaint) {
    struct bhi_judge_plan *plan = calloc(1, sizeof *plan);
    char *text = malloc(place->length + 1); /* for the reading, which wants a NUL */
    bool good = plan && text;
    *out_plan = NULL;
    if (good) {
        memcpy(text, place->text, place->length);
        text[place->length] = '\0';
    }
    if (!good) {
        bhi_refuse_memory(complaint);
    } else if (place->length > BHI_PLAN_TEXT) {
        good = bhi_refuse(complaint, "%.200s: longer than %d MiB, not a plan", name,
                          BHI_PLAN_TEXT >> 20);
    } else if ((good = (plan->json = load(name, place, in_source, &text, complaint)))) {
        struct parser parser = {
            .reading = {.name = name,
                        .text = text,
                        .lines_before = place->line - 1,
                        .complaint = complaint},
            .task = (struct bhi_task *)task, /* which is only read */
        };
        good = take_all(&parser, in_source, plan);
    }
    free(text);
    if (good) {
        *out_plan = plan;
    } else {
        bhi_judge_plan_free(plan);
    }
    return good;
}

void bhi_judge_plan_free(struct bhi_judge_plan *plan) {
    if (!plan) {
        return;
    }
    for (size_t i = 0; i < plan->kernel_count; i++) {
        for (size_t k = 0; k < BHI_PLAN_FIELDS; k++) {
            free(plan->kernels[i].fields[k]);
        }
        free(plan->kernels[i].cuda.field);
        bhi_source_free(&plan->kernels[i].source);
    }
    for (size_t i = 0; i < plan->scratch_count; i++) {
        free(plan->scratch[i].field);
    }
    json_decref(plan->json);
    free(plan);
}

/* -- for a size ------------------------------------------------------------------------------ */

/* What the task allows where it does not say: so much as its arrays several times, or a few MiB. */
static uint64_t usual_scratch(uint64_t bytes) {
    enum { TIMES = 8 };
    static const uint64_t least = 16 << 20;
    const uint64_t most = bytes < UINT64_MAX / TIMES ? bytes * TIMES : UINT64_MAX;
    return most > least ? most : least;
}

bool bhi_judge_plan_shapes(const struct bhi_judge_plan *plan, const struct bhi_task *task,
                           size_t size, uint64_t bytes,
                           struct bhi_array out_scratch[BHI_PLAN_SCRATCH],
                           struct bhi_complaint *complaint) {
    const uint64_t most = task->limits_scratch ? task->scratch_limit : usual_scratch(bytes);
    char text[BHI_SIZE_TEXT];
    uint64_t all = 0;
    for (size_t i = 0; i < plan->scratch_count; i++) {
        const struct bhi_judge_plan_scratch *one = &plan->scratch[i];
        if (!bhi_task_shape(task, size, &one->array, &out_scratch[i], complaint)) {
            const struct bhi_complaint inner = *complaint;
            return bhi_refuse(complaint, "%.500s \"shape\": %.500s", one->field, inner.text);
        }
        if (__builtin_add_overflow(all, out_scratch[i].bytes, &all) || all > most) {
            return bhi_refuse(complaint, "%.500s: more than %" PRIu64 " bytes of scratch (with %s)",
                              one->field, most, bhi_task_size_text(task, size, text));
        }
    }
    return true;
}

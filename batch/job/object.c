#include "batch/job/object.h"
#include "batch/job/short.h"
#include "request/like.h"
#include "tool/nearest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 64 }; /* bytes of a key that a complaint quotes */

/* What a key's value is. */
enum kind {
    TEXT,    /* a string */
    NAME,    /* a string or a whole number */
    GRID,    /* [4, 1, 1], 4 or "4,1,1" */
    VALUES,  /* an object or array of numbers and strings, or a string */
    TEXTS,   /* an array of strings */
    NAMES,   /* an array of strings and whole numbers */
    NUMBER,  /* an integer */
    SWITCH,  /* true or false */
    PAIRS,   /* an object of strings */
    DEFINES, /* an object of strings and nulls */
};

static const char *const kind_names[] = {
    [TEXT] = "a string",
    [NAME] = "a string or a whole number",
    [GRID] = "a number, an array of one to three, or a string",
    [VALUES] = "a string, or an array of numbers and strings, or an object of them",
    [TEXTS] = "an array of strings",
    [NAMES] = "an array of strings or whole numbers",
    [NUMBER] = "a whole number",
    [SWITCH] = "true or false",
    [PAIRS] = "an object of strings",
    [DEFINES] = "an object of strings and nulls",
};

/* What has the key: a job with a kernel, one with an expression. */
enum owner { KERNEL = 1, EVAL = 2, BOTH = KERNEL | EVAL };

struct key {
    const char *name;
    enum kind kind;
    enum owner owner;
    int option;      /* of `bulkhead run` that it becomes; -1: none */
    int eval_option; /* of `bulkhead eval`, where that is another one; 0: it is the same */
};

/* In the order in which they are parsed, which is the order of complaints. */
static const struct key keys[] = {
    {"id", NAME, BOTH, -1, 0},
    {"kernel", TEXT, KERNEL, -1, 0},
    {"eval", TEXT, EVAL, -1, 0},
    {"entry", TEXT, KERNEL, BHI_RUN_ENTRY, 0},
    {"language", TEXT, KERNEL, BHI_RUN_LANGUAGE, 0},
    {"D", DEFINES, KERNEL, BHI_RUN_D, 0},
    {"I", TEXTS, KERNEL, BHI_RUN_I, 0},
    {"groups", GRID, KERNEL, BHI_RUN_GROUPS, 0},
    {"in", PAIRS, BOTH, BHI_RUN_IN, BHI_EVAL_IN},
    {"out", PAIRS, BOTH, BHI_RUN_OUT, BHI_EVAL_OUT},
    {"inout", PAIRS, KERNEL, BHI_RUN_INOUT, 0},
    {"push", VALUES, KERNEL, BHI_RUN_PUSH, 0},
    {"spec", PAIRS, KERNEL, BHI_RUN_SPEC, 0},
    {"set", PAIRS, EVAL, BHI_EVAL_SET, BHI_EVAL_SET},
    {"piece", TEXT, EVAL, BHI_EVAL_PIECE, BHI_EVAL_PIECE},
    {"deadline", TEXT, BOTH, BHI_RUN_DEADLINE, 0},
    {"compile_deadline", TEXT, BOTH, BHI_RUN_COMPILE_DEADLINE, 0},
    {"memory", TEXT, BOTH, BHI_RUN_MEMORY_LIMIT, 0},
    {"device", TEXT, BOTH, BHI_RUN_DEVICE, 0},
    {"reinterpret", SWITCH, KERNEL, BHI_RUN_REINTERPRET, 0},
    {"trusted", SWITCH, KERNEL, BHI_RUN_TRUSTED, 0},
    {"retries", NUMBER, BOTH, -1, 0},
    {"priority", NUMBER, BOTH, -1, 0},
    {"depends_on", NAMES, BOTH, -1, 0},
};
enum { KEYS = sizeof keys / sizeof keys[0] };

/* -- keys and kinds -----------------------------------------------------------------------------
 */

static bool refuse_key(const char *name, struct bhi_complaint *complaint) {
    struct bhi_nearest nearest = {.word = name};
    char all[400] = "";
    for (size_t i = 0; i < KEYS; i++) {
        const size_t used = strlen(all);
        bhi_nearest_try(&nearest, keys[i].name);
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", keys[i].name);
    }
    if (nearest.best)
        return bhi_refuse(complaint, "unknown key \"%.*s\": is it \"%s\"?", SHOWN, name,
                          nearest.best);
    return bhi_refuse(complaint, "unknown key \"%.*s\"; the keys are %s", SHOWN, name, all);
}

static bool is_of_kind(const json_t *value, enum kind kind) {
    const char *name;
    json_t *inner;
    size_t i;
    switch (kind) {
    case TEXT:
        return json_is_string(value);
    case NAME:
        return json_is_string(value) || json_is_integer(value);
    case NUMBER:
        return json_is_integer(value);
    case SWITCH:
        return json_is_boolean(value);
    case GRID:
        if (json_is_string(value) || json_is_integer(value))
            return true;
        json_array_foreach(value, i, inner) {
            if (!json_is_integer(inner) || i == 3)
                return false;
        }
        return json_is_array(value) && json_array_size(value) > 0;
    case VALUES:
        json_array_foreach(value, i, inner) {
            if (!json_is_string(inner) && !json_is_number(inner))
                return false;
        }
        json_object_foreach((json_t *)value, name, inner) {
            if (!json_is_string(inner) && !json_is_number(inner) && !json_is_boolean(inner) &&
                !json_is_array(inner))
                return false;
        }
        return json_is_array(value) || json_is_object(value) || json_is_string(value);
    case TEXTS:
    case NAMES:
        json_array_foreach(value, i, inner) {
            if (!json_is_string(inner) && !(kind == NAMES && json_is_integer(inner)))
                return false;
        }
        return json_is_array(value);
    case PAIRS:
    case DEFINES:
        json_object_foreach((json_t *)value, name, inner) {
            if (!json_is_string(inner) && !(kind == DEFINES && json_is_null(inner)))
                return false;
        }
        return json_is_object(value);
    }
    return false;
}

static const struct key *find_key(const char *name) {
    for (size_t i = 0; i < KEYS; i++) {
        if (!strcmp(keys[i].name, name))
            return &keys[i];
    }
    return NULL;
}

/* What a job with a kernel, or one with an expression, has to have. */
static bool check_required(const json_t *object, struct bhi_complaint *complaint) {
    static const char *const of_kernel[] = {"id", "kernel", "groups"}, *const of_eval[] = {"id",
                                                                                           "out"};
    const bool is_eval = json_object_get(object, "eval") != NULL;
    const char *const *required = is_eval ? of_eval : of_kernel;
    for (size_t i = 0; i < (is_eval ? 2 : 3); i++) {
        if (!json_object_get(object, required[i]))
            return bhi_refuse(complaint, "there is no \"%s\"", required[i]);
    }
    return true;
}

static bool check_object(json_t *object, struct bhi_complaint *complaint) {
    const char *name;
    json_t *value;
    if (!json_is_object(object))
        return bhi_refuse(complaint, "not a job: an object is wanted, {\"id\": …}");
    const enum owner owner = json_object_get(object, "eval") ? EVAL : KERNEL;
    json_object_foreach(object, name, value) {
        const struct key *key = find_key(name);
        if (!key)
            return refuse_key(name, complaint);
        if (!is_of_kind(value, key->kind))
            return bhi_refuse(complaint, "\"%s\": it must be %s", name, kind_names[key->kind]);
        if (!(key->owner & owner))
            return bhi_refuse(complaint, "\"%s\": %s", name,
                              owner == EVAL ? "a job has it that has a kernel, not with \"eval\""
                                            : "a job has it that has \"eval\", not with a kernel");
    }
    return check_required(object, complaint);
}

json_t *bhi_job_object_load(const char *text, size_t length, struct bhi_complaint *complaint) {
    json_error_t error;
    json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!object) {
        if (!error.text[0] || json_error_code(&error) == json_error_out_of_memory)
            bhi_refuse(complaint, "out of memory");
        else
            bhi_refuse(complaint, "not JSON: %s (column %d)", error.text, error.column);
        return NULL;
    }
    if (!check_object(object, complaint) || !bhi_job_lengthen(object, complaint)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* -- as arguments of `bulkhead run` -------------------------------------------------------------
 */

static bool blame(const char *key, const char *name, struct bhi_complaint *complaint) {
    const struct bhi_complaint inner = *complaint;
    if (name)
        return bhi_refuse(complaint, "\"%s\" \"%.*s\": %.800s", key, SHOWN, name, inner.text);
    return bhi_refuse(complaint, "\"%s\": %.800s", key, inner.text);
}

static bool refuse_memory(struct bhi_job_request *request, struct bhi_complaint *complaint) {
    request->error = ENOMEM;
    return bhi_refuse(complaint, "out of memory");
}

static const char *keep(struct bhi_job_request *request, char *text) {
    if (text)
        request->texts[request->text_count++] = text;
    return text;
}

/* |path| in |folder|; owned by the caller. */
static char *join(const char *folder, const char *path) {
    char *whole = NULL;
    if (!folder || path[0] == '/')
        return strdup(path);
    return asprintf(&whole, "%s/%s", folder, path) < 0 ? NULL : whole;
}

/* NAME=VALUE, kept by the request; without |value| NAME. NULL: out of memory. */
static const char *assignment(struct bhi_job_request *request, const char *name,
                              const char *value) {
    char *text = NULL;
    if (!value)
        return keep(request, strdup(name));
    return asprintf(&text, "%s=%s", name, value) < 0 ? NULL : keep(request, text);
}

/* "4,1,1"; NULL: out of memory. */
static const char *grid(struct bhi_job_request *request, const json_t *value) {
    char text[3 * 24] = "";
    size_t used = 0, i;
    json_t *inner;
    if (json_is_string(value))
        return json_string_value(value);
    json_array_foreach(value, i, inner) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", i ? "," : "",
                                 (long long)json_integer_value(inner));
    }
    return keep(request, strdup(text));
}

static bool take(struct bhi_job_request *request, const struct key *key, const char *value,
                 const char *name, struct bhi_complaint *complaint) {
    const int option = request->eval && key->eval_option ? key->eval_option : key->option;
    const struct bhi_arg item = {(enum bhi_option_id)option, value};
    if (!value)
        return refuse_memory(request, complaint);
    if (request->eval && key->eval_option)
        return bhi_eval_parse_item(request->eval, &request->run, &item, complaint) ||
               blame(key->name, name, complaint);
    return bhi_run_parse_item(&request->run, &item, complaint) || blame(key->name, name, complaint);
}

static bool take_pairs(struct bhi_job_request *request, const struct key *key, json_t *pairs,
                       struct bhi_complaint *complaint) {
    const char *name;
    json_t *value;
    json_object_foreach(pairs, name, value) {
        /* It would be read as the end of the name. */
        if (strchr(name, '=')) {
            bhi_refuse(complaint, "there is a '=' in the name");
            return blame(key->name, name, complaint);
        }
        if (!take(request, key, assignment(request, name, json_string_value(value)), name,
                  complaint))
            return false;
    }
    return true;
}

static bool take_includes(struct bhi_job_request *request, const struct key *key, json_t *paths,
                          const char *folder, bool reads, struct bhi_complaint *complaint) {
    size_t i;
    json_t *path;
    json_array_foreach(paths, i, path) {
        const char *text = json_string_value(path);
        if (!*text) {
            bhi_refuse(complaint, "the file name is empty");
            return blame(key->name, NULL, complaint);
        }
        if (reads && !take(request, key, keep(request, join(folder, text)), text, complaint))
            return false;
    }
    return true;
}

static bool take_key(struct bhi_job_request *request, const struct key *key, json_t *value,
                     struct bhi_complaint *complaint) {
    switch (key->kind) {
    case TEXT:
    case NAME:
        return take(request, key, json_string_value(value), NULL, complaint);
    case GRID:
        return take(request, key, grid(request, value), NULL, complaint);
    case SWITCH:
        return json_is_false(value) || take(request, key, "", NULL, complaint);
    case PAIRS:
    case DEFINES:
        return take_pairs(request, key, value, complaint);
    case VALUES: /* an empty array or object is nothing; others are texts by now */
        return json_is_array(value) || json_is_object(value) ||
               take(request, key, json_string_value(value), NULL, complaint);
    case TEXTS:
    case NAMES:
    case NUMBER:
        break;
    }
    return true;
}

/* How many texts it takes at most. */
static size_t count_items(const json_t *object) {
    size_t count = 2; /* kernel, groups */
    for (size_t i = 0; i < KEYS; i++) {
        const json_t *value = json_object_get(object, keys[i].name);
        count += json_is_object(value)  ? json_object_size(value)
                 : json_is_array(value) ? json_array_size(value)
                                        : 1;
    }
    return count;
}

/* Makes the paths of a binding whole; refuses standard streams and two outputs into one file. */
static bool place_binding(struct bhi_job_request *request, uint32_t index, const char *folder,
                          struct bhi_complaint *complaint) {
    struct bhi_run_request *run = &request->run;
    struct bhi_run_binding *binding = &run->bindings[index];
    char **const paths[] = {&binding->in_path, &binding->out_path};
    for (size_t i = 0; i < 2; i++) {
        if (!*paths[i])
            continue;
        if (!strcmp(*paths[i], "-")) {
            bhi_refuse(complaint, "a job has no standard input and output: name a file");
            return blame(binding->option, NULL, complaint);
        }
        char *whole = join(folder, *paths[i]);
        if (!whole)
            return refuse_memory(request, complaint);
        free(*paths[i]);
        *paths[i] = whole;
    }
    for (uint32_t i = 0; binding->out_path && i < index; i++) {
        if (run->bindings[i].out_path && !strcmp(run->bindings[i].out_path, binding->out_path))
            return bhi_refuse(complaint, "\"%s\": %.200s is written by two bindings",
                              binding->option, binding->out_path);
    }
    return true;
}

/* By the names alone: what links lead to is looked at when the job's turn comes. */
static bool refuse_overlap(const struct bhi_run_request *run, struct bhi_complaint *complaint) {
    for (uint32_t i = 0; i < run->binding_count; i++) {
        const struct bhi_run_binding *output = &run->bindings[i];
        if (!output->out_path || (output->in_path && !strcmp(output->in_path, output->out_path)))
            continue;
        for (uint32_t k = 0; k < run->binding_count; k++) {
            const struct bhi_run_binding *input = &run->bindings[k];
            if (input->in_path && !strcmp(input->in_path, output->out_path))
                return bhi_refuse(complaint,
                                  "\"%s\": \"%s\" %.200s reads that file: \"inout\" binds a "
                                  "file that is to be replaced",
                                  output->option, input->option, input->text);
        }
    }
    return true;
}

static bool parse(struct bhi_job_request *request, const char *folder, bool reads_includes,
                  struct bhi_complaint *complaint) {
    for (size_t i = 0; i < KEYS; i++) {
        json_t *value = json_object_get(request->object, keys[i].name);
        if (!value || keys[i].option < 0)
            continue;
        if (keys[i].option == BHI_RUN_I
                ? !take_includes(request, &keys[i], value, folder, reads_includes, complaint)
                : !take_key(request, &keys[i], value, complaint))
            return false;
    }
    for (uint32_t i = 0; i < request->run.binding_count; i++) {
        if (!place_binding(request, i, folder, complaint))
            return false;
    }
    if (request->eval && !request->eval->outputs)
        return bhi_refuse(complaint, "\"out\": there is no output");
    return bhi_run_find_likes(&request->run, "", complaint) &&
           refuse_overlap(&request->run, complaint);
}

/* Room for |items|, and what the job computes. */
static bool begin(json_t *object, const char *folder, size_t items, struct bhi_job_request *request,
                  struct bhi_complaint *complaint) {
    const char *expression = json_string_value(json_object_get(object, "eval"));
    const char *kernel = json_string_value(json_object_get(object, "kernel"));
    request->texts = calloc(items, sizeof *request->texts);
    request->object = json_incref(object);
    request->eval = expression ? calloc(1, sizeof *request->eval) : NULL;
    if (!request->texts || (expression && !request->eval))
        return refuse_memory(request, complaint);
    const char *path = keep(request, expression ? strdup("eval") : join(folder, kernel));
    if (!path)
        return refuse_memory(request, complaint);
    if (expression)
        request->eval->expression = expression;
    return bhi_run_request_init(&request->run, path, items, complaint);
}

bool bhi_job_object_parse(json_t *object, const char *folder, bool reads_includes,
                          struct bhi_job_request *out_request, struct bhi_complaint *complaint) {
    const char *expression = json_string_value(json_object_get(object, "eval"));
    const char *kernel = json_string_value(json_object_get(object, "kernel"));
    *out_request = (struct bhi_job_request){0};
    if (expression && !*expression)
        return bhi_refuse(complaint, "\"eval\": the expression is empty");
    if (!expression && !*kernel)
        return bhi_refuse(complaint, "\"kernel\": the file name is empty");
    if (!expression && !strcmp(kernel, "-"))
        return bhi_refuse(complaint, "\"kernel\": a job has no standard input: name a file");
    if (begin(object, folder, count_items(object), out_request, complaint) &&
        parse(out_request, folder, reads_includes, complaint))
        return true;
    const int error = out_request->error ? out_request->error : out_request->run.source.error;
    bhi_job_request_free(out_request);
    out_request->error = error;
    return false;
}

#include "batch/job/object.h"
#include "tool/nearest.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN = 64 }; /* bytes of a key that a complaint shows */

/* The kind of a key's value. */
enum kind {
    TEXT,    /* a string */
    TIME,    /* a string with a time */
    SIZE,    /* a string with a number of bytes */
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
    [TIME] = "a string such as \"500ms\"",
    [SIZE] = "a string such as \"512M\"",
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

/* Which jobs have the key: those with a kernel, or those with an expression. */
enum owner { KERNEL = 1, EVAL = 2, BOTH = KERNEL | EVAL };

struct key {
    const char *name;
    enum kind kind;
    enum owner owner;
};

static const struct key keys[] = {
    {"id", NAME, BOTH},
    {"kernel", TEXT, KERNEL},
    {"eval", TEXT, EVAL},
    {"entry", TEXT, KERNEL},
    {"language", TEXT, KERNEL},
    {"D", DEFINES, KERNEL},
    {"I", TEXTS, KERNEL},
    {"groups", GRID, KERNEL},
    {"grid", GRID, KERNEL}, /* the same */
    {"block", GRID, KERNEL},
    {"shared", NUMBER, KERNEL},
    {"in", PAIRS, BOTH},
    {"out", PAIRS, BOTH},
    {"inout", PAIRS, KERNEL},
    {"push", VALUES, KERNEL},
    {"spec", PAIRS, KERNEL},
    {"set", PAIRS, EVAL},
    {"piece", SIZE, EVAL},
    {"deadline", TIME, BOTH},
    {"compile_deadline", TIME, BOTH},
    {"memory", SIZE, BOTH},
    {"device", TEXT, BOTH},
    {"reinterpret", SWITCH, KERNEL},
    {"trusted", SWITCH, KERNEL},
    {"retries", NUMBER, BOTH},
    {"priority", NUMBER, BOTH},
    {"depends_on", NAMES, BOTH},
};
enum { KEYS = sizeof keys / sizeof keys[0] };

/* -- keys and kinds -------------------------------------------------------------------------- */

static bool refuse_key(const char *name, struct bhi_complaint *complaint) {
    struct bhi_nearest nearest = {.word = name};
    char all[400] = "";
    for (size_t i = 0; i < KEYS; i++) {
        const size_t used = strlen(all);
        bhi_nearest_try(&nearest, keys[i].name);
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", keys[i].name);
    }
    if (nearest.best) {
        return bhi_refuse(complaint, "unknown key \"%.*s\": did you mean \"%s\"?", SHOWN, name,
                          nearest.best);
    }
    return bhi_refuse(complaint, "unknown key \"%.*s\"; the keys are %s", SHOWN, name, all);
}

static bool is_of_kind(const json_t *value, enum kind kind) {
    const char *name;
    json_t *inner;
    size_t i;
    switch (kind) {
    case TEXT:
    case TIME:
    case SIZE:
        return json_is_string(value);
    case NAME:
        return json_is_string(value) || json_is_integer(value);
    case NUMBER:
        return json_is_integer(value);
    case SWITCH:
        return json_is_boolean(value);
    case GRID:
        if (json_is_string(value) || json_is_integer(value)) {
            return true;
        }
        json_array_foreach(value, i, inner) {
            if (!json_is_integer(inner) || i == 3) {
                return false;
            }
        }
        return json_is_array(value) && json_array_size(value) > 0;
    case VALUES:
        json_array_foreach(value, i, inner) {
            if (!json_is_string(inner) && !json_is_number(inner)) {
                return false;
            }
        }
        json_object_foreach((json_t *)value, name, inner) {
            if (!json_is_string(inner) && !json_is_number(inner) && !json_is_boolean(inner) &&
                !json_is_array(inner)) {
                return false;
            }
        }
        return json_is_array(value) || json_is_object(value) || json_is_string(value);
    case TEXTS:
    case NAMES:
        json_array_foreach(value, i, inner) {
            if (!json_is_string(inner) && !(kind == NAMES && json_is_integer(inner))) {
                return false;
            }
        }
        return json_is_array(value);
    case PAIRS:
    case DEFINES:
        json_object_foreach((json_t *)value, name, inner) {
            if (!json_is_string(inner) && !(kind == DEFINES && json_is_null(inner))) {
                return false;
            }
        }
        return json_is_object(value);
    }
    return false;
}

static const struct key *find_key(const char *name) {
    for (size_t i = 0; i < KEYS; i++) {
        if (!strcmp(keys[i].name, name)) {
            return &keys[i];
        }
    }
    return NULL;
}

/* Checks the required keys of a job with a kernel, or of one with an expression. */
static bool check_required(const json_t *object, struct bhi_complaint *complaint) {
    static const char *const of_kernel[] = {"id", "kernel", "groups"}, *const of_eval[] = {"id",
                                                                                           "out"};
    const bool is_eval = json_object_get(object, "eval");
    const char *const *required = is_eval ? of_eval : of_kernel;
    if (json_object_get(object, "groups") && json_object_get(object, "grid")) {
        return bhi_refuse(complaint, "\"grid\" and \"groups\" are the same: give one");
    }
    for (size_t i = 0; i < (is_eval ? 2 : 3); i++) {
        if (!json_object_get(object, required[i]) &&
            (strcmp(required[i], "groups") != 0 || !json_object_get(object, "grid"))) {
            return bhi_refuse(complaint, "there is no \"%s\"", required[i]);
        }
    }
    return true;
}

static bool check_object(json_t *object, struct bhi_complaint *complaint) {
    const char *name;
    json_t *value;
    if (!json_is_object(object)) {
        return bhi_refuse(complaint, "not a job: it must be an object, {\"id\": …}");
    }
    const enum owner owner = json_object_get(object, "eval") ? EVAL : KERNEL;
    json_object_foreach(object, name, value) {
        const struct key *key = find_key(name);
        if (!key) {
            return refuse_key(name, complaint);
        }
        if (!is_of_kind(value, key->kind)) {
            return bhi_refuse(complaint, "\"%s\": it must be %s", name, kind_names[key->kind]);
        }
        if (!(key->owner & owner)) {
            return bhi_refuse(complaint, "\"%s\": %s", name,
                              owner == EVAL
                                  ? "only a job with a kernel has it, not one with \"eval\""
                                  : "only a job with \"eval\" has it, not one with a kernel");
        }
    }
    return check_required(object, complaint);
}

json_t *bhi_job_object_load(const char *text, size_t length, struct bhi_complaint *complaint) {
    json_error_t error;
    json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!object) {
        if (!error.text[0] || json_error_code(&error) == json_error_out_of_memory) {
            bhi_refuse(complaint, "out of memory");
        } else {
            bhi_refuse(complaint, "not JSON: %s (read up to column %d)", error.text, error.column);
            complaint->not_json = true;
        }
        return NULL;
    }
    if (!check_object(object, complaint) || !bhi_job_lengthen(object, complaint)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* The short forms that a job may be written in. */
#include "base/sort.h"
#include "batch/job/object.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool out_of_memory(struct bhi_complaint *complaint) {
    return bhi_refuse(complaint, "out of memory");
}

/* A number as an id means its text. */
static json_t *id_of(const json_t *value) {
    char text[32];
    if (!json_is_integer(value)) {
        return json_incref((json_t *)value);
    }
    snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
    return json_string(text);
}

static bool lengthen_ids(json_t *array, struct bhi_complaint *complaint) {
    size_t i;
    json_t *value;
    json_array_foreach(array, i, value) {
        if (json_is_integer(value) && json_array_set_new(array, i, id_of(value)) != 0) {
            return out_of_memory(complaint);
        }
    }
    return true;
}

/* Prints one value of "push" with its type. A number without a type gets the member's, printed as
 * ":2". Returns false if it is no value. */
static bool print_value(FILE *out, const json_t *value, size_t index,
                        struct bhi_complaint *complaint) {
    const long long whole = json_integer_value(value);
    const char *text = json_string_value(value);
    if (text && !strchr(text, ':')) {
        return bhi_refuse(complaint,
                          "\"push\": value %zu, \"%.40s\", has no type: write \"f32:%.40s\"",
                          index + 1, text, text);
    }
    if (text) {
        return fputs(text, out) >= 0 || out_of_memory(complaint);
    }
    if (json_is_real(value)) {
        char real[40];
        snprintf(real, sizeof real, "%.17g", json_real_value(value));
        return fprintf(out, ":%s%s", real, strpbrk(real, ".e") ? "" : ".0") >= 0 ||
               out_of_memory(complaint);
    }
    if (whole < INT32_MIN || whole > UINT32_MAX) {
        return bhi_refuse(complaint,
                          "\"push\": value %zu, %lld, needs more than 32 bits: write \"i64:%lld\"",
                          index + 1, whole, whole);
    }
    return fprintf(out, ":%lld", whole) >= 0 || out_of_memory(complaint);
}

/* Returns what was written to |out|, of open_memstream, as a string; NULL if that failed or |good|
 * is false. */
static json_t *take_text(FILE *out, char **text, bool good, struct bhi_complaint *complaint) {
    good = (!out || fclose(out) == 0 || out_of_memory(complaint)) && good;
    json_t *string = good ? json_string(*text) : NULL;
    if (good && !string) {
        out_of_memory(complaint);
    }
    free(*text);
    return string;
}

/* Returns "TYPE:VALUE,…" for an array, or NULL if refused. */
static json_t *push_of(const json_t *array, struct bhi_complaint *complaint) {
    char *text = NULL;
    size_t size, i;
    json_t *value;
    FILE *out = open_memstream(&text, &size);
    bool good = out || out_of_memory(complaint);
    json_array_foreach(array, i, value) {
        if (good && i > 0) {
            fputc(',', out);
        }
        good = good && print_value(out, value, i, complaint);
    }
    return take_text(out, &text, good, complaint);
}

/* Prints one value of a named push constant; the kernel gives its type. */
static bool print_plain(FILE *out, const json_t *value, const char *name,
                        struct bhi_complaint *complaint) {
    const char *text = json_string_value(value);
    if (text && (!*text || strpbrk(text, "="))) {
        return bhi_refuse(complaint, "\"push\" \"%.40s\": \"%.40s\" is not a value", name, text);
    }
    if (!text && !json_is_number(value) && !json_is_boolean(value)) {
        return bhi_refuse(complaint, "\"push\" \"%.40s\": the elements of a vector must be numbers",
                          name);
    }
    const int written =
        text                     ? fputs(text, out)
        : json_is_boolean(value) ? fputs(json_is_true(value) ? "true" : "false", out)
        : json_is_real(value)    ? fprintf(out, "%.17g", json_real_value(value))
                                 : fprintf(out, "%lld", (long long)json_integer_value(value));
    return written >= 0 || out_of_memory(complaint);
}

/* Prints the numbers of a vector, or of a matrix, which has a vector for each column. */
static bool print_all(FILE *out, const json_t *values, const char *name, bool *first, int depth,
                      struct bhi_complaint *complaint) {
    size_t i;
    json_t *value;
    json_array_foreach(values, i, value) {
        if (json_is_array(value) && depth > 0) {
            if (!print_all(out, value, name, first, depth - 1, complaint)) {
                return false;
            }
            continue;
        }
        if (!*first) {
            fputc(',', out);
        }
        *first = false;
        if (!print_plain(out, value, name, complaint)) {
            return false;
        }
    }
    return true;
}

static bool print_named(FILE *out, const char *name, const json_t *value,
                        struct bhi_complaint *complaint) {
    bool first = true;
    if (!*name || strpbrk(name, "=,")) {
        return bhi_refuse(complaint, "\"push\" \"%.40s\": no such name", name);
    }
    fprintf(out, "%s=", name);
    if (!json_is_array(value)) {
        return print_plain(out, value, name, complaint);
    }
    return print_all(out, value, name, &first, 1, complaint) &&
           (!first || bhi_refuse(complaint, "\"push\" \"%.40s\": no value", name));
}

/* Returns "NAME=VALUE,…" for an object, sorted by name, because the order of keys means nothing;
 * NULL if refused. */
static json_t *push_of_names(json_t *object, struct bhi_complaint *complaint) {
    char *text = NULL;
    size_t size, count = 0;
    const char *name, **names = calloc(json_object_size(object), sizeof *names);
    json_t *value;
    FILE *out = open_memstream(&text, &size);
    bool good = (out && names) || out_of_memory(complaint);
    json_object_foreach(object, name, value) {
        if (names) {
            names[count++] = name;
        }
    }
    if (names) {
        bhi_sort_texts(names, count);
    }
    for (size_t i = 0; i < count && good; i++) {
        if (i > 0) {
            fputc(',', out);
        }
        good = print_named(out, names[i], json_object_get(object, names[i]), complaint);
    }
    free(names);
    return take_text(out, &text, good, complaint);
}

bool bhi_job_lengthen(json_t *object, struct bhi_complaint *complaint) {
    const json_t *id = json_object_get(object, "id");
    static const char *const triples[] = {"groups", "grid", "block"};
    json_t *push = json_object_get(object, "push");
    if (json_is_integer(id) && json_object_set_new(object, "id", id_of(id)) != 0) {
        return out_of_memory(complaint);
    }
    for (size_t i = 0; i < sizeof triples / sizeof *triples; i++) {
        const json_t *count = json_object_get(object, triples[i]);
        if (json_is_integer(count) &&
            json_object_set_new(object, triples[i], json_pack("[O]", count)) != 0) {
            return out_of_memory(complaint);
        }
    }
    if (json_array_size(push) > 0 || json_object_size(push) > 0) {
        json_t *text =
            json_is_array(push) ? push_of(push, complaint) : push_of_names(push, complaint);
        if (!text) {
            return false;
        }
        if (json_object_set_new(object, "push", text) != 0) {
            return out_of_memory(complaint);
        }
    }
    return lengthen_ids(json_object_get(object, "depends_on"), complaint);
}

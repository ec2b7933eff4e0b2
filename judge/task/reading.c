#include "judge/task/reading.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "tool/nearest.h"

enum { SHOWN = 64 }; /* bytes of a key that a complaint shows */

/* -- the place of a field -----------------------------------------------------------------------
 * jansson keeps no lines. The text has been parsed, so it is valid JSON.
 */

static const char *skip_blanks(const char *at) {
    return at + strspn(at, " \t\r\n");
}

static const char *skip_string(const char *at) {
    for (at++; *at && *at != '"'; at++) {
        at += *at == '\\' && at[1];
    }
    return *at ? at + 1 : at;
}

static const char *skip_value(const char *at) {
    size_t depth = 0;
    do {
        if (*at == '"') {
            at = skip_string(at);
            continue;
        }
        depth += *at == '{' || *at == '[';
        depth -= (*at == '}' || *at == ']') && depth;
        at++;
    } while (*at && (depth || !strchr(",]} \t\r\n", *at)));
    return at;
}

/* Returns the value of |step| in the object or array at |at|; NULL if there is none. */
static const char *find(const char *at, const struct bhi_reading_step *step) {
    if (*at != (step->key ? '{' : '[')) {
        return NULL;
    }
    at = skip_blanks(at + 1);
    for (size_t i = 0; *at && *at != '}' && *at != ']'; i++) {
        bool found = !step->key && i == step->index;
        if (step->key) {
            const char *end = skip_string(at);
            const size_t length = strlen(step->key);
            found = (size_t)(end - at) == length + 2 && !strncmp(at + 1, step->key, length);
            at = skip_blanks(end);
            at = skip_blanks(at + (*at == ':'));
        }
        if (found) {
            return at;
        }
        at = skip_blanks(skip_value(at));
        at = skip_blanks(at + (*at == ','));
    }
    return NULL;
}

size_t bhi_reading_line(const struct bhi_reading *reading) {
    const char *at = skip_blanks(reading->text);
    for (size_t i = 0; i < reading->depth; i++) {
        const char *inner = find(at, &reading->steps[i]);
        if (!inner) {
            break;
        }
        at = inner;
    }
    size_t line = 1 + reading->lines_before;
    for (const char *c = reading->text; c < at; c++) {
        line += *c == '\n';
    }
    return line;
}

/* -- complaints ------------------------------------------------------------------------------ */

enum { FIELD = 400 };

/* Writes "key" [0] "key". */
static void write_field(const struct bhi_reading *reading, char field[FIELD]) {
    field[0] = '\0';
    for (size_t i = 0; i < reading->depth; i++) {
        const struct bhi_reading_step *step = &reading->steps[i];
        const size_t used = strlen(field);
        if (step->key) {
            bhi_format(field + used, FIELD - used, "%s\"%.*s\"", used ? " " : "", SHOWN, step->key);
        } else {
            bhi_format(field + used, FIELD - used, "%s[%zu]", used ? " " : "", step->index);
        }
    }
}

char *bhi_reading_field(const struct bhi_reading *reading) {
    char field[FIELD], *text = NULL;
    write_field(reading, field);
    return asprintf(&text, "%.200s:%zu: %s", reading->name, bhi_reading_line(reading), field) < 0
               ? NULL
               : text;
}

bool bhi_reading_blame(const struct bhi_reading *reading) {
    const struct bhi_complaint inner = *reading->complaint;
    char field[FIELD];
    write_field(reading, field);
    return bhi_refuse(reading->complaint, "%.200s:%zu: %s%s%.500s", reading->name,
                      bhi_reading_line(reading), field, *field ? ": " : "", inner.text);
}

bool bhi_reading_refuse(const struct bhi_reading *reading, const char *format, ...) {
    va_list list;
    va_start(list, format);
    bhi_vformat(reading->complaint->text, sizeof reading->complaint->text, format, list);
    va_end(list);
    return bhi_reading_blame(reading);
}

void bhi_reading_enter(struct bhi_reading *reading, const char *key) {
    reading->steps[reading->depth++] = (struct bhi_reading_step){.key = key};
}

void bhi_reading_enter_element(struct bhi_reading *reading, size_t index) {
    reading->steps[reading->depth++] = (struct bhi_reading_step){.index = index};
}

void bhi_reading_leave(struct bhi_reading *reading) {
    reading->depth--;
}

static bool refuse_key(struct bhi_reading *reading, const char *key, const char *const *keys) {
    struct bhi_nearest nearest = {.word = key};
    char all[400] = "";
    for (const char *const *one = keys; *one; one++) {
        const size_t used = strlen(all);
        bhi_nearest_try(&nearest, *one);
        bhi_format(all + used, sizeof all - used, "%s%s", used ? ", " : "", *one);
    }
    bhi_reading_enter(reading, key);
    if (nearest.best) {
        bhi_reading_refuse(reading, "unknown key: did you mean \"%s\"?", nearest.best);
    } else {
        bhi_reading_refuse(reading, "unknown key; the keys are %s", all);
    }
    bhi_reading_leave(reading);
    return false;
}

bool bhi_reading_check_keys(struct bhi_reading *reading, const json_t *object,
                            const char *const *keys) {
    const char *key;
    json_t *value;
    if (!json_is_object(object)) {
        return bhi_reading_refuse(reading, "it must be an object");
    }
    json_object_foreach((json_t *)object, key, value) {
        const char *const *one = keys;
        while (*one && strcmp(*one, key) != 0) {
            one++;
        }
        if (!*one) {
            return refuse_key(reading, key, keys);
        }
    }
    return true;
}

#include "judge/task/arrays.h"

#include <math.h>
#include <string.h>

#include "formats/dtype.h"

/* "uniform": [LOW, HIGH], "normal": [MEAN, DEVIATION], "integers": [FIRST, LAST]. */
static bool take_pair(struct bhi_task_parser *parser, const json_t *value,
                      enum bhi_filler_kind kind, struct bhi_filler *out) {
    const json_t *low = json_array_get(value, 0), *high = json_array_get(value, 1);
    struct bhi_reading *reading = &parser->reading;
    if (json_array_size(value) != 2) {
        return bhi_reading_refuse(reading, "it must be an array of two numbers");
    }
    out->kind = kind;
    if (kind == BHI_FILLER_INTEGERS) {
        if (!json_is_integer(low) || !json_is_integer(high)) {
            return bhi_reading_refuse(reading, "it must be an array of two whole numbers");
        }
        out->first = json_integer_value(low);
        out->last = json_integer_value(high);
        return out->first <= out->last ||
               bhi_reading_refuse(reading, "the first number is greater than the last");
    }
    if (!bhi_task_take_real(parser, low, &out->low) ||
        !bhi_task_take_real(parser, high, &out->high)) {
        return false;
    }
    if (kind == BHI_FILLER_NORMAL) {
        return out->high >= 0 || bhi_reading_refuse(reading, "the deviation is less than 0");
    }
    return (out->low <= out->high && isfinite(out->high - out->low)) ||
           bhi_reading_refuse(reading, "the first number is greater than the last, or they are "
                                       "further apart than f64 can count");
}

static const char *const generators = "uniform, normal, integers, bits, special, file";

static bool take_named_filler(struct bhi_task_parser *parser, const char *name,
                              struct bhi_filler *out) {
    if (!strcmp(name, "uniform")) {
        *out = (struct bhi_filler){.kind = BHI_FILLER_UNIFORM, .high = 1};
    } else if (!strcmp(name, "normal")) {
        *out = (struct bhi_filler){.kind = BHI_FILLER_NORMAL, .high = 1};
    } else if (!strcmp(name, "bits")) {
        *out = (struct bhi_filler){.kind = BHI_FILLER_BITS};
    } else if (!strcmp(name, "special")) {
        *out = (struct bhi_filler){.kind = BHI_FILLER_BITS, .special = 1};
    } else if (!strcmp(name, "integers") || !strcmp(name, "file")) {
        return bhi_reading_refuse(&parser->reading, "'%s' needs a value: {\"%s\": %s}", name, name,
                                  name[0] == 'f' ? "\"x.npy\"" : "[0, 9]");
    } else {
        return bhi_reading_refuse(&parser->reading, "there is no generator '%.60s'; there are %s",
                                  name, generators);
    }
    return true;
}

/* One key of an object "fill". */
static bool take_filler_key(struct bhi_task_parser *parser, const char *key, const json_t *value,
                            struct bhi_task_array *out) {
    struct bhi_filler *filler = &out->filler;
    const double special = filler->special;
    bool good = true;
    if (!strcmp(key, "special")) {
        good = bhi_task_take_real(parser, value, &filler->special);
        return good && ((filler->special >= 0 && filler->special <= 1) ||
                        bhi_reading_refuse(&parser->reading, "it must be from 0 to 1"));
    }
    if (!strcmp(key, "uniform")) {
        good = take_pair(parser, value, BHI_FILLER_UNIFORM, filler);
    } else if (!strcmp(key, "normal")) {
        good = take_pair(parser, value, BHI_FILLER_NORMAL, filler);
    } else if (!strcmp(key, "integers")) {
        good = take_pair(parser, value, BHI_FILLER_INTEGERS, filler);
    } else if (!strcmp(key, "file")) {
        filler->kind = BHI_FILLER_FILE;
        good = bhi_task_take_file(parser, value, &out->file);
    } else {
        good = bhi_reading_refuse(&parser->reading, "there is no such generator; there are %s",
                                  generators);
    }
    filler->special = special;
    return good;
}

static bool take_filler(struct bhi_task_parser *parser, const json_t *fill,
                        struct bhi_task_array *out) {
    const char *key;
    json_t *value;
    size_t generated = 0;
    if (!fill) {
        return bhi_reading_refuse(&parser->reading, "there is no \"fill\"");
    }
    bhi_reading_enter(&parser->reading, "fill");
    if (json_is_string(fill)) {
        if (!take_named_filler(parser, json_string_value(fill), &out->filler)) {
            return false;
        }
        bhi_reading_leave(&parser->reading);
        return true;
    }
    if (!json_is_object(fill)) {
        return bhi_reading_refuse(&parser->reading,
                                  "it must be a generator: \"normal\", or {\"uniform\": [-1, 1]}");
    }
    json_object_foreach((json_t *)fill, key, value) {
        bhi_reading_enter(&parser->reading, key);
        if (!take_filler_key(parser, key, value, out)) {
            return false;
        }
        bhi_reading_leave(&parser->reading);
        generated += strcmp(key, "special") != 0;
    }
    if (generated != 1) {
        return bhi_reading_refuse(&parser->reading, "there must be one generator; it has %zu",
                                  generated);
    }
    if (out->filler.kind == BHI_FILLER_FILE && out->filler.special > 0) {
        return bhi_reading_refuse(&parser->reading, "a file has no \"special\" values");
    }
    bhi_reading_leave(&parser->reading);
    return true;
}

static bool take_nan(struct bhi_task_parser *parser, const json_t *value, enum bhi_nan *out) {
    static const char *const words[] = {"refuse", "equal", "any"};
    const char *word = json_string_value(value);
    for (size_t i = 0; word && i < 3; i++) {
        if (!strcmp(word, words[i])) {
            *out = (enum bhi_nan)i;
            return true;
        }
    }
    return bhi_reading_refuse(&parser->reading, "it must be \"refuse\", \"equal\" or \"any\"");
}

static bool take_limit(struct bhi_task_parser *parser, const json_t *value, double *out) {
    return bhi_task_take_real(parser, value, out) &&
           ((*out >= 0 && isfinite(*out)) ||
            bhi_reading_refuse(&parser->reading, "it must not be less than 0"));
}

static bool take_tolerance_key(struct bhi_task_parser *parser, const char *key, const json_t *value,
                               struct bhi_tolerance *out) {
    if (!strcmp(key, "abs")) {
        out->kind = BHI_TOLERANCE_NEAR;
        return take_limit(parser, value, &out->absolute);
    }
    if (!strcmp(key, "rel")) {
        out->kind = BHI_TOLERANCE_NEAR;
        return take_limit(parser, value, &out->relative);
    }
    if (!strcmp(key, "nan")) {
        return take_nan(parser, value, &out->nan);
    }
    out->kind = BHI_TOLERANCE_ULP;
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return bhi_reading_refuse(&parser->reading, "it must be a whole number from 0");
    }
    out->ulp = (uint64_t)json_integer_value(value);
    return true;
}

static bool take_tolerance(struct bhi_task_parser *parser, const json_t *object,
                           struct bhi_tolerance *out) {
    static const char *const keys[] = {"abs", "rel", "ulp", "nan"};
    for (size_t i = 0; i < 4; i++) {
        const json_t *value = json_object_get(object, keys[i]);
        if (!value) {
            continue;
        }
        bhi_reading_enter(&parser->reading, keys[i]);
        if (!take_tolerance_key(parser, keys[i], value, out)) {
            return false;
        }
        if (i == 2 && (json_object_get(object, "abs") || json_object_get(object, "rel"))) {
            return bhi_reading_refuse(&parser->reading, "it excludes \"abs\" and \"rel\"");
        }
        bhi_reading_leave(&parser->reading);
    }
    return true;
}

static bool take_dtype(struct bhi_task_parser *parser, const json_t *value, bh_dtype *out) {
    const char *name = json_string_value(value);
    bhi_reading_enter(&parser->reading, "dtype");
    if (!name || !bhi_dtype_find(name, strlen(name), out)) {
        return bhi_reading_refuse(&parser->reading, "it must be one of " BHI_DTYPE_NAMES);
    }
    bhi_reading_leave(&parser->reading);
    return true;
}

static bool take_shape(struct bhi_task_parser *parser, const json_t *shape,
                       struct bhi_task_array *out) {
    json_t *length;
    size_t i;
    bhi_reading_enter(&parser->reading, "shape");
    if (!json_is_array(shape) || json_array_size(shape) > BHI_TASK_RANK) {
        return bhi_reading_refuse(&parser->reading,
                                  "it must be an array of at most %d lengths, such as [\"n\", 3]",
                                  BHI_TASK_RANK);
    }
    json_array_foreach(shape, i, length) {
        bhi_reading_enter_element(&parser->reading, i);
        if (!bhi_task_take_number(parser, length, &out->shape[out->rank++])) {
            return false;
        }
        bhi_reading_leave(&parser->reading);
    }
    bhi_reading_leave(&parser->reading);
    return true;
}

const char *const bhi_task_role_keys[3] = {"in", "inout", "out"};

static bool take_array(struct bhi_task_parser *parser, const json_t *object,
                       struct bhi_task_array *out) {
    static const char *const of_in[] = {"dtype", "shape", "fill", NULL};
    static const char *const of_inout[] = {"dtype", "shape", "fill", "abs",
                                           "rel",   "ulp",   "nan",  NULL};
    static const char *const of_out[] = {"dtype", "shape", "abs", "rel", "ulp", "nan", NULL};
    static const char *const *const keys[] = {of_in, of_inout, of_out};
    return bhi_reading_check_keys(&parser->reading, object, keys[out->role]) &&
           take_dtype(parser, json_object_get(object, "dtype"), &out->dtype) &&
           take_shape(parser, json_object_get(object, "shape"), out) &&
           (out->role == BHI_TASK_OUT ||
            take_filler(parser, json_object_get(object, "fill"), out)) &&
           (out->role == BHI_TASK_IN || take_tolerance(parser, object, &out->tolerance));
}

bool bhi_task_take_arrays(struct bhi_task_parser *parser, enum bhi_task_role role) {
    struct bhi_task *task = parser->task;
    json_t *arrays = json_object_get(task->json, bhi_task_role_keys[role]);
    const char *place;
    json_t *object;
    bhi_reading_enter(&parser->reading, bhi_task_role_keys[role]);
    if (arrays && !json_is_object(arrays)) {
        return bhi_reading_refuse(&parser->reading, "it must be an object of bindings");
    }
    json_object_foreach(arrays, place, object) {
        bhi_reading_enter(&parser->reading, place);
        if (task->array_count == BHI_TASK_ARRAYS) {
            return bhi_reading_refuse(&parser->reading, "more than %d arrays", BHI_TASK_ARRAYS);
        }
        for (size_t i = 0; i < task->array_count; i++) {
            if (!strcmp(task->arrays[i].place, place)) {
                return bhi_reading_refuse(&parser->reading, "it is in \"%s\", too",
                                          bhi_task_role_keys[task->arrays[i].role]);
            }
        }
        struct bhi_task_array *array = &task->arrays[task->array_count++];
        *array = (struct bhi_task_array){.place = place, .role = role};
        if (!*place || strpbrk(place, "=,")) {
            return bhi_reading_refuse(&parser->reading, "no binding is called so");
        }
        if (!take_array(parser, object, array)) {
            return false;
        }
        bhi_reading_leave(&parser->reading);
    }
    bhi_reading_leave(&parser->reading);
    return true;
}

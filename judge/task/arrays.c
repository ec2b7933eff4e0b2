/* The arrays of a task: what they are filled with, and when they are right. */
#include <math.h>
#include <string.h>

#include "formats/dtype.h"
#include "judge/task/parser.h"

static bool take_real(struct parser *parser, const json_t *value, double *out) {
    if (!json_is_number(value)) {
        return refuse(parser, "it must be a number");
    }
    *out = json_number_value(value);
    return true;
}

/* -- generators ------------------------------------------------------------------------------ */

/* An end of INTEGERS: a whole number, or an expression that is computed for each size. */
static bool take_end(const json_t *value, int64_t *out, const char **out_expression) {
    *out_expression = json_string_value(value);
    *out = json_integer_value(value); /* 0 of a text */
    return *out_expression || json_is_integer(value);
}

static bool take_integers(struct parser *parser, const json_t *pair, struct bhi_filler *out,
                          struct bhi_task_ends *out_ends) {
    if (!take_end(json_array_get(pair, 0), &out->first, &out_ends->first) ||
        !take_end(json_array_get(pair, 1), &out->last, &out_ends->last)) {
        return refuse(parser, "it must be an array of two whole numbers, or expressions such as "
                              "\"n - 1\"");
    }
    /* Until it is computed, an expression is another number than the other end, unless that is the
     * same expression. */
    if (out_ends->first && out_ends->last) {
        out->last = strcmp(out_ends->first, out_ends->last) != 0;
    } else if (out_ends->first) {
        out->first = !out->last;
    } else if (out_ends->last) {
        out->last = !out->first;
    }
    return out_ends->first || out_ends->last || out->first <= out->last ||
           refuse(parser, "the first number is greater than the last");
}

bool bhi_parser_take_pair(struct parser *parser, const json_t *value, enum bhi_filler_kind kind,
                          struct bhi_filler *out, struct bhi_task_ends *out_ends) {
    const json_t *low = json_array_get(value, 0), *high = json_array_get(value, 1);
    if (json_array_size(value) != 2) {
        return refuse(parser, "it must be an array of two numbers");
    }
    out->kind = kind;
    if (kind == BHI_FILLER_INTEGERS) {
        return take_integers(parser, value, out, out_ends);
    }
    if (!take_real(parser, low, &out->low) || !take_real(parser, high, &out->high)) {
        return false;
    }
    if (kind == BHI_FILLER_NORMAL) {
        return out->high >= 0 || refuse(parser, "the deviation is less than 0");
    }
    return (out->low <= out->high && isfinite(out->high - out->low)) ||
           refuse(parser, "the first number is greater than the last, or they are "
                          "further apart than f64 can count");
}

static const char *const generators = "uniform, normal, integers, bits, special, file";

static bool take_named_filler(struct parser *parser, const char *name, struct bhi_filler *out) {
    if (!strcmp(name, "uniform")) {
        *out = (struct bhi_filler){.kind = BHI_FILLER_UNIFORM, .high = 1};
    } else if (!strcmp(name, "normal")) {
        *out = (struct bhi_filler){.kind = BHI_FILLER_NORMAL, .high = 1};
    } else if (!strcmp(name, "bits")) {
        *out = (struct bhi_filler){.kind = BHI_FILLER_BITS};
    } else if (!strcmp(name, "special")) {
        *out = (struct bhi_filler){.kind = BHI_FILLER_BITS, .special = 1};
    } else if (!strcmp(name, "integers") || !strcmp(name, "file")) {
        return refuse(parser, "'%s' needs a value: {\"%s\": %s}", name, name,
                      name[0] == 'f' ? "\"x.npy\"" : "[0, 9]");
    } else {
        return refuse(parser, "there is no generator '%.60s'; there are %s", name, generators);
    }
    return true;
}

/* One key of an object "fill". */
static bool take_filler_key(struct parser *parser, const char *key, const json_t *value,
                            struct bhi_task_array *out) {
    struct bhi_filler *filler = &out->filler;
    const double special = filler->special;
    bool good = true;
    if (!strcmp(key, "special")) {
        good = take_real(parser, value, &filler->special);
        return good && ((filler->special >= 0 && filler->special <= 1) ||
                        refuse(parser, "it must be from 0 to 1"));
    }
    if (!strcmp(key, "uniform")) {
        good = bhi_parser_take_pair(parser, value, BHI_FILLER_UNIFORM, filler, &out->ends);
    } else if (!strcmp(key, "normal")) {
        good = bhi_parser_take_pair(parser, value, BHI_FILLER_NORMAL, filler, &out->ends);
    } else if (!strcmp(key, "integers")) {
        good = bhi_parser_take_pair(parser, value, BHI_FILLER_INTEGERS, filler, &out->ends);
    } else if (!strcmp(key, "file")) {
        filler->kind = BHI_FILLER_FILE;
        good = bhi_parser_take_file(parser, value, &out->file);
    } else {
        good = refuse(parser, "there is no such generator; there are %s", generators);
    }
    filler->special = special;
    return good;
}

/* "fill" of an array, or an element of its "fills", where the reading is. */
static bool take_generator(struct parser *parser, const json_t *fill, struct bhi_task_array *out) {
    const char *key;
    json_t *value;
    size_t generated = 0;
    if (json_is_string(fill)) {
        return take_named_filler(parser, json_string_value(fill), &out->filler);
    }
    if (!json_is_object(fill)) {
        return refuse(parser, "it must be a generator: \"normal\", or {\"uniform\": [-1, 1]}");
    }
    json_object_foreach((json_t *)fill, key, value) {
        enter(parser, key);
        if (!take_filler_key(parser, key, value, out)) {
            return false;
        }
        leave(parser);
        generated += strcmp(key, "special") != 0;
    }
    if (generated != 1) {
        return refuse(parser, "there must be one generator; it has %zu", generated);
    }
    if (out->filler.kind == BHI_FILLER_FILE && out->filler.special > 0) {
        return refuse(parser, "a file has no \"special\" values");
    }
    return true;
}

static bool take_filler(struct parser *parser, const json_t *fill, struct bhi_task_array *out) {
    if (!fill) {
        return refuse(parser, "there is no \"fill\"");
    }
    enter(parser, "fill");
    return take_generator(parser, fill, out) && leave(parser);
}

/* -- fills ----------------------------------------------------------------------------------- */

static const char *const arrangements =
    "equal, sorted, reversed, ties, ends, zeros, tiny, huge, permutation";

/* One of "fills": an arrangement of what the array's generator makes, or another generator. */
static bool take_fill(struct parser *parser, const json_t *value,
                      const struct bhi_task_array *array, struct bhi_task_fill *out) {
    const char *name = json_string_value(value);
    *out = (struct bhi_task_fill){.filler = array->filler, .ends = array->ends, .name = name};
    for (int i = BHI_ARRANGE_NONE + 1; name && i < BHI_ARRANGEMENTS; i++) {
        if (!strcmp(name, bhi_arrangement_names[i])) {
            out->arrangement = (enum bhi_arrangement)i;
            return true;
        }
    }
    struct bhi_task_array other = {.place = array->place};
    if (name && strcmp(name, "uniform") != 0 && strcmp(name, "normal") != 0 &&
        strcmp(name, "bits") != 0 && strcmp(name, "special") != 0) {
        return refuse(parser, "there is no '%.60s'; there are %s, and the generators of \"fill\"",
                      name, arrangements);
    }
    if (!name && json_object_get(value, "file")) {
        return refuse(parser, "a file is no fill");
    }
    if (!take_generator(parser, value, &other)) {
        return false;
    }
    out->filler = other.filler;
    out->ends = other.ends;
    out->name = name ? name : json_object_iter_key(json_object_iter((json_t *)value));
    return true;
}

/* "fills" of an array, or of the task for each array that has none. */
static bool take_fills(struct parser *parser, const json_t *fills, struct bhi_task_array *out) {
    json_t *value;
    size_t i;
    enter(parser, "fills");
    if (!json_is_array(fills) || json_array_size(fills) > BHI_TASK_FILLS) {
        return refuse(parser, "it must be an array of at most %d: %s, or generators",
                      BHI_TASK_FILLS, arrangements);
    }
    if (out->filler.kind == BHI_FILLER_FILE && json_array_size(fills)) {
        return refuse(parser, "its content is that of a file");
    }
    json_array_foreach(fills, i, value) {
        enter_element(parser, i);
        if (!take_fill(parser, value, out, &out->fills[out->fill_count++])) {
            return false;
        }
        leave(parser);
    }
    return leave(parser);
}

static bool has_own_fills(const struct bhi_task *task, const struct bhi_task_array *array) {
    const json_t *arrays = json_object_get(task->json, bhi_task_role_names[array->role]);
    return json_object_get(json_object_get(arrays, array->place), "fills");
}

bool bhi_parser_take_common_fills(struct parser *parser) {
    struct bhi_task *task = parser->task;
    const json_t *fills = json_object_get(task->json, "fills");
    task->default_fills = !fills;
    for (size_t i = 0; i < task->array_count; i++) {
        task->default_fills &= !has_own_fills(task, &task->arrays[i]);
    }
    for (size_t i = 0; i < task->array_count; i++) {
        struct bhi_task_array *array = &task->arrays[i];
        if (array->role == BHI_TASK_OUT || bhi_filler_knows_one_value(&array->filler) ||
            has_own_fills(task, array)) {
            continue;
        }
        if (fills && !take_fills(parser, fills, array)) {
            return false;
        }
        for (int k = BHI_ARRANGE_EQUAL; k <= BHI_ARRANGE_ENDS && task->default_fills; k++) {
            array->fills[array->fill_count++] = (struct bhi_task_fill){
                (enum bhi_arrangement)k, array->filler, array->ends, bhi_arrangement_names[k]};
        }
    }
    return true;
}

/* -- tolerances, types, shapes --------------------------------------------------------------- */

static bool take_nan(struct parser *parser, const json_t *value, enum bhi_nan *out) {
    static const char *const words[] = {"refuse", "equal", "any"};
    const char *word = json_string_value(value);
    for (size_t i = 0; word && i < 3; i++) {
        if (!strcmp(word, words[i])) {
            *out = (enum bhi_nan)i;
            return true;
        }
    }
    return refuse(parser, "it must be \"refuse\", \"equal\" or \"any\"");
}

static bool take_limit(struct parser *parser, const json_t *value, double *out) {
    return take_real(parser, value, out) &&
           ((*out >= 0 && isfinite(*out)) || refuse(parser, "it must not be less than 0"));
}

static bool take_comparison(struct parser *parser, const json_t *value, enum bhi_comparison *out) {
    static const char *const words[] = {[BHI_BY_ELEMENTS] = "elements",
                                        [BHI_BY_MULTISET] = "unordered",
                                        [BHI_BY_NORM] = "norm",
                                        [BHI_BY_CHECK] = "check"};
    const char *word = json_string_value(value);
    for (int i = 0; word && i <= BHI_BY_CHECK; i++) {
        if (!strcmp(word, words[i])) {
            *out = (enum bhi_comparison)i;
            return true;
        }
    }
    return refuse(parser, "it must be \"elements\", \"unordered\", \"norm\" or \"check\"");
}

/* Does the tolerance suit the comparison? */
static bool check_comparison(struct parser *parser, const json_t *object,
                             const struct bhi_tolerance *tolerance) {
    const bool has_abs = json_object_get(object, "abs"), has_rel = json_object_get(object, "rel"),
               has_ulp = json_object_get(object, "ulp");
    enter(parser, "compare");
    if (tolerance->by == BHI_BY_NORM && (!has_rel || has_abs || has_ulp)) {
        return refuse(parser, "\"norm\" needs \"rel\", and no \"abs\" or \"ulp\"");
    }
    if (tolerance->by == BHI_BY_CHECK && (has_abs || has_rel || has_ulp)) {
        return refuse(parser, "\"check\" excludes \"abs\", \"rel\" and \"ulp\"");
    }
    if (tolerance->by == BHI_BY_MULTISET && tolerance->nan == BHI_NAN_ANY) {
        return refuse(parser, "\"unordered\" excludes \"nan\": \"any\"");
    }
    return leave(parser);
}

static bool take_tolerance_key(struct parser *parser, const char *key, const json_t *value,
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
    if (!strcmp(key, "compare")) {
        return take_comparison(parser, value, &out->by);
    }
    out->kind = BHI_TOLERANCE_ULP;
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return refuse(parser, "it must be a whole number from 0");
    }
    out->ulp = (uint64_t)json_integer_value(value);
    return true;
}

static bool take_tolerance(struct parser *parser, const json_t *object, struct bhi_tolerance *out) {
    static const char *const keys[] = {"abs", "rel", "ulp", "nan", "compare"};
    for (size_t i = 0; i < 5; i++) {
        const json_t *value = json_object_get(object, keys[i]);
        if (!value) {
            continue;
        }
        enter(parser, keys[i]);
        if (!take_tolerance_key(parser, keys[i], value, out)) {
            return false;
        }
        if (i == 2 && (json_object_get(object, "abs") || json_object_get(object, "rel"))) {
            return refuse(parser, "it excludes \"abs\" and \"rel\"");
        }
        leave(parser);
    }
    return check_comparison(parser, object, out);
}

bool bhi_parser_take_dtype(struct parser *parser, const json_t *value, bh_dtype *out) {
    const char *name = json_string_value(value);
    enter(parser, "dtype");
    if (!name || !bhi_dtype_find_element(name, strlen(name), out)) {
        return refuse(parser, "it must be one of " BHI_DTYPE_NAMES " " BHI_SMALL_FLOAT_NAMES);
    }
    return leave(parser);
}

bool bhi_parser_take_shape(struct parser *parser, const json_t *shape, struct bhi_task_array *out) {
    json_t *length;
    size_t i;
    enter(parser, "shape");
    if (!json_is_array(shape) || json_array_size(shape) > BHI_TASK_RANK) {
        return refuse(parser, "it must be an array of at most %d lengths, such as [\"n\", 3]",
                      BHI_TASK_RANK);
    }
    json_array_foreach(shape, i, length) {
        enter_element(parser, i);
        if (!bhi_parser_take_number(parser, length, &out->shape[out->rank++])) {
            return false;
        }
        leave(parser);
    }
    return leave(parser);
}

static bool take_array(struct parser *parser, const json_t *object, struct bhi_task_array *out) {
    static const char *const of_in[] = {"dtype", "shape", "fill", "fills", NULL};
    static const char *const of_inout[] = {"dtype", "shape", "fill", "fills",   "abs",
                                           "rel",   "ulp",   "nan",  "compare", NULL};
    const json_t *fills = json_object_get(object, "fills");
    static const char *const of_out[] = {"dtype", "shape", "abs",     "rel",
                                         "ulp",   "nan",   "compare", NULL};
    static const char *const *const keys[] = {of_in, of_inout, of_out};
    return bhi_reading_check_keys(&parser->reading, object, keys[out->role]) &&
           bhi_parser_take_dtype(parser, json_object_get(object, "dtype"), &out->dtype) &&
           bhi_parser_take_shape(parser, json_object_get(object, "shape"), out) &&
           (out->role == BHI_TASK_OUT ||
            take_filler(parser, json_object_get(object, "fill"), out)) &&
           (!fills || take_fills(parser, fills, out)) &&
           (out->role == BHI_TASK_IN || take_tolerance(parser, object, &out->tolerance));
}

bool bhi_parser_take_arrays(struct parser *parser, enum bhi_task_role role) {
    struct bhi_task *task = parser->task;
    json_t *arrays = json_object_get(task->json, bhi_task_role_names[role]);
    const char *place;
    json_t *object;
    enter(parser, bhi_task_role_names[role]);
    if (arrays && !json_is_object(arrays)) {
        return refuse(parser, "it must be an object of bindings");
    }
    json_object_foreach(arrays, place, object) {
        enter(parser, place);
        if (task->array_count == BHI_TASK_ARRAYS) {
            return refuse(parser, "more than %d arrays", BHI_TASK_ARRAYS);
        }
        for (size_t i = 0; i < task->array_count; i++) {
            if (!strcmp(task->arrays[i].place, place)) {
                return refuse(parser, "it is in \"%s\", too",
                              bhi_task_role_names[task->arrays[i].role]);
            }
        }
        struct bhi_task_array *array = &task->arrays[task->array_count++];
        *array = (struct bhi_task_array){.place = place, .role = role};
        if (!*place || strpbrk(place, "=,")) {
            return refuse(parser, "no binding is called so");
        }
        if (!take_array(parser, object, array)) {
            return false;
        }
        leave(parser);
    }
    return leave(parser);
}

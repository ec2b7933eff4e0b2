/* From the text of a task to its struct. Each field is checked where it is read, so that a
 * complaint names its line; what follows from several fields is checked at the end (check_all). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/dtype.h"
#include "judge/task/reading.h"
#include "judge/task/task.h"
#include "request/code.h"
#include "request/language.h"
#include "tool/values.h"

struct parser {
    struct bhi_reading reading;
    const char *folder;
    struct bhi_task *task;
};

/* -- single fields: a wrong value is refused with line and field ----------------------------- */

static void enter(struct parser *parser, const char *key) {
    bhi_reading_enter(&parser->reading, key);
}

static void enter_element(struct parser *parser, size_t index) {
    bhi_reading_enter_element(&parser->reading, index);
}

/* Returns true. */
static bool leave(struct parser *parser) {
    bhi_reading_leave(&parser->reading);
    return true;
}

#define refuse(parser, ...) bhi_reading_refuse(&(parser)->reading, __VA_ARGS__)

static bool refuse_memory(const struct parser *parser) {
    return bhi_refuse_memory(parser->reading.complaint);
}

/* Returns |path| in the task's folder, for the caller to free; NULL: out of memory. */
static char *place_file(const struct parser *parser, const char *path) {
    char *whole = NULL;
    if (path[0] == '/' || !parser->folder[0]) {
        return strdup(path);
    }
    return asprintf(&whole, "%s/%s", parser->folder, path) < 0 ? NULL : whole;
}

/* Takes a file of the task's folder. */
static bool take_file(struct parser *parser, const json_t *value, struct bhi_task_file *out) {
    const char *path = json_string_value(value);
    if (!path || !*path) {
        return refuse(parser, "it must be the name of a file");
    }
    out->path = place_file(parser, path);
    out->field = bhi_reading_field(&parser->reading);
    return (out->path && out->field) || refuse_memory(parser);
}

/* Takes a whole number from 1, or an expression. Whether that can be computed is checked when the
 * sizes are known. */
static bool take_number(struct parser *parser, const json_t *value, struct bhi_task_number *out) {
    if (json_is_string(value)) {
        out->expression = json_string_value(value);
        return true;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 1) {
        return refuse(parser, "it must be a whole number from 1, or an expression such as "
                              "\"n\" or \"n * m\"");
    }
    out->value = (uint64_t)json_integer_value(value);
    return true;
}

static bool take_real(struct parser *parser, const json_t *value, double *out) {
    if (!json_is_number(value)) {
        return refuse(parser, "it must be a number");
    }
    *out = json_number_value(value);
    return true;
}

/* Refuses what expressions cannot name. */
static bool check_name(struct parser *parser, const char *name) {
    return bhi_size_is_name(name) ||
           refuse(parser,
                  "no name: a letter or _, then letters, digits and _, at most %d, and "
                  "not min, max or ceildiv",
                  BHI_SIZE_NAME);
}

/* -- arrays: types, shapes, generators, tolerances ------------------------------------------- */

/* "uniform": [LOW, HIGH], "normal": [MEAN, DEVIATION], "integers": [FIRST, LAST]. */
static bool take_pair(struct parser *parser, const json_t *value, enum bhi_filler_kind kind,
                      struct bhi_filler *out) {
    const json_t *low = json_array_get(value, 0), *high = json_array_get(value, 1);
    if (json_array_size(value) != 2) {
        return refuse(parser, "it must be an array of two numbers");
    }
    out->kind = kind;
    if (kind == BHI_FILLER_INTEGERS) {
        if (!json_is_integer(low) || !json_is_integer(high)) {
            return refuse(parser, "it must be an array of two whole numbers");
        }
        out->first = json_integer_value(low);
        out->last = json_integer_value(high);
        return out->first <= out->last ||
               refuse(parser, "the first number is greater than the last");
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
        good = take_pair(parser, value, BHI_FILLER_UNIFORM, filler);
    } else if (!strcmp(key, "normal")) {
        good = take_pair(parser, value, BHI_FILLER_NORMAL, filler);
    } else if (!strcmp(key, "integers")) {
        good = take_pair(parser, value, BHI_FILLER_INTEGERS, filler);
    } else if (!strcmp(key, "file")) {
        filler->kind = BHI_FILLER_FILE;
        good = take_file(parser, value, &out->file);
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
    *out = (struct bhi_task_fill){.filler = array->filler, .name = name};
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

/* Those of the task, or the usual ones where it has none at all, for each input that varies and has none of
 * its own. */
static bool take_common_fills(struct parser *parser) {
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
                (enum bhi_arrangement)k, array->filler, bhi_arrangement_names[k]};
        }
    }
    return true;
}

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
    out->kind = BHI_TOLERANCE_ULP;
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return refuse(parser, "it must be a whole number from 0");
    }
    out->ulp = (uint64_t)json_integer_value(value);
    return true;
}

static bool take_tolerance(struct parser *parser, const json_t *object, struct bhi_tolerance *out) {
    static const char *const keys[] = {"abs", "rel", "ulp", "nan"};
    for (size_t i = 0; i < 4; i++) {
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
    return true;
}

/* As arrays have them, too. */
static const char *short_name(const char *name) {
    static const char *const names[][2] = {
        {"float16", "f16"}, {"float32", "f32"}, {"float64", "f64"}, {"int8", "i8"},
        {"uint8", "u8"},    {"int16", "i16"},   {"uint16", "u16"},  {"int32", "i32"},
        {"uint32", "u32"},  {"int64", "i64"},   {"uint64", "u64"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!strcmp(name, names[i][0])) {
            return names[i][1];
        }
    }
    return name;
}

static bool take_dtype(struct parser *parser, const json_t *value, bh_dtype *out) {
    const char *given = json_string_value(value), *name = given ? short_name(given) : NULL;
    enter(parser, "dtype");
    if (!name || !bhi_dtype_find(name, strlen(name), out)) {
        return refuse(parser, "it must be one of " BHI_DTYPE_NAMES);
    }
    return leave(parser);
}

static bool take_shape(struct parser *parser, const json_t *shape, struct bhi_task_array *out) {
    json_t *length;
    size_t i;
    enter(parser, "shape");
    if (!json_is_array(shape) || json_array_size(shape) > BHI_TASK_RANK) {
        return refuse(parser, "it must be an array of at most %d lengths, such as [\"n\", 3]",
                      BHI_TASK_RANK);
    }
    json_array_foreach(shape, i, length) {
        enter_element(parser, i);
        if (!take_number(parser, length, &out->shape[out->rank++])) {
            return false;
        }
        leave(parser);
    }
    return leave(parser);
}

static bool take_array(struct parser *parser, const json_t *object, struct bhi_task_array *out) {
    static const char *const of_in[] = {"dtype", "shape", "fill", "fills", NULL};
    static const char *const of_inout[] = {"dtype", "shape", "fill", "fills", "abs",
                                           "rel",   "ulp",   "nan",  NULL};
    const json_t *fills = json_object_get(object, "fills");
    static const char *const of_out[] = {"dtype", "shape", "abs", "rel", "ulp", "nan", NULL};
    static const char *const *const keys[] = {of_in, of_inout, of_out};
    return bhi_reading_check_keys(&parser->reading, object, keys[out->role]) &&
           take_dtype(parser, json_object_get(object, "dtype"), &out->dtype) &&
           take_shape(parser, json_object_get(object, "shape"), out) &&
           (out->role == BHI_TASK_OUT ||
            take_filler(parser, json_object_get(object, "fill"), out)) &&
           (!fills || take_fills(parser, fills, out)) &&
           (out->role == BHI_TASK_IN || take_tolerance(parser, object, &out->tolerance));
}

/* Takes all arrays of a role. */
static bool take_arrays(struct parser *parser, enum bhi_task_role role) {
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

/* -- sizes and seeds ------------------------------------------------------------------------- */

static bool take_first_size(struct parser *parser, const json_t *object) {
    struct bhi_task *task = parser->task;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value) {
        if (task->parameter_count == BHI_TASK_PARAMETERS) {
            return refuse(parser, "more than %d sizes", BHI_TASK_PARAMETERS);
        }
        enter(parser, name);
        if (!check_name(parser, name)) {
            return false;
        }
        if (!strncmp(name, "local_", 6)) {
            return refuse(parser, "names that begin with local_ are the workgroup's");
        }
        leave(parser);
        task->parameters[task->parameter_count++] = name;
    }
    return true;
}

/* One object of "sizes" or "check_sizes". All have the names of the first. */
static bool take_size(struct parser *parser, const json_t *object, bool check_only) {
    struct bhi_task *task = parser->task;
    if (!json_is_object(object)) {
        return refuse(parser, "it must be an object such as {\"n\": 1024}");
    }
    if (task->size_count == BHI_TASK_SIZES) {
        return refuse(parser, "more than %d sizes", BHI_TASK_SIZES);
    }
    if (!task->size_count && !take_first_size(parser, object)) {
        return false;
    }
    struct bhi_task_size *size = &task->sizes[task->size_count++];
    size->check_only = check_only;
    if (json_object_size(object) != task->parameter_count) {
        return refuse(parser, "each size must have the same names");
    }
    for (size_t i = 0; i < task->parameter_count; i++) {
        const json_t *value = json_object_get(object, task->parameters[i]);
        if (!value) {
            return refuse(parser, "there is no \"%s\"; each size must have the same names",
                          task->parameters[i]);
        }
        enter(parser, task->parameters[i]);
        if (!json_is_integer(value) || json_integer_value(value) < 1) {
            return refuse(parser, "it must be a whole number from 1");
        }
        leave(parser);
        size->values[i] = (uint64_t)json_integer_value(value);
    }
    return true;
}

static bool take_sizes(struct parser *parser, const char *key, bool check_only) {
    const json_t *sizes = json_object_get(parser->task->json, key);
    json_t *size;
    size_t i;
    enter(parser, key);
    if (sizes && !json_is_array(sizes)) {
        return refuse(parser, "it must be an array of objects such as {\"n\": 1024}");
    }
    json_array_foreach(sizes, i, size) {
        enter_element(parser, i);
        if (!take_size(parser, size, check_only)) {
            return false;
        }
        leave(parser);
    }
    return leave(parser);
}

/* Where no range is given: from the least that is written to the greatest. */
static void span_sizes(struct bhi_task *task) {
    for (size_t k = 0; k < task->parameter_count; k++) {
        struct bhi_task_range *range = &task->ranges[k];
        *range = (struct bhi_task_range){.low = UINT64_MAX, .step = 1};
        for (size_t i = 0; i < task->size_count; i++) {
            const uint64_t value = task->sizes[i].values[k];
            range->low = value < range->low ? value : range->low;
            range->high = value > range->high ? value : range->high;
        }
    }
}

/* How many there may be, beside those that are written. */
static size_t hidden_room(const struct bhi_task *task) {
    const size_t room = BHI_TASK_SIZES - task->size_count;
    return room < BHI_TASK_HIDDEN_SIZES ? room : BHI_TASK_HIDDEN_SIZES;
}

static bool take_hidden_count(struct parser *parser, const json_t *value) {
    const json_int_t count = json_integer_value(value);
    const size_t most = hidden_room(parser->task);
    if (!json_is_integer(value) || count < 1 || (size_t)count > most) {
        return refuse(parser, "it must be from 1 to %zu, or an object with a range for each name",
                      most);
    }
    parser->task->hidden_count = (size_t)count;
    return true;
}

/* [LOW, HIGH], [LOW, HIGH, STEP] */
static bool take_range(struct parser *parser, const json_t *value, struct bhi_task_range *out) {
    uint64_t numbers[3] = {0, 0, 1};
    const size_t count = json_array_size(value);
    bool good = count == 2 || count == 3;
    for (size_t i = 0; i < count && good; i++) {
        const json_t *number = json_array_get(value, i);
        good = json_is_integer(number) && json_integer_value(number) > 0;
        numbers[i] = (uint64_t)json_integer_value(number);
    }
    *out = (struct bhi_task_range){numbers[0], numbers[1], numbers[2]};
    return (good && out->low <= out->high) ||
           refuse(parser, "it must be [LEAST, GREATEST] or [LEAST, GREATEST, STEP], whole numbers "
                          "from 1");
}

static bool take_hidden_ranges(struct parser *parser, const json_t *object) {
    struct bhi_task *task = parser->task;
    const char *name;
    json_t *value;
    task->hidden_count = hidden_room(task) < 3 ? hidden_room(task) : 3;
    json_object_foreach((json_t *)object, name, value) {
        size_t k = 0;
        while (k < task->parameter_count && strcmp(task->parameters[k], name) != 0) {
            k++;
        }
        enter(parser, name);
        if (k == task->parameter_count && strcmp(name, "count") != 0) {
            return refuse(parser, "no size has this name");
        }
        if (!(k < task->parameter_count ? take_range(parser, value, &task->ranges[k])
                                        : take_hidden_count(parser, value))) {
            return false;
        }
        leave(parser);
    }
    return true;
}

/* How many sizes are drawn by the hidden seed, and from which ranges. */
static bool take_hidden_sizes(struct parser *parser) {
    struct bhi_task *task = parser->task;
    const json_t *value = json_object_get(task->json, "hidden_sizes");
    task->written_count = task->size_count;
    if (!value) {
        return true;
    }
    enter(parser, "hidden_sizes");
    if (!task->parameter_count) {
        return refuse(parser, "the sizes have no names");
    }
    if (!hidden_room(task)) {
        return refuse(parser, "there are %d sizes already", BHI_TASK_SIZES);
    }
    span_sizes(task);
    return (json_is_object(value) ? take_hidden_ranges(parser, value)
                                  : take_hidden_count(parser, value)) &&
           leave(parser);
}

static bool take_seeds(struct parser *parser) {
    struct bhi_task *task = parser->task;
    const json_t *seeds = json_object_get(task->json, "seeds");
    json_t *seed;
    size_t i;
    if (!seeds) {
        task->seeds[task->seed_count++] = 1;
        return true;
    }
    enter(parser, "seeds");
    if (!json_is_array(seeds) || json_array_size(seeds) > BHI_TASK_SEEDS) {
        return refuse(parser, "it must be an array of at most %d numbers", BHI_TASK_SEEDS);
    }
    json_array_foreach(seeds, i, seed) {
        enter_element(parser, i);
        if (!json_is_integer(seed) || json_integer_value(seed) < 0) {
            return refuse(parser, "it must be a whole number from 0");
        }
        leave(parser);
        task->seeds[task->seed_count++] = (uint64_t)json_integer_value(seed);
    }
    return leave(parser);
}

/* -- how a kernel is launched ---------------------------------------------------------------- */

/* {"uniform": [0.1, 4]}, {"normal": [0, 1]} or {"integers": [1, 9]}: drawn for each seed. */
static bool take_drawn(struct parser *parser, const json_t *value, struct bhi_filler *out) {
    static const char *const kinds[] = {[BHI_FILLER_UNIFORM] = "uniform",
                                        [BHI_FILLER_NORMAL] = "normal",
                                        [BHI_FILLER_INTEGERS] = "integers"};
    for (int kind = BHI_FILLER_UNIFORM; kind <= BHI_FILLER_INTEGERS; kind++) {
        const json_t *pair = json_object_get(value, kinds[kind]);
        if (pair && json_object_size(value) == 1) {
            enter(parser, kinds[kind]);
            return take_pair(parser, pair, (enum bhi_filler_kind)kind, out) && leave(parser);
        }
    }
    return refuse(parser, "it must be a number, true, false, an expression such as \"n\", or "
                          "{\"uniform\": [0.1, 4]}, {\"normal\": [0, 1]} or {\"integers\": "
                          "[1, 9]}");
}

static bool take_pushes(struct parser *parser) {
    struct bhi_task *task = parser->task;
    json_t *pushes = json_object_get(task->json, "push");
    const char *name;
    json_t *value;
    enter(parser, "push");
    if (pushes && !json_is_object(pushes)) {
        return refuse(parser, "it must be an object, name to value");
    }
    json_object_foreach(pushes, name, value) {
        enter(parser, name);
        if (task->push_count == BHI_TASK_PUSHES) {
            return refuse(parser, "more than %d", BHI_TASK_PUSHES);
        }
        if (!check_name(parser, name)) {
            return false;
        }
        struct bhi_task_push *push = &task->pushes[task->push_count++];
        *push = (struct bhi_task_push){.name = name, .expression = json_string_value(value)};
        if (json_is_real(value)) {
            snprintf(push->text, sizeof push->text, "%.17g", json_real_value(value));
            if (!strpbrk(push->text, ".e")) {
                strcat(push->text, ".0");
            }
        } else if (json_is_integer(value)) {
            snprintf(push->text, sizeof push->text, "%lld", (long long)json_integer_value(value));
        } else if (json_is_boolean(value)) {
            snprintf(push->text, sizeof push->text, "%s", json_is_true(value) ? "true" : "false");
        } else if (!push->expression && !take_drawn(parser, value, &push->filler)) {
            return false;
        }
        leave(parser);
    }
    return leave(parser);
}

/* "groups" of |object|, which is the task or its reference. */
static bool take_groups(struct parser *parser, const json_t *object, struct bhi_task_groups *out) {
    const json_t *groups = json_object_get(object, "groups");
    json_t *count;
    size_t i;
    *out = (struct bhi_task_groups){{{.value = 1}, {.value = 1}, {.value = 1}}};
    if (!groups) {
        return refuse(parser, "there is no \"groups\"");
    }
    enter(parser, "groups");
    if (!json_is_array(groups) || json_array_size(groups) < 1 || json_array_size(groups) > 3) {
        return bhi_reading_refuse(
            &parser->reading,
            "it must be an array of one to three, such as [\"ceildiv(n, local_x)\"]");
    }
    json_array_foreach(groups, i, count) {
        enter_element(parser, i);
        if (!take_number(parser, count, &out->along[i])) {
            return false;
        }
        leave(parser);
    }
    return leave(parser);
}

/* "bytes" or "operations". */
static bool take_amount(struct parser *parser, const char *key, struct bhi_task_number *out) {
    const json_t *value = json_object_get(parser->task->json, key);
    if (!value) {
        return true;
    }
    enter(parser, key);
    if (!take_number(parser, value, out)) {
        return false;
    }
    return leave(parser);
}

static bool take_robust(struct parser *parser) {
    const json_t *value = json_object_get(parser->task->json, "robust");
    enter(parser, "robust");
    if (value && !json_is_boolean(value)) {
        return refuse(parser, "it must be true or false");
    }
    parser->task->robust = json_is_true(value);
    return leave(parser);
}

static bool take_limits(struct parser *parser) {
    static const char *const keys[] = {"deadline", "compile_deadline", "memory", NULL};
    struct bhi_task *task = parser->task;
    const json_t *limits = json_object_get(task->json, "limits");
    if (!limits) {
        return true;
    }
    enter(parser, "limits");
    if (!bhi_reading_check_keys(&parser->reading, limits, keys)) {
        return false;
    }
    for (size_t i = 0; i < 3; i++) {
        const json_t *value = json_object_get(limits, keys[i]);
        const char *text = json_string_value(value);
        if (!value) {
            continue;
        }
        enter(parser, keys[i]);
        if (!text) {
            return refuse(parser, "it must be a string such as \"%s\"", i < 2 ? "500ms" : "512M");
        }
        struct bhi_complaint *complaint = parser->reading.complaint;
        const bool good =
            i == 0   ? bhi_parse_finite_duration(text, &task->deadline_ns, complaint)
            : i == 1 ? bhi_parse_finite_duration(text, &task->compile_deadline_ns, complaint)
                     : bhi_parse_memory_limit(text, &task->memory_limit, complaint);
        if (!good) {
            return bhi_reading_blame(&parser->reading);
        }
        leave(parser);
    }
    return leave(parser);
}

/* -- the reference --------------------------------------------------------------------------- */

static bool take_expected(struct parser *parser, json_t *files) {
    struct bhi_task *task = parser->task;
    const char *place;
    json_t *path;
    enter(parser, "files");
    if (!json_is_object(files)) {
        return refuse(parser, "it must be an object, output to file");
    }
    json_object_foreach(files, place, path) {
        struct bhi_task_array *array = NULL;
        for (size_t i = 0; i < task->array_count; i++) {
            if (task->arrays[i].role != BHI_TASK_IN && !strcmp(task->arrays[i].place, place)) {
                array = &task->arrays[i];
            }
        }
        enter(parser, place);
        if (!array) {
            return refuse(parser, "there is no such output");
        }
        if (!take_file(parser, path, &array->expected)) {
            return false;
        }
        leave(parser);
    }
    for (size_t i = 0; i < task->array_count; i++) {
        if (task->arrays[i].role != BHI_TASK_IN && !task->arrays[i].expected.path) {
            return refuse(parser, "output \"%.60s\" has no file", task->arrays[i].place);
        }
    }
    return leave(parser);
}

static bool take_reference_kernel(struct parser *parser, const json_t *reference) {
    struct bhi_task *task = parser->task;
    task->reference = BHI_REFERENCE_KERNEL;
    enter(parser, "kernel");
    if (!take_file(parser, json_object_get(reference, "kernel"), &task->reference_kernel)) {
        return false;
    }
    leave(parser);
    if (json_object_get(reference, "groups")) {
        return take_groups(parser, reference, &task->reference_groups);
    }
    task->reference_groups = task->groups;
    return true;
}

static bool take_reference_eval(struct parser *parser, const json_t *reference) {
    struct bhi_task *task = parser->task;
    task->reference = BHI_REFERENCE_EVAL;
    enter(parser, "eval");
    task->reference_eval = json_string_value(json_object_get(reference, "eval"));
    if (!task->reference_eval) {
        return refuse(parser, "it must be an expression such as \"z = x + y\"");
    }
    for (size_t i = 0; i < task->array_count; i++) {
        if (!bhi_size_is_name(task->arrays[i].place)) {
            return refuse(parser,
                          "an expression cannot name the binding \"%.60s\": call it "
                          "by its name",
                          task->arrays[i].place);
        }
        for (size_t k = 0; k < task->push_count; k++) {
            if (!strcmp(task->pushes[k].name, task->arrays[i].place)) {
                return refuse(parser, "\"%.60s\" is both an array and a push constant",
                              task->arrays[i].place);
            }
        }
        if (task->arrays[i].role == BHI_TASK_INOUT) {
            return refuse(parser, "an expression cannot have an \"inout\"; \"%.60s\" is one",
                          task->arrays[i].place);
        }
    }
    task->reference_eval_field = bhi_reading_field(&parser->reading);
    leave(parser);
    return task->reference_eval_field || bhi_refuse_memory(parser->reading.complaint);
}

static bool take_reference(struct parser *parser) {
    static const char *const keys[] = {"kernel", "groups", "eval", "files", NULL};
    struct bhi_task *task = parser->task;
    const json_t *reference = json_object_get(task->json, "reference");
    if (!reference) {
        return refuse(parser, "there is no \"reference\": nothing says which result is right");
    }
    enter(parser, "reference");
    if (!bhi_reading_check_keys(&parser->reading, reference, keys)) {
        return false;
    }
    json_t *const kernel = json_object_get(reference, "kernel"),
                  *const eval = json_object_get(reference, "eval"),
                  *const files = json_object_get(reference, "files");
    if (!!kernel + !!eval + !!files != 1) {
        return refuse(parser, "it must have one of \"kernel\", \"eval\" and \"files\"");
    }
    if (json_object_get(reference, "groups") && !kernel) {
        return refuse(parser, "\"groups\" are a kernel's");
    }
    if (files) {
        task->reference = BHI_REFERENCE_FILES;
    }
    if (kernel ? !take_reference_kernel(parser, reference)
        : eval ? !take_reference_eval(parser, reference)
               : !take_expected(parser, files)) {
        return false;
    }
    if (files && (!bhi_task_is_fixed(task) || task->size_count != 1)) {
        return refuse(parser,
                      "\"files\" are the outputs for one size and for inputs that are "
                      "files: %s",
                      task->size_count != 1 ? "there are several sizes" : "an input is generated");
    }
    return leave(parser);
}

/* -- all ------------------------------------------------------------------------------------- */

/* Computes every expression for a size. */
static bool check_expressions(struct parser *parser, size_t size) {
    const char *field[BHI_TASK_FIELD];
    if (bhi_task_check_size(parser->task, size, field, parser->reading.complaint)) {
        return true;
    }
    for (size_t i = 0; field[i]; i++) {
        enter(parser, field[i]);
    }
    return bhi_reading_blame(&parser->reading);
}

/* The hidden sizes are drawn later: whether the ends of their ranges are possible is checked now. */
static bool check_ranges(struct parser *parser) {
    struct bhi_task *task = parser->task;
    bool good = true;
    if (!task->hidden_count) {
        return true;
    }
    for (int end = 0; end < 2 && good; end++) {
        struct bhi_task_size *size = &task->sizes[task->size_count];
        for (size_t k = 0; k < task->parameter_count; k++) {
            size->values[k] = end ? task->ranges[k].high : task->ranges[k].low;
        }
        good = check_expressions(parser, task->size_count);
    }
    return good;
}

static bool take_name(struct parser *parser) {
    const json_t *value = json_object_get(parser->task->json, "name");
    const char *name = json_string_value(value);
    enter(parser, "name");
    if (value && (!name || !*name || strlen(name) > BHI_TASK_NAME)) {
        return refuse(parser, "it must be a string of 1 to %d bytes", BHI_TASK_NAME);
    }
    leave(parser);
    snprintf(parser->task->name, sizeof parser->task->name, "%s", name ? name : "");
    return true;
}

static bool take_all(struct parser *parser) {
    static const char *const keys[] = {"name",   "sizes", "check_sizes", "hidden_sizes", "seeds",
                                       "in",     "inout", "out",         "fills",        "push",
                                       "groups", "bytes", "operations",  "reference",    "limits",
                                       "robust", NULL};
    struct bhi_task *task = parser->task;
    if (!bhi_reading_check_keys(&parser->reading, task->json, keys) || !take_name(parser) ||
        !take_sizes(parser, "sizes", false) || !take_sizes(parser, "check_sizes", true)) {
        return false;
    }
    if (!task->size_count) {
        return refuse(parser, "there is no \"sizes\"");
    }
    if (!take_hidden_sizes(parser) || !take_seeds(parser) || !take_arrays(parser, BHI_TASK_IN) ||
        !take_arrays(parser, BHI_TASK_INOUT) || !take_arrays(parser, BHI_TASK_OUT)) {
        return false;
    }
    if (!task->array_count || task->arrays[task->array_count - 1].role == BHI_TASK_IN) {
        return refuse(parser, "there is no \"out\" and no \"inout\"");
    }
    if (!take_common_fills(parser) || !take_pushes(parser) ||
        !take_groups(parser, task->json, &task->groups) ||
        !take_amount(parser, "bytes", &task->bytes) ||
        !take_amount(parser, "operations", &task->operations) || !take_reference(parser) ||
        !take_limits(parser) || !take_robust(parser)) {
        return false;
    }
    for (size_t i = 0; i < task->size_count; i++) {
        if (!check_expressions(parser, i)) {
            return false;
        }
    }
    return check_ranges(parser);
}

bool bhi_task_parse(const char *name, const char *folder, const char *text,
                    struct bhi_task *out_task, struct bhi_complaint *complaint) {
    json_error_t error;
    *out_task = (struct bhi_task){.json = json_loads(text, JSON_REJECT_DUPLICATES, &error)};
    if (!out_task->json) {
        if (json_error_code(&error) == json_error_out_of_memory) {
            return bhi_refuse_memory(complaint);
        }
        return bhi_refuse(complaint, "%.200s:%d: not JSON: %.200s (column %d)", name, error.line,
                          error.text, error.column);
    }
    struct parser parser = {
        .reading = {.name = name, .text = text, .complaint = complaint},
        .folder = folder,
        .task = out_task,
    };
    if (take_all(&parser)) {
        return true;
    }
    bhi_task_free(out_task);
    return false;
}

bool bhi_task_read(const char *path, struct bhi_task *out_task, int *out_errno,
                   struct bhi_complaint *complaint) {
    void *text;
    size_t size;
    struct bhi_complaint inner;
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup("");
    bool good = false;
    if (bhi_language_of_name(path) != BHI_LANGUAGE_UNKNOWN) {
        free(folder);
        *out_errno = 0;
        return bhi_refuse(complaint,
                          "%.300s: it has the name of a kernel; a task is a JSON file, "
                          "and comes before the candidates",
                          path);
    }
    if (!folder) {
        *out_errno = 0;
        return bhi_refuse_memory(complaint);
    }
    if (!bhi_code_read(path, &text, &size, out_errno, &inner)) {
        free(folder);
        return bhi_refuse(complaint, "%.300s: %.600s", path, inner.text);
    }
    if (strlen(text) != size) {
        bhi_refuse(complaint, "%.300s: not JSON: it contains a NUL byte", path);
    } else {
        good = bhi_task_parse(path, folder, text, out_task, complaint);
    }
    *out_errno = 0;
    free(text);
    free(folder);
    return good;
}

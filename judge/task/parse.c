/* From the text of a task to its struct. Each field is checked where it is read, so that a
 * complaint names its line; what follows from several fields is checked at the end (check_all). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/dtype.h"
#include "judge/task/parser.h"
#include "request/code.h"
#include "request/language.h"
#include "tool/values.h"

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
        if (!bhi_parser_check_name(parser, name)) {
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
        /* Nothing takes no time. */
        const int least = check_only ? 0 : 1;
        if (!json_is_integer(value) || json_integer_value(value) < least) {
            return refuse(parser, "it must be a whole number from %d%s", least,
                          check_only ? "" : "; 0 may be among \"check_sizes\"");
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
        good = json_is_integer(number) && json_integer_value(number) >= !!i;
        numbers[i] = (uint64_t)json_integer_value(number);
    }
    *out = (struct bhi_task_range){numbers[0], numbers[1], numbers[2]};
    return (good && out->low <= out->high) ||
           refuse(parser, "it must be [LEAST, GREATEST] or [LEAST, GREATEST, STEP], whole numbers, "
                          "of which only LEAST may be 0");
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

/* "bytes" or "operations". */
static bool take_amount(struct parser *parser, const char *key, struct bhi_task_number *out) {
    const json_t *value = json_object_get(parser->task->json, key);
    if (!value) {
        return true;
    }
    enter(parser, key);
    if (!bhi_parser_take_number(parser, value, out)) {
        return false;
    }
    return leave(parser);
}

static bool take_repeats(struct parser *parser) {
    enum { MOST = 1000 };
    const json_t *value = json_object_get(parser->task->json, "repeats");
    const json_int_t count = value ? json_integer_value(value) : 1;
    enter(parser, "repeats");
    if (count < 1 || count > MOST) {
        return refuse(parser, "it must be a whole number from 1 to %d", MOST);
    }
    parser->task->repeats = (unsigned)count;
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

/* Of a candidate's scratch. "0": it may have none. */
static bool take_scratch_limit(const char *text, struct bhi_task *task,
                               struct bhi_complaint *complaint) {
    task->limits_scratch = true;
    if (!strcmp(text, "0")) {
        return true;
    }
    if (!bhi_parse_size(text, &task->scratch_limit, complaint)) {
        return false;
    }
    task->scratch_limit = task->scratch_limit ? task->scratch_limit : UINT64_MAX; /* "none" */
    return true;
}

static bool take_limits(struct parser *parser) {
    static const char *const keys[] = {"deadline", "compile_deadline", "memory", "scratch", NULL};
    struct bhi_task *task = parser->task;
    const json_t *limits = json_object_get(task->json, "limits");
    if (!limits) {
        return true;
    }
    enter(parser, "limits");
    if (!bhi_reading_check_keys(&parser->reading, limits, keys)) {
        return false;
    }
    for (size_t i = 0; keys[i]; i++) {
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
            : i == 2 ? bhi_parse_memory_limit(text, &task->memory_limit, complaint)
                     : take_scratch_limit(text, task, complaint);
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
        if (!bhi_parser_take_file(parser, path, &array->expected)) {
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
    if (!bhi_parser_take_file(parser, json_object_get(reference, "kernel"),
                              &task->reference_kernel)) {
        return false;
    }
    leave(parser);
    if (json_object_get(reference, "groups")) {
        return bhi_parser_take_groups(parser, reference, &task->reference_groups);
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
        task->reference = BHI_REFERENCE_CALLBACK;
        return true;
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
    if (files && (!bhi_task_is_fixed(task) || task->size_count != 1 || task->hidden_count)) {
        return refuse(parser,
                      "\"files\" are the outputs for one size and for inputs that are "
                      "files: %s",
                      task->size_count != 1 ? "there are several sizes"
                      : task->hidden_count  ? "there are hidden sizes"
                                            : "an input is generated");
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
    static const char *const keys[] = {
        "name",   "sizes",  "check_sizes", "hidden_sizes", "seeds",   "in",         "inout",
        "out",    "fills",  "push",        "groups",       "bytes",   "operations", "reference",
        "limits", "robust", "parameters",  "block",        "repeats", NULL};
    struct bhi_task *task = parser->task;
    if (!bhi_reading_check_keys(&parser->reading, task->json, keys) || !take_name(parser) ||
        !take_sizes(parser, "sizes", false) || !take_sizes(parser, "check_sizes", true)) {
        return false;
    }
    if (!task->size_count) {
        return refuse(parser, "there is no \"sizes\"");
    }
    if (!take_hidden_sizes(parser) || !take_seeds(parser) ||
        !bhi_parser_take_arrays(parser, BHI_TASK_IN) ||
        !bhi_parser_take_arrays(parser, BHI_TASK_INOUT) ||
        !bhi_parser_take_arrays(parser, BHI_TASK_OUT)) {
        return false;
    }
    if (!task->array_count || task->arrays[task->array_count - 1].role == BHI_TASK_IN) {
        return refuse(parser, "there is no \"out\" and no \"inout\"");
    }
    if (!bhi_parser_take_common_fills(parser) || !bhi_parser_take_pushes(parser) ||
        !bhi_parser_take_order(parser) ||
        !bhi_parser_take_groups(parser, task->json, &task->groups) ||
        !take_amount(parser, "bytes", &task->bytes) ||
        !take_amount(parser, "operations", &task->operations) || !take_reference(parser) ||
        !take_limits(parser) || !take_robust(parser) || !take_repeats(parser)) {
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

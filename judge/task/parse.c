/* From the text of a task to its struct. Each field is checked where it is read, so that a
 * complaint names its line; what follows from several fields is checked at the end (check_all). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/task/arrays.h"
#include "tool/values.h"

/* -- sizes and seeds ----------------------------------------------------------------------------
 */

static bool take_first_size(struct bhi_task_parser *parser, const json_t *object) {
    struct bhi_task *task = parser->task;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value) {
        if (task->parameter_count == BHI_TASK_PARAMETERS) {
            return bhi_reading_refuse(&parser->reading, "more than %d sizes", BHI_TASK_PARAMETERS);
        }
        bhi_reading_enter(&parser->reading, name);
        if (!bhi_task_check_name(parser, name)) {
            return false;
        }
        if (!strncmp(name, "local_", 6)) {
            return bhi_reading_refuse(&parser->reading,
                                      "names that begin with local_ are the workgroup's");
        }
        bhi_reading_leave(&parser->reading);
        task->parameters[task->parameter_count++] = name;
    }
    return true;
}

/* One object of "sizes" or "check_sizes". All have the names of the first. */
static bool take_size(struct bhi_task_parser *parser, const json_t *object, bool check_only) {
    struct bhi_task *task = parser->task;
    struct bhi_reading *reading = &parser->reading;
    if (!json_is_object(object)) {
        return bhi_reading_refuse(reading, "it must be an object such as {\"n\": 1024}");
    }
    if (task->size_count == BHI_TASK_SIZES) {
        return bhi_reading_refuse(reading, "more than %d sizes", BHI_TASK_SIZES);
    }
    if (!task->size_count && !take_first_size(parser, object)) {
        return false;
    }
    struct bhi_task_size *size = &task->sizes[task->size_count++];
    size->check_only = check_only;
    if (json_object_size(object) != task->parameter_count) {
        return bhi_reading_refuse(reading, "each size must have the same names");
    }
    for (size_t i = 0; i < task->parameter_count; i++) {
        const json_t *value = json_object_get(object, task->parameters[i]);
        if (!value) {
            return bhi_reading_refuse(reading,
                                      "there is no \"%s\"; each size must have the same names",
                                      task->parameters[i]);
        }
        bhi_reading_enter(reading, task->parameters[i]);
        if (!json_is_integer(value) || json_integer_value(value) < 1) {
            return bhi_reading_refuse(reading, "it must be a whole number from 1");
        }
        bhi_reading_leave(reading);
        size->values[i] = (uint64_t)json_integer_value(value);
    }
    return true;
}

static bool take_sizes(struct bhi_task_parser *parser, const char *key, bool check_only) {
    const json_t *sizes = json_object_get(parser->task->json, key);
    json_t *size;
    size_t i;
    bhi_reading_enter(&parser->reading, key);
    if (sizes && !json_is_array(sizes)) {
        return bhi_reading_refuse(&parser->reading,
                                  "it must be an array of objects such as {\"n\": 1024}");
    }
    json_array_foreach(sizes, i, size) {
        bhi_reading_enter_element(&parser->reading, i);
        if (!take_size(parser, size, check_only)) {
            return false;
        }
        bhi_reading_leave(&parser->reading);
    }
    bhi_reading_leave(&parser->reading);
    return true;
}

static bool take_seeds(struct bhi_task_parser *parser) {
    struct bhi_task *task = parser->task;
    const json_t *seeds = json_object_get(task->json, "seeds");
    json_t *seed;
    size_t i;
    if (!seeds) {
        task->seeds[task->seed_count++] = 1;
        return true;
    }
    bhi_reading_enter(&parser->reading, "seeds");
    if (!json_is_array(seeds) || json_array_size(seeds) > BHI_TASK_SEEDS) {
        return bhi_reading_refuse(&parser->reading, "it must be an array of at most %d numbers",
                                  BHI_TASK_SEEDS);
    }
    json_array_foreach(seeds, i, seed) {
        bhi_reading_enter_element(&parser->reading, i);
        if (!json_is_integer(seed) || json_integer_value(seed) < 0) {
            return bhi_reading_refuse(&parser->reading, "it must be a whole number from 0");
        }
        bhi_reading_leave(&parser->reading);
        task->seeds[task->seed_count++] = (uint64_t)json_integer_value(seed);
    }
    bhi_reading_leave(&parser->reading);
    return true;
}

/* -- how a kernel is launched -------------------------------------------------------------------
 */

static bool take_pushes(struct bhi_task_parser *parser) {
    struct bhi_task *task = parser->task;
    json_t *pushes = json_object_get(task->json, "push");
    const char *name;
    json_t *value;
    bhi_reading_enter(&parser->reading, "push");
    if (pushes && !json_is_object(pushes)) {
        return bhi_reading_refuse(&parser->reading, "it must be an object, name to value");
    }
    json_object_foreach(pushes, name, value) {
        bhi_reading_enter(&parser->reading, name);
        if (task->push_count == BHI_TASK_PUSHES) {
            return bhi_reading_refuse(&parser->reading, "more than %d", BHI_TASK_PUSHES);
        }
        if (!bhi_task_check_name(parser, name)) {
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
        } else if (!push->expression) {
            return bhi_reading_refuse(&parser->reading,
                                      "it must be a number, true, false, or an expression such as "
                                      "\"n\"");
        }
        bhi_reading_leave(&parser->reading);
    }
    bhi_reading_leave(&parser->reading);
    return true;
}

/* "groups" of |object|, which is the task or its reference. */
static bool take_groups(struct bhi_task_parser *parser, const json_t *object,
                        struct bhi_task_groups *out) {
    const json_t *groups = json_object_get(object, "groups");
    json_t *count;
    size_t i;
    *out = (struct bhi_task_groups){{{.value = 1}, {.value = 1}, {.value = 1}}};
    if (!groups) {
        return bhi_reading_refuse(&parser->reading, "there is no \"groups\"");
    }
    bhi_reading_enter(&parser->reading, "groups");
    if (!json_is_array(groups) || json_array_size(groups) < 1 || json_array_size(groups) > 3) {
        return bhi_reading_refuse(
            &parser->reading,
            "it must be an array of one to three, such as [\"ceildiv(n, local_x)\"]");
    }
    json_array_foreach(groups, i, count) {
        bhi_reading_enter_element(&parser->reading, i);
        if (!bhi_task_take_number(parser, count, &out->along[i])) {
            return false;
        }
        bhi_reading_leave(&parser->reading);
    }
    bhi_reading_leave(&parser->reading);
    return true;
}

/* "bytes" or "operations". */
static bool take_amount(struct bhi_task_parser *parser, const char *key,
                        struct bhi_task_number *out) {
    const json_t *value = json_object_get(parser->task->json, key);
    if (!value) {
        return true;
    }
    bhi_reading_enter(&parser->reading, key);
    if (!bhi_task_take_number(parser, value, out)) {
        return false;
    }
    bhi_reading_leave(&parser->reading);
    return true;
}

static bool take_limits(struct bhi_task_parser *parser) {
    static const char *const keys[] = {"deadline", "compile_deadline", "memory", NULL};
    struct bhi_task *task = parser->task;
    const json_t *limits = json_object_get(task->json, "limits");
    if (!limits) {
        return true;
    }
    bhi_reading_enter(&parser->reading, "limits");
    if (!bhi_reading_check_keys(&parser->reading, limits, keys)) {
        return false;
    }
    for (size_t i = 0; i < 3; i++) {
        const json_t *value = json_object_get(limits, keys[i]);
        const char *text = json_string_value(value);
        if (!value) {
            continue;
        }
        bhi_reading_enter(&parser->reading, keys[i]);
        if (!text) {
            return bhi_reading_refuse(&parser->reading, "it must be a string such as \"%s\"",
                                      i < 2 ? "500ms" : "512M");
        }
        struct bhi_complaint *complaint = parser->reading.complaint;
        const bool good =
            i == 0   ? bhi_parse_finite_duration(text, &task->deadline_ns, complaint)
            : i == 1 ? bhi_parse_finite_duration(text, &task->compile_deadline_ns, complaint)
                     : bhi_parse_memory_limit(text, &task->memory_limit, complaint);
        if (!good) {
            return bhi_reading_blame(&parser->reading);
        }
        bhi_reading_leave(&parser->reading);
    }
    bhi_reading_leave(&parser->reading);
    return true;
}

/* -- the reference ------------------------------------------------------------------------------
 */

static bool take_expected(struct bhi_task_parser *parser, json_t *files) {
    struct bhi_task *task = parser->task;
    const char *place;
    json_t *path;
    bhi_reading_enter(&parser->reading, "files");
    if (!json_is_object(files)) {
        return bhi_reading_refuse(&parser->reading, "it must be an object, output to file");
    }
    json_object_foreach(files, place, path) {
        struct bhi_task_array *array = NULL;
        for (size_t i = 0; i < task->array_count; i++) {
            if (task->arrays[i].role != BHI_TASK_IN && !strcmp(task->arrays[i].place, place)) {
                array = &task->arrays[i];
            }
        }
        bhi_reading_enter(&parser->reading, place);
        if (!array) {
            return bhi_reading_refuse(&parser->reading, "there is no such output");
        }
        if (!bhi_task_take_file(parser, path, &array->expected)) {
            return false;
        }
        bhi_reading_leave(&parser->reading);
    }
    for (size_t i = 0; i < task->array_count; i++) {
        if (task->arrays[i].role != BHI_TASK_IN && !task->arrays[i].expected.path) {
            return bhi_reading_refuse(&parser->reading, "output \"%.60s\" has no file",
                                      task->arrays[i].place);
        }
    }
    bhi_reading_leave(&parser->reading);
    return true;
}

static bool take_reference_kernel(struct bhi_task_parser *parser, const json_t *reference) {
    struct bhi_task *task = parser->task;
    task->reference = BHI_REFERENCE_KERNEL;
    bhi_reading_enter(&parser->reading, "kernel");
    if (!bhi_task_take_file(parser, json_object_get(reference, "kernel"),
                            &task->reference_kernel)) {
        return false;
    }
    bhi_reading_leave(&parser->reading);
    if (json_object_get(reference, "groups")) {
        return take_groups(parser, reference, &task->reference_groups);
    }
    task->reference_groups = task->groups;
    return true;
}

static bool take_reference_eval(struct bhi_task_parser *parser, const json_t *reference) {
    struct bhi_task *task = parser->task;
    task->reference = BHI_REFERENCE_EVAL;
    bhi_reading_enter(&parser->reading, "eval");
    task->reference_eval = json_string_value(json_object_get(reference, "eval"));
    if (!task->reference_eval) {
        return bhi_reading_refuse(&parser->reading,
                                  "it must be an expression such as \"z = x + y\"");
    }
    for (size_t i = 0; i < task->array_count; i++) {
        if (!bhi_size_is_name(task->arrays[i].place)) {
            return bhi_reading_refuse(&parser->reading,
                                      "an expression cannot name the binding \"%.60s\": call it "
                                      "by its name",
                                      task->arrays[i].place);
        }
        for (size_t k = 0; k < task->push_count; k++) {
            if (!strcmp(task->pushes[k].name, task->arrays[i].place)) {
                return bhi_reading_refuse(&parser->reading,
                                          "\"%.60s\" is both an array and a push constant",
                                          task->arrays[i].place);
            }
        }
        if (task->arrays[i].role == BHI_TASK_INOUT) {
            return bhi_reading_refuse(&parser->reading,
                                      "an expression cannot have an \"inout\"; \"%.60s\" is one",
                                      task->arrays[i].place);
        }
    }
    task->reference_eval_field = bhi_reading_field(&parser->reading);
    bhi_reading_leave(&parser->reading);
    return task->reference_eval_field || bhi_refuse(parser->reading.complaint, "out of memory");
}

static bool take_reference(struct bhi_task_parser *parser) {
    static const char *const keys[] = {"kernel", "groups", "eval", "files", NULL};
    struct bhi_task *task = parser->task;
    const json_t *reference = json_object_get(task->json, "reference");
    if (!reference) {
        return bhi_reading_refuse(&parser->reading,
                                  "there is no \"reference\": nothing says which result is right");
    }
    bhi_reading_enter(&parser->reading, "reference");
    if (!bhi_reading_check_keys(&parser->reading, reference, keys)) {
        return false;
    }
    json_t *const kernel = json_object_get(reference, "kernel"),
                  *const eval = json_object_get(reference, "eval"),
                  *const files = json_object_get(reference, "files");
    if (!!kernel + !!eval + !!files != 1) {
        return bhi_reading_refuse(&parser->reading,
                                  "it must have one of \"kernel\", \"eval\" and \"files\"");
    }
    if (json_object_get(reference, "groups") && !kernel) {
        return bhi_reading_refuse(&parser->reading, "\"groups\" are a kernel's");
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
        return bhi_reading_refuse(&parser->reading,
                                  "\"files\" are the outputs for one size and for inputs that are "
                                  "files: %s",
                                  task->size_count != 1 ? "there are several sizes"
                                                        : "an input is generated");
    }
    bhi_reading_leave(&parser->reading);
    return true;
}

/* -- all ----------------------------------------------------------------------------------------
 */

/* Computes every expression for every size. */
static bool check_expressions(struct bhi_task_parser *parser, size_t size) {
    static const uint32_t one[3] = {1, 1, 1};
    struct bhi_task *task = parser->task;
    struct bhi_complaint *complaint = parser->reading.complaint;
    struct bhi_array array;
    uint32_t groups[3];
    char *push;
    for (size_t i = 0; i < task->array_count; i++) {
        if (!bhi_task_shape(task, size, &task->arrays[i], &array, complaint)) {
            bhi_reading_enter(&parser->reading, bhi_task_role_keys[task->arrays[i].role]);
            bhi_reading_enter(&parser->reading, task->arrays[i].place);
            bhi_reading_enter(&parser->reading, "shape");
            return bhi_reading_blame(&parser->reading);
        }
    }
    if (!bhi_task_groups_for(task, size, &task->groups, one, groups, complaint)) {
        bhi_reading_enter(&parser->reading, "groups");
        return bhi_reading_blame(&parser->reading);
    }
    if (task->reference == BHI_REFERENCE_KERNEL &&
        !bhi_task_groups_for(task, size, &task->reference_groups, one, groups, complaint)) {
        bhi_reading_enter(&parser->reading, "reference");
        bhi_reading_enter(&parser->reading, "groups");
        return bhi_reading_blame(&parser->reading);
    }
    if (!bhi_task_push_text(task, size, &push, complaint)) {
        bhi_reading_enter(&parser->reading, "push");
        return bhi_reading_blame(&parser->reading);
    }
    free(push);
    uint64_t amount;
    if (!bhi_task_amount(task, size, &task->bytes, &amount, complaint)) {
        bhi_reading_enter(&parser->reading, "bytes");
        return bhi_reading_blame(&parser->reading);
    }
    if (!bhi_task_amount(task, size, &task->operations, &amount, complaint)) {
        bhi_reading_enter(&parser->reading, "operations");
        return bhi_reading_blame(&parser->reading);
    }
    return true;
}

static bool take_name(struct bhi_task_parser *parser) {
    const json_t *value = json_object_get(parser->task->json, "name");
    const char *name = json_string_value(value);
    bhi_reading_enter(&parser->reading, "name");
    if (value && (!name || !*name || strlen(name) > BHI_TASK_NAME)) {
        return bhi_reading_refuse(&parser->reading, "it must be a string of 1 to %d bytes",
                                  BHI_TASK_NAME);
    }
    bhi_reading_leave(&parser->reading);
    snprintf(parser->task->name, sizeof parser->task->name, "%s", name ? name : "");
    return true;
}

static bool take_all(struct bhi_task_parser *parser) {
    static const char *const keys[] = {"name",       "sizes",     "check_sizes", "seeds",  "in",
                                       "inout",      "out",       "push",        "groups", "bytes",
                                       "operations", "reference", "limits",      NULL};
    struct bhi_task *task = parser->task;
    if (!bhi_reading_check_keys(&parser->reading, task->json, keys) || !take_name(parser) ||
        !take_sizes(parser, "sizes", false) || !take_sizes(parser, "check_sizes", true)) {
        return false;
    }
    if (!task->size_count) {
        return bhi_reading_refuse(&parser->reading, "there is no \"sizes\"");
    }
    if (!take_seeds(parser) || !bhi_task_take_arrays(parser, BHI_TASK_IN) ||
        !bhi_task_take_arrays(parser, BHI_TASK_INOUT) ||
        !bhi_task_take_arrays(parser, BHI_TASK_OUT)) {
        return false;
    }
    if (!task->array_count || task->arrays[task->array_count - 1].role == BHI_TASK_IN) {
        return bhi_reading_refuse(&parser->reading, "there is no \"out\" and no \"inout\"");
    }
    if (!take_pushes(parser) || !take_groups(parser, task->json, &task->groups) ||
        !take_amount(parser, "bytes", &task->bytes) ||
        !take_amount(parser, "operations", &task->operations) || !take_reference(parser) ||
        !take_limits(parser)) {
        return false;
    }
    for (size_t i = 0; i < task->size_count; i++) {
        if (!check_expressions(parser, i)) {
            return false;
        }
    }
    return true;
}

bool bhi_task_parse(const char *name, const char *folder, const char *text,
                    struct bhi_task *out_task, struct bhi_complaint *complaint) {
    json_error_t error;
    *out_task = (struct bhi_task){.json = json_loads(text, JSON_REJECT_DUPLICATES, &error)};
    if (!out_task->json) {
        if (json_error_code(&error) == json_error_out_of_memory) {
            return bhi_refuse(complaint, "out of memory");
        }
        return bhi_refuse(complaint, "%.200s:%d: not JSON: %.200s (column %d)", name, error.line,
                          error.text, error.column);
    }
    struct bhi_task_parser parser = {
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

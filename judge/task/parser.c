/* Single fields: a wrong value is refused with line and field. */
#include "judge/task/parser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns |path| in the task's folder, for the caller to free; NULL: out of memory. */
static char *place_file(const struct parser *parser, const char *path) {
    char *whole = NULL;
    if (path[0] == '/' || !parser->folder[0]) {
        return strdup(path);
    }
    return asprintf(&whole, "%s/%s", parser->folder, path) < 0 ? NULL : whole;
}

bool bhi_parser_take_file(struct parser *parser, const json_t *value, struct bhi_task_file *out) {
    const char *path = json_string_value(value);
    if (!path || !*path) {
        return refuse(parser, "it must be the name of a file");
    }
    out->path = place_file(parser, path);
    out->field = bhi_reading_field(&parser->reading);
    return (out->path && out->field) || bhi_refuse_memory(parser->reading.complaint);
}

bool bhi_parser_take_number(struct parser *parser, const json_t *value,
                            struct bhi_task_number *out) {
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

bool bhi_parser_check_name(struct parser *parser, const char *name) {
    return bhi_size_is_name(name) ||
           refuse(parser,
                  "no name: a letter or _, then letters, digits and _, at most %d, and "
                  "not min, max or ceildiv",
                  BHI_SIZE_NAME);
}

bool bhi_parser_take_groups(struct parser *parser, const json_t *object,
                            struct bhi_task_groups *out) {
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
        if (!bhi_parser_take_number(parser, count, &out->along[i])) {
            return false;
        }
        leave(parser);
    }
    return leave(parser);
}

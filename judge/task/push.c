/* The push constants of a task. */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "judge/task/parser.h"

/* What is drawn is an f32. No normal number is further from the mean than 13 deviations: judge/data
 * draws it from 53 bits. */
static bool is_drawable(const struct bhi_filler *filler) {
    const bool normal = filler->kind == BHI_FILLER_NORMAL;
    const double low = normal ? filler->low - 13 * filler->high : filler->low;
    const double high = normal ? filler->low + 13 * filler->high : filler->high;
    return filler->kind == BHI_FILLER_INTEGERS || (low >= -FLT_MAX && high <= FLT_MAX);
}

/* {"uniform": [0.1, 4]}, {"normal": [0, 1]} or {"integers": [1, 9]}: drawn for each seed. */
static bool take_drawn(struct parser *parser, const json_t *value, struct bhi_task_push *out) {
    static const char *const kinds[] = {[BHI_FILLER_UNIFORM] = "uniform",
                                        [BHI_FILLER_NORMAL] = "normal",
                                        [BHI_FILLER_INTEGERS] = "integers"};
    for (int kind = BHI_FILLER_UNIFORM; kind <= BHI_FILLER_INTEGERS; kind++) {
        const json_t *pair = json_object_get(value, kinds[kind]);
        if (pair && json_object_size(value) == 1) {
            enter(parser, kinds[kind]);
            return bhi_parser_take_pair(parser, pair, (enum bhi_filler_kind)kind, &out->filler,
                                        &out->ends) &&
                   (is_drawable(&out->filler) ||
                    refuse(parser, "f32 does not hold all that it draws: its largest number is "
                                   "3.4e38")) &&
                   leave(parser);
        }
    }
    return refuse(parser, "it must be a number, true, false, an expression such as \"n\", or "
                          "{\"uniform\": [0.1, 4]}, {\"normal\": [0, 1]} or {\"integers\": "
                          "[1, 9]}");
}

bool bhi_parser_take_pushes(struct parser *parser) {
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
        if (!bhi_parser_check_name(parser, name)) {
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
        } else if (!push->expression && !take_drawn(parser, value, push)) {
            return false;
        }
        leave(parser);
    }
    return leave(parser);
}

/* How CUDA kernels are launched: a task says it for all of them, a plan for one. Their parameters have no names, only
 * an order; and a block's threads are in no module. */
#include <string.h>

#include "judge/task/parser.h"

enum { MOST_THREADS = 1024 }; /* of a block, along x and y; a device may take fewer */

/* 256, or [16, 16]. */
static bool take_block(struct parser *parser, const json_t *block, struct bhi_task_cuda *out) {
    const size_t count = json_is_array(block) ? json_array_size(block) : 1;
    enter(parser, "block");
    for (size_t i = 0; i < 3 && block; i++) {
        const json_t *const one = json_is_array(block) ? json_array_get(block, i)
                                  : i                  ? NULL
                                                       : block;
        const json_int_t threads = one ? json_integer_value(one) : 1;
        if (threads < 1 || threads > MOST_THREADS || count < 1 || count > 3) {
            return refuse(parser,
                          "it must be a number of threads from 1 to %d, or an array of one "
                          "to three, such as [16, 16]",
                          MOST_THREADS);
        }
        out->block[i] = (uint32_t)threads;
    }
    return leave(parser);
}

static bool take_parameters(struct parser *parser, const json_t *names, struct bhi_task_cuda *out) {
    json_t *name;
    size_t i;
    enter(parser, "parameters");
    if (names && (!json_is_array(names) || !json_array_size(names) ||
                  json_array_size(names) > BHI_CUDA_LIST)) {
        return refuse(parser, "it must be an array of one to %d names", BHI_CUDA_LIST);
    }
    json_array_foreach((json_t *)names, i, name) {
        enter_element(parser, i);
        out->parameters[i] = json_string_value(name);
        if (!out->parameters[i] || !*out->parameters[i]) {
            return refuse(parser, "it must be the name of an array or of a push constant");
        }
        for (size_t k = 0; k < i; k++) {
            if (!strcmp(out->parameters[k], out->parameters[i])) {
                return refuse(parser, "\"%.60s\" is there twice", out->parameters[i]);
            }
        }
        leave(parser);
        out->parameter_count++;
    }
    return leave(parser);
}

bool bhi_parser_take_cuda(struct parser *parser, const json_t *object, struct bhi_task_cuda *out) {
    static const char *const keys[] = {"parameters", "block", "shared"};
    const json_t *shared = json_object_get(object, "shared");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && !out->field; i++) {
        if (json_object_get(object, keys[i])) {
            enter(parser, keys[i]);
            if (!(out->field = bhi_reading_field(&parser->reading))) {
                return bhi_refuse_memory(parser->reading.complaint);
            }
            leave(parser);
        }
    }
    if (!take_block(parser, json_object_get(object, "block"), out) ||
        !take_parameters(parser, json_object_get(object, "parameters"), out)) {
        return false;
    }
    enter(parser, "shared");
    return (!shared || bhi_parser_take_number(parser, shared, &out->shared)) && leave(parser);
}

/* Each array needs a place in the list; push constants need not. */
bool bhi_parser_take_order(struct parser *parser) {
    struct bhi_task *task = parser->task;
    const struct bhi_task_cuda *cuda = &task->cuda;
    if (!bhi_parser_take_cuda(parser, task->json, &task->cuda)) {
        return false;
    }
    enter(parser, "parameters");
    for (size_t i = 0; i < cuda->parameter_count; i++) {
        bool known = false;
        for (size_t k = 0; k < task->array_count; k++) {
            known |= !strcmp(task->arrays[k].place, cuda->parameters[i]);
        }
        for (size_t k = 0; k < task->push_count; k++) {
            known |= !strcmp(task->pushes[k].name, cuda->parameters[i]);
        }
        enter_element(parser, i);
        if (!known) {
            return refuse(parser, "there is no array and no push constant \"%.60s\"",
                          cuda->parameters[i]);
        }
        leave(parser);
    }
    for (size_t k = 0; k < task->array_count && cuda->parameter_count; k++) {
        bool listed = false;
        for (size_t i = 0; i < cuda->parameter_count; i++) {
            listed |= !strcmp(task->arrays[k].place, cuda->parameters[i]);
        }
        if (!listed) {
            return refuse(parser, "array \"%.60s\" is not there", task->arrays[k].place);
        }
    }
    return leave(parser);
}

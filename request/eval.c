#include "request/eval.h"

#include <string.h>

/* Copies |name|, of |length| bytes, into a parameter that is not counted yet. Returns NULL if it is
 * refused. */
static const char *take_name(struct bhi_eval_request *eval, const char *name, size_t length,
                             bh_parameter_role role, struct bhi_complaint *complaint) {
    if (length == 0) {
        bhi_refuse(complaint, "no name before '='");
        return NULL;
    }
    if (length > BHI_EVAL_NAME) {
        bhi_refuse(complaint, "a name of %zu bytes; names have %d at most", length, BHI_EVAL_NAME);
        return NULL;
    }
    if (eval->count == BH_MAX_PARAMETERS) {
        bhi_refuse(complaint, "more than %d inputs, numbers and outputs", BH_MAX_PARAMETERS);
        return NULL;
    }
    char *copy = eval->names[eval->count];
    memcpy(copy, name, length);
    eval->parameters[eval->count] = (bh_parameter){.name = copy, .role = role};
    eval->arguments[eval->count] = (bh_argument){.name = copy};
    eval->count++;
    return copy;
}

/* Adds a binding; the order of the calls is the order of the bindings. Returns NULL if refused. */
static struct bhi_run_binding *add_binding(struct bhi_run_request *request, const char *option,
                                           const char *name, size_t length, const char *file,
                                           struct bhi_complaint *complaint) {
    const uint32_t index = request->binding_count;
    struct bhi_run_binding *binding =
        bhi_run_add_binding(request, option, name, length, file, complaint);
    if (binding) {
        binding->slot.binding = index;
    }
    return binding;
}

/* Refuses what `run` allows after a file: eval infers it. */
static bool refuse_array(const char *name, const char *file, struct bhi_complaint *complaint) {
    const char *like, *end = NULL;
    size_t length;
    bh_dtype dtype;
    if (bhi_binding_split_like(file, &length, &like)) {
        end = file + length;
    }
    for (const char *at = file; !end && (at = strchr(at, ':')); at++) {
        const size_t word = strcspn(at + 1, ":[x");
        const char *behind = at + 1 + word;
        if (bhi_dtype_find(at + 1, word, &dtype) && !strchr(behind, '/')) {
            end = at;
        }
    }
    return !end ||
           bhi_refuse(complaint, "no '%.100s' here: eval infers type and shape; write %s=%.*s", end,
                      name, end - file > 200 ? 200 : (int)(end - file), file);
}

static bool parse_set(bh_argument *argument, const char *text, struct bhi_complaint *complaint) {
    const size_t length = strcspn(text, ":");
    if (!text[length]) {
        return bhi_refuse(complaint, "'%s' has no type: write %s=f32:%s, for example", text,
                          argument->name, text);
    }
    if (!bhi_dtype_find(text, length, &argument->dtype)) {
        return bhi_refuse(complaint, "'%.*s' is not a type; it is one of %s",
                          length > 40 ? 40 : (int)length, text, BHI_DTYPE_NAMES);
    }
    return bhi_dtype_parse(argument->dtype, text + length + 1, &argument->bits, complaint);
}

bool bhi_eval_add_input(struct bhi_run_request *request, const char *name, size_t length,
                        const char *value, struct bhi_complaint *complaint) {
    if (!take_name(request->eval, name, length, BH_PARAMETER_IN, complaint)) {
        return false;
    }
    request->eval->inputs++;
    struct bhi_run_binding *binding = add_binding(request, "in", name, length, value, complaint);
    return binding && bhi_run_end_binding(request, binding,
                                          bhi_binding_parse_input(binding, value, complaint));
}

bool bhi_eval_add_output(struct bhi_run_request *request, const char *name, size_t length,
                         const char *value, struct bhi_complaint *complaint) {
    const char *taken = take_name(request->eval, name, length, BH_PARAMETER_OUT, complaint);
    if (!taken || !refuse_array(taken, value, complaint)) {
        return false;
    }
    request->eval->outputs++;
    struct bhi_run_binding *binding = add_binding(request, "out", name, length, value, complaint);
    return binding &&
           bhi_run_end_binding(request, binding, bhi_binding_parse_file(binding, value, complaint));
}

bool bhi_eval_add_number(struct bhi_run_request *request, const char *name, size_t length,
                         const char *value, struct bhi_complaint *complaint) {
    struct bhi_eval_request *eval = request->eval;
    return take_name(eval, name, length, BH_PARAMETER_PUSH, complaint) &&
           parse_set(&eval->arguments[eval->count - 1], value, complaint);
}

bool bhi_eval_set_piece(struct bhi_run_request *request, const char *text,
                        struct bhi_complaint *complaint) {
    return bhi_parse_size(text, &request->eval->piece, complaint);
}

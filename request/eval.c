#include "request/eval.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request/like.h"

/* Takes NAME of "NAME=REST"; *out_rest is REST. */
static bool take_name(struct bhi_eval_request *eval, const struct bhi_arg *item,
                      bh_parameter_role role, const char **out_rest,
                      struct bhi_complaint *complaint) {
    const char *value = item->value;
    const size_t length = strcspn(value, "=");
    if (!value[length])
        return bhi_refuse(complaint, "no '=': write --%s %s", bhi_options[item->option].name,
                          bhi_options[item->option].value);
    if (length == 0 || length > BHI_EVAL_NAME)
        return bhi_refuse(complaint, "a name of %zu bytes", length);
    if (eval->count == BH_MAX_PARAMETERS)
        return bhi_refuse(complaint, "more than %d inputs, numbers and outputs", BH_MAX_PARAMETERS);
    char *name = eval->names[eval->count];
    memcpy(name, value, length);
    eval->parameters[eval->count] = (bh_parameter){.name = name, .role = role};
    eval->arguments[eval->count] = (bh_argument){.name = name};
    eval->count++;
    *out_rest = value + length + 1;
    return true;
}

static struct bhi_run_binding *add_binding(struct bhi_run_request *request,
                                           const struct bhi_arg *item) {
    const uint32_t index = request->binding_count++;
    struct bhi_run_binding *binding = &request->bindings[index];
    binding->option = bhi_options[item->option].name;
    binding->text = item->value;
    binding->slot.binding = index;
    binding->in.fd = -1;
    binding->out = (struct bhi_outfile)BHI_OUTFILE_CLOSED;
    return binding;
}

/* What `run` takes behind a file, and nothing needs here. */
static bool refuse_array(const char *name, const char *file, struct bhi_complaint *complaint) {
    const char *like, *end = NULL;
    size_t length;
    enum bhi_dtype dtype;
    if (bhi_run_split_like(file, &length, &like))
        end = file + length;
    for (const char *at = file; !end && (at = strchr(at, ':')) != NULL; at++) {
        const size_t word = strcspn(at + 1, ":[x");
        const char *behind = at + 1 + word;
        if (bhi_dtype_find(at + 1, word, &dtype) && !strchr(behind, '/'))
            end = at;
    }
    return !end ||
           bhi_refuse(complaint, "no '%.100s' here: eval infers type and shape; write %s=%.*s", end,
                      name, end - file > 200 ? 200 : (int)(end - file), file);
}

static bool parse_set(bh_argument *argument, const char *text, struct bhi_complaint *complaint) {
    enum bhi_dtype dtype;
    const size_t length = strcspn(text, ":");
    if (!text[length])
        return bhi_refuse(complaint, "'%s' has no type: write %s=f32:%s, for example", text,
                          argument->name, text);
    if (!bhi_dtype_find(text, length, &dtype))
        return bhi_refuse(complaint, "'%.*s' is not a type; it is one of %s",
                          length > 40 ? 40 : (int)length, text, BHI_DTYPE_NAMES);
    argument->dtype =
        dtype == BHI_DTYPE_bool ? BH_DTYPE_BOOL : (bh_dtype)(BH_DTYPE_F16 + (int)dtype);
    return bhi_dtype_parse(dtype, text + length + 1, &argument->bits, complaint);
}

bool bhi_eval_parse_item(struct bhi_eval_request *eval, struct bhi_run_request *request,
                         const struct bhi_arg *item, struct bhi_complaint *complaint) {
    const char *rest;
    struct bhi_run_binding *binding;
    switch (item->option) {
    case BHI_EVAL_IN:
        if (!take_name(eval, item, BH_PARAMETER_IN, &rest, complaint))
            return false;
        eval->inputs++;
        return bhi_run_parse_input(add_binding(request, item), rest, complaint);
    case BHI_EVAL_OUT:
        if (!take_name(eval, item, BH_PARAMETER_OUT, &rest, complaint) ||
            !refuse_array(eval->parameters[eval->count - 1].name, rest, complaint))
            return false;
        eval->outputs++;
        binding = add_binding(request, item);
        binding->access = BH_WRITE;
        binding->out_path = strdup(rest);
        if (!binding->out_path)
            return bhi_refuse(complaint, "out of memory");
        return *rest ? bhi_run_check_format(rest, complaint)
                     : bhi_refuse(complaint, "the file name is empty");
    case BHI_EVAL_SET:
        return take_name(eval, item, BH_PARAMETER_PUSH, &rest, complaint) &&
               parse_set(&eval->arguments[eval->count - 1], rest, complaint);
    default:
        return bhi_parse_size(item->value, &eval->piece, complaint);
    }
}

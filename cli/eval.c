/* bulkhead eval: a kernel from an expression.
 *
 * Order: what can be refused without the inputs is; their types and shapes, once a loader has read
 * the headers, say what the outputs are; then it goes on as run does, but that what is larger than
 * the device binds is computed in pieces, each a submission. The request's bindings are the inputs,
 * then the outputs: in this order the template binds them.
 */
#include <bulkhead/bulkhead.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "eval_pieces.h"
#include "exit_status.h"
#include "run_files.h"
#include "run_limits.h"
#include "run_steps.h"
#include "session.h"
#include "text.h"
#include "values.h"

enum { MAX_NAME = 63 };

struct eval {
    struct bhi_run *run;
    const char *expression;
    char names[BH_MAX_PARAMETERS][MAX_NAME + 1];
    bh_parameter parameters[BH_MAX_PARAMETERS]; /* inputs, outputs, numbers */
    bh_argument arguments[BH_MAX_PARAMETERS];   /* of each */
    uint32_t inputs, outputs, count;
    bool print;
    uint64_t piece; /* bytes of an array that a submission binds at most; 0: what the device can */
    bh_template *template_;
    struct bhi_pieces pieces;
};

/* -- the request --------------------------------------------------------------------------------
 */

/* Takes NAME of "NAME=REST"; *out_rest is REST. */
static bool take_name(struct eval *eval, const struct bhi_arg *item, bh_parameter_role role,
                      const char **out_rest, struct bhi_complaint *complaint) {
    const char *value = item->value;
    const size_t length = strcspn(value, "=");
    if (!value[length])
        return bhi_refuse(complaint, "no '=': write --%s %s", bhi_options[item->option].name,
                          bhi_options[item->option].value);
    if (length == 0 || length > MAX_NAME)
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

static bool parse_item(struct eval *eval, const struct bhi_arg *item,
                       struct bhi_complaint *complaint) {
    struct bhi_run_request *request = &eval->run->request;
    const char *rest;
    struct bhi_run_binding *binding;
    switch (item->option) {
    case BHI_EVAL_IN:
        if (!take_name(eval, item, BH_PARAMETER_IN, &rest, complaint))
            return false;
        eval->inputs++;
        return bhi_run_parse_input(add_binding(request, item), rest, complaint);
    case BHI_EVAL_OUT:
        if (!take_name(eval, item, BH_PARAMETER_OUT, &rest, complaint))
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
    case BHI_EVAL_PIECE:
        return bhi_parse_size(item->value, &eval->piece, complaint);
    case BHI_EVAL_PRINT:
        eval->print = true;
        return true;
    default:
        return bhi_run_parse_common(request, item, complaint);
    }
}

/* All options called |name|, in the order given. */
static bool parse_items(struct eval *eval, const struct bhi_args *args, const char *name,
                        struct bhi_complaint *complaint) {
    for (size_t i = 0; i < args->item_count; i++) {
        const char *is = bhi_options[args->items[i].option].name;
        const bool own = !strcmp(is, "in") || !strcmp(is, "out") || !strcmp(is, "set");
        if ((name ? !strcmp(is, name) : !own) && !parse_item(eval, &args->items[i], complaint))
            return bhi_run_blame(&args->items[i], complaint);
    }
    return true;
}

static bool parse_request(struct eval *eval, const struct bhi_args *args,
                          struct bhi_complaint *complaint) {
    struct bhi_run_request *request = &eval->run->request;
    eval->expression = args->operands[0];
    request->repeat = 1;
    request->kernel_path = "EXPRESSION";
    strcpy(request->kernel_name, "eval");
    request->bindings = calloc(BH_MAX_PARAMETERS, sizeof *request->bindings);
    if (!request->bindings)
        return bhi_refuse(complaint, "out of memory");
    if (!parse_items(eval, args, "in", complaint) || !parse_items(eval, args, "out", complaint) ||
        !parse_items(eval, args, "set", complaint) || !parse_items(eval, args, NULL, complaint))
        return false;
    if (!eval->outputs)
        return bhi_refuse(complaint, "there is no output: give it with --out NAME=FILE");
    if (eval->print)
        request->repeat = 1; /* no times to tell of */
    if (eval->print && request->json)
        return bhi_refuse(complaint, "--print and --json: one of them");
    return bhi_run_check_streams(request, complaint);
}

/* -- steps --------------------------------------------------------------------------------------
 */

/* The complaint without the call's name. */
static int refused(const struct eval *eval, bh_status status, bh_detail *detail) {
    const char *why = bhi_text_without_call(detail->message);
    if (status == BH_INVALID_ARGUMENT || status == BH_TOO_LARGE) {
        bhi_complain("eval", "'%.200s': %s", eval->expression, why);
        bhi_ending_blame(status);
        return BHI_EXIT_USAGE;
    }
    memmove(detail->message, why, strlen(why) + 1);
    return bhi_session_fail("eval", "EXPRESSION", status, detail);
}

static int make_template(struct eval *eval) {
    bh_template_options options;
    bh_detail detail = {0};
    bh_template_options_init(&options);
    options.name = "eval";
    if (eval->run->request.compile_deadline_ns)
        options.compile_deadline_ns = eval->run->request.compile_deadline_ns;
    options.expression = eval->expression;
    options.parameters = eval->parameters;
    options.parameter_count = eval->count;
    const bh_status status =
        bh_template_create(eval->run->context, &options, &eval->template_, &detail);
    return status == BH_OK ? BHI_EXIT_READY : refused(eval, status, &detail);
}

static int open_stdin(struct eval *eval) {
    struct bhi_complaint complaint;
    return bhi_run_open_stdin(&eval->run->request, &complaint)
               ? bhi_run_check_overlap(eval->run)
               : bhi_run_refused(eval->run, BH_LOAD_FAILED, &complaint);
}

static const struct {
    bh_number_kind kind;
    uint32_t bits;
} numbers[] = {
    [BHI_DTYPE_f16] = {BH_NUMBER_FLOAT, 16}, [BHI_DTYPE_f32] = {BH_NUMBER_FLOAT, 32},
    [BHI_DTYPE_f64] = {BH_NUMBER_FLOAT, 64}, [BHI_DTYPE_i8] = {BH_NUMBER_INT, 8},
    [BHI_DTYPE_u8] = {BH_NUMBER_UINT, 8},    [BHI_DTYPE_i16] = {BH_NUMBER_INT, 16},
    [BHI_DTYPE_u16] = {BH_NUMBER_UINT, 16},  [BHI_DTYPE_i32] = {BH_NUMBER_INT, 32},
    [BHI_DTYPE_u32] = {BH_NUMBER_UINT, 32},  [BHI_DTYPE_i64] = {BH_NUMBER_INT, 64},
    [BHI_DTYPE_u64] = {BH_NUMBER_UINT, 64},  [BHI_DTYPE_bool] = {BH_NUMBER_BOOL, 8},
};

/* Says what is in a buffer that no loader has filled. */
static bh_status describe(const struct bhi_run_binding *binding, bh_detail *detail) {
    const struct bhi_array *array = &binding->array;
    bh_description description;
    bh_description_init(&description);
    description.kind = numbers[array->dtype].kind;
    description.bits = numbers[array->dtype].bits;
    description.rank = array->dimensions;
    memcpy(description.shape, array->shape, array->dimensions * sizeof array->shape[0]);
    return bh_buffer_describe(binding->buffer, &description, detail);
}

static int take_inputs(struct eval *eval) {
    struct bhi_run_request *request = &eval->run->request;
    for (uint32_t i = 0; i < eval->inputs; i++) {
        struct bhi_run_binding *binding = &request->bindings[i];
        bh_detail detail = {0};
        bh_array_info info = {0};
        const bool loaded = bh_buffer_array(binding->buffer, &info) == BH_OK;
        const uint32_t rank = loaded ? info.dimensions : binding->array.dimensions;
        if (rank > BH_MAX_RANK) {
            bhi_complain("eval", "--in %s: more than %d dimensions", binding->text, BH_MAX_RANK);
            return BHI_EXIT_USAGE;
        }
        const bh_status status = loaded ? BH_OK : describe(binding, &detail);
        if (status != BH_OK)
            return bhi_session_fail("eval", binding->text, status, &detail);
        eval->arguments[i].buffer = binding->buffer;
    }
    return BHI_EXIT_READY;
}

/* What the outputs are, from the inputs. */
static int infer_outputs(struct eval *eval) {
    struct bhi_complaint complaint;
    for (uint32_t i = eval->inputs; i < eval->inputs + eval->outputs; i++) {
        struct bhi_array *array = &eval->run->request.bindings[i].array;
        bh_detail detail = {0};
        bh_description d;
        bh_description_init(&d);
        const bh_status status = bh_template_output(eval->template_, eval->arguments, eval->count,
                                                    eval->parameters[i].name, &d, &detail);
        if (status != BH_OK)
            return refused(eval, status, &detail);
        for (int k = 0; k < BHI_DTYPE_COUNT; k++) {
            if (numbers[k].kind == d.kind && numbers[k].bits == d.bits)
                array->dtype = (enum bhi_dtype)k;
        }
        array->dimensions = d.rank;
        memcpy(array->shape, d.shape, d.rank * sizeof d.shape[0]);
        if (!bhi_array_measure(array, &complaint))
            return bhi_run_refused(eval->run, BH_TOO_LARGE, &complaint);
    }
    return BHI_EXIT_READY;
}

/* Inputs from files are there; this is standard input. The outputs' arrays are not known yet. */
static int fill_inputs(struct eval *eval) {
    struct bhi_run_request *request = &eval->run->request;
    const uint32_t all = request->binding_count;
    request->binding_count = eval->inputs;
    const int exit_status = bhi_run_fill_all(eval->run);
    request->binding_count = all;
    return exit_status;
}

static int print_source(struct eval *eval) {
    bh_detail detail = {0};
    size_t length = 0;
    bh_status status = bh_template_source(eval->template_, eval->arguments, eval->count, NULL, 0,
                                          &length, &detail);
    char *text = status == BH_OK ? malloc(length + 1) : NULL;
    if (text)
        status = bh_template_source(eval->template_, eval->arguments, eval->count, text, length + 1,
                                    &length, &detail);
    if (status == BH_OK && text)
        fputs(text, stdout);
    const int exit_status = status != BH_OK ? refused(eval, status, &detail)
                            : text          ? BHI_EXIT_READY
                                            : bhi_run_out_of_memory(eval->run);
    free(text);
    return exit_status;
}

/* How many bytes of an array a submission binds; 0: all of it. */
static int choose_piece(struct eval *eval, uint64_t *out_bytes) {
    uint64_t whole;
    bh_detail detail = {0};
    *out_bytes = 0;
    const bh_status status =
        bhi_pieces_measure(eval->arguments, eval->inputs + eval->outputs, &whole, &detail);
    if (status != BH_OK)
        return refused(eval, status, &detail);
    if (whole <= (eval->piece ? eval->piece : BHI_RANGE_OF_ALL))
        return BHI_EXIT_READY;
    const int exit_status = bhi_run_fetch_limits(eval->run);
    const uint64_t longest = eval->run->limits.storage_range;
    *out_bytes = eval->piece && (eval->piece < longest || !longest) ? eval->piece : longest;
    return exit_status;
}

static int make_kernel(struct eval *eval) {
    struct bhi_run *run = eval->run;
    struct bhi_run_request *request = &run->request;
    const uint32_t arrays = eval->inputs + eval->outputs;
    bh_detail detail = {0};
    bh_status status = BH_OK;
    uint64_t piece;
    for (uint32_t i = eval->inputs; i < arrays && status == BH_OK; i++) {
        eval->arguments[i].buffer = request->bindings[i].buffer;
        status = describe(&request->bindings[i], &detail);
    }
    if (status != BH_OK)
        return refused(eval, status, &detail);
    const int exit_status = choose_piece(eval, &piece);
    if (exit_status != BHI_EXIT_READY)
        return exit_status;
    const uint32_t alignment = run->limits.storage_alignment ? run->limits.storage_alignment : 1;
    status = bhi_pieces_cut(&eval->pieces, eval->template_, eval->arguments, eval->count, arrays,
                            piece, alignment, &detail);
    if (status != BH_OK)
        return refused(eval, status, &detail);
    if (eval->pieces.count > 1) {
        run->commands = eval->pieces.commands;
        run->command_count = eval->pieces.count;
    }
    const bh_command *first = &eval->pieces.commands[0];
    memcpy(request->groups, first->groups, sizeof request->groups);
    memcpy(request->push.bytes, eval->pieces.calls[0].push, first->push_size);
    request->push.size = first->push_size;
    run->kernel = first->kernel; /* with the call's reference */
    eval->pieces.calls[0].command.kernel = NULL;
    return BHI_EXIT_READY;
}

/* Has the worker map and import all arrays. What is large takes seconds, which are no part of any
 * piece: so this has no deadline, and a signal ends it. */
static int attach_all(struct eval *eval) {
    struct bhi_run *run = eval->run;
    bh_command commands[BH_MAX_PARAMETERS];
    bh_buffer *scratch = NULL;
    bh_detail detail = {0};
    if (eval->pieces.count < 2)
        return BHI_EXIT_READY;
    const bh_status status = bh_buffer_create(run->context, 4, &scratch, &detail);
    if (status != BH_OK)
        return bhi_session_fail("eval", NULL, status, &detail);
    uint32_t count = 0;
    for (uint32_t i = 0; i < eval->inputs + eval->outputs; i++) {
        bh_buffer *buffer = run->request.bindings[i].buffer;
        if (bh_buffer_size(buffer) < 4)
            continue;
        commands[count++] =
            i < eval->inputs
                ? (bh_command){.type = BH_COMMAND_COPY, .src = buffer, .dst = scratch, .size = 4}
                : (bh_command){.type = BH_COMMAND_FILL, .dst = buffer, .size = 4};
    }
    const bh_submit_info info = {
        .commands = commands, .command_count = count, .deadline_ns = BH_FOREVER};
    const int exit_status = count ? bhi_run_submit_apart(run, &info) : BHI_EXIT_READY;
    bh_buffer_release(scratch);
    return exit_status;
}

static int run_steps(struct eval *eval) {
    struct bhi_run *run = eval->run;
    int exit_status;
    (void)((exit_status = open_stdin(eval)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_open_context(run)) != BHI_EXIT_READY ||
           (exit_status = make_template(eval)) != BHI_EXIT_READY ||
           (!eval->print && (exit_status = bhi_run_start_worker(run)) != BHI_EXIT_READY) ||
           (exit_status = bhi_run_load_all(run)) != BHI_EXIT_READY ||
           (exit_status = fill_inputs(eval)) != BHI_EXIT_READY ||
           (exit_status = take_inputs(eval)) != BHI_EXIT_READY ||
           (exit_status = infer_outputs(eval)) != BHI_EXIT_READY);
    if (exit_status != BHI_EXIT_READY || eval->print)
        return exit_status == BHI_EXIT_READY ? print_source(eval) : exit_status;
    (void)((exit_status = bhi_run_open_all(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_fill_all(run)) != BHI_EXIT_READY ||
           (exit_status = make_kernel(eval)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_await_worker(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_compile(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_await_all(run)) != BHI_EXIT_READY ||
           (exit_status = attach_all(eval)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_submit_all(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_write_all(run)) != BHI_EXIT_READY);
    return exit_status;
}

int bhi_eval_main(const struct bhi_args *args) {
    struct bhi_complaint complaint;
    struct eval *eval = calloc(1, sizeof *eval);
    struct bhi_run *run = calloc(1, sizeof *run);
    int exit_status = BHI_EXIT_USAGE;

    if (!eval || !run) {
        free(eval);
        free(run);
        bhi_complain("eval", "out of memory");
        return BHI_EXIT_ENVIRON;
    }
    eval->run = run;
    run->request.command = "eval";
    bhi_run_begin(run);
    if (parse_request(eval, args, &complaint)) {
        exit_status = run_steps(eval);
        bhi_pieces_free(&eval->pieces);
        (void)bh_template_release(eval->template_);
        exit_status = bhi_run_end(run, exit_status);
    } else {
        run->request.json = bhi_args_has(args, BHI_EVAL_JSON);
        exit_status = bhi_run_misused(run, &complaint);
    }
    free(eval);
    return exit_status;
}

/* bulkhead eval: a kernel from an expression.
 *
 * The order: refuse what can be refused without the inputs; when a loader has read their headers,
 * infer the outputs from their types and shapes; then go on as run does. Arrays that are larger
 * than what the device binds are computed in pieces, each a submission. The request's bindings are
 * first the inputs, then the outputs, in the order in which the template binds them.
 */
#include <bulkhead/bulkhead.h>
#include <stdlib.h>
#include <string.h>

#include "cli/mains.h"
#include "cli/run/steps.h"
#include "request/command_line.h"
#include "request/eval_compute.h"
#include "request/eval_pieces.h"
#include "tool/args.h"
#include "tool/complain.h"
#include "tool/device_list.h"
#include "tool/exit_status.h"
#include "tool/session.h"
#include "tool/text.h"
#include "tool/values.h"

struct eval {
    struct bhi_run *run;
    bool print;
    struct bhi_eval_plan *plan;
    struct bhi_pieces pieces;
};

/* -- the request ----------------------------------------------------------------------------- */

/* Parses all options called |name|, in the order given. */
static bool parse_items(struct eval *eval, const struct bhi_args *args, const char *name,
                        struct bhi_complaint *complaint) {
    for (size_t i = 0; i < args->item_count; i++) {
        const char *is = bhi_options[args->items[i].option].name;
        const bool own = !strcmp(is, "in") || !strcmp(is, "out") || !strcmp(is, "set");
        if (args->items[i].option == BHI_EVAL_PRINT) {
            eval->print = true;
        } else if ((name ? !strcmp(is, name) : !own) &&
                   !bhi_run_parse_option(&eval->run->request, &args->items[i], complaint)) {
            return false;
        }
    }
    return true;
}

static bool parse_request(struct eval *eval, const struct bhi_args *args,
                          struct bhi_complaint *complaint) {
    struct bhi_run_request *request = &eval->run->request;
    if (!bhi_run_request_init(request, "EXPRESSION", BH_MAX_PARAMETERS, complaint)) {
        return false;
    }
    request->command = "eval";
    strcpy(request->kernel_name, "eval");
    request->eval = calloc(1, sizeof *request->eval);
    if (!request->eval) {
        return bhi_refuse(complaint, "out of memory");
    }
    request->eval->expression = args->operands[0];
    if (!parse_items(eval, args, "in", complaint) || !parse_items(eval, args, "out", complaint) ||
        !parse_items(eval, args, "set", complaint) || !parse_items(eval, args, NULL, complaint)) {
        return false;
    }
    if (!eval->run->request.eval->outputs) {
        return bhi_refuse(complaint, "there is no output: give it with --out NAME=FILE");
    }
    if (eval->print) {
        request->repeat = 1; /* there are no times to print */
        request->time = false;
        request->memory = BH_MEMORY_HOST; /* without a stream */
    }
    if (eval->print && request->json) {
        return bhi_refuse(complaint, "--print and --json exclude each other");
    }
    return bhi_run_check_streams(request, complaint);
}

/* -- steps ----------------------------------------------------------------------------------- */

/* Prints the message without the name of the call. */
static int refused(const struct eval *eval, bh_status status, bh_detail *detail) {
    const char *why = bhi_text_without_call(detail->message);
    if (status == BH_INVALID_ARGUMENT || status == BH_TOO_LARGE) {
        bhi_complain("eval", "'%.200s': %s", eval->run->request.eval->expression, why);
        bhi_ending_blame(status);
        return BHI_EXIT_USAGE;
    }
    why = bhi_text_without_name(why, "eval");
    memmove(detail->message, why, strlen(why) + 1);
    return bhi_session_fail("eval", "EXPRESSION", status, detail);
}

static int make_plan(struct eval *eval) {
    bh_detail detail = {0};
    const bh_status status =
        bhi_eval_make_plan(eval->run->request.eval, eval->run->context,
                           eval->run->request.compile_deadline_ns, &eval->plan, &detail);
    return status == BH_OK ? BHI_EXIT_READY : refused(eval, status, &detail);
}

static int open_stdin(struct eval *eval) {
    struct bhi_complaint complaint;
    return bhi_run_open_stdin(&eval->run->request, &complaint)
               ? bhi_run_check_overlap(eval->run)
               : bhi_run_refused(eval->run, BH_LOAD_FAILED, &complaint);
}

static int take_inputs(struct eval *eval) {
    const struct bhi_run_binding *bad;
    bh_detail detail = {0};
    const bh_status status =
        bhi_eval_take_inputs(eval->run->request.eval, &eval->run->request, &bad, &detail);
    if (status == BH_OK) {
        return BHI_EXIT_READY;
    }
    if (status != BH_INVALID_ARGUMENT) {
        return bhi_session_fail("eval", bad->text, status, &detail);
    }
    return bhi_complain_usage("eval", "--in %s: %s", bad->text,
                              bhi_text_without_call(detail.message));
}

static int infer_outputs(struct eval *eval) {
    bh_detail detail = {0};
    struct bhi_complaint complaint;
    const bh_status status =
        bhi_eval_infer_outputs(eval->run->request.eval, &eval->run->request, eval->plan, &detail);
    if (status != BH_TOO_LARGE) {
        return status == BH_OK ? BHI_EXIT_READY : refused(eval, status, &detail);
    }
    bhi_refuse(&complaint, "%s", bhi_text_without_call(detail.message));
    return bhi_run_refused(eval->run, BH_TOO_LARGE, &complaint);
}

/* Fills the input from standard input; those from files are loading. Outputs are left out, because
 * their arrays are unknown yet. */
static int fill_inputs(struct eval *eval) {
    struct bhi_run_request *request = &eval->run->request;
    const uint32_t all = request->binding_count;
    request->binding_count = eval->run->request.eval->inputs;
    const int exit_status = bhi_run_fill_all(eval->run);
    request->binding_count = all;
    return exit_status;
}

static int print_source(struct eval *eval) {
    bh_detail detail = {0};
    char *text;
    const bh_status status = bhi_eval_plan_source(eval->plan, eval->run->request.eval->arguments,
                                                  eval->run->request.eval->count, &text, &detail);
    if (status != BH_OK) {
        return refused(eval, status, &detail);
    }
    fputs(text, stdout);
    free(text);
    return BHI_EXIT_READY;
}

/* Computes how many bytes of an array a submission binds; 0: all. */
static int choose_piece(struct eval *eval, uint64_t *out_bytes) {
    uint64_t whole;
    bh_detail detail = {0};
    *out_bytes = 0;
    const bh_status status = bhi_pieces_measure(
        eval->run->request.eval->arguments,
        eval->run->request.eval->inputs + eval->run->request.eval->outputs, &whole, &detail);
    if (status != BH_OK) {
        return refused(eval, status, &detail);
    }
    if (whole <=
        (eval->run->request.eval->piece ? eval->run->request.eval->piece : BHI_RANGE_OF_ALL)) {
        return BHI_EXIT_READY;
    }
    const int exit_status = bhi_run_fetch_limits(eval->run);
    const uint64_t longest = eval->run->limits.storage_range;
    *out_bytes =
        eval->run->request.eval->piece && (eval->run->request.eval->piece < longest || !longest)
            ? eval->run->request.eval->piece
            : longest;
    return exit_status;
}

static int make_kernel(struct eval *eval) {
    struct bhi_run *run = eval->run;
    struct bhi_run_request *request = &run->request;
    const uint32_t arrays = eval->run->request.eval->inputs + eval->run->request.eval->outputs;
    bh_detail detail = {0};
    uint64_t piece;
    bh_status status = bhi_eval_take_outputs(eval->run->request.eval, request, &detail);
    if (status != BH_OK) {
        return refused(eval, status, &detail);
    }
    const int exit_status = choose_piece(eval, &piece);
    if (exit_status != BHI_EXIT_READY) {
        return exit_status;
    }
    const struct bhi_eval_limits limits = {
        .bytes = piece,
        .alignment = run->limits.storage_alignment ? run->limits.storage_alignment : 1,
        .stream = run->stream};
    status =
        bhi_eval_plan_cut(eval->plan, eval->run->request.eval->arguments,
                          eval->run->request.eval->count, arrays, &limits, &eval->pieces, &detail);
    if (status != BH_OK) {
        return refused(eval, status, &detail);
    }
    if (eval->pieces.count > 1) {
        run->commands = eval->pieces.commands;
        run->command_count = eval->pieces.count;
    }
    const bh_command *first = &eval->pieces.commands[0];
    memcpy(request->groups, first->dispatch.groups, sizeof request->groups);
    memcpy(request->push.bytes, eval->pieces.calls[0]->push, first->dispatch.push_size);
    request->push.size = first->dispatch.push_size;
    run->kernel = first->dispatch.kernel; /* with the call's reference */
    eval->pieces.calls[0]->command.dispatch.kernel = NULL;
    return BHI_EXIT_READY;
}

/* Makes the worker map and import all arrays. This takes seconds for large arrays and must not
 * count as time of a piece. So it has no deadline; a signal ends it. */
static int attach_all(struct eval *eval) {
    struct bhi_run *run = eval->run;
    bh_command commands[BH_MAX_PARAMETERS];
    bh_buffer *scratch = NULL;
    bh_detail detail = {0};
    if (eval->pieces.count < 2) {
        return BHI_EXIT_READY;
    }
    const bh_status status = bh_buffer_create(run->context, 4, NULL, &scratch, &detail);
    if (status != BH_OK) {
        return bhi_session_fail("eval", NULL, status, &detail);
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < eval->run->request.eval->inputs + eval->run->request.eval->outputs;
         i++) {
        bh_buffer *buffer = run->request.bindings[i].buffer;
        if (bh_buffer_size(buffer) < 4) {
            continue;
        }
        commands[count++] =
            i < eval->run->request.eval->inputs
                ? (bh_command){.type = BH_COMMAND_COPY,
                               .copy = {.src = buffer, .dst = scratch, .size = 4}}
                : (bh_command){.type = BH_COMMAND_FILL, .fill = {.dst = buffer, .size = 4}};
    }
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = commands,
                                 .command_count = count,
                                 .deadline_ns = BH_FOREVER};
    const int exit_status = count ? bhi_run_submit_apart(run, &info) : BHI_EXIT_READY;
    bh_buffer_release(scratch);
    return exit_status;
}

static int run_steps(struct eval *eval) {
    struct bhi_run *run = eval->run;
    const int exit_status =
        open_stdin(eval) ?: bhi_run_open_context(run) ?: make_plan(eval) ?:
        (eval->print ? BHI_EXIT_READY : bhi_run_start_worker(run) ?: bhi_run_choose_memory(run)) ?:
        bhi_run_load_all(run) ?: fill_inputs(eval) ?: take_inputs(eval) ?: infer_outputs(eval);
    if (exit_status != BHI_EXIT_READY || eval->print) {
        return exit_status == BHI_EXIT_READY ? print_source(eval) : exit_status;
    }
    return bhi_run_open_all(run) ?: bhi_run_fill_all(run) ?: make_kernel(eval) ?:
           bhi_run_await_worker(run) ?: bhi_run_compile(run) ?: bhi_run_await_all(run) ?:
           attach_all(eval) ?: bhi_run_submit_all(run) ?: bhi_run_write_all(run);
}

int bhi_eval_main(const struct bhi_args *args) {
    struct bhi_complaint complaint;
    struct eval *eval = calloc(1, sizeof *eval);
    struct bhi_run *run = calloc(1, sizeof *run);
    int exit_status = BHI_EXIT_USAGE;

    if (!eval || !run) {
        free(eval);
        free(run);
        return bhi_complain_memory("eval");
    }
    eval->run = run;
    run->request.command = "eval";
    bhi_run_begin(run);
    if (parse_request(eval, args, &complaint)) {
        exit_status = run_steps(eval);
        bhi_pieces_free(&eval->pieces);
        bhi_eval_plan_release(eval->plan);
        exit_status = bhi_run_end(run, exit_status);
    } else {
        run->request.json = bhi_args_has(args, BHI_EVAL_JSON);
        exit_status = bhi_run_misused(run, &complaint);
    }
    free(eval);
    return exit_status;
}

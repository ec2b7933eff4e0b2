#include "judge/check/setup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/dtype.h"
#include "judge/check/content.h"
#include "judge/check/step.h"
#include "judge/check/submit.h"
#include "judge/data/draw.h"
#include "judge/data/whole.h"
#include "tool/text.h"
#include <bulkhead/inspect.h>
#include <bulkhead/template.h>

/* -- margins --------------------------------------------------------------------------------- */

/* So many bytes of noise repeat: nobody knows them, and to make all of them would take longer than
 * most kernels do. */
enum { NOISE = 1 << 16 };

void bhi_margins_fill(struct bhi_margins *margins, struct bhi_filler_place place, void *buffer,
                      uint64_t size) {
    uint8_t *bytes = buffer;
    const uint64_t all = size + 2 * BHI_MARGIN;
    uint64_t done = all < NOISE ? all : NOISE;
    bhi_filler_noise(place, bytes, done);
    while (done < all) {
        const uint64_t more = all - done < done ? all - done : done;
        memcpy(bytes + done, bytes, more);
        done += more;
    }
    memcpy(margins->before, bytes, BHI_MARGIN);
    memcpy(margins->behind, bytes + BHI_MARGIN + size, BHI_MARGIN);
}

void bhi_margins_repeat(struct bhi_margins *margins, uint32_t word, uint64_t size) {
    uint8_t *const behind = margins->behind;
    for (size_t i = 0; i < BHI_MARGIN; i++) {
        margins->before[i] = (uint8_t)(word >> i % sizeof word * 8); /* little endian */
        behind[i] = (uint8_t)(word >> (size + i) % sizeof word * 8);
    }
}

bool bhi_margins_find(const struct bhi_margins *margins, const void *buffer, uint64_t size,
                      int64_t *out_offset) {
    const uint8_t *before = buffer, *behind = before + BHI_MARGIN + size;
    for (int i = 0; i < BHI_MARGIN; i++) {
        if (before[i] != margins->before[i]) {
            *out_offset = i - BHI_MARGIN;
            return true;
        }
    }
    for (int i = 0; i < BHI_MARGIN; i++) {
        if (behind[i] != margins->behind[i]) {
            *out_offset = (int64_t)size + i;
            return true;
        }
    }
    return false;
}

struct bhi_setup {
    const struct bhi_task *task;
    const struct bhi_trial *trial;
    const struct bhi_judged_kernel *kernel;    /* NULL: an expression */
    struct bhi_array forms[BHI_PLAN_ARRAYS];   /* of the task's arrays, then of scratch */
    uint32_t count;                            /* of all of them */
    struct bhi_racked racked[BHI_PLAN_ARRAYS]; /* the buffers; owned */
    struct bhi_rack *rack;                     /* where they go; NULL: nowhere; borrowed */
    uint64_t offsets[BHI_PLAN_ARRAYS];         /* where in its buffer each array begins */
    bh_command commands[BHI_PLAN_KERNELS];     /* borrow from what follows */
    uint32_t command_count;
    /* Of a kernel: */
    struct bhi_setup_step *steps; /* owned */
    uint64_t number;              /* of the run */
    bool opposite;                /* as of the program */
    uint64_t empty;               /* a bit for each array: what is behind it is 0 */
    uint64_t lent;                /* a bit for each array: its buffer is the place's */
    uint64_t stride;              /* of the place's outputs, so far */
    uint64_t shown;               /* a bit for each array: a binding has what is behind it, too */
    /* Of an expression: */
    bh_parameter parameters[BHI_TASK_ARRAYS];
    bh_argument arguments[BHI_TASK_ARRAYS];
    bh_description descriptions[BHI_TASK_ARRAYS]; /* of |arguments| */
    bh_template_call call;
    bool prepared; /* |call| is to be dropped */
};

static const struct bhi_task_array *array_of(const struct bhi_setup *setup, uint32_t index) {
    return bhi_judged_array(setup->task, setup->kernel, index);
}

static bool is_input(const struct bhi_setup *setup, uint32_t index) {
    return array_of(setup, index)->role == BHI_TASK_IN;
}

/* Has the array content before the run? Otherwise it is noise. */
static bool has_content(const struct bhi_setup *setup, uint32_t index) {
    return array_of(setup, index)->role < BHI_TASK_OUT;
}

uint64_t bhi_court_push_seed(const struct bhi_court *court, const struct bhi_trial *trial) {
    enum { OF_PUSHES = 0x50757368 }; /* no run's noise has this counter */
    const struct bhi_philox bits =
        bhi_philox(court->noise_seed, (struct bhi_philox){{OF_PUSHES, OF_PUSHES, OF_PUSHES, 0}});
    return trial->timed ? (uint64_t)bits.words[1] << 32 | bits.words[0] : trial->seed;
}

/* -- a kernel: its dispatches ---------------------------------------------------------------- */

/* What each array is in this trial. */
static bool measure(const struct bhi_court *court, const struct bhi_program *program,
                    struct bhi_setup *setup, struct bhi_judge_outcome *outcome) {
    const struct bhi_judge_plan *plan = program->kernel ? program->kernel->plan : NULL;
    const struct bhi_trial *trial = setup->trial;
    struct bhi_complaint complaint;
    setup->kernel = program->kernel;
    setup->opposite = program->opposite;
    setup->count = bhi_judged_arrays(court->task, program->kernel);
    for (uint32_t i = 0; i < court->task->array_count; i++) {
        setup->forms[i] = trial->arrays[i].form;
    }
    return !plan ||
           bhi_judge_plan_shapes(plan, court->task, trial->size, trial->bytes,
                                 setup->forms + court->task->array_count, &complaint) ||
           bhi_judge_outcome_refuse(outcome, BH_BINDING_MISMATCH, &complaint);
}

static bool prepare_kernel(const struct bhi_court *court, const struct bhi_program *program,
                           struct bhi_setup *setup, struct bhi_judge_outcome *outcome) {
    return bhi_setup_steps_make(court, program->kernel, program->groups, setup->trial, setup->forms,
                                bhi_court_push_seed(court, setup->trial), &setup->steps, outcome);
}

bool bhi_court_check_kernel(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                            const struct bhi_task_groups *groups,
                            struct bhi_judge_outcome *outcome) {
    const struct bhi_program program = {.kernel = kernel, .groups = groups};
    bool good = true;
    for (size_t i = 0; i < court->trials.count && good; i++) {
        const struct bhi_trial *trial = &court->trials.list[i];
        if (i && trial->size == trial[-1].size) {
            continue;
        }
        struct bhi_setup *setup = calloc(1, sizeof *setup);
        if (!setup) {
            return bhi_judge_outcome_memory(outcome);
        }
        setup->task = court->task;
        setup->trial = trial;
        good = measure(court, &program, setup, outcome) &&
               prepare_kernel(court, &program, setup, outcome) &&
               bhi_setup_steps_check_groups(court, kernel, setup->steps, trial->size, outcome);
        bhi_setup_free(setup);
    }
    return good;
}

/* An access behind an array does no harm where the driver is robust, and nobody would see it: reads
 * are 0, writes are lost. So the binding is larger than the array, unless the kernel asks for its length.
 * A CUDA kernel sees in any case what is behind it. */
static void show(const struct bhi_court *court, const struct bhi_program *program,
                 struct bhi_setup *setup) {
    setup->empty = court->cuda ? program->exact : 0;
    for (size_t k = 0; k < setup->kernel->count; k++) {
        struct bhi_setup_step *step = &setup->steps[k];
        for (uint32_t b = 0; b < step->request.binding_count; b++) {
            if (bhi_setup_step_shows(court, setup->kernel, step, k, b) &&
                (court->cuda || !(program->exact >> step->arrays[b] & 1))) {
                step->shown |= UINT64_C(1) << b;
                setup->shown |= UINT64_C(1) << step->arrays[b];
            }
        }
    }
}

/* How many bytes behind array |index| a binding has that shows them. */
static uint64_t behind(const struct bhi_setup *setup, uint32_t index) {
    return is_input(setup, index) ? BHI_TAIL : BHI_MARGIN;
}

/* How many bytes a binding of the array has. None may have 0: an element of any type is behind an array that is
 * empty, of what is there in any case. */
static uint64_t binding_size(const struct bhi_setup *setup, uint32_t index, bool shown) {
    enum { ELEMENT = 16 };
    const uint64_t size = setup->forms[index].bytes + (shown ? behind(setup, index) : 0);
    return size ? size : ELEMENT;
}

static void command_kernel(struct bhi_setup *setup) {
    for (size_t k = 0; k < setup->kernel->count; k++) {
        struct bhi_setup_step *step = &setup->steps[k];
        const struct bhi_run_request *request = &step->request;
        bhi_run_request_bindings(request, step->bindings);
        for (uint32_t b = 0; b < request->binding_count; b++) {
            const uint32_t array = step->arrays[b];
            step->bindings[b].buffer = setup->racked[array].buffer;
            step->bindings[b].offset = setup->offsets[array];
            step->bindings[b].size = binding_size(setup, array, step->shown >> b & 1);
        }
        const struct bhi_judged_step *judged = &setup->kernel->steps[k];
        setup->commands[k] =
            (bh_command){.type = BH_COMMAND_DISPATCH,
                         .dispatch = {.kernel = setup->opposite ? judged->opposite : judged->kernel,
                                      .groups = {step->groups[0], step->groups[1], step->groups[2]},
                                      .bindings = step->bindings,
                                      .binding_count = request->binding_count,
                                      .push = request->push.bytes,
                                      .push_size = request->push.size,
                                      .shared_bytes = step->shared_bytes}};
        if (setup->kernel->cuda) {
            memcpy(setup->commands[k].dispatch.block, judged->types->local_size,
                   sizeof setup->commands[k].dispatch.block);
        }
    }
    setup->command_count = (uint32_t)setup->kernel->count;
}

/* -- an expression: its template ------------------------------------------------------------- */

/* Writes "n = 64; a = 2.5;" and, on a line of its own, the expression. */
static bool write_text(const struct bhi_court *court, const struct bhi_setup *setup,
                       char **out_text, struct bhi_complaint *complaint) {
    const struct bhi_task *task = setup->task;
    const size_t size = setup->trial->size;
    size_t length;
    char *pushes;
    if (!bhi_task_push_text(task, size, bhi_court_push_seed(court, setup->trial), &pushes,
                            complaint)) {
        return false;
    }
    FILE *out = open_memstream(out_text, &length);
    for (size_t i = 0; i < task->parameter_count && out; i++) {
        bool is_push = false;
        for (size_t k = 0; k < task->push_count; k++) {
            is_push |= !strcmp(task->pushes[k].name, task->parameters[i]);
        }
        if (!is_push) {
            fprintf(out, "%s = %" PRIu64 ";", task->parameters[i], task->sizes[size].values[i]);
        }
    }
    for (const char *at = pushes; *at && out;) {
        const size_t end = strcspn(at, ",");
        fprintf(out, "%.*s;", (int)end, at);
        at += end + (at[end] == ',');
    }
    free(pushes);
    if (out) {
        fprintf(out, "\n%s", task->reference_eval);
    }
    if (!out || fclose(out) != 0) {
        return bhi_refuse_memory(complaint);
    }
    return true;
}

/* Makes the template, unless the last run had the same |text|, which is taken. */
static bh_status make_template(bh_context *context, const struct bhi_setup *setup,
                               struct bhi_reference_template *cache, char *text,
                               bh_detail *detail) {
    bh_template_options options = {.struct_size = sizeof options};
    if (cache->text && !strcmp(cache->text, text)) {
        free(text);
        return BH_OK;
    }
    bhi_reference_template_free(cache);
    cache->text = text;
    options.name = "reference";
    options.expression = text;
    options.parameters = setup->parameters;
    options.parameter_count = (uint32_t)setup->task->array_count;
    return bh_template_create(context, &options, &cache->template_, detail);
}

/* Says where in the task the expression is that the library has refused. Its lines are those of the
 * text: the first is ours. */
static bool refuse_expression(const struct bhi_task *task, bh_status status,
                              const bh_detail *detail, struct bhi_judge_outcome *outcome) {
    const char *why = bhi_text_without_call(detail->message);
    unsigned line = 0, column;
    int place = 0;
    if (bh_status_classify(status) == BH_STATUS_CLASS_ENVIRON) {
        return bhi_judge_outcome_take(outcome, status, detail);
    }
    if (sscanf(why, "line %u, column %u: %n", &line, &column, &place) < 2 || !place) {
        return bhi_judge_outcome_fail(outcome, status, "%s: %s", task->reference_eval_field, why);
    }
    why += place;
    if (line == 1) {
        return bhi_judge_outcome_fail(outcome, status, "%s: its sizes and push constants: %s",
                                      task->reference_eval_field, why);
    }
    return strchr(task->reference_eval, '\n')
               ? bhi_judge_outcome_fail(outcome, status, "%s: line %u, column %u: %s",
                                        task->reference_eval_field, line - 1, column, why)
               : bhi_judge_outcome_fail(outcome, status, "%s: column %u: %s",
                                        task->reference_eval_field, column, why);
}

static bool prepare_expression(const struct bhi_court *court, struct bhi_setup *setup,
                               struct bhi_reference_template *cache,
                               struct bhi_judge_outcome *outcome) {
    const struct bhi_task *task = court->task;
    struct bhi_complaint complaint;
    bh_detail detail = {0};
    char *text;
    for (uint32_t i = 0; i < task->array_count; i++) {
        const struct bhi_task_array *array = &task->arrays[i];
        const bool is_input = array->role == BHI_TASK_IN;
        setup->parameters[i] = (bh_parameter){.name = array->place,
                                              .role = is_input ? BH_PARAMETER_IN : BH_PARAMETER_OUT,
                                              .type = bhi_dtype_name(array->dtype)};
    }
    if (!write_text(court, setup, &text, &complaint)) {
        return bhi_judge_outcome_refuse(outcome, BH_INVALID_ARGUMENT, &complaint);
    }
    const bh_status status = make_template(court->context, setup, cache, text, &detail);
    return status == BH_OK || refuse_expression(task, status, &detail, outcome);
}

static bool command_expression(struct bhi_setup *setup, bh_template *template_,
                               struct bhi_judge_outcome *outcome) {
    bh_detail detail = {0};
    for (uint32_t i = 0; i < setup->task->array_count; i++) {
        const struct bhi_array *form = &setup->trial->arrays[i].form;
        setup->descriptions[i] = (bh_description){.struct_size = sizeof(bh_description),
                                                  .kind = bhi_dtype_number(form->dtype),
                                                  .bits = 8 * bhi_dtype_size(form->dtype),
                                                  .rank = form->dimensions,
                                                  .offset = setup->offsets[i]};
        memcpy(setup->descriptions[i].shape, form->shape, form->dimensions * sizeof form->shape[0]);
        setup->arguments[i] = (bh_argument){.name = setup->task->arrays[i].place,
                                            .buffer = setup->racked[i].buffer,
                                            .description = &setup->descriptions[i]};
    }
    const bh_status status =
        bh_template_prepare(template_, setup->arguments, (uint32_t)setup->task->array_count, NULL,
                            &setup->call, &detail);
    setup->prepared = status == BH_OK;
    setup->commands[0] = setup->call.command;
    setup->command_count = 1;
    return setup->prepared || refuse_expression(setup->task, status, &detail, outcome);
}

/* -- making it ------------------------------------------------------------------------------- */

/* What a kernel may write. */
static bool has_margins(const struct bhi_setup *setup, uint32_t index) {
    return setup->kernel && !is_input(setup, index);
}

static uint64_t margin_of(const struct bhi_setup *setup, uint32_t index) {
    return has_margins(setup, index) ? BHI_MARGIN : 0;
}

/* The bytes of a place. */
static uint64_t room_of(const struct bhi_setup *setup, uint32_t index) {
    return is_input(setup, index)
               ? 0
               : bhi_lap_bytes(setup->forms[index].bytes + 2 * margin_of(setup, index));
}

/* The size of the buffer of array |index|. */
static uint64_t buffer_size(const struct bhi_setup *setup, uint32_t index) {
    return has_margins(setup, index) ? setup->forms[index].bytes + 2 * BHI_MARGIN
                                     : binding_size(setup, index, setup->shown >> index & 1);
}

/* Of random bits half are numbers near 0, which would change no result. */
static void fill_tail(bh_dtype dtype, struct bhi_filler_place place, void *out, uint64_t size) {
    static const struct bhi_filler unused = {.kind = BHI_FILLER_BITS};
    bhi_arrange(BHI_ARRANGE_HUGE, &unused, place, dtype, size / bhi_dtype_size(dtype), out);
}

/* Fills all of the buffer of array |index| but what the array holds before the run. */
static void fill_around(const struct bhi_court *court, struct bhi_setup *setup, uint32_t index,
                        uint64_t size, uint8_t *content) {
    const uint64_t bytes = setup->forms[index].bytes;
    const bool empty = setup->empty >> index & 1;
    const struct bhi_filler_place place = {
        .seed = court->noise_seed + setup->number, .trial = 0, .array = index};
    if (setup->number == BHI_NO_NOISE) {
        memset(content, 0, size); /* as the margins are */
    } else if (is_input(setup, index) && !empty) {
        fill_tail(array_of(setup, index)->dtype, place, content + bytes, size - bytes);
    } else if (is_input(setup, index)) {
        memset(content + bytes, 0, size - bytes);
    } else if (setup->kernel) {
        bhi_margins_fill(setup->racked[index].margins, place, content, bytes);
        if (empty) {
            memset(content + BHI_MARGIN + bytes, 0, BHI_MARGIN);
            memset(setup->racked[index].margins->behind, 0, BHI_MARGIN);
        }
    }
}

static bool make_buffer(const struct bhi_court *court, struct bhi_setup *setup, uint32_t index,
                        struct bhi_judge_outcome *outcome) {
    struct bhi_racked *const racked = &setup->racked[index];
    if (has_margins(setup, index) && !(racked->margins = calloc(1, sizeof *racked->margins))) {
        return bhi_judge_outcome_memory(outcome);
    }
    /* A CUDA kernel writes a host's buffer in a copy of the device's, of which only what it declares comes back; and
     * who makes memory of a device reads it for us. */
    return bhi_content_make(court->context, setup->kernel ? court->keeper : NULL,
                            buffer_size(setup, index), &racked->buffer, outcome);
}

/* Of a timed run: what is read and written is given to each anew. */
static bool write_held(const struct bhi_court *court, const struct bhi_setup *setup, uint32_t index,
                       struct bhi_judge_outcome *outcome) {
    const struct bhi_trial_array *array = &setup->trial->arrays[index];
    /* The maker ends with zeros where the margin's words have to begin. */
    if (court->maker && array->form.bytes % sizeof(uint32_t) == 0 &&
        bhi_maker_can(court->maker, &array->fill.filler, array->form.dtype)) {
        const struct bhi_maker_array made = bhi_maker_array_of(array, setup->offsets[index]);
        return bhi_maker_make(court->maker, &made, 1, setup->racked[index].buffer, outcome);
    }
    void *const room = bhi_content_room(array->form.bytes);
    if (!room) {
        return bhi_judge_outcome_memory(outcome);
    }
    bhi_trial_write(array, array->count, room);
    const bool good = bhi_content_write(setup->racked[index].buffer, setup->offsets[index], room,
                                        array->form.bytes, outcome);
    free(room);
    return good;
}

/* Of a timed run. */
static bool find_place(const struct bhi_court *court, const struct bhi_lap_place *place,
                       struct bhi_setup *setup, uint32_t index, struct bhi_judge_outcome *outcome) {
    struct bhi_racked *const racked = &setup->racked[index];
    const uint64_t bytes = setup->forms[index].bytes;
    setup->lent |= UINT64_C(1) << index;
    racked->buffer = is_input(setup, index) ? place->inputs : place->outputs;
    bh_buffer_retain(racked->buffer);
    if (is_input(setup, index)) {
        setup->offsets[index] = bhi_lap_input(place, setup->task, setup->trial, index);
        return true;
    }
    setup->offsets[index] = place->outputs_begin + setup->stride + margin_of(setup, index);
    setup->stride += room_of(setup, index);
    if (has_margins(setup, index)) {
        if (!(racked->margins = malloc(sizeof *racked->margins))) {
            return bhi_judge_outcome_memory(outcome);
        }
        bhi_margins_repeat(racked->margins, place->word, bytes);
    }
    return !has_content(setup, index) || write_held(court, setup, index, outcome);
}

/* Finds the buffer of array |index| and fills it. No two runs have the same noise. */
static bool find_buffer(const struct bhi_court *court, struct bhi_setup *setup, uint32_t index,
                        struct bhi_judge_outcome *outcome) {
    const bool held = has_content(setup, index);
    const uint64_t size = buffer_size(setup, index);
    struct bhi_racked *const racked = &setup->racked[index];
    void *content;
    if (!(setup->rack && bhi_rack_take(setup->rack, size, has_margins(setup, index), racked)) &&
        !make_buffer(court, setup, index, outcome)) {
        return false;
    }
    if (!setup->kernel && !held) {
        return true; /* of an expression all elements are written */
    }
    if (!bhi_content_begin(racked->buffer, size, &content, outcome)) {
        return false;
    }
    setup->offsets[index] = margin_of(setup, index);
    fill_around(court, setup, index, size, content);
    if (held) {
        const struct bhi_trial_array *array = &setup->trial->arrays[index];
        bhi_trial_write(array, array->count, (uint8_t *)content + setup->offsets[index]);
    }
    return bhi_content_commit(racked->buffer, size, content, outcome);
}

static bool make(struct bhi_court *court, const struct bhi_program *program,
                 const struct bhi_lap_place *place, struct bhi_setup *setup,
                 struct bhi_judge_outcome *outcome) {
    const struct bhi_judged_kernel *kernel = program->kernel;
    if (!measure(court, program, setup, outcome) ||
        (kernel ? !prepare_kernel(court, program, setup, outcome)
                : !prepare_expression(court, setup, program->cache, outcome))) {
        return false;
    }
    setup->rack = program->rack;
    if (setup->rack) {
        bhi_rack_turn(setup->rack, setup->trial->size);
    }
    setup->number = program->number ? program->number : atomic_fetch_add(&court->runs, 1) + 1;
    /* Inputs of timed runs are close together in one buffer. */
    if (kernel && !place) {
        show(court, program, setup);
    }
    for (uint32_t i = 0; i < setup->count; i++) {
        if (!(place ? find_place(court, place, setup, i, outcome)
                    : find_buffer(court, setup, i, outcome))) {
            return false;
        }
    }
    if (!kernel) {
        return command_expression(setup, program->cache->template_, outcome);
    }
    command_kernel(setup);
    return true;
}

bool bhi_setup_stride(const struct bhi_court *court, const struct bhi_program *program,
                      const struct bhi_trial *trial, uint64_t *out_stride,
                      struct bhi_judge_outcome *outcome) {
    struct bhi_setup *setup = calloc(1, sizeof *setup);
    if (!setup) {
        return bhi_judge_outcome_memory(outcome);
    }
    setup->task = court->task;
    setup->trial = trial;
    const bool good = measure(court, program, setup, outcome);
    *out_stride = 0;
    for (uint32_t i = 0; i < setup->count && good; i++) {
        *out_stride += room_of(setup, i);
    }
    bhi_setup_free(setup);
    return good;
}

bool bhi_setup_make(struct bhi_court *court, const struct bhi_program *program,
                    const struct bhi_trial *trial, const struct bhi_lap_place *place,
                    struct bhi_setup **out_setup, struct bhi_judge_outcome *outcome) {
    struct bhi_setup *setup = calloc(1, sizeof *setup);
    *out_setup = NULL;
    if (!setup) {
        return bhi_judge_outcome_memory(outcome);
    }
    setup->task = court->task;
    setup->trial = trial;
    if (!make(court, program, place, setup, outcome)) {
        bhi_setup_free(setup);
        return false;
    }
    *out_setup = setup;
    return true;
}

const bh_command *bhi_setup_commands(const struct bhi_setup *setup, uint32_t *out_count) {
    *out_count = setup->command_count;
    return setup->commands;
}

/* -- what the run left ----------------------------------------------------------------------- */

bool bhi_setup_peek(const struct bhi_setup *setup, uint32_t index, uint64_t offset, void *out,
                    uint64_t size, struct bhi_judge_outcome *outcome) {
    static const uint64_t limit_ns = 10000000000u; /* for a buffer that nobody uses */
    bh_detail detail = {0};
    const bh_status status = bh_buffer_read(
        setup->racked[index].buffer, setup->offsets[index] + offset, out, size, limit_ns, &detail);
    return status == BH_OK || bhi_judge_outcome_take(outcome, status, &detail);
}

/* Copies the output of array |index|; of scratch nothing. The worker still lives, and may be the
 * kernel's by now: what is compared must not change meanwhile. */
static bool take_output(const struct bhi_setup *setup, uint32_t index, struct bhi_launched *out,
                        struct bhi_judge_outcome *outcome) {
    const uint64_t size = setup->forms[index].bytes;
    const struct bhi_racked *const racked = &setup->racked[index];
    const uint64_t margin = margin_of(setup, index);
    void *content;
    if (!bhi_content_read(racked->buffer, setup->offsets[index] - margin, size + 2 * margin,
                          &content, outcome)) {
        return false;
    }
    if (racked->margins && !out->strayed &&
        bhi_margins_find(racked->margins, content, size, &out->stray_offset)) {
        out->strayed = true;
        out->stray_place = array_of(setup, index)->place;
        out->stray_bytes = size;
    }
    if (index >= setup->task->array_count) {
        bhi_content_leave(racked->buffer, content);
        return true;
    }
    out->outputs[index] = bhi_content_take(racked->buffer, content, margin, size);
    return out->outputs[index] || bhi_judge_outcome_memory(outcome);
}

bool bhi_setup_take(const struct bhi_setup *setup, struct bhi_launched *out,
                    struct bhi_judge_outcome *outcome) {
    *out = (struct bhi_launched){.number = setup->number};
    for (uint32_t i = 0; i < setup->count; i++) {
        if (!is_input(setup, i) && !take_output(setup, i, out, outcome)) {
            bhi_launched_free(out);
            return false;
        }
    }
    return bhi_launched_sort(setup->task, setup->trial, out, outcome);
}

bool bhi_launched_sort(const struct bhi_task *task, const struct bhi_trial *trial,
                       struct bhi_launched *out, struct bhi_judge_outcome *outcome) {
    for (uint32_t i = 0; i < task->array_count; i++) {
        const struct bhi_trial_array *array = &trial->arrays[i];
        if (task->arrays[i].role == BHI_TASK_IN ||
            task->arrays[i].tolerance.by != BHI_BY_MULTISET) {
            continue;
        }
        if (!(out->sorted[i] = bhi_content_room(array->form.bytes))) {
            bhi_launched_free(out);
            return bhi_judge_outcome_memory(outcome);
        }
        memcpy(out->sorted[i], out->outputs[i], array->form.bytes);
        bhi_sort_multiset(array->form.dtype, array->count, out->sorted[i]);
    }
    return true;
}

void *bhi_launched_compared(const struct bhi_launched *launched, uint32_t index) {
    return launched->sorted[index] ? launched->sorted[index] : launched->outputs[index];
}

void bhi_setup_free(struct bhi_setup *setup) {
    if (!setup) {
        return;
    }
    if (setup->prepared) {
        bh_template_call_fini(&setup->call);
    }
    for (uint32_t i = 0; i < setup->count; i++) {
        bhi_rack_give(setup->lent >> i & 1 ? NULL : setup->rack, setup->racked[i]);
    }
    bhi_setup_steps_free(setup->steps, setup->kernel ? setup->kernel->count : 0);
    free(setup);
}

uint64_t bhi_launched_digest(const struct bhi_task *task, const struct bhi_trial *trial,
                             const struct bhi_launched *launched) {
    static const uint64_t odd = 0x9E3779B97F4A7C15u;
    uint64_t digest = 0;
    for (uint32_t i = 0; i < task->array_count; i++) {
        const uint8_t *const bytes = bhi_launched_compared(launched, i);
        const uint64_t size = bytes ? trial->arrays[i].form.bytes : 0;
        for (uint64_t k = 0; k < size; k += sizeof digest) {
            uint64_t word = 0;
            memcpy(&word, bytes + k, size - k < sizeof word ? size - k : sizeof word);
            digest = (digest ^ word) * odd;
            digest ^= digest >> 29;
        }
    }
    return digest;
}

void bhi_launched_free(struct bhi_launched *launched) {
    for (size_t i = 0; i < BHI_TASK_ARRAYS; i++) {
        free(launched->outputs[i]);
        free(launched->sorted[i]);
        launched->outputs[i] = launched->sorted[i] = NULL;
    }
}

void bhi_reference_template_free(struct bhi_reference_template *cache) {
    bh_template_release(cache->template_);
    free(cache->text);
    *cache = (struct bhi_reference_template){0};
}

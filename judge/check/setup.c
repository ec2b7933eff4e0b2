#include "judge/check/setup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/dtype.h"
#include "judge/data/draw.h"
#include "judge/data/whole.h"
#include "request/fill.h"
#include "request/missing.h"
#include "request/names.h"
#include "request/run.h"
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
    bh_buffer *buffers[BHI_TASK_ARRAYS]; /* owned */
    uint64_t offsets[BHI_TASK_ARRAYS];   /* where in its buffer each array begins */
    bh_command command;                  /* borrows from what follows */
    /* Of a kernel: */
    struct bhi_run_request request;
    char *push;                  /* what the request borrows; owned */
    struct bhi_margins *margins; /* by array; owned; NULL: an expression */
    bh_binding bindings[BHI_TASK_ARRAYS];
    uint64_t number; /* of the run */
    uint32_t shown;  /* a bit for each array: its binding has what is behind it, too */
    /* Of an expression: */
    bh_parameter parameters[BHI_TASK_ARRAYS];
    bh_argument arguments[BHI_TASK_ARRAYS];
    bh_description descriptions[BHI_TASK_ARRAYS]; /* of |arguments| */
    bh_template_call call;
    bool prepared; /* |call| is to be dropped */
};

uint64_t bhi_court_push_seed(const struct bhi_court *court, const struct bhi_trial *trial) {
    enum { OF_PUSHES = 0x50757368 }; /* no run's noise has this counter */
    const struct bhi_philox bits =
        bhi_philox(court->noise_seed, (struct bhi_philox){{OF_PUSHES, OF_PUSHES, OF_PUSHES, 0}});
    return trial->timed ? (uint64_t)bits.words[1] << 32 | bits.words[0] : trial->seed;
}

/* -- a kernel: its request ------------------------------------------------------------------- */

static bool add_bindings(const struct bhi_court *court, const struct bhi_trial *trial,
                         struct bhi_run_request *request, struct bhi_complaint *complaint) {
    for (size_t i = 0; i < court->task->array_count; i++) {
        const struct bhi_task_array *array = &court->task->arrays[i];
        const size_t length = strlen(array->place);
        struct bhi_run_binding *binding =
            bhi_run_add_binding(request, bhi_task_role_names[array->role], array->place, length,
                                bhi_dtype_name(array->dtype), complaint);
        if (!binding || !bhi_binding_parse_place(binding, array->place, length, complaint)) {
            return false;
        }
        binding->text[length] = '\0'; /* complaints name the place alone */
        binding->access = array->role == BHI_TASK_IN ? BH_ACCESS_READ : BH_ACCESS_READ_WRITE;
        binding->array = trial->arrays[i].form;
    }
    return true;
}

/* Compares what is given with what the kernel declares, binding by binding. */
static bool check_bindings(const struct bhi_run_request *request,
                           const struct bhi_kernel_types *types, struct bhi_complaint *complaint) {
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *given = &request->bindings[i];
        const struct bhi_kernel_type *type = bhi_kernel_types_find(types, given->slot);
        if (!type) {
            return bhi_refuse(complaint, "%s %s: the kernel has no such binding", given->option,
                              given->text);
        }
        if (given->access != BH_ACCESS_READ && type->access == BH_ACCESS_READ) {
            return bhi_refuse(complaint, "%s %s: the kernel does not write it", given->option,
                              given->text);
        }
        if (given->access == BH_ACCESS_READ && (type->access & BH_ACCESS_WRITE)) {
            return bhi_refuse(complaint, "%s %s: the kernel may write it; declare it readonly",
                              given->option, given->text);
        }
        if (!bhi_type_takes(type->type, given->array.dtype)) {
            return bhi_refuse(complaint, "%s %s: the kernel declares %s", given->option,
                              given->text, type->type);
        }
    }
    return true;
}

/* Fills in a request for the kernel and the trial, except for buffers. *out_push is what the
 * request borrows. */
static bool fill_request(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                         const struct bhi_trial *trial, struct bhi_run_request *request,
                         char **out_push, struct bhi_complaint *complaint) {
    const bool takes = kernel->types->push_size > 0; /* it need not */
    if (!add_bindings(court, trial, request, complaint) ||
        !bhi_task_push_text(court->task, trial->size, bhi_court_push_seed(court, trial), out_push,
                            complaint) ||
        (takes && **out_push && !bhi_run_parse_push_names(request, *out_push, complaint)) ||
        !bhi_run_resolve_names(request, kernel->types, "", complaint)) {
        return false;
    }
    if (takes && !**out_push) {
        return bhi_refuse(complaint, "push: the kernel has push constants, and the task has none");
    }
    return check_bindings(request, kernel->types, complaint);
}

/* Takes what is wrong with a kernel's bindings. Returns false. */
static bool prepare_kernel(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                           struct bhi_setup *setup, struct bhi_judge_outcome *outcome) {
    struct bhi_complaint complaint;
    setup->margins = calloc(court->task->array_count, sizeof *setup->margins);
    if (!setup->margins || !bhi_run_request_init(&setup->request, kernel->name,
                                                 court->task->array_count, &complaint)) {
        return bhi_judge_outcome_memory(outcome);
    }
    return fill_request(court, kernel, setup->trial, &setup->request, &setup->push, &complaint) ||
           bhi_judge_outcome_refuse(outcome, BH_BINDING_MISMATCH, &complaint);
}

bool bhi_court_check_kernel(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                            struct bhi_judge_outcome *outcome) {
    struct bhi_setup *setup = calloc(1, sizeof *setup);
    if (!setup) {
        return bhi_judge_outcome_memory(outcome);
    }
    setup->task = court->task;
    setup->trial = &court->trials.list[0];
    const bool good = prepare_kernel(court, kernel, setup, outcome);
    bhi_setup_free(setup);
    return good;
}

/* An access behind an array does no harm where the driver is robust, and nobody would see it: reads
 * are 0, writes are lost. So the binding is larger than the array, unless the kernel asks for its length. */
static bool is_shown(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                     const struct bhi_run_request *request, uint32_t index) {
    const struct bhi_kernel_type *type =
        bhi_kernel_types_find(kernel->types, request->bindings[index].slot);
    return !court->task->robust && type && type->kind == BH_BINDING_STORAGE_BUFFER &&
           !type->measured;
}

/* How many bytes behind array |index| its binding has. */
static uint64_t behind(const struct bhi_setup *setup, uint32_t index) {
    const bool is_in = setup->task->arrays[index].role == BHI_TASK_IN;
    return setup->shown >> index & 1 ? (is_in ? BHI_TAIL : BHI_MARGIN) : 0;
}

static void command_kernel(struct bhi_setup *setup, const struct bhi_judged_kernel *kernel,
                           const uint32_t groups[3]) {
    const struct bhi_run_request *request = &setup->request;
    bhi_run_request_bindings(request, setup->bindings);
    for (uint32_t i = 0; i < request->binding_count; i++) {
        setup->bindings[i].buffer = setup->buffers[i];
        setup->bindings[i].offset = setup->offsets[i];
        setup->bindings[i].size = setup->trial->arrays[i].form.bytes + behind(setup, i);
    }
    setup->command = (bh_command){.type = BH_COMMAND_DISPATCH,
                                  .dispatch = {.kernel = kernel->kernel,
                                               .groups = {groups[0], groups[1], groups[2]},
                                               .bindings = setup->bindings,
                                               .binding_count = request->binding_count,
                                               .push = request->push.bytes,
                                               .push_size = request->push.size}};
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
                                            .buffer = setup->buffers[i],
                                            .description = &setup->descriptions[i]};
    }
    const bh_status status =
        bh_template_prepare(template_, setup->arguments, (uint32_t)setup->task->array_count, NULL,
                            &setup->call, &detail);
    setup->prepared = status == BH_OK;
    setup->command = setup->call.command;
    return setup->prepared || refuse_expression(setup->task, status, &detail, outcome);
}

/* -- making it ------------------------------------------------------------------------------- */

static bool is_input(const struct bhi_task *task, uint32_t index) {
    return task->arrays[index].role == BHI_TASK_IN;
}

/* The size of the buffer of array |index|. */
static uint64_t buffer_size(const struct bhi_setup *setup, uint32_t index) {
    const bool has_margins = setup->margins && !is_input(setup->task, index);
    return setup->trial->arrays[index].form.bytes +
           (has_margins ? 2 * BHI_MARGIN : behind(setup, index));
}

/* Of random bits half are numbers near 0, which would change no result. */
static void fill_tail(bh_dtype dtype, struct bhi_filler_place place, void *out, uint64_t size) {
    static const struct bhi_filler unused = {.kind = BHI_FILLER_BITS};
    (void)bhi_arrange(BHI_ARRANGE_HUGE, &unused, place, dtype, size / bhi_dtype_size(dtype), out);
}

/* Fills all of the buffer of array |index| but what the array holds before the run. */
static void fill_around(const struct bhi_court *court, struct bhi_setup *setup, uint32_t index,
                        uint64_t size, uint8_t *content) {
    const uint64_t bytes = setup->trial->arrays[index].form.bytes;
    const struct bhi_filler_place place = {
        .seed = court->noise_seed + setup->number, .trial = 0, .array = index};
    if (setup->number == BHI_NO_NOISE) {
        memset(content, 0, size); /* as the margins are */
    } else if (is_input(setup->task, index)) {
        fill_tail(setup->task->arrays[index].dtype, place, content + bytes, size - bytes);
    } else if (setup->margins) {
        bhi_margins_fill(&setup->margins[index], place, content, bytes);
    }
}

/* Makes the buffer of array |index| and fills it. No two runs have the same noise. */
static bool make_buffer(const struct bhi_court *court, bh_stream *near,
                        const struct bhi_inputs *inputs, struct bhi_setup *setup, uint32_t index,
                        struct bhi_judge_outcome *outcome) {
    const struct bhi_trial_array *array = &setup->trial->arrays[index];
    const uint64_t size = buffer_size(setup, index);
    void *content;
    bh_stream *maker = inputs && array->before ? court->source : near;
    if (inputs && is_input(setup->task, index)) {
        setup->buffers[index] = inputs->buffer;
        setup->offsets[index] = bhi_inputs_offset(inputs, setup->task, setup->trial, index);
        bh_buffer_retain(inputs->buffer);
        return true;
    }
    if (!bhi_content_make(court->context, maker, size, &setup->buffers[index], outcome)) {
        return false;
    }
    if (!setup->margins && !array->before) {
        return true; /* of an expression all elements are written */
    }
    if (!bhi_content_begin(setup->buffers[index], size, &content, outcome)) {
        return false;
    }
    setup->offsets[index] = setup->margins && !is_input(setup->task, index) ? BHI_MARGIN : 0;
    fill_around(court, setup, index, size, content);
    if (array->before) {
        memcpy((uint8_t *)content + setup->offsets[index], array->before, array->form.bytes);
    }
    return bhi_content_commit(setup->buffers[index], size, content, outcome);
}

static bool make(struct bhi_court *court, bh_stream *near, const struct bhi_program *program,
                 const struct bhi_inputs *inputs, struct bhi_setup *setup,
                 struct bhi_judge_outcome *outcome) {
    const struct bhi_judged_kernel *kernel = program->kernel;
    struct bhi_complaint complaint;
    uint32_t counts[3] = {0};
    if (kernel && !bhi_task_groups_for(court->task, setup->trial->size, program->groups,
                                       kernel->types->local_size, counts, &complaint)) {
        return bhi_judge_outcome_fail(outcome, BH_BINDING_MISMATCH,
                                      "groups: %.500s, and a workgroup of %ux%ux%u", complaint.text,
                                      kernel->types->local_size[0], kernel->types->local_size[1],
                                      kernel->types->local_size[2]);
    }
    if (kernel ? !prepare_kernel(court, kernel, setup, outcome)
               : !prepare_expression(court, setup, program->cache, outcome)) {
        return false;
    }
    setup->number = program->number ? program->number : atomic_fetch_add(&court->runs, 1) + 1;
    /* Inputs of timed runs are close together in one buffer. */
    for (uint32_t i = 0; kernel && !inputs && i < court->task->array_count; i++) {
        setup->shown |=
            (uint32_t)(is_shown(court, kernel, &setup->request, i) && !(program->exact >> i & 1))
            << i;
    }
    for (uint32_t i = 0; i < court->task->array_count; i++) {
        if (!make_buffer(court, near, inputs, setup, i, outcome)) {
            return false;
        }
    }
    if (!kernel) {
        return command_expression(setup, program->cache->template_, outcome);
    }
    command_kernel(setup, kernel, counts);
    return true;
}

bool bhi_setup_make(struct bhi_court *court, bh_stream *near, const struct bhi_program *program,
                    const struct bhi_trial *trial, const struct bhi_inputs *inputs,
                    struct bhi_setup **out_setup, struct bhi_judge_outcome *outcome) {
    struct bhi_setup *setup = calloc(1, sizeof *setup);
    *out_setup = NULL;
    if (!setup) {
        return bhi_judge_outcome_memory(outcome);
    }
    setup->task = court->task;
    setup->trial = trial;
    if (!make(court, near, program, inputs, setup, outcome)) {
        bhi_setup_free(setup);
        return false;
    }
    *out_setup = setup;
    return true;
}

const bh_command *bhi_setup_command(const struct bhi_setup *setup) {
    return &setup->command;
}

/* -- what the run left ----------------------------------------------------------------------- */

bool bhi_setup_peek(const struct bhi_setup *setup, uint32_t index, uint64_t offset, void *out,
                    uint64_t size, struct bhi_judge_outcome *outcome) {
    static const uint64_t limit_ns = 10000000000u; /* for a buffer that nobody uses */
    bh_detail detail = {0};
    const bh_status status = bh_buffer_read(setup->buffers[index], setup->offsets[index] + offset,
                                            out, size, limit_ns, &detail);
    return status == BH_OK || bhi_judge_outcome_take(outcome, status, &detail);
}

/* Copies the output of array |index|. The worker still lives, and may be the kernel's by now: what
 * is compared must not change meanwhile. */
static bool take_output(const struct bhi_setup *setup, uint32_t index, struct bhi_launched *out,
                        struct bhi_judge_outcome *outcome) {
    const uint64_t size = setup->trial->arrays[index].form.bytes;
    bh_buffer *buffer = setup->buffers[index];
    void *content;
    if (!(out->outputs[index] = malloc(size))) {
        return bhi_judge_outcome_memory(outcome);
    }
    if (!bhi_content_read(buffer, buffer_size(setup, index), &content, outcome)) {
        return false;
    }
    memcpy(out->outputs[index], (const uint8_t *)content + setup->offsets[index], size);
    if (setup->margins && !out->strayed &&
        bhi_margins_find(&setup->margins[index], content, size, &out->stray_offset)) {
        out->strayed = true;
        out->stray_array = index;
    }
    bhi_content_leave(buffer, content);
    return true;
}

bool bhi_setup_take(const struct bhi_setup *setup, struct bhi_launched *out,
                    struct bhi_judge_outcome *outcome) {
    *out = (struct bhi_launched){.number = setup->number};
    for (uint32_t i = 0; i < setup->task->array_count; i++) {
        if (!is_input(setup->task, i) && !take_output(setup, i, out, outcome)) {
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
        if (is_input(task, i) || task->arrays[i].tolerance.by != BHI_BY_MULTISET) {
            continue;
        }
        if (!(out->sorted[i] = malloc(array->form.bytes)) ||
            (memcpy(out->sorted[i], out->outputs[i], array->form.bytes),
             !bhi_sort_multiset(array->form.dtype, array->count, out->sorted[i]))) {
            bhi_launched_free(out);
            return bhi_judge_outcome_memory(outcome);
        }
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
    for (uint32_t i = 0; i < setup->task->array_count; i++) {
        bh_buffer_release(setup->buffers[i]);
    }
    bhi_run_request_free(&setup->request);
    free(setup->push);
    free(setup->margins);
    free(setup);
}

bool bhi_launched_same(const struct bhi_task *task, const struct bhi_trial *trial,
                       const struct bhi_launched *a, const struct bhi_launched *b) {
    for (uint32_t i = 0; i < task->array_count; i++) {
        if (!is_input(task, i) && memcmp(bhi_launched_compared(a, i), bhi_launched_compared(b, i),
                                         trial->arrays[i].form.bytes) != 0) {
            return false;
        }
    }
    return true;
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

/* Submitting and collecting operations. */
#include <stdlib.h>

#include "chaos/engine/run.h"
#include "tool/clock.h"

#define MS 1000000ull

static const uint64_t hang_deadline_ns = 100 * MS;
static const uint64_t bomb_deadline_ns = 20000 * MS;

enum { BAIT_WORDS = 64, PUSH_WORDS = 6 };

/* -- submitting ------------------------------------------------------------------------------ */

static struct bhi_record op_record(const struct bhi_operation *operation, uint64_t asked_ns) {
    struct bhi_record record = {.kind = BHI_RECORD_OP,
                                .at_ns = asked_ns,
                                .op = operation->number,
                                .stream = operation->stream};
    record.submit.event = bh_event_id(operation->event);
    record.submit.bait = operation->bait;
    return record;
}

static void note_refused(struct bhi_chaos_run *run, const struct bhi_operation *operation,
                         bh_status status, const char *call) {
    struct bhi_record record = {.kind = BHI_RECORD_REFUSED,
                                .at_ns = bhi_run_now(run),
                                .op = operation->number,
                                .stream = operation->stream,
                                .refused.status = status};
    snprintf(record.refused.call, sizeof record.refused.call, "%s", call);
    bhi_run_note(run, &record);
}

/* Returns a new operation with its number, or NULL if out of memory. */
static struct bhi_operation *begin(struct bhi_chaos_run *run, uint32_t stream, uint64_t name,
                                   bool bait) {
    struct bhi_operation *operation = bhi_operation_new();
    if (!operation) {
        return NULL;
    }
    pthread_mutex_lock(&run->lock);
    operation->number = ++run->submitted;
    operation->name = name ? name : operation->number;
    if (run->replayed < operation->name) { /* the name of a bait may be lower than the last */
        run->replayed = operation->name;
    }
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    operation->stream = operation->home = stream;
    operation->bait = bait;
    return operation;
}

static bh_status make_output(struct bhi_chaos_run *run, struct bhi_operation *operation) {
    bh_buffer_options options = {.struct_size = sizeof options};
    options.stream = run->streams[operation->stream].stream;
    options.memory = operation->on_device ? BH_MEMORY_DEVICE : BH_MEMORY_HOST;
    return bh_buffer_create(run->context, operation->words * sizeof(uint32_t), &options,
                            &operation->output, NULL);
}

/* Counts what the workers are to do with device memory for |plan|. */
static void tell_stages(struct bhi_chaos_run *run, const struct bhi_operation *operation,
                        const struct bhi_plan *plan) {
    uint64_t *stages = run->streams[operation->stream].stages;
    pthread_mutex_lock(&run->lock);
    stages[BHI_STAGE_MAKE] += operation->on_device && !plan->reuses;
    for (uint32_t i = 0; i < plan->input_count; i++) {
        const struct bhi_operation *input = plan->inputs[i];
        if (input->on_device && input->home != operation->stream) {
            stages[BHI_STAGE_IMPORT]++;
            run->streams[input->home].stages[BHI_STAGE_SHARE]++;
        }
    }
    pthread_mutex_unlock(&run->lock);
}

/* Gives an operation that has its event to its collector and to the workload. Takes the
 * reference. */
static void hand_over(struct bhi_chaos_run *run, struct bhi_operation *operation) {
    struct bhi_run_stream *stream = &run->streams[operation->stream];
    bhi_workload_add(&run->workload, operation);
    pthread_mutex_lock(&run->lock);
    bhi_list_append(&stream->queue, &operation->node);
    stream->in_flight++;
    stream->baits += operation->bait;
    pthread_cond_signal(&stream->work);
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
}

static bh_status submit_command(struct bhi_chaos_run *run, struct bhi_operation *operation,
                                const bh_command *command, bh_event *wait, uint64_t deadline_ns) {
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = command,
                                 .command_count = 1,
                                 .waits = &wait,
                                 .wait_count = wait ? 1 : 0,
                                 .deadline_ns = deadline_ns};
    return bh_submit(run->streams[operation->stream].stream, &info, &operation->event, NULL);
}

static bh_status submit_work(struct bhi_chaos_run *run, struct bhi_operation *operation,
                             const struct bhi_plan *plan) {
    const struct bhi_chaos_work *work = &plan->work;
    const uint32_t push[PUSH_WORDS] = {work->words,  plan->input_count, work->multiplier,
                                       work->addend, work->shift,       work->rounds};
    bh_binding bindings[BHI_CHAOS_INPUTS + 1];
    for (uint32_t i = 0; i < BHI_CHAOS_INPUTS; i++) {
        bh_buffer *input = i < plan->input_count ? plan->inputs[i]->output : run->nothing;
        bindings[i] = bh_bind_read(i, input);
    }
    bindings[BHI_CHAOS_INPUTS] = bh_bind_write(BHI_CHAOS_INPUTS, operation->output);
    const bh_command command = {
        .type = BH_COMMAND_DISPATCH,
        .dispatch = {.kernel = run->work,
                     .groups = {(work->words + BHI_RUN_GROUP - 1) / BHI_RUN_GROUP, 1, 1},
                     .bindings = bindings,
                     .binding_count = BHI_CHAOS_INPUTS + 1,
                     .push = push,
                     .push_size = sizeof push}};
    return submit_command(run, operation, &command, plan->wait ? plan->wait->event : NULL,
                          BHI_RUN_DEADLINE_NS * run->slowness);
}

bool bhi_run_submit(struct bhi_chaos_run *run, const struct bhi_plan *plan, uint64_t name) {
    const uint64_t asked_ns = bhi_run_now(run);
    struct bhi_operation *operation = begin(run, plan->stream, name, false);
    if (!operation) {
        return false;
    }
    operation->words = plan->work.words;
    const char *call = "bh_buffer_create";
    bh_status status = BH_OK;
    if (plan->reuses) {
        bh_buffer_retain(plan->reuses->output);
        operation->output = plan->reuses->output;
        operation->on_device = plan->reuses->on_device;
        operation->home = plan->reuses->home;
    } else {
        operation->on_device = plan->on_device;
        status = make_output(run, operation);
    }
    if (status == BH_OK) {
        call = "bh_submit";
        status = submit_work(run, operation, plan);
    }
    if (status != BH_OK) {
        note_refused(run, operation, status, call);
        bhi_operation_release(operation);
        return false;
    }
    struct bhi_record record = op_record(operation, asked_ns);
    record.submit.input_count = plan->input_count;
    for (uint32_t i = 0; i < plan->input_count; i++) {
        record.submit.inputs[i] = plan->inputs[i]->number;
        plan->inputs[i]->last_reader = operation->number;
    }
    record.submit.wait = plan->wait ? plan->wait->number : 0;
    record.submit.reuses = plan->reuses ? plan->reuses->number : 0;
    record.submit.deadline_ns = BHI_RUN_DEADLINE_NS * run->slowness;
    record.submit.work = plan->work;
    record.submit.device = operation->on_device;
    bhi_run_note(run, &record);
    tell_stages(run, operation, plan);
    hand_over(run, operation);
    return true;
}

static void note_bait(struct bhi_chaos_run *run, const struct bhi_scheduled *fault, uint64_t op,
                      uint64_t after_op, uint64_t asked_ns, bool missed) {
    const struct bhi_record record = {.kind = BHI_RECORD_FAULT,
                                      .at_ns = asked_ns,
                                      .op = missed ? 0 : op,
                                      .stream = fault->stream,
                                      .fault.number = fault->number,
                                      .fault.kind = fault->kind,
                                      .fault.missed = missed,
                                      .fault.after_op = after_op};
    bhi_run_note(run, &record);
}

struct bait {
    bh_kernel *kernel;
    uint32_t groups;
    uint64_t deadline_ns;
};

static struct bait bait_of(const struct bhi_chaos_run *run, enum bhi_fault_kind kind) {
    if (kind == BHI_FAULT_OOM) {
        return (struct bait){run->bomb, 1, bomb_deadline_ns * run->slowness};
    }
    if (kind == BHI_FAULT_ILLEGAL) {
        return (struct bait){run->illegal, 1, BHI_RUN_DEADLINE_NS * run->slowness};
    }
    return (struct bait){kind == BHI_FAULT_HANG ? run->hang : run->unguarded, 65535,
                         hang_deadline_ns};
}

bool bhi_run_submit_bait(struct bhi_chaos_run *run, const struct bhi_scheduled *fault,
                         uint64_t name) {
    const uint64_t asked_ns = bhi_run_now(run), after_op = run->submitted;
    const struct bait bait = bait_of(run, fault->kind);
    struct bhi_operation *operation = begin(run, fault->stream, name, true);
    if (!operation) {
        return false;
    }
    operation->words = BAIT_WORDS;
    const char *call = "bh_buffer_create";
    bh_status status = make_output(run, operation);
    if (status == BH_OK) {
        const bh_binding binding = bh_bind_read_write(0, operation->output);
        const bh_command command = {.type = BH_COMMAND_DISPATCH,
                                    .dispatch = {.kernel = bait.kernel,
                                                 .groups = {bait.groups, 1, 1},
                                                 .bindings = &binding,
                                                 .binding_count = 1}};
        call = "bh_submit";
        status = submit_command(run, operation, &command, NULL, bait.deadline_ns);
    }
    note_bait(run, fault, operation->number, after_op, asked_ns, status != BH_OK);
    if (status != BH_OK) {
        note_refused(run, operation, status, call);
        bhi_operation_release(operation);
        return false;
    }
    struct bhi_record record = op_record(operation, asked_ns);
    record.submit.deadline_ns = bait.deadline_ns;
    bhi_run_note(run, &record);
    hand_over(run, operation);
    return true;
}

/* -- collecting ------------------------------------------------------------------------------ */

/* Writes down the operation, which then leaves the run. */
static void finish(struct bhi_chaos_run *run, struct bhi_operation *operation) {
    struct bhi_record record;
    if (!operation) {
        return;
    }
    bhi_operation_end_record(operation, run->start_ns, &record);
    bhi_run_note(run, &record);
    if (!operation->lost && !operation->bait) {
        bhi_run_note(run, &operation->result);
    }
    bhi_operation_release(operation);
}

static void count(struct bhi_run_stream *stream, const struct bhi_operation *operation) {
    struct bhi_chaos_run *run = stream->run;
    const bool ready = !operation->lost && operation->state == BH_EVENT_READY;
    stream->in_flight--;
    stream->baits -= operation->bait;
    run->ready += ready;
    run->lost += operation->lost;
    stream->ready += ready;
    run->poisoned += !operation->lost && !ready;
    if (operation->bait) { /* a bait takes effect when it ends */
        bhi_recovered_struck(&run->recovered, BHI_FAULT_HANG, NULL, 0, run->submitted);
    } else if (ready) {
        bhi_recovered_ready(&run->recovered, stream->index, operation->number,
                            operation->first_look.worker_pid);
    }
    pthread_cond_broadcast(&run->changed);
}

/* Finishes all that the collector still has, oldest first. */
static void flush(struct bhi_run_stream *stream) {
    for (uint32_t i = 0; i < BHI_RUN_LATE; i++) {
        struct bhi_operation **late = &stream->late[(stream->late_at + i) % BHI_RUN_LATE];
        finish(stream->run, *late);
        *late = NULL;
    }
}

static void collect(struct bhi_run_stream *stream, struct bhi_operation *operation) {
    struct bhi_chaos_run *run = stream->run;
    const uint64_t patience_ns = run->history->header.patience_ns;
    bhi_operation_await(operation, patience_ns, run->start_ns);
    if (!operation->lost && !operation->bait) {
        pthread_mutex_lock(&run->lock);
        run->streams[operation->home].stages[BHI_STAGE_COPY] += operation->on_device;
        pthread_cond_broadcast(&run->changed);
        pthread_mutex_unlock(&run->lock);
        bhi_operation_read(operation, patience_ns, run->start_ns);
    }
    atomic_store(&operation->collected, true);
    pthread_mutex_lock(&run->lock);
    count(stream, operation);
    pthread_mutex_unlock(&run->lock);
    struct bhi_operation **late = &stream->late[stream->late_at++ % BHI_RUN_LATE];
    finish(run, *late);
    *late = operation;
}

void *bhi_run_collect(void *argument) {
    struct bhi_run_stream *stream = argument;
    struct bhi_chaos_run *run = stream->run;
    for (;;) {
        pthread_mutex_lock(&run->lock);
        while (bhi_list_empty(&stream->queue) && !run->closing && stream->flushed == run->flush) {
            pthread_cond_wait(&stream->work, &run->lock);
        }
        struct bhi_operation *operation = NULL;
        if (!bhi_list_empty(&stream->queue)) {
            operation = BHI_CONTAINER(stream->queue.next, struct bhi_operation, node);
            bhi_list_remove(&operation->node);
        }
        const bool closing = run->closing;
        const uint64_t wanted = run->flush;
        pthread_mutex_unlock(&run->lock);
        if (operation) {
            collect(stream, operation);
            continue;
        }
        flush(stream);
        if (closing) {
            return NULL;
        }
        pthread_mutex_lock(&run->lock);
        stream->flushed = wanted;
        pthread_cond_broadcast(&run->changed);
        pthread_mutex_unlock(&run->lock);
    }
}

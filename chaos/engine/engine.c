#include "chaos/engine/engine.h"

#include <errno.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/runtime_parent.h"
#include "base/sort.h"
#include "chaos/check/power.h"
#include "chaos/engine/kernels.h"
#include "chaos/engine/run.h"
#include "tool/clock.h"
#include "tool/interrupt.h"
#include "tool/process_tree.h"
#include "tool/session.h"

#define MS     1000000ull
#define SECOND (1000 * MS)

static const uint64_t patience_ns = 60 * SECOND;
static const uint64_t recovery_ns = 20 * SECOND;
static const uint64_t start_limit_ns = 60 * SECOND; /* for a worker and its first kernel */
static const uint64_t slice_ns = 50 * MS;           /* between two checks for signals */
static const uint64_t progress_ns = 500 * MS;
static const uint64_t fill_up_ns = 60 * SECOND;
static const uint64_t pace_ns = MS / 4;   /* mean time between two operations */
static const uint64_t burst_ns = 16 * MS; /* how much of missed time is made up for */
/* After this time a worker that was stopped while it started is replaced. */
static const uint64_t worker_start_ns = 10 * SECOND;
/* For how long a GPU's streams are UNAVAILABLE after too many kernels without the guard. */
static const uint64_t tenant_window_ns = 60 * SECOND;
static const uint64_t bomb_memory = 512ull << 20;
static const uint64_t pool_bytes = 16ull << 20;

enum { WINDOW = 16 }; /* operations in flight on a stream */

static bool interrupted(void) {
    return bhi_interrupt_signal() != 0;
}

/* -- beginning ------------------------------------------------------------------------------- */

static void log_line(bh_log_level level, const char *line, void *user) {
    const struct bhi_chaos_run *run = user;
    (void)level;
    bhi_run_say(run, "%s", line);
}

static bool refuse(struct bhi_complaint *complaint, const char *what, bh_status status,
                   const bh_detail *detail) {
    const char *message = detail->message[0] ? detail->message : bh_status_text(status);
    const bool advises = bhi_session_advises(detail);
    return bhi_refuse(complaint, "%s: %s (%s)%s%s", what, message, bh_status_name(status),
                      advises ? "" : "; ", advises ? "" : bh_status_advice(status));
}

static bool make_context(struct bhi_chaos_run *run, struct bhi_complaint *complaint) {
    bh_context_options options = {.struct_size = sizeof options};
    bh_detail detail = {0};
    options.spares = 1;
    /* The run checks how every event ends, not how many deaths of workers a stream may have. So the
     * budget never makes a stream UNAVAILABLE, and no kernel is quarantined for the deaths. */
    options.restart_budget = 1000000;
    options.quarantine_deaths = BH_OFF;
    options.quarantine_ns = BH_OFF;
    options.start_timeout_ns = worker_start_ns * run->slowness;
    options.pool_limit = pool_bytes; /* a growing pool would look like a leak */
    options.runtime_dir = run->runtime_parent;
    if (run->options->verbose) {
        options.log = log_line;
        options.log_user = run;
    }
    const bh_status status = bh_context_create(&options, &run->context, &detail);
    return status == BH_OK || refuse(complaint, "the context", status, &detail);
}

static bool make_streams(struct bhi_chaos_run *run, struct bhi_complaint *complaint) {
    for (uint32_t i = 0; i < run->stream_count; i++) {
        char name[32];
        bh_stream_options options = {.struct_size = sizeof options};
        bh_detail detail = {0};
        struct bhi_run_stream *stream = &run->streams[i];
        snprintf(name, sizeof name, "chaos-%u", i);
        options.name = name;
        options.device = run->options->device;
        options.compile_deadline_ns = run->history->header.compile_ns;
        if (run->options->fault_set & 1u << BHI_FAULT_DEVICE) {
            /* Of copies out of device memory; operations have the same as their own. */
            options.deadline_ns = BHI_RUN_DEADLINE_NS * run->slowness;
        }
        if (run->options->fault_set & 1u << BHI_FAULT_OOM) {
            options.memory_limit = bomb_memory;
        }
        const bh_status status = bh_stream_create(run->context, &options, &stream->stream, &detail);
        if (status != BH_OK) {
            return refuse(complaint, "a stream", status, &detail);
        }
    }
    return true;
}

static bool make_kernel(struct bhi_chaos_run *run, const char *name, bool trusted,
                        const uint32_t *code, size_t size, bh_kernel **out_kernel,
                        struct bhi_complaint *complaint) {
    bh_kernel_options options = {.struct_size = sizeof options};
    bh_detail detail = {0};
    options.name = name;
    options.trusted = trusted;
    const bh_status status =
        bh_kernel_create_spirv(run->context, code, size, &options, out_kernel, &detail);
    return status == BH_OK || refuse(complaint, name, status, &detail);
}

static bool make_image_kernel(struct bhi_chaos_run *run, const char *entry, bh_kernel **out_kernel,
                              struct bhi_complaint *complaint) {
    const bh_kernel_options options = {
        .struct_size = sizeof options, .entry = entry, .block = {BHI_RUN_GROUP, 1, 1}};
    bh_detail detail = {0};
    const bh_status status = bh_kernel_create_image(
        run->context, bhi_chaos_image, bhi_chaos_image_size, &options, out_kernel, &detail);
    return status == BH_OK || refuse(complaint, entry, status, &detail);
}

static bool make_all_images(struct bhi_chaos_run *run, struct bhi_complaint *complaint) {
    return make_image_kernel(run, "chaos_work", &run->work, complaint) &&
           make_image_kernel(run, "chaos_hang", &run->hang, complaint) &&
           make_image_kernel(run, "chaos_illegal", &run->illegal, complaint);
}

static bool make_all_modules(struct bhi_chaos_run *run, struct bhi_complaint *complaint) {
    return make_kernel(run, "chaos_work", false, bhi_embedded_chaos_work,
                       bhi_embedded_chaos_work_size, &run->work, complaint) &&
           make_kernel(run, "hang", false, bhi_embedded_hang, bhi_embedded_hang_size, &run->hang,
                       complaint) &&
           make_kernel(run, "unguarded", true, bhi_embedded_hang, bhi_embedded_hang_size,
                       &run->unguarded, complaint) &&
           make_kernel(run, "memory_bomb", true, bhi_embedded_memory_bomb,
                       bhi_embedded_memory_bomb_size, &run->bomb, complaint);
}

static bool make_kernels(struct bhi_chaos_run *run, struct bhi_complaint *complaint) {
    bh_detail detail = {0};
    if (!(run->options->cuda ? make_all_images : make_all_modules)(run, complaint)) {
        return false;
    }
    const bh_status status = bh_buffer_create(run->context, 64, NULL, &run->nothing, &detail);
    return status == BH_OK || refuse(complaint, "a buffer", status, &detail);
}

/* Waits until each stream has a worker that can run the workload: from then on only a fault can
 * make something fail. */
static bool await_streams(struct bhi_chaos_run *run, struct bhi_complaint *complaint) {
    for (uint32_t i = 0; i < run->stream_count; i++) {
        bh_kernel_info info = {.struct_size = sizeof info};
        bh_detail detail = {0};
        const uint64_t end_ns = bhi_run_now(run) + start_limit_ns * run->slowness;
        bh_status status;
        do {
            status = bh_kernel_reflect(run->work, run->streams[i].stream, slice_ns, &info, &detail);
        } while (status == BH_TIMEOUT && !interrupted() && bhi_run_now(run) < end_ns);
        if (status != BH_OK) {
            return refuse(complaint, "the first kernel", status, &detail);
        }
    }
    return true;
}

/* Returns 1 if a thread gets half a processor or more: the run's own threads take that much from
 * each other. */
static uint64_t slowness_of_machine(void) {
    enum { MOST = 32 };
    const uint64_t share = (uint64_t)(bhi_starved_slowness() / 2);
    return share < 1 ? 1 : share > MOST ? MOST : share;
}

static void fill_header(struct bhi_chaos_run *run) {
    const struct bhi_engine_options *options = run->options;
    struct bhi_history_header *header = &run->history->header;
    *header = (struct bhi_history_header){.schema = 1,
                                          .seed = options->seed,
                                          .duration_ns = options->duration_ns,
                                          .faults_asked = options->fault_count,
                                          .streams = options->streams,
                                          .fault_set = options->fault_set,
                                          .rate = options->rate,
                                          .find_rate = options->find_rate,
                                          .outside = options->outside,
                                          .patience_ns = patience_ns * run->slowness,
                                          .recovery_ns = recovery_ns * run->slowness,
                                          .compile_ns = BHI_CHAOS_COMPILE_NS * run->slowness};
    snprintf(header->version, sizeof header->version, "%d.%d.%d", BH_VERSION_MAJOR,
             BH_VERSION_MINOR, BH_VERSION_PATCH);
}

static void look_first(struct bhi_chaos_run *run) {
    struct bhi_history_header *header = &run->history->header;
    run->look = (struct bhi_look){.runtime_parent = run->runtime_parent,
                                  .wanted = run->options->device,
                                  .start_ns = run->start_ns};
    bhi_look_first(&run->look, run->history);
    if (header->accelerator && header->fault_set & 1u << BHI_FAULT_UNGUARDED) {
        header->recovery_ns += tenant_window_ns;
    }
}

static bool start_threads(struct bhi_chaos_run *run, struct bhi_complaint *complaint) {
    int error = 0;
    for (uint32_t i = 0; i < run->stream_count && !error; i++) {
        struct bhi_run_stream *stream = &run->streams[i];
        error = pthread_create(&stream->collector, NULL, bhi_run_collect, stream);
        stream->collecting = !error;
    }
    if (!error) {
        error = pthread_create(&run->clock, NULL, bhi_run_watch_clock, run);
    }
    run->has_clock = !error;
    return !error || bhi_refuse(complaint, "a thread cannot be started: %s", strerror(error));
}

static bool begin(struct bhi_chaos_run *run, struct bhi_complaint *complaint) {
    if (run->options->outside && !bhi_outside_start(&run->outside, complaint)) {
        return false;
    }
    look_first(run);
    if (!make_context(run, complaint) || !make_streams(run, complaint) ||
        !make_kernels(run, complaint) || !await_streams(run, complaint)) {
        return false;
    }
    return start_threads(run, complaint);
}

/* -- the workload ---------------------------------------------------------------------------- */

struct pacer {
    uint64_t next_ns, progress_ns;
};

static void tell(struct bhi_chaos_run *run, struct pacer *pacer) {
    const struct bhi_engine_options *options = run->options;
    const uint64_t now_ns = bhi_run_now(run);
    if (!options->progress || now_ns < pacer->progress_ns) {
        return;
    }
    pacer->progress_ns = now_ns + progress_ns;
    pthread_mutex_lock(&run->lock);
    const uint64_t submitted = run->submitted, ready = run->ready, poisoned = run->poisoned;
    const uint64_t faults = run->faults;
    pthread_mutex_unlock(&run->lock);
    options->progress(options->user, submitted, ready, poisoned, faults);
}

/* Waits for its turn, then for room on |stream|, or on any stream for UINT32_MAX. Returns the
 * stream, or UINT32_MAX if the caller should first do other things. */
static uint32_t await_room(struct bhi_chaos_run *run, struct pacer *pacer, uint32_t stream) {
    uint32_t found = UINT32_MAX;
    const uint64_t now_ns = bhi_run_now(run);
    tell(run, pacer);
    pthread_mutex_lock(&run->lock);
    if (now_ns < pacer->next_ns) {
        bhi_run_wait(run, pacer->next_ns);
    } else {
        const uint32_t first = stream == UINT32_MAX ? (uint32_t)(run->submitted * 7) : stream;
        const uint32_t choices = stream == UINT32_MAX ? run->stream_count : 1;
        for (uint32_t i = 0; i < choices && found == UINT32_MAX; i++) {
            const uint32_t s = (first + i) % run->stream_count;
            if (run->streams[s].in_flight < WINDOW) {
                found = s;
            }
        }
        if (found == UINT32_MAX) {
            bhi_run_wait(run, now_ns + slice_ns);
        }
    }
    pthread_mutex_unlock(&run->lock);
    if (found != UINT32_MAX) {
        pacer->next_ns =
            (pacer->next_ns + burst_ns < now_ns ? now_ns - burst_ns : pacer->next_ns) + pace_ns;
    }
    return found;
}

static void submit_next(struct bhi_chaos_run *run, struct pacer *pacer) {
    const uint32_t stream = await_room(run, pacer, UINT32_MAX);
    struct bhi_plan plan;
    if (stream == UINT32_MAX) {
        return;
    }
    pthread_mutex_lock(&run->submitting);
    bhi_workload_plan(&run->workload, stream, &plan);
    bhi_run_submit(run, &plan, 0);
    bhi_plan_release(&plan);
    pthread_mutex_unlock(&run->submitting);
}

/* Returns true if each stream has had a READY result since the newest fault, and at least one at
 * all. */
static bool recovered(struct bhi_chaos_run *run) {
    pthread_mutex_lock(&run->lock);
    const bool all = bhi_recovered_all(&run->recovered, run->stream_count);
    pthread_mutex_unlock(&run->lock);
    return all;
}

/* Returns true if an operation was lost: then the run has its finding, and need not go on. */
static bool has_lost(struct bhi_chaos_run *run) {
    pthread_mutex_lock(&run->lock);
    const bool lost = run->lost > 0;
    pthread_mutex_unlock(&run->lock);
    return lost;
}

static void recover(struct bhi_chaos_run *run, struct pacer *pacer) {
    const uint64_t end_ns = bhi_run_now(run) + run->history->header.recovery_ns;
    while (!recovered(run) && !interrupted() && !has_lost(run) && bhi_run_now(run) < end_ns) {
        submit_next(run, pacer);
    }
}

static bool injector_has_ended(struct bhi_chaos_run *run) {
    pthread_mutex_lock(&run->lock);
    const bool ended = run->injector_ended;
    pthread_mutex_unlock(&run->lock);
    return ended;
}

/* Returns how often the run comes to rest. */
static uint64_t rest_every_ns(const struct bhi_engine_options *options) {
    const uint64_t share_ns = options->duration_ns / 16;
    if (options->fault_count || options->replay || share_ns > 5 * SECOND) {
        return 5 * SECOND;
    }
    return share_ns < 2 * SECOND ? 2 * SECOND : share_ns;
}

static uint64_t ready_of(struct bhi_chaos_run *run) {
    pthread_mutex_lock(&run->lock);
    const uint64_t ready = run->ready;
    pthread_mutex_unlock(&run->lock);
    return ready;
}

/* Submits as many operations as are needed to find the wanted rate of errors. If the asked number
 * of faults was injected, there are none meanwhile. */
static void fill_up(struct bhi_chaos_run *run, struct pacer *pacer) {
    const uint64_t needed = bhi_power_needed(run->options->find_rate);
    const uint64_t end_ns = bhi_run_now(run) + fill_up_ns * run->slowness;
    while (ready_of(run) < needed && !interrupted() && !has_lost(run) &&
           bhi_run_now(run) < end_ns) {
        submit_next(run, pacer);
    }
}

static void play(struct bhi_chaos_run *run, struct pacer *pacer) {
    const struct bhi_engine_options *options = run->options;
    const uint64_t begun_ns = bhi_run_now(run), every_ns = rest_every_ns(options);
    uint64_t rest_ns = begun_ns + every_ns;
    while (!interrupted() && !injector_has_ended(run) && !has_lost(run) &&
           (options->fault_count || bhi_run_now(run) - begun_ns < options->duration_ns)) {
        submit_next(run, pacer);
        if (bhi_run_now(run) >= rest_ns) {
            bhi_run_rest(run);
            rest_ns = bhi_run_now(run) + every_ns;
        }
    }
    fill_up(run, pacer);
}

/* Returns false if a fault comes before the operation called |name|, and waits a little for it. */
static bool is_its_turn(struct bhi_chaos_run *run, uint64_t name) {
    pthread_mutex_lock(&run->lock);
    const bool turn = name <= run->fault_after;
    if (!turn) {
        if (run->replayed < name - 1) { /* the operations between them were refused */
            run->replayed = name - 1;
            pthread_cond_broadcast(&run->changed);
        }
        bhi_run_wait(run, bhi_run_now(run) + slice_ns);
    }
    pthread_mutex_unlock(&run->lock);
    return turn;
}

static void submit_again(struct bhi_chaos_run *run, struct pacer *pacer,
                         const struct bhi_record *record) {
    struct bhi_plan plan;
    while (!is_its_turn(run, record->op) || await_room(run, pacer, record->stream) == UINT32_MAX) {
        if (interrupted()) {
            return;
        }
    }
    pthread_mutex_lock(&run->submitting);
    bhi_workload_plan_again(&run->workload, record, &plan);
    bhi_run_submit(run, &plan, record->op);
    bhi_plan_release(&plan);
    pthread_mutex_unlock(&run->submitting);
}

/* Submits the operations of the replayed history in the same order, with the injector's faults
 * between them, and rests where that run rested: no operation reads an output from before a
 * rest. */
static void play_again(struct bhi_chaos_run *run, struct pacer *pacer) {
    const struct bhi_history *history = run->options->replay;
    for (size_t i = 0; i < history->count && !interrupted(); i++) {
        const struct bhi_record *record = &history->records[i];
        if (record->kind == BHI_RECORD_OP && !record->submit.bait) {
            submit_again(run, pacer, record);
        } else if (record->kind == BHI_RECORD_SAMPLE) {
            bhi_run_rest(run);
        }
    }
    pthread_mutex_lock(&run->lock);
    run->replayed = UINT64_MAX;
    pthread_cond_broadcast(&run->changed);
    while (!run->injector_ended && !interrupted()) {
        bhi_run_wait(run, bhi_run_now(run) + slice_ns);
    }
    pthread_mutex_unlock(&run->lock);
}

static bool run_it(struct bhi_chaos_run *run, struct bhi_complaint *complaint) {
    struct pacer pacer = {0};
    recover(run, &pacer); /* without faults yet: afterwards every stream has worked once */
    bhi_run_rest(run);
    bhi_run_rest(run);
    pthread_mutex_lock(&run->lock);
    run->has_injector = true;
    run->replayed = 0; /* operations before this have no names in another run */
    pthread_mutex_unlock(&run->lock);
    const int error = pthread_create(&run->injector, NULL, bhi_run_inject, run);
    if (error) {
        return bhi_refuse(complaint, "a thread cannot be started: %s", strerror(error));
    }
    if (run->options->replay) {
        play_again(run, &pacer);
    } else {
        play(run, &pacer);
    }
    pthread_mutex_lock(&run->lock);
    run->faults_stopped = true;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    pthread_join(run->injector, NULL);
    recover(run, &pacer);
    for (int i = 0; i < 3 && !interrupted(); i++) {
        bhi_run_rest(run);
    }
    return true;
}

/* -- ending ---------------------------------------------------------------------------------- */

static void join_threads(struct bhi_chaos_run *run) {
    pthread_mutex_lock(&run->lock);
    run->closing = true;
    pthread_cond_broadcast(&run->changed);
    for (uint32_t i = 0; i < run->stream_count; i++) {
        pthread_cond_broadcast(&run->streams[i].work);
    }
    pthread_mutex_unlock(&run->lock);
    for (uint32_t i = 0; i < run->stream_count; i++) {
        if (run->streams[i].collecting) {
            pthread_join(run->streams[i].collector, NULL);
        }
    }
    if (run->has_clock) {
        pthread_join(run->clock, NULL);
    }
}

static void end(struct bhi_chaos_run *run) {
    /* An interrupted run does not wait for its operations: the end of the context ends them. */
    bhi_outside_end(&run->outside);
    if (interrupted()) {
        for (uint32_t i = 0; i < run->stream_count; i++) {
            if (bh_stream_cancel(run->streams[i].stream) != BH_OK) {
                break; /* the stream was never made */
            }
        }
    }
    join_threads(run);
    bhi_workload_forget(&run->workload);
    bh_kernel_release(run->work);
    bh_kernel_release(run->hang);
    bh_kernel_release(run->unguarded);
    bh_kernel_release(run->bomb);
    bh_kernel_release(run->illegal);
    bh_buffer_release(run->nothing);
    for (uint32_t i = 0; i < run->stream_count; i++) {
        bh_stream_release(run->streams[i].stream);
        pthread_cond_destroy(&run->streams[i].work);
    }
    bh_context_destroy(run->context);
    pthread_cond_destroy(&run->changed);
    pthread_mutex_destroy(&run->lock);
    pthread_mutex_destroy(&run->submitting);
    pthread_mutex_destroy(&run->looking);
}

struct place {
    uint64_t at_ns;
    size_t index;
};

BHI_ORDER_2(compare_places, struct place, at_ns, index)

/* END records are written after the second look, and FAULT records after the injection. This sorts
 * all records by their times. */
static bool sort_records(struct bhi_history *history) {
    struct bhi_record *sorted = malloc((history->count + 1) * sizeof *sorted);
    struct place *places = malloc((history->count + 1) * sizeof *places);
    const bool room = sorted && places;
    if (room && history->count) {
        for (size_t i = 0; i < history->count; i++) {
            places[i] = (struct place){.at_ns = history->records[i].at_ns, .index = i};
        }
        qsort(places, history->count, sizeof *places, compare_places);
        for (size_t i = 0; i < history->count; i++) {
            sorted[i] = history->records[places[i].index];
        }
        memcpy(history->records, sorted, history->count * sizeof *sorted);
    }
    free(sorted);
    free(places);
    return room;
}

enum bhi_engine_result bhi_engine_run(const struct bhi_engine_options *options,
                                      struct bhi_history *history,
                                      struct bhi_complaint *complaint) {
    struct bhi_chaos_run *run = calloc(1, sizeof *run);
    if (!run || sodium_init() < 0) {
        free(run);
        bhi_refuse(complaint, "out of memory");
        return BHI_ENGINE_ENVIRON;
    }
    run->options = options;
    run->history = history;
    run->stream_count = options->streams;
    run->start_ns = bhi_clock_ns();
    run->runtime_parent = bhi_runtime_parent();
    run->slowness = slowness_of_machine();
    pthread_mutex_init(&run->submitting, NULL);
    pthread_mutex_init(&run->looking, NULL);
    pthread_mutex_init(&run->lock, NULL);
    bhi_run_cond_init(&run->changed);
    for (uint32_t i = 0; i < run->stream_count; i++) {
        struct bhi_run_stream *stream = &run->streams[i];
        *stream = (struct bhi_run_stream){.run = run, .index = i};
        bhi_list_init(&stream->queue);
        bhi_run_cond_init(&stream->work);
    }
    bhi_workload_init(&run->workload, options->seed, options->fault_set & 1u << BHI_FAULT_DEVICE);
    if (!options->replay) {
        run->fault_after = UINT64_MAX;
    }
    fill_header(run);
    const bool ran = begin(run, complaint) && run_it(run, complaint);
    end(run);
    if (ran && !interrupted()) {
        bhi_look_last(&run->look, history);
    }
    free(run);
    const bool sorted = sort_records(history);
    history->complete = ran && sorted && !interrupted();
    return interrupted() ? BHI_ENGINE_INTERRUPTED : ran ? BHI_ENGINE_RAN : BHI_ENGINE_ENVIRON;
}

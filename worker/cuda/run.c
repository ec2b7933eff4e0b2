/* bhi_cuda_run: records in, onto the device's stream, results out. Records follow each other on the
 * stream without a wait, as long as they write the same memory (C1). */
#include "worker/cuda/backend.h"

#include "base/futex.h"
#include "worker/cuda/result.h"

#include <bulkhead/bulkhead.h>
#include <sched.h>
#include <stddef.h>
#include <time.h>

#define EAGER_NS     20000u   /* before it lets others run between two looks: a system call each */
#define POLL_NS      2000000u /* before it sleeps between them */
#define NAP_SHARE    64u      /* of the time that it has waited: what it is late by, at most, */
#define NAP_LEAST_NS 10000u   /* within these limits */
#define NAP_MOST_NS  1000000u

/* Waits until the stream is empty, or broken. */
static CUresult wait_for_stream(struct bhi_cuda_backend *b) {
    const uint64_t since = bhi_now_ns();
    CUresult result;
    while ((result = b->device.api.cuStreamQuery(b->device.stream)) == CUDA_ERROR_NOT_READY) {
        const uint64_t waited = bhi_now_ns() - since;
        if (waited < EAGER_NS) {
            continue;
        }
        if (waited < POLL_NS) {
            sched_yield();
            continue;
        }
        uint64_t nap = waited / NAP_SHARE;
        nap = nap < NAP_LEAST_NS ? NAP_LEAST_NS : nap > NAP_MOST_NS ? NAP_MOST_NS : nap;
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &(const struct timespec){.tv_nsec = (long)nap},
                              NULL);
    }
    return result;
}

/* The batch that is on the stream. */
struct flight {
    struct bhi_cuda_backend *b;
    struct bhi_answers answers;
    struct bhi_batch batch;
    uint64_t started_ns;
};

static const struct bhi_lane_record *record_of(const struct flight *f, uint32_t i) {
    return f->answers.records[f->batch.places[i]];
}

/* Which command of which record has broken the context, for the message. */
static void name_cause(const struct flight *f, struct bhi_error *error) {
    const uint32_t started = atomic_load(&f->b->page->markers.started);
    for (uint32_t i = 0; i < f->batch.count; i++) {
        const struct bhi_lane_record *record = record_of(f, i);
        if ((uint32_t)record->seq != started) {
            continue;
        }
        const uint32_t wanted =
            record->command_count > 1 ? (uint32_t)atomic_load(&f->b->page->command) : 0;
        uint32_t index = 0;
        for (const struct bhi_cmd_header *command = bhi_record_first(record); command;
             command = bhi_record_next(record, command)) {
            if (index++ == wanted && command->type == BHI_CMD_DISPATCH) {
                const struct bhi_cuda_kernel *k =
                    bhi_map_get(&f->b->kernels, ((const struct bhi_cmd_dispatch *)command)->kernel);
                error->command_index = wanted;
                BHI_ERROR_APPEND(error, " in kernel \"%s\"", k ? bhi_cuda_kernel_label(k) : "?");
            }
        }
    }
}

static void lost_before(const struct bhi_answers *answers, size_t place) {
    BHI_ERROR(&answers->errors[place], BH_REASON_LOST, .text = "before this submission");
    bhi_answer_bad(answers, place);
}

/* The context has ended: nothing that was on the stream is good any more. */
static void lose(struct flight *f, CUresult result, const char *call) {
    struct bhi_error loss;
    const char *text = NULL;
    bhi_error_cuda(&loss, &f->b->device.api, result, call);
    if (bhi_cuda_is_fault(result)) {
        (void)f->b->device.api.cuGetErrorString(result, &text);
        BHI_ERROR(&loss, BH_REASON_NONE, .status = BH_DEVICE_FAULT, .value = (uint64_t)result,
                  .text = BHI_SAY("%s (%s)", bhi_cuda_name(&f->b->device.api, result),
                                  text ? text : "no text"));
        name_cause(f, &loss);
    } else {
        loss.status = BH_DEVICE_LOST; /* whatever the result says, it may still run */
    }
    f->b->base.lost = true;
    bhi_answer_lost(&f->answers, &f->batch, &f->b->page->markers, &loss);
    for (uint32_t i = 0; i < f->batch.count; i++) { /* the fault is not that of those that wait */
        const size_t place = f->batch.places[i];
        if (f->answers.errors[place].status == BH_DEVICE_FAULT &&
            f->answers.errors[place].executed == BH_EXECUTED_NO) {
            lost_before(&f->answers, place);
        }
    }
}

static uint64_t device_ns(const struct bhi_cuda_backend *b, uint32_t i, uint64_t host_ns) {
    float ms = 0;
    if (!b->events[i][0] ||
        b->device.api.cuEventElapsedTime(&ms, b->events[i][0], b->events[i][1]) != CUDA_SUCCESS) {
        return 0;
    }
    const double ns = (double)ms * 1e6;
    return ns >= (double)host_ns ? host_ns : ns > 1 ? (uint64_t)ns : 1; /* a NaN is 1 */
}

static void finish(struct flight *f) {
    if (f->batch.count == 0) {
        return;
    }
    const CUresult result = wait_for_stream(f->b);
    const uint64_t ended_ns = bhi_now_ns();
    for (uint32_t i = 0; i < f->batch.count; i++) {
        struct bhi_result *out = &f->answers.results[f->batch.places[i]];
        out->started_ns = f->started_ns;
        out->ended_ns = ended_ns;
    }
    if (result != CUDA_SUCCESS) {
        lose(f, result, "cuStreamQuery");
    }
    for (uint32_t i = 0; result == CUDA_SUCCESS && i < f->batch.count; i++) {
        const struct bhi_lane_record *record = record_of(f, i);
        struct bhi_result *out = &f->answers.results[f->batch.places[i]];
        if (record->flags & BHI_RECORD_TIMED) {
            out->device_ns = device_ns(f->b, i, ended_ns - f->started_ns);
        }
        for (const struct bhi_cmd_header *command = bhi_record_first(record); command;
             command = bhi_record_next(record, command)) {
            struct bhi_cuda_kernel *k =
                command->type == BHI_CMD_DISPATCH
                    ? bhi_map_get(&f->b->kernels,
                                  ((const struct bhi_cmd_dispatch *)command)->kernel)
                    : NULL;
            if (k) {
                k->has_run = true;
            }
        }
    }
    f->batch.count = 0;
}

/* Says which record begins: the host before the first, the device before later ones. */
static CUresult mark(struct flight *f, uint64_t seq) {
    struct bhi_cuda_backend *b = f->b;
    struct bhi_markers *markers = &b->page->markers;
    if (f->batch.count == 0) {
        atomic_store_explicit(&markers->completed, (uint32_t)seq - 1, memory_order_relaxed);
        atomic_store_explicit(&markers->started, (uint32_t)seq, memory_order_release);
        f->started_ns = bhi_now_ns();
        return CUDA_SUCCESS;
    }
    /* All that is before it on the stream has ended: both words in one write. */
    const uint64_t completed = (uint32_t)record_of(f, f->batch.count - 1)->seq;
    _Static_assert(offsetof(struct bhi_markers, started) == 0 &&
                       offsetof(struct bhi_markers, completed) == 4,
                   "one write of 64 bits, little endian");
    return b->device.api.cuStreamWriteValue64(b->device.stream, b->page_address,
                                              completed << 32 | (uint32_t)seq, 0);
}

/* A timestamp at the beginning (0) or the end (1) of a timed record. Without one its time is unknown. */
static void stamp(struct bhi_cuda_backend *b, const struct bhi_lane_record *record, uint32_t place,
                  int end) {
    CUevent *event = &b->events[place][end];
    if (!(record->flags & BHI_RECORD_TIMED)) {
        return;
    }
    if (!*event && b->device.api.cuEventCreate(event, 0) != CUDA_SUCCESS) {
        *event = NULL;
    }
    if (*event) {
        (void)b->device.api.cuEventRecord(*event, b->device.stream);
    }
}

/* Something of the record at |place| could not be enqueued. What is on the stream ends first, so that
 * the memory is free again; the record has failed, and nothing else has. */
static void fail_enqueued(struct flight *f, size_t place, const struct bhi_error *error) {
    const CUresult result = wait_for_stream(f->b);
    finish(f);
    f->answers.errors[place] = *error;
    f->b->base.lost |= result != CUDA_SUCCESS;
    bhi_answer_bad(&f->answers, place);
    f->answers.results[place].ended_ns = bhi_now_ns();
}

/* An earlier kernel has faulted: every call answers that. */
static void lose_before(struct flight *f, size_t place) {
    finish(f);
    f->b->base.lost = true;
    lost_before(&f->answers, place);
}

/* It could not be prepared. */
static void refuse(struct flight *f, size_t place) {
    if (f->answers.errors[place].status == BH_DEVICE_FAULT) {
        lose_before(f, place);
        return;
    }
    bhi_answer_bad(&f->answers, place);
    f->answers.results[place].ended_ns = bhi_now_ns();
}

static void run_one(struct flight *f, size_t place) {
    struct bhi_cuda_backend *b = f->b;
    const struct bhi_lane_record *record = f->answers.records[place];
    struct bhi_error *error = &f->answers.errors[place];
    b->base.compiles = UINT64_MAX;
    if (!bhi_cuda_plan(b, record, error)) {
        refuse(f, place);
        return;
    }
    if (!bhi_record_has_work(record)) {
        f->answers.results[place].ended_ns = bhi_now_ns();
        return;
    }
    const bool joins = f->batch.count > 0 && f->batch.count < 64 && !b->owns_page &&
                       bhi_cuda_access_fits(b, record);
    if (!joins) {
        finish(f);
    }
    if (b->base.lost) {
        lost_before(&f->answers, place);
        return;
    }
    bhi_backend_compiled(&b->base);
    if (!joins && !bhi_cuda_access_fits(b, record) && !bhi_cuda_access_switch(b, record, error)) {
        refuse(f, place);
        return;
    }
    CUresult result = mark(f, record->seq);
    if (bhi_cuda_is_fault(result)) {
        lose_before(f, place);
        return;
    }
    if (result != CUDA_SUCCESS) {
        struct bhi_error failure;
        bhi_error_cuda(&failure, &b->device.api, result, "cuStreamWriteValue64");
        fail_enqueued(f, place, &failure);
        return;
    }
    const uint32_t slot = f->batch.count;
    f->batch.places[f->batch.count++] = place;
    stamp(b, record, slot, 0);
    struct bhi_error failure;
    if (!bhi_cuda_enqueue(b, record, &failure)) {
        if (bhi_cuda_is_fault((CUresult)failure.told.value)) {
            finish(f);
        } else {
            f->batch.count--;
            fail_enqueued(f, place, &failure);
        }
        return;
    }
    stamp(b, record, slot, 1);
    b->submits++;
}

bool bhi_cuda_run(struct bhi_backend *backend, const struct bhi_lane_record *const *records,
                  size_t count, struct bhi_result *results, struct bhi_error *errors) {
    struct bhi_cuda_backend *b = bhi_cuda_of(backend);
    struct flight f = {.b = b, .answers = {records, results, errors}};
    const uint64_t now = bhi_now_ns();
    for (size_t i = 0; i < count; i++) {
        bhi_answer_good(&f.answers, i, now);
    }
    for (size_t i = 0; i < count; i++) {
        if (b->base.lost) {
            lost_before(&f.answers, i);
        } else {
            run_one(&f, i);
        }
    }
    finish(&f);
    return !b->base.lost;
}

bool bhi_cuda_warm(const struct bhi_backend *backend, const struct bhi_lane_record *record) {
    const struct bhi_cuda_backend *b = bhi_cuda_const(backend);
    for (const struct bhi_cmd_header *command = bhi_record_first(record); command;
         command = bhi_record_next(record, command)) {
        if (command->type == BHI_CMD_PREPARE) {
            return false;
        }
        if (command->type == BHI_CMD_DISPATCH) {
            const struct bhi_cuda_kernel *k =
                bhi_map_get(&b->kernels, ((const struct bhi_cmd_dispatch *)command)->kernel);
            if (!k || !k->module || !k->has_run) {
                return false;
            }
        }
    }
    return true;
}

/* Streams by kind: the device and the memory limit in a job's line decide its kind. Each kind has
 * as many streams as the batch asks for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/runner/streams.h"

#include "batch/runner/state.h"
#include "batch/runner/work.h"
#include "tool/text.h"

static bool is_kind(const struct bhi_runner_kind *kind, const struct bhi_runner_kind *wanted) {
    return kind->limits_memory == wanted->limits_memory &&
           kind->memory_limit == wanted->memory_limit &&
           !strcmp(kind->device ? kind->device : "", wanted->device ? wanted->device : "");
}

/* Finds the first stream of kind |wanted|. Returns false if there is none yet. Call it with the
 * lock. */
static bool find(const struct bhi_runner *runner, const struct bhi_runner_kind *wanted,
                 uint32_t *out_first) {
    const uint32_t alike = runner->options->streams;
    for (uint32_t i = 0; i < runner->stream_count / alike; i++) {
        if (is_kind(&runner->kinds[i], wanted)) {
            *out_first = i * alike;
            return true;
        }
    }
    return false;
}

static bh_status make_stream(struct bhi_runner *runner, uint32_t index, const char *device,
                             const struct bhi_runner_kind *kind, bh_detail *detail) {
    const struct bhi_runner_options *given = runner->options;
    bh_stream_options options = {.struct_size = sizeof options};
    char name[64];
    snprintf(name, sizeof name, "batch-%u", index);
    options.name = name;
    options.device = device;
    options.isolation = given->isolation;
    options.tenant = given->tenant;
    if (given->compile_deadline_ns) {
        options.compile_deadline_ns = given->compile_deadline_ns;
    }
    if (given->limits_grace) {
        options.grace_ns = given->grace_ns ? given->grace_ns : BH_OFF;
    }
    if (kind->limits_memory) {
        options.memory_limit = kind->memory_limit ? kind->memory_limit : BH_OFF;
    }
    bhi_work_list_init(&runner->streams[index].staged);
    return bh_stream_create(given->context, &options, &runner->streams[index].stream, detail);
}

/* Makes the streams of a kind after the existing ones. They are invisible until they are counted.
 * Call it with |making| held. */
static bh_status make_kind(struct bhi_runner *runner, const char *device,
                           const struct bhi_runner_kind *kind, bh_detail *detail) {
    const uint32_t alike = runner->options->streams, first = runner->stream_count;
    char *name = kind->device ? strdup(kind->device) : NULL;
    bh_status status = kind->device && !name ? BH_NO_MEMORY : BH_OK;
    uint32_t made = 0;
    while (status == BH_OK && made < alike) {
        status = make_stream(runner, first + made, device, kind, detail);
        made += status == BH_OK;
    }
    if (status != BH_OK) {
        while (made > 0) {
            bh_stream_release(runner->streams[first + --made].stream);
        }
        free(name);
        return status;
    }
    pthread_mutex_lock(&runner->lock);
    runner->kinds[first / alike] = *kind;
    runner->kinds[first / alike].device = name;
    snprintf(runner->kinds[first / alike].selector, sizeof kind->selector, "%s",
             device ? device : "");
    runner->stream_count += alike;
    pthread_mutex_unlock(&runner->lock);
    return BH_OK;
}

/* Makes a new kind. Returns false if the work is over. */
static bool make(struct bhi_work *work, const struct bhi_runner_kind *wanted, uint32_t *out_first) {
    struct bhi_runner *runner = work->runner;
    const struct bhi_runner_options *options = runner->options;
    const char *device = wanted->device ? wanted->device : options->device;
    char selector[48];
    bh_detail detail = {0};
    bh_status status = BH_OK;
    pthread_mutex_lock(&runner->making);
    pthread_mutex_lock(&runner->lock);
    const bool found = find(runner, wanted, out_first);
    *out_first = found ? *out_first : runner->stream_count;
    pthread_mutex_unlock(&runner->lock);
    if (!found && *out_first == BHI_RUNNER_KINDS * options->streams) {
        status = BH_INVALID_ARGUMENT;
        snprintf(detail.message, sizeof detail.message,
                 "the jobs have more than %d kinds of device and memory", BHI_RUNNER_KINDS);
    }
    if (!found && status == BH_OK && wanted->device && options->choose) {
        status = options->choose(options->user, wanted->device, selector, &detail);
        device = selector;
    }
    if (!found && status == BH_OK) {
        status = make_kind(runner, device, wanted, &detail);
    }
    pthread_mutex_unlock(&runner->making);
    if (status == BH_OK) {
        return true;
    }
    return bhi_work_refuse(
        work, status, detail.sys_errno, "%s%.60s%s%.400s", wanted->device ? "device " : "",
        wanted->device ? wanted->device : "", wanted->device ? ": " : "",
        detail.message[0] ? bhi_text_without_call(detail.message) : bh_status_text(status));
}

bool bhi_runner_make_streams(struct bhi_runner *runner, struct bhi_complaint *complaint) {
    const struct bhi_runner_options *given = runner->options;
    const struct bhi_runner_kind kind = {.limits_memory = given->limits_memory,
                                         .memory_limit = given->memory_limit};
    bh_detail detail = {0};
    runner->streams = calloc((size_t)BHI_RUNNER_KINDS * given->streams, sizeof *runner->streams);
    if (!runner->streams) {
        return bhi_refuse(complaint, "out of memory");
    }
    return make_kind(runner, given->device, &kind, &detail) == BH_OK ||
           bhi_refuse(complaint, "%s", detail.message);
}

bool bhi_runner_choose_stream(struct bhi_work *work) {
    struct bhi_runner *runner = work->runner;
    const struct bhi_run_request *request = &work->request->run;
    const struct bhi_runner_options *options = runner->options;
    const struct bhi_runner_kind wanted = {
        .device = (char *)request->device,
        .limits_memory = request->limits_memory || options->limits_memory,
        .memory_limit = request->limits_memory ? request->memory_limit : options->memory_limit};
    uint32_t first;
    pthread_mutex_lock(&runner->lock);
    bool found = find(runner, &wanted, &first);
    pthread_mutex_unlock(&runner->lock);
    if (!found && !make(work, &wanted, &first)) {
        return false;
    }
    uint32_t best = first;
    pthread_mutex_lock(&runner->lock);
    for (uint32_t i = first + 1; i < first + options->streams; i++) {
        if (runner->streams[i].assigned < runner->streams[best].assigned) {
            best = i;
        }
    }
    work->stream = work->attempt.stream = best;
    work->assigned = true;
    runner->streams[best].assigned++;
    pthread_mutex_unlock(&runner->lock);
    return true;
}

bh_status bhi_runner_limits(const struct bhi_work *work, uint64_t *out_range,
                            uint32_t *out_alignment, bh_detail *detail) {
    struct bhi_runner *runner = work->runner;
    const struct bhi_runner_options *options = runner->options;
    struct bhi_runner_kind *kind = &runner->kinds[work->stream / options->streams];
    bh_status status = BH_OK;
    pthread_mutex_lock(&runner->lock);
    const bool asked = kind->device_queried;
    *out_range = kind->range;
    *out_alignment = kind->alignment;
    pthread_mutex_unlock(&runner->lock);
    if (asked || !options->limits) {
        return status;
    }
    status = options->limits(options->user, kind->selector[0] ? kind->selector : NULL, out_range,
                             out_alignment, detail);
    if (status != BH_OK) {
        return status;
    }
    pthread_mutex_lock(&runner->lock);
    kind->device_queried = true;
    kind->range = *out_range;
    kind->alignment = *out_alignment;
    pthread_mutex_unlock(&runner->lock);
    return status;
}

void bhi_runner_free_streams(struct bhi_runner *runner) {
    for (uint32_t i = 0; i < runner->stream_count; i++) {
        bh_stream_release(runner->streams[i].stream);
    }
    for (uint32_t i = 0; i < BHI_RUNNER_KINDS; i++) {
        free(runner->kinds[i].device);
    }
    free(runner->streams);
}

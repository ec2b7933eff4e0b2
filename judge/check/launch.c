#include "judge/check/launch.h"

#include <string.h>

#include "base/selector.h"
static void fill_options(const struct bhi_court *court, bh_stream_options *out) {
    const struct bhi_task *task = court->task;
    *out = (bh_stream_options){.struct_size = sizeof(bh_stream_options)};
    out->name = "judge";
    out->device = court->selector;
    out->isolation = BH_ISOLATION_KERNEL;
    if (task->deadline_ns) {
        out->deadline_ns = task->deadline_ns;
    }
    if (task->compile_deadline_ns) {
        out->compile_deadline_ns = task->compile_deadline_ns;
    }
    if (task->memory_limit) {
        out->memory_limit = task->memory_limit;
    }
}

static bool make_stream(const struct bhi_court *court, const bh_stream_options *options,
                        bh_stream **out_stream, struct bhi_judge_outcome *outcome) {
    bh_detail detail = {0};
    const bh_status status = bh_stream_create(court->context, options, out_stream, &detail);
    return status == BH_OK || bhi_judge_outcome_take(outcome, status, &detail);
}

bool bhi_court_stream(const struct bhi_court *court, bh_stream **out_stream,
                      struct bhi_judge_outcome *outcome) {
    bh_stream_options options;
    fill_options(court, &options);
    return make_stream(court, &options, out_stream, outcome);
}

bool bhi_court_borrow(struct bhi_court *court, bh_stream **out_stream,
                      struct bhi_judge_outcome *outcome) {
    bh_stream_options options;
    pthread_mutex_lock(&court->sharing);
    *out_stream = court->shared_count ? court->shared[--court->shared_count] : NULL;
    pthread_mutex_unlock(&court->sharing);
    if (*out_stream) {
        return true;
    }
    fill_options(court, &options);
    options.isolation = BH_ISOLATION_STREAM;
    return make_stream(court, &options, out_stream, outcome);
}

void bhi_court_return(struct bhi_court *court, bh_stream *stream) {
    pthread_mutex_lock(&court->sharing);
    if (court->shared_count < BHI_COURT_SHARED) {
        court->shared[court->shared_count++] = stream;
        stream = NULL;
    }
    pthread_mutex_unlock(&court->sharing);
    bh_stream_release(stream);
}

void bhi_court_unshare(struct bhi_court *court) {
    while (court->shared_count) {
        bh_stream_release(court->shared[--court->shared_count]);
    }
}

bool bhi_court_reference_stream(const struct bhi_court *court, bh_stream **out_stream,
                                struct bhi_judge_outcome *outcome) {
    bh_stream_options options;
    fill_options(court, &options);
    if (court->cuda && court->task->reference == BHI_REFERENCE_EVAL) {
        options.device = ""; /* expressions become SPIR-V */
    }
    return make_stream(court, &options, out_stream, outcome);
}

bool bhi_court_open(struct bhi_court *court, struct bhi_judge_outcome *outcome) {
    court->cuda = bhi_selector_is_cuda(court->selector);
    return !court->cuda || ((court->keeper || bhi_court_stream(court, &court->keeper, outcome)) &&
                            bhi_stream_find_device(court->keeper, court->device, outcome));
}

void bhi_court_close(struct bhi_court *court) {
    bhi_court_unshare(court);
    bh_stream_release(court->keeper);
    court->keeper = NULL;
}

bool bhi_court_timed_stream(const struct bhi_court *court, bh_stream **out_stream,
                            struct bhi_judge_outcome *outcome) {
    bh_stream_options options;
    fill_options(court, &options);
    options.processor = court->processor;
    /* It has ended in time on all of them. */
    if (court->slowdown && options.deadline_ns < BH_FOREVER / court->slowdown) {
        options.deadline_ns *= court->slowdown;
    }
    return make_stream(court, &options, out_stream, outcome);
}

bool bhi_stream_find_device(bh_stream *stream, char out[48], struct bhi_judge_outcome *outcome) {
    bh_detail detail = {0};
    bh_status status = bh_stream_wait_ready(stream, BH_FOREVER, &detail);
    if (status == BH_OK) {
        status = bh_stream_device(stream, out);
    }
    return status == BH_OK || bhi_judge_outcome_take(outcome, status, &detail);
}

bool bhi_stream_is_on_processor(bh_stream *stream, bool *out, struct bhi_judge_outcome *outcome) {
    char device[48];
    if (!bhi_stream_find_device(stream, device, outcome)) {
        return false;
    }
    *out = !strncmp(device, "lavapipe", 8) || !strncmp(device, "swiftshader", 11);
    return true;
}

bool bhi_court_launch(struct bhi_court *court, bh_stream *stream, const struct bhi_program *program,
                      const struct bhi_trial *trial, struct bhi_launched *out,
                      struct bhi_judge_outcome *outcome) {
    struct bhi_setup *setup;
    if (!bhi_setup_make(court, program, trial, NULL, &setup, outcome)) {
        return false;
    }
    uint32_t count;
    const bh_command *const commands = bhi_setup_commands(setup, &count);
    const bool good = bhi_court_submit(stream, commands, count, NULL, outcome) &&
                      bhi_setup_take(setup, out, outcome);
    bhi_setup_free(setup);
    return good;
}

#include "judge/time/flush.h"

#include <stdlib.h>
#include <unistd.h>

#include "judge/check/content.h"
#include "judge/check/launch.h"

/* 1.5 times the L2 of a GPU. Vulkan does not say how large that is; none is larger than 128 MiB. */
static const uint64_t gpu_size = UINT64_C(192) << 20;
/* Of a driver that runs on the processor: 1.5 times the L2 caches of all processors. At least, for
 * machines that do not say; at most, so that a run takes no longer than need be. */
static const uint64_t least_size = UINT64_C(8) << 20, most_size = UINT64_C(64) << 20;

static uint64_t processor_size(void) {
    const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE), processors = sysconf(_SC_NPROCESSORS_ONLN);
    const uint64_t all =
        (cache > 0 ? (uint64_t)cache : 0) * (processors > 0 ? (uint64_t)processors : 0);
    const uint64_t size = (all + all / 2) / 4096 * 4096;
    return size < least_size ? least_size : size > most_size ? most_size : size;
}

bool bhi_flush_open(const struct bhi_court *court, struct bhi_flush *out,
                    struct bhi_judge_outcome *outcome) {
    *out = (struct bhi_flush){0};
    if (!bhi_court_timed_stream(court, &out->stream, outcome)) {
        return false;
    }
    bool on_processor;
    if (!bhi_stream_is_on_processor(out->stream, &on_processor, outcome)) {
        bhi_flush_close(out);
        return false;
    }
    out->size = on_processor ? processor_size() : gpu_size;
    if (!bhi_content_make(court->context, out->stream, out->size, &out->buffer, outcome)) {
        bhi_flush_close(out);
        return false;
    }
    return true;
}

bool bhi_flush_run(struct bhi_flush *flush, struct bhi_judge_outcome *outcome) {
    const bh_command command = {
        .type = BH_COMMAND_FILL,
        .fill = {.dst = flush->buffer, .size = BH_WHOLE_SIZE, .value = ++flush->value}};
    return bhi_court_submit(flush->stream, &command, 1, NULL, outcome);
}

void bhi_flush_close(struct bhi_flush *flush) {
    bh_buffer_release(flush->buffer);
    bh_stream_release(flush->stream);
    *flush = (struct bhi_flush){0};
}

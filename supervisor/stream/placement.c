#include "supervisor/stream/placement.h"
#include "base/futex.h"
#include "base/text.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/selector.h"
#include "supervisor/worker/worker_proc.h"
#include "supervisor/worker/zygote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The least load that a stream counts as: it will bring work, even if it has none now. */
#define LEAST_NS    (10ull * 1000000)
#define FAILURES    2 /* starts in a row; then a device is left out */
#define LEFT_OUT_NS (60ull * 1000000000)

/* A device of the default driver. */
struct place {
    struct bhi_list link; /* context->places, by index */
    char driver[BHI_DRIVER_NAME];
    char name[128];
    uint32_t index;
    uint64_t memory;
    uint32_t failures;          /* starts in a row that failed */
    uint64_t left_out_until_ns; /* 0: it is not */
};

static struct place *find(bh_context *context, uint32_t index) {
    BHI_LIST_FOR(struct place, place, &context->places, link) {
        if (place->index == index) {
            return place;
        }
    }
    return NULL;
}

/* Returns true if |stream| runs on |place|; NULL: if its selector names no driver, so that it runs
 * on a device of the default driver. */
static bool is_on(const struct bh_stream *stream, const struct place *place) {
    char driver[BHI_DRIVER_NAME];
    uint32_t index;
    if (stream->kind != BHI_WORKER_DEVICE || !stream->placed ||
        !bhi_selector_parse(stream->device, driver, &index)) {
        return false;
    }
    return place ? index == place->index && (!driver[0] || strcmp(driver, place->driver) == 0)
                 : !driver[0];
}

static struct place *place_of(const struct bh_stream *stream) {
    BHI_LIST_FOR(struct place, place, &stream->context->places, link) {
        if (is_on(stream, place)) {
            return place;
        }
    }
    return NULL;
}

void bhi_placement_learn(const struct bhi_worker *worker) {
    bh_context *context = worker->context;
    if (worker->zygote->requested[0]) {
        return; /* not of the default driver */
    }
    for (uint32_t i = 0; i < worker->device_count; i++) {
        const struct bhi_msg_device *told = &worker->devices[i];
        struct place *place = find(context, told->index);
        if (!place) {
            place = calloc(1, sizeof *place);
            if (!place) {
                return; /* out of memory: the next worker reports it again */
            }
            place->index = told->index;
            place->memory = told->memory_bytes;
            memcpy(place->driver, worker->zygote->driver, sizeof place->driver);
            bhi_text_line(place->name, sizeof place->name, told->name,
                          strnlen(told->name, sizeof told->name));
            bhi_list_append(&context->places, &place->link);
            context->wake_reactor = true; /* streams may have waited for this */
        }
        if (told->chosen) {
            place->failures = 0;
            place->left_out_until_ns = 0;
        }
    }
}

/* Returns the stream's load: the number of its submissions that have not ended, times its usual
 * time for one. */
static uint64_t load_of(const struct bh_stream *stream) {
    const struct bhi_core_worker *worker = stream->core.worker;
    uint64_t count = worker ? worker->published - worker->harvested : 0;
    BHI_LIST_EACH(node, &stream->core.queue) {
        count++;
    }
    const uint64_t ns = count * stream->usual_ns;
    return ns > LEAST_NS ? ns : LEAST_NS;
}

struct load {
    uint64_t ns, memory;
};

static struct load load_at(bh_context *context, const struct place *place) {
    struct load load = {0};
    BHI_LIST_FOR(const struct bh_stream, stream, &context->streams, link) {
        if (is_on(stream, place)) {
            load.ns += load_of(stream);
            load.memory += stream->device_memory;
        }
    }
    return load;
}

static bool is_less(const struct load *a, const struct place *on_a, const struct load *b,
                    const struct place *on_b) {
    if (a->ns != b->ns) {
        return a->ns < b->ns;
    }
    const uint64_t free_a = on_a->memory > a->memory ? on_a->memory - a->memory : 0;
    const uint64_t free_b = on_b->memory > b->memory ? on_b->memory - b->memory : 0;
    return free_a > free_b;
}

/* Returns the device with the smallest load, or the first of several; NULL: all are left out. */
static struct place *least_loaded(bh_context *context, bool with_left_out) {
    struct place *best = NULL;
    struct load best_load = {0};
    const uint64_t now_ns = bhi_now_ns();
    BHI_LIST_FOR(struct place, place, &context->places, link) {
        if (place->left_out_until_ns > now_ns && !with_left_out) {
            continue;
        }
        const struct load load = load_at(context, place);
        if (!best || is_less(&load, place, &best_load, best)) {
            best = place;
            best_load = load;
        }
    }
    return best;
}

/* Whoever asks is nowhere yet. */
static bool another_will_tell(bh_context *context) {
    BHI_LIST_FOR(const struct bh_stream, stream, &context->streams, link) {
        if (is_on(stream, NULL) && stream->core.state != BHI_STREAM_UNAVAILABLE &&
            !bhi_stream_rests(stream)) {
            return true;
        }
    }
    return false;
}

bool bhi_placement_choose(struct bh_stream *stream) {
    bh_context *context = stream->context;
    if (stream->placed) {
        return true;
    }
    if (bhi_list_empty(&context->places) && another_will_tell(context)) {
        return false;
    }
    const struct place *place = least_loaded(context, false);
    if (!place) {
        place = least_loaded(context, true);
    }
    stream->placed = true;
    /* Device 0 gets the selector of streams that name no device, so that they share spares. */
    stream->device[0] = 0;
    if (place && place->index) {
        snprintf(stream->device, sizeof stream->device, "%u", place->index);
    }
    return true;
}

void bhi_placement_leave(struct bh_stream *stream) {
    if (!stream->anywhere || stream->device_memory || stream->core.worker) {
        return;
    }
    stream->placed = false;
    stream->device[0] = 0;
    stream->runs_on.known = false;
}

bool bhi_placement_failed(struct bh_stream *stream, const bh_detail *why, bool hopeless) {
    bh_context *context = stream->context;
    struct place *place = stream->anywhere ? place_of(stream) : NULL;
    if (!place || (++place->failures < FAILURES && !hopeless)) {
        return false;
    }
    place->left_out_until_ns = bhi_now_ns() + LEFT_OUT_NS;
    if (stream->device_memory || !least_loaded(context, false)) {
        return false;
    }
    bhi_context_say(
        context, BH_LOG_WARNING,
        "device %s:%u (%s) is left out for %llu s, since workers do not start there: %s; "
        "streams with the device \"" BHI_ANY_DEVICE "\" run on the others",
        place->driver, place->index, place->name, (unsigned long long)(LEFT_OUT_NS / 1000000000),
        why->message);
    return true;
}

void bhi_placement_fini(bh_context *context) {
    BHI_LIST_EACH_SAFE(node, &context->places)
    free(BHI_CONTAINER(node, struct place, link));
    bhi_list_init(&context->places);
}

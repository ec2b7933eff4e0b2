/* A host that answers requests, keeps a history, and has one of the bugs below: the checker must find it.
 * Usage: bug_host HISTORY BUG */
#include <bulkhead/bulkhead.h>
#include <bulkhead/history.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 64u
#define MS    1000000ull
#define TRY(call)                                                                                  \
    do {                                                                                           \
        bh_detail why_ = {0};                                                                      \
        bh_detail *why = &why_;                                                                    \
        if ((call) != BH_OK) {                                                                     \
            fprintf(stderr, "%s\n", why_.message);                                                 \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

enum bug {
    NONE,
    USES_BEFORE_WAITING, /* takes the output without a look at the event */
    IGNORES_VERDICTS,    /* takes the output of a poisoned event, too */
    REPEATS_WRITES,      /* tries again what may be done only once, and may have run */
    LEAKS_ON_POISON,     /* forgets what a poisoned event had */
    ANSWERS_TWICE,       /* the failed attempt, then the good one */
    FORGETS_REQUESTS,    /* whose event was poisoned */
    FAILS_GOOD_REQUESTS, /* calls one a failure that was READY */
    MIXES_UP_RESULTS,    /* gives a request the output of the one before */
    WAITS_TOO_LONG,      /* for an event that comes later than anybody listens */
    FIRES_AND_FORGETS,   /* answers without a look at an event that it has submitted */
    TRUSTS_QUERY,        /* takes "has ended" for "is good" */
};

static enum bug bug;
static bh_context *context;
static bh_stream *stream;
static bh_kernel *kernel;
static bh_history *history;
static uint32_t previous[WORDS];

static uint32_t input_of(uint32_t request, uint32_t i) {
    return request * 1000 + i;
}

/* Submits the request once. *out_y is its output. */
static bh_event *attempt(uint32_t request, bool once, bh_buffer **out_x, bh_buffer **out_y) {
    uint32_t x[WORDS], y[WORDS];
    for (uint32_t i = 0; i < WORDS; i++) {
        x[i] = input_of(request, i);
        y[i] = 3 * x[i] + 1;
    }
    bh_event *event = NULL;
    TRY(bh_buffer_create(context, sizeof x, NULL, out_x, why));
    TRY(bh_buffer_create(context, sizeof y, NULL, out_y, why));
    TRY(bh_buffer_write(*out_x, 0, x, sizeof x, BH_NOW, why));
    TRY(bh_launch(stream, kernel, (uint32_t[]){1, 1, 1},
                  (bh_binding[]){bh_bind_read(0, *out_x), bh_bind_write(1, *out_y)}, 2, NULL, 0,
                  &event, why));
    bh_history_attempted(history, request, event, once, y, sizeof y);
    return event;
}

/* Takes the output as the result, whatever it is. */
static void take(bh_event *event, bh_buffer *output) {
    uint32_t words[WORDS] = {0};
    bh_detail why;
    if (bh_buffer_read(output, 0, words, sizeof words, BH_NOW, &why) != BH_OK) {
        memset(words, 0, sizeof words); /* nobody has asked whether it can be read */
    }
    bh_history_used(history, event, bug == MIXES_UP_RESULTS ? previous : words, sizeof words);
    memcpy(previous, words, sizeof words);
}

/* Returns true if the request is over. */
static bool serve_once(uint32_t request, bool once) {
    bh_buffer *x, *y;
    bh_verdict verdict = {.struct_size = sizeof verdict};
    bh_event *event = attempt(request, once, &x, &y);
    if (bug == USES_BEFORE_WAITING) {
        take(event, y);
    }
    const bh_status status = bh_event_wait(event, BH_FOREVER);
    if (bug != FIRES_AND_FORGETS) {
        bh_history_ended(history, event);
    }
    const bool has_ended = bh_event_query(event) != BH_EVENT_PENDING;
    const bool good =
        bug == IGNORES_VERDICTS || (bug == TRUSTS_QUERY && has_ended) || status == BH_OK;
    bool over = good;
    if (good && bug == FAILS_GOOD_REQUESTS && request == 7) {
        bh_history_answered(history, request, false);
    } else if (good) {
        if (bug != USES_BEFORE_WAITING) {
            take(event, y);
        }
        bh_history_answered(history, request, true);
    } else if (bh_event_verdict(event, &verdict) == BH_OK && once &&
               verdict.executed != BH_EXECUTED_NO && bug != REPEATS_WRITES) {
        bh_history_answered(history, request, false); /* nobody knows whether it was done */
        over = true;
    } else if (bug == FORGETS_REQUESTS) {
        over = true;
    } else if (bug == ANSWERS_TWICE) {
        bh_history_answered(history, request, false);
    }
    if (status == BH_OK || bug != LEAKS_ON_POISON) {
        bh_event_release(event);
        bh_buffer_release(x), bh_buffer_release(y);
    }
    return over;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        return 2;
    }
    bug = (enum bug)atoi(argv[2]);
    const bool slow = bug == WAITS_TOO_LONG, leaks = bug == LEAKS_ON_POISON;
    const uint32_t count = slow ? 3 : leaks ? 24 : 16;
    const bh_context_options options = {.struct_size = sizeof options,
                                        .chaos =
                                            slow ? "late=100%/300ms" : "seed=3 device_lost=60%"};
    const bh_source source = {
        .struct_size = sizeof source,
        .text =
            "#version 450\nlayout(local_size_x = 64) in;\n"
            "layout(binding = 0) readonly buffer X { uint x[]; };\n"
            "layout(binding = 1) writeonly buffer Y { uint y[]; };\n"
            "void main() { y[gl_GlobalInvocationID.x] = 3u * x[gl_GlobalInvocationID.x] + 1u; }\n"};
    TRY(bh_context_create(&options, &context, why));
    TRY(bh_stream_create(context, NULL, &stream, why));
    TRY(bh_kernel_create_source(context, &source, NULL, &kernel, why));
    TRY(bh_history_create(argv[1], slow ? 100 * MS : 3600 * 1000 * MS, &history, why));
    for (uint32_t request = 1; request <= count; request++) {
        while (!serve_once(request, request % 4 == 0)) {
        }
        bh_history_rested(history);
    }
    TRY(bh_history_finish(history, why));
    bh_kernel_release(kernel), bh_stream_release(stream);
    return bh_context_destroy(context) != BH_OK;
}

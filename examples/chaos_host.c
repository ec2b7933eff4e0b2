/* A filter service to break: docs/chaos.md, "Test your host".
 * Usage: example_chaos_host REQUESTS [RETRIES [DEADLINE_IN_SECONDS [HISTORY]]]
 *
 * Eight slots, each with a stream, work on REQUESTS requests: compile the GLSL that came with the
 * request, run it over an array, compare each number with the processor's. One thread waits for all
 * of them, in an epoll loop. What was lost with something else is submitted again, RETRIES times
 * (default: 1); so is what may not be the request's own fault. It permits $BULKHEAD_CHAOS.
 * With HISTORY it writes down what it has asked for, seen and answered, for `bulkhead chaos --check`.
 * Prints a line of counts. The exit status is 0 if all requests have had the right answer. */
#include <bulkhead/bulkhead.h>
#include <bulkhead/history.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SLOTS    8
#define COUNT    (1u << 12)
#define TAPS     128u
#define NS_PER_S 1000000000ull

struct slot {
    char name[16]; /* of its stream, and its tenant */
    bh_stream *stream;
    unsigned request, retries;
    bh_module *module;
    bh_kernel *kernel; /* NULL: it is being compiled */
    bh_buffer *in, *out;
};

static struct {
    unsigned right, wrong, retried, lost, victims, others; /* the last two: verdicts */
    unsigned most;                                         /* retries of one request */
} counts;

static bh_context *context;
static bh_queue *queue;
static bh_history *history; /* NULL: none is kept */
static unsigned requests, retries = 1, deadline_s = 10, busy;

static const char border[] = "uint at(uint i) { return source[min(i, source.length() - 1u)]; }\n";

static uint32_t number(unsigned request, uint32_t i) {
    return (i ^ request) * 2654435761u;
}

/* The same as the kernel. */
static const uint32_t *answer_of(unsigned request) {
    static uint32_t answer[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < TAPS; k++) {
            const uint32_t j = i + k < COUNT ? i + k : COUNT - 1;
            sum = (sum ^ number(request, j)) * (2 * request + 1);
        }
        answer[i] = sum;
    }
    return answer;
}

static bh_status watch(struct slot *slot, bh_event *event, bh_detail *why) {
    bh_history_attempted(history, slot->request + 1, event, false,
                         slot->kernel ? answer_of(slot->request) : NULL, COUNT * sizeof(uint32_t));
    const bh_status status = bh_queue_add(queue, event, (uintptr_t)slot, why);
    bh_event_release(event); /* the queue has it */
    return status;
}

/* Every second request has its border in a file of its own. */
static bh_status compile(struct slot *slot, bh_detail *why) {
    char text[1024];
    snprintf(text, sizeof text,
             "#version 450\n"
             "#extension GL_GOOGLE_include_directive : require\n"
             "layout(local_size_x = 64) in;\n"
             "layout(binding = 0) readonly buffer In { uint source[]; };\n"
             "layout(binding = 1) writeonly buffer Out { uint result[]; };\n"
             "%s"
             "void main() {\n"
             "    uint sum = 0u;\n"
             "    for (uint k = 0u; k < %uu; k++) {\n"
             "        sum = (sum ^ at(gl_GlobalInvocationID.x + k)) * %uu;\n"
             "    }\n"
             "    result[gl_GlobalInvocationID.x] = sum;\n"
             "}\n",
             slot->request % 2 ? "#include \"border.glsl\"\n" : border, TAPS,
             2 * slot->request + 1);
    const bh_source source = {.struct_size = sizeof source,
                              .text = text,
                              .name = "filter.comp",
                              .includes =
                                  &(bh_source_include){.name = "border.glsl", .text = border},
                              .include_count = 1,
                              .tenant = slot->name};
    bh_event *event = NULL;
    const bh_status status = bh_module_compile(context, &source, &slot->module, &event, why);
    return status == BH_OK ? watch(slot, event, why) : status;
}

static bh_status launch(struct slot *slot, bh_detail *why) {
    static uint32_t data[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        data[i] = number(slot->request, i);
    }
    bh_status status;
    bh_event *event = NULL;
    if ((status = bh_module_kernel(slot->module, NULL, &slot->kernel, why)) != BH_OK ||
        (status = bh_buffer_create(context, sizeof data, NULL, &slot->in, why)) != BH_OK ||
        (status = bh_buffer_create(context, sizeof data, NULL, &slot->out, why)) != BH_OK ||
        (status = bh_buffer_write(slot->in, 0, data, sizeof data, BH_NOW, why)) != BH_OK ||
        (status = bh_launch(slot->stream, slot->kernel, (uint32_t[]){COUNT / 64, 1, 1},
                            (bh_binding[]){bh_bind_read(0, slot->in), bh_bind_write(1, slot->out)},
                            2, NULL, 0, &event, why)) != BH_OK) {
        return status;
    }
    return watch(slot, event, why);
}

static void release(struct slot *slot) {
    bh_buffer_release(slot->in), bh_buffer_release(slot->out);
    bh_kernel_release(slot->kernel), bh_module_release(slot->module);
    slot->in = slot->out = NULL;
    slot->kernel = NULL, slot->module = NULL;
}

/* -- the loop ---------------------------------------------------------------------------------- */

static void begin(struct slot *slot);

/* The slot's request is over; the next one begins. */
static void end(struct slot *slot, unsigned *count) {
    ++*count;
    bh_history_answered(history, slot->request + 1, count == &counts.right);
    release(slot);
    slot->request += SLOTS, slot->retries = 0;
    busy--;
    begin(slot);
}

/* A call has failed: that is no verdict, and nothing to try again. */
static void go_on(struct slot *slot, bh_status status, const bh_detail *why) {
    if (status != BH_OK) {
        fprintf(stderr, "%s: %s\n", bh_status_name(status), why->message);
        end(slot, &counts.lost);
    }
}

static void begin(struct slot *slot) {
    bh_detail why = {0};
    if (slot->request < requests) {
        busy++;
        go_on(slot, compile(slot, &why), &why);
    }
}

/* Whether the request may well succeed if it is made again. */
static bool is_innocent(const bh_verdict *verdict) {
    const bh_status_class class = bh_verdict_classify(verdict);
    if (class == BH_STATUS_CLASS_VICTIM) {
        counts.victims++;
        return true;
    }
    counts.others++;
    fprintf(stderr, "%s: %s\n", bh_status_name(verdict->status), verdict->message);
    return class == BH_STATUS_CLASS_ENVIRON || verdict->blame == BH_BLAME_SUSPECTED;
}

static void event_ended(struct slot *slot, const bh_completion *ended) {
    static uint32_t data[COUNT];
    bh_detail why = {0};
    bh_verdict verdict = {.struct_size = sizeof verdict};
    bh_status status;
    bh_history_ended(history, ended->event);
    if (ended->status != BH_OK && bh_event_verdict(ended->event, &verdict) == BH_OK) {
        if (!is_innocent(&verdict) || slot->retries == retries) {
            end(slot, &counts.lost);
            return;
        }
        slot->retries++, counts.retried++;
        counts.most = slot->retries > counts.most ? slot->retries : counts.most;
        release(slot);
        go_on(slot, compile(slot, &why), &why); /* the context has the module, if it compiled */
    } else if (!slot->kernel) {
        go_on(slot, launch(slot, &why), &why);
    } else if ((status = bh_buffer_read(slot->out, 0, data, sizeof data, BH_NOW, &why)) != BH_OK) {
        go_on(slot, status, &why);
    } else {
        bh_history_used(history, ended->event, data, sizeof data);
        end(slot, memcmp(data, answer_of(slot->request), sizeof data) == 0 ? &counts.right
                                                                           : &counts.wrong);
    }
}

int main(int argc, char **argv) {
    unsigned *const given[] = {&requests, &retries, &deadline_s};
    for (int i = 1; i < argc && i <= 3; i++) {
        *given[i - 1] = (unsigned)atoi(argv[i]);
    }
    struct slot slots[SLOTS] = {0};
    bh_detail why = {0};
    bh_context_options settings = {.struct_size = sizeof settings, .chaos_from_environment = true};
    bh_status status = bh_context_create(&settings, &context, &why);
    if (status == BH_OK) {
        status = bh_queue_create(&queue, &why);
    }
    if (status == BH_OK && argc > 4) {
        status = bh_history_create(argv[4], 600 * NS_PER_S, &history, &why);
    }
    for (unsigned i = 0; i < SLOTS && status == BH_OK; i++) {
        snprintf(slots[i].name, sizeof slots[i].name, "slot-%u", i);
        slots[i].request = i;
        const bh_stream_options options = {.struct_size = sizeof options,
                                           .name = slots[i].name,
                                           .tenant = slots[i].name,
                                           .deadline_ns = deadline_s * NS_PER_S,
                                           .compile_deadline_ns = deadline_s * NS_PER_S};
        status = bh_stream_create(context, &options, &slots[i].stream, &why);
    }
    const int loop = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event want = {.events = EPOLLIN};
    if (status != BH_OK || epoll_ctl(loop, EPOLL_CTL_ADD, bh_queue_fd(queue), &want) != 0) {
        return fprintf(stderr, "%s\n", why.message), 2;
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        begin(&slots[i]);
    }
    while (busy) {
        bh_completion ended;
        size_t count;
        epoll_wait(loop, &want, 1, -1);
        while (bh_queue_take(queue, BH_NOW, &ended, 1, &count) == BH_OK) {
            event_ended((struct slot *)(uintptr_t)ended.user_data, &ended);
            bh_event_release(ended.event);
        }
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        bh_stream_release(slots[i].stream);
    }
    close(loop);
    bh_queue_destroy(queue);
    if (history && bh_history_finish(history, &why) != BH_OK) {
        fprintf(stderr, "%s\n", why.message);
    }
    printf("{\"right\": %u, \"wrong\": %u, \"lost\": %u, \"retried\": %u, \"victims\": %u, "
           "\"others\": %u, \"most\": %u}\n",
           counts.right, counts.wrong, counts.lost, counts.retried, counts.victims, counts.others,
           counts.most);
    return bh_context_destroy(context) != BH_OK || counts.right != requests;
}

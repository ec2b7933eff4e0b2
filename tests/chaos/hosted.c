/* A host as a user would write it: streams of two tenants, requests with a source of their own, which are
 * compiled, launched and read back. What ends VICTIM is submitted once more, as often as is allowed.
 * Usage: chaos_hosted REQUESTS RETRIES. Prints a line of counts; status 0 if each request had the right
 * result, and nothing was blamed. */
#include <bulkhead/bulkhead.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STREAMS = 4, WORDS = 4096 };

#define NS_PER_S 1000000000ull

static struct {
    unsigned right, wrong, retries, victims, blamed, refused;
} counts;

static bh_context *context;

static void complain(const char *what, bh_status status, const char *message) {
    fprintf(stderr, "%s: %s: %s\n", what, bh_status_name(status), message);
}

static bh_kernel *compile(unsigned request, const char *tenant) {
    char text[512];
    bh_detail why = {0};
    bh_kernel *kernel = NULL;
    snprintf(text, sizeof text,
             "#version 450\n"
             "layout(local_size_x = 64) in;\n"
             "layout(set = 0, binding = 0) buffer Data { uint data[]; };\n"
             "void main() {\n"
             "    uint i = gl_GlobalInvocationID.x, x = i;\n"
             "    for (uint k = 0u; k < 64u; k++) { x = x * 1664525u + %uu; }\n"
             "    if (i < %uu) { data[i] = x; }\n"
             "}\n",
             request * 2 + 1, (unsigned)WORDS);
    const bh_source source = {.struct_size = sizeof source,
                              .text = text,
                              .name = "filter.comp",
                              .tenant = tenant,
                              .deadline_ns = 60 * NS_PER_S};
    const bh_status status = bh_kernel_create_source(context, &source, NULL, &kernel, &why);
    if (status != BH_OK) {
        complain("compile", status, why.message);
        counts.refused++;
    }
    return kernel;
}

static int is_right(const uint32_t *data, unsigned request) {
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t x = i;
        for (int k = 0; k < 64; k++) {
            x = x * 1664525u + (request * 2 + 1);
        }
        if (data[i] != x) {
            return 0;
        }
    }
    return 1;
}

/* Runs it once. Returns 1 if it is to be submitted again. */
static int launch(bh_stream *stream, bh_kernel *kernel, unsigned request) {
    static uint32_t data[WORDS];
    bh_detail why = {0};
    bh_buffer *buffer = NULL;
    bh_event *event = NULL;
    bh_verdict verdict = {.struct_size = sizeof verdict};
    int again = 0;
    bh_status status = bh_buffer_create(context, sizeof data, NULL, &buffer, &why);
    const bh_binding binding = {.buffer = buffer, .size = BH_WHOLE_SIZE, .access = BH_ACCESS_WRITE};
    if (status == BH_OK) {
        status = bh_launch(stream, kernel, (uint32_t[]){WORDS / 64, 1, 1}, &binding, 1, NULL, 0,
                           &event, &why);
    }
    if (status != BH_OK) {
        complain("launch", status, why.message);
        counts.refused++;
    } else if (bh_event_wait(event, BH_FOREVER) == BH_OK) {
        status = bh_buffer_read(buffer, 0, data, sizeof data, BH_FOREVER, &why);
        counts.right += status == BH_OK && is_right(data, request);
        counts.wrong += status != BH_OK || !is_right(data, request);
    } else if (bh_event_verdict(event, &verdict) == BH_OK) {
        again = bh_verdict_classify(&verdict) == BH_STATUS_CLASS_VICTIM;
        counts.victims += (unsigned)again;
        counts.blamed += !again || verdict.blame == BH_BLAME_CERTAIN;
        if (!again) {
            complain("verdict", verdict.status, verdict.message);
        }
    }
    bh_event_release(event);
    bh_buffer_release(buffer);
    return again;
}

int main(int argc, char **argv) {
    const unsigned requests = argc > 2 ? (unsigned)atoi(argv[1]) : 0,
                   most = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    const char *tenants[] = {"one", "two"};
    bh_detail why = {0};
    bh_stream *streams[STREAMS];
    bh_context_options settings = {.struct_size = sizeof settings};
    if (bh_context_create(&settings, &context, &why) != BH_OK) {
        complain("context", why.status, why.message);
        return 2;
    }
    for (int i = 0; i < STREAMS; i++) {
        char name[16];
        snprintf(name, sizeof name, "filter-%d", i);
        bh_stream_options options = {.struct_size = sizeof options};
        options.name = name;
        options.tenant = tenants[i % 2];
        options.deadline_ns = 10 * NS_PER_S;
        if (bh_stream_create(context, &options, &streams[i], &why) != BH_OK) {
            complain("stream", why.status, why.message);
            return 2;
        }
    }
    for (unsigned request = 0; request < requests; request++) {
        bh_kernel *kernel = compile(request, tenants[request % STREAMS % 2]);
        unsigned retries = 0;
        while (kernel && launch(streams[request % STREAMS], kernel, request) && retries < most) {
            retries++;
        }
        counts.retries += retries;
        bh_kernel_release(kernel);
    }
    for (int i = 0; i < STREAMS; i++) {
        bh_stream_release(streams[i]);
    }
    bh_context_destroy(context);
    printf("{\"right\": %u, \"wrong\": %u, \"retries\": %u, \"victims\": %u, \"blamed\": %u, "
           "\"refused\": %u}\n",
           counts.right, counts.wrong, counts.retries, counts.victims, counts.blamed,
           counts.refused);
    return counts.right == requests && !counts.blamed ? 0 : 1;
}

#include "common.h"
#include "base/sort.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t bench_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t bench_quantile(uint64_t *samples, size_t count, unsigned permille) {
    bhi_sort_u64(samples, count);
    size_t rank = (count * permille + 999) / 1000;
    return samples[rank > 0 ? rank - 1 : 0];
}

void bench_die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

void *bench_allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (!memory) {
        bench_die("out of memory");
    }
    return memory;
}

/* -- options ---------------------------------------------------------------------------------- */

void bench_help(int argc, char **argv, const char *usage) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            exit(0);
        }
    }
}

void bench_bad_usage(const char *argument, const char *usage) {
    fprintf(stderr, "%s: %s is no option, or lacks its value\n%s", program_invocation_short_name,
            argument, usage);
    exit(2);
}

unsigned bench_number(const char *option, const char *text, unsigned least, unsigned most) {
    char *end;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value < least || value > most) {
        fprintf(stderr, "%s: %s '%s': not a number from %u to %u\n", program_invocation_short_name,
                option, text, least, most);
        exit(2);
    }
    return (unsigned)value;
}

void bench_parse(int argc, char **argv, const struct bench_option *options, const char *usage) {
    bench_help(argc, argv, usage);
    for (int i = 1; i < argc; i++) {
        const struct bench_option *option = options;
        const size_t length = strcspn(argv[i], "=");
        while (option->name &&
               (strncmp(option->name, argv[i], length) != 0 || option->name[length])) {
            option++;
        }
        char *value = argv[i][length] ? argv[i] + length + 1 : NULL; /* NAME=VALUE */
        if (!option->name || (option->flag && value) ||
            (!option->flag && !value && i + 1 == argc)) {
            bench_bad_usage(argv[i], usage);
        }
        if (option->flag) {
            *option->flag = true;
            continue;
        }
        value = value ? value : argv[++i];
        if (option->text) {
            *option->text = value;
        } else {
            *option->number = bench_number(option->name, value, option->least, option->most);
        }
    }
}

/* -- the library ------------------------------------------------------------------------------ */

_Thread_local bh_detail bench_why;

void bench_must(bh_status status, const char *call) {
    if (status != BH_OK) {
        bench_die("%.*s: %s: %s", (int)strcspn(call, "("), call, bh_status_name(status),
                  bench_why.status == status ? bench_why.message : bh_status_text(status));
    }
}

bh_context *bench_context(const bh_context_options *options) {
    bh_context *context;
    BENCH_MUST(bh_context_create(options, &context, &bench_why));
    return context;
}

bh_stream *bench_stream(bh_context *context, const bh_stream_options *options) {
    bh_stream *stream;
    BENCH_MUST(bh_stream_create(context, options, &stream, &bench_why));
    return stream;
}

bh_kernel *bench_kernel(bh_context *context, const uint32_t *words, size_t bytes,
                        const bh_kernel_options *options) {
    bh_kernel *kernel;
    BENCH_MUST(bh_kernel_create_spirv(context, words, bytes, options, &kernel, &bench_why));
    return kernel;
}

void bench_ready(bh_stream *stream) {
    BENCH_MUST(bh_stream_wait_ready(stream, BENCH_TIMEOUT_NS, &bench_why));
}

bh_buffer *bench_buffer(bh_context *context, bh_stream *stream, uint64_t memory, uint64_t bytes) {
    bh_buffer *buffer;
    BENCH_MUST(bh_buffer_create(context, bytes,
                                BENCH_WITH(bh_buffer_options, .stream = stream, .memory = memory),
                                &buffer, &bench_why));
    return buffer;
}

void *bench_map(bh_buffer *buffer, bh_map_intent intent) {
    void *bytes;
    BENCH_MUST(bh_buffer_map(buffer, intent, BENCH_TIMEOUT_NS, &bytes, &bench_why));
    return bytes;
}

bh_event *bench_submit(bh_stream *stream, const bh_submit_info *info) {
    bh_event *event;
    BENCH_MUST(bh_submit(stream, info, &event, &bench_why));
    return event;
}

bh_event *bench_launch(bh_stream *stream, bh_kernel *kernel, const uint32_t groups[3],
                       const bh_binding *bindings, uint32_t binding_count, const void *push,
                       uint32_t push_size) {
    bh_event *event;
    BENCH_MUST(bh_launch(stream, kernel, groups, bindings, binding_count, push, push_size, &event,
                         &bench_why));
    return event;
}

void bench_await(bh_event *event) {
    if (bh_event_wait(event, BENCH_TIMEOUT_NS) != BH_OK) {
        bh_verdict verdict = {.struct_size = sizeof verdict};
        bench_die("a job is not READY: %s", bh_event_verdict(event, &verdict) == BH_OK
                                                ? verdict.message
                                                : "it has not ended");
    }
}

void bench_finish(bh_event *event) {
    bench_await(event);
    bh_event_release(event);
}

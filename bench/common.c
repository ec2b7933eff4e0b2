#include "common.h"

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

void bench_die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

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
    const char *digits = text ? text : "";
    char *end;
    errno = 0;
    const unsigned long value = strtoul(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || *end || errno || value < least || value > most) {
        fprintf(stderr, "%s: %s '%s': not a number from %u to %u\n", program_invocation_short_name,
                option, digits, least, most);
        exit(2);
    }
    return (unsigned)value;
}

void bench_must(bh_status status, const char *call, const bh_detail *detail) {
    if (status != BH_OK) {
        bench_die("%s: %s: %s", call, bh_status_name(status),
                  detail ? detail->message : bh_status_text(status));
    }
}

bh_buffer *bench_buffer(bh_context *context, bh_stream *stream, uint64_t memory, uint64_t bytes) {
    bh_buffer_options options = {.struct_size = sizeof options};
    options.stream = stream;
    options.memory = memory;
    bh_buffer *buffer = NULL;
    bh_detail detail;
    bench_must(bh_buffer_create(context, bytes, &options, &buffer, &detail), "bh_buffer_create",
               &detail);
    return buffer;
}

void bench_finish(bh_event *event) {
    bh_verdict verdict = {.struct_size = sizeof verdict};
    if (bh_event_wait(event, 60ull * 1000 * 1000 * 1000) != BH_OK) {
        bench_die("a job is not READY: %s", bh_event_verdict(event, &verdict) == BH_OK
                                                ? verdict.message
                                                : "it has not ended");
    }
    bh_event_release(event);
}

/* What every benchmark does: read its options, take the time, use the library, and end with a
 * message where something fails. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_TIMEOUT_NS (60ull * 1000 * 1000 * 1000)

/* CLOCK_MONOTONIC. */
uint64_t bench_now_ns(void);
/* The |permille|-th quantile (nearest rank). Sorts |samples|; |count| is at least 1. */
uint64_t bench_quantile(uint64_t *samples, size_t count, unsigned permille);
/* Prints the program's name and the message, and exits with status 1. */
__attribute__((noreturn, format(printf, 1, 2))) void bench_die(const char *format, ...);
/* Zeroed memory for |count| of |size|. */
void *bench_allocate(size_t count, size_t size);

/* -- options ---------------------------------------------------------------------------------- */

/* One of |flag|, |text| and |number| says where its value goes. */
struct bench_option {
    const char *name; /* NULL after the last */
    bool *flag;
    const char **text;
    unsigned *number, least, most; /* decimal */
};

/* Reads the command line. Prints |usage| on standard output and exits with status 0 if an argument
 * is --help; complains and exits with status 2 where one is not known or has a bad value. */
void bench_parse(int argc, char **argv, const struct bench_option *options, const char *usage);
/* The parts of that, for a program that takes no options. */
void bench_help(int argc, char **argv, const char *usage);
__attribute__((noreturn)) void bench_bad_usage(const char *argument, const char *usage);
unsigned bench_number(const char *option, const char *text, unsigned least, unsigned most);

/* -- the library: what fails ends the program --------------------------------------------------- */

extern _Thread_local bh_detail bench_why; /* of the last call of this thread that was given it */

#define BENCH_MUST(call) bench_must((call), #call)
void bench_must(bh_status status, const char *call);

/* A struct of options with these fields, such as (bh_stream_options, .device = "any"). */
#define BENCH_WITH(type, ...) (&(type){.struct_size = sizeof(type), __VA_ARGS__})

/* |options| may be NULL. */
bh_context *bench_context(const bh_context_options *options);
bh_stream *bench_stream(bh_context *context, const bh_stream_options *options);
bh_kernel *bench_kernel(bh_context *context, const uint32_t *words, size_t bytes,
                        const bh_kernel_options *options);
/* Waits until |stream| has a worker. */
void bench_ready(bh_stream *stream);
/* A buffer in |memory| (BH_MEMORY_…) of |stream|, which is NULL for the host's. */
bh_buffer *bench_buffer(bh_context *context, bh_stream *stream, uint64_t memory, uint64_t bytes);
void *bench_map(bh_buffer *buffer, bh_map_intent intent);
bh_event *bench_submit(bh_stream *stream, const bh_submit_info *info);
bh_event *bench_launch(bh_stream *stream, bh_kernel *kernel, const uint32_t groups[3],
                       const bh_binding *bindings, uint32_t binding_count, const void *push,
                       uint32_t push_size);
/* Waits for a job, for a minute at most. Ends the program where it is not READY. */
void bench_await(bh_event *event);
void bench_finish(bh_event *event); /* and releases it */

#endif

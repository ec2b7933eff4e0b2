/* What every benchmark does: take the time, and end with a message. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <bulkhead/bulkhead.h>
#include <stdint.h>

/* CLOCK_MONOTONIC. */
uint64_t bench_now_ns(void);
/* Prints the program's name and the message, and exits with status 1. */
__attribute__((noreturn, format(printf, 1, 2))) void bench_die(const char *format, ...);
/* Prints |usage| on standard output and exits with status 0 if an argument is --help. */
void bench_help(int argc, char **argv, const char *usage);
/* Prints that |argument| is not known or lacks its value, then |usage|; exits with status 2. */
__attribute__((noreturn)) void bench_bad_usage(const char *argument, const char *usage);
/* The number in |text|, the value of |option|. Where it is not a decimal number from |least| to
 * |most|, prints so and exits with status 2. |text| may be NULL: no value. */
unsigned bench_number(const char *option, const char *text, unsigned least, unsigned most);
/* Ends the program where |status| is not BH_OK. |detail| may be NULL. */
void bench_must(bh_status status, const char *call, const bh_detail *detail);
/* A buffer in |memory| (BH_MEMORY_…) of |stream|. */
bh_buffer *bench_buffer(bh_context *context, bh_stream *stream, uint64_t memory, uint64_t bytes);
/* Waits for a job, for a minute at most, and releases it. Ends the program where it is not READY.
 */
void bench_finish(bh_event *event);

#endif

/* What tests of the whole library share: a context on the test build's worker, streams, the
 * shipped kernels, filled buffers. Every function fails the test when something is wrong.
 *
 * What a test makes, by these functions or by the API itself, and does not release, is released after
 * it, the last one first (owned.c). A test releases what its subject is. */
#ifndef BHT_FIXTURE_H
#define BHT_FIXTURE_H

#include "harness.h"
#include <bulkhead/array.h>
#include <bulkhead/bulkhead.h>
#include <bulkhead/device.h>
#include <bulkhead/doctor.h>
#include <bulkhead/file.h>
#include <bulkhead/inspect.h>
#include <bulkhead/quarantine.h>
#include <bulkhead/stats.h>
#include <bulkhead/template.h>
#include <bulkhead/trace.h>

#define FX_SECONDS (20000000000ull * bht_slowness()) /* how long any wait of a test may take */
#define FX_MS      1000000ull

/* The value that ends tests/system/gate.comp. */
#define FX_GATE_OPEN 0x600D600Du

/* A worker; on a GPU with its device holder. */
#define PROCESSES_A_WORKER (fx_on_gpu() || fx_on_cuda() ? 2u : 1u)
/* Warden and zygote; on a GPU a sentinel. */
#define PROCESSES_A_CONTEXT (fx_on_gpu() ? 3u : 2u)

/* Fault injection needs the faulty worker: |faults| as in tests/hostile/faults.h, NULL: the real
 * one. */
bh_context *fx_context(const char *faults);
bh_context *fx_context_with(bh_context_options options, const char *faults);
bh_context_options fx_options(void);
/* Calls |call| in the log callback of a context of its own: there nothing may wait. */
void fx_in_log_callback(void (*call)(void *user), void *user);
/* The defaults, but for the compile deadline and the grace time: a busy machine takes its time. */
bh_stream_options fx_stream_options(void);
bh_stream *fx_stream(bh_context *context, const char *name, uint64_t deadline_ns);
bh_stream *fx_stream_on(bh_context *context, const char *device);
bh_stream *fx_stream_with(bh_context *context, bh_stream_options options);
/* Prints the state of every context that fx_context made and that is still open, and a kept log:
 * what a failed assert and a test that has run out of time do by themselves. */
void fx_describe(void);
/* Is it in what bh_context_describe says? */
bool fx_describes(bh_context *context, const char *words);
/* Runs after the test, before what it made is released: the last one that was given here, or NULL. */
void fx_end_with(void (*end)(void));
/* Waits until it is served, and returns the worker's pid. */
pid_t fx_ready(bh_stream *stream);
/* The same with another worker than |pid|, which may be dying now: between two looks at it, it is
 * ready and then none. */
pid_t fx_ready_after(bh_stream *stream, pid_t pid);
/* Waits until no process of the context is starting: on a GPU its sentinel has all abort words. */
void fx_settle(bh_context *context);
/* Kills the stream's worker, and waits until it is buried and another one is there. A stream may go
 * on while its last worker is dying: what that one had is nobody's until then (decision 4). */
void fx_replace_worker(bh_context *context, bh_stream *stream);
/* How many processes below this one are stopped, as at a fault point; *out_pid (or NULL) is one. */
size_t fx_stopped(pid_t *out_pid);
/* Waits until one is. */
pid_t fx_await_stopped(void);
/* Reaps what has ended: no child is left, also of those that others have left to this process. */
bool fx_nobody_left(void);
/* Guarded, but for the gate: nothing but its worker's death ends that one. (On a GPU the gate is
 * guarded, too: there the death of a worker whose kernel nobody stops takes the driver's 4 s.) */
bh_kernel *fx_kernel(bh_context *context, const char *name);
/* A gate that was guarded would be told from an honest kernel where the driver cuts loops short. */
bh_kernel *fx_kernel_guarded(bh_context *context, const char *name);
bh_kernel *fx_kernel_trusted(bh_context *context, const char *name);
bh_kernel *fx_kernel_entry(bh_context *context, const char *name, const char *entry);
bh_kernel *fx_kernel_with(bh_context *context, const char *name, const bh_kernel_options *options);
bh_buffer *fx_buffer(bh_context *context, uint64_t size);
bh_buffer *fx_buffer_with(bh_context *context, uint64_t size, bh_buffer_options options);
/* There is no such buffer, for |status| and with |words| in the detail; twice. */
bh_detail fx_no_buffer(bh_context *context, uint64_t size, bh_buffer_options options,
                       bh_status status, const char *words);
bh_buffer *fx_words(bh_context *context, uint32_t count, uint32_t value);
/* The mapping, whatever is in flight (BH_MAP_DISCARD at creation gives it). */
uint32_t *fx_pointer(bh_buffer *buffer);

/* One workgroup of |kernel|. */
bh_command fx_dispatch(bh_kernel *kernel, const bh_binding *bindings, uint32_t count);
/* A submission; of several commands; of one; of one that fills the whole buffer, or copies it. */
bh_event *fx_submit(bh_stream *stream, const bh_submit_info *info);
bh_event *fx_commands(bh_stream *stream, const bh_command *commands, uint32_t count);
bh_event *fx_command(bh_stream *stream, bh_command command, bh_event *const *waits,
                     uint32_t wait_count);
bh_event *fx_fill(bh_stream *stream, bh_buffer *buffer, uint32_t value);
bh_event *fx_copy(bh_stream *stream, bh_buffer *from, bh_buffer *to);
/* y = x * x over floats; returns the event. */
bh_event *fx_square(bh_stream *stream, bh_kernel *square, bh_buffer *x, bh_buffer *y);
/* Any kernel, |groups| of it; a deadline of its own, 0: the stream's. */
bh_event *fx_launch(bh_stream *stream, bh_kernel *kernel, uint32_t groups,
                    const bh_binding *bindings, uint32_t count, uint64_t deadline_ns);
/* Any kernel with one buffer at 0.0. */
bh_event *fx_run(bh_stream *stream, bh_kernel *kernel, bh_buffer *data);
/* The kernel "gate": runs until word 0 of |data| is FX_GATE_OPEN, or for minutes. */
bh_event *fx_gate(bh_stream *stream, bh_kernel *gate, bh_buffer *data);
/* With a deadline of its own (0: the stream's). */
bh_event *fx_gate_within(bh_stream *stream, bh_kernel *gate, bh_buffer *data, uint64_t deadline_ns);
/* Before the gate is launched in another way: its buffer, and that it is closed. */
void fx_note_gate(bh_buffer *data);
/* Waits until it runs: it says so in word 1. The buffer needs two words. */
void fx_await_gate(bh_buffer *data);
/* Starts a gate with words of its own, and waits until it runs: what is behind it waits until
 * fx_open(word), or for ever. */
struct fx_held {
    bh_event *event;
    bh_buffer *data; /* 64 words */
    volatile uint32_t *word;
};
struct fx_held fx_hold(bh_context *context, bh_stream *stream);
/* Lets the gate go on whose words are mapped there. On a GPU the gate opener does it. */
void fx_open(volatile uint32_t *words);
/* Releases all that the test has made, as is done after it: between the rounds of a loop. */
void fx_release_all(void);
/* For owned.c: the context is destroyed, and with it all gates are forgotten. */
void fx_forget_context(bh_context *context);
void fx_forget_gates(void);
/* $BULKHEAD_TEST_GPU is set: the tests run on a GPU (scripts/gpu-tests). */
bool fx_on_gpu(void);
/* $BULKHEAD_TEST_CUDA is set: on the fake CUDA driver (tests/cuda.cmake). Streams that name no device are
 * there, and kernels are those of tests/harness/cuda. */
bool fx_on_cuda(void);
/* What a CUDA worker's context counts as within bh_stream_options.device_memory (docs/cuda.md). On that
 * driver fx_stream_with adds it to a limit, which is then of the buffers alone, as elsewhere. */
#define FX_CUDA_CONTEXT (322ull << 20)
/* The fake CUDA driver in the place of the machine's, with |settings| (tests/fake_cuda/fake_cuda.h), for
 * contexts that are made from here on. */
void fx_cuda_install(const char *settings);
bh_verdict fx_verdict(bh_event *event);
bh_stats fx_stats(bh_context *context);
/* How many kernels are in quarantine. */
size_t fx_quarantined(bh_context *context);
/* Waits for the event and checks what became of it: its verdict. */
bh_verdict fx_expect(bh_event *event, bh_status status);
/* Runs square on the stream, with time enough whatever the stream's deadline, and checks every
 * element: the stream is in good health. */
void fx_expect_healthy(bh_context *context, bh_stream *stream);
/* The same after the test, of the last stream that was given here; NULL: of none. */
void fx_expect_healthy_after(bh_context *context, bh_stream *stream);
/* Is an index outside of workgroup memory harmless on this machine's driver? On lavapipe before
 * Mesa 26 it crashes the worker. */
bool fx_drops_outside(bh_context *context);
/* What the doctor says of |name|, until the next call. */
const bh_check *fx_doctor_says(bh_context *context, const char *name);
void fx_kill(pid_t pid, int signal);
/* Until SIGCONT; it has stopped when this returns. */
void fx_stop(pid_t pid);
/* From here on this process can make no memory cgroup, as an ordinary user: root takes them out of
 * its own snapshot, others have none to begin with. */
void fx_hide_cgroups(void);
/* A memory cgroup that |host| has made for its workers: its folder, or false where there is none.
 */
bool fx_find_group(pid_t host, char out[512]);
/* Is |pid| in one? */
bool fx_in_group(pid_t pid);

/* Makes the file, or replaces what is in it. */
void fx_write_file(const char *path, const void *bytes, size_t size);
bh_buffer *fx_load(bh_context *context, const bh_file_source *file);
/* bh_buffer_create with the whole of |file|, and of the memfd |fd|, in memory of the host. */
bh_status fx_from_file(bh_context *context, const bh_file_source *file, bh_buffer **out_buffer,
                       bh_detail *detail);
bh_status fx_wrap(bh_context *context, int fd, uint64_t size, bh_buffer **out_buffer,
                  bh_detail *detail);
/* The event of its load. */
bh_event *fx_load_event(bh_buffer *buffer);
/* Waits until |buffer| may be read, and returns its bytes; or only whether it may. */
const void *fx_mapped(bh_buffer *buffer);
bh_status fx_content(bh_buffer *buffer);

/* Contexts of |options| have their log kept; how many of its lines have |words|, and how many of
 * |level| have |more| as well. */
void fx_keep_log(bh_context_options *options);
unsigned fx_logged(const char *words);
unsigned fx_logged_but(const char *words, const char *without);
unsigned fx_logged_at(bh_log_level level, const char *words, const char *more);
void fx_forget_log(void);

#endif

/* Fault injection, compiled into bulkhead-worker-faulty only (BHI_FAULTS=1); nothing otherwise.
 *
 * $BULKHEAD_TEST_FAULTS, read once by the zygote: a comma-separated list of
 *     WORKER:POINT:NTH=ACTION
 *   WORKER  ordinal of the worker in its zygote, from 1; * for every worker; or sentinel, for the
 *           first sentinel (the ordinals do not count sentinels)
 *   POINT   a name used in BHI_FAULT_POINT("…")
 *   NTH     which passage of the point in that worker, from 1; or * for every passage
 *   ACTION  segv, abort, kill, stop, exit0, exit7
 *           sigsys                      execve, which the filter forbids
 *           hang                        sleeps for ever
 *           spin                        endless loop
 *           pause                       20 ms
 *           flood                       sends control messages for ever
 *           garbage                     fills progress with random bytes, then sleeps for ever
 *           fail                        the call guarded by BHI_FAULT_FAILS fails
 *           oom_host, oom_device, lost  the result of a Vulkan call
 *           close, close_hang           closes all descriptors; the second then sleeps for ever
 *           hang_up                     closes the socket that descriptors come through
 *           hoard                       takes 2 GiB that RLIMIT_DATA does not count
 *           ring, drain                 ring the doorbell for ever; drain takes each ring back
 *           unblock                     clears O_NONBLOCK on what it shares with the supervisor
 *                                       (only before filter A, which forbids ioctl)
 *           unlisted                    a system call that no table has
 *           hand_out                    sends all that it has open through its side channel
 *           and, where a buffer is attached, the actions of tamper.h
 *
 * An item plan=PATH names a file of plan.h: a fault that a test chooses later. notes=PATH, the last
 * item, names a file of notes.h, which tells the test what has happened. An unknown point or action
 * ends the zygote.
 */
#ifndef BHI_WORKER_FAULTS_FAULTS_H
#define BHI_WORKER_FAULTS_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

#define BHI_SENTINEL_ORDINAL 1000001u /* of the first sentinel; no worker's ordinal is as large */

#if BHI_FAULTS
void bhi_faults_init(void);               /* zygote: reads the variable */
void bhi_faults_worker(unsigned ordinal); /* worker, after fork */
void bhi_faults_unplanned(void); /* a tracer: what a test plans (plan.h) is meant for workers */
struct bhi_progress;
struct bhi_channel;
void bhi_faults_targets(struct bhi_progress *progress, struct bhi_channel *channel);
bool bhi_fault_point(const char *name); /* true: action `fail` is due here */
/* A call that every worker makes many times has two names: one while the worker starts, one from
 * `ready` on. Calls of the zygote do not count. */
bool bhi_fault_call(const char *starting, const char *running);  /* true: it fails */
int bhi_fault_vulkan(const char *starting, const char *running); /* a VkResult; 0: none */
/* Does nothing any more, and keeps no processor from other tests, as a loop would. */
_Noreturn void bhi_fault_hang(void);
/* A place where a worker holds a buffer, for the actions of tamper.h. */
void bhi_fault_tamper(const char *name, int fd, void *pointer, size_t bytes);
#define BHI_FAULT_CALL(name)                       bhi_fault_call("start_" name, name)
#define BHI_FAULT_TAMPER(name, fd, pointer, bytes) bhi_fault_tamper(name, fd, pointer, bytes)
#define BHI_FAULT_POINT(name)                      ((void)bhi_fault_point(name))
#define BHI_FAULT_FAILS(name)                      bhi_fault_point(name)
#define BHI_FAULT_HANG()                           bhi_fault_hang()
#else
#define BHI_FAULT_HANG()                           ((void)0)
#define BHI_FAULT_POINT(name)                      ((void)0)
#define BHI_FAULT_FAILS(name)                      false
#define BHI_FAULT_CALL(name)                       false
#define BHI_FAULT_TAMPER(name, fd, pointer, bytes) ((void)0)
#endif

/* The points; most of the lies are told by tests/hostile/lies.c. "(fail: …)" is what the action `fail` does
 * there; "it" is the worker.
 *   spawned        (fail: the zygote reports the worker only after the worker has reported ready)
 *   capabilities   (fail: it keeps them)      token   (fail: it sends a wrong one)
 *   sandbox, connect, hello, device, warm_up, lock_down, ready     while starting
 *   words_none, words_two, words_other, words_size   (fail: it sends its abort words without a
 *                  descriptor, with two, with one of something else, with too large a size)
 *   poses_as_gpu   (fail: a driver on the processor reports a discrete GPU that exports memory)
 *   fork_request, before_fork, after_fork   in the zygote: a worker was asked for, is about to be
 *                  forked, was forked and the host does not know yet
 *   exit_report    in the zygote: a worker has ended, the host does not know yet
 *   reap           in the zygote: the host knows, the zygote has not reaped the worker yet
 *   say            in the zygote (fail: a message to the host is lost)
 *   farewell       in the zygote (fail: after the host's end it waits 10 s for its workers)
 * and from `ready` on (passages during the warm-up do not count):
 *   compile        a kernel is about to be validated, guarded, compiled
 *   abort          an abort of what runs has come (fail: it is ignored)
 *   lie_deadline   (fail: it reports an abort that nobody has asked for)
 *   lie_time, lie_negative   (fail: it reports a device time that is 1 ns longer than the run, a
 *                  negative one)
 *   lie_short, lie_long, lie_untimed   a timed run of a kernel called "cheat" has ended (fail: it
 *                  reports a thousandth of the device time, 1 ns more than the run, none)
 *   lie_single     a timed run of such a kernel, the only one of its submission, has ended on the
 *                  device
 *   lie_late       a timed run of such a kernel is due (fail: it reports that it has ended, and
 *                  runs it 100 ms later)
 *   lie_asleep     an untimed run of such a kernel is due
 *   lie_load, lie_device   (fail: it reports that a file cannot be loaded, that its device is lost)
 *   merge          waiting records are about to be gathered (fail: all, however long each took)
 *   started        a submission was taken from the lane, nothing is submitted
 *   trusted        a trusted kernel is about to be submitted
 *   submitted      vkQueueSubmit has returned
 *   waited         the device is done with it (fail: it was lost meanwhile)
 *   copying        a part of a copy was submitted to the queue for copies (fail: the device is
 *                  lost)
 *   lie_compile    (fail: it reports that it compiles what it has taken, and dies)
 *   lie_pretend    (fail: it reports the same, and hangs)
 *   lie_invalid    (fail: it reports that the kernel is not valid)
 *   before_record  the device has finished, the completion record is not written
 *   torn_record    half a result is written (fail: that half is published)
 *   after_record   the completion record is published, nobody is woken
 *   attach         a buffer is being attached
 *   tamper_input, tamper_output   a buffer that the worker may only read, may write is mapped
 *   import_read_only   (fail: the device cannot import a read-only mapping)
 *   kernel_create  a kernel is being created
 *   multiplies_wrongly   (fail: the device adds where a kernel multiplies floats)
 *   learn          a spare is about to compile a kernel before it is needed
 *   learned        it has compiled it, or could not (fail: it reports that it had no memory)
 *   lie_learned, lie_learned_twice   (fail: it reports another kernel, reports it twice)
 *   pipeline       the driver is about to compile a kernel (fail: VK_ERROR_UNKNOWN)
 *   make, made     device memory is about to be made; is made and cleared and not yet exported
 *   clear, cleared what another buffer has left in device memory is about to be cleared; is cleared
 *   make_full, import, clear_fails   (fail: no device memory is left; there is no memory to
 *                  import another worker's; memory cannot be cleared)
 *   lie_nothing, lie_other, lie_twice, lie_socket, lie_silent, lie_null   (fail: instead of memory
 *                  that it has made it reports none, reports another buffer, reports twice, sends a
 *                  socket, reports nothing, sends /dev/null)
 *   lie_import     (fail: it reports a buffer that it could not import)
 *   lie_hasty      (fail: it has reported that there is no memory; it neither rings nor waits)
 * and in a loader:
 *   inspect        a header is about to be parsed
 *   inspected      it is parsed; next is the check whether the file has changed meanwhile
 *   lie_offset, lie_wrap, lie_bytes, lie_dtype, lie_no_dtype, lie_dimensions, lie_empty, lie_shape,
 *   lie_text, lie_list_count, lie_list_offset, lie_list_dimensions, lie_list_name
 *                  (fail: this part of its report on the file is false)
 *   load           a file is about to be read; next is the check that it is still the same
 *   load_read      a piece of it was read (fail: EIO)
 *   short_read     a piece is about to be read (fail: 1,000 bytes at most)
 *   load_write     a piece is about to be written to the buffer
 *   loaded         all is written; next is the check whether the file has changed meanwhile
 * and in a sentinel:
 *   import         abort words are about to be imported
 *   set            the abort words of a worker are about to be set
 * and in a compiler:
 *   compile, compiled   a source is about to be compiled, the answer is ready
 *   reflect        a module is about to be inspected
 *   lie_odd, lie_huge, lie_more, lie_magic, lie_log, lie_counts, lie_kind, lie_text_bytes,
 *   lie_status, lie_names   (fail: this part of its answer is false)
 * Calls; while the worker starts the name is start_NAME:
 *   vk             a Vulkan call that can fail
 *   vk_poll        vkGetFenceStatus
 *   alloc, map     malloc and the like; mmap; calls of the driver too
 *   send           a control message
 */

#endif

/* Fault injection, compiled into bulkhead-worker-faulty only (BHI_FAULTS=1); nothing otherwise.
 *
 * $BULKHEAD_TEST_FAULTS, read once by the zygote: a comma-separated list of
 *     WORKER:POINT:NTH=ACTION
 *   WORKER  ordinal of the worker in its zygote, from 1; sentinel: the first of these, which are
 *           not counted; or * for each
 *   POINT   a name used in BHI_FAULT_POINT("…")
 *   NTH     the how-manyth time the point is passed in that worker, from 1, or *
 *   ACTION  segv, abort, kill, stop, sigsys (an execve), exit0, exit7, hang (endless loop), flood
 *           (control messages for ever), garbage (random bytes over progress), fail (the call
 *           guarded by BHI_FAULT_FAILS fails), close (all its descriptors),
 *           close_hang (and then an endless loop), hang_up
 *           (the socket that descriptors come through), oom_host, oom_device,
 *           lost (what a Vulkan call says), hoard (2 GiB that RLIMIT_DATA does not count), pause
 * (20 ms), ring (the doorbell, for ever), drain (rings it and takes that back, for ever), unblock
 * (clears O_NONBLOCK on what it shares with the supervisor: before filter A, which knows no ioctl);
 * where a buffer is attached, also those of tamper.h An item plan=PATH names a plan.h:
 * a fault that is told later; notes=PATH, the last, a notes.h: what has happened. A point or
 * an action that is none ends the zygote.
 */
#ifndef BHI_WORKER_FAULTS_FAULTS_H
#define BHI_WORKER_FAULTS_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

#define BHI_SENTINEL_ORDINAL 1000001u /* the first one's: more than there are workers */

#if BHI_FAULTS
void bhi_faults_init(void);               /* zygote: reads the variable */
void bhi_faults_worker(unsigned ordinal); /* worker, after fork */
struct bhi_progress;
struct bhi_channel;
void bhi_faults_targets(struct bhi_progress *progress, struct bhi_channel *channel);
bool bhi_fault_point(const char *name); /* true: action `fail` is due here */
/* A call that every worker makes many times has two names: while it starts, and from `ready` on.
 * The zygote's are not counted. */
bool bhi_fault_call(const char *starting, const char *running);  /* true: it fails */
int bhi_fault_vulkan(const char *starting, const char *running); /* a VkResult; 0: none */
/* A place where a worker has a buffer in its hands, for the actions of tamper.h. */
void bhi_fault_tamper(const char *name, int fd, void *pointer, size_t bytes);
#define BHI_FAULT_CALL(name)                       bhi_fault_call("start_" name, name)
#define BHI_FAULT_TAMPER(name, fd, pointer, bytes) bhi_fault_tamper(name, fd, pointer, bytes)
#define BHI_FAULT_POINT(name)                      ((void)bhi_fault_point(name))
#define BHI_FAULT_FAILS(name)                      bhi_fault_point(name)
#else
#define BHI_FAULT_POINT(name)                      ((void)0)
#define BHI_FAULT_FAILS(name)                      false
#define BHI_FAULT_CALL(name)                       false
#define BHI_FAULT_TAMPER(name, fd, pointer, bytes) ((void)0)
#endif

/* The points:
 *   spawned        (fail: the zygote says so only when the worker has said that it is ready)
 *   holder         (fail: it is taken over, and goes on for ever)
 *   capabilities   (fail: they are kept)      token   (fail: a wrong one is sent)
 *   sandbox, connect, hello, device, warm_up, lock_down, ready     while starting
 *   words_none, words_two, words_other, words_size   (fail: its abort words come without a
 *                  descriptor, with two, with one of something else, and are said to be larger)
 *   poses_as_gpu   (fail: the driver's device, a processor, is a discrete GPU that exports memory)
 *   fork_request, before_fork, after_fork   in the zygote: a worker is asked for, about to be
 *                  forked, forked and not yet spoken of
 *   exit_report    in the zygote: a worker has ended, the host does not know
 *   reap           in the zygote: the host knows, the kernel still has the body
 *   say            in the zygote (fail: the host does not hear it)
 *   farewell       in the zygote (fail: when the host has gone it waits for its workers, 10 s)
 * and from `ready` on (what the warm-up passes does not count):
 *   compile        a kernel is about to be validated, guarded, compiled
 *   abort          what runs is told to end (fail: nobody hears it)
 *   lie_deadline   (fail: it says that it was told to end, and has)
 *   lie_time, lie_negative   (fail: it claims a nanosecond more on the device than it took, less
 *                  than none)
 *   lie_load, lie_device   (fail: it says that a file cannot be loaded, that its device is lost)
 *   merge          what waits is about to be gathered (fail: all of it, however long each took)
 *   started        a submission was taken from the lane, nothing is submitted
 *   trusted        a trusted kernel is about to be submitted
 *   submitted      vkQueueSubmit has returned
 *   lie_compile    (fail: it says that it has to compile what it has taken, and dies)
 *   lie_pretend    (fail: it says so, and hangs)
 *   lie_invalid    (fail: it says that the kernel is not valid)
 *   before_record  the device has finished, the completion record is not written
 *   torn_record    half a result is written (fail: it is published like that)
 *   after_record   the completion record is published, nobody is woken
 *   attach         a buffer is being attached
 *   tamper_input, tamper_output   one that the worker may read, write is mapped
 *   import_read_only   (fail: the device does not take such a mapping)
 *   kernel_create  a kernel is being created
 *   pipeline       the driver is about to compile a kernel (fail: VK_ERROR_UNKNOWN)
 *   make, made     device memory is about to be made, is there and cleared and not yet exported
 *   make_full, import   (fail: there is none left; what another worker made cannot be imported)
 *   lie_nothing, lie_other, lie_twice, lie_socket, lie_silent   (fail: it says of what it has made
 *                  that there is none, that it is another buffer, says it twice, hands out a
 * socket, says nothing) and in a loader: inspect        a header is about to be parsed inspected it
 * has been, whether the file has changed meanwhile is checked next lie_offset, lie_wrap, lie_bytes,
 * lie_dtype, lie_no_dtype, lie_dimensions, lie_empty, lie_shape, lie_text, lie_list_count,
 * lie_list_offset, lie_list_dimensions, lie_list_name (fail: that part of what it says of the file
 * is not true) load           a file is about to be read, all that was known of it is checked next
 *   load_read      a piece of it has been read (fail: EIO)
 *   short_read     a piece is about to be read (fail: 1,000 bytes at most)
 *   load_write     a piece is about to be written to the buffer
 *   loaded         all of it is there, whether it has changed meanwhile is checked next
 * and in a sentinel:
 *   import         abort words are about to be imported
 *   set            those of a worker are about to be set
 * and in a compiler:
 *   compile, compiled   a source is about to be compiled, the answer is there
 *   reflect        a module is about to be inspected
 *   lie_odd, lie_huge, lie_more, lie_magic, lie_log, lie_counts, lie_kind, lie_text_bytes,
 *   lie_status, lie_names   (fail: that part of its answer is not true)
 * The action `unlisted` makes a system call that no table has.
 * Calls, as start_NAME while starting:
 *   vk             a Vulkan call that can fail    vk_poll  vkGetFenceStatus
 *   alloc, map     malloc and its kin; mmap: of the driver as well
 *   send           a control message
 */

#endif

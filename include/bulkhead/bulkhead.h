/* What a first program needs of libbulkhead, and the rules that hold for every call. Whoever does
 * more includes more: file.h (buffers from files), template.h (kernels without fixed types),
 * array.h, device.h, inspect.h, quarantine.h, stats.h, doctor.h, trace.h, judge.h, cuda.h (buffers
 * in the program's own CUDA).
 *
 * Bulkhead runs GPU compute kernels that may crash or hang. The program that submits them stays
 * alive. Bulkhead does not detect wrong results. Each stream has a worker: a sandboxed process that
 * owns a Vulkan device. When a kernel or its worker fails, the event of its submission is poisoned.
 * A poisoned event has a final verdict. Submissions that depend on a poisoned event are poisoned,
 * too. No others are, except on a strict stream (bh_stream_options.strict). Rule numbers such as E1
 * and B1 refer to docs/semantics.md.
 *
 * Units. Times are nanoseconds of CLOCK_MONOTONIC. Sizes and offsets are bytes.
 *
 * Timeouts. A timeout_ns argument is relative. BH_NOW (0) does not wait. BH_FOREVER waits without
 * limit.
 *
 * Deadlines. A deadline limits how long a worker may take. It is a field of a struct, and its name
 * ends in deadline_ns or timeout_ns. 0 selects the default, which the comment of the field names.
 * BH_FOREVER removes the limit.
 *
 * Structs. One that may grow begins with struct_size: set it to its sizeof, also where the library
 * fills it in, and in the first element of an array that the library fills in. A field that is 0
 * (BH_DEFAULT) has the default that its comment names, so {.struct_size = sizeof options} is all
 * defaults.
 *
 * Threads. Every function may be called from any thread. A function blocks only where its comment
 * says so. A log callback must not block: a call that would have to wait there returns
 * BH_IN_CALLBACK at once and changes nothing.
 *
 * Errors. Most functions return bh_status. Every function may return BH_INVALID_ARGUMENT: a
 * required pointer is NULL, an object was released, or an argument is out of range. Comments list
 * only the other reasons. |detail| may be NULL. Otherwise a function that does not return BH_OK
 * fills it in; one that returns BH_OK leaves it unchanged. Functions whose status says everything
 * have no |detail|. A function that fails to create an object sets *out_… to NULL.
 *
 * Ownership. All objects except contexts and queues are reference-counted. Create returns one
 * reference, retain adds one, release drops one. Retain and release accept NULL. A submission keeps
 * what it uses alive until it has ended, whatever the caller releases meanwhile (B2). A call with
 * an object that the caller has released returns BH_INVALID_ARGUMENT, or BH_CLOSED for a destroyed
 * context, and does nothing. Do not rely on this result: a later object of the same type may get
 * the same address.
 *
 * Fork. In the child of a fork() every call that would start or wait for something returns
 * BH_FORKED and does nothing. A release does nothing, too. Events that had ended before the fork
 * can still be queried. The parent is not affected.
 *
 * Processes. The library installs no signal handlers, changes no process-wide state and prints
 * nothing. A context has a few threads with all signals blocked. A context with streams has one
 * child process, the warden, which starts the worker processes and ends them when the program ends.
 * A context that has opened files has a second child, the opener, which opens them. The program may
 * reap both. A loop that waits until the program has no children ends only after
 * bh_context_destroy.
 *
 * Versions. New fields are added at the end of a struct. A program that was built with an older 0.2
 * works with a newer library 0.2. A call returns BH_INVALID_ARGUMENT if the library does not know
 * a size, or if the program sets a field that the library does not have (docs/install.md). */
#ifndef BULKHEAD_BULKHEAD_H
#define BULKHEAD_BULKHEAD_H

#include <bulkhead/buffer.h>
#include <bulkhead/context.h>
#include <bulkhead/detail.h>
#include <bulkhead/event.h>
#include <bulkhead/kernel.h>
#include <bulkhead/queue.h>
#include <bulkhead/source.h>
#include <bulkhead/status.h>
#include <bulkhead/stream.h>
#include <bulkhead/submit.h>
#include <bulkhead/types.h>
#include <bulkhead/verdict.h>
#include <bulkhead/version.h>

#endif

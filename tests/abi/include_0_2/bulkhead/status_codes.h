/* The status codes. Generated from base/status.def. */
#ifndef BULKHEAD_STATUS_CODES_H
#define BULKHEAD_STATUS_CODES_H

/* What a call returned, or how a submission ended: what happened, and what to do. Codes from 32 on
 * say why a submission failed; calls that load, compile or inspect return them, too. A poisoned event can
 * also have a code below 32: then it reached no worker. A code never changes its value. */
typedef enum bh_status {
    BH_OK = 0,               /* success (nothing to do) */
    BH_TIMEOUT = 1,          /* the wait timed out; nothing has changed (wait again, or cancel) */
    BH_PENDING = 2,          /* the event has not ended yet (wait for the event) */
    BH_INVALID_ARGUMENT = 3, /* an argument is invalid (see the message: it names the argument) */
    BH_NO_MEMORY = 4, /* the host process is out of memory (release buffers, or raise the limit) */
    BH_SYSTEM = 5,    /* a system call failed (see the message: it names the call and errno) */
    BH_UNAVAILABLE =
        6, /* no worker can be started for this stream (run bulkhead doctor; reset the stream) */
    BH_UNSUPPORTED =
        7,         /* this machine or driver cannot do it (see the message; run bulkhead doctor) */
    BH_FORKED = 8, /* the context belongs to the parent process (create a new context after fork) */
    BH_CLOSED = 9, /* the context was destroyed (do not use it after bh_context_destroy) */
    BH_NO_DEVICE = 10, /* no device matches the selector (run bulkhead devices) */
    BH_TOO_LARGE =
        11, /* a value exceeds a limit of the interface (see the message: it names the limit) */
    BH_IN_CALLBACK =
        12, /* a completion callback must not block (call it from another thread, or with a timeout of 0) */
    BH_WORKER_SIGNAL =
        32, /* the worker was killed by a signal (fix the kernel, or update the driver: one of them crashed) */
    BH_WORKER_EXIT =
        33, /* the worker exited while it ran the submission (fix the kernel; exit_code says how the worker ended) */
    BH_SECCOMP =
        34, /* the worker made a forbidden system call (do not trust the kernel; bulkhead doctor --trace-driver checks the driver) */
    BH_DEADLINE = 35, /* the deadline passed (raise the deadline, or fix the endless loop) */
    BH_OUT_OF_HOST_MEMORY =
        36, /* the worker exceeded its memory limit (stream option memory_limit) (raise the limit, or fix the kernel) */
    BH_OUT_OF_DEVICE_MEMORY =
        37, /* the device is out of memory (use smaller buffers, fewer streams, or memory in the host (--memory host)) */
    BH_DEVICE_LOST = 38, /* the device was lost (fix the kernel: it crashed or hung the device) */
    BH_VULKAN = 39, /* a Vulkan call failed (look up vk_result; update the driver or report it) */
    BH_PROTOCOL =
        40, /* the worker broke the protocol (do not trust the kernel: it may have taken over its worker, which was killed) */
    BH_LOAD_FAILED = 41, /* an input could not be loaded (check the file that the message names) */
    BH_INVALID_KERNEL =
        42, /* the kernel is not valid SPIR-V for this device (fix what the validator names) */
    BH_COMPILE_FAILED =
        43, /* the kernel could not be compiled (fix the kernel; if the message names a limit, raise it) */
    BH_BINDING_MISMATCH =
        44, /* the bindings do not fit the kernel (see the message: it names set and binding) */
    BH_LIMIT_EXCEEDED =
        45, /* a limit of the device or of the guard is exceeded (see the message: it names the limit) */
    BH_CANCELLED = 46,      /* cancelled (submit again if you still need the result) */
    BH_ZYGOTE_LOST = 47,    /* the worker died with its zygote (submit again) */
    BH_CONTEXT_CLOSED = 48, /* the context was destroyed first (wait before bh_context_destroy) */
    BH_WORKER_LOST = 49,    /* its worker died while it ran another submission (submit again) */
    BH_STREAM_FAILED =
        50, /* a strict stream failed first: this one, or one that the submission depends on (see origin; reset the strict stream, overwrite what it poisoned, submit again) */
    BH_LOOP_LIMIT =
        51, /* the driver ends long loops early, so the result may be wrong (install Mesa 25 or later, or split the work into shorter loops) */
    BH_QUARANTINED =
        52, /* the kernel has killed too many workers and is refused for a while (fix the kernel; see origin, bh_quarantine_list and bh_quarantine_release) */
} bh_status;

#endif

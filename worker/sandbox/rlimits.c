/* Resource limits. RLIMIT_AS is not among them: GPU drivers reserve huge ranges of addresses. For
 * other drivers the supervisor sets it (supervisor/worker/address_space.h). */
#include "worker/sandbox/sandbox.h"

#include <errno.h>
#include <malloc.h>
#include <sys/resource.h>

/* RLIMIT_NPROC counts all threads of the user namespace, that is, of all workers together. */
#define THREADS 4096

static int lower(int resource, const char *name, uint64_t value, struct bhi_error *failure) {
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "read a limit", .text = name,
                         .sys_errno = errno);
    }
    rlim_t wanted = (rlim_t)value;
    if (limit.rlim_max == RLIM_INFINITY || wanted < limit.rlim_max) {
        limit.rlim_max = wanted;
    }
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit((__rlimit_resource_t)resource, &limit) != 0) {
        return BHI_ERROR(failure, BH_REASON_STEP, "set a limit", .text = name, .sys_errno = errno);
    }
    return 0;
}

int bhi_sandbox_rlimits(const struct bhi_driver *driver, uint64_t memory_limit, bool *out_memory,
                        struct bhi_error *failure) {
    const struct bhi_driver_limits *limits = &driver->info->limits;
    int r;
    if ((r = lower(RLIMIT_CORE, "RLIMIT_CORE", 0, failure)) != 0 ||
        (r = lower(RLIMIT_NOFILE, "RLIMIT_NOFILE", limits->descriptors, failure)) != 0 ||
        (r = lower(RLIMIT_FSIZE, "RLIMIT_FSIZE", limits->file_bytes, failure)) != 0 ||
        (r = lower(RLIMIT_NPROC, "RLIMIT_NPROC", THREADS, failure)) != 0 ||
        (r = lower(RLIMIT_MSGQUEUE, "RLIMIT_MSGQUEUE", 0, failure)) != 0 ||
        (r = lower(RLIMIT_SIGPENDING, "RLIMIT_SIGPENDING", 64, failure)) != 0 ||
        (r = lower(RLIMIT_RTPRIO, "RLIMIT_RTPRIO", 0, failure)) != 0 ||
        (r = lower(RLIMIT_NICE, "RLIMIT_NICE", 0, failure)) != 0) {
        return r;
    }
    if (limits->locked != UINT64_MAX &&
        (r = lower(RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK", limits->locked, failure)) != 0) {
        return r;
    }
    *out_memory = false;
#if !BHI_SANITIZED /* a sanitizer's shadow memory is private and writable, and larger than any
                    * limit */
    if (memory_limit != 0) {
        if ((r = lower(RLIMIT_DATA, "RLIMIT_DATA", memory_limit, failure)) != 0) {
            return r;
        }
        /* Each arena would reserve 64 MiB of addresses, which count like memory under this
         * limit. */
        if (!bhi_driver_is_gpu(driver->info)) {
            (void)mallopt(M_ARENA_MAX, 1);
        }
        *out_memory = true;
    }
#else
    (void)memory_limit;
#endif
    return 0;
}

/* Kernels that have ended workers, and are refused for a while (K5). Included by bulkhead.h.
 *
 * A kernel whose runs have ended bh_context_options.quarantine_deaths workers of one tenant is
 * quarantined there: what launches it ends QUARANTINED at once, and no worker hears of it. A run
 * ends its worker where that is killed by a signal, by the sandbox's filter, at its deadline or by
 * its memory limit, exits, or loses its device. A submission that is ended at its deadline with its
 * worker alive does not count, nor does one that is cancelled, or lost with another one's worker. A
 * death in a submission that launches several different kernels counts for none of them: nobody
 * knows which it was.
 *
 * Only certain blame counts (bh_verdict.blame): where the worker had been given another kernel,
 * that one may have done it. A kernel whose blame is suspected is tried: its next launch gets a
 * worker that has been given nothing else, and nothing else comes to that worker until it has
 * ended. Once a launch has ended on such a worker, which lives, it shares workers again
 * (docs/trust.md).
 *
 * A kernel that the driver's compiler crashed on, or did not get done with, is not given to it
 * again either: what uses it ends COMPILE_FAILED at once. One is enough for that.
 *
 * All of that is remembered for quarantine_ns after the kernel's last death, for each tenant
 * (bh_stream_options.tenant) on its own, in this context. The verdict of what is refused has
 * executed no, its origin is the event of the last death, and its message tells of it and when it
 * expires.
 */
#ifndef BULKHEAD_QUARANTINE_H
#define BULKHEAD_QUARANTINE_H

#include <bulkhead/bulkhead.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bh_quarantined {
    char tenant[64];
    char kernel_name[64]; /* as it was called when it ended a worker */
    uint8_t kernel_hash[32];
    bh_status status; /* what its submissions end with: BH_QUARANTINED or BH_COMPILE_FAILED */
    bh_status cause;  /* of the last death: the verdict's status then, signal and so on */
    int32_t signal;
    uint32_t deaths;     /* that are remembered */
    uint64_t origin;     /* id of the event of the last death */
    uint64_t since_ns;   /* of the first death; CLOCK_MONOTONIC */
    uint64_t expires_ns; /* BH_FOREVER: never by itself */
    char message[512];   /* of the last death */
} bh_quarantined;

/* What is refused now, of all tenants, the newest last: at most |capacity| are written; *out_count
 * is how many there are (at most 1024 are remembered; those with the oldest deaths give way).
 * Returns BH_OK, BH_INVALID_ARGUMENT, BH_CLOSED, BH_FORKED. Does not block. */
BH_INLINE BH_MUST_USE bh_status bh_quarantine_list(bh_context *context, bh_quarantined *out_entries,
                                                   size_t capacity, size_t *out_count,
                                                   bh_detail *detail) {
    return bh_quarantine_list_sized(context, out_entries, capacity, sizeof *out_entries, out_count,
                                    detail);
}
/* Forgets the deaths of one kernel of |tenant| (NULL: "") or, where |kernel_hash| is NULL, of all
 * of that tenant's: what is submitted from now on runs. Returns BH_OK, also where there were none,
 * BH_INVALID_ARGUMENT, BH_CLOSED, BH_FORKED. Does not block. */
BH_API BH_MUST_USE bh_status bh_quarantine_release(bh_context *context, const char *tenant,
                                                   const uint8_t kernel_hash[32],
                                                   bh_detail *detail);

#ifdef __cplusplus
}
#endif
#endif

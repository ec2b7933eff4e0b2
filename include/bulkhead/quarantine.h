/* Quarantine: kernels that have ended workers are refused for a while (K5).
 *
 * Deaths. A death of a kernel is a run that ends its worker. A kernel is quarantined for a tenant
 * after bh_context_options.quarantine_deaths deaths of that tenant's workers. Its launches then end
 * QUARANTINED at once and reach no worker. A run ends its worker if the worker exits, loses its
 * device, or is killed: by a signal, by the sandbox's filter, at the deadline of the submission, or
 * for exceeding its memory limit. These are not counted as a death of the kernel:
 *   - a submission that is cancelled
 *   - one that stops at its deadline while its worker lives on
 *   - one that loses a GPU after 3.5 s or longer (docs/trust.md)
 *   - one whose deadline passes before it begins, while its buffers are imported
 *   - one whose compile deadline passes: the machine may be busy
 *   - one that is lost because another one ended the worker
 *   - one that launches several different kernels
 *   - a protocol violation of its worker
 *
 * Blame. Only certain blame counts (bh_verdict.blame). If the blame is suspected, the kernel is on
 * trial: its next launch gets a worker that has run no other kernel, and that runs none until the
 * launch has ended. The trial ends when a launch that was not cancelled has ended on a fresh
 * worker, READY or not, and the worker still lives (docs/trust.md).
 *
 * Deadlines. With bh_context_options.quarantine_deadlines, a kernel is also quarantined after so
 * many launches in a row that passed their deadline, whether or not their workers lived on. One
 * that ends READY starts the count anew, whatever else its submission launches. Only certain blame
 * counts, as above.
 *
 * Compilers. A kernel whose compilation ended its worker (a crash, an exit, or the memory limit)
 * is not compiled again. One such death is enough. Its submissions then end
 * COMPILE_FAILED at once. The same holds if the worker was a spare that compiled the kernel ahead
 * of use (docs/operating.md). It also holds for a source (bh_kernel_create_source,
 * bh_module_compile) that crashed its compiler, made it exit, or exceeded its memory limit; its
 * deadline does not count. The source is named by its bh_source.name; kernel_hash is that of the
 * source.
 *
 * Memory. The context remembers this per tenant (bh_stream_options.tenant, bh_source.tenant)
 * for quarantine_ns after the kernel's last death. The verdict of a refused submission has executed
 * no. Its origin is the event of the last death; if a spare died, it is the submission's own. Its
 * message describes that death and says when it expires. */
#ifndef BULKHEAD_QUARANTINE_H
#define BULKHEAD_QUARANTINE_H

#include <bulkhead/detail.h>
#include <bulkhead/types.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel that is refused. */
typedef struct bh_quarantined {
    size_t struct_size;      /* sizeof(bh_quarantined) */
    char tenant[64];         /* the tenant whose launches of it are refused */
    char kernel_name[64];    /* its name when it ended a worker */
    uint8_t kernel_hash[32]; /* its identity (bh_kernel_hash) */
    bh_status status;        /* of its submissions now: BH_QUARANTINED or BH_COMPILE_FAILED */
    bh_status cause;         /* status of the verdict of the last death */
    int32_t signal;          /* of the last death; 0: none */
    uint32_t deaths;         /* how many of its deaths are remembered */
    uint64_t origin;         /* id of the event of the last death; 0: a spare died */
    uint64_t since_ns;       /* of the first death; CLOCK_MONOTONIC */
    uint64_t expires_ns;     /* CLOCK_MONOTONIC; BH_FOREVER: until bh_quarantine_release */
    char message[512];       /* of the last death */
    uint64_t deadlines;      /* how many of its last launches have passed their deadline, if that is
                                why it is refused; |cause|, |origin| and times are those of the last
                                one then */
} bh_quarantined;

/* Lists what is refused now, of all tenants, the newest last. Fills in at most |capacity| elements;
 * *out_count is how many there are. The context remembers at most 1024 and forgets the oldest
 * that is not refused first. Returns BH_OK, BH_CLOSED or BH_FORKED. */
BH_API BH_MUST_USE bh_status bh_quarantine_list(bh_context *context, bh_quarantined *out_entries,
                                                size_t capacity, size_t *out_count,
                                                bh_detail *detail);
/* Forgets the deaths of one kernel of |tenant| (NULL: ""), or of all of that tenant's kernels if
 * |kernel_hash| is NULL. Later submissions run. Returns BH_OK, also if there were none, BH_CLOSED
 * or BH_FORKED. */
BH_API BH_MUST_USE bh_status bh_quarantine_release(bh_context *context, const char *tenant,
                                                   const uint8_t kernel_hash[32],
                                                   bh_detail *detail);

#ifdef __cplusplus
}
#endif
#endif

/* Statistics of a context, for graphs and alerts (docs/service.md). */
#ifndef BULKHEAD_STATS_H
#define BULKHEAD_STATS_H

#include <bulkhead/detail.h>
#include <bulkhead/types.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of processes. ARCHITECTURE.md lists what each is called in ps. */
typedef enum bh_process_kind {
    BH_PROCESS_ZYGOTE, /* forks the workers of one driver; it has a warden, which is not counted */
    BH_PROCESS_WORKER, /* serves a stream, or did until it began to end */
    BH_PROCESS_SPARE,  /* no stream has had it yet */
    BH_PROCESS_LOADER, /* loads files */
    BH_PROCESS_COMPILER, /* compiles or inspects a source */
    BH_PROCESS_SENTINEL, /* stops kernels of dead workers */
} bh_process_kind;

/* How far a process has come. */
typedef enum bh_process_state {
    BH_PROCESS_STARTING, /* asked for, and not ready yet */
    BH_PROCESS_READY,    /* works, or waits for work */
    BH_PROCESS_ENDING, /* has been told to end, or has closed its sockets; it may still be there */
    BH_PROCESS_ENDED,  /* is gone. Its exit status or the release of its device is awaited; then it
                            is no longer counted here, but in bh_stats.deaths */
} bh_process_state;

/* Elements of bh_stats.processes; those after the last bh_process_kind are 0. */
#define BH_PROCESS_KINDS 16
/* Elements of each of them. */
#define BH_PROCESS_STATES 4
/* Elements of an array that has one for each bh_status; those without a status are 0. */
#define BH_STATUSES 64
/* Elements of bh_histogram.counts. */
#define BH_BUCKETS 32

/* How often something took how long. Bucket 0 counts what took at most 1,024 ns, bucket i what took
 * more than 2^(9+i) ns and at most 2^(10+i) ns, the last one all that took longer: more than 2^40
 * ns, 18 minutes. */
typedef struct bh_histogram {
    uint64_t sum_ns;             /* of all times */
    uint64_t counts[BH_BUCKETS]; /* of each bucket by itself */
} bh_histogram;

/* What a context has and has done. Numbers whose comment says "now" go up and down; the others only
 * grow. Bytes of device memory are those that bh_context_options.device_memory limits: on a driver
 * that runs on the processor they are in the host, and counted there, too. */
typedef struct bh_stats {
    size_t struct_size;                                      /* sizeof(bh_stats) */
    uint64_t processes[BH_PROCESS_KINDS][BH_PROCESS_STATES]; /* now; [kind][state] */
    uint64_t workers_started; /* processes of all kinds but zygotes. Each is either in |processes|
                                 or in |deaths| */
    uint64_t
        deaths[BH_STATUSES]; /* of those, by bh_status. BH_OK: it was no longer needed. One that
                                     was ready once has the status that its last submission got or
                                     would have got; another one that of bh_stream_wait_ready */
    uint64_t zygotes_lost;   /* zygotes that have ended, with all their workers */
    uint64_t streams;        /* now: of the caller, and released ones with work left */
    uint64_t streams_unavailable; /* now: of those, without hope of a worker */
    uint64_t tenants;             /* now: that |out_work| has */
    uint64_t loads;          /* now: reads of files that have not ended, also of their headers */
    uint64_t load_bytes;     /* now: that they have to read; not the headers */
    uint64_t loads_ready;    /* buffers in host memory that were loaded from files */
    uint64_t loads_poisoned; /* the same, in vain */
    uint64_t compiles;       /* now: calls of a compiler that have not ended. No row of a tenant has
                                 compiles or loads */
    uint64_t host_bytes;     /* now: of buffers in host memory, also of the library's own. Without
                                 those of bh_buffer_options.memfd */
    uint64_t device_bytes;   /* now: of buffers in device memory */
    uint64_t pool_bytes;     /* now: host memory of released buffers, kept for new ones */
    uint64_t pool_blocks;    /* now: pieces of it */
    uint64_t pool_hits;      /* buffers that were made of kept memory */
    uint64_t pool_misses;    /* buffers of a size that the pool serves, but had no memory for */
    uint64_t pool_evictions; /* blocks given back to the machine: over pool_limit, or by a trim */
    uint64_t pool_zeroed_bytes;  /* overwritten with zeros for reuse */
    uint64_t device_pool_bytes;  /* now: memory of GPUs of released buffers, kept for new ones */
    uint64_t device_pool_blocks; /* now: pieces of it */
    uint64_t device_pool_hits;   /* buffers that were made of it */
    uint64_t kernels;        /* now: distinct kernels; several handles of one kernel count once */
    uint64_t kernel_bytes;   /* now: of SPIR-V in them */
    uint64_t kernels_shared; /* kernel creations that found an equal kernel */
    uint64_t kernels_introduced; /* times that a kernel was sent to a worker, which compiles it
                                    once; without those that |kernels_told| counts */
    uint64_t kernels_evicted; /* times that a worker dropped a kernel to make room (kernel_limit) */
    uint64_t kernels_told; /* times that a kernel was sent to a spare, before a launch needed it */
} bh_stats;

/* Whose work a bh_work_stats counts. */
typedef enum bh_work_scope {
    BH_WORK_CONTEXT, /* all streams', also of tenants that were forgotten */
    BH_WORK_TENANT,  /* all of its streams', also of those that are gone */
    BH_WORK_STREAM,  /* that of one stream */
} bh_work_scope;

/* What became of the caller's submissions. Each that has ended is counted once, in |ended| or in
 * |dependents|. */
typedef struct bh_work_stats {
    size_t struct_size;     /* sizeof(bh_work_stats) */
    bh_work_scope scope;    /* what it counts */
    uint32_t number;        /* of the stream: the first one of the context is 1; else 0 */
    char tenant[64];        /* its name; empty: none was given, or the scope is CONTEXT */
    char stream[64];        /* its name; empty: the scope is not STREAM */
    uint64_t queued;        /* now: in the host. This includes copies of the library's own */
    uint64_t in_flight;     /* now: given to a worker, likewise */
    uint64_t device_bytes;  /* now: of buffers made for it (bh_stream_options.device_memory) */
    uint64_t context_bytes; /* now: what the CUDA contexts of its workers count as, one for each
                                    stream of a CUDA device, within the same limit (docs/cuda.md) */
    uint64_t ended[BH_STATUSES]; /* by the bh_status of the verdict; BH_OK: READY */
    uint64_t dependents;         /* poisoned because another submission was (bh_verdict.hops is not
                                    0), except STREAM_FAILED */
    uint64_t deaths;             /* of its workers, but for those that were no longer needed */
    uint64_t restarts;           /* workers that took the place of a dead one, or tried to start */
    bh_histogram wait; /* of those that began: from bh_submit to their turn on the worker */
    bh_histogram run;  /* of the same: from there to their end, compiling included */
} bh_work_stats;

/* Fills in |out_stats|, and in |out_work| first the whole context, then each tenant, followed by
 * its streams. Fills in the first |capacity| elements, of about 1.3 KiB each; *out_count (may be
 * NULL if |capacity| is 0) is how many there are. All numbers are of one moment. A tenant without
 * streams is remembered, except the longest gone of more than 1024; the context's numbers keep what
 * it had done.
 *
 * Thread: any. Does not wait for workers. While it counts, which takes about a microsecond for
 * each stream, other calls on the context wait. A worker's death is counted when it is confirmed,
 * and the restart when the next worker is ready. Returns BH_OK; or BH_CLOSED or
 * BH_FORKED, and all is zero. */
BH_API BH_MUST_USE bh_status bh_context_stats(bh_context *context, bh_stats *out_stats,
                                              bh_work_stats *out_work, size_t capacity,
                                              size_t *out_count, bh_detail *detail);

#ifdef __cplusplus
}
#endif

#endif

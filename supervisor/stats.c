/* bh_context_stats: reads, under the lock, what the core and the supervisor count as it happens. */
#include "supervisor/stats.h"
#include "base/detail.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/context/context.h"
#include "supervisor/context/layout.h"
#include "supervisor/kernel/body.h"
#include "supervisor/stream/stream.h"
#include "supervisor/stream/tenant.h"
#include "supervisor/worker/worker_proc.h"
#include "supervisor/worker/zygote.h"

#include <string.h>

#define CALL "bh_context_stats"

static bh_process_state state_of(const struct bhi_life *life) {
    static const bh_process_state states[BHI_LIFE_STATES] = {
        [BHI_SPAWNING] = BH_PROCESS_STARTING, [BHI_HELD] = BH_PROCESS_STARTING,
        [BHI_RUNNING] = BH_PROCESS_READY,     [BHI_HUNG_UP] = BH_PROCESS_ENDING,
        [BHI_EXITING] = BH_PROCESS_ENDING,    [BHI_DOOMED] = BH_PROCESS_ENDING,
        [BHI_KILLED] = BH_PROCESS_ENDING,     [BHI_EXITED] = BH_PROCESS_ENDED,
        [BHI_HOLDING] = BH_PROCESS_ENDED,     [BHI_TOLD] = BH_PROCESS_ENDED,
        [BHI_CONFIRMED] = BH_PROCESS_ENDED,   [BHI_BURIED] = BH_PROCESS_ENDED,
    };
    return states[life->state];
}

static bh_process_kind kind_of(const struct bhi_worker *worker) {
    static const bh_process_kind kinds[] = {[BHI_WORKER_LOADER] = BH_PROCESS_LOADER,
                                            [BHI_WORKER_COMPILER] = BH_PROCESS_COMPILER,
                                            [BHI_WORKER_SENTINEL] = BH_PROCESS_SENTINEL};
    return worker->kind != BHI_WORKER_DEVICE ? kinds[worker->kind]
           : worker->core.bound              ? BH_PROCESS_WORKER
                                             : BH_PROCESS_SPARE;
}

static void count_processes(const bh_context *context, bh_stats *out) {
    static const bh_process_state states[] = {[BHI_ZYGOTE_STARTING] = BH_PROCESS_STARTING,
                                              [BHI_ZYGOTE_READY] = BH_PROCESS_READY,
                                              [BHI_ZYGOTE_LOST] = BH_PROCESS_ENDING};
    BHI_LIST_FOR(const struct bhi_worker, worker, &context->workers, link) {
        out->processes[kind_of(worker)][state_of(&worker->core.life)]++;
    }
    BHI_LIST_FOR(const struct bhi_zygote, zygote, &context->zygotes, link) {
        out->processes[BH_PROCESS_ZYGOTE][states[zygote->state]]++;
    }
}

static void count_streams(const bh_context *context, bh_stats *out) {
    struct bhi_stats loaders = context->counts.loaders;
    BHI_LIST_FOR(const struct bh_stream, stream, &context->streams, link) {
        const uint64_t pending = stream->core.queued + stream->core.in_flight;
        if (stream->kind == BHI_WORKER_LOADER) {
            out->loads += pending;
            bhi_stats_add(&loaders, &stream->core.stats);
        } else if (stream->kind == BHI_WORKER_COMPILER) {
            out->compiles += pending;
        } else {
            out->streams++;
            out->streams_unavailable += stream->core.state == BHI_STREAM_UNAVAILABLE;
        }
    }
    out->loads_ready = loaders.ended[BH_OK];
    out->loads_poisoned = loaders.dependents;
    for (size_t i = BH_OK + 1; i < BH_STATUSES; i++) {
        out->loads_poisoned += loaders.ended[i];
    }
}

void bhi_stats_of_context(const bh_context *context, bh_stats *out) {
    const struct bhi_counts *counts = &context->counts;
    const struct bhi_pool_stats *pool = &context->pool->stats,
                                *device = &context->device_pool->stats;
    const struct bhi_kernel_table *kernels = context->kernels;
    *out = (bh_stats){
        .struct_size = sizeof *out,
        .workers_started = counts->workers,
        .zygotes_lost = counts->zygotes_lost,
        .tenants = context->tenants.names.count,
        .load_bytes = counts->load_bytes,
        .host_bytes = pool->used,
        .device_bytes = context->device_memory,
        .pool_bytes = pool->bytes,
        .pool_blocks = pool->blocks,
        .pool_hits = pool->hits,
        .pool_misses = pool->misses,
        .pool_evictions = pool->evictions,
        .pool_zeroed_bytes = pool->zeroed_bytes,
        .device_pool_bytes = device->bytes,
        .device_pool_blocks = device->blocks,
        .device_pool_hits = device->hits,
        .kernels = kernels->count,
        .kernel_bytes = kernels->bytes,
        .kernels_shared = kernels->shared,
        .kernels_introduced = kernels->introduced,
        .kernels_evicted = kernels->evicted,
        .kernels_told = kernels->told,
    };
    memcpy(out->deaths, counts->deaths, sizeof out->deaths);
    count_processes(context, out);
    count_streams(context, out);
}

/* -- whose work -------------------------------------------------------------------------------- */

/* The caller's array, of |capacity| elements of |size| bytes; |count| are known so far. */
struct rows {
    void *at;
    size_t size, capacity, count;
};

/* What several streams have together: |row| has the lengths and bytes of now. */
struct sum {
    bh_work_stats row;
    struct bhi_stats stats;
};

static void put(struct rows *rows, size_t index, bh_work_stats *row,
                const struct bhi_stats *stats) {
    if (index >= rows->capacity) {
        return;
    }
    memcpy(row->ended, stats->ended, sizeof row->ended);
    row->dependents = stats->dependents;
    row->deaths = stats->deaths;
    row->restarts = stats->restarts;
    row->wait = stats->wait;
    row->run = stats->run;
    bhi_layout_put(rows->at, index, rows->size, row, sizeof *row);
}

static void add(struct sum *sum, const bh_work_stats *row, const struct bhi_stats *stats) {
    sum->row.queued += row->queued;
    sum->row.in_flight += row->in_flight;
    sum->row.device_bytes += row->device_bytes;
    sum->row.context_bytes += row->context_bytes;
    bhi_stats_add(&sum->stats, stats);
}

static void add_stream(struct rows *rows, struct sum *sum, const struct bh_stream *stream) {
    bh_work_stats row = {.scope = BH_WORK_STREAM,
                         .number = stream->number,
                         .queued = stream->core.queued,
                         .in_flight = stream->core.in_flight,
                         .device_bytes = stream->device_memory,
                         .context_bytes = stream->context_bytes};
    memcpy(row.tenant, stream->tenant, sizeof row.tenant);
    memcpy(row.stream, stream->core.name, sizeof row.stream);
    add(sum, &row, &stream->core.stats);
    put(rows, rows->count++, &row, &stream->core.stats);
}

static void add_tenants(struct rows *rows, struct sum *all, const struct bhi_list *tenants) {
    BHI_LIST_FOR(const struct bhi_tenant, tenant, tenants, link) {
        const size_t index = rows->count++;
        struct sum sum = {.row = {.scope = BH_WORK_TENANT}, .stats = tenant->gone};
        memcpy(sum.row.tenant, tenant->name, sizeof sum.row.tenant);
        BHI_LIST_EACH(one, &tenant->streams)
        add_stream(rows, &sum, BHI_CONTAINER(one, struct bh_stream, of_owner));
        add(all, &sum.row, &sum.stats);
        put(rows, index, &sum.row, &sum.stats);
    }
}

/* Lock held. */
static void fill(const bh_context *context, struct rows *rows) {
    struct sum all = {.row = {.scope = BH_WORK_CONTEXT}, .stats = context->counts.tenants};
    rows->count = 1;
    add_tenants(rows, &all, &context->tenants.busy);
    add_tenants(rows, &all, &context->tenants.idle);
    put(rows, 0, &all.row, &all.stats);
}

/* -- the call ---------------------------------------------------------------------------------- */

BH_API bh_status bh_context_stats(bh_context *context, bh_stats *out_stats, bh_work_stats *out_work,
                                  size_t capacity, size_t *out_count, bh_detail *detail) {
    struct rows rows = {.at = out_work, .capacity = capacity};
    BHI_TRY(bhi_layout_check(BHI_OURS(bh_stats), out_stats, CALL, "out_stats", detail));
    BHI_TRY(bhi_layout_stride(BHI_OURS(bh_work_stats), out_work, capacity, CALL, "out_work",
                              &rows.size, detail));
    if (capacity) {
        BHI_NEED(out_count, CALL, detail);
    }
    /* All of the array is written to here, so that no page of it has to be made under the lock. */
    bh_stats stats = {.struct_size = sizeof stats};
    const bh_work_stats nothing = {.struct_size = sizeof nothing};
    bhi_layout_give(out_stats, &stats, sizeof stats);
    for (size_t i = 0; i < capacity; i++) {
        bhi_layout_put(out_work, i, rows.size, &nothing, sizeof nothing);
    }
    bh_status status = bhi_context_check(context, CALL, detail);
    if (status == BH_OK) {
        bhi_context_lock(context);
        bhi_stats_of_context(context, &stats);
        fill(context, &rows);
        bhi_context_unlock(context);
        bhi_layout_give(out_stats, &stats, sizeof stats);
    }
    if (out_count) {
        *out_count = rows.count;
    }
    return status;
}

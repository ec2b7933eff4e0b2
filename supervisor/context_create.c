/* Creates and destroys a context, with what each room keeps for it, in order. */
#include "base/check.h"
#include "base/detail.h"
#include "base/futex.h"
#include "base/memfd.h"
#include "ipc/lane.h"
#include "ipc/refusal.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/buffer/replica.h"
#include "supervisor/compile/compilation.h"
#include "supervisor/context/context.h"
#include "supervisor/context/freelist.h"
#include "supervisor/context/layout.h"
#include "supervisor/context/room.h"
#include "supervisor/event/event.h"
#include "supervisor/file/opener.h"
#include "supervisor/kernel/body.h"
#include "supervisor/kernel/death_records.h"
#include "supervisor/kernel/usage.h"
#include "supervisor/load/loaders.h"
#include "supervisor/reactor/pipeline_cache.h"
#include "supervisor/reactor/reactor.h"
#include "supervisor/stream/placement.h"
#include "supervisor/stream/tenant.h"
#include "supervisor/submit/submit.h"
#include "supervisor/worker/launch.h"

#include <errno.h>
#include <sodium.h>

#define CREATE        "bh_context_create"
#define LEAST_IDLE_NS (1ull * 1000000) /* the reactor wakes so often for an idle worker */

/* Replaces BH_DEFAULT by the defaults, and BH_OFF by 0. */
static void fill_in(bh_context_options *options) {
    options->spares = bhi_given(options->spares, 1);
    options->restart_budget = options->restart_budget ? options->restart_budget : 16;
    options->restart_window_ns = bhi_given(options->restart_window_ns, 60ull * 1000000000);
    options->start_timeout_ns =
        options->start_timeout_ns ? options->start_timeout_ns : 30ull * 1000000000;
    options->pool_limit = bhi_given(options->pool_limit, bhi_pool_default_limit());
    options->kernel_limit = options->kernel_limit ? options->kernel_limit : 1024;
    options->kernel_limit_bytes =
        options->kernel_limit_bytes ? options->kernel_limit_bytes : 64ull << 20;
    options->quarantine_deaths = bhi_given(options->quarantine_deaths, 2);
    if (options->quarantine_deaths > UINT32_MAX) {
        options->quarantine_deaths = UINT32_MAX;
    }
    options->quarantine_ns = bhi_given(options->quarantine_ns, 600ull * 1000000000);
    options->spare_kernels = bhi_given(options->spare_kernels, 0);
    options->quarantine_deadlines = bhi_given(options->quarantine_deadlines, 0);
    options->device_memory = bhi_given(options->device_memory, 0);
}

/* A host that is tested should know why. */
static void say_chaos(bh_context *context) {
    if (context->chaos.from) {
        bhi_context_lock(context);
        bhi_context_say(context, BH_LOG_WARNING, "%s asks for faults (seed %llu)",
                        context->chaos.from, (unsigned long long)context->chaos.seed);
        bhi_context_settle_unlock(context);
    }
}

/* A context and what each room keeps for it. */
struct whole {
    struct bh_context context; /* first */
    struct bhi_pool pool;
    struct bhi_pool device_pool;
    struct bhi_kernel_table kernels;
    struct bhi_death_records death_records;
    struct bhi_compilations compilations;
    struct bhi_usages usages;
    struct bhi_cache_queue cache_queue;
    struct bhi_pipeline_cache pipeline_cache;
};

static struct bhi_freelist freelist = BHI_FREELIST_INIT(struct whole);

/* Frees the other parts of struct whole. */
static void free_parts(bh_context *context) {
    BHI_CHECK(bhi_list_empty(&context->pool->ages) && bhi_list_empty(&context->device_pool->ages));
    bhi_compilations_fini(context->compilations);
    bhi_kernel_table_fini(context->kernels);
    bhi_death_records_fini(context->death_records);
    bhi_usages_fini(context->usages);
    bhi_pipeline_cache_fini(context);
}

static void free_context(bh_context *context) {
    bhi_reactor_free(context);
    bhi_tenants_fini(context);
    bhi_placement_fini(context);
    free_parts(context);
    bhi_context_fini(context);
    bhi_freelist_give(&freelist, context);
}

static bh_status check_kernel(bh_detail *detail) {
    /* A wait that returns at once shows whether the system call exists. */
    _Atomic uint32_t word = 1;
    struct bhi_futex_wait wait = {&word, 0, false};
    const int error = bhi_futex_wait_any(&wait, 1, 0);
    if (error != -ENOSYS && error != -EPERM) {
        return BH_OK;
    }
    struct bhi_refusal why;
    bhi_refusal_find(BHI_REFUSED_CALL, -error, "", &why);
    return BHI_FAIL(detail, CREATE, BH_REASON_REFUSED, "futex_waitv", .sys_errno = -error,
                    .text = why.cause, .advice = why.setting);
}

static bh_status check_options(const bh_context_options *options, bh_detail *detail) {
    if (options->spares > 64) {
        return BHI_FAIL(detail, CREATE, BH_REASON_OVER, "options.spares", .value = options->spares,
                        .limit = 64);
    }
    if (options->spare_kernels > BHI_USAGE_KERNELS) {
        return BHI_FAIL(detail, CREATE, BH_REASON_OVER, "options.spare_kernels",
                        .value = options->spare_kernels, .limit = BHI_USAGE_KERNELS);
    }
    if (options->worker_idle_ns && options->worker_idle_ns < LEAST_IDLE_NS) {
        return BHI_FAIL(detail, CREATE, BH_REASON_ARGUMENT, "options.worker_idle_ns",
                        .value = options->worker_idle_ns, .limit = 1000000,
                        .text = "must be 0, or at least 1 ms");
    }
    return BH_OK;
}

/* Looks for what a context needs of the system and of this process. */
static bh_status check_host(bh_detail *detail) {
    BHI_TRY(check_kernel(detail));
    BHI_TRY(bhi_room_check_files(CREATE, BHI_LANE_CAPACITY + bhi_page_round(1), detail));
    BHI_TRY(bhi_room_check_process(CREATE, detail));
    BHI_TRY(bhi_room_check(CREATE, "a context with one stream", BHI_ROOM_FIRST, detail));
    if (sodium_init() < 0) {
        return BHI_FAIL(detail, "bh_context_create", BH_REASON_SYSTEM_STEP,
                        "find a source of random numbers (libsodium)");
    }
    return BH_OK;
}

/* Makes a context without threads. NULL: out of memory. */
static bh_context *make_context(const bh_context_options *options) {
    struct whole *whole = bhi_freelist_take(&freelist);
    if (!whole) {
        return NULL;
    }
    *whole = (struct whole){0};
    if (!bhi_context_init(&whole->context, &bhi_supervisor_core_ops)) {
        bhi_freelist_give(&freelist, whole);
        return NULL;
    }
    struct bh_context *context = &whole->context;
    context->free = free_context;
    context->compilations = &whole->compilations;
    context->pool = &whole->pool;
    context->device_pool = &whole->device_pool;
    context->kernels = &whole->kernels;
    context->death_records = &whole->death_records;
    context->usages = &whole->usages;
    context->cache_queue = &whole->cache_queue;
    context->pipeline_cache = &whole->pipeline_cache;
    bhi_compilations_init(context->compilations);
    bhi_pools_init(context, options->pool_limit);
    bhi_replicas_init(context);
    bhi_usages_init(context->usages);
    bhi_death_records_init(context->death_records, (uint32_t)options->quarantine_deaths,
                           options->quarantine_ns);
    context->death_records->most_deadlines = options->quarantine_deadlines;
    context->device_memory_limit = options->device_memory;
    context->settings = (struct bhi_context_settings){
        .spares = (uint32_t)options->spares,
        .spare_kernels = (uint32_t)options->spare_kernels,
        .restart_budget = options->restart_budget,
        .restart_window_ns = options->restart_window_ns,
        .start_timeout_ns = options->start_timeout_ns,
        .worker_idle_ns = options->worker_idle_ns,
        .kernel_limit = options->kernel_limit,
        .kernel_limit_bytes = options->kernel_limit_bytes,
        .log = options->log,
        .log_user = options->log_user,
    };
    (void)bhi_spin_prepare();
    return context;
}

/* Starts its threads. */
static bh_status start(bh_context *context, const bh_context_options *options, bh_detail *detail) {
    bh_status status = bhi_spawn_paths(options, &context->settings, detail);
    if (status == BH_OK) {
        int error = bhi_reactor_start(context);
        if (error) {
            status = BHI_FAIL(detail, CREATE, BH_REASON_SYSTEM_CALL, "the reactor cannot start",
                              .sys_errno = -error);
        }
    }
    int cache_error =
        bhi_pipeline_cache_start(context, status == BH_OK ? options->cache_dir : NULL);
    if (cache_error) {
        status = BHI_FAIL(detail, CREATE, BH_REASON_SYSTEM_CALL, "options.cache_dir",
                          .status = cache_error == -ENOMEM ? BH_NO_MEMORY : BH_SYSTEM,
                          .sys_errno = -cache_error);
        bhi_reactor_stop(context);
    }
    return status;
}

BH_API bh_status bh_context_create(const bh_context_options *given, bh_context **out_context,
                                   bh_detail *detail) {
    BHI_NEED(out_context, CREATE, detail);
    *out_context = NULL;
    bh_context_options options;
    BHI_TRY(
        bhi_layout_take(BHI_OURS(bh_context_options), &options, given, CREATE, "options", detail));
    fill_in(&options);
    BHI_TRY(check_options(&options, detail));
    struct bhi_chaos chaos;
    BHI_TRY(bhi_chaos_parse(&chaos, options.chaos, options.chaos_from_environment, CREATE, detail));
    BHI_TRY(check_host(detail));
    bh_context *context = make_context(&options);
    if (!context) {
        return BHI_FAIL(detail, CREATE, BH_REASON_MEMORY);
    }
    context->chaos = chaos;
    const bh_status status = start(context, &options, detail);
    if (status != BH_OK) {
        bhi_context_unref(context);
        return status;
    }
    atomic_init(&context->handle.count, 1);
    say_chaos(context);
    *out_context = context;
    return BH_OK;
}

BH_API bh_status bh_context_destroy(bh_context *context) {
    if (!context) {
        return BH_OK;
    }
    if (!bhi_handle_live(&context->handle)) {
        return BH_CLOSED;
    }
    if (bhi_context_forked(context)) {
        return BH_FORKED;
    }
    if (bhi_in_callback()) {
        return BH_IN_CALLBACK;
    }
    if (bhi_handle_drop(&context->handle) == BHI_DROP_NONE) {
        return BH_CLOSED; /* another thread was faster */
    }
    bhi_context_lock(context);
    context->closed = true;
    bhi_context_unlock(context);
    bhi_reactor_stop(context);
    bhi_pipeline_cache_stop(context); /* before the opener, which reads and writes its files */
    bhi_context_log_said(context);
    bhi_loaders_stop(context);
    bhi_opener_stop(context);
    bhi_pending_forget(context);
    bhi_compilations_drop(context);
    bhi_context_lock(context);
    context->drop_replicas(context, NULL, NULL);
    bhi_pool_close(context->pool);
    bhi_pool_close(context->device_pool);
    bhi_context_pump_unlock(context);
    bhi_context_unref(context);
    return BH_OK;
}

BH_API bh_status bh_context_reset(bh_context *context, bh_detail *detail) {
    BHI_TRY(bhi_context_check(context, "bh_context_reset", detail));
    bhi_pending_forget(context);
    bhi_loaders_forget(context);
    return BH_OK;
}

BH_API bh_status bh_context_trim(bh_context *context, uint64_t bytes, bh_detail *detail) {
    BHI_TRY(bhi_context_check(context, "bh_context_trim", detail));
    if (bytes == 0) {
        bhi_compilations_drop(context);
    }
    bhi_context_lock(context);
    if (bytes == 0) {
        context->drop_replicas(context, NULL, NULL); /* into the pools */
        bhi_loaders_trim(context);
    }
    bhi_pool_trim(context->pool, bytes);
    bhi_pool_trim(context->device_pool, bytes);
    bhi_context_pump_unlock(context);
    return BH_OK;
}

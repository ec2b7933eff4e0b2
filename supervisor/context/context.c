#include "supervisor/context/context.h"
#include "base/check.h"
#include "base/detail.h"
#include "base/futex.h"
#include "base/text.h"
#include "ipc/refusal.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/context/freelist.h"
#include "supervisor/context/layout.h"
#include "supervisor/context/room.h"
#include "supervisor/core_ops.h"
#include "supervisor/event/pending.h"
#include "supervisor/kernel/body.h"
#include "supervisor/load/loaders.h"
#include "supervisor/load/opener.h"
#include "supervisor/reactor.h"
#include "supervisor/stream.h"
#include "supervisor/worker/launch.h"
#include "supervisor/worker/worker_proc.h"

#include <errno.h>
#include <sched.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GUARD                0x62756c6bu
#define DEFAULT_KERNELS      1024u
#define DEFAULT_KERNEL_BYTES (64ull << 20)
#define SPIN_PROCESSORS      4

BH_API void bh_context_options_init_sized(bh_context_options *options, size_t size) {
    const bh_context_options defaults = {
        .spares = 1,
        .restart_budget = 16,
        .restart_window_ns = 60ull * 1000000000,
        .start_timeout_ns = 30ull * 1000000000,
        .pool_limit = bhi_pool_default_limit(),
        .kernel_limit = DEFAULT_KERNELS,
        .quarantine_deaths = 2,
        .quarantine_ns = 600ull * 1000000000,
        .kernel_limit_bytes = DEFAULT_KERNEL_BYTES,
    };
    bhi_layout_init(options, size, &defaults, sizeof defaults);
}

static struct bhi_freelist freelist = BHI_SLAB_INIT(struct bh_context);

bool bhi_context_forked(const bh_context *context) {
    return atomic_load_explicit(context->fork_guard, memory_order_relaxed) != GUARD;
}

bh_status bhi_context_refuse(const char *call, bh_detail *detail) {
    return bhi_fail(detail, BH_FORKED, 0, "%s: the context belongs to the parent process", call);
}

bh_status bhi_context_check(const bh_context *context, const char *call, bh_detail *detail) {
    if (!context)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "%s: context is NULL", call);
    if (!bhi_handle_live(&context->handle))
        return bhi_fail(detail, BH_CLOSED, 0, "%s: the context was destroyed", call);
    if (bhi_context_forked(context))
        return bhi_context_refuse(call, detail);
    bh_context *mutable = (bh_context *)(uintptr_t)context;
    pthread_mutex_lock(&mutable->lock);
    bool closed = context->closed;
    pthread_mutex_unlock(&mutable->lock);
    return closed ? bhi_fail(detail, BH_CLOSED, 0, "%s: the context was destroyed", call) : BH_OK;
}

bh_status bhi_context_release(struct bhi_handle *handle, const bh_context *context,
                              bool *out_last) {
    *out_last = false;
    if (!bhi_handle_live(handle))
        return BH_INVALID_ARGUMENT;
    if (bhi_context_forked(context))
        return BH_FORKED;
    enum bhi_drop drop = bhi_handle_drop(handle);
    *out_last = drop == BHI_DROPPED_LAST;
    return drop == BHI_DROP_NONE ? BH_INVALID_ARGUMENT : BH_OK;
}

void bhi_context_retain(bh_context *context) {
    atomic_fetch_add_explicit(&context->refs, 1, memory_order_relaxed);
}

static void drop_lines(struct bhi_list *lines);

void bhi_context_unref(bh_context *context) {
    if (atomic_fetch_sub_explicit(&context->refs, 1, memory_order_acq_rel) != 1)
        return;
    BHI_CHECK(bhi_list_empty(&context->doomed) && bhi_list_empty(&context->workers) &&
              bhi_list_empty(&context->pool.ages));
    bhi_reactor_free(context);
    bhi_callbacks_fini(&context->callbacks);
    pthread_mutex_destroy(&context->lock);
    pthread_mutex_destroy(&context->opener_lock);
    munmap((void *)context->fork_guard, (size_t)sysconf(_SC_PAGESIZE));
    bhi_kernel_table_fini(&context->kernels);
    bhi_death_records_fini(&context->death_records);
    bhi_pipeline_cache_fini(context);
    drop_lines(&context->lines);
    free(context->settings.worker_path);
    free(context->settings.runtime_parent);
    bhi_freelist_give(&freelist, context);
}

void bhi_context_lock(bh_context *context) {
    int error = pthread_mutex_lock(&context->lock);
    BHI_CHECK(error == 0);
}

void bhi_context_unlock(bh_context *context) {
    bhi_core_pump(&context->core);
    struct bhi_list doomed;
    bhi_list_init(&doomed);
    bhi_list_splice(&doomed, &context->doomed);
    bool wake = context->wake_reactor && !bhi_reactor_stopped(context);
    context->wake_reactor = false;
    if (wake)
        atomic_fetch_add_explicit(&context->waking, 1, memory_order_relaxed);
    int error = pthread_mutex_unlock(&context->lock);
    BHI_CHECK(error == 0);
    if (wake) {
        bhi_reactor_wake(context);
        atomic_fetch_sub_explicit(&context->waking, 1, memory_order_release);
    }
    BHI_LIST_EACH_SAFE(node, &doomed) {
        struct bhi_doomed *item = BHI_CONTAINER(node, struct bhi_doomed, link);
        item->free(item);
    }
}

void bhi_context_doom(bh_context *context, struct bhi_doomed *doomed) {
    bhi_list_append(&context->doomed, &doomed->link);
}

uint64_t bhi_context_new_id(bh_context *context) {
    return ++context->next_id;
}

void bhi_context_log(bh_context *context, int level, const char *format, ...) {
    if (!context->settings.log)
        return;
    char line[1200];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    bhi_text_line(line, sizeof line, line, strlen(line)); /* whoever wrote it */
    bhi_callback_enter(context); /* what it calls must not make the reactor wait for itself */
    context->settings.log(context->settings.log_user, level, line);
    bhi_callback_leave();
}

#define MOST_LINES 64u

struct bhi_line {
    struct bhi_list link;
    int level;
    char text[512];
};

static void drop_lines(struct bhi_list *lines) {
    BHI_LIST_EACH_SAFE(node, lines)
    free(BHI_CONTAINER(node, struct bhi_line, link));
}

void bhi_context_say(bh_context *context, int level, const char *format, ...) {
    struct bhi_line *line;
    if (!context->settings.log || context->line_count == MOST_LINES ||
        !(line = malloc(sizeof *line)))
        return;
    line->level = level;
    va_list args;
    va_start(args, format);
    vsnprintf(line->text, sizeof line->text, format, args);
    va_end(args);
    bhi_list_init(&line->link);
    bhi_list_append(&context->lines, &line->link);
    context->line_count++;
    context->wake_reactor = true;
}

void bhi_context_log_said(bh_context *context) {
    struct bhi_list lines;
    bhi_list_init(&lines);
    bhi_context_lock(context);
    bhi_list_splice(&lines, &context->lines);
    context->line_count = 0;
    bhi_context_unlock(context);
    BHI_LIST_EACH(node, &lines) {
        const struct bhi_line *line = BHI_CONTAINER(node, struct bhi_line, link);
        bhi_context_log(context, line->level, "%s", line->text);
    }
    drop_lines(&lines);
}

/* A page that a forked child sees as zeroes: no getpid() in each call, no pthread_atfork(). */
static _Atomic uint32_t *make_guard(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *guard = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (guard == MAP_FAILED)
        return NULL;
    if (madvise(guard, page, MADV_WIPEONFORK) != 0) {
        munmap(guard, page);
        return NULL;
    }
    atomic_store((_Atomic uint32_t *)guard, GUARD);
    return guard;
}

static bh_status check_kernel(bh_detail *detail) {
    /* A wait that cannot sleep tells whether the call exists. */
    _Atomic uint32_t word = 1;
    struct bhi_futex_wait wait = {&word, 0, false};
    const int error = bhi_futex_wait_any(&wait, 1, 0);
    if (error != -ENOSYS && error != -EPERM)
        return BH_OK;
    struct bhi_refusal why;
    bhi_refusal_find(BHI_REFUSED_CALL, -error, "", &why);
    return bhi_fail(detail, BH_UNSUPPORTED, 0,
                    "bh_context_create: there is no futex_waitv: %s" BHI_REMEDY "%s", why.cause,
                    why.setting);
}

BH_API bh_status bh_context_create(const bh_context_options *given, bh_context **out_context,
                                   bh_detail *detail) {
    if (!out_context)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_context_create: out_context is NULL");
    *out_context = NULL;
    bh_context_options all;
    bh_context_options_init(&all);
    const bh_context_options *options = &all;
    bh_status status = BH_OK;
    if (given)
        status = bhi_layout_take_options(BHI_OURS(bh_context_options), &all, given,
                                         "bh_context_create", "options", detail);
    if (status != BH_OK)
        return status;
    if (!options->restart_budget)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_context_create: options.restart_budget is 0");
    if (options->spares > 64)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_context_create: options.spares is %u, over 64", options->spares);
    if (!options->kernel_limit)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_context_create: options.kernel_limit is 0");
    status = check_kernel(detail);
    if (status != BH_OK)
        return status;
    if ((status = bhi_room_check_process("bh_context_create", detail)) != BH_OK ||
        (status = bhi_room_check("bh_context_create", "a context with one stream", BHI_ROOM_FIRST,
                                 detail)) != BH_OK)
        return status;
    if (sodium_init() < 0)
        return bhi_fail(detail, BH_SYSTEM, 0, "bh_context_create: libsodium has no random source");

    struct bh_context *context = bhi_freelist_take(&freelist);
    if (!context)
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "bh_context_create");
    *context = (struct bh_context){0};
    atomic_init(&context->refs, 1);
    bhi_list_init(&context->streams);
    bhi_list_init(&context->workers);
    bhi_list_init(&context->zygotes);
    bhi_list_init(&context->doomed);
    bhi_list_init(&context->lines);
    bhi_core_init(&context->core, &bhi_supervisor_core_ops);
    bhi_list_init(&context->pending);
    bhi_callbacks_init(&context->callbacks);
    bhi_pool_init(&context->pool, options->pool_limit);
    bhi_death_records_init(&context->death_records, options->quarantine_deaths,
                           options->quarantine_ns);
    context->settings = (struct bhi_context_settings){
        .spares = options->spares,
        .restart_budget = options->restart_budget,
        .restart_window_ns = options->restart_window_ns,
        .start_timeout_ns = options->start_timeout_ns,
        .kernel_limit = options->kernel_limit,
        .kernel_limit_bytes = options->kernel_limit_bytes,
        .log = options->log,
        .log_user = options->log_user,
    };
    cpu_set_t processors;
    context->may_spin = sched_getaffinity(0, sizeof processors, &processors) == 0 &&
                        CPU_COUNT(&processors) >= SPIN_PROCESSORS;
    context->fork_guard = make_guard();
    if (!context->fork_guard || !bhi_kernel_table_init(&context->kernels)) {
        if (context->fork_guard)
            munmap((void *)context->fork_guard, (size_t)sysconf(_SC_PAGESIZE));
        bhi_freelist_give(&freelist, context);
        return bhi_fail(detail, BH_NO_MEMORY, errno, "bh_context_create");
    }
    pthread_mutex_init(&context->lock, NULL);
    pthread_mutex_init(&context->opener_lock, NULL);
    status = bhi_spawn_paths(options, &context->settings.worker_path,
                             &context->settings.runtime_parent, detail);
    if (status == BH_OK) {
        int error = bhi_reactor_start(context);
        if (error)
            status = bhi_fail(detail, BH_SYSTEM, -error, "bh_context_create: reactor");
    }
    int cache_error =
        bhi_pipeline_cache_start(context, status == BH_OK ? options->cache_dir : NULL);
    if (cache_error) {
        status = bhi_fail(detail, cache_error == -ENOMEM ? BH_NO_MEMORY : BH_SYSTEM, -cache_error,
                          "bh_context_create: options.cache_dir");
        bhi_reactor_stop(context);
    }
    if (status != BH_OK) {
        bhi_context_unref(context);
        return status;
    }
    atomic_init(&context->handle.count, 1);
    *out_context = context;
    return BH_OK;
}

BH_API bh_status bh_context_destroy(bh_context *context) {
    if (!context)
        return BH_OK;
    if (!bhi_handle_live(&context->handle))
        return BH_CLOSED;
    if (bhi_context_forked(context))
        return BH_FORKED;
    if (bhi_in_callback())
        return BH_IN_CALLBACK;
    if (bhi_handle_drop(&context->handle) == BHI_DROP_NONE)
        return BH_CLOSED; /* another thread was faster */
    bhi_context_lock(context);
    context->closed = true;
    bhi_context_unlock(context);
    bhi_reactor_stop(context);
    bhi_pipeline_cache_stop(context); /* the opener is needed for it */
    bhi_context_log_said(context);
    bhi_callbacks_stop(context);
    bhi_loaders_stop(context);
    bhi_opener_stop(context);
    bhi_pending_forget(context);
    bhi_context_lock(context);
    bhi_pool_close(context);
    bhi_context_unlock(context);
    bhi_context_unref(context);
    return BH_OK;
}

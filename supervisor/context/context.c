#include "supervisor/context/context.h"
#include "base/check.h"
#include "base/detail.h"
#include "base/format.h"
#include "base/owner.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GUARD 0x62756c6bu
bool bhi_fork_guard_forked(const _Atomic uint32_t *guard) {
    return atomic_load_explicit(guard, memory_order_relaxed) != GUARD;
}

bool bhi_context_forked(const bh_context *context) {
    return bhi_fork_guard_forked(context->fork_guard);
}

bh_status bhi_context_check_fork(const bh_context *context, const char *call, bh_detail *detail) {
    return bhi_context_forked(context) ? BHI_FAIL(detail, call, BH_REASON_FORKED, "context")
                                       : BH_OK;
}

bh_status bhi_context_check(const bh_context *context, const char *call, bh_detail *detail) {
    BHI_NEED(context, call, detail);
    if (!bhi_handle_live(&context->handle)) {
        return BHI_FAIL(detail, call, BH_REASON_DESTROYED);
    }
    return bhi_context_check_fork(context, call, detail);
}

bool bhi_context_drop(struct bhi_handle *handle, const bh_context *context) {
    return bhi_handle_live(handle) && !bhi_context_forked(context) &&
           bhi_handle_drop(handle) == BHI_DROPPED_LAST;
}

void bhi_context_retain(bh_context *context) {
    atomic_fetch_add_explicit(&context->refs, 1, memory_order_relaxed);
}

void bhi_context_unref(bh_context *context) {
    if (atomic_fetch_sub_explicit(&context->refs, 1, memory_order_acq_rel) == 1) {
        context->free(context);
    }
}

void bhi_context_lock(bh_context *context) {
    int error = pthread_mutex_lock(&context->lock);
    BHI_CHECK(error == 0);
}

void bhi_context_unlock(bh_context *context) {
    BHI_CHECK(bhi_list_empty(&context->core.pumpable) && bhi_list_empty(&context->doomed) &&
              !context->wake_reactor);
    int error = pthread_mutex_unlock(&context->lock);
    BHI_CHECK(error == 0);
}

void bhi_context_settle_unlock(bh_context *context) {
    BHI_CHECK(bhi_list_empty(&context->core.pumpable));
    struct bhi_list doomed;
    bhi_list_init(&doomed);
    bhi_list_splice(&doomed, &context->doomed);
    bool wake = context->wake_reactor && !context->poller.stopped;
    context->wake_reactor = false;
    if (wake) {
        atomic_fetch_add_explicit(&context->waking, 1, memory_order_relaxed);
    }
    int error = pthread_mutex_unlock(&context->lock);
    BHI_CHECK(error == 0);
    if (wake) {
        bhi_poller_wake(&context->poller);
        atomic_fetch_sub_explicit(&context->waking, 1, memory_order_release);
    }
    BHI_LIST_FOR_SAFE(struct bhi_doomed, item, &doomed, link) {
        item->free(item);
    }
}

void bhi_context_doom(bh_context *context, struct bhi_doomed *doomed) {
    bhi_list_append(&context->doomed, &doomed->link);
}

uint64_t bhi_context_new_id(bh_context *context) {
    return ++context->next_id;
}

/* The context whose callback this thread runs. */
static _Thread_local const bh_context *calling;

bool bhi_in_callback(void) {
    /* A forked child of a callback is no longer in that callback. */
    return calling && !bhi_context_forked(calling);
}

bh_status bhi_callback_check(const char *what, bh_detail *detail) {
    if (!bhi_in_callback()) {
        return BH_OK;
    }
    return BHI_FAIL(detail, what, BH_REASON_CALLBACK);
}

void bhi_context_log(bh_context *context, bh_log_level level, const char *format, ...) {
    if (!context->settings.log) {
        return;
    }
    char line[1200];
    va_list args;
    va_start(args, format);
    bhi_vformat(line, sizeof line, format, args);
    va_end(args);
    bhi_text_line(line, sizeof line, line, strlen(line)); /* parts of it may come from a worker */
    calling = context; /* the callback must not make the reactor wait for itself */
    context->settings.log(level, line, context->settings.log_user);
    calling = NULL;
}

#define MOST_LINES 64u

struct bhi_line {
    struct bhi_list link;
    bh_log_level level;
    char text[512];
};

static void drop_lines(struct bhi_list *lines) {
    BHI_LIST_EACH_SAFE(node, lines)
    free(BHI_CONTAINER(node, struct bhi_line, link));
}

void bhi_context_say(bh_context *context, bh_log_level level, const char *format, ...) {
    struct bhi_line *line;
    if (!context->settings.log || context->line_count == MOST_LINES ||
        !(line = malloc(sizeof *line))) {
        return;
    }
    line->level = level;
    va_list args;
    va_start(args, format);
    bhi_vformat(line->text, sizeof line->text, format, args);
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
    BHI_LIST_FOR(const struct bhi_line, line, &lines, link) {
        bhi_context_log(context, line->level, "%s", line->text);
    }
    drop_lines(&lines);
}

_Atomic uint32_t *bhi_fork_guard_make(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    BHI_AUTO_MAPPING guard = {
        mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), page};
    if (guard.at == MAP_FAILED || madvise(guard.at, page, MADV_WIPEONFORK) != 0) {
        return NULL;
    }
    atomic_store((_Atomic uint32_t *)guard.at, GUARD);
    return bhi_mapping_steal(&guard);
}

void bhi_fork_guard_free(_Atomic uint32_t *guard) {
    munmap((void *)guard, (size_t)sysconf(_SC_PAGESIZE));
}

bool bhi_context_init(bh_context *context, const struct bhi_core_ops *ops) {
    *context = (struct bh_context){.fork_guard = bhi_fork_guard_make()};
    if (!context->fork_guard) {
        return false;
    }
    atomic_init(&context->refs, 1);
    bhi_list_init(&context->streams);
    bhi_list_init(&context->loaders);
    bhi_list_init(&context->replicas);
    bhi_list_init(&context->workers);
    bhi_list_init(&context->zygotes);
    bhi_list_init(&context->tenants.busy);
    bhi_list_init(&context->tenants.idle);
    bhi_list_init(&context->places);
    bhi_list_init(&context->doomed);
    bhi_list_init(&context->lines);
    bhi_list_init(&context->pending);
    bhi_core_init(&context->core, ops);
    bhi_poller_init(&context->poller);
    pthread_mutex_init(&context->lock, NULL);
    pthread_mutex_init(&context->opener_lock, NULL);
    return true;
}

void bhi_context_fini(bh_context *context) {
    BHI_CHECK(bhi_list_empty(&context->doomed) && bhi_list_empty(&context->workers));
    pthread_mutex_destroy(&context->lock);
    pthread_mutex_destroy(&context->opener_lock);
    bhi_fork_guard_free(context->fork_guard);
    drop_lines(&context->lines);
    free(context->settings.worker_path);
    free(context->settings.warden_path);
    free(context->settings.runtime_parent);
}

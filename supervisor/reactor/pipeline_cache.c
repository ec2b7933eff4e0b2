#include "supervisor/reactor/pipeline_cache.h"
#include "base/detail.h"
#include "base/fd.h"
#include "base/futex.h"
#include "base/memfd.h"
#include "ipc/cache_area.h"
#include "supervisor/context/context.h"
#include "supervisor/file/opener.h"
#include "supervisor/kernel/cache_queue.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/outbox.h"
#include "supervisor/worker/worker_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long a worker's first kernel waits for the cache. The opener needs some milliseconds of
 * processor time; 5 s, as for STORE_NS, suffice on a busy machine. A folder that does not answer in
 * that time, such as a dead mount, is not asked again for PAUSE_NS. */
#define LOAD_NS  (5000ull * 1000000)
#define STORE_NS (5000ull * 1000000)  /* how long writing a file may take */
#define STOP_NS  (3000ull * 1000000)  /* how long the end of the context waits for all writes */
#define PAUSE_NS (60000ull * 1000000) /* pause after a folder that did not answer in time */

/* -- the threads ------------------------------------------------------------------------------- */

/* Sends a request to the opener, waits, and logs its result. Returns false if the folder did not
 * answer. */
static bool ask(bh_context *context, const struct bhi_cache_job *job, bool store, uint64_t most_ns,
                uint64_t *out_bytes) {
    const struct bhi_pipeline_cache *cache = context->pipeline_cache;
    struct bhi_cache_call request = {
        .folder = cache->folder, .store = store, .area = job->area, .room = BHI_CACHE_ROOM};
    memcpy(request.identity, job->identity, sizeof request.identity);
    struct bhi_msg_cache_done done;
    bh_detail detail;
    const uint64_t by_ns = bhi_cache_queue_deadline(context->cache_queue, bhi_deadline_ns(most_ns));
    bh_status status = bhi_opener_cache(context, &request, by_ns, &done, &detail);
    *out_bytes = 0;
    char file[24];
    for (size_t i = 0; i < 8; i++) {
        snprintf(file + 2 * i, 3, "%02x", job->identity[i]);
    }
    bhi_context_lock(context);
    if (status != BH_OK) {
        bhi_context_say(context, BH_LOG_WARNING, "%s", detail.message);
    } else if (done.error) {
        bhi_context_say(
            context, BH_LOG_WARNING,
            "pipeline cache: %s… in the folder %s cannot be %s, so kernels are compiled "
            "again: %s%s%s",
            file, cache->folder, store ? "written" : "read", done.what, done.what[0] ? ": " : "",
            strerror(done.error));
    } else {
        *out_bytes = done.bytes <= request.room ? done.bytes : 0;
        if (done.what[0]) {
            bhi_context_say(context, BH_LOG_WARNING, "pipeline cache: %s… in the folder %s: %s",
                            file, cache->folder, done.what);
        } else if (*out_bytes) {
            bhi_context_say(context, BH_LOG_DEBUG, "pipeline cache: %s... in %s: %llu bytes %s",
                            file, cache->folder, (unsigned long long)*out_bytes,
                            store ? "written" : "read");
        }
    }
    bhi_context_pump_unlock(context);
    return status == BH_OK;
}

/* Gives |worker| its cache, |area| of |room| bytes. Returns false if that is impossible. */
static bool attach(struct bhi_worker *worker, int area, uint64_t room) {
    struct bhi_outgoing *outgoing = bhi_outgoing_new(BHI_MSG_CACHE_ATTACH);
    if (!outgoing) {
        return false;
    }
    outgoing->fd = fcntl(area, F_DUPFD_CLOEXEC, 0);
    if (outgoing->fd < 0) {
        free(outgoing);
        return false;
    }
    outgoing->message.cache_attach.cache = ++worker->context->pipeline_cache->next;
    outgoing->message.cache_attach.room = room;
    bhi_address_space_add(&worker->space, worker->core.pid, BHI_CACHE_AREA_HEADER + room);
    bhi_outbox_add(worker, outgoing);
    return true;
}

/* Gives the worker its area, which has the content of the file, or nothing if there is no file or
 * it is distrusted. If the folder does not answer, the worker gets no area. */
static void serve_load(bh_context *context, struct bhi_cache_job *job, bool trusted,
                       bool *answers) {
    struct bhi_worker *worker = job->worker;
    uint64_t bytes = 0;
    bhi_context_lock(context);
    bool dead = worker->core.life.state == BHI_BURIED;
    bhi_context_unlock(context);
    if (dead) {
        return;
    }
    job->area = bhi_memfd_create("bulkhead-cache", BHI_CACHE_AREA_HEADER + BHI_CACHE_ROOM, 0);
    if (job->area >= 0 && *answers && trusted) {
        *answers = ask(context, job, false, LOAD_NS, &bytes);
    }
    bhi_context_lock(context);
    worker->cache.state = BHI_CACHE_NONE;
    /* If the folder does not answer, nothing could be stored later. And the opener may still be
     * writing into the area. */
    if (job->area >= 0 && *answers && worker->core.life.state != BHI_BURIED &&
        attach(worker, job->area, BHI_CACHE_ROOM)) {
        worker->cache.state = BHI_CACHE_READY;
        worker->cache.area = job->area;
        worker->cache.loaded = bytes != 0;
        job->area = -1;
        if (bytes) {
            bhi_past_inherit(&worker->core.past, worker->cache.code);
        }
    }
    if (worker->core.stream) {
        bhi_stream_wants_pump(worker->core.stream);
    }
    bhi_context_pump_unlock(context);
}

static bool is_distrusted(const struct bhi_pipeline_cache *cache, const uint8_t identity[32]) {
    for (uint32_t i = 0; i < cache->distrusted_count && i < BHI_DISTRUSTED; i++) {
        if (memcmp(cache->distrusted[i], identity, 32) == 0) {
            return true;
        }
    }
    return false;
}

static void free_job(struct bhi_cache_job *job) {
    bhi_fd_close(&job->area);
    bhi_worker_release(job->worker);
    free(job);
}

static void serve(bh_context *context, enum bhi_cache_way way) {
    struct bhi_pipeline_cache *cache = context->pipeline_cache;
    for (struct bhi_cache_job *job; (job = bhi_cache_queue_pop(context->cache_queue, way));) {
        bool answers = bhi_now_ns() >= atomic_load(&cache->silent_until_ns), asked = answers;
        if (way == BHI_CACHE_LOAD) {
            bhi_context_lock(context);
            bool trusted = !is_distrusted(cache, job->identity);
            bhi_context_unlock(context);
            serve_load(context, job, trusted, &answers);
        } else if (answers) {
            uint64_t bytes;
            answers = ask(context, job, true, STORE_NS, &bytes);
        }
        if (asked && !answers) {
            atomic_store(&cache->silent_until_ns, bhi_deadline_ns(PAUSE_NS));
        }
        free_job(job);
    }
}

static void *run_loads(void *context) {
    serve(context, BHI_CACHE_LOAD);
    return NULL;
}

static void *run_stores(void *context) {
    serve(context, BHI_CACHE_STORE);
    return NULL;
}

/* -- for workers ------------------------------------------------------------------------------- */

void bhi_pipeline_cache_buried(struct bhi_worker *worker, bool orderly) {
    struct bhi_pipeline_cache *cache = worker->context->pipeline_cache;
    const struct bhi_past *past = &worker->core.past;
    int area = worker->cache.area;
    worker->cache.area = -1;
    worker->cache.state = BHI_CACHE_NONE;
    if (area < 0) {
        return;
    }
    if (!orderly && worker->cache.loaded) {
        memcpy(cache->distrusted[cache->distrusted_count % BHI_DISTRUSTED], worker->cache.identity,
               32);
        cache->distrusted_count++;
    }
    struct bhi_cache_job job = {.area = area};
    memcpy(job.identity, worker->cache.identity, sizeof job.identity);
    memcpy(job.tenant, worker->cache.tenant, sizeof job.tenant);
    const bool one_kernel = !past->mixed && past->code == worker->cache.code;
    if (!orderly || !one_kernel || past->kept != BHI_APART_NOT ||
        !bhi_cache_queue_push(worker->context->cache_queue, BHI_CACHE_STORE, &job)) {
        close(area);
    }
}

/* -- its life ---------------------------------------------------------------------------------- */

/* Makes a relative path absolute by putting the current folder before it. Looks up nothing. */
static char *absolute(const char *folder) {
    char *path = NULL;
    char *here = folder[0] == '/' ? NULL : getcwd(NULL, 0);
    if (folder[0] == '/') {
        path = strdup(folder);
    } else if (here && asprintf(&path, "%s/%s", here, folder) < 0) {
        path = NULL;
    }
    free(here);
    return path;
}

int bhi_pipeline_cache_start(bh_context *context, const char *folder) {
    static void *(*const runs[])(void *) = {
        [BHI_CACHE_LOAD] = run_loads, [BHI_CACHE_STORE] = run_stores};
    struct bhi_pipeline_cache *cache = context->pipeline_cache;
    bhi_cache_queue_init(context->cache_queue);
    if (!folder) {
        return 0;
    }
    errno = ENOMEM;
    cache->folder = absolute(folder);
    if (!cache->folder) {
        return -errno;
    }
    if (strlen(cache->folder) >= PATH_MAX) {
        return -ENAMETOOLONG;
    }
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int error = 0;
    for (int way = 0; !error && way < BHI_CACHE_WAYS; way++) {
        error = -pthread_create(&cache->threads[way], NULL, runs[way], context);
        if (!error) {
            pthread_setname_np(cache->threads[way], "bulkhead-cache");
            cache->started++;
        }
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (error) {
        bhi_pipeline_cache_stop(context);
    }
    context->cache_queue->open = !error;
    return error;
}

void bhi_pipeline_cache_stop(bh_context *context) {
    struct bhi_pipeline_cache *cache = context->pipeline_cache;
    bhi_cache_queue_stop(context->cache_queue, bhi_deadline_ns(STOP_NS));
    while (cache->started) {
        pthread_join(cache->threads[--cache->started], NULL);
    }
}

void bhi_pipeline_cache_fini(bh_context *context) {
    struct bhi_pipeline_cache *cache = context->pipeline_cache;
    bhi_cache_queue_fini(context->cache_queue);
    free(cache->folder);
    cache->folder = NULL;
}

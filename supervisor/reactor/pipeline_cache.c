#include "supervisor/reactor/pipeline_cache.h"
#include "base/detail.h"
#include "base/fd.h"
#include "base/futex.h"
#include "base/memfd.h"
#include "ipc/cache_area.h"
#include "supervisor/context/context.h"
#include "supervisor/context/pump.h"
#include "supervisor/file/opener.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/outbox.h"
#include "supervisor/worker/worker_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long a worker's first kernel waits for the cache. The opener needs some milliseconds of
 * processor time; 5 s, as for STORE_NS, suffice on a busy machine. A folder that does not answer in
 * that time, such as a dead mount, is not asked again for PAUSE_NS. */
#define LOAD_NS   (5000ull * 1000000)
#define STORE_NS  (5000ull * 1000000)  /* how long writing a file may take */
#define STOP_NS   (3000ull * 1000000)  /* how long the end of the context waits for all writes */
#define PAUSE_NS  (60000ull * 1000000) /* pause after a folder that did not answer in time */
#define MOST_JOBS 256u

/* A request to read a file for a worker, or to write it. */
struct cache_job {
    struct bhi_list link;
    struct bhi_worker *worker; /* referenced; NULL: the request is to store */
    uint8_t identity[32];
    int area;
};

/* -- jobs -------------------------------------------------------------------------------------- */

static void free_job(struct cache_job *job) {
    bhi_fd_close(&job->area);
    bhi_worker_release(job->worker);
    free(job);
}

/* Returns false if there are too many requests, if out of memory, or while stopping; what was to be
 * stored is lost then. */
static bool push(struct bhi_pipeline_cache *cache, const struct cache_job *what) {
    struct cache_job *job = malloc(sizeof *job);
    if (!job) {
        return false;
    }
    *job = *what;
    pthread_mutex_lock(&cache->lock);
    bool taken = !cache->stopping && cache->job_count < MOST_JOBS;
    if (taken) {
        bhi_list_init(&job->link);
        bhi_list_append(&cache->jobs, &job->link);
        cache->job_count++;
        pthread_cond_signal(&cache->work);
    }
    pthread_mutex_unlock(&cache->lock);
    if (!taken) {
        free(job);
    }
    return taken;
}

/* Returns NULL when the thread has to end. */
static struct cache_job *pop(struct bhi_pipeline_cache *cache) {
    pthread_mutex_lock(&cache->lock);
    while (bhi_list_empty(&cache->jobs) && !cache->stopping) {
        pthread_cond_wait(&cache->work, &cache->lock);
    }
    struct cache_job *job = NULL;
    if (!bhi_list_empty(&cache->jobs)) {
        job = BHI_CONTAINER(cache->jobs.next, struct cache_job, link);
        bhi_list_remove(&job->link);
        cache->job_count--;
    }
    pthread_mutex_unlock(&cache->lock);
    return job;
}

static uint64_t deadline_of(struct bhi_pipeline_cache *cache, uint64_t most_ns) {
    uint64_t deadline_ns = bhi_deadline_ns(most_ns);
    pthread_mutex_lock(&cache->lock);
    if (cache->stopping && cache->stop_by_ns < deadline_ns) {
        deadline_ns = cache->stop_by_ns;
    }
    pthread_mutex_unlock(&cache->lock);
    return deadline_ns;
}

/* -- the thread -------------------------------------------------------------------------------- */

/* Sends a request to the opener, waits, and logs its result. Returns false if the folder did not
 * answer. */
static bool ask(bh_context *context, const struct cache_job *job, bool store, uint64_t most_ns,
                uint64_t *out_bytes) {
    const struct bhi_pipeline_cache *cache = context->pipeline_cache;
    struct bhi_cache_call request = {
        .folder = cache->folder, .store = store, .area = job->area, .room = BHI_CACHE_ROOM};
    memcpy(request.identity, job->identity, sizeof request.identity);
    struct bhi_msg_cache_done done;
    bh_detail detail;
    bh_status status = bhi_opener_cache(
        context, &request, deadline_of(context->pipeline_cache, most_ns), &done, &detail);
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
static void serve_load(bh_context *context, struct cache_job *job, bool trusted, bool *answers) {
    struct bhi_worker *worker = job->worker;
    uint64_t bytes = 0;
    bhi_context_lock(context);
    bool dead = worker->state == BHI_DEAD;
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
    if (job->area >= 0 && *answers && worker->state != BHI_DEAD &&
        attach(worker, job->area, BHI_CACHE_ROOM)) {
        worker->cache.state = BHI_CACHE_READY;
        worker->cache.area = job->area;
        worker->cache.loaded = bytes;
        job->area = -1;
    }
    if (worker->core.stream) {
        bhi_stream_wants_pump(worker->core.stream);
    } else {
        context->spares_due = context->wake_reactor = true;
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

static void *run(void *argument) {
    bh_context *context = argument;
    struct bhi_pipeline_cache *cache = context->pipeline_cache;
    uint64_t silent_until_ns = 0;
    for (struct cache_job *job; (job = pop(cache));) {
        bool answers = bhi_now_ns() >= silent_until_ns, asked = answers;
        if (job->worker) {
            bhi_context_lock(context);
            bool trusted = !is_distrusted(cache, job->identity);
            bhi_context_unlock(context);
            serve_load(context, job, trusted, &answers);
        } else if (answers) {
            uint64_t bytes;
            answers = ask(context, job, true, STORE_NS, &bytes);
        }
        if (asked && !answers) {
            silent_until_ns = bhi_deadline_ns(PAUSE_NS);
        }
        free_job(job);
    }
    return NULL;
}

/* -- for workers ------------------------------------------------------------------------------- */

static const struct bhi_msg_device *device_of(const struct bhi_worker *worker) {
    for (uint32_t i = 0; i < worker->device_count; i++) {
        if (worker->devices[i].chosen) {
            return &worker->devices[i];
        }
    }
    return NULL;
}

static void identify(uint8_t out[32], const char *tenant, const struct bhi_msg_device *device) {
    static const unsigned char domain[] = "bulkhead pipeline cache 1";
    const uint32_t numbers[] = {device->vendor_id, device->device_id, device->driver_version,
                                device->api_version, (uint32_t)strlen(tenant)};
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, 32);
    crypto_generichash_update(&state, domain, sizeof domain);
    crypto_generichash_update(&state, (const unsigned char *)numbers, sizeof numbers);
    crypto_generichash_update(&state, device->uuid, sizeof device->uuid);
    crypto_generichash_update(&state, (const unsigned char *)tenant, strlen(tenant));
    crypto_generichash_final(&state, out, 32);
}

/* Returns NULL while the worker may still serve any. */
static const char *tenant_of(const struct bhi_worker *worker) {
    return worker->core.stream       ? bhi_stream_of(worker->core.stream)->tenant
           : worker->lessons.adopted ? worker->lessons.tenant
                                     : NULL;
}

void bhi_pipeline_cache_want(struct bhi_worker *worker) {
    bh_context *context = worker->context;
    const struct bhi_msg_device *device = device_of(worker);
    const char *tenant = tenant_of(worker);
    if (!context->pipeline_cache->started || worker->kind != BHI_WORKER_DEVICE || !device ||
        !tenant || worker->cache.state != BHI_CACHE_NONE || worker->cache.requested ||
        context->closed) {
        return;
    }
    worker->cache.requested = true;
    identify(worker->cache.identity, tenant, device);
    struct cache_job job = {.worker = worker, .area = -1};
    memcpy(job.identity, worker->cache.identity, sizeof job.identity);
    bhi_worker_retain(worker);
    worker->cache.state = BHI_CACHE_WAITING;
    if (!push(context->pipeline_cache, &job)) {
        worker->cache.state = BHI_CACHE_NONE;
        bhi_worker_release(worker);
    }
}

void bhi_pipeline_cache_buried(struct bhi_worker *worker, bool orderly) {
    struct bhi_pipeline_cache *cache = worker->context->pipeline_cache;
    int area = worker->cache.area;
    worker->cache.area = -1;
    worker->cache.state = BHI_CACHE_NONE;
    if (area < 0) {
        return;
    }
    if (!orderly && worker->cache.loaded && !worker->core.harvested && !worker->lessons.learned) {
        memcpy(cache->distrusted[cache->distrusted_count % BHI_DISTRUSTED], worker->cache.identity,
               32);
        cache->distrusted_count++;
    }
    struct cache_job job = {.area = area};
    memcpy(job.identity, worker->cache.identity, sizeof job.identity);
    /* A spare has compiled what a worker of its tenant has compiled, and less of it. */
    const bool unused = !worker->core.harvested && worker->lessons.adopted;
    if (!orderly || unused || !push(cache, &job)) {
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
    struct bhi_pipeline_cache *cache = context->pipeline_cache;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->work, NULL);
    bhi_list_init(&cache->jobs);
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
    int error = -pthread_create(&cache->thread, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!error) {
        pthread_setname_np(cache->thread, "bulkhead-cache");
        cache->started = true;
    }
    return error;
}

void bhi_pipeline_cache_stop(bh_context *context) {
    struct bhi_pipeline_cache *cache = context->pipeline_cache;
    if (!cache->started) {
        return;
    }
    pthread_mutex_lock(&cache->lock);
    cache->stopping = true;
    cache->stop_by_ns = bhi_deadline_ns(STOP_NS);
    pthread_cond_signal(&cache->work);
    pthread_mutex_unlock(&cache->lock);
    pthread_join(cache->thread, NULL);
    cache->started = false;
}

void bhi_pipeline_cache_fini(bh_context *context) {
    struct bhi_pipeline_cache *cache = context->pipeline_cache;
    pthread_mutex_destroy(&cache->lock);
    pthread_cond_destroy(&cache->work);
    free(cache->folder);
    cache->folder = NULL;
}

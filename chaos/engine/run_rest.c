/* Brings a run to rest, so that its present samples can be compared with earlier ones. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "chaos/engine/run.h"
#include "tool/interrupt.h"
#include "tool/process_tree.h"

#define MS 1000000ull

static const uint64_t worker_limit_ns = 30000 * MS; /* for each stream to have a worker */
static const uint64_t settle_limit_ns =
    5000 * MS; /* for descriptors to be closed, spares to come */
static const uint64_t burial_limit_ns = 20000 * MS; /* for processes that have died to be removed */
static const uint64_t look_ns = 20 * MS;
enum { SETTLED = 8 }; /* samples in a row that are equal */

/* -- a sample of what this process holds; the checker looks for leaks in them ------------------- */

/* Returns the number of entries in the folder |path|, relative to |parent|, or -1 if it cannot be
 * read. */
static int count_entries(int parent, const char *path, const char *prefix, bool deep) {
    int count = 0;
    const int fd = openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (!folder) {
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
            strncmp(entry->d_name, prefix, strlen(prefix)) != 0) {
            continue;
        }
        count++;
        const int below = deep ? count_entries(fd, entry->d_name, "", false) : 0;
        count += below > 0 ? below : 0; /* a subfolder may have gone by now */
    }
    closedir(folder);
    return count;
}

static bool resident_bytes(uint64_t *out_bytes) {
    unsigned long long size, resident;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file) {
        return false;
    }
    const bool read = fscanf(file, "%llu %llu", &size, &resident) == 2;
    fclose(file);
    *out_bytes = resident * (uint64_t)sysconf(_SC_PAGESIZE);
    return read;
}

/* Fills in all but |idle|. |rss_bytes| excludes the history's own records, which grow by design.
 * |runtime_parent| is where the context makes its folders. Returns false if it could not look. */
static bool take_sample(const char *runtime_parent, const struct bhi_history *history,
                        struct bhi_record *out_record) {
    char own[40];
    struct bhi_process_tree tree;
    uint64_t resident;
    const uint64_t records = history->count * sizeof *history->records;
    snprintf(own, sizeof own, "bulkhead-%d-", (int)getpid());
    const int descriptors = count_entries(AT_FDCWD, "/proc/self/fd", "", false);
    const int files = count_entries(AT_FDCWD, runtime_parent, own, true);
    if (descriptors < 1 || files < 0 || !resident_bytes(&resident) ||
        !bhi_process_tree_read(getpid(), &tree)) {
        return false;
    }
    *out_record = (struct bhi_record){.kind = BHI_RECORD_SAMPLE};
    out_record->sample.descriptors = (uint32_t)descriptors - 1; /* without that of this count */
    out_record->sample.files = (uint32_t)files;
    out_record->sample.processes = (uint32_t)tree.count;
    out_record->sample.rss_bytes = resident > records ? resident - records : 0;
    bhi_process_tree_free(&tree);
    return true;
}

/* -- the rest ------------------------------------------------------------------------------------ */

/* Call it with |lock| held. */
static bool is_busy(const struct bhi_chaos_run *run) {
    bool busy = run->has_injector && !run->resting && !run->injector_ended;
    for (uint32_t i = 0; i < run->stream_count; i++) {
        busy |= run->streams[i].in_flight || run->streams[i].flushed != run->flush;
    }
    return busy;
}

/* Ends all faults and operations, and drops what the run itself keeps of them: buffers, and the
 * memory of earlier ones. */
static void quieten(struct bhi_chaos_run *run) {
    pthread_mutex_lock(&run->lock);
    run->rest_requested = true;
    run->flush++;
    for (uint32_t i = 0; i < run->stream_count; i++) {
        pthread_cond_signal(&run->streams[i].work);
    }
    pthread_cond_broadcast(&run->changed);
    while (is_busy(run) && !bhi_interrupt_signal()) {
        bhi_run_wait(run, bhi_run_now(run) + look_ns);
    }
    pthread_mutex_unlock(&run->lock);
    pthread_mutex_lock(&run->submitting);
    bhi_workload_forget(&run->workload);
    pthread_mutex_unlock(&run->submitting);
    if (bh_context_trim(run->context, 0, NULL) != BH_OK) {
        bhi_run_say(run, "the pool could not be trimmed");
    }
}

static bool same(const struct bhi_record *a, const struct bhi_record *b) {
    return a->sample.descriptors == b->sample.descriptors &&
           a->sample.processes == b->sample.processes && a->sample.files == b->sample.files;
}

/* Returns true if the process has clearly more than at the first rest, even if it is not enough for
 * a leak. Then dead workers are still being removed. What really leaks stays, and the wait for it
 * ends with its time limit. */
static bool has_more(const struct bhi_chaos_run *run, const struct bhi_record *sample) {
    enum { DESCRIPTORS = 8, PROCESSES = 1, FILES = 4 };
    const struct bhi_record *first = &run->first_rest;
    return first->kind == BHI_RECORD_SAMPLE &&
           (sample->sample.descriptors > first->sample.descriptors + DESCRIPTORS ||
            sample->sample.processes > first->sample.processes + PROCESSES ||
            sample->sample.files > first->sample.files + FILES);
}

/* Waits until the remains of dead workers have gone and spare workers have come. */
static bool settle(struct bhi_chaos_run *run, struct bhi_record *out_sample) {
    const uint64_t begun_ns = bhi_run_now(run);
    const uint64_t end_ns = begun_ns + settle_limit_ns * run->slowness;
    const uint64_t burial_end_ns = begun_ns + burial_limit_ns * run->slowness;
    bool more, settled;
    struct bhi_record before = {0};
    uint32_t times = 0;
    do {
        pthread_mutex_lock(&run->looking);
        pthread_mutex_lock(&run->lock);
        const bool taken = take_sample(run->runtime_parent, run->history, out_sample);
        pthread_mutex_unlock(&run->lock);
        pthread_mutex_unlock(&run->looking);
        if (!taken) {
            return false;
        }
        times = same(&before, out_sample) ? times + 1 : 0;
        before = *out_sample;
        (void)bhi_interrupt_pause(look_ns);
        const uint64_t now_ns = bhi_run_now(run);
        settled = times >= SETTLED || now_ns >= end_ns;
        more = has_more(run, out_sample) && now_ns < burial_end_ns;
    } while ((!settled || more) && !bhi_interrupt_signal());
    if (run->first_rest.kind != BHI_RECORD_SAMPLE) {
        run->first_rest = *out_sample;
    }
    return true;
}

/* Waits in slices, so that a signal can end it. */
static bool await_worker(struct bhi_chaos_run *run, bh_stream *stream) {
    const uint64_t end_ns = bhi_run_now(run) + worker_limit_ns * run->slowness;
    bh_status status;
    do {
        status = bh_stream_wait_ready(stream, look_ns, NULL);
    } while (status == BH_TIMEOUT && !bhi_interrupt_signal() && bhi_run_now(run) < end_ns);
    return status == BH_OK;
}

void bhi_run_rest(struct bhi_chaos_run *run) {
    struct bhi_record record;
    quieten(run);
    bool ready = true;
    for (uint32_t i = 0; i < run->stream_count; i++) {
        ready &= await_worker(run, run->streams[i].stream);
    }
    if (settle(run, &record)) {
        record.at_ns = bhi_run_now(run);
        record.sample.idle = ready;
        bhi_run_note(run, &record);
    }
    pthread_mutex_lock(&run->lock);
    run->rest_requested = false;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
}

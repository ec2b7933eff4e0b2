#include "batch/runner/reads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "batch/runner/kernel_cache.h"

enum { KEPT = 1024 };

/* A file in one state. While |hashing| a thread reads it, and others that want it wait. */
struct kept {
    char *path; /* owned; NULL: none */
    struct bhi_used_mark mark;
    bool hashing;
};

struct bhi_read_hashes {
    pthread_mutex_t lock;
    pthread_cond_t hashed;
    struct kept kept[KEPT];
};

struct bhi_read_hashes *bhi_read_hashes_make(void) {
    struct bhi_read_hashes *hashes = calloc(1, sizeof *hashes);
    if (hashes) {
        pthread_mutex_init(&hashes->lock, NULL);
        pthread_cond_init(&hashes->hashed, NULL);
    }
    return hashes;
}

void bhi_read_hashes_free(struct bhi_read_hashes *hashes) {
    for (size_t i = 0; hashes && i < KEPT; i++) {
        free(hashes->kept[i].path);
    }
    if (hashes) {
        pthread_mutex_destroy(&hashes->lock);
        pthread_cond_destroy(&hashes->hashed);
    }
    free(hashes);
}

static uint64_t time_of(struct timespec time) {
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

struct bhi_used_mark bhi_reads_mark(const struct stat *status) {
    return (struct bhi_used_mark){.size = (uint64_t)status->st_size,
                                  .modified_ns = time_of(status->st_mtim),
                                  .changed_ns = time_of(status->st_ctim)};
}

static bool same_state(const struct bhi_used_mark *a, const struct bhi_used_mark *b) {
    return a->size == b->size && a->modified_ns == b->modified_ns && a->changed_ns == b->changed_ns;
}

static bool is_in_state(int fd, const struct bhi_used_mark *mark) {
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return false;
    }
    const struct bhi_used_mark now = bhi_reads_mark(&status);
    return same_state(&now, mark);
}

void bhi_reads_hash(const char *path, struct bhi_used_mark *mark) {
    BHI_AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    mark->hashed = fd >= 0 && is_in_state(fd, mark) && bhi_content_hash_of(fd, mark->hash) == 0 &&
                   is_in_state(fd, mark);
}

bool bhi_reads_is_same(const char *path, const struct bhi_used_mark *mark, int *out_error) {
    struct stat status;
    uint8_t hash[BHI_CONTENT_HASH];
    BHI_AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    bool same = false;
    *out_error = fd < 0 || fstat(fd, &status) != 0 ? errno : 0;
    if (!*out_error) {
        const struct bhi_used_mark now = bhi_reads_mark(&status);
        same = same_state(&now, mark);
        if (!same && mark->hashed && now.size == mark->size) {
            *out_error = bhi_content_hash_of(fd, hash);
            same = !*out_error && !memcmp(hash, mark->hash, sizeof hash);
        }
    }
    return same;
}

/* FNV-1a. */
static size_t place_of(const char *path) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *path; path++) {
        hash = (hash ^ (uint8_t)*path) * 0x100000001b3u;
    }
    return (hash ^ hash >> 32) % KEPT;
}

/* Hashes the file, unless another attempt has. */
static void find_hash(struct bhi_read_hashes *hashes, const char *path,
                      struct bhi_used_mark *mark) {
    struct kept *kept = &hashes->kept[place_of(path)];
    pthread_mutex_lock(&hashes->lock);
    for (;;) {
        const bool same = kept->path && !strcmp(kept->path, path) && same_state(&kept->mark, mark);
        if (same && !kept->hashing) {
            *mark = kept->mark;
            pthread_mutex_unlock(&hashes->lock);
            return;
        }
        if (!same) {
            break;
        }
        pthread_cond_wait(&hashes->hashed, &hashes->lock);
    }
    char *copy = kept->hashing ? NULL : strdup(path); /* without the entry it is hashed again */
    if (copy) {
        free(kept->path);
        *kept = (struct kept){.path = copy, .mark = *mark, .hashing = true};
    }
    pthread_mutex_unlock(&hashes->lock);
    bhi_reads_hash(path, mark);
    if (copy) {
        pthread_mutex_lock(&hashes->lock);
        kept->mark = *mark;
        kept->hashing = false;
        pthread_cond_broadcast(&hashes->hashed);
        pthread_mutex_unlock(&hashes->lock);
    }
}

/* What was read is in memory: the file need not be looked at. */
static bool add_text(struct bhi_used *used, const char *path, const void *text, size_t size) {
    struct bhi_used_mark mark = {.size = size, .hashed = true};
    struct bhi_content_hash *hash = bhi_content_hash_begin();
    if (!hash) {
        return false;
    }
    bhi_content_hash_add(hash, text, size);
    bhi_content_hash_end(hash, mark.hash);
    return bhi_used_add(used, &mark, path);
}

bool bhi_reads_add_code(struct bhi_used *used, const char *path, const void *code, size_t size,
                        const struct bhi_source *source) {
    bool good = add_text(used, path, code, size);
    for (uint32_t i = 0; good && i < source->include_count; i++) {
        good = add_text(used, source->include_paths[i], source->includes[i].text,
                        source->includes[i].length);
    }
    return good;
}

/* Does the job replace the file, or another job make it? */
static bool is_made(const struct bhi_work *work, const char *path) {
    const struct bhi_runner_options *options = work->runner->options;
    const struct bhi_run_request *run = &work->request->run;
    for (uint32_t i = 0; i < run->binding_count; i++) {
        if (run->bindings[i].out_path && !strcmp(run->bindings[i].out_path, path)) {
            return true;
        }
    }
    return options->made && bhi_names_find(options->made, path) != BHI_NO_NAME;
}

bool bhi_reads_collect(const struct bhi_work *work, struct bhi_used *out_used) {
    const struct bhi_run_request *run = &work->request->run;
    *out_used = (struct bhi_used){.bytes = NULL};
    bool good = !work->kernel || bhi_used_append(out_used, &work->kernel->files);
    for (uint32_t i = 0; good && work->reads && i < run->binding_count; i++) {
        const char *path = run->bindings[i].in_path;
        if (path && !is_made(work, path)) {
            struct bhi_used_mark mark = work->reads[i];
            if (mark.changed_ns && mark.size <= BHI_READS_HASHED) {
                find_hash(work->runner->hashes, path, &mark);
            }
            good = bhi_used_add(out_used, &mark, path);
        }
    }
    return good;
}

#include "worker/loader/reads.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST_THREADS 4u /* with the caller's; more would only wait for the same memory */
#define CHUNK        (UINT64_C(1) << 20)
#define BOUNCE       (UINT64_C(256) << 10)

struct bhi_reads {
    pthread_mutex_t lock; /* guards all but |next| and the job's constants */
    pthread_cond_t changed;
    unsigned threads;
    pthread_t thread[MOST_THREADS];
    uint8_t *bounces; /* BOUNCE bytes for each thread, the caller's first */
    unsigned started; /* threads that have taken their buffer */
    uint64_t job;     /* the number of the newest job */
    unsigned busy;
    bool stop;
    /* The job. It does not change while the job runs. */
    int fd;
    int out;
    uint64_t offset, bytes;
    _Atomic uint64_t *done;
    /* Bytes that threads have claimed. Set beyond the end when the job fails. */
    _Atomic uint64_t next;
    bool failed;
    struct bhi_read_failure failure;
};

bool bhi_read_at(int fd, void *out, uint64_t offset, uint64_t bytes,
                 struct bhi_read_failure *failure) {
    uint64_t got = 0;
    while (got < bytes) {
        ssize_t n = pread(fd, (uint8_t *)out + got, (size_t)(bytes - got), (off_t)(offset + got));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            *failure = (struct bhi_read_failure){offset + got, n < 0 ? errno : 0, false};
            return false;
        }
        got += (uint64_t)n;
    }
    return true;
}

bool bhi_write_at(int fd, const uint8_t *from, uint64_t offset, uint64_t bytes, int *out_error) {
    uint64_t put = 0;
    while (put < bytes) {
        ssize_t n = pwrite(fd, from + put, (size_t)(bytes - put), (off_t)(offset + put));
        if (n <= 0 && !(n < 0 && errno == EINTR)) {
            *out_error = n < 0 ? errno : EIO;
            return false;
        }
        put += n > 0 ? (uint64_t)n : 0;
    }
    return true;
}

/* |at| counts from the beginning of the range. */
static bool move(struct bhi_reads *reads, uint8_t *bounce, uint64_t at, uint64_t bytes,
                 struct bhi_read_failure *failure) {
    for (uint64_t moved = 0; moved < bytes;) {
        const uint64_t from = at + moved;
        const uint64_t count = bytes - moved < BOUNCE ? bytes - moved : BOUNCE;
        int error = 0;
        if (!bhi_read_at(reads->fd, bounce, reads->offset + from, count, failure)) {
            return false;
        }
        if (!bhi_write_at(reads->out, bounce, from, count, &error)) {
            *failure = (struct bhi_read_failure){reads->offset + from, error, true};
            return false;
        }
        atomic_fetch_add_explicit(reads->done, count, memory_order_relaxed);
        moved += count;
    }
    return true;
}

/* Moves chunks until there is none left. */
static void work(struct bhi_reads *reads, uint8_t *bounce) {
    for (;;) {
        const uint64_t at = atomic_fetch_add(&reads->next, CHUNK);
        if (at >= reads->bytes) {
            return;
        }
        const uint64_t rest = reads->bytes - at;
        struct bhi_read_failure failure;
        if (move(reads, bounce, at, rest < CHUNK ? rest : CHUNK, &failure)) {
            continue;
        }
        pthread_mutex_lock(&reads->lock);
        if (!reads->failed || failure.offset < reads->failure.offset) {
            reads->failure = failure;
        }
        reads->failed = true;
        pthread_mutex_unlock(&reads->lock);
        atomic_store(&reads->next, reads->bytes);
        return;
    }
}

static void *serve(void *argument) {
    struct bhi_reads *reads = argument;
    uint64_t seen = 0;
    pthread_mutex_lock(&reads->lock);
    uint8_t *bounce = reads->bounces + ++reads->started * BOUNCE;
    for (;;) {
        while (!reads->stop && reads->job == seen) {
            pthread_cond_wait(&reads->changed, &reads->lock);
        }
        if (reads->stop) {
            break;
        }
        seen = reads->job;
        pthread_mutex_unlock(&reads->lock);
        work(reads, bounce);
        pthread_mutex_lock(&reads->lock);
        if (--reads->busy == 0) {
            pthread_cond_broadcast(&reads->changed);
        }
    }
    pthread_mutex_unlock(&reads->lock);
    return NULL;
}

struct bhi_reads *bhi_reads_create(void) {
    struct bhi_reads *reads = calloc(1, sizeof *reads);
    if (!reads) {
        return NULL;
    }
    pthread_mutex_init(&reads->lock, NULL);
    pthread_cond_init(&reads->changed, NULL);
    cpu_set_t processors;
    unsigned wanted = 1;
    if (sched_getaffinity(0, sizeof processors, &processors) == 0) {
        wanted = (unsigned)CPU_COUNT(&processors);
    }
    wanted = wanted > MOST_THREADS ? MOST_THREADS : wanted;
    reads->bounces = malloc(wanted * BOUNCE);
    if (!reads->bounces) {
        bhi_reads_destroy(reads);
        errno = ENOMEM;
        return NULL;
    }
    while (reads->threads + 1 < wanted) {
        const int error = pthread_create(&reads->thread[reads->threads], NULL, serve, reads);
        if (error != 0) {
            bhi_reads_destroy(reads);
            errno = error;
            return NULL;
        }
        reads->threads++;
    }
    return reads;
}

void bhi_reads_destroy(struct bhi_reads *reads) {
    if (!reads) {
        return;
    }
    pthread_mutex_lock(&reads->lock);
    reads->stop = true;
    pthread_cond_broadcast(&reads->changed);
    pthread_mutex_unlock(&reads->lock);
    for (unsigned i = 0; i < reads->threads; i++) {
        pthread_join(reads->thread[i], NULL);
    }
    pthread_cond_destroy(&reads->changed);
    pthread_mutex_destroy(&reads->lock);
    free(reads->bounces);
    free(reads);
}

bool bhi_reads_run(struct bhi_reads *reads, int fd, int out, uint64_t offset, uint64_t bytes,
                   _Atomic uint64_t *done, struct bhi_read_failure *failure) {
    pthread_mutex_lock(&reads->lock);
    reads->fd = fd;
    reads->out = out;
    reads->offset = offset;
    reads->bytes = bytes;
    reads->done = done;
    reads->failed = false;
    atomic_store(&reads->next, 0);
    /* For a single chunk no thread is woken: reading it takes less time than waking. */
    if (bytes > CHUNK) {
        reads->busy = reads->threads;
        reads->job++;
        pthread_cond_broadcast(&reads->changed);
    }
    pthread_mutex_unlock(&reads->lock);
    work(reads, reads->bounces);
    pthread_mutex_lock(&reads->lock);
    while (reads->busy > 0) {
        pthread_cond_wait(&reads->changed, &reads->lock);
    }
    const bool failed = reads->failed;
    if (failed) {
        *failure = reads->failure;
    }
    pthread_mutex_unlock(&reads->lock);
    return !failed;
}

#include "ipc/progress.h"

#include "base/check.h"
#include "base/copy_once.h"
#include "base/fd.h"
#include "base/futex.h"
#include "base/memfd.h"
#include "base/owner.h"
#include "base/status.h"
#include "base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PROGRESS_VERSION 5u
#define MAX_RESULTS      (1u << 20)

_Static_assert(sizeof(struct bhi_progress_header) <= 4096, "the header is one page");
_Static_assert(sizeof(struct bhi_result) == 64, "a cache line, copied word by word");
_Static_assert(offsetof(struct bhi_progress_header, completed_word) % 64 == 0 &&
                   offsetof(struct bhi_progress_header, tail) / 64 ==
                       offsetof(struct bhi_progress_header, completed_word) / 64 &&
                   offsetof(struct bhi_progress_header, started_seq) % 64 == 0 &&
                   offsetof(struct bhi_progress_header, started_seq) / 64 <
                       offsetof(struct bhi_progress_header, sleeping) / 64,
               "what is written for each submission is apart from what a waiting host reads");
_Static_assert(sizeof(struct bhi_error_slot) % 8 == 0, "copied word by word");

static bool results_valid(uint32_t results) {
    return results >= 1 && results <= MAX_RESULTS && (results & (results - 1)) == 0;
}

size_t bhi_progress_bytes(uint32_t results) {
    return bhi_page_round(2 * bhi_page_round(1) + (uint64_t)results * sizeof(struct bhi_result) +
                          BHI_ERROR_SLOTS * sizeof(struct bhi_error_slot));
}

const char *bhi_step_name(uint32_t step) {
    static const char *const names[BHI_STEP_COUNT] = {
        [BHI_STEP_FORKED] = "forked",   [BHI_STEP_SANDBOX] = "sandbox",
        [BHI_STEP_CONTROL] = "control", [BHI_STEP_DEVICE] = "device",
        [BHI_STEP_WARM_UP] = "warm-up", [BHI_STEP_LOCK_DOWN] = "lock-down",
        [BHI_STEP_RUNNING] = "running",
    };
    return step < BHI_STEP_COUNT ? names[step] : "unknown";
}

/* -- worker -------------------------------------------------------------------------------- */

int bhi_progress_map(struct bhi_progress *progress, int fd, uint64_t bytes) {
    *progress = (struct bhi_progress){0};
    uint64_t page = bhi_page_round(1);
    if (bytes < bhi_progress_bytes(1) || bytes > bhi_progress_bytes(MAX_RESULTS)) {
        return -EINVAL;
    }
    int error = bhi_memfd_verify(fd, bytes, 0);
    if (error) {
        return error;
    }
    uint8_t *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        return -errno;
    }
    struct bhi_progress_header *header = (void *)base;
    uint32_t results = header->results;
    if (header->magic != BHI_PROGRESS_MAGIC || header->version != PROGRESS_VERSION ||
        !results_valid(results) || bhi_progress_bytes(results) != bytes) {
        munmap(base, bytes);
        return -EPROTO;
    }
    progress->header = header;
    progress->markers = (void *)(base + page);
    progress->results = (void *)(base + 2 * page);
    progress->errors = (void *)(progress->results + results);
    progress->mask = results - 1;
    progress->bytes = bytes;
    return 0;
}

void bhi_progress_unmap(struct bhi_progress *progress) {
    if (!progress || !progress->header) {
        return;
    }
    munmap(progress->header, progress->bytes);
    *progress = (struct bhi_progress){0};
}

void bhi_progress_result(struct bhi_progress *progress, const struct bhi_result *result,
                         const struct bhi_why *why) {
    progress->results[result->seq & progress->mask] = *result;
    if (!why) {
        return;
    }
    struct bhi_error_slot *slot = &progress->errors[result->seq % BHI_ERROR_SLOTS];
    slot->seq = result->seq;
    bhi_tell(&slot->told, why);
}

void bhi_progress_publish(struct bhi_progress *progress, uint64_t seq, uint64_t tail) {
    struct bhi_progress_header *h = progress->header;
    atomic_store_explicit(&h->tail, tail, memory_order_release);
    atomic_store_explicit(&h->completed_seq, seq, memory_order_release);
    atomic_store_explicit(&h->completed_word, (uint32_t)seq, memory_order_release);
}

void bhi_progress_wake(struct bhi_progress *progress) {
    bhi_futex_wake(&progress->header->completed_word, true, INT_MAX);
}

void bhi_progress_step(struct bhi_progress *progress, enum bhi_step step) {
    atomic_store_explicit(&progress->header->step, (uint32_t)step, memory_order_release);
}

void bhi_progress_step_failed(struct bhi_progress *progress, const struct bhi_why *why) {
    bhi_tell(&progress->header->step_told, why);
    progress->header->step_status = (uint32_t)bhi_why_status(why);
}

/* -- supervisor ---------------------------------------------------------------------------- */

static int write_header(int fd, uint32_t results) {
    uint32_t words[3] = {BHI_PROGRESS_MAGIC, PROGRESS_VERSION, results};
    _Static_assert(offsetof(struct bhi_progress_header, magic) == 0 &&
                       offsetof(struct bhi_progress_header, version) == 4 &&
                       offsetof(struct bhi_progress_header, results) == 8,
                   "written as three words");
    ssize_t n = pwrite(fd, words, sizeof words, 0);
    return n == (ssize_t)sizeof words ? 0 : n < 0 ? -errno : -EIO;
}

int bhi_progress_create(struct bhi_progress_view *view, uint32_t results) {
    *view = (struct bhi_progress_view){.fd = -1};
    if (!results_valid(results)) {
        return -EINVAL;
    }
    uint64_t page = bhi_page_round(1);
    size_t bytes = bhi_progress_bytes(results);
    BHI_AUTO_FD fd = bhi_memfd_create("bulkhead-progress", bytes, 0);
    const int error = fd < 0 ? fd : write_header(fd, results);
    if (error) {
        return error;
    }
    BHI_AUTO_MAPPING map = {mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0), bytes};
    if (map.at == MAP_FAILED || madvise(map.at, bytes, MADV_DONTFORK)) {
        return -errno;
    }
    uint8_t *base = bhi_mapping_steal(&map);
    view->header = (const void *)base;
    view->markers = (const void *)(base + page);
    view->results = (const void *)(base + 2 * page);
    view->errors = (const void *)(view->results + results);
    view->mask = results - 1;
    view->bytes = bytes;
    view->fd = bhi_fd_steal(&fd);
    return 0;
}

void bhi_progress_destroy(struct bhi_progress_view *view) {
    if (!view || !view->header) {
        return;
    }
    munmap((void *)(uintptr_t)view->header, view->bytes);
    close(view->fd);
    *view = (struct bhi_progress_view){.fd = -1};
}

int bhi_progress_poll(struct bhi_progress_view *view, uint64_t published, uint64_t head,
                      uint64_t *out_completed, uint64_t *out_tail) {
    /* completed is read first: the tail that is read afterwards is at least the one published with
     * it. */
    uint64_t completed = atomic_load_explicit(&view->header->completed_seq, memory_order_acquire);
    uint64_t tail = atomic_load_explicit(&view->header->tail, memory_order_acquire);
    if (completed > published || completed < view->seen_completed || tail > head ||
        tail < view->seen_tail) {
        return -EPROTO;
    }
    view->seen_completed = completed;
    view->seen_tail = tail;
    *out_completed = completed;
    *out_tail = tail;
    return 0;
}

int bhi_progress_read(const struct bhi_progress_view *view, uint64_t seq, struct bhi_result *out,
                      struct bhi_told *out_told, char text[BHI_ERROR_TEXT]) {
    struct bhi_result r;
    *out_told = (struct bhi_told){0};
    text[0] = '\0';
    bhi_copy_once(&r, &view->results[seq & view->mask], sizeof r);
    if (r.seq != seq || r.executed > 2 ||
        (r.status != BH_OK && !bhi_status_from_worker(r.status)) ||
        (r.bad_memory && r.status != BH_VULKAN && r.status != BH_CUDA)) {
        return -EPROTO;
    }
    uint64_t now = bhi_now_ns();
    if (r.ended_ns > now) {
        r.ended_ns = now;
    }
    if (r.started_ns > r.ended_ns) {
        r.started_ns = r.ended_ns;
    }
    if (r.status != BH_OK) {
        struct bhi_error_slot slot;
        bhi_copy_once(&slot, &view->errors[seq % BHI_ERROR_SLOTS], sizeof slot);
        struct bhi_why why;
        if (slot.seq == seq) {
            if (!bhi_told_read(&slot.told, r.status, &why)) {
                return -EPROTO;
            }
            bhi_sentence(text, BHI_ERROR_TEXT, &why);
            *out_told = slot.told;
        }
    }
    *out = r;
    return 0;
}

uint64_t bhi_progress_started(const struct bhi_progress_view *view, uint64_t completed,
                              uint64_t published) {
    uint64_t handed = atomic_load_explicit(&view->header->started_seq, memory_order_acquire);
    if (handed > published) {
        handed = published;
    }
    if (handed <= completed) {
        return completed;
    }
    /* Where the device writes a word of its own for what is in flight, that word is more precise.
     */
    uint32_t marker = atomic_load_explicit(&view->markers->started, memory_order_acquire);
    uint32_t ahead = marker - (uint32_t)completed;
    if (ahead >= 1 && ahead <= handed - completed) {
        return completed + ahead;
    }
    return handed;
}

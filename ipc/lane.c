#include "ipc/lane.h"

#include "base/check.h"
#include "base/fd.h"
#include "base/futex.h"
#include "base/memfd.h"
#include "base/owner.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LANE_VERSION 3u
#define LANE_SEALS   (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | F_SEAL_FUTURE_WRITE)

_Static_assert(sizeof(struct bhi_lane_header) <= 4096, "the header is one page");
_Static_assert(offsetof(struct bhi_lane_header, harvested) % 64 == 0 &&
                   offsetof(struct bhi_lane_header, harvested) / 64 <
                       offsetof(struct bhi_lane_header, abort_word) / 64,
               "written for each result, and nothing beside it is");
_Static_assert(sizeof(struct bhi_lane_record) % 8 == 0, "records are 8-byte aligned");

static bool capacity_valid(uint64_t capacity, uint64_t page) {
    return capacity >= page && capacity <= UINT32_MAX && (capacity & (capacity - 1)) == 0;
}

/* Maps the header, the ring, and the ring again, as one address range of page + 2 × capacity
 * bytes. Returns MAP_FAILED and errno on failure. */
static void *map_twice(int fd, uint64_t page, uint64_t capacity, int protection) {
    const size_t size = page + 2 * capacity;
    BHI_AUTO_MAPPING map = {
        mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), size};
    uint8_t *base = map.at;
    if (map.at == MAP_FAILED ||
        mmap(base, page + capacity, protection, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
        mmap(base + page + capacity, capacity, protection, MAP_SHARED | MAP_FIXED, fd,
             (off_t)page) == MAP_FAILED) {
        return MAP_FAILED;
    }
    return bhi_mapping_steal(&map);
}

/* -- supervisor ---------------------------------------------------------------------------- */

int bhi_lane_create(struct bhi_lane *lane, uint32_t capacity, uint32_t results) {
    uint64_t page = bhi_page_round(1);
    *lane = (struct bhi_lane){.fd = -1};
    if (!capacity_valid(capacity, page) || results == 0 || (results & (results - 1)) != 0) {
        return -EINVAL;
    }
    const size_t size = page + 2 * (uint64_t)capacity;
    BHI_AUTO_FD fd = bhi_memfd_create("bulkhead-lane", page + capacity, 1);
    if (fd < 0) {
        return fd;
    }
    BHI_AUTO_MAPPING map = {map_twice(fd, page, capacity, PROT_READ | PROT_WRITE), size};
    if (map.at == MAP_FAILED) {
        return -errno;
    }
    /* After the seal no new writable mapping can be made; the host's own mapping stays. */
    const int error = bhi_memfd_seal(fd, LANE_SEALS);
    if (error) {
        return error;
    }
    /* A forked child of the host must neither keep nor write the stream of its parent. */
    if (madvise(map.at, size, MADV_DONTFORK)) {
        return -errno;
    }
    uint8_t *base = bhi_mapping_steal(&map);
    lane->header = (struct bhi_lane_header *)base;
    lane->header->magic = BHI_LANE_MAGIC;
    lane->header->version = LANE_VERSION;
    lane->header->capacity = capacity;
    lane->header->results = results;
    lane->ring = base + page;
    lane->capacity = capacity;
    lane->fd = bhi_fd_steal(&fd);
    return 0;
}

void bhi_lane_destroy(struct bhi_lane *lane) {
    if (!lane || !lane->header) {
        return;
    }
    munmap(lane->header, bhi_page_round(1) + 2 * lane->capacity);
    close(lane->fd);
    *lane = (struct bhi_lane){.fd = -1};
}

int64_t bhi_lane_space(const struct bhi_lane *lane, uint64_t tail) {
    if (tail > lane->head || lane->head - tail > lane->capacity) {
        return -1;
    }
    return (int64_t)(lane->capacity - (lane->head - tail));
}

void bhi_lane_publish(struct bhi_lane *lane, const struct bhi_lane_record *record) {
    uint64_t size = record->size;
    BHI_CHECK(size >= sizeof *record && size % 8 == 0 && size <= lane->capacity / 2);
    memcpy(lane->ring + (lane->head & (lane->capacity - 1)), record, size);
    lane->head += size;
    atomic_store_explicit(&lane->header->head, lane->head, memory_order_release);
    /* seq_cst orders both sides. The host writes the doorbell, then reads progress.sleeping; the
     * worker writes that it sleeps, then reads the doorbell. At least one of them sees the other's
     * word. */
    atomic_fetch_add_explicit(&lane->header->doorbell, 1, memory_order_seq_cst);
}

void bhi_lane_control(struct bhi_lane *lane, uint32_t control_sent) {
    atomic_store_explicit(&lane->header->control_sent, control_sent, memory_order_release);
    atomic_fetch_add_explicit(&lane->header->doorbell, 1, memory_order_seq_cst);
}

void bhi_lane_wake(struct bhi_lane *lane) {
    bhi_futex_wake(&lane->header->doorbell, true, INT_MAX);
}

void bhi_lane_abort(struct bhi_lane *lane, uint64_t seq) {
    atomic_store_explicit(&lane->header->abort_seq, seq, memory_order_release);
    atomic_fetch_add_explicit(&lane->header->abort_word, 1, memory_order_seq_cst);
    bhi_futex_wake(&lane->header->abort_word, true, 1);
}

/* -- worker -------------------------------------------------------------------------------- */

int bhi_lane_view_map(struct bhi_lane_view *view, int fd, uint64_t bytes) {
    uint64_t page = bhi_page_round(1);
    *view = (struct bhi_lane_view){0};
    if (bytes < page || !capacity_valid(bytes - page, page)) {
        return -EINVAL;
    }
    uint64_t capacity = bytes - page;
    int error = bhi_memfd_verify(fd, bytes, F_SEAL_FUTURE_WRITE);
    if (error) {
        return error;
    }
    BHI_AUTO_MAPPING map = {map_twice(fd, page, capacity, PROT_READ), page + 2 * capacity};
    if (map.at == MAP_FAILED) {
        return -errno;
    }
    const struct bhi_lane_header *header = map.at;
    if (header->magic != BHI_LANE_MAGIC || header->version != LANE_VERSION ||
        header->capacity != capacity) {
        return -EPROTO;
    }
    uint8_t *base = bhi_mapping_steal(&map);
    *view = (struct bhi_lane_view){.header = header, .ring = base + page, .capacity = capacity};
    return 0;
}

const struct bhi_lane_record *bhi_lane_peek(const struct bhi_lane_view *view, uint64_t offset,
                                            int *out_error) {
    *out_error = 0;
    uint64_t head = atomic_load_explicit(&view->header->head, memory_order_acquire);
    uint64_t published = head - view->tail;
    if (head < view->tail || published > view->capacity || offset > published || offset % 8 != 0) {
        *out_error = -EPROTO;
        return NULL;
    }
    uint64_t left = published - offset;
    if (left == 0) {
        return NULL;
    }
    const struct bhi_lane_record *record =
        (const void *)(view->ring + ((view->tail + offset) & (view->capacity - 1)));
    if (left < sizeof *record || record->size < sizeof *record || record->size % 8 != 0 ||
        record->size > view->capacity / 2 || record->size > left) {
        *out_error = -EPROTO;
        return NULL;
    }
    return record;
}

static uint64_t withdrawn_bit(uint64_t seq) {
    return 1ull << (seq % 64);
}

void bhi_lane_withdraw(struct bhi_lane *lane, uint64_t seq, bool withdrawn) {
    _Atomic uint64_t *word = &lane->header->withdrawn[seq % BHI_LANE_WITHDRAWN / 64];
    if (withdrawn) {
        atomic_fetch_or_explicit(word, withdrawn_bit(seq), memory_order_seq_cst);
    } else {
        atomic_fetch_and_explicit(word, ~withdrawn_bit(seq), memory_order_seq_cst);
    }
}

bool bhi_lane_withdrawn(const struct bhi_lane_view *view, uint64_t seq) {
    const _Atomic uint64_t *word = &view->header->withdrawn[seq % BHI_LANE_WITHDRAWN / 64];
    return (atomic_load_explicit(word, memory_order_acquire) & withdrawn_bit(seq)) != 0;
}

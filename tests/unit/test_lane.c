#include "base/memfd.h"
#include "ipc/lane.h"
#include "lane_view.h"
#include "support.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#define PAGE     ((uint64_t)sysconf(_SC_PAGESIZE))
#define CAPACITY ((uint32_t)PAGE)

static struct {
    struct bhi_lane lane;
    struct bhi_lane_view view;
} f;

static void set_up(void) {
    BHT_EQ(bhi_lane_create(&f.lane, CAPACITY, 16), 0);
    BHT_EQ(bhi_lane_view_map(&f.view, f.lane.fd, PAGE + CAPACITY), 0);
}

static void tear_down(void) {
    bht_lane_view_unmap(&f.view);
    bhi_lane_destroy(&f.lane);
}

/* A record of |size| bytes whose payload is |fill|. */
static const struct bhi_lane_record *make_record(uint64_t seq, uint64_t size, uint8_t fill) {
    static _Alignas(8) uint8_t bytes[1 << 16];
    struct bhi_lane_record *record = (void *)bytes;
    memset(bytes, fill, size);
    *record = (struct bhi_lane_record){.size = size, .seq = seq, .command_count = 1};
    return record;
}

TEST(test_worker_cannot_write) {
    uint64_t bytes = PAGE + CAPACITY;
    BHT_EQ(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f.lane.fd, 0), MAP_FAILED);
    BHT_EQ(errno, EPERM);
    BHT_EQ(mprotect((void *)(uintptr_t)f.view.header, PAGE, PROT_READ | PROT_WRITE), -1);
    BHT_EQ(errno, EACCES);
    BHT_EQ(mprotect((void *)(uintptr_t)f.view.ring, PAGE, PROT_READ | PROT_WRITE), -1);
    BHT_EQ(pwrite(f.lane.fd, "x", 1, 0), -1);
    BHT_EQ(errno, EPERM);
    BHT_EQ(ftruncate(f.lane.fd, 0), -1);
    BHT_EQ(fallocate(f.lane.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
    BHT_EQ(madvise((void *)(uintptr_t)f.view.ring, PAGE, MADV_REMOVE), -1);
    /* A private copy changes nothing for anybody else. */
    uint8_t *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, f.lane.fd, 0);
    BHT_NE(copy, MAP_FAILED);
    memset(copy, 0, bytes);
    BHT_EQ(f.view.header->magic, BHI_LANE_MAGIC);
    munmap(copy, bytes);
}

static uint64_t number_at_wake;

BHT_WRAP(void, bhi_futex_wake, const _Atomic uint32_t *word, bool shared, int how_many) {
    number_at_wake = word == &f.lane.header->abort_word ? f.lane.header->abort_seq : 0;
    __real_bhi_futex_wake(word, shared, how_many);
}

/* The watchdog that sees the new word must see what is to be stopped. */
TEST(an_aborts_number_is_there_before_the_watchdog_wakes) {
    bhi_lane_abort(&f.lane, 7);
    BHT_EQ(number_at_wake, 7);
    BHT_EQ(f.view.header->abort_seq, 7);
}

TEST(test_ring_is_mirrored) {
    for (uint64_t i = 0; i < CAPACITY; i += 509) {
        f.lane.ring[i] = (uint8_t)i;
        BHT_EQ(f.lane.ring[i + CAPACITY], (uint8_t)i);
        BHT_EQ(f.view.ring[i], (uint8_t)i);
        BHT_EQ(f.view.ring[i + CAPACITY], (uint8_t)i);
        f.lane.ring[i + CAPACITY] = (uint8_t)~i;
        BHT_EQ(f.view.ring[i], (uint8_t)~i);
    }
}

static void touch(void *word) {
    (void)*(volatile uint32_t *)word;
}

TEST(test_not_in_children) {
    BHT_TRUE(dies(touch, f.lane.header));
    BHT_TRUE(dies(touch, f.lane.ring));
    BHT_TRUE(dies(touch, f.lane.ring + CAPACITY));
}

#define FIRST sizeof(struct bhi_lane_record)

static void expect_none(uint64_t offset, int expected) {
    int error = 1;
    BHT_EQ(bhi_lane_peek(&f.view, offset, &error), NULL);
    BHT_EQ(error, expected);
}

TEST(test_publish_and_peek) {
    int error = 1;
    uint32_t doorbell = atomic_load(&f.view.header->doorbell);
    expect_none(0, 0);
    bhi_lane_publish(&f.lane, make_record(1, FIRST, 0));
    bhi_lane_publish(&f.lane, make_record(2, 400, 0x5a));
    BHT_EQ(atomic_load(&f.view.header->doorbell), doorbell + 2);
    const struct bhi_lane_record *first = bhi_lane_peek(&f.view, 0, &error);
    BHT_NE(first, NULL);
    BHT_EQ(first->seq, 1);
    const struct bhi_lane_record *second = bhi_lane_peek(&f.view, FIRST, &error);
    BHT_NE(second, NULL);
    BHT_EQ(second->seq, 2);
    BHT_MEM_EQ(second, make_record(2, 400, 0x5a), 400);
    expect_none(FIRST + 400, 0);
    /* Beyond what is published, or not where a record can be. */
    expect_none(FIRST + 408, -EPROTO);
    expect_none(UINT64_MAX - 7, -EPROTO);
    expect_none(4, -EPROTO);
}

TEST(test_control_rings) {
    uint32_t doorbell = atomic_load(&f.view.header->doorbell);
    bhi_lane_control(&f.lane, UINT32_MAX);
    BHT_EQ(atomic_load(&f.view.header->control_sent), UINT32_MAX);
    BHT_EQ(atomic_load(&f.view.header->doorbell), doorbell + 1);
}

/* Records of every size, round the ring many times: each comes out whole, wherever it lies. */
TEST(test_wrap_around) {
    uint64_t size = sizeof(struct bhi_lane_record);
    for (uint64_t seq = 1; seq <= 2000; seq++) {
        int error;
        bhi_lane_publish(&f.lane, make_record(seq, size, (uint8_t)seq));
        BHT_EQ(bhi_lane_space(&f.lane, f.view.tail), CAPACITY - size);
        const struct bhi_lane_record *got = bhi_lane_peek(&f.view, 0, &error);
        BHT_NE(got, NULL);
        BHT_MEM_EQ(got, make_record(seq, size, (uint8_t)seq), size);
        f.view.tail += size;
        size = size + 8 <= CAPACITY / 2 ? size + 8 : sizeof(struct bhi_lane_record);
    }
}

/* A lane that has carried 2^64 bytes, nearly: positions do not wrap in any lifetime, but the
 * arithmetic must hold to the end. */
TEST(test_space_and_lying_tail) {
    static const uint64_t heads[] = {0, 8, 4096, 1 << 20, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        uint64_t head = f.lane.head = heads[i];
        BHT_EQ(bhi_lane_space(&f.lane, head), CAPACITY);
        BHT_EQ(bhi_lane_space(&f.lane, head + 1), -1);
        BHT_EQ(bhi_lane_space(&f.lane, UINT64_MAX), -1);
        if (head >= CAPACITY) {
            BHT_EQ(bhi_lane_space(&f.lane, head - CAPACITY), 0);
        }
        if (head > CAPACITY) {
            BHT_EQ(bhi_lane_space(&f.lane, head - CAPACITY - 1), -1);
            BHT_EQ(bhi_lane_space(&f.lane, 0), -1);
        }
    }
    f.lane.head = 0;
}

/* The supervisor is trusted, but a bug in it must not send the worker out of the ring. */
TEST(test_peek_refuses_bad_records) {
    static const uint64_t sizes[] = {0, 8, 16, 23, 25, 28, 2056, 4096, 1ull << 32, UINT64_MAX - 7};
    bhi_lane_publish(&f.lane, make_record(1, 48, 0));
    struct bhi_lane_record *record = (void *)f.lane.ring;
    int error;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        record->size = sizes[i];
        expect_none(0, -EPROTO);
    }
    record->size = 56; /* more than is published */
    expect_none(0, -EPROTO);
    record->size = 48;
    BHT_NE(bhi_lane_peek(&f.view, 0, &error), NULL);
    /* A head that is behind the tail, or too far ahead. */
    f.view.tail = 56;
    expect_none(0, -EPROTO);
    f.view.tail = 0;
    atomic_store(&f.lane.header->head, (uint64_t)CAPACITY + 8);
    expect_none(0, -EPROTO);
    atomic_store(&f.lane.header->head, 16); /* less than a record's header */
    expect_none(0, -EPROTO);
}

static void publish_bad(void *argument) {
    struct bhi_lane *lane = argument;
    struct bhi_lane copy = {0};
    /* The child has no lane mapped: a fresh one, so that it is the check that it dies of. */
    if (bhi_lane_create(&copy, CAPACITY, 16)) {
        _exit(0);
    }
    bhi_lane_publish(&copy, make_record(1, lane->head, 0));
}

TEST(test_publish_checks_itself) {
    static const uint64_t sizes[] = {16, 25, 2056, 8192};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        BHT_TRUE(dies(publish_bad, &(struct bhi_lane){.head = sizes[i]}));
    }
    BHT_TRUE(!dies(publish_bad, &(struct bhi_lane){.head = 2048}));
}

TEST(test_create_refuses) {
    struct bhi_lane lane;
    int before = count_fds();
    BHT_EQ(bhi_lane_create(&lane, 0, 16), -EINVAL);
    BHT_EQ(bhi_lane_create(&lane, 2048, 16), -EINVAL);
    BHT_EQ(bhi_lane_create(&lane, 3 * CAPACITY, 16), -EINVAL);
    BHT_EQ(bhi_lane_create(&lane, CAPACITY, 0), -EINVAL);
    BHT_EQ(bhi_lane_create(&lane, CAPACITY, 12), -EINVAL);
    bhi_lane_destroy(&lane);
    bhi_lane_destroy(NULL);
    BHT_EQ(bhi_lane_create(&lane, BHI_LANE_CAPACITY, 4096), 0);
    BHT_EQ(lane.header->results, 4096);
    BHT_EQ(lane.header->capacity, BHI_LANE_CAPACITY);
    bhi_lane_destroy(&lane);
    bhi_lane_destroy(&lane);
    BHT_EQ(count_fds(), before);
}

static int memfd_with_header(uint64_t bytes, int seals, uint32_t capacity) {
    int fd = bhi_memfd_create("lane", bytes, 1);
    struct bhi_lane_header header = {.magic = BHI_LANE_MAGIC, .version = 3, .capacity = capacity};
    BHT_EQ(pwrite(fd, &header, sizeof header, 0), sizeof header);
    if (seals) {
        BHT_EQ(bhi_memfd_seal(fd, seals), 0);
    }
    return fd;
}

TEST(test_view_refuses) {
    const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | F_SEAL_FUTURE_WRITE;
    uint64_t bytes = PAGE + CAPACITY;
    struct bhi_lane_view view;
    static const struct {
        int seals;
        uint32_t capacity_error;
        int expected;
    } cases[] = {
        {F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | F_SEAL_FUTURE_WRITE, 0, 0},
        {F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, 0, -EPERM},
        {F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE, 0, -EPERM},
        {0, 0, -EPERM},
        {F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | F_SEAL_FUTURE_WRITE, 4096, -EPROTO},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int fd = memfd_with_header(bytes, cases[i].seals, CAPACITY + cases[i].capacity_error);
        BHT_EQ(bhi_lane_view_map(&view, fd, bytes), cases[i].expected);
        bht_lane_view_unmap(&view);
        close(fd);
    }
    int blank = bhi_memfd_create("lane", bytes, 1);
    BHT_EQ(bhi_memfd_seal(blank, all), 0);
    BHT_EQ(bhi_lane_view_map(&view, blank, bytes), -EPROTO);
    close(blank);
    static const uint64_t sizes[] = {0, 4096, 4097, 3 * 4096 + 4096, 2 * 4096 + 4096, UINT64_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        BHT_EQ(bhi_lane_view_map(&view, f.lane.fd, sizes[i]), -EINVAL);
    }
    BHT_EQ(bhi_lane_view_map(&view, -1, bytes), -EBADF);
    bht_lane_view_unmap(&view);
}

BHT_AT_START(bht_around(set_up, tear_down))

#include "base/memfd.h"
#include "ipc/lane.h"
#include "support.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#define PAGE     ((uint64_t)sysconf(_SC_PAGESIZE))
#define CAPACITY ((uint32_t)PAGE)

struct fixture {
    struct bhi_lane lane;
    struct bhi_lane_view view;
};

static int set_up(void **state) {
    static struct fixture f;
    if (bhi_lane_create(&f.lane, CAPACITY, 16) ||
        bhi_lane_view_map(&f.view, f.lane.fd, PAGE + CAPACITY))
        return -1;
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    bhi_lane_view_unmap(&f->view);
    bhi_lane_destroy(&f->lane);
    return 0;
}

/* A record of |size| bytes whose payload is |fill|. */
static const struct bhi_lane_record *make_record(uint64_t seq, uint64_t size, uint8_t fill) {
    static _Alignas(8) uint8_t bytes[1 << 16];
    struct bhi_lane_record *record = (void *)bytes;
    memset(bytes, fill, size);
    *record = (struct bhi_lane_record){.size = size, .seq = seq, .command_count = 1};
    return record;
}

static void test_worker_cannot_write(void **state) {
    struct fixture *f = *state;
    uint64_t bytes = PAGE + CAPACITY;
    assert_ptr_equal(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f->lane.fd, 0),
                     MAP_FAILED);
    assert_int_equal(errno, EPERM);
    assert_int_equal(mprotect((void *)(uintptr_t)f->view.header, PAGE, PROT_READ | PROT_WRITE), -1);
    assert_int_equal(errno, EACCES);
    assert_int_equal(mprotect((void *)(uintptr_t)f->view.ring, PAGE, PROT_READ | PROT_WRITE), -1);
    assert_int_equal(pwrite(f->lane.fd, "x", 1, 0), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(f->lane.fd, 0), -1);
    assert_int_equal(fallocate(f->lane.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096),
                     -1);
    assert_int_equal(madvise((void *)(uintptr_t)f->view.ring, PAGE, MADV_REMOVE), -1);
    /* A private copy changes nothing for anybody else. */
    uint8_t *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, f->lane.fd, 0);
    assert_true(copy != MAP_FAILED);
    memset(copy, 0, bytes);
    assert_int_equal(f->view.header->magic, BHI_LANE_MAGIC);
    munmap(copy, bytes);
}

static void test_ring_is_mirrored(void **state) {
    struct fixture *f = *state;
    for (uint64_t i = 0; i < CAPACITY; i += 509) {
        f->lane.ring[i] = (uint8_t)i;
        assert_int_equal(f->lane.ring[i + CAPACITY], (uint8_t)i);
        assert_int_equal(f->view.ring[i], (uint8_t)i);
        assert_int_equal(f->view.ring[i + CAPACITY], (uint8_t)i);
        f->lane.ring[i + CAPACITY] = (uint8_t)~i;
        assert_int_equal(f->view.ring[i], (uint8_t)~i);
    }
}

static void touch(void *word) {
    (void)*(volatile uint32_t *)word;
}

static void test_not_in_children(void **state) {
    struct fixture *f = *state;
    assert_true(dies(touch, f->lane.header));
    assert_true(dies(touch, f->lane.ring));
    assert_true(dies(touch, f->lane.ring + CAPACITY));
}

static void test_publish_and_peek(void **state) {
    struct fixture *f = *state;
    int error = 1;
    uint32_t doorbell = atomic_load(&f->view.header->doorbell);
    assert_null(bhi_lane_peek(&f->view, 0, &error));
    assert_int_equal(error, 0);
    bhi_lane_publish(&f->lane, make_record(1, 24, 0));
    bhi_lane_publish(&f->lane, make_record(2, 400, 0x5a));
    assert_int_equal(atomic_load(&f->view.header->doorbell), doorbell + 2);
    const struct bhi_lane_record *first = bhi_lane_peek(&f->view, 0, &error);
    assert_non_null(first);
    assert_int_equal(first->seq, 1);
    const struct bhi_lane_record *second = bhi_lane_peek(&f->view, 24, &error);
    assert_non_null(second);
    assert_int_equal(second->seq, 2);
    assert_memory_equal(second, make_record(2, 400, 0x5a), 400);
    assert_null(bhi_lane_peek(&f->view, 424, &error));
    assert_int_equal(error, 0);
    /* Beyond what is published, or not where a record can be. */
    assert_null(bhi_lane_peek(&f->view, 432, &error));
    assert_int_equal(error, -EPROTO);
    assert_null(bhi_lane_peek(&f->view, UINT64_MAX - 7, &error));
    assert_int_equal(error, -EPROTO);
    assert_null(bhi_lane_peek(&f->view, 4, &error));
    assert_int_equal(error, -EPROTO);
}

static void test_control_rings(void **state) {
    struct fixture *f = *state;
    uint32_t doorbell = atomic_load(&f->view.header->doorbell);
    bhi_lane_control(&f->lane, UINT32_MAX);
    assert_int_equal(atomic_load(&f->view.header->control_sent), UINT32_MAX);
    assert_int_equal(atomic_load(&f->view.header->doorbell), doorbell + 1);
}

/* Records of every size, round the ring many times: each comes out whole, wherever it lies. */
static void test_wrap_around(void **state) {
    struct fixture *f = *state;
    uint64_t size = sizeof(struct bhi_lane_record);
    for (uint64_t seq = 1; seq <= 2000; seq++) {
        int error;
        bhi_lane_publish(&f->lane, make_record(seq, size, (uint8_t)seq));
        assert_int_equal(bhi_lane_space(&f->lane, f->view.tail), CAPACITY - size);
        const struct bhi_lane_record *got = bhi_lane_peek(&f->view, 0, &error);
        assert_non_null(got);
        assert_memory_equal(got, make_record(seq, size, (uint8_t)seq), size);
        f->view.tail += size;
        size = size + 8 <= CAPACITY / 2 ? size + 8 : sizeof(struct bhi_lane_record);
    }
}

/* A lane that has carried 2^64 bytes, nearly: positions do not wrap in any lifetime, but the
 * arithmetic must hold to the end. */
static void test_space_and_lying_tail(void **state) {
    struct fixture *f = *state;
    static const uint64_t heads[] = {0, 8, 4096, 1 << 20, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        uint64_t head = f->lane.head = heads[i];
        assert_int_equal(bhi_lane_space(&f->lane, head), CAPACITY);
        assert_int_equal(bhi_lane_space(&f->lane, head + 1), -1);
        assert_int_equal(bhi_lane_space(&f->lane, UINT64_MAX), -1);
        if (head >= CAPACITY)
            assert_int_equal(bhi_lane_space(&f->lane, head - CAPACITY), 0);
        if (head > CAPACITY) {
            assert_int_equal(bhi_lane_space(&f->lane, head - CAPACITY - 1), -1);
            assert_int_equal(bhi_lane_space(&f->lane, 0), -1);
        }
    }
    f->lane.head = 0;
}

/* The supervisor is trusted, but a bug in it must not send the worker out of the ring. */
static void test_peek_refuses_bad_records(void **state) {
    struct fixture *f = *state;
    static const uint64_t sizes[] = {0, 8, 16, 23, 25, 28, 2056, 4096, 1ull << 32, UINT64_MAX - 7};
    bhi_lane_publish(&f->lane, make_record(1, 48, 0));
    struct bhi_lane_record *record = (void *)f->lane.ring;
    int error;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        record->size = sizes[i];
        error = 0;
        assert_null(bhi_lane_peek(&f->view, 0, &error));
        assert_int_equal(error, -EPROTO);
    }
    record->size = 56; /* more than is published */
    assert_null(bhi_lane_peek(&f->view, 0, &error));
    assert_int_equal(error, -EPROTO);
    record->size = 48;
    assert_non_null(bhi_lane_peek(&f->view, 0, &error));
    /* A head that is behind the tail, or too far ahead. */
    f->view.tail = 56;
    assert_null(bhi_lane_peek(&f->view, 0, &error));
    assert_int_equal(error, -EPROTO);
    f->view.tail = 0;
    atomic_store(&f->lane.header->head, (uint64_t)CAPACITY + 8);
    assert_null(bhi_lane_peek(&f->view, 0, &error));
    assert_int_equal(error, -EPROTO);
    atomic_store(&f->lane.header->head, 16); /* less than a record's header */
    assert_null(bhi_lane_peek(&f->view, 0, &error));
    assert_int_equal(error, -EPROTO);
}

static void publish_bad(void *argument) {
    struct bhi_lane *lane = argument;
    struct bhi_lane copy = {0};
    /* The child has no lane mapped: a fresh one, so that it is the check that it dies of. */
    if (bhi_lane_create(&copy, CAPACITY, 16))
        _exit(0);
    bhi_lane_publish(&copy, make_record(1, lane->head, 0));
}

static void test_publish_checks_itself(void **state) {
    (void)state;
    static const uint64_t sizes[] = {16, 25, 2056, 8192};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        assert_true(dies(publish_bad, &(struct bhi_lane){.head = sizes[i]}));
    assert_false(dies(publish_bad, &(struct bhi_lane){.head = 2048}));
}

static void test_create_refuses(void **state) {
    (void)state;
    struct bhi_lane lane;
    int before = count_fds();
    assert_int_equal(bhi_lane_create(&lane, 0, 16), -EINVAL);
    assert_int_equal(bhi_lane_create(&lane, 2048, 16), -EINVAL);
    assert_int_equal(bhi_lane_create(&lane, 3 * CAPACITY, 16), -EINVAL);
    assert_int_equal(bhi_lane_create(&lane, CAPACITY, 0), -EINVAL);
    assert_int_equal(bhi_lane_create(&lane, CAPACITY, 12), -EINVAL);
    bhi_lane_destroy(&lane);
    bhi_lane_destroy(NULL);
    assert_int_equal(bhi_lane_create(&lane, BHI_LANE_CAPACITY, 4096), 0);
    assert_int_equal(lane.header->results, 4096);
    assert_int_equal(lane.header->capacity, BHI_LANE_CAPACITY);
    bhi_lane_destroy(&lane);
    bhi_lane_destroy(&lane);
    assert_int_equal(count_fds(), before);
}

static int memfd_with_header(uint64_t bytes, int seals, uint32_t capacity) {
    int fd = bhi_memfd_create("lane", bytes, 1);
    struct bhi_lane_header header = {.magic = BHI_LANE_MAGIC, .version = 1, .capacity = capacity};
    assert_int_equal(pwrite(fd, &header, sizeof header, 0), sizeof header);
    if (seals)
        assert_int_equal(bhi_memfd_seal(fd, seals), 0);
    return fd;
}

static void test_view_refuses(void **state) {
    struct fixture *f = *state;
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
        assert_int_equal(bhi_lane_view_map(&view, fd, bytes), cases[i].expected);
        bhi_lane_view_unmap(&view);
        close(fd);
    }
    int blank = bhi_memfd_create("lane", bytes, 1);
    assert_int_equal(bhi_memfd_seal(blank, all), 0);
    assert_int_equal(bhi_lane_view_map(&view, blank, bytes), -EPROTO);
    close(blank);
    static const uint64_t sizes[] = {0, 4096, 4097, 3 * 4096 + 4096, 2 * 4096 + 4096, UINT64_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        assert_int_equal(bhi_lane_view_map(&view, f->lane.fd, sizes[i]), -EINVAL);
    assert_int_equal(bhi_lane_view_map(&view, -1, bytes), -EBADF);
    bhi_lane_view_unmap(&view);
    bhi_lane_view_unmap(NULL);
}

#define WITH_LANE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_LANE(test_worker_cannot_write),
        WITH_LANE(test_ring_is_mirrored),
        WITH_LANE(test_not_in_children),
        WITH_LANE(test_publish_and_peek),
        WITH_LANE(test_control_rings),
        WITH_LANE(test_wrap_around),
        WITH_LANE(test_space_and_lying_tail),
        WITH_LANE(test_peek_refuses_bad_records),
        cmocka_unit_test(test_publish_checks_itself),
        cmocka_unit_test(test_create_refuses),
        WITH_LANE(test_view_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

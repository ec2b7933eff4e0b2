#include "cmocka_all.h"
#include "memfd.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static void test_page_round(void **state) {
    (void)state;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(bhi_page_round(0), page);
    assert_int_equal(bhi_page_round(1), page);
    assert_int_equal(bhi_page_round(page - 1), page);
    assert_int_equal(bhi_page_round(page), page);
    assert_int_equal(bhi_page_round(page + 1), 2 * page);
    assert_int_equal(bhi_page_round(UINT64_MAX - page + 1), UINT64_MAX - page + 1);
    assert_int_equal(bhi_page_round(UINT64_MAX - page + 2), 0);
    assert_int_equal(bhi_page_round(UINT64_MAX), 0);
}

static void test_create_is_sealed(void **state) {
    (void)state;
    int fd = bhi_memfd_create("test", 5000, 0);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GET_SEALS) & SEALS, SEALS);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(bhi_memfd_verify(fd, 5000, 0), 0);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(fd, 1 << 20), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(bhi_memfd_seal(fd, F_SEAL_WRITE), -EPERM);
    close(fd);
}

static void test_create_empty_and_absurd(void **state) {
    (void)state;
    int fd = bhi_memfd_create("test", 0, 0);
    assert_true(fd >= 0);
    assert_int_equal(lseek(fd, 0, SEEK_END), sysconf(_SC_PAGESIZE));
    assert_int_equal(bhi_memfd_verify(fd, 0, 0), 0);
    close(fd);
    assert_int_equal(bhi_memfd_create("test", UINT64_MAX, 0), -EFBIG);
    assert_int_equal(bhi_memfd_create("test", (uint64_t)INT64_MAX + 1, 0), -EFBIG);
}

static void test_left_open(void **state) {
    (void)state;
    int fd = bhi_memfd_create("test", 4096, 1);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GET_SEALS) & SEALS, 0);
    assert_int_equal(bhi_memfd_verify(fd, 4096, 0), -EPERM);
    /* Each seal that is missing is noticed. */
    static const int steps[] = {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_FUTURE_WRITE};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(bhi_memfd_seal(fd, steps[i]), 0);
        assert_int_equal(bhi_memfd_verify(fd, 4096, 0), -EPERM);
    }
    assert_int_equal(bhi_memfd_seal(fd, F_SEAL_SEAL), 0);
    assert_int_equal(bhi_memfd_verify(fd, 4096, 0), 0);
    assert_int_equal(bhi_memfd_verify(fd, 4096, F_SEAL_FUTURE_WRITE), 0);
    assert_int_equal(bhi_memfd_verify(fd, 4096, F_SEAL_WRITE), -EPERM);
    close(fd);
}

static void test_wrong_size(void **state) {
    (void)state;
    int fd = bhi_memfd_create("test", 8192, 0);
    assert_int_equal(bhi_memfd_verify(fd, 8192, 0), 0);
    assert_int_equal(bhi_memfd_verify(fd, 8191, 0), 0); /* the same pages */
    assert_int_equal(bhi_memfd_verify(fd, 4096, 0), -EINVAL);
    assert_int_equal(bhi_memfd_verify(fd, 8193, 0), -EINVAL);
    assert_int_equal(bhi_memfd_verify(fd, 0, 0), -EINVAL);
    assert_int_equal(bhi_memfd_verify(fd, UINT64_MAX, 0), -EINVAL);
    close(fd);
}

static void test_not_a_memfd(void **state) {
    (void)state;
    int pipes[2];
    char path[] = "bulkhead-memfd-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    unlink(path);
    assert_int_equal(ftruncate(file, 4096), 0);
    assert_int_equal(pipe(pipes), 0);
    int event = eventfd(0, 0);
    int zero = open("/dev/zero", O_RDWR);
    assert_true(bhi_memfd_verify(file, 4096, 0) < 0);
    assert_int_equal(bhi_memfd_verify(pipes[0], 4096, 0), -EPERM);
    assert_int_equal(bhi_memfd_verify(event, 4096, 0), -EPERM);
    assert_int_equal(bhi_memfd_verify(zero, 4096, 0), -EPERM);
    close(file);
    close(pipes[0]);
    close(pipes[1]);
    close(event);
    close(zero);
    assert_int_equal(bhi_memfd_verify(-1, 4096, 0), -EBADF);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page_round),
        cmocka_unit_test(test_create_is_sealed),
        cmocka_unit_test(test_create_empty_and_absurd),
        cmocka_unit_test(test_left_open),
        cmocka_unit_test(test_wrong_size),
        cmocka_unit_test(test_not_a_memfd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "base/memfd.h"
#include "cmocka_all.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/* A memfd that somebody else made: it need not end with a page. */
static void test_size_within_the_last_page(void **state) {
    (void)state;
    static const struct {
        off_t has;
        uint64_t bytes;
        int answer;
    } cases[] = {{5000, 5000, 0},
                 {5000, 4097, 0},
                 {5000, 5001, -EINVAL},
                 {5000, 4096, -EINVAL},
                 {5000, 8192, -EINVAL},
                 {1, 1, 0},
                 {1, 0, 0},
                 {0, 0, -EINVAL},
                 {0, 1, -EINVAL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = memfd_create("test", MFD_ALLOW_SEALING);
        assert_int_equal(ftruncate(fd, cases[i].has), 0);
        assert_int_equal(bhi_memfd_seal(fd, SEALS), 0);
        assert_int_equal(bhi_memfd_verify(fd, cases[i].bytes, 0), cases[i].answer);
        close(fd);
    }
}

/* A read-only descriptor has no way to the bytes, in a process that nothing else holds back but
 * that it is not root. */
static void try_everything(int fd) {
    assert_true(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
    assert_int_equal(errno, EACCES);
    assert_true(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
    char *read_only = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(read_only != MAP_FAILED);
    assert_int_equal(mprotect(read_only, 4096, PROT_READ | PROT_WRITE), -1);
    assert_int_equal(errno, EACCES);
    char *twice = mremap(read_only, 0, 4096, MREMAP_MAYMOVE);
    assert_true(twice != MAP_FAILED);
    assert_int_equal(mprotect(twice, 4096, PROT_READ | PROT_WRITE), -1);
    assert_int_equal(madvise(read_only, 4096, MADV_REMOVE), -1);
    munmap(twice, 4096);
    munmap(read_only, 4096);
    /* A private mapping can be written to, and is a copy. */
    char *private = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    assert_true(private != MAP_FAILED);
    private[0] = 99;
    munmap(private, 4096);
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(pwrite(fd, "x", 1, 0), -1);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    assert_int_equal(fcntl(fd, F_SETFL, O_RDWR), 0); /* the access mode is not changed by it */
    assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(open(path, O_RDWR), -1);
    assert_int_equal(errno, EACCES);
    assert_int_equal(open(path, O_WRONLY), -1);
    assert_int_equal(open(path, O_RDONLY | O_TRUNC), -1);
}

static void test_read_only(void **state) {
    (void)state;
    int fd = bhi_memfd_create("test", 4096, 0);
    assert_int_equal(pwrite(fd, "keep", 4, 0), 4);
    assert_int_equal(bhi_memfd_protect(fd), 0);
    assert_int_equal(bhi_memfd_protect(fd), 0);
    int reader = bhi_memfd_read_only(fd);
    assert_true(reader >= 0 && reader != fd);
    assert_true(fcntl(reader, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(bhi_memfd_verify(reader, 4096, 0), 0);
    pid_t child = fork();
    if (child == 0) {
        /* Root may open what it likes; a worker of root's has no capabilities either. */
        if (getuid() == 0 && (fchown(fd, 1000, 1000) != 0 || setuid(1000) != 0))
            _exit(3);
        close(fd);
        try_everything(reader);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    char bytes[4];
    assert_int_equal(pread(reader, bytes, 4, 0), 4);
    assert_memory_equal(bytes, "keep", 4);
    /* Who has the other descriptor still writes, and it is seen. */
    assert_int_equal(pwrite(fd, "more", 4, 0), 4);
    assert_int_equal(pread(reader, bytes, 4, 0), 4);
    assert_memory_equal(bytes, "more", 4);
    close(reader);
    close(fd);
    assert_int_equal(bhi_memfd_read_only(fd), -ENOENT);
    assert_int_equal(bhi_memfd_protect(fd), -EBADF);
}

/* A signal comes whenever more than so much is asked for at once, and undoes all of that. */
static uint64_t undisturbed = UINT64_MAX;
static int refused_error;

int __real_fallocate(int fd, int mode, off_t offset, off_t count);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t count);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t count) {
    if (refused_error || (uint64_t)count > undisturbed) {
        errno = refused_error ? refused_error : EINTR;
        return -1;
    }
    return __real_fallocate(fd, mode, offset, count);
}

static void test_reserved_under_signals(void **state) {
    (void)state;
    const uint64_t bytes = (40u << 20) + 12345;
    int fd = bhi_memfd_create("test", bytes, 0);
    struct stat info;
    undisturbed = 100000;
    assert_int_equal(bhi_memfd_reserve(fd, bytes), 0);
    assert_int_equal(fstat(fd, &info), 0);
    assert_true((uint64_t)info.st_blocks * 512 >= bytes);
    assert_int_equal(bhi_memfd_verify(fd, bytes, 0), 0); /* no larger */
    refused_error = ENOSPC;
    assert_int_equal(bhi_memfd_reserve(fd, bytes), -ENOSPC);
    refused_error = 0;
    undisturbed = UINT64_MAX;
    close(fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page_round),
        cmocka_unit_test(test_create_is_sealed),
        cmocka_unit_test(test_create_empty_and_absurd),
        cmocka_unit_test(test_left_open),
        cmocka_unit_test(test_wrong_size),
        cmocka_unit_test(test_not_a_memfd),
        cmocka_unit_test(test_size_within_the_last_page),
        cmocka_unit_test(test_read_only),
        cmocka_unit_test(test_reserved_under_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

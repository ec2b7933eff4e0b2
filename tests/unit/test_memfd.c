#include "base/memfd.h"
#include "harness.h"
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

TEST(test_page_round) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    BHT_EQ(bhi_page_round(0), page);
    BHT_EQ(bhi_page_round(1), page);
    BHT_EQ(bhi_page_round(page - 1), page);
    BHT_EQ(bhi_page_round(page), page);
    BHT_EQ(bhi_page_round(page + 1), 2 * page);
    BHT_EQ(bhi_page_round(UINT64_MAX - page + 1), UINT64_MAX - page + 1);
    BHT_EQ(bhi_page_round(UINT64_MAX - page + 2), 0);
    BHT_EQ(bhi_page_round(UINT64_MAX), 0);
}

TEST(test_create_is_sealed) {
    int fd = bhi_memfd_create("test", 5000, 0);
    BHT_GE(fd, 0);
    BHT_EQ(fcntl(fd, F_GET_SEALS) & SEALS, SEALS);
    BHT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    BHT_EQ(bhi_memfd_verify(fd, 5000, 0), 0);
    BHT_EQ(ftruncate(fd, 0), -1);
    BHT_EQ(errno, EPERM);
    BHT_EQ(ftruncate(fd, 1 << 20), -1);
    BHT_EQ(errno, EPERM);
    BHT_EQ(bhi_memfd_seal(fd, F_SEAL_WRITE), -EPERM);
    close(fd);
}

TEST(test_create_empty_and_absurd) {
    int fd = bhi_memfd_create("test", 0, 0);
    BHT_GE(fd, 0);
    BHT_EQ(lseek(fd, 0, SEEK_END), sysconf(_SC_PAGESIZE));
    BHT_EQ(bhi_memfd_verify(fd, 0, 0), 0);
    close(fd);
    BHT_EQ(bhi_memfd_create("test", UINT64_MAX, 0), -EFBIG);
    BHT_EQ(bhi_memfd_create("test", (uint64_t)INT64_MAX + 1, 0), -EFBIG);
}

TEST(test_left_open) {
    int fd = bhi_memfd_create("test", 4096, 1);
    BHT_GE(fd, 0);
    BHT_EQ(fcntl(fd, F_GET_SEALS) & SEALS, 0);
    BHT_EQ(bhi_memfd_verify(fd, 4096, 0), -EPERM);
    /* Each seal that is missing is noticed. */
    static const int steps[] = {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_FUTURE_WRITE};
    for (size_t i = 0; i < 3; i++) {
        BHT_EQ(bhi_memfd_seal(fd, steps[i]), 0);
        BHT_EQ(bhi_memfd_verify(fd, 4096, 0), -EPERM);
    }
    BHT_EQ(bhi_memfd_seal(fd, F_SEAL_SEAL), 0);
    BHT_EQ(bhi_memfd_verify(fd, 4096, 0), 0);
    BHT_EQ(bhi_memfd_verify(fd, 4096, F_SEAL_FUTURE_WRITE), 0);
    BHT_EQ(bhi_memfd_verify(fd, 4096, F_SEAL_WRITE), -EPERM);
    close(fd);
}

TEST(test_wrong_size) {
    int fd = bhi_memfd_create("test", 8192, 0);
    BHT_EQ(bhi_memfd_verify(fd, 8192, 0), 0);
    BHT_EQ(bhi_memfd_verify(fd, 8191, 0), 0); /* the same pages */
    BHT_EQ(bhi_memfd_verify(fd, 4096, 0), -EINVAL);
    BHT_EQ(bhi_memfd_verify(fd, 8193, 0), -EINVAL);
    BHT_EQ(bhi_memfd_verify(fd, 0, 0), -EINVAL);
    BHT_EQ(bhi_memfd_verify(fd, UINT64_MAX, 0), -EINVAL);
    close(fd);
}

TEST(test_not_a_memfd) {
    int pipes[2];
    char path[] = "bulkhead-memfd-XXXXXX";
    int file = mkstemp(path);
    BHT_GE(file, 0);
    unlink(path);
    BHT_EQ(ftruncate(file, 4096), 0);
    BHT_EQ(pipe(pipes), 0);
    int event = eventfd(0, 0);
    int zero = open("/dev/zero", O_RDWR);
    BHT_LT(bhi_memfd_verify(file, 4096, 0), 0);
    BHT_EQ(bhi_memfd_verify(pipes[0], 4096, 0), -EPERM);
    BHT_EQ(bhi_memfd_verify(event, 4096, 0), -EPERM);
    BHT_EQ(bhi_memfd_verify(zero, 4096, 0), -EPERM);
    close(file);
    close(pipes[0]);
    close(pipes[1]);
    close(event);
    close(zero);
    BHT_EQ(bhi_memfd_verify(-1, 4096, 0), -EBADF);
}

/* A memfd that somebody else made: it need not end with a page. */
TEST(test_size_within_the_last_page) {
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
        BHT_EQ(ftruncate(fd, cases[i].has), 0);
        BHT_EQ(bhi_memfd_seal(fd, SEALS), 0);
        BHT_EQ(bhi_memfd_verify(fd, cases[i].bytes, 0), cases[i].answer);
        close(fd);
    }
}

/* A read-only descriptor has no way to the bytes, in a process that nothing else holds back but
 * that it is not root. */
static void try_everything(int fd) {
    BHT_EQ(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    BHT_EQ(errno, EACCES);
    BHT_EQ(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    char *read_only = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    BHT_NE(read_only, MAP_FAILED);
    BHT_EQ(mprotect(read_only, 4096, PROT_READ | PROT_WRITE), -1);
    BHT_EQ(errno, EACCES);
    char *twice = mremap(read_only, 0, 4096, MREMAP_MAYMOVE);
    BHT_NE(twice, MAP_FAILED);
    BHT_EQ(mprotect(twice, 4096, PROT_READ | PROT_WRITE), -1);
    BHT_EQ(madvise(read_only, 4096, MADV_REMOVE), -1);
    munmap(twice, 4096);
    munmap(read_only, 4096);
    /* A private mapping can be written to, and is a copy. */
    char *private = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    BHT_NE(private, MAP_FAILED);
    private[0] = 99;
    munmap(private, 4096);
    BHT_EQ(write(fd, "x", 1), -1);
    BHT_EQ(errno, EBADF);
    BHT_EQ(pwrite(fd, "x", 1, 0), -1);
    BHT_EQ(ftruncate(fd, 0), -1);
    BHT_EQ(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
    BHT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    BHT_EQ(fcntl(fd, F_SETFL, O_RDWR), 0); /* the access mode is not changed by it */
    BHT_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    BHT_EQ(open(path, O_RDWR), -1);
    BHT_EQ(errno, EACCES);
    BHT_EQ(open(path, O_WRONLY), -1);
    BHT_EQ(open(path, O_RDONLY | O_TRUNC), -1);
}

TEST(test_read_only) {
    int fd = bhi_memfd_create("test", 4096, 0);
    BHT_EQ(pwrite(fd, "keep", 4, 0), 4);
    BHT_EQ(bhi_memfd_protect(fd), 0);
    BHT_EQ(bhi_memfd_protect(fd), 0);
    int reader = bhi_memfd_read_only(fd);
    BHT_TRUE(reader >= 0 && reader != fd);
    BHT_TRUE(fcntl(reader, F_GETFD) & FD_CLOEXEC);
    BHT_EQ(bhi_memfd_verify(reader, 4096, 0), 0);
    pid_t child = fork();
    if (child == 0) {
        /* Root may open what it likes; a worker of root's has no capabilities either. */
        if (getuid() == 0 && (fchown(fd, 1000, 1000) != 0 || setuid(1000) != 0)) {
            _exit(3);
        }
        close(fd);
        try_everything(reader);
        _exit(0);
    }
    int status = 0;
    BHT_EQ(waitpid(child, &status, 0), child);
    BHT_TRUE(WIFEXITED(status));
    BHT_EQ(WEXITSTATUS(status), 0);
    char bytes[4];
    BHT_EQ(pread(reader, bytes, 4, 0), 4);
    BHT_MEM_EQ(bytes, "keep", 4);
    /* Who has the other descriptor still writes, and it is seen. */
    BHT_EQ(pwrite(fd, "more", 4, 0), 4);
    BHT_EQ(pread(reader, bytes, 4, 0), 4);
    BHT_MEM_EQ(bytes, "more", 4);
    close(reader);
    close(fd);
    BHT_EQ(bhi_memfd_read_only(fd), -ENOENT);
    BHT_EQ(bhi_memfd_protect(fd), -EBADF);
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

TEST(test_reserved_under_signals) {
    const uint64_t bytes = (40u << 20) + 12345;
    int fd = bhi_memfd_create("test", bytes, 0);
    struct stat info;
    undisturbed = 100000;
    BHT_EQ(bhi_memfd_reserve(fd, bytes), 0);
    BHT_EQ(fstat(fd, &info), 0);
    BHT_GE((uint64_t)info.st_blocks * 512, bytes);
    BHT_EQ(bhi_memfd_verify(fd, bytes, 0), 0); /* no larger */
    refused_error = ENOSPC;
    BHT_EQ(bhi_memfd_reserve(fd, bytes), -ENOSPC);
    refused_error = 0;
    undisturbed = UINT64_MAX;
    close(fd);
}

/* The loader's threads: a read that has failed is over only when none of them writes any more
 * (case 41), however far behind the others are. The linker gives them these calls (--wrap). */
#include "harness.h"
#include "worker/loader/fortran.h"
#include "worker/loader/reads.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BYTES (UINT64_C(4) << 20)

static struct {
    _Atomic int caller; /* the thread in bhi_reads_run; 0: nothing is held up */
    atomic_bool writing, failed, returned;
    atomic_bool early; /* it returned while another wrote */
    atomic_bool both;  /* both fail, the one at the beginning last */
    _Atomic int first; /* the thread that has failed before */
} stage;

ssize_t __real_pread(int fd, void *out, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *out, size_t size, off_t offset);
ssize_t __real_pwrite(int fd, const void *from, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *from, size_t size, off_t offset);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);

/* On any machine there are two threads. */
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set) {
    (void)pid;
    CPU_ZERO_S(size, set);
    CPU_SET_S(0, size, set);
    CPU_SET_S(1, size, set);
    return 0;
}

static bool is_caller(void) {
    return atomic_load(&stage.caller) == (int)syscall(SYS_gettid);
}

static bool sleeps(int thread) {
    char path[64], state = '?';
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "re");
    const int fields = file ? fscanf(file, "%*d (%*[^)]) %c", &state) : 0;
    if (file) {
        fclose(file);
    }
    return fields == 1 && state == 'S';
}

/* The caller's reads fail, as soon as the other thread is about to write. */
ssize_t __wrap_pread(int fd, void *out, size_t size, off_t offset) {
    if (atomic_load(&stage.both)) {
        if (offset == 0) {
            WAIT_UNTIL(atomic_load(&stage.first) && sleeps(atomic_load(&stage.first)), 20000);
        }
        atomic_store(&stage.first, (int)syscall(SYS_gettid));
        errno = offset == 0 ? ESTALE : EIO;
        return -1;
    }
    if (!is_caller()) {
        return __real_pread(fd, out, size, offset);
    }
    WAIT_UNTIL(atomic_load(&stage.writing), 20000);
    atomic_store(&stage.failed, true);
    errno = EIO;
    return -1;
}

/* The other thread writes only when the caller waits for it, or has not waited. */
ssize_t __wrap_pwrite(int fd, const void *from, size_t size, off_t offset) {
    if (atomic_load(&stage.caller) && !is_caller()) {
        atomic_store(&stage.writing, true);
        WAIT_UNTIL(atomic_load(&stage.returned) ||
                       (atomic_load(&stage.failed) && sleeps(atomic_load(&stage.caller))),
                   20000);
        if (atomic_load(&stage.returned)) {
            atomic_store(&stage.early, true);
        }
    }
    return __real_pwrite(fd, from, size, offset);
}

static int make_file(uint8_t value) {
    const int fd = memfd_create("reads", MFD_CLOEXEC);
    BHT_GE(fd, 0);
    BHT_EQ(ftruncate(fd, (off_t)BYTES), 0);
    uint8_t *bytes = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    BHT_TRUE(bytes != MAP_FAILED);
    memset(bytes, value, BYTES);
    munmap(bytes, BYTES);
    return fd;
}

static void expect_all(int fd, uint8_t value) {
    uint8_t *bytes = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    BHT_TRUE(bytes != MAP_FAILED);
    for (uint64_t i = 0; i < BYTES; i++) {
        if (bytes[i] != value) {
            BHT_FAIL("byte %llu is %u, must be %u", (unsigned long long)i, bytes[i], value);
        }
    }
    munmap(bytes, BYTES);
}

TEST(case_41_a_failed_read_returns_when_nobody_writes) {
    struct bhi_reads *reads = bhi_reads_create();
    BHT_TRUE(reads);
    const int from = make_file(7), to = make_file(0);
    _Atomic uint64_t done = 0;
    struct bhi_read_failure failure = {0};
    atomic_store(&stage.caller, (int)syscall(SYS_gettid));
    BHT_TRUE(!bhi_reads_run(reads, from, to, 0, BYTES, &done, &failure));
    atomic_store(&stage.returned, true);
    BHT_EQ(failure.error, EIO);
    BHT_TRUE(!failure.wrote);
    BHT_TRUE(atomic_load(&stage.writing));
    BHT_GT(atomic_load(&done), 0); /* the other one's */
    /* The same threads do the next job, with nothing of this one. */
    atomic_store(&stage.caller, 0);
    BHT_TRUE(bhi_reads_run(reads, from, to, 0, BYTES, &done, &failure));
    expect_all(to, 7);
    bhi_reads_destroy(reads); /* which waits for its threads */
    BHT_TRUE(!atomic_load(&stage.early));
    close(from);
    close(to);
}

/* Where it failed is where what was read ends. */
TEST(of_two_failures_the_first_in_the_file_counts) {
    struct bhi_reads *reads = bhi_reads_create();
    BHT_TRUE(reads);
    const int from = make_file(7), to = make_file(0);
    _Atomic uint64_t done = 0;
    struct bhi_read_failure failure = {.offset = 1};
    atomic_store(&stage.both, true);
    BHT_TRUE(!bhi_reads_run(reads, from, to, 0, BYTES, &done, &failure));
    BHT_EQ(failure.offset, 0);
    BHT_EQ(failure.error, ESTALE);
    bhi_reads_destroy(reads);
    close(from);
    close(to);
}

/* -- Fortran order ---------------------------------------------------------------------------- */

/* Byte |b| of the element whose number in C order is |c|. */
static uint8_t byte_of(uint64_t c, uint32_t b) {
    return (uint8_t)((c * 2654435761u + b * 97) >> 7);
}

/* The element that is |f|th in Fortran order is the one that is so many in C order. */
static uint64_t in_c_order(const struct bhi_array *array, uint64_t f) {
    uint64_t index[BHI_MAX_DIMENSIONS], c = 0;
    for (uint32_t i = 0; i < array->dimensions; i++) {
        index[i] = f % array->shape[i];
        f /= array->shape[i];
    }
    for (uint32_t i = 0; i < array->dimensions; i++) {
        c = c * array->shape[i] + index[i];
    }
    return c;
}

/* Larger than what is moved at once, along the first dimension, along the last, and between them. */
TEST(an_array_in_fortran_order_comes_in_c_order) {
    enum { HEADER = 37 };
    static const struct bhi_array arrays[] = {
        {.dtype = BH_DTYPE_U8, .dimensions = 2, .shape = {2, 3}},
        {.dtype = BH_DTYPE_U8, .dimensions = 2, .shape = {700, 901}},
        {.dtype = BH_DTYPE_F64, .dimensions = 2, .shape = {301, 257}},
        {.dtype = BH_DTYPE_F16, .dimensions = 3, .shape = {2, 100003, 3}},
        {.dtype = BH_DTYPE_F32, .dimensions = 2, .shape = {3, 100003}},
        {.dtype = BH_DTYPE_F32, .dimensions = 2, .shape = {100003, 3}},
        {.dtype = BH_DTYPE_I32, .dimensions = 5, .shape = {7, 1, 11, 5, 213}},
        {.dtype = BH_DTYPE_I16, .dimensions = 6, .shape = {1, 37, 41, 1, 43, 1}},
    };
    for (size_t i = 0; i < BHT_COUNT(arrays); i++) {
        struct bhi_array array = arrays[i];
        struct bhi_complaint complaint;
        struct bhi_read_failure failure;
        BHT_TRUE(bhi_array_measure(&array, &complaint));
        const uint32_t size = bhi_dtype_size(array.dtype);
        const int in = memfd_create("in", MFD_CLOEXEC), out = memfd_create("out", MFD_CLOEXEC);
        BHT_EQ(ftruncate(in, (off_t)(HEADER + array.bytes)), 0);
        BHT_EQ(ftruncate(out, (off_t)array.bytes), 0);
        uint8_t *bytes = mmap(NULL, HEADER + array.bytes, PROT_WRITE, MAP_SHARED, in, 0);
        BHT_TRUE(bytes != MAP_FAILED);
        for (uint64_t f = 0; f < array.bytes / size; f++) {
            const uint64_t c = in_c_order(&array, f);
            for (uint32_t b = 0; b < size; b++) {
                bytes[HEADER + f * size + b] = byte_of(c, b);
            }
        }
        munmap(bytes, HEADER + array.bytes);
        _Atomic uint64_t done = 0;
        BHT_TRUE(bhi_fortran_read(in, out, HEADER, &array, &done, &failure));
        BHT_EQ(done, array.bytes);
        bytes = mmap(NULL, array.bytes, PROT_READ, MAP_SHARED, out, 0);
        BHT_TRUE(bytes != MAP_FAILED);
        for (uint64_t at = 0; at < array.bytes; at++) {
            if (bytes[at] != byte_of(at / size, (uint32_t)(at % size))) {
                BHT_FAIL("array %zu: byte %llu", i, (unsigned long long)at);
            }
        }
        munmap(bytes, array.bytes);
        /* Of a file that ends early nothing is taken. */
        BHT_EQ(ftruncate(in, (off_t)(HEADER + array.bytes - 1)), 0);
        BHT_TRUE(!bhi_fortran_read(in, out, HEADER, &array, &done, &failure));
        BHT_EQ(failure.offset, HEADER + array.bytes - 1);
        BHT_EQ(failure.error, 0);
        close(in);
        close(out);
    }
}

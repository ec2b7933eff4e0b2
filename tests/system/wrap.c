/* bh_buffer_options.memfd: a buffer of the caller's own memory; and bh_buffer_set_description. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES 8192u
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int memfd(uint64_t bytes, unsigned flags) {
    int fd = memfd_create("host", MFD_CLOEXEC | flags);
    BHT_GE(fd, 0);
    BHT_EQ(ftruncate(fd, (off_t)bytes), 0);
    return fd;
}

static uint32_t *map(int fd, uint64_t bytes) {
    void *pointer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    BHT_TRUE(pointer != MAP_FAILED);
    return pointer;
}

static bh_buffer *wrap(bh_context *context, int fd, uint64_t size) {
    return fx_buffer_with(context, size, (bh_buffer_options){.memfd = &fd});
}

static void refuse(bh_context *context, int fd, uint64_t size, bh_status status, const char *text) {
    fx_no_buffer(context, size, (bh_buffer_options){.memfd = &fd}, status, text);
}

/* The host's bytes go in and a worker's come out, without a copy, and the host's descriptor is the
 * host's all along. */
TEST(one_memory_for_both) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "wrap", FX_SECONDS);
    bh_kernel *square = fx_kernel(context, "square");
    int in = memfd(BYTES, MFD_ALLOW_SEALING), out = memfd(BYTES, MFD_ALLOW_SEALING);
    uint32_t *x = map(in, BYTES), *y = map(out, BYTES);
    for (uint32_t i = 0; i < BYTES / 4; i++) {
        x[i] = 0x40000000; /* 2.0 */
    }
    bh_buffer *from = wrap(context, in, BYTES), *to = wrap(context, out, BYTES);
    BHT_EQ(bh_buffer_size(from), BYTES);
    fx_expect(fx_square(stream, square, from, to), BH_OK);
    for (uint32_t i = 0; i < BYTES / 4; i++) {
        BHT_EQ(y[i], 0x40800000);
    }
    void *pointer = NULL;
    BHT_EQ(bh_buffer_map(to, BH_MAP_READ, FX_SECONDS, &pointer, NULL), BH_OK);
    BHT_MEM_EQ(pointer, y, BYTES);
    /* Sealed as the library needs it, still open, and gone from the library with the buffer. */
    BHT_EQ(fcntl(in, F_GET_SEALS) & SEALS, SEALS);
    BHT_EQ(ftruncate(in, 0), -1);
    BHT_EQ(pwrite(in, "\1\2\3\4", 4, 0), 4);
    BHT_EQ(x[0], 0x04030201);
    fx_release_all();
    BHT_EQ(x[1], 0x40000000);
    munmap(x, BYTES);
    munmap(y, BYTES);
    close(in);
    close(out);
}

/* The caller closes it and the buffer lives; the buffer goes and the descriptor lives. */
TEST(each_side_has_its_own_descriptor) {
    bh_context *context = fx_context(NULL);
    int fd = memfd(BYTES, MFD_ALLOW_SEALING);
    bh_buffer *buffer = wrap(context, fd, BYTES);
    bh_buffer *again = wrap(context, fd, BYTES); /* sealed already */
    close(fd);
    uint32_t value = 5;
    BHT_EQ(bh_buffer_write(buffer, 4, &value, 4, FX_SECONDS, NULL), BH_OK);
    value = 0;
    BHT_EQ(bh_buffer_read(again, 4, &value, 4, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(value, 5);
    bh_buffer_release(buffer);
    BHT_EQ(bh_buffer_read(again, 4, &value, 4, FX_SECONDS, NULL), BH_OK);
}

/* A worker that only reads wrapped memory cannot change it, nor can anybody open it for writing. */
TEST(readers_cannot_write_it) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "reader", FX_SECONDS);
    /* Trusted: the guard refuses it, and this is of the mapping. */
    const bh_kernel_options options = {
        .struct_size = sizeof options, .name = "hostile_writes", .entry = "store", .trusted = true};
    bh_kernel *kernel = fx_kernel_with(context, "hostile_writes", &options);
    int fd = memfd(BYTES, MFD_ALLOW_SEALING);
    const uint32_t *words = map(fd, BYTES);
    bh_buffer *buffer = wrap(context, fd, BYTES);
    const bh_binding binding = bh_bind_read(0, buffer);
    fx_expect(fx_launch(stream, kernel, 1, &binding, 1, 0), BH_WORKER_SIGNAL);
    BHT_EQ(words[1], 0);
    struct stat st;
    BHT_EQ(fstat(fd, &st), 0);
    BHT_EQ(st.st_mode & 0222, 0);
    BHT_EQ(st.st_mode & 0444, 0444);
    munmap((void *)(uintptr_t)words, BYTES);
    close(fd);
}

/* A size that is no multiple of a page, a memfd that is none, and one with holes. */
TEST(odd_sizes) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "odd", FX_SECONDS);
    static const struct {
        uint64_t has, size;
    } good[] = {{1000, 1000}, {1000, 4}, {4096, 4093}, {4097, 4097}, {8192, 4097}, {1, 1}};
    for (size_t i = 0; i < BHT_COUNT(good); i++) {
        int fd = memfd(good[i].has, MFD_ALLOW_SEALING);
        bh_buffer *buffer = wrap(context, fd, good[i].size);
        BHT_EQ(bh_buffer_size(buffer), good[i].size);
        struct stat st;
        BHT_EQ(fstat(fd, &st), 0);
        BHT_EQ(st.st_size, good[i].has); /* filled, not grown */
        BHT_GT(st.st_blocks, 0);
        bh_buffer *copy = fx_buffer(context, good[i].size);
        uint8_t last = 9;
        BHT_EQ(pwrite(fd, &last, 1, (off_t)good[i].size - 1), 1);
        fx_expect(fx_copy(stream, buffer, copy), BH_OK);
        last = 0;
        BHT_EQ(bh_buffer_read(copy, good[i].size - 1, &last, 1, FX_SECONDS, NULL), BH_OK);
        BHT_EQ(last, 9);
        close(fd);
    }
    static const struct {
        uint64_t has, size;
    } bad[] = {{4096, 4097}, {8192, 4096}, {8192, 1},    {1000, 1001},
               {1000, 4096}, {0, 1},       {4096, 8192}, {4096, 1ull << 40}};
    for (size_t i = 0; i < BHT_COUNT(bad); i++) {
        int fd = memfd(bad[i].has, MFD_ALLOW_SEALING);
        refuse(context, fd, bad[i].size, BH_INVALID_ARGUMENT, "does not fit the memfd");
        close(fd);
    }
}

TEST(what_is_no_memfd) {
    bh_context *context = fx_context(NULL);
    char path[] = "/tmp/bulkhead-wrap-XXXXXX";
    char shared[] = "/dev/shm/bulkhead-wrap-XXXXXX";
    int pipes[2];
    BHT_EQ(pipe(pipes), 0);
    int file = mkstemp(path), shm = mkstemp(shared);
    BHT_GE(file, 0);
    unlink(path);
    BHT_EQ(ftruncate(file, BYTES), 0);
    int folder = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int event = eventfd(0, 0), zero = open("/dev/zero", O_RDWR);
    const struct {
        int fd;
        const char *text;
    } bad[] = {{file, ""},      {pipes[0], "not a memfd"}, {pipes[1], "not a memfd"},
               {folder, "not"}, {event, "not a memfd"},    {zero, "not a memfd"}};
    for (size_t i = 0; i < BHT_COUNT(bad); i++) {
        refuse(context, bad[i].fd, BYTES, BH_INVALID_ARGUMENT, bad[i].text);
        close(bad[i].fd);
    }
    if (shm >= 0) { /* tmpfs: has seals, takes none */
        unlink(shared);
        BHT_EQ(ftruncate(shm, BYTES), 0);
        refuse(context, shm, BYTES, BH_INVALID_ARGUMENT, "POSIX shared memory");
        close(shm);
    }
    int closed = memfd(BYTES, MFD_ALLOW_SEALING);
    close(closed);
    refuse(context, closed, BYTES, BH_INVALID_ARGUMENT, "not an open descriptor");
    refuse(context, -1, BYTES, BH_INVALID_ARGUMENT, "not an open descriptor");
}

TEST(what_is_the_wrong_memfd) {
    bh_context *context = fx_context(NULL);
    int fd = memfd(BYTES, 0); /* F_SEAL_SEAL from the start */
    refuse(context, fd, BYTES, BH_INVALID_ARGUMENT, "MFD_ALLOW_SEALING");
    close(fd);
    static const int half[] = {0, F_SEAL_SHRINK, F_SEAL_GROW};
    for (size_t i = 0; i < BHT_COUNT(half); i++) {
        fd = memfd(BYTES, MFD_ALLOW_SEALING);
        BHT_EQ(fcntl(fd, F_ADD_SEALS, half[i] | F_SEAL_SEAL), 0);
        refuse(context, fd, BYTES, BH_INVALID_ARGUMENT, "does not accept the seals");
        close(fd);
    }
    static const int write_seals[] = {F_SEAL_WRITE, F_SEAL_FUTURE_WRITE};
    for (size_t i = 0; i < BHT_COUNT(write_seals); i++) {
        fd = memfd(BYTES, MFD_ALLOW_SEALING);
        BHT_EQ(fcntl(fd, F_ADD_SEALS, write_seals[i]), 0);
        refuse(context, fd, BYTES, BH_INVALID_ARGUMENT, "sealed against writing");
        BHT_EQ(fcntl(fd, F_GET_SEALS), write_seals[i]); /* refused before it was touched */
        close(fd);
    }
    /* Each half of the seals with the rest open: the other half is added. */
    for (size_t i = 0; i < BHT_COUNT(half); i++) {
        fd = memfd(BYTES, MFD_ALLOW_SEALING);
        BHT_EQ(fcntl(fd, F_ADD_SEALS, half[i]), 0);
        bh_buffer_release(wrap(context, fd, BYTES));
        BHT_EQ(fcntl(fd, F_GET_SEALS) & SEALS, SEALS);
        close(fd);
    }
    /* Descriptors of a good one that allow too little. */
    fd = memfd(BYTES, MFD_ALLOW_SEALING);
    char path[64];
    static const int modes[] = {O_RDONLY, O_WRONLY, O_PATH};
    for (size_t i = 0; i < BHT_COUNT(modes); i++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        int less = open(path, modes[i] | O_CLOEXEC);
        BHT_GE(less, 0);
        refuse(context, less, BYTES, BH_INVALID_ARGUMENT, "options.memfd is not");
        close(less);
    }
    int empty = memfd(0, MFD_ALLOW_SEALING);
    refuse(context, empty, 0, BH_INVALID_ARGUMENT, "options.memfd is empty");
    close(empty);
    int vast = memfd(0, MFD_ALLOW_SEALING);
    BHT_EQ(ftruncate(vast, (off_t)1 << 41), 0);
    refuse(context, vast, 0, BH_TOO_LARGE, "size is 2199023255552");
    close(vast);
    bh_buffer *all = wrap(context, fd, 0);
    BHT_EQ(bh_buffer_size(all), BYTES);
    bh_buffer_release(all);
    fx_no_buffer(context, 0, (bh_buffer_options){.memfd = &fd, .memory = BH_MEMORY_AUTO},
                 BH_INVALID_ARGUMENT, "");
    refuse(context, fd, (1ull << 40) + 1, BH_TOO_LARGE, "over the limit of 1099511627776");
    refuse(context, fd, UINT64_MAX, BH_TOO_LARGE, "over the limit of 1099511627776");
    refuse(NULL, fd, BYTES, BH_INVALID_ARGUMENT, "context");
    BHT_EQ(fx_wrap(context, fd, BYTES, NULL, NULL), BH_INVALID_ARGUMENT);
    bh_buffer_release(wrap(context, fd, BYTES)); /* and it was none the worse for it */
    BHT_EQ(bh_context_destroy(context), BH_OK);
    refuse(context, fd, BYTES, BH_CLOSED, "");
    close(fd);
}

/* Wrapped, used, killed and released over and over: nothing is left. The harness counts. */
TEST(nothing_is_left) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "rounds", FX_SECONDS);
    for (uint32_t round = 0; round < 200; round++) {
        int fd = memfd(BYTES, MFD_ALLOW_SEALING);
        bh_buffer *from = wrap(context, fd, BYTES), *to = fx_buffer(context, BYTES);
        close(fd);
        bh_event *event = fx_copy(stream, from, to);
        bh_buffer_release(from);
        bh_buffer_release(to);
        if (round % 50 == 49) {
            fx_kill(fx_ready(stream), SIGKILL);
        }
        (void)fx_verdict(event);
        bh_event_release(event);
    }
}

/* -- descriptions --------------------------------------------------------------------------- */

static bh_description description(bh_number_kind kind, uint32_t bits, uint32_t rank,
                                  const uint64_t *shape) {
    bh_description d = {.struct_size = sizeof d};
    d.kind = kind;
    d.bits = bits;
    d.rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        d.shape[i] = shape[i];
    }
    return d;
}

TEST(described_and_told) {
    bh_context *context = fx_context(NULL);
    bh_buffer *buffer = fx_buffer(context, 96);
    bh_description told = {.struct_size = sizeof told};
    /* Bytes, as long as nobody says otherwise. */
    BHT_EQ(bh_buffer_description(buffer, &told, NULL), BH_OK);
    BHT_EQ(told.kind, BH_NUMBER_UINT);
    BHT_EQ(told.bits, 8);
    BHT_EQ(told.rank, 1);
    BHT_EQ(told.shape[0], 96);
    BHT_EQ(told.strides[0], 1);
    bh_description d = description(BH_NUMBER_FLOAT, 32, 3, (const uint64_t[]){2, 3, 4});
    d.shape[7] = 99; /* beyond the rank: not looked at, not kept */
    BHT_EQ(bh_buffer_set_description(buffer, &d, NULL), BH_OK);
    d.bits = 64; /* a copy was taken */
    BHT_EQ(bh_buffer_description(buffer, &told, NULL), BH_OK);
    BHT_EQ(told.struct_size, sizeof told);
    BHT_EQ(told.kind, BH_NUMBER_FLOAT);
    BHT_EQ(told.bits, 32);
    BHT_EQ(told.lanes, 1);
    BHT_EQ(told.rank, 3);
    BHT_TRUE(told.strided);
    BHT_EQ(told.strides[0], 12);
    BHT_EQ(told.strides[1], 4);
    BHT_EQ(told.strides[2], 1);
    BHT_EQ(told.shape[7], 0);
    /* What is told can be given back. */
    BHT_EQ(bh_buffer_set_description(buffer, &told, NULL), BH_OK);
    /* A refused one changes nothing. */
    BHT_EQ(bh_buffer_set_description(buffer, &d, NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_buffer_description(buffer, &told, NULL), BH_OK);
    BHT_EQ(told.bits, 32);
    BHT_EQ(bh_buffer_set_description(buffer, NULL, NULL), BH_OK);
    BHT_EQ(bh_buffer_description(buffer, &told, NULL), BH_OK);
    BHT_EQ(told.bits, 8);
    BHT_EQ(bh_buffer_set_description(NULL, &told, NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_buffer_description(NULL, &told, NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_buffer_description(buffer, NULL, NULL), BH_INVALID_ARGUMENT);
    BHT_EQ(bh_buffer_set_description(buffer, &told, NULL), BH_OK); /* goes with the buffer */
}

static bh_buffer *subject;

static void good(const bh_description *d) {
    bh_detail detail;
    if (bh_buffer_set_description(subject, d, &detail) != BH_OK) {
        BHT_FAIL("bh_buffer_set_description: %s", detail.message);
    }
}

static void bad(const bh_description *d, const char *text) {
    bh_detail detail = {0};
    BHT_EQ(bh_buffer_set_description(subject, d, &detail), BH_INVALID_ARGUMENT);
    BHT_STR_HAS(detail.message, text);
}

TEST(descriptions_that_fit) {
    bh_context *context = fx_context(NULL);
    subject = fx_buffer(context, 96);
    bh_description d = description(BH_NUMBER_FLOAT, 32, 2, (const uint64_t[]){4, 6});
    good(&d);
    d.strided = true; /* transposed */
    d.strides[0] = 1;
    d.strides[1] = 4;
    good(&d);
    d.strides[0] = 0; /* a row for all */
    d.strides[1] = 1;
    good(&d);
    d.strides[0] = -6; /* upside down: begins at the last row */
    d.offset = 72;
    good(&d);
    d.offset = 68;
    bad(&d, "outside the buffer");
    d.offset = 76;
    bad(&d, "outside the buffer");
    d = description(BH_NUMBER_COMPLEX, 128, 0, NULL); /* one element */
    d.offset = 80;
    good(&d);
    d.offset = 81;
    bad(&d, "outside the buffer");
    d.offset = 96;
    bad(&d, "outside the buffer");
    d.offset = 97;
    bad(&d, "offset");
    d = description(BH_NUMBER_BOOL, 8, 2, (const uint64_t[]){0, 1000}); /* no element */
    d.offset = 96;
    good(&d);
    d = description(BH_NUMBER_INT, 16, 1, (const uint64_t[]){12});
    d.lanes = 4;
    good(&d);
    d.shape[0] = 13;
    bad(&d, "outside the buffer");
}

TEST(descriptions_that_overflow) {
    bh_context *context = fx_context(NULL);
    subject = fx_buffer(context, 96);
    const uint64_t huge = 1ull << 63;
    bh_description d = description(BH_NUMBER_UINT, 8, 1, &huge);
    bad(&d, "2^63");
    d.shape[0] = UINT64_MAX;
    bad(&d, "2^63");
    d = description(BH_NUMBER_UINT, 8, 2,
                    (const uint64_t[]){1ull << 32, 1ull << 32}); /* 0 mod 2^64 */
    bad(&d, "2^63");
    d = description(BH_NUMBER_UINT, 64, 1, (const uint64_t[]){1ull << 61}); /* bytes: 2^64 */
    bad(&d, "2^63");
    d = description(BH_NUMBER_UINT, 8, 2, (const uint64_t[]){0, huge}); /* none, but absurd */
    bad(&d, "2^63");
    d = description(BH_NUMBER_UINT, 8, 2, (const uint64_t[]){2, 2});
    d.strided = true;
    static const int64_t extremes[] = {INT64_MAX, INT64_MIN, INT64_MAX / 2 + 1, INT64_MIN / 2};
    for (size_t i = 0; i < BHT_COUNT(extremes); i++) {
        for (size_t j = 0; j < BHT_COUNT(extremes); j++) {
            d.strides[0] = extremes[i];
            d.strides[1] = extremes[j];
            bad(&d, "");
        }
    }
    d.bits = 64;
    d.strides[0] = INT64_MAX / 4;
    d.strides[1] = 0;
    bad(&d, "strides");
    d = description(BH_NUMBER_UINT, 8, 1, (const uint64_t[]){3});
    d.strided = true;
    d.strides[0] = INT64_MAX;
    bad(&d, "strides");
    d.offset = UINT64_MAX;
    bad(&d, "offset");
}

TEST(descriptions_of_nothing) {
    bh_context *context = fx_context(NULL);
    subject = fx_buffer(context, 96);
    const uint64_t shape = 1;
    bh_description d = description(BH_NUMBER_FLOAT, 32, 1, &shape);
    d.struct_size--;
    bad(&d, "set it to sizeof(bh_description)");
    static const struct {
        int kind;
        uint32_t bits;
    } types[] = {{0, 0}, {0, 4},  {0, 128}, {1, 24},  {2, 128},       {3, 64},
                 {4, 8}, {4, 32}, {5, 32},  {5, 256}, {6, 1},         {6, 16},
                 {7, 8}, {-1, 8}, {2, 33},  {0, 7},   {1, UINT32_MAX}};
    for (size_t i = 0; i < BHT_COUNT(types); i++) {
        d = description((bh_number_kind)types[i].kind, types[i].bits, 1, &shape);
        bad(&d, "kind");
    }
    d = description(BH_NUMBER_FLOAT, 32, 1, &shape);
    d.lanes = 0; /* the default: 1 */
    good(&d);
    d.lanes = 65536;
    bad(&d, "lanes");
    d.lanes = 1;
    d.rank = BH_MAX_RANK + 1;
    bad(&d, "rank");
    d.rank = BH_MAX_RANK;
    for (uint32_t i = 0; i < BH_MAX_RANK; i++) {
        d.shape[i] = 1;
    }
    good(&d);
    bh_buffer_release(subject);
    BHT_EQ(bh_buffer_set_description(subject, &d, NULL), BH_INVALID_ARGUMENT);
}

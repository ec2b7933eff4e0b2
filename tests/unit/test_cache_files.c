/* Pipeline caches on disk: what of a dead worker's memory becomes a file, and what of a file is
 * given to the next one. */
#include "worker/opener/cache_files.h"

#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memfd.h"
#include "ipc/cache_area.h"
#include "worker/opener/cache_envelope.h"

enum { ROOM = 64 };

static struct bhi_cache_file file;
static struct bhi_cache_area *area;
static char path[256], what[256];
static uint64_t bytes;

static char *content(void) {
    return (char *)area + BHI_CACHE_AREA_HEADER;
}

static void open_area(void) {
    file = (struct bhi_cache_file){
        .folder = bht_folder(), .identity = {0xab, [31] = 0xcd}, .room = ROOM};
    file.area = bhi_memfd_create("area", BHI_CACHE_AREA_HEADER + 2 * ROOM, 0);
    BHT_GE(file.area, 0);
    area = mmap(NULL, BHI_CACHE_AREA_HEADER + 2 * ROOM, PROT_READ | PROT_WRITE, MAP_SHARED,
                file.area, 0);
    BHT_TRUE(area != MAP_FAILED);
    snprintf(path, sizeof path, "%s/ab%060dcd.cache", file.folder, 0);
}

static void close_area(void) {
    munmap(area, BHI_CACHE_AREA_HEADER + 2 * ROOM);
    close(file.area);
}

BHT_AT_START(bht_around(open_area, close_area))

/* A worker has left |count| bytes, and this stamp. Returns whether they became a file. */
static bool store(uint64_t stamp, uint64_t count) {
    unlink(path);
    area->stamp = stamp;
    area->bytes = count;
    for (int i = 0; i < 2 * ROOM; i++) {
        content()[i] = (char)(i + 1);
    }
    BHT_EQ(bhi_cache_store(&file, &bytes, what, sizeof what), 0);
    BHT_STR_EQ(what, "");
    const bool stored = access(path, F_OK) == 0;
    BHT_EQ(bytes, stored ? count : 0);
    return stored;
}

static void load(void) {
    memset(area, 0x55, BHI_CACHE_AREA_HEADER + 2 * ROOM);
    BHT_EQ(bhi_cache_load(&file, &bytes, what, sizeof what), 0);
}

/* An odd stamp is that of a worker that was writing when it died: what it has left is torn. */
TEST(what_a_worker_was_writing_when_it_died_is_not_stored) {
    static const struct {
        uint64_t stamp, bytes;
        bool stored;
    } cases[] = {
        {2, 5, true},         {4, 5, true},           {UINT64_MAX - 1, 5, true},
        {1, 5, false},        {3, 5, false},          {UINT64_MAX, 5, false},
        {0, 5, false}, /* it has written nothing: that is the opener's */
        {2, 0, false},        {2, 1, true},           {2, ROOM, true},
        {2, ROOM + 1, false}, {2, UINT64_MAX, false},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        if (store(cases[i].stamp, cases[i].bytes) != cases[i].stored) {
            BHT_FAIL("%" PRIu64 " bytes with stamp %" PRIu64 " are %sstored", cases[i].bytes,
                     cases[i].stamp, cases[i].stored ? "not " : "");
        }
    }
}

TEST(memory_that_is_short_is_not_stored) {
    area->stamp = 2;
    area->bytes = ROOM;
    close(file.area);
    file.area = bhi_memfd_create("area", BHI_CACHE_AREA_HEADER, 0);
    BHT_EQ(pwrite(file.area, area, sizeof *area, 0), sizeof *area);
    BHT_EQ(bhi_cache_store(&file, &bytes, what, sizeof what), -ENODATA);
    BHT_STR_EQ(what, "read the worker's memory");
    BHT_NE(access(path, F_OK), 0);
}

/* Whole, from its first byte to its last, and as if no worker had written it. */
TEST(what_was_stored_is_loaded) {
    for (uint64_t count = 1; count <= ROOM; count += ROOM - 1) {
        BHT_TRUE(store(2, count));
        load();
        BHT_EQ(bytes, count);
        BHT_EQ(area->bytes, count);
        BHT_EQ(area->stamp, 0);
        for (uint64_t i = 0; i < count; i++) {
            BHT_EQ(content()[i], (char)(i + 1));
        }
        BHT_EQ(content()[count], 0x55);
    }
}

static void expect_ignored(const char *why) {
    load();
    BHT_EQ(bytes, 0);
    BHT_EQ(area->bytes, UINT64_C(0x5555555555555555)); /* nothing was written there */
    BHT_STR_HAS(what, why);
}

/* Each byte of a file that is another one, each that is missing, and one too many. */
TEST(what_is_not_as_it_was_stored_is_ignored) {
    static uint8_t good[512], bad[512];
    BHT_TRUE(store(2, ROOM));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    BHT_GE(fd, 0);
    const ssize_t size = read(fd, good, sizeof good);
    BHT_GT(size, ROOM);
    for (ssize_t i = 0; i < size; i++) {
        memcpy(bad, good, sizeof bad);
        bad[i] ^= 1;
        BHT_EQ(pwrite(fd, bad, (size_t)size, 0), size);
        expect_ignored("it is ignored: ");
    }
    BHT_EQ(pwrite(fd, good, (size_t)size, 0), size);
    load();
    BHT_EQ(bytes, ROOM);
    BHT_EQ(ftruncate(fd, size + 1), 0);
    expect_ignored("it is ignored: its size is out of range");
    for (ssize_t i = size - 1; i >= 0; i--) {
        BHT_EQ(ftruncate(fd, i), 0);
        expect_ignored("it is ignored: ");
    }
    close(fd);
    /* Of another tenant, device, driver or kernel. */
    BHT_TRUE(store(2, ROOM));
    char theirs[256];
    strcpy(theirs, path);
    memcpy(strstr(theirs, "cd.cache"), "ce", 2);
    BHT_EQ(rename(path, theirs), 0);
    load();
    BHT_EQ(bytes, 0);
    file.identity[31] = 0xce;
    expect_ignored("it is ignored: it belongs to another tenant, device, driver or kernel");
}

TEST(what_is_no_file_is_ignored) {
    BHT_EQ(mkfifo(path, 0600), 0);
    expect_ignored("it is ignored: its size is out of range");
    BHT_EQ(unlink(path), 0);
    BHT_EQ(symlink("elsewhere", path), 0);
    BHT_LT(bhi_cache_load(&file, &bytes, what, sizeof what), 0);
    BHT_STR_EQ(what, "open");
    BHT_EQ(chmod(file.folder, 0770), 0);
    BHT_EQ(bhi_cache_load(&file, &bytes, what, sizeof what), -EPERM);
    BHT_STR_HAS(what, "with mode 0770");
    area->stamp = area->bytes = 2;
    BHT_EQ(bhi_cache_store(&file, &bytes, what, sizeof what), -EPERM);
    BHT_EQ(chmod(file.folder, 0702), 0);
    BHT_EQ(bhi_cache_store(&file, &bytes, what, sizeof what), -EPERM);
    BHT_EQ(chmod(file.folder, 0755), 0);
    BHT_EQ(bhi_cache_store(&file, &bytes, what, sizeof what), 0);
    BHT_EQ(bytes, 2);
}

static unsigned count_files(void) {
    unsigned count = 0;
    DIR *entries = opendir(file.folder);
    BHT_TRUE(entries);
    for (const struct dirent *entry; (entry = readdir(entries));) {
        count += entry->d_name[0] != '.';
    }
    closedir(entries);
    return count;
}

/* A disk that is full: what was there stays, and nothing else. */
TEST(what_cannot_be_written_leaves_nothing) {
    struct rlimit all;
    BHT_TRUE(store(2, 5));
    signal(SIGXFSZ, SIG_IGN);
    BHT_EQ(getrlimit(RLIMIT_FSIZE, &all), 0);
    for (rlim_t least = 0; least <= BHI_ENVELOPE_HEADER + 5; least += BHI_ENVELOPE_HEADER + 5) {
        const struct rlimit some = {least, all.rlim_max};
        area->stamp = 2;
        area->bytes = ROOM;
        BHT_EQ(setrlimit(RLIMIT_FSIZE, &some), 0);
        BHT_EQ(bhi_cache_store(&file, &bytes, what, sizeof what), -EFBIG);
        BHT_EQ(setrlimit(RLIMIT_FSIZE, &all), 0);
        BHT_STR_EQ(what, "write");
        BHT_EQ(count_files(), 1);
    }
    load();
    BHT_EQ(bytes, 5);
}

/* However old the others say that they are: a clock may have been set back. */
TEST(of_too_many_the_one_just_written_stays) {
    enum { MOST = 64 };
    const struct timespec later[2] = {{.tv_sec = 4000000000}, {.tv_sec = 4000000000}};
    for (int i = 0; i < MOST; i++) {
        char theirs[256];
        strcpy(theirs, path);
        snprintf(strstr(theirs, "cd.cache") - 2, 11, "%02xcd.cache", i + 1);
        const int fd = open(theirs, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        BHT_GE(fd, 0);
        BHT_EQ(futimens(fd, later), 0);
        close(fd);
    }
    BHT_TRUE(store(2, 5));
    BHT_EQ(count_files(), MOST);
}

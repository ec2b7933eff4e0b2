/* The loader's own checks of a file (case 27): that it waits until a write would show, and that nothing
 * was changed from when the supervisor opened it until the last byte was read. The linker gives it the
 * file's attributes, the time of day and the pauses (--wrap). */
#include "base/memfd.h"
#include "harness.h"
#include "ipc/fdpass.h"
#include "ipc/file_answer.h"
#include "worker/loader/loader.h"

#include <bulkhead/file.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 600 << 10, OFFSET = 100, LOADED = BYTES - OFFSET, FILE_ID = 3, BUFFER_ID = 5 };
#define NOW_S  UINT64_C(1800000000)
#define NOW_NS 500000000

static struct {
    int file;
    ino_t inode;           /* of |file|; the tests see other attributes of it */
    struct stat is[2];     /* at the first look, and later */
    int looks, fails_from; /* fstat fails from this look on; 0: never */
    int out;               /* the buffer */
    uint64_t limit;        /* no file can be written to beyond; 0: as it was */
    uint64_t paused_ns;
    bool paused_late; /* after the first byte was read */
} stage;

BHT_WRAP(int, fstat, int fd, struct stat *out) {
    const int result = __real_fstat(fd, out);
    if (result == 0 && stage.inode && out->st_ino == stage.inode) {
        *out = stage.is[stage.looks++ > 0];
        if (stage.fails_from && stage.looks >= stage.fails_from) {
            errno = ESTALE;
            return -1;
        }
    }
    return result;
}

BHT_WRAP(int, clock_gettime, clockid_t clock, struct timespec *out) {
    if (clock != CLOCK_REALTIME) {
        return __real_clock_gettime(clock, out);
    }
    *out = (struct timespec){.tv_sec = (time_t)NOW_S, .tv_nsec = NOW_NS};
    return 0;
}

BHT_WRAP(int, nanosleep, const struct timespec *pause, struct timespec *rest) {
    uint8_t first = 0;
    stage.paused_ns += (uint64_t)pause->tv_sec * 1000000000u + (uint64_t)pause->tv_nsec;
    (void)!pread(stage.out, &first, 1, 0);
    stage.paused_late |= first != 0 || stage.looks > 0;
    return 0;
}

static const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                             "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}";

/* Of a file that nobody has changed for an hour. */
static struct bhi_msg_file_attach new_file(bool listed) {
    struct stat made;
    const uint64_t length = sizeof header - 1;
    const uint64_t size = listed ? sizeof length + length + 8 : BYTES;
    stage.inode = 0;
    stage.file = memfd_create("file", MFD_CLOEXEC);
    BHT_EQ(ftruncate(stage.file, (off_t)size), 0);
    for (uint64_t at = 0; !listed && at < size; at += 100) {
        BHT_EQ(pwrite(stage.file, "0123456789", 1, (off_t)at), 1);
    }
    if (listed) {
        BHT_EQ(pwrite(stage.file, &length, sizeof length, 0), sizeof length);
        BHT_EQ(pwrite(stage.file, header, length, sizeof length), length);
    }
    BHT_EQ(fstat(stage.file, &made), 0);
    stage.inode = made.st_ino;
    const struct timespec then = {.tv_sec = (time_t)NOW_S - 3600, .tv_nsec = 123};
    stage.is[0] = (struct stat){.st_dev = 7, .st_ino = 11, .st_nlink = 1, .st_size = (off_t)size};
    stage.is[0].st_mtim = stage.is[0].st_ctim = then;
    stage.is[1] = stage.is[0];
    stage.looks = stage.fails_from = 0;
    stage.limit = 0;
    stage.paused_ns = 0;
    stage.paused_late = false;
    return (struct bhi_msg_file_attach){.file = FILE_ID,
                                        .format = listed ? BH_FILE_SAFETENSORS : BH_FILE_RAW,
                                        .named = 1,
                                        .device = 7,
                                        .inode = 11,
                                        .links = 1,
                                        .size = size,
                                        .modified_s = (uint64_t)then.tv_sec,
                                        .modified_ns = 123,
                                        .changed_s = (uint64_t)then.tv_sec,
                                        .changed_ns = 123};
}

/* What a loader makes of a load of most of the file; or, with |room|, of a list of what is in it. */
static struct bhi_result load(const struct bhi_msg_file_attach *info, uint64_t room,
                              struct bhi_error *error, uint64_t *out_done) {
    struct {
        struct bhi_lane_record record;
        union {
            struct bhi_cmd_load load;
            struct bhi_cmd_inspect inspect;
        };
    } asked = {.record = {.seq = 9, .command_count = 1}};
    if (room) {
        asked.inspect = (struct bhi_cmd_inspect){
            .header = {.type = BHI_CMD_INSPECT, .size = sizeof asked.inspect},
            .file = FILE_ID,
            .answer = BUFFER_ID,
            .room = room};
        asked.record.size = sizeof asked.record + sizeof asked.inspect;
    } else {
        asked.load =
            (struct bhi_cmd_load){.header = {.type = BHI_CMD_LOAD, .size = sizeof asked.load},
                                  .file = FILE_ID,
                                  .buffer = BUFFER_ID,
                                  .offset = OFFSET,
                                  .bytes = LOADED};
        asked.record.size = sizeof asked.record + sizeof asked.load;
    }
    /* Not on ASan's stack, which aligns it too little. */
    static struct bhi_progress_header progress;
    memset(&progress, 0, sizeof progress);
    struct bhi_progress of = {.header = &progress};
    struct bhi_loader *loader = bhi_loader_create(&of, error);
    BHT_TRUE(loader);
    int sockets[2];
    BHT_EQ(bhi_fdpass_pair(sockets), 0);
    const struct bhi_message opened = {.type = BHI_MSG_OPENED};
    BHT_EQ(bhi_fdpass_send_message(sockets[0], &opened, &stage.file, 1), 0);
    bhi_loader_attach_file(loader, info, sockets[1]);
    const uint64_t size = room ? bhi_file_list_bytes(room) : LOADED;
    const int buffer = bhi_memfd_create("buffer", size, 0);
    stage.out = dup(buffer);
    bhi_loader_attach(loader, BUFFER_ID, buffer, size);
    struct rlimit all;
    BHT_EQ(getrlimit(RLIMIT_FSIZE, &all), 0);
    const struct rlimit some = {stage.limit ? stage.limit : all.rlim_cur, all.rlim_max};
    BHT_EQ(setrlimit(RLIMIT_FSIZE, &some), 0);
    struct bhi_result result;
    bhi_loader_run(loader, &asked.record, &result, error);
    BHT_EQ(setrlimit(RLIMIT_FSIZE, &all), 0);
    *out_done = atomic_load(&progress.load_bytes);
    BHT_EQ(result.seq, 9);
    bhi_loader_destroy(loader);
    close(sockets[0]);
    close(stage.file);
    return result;
}

/* All of it is there, and it says so. */
TEST(a_load_says_how_many_bytes_it_has_read) {
    struct bhi_error error;
    uint64_t done = 0;
    const struct bhi_msg_file_attach info = new_file(false);
    BHT_EQ(load(&info, 0, &error, &done).status, BH_OK);
    BHT_EQ(done, LOADED);
    for (uint64_t at = 0; at < LOADED; at += 100) {
        char byte = 0;
        BHT_EQ(pread(stage.out, &byte, 1, (off_t)at), 1);
        BHT_EQ(byte, '0');
    }
    BHT_EQ(stage.paused_ns, 0);
    close(stage.out);
}

#define MS INT64_C(1000000)

/* A file's clock moves in steps, so of two writes within one the second does not show. Whichever time
 * of the file is the later one counts: that of its content can be set back. */
TEST(case_27_a_loader_waits_until_a_write_would_show) {
    static const struct {
        int64_t modified_ms, changed_ms; /* ago */
        bool coarse;                     /* its file system stores seconds */
        uint64_t pause_ms;
    } rows[] = {
        {5, 5, false, 15},
        {3600000, 5, false, 15}, /* set back (utimensat) */
        {5, 3600000, false, 15},
        {19, 19, false, 1},
        {20, 20, false, 0},
        {-5, -5, false, 25}, /* another machine's clock is ahead */
        {-3600000, -3600000, false, 0},
        {500, 500, true, 1520},
        {2500, 2500, true, 0},
    };
    for (size_t i = 0; i < 2 * BHT_COUNT(rows); i++) {
        const bool listed = i % 2;
        struct bhi_error error;
        uint64_t done;
        struct bhi_msg_file_attach info = new_file(listed);
        const int64_t now_ns = (int64_t)NOW_S * 1000 * MS + NOW_NS;
        const int64_t modified_ns = now_ns - rows[i / 2].modified_ms * MS + !rows[i / 2].coarse;
        const int64_t changed_ns = now_ns - rows[i / 2].changed_ms * MS;
        info.modified_s = (uint64_t)(modified_ns / (1000 * MS));
        info.modified_ns = (uint64_t)(modified_ns % (1000 * MS));
        info.changed_s = (uint64_t)(changed_ns / (1000 * MS));
        info.changed_ns = (uint64_t)(changed_ns % (1000 * MS));
        BHT_EQ(info.changed_ns == 0, rows[i / 2].coarse);
        for (int k = 0; k < 2; k++) {
            stage.is[k].st_mtim.tv_sec = (time_t)info.modified_s;
            stage.is[k].st_mtim.tv_nsec = (long)info.modified_ns;
            stage.is[k].st_ctim.tv_sec = (time_t)info.changed_s;
            stage.is[k].st_ctim.tv_nsec = (long)info.changed_ns;
        }
        BHT_EQ(load(&info, listed ? 2 : 0, &error, &done).status, BH_OK);
        BHT_WITHIN(stage.paused_ns, rows[i / 2].pause_ms * MS, rows[i / 2].pause_ms * MS + 1);
        BHT_TRUE(!stage.paused_late);
        close(stage.out);
    }
}

static void written(struct stat *is) {
    is->st_mtim.tv_nsec++;
}
static void written_later(struct stat *is) {
    is->st_mtim.tv_sec++;
}
static void changed(struct stat *is) {
    is->st_ctim.tv_nsec++;
}
static void changed_later(struct stat *is) {
    is->st_ctim.tv_sec++;
}
static void longer(struct stat *is) {
    is->st_size++;
}
static void shorter(struct stat *is) {
    is->st_size--;
}
static void on_another_device(struct stat *is) {
    is->st_dev++;
}
static void another_one(struct stat *is) {
    is->st_ino++;
}
static void removed(struct stat *is) {
    is->st_nlink--;
    is->st_ctim.tv_nsec++;
}

/* Whatever changes, before the first byte is read or until after the last: the load fails, and what was
 * listed counts for nothing. A file that was opened by no name may lose its names. */
TEST(case_27_a_file_that_has_changed_is_no_content) {
    static void (*const changes[])(struct stat *) = {
        written, written_later,     changed,     changed_later, longer,
        shorter, on_another_device, another_one, removed,       NULL /* nobody can look */};
    for (size_t i = 0; i < 4 * BHT_COUNT(changes); i++) {
        const bool listed = i % 2, before = i / 2 % 2;
        void (*const change)(struct stat *) = changes[i / 4];
        struct bhi_error error;
        uint64_t done;
        struct bhi_msg_file_attach info = new_file(listed);
        for (int k = before ? 0 : 1; change && k < 2; k++) {
            change(&stage.is[k]);
        }
        stage.fails_from = change ? 0 : before ? 1 : 2;
        struct bhi_result result = load(&info, listed ? 2 : 0, &error, &done);
        if (listed) { /* it is an answer all the same */
            struct bhi_file_list list;
            BHT_EQ(result.status, BH_OK);
            BHT_EQ(pread(stage.out, &list, sizeof list, 0), sizeof list);
            BHT_EQ(list.refused, BH_REASON_FILE_CHANGED);
            BHT_EQ(list.count, 0);
        } else {
            BHT_EQ(result.status, BH_LOAD_FAILED);
            BHT_EQ(error.told.reason, BH_REASON_FILE_CHANGED);
            BHT_EQ(done, before ? 0 : LOADED);
        }
        close(stage.out);
        if (change == removed) {
            info = new_file(listed);
            info.named = 0;
            removed(&stage.is[1]);
            BHT_EQ(load(&info, listed ? 2 : 0, &error, &done).status, BH_OK);
            close(stage.out);
        }
    }
}

/* Rows that cannot be written, or have no room: a list never looks whole that is not. */
TEST(a_list_has_the_rows_that_it_counts) {
    struct bhi_error error;
    struct bhi_file_list list;
    struct bhi_file_row row;
    uint64_t done;
    for (uint64_t room = 1; room <= 3; room++) {
        const struct bhi_msg_file_attach info = new_file(true);
        BHT_EQ(load(&info, room, &error, &done).status, BH_OK);
        BHT_EQ(pread(stage.out, &list, sizeof list, 0), sizeof list);
        BHT_EQ(list.refused, 0);
        BHT_EQ(list.count, 2);
        for (uint64_t i = 0; i < 2; i++) {
            BHT_EQ(pread(stage.out, &row, sizeof row, (off_t)bhi_file_list_bytes(i)), sizeof row);
            if (i >= room) {
                BHT_STR_EQ(row.name, "");
                continue;
            }
            BHT_STR_EQ(row.name, i ? "b" : "a");
            BHT_EQ(row.offset, 8 + sizeof header - 1 + 4 * i);
            BHT_EQ(row.bytes, 4);
        }
        close(stage.out);
    }
    const struct bhi_msg_file_attach info = new_file(true);
    signal(SIGXFSZ, SIG_IGN);
    stage.limit = bhi_file_list_bytes(1) + 1; /* the second one's */
    BHT_EQ(load(&info, 2, &error, &done).status, BH_OK);
    BHT_EQ(pread(stage.out, &list, sizeof list, 0), sizeof list);
    BHT_NE(list.refused, 0);
    BHT_EQ(list.count, 0);
    close(stage.out);
}

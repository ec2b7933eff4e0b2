/* .npy files being read and output files being written: whole or not at all. */
#include "harness.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/npy.h"
#include "tool/interrupt.h"
#include "tool/npy_file.h"
#include "tool/outfile.h"

static struct bhi_complaint complaint;
static struct bhi_npy_file input;
static struct bhi_outfile output;
static char folder[] = "/tmp/bulkhead-files-test-XXXXXX";

static void enter_folder(void) {
    BHT_NE(mkdtemp(folder), NULL);
    BHT_EQ(chdir(folder), 0);
}

static unsigned count_files(void) {
    unsigned count = 0;
    DIR *dir = opendir(".");
    BHT_NE(dir, NULL);
    for (struct dirent *entry; (entry = readdir(dir));) {
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    }
    closedir(dir);
    return count;
}

static void leave_folder(void) {
    DIR *dir = opendir(".");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (remove(entry->d_name) != 0 && errno != EBUSY && errno != EINVAL && errno != ENOTEMPTY) {
            BHT_FAIL("%s: %s", entry->d_name, strerror(errno));
        }
    }
    closedir(dir);
    BHT_EQ(chdir("/"), 0);
    BHT_EQ(rmdir(folder), 0);
}

/* Writes header, |bytes| bytes of data and |extra| more. */
static void write_npy(const char *path, uint64_t count, size_t bytes) {
    struct bhi_array array = {.dtype = BH_DTYPE_U8, .dimensions = 1, .shape = {count}};
    uint8_t header[BHI_NPY_WRITE_CAPACITY];
    array.bytes = count;
    size_t size = bhi_npy_write_header(&array, header, sizeof header);
    FILE *file = fopen(path, "wb");
    BHT_NE(file, NULL);
    BHT_EQ(fwrite(header, 1, size, file), size);
    for (size_t i = 0; i < bytes; i++) {
        fputc((int)(i & 0xFF), file);
    }
    BHT_EQ(fclose(file), 0);
}

TEST(test_read) {
    uint8_t bytes[1000];
    write_npy("good.npy", 1000, 1000);
    BHT_TRUE(bhi_npy_file_open("good.npy", &input, &complaint));
    BHT_EQ(input.array.bytes, 1000);
    BHT_TRUE(bhi_npy_file_spool(&input, 0, &complaint)); /* a regular file is not spooled */
    BHT_EQ(input.spool, NULL);
    BHT_TRUE(bhi_npy_file_read(&input, bytes, &complaint));
    for (int i = 0; i < 1000; i++) {
        BHT_EQ(bytes[i], i & 0xFF);
    }
    bhi_npy_file_close(&input);

    write_npy("empty.npy", 0, 0);
    BHT_TRUE(bhi_npy_file_open("empty.npy", &input, &complaint));
    BHT_TRUE(bhi_npy_file_read(&input, bytes, &complaint));
    bhi_npy_file_close(&input);
}

TEST(an_array_in_fortran_order_is_read_in_c_order) {
    static const char header[] =
        "\x93NUMPY\x01\x00\x40\x00"
        "{'descr': '<u2', 'fortran_order': True, 'shape': (2, 3, 2)}    \n";
    uint16_t data[12], got[12];
    for (uint16_t i = 0; i < 12; i++) {
        data[i] = (uint16_t)(i % 2 * 100 + i / 2 % 3 * 10 + i / 6); /* its indices */
    }
    FILE *file = fopen("fortran.npy", "wb");
    BHT_NE(file, NULL);
    BHT_EQ(fwrite(header, 1, sizeof header - 1, file), sizeof header - 1);
    BHT_EQ(fwrite(data, 2, 12, file), 12);
    BHT_EQ(fclose(file), 0);
    if (!bhi_npy_file_open("fortran.npy", &input, &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
    BHT_TRUE(bhi_npy_file_read(&input, got, &complaint));
    for (uint16_t i = 0; i < 12; i++) {
        BHT_EQ(got[i], i / 6 * 100 + i / 2 % 3 * 10 + i % 2);
    }
    bhi_npy_file_close(&input);
}

static void expect_refused(const char *path, const char *reason) {
    complaint.text[0] = 0;
    BHT_TRUE(!bhi_npy_file_open(path, &input, &complaint));
    BHT_STR_HAS(complaint.text, reason);
    BHT_EQ(input.fd, -1);
}

TEST(test_bad_files) {
    write_npy("short.npy", 1000, 999);
    expect_refused("short.npy",
                   "truncated: the shape needs 1000 bytes of data, but only 999 follow");
    write_npy("long.npy", 1000, 1001);
    expect_refused("long.npy", "too long: the shape needs 1000 bytes of data, but 1001 follow");
    write_npy("header.npy", 1000, 0);
    BHT_EQ(truncate("header.npy", 40), 0);
    expect_refused("header.npy", "truncated header");
    BHT_EQ(truncate("header.npy", 8), 0);
    expect_refused("header.npy", "truncated header");
    BHT_EQ(truncate("header.npy", 0), 0);
    expect_refused("header.npy", "empty");
    expect_refused("missing.npy", "No such file");
    expect_refused(".", "not a regular file");
    expect_refused("/dev/zero", "not a regular file");
    BHT_EQ(mkfifo("fifo", 0600), 0);
    expect_refused("fifo", "not a regular file"); /* and it does not wait for a writer */
    BHT_EQ(unlink("fifo"), 0);
}

/* Cut after it was opened: an error, not a fault and not old bytes. */
TEST(test_cut_while_read) {
    uint8_t bytes[1000];
    write_npy("cut.npy", 1000, 1000);
    BHT_TRUE(bhi_npy_file_open("cut.npy", &input, &complaint));
    BHT_EQ(truncate("cut.npy", 128 + 500), 0);
    BHT_TRUE(!bhi_npy_file_read(&input, bytes, &complaint));
    BHT_STR_HAS(complaint.text, "but only 500 follow the header");
    bhi_npy_file_close(&input);
}

/* Standard input as a pipe that a child feeds with |path|. */
static pid_t feed_stdin(const char *path) {
    int ends[2];
    BHT_EQ(pipe(ends), 0);
    pid_t child = fork();
    BHT_GE(child, 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execlp("cat", "cat", path, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    BHT_EQ(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    return child;
}

TEST(test_stream) {
    static const struct {
        uint64_t claimed;
        size_t bytes;
        uint64_t trusted;
        const char *reason; /* NULL: good */
    } cases[] = {
        {3000000, 3000000, UINT64_MAX, NULL},
        {3000000, 3000000, 1000, NULL},
        {0, 0, 0, NULL},
        {3000000, 2999999, UINT64_MAX, "but only 2999999 follow the header"},
        {3000000, 2999999, 1000, "but only 2999999 follow the header"},
        {3000, 3001, UINT64_MAX, "but more follow the header"},
        {3000000, 3000001, 1000, "but more follow the header"},
        /* The claim of a terabyte takes no memory: only what arrives does. */
        {UINT64_C(1) << 40, 100, 1000, "but only 100 follow the header"},
    };
    int saved = dup(STDIN_FILENO);
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        static uint8_t bytes[4000000];
        write_npy("stream.npy", cases[i].claimed, cases[i].bytes);
        pid_t child = feed_stdin("stream.npy");
        BHT_TRUE(bhi_npy_file_open("-", &input, &complaint));
        bool good = bhi_npy_file_spool(&input, cases[i].trusted, &complaint) &&
                    bhi_npy_file_read(&input, bytes, &complaint);
        if (good != !cases[i].reason) {
            BHT_FAIL("case %zu: %d %s", i, good, complaint.text);
        }
        if (!good) {
            BHT_STR_HAS(complaint.text, cases[i].reason);
        }
        for (size_t k = 0; good && k < cases[i].bytes; k++) {
            BHT_EQ(bytes[k], k & 0xFF);
        }
        bhi_npy_file_close(&input);
        dup2(saved, STDIN_FILENO);
        BHT_EQ(waitpid(child, NULL, 0), child);
    }
    close(saved);
}

static void expect_content(const char *path, const char *content) {
    char got[64] = "";
    FILE *file = fopen(path, "rb");
    BHT_NE(file, NULL);
    got[fread(got, 1, sizeof got - 1, file)] = 0;
    fclose(file);
    BHT_STR_EQ(got, content);
}

static void write_content(const char *content) {
    BHT_TRUE(bhi_outfile_write(&output, content, 1, content + 1, strlen(content) - 1, &complaint));
}

static void begin(const char *path, const char *content) {
    BHT_TRUE(bhi_outfile_open(path, strlen(content), &output, &complaint));
    write_content(content);
}

static void begin_named(const char *path, const char *name, const char *content) {
    BHT_TRUE(bhi_outfile_open_named(path, name, strlen(content), &output, &complaint));
    write_content(content);
}

static void commit(void) {
    BHT_TRUE(bhi_outfile_seal(&output, &complaint));
    BHT_TRUE(bhi_outfile_commit(&output, &complaint));
    bhi_outfile_abandon(&output);
}

TEST(test_outfile) {
    struct stat status;
    mode_t mask = umask(027);
    unsigned before = count_files();

    begin("out", "head");
    BHT_EQ(access("out", F_OK), -1); /* nothing is visible before commit */
    BHT_TRUE(bhi_outfile_seal(&output, &complaint));
    BHT_EQ(access("out", F_OK), -1);
    BHT_TRUE(bhi_outfile_commit(&output, &complaint));
    bhi_outfile_abandon(&output);
    expect_content("out", "head");
    BHT_EQ(stat("out", &status), 0);
    BHT_EQ(status.st_mode & 0777, 0640);
    BHT_EQ(count_files(), before + 1);

    /* Abandoned at each stage: the old content stays, nothing else is left. */
    for (int stage = 0; stage < 3; stage++) {
        BHT_TRUE(bhi_outfile_open("out", 3, &output, &complaint));
        if (stage > 0) {
            write_content("new");
        }
        if (stage > 1) {
            BHT_TRUE(bhi_outfile_seal(&output, &complaint));
        }
        bhi_outfile_abandon(&output);
        expect_content("out", "head");
        BHT_EQ(count_files(), before + 1);
    }

    /* A replaced file keeps its mode; a link is followed. */
    BHT_EQ(chmod("out", 0604), 0);
    BHT_EQ(symlink("out", "link"), 0);
    begin("link", "new");
    commit();
    expect_content("out", "new");
    BHT_EQ(lstat("link", &status), 0);
    BHT_TRUE(S_ISLNK(status.st_mode));
    BHT_EQ(stat("out", &status), 0);
    BHT_EQ(status.st_mode & 0777, 0604);
    umask(mask);
}

/* Under a name of the caller's a temporary is found again by whoever comes after a crash. */
TEST(test_outfile_named) {
    static const char name[] = ".batch-1.tmp";
    struct bhi_outfile later;
    begin("named", "old");
    commit();
    const unsigned before = count_files();
    for (int i = 0; i < 2; i++) { /* the second one finds what the first one left */
        begin_named("named", name, i ? "new" : "not");
        BHT_TRUE(bhi_outfile_seal(&output, &complaint));
        bhi_outfile_close(&output);
        BHT_EQ(count_files(), before + 1);
        if (i == 0) { /* as after a kill: nobody abandons it */
            output.temporary[0] = 0;
            bhi_outfile_abandon(&output);
        }
    }
    expect_content("named", "old");
    BHT_TRUE(bhi_outfile_adopt("named", name, &later, &complaint));
    BHT_TRUE(bhi_outfile_rename(&later, &complaint));
    BHT_TRUE(bhi_outfile_sync_folder(&later, &complaint));
    expect_content("named", "new");
    bhi_outfile_abandon(&later);
    expect_content("named", "new");
    BHT_EQ(count_files(), before);

    /* Once it is in its place there is nothing to rename, and that is told apart. */
    BHT_TRUE(!bhi_outfile_rename(&output, &complaint));
    BHT_EQ(output.error, ENOENT);
    bhi_outfile_abandon(&output);

    /* Adopted and abandoned: swept. */
    write_npy(name, 1, 1);
    BHT_TRUE(bhi_outfile_adopt("named", name, &later, &complaint));
    bhi_outfile_abandon(&later);
    BHT_EQ(count_files(), before);

    BHT_TRUE(!bhi_outfile_open_named(".", name, 3, &output, &complaint));
    BHT_TRUE(!bhi_outfile_open_named("nofolder/out", name, 3, &output, &complaint));
    BHT_EQ(output.error, ENOENT);
    BHT_TRUE(!bhi_outfile_adopt("nofolder/out", name, &output, &complaint));
    BHT_EQ(output.error, ENOENT);
}

/* The content is known again, also where size and time tell nothing. */
TEST(test_outfile_content) {
    /* BLAKE2b-256 of "abc" (RFC 7693's function, as b2sum -l 256 prints it). */
    static const uint8_t abc[BHI_CONTENT_HASH] = {0xbd, 0xdd, 0x81, 0x3c, 0x63, 0x42, 0x39, 0x72,
                                                  0x31, 0x71, 0xef, 0x3f, 0xee, 0x98, 0x57, 0x9b,
                                                  0x94, 0x96, 0x4e, 0x3b, 0xb1, 0xcb, 0x3e, 0x42,
                                                  0x72, 0x62, 0xc8, 0xc0, 0x68, 0xd5, 0x23, 0x19};
    static const char name[] = ".batch-3.tmp";
    struct stat status;
    BHT_TRUE(bhi_outfile_open_named("content", name, 3, &output, &complaint));
    BHT_TRUE(bhi_outfile_append(&output, "a", 1, &complaint));
    BHT_TRUE(bhi_outfile_write(&output, "b", 1, "c", 1, &complaint));
    BHT_TRUE(!output.mark.hashed);
    BHT_TRUE(bhi_outfile_seal(&output, &complaint) && bhi_outfile_rename(&output, &complaint));
    struct bhi_outfile_mark mark = output.mark;
    bhi_outfile_abandon(&output);
    BHT_TRUE(mark.hashed);
    BHT_TRUE(memcmp(mark.hash, abc, sizeof abc) == 0);
    BHT_TRUE(bhi_outfile_adopt("content", name, &output, &complaint));
    BHT_EQ(bhi_outfile_compare(&output, &mark), BHI_OUTFILE_EQUAL);
    BHT_EQ(stat("content", &status), 0);
    int fd = open("content", O_WRONLY);
    BHT_EQ(pwrite(fd, "d", 1, 2), 1);
    const struct timespec times[2] = {status.st_mtim, status.st_mtim};
    BHT_EQ(futimens(fd, times), 0);
    BHT_TRUE(bhi_outfile_has(&output, true, &mark)); /* size and time */
    BHT_EQ(bhi_outfile_compare(&output, &mark), BHI_OUTFILE_OTHER);
    BHT_EQ(pwrite(fd, "cc", 2, 2), 2);
    BHT_EQ(bhi_outfile_compare(&output, &mark), BHI_OUTFILE_OTHER);
    BHT_EQ(ftruncate(fd, 3), 0);
    BHT_EQ(bhi_outfile_compare(&output, &mark), BHI_OUTFILE_EQUAL);
    close(fd);
    BHT_EQ(unlink("content"), 0);
    BHT_EQ(bhi_outfile_compare(&output, &mark), BHI_OUTFILE_UNREAD);
    BHT_EQ(output.error, ENOENT);
    BHT_EQ(mkfifo("content", 0600), 0);
    BHT_EQ(bhi_outfile_compare(&output, &mark), BHI_OUTFILE_OTHER);
    BHT_EQ(unlink("content"), 0);
    output.temporary[0] = 0;
    bhi_outfile_abandon(&output);
}

/* Files may be large: reading ends when a signal asks for the end. */
TEST(test_interrupted_hash) {
    uint8_t hash[BHI_CONTENT_HASH];
    const int fd = open("/dev/zero", O_RDONLY); /* it has no end */
    BHT_GE(fd, 0);
    const pid_t child = fork(); /* which keeps a descriptor for the signal */
    BHT_GE(child, 0);
    if (child == 0) {
        bhi_interrupt_watch();
        raise(SIGINT);
        _exit(bhi_content_hash_of(fd, hash) == EINTR ? 0 : 1);
    }
    int status;
    BHT_EQ(waitpid(child, &status, 0), child);
    BHT_EQ(status, 0);
    close(fd);
}

/* A file is known again by its size and its time, also in its place. */
TEST(test_outfile_mark) {
    static const char name[] = ".batch-2.tmp";
    static const struct timespec other[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    struct stat status;
    for (int i = 0; i < 2; i++) { /* the second time as if the clock had stood still */
        begin_named("marked", name, i ? "new" : "not");
        if (i) {
            BHT_EQ(fstat(output.fd, &status), 0);
            const struct timespec times[2] = {status.st_mtim, status.st_mtim};
            BHT_EQ(truncate("marked", 3), 0);
            BHT_EQ(utimensat(AT_FDCWD, "marked", times, 0), 0);
        }
        BHT_TRUE(bhi_outfile_seal(&output, &complaint));
        bhi_outfile_close(&output);
        const struct bhi_outfile_mark mark = output.mark;
        BHT_EQ(mark.size, 3);
        BHT_TRUE(bhi_outfile_has(&output, false, &mark));
        BHT_TRUE(!bhi_outfile_has(&output, true, &mark));
        BHT_EQ(output.error, i ? 0 : ENOENT);
        BHT_TRUE(bhi_outfile_rename(&output, &complaint));
        bhi_outfile_abandon(&output);
        BHT_TRUE(bhi_outfile_adopt("marked", name, &output, &complaint));
        BHT_TRUE(bhi_outfile_has(&output, true, &mark));
        BHT_TRUE(!bhi_outfile_has(&output, false, &mark));
        BHT_EQ(output.error, ENOENT);
        BHT_EQ(truncate("marked", 2), 0);
        BHT_TRUE(!bhi_outfile_has(&output, true, &mark));
        BHT_EQ(output.error, 0);
        BHT_EQ(truncate("marked", 3), 0);
        BHT_EQ(utimensat(AT_FDCWD, "marked", other, 0), 0);
        BHT_TRUE(!bhi_outfile_has(&output, true, &mark));
        bhi_outfile_abandon(&output);
    }
    BHT_EQ(unlink("marked"), 0);
}

TEST(test_outfile_same) {
    struct bhi_outfile a, b, c, d;
    BHT_EQ(mkdir("elsewhere", 0700), 0);
    BHT_TRUE(bhi_outfile_open("same", 1, &a, &complaint));
    BHT_TRUE(bhi_outfile_open("./same", 1, &b, &complaint));
    BHT_TRUE(bhi_outfile_open("other", 1, &c, &complaint));
    BHT_TRUE(bhi_outfile_open("elsewhere/same", 1, &d, &complaint));
    BHT_TRUE(bhi_outfile_same(&a, &b));
    BHT_TRUE(!bhi_outfile_same(&a, &c));
    BHT_TRUE(!bhi_outfile_same(&a, &d));
    bhi_outfile_abandon(&a);
    bhi_outfile_abandon(&b);
    bhi_outfile_abandon(&c);
    bhi_outfile_abandon(&d);
    BHT_EQ(rmdir("elsewhere"), 0);
}

static void expect_unwritable(const char *path, uint64_t size, const char *reason) {
    unsigned before = count_files();
    complaint.text[0] = 0;
    BHT_TRUE(!bhi_outfile_open(path, size, &output, &complaint));
    BHT_STR_HAS(complaint.text, reason);
    BHT_EQ(count_files(), before);
}

static int access_error; /* what is said of each file; 0: what is so */

BHT_WRAP(int, faccessat, int at, const char *path, int mode, int flags) {
    errno = access_error;
    return access_error ? -1 : __real_faccessat(at, path, mode, flags);
}

/* What may not be written is not replaced, although its folder may be written. */
TEST(test_a_file_of_which_it_may_not_be_written) {
    begin("kept", "old");
    commit();
    const unsigned before = count_files();
    access_error = EACCES;
    BHT_TRUE(!bhi_outfile_open("kept", 3, &output, &complaint));
    BHT_STR_HAS(complaint.text, "cannot be written: Permission denied");
    access_error = 0;
    expect_content("kept", "old");
    BHT_EQ(count_files(), before);
}

TEST(test_unwritable) {
    expect_unwritable("", 1, "empty");
    expect_unwritable(".", 1, "is a directory: name a file in it");
    expect_unwritable("no/such/folder/out", 1, "No such file");
    expect_unwritable("/proc/out", 1, "");
    expect_unwritable("name/", 1, "not a file name");
    expect_unwritable("huge", UINT64_MAX, "File too large");
    if (geteuid() != 0) { /* root may write anything */
        BHT_EQ(mkdir("locked", 0500), 0);
        expect_unwritable("locked/out", 1, "Permission denied");
        BHT_EQ(rmdir("locked"), 0);
    }
}

/* A device is written, never replaced. */
TEST(test_device) {
    struct stat status;
    begin("/dev/null", "ab");
    commit();
    BHT_EQ(stat("/dev/null", &status), 0);
    BHT_TRUE(S_ISCHR(status.st_mode));

    begin("/dev/full", "ab");
    BHT_TRUE(!bhi_outfile_commit(&output, &complaint));
    BHT_STR_HAS(complaint.text, "No space left");
    bhi_outfile_abandon(&output);
}

BHT_AT_START(bht_around(enter_folder, leave_folder))

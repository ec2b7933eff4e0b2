/* .npy files being read and output files being written: whole or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/npy.h"
#include "tool/npy_file.h"
#include "tool/outfile.h"

static struct bhi_complaint complaint;
static char folder[] = "/tmp/bulkhead-files-test-XXXXXX";

static int enter_folder(void **state) {
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static unsigned count_files(void) {
    unsigned count = 0;
    DIR *dir = opendir(".");
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(dir);
    return count;
}

static int leave_folder(void **state) {
    (void)state;
    DIR *dir = opendir(".");
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (remove(entry->d_name) != 0 && errno != EBUSY && errno != EINVAL && errno != ENOTEMPTY)
            return -1;
    closedir(dir);
    return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

/* Writes header, |bytes| bytes of data and |extra| more. */
static void write_npy(const char *path, uint64_t count, size_t bytes) {
    struct bhi_array array = {.dtype = BHI_DTYPE_u8, .dimensions = 1, .shape = {count}};
    uint8_t header[BHI_NPY_WRITE_CAPACITY];
    array.bytes = count;
    size_t size = bhi_npy_write_header(&array, header, sizeof header);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(header, 1, size, file), size);
    for (size_t i = 0; i < bytes; i++)
        fputc((int)(i & 0xFF), file);
    assert_int_equal(fclose(file), 0);
}

static void test_read(void **state) {
    struct bhi_npy_file file;
    uint8_t bytes[1000];
    (void)state;
    write_npy("good.npy", 1000, 1000);
    assert_true(bhi_npy_file_open("good.npy", &file, &complaint));
    assert_int_equal(file.array.bytes, 1000);
    assert_true(bhi_npy_file_spool(&file, 0, &complaint)); /* a regular file is not spooled */
    assert_null(file.spool);
    assert_true(bhi_npy_file_read(&file, bytes, &complaint));
    for (int i = 0; i < 1000; i++)
        assert_int_equal(bytes[i], i & 0xFF);
    bhi_npy_file_close(&file);

    write_npy("empty.npy", 0, 0);
    assert_true(bhi_npy_file_open("empty.npy", &file, &complaint));
    assert_true(bhi_npy_file_read(&file, bytes, &complaint));
    bhi_npy_file_close(&file);
}

static void expect_refused(const char *path, const char *reason) {
    struct bhi_npy_file file;
    complaint.text[0] = 0;
    assert_false(bhi_npy_file_open(path, &file, &complaint));
    if (!strstr(complaint.text, reason))
        fail_msg("%s: '%s' does not say '%s'", path, complaint.text, reason);
    assert_int_equal(file.fd, -1);
}

static void test_bad_files(void **state) {
    (void)state;
    write_npy("short.npy", 1000, 999);
    expect_refused("short.npy", "wants 1000 bytes of data, there are 999");
    write_npy("long.npy", 1000, 1001);
    expect_refused("long.npy", "wants 1000 bytes of data, there are 1001");
    write_npy("header.npy", 1000, 0);
    assert_int_equal(truncate("header.npy", 40), 0);
    expect_refused("header.npy", "truncated header");
    assert_int_equal(truncate("header.npy", 8), 0);
    expect_refused("header.npy", "truncated header");
    assert_int_equal(truncate("header.npy", 0), 0);
    expect_refused("header.npy", "empty");
    expect_refused("missing.npy", "No such file");
    expect_refused(".", "not a regular file");
    expect_refused("/dev/zero", "not a regular file");
    assert_int_equal(mkfifo("fifo", 0600), 0);
    expect_refused("fifo", "not a regular file"); /* and it does not wait for a writer */
    assert_int_equal(unlink("fifo"), 0);
}

/* Cut after it was opened: an error, not a fault and not old bytes. */
static void test_cut_while_read(void **state) {
    struct bhi_npy_file file;
    uint8_t bytes[1000];
    (void)state;
    write_npy("cut.npy", 1000, 1000);
    assert_true(bhi_npy_file_open("cut.npy", &file, &complaint));
    assert_int_equal(truncate("cut.npy", 128 + 500), 0);
    assert_false(bhi_npy_file_read(&file, bytes, &complaint));
    assert_non_null(strstr(complaint.text, "there are 500"));
    bhi_npy_file_close(&file);
}

/* Standard input as a pipe that a child feeds with |path|. */
static pid_t feed_stdin(const char *path) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execlp("cat", "cat", path, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    return child;
}

static void test_stream(void **state) {
    static const struct {
        uint64_t claimed;
        size_t bytes;
        uint64_t trusted;
        const char *reason; /* NULL: good */
    } cases[] = {
        {3000000, 3000000, UINT64_MAX, NULL},
        {3000000, 3000000, 1000, NULL},
        {0, 0, 0, NULL},
        {3000000, 2999999, UINT64_MAX, "there are 2999999"},
        {3000000, 2999999, 1000, "there are 2999999"},
        {3000, 3001, UINT64_MAX, "more data"},
        {3000000, 3000001, 1000, "more data"},
        /* The claim of a terabyte takes no memory: only what arrives does. */
        {UINT64_C(1) << 40, 100, 1000, "there are 100"},
    };
    int saved = dup(STDIN_FILENO);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bhi_npy_file file;
        uint8_t *bytes = malloc(4000000);
        assert_non_null(bytes);
        write_npy("stream.npy", cases[i].claimed, cases[i].bytes);
        pid_t child = feed_stdin("stream.npy");
        assert_true(bhi_npy_file_open("-", &file, &complaint));
        bool good = bhi_npy_file_spool(&file, cases[i].trusted, &complaint) &&
                    bhi_npy_file_read(&file, bytes, &complaint);
        if (good != !cases[i].reason)
            fail_msg("case %zu: %d %s", i, good, complaint.text);
        if (!good)
            assert_non_null(strstr(complaint.text, cases[i].reason));
        for (size_t k = 0; good && k < cases[i].bytes; k++)
            assert_int_equal(bytes[k], k & 0xFF);
        bhi_npy_file_close(&file);
        free(bytes);
        dup2(saved, STDIN_FILENO);
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
    close(saved);
}

static void expect_content(const char *path, const char *content) {
    char got[64] = "";
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    got[fread(got, 1, sizeof got - 1, file)] = 0;
    fclose(file);
    assert_string_equal(got, content);
}

static void test_outfile(void **state) {
    struct bhi_outfile file;
    struct stat status;
    (void)state;
    mode_t mask = umask(027);
    unsigned before = count_files();

    assert_true(bhi_outfile_open("out", 4, &file, &complaint));
    assert_true(bhi_outfile_write(&file, "he", 2, "ad", 2, &complaint));
    assert_int_equal(access("out", F_OK), -1); /* nothing is visible before commit */
    assert_true(bhi_outfile_seal(&file, &complaint));
    assert_int_equal(access("out", F_OK), -1);
    assert_true(bhi_outfile_commit(&file, &complaint));
    bhi_outfile_abandon(&file);
    expect_content("out", "head");
    assert_int_equal(stat("out", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
    assert_int_equal(count_files(), before + 1);

    /* Abandoned at each stage: the old content stays, nothing else is left. */
    for (int stage = 0; stage < 3; stage++) {
        assert_true(bhi_outfile_open("out", 3, &file, &complaint));
        if (stage > 0)
            assert_true(bhi_outfile_write(&file, "n", 1, "ew", 2, &complaint));
        if (stage > 1)
            assert_true(bhi_outfile_seal(&file, &complaint));
        bhi_outfile_abandon(&file);
        expect_content("out", "head");
        assert_int_equal(count_files(), before + 1);
    }

    /* A replaced file keeps its mode; a link is followed. */
    assert_int_equal(chmod("out", 0604), 0);
    assert_int_equal(symlink("out", "link"), 0);
    assert_true(bhi_outfile_open("link", 3, &file, &complaint));
    assert_true(bhi_outfile_write(&file, "n", 1, "ew", 2, &complaint));
    assert_true(bhi_outfile_seal(&file, &complaint));
    assert_true(bhi_outfile_commit(&file, &complaint));
    bhi_outfile_abandon(&file);
    expect_content("out", "new");
    assert_int_equal(lstat("link", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(stat("out", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0604);
    umask(mask);
}

/* Under a name of the caller's a temporary is found again by whoever comes after a crash. */
static void test_outfile_named(void **state) {
    (void)state;
    static const char name[] = ".batch-1.tmp";
    struct bhi_outfile file, later;
    assert_true(bhi_outfile_open("named", 3, &file, &complaint));
    assert_true(bhi_outfile_write(&file, "o", 1, "ld", 2, &complaint));
    assert_true(bhi_outfile_seal(&file, &complaint) && bhi_outfile_commit(&file, &complaint));
    bhi_outfile_abandon(&file);
    const unsigned before = count_files();
    for (int i = 0; i < 2; i++) { /* the second one finds what the first one left */
        assert_true(bhi_outfile_open_named("named", name, 3, &file, &complaint));
        assert_true(bhi_outfile_write(&file, "n", 1, i ? "ew" : "ot", 2, &complaint));
        assert_true(bhi_outfile_seal(&file, &complaint));
        bhi_outfile_close(&file);
        assert_int_equal(count_files(), before + 1);
        if (i == 0) { /* as after a kill: nobody abandons it */
            file.temporary[0] = 0;
            bhi_outfile_abandon(&file);
        }
    }
    expect_content("named", "old");
    assert_true(bhi_outfile_adopt("named", name, &later, &complaint));
    assert_true(bhi_outfile_rename(&later, &complaint));
    assert_true(bhi_outfile_sync_folder(&later, &complaint));
    expect_content("named", "new");
    bhi_outfile_abandon(&later);
    expect_content("named", "new");
    assert_int_equal(count_files(), before);

    /* Once it is in its place there is nothing to rename, and that is told apart. */
    assert_false(bhi_outfile_rename(&file, &complaint));
    assert_int_equal(file.error, ENOENT);
    bhi_outfile_abandon(&file);

    /* Adopted and abandoned: swept. */
    write_npy(name, 1, 1);
    assert_true(bhi_outfile_adopt("named", name, &later, &complaint));
    bhi_outfile_abandon(&later);
    assert_int_equal(count_files(), before);

    assert_false(bhi_outfile_open_named(".", name, 3, &file, &complaint));
    assert_false(bhi_outfile_open_named("nofolder/out", name, 3, &file, &complaint));
    assert_int_equal(file.error, ENOENT);
    assert_false(bhi_outfile_adopt("nofolder/out", name, &file, &complaint));
    assert_int_equal(file.error, ENOENT);
}

/* A file is known again by its size and its time, also in its place. */
static void test_outfile_mark(void **state) {
    (void)state;
    static const char name[] = ".batch-2.tmp";
    static const struct timespec other[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    struct bhi_outfile file;
    struct stat status;
    for (int i = 0; i < 2; i++) { /* the second time as if the clock had stood still */
        assert_true(bhi_outfile_open_named("marked", name, 3, &file, &complaint));
        assert_true(bhi_outfile_write(&file, "n", 1, i ? "ew" : "ot", 2, &complaint));
        if (i) {
            assert_int_equal(fstat(file.fd, &status), 0);
            const struct timespec times[2] = {status.st_mtim, status.st_mtim};
            assert_int_equal(truncate("marked", 3), 0);
            assert_int_equal(utimensat(AT_FDCWD, "marked", times, 0), 0);
        }
        assert_true(bhi_outfile_seal(&file, &complaint));
        bhi_outfile_close(&file);
        const struct bhi_outfile_mark mark = file.mark;
        assert_int_equal(mark.size, 3);
        assert_true(bhi_outfile_has(&file, false, &mark));
        assert_false(bhi_outfile_has(&file, true, &mark));
        assert_int_equal(file.error, i ? 0 : ENOENT);
        assert_true(bhi_outfile_rename(&file, &complaint));
        bhi_outfile_abandon(&file);
        assert_true(bhi_outfile_adopt("marked", name, &file, &complaint));
        assert_true(bhi_outfile_has(&file, true, &mark));
        assert_false(bhi_outfile_has(&file, false, &mark));
        assert_int_equal(file.error, ENOENT);
        assert_int_equal(truncate("marked", 2), 0);
        assert_false(bhi_outfile_has(&file, true, &mark));
        assert_int_equal(file.error, 0);
        assert_int_equal(truncate("marked", 3), 0);
        assert_int_equal(utimensat(AT_FDCWD, "marked", other, 0), 0);
        assert_false(bhi_outfile_has(&file, true, &mark));
        bhi_outfile_abandon(&file);
    }
    assert_int_equal(unlink("marked"), 0);
}

static void test_outfile_same(void **state) {
    struct bhi_outfile a, b, c;
    (void)state;
    assert_true(bhi_outfile_open("same", 1, &a, &complaint));
    assert_true(bhi_outfile_open("./same", 1, &b, &complaint));
    assert_true(bhi_outfile_open("other", 1, &c, &complaint));
    assert_true(bhi_outfile_same(&a, &b));
    assert_false(bhi_outfile_same(&a, &c));
    bhi_outfile_abandon(&a);
    bhi_outfile_abandon(&b);
    bhi_outfile_abandon(&c);
}

static void expect_unwritable(const char *path, uint64_t size, const char *reason) {
    struct bhi_outfile file;
    unsigned before = count_files();
    complaint.text[0] = 0;
    assert_false(bhi_outfile_open(path, size, &file, &complaint));
    if (!strstr(complaint.text, reason))
        fail_msg("%s: '%s' does not say '%s'", path, complaint.text, reason);
    assert_int_equal(count_files(), before);
}

static void test_unwritable(void **state) {
    (void)state;
    expect_unwritable("", 1, "empty");
    expect_unwritable(".", 1, "Is a directory");
    expect_unwritable("no/such/folder/out", 1, "No such file");
    expect_unwritable("/proc/out", 1, "");
    expect_unwritable("name/", 1, "not a file name");
    expect_unwritable("huge", UINT64_MAX, "File too large");
    if (geteuid() != 0) { /* root may write anything */
        assert_int_equal(mkdir("locked", 0500), 0);
        expect_unwritable("locked/out", 1, "Permission denied");
        assert_int_equal(rmdir("locked"), 0);
    }
}

/* A device is written, never replaced. */
static void test_device(void **state) {
    struct bhi_outfile file;
    struct stat status;
    (void)state;
    assert_true(bhi_outfile_open("/dev/null", 2, &file, &complaint));
    assert_true(bhi_outfile_write(&file, "a", 1, "b", 1, &complaint));
    assert_true(bhi_outfile_seal(&file, &complaint));
    assert_true(bhi_outfile_commit(&file, &complaint));
    bhi_outfile_abandon(&file);
    assert_int_equal(stat("/dev/null", &status), 0);
    assert_true(S_ISCHR(status.st_mode));

    assert_true(bhi_outfile_open("/dev/full", 2, &file, &complaint));
    assert_true(bhi_outfile_write(&file, "a", 1, "b", 1, &complaint));
    assert_false(bhi_outfile_commit(&file, &complaint));
    assert_non_null(strstr(complaint.text, "No space left"));
    bhi_outfile_abandon(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),           cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_cut_while_read), cmocka_unit_test(test_stream),
        cmocka_unit_test(test_outfile),        cmocka_unit_test(test_outfile_named),
        cmocka_unit_test(test_outfile_mark),   cmocka_unit_test(test_outfile_same),
        cmocka_unit_test(test_unwritable),     cmocka_unit_test(test_device),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}

/* Links that others have planted are not followed; everybody else's are. Who "we" are is what
 * geteuid says: these tests say it, so that they do the same for root and for anybody else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/outfile.h"
#include "tool/place.h"

uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);
static bool somebody_else; /* than who made the files */
uid_t __wrap_geteuid(void) {
    return __real_geteuid() + (somebody_else ? 4242 : 0);
}

/* A sticky folder that everybody can write, and is neither ours nor of who makes links in it. */
static char shared[64], inside[128];

static int enter(void **state) {
    (void)state;
    strcpy(shared, "/tmp/bulkhead-place-XXXXXX");
    if (!mkdtemp(shared) || chdir(shared) != 0 || mkdir("real", 0700) != 0 ||
        mkdir("sticky", 0777) != 0 || chmod("sticky", 01777) != 0)
        return -1;
    /* Root's folder with a link of user 1000 in it; else /tmp itself, which is root's. */
    snprintf(inside, sizeof inside, "%s", __real_geteuid() == 0 ? "sticky" : "/tmp");
    return 0;
}

static int leave(void **state) {
    (void)state;
    char command[128];
    somebody_else = false;
    snprintf(command, sizeof command, "rm -rf %s", shared);
    return chdir("/") != 0 || system(command) != 0 ? -1 : 0;
}

/* |name| in the shared folder leads to |target|. */
static void plant(const char *name, const char *target, char path[256]) {
    snprintf(path, 256, "%s/%s%s", inside, strcmp(inside, "/tmp") ? "" : strrchr(shared, '-'),
             name);
    char whole[256];
    snprintf(whole, sizeof whole, "%s/%s", shared, target);
    unlink(path);
    assert_int_equal(symlink(whole, path), 0);
    if (__real_geteuid() == 0)
        assert_int_equal(lchown(path, 1000, 1000), 0);
}

static void expect_found(const char *path, const char *name) {
    struct bhi_place place;
    struct bhi_complaint complaint = {0};
    if (!bhi_place_find(path, &place, &complaint))
        fail_msg("%s: %s", path, complaint.text);
    assert_string_equal(place.name, name);
    bhi_place_close(&place);
}

static void expect_refused(const char *path, const char *words) {
    struct bhi_place place;
    struct bhi_complaint complaint = {0};
    assert_false(bhi_place_find(path, &place, &complaint));
    if (!strstr(complaint.text, words))
        fail_msg("%s: %s", path, complaint.text);
    bhi_place_close(&place);
}

static void test_paths(void **state) {
    (void)state;
    assert_int_equal(symlink("real", "link"), 0);
    assert_int_equal(symlink("../real/there", "real/more"), 0);
    assert_int_equal(symlink("loop", "loop"), 0);
    expect_found("new", "new");
    expect_found("./real//new", "new");
    expect_found("real/../new", "new");
    expect_found("link/new", "new");
    expect_found("link/more", "there");
    expect_found("/tmp", "tmp");
    expect_found("link/./../real/more", "there");
    expect_refused("loop", "symbolic links");
    expect_refused("nowhere/new", "its folder cannot be opened: No such file");
    expect_refused("real/", "not a file name");
    expect_refused("real/..", "not a file name");
    expect_refused(".", "not a file name");
    expect_refused("/", "not a file name");
    expect_refused("", "not a file name");
}

static void test_planted_links(void **state) {
    (void)state;
    char link[256], folder[256], path[300];
    plant("out", "real/victim", link);
    plant("dir", "real", folder);
    snprintf(path, sizeof path, "%s/out", folder);
    if (__real_geteuid() != 0)
        expect_found(link, "victim"); /* our own */
    somebody_else = true;
    expect_refused(link, "is a link of user");
    expect_refused(path, "is a link of user");
    expect_refused(path, "name the file that it leads to, or remove it");
    /* No output goes there, and nothing is made. */
    struct bhi_outfile file;
    struct bhi_complaint complaint;
    assert_int_equal(close(open("real/victim", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
    assert_false(bhi_outfile_open(link, 4, &file, &complaint));
    assert_non_null(strstr(complaint.text, "is a link of user"));
    assert_false(bhi_outfile_open_named(path, "tmp", 4, &file, &complaint));
    assert_false(bhi_outfile_adopt(path, "tmp", &file, &complaint));
    /* A FIFO through one, too. */
    assert_int_equal(mkfifo("real/fifo", 0600), 0);
    const int reader = open("real/fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    char fifo[256];
    plant("fifo", "real/fifo", fifo);
    assert_false(bhi_outfile_open(fifo, 4, &file, &complaint));
    close(reader);
    somebody_else = false;
    unlink(link);
    unlink(folder);
    unlink(fifo);
}

/* Where the folder is not shared, or the link is its owner's, links are followed as ever. */
static void test_links_of_the_folders_owner(void **state) {
    (void)state;
    assert_int_equal(symlink("../real/mine", "sticky/mine"), 0);
    assert_int_equal(symlink("real/mine", "plain"), 0);
    somebody_else = true;
    expect_found("sticky/mine", "mine");
    expect_found("plain", "mine");
    somebody_else = false;
}

static void test_whose_files(void **state) {
    (void)state;
    struct stat status;
    struct bhi_complaint complaint = {0};
    assert_int_equal(stat("real", &status), 0);
    assert_true(bhi_place_is_ours(&status, "real", &complaint));
    status.st_mode |= S_IWGRP;
    assert_false(bhi_place_is_ours(&status, "real", &complaint));
    assert_non_null(strstr(complaint.text, "real can be written by others (mode 0720)"));
    assert_non_null(strstr(complaint.text, "chmod go-w"));
    somebody_else = true;
    assert_false(bhi_place_is_ours(&status, "real", &complaint));
    assert_non_null(strstr(complaint.text, "real belongs to user"));
    somebody_else = false;
}

/* A file of somebody else that is replaced does not hand its mode on. */
static void test_modes(void **state) {
    (void)state;
    struct bhi_outfile file;
    struct bhi_complaint complaint;
    struct stat status;
    for (int other = 0; other < 2; other++) {
        close(open("old", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
        assert_int_equal(chmod("old", 0666), 0);
        const mode_t mask = umask(022);
        somebody_else = other;
        assert_true(bhi_outfile_open("old", 1, &file, &complaint));
        assert_true(bhi_outfile_write(&file, "x", 1, NULL, 0, &complaint));
        assert_true(bhi_outfile_seal(&file, &complaint));
        assert_true(bhi_outfile_commit(&file, &complaint));
        bhi_outfile_abandon(&file);
        somebody_else = false;
        umask(mask);
        assert_int_equal(stat("old", &status), 0);
        assert_int_equal(status.st_mode & 0777, other ? 0644 : 0666);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_planted_links),
        cmocka_unit_test(test_links_of_the_folders_owner),
        cmocka_unit_test(test_whose_files),
        cmocka_unit_test(test_modes),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}

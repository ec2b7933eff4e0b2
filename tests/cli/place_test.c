/* Links that others have planted are not followed; everybody else's are. Who "we" are is what
 * geteuid says: these tests say it, so that they do the same for root and for anybody else. */
#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/outfile.h"
#include "tool/place.h"

static struct bhi_complaint complaint;
static struct bhi_place place;
static bool somebody_else; /* than who made the files */
BHT_WRAP(uid_t, geteuid, void) {
    return __real_geteuid() + (somebody_else ? 4242 : 0);
}

/* A sticky folder that everybody can write, and is neither ours nor of who makes links in it. */
static char shared[64], inside[128];

static void enter(void) {
    strcpy(shared, "/tmp/bulkhead-place-XXXXXX");
    BHT_NE(mkdtemp(shared), NULL);
    BHT_EQ(chdir(shared), 0);
    BHT_EQ(mkdir("real", 0700), 0);
    BHT_EQ(mkdir("sticky", 0777), 0);
    BHT_EQ(chmod("sticky", 01777), 0);
    /* Root's folder with a link of user 1000 in it; else /tmp itself, which is root's. */
    snprintf(inside, sizeof inside, "%s", __real_geteuid() == 0 ? "sticky" : "/tmp");
}

static void leave(void) {
    char command[128];
    somebody_else = false;
    snprintf(command, sizeof command, "rm -rf %s", shared);
    BHT_EQ(chdir("/"), 0);
    BHT_EQ(system(command), 0);
}

/* |name| in the shared folder leads to |target|. */
static void plant(const char *name, const char *target, char path[256]) {
    snprintf(path, 256, "%s/%s%s", inside, strcmp(inside, "/tmp") ? "" : strrchr(shared, '-'),
             name);
    char whole[256];
    snprintf(whole, sizeof whole, "%s/%s", shared, target);
    unlink(path);
    BHT_EQ(symlink(whole, path), 0);
    if (__real_geteuid() == 0) {
        BHT_EQ(lchown(path, 1000, 1000), 0);
    }
}

static void find(const char *path, const char *name) {
    if (!bhi_place_find(path, &place, &complaint)) {
        BHT_FAIL("%s: %s", path, complaint.text);
    }
    BHT_STR_EQ(place.name, name);
}

static void expect_found(const char *path, const char *name) {
    find(path, name);
    bhi_place_close(&place);
}

/* |path| leads to the name "new" in |folder|. */
static void expect_new_in(const char *folder, const char *path) {
    struct stat found, expected;
    find(path, "new");
    BHT_EQ(fstat(place.folder, &found), 0);
    BHT_EQ(stat(folder, &expected), 0);
    BHT_EQ(found.st_dev, expected.st_dev);
    BHT_EQ(found.st_ino, expected.st_ino);
    bhi_place_close(&place);
}

static void expect_refused(const char *path, const char *words) {
    BHT_TRUE(!bhi_place_find(path, &place, &complaint));
    BHT_STR_HAS(complaint.text, words);
    bhi_place_close(&place);
}

TEST(test_paths) {
    BHT_EQ(symlink("real", "link"), 0);
    BHT_EQ(symlink("../real/there", "real/more"), 0);
    BHT_EQ(symlink("loop", "loop"), 0);
    char whole[128];
    snprintf(whole, sizeof whole, "%s//real/", shared);
    BHT_EQ(symlink(whole, "whole"), 0);
    BHT_EQ(symlink("whole/new", "twice"), 0);
    expect_new_in(".", "new");
    expect_new_in("real", "./real//new");
    expect_new_in(".", "real/../new");
    expect_new_in("real", "link/new");
    expect_new_in("real", "whole/new");
    expect_new_in("real", "whole//../link/./new");
    expect_new_in("real", "twice");
    expect_found("link/more", "there");
    expect_found("/tmp", "tmp");
    expect_found("link/./../real/more", "there");
    expect_refused("loop", "symbolic links");
    expect_refused("nowhere/new",
                   "its folder cannot be opened: No such file or directory; make it first");
    expect_refused("real/", "not a file name");
    expect_refused("real/..", "not a file name");
    expect_refused(".", "not a file name");
    expect_refused("/", "not a file name");
    expect_refused("", "not a file name");
}

TEST(test_planted_links) {
    char link[256], folder[256], path[300];
    plant("out", "real/victim", link);
    plant("dir", "real", folder);
    snprintf(path, sizeof path, "%s/out", folder);
    if (__real_geteuid() != 0) {
        expect_found(link, "victim"); /* our own */
    }
    somebody_else = true;
    expect_refused(link, "is a link of user");
    expect_refused(path, "is a link of user");
    expect_refused(path, "name the file that it leads to, or remove it");
    /* No output goes there, and nothing is made. */
    struct bhi_outfile file;
    BHT_EQ(close(open("real/victim", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
    BHT_TRUE(!bhi_outfile_open(link, 4, &file, &complaint));
    BHT_STR_HAS(complaint.text, "is a link of user");
    BHT_TRUE(!bhi_outfile_open_named(path, "tmp", 4, &file, &complaint));
    BHT_TRUE(!bhi_outfile_adopt(path, "tmp", &file, &complaint));
    /* A FIFO through one, too. */
    BHT_EQ(mkfifo("real/fifo", 0600), 0);
    const int reader = open("real/fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    BHT_GE(reader, 0);
    char fifo[256];
    plant("fifo", "real/fifo", fifo);
    BHT_TRUE(!bhi_outfile_open(fifo, 4, &file, &complaint));
    close(reader);
    somebody_else = false;
    unlink(link);
    unlink(folder);
    unlink(fifo);
}

/* Where the folder is not shared, or the link is its owner's, links are followed as ever. */
TEST(test_links_of_the_folders_owner) {
    BHT_EQ(symlink("../real/mine", "sticky/mine"), 0);
    BHT_EQ(symlink("real/mine", "plain"), 0);
    somebody_else = true;
    expect_found("sticky/mine", "mine");
    expect_found("plain", "mine");
    somebody_else = false;
}

TEST(test_whose_files) {
    struct stat status;
    BHT_EQ(stat("real", &status), 0);
    BHT_TRUE(bhi_place_is_ours(&status, "real", &complaint));
    status.st_mode |= S_IWGRP;
    BHT_TRUE(!bhi_place_is_ours(&status, "real", &complaint));
    BHT_STR_HAS(complaint.text, "real can be written by others (mode 0720)");
    BHT_STR_HAS(complaint.text, "chmod go-w");
    somebody_else = true;
    BHT_TRUE(!bhi_place_is_ours(&status, "real", &complaint));
    BHT_STR_HAS(complaint.text, "real belongs to user");
    somebody_else = false;
}

/* A file of somebody else that is replaced does not hand its mode on. */
TEST(test_modes) {
    struct bhi_outfile file;
    struct stat status;
    for (int other = 0; other < 2; other++) {
        close(open("old", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
        BHT_EQ(chmod("old", 0666), 0);
        const mode_t mask = umask(022);
        somebody_else = other;
        BHT_TRUE(bhi_outfile_open("old", 1, &file, &complaint));
        BHT_TRUE(bhi_outfile_write(&file, "x", 1, NULL, 0, &complaint));
        BHT_TRUE(bhi_outfile_seal(&file, &complaint));
        BHT_TRUE(bhi_outfile_commit(&file, &complaint));
        bhi_outfile_abandon(&file);
        somebody_else = false;
        umask(mask);
        BHT_EQ(stat("old", &status), 0);
        BHT_EQ(status.st_mode & 0777, other ? 0644 : 0666);
    }
}

BHT_AT_START(bht_around(enter, leave))

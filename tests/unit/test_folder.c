/* Folders that are made, opened and removed where others can rename and plant links. */
#include "base/folder.h"
#include "base/links.h"
#include "base/runtime_parent.h"
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *place; /* the folder of the test, and its working directory */

static void enter(void) {
    place = bht_folder();
    BHT_EQ(chdir(place), 0);
}

static bool is_there(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0;
}

static int make(const char *name) {
    BHT_EQ(mkdir(name, 0700), 0);
    int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    BHT_GE(fd, 0);
    return fd;
}

/* -- removing --------------------------------------------------------------------------------- */

TEST(files_go_and_not_what_links_lead_to) {
    int folder = make("ours");
    close(make("outside"));
    bht_put("", "outside/precious");
    bht_put("", "ours/file");
    BHT_EQ(symlink("../outside", "ours/link"), 0);
    BHT_EQ(symlink("../outside/precious", "ours/other"), 0);
    BHT_EQ(bhi_folder_remove(folder, "ours"), 0);
    BHT_TRUE(!is_there("ours"));
    BHT_TRUE(is_there("outside/precious"));
    BHT_EQ(fcntl(folder, F_GETFD), -1); /* closed */
}

TEST(a_folder_inside_stays) {
    int folder = make("ours");
    close(make("ours/theirs"));
    BHT_EQ(bhi_folder_remove(folder, "ours"), -ENOTEMPTY);
    BHT_TRUE(is_there("ours/theirs"));
}

TEST(what_has_its_name_now_stays) {
    int folder = make("ours");
    bht_put("", "ours/file");
    BHT_EQ(rename("ours", "moved"), 0);
    close(make("ours"));
    BHT_EQ(bhi_folder_remove(folder, "ours"), -ESTALE);
    BHT_TRUE(is_there("ours"));
    BHT_TRUE(is_there("moved"));
    BHT_TRUE(!is_there("moved/file"));
}

TEST(one_that_is_gone_is_removed) {
    int folder = make("ours");
    BHT_EQ(rmdir("ours"), 0);
    BHT_EQ(bhi_folder_remove(folder, "ours"), 0);
    folder = make("ours");
    BHT_EQ(rename("ours", "moved"), 0);
    BHT_EQ(bhi_folder_remove(folder, "ours"), 0);
}

/* -- making ----------------------------------------------------------------------------------- */

TEST(it_is_made_once) {
    char link[NAME_MAX + 1];
    struct stat info;
    static const char *const paths[] = {"new", "new", "new/", "new/.", "new/../new", ".", "/tmp"};
    for (size_t i = 0; i < BHT_COUNT(paths); i++) {
        int fd = bhi_links_make_folder(paths[i], geteuid(), link, sizeof link);
        if (fd < 0) {
            BHT_FAIL("%s: %s", paths[i], strerror(-fd));
        }
        BHT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
        close(fd);
    }
    BHT_EQ(stat("new", &info), 0);
    BHT_EQ(info.st_mode & 07777, 0700);
    bht_put("", "file");
    BHT_EQ(bhi_links_make_folder("file", geteuid(), link, sizeof link), -ENOTDIR);
    BHT_EQ(bhi_links_make_folder("none/new", geteuid(), link, sizeof link), -ENOENT);
    BHT_EQ(bhi_links_make_folder("", geteuid(), link, sizeof link), -ENOENT);
    BHT_STR_EQ(link, "");
}

/* /tmp is sticky and root's; the link in it is this user's, or user 1000's if this is root. */
TEST(a_planted_link_makes_nothing) {
    char way[64], path[80], link[NAME_MAX + 1];
    const uid_t planter = geteuid() ? geteuid() : 1000;
    snprintf(way, sizeof way, "/tmp/bulkhead-way-%d", (int)getpid());
    snprintf(path, sizeof path, "%s/new", way);
    BHT_EQ(symlink(place, way), 0);
    BHT_EQ(lchown(way, planter, (gid_t)-1), 0);
    BHT_EQ(bhi_links_make_folder(path, 4242, link, sizeof link), -EPERM);
    BHT_STR_EQ(link, strrchr(path, 'b')); /* bulkhead-way-PID/new */
    BHT_TRUE(!is_there("new"));
    BHT_EQ(bhi_links_make_folder(way, 4242, link, sizeof link), -EPERM);
    int made = bhi_links_make_folder(path, planter, link, sizeof link);
    BHT_GE(made, 0);
    close(made);
    BHT_TRUE(is_there("new"));
    BHT_EQ(unlink(way), 0);
}

/* What is called |replaced| becomes a link once it was looked at (linked with --wrap). */
static const char *replaced;

int __real_fstatat(int folder, const char *name, struct stat *out, int flags);
int __wrap_fstatat(int folder, const char *name, struct stat *out, int flags);
int __wrap_fstatat(int folder, const char *name, struct stat *out, int flags) {
    const int result = __real_fstatat(folder, name, out, flags);
    if (replaced && strcmp(name, replaced) == 0) {
        replaced = NULL;
        BHT_EQ(rename(name, "moved"), 0);
        BHT_EQ(symlink("outside", name), 0);
    }
    return result;
}

/* A folder in whose place somebody puts a link is not entered. */
TEST(a_link_that_comes_later_is_not_followed) {
    char link[NAME_MAX + 1];
    close(make("way"));
    close(make("outside"));
    replaced = "way";
    BHT_EQ(bhi_links_make_folder("way/new", geteuid(), link, sizeof link), -ENOTDIR);
    BHT_TRUE(!replaced);
    BHT_TRUE(!is_there("outside/new"));
}

/* As many as the kernel follows, and no more. */
TEST(forty_links) {
    char from[16] = "way-0", to[16], link[NAME_MAX + 1];
    BHT_EQ(mkdir(from, 0700), 0);
    for (int i = 1; i <= 41; i++, strcpy(from, to)) {
        snprintf(to, sizeof to, "way-%d", i);
        BHT_EQ(symlink(from, to), 0);
    }
    int fd = bhi_links_open_folder("way-40", geteuid(), link, sizeof link);
    BHT_GE(fd, 0);
    close(fd);
    BHT_EQ(bhi_links_open_folder("way-41", geteuid(), link, sizeof link), -ELOOP);
}

/* A link's target and what comes behind it are together a path, no longer than any. */
TEST(a_long_way) {
    enum { TARGET = 4000, BEHIND = PATH_MAX - 1 - TARGET };
    char target[TARGET + 1], path[sizeof "long" + BEHIND + 1] = "long", link[NAME_MAX + 1];
    for (int i = 0; i < TARGET; i++) {
        target[i] = i % 2 ? '/' : '.';
    }
    target[TARGET] = '\0';
    BHT_EQ(symlink(target, "long"), 0);
    for (int i = 0; i < BEHIND; i++) {
        path[4 + i] = i % 2 ? '.' : '/';
    }
    path[4 + BEHIND] = '\0';
    int fd = bhi_links_open_folder(path, geteuid(), link, sizeof link);
    BHT_GE(fd, 0);
    close(fd);
    strcat(path, ".");
    BHT_EQ(bhi_links_open_folder(path, geteuid(), link, sizeof link), -ENAMETOOLONG);
}

/* -- the place of runtime folders --------------------------------------------------------------- */

/* What bhi_runtime_parent_open says of |path| in a user namespace with the ids |map|: 0 or an errno;
 * -1: there are no such namespaces here. */
static int opened_in(const char *map, const char *path) {
    int ready[2], mapped[2], status;
    char file[64], byte = 0;
    BHT_EQ(pipe2(ready, O_CLOEXEC), 0);
    BHT_EQ(pipe2(mapped, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWUSER) != 0 || write(ready[1], "r", 1) != 1 ||
            read(mapped[0], &byte, 1) != 1 || byte != 'm') {
            _exit(255);
        }
        int fd = bhi_runtime_parent_open(path);
        _exit(fd < 0 ? -fd : 0);
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) == 1) {
        snprintf(file, sizeof file, "/proc/%d/uid_map", (int)child);
        int fd = open(file, O_WRONLY | O_CLOEXEC);
        const bool good = fd >= 0 && write(fd, map, strlen(map)) == (ssize_t)strlen(map);
        (void)!write(mapped[1], good ? "m" : "-", 1);
        close(fd);
    }
    close(ready[0]);
    close(mapped[0]);
    close(mapped[1]);
    BHT_EQ(waitpid(child, &status, 0), child);
    BHT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status) == 255 ? -1 : WEXITSTATUS(status);
}

/* In a container that does not map root, /tmp looks as if it were nobody's. */
TEST(root_without_an_id_owns_tmp) {
    char map[64];
    snprintf(map, sizeof map, "1000 %u 1\n", (unsigned)geteuid());
    BHT_EQ(chmod(place, 01777), 0);
    if (geteuid() == 0) { /* whose own folders are shown as 1000's: one of a user without an id */
        BHT_EQ(chown(place, 4242, 4242), 0);
    }
    const int error = opened_in(map, geteuid() == 0 ? place : "/tmp");
    if (error < 0) {
        printf("     no user namespaces here\n");
        return;
    }
    BHT_EQ(error, 0);
}

TEST(nobody_is_not_root) {
    if (geteuid() != 0) {
        printf("     needs root\n");
        return;
    }
    BHT_EQ(chmod(place, 01777), 0);
    BHT_EQ(chown(place, 65534, 65534), 0);
    BHT_EQ(bhi_runtime_parent_open(place), -EPERM);
    const int error = opened_in("0 0 1\n65534 65534 1\n", place);
    BHT_TRUE(error == EPERM || error == -1);
    const int unmapped = opened_in("0 0 1\n65533 65533 1\n", place);
    BHT_TRUE(unmapped == 0 || unmapped == -1);
    BHT_EQ(chown(place, 0, 0), 0);
    int fd = bhi_runtime_parent_open(place);
    BHT_GE(fd, 0);
    close(fd);
}

/* Also in a folder that nobody else can write: who owns the link can lead it elsewhere. */
TEST(a_link_of_another_user) {
    char link[128];
    if (geteuid() != 0) {
        printf("     needs root\n");
        return;
    }
    snprintf(link, sizeof link, "%s/link", place);
    BHT_EQ(mkdir("real", 0700), 0);
    BHT_EQ(symlink("real", link), 0);
    int fd = bhi_runtime_parent_open(link);
    BHT_GE(fd, 0);
    close(fd);
    BHT_EQ(lchown(link, 1000, 1000), 0);
    BHT_EQ(bhi_runtime_parent_open(link), -EPERM);
}

static void expect_parent(const char *variable, const char *parent) {
    BHT_EQ(setenv("XDG_RUNTIME_DIR", variable, 1), 0);
    BHT_STR_EQ(bhi_runtime_parent(), parent);
}

TEST(the_default_is_usable_and_short) {
    char path[BHI_RUNTIME_PARENT_MOST + 2];
    const size_t begun = (size_t)snprintf(path, sizeof path, "%s/", place);
    memset(path + begun, 'x', sizeof path - begun);
    path[sizeof path - 1] = '\0'; /* one too long */
    BHT_EQ(mkdir(path, 0700), 0);
    expect_parent(path, "/tmp");
    path[sizeof path - 2] = '\0';
    BHT_EQ(mkdir(path, 0700), 0);
    expect_parent(path, path);
    BHT_EQ(chmod(path, 0770), 0);
    expect_parent(path, "/tmp");
    expect_parent("relative", "/tmp");
    expect_parent("/nonexistent", "/tmp");
    expect_parent("", "/tmp");
}

BHT_AT_START(bht_around(enter, NULL))

#include "base/links.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINKS 40 /* as many as the kernel follows */

bool bhi_link_is_planted(int folder, const struct stat *link, uid_t user) {
    struct stat parent;
    const mode_t shared = S_ISVTX | S_IWOTH;
    return fstat(folder, &parent) == 0 && (parent.st_mode & shared) == shared &&
           link->st_uid != user && link->st_uid != parent.st_uid;
}

/* |*folder| becomes what |name| is in it. 0, or -errno. */
static int enter(int *folder, const char *name, int flags) {
    const int next = openat(*folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC | flags);
    if (next < 0) {
        return -errno;
    }
    close(*folder);
    *folder = next;
    return 0;
}

/* One name of |left| further, which keeps the others. */
static int step(int *folder, char left[2 * PATH_MAX], unsigned *links, uid_t user, char *out_link,
                size_t size) {
    char name[NAME_MAX + 1], target[PATH_MAX];
    const size_t length = strcspn(left, "/");
    const char *rest = left + length + strspn(left + length, "/");
    if (length > NAME_MAX) {
        return -ENAMETOOLONG;
    }
    memcpy(name, left, length);
    name[length] = '\0';
    struct stat status;
    if (fstatat(*folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return -errno;
    }
    if (!S_ISLNK(status.st_mode)) {
        memmove(left, rest, strlen(rest) + 1);
        return enter(folder, name, O_NOFOLLOW);
    }
    if (bhi_link_is_planted(*folder, &status, user)) {
        snprintf(out_link, size, "%s", left);
        return -EPERM;
    }
    const ssize_t got = readlinkat(*folder, name, target, sizeof target);
    if (got < 0 || ++*links > LINKS) {
        return got < 0 ? -errno : -ELOOP;
    }
    const size_t rest_length = strlen(rest);
    if ((size_t)got == sizeof target || (size_t)got + 1 + rest_length >= PATH_MAX) {
        return -ENAMETOOLONG;
    }
    memmove(left + got + 1, rest, rest_length + 1);
    memcpy(left, target, (size_t)got);
    left[got] = '/';
    if (left[0] != '/') {
        return 0;
    }
    memmove(left, left + strspn(left, "/"), strlen(left + strspn(left, "/")) + 1);
    return enter(folder, "/", 0);
}

int bhi_links_open_folder(const char *path, uid_t user, char *out_link, size_t size) {
    char left[2 * PATH_MAX];
    unsigned links = 0;
    if (size > 0) {
        out_link[0] = '\0';
    }
    if (strlen(path) >= PATH_MAX) {
        return -ENAMETOOLONG;
    }
    strcpy(left, path + strspn(path, "/"));
    int folder = open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int error = folder < 0 ? -errno : path[0] == '\0' ? -ENOENT : 0;
    while (!error && left[0] != '\0') {
        error = step(&folder, left, &links, user, out_link, size);
    }
    int found = -1;
    if (!error) {
        found = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        error = found < 0 ? -errno : 0;
    }
    if (folder >= 0) {
        close(folder);
    }
    return error ? error : found;
}

#include "base/links.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/folder.h"

#define LINKS 40 /* as many as the kernel follows */

bool bhi_link_is_planted(int folder, const struct stat *link, uid_t user) {
    struct stat parent;
    const mode_t shared = S_ISVTX | S_IWOTH;
    return fstat(folder, &parent) == 0 && (parent.st_mode & shared) == shared &&
           link->st_uid != user && link->st_uid != parent.st_uid;
}

/* Goes into the folder |name|. Returns 0 or -errno. */
static int enter(struct bhi_links_walk *walk, const char *name, int flags) {
    const int next = openat(walk->folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC | flags);
    if (next < 0) {
        return -errno;
    }
    close(walk->folder);
    walk->folder = next;
    return 0;
}

/* Puts the target of the link |name| in front of |rest|, which is in |left|. */
static int follow(struct bhi_links_walk *walk, const char *name, const char *rest) {
    char target[PATH_MAX], *left = walk->left;
    const ssize_t got = readlinkat(walk->folder, name, target, sizeof target);
    if (got < 0 || ++walk->links > LINKS) {
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
    return enter(walk, "/", 0);
}

int bhi_links_begin(struct bhi_links_walk *walk, const char *path, uid_t user) {
    walk->links = 0;
    walk->user = user;
    walk->left[0] = '\0';
    walk->folder = open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (walk->folder < 0) {
        return -errno;
    }
    if (strlen(path) >= PATH_MAX) {
        return -ENAMETOOLONG;
    }
    strcpy(walk->left, path + strspn(path, "/"));
    return 0;
}

int bhi_links_step(struct bhi_links_walk *walk, bool stops) {
    char name[NAME_MAX + 1], *left = walk->left;
    const size_t length = strcspn(left, "/");
    const char *rest = left + length + strspn(left + length, "/");
    const bool ends = stops && *rest == '\0';
    if (length > NAME_MAX) {
        return -ENAMETOOLONG;
    }
    memcpy(name, left, length);
    name[length] = '\0';
    if (ends && (name[0] == '\0' || !strcmp(name, ".") || !strcmp(name, ".."))) {
        return -EISDIR;
    }
    const int error =
        fstatat(walk->folder, name, &walk->status, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
    if (!error && S_ISLNK(walk->status.st_mode)) {
        return bhi_link_is_planted(walk->folder, &walk->status, walk->user)
                   ? -EPERM
                   : follow(walk, name, rest);
    }
    if (ends) {
        left[length] = '\0';
        return 1;
    }
    if (error) {
        return error;
    }
    memmove(left, rest, strlen(rest) + 1);
    return enter(walk, name, O_NOFOLLOW);
}

int bhi_links_open(const struct bhi_links_walk *walk) {
    const int found = openat(walk->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return found < 0 ? -errno : found;
}

void bhi_links_end(struct bhi_links_walk *walk) {
    if (walk->folder >= 0) {
        close(walk->folder);
    }
}

/* Opens the folder |walk->left| in which the walk ends, made if it is missing. */
static int make_last(const struct bhi_links_walk *walk) {
    const int error = bhi_folder_make(walk->folder, walk->left, S_IRWXU);
    const int found =
        error ? error
              : openat(walk->folder, walk->left, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return error || found >= 0 ? found : -errno;
}

static int open_folder(const char *path, bool makes, uid_t user, char *out_link, size_t size) {
    struct bhi_links_walk walk;
    int error = bhi_links_begin(&walk, path, user);
    if (size > 0) {
        out_link[0] = '\0';
    }
    error = !error && path[0] == '\0' ? -ENOENT : error;
    while (!error && walk.left[0] != '\0') {
        error = bhi_links_step(&walk, makes);
    }
    if (error == -EPERM) {
        snprintf(out_link, size, "%s", walk.left);
    }
    const int found = error == 1 ? make_last(&walk) : error ? error : bhi_links_open(&walk);
    bhi_links_end(&walk);
    return found;
}

int bhi_links_open_folder(const char *path, uid_t user, char *out_link, size_t size) {
    return open_folder(path, false, user, out_link, size);
}

int bhi_links_make_folder(const char *path, uid_t user, char *out_link, size_t size) {
    const int made = open_folder(path, true, user, out_link, size);
    return made == -EISDIR ? open_folder(path, false, user, out_link, size) : made; /* "..", say */
}

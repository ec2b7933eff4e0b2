#include "tool/place.h"
#include "base/links.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINKS = 40 }; /* one after another: as many as the kernel follows */

/* A walk along a path. */
struct walk {
    int folder; /* O_PATH: where it is */
    char *left; /* owned: of the path, what is still to be gone */
    int links;
    int error; /* errno of why it ended */
};

/* The folder's name, for a complaint. */
static const char *name_of(int folder, char out[PATH_MAX]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    const ssize_t length = readlink(link, out, PATH_MAX - 1);
    out[length > 0 ? length : 0] = '\0';
    return out;
}

bool bhi_place_is_ours(const struct stat *status, const char *path,
                       struct bhi_complaint *complaint) {
    if (status->st_uid != geteuid()) {
        return bhi_refuse(
            complaint,
            "%.600s belongs to user %u, but this process is user %u, so its content may come from "
            "somebody else: use another folder, or chown it to the user who runs this",
            path, (unsigned)status->st_uid, (unsigned)geteuid());
    }
    if (status->st_mode & (S_IWGRP | S_IWOTH)) {
        return bhi_refuse(complaint,
                          "%.600s can be written by others (mode %04o): check its content, then "
                          "chmod go-w, or use another folder",
                          path, (unsigned)status->st_mode & 07777);
    }
    return true;
}

static bool refuse_link(struct walk *walk, const char *name, const struct stat *link,
                        struct bhi_complaint *complaint) {
    char folder[PATH_MAX];
    walk->error = EACCES;
    return bhi_refuse(complaint,
                      "%.400s/%.200s is a link of user %u in a folder that everybody can write: it "
                      "is not followed; name the file that it leads to, or remove it",
                      name_of(walk->folder, folder), name, (unsigned)link->st_uid);
}

static bool refuse_errno(struct walk *walk, int error, const char *what,
                         struct bhi_complaint *complaint) {
    walk->error = error;
    return bhi_refuse(complaint, "%s: %s", what, strerror(error));
}

static bool refuse_name(struct walk *walk, struct bhi_complaint *complaint) {
    walk->error = EISDIR;
    return bhi_refuse(complaint, "not a file name");
}

static bool enter(struct walk *walk, const char *name, int flags, struct bhi_complaint *complaint) {
    const int next = openat(walk->folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC | flags);
    if (next < 0) {
        return refuse_errno(walk, errno, "its folder cannot be opened", complaint);
    }
    close(walk->folder);
    walk->folder = next;
    return true;
}

/* What |name| says goes before what is left of the path. */
static bool follow(struct walk *walk, const char *name, const char *rest,
                   struct bhi_complaint *complaint) {
    char target[PATH_MAX], *left;
    const ssize_t length = readlinkat(walk->folder, name, target, sizeof target - 1);
    if (length < 0 || ++walk->links > LINKS) {
        return refuse_errno(walk, length < 0 ? errno : ELOOP, "cannot be followed", complaint);
    }
    target[length] = '\0';
    if (target[0] == '/' && !enter(walk, "/", 0, complaint)) {
        return false;
    }
    if (asprintf(&left, "%s%s%s", target, *rest ? "/" : "", rest) < 0) {
        return refuse_errno(walk, ENOMEM, "cannot be followed", complaint);
    }
    free(walk->left);
    walk->left = left;
    return true;
}

/* One name further. *out_last: it is the path's last, and no link: it is left in |left|. */
static bool step(struct walk *walk, bool *out_last, struct bhi_complaint *complaint) {
    struct stat status;
    char *name = walk->left + strspn(walk->left, "/");
    char *end = name + strcspn(name, "/");
    const char *rest = end + strspn(end, "/");
    char one[NAME_MAX + 1];
    *out_last = false;
    if (end == name) {
        return refuse_name(walk, complaint);
    }
    if (end - name > NAME_MAX) {
        return refuse_errno(walk, ENAMETOOLONG, "its folder cannot be opened", complaint);
    }
    memcpy(one, name, (size_t)(end - name));
    one[end - name] = '\0';
    const bool dots = !strcmp(one, ".") || !strcmp(one, "..");
    const bool there = !dots && fstatat(walk->folder, one, &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (there && S_ISLNK(status.st_mode)) {
        return bhi_link_is_planted(walk->folder, &status, geteuid())
                   ? refuse_link(walk, one, &status, complaint)
                   : follow(walk, one, rest, complaint);
    }
    if (!*rest && !dots) {
        *out_last = true;
        memmove(walk->left, one, strlen(one) + 1);
        return true;
    }
    if (!*rest) {
        return refuse_name(walk, complaint);
    }
    if (!enter(walk, one, O_NOFOLLOW, complaint)) {
        return false;
    }
    memmove(walk->left, rest, strlen(rest) + 1);
    return true;
}

bool bhi_place_find(const char *path, struct bhi_place *out_place,
                    struct bhi_complaint *complaint) {
    struct walk walk = {.left = strdup(path)};
    walk.folder = open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool good = true, last = false;
    const size_t length = strlen(path);
    *out_place = (struct bhi_place)BHI_PLACE_NONE;
    if (length > 0 && path[length - 1] == '/') {
        good = refuse_name(&walk, complaint);
    }
    if (good && (!walk.left || walk.folder < 0)) {
        good = refuse_errno(&walk, walk.left ? errno : ENOMEM, "its folder cannot be opened",
                            complaint);
    }
    while (good && !last) {
        good = step(&walk, &last, complaint);
    }
    if (good) {
        out_place->folder = openat(walk.folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (out_place->folder < 0) {
            good = refuse_errno(&walk, errno, "its folder cannot be opened", complaint);
        }
    }
    if (walk.folder >= 0) {
        close(walk.folder);
    }
    if (good) {
        out_place->name = walk.left;
    } else {
        free(walk.left);
    }
    out_place->error = walk.error;
    return good;
}

void bhi_place_close(struct bhi_place *place) {
    if (place->folder >= 0) {
        close(place->folder);
    }
    free(place->name);
    *place = (struct bhi_place){.folder = -1, .error = place->error};
}

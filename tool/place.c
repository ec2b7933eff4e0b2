#include "tool/place.h"

#include "base/folder.h"
#include "base/links.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes the folder's name to |out|, for a complaint. */
static const char *name_of(int folder, char out[PATH_MAX]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/thread-self/fd/%d", folder);
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

/* Refuses with a message for |error|, with which the walk ended. Returns the errno for the place.
 */
static int refuse(const struct bhi_links_walk *walk, int error, struct bhi_complaint *complaint) {
    char folder[PATH_MAX];
    if (error == EPERM) {
        bhi_refuse(complaint,
                   "%.400s/%.*s is a link of user %u in a folder that everybody can write: it "
                   "is not followed; name the file that it leads to, or remove it",
                   name_of(walk->folder, folder), (int)strcspn(walk->left, "/"), walk->left,
                   (unsigned)walk->status.st_uid);
        return EACCES;
    }
    if (error == EISDIR) {
        bhi_refuse(complaint, "not a file name");
    } else {
        bhi_refuse(complaint, "%s: %s%s",
                   error == ELOOP ? "cannot be followed" : "its folder cannot be opened",
                   strerror(error), error == ENOENT ? "; make it first" : "");
    }
    return error;
}

bool bhi_place_find(const char *path, struct bhi_place *out_place,
                    struct bhi_complaint *complaint) {
    struct bhi_links_walk walk;
    const size_t length = strlen(path);
    int error = bhi_links_begin(&walk, path, geteuid());
    *out_place = (struct bhi_place)BHI_PLACE_NONE;
    if (!error && length > 0 && path[length - 1] == '/') {
        error = -EISDIR;
    }
    while (!error) {
        error = bhi_links_step(&walk, true);
    }
    int folder = error < 0 ? error : bhi_links_open(&walk);
    if (folder >= 0 && !(out_place->name = strdup(walk.left))) {
        close(folder);
        folder = -ENOMEM;
    }
    if (folder < 0) {
        out_place->error = refuse(&walk, -folder, complaint);
    } else {
        out_place->folder = folder;
    }
    bhi_links_end(&walk);
    return folder >= 0;
}

/* Makes the folder in which the walk would go on. Returns 0 or -errno. */
static int make_next(const struct bhi_links_walk *walk) {
    char name[NAME_MAX + 1];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(walk->left, "/"), walk->left);
    return bhi_folder_make(walk->folder, name, 0777);
}

int bhi_place_make_folders(const char *path) {
    struct bhi_links_walk walk;
    int error = bhi_links_begin(&walk, path, geteuid());
    while (!error) {
        error = bhi_links_step(&walk, true);
        if (error == -ENOENT) {
            error = make_next(&walk);
        }
    }
    bhi_links_end(&walk);
    return error < 0 ? -error : 0;
}

void bhi_place_close(struct bhi_place *place) {
    if (place->folder >= 0) {
        close(place->folder);
    }
    free(place->name);
    *place = (struct bhi_place){.folder = -1, .error = place->error};
}

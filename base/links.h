/* Links that another user may have planted: docs/owners.md. */
#ifndef BHI_BASE_LINKS_H
#define BHI_BASE_LINKS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Is |link|, which is in |folder|, one that |user| must not follow? As the kernel judges with
 * fs.protected_symlinks (and of FIFOs with fs.protected_fifos): in a sticky folder that everybody
 * can write, it is the user's or the folder's owner's. */
bool bhi_link_is_planted(int folder, const struct stat *link, uid_t user);

/* A walk along a path, name by name, as |user|. */
struct bhi_links_walk {
    int folder;              /* O_PATH: where it is; -1: nowhere */
    char left[2 * PATH_MAX]; /* the names that it has not gone yet */
    struct stat status;      /* of the last name that it has looked at */
    unsigned links;          /* that it has followed */
    uid_t user;
};

/* Returns 0 or -errno. Call bhi_links_end in either case. */
int bhi_links_begin(struct bhi_links_walk *walk, const char *path, uid_t user);
/* Goes into the next name, which is a folder, or puts a link's target in its place. Returns 0 or
 * -errno; -EPERM: |left| begins with a planted link, which |status| describes. With |stops| the walk
 * ends before its last name, which need not exist and is no link: then returns 1, and |left| is that
 * name; -EISDIR: it is none, but "", "." or "..". */
int bhi_links_step(struct bhi_links_walk *walk, bool stops);
/* Opens the folder in which the walk is. Returns a descriptor, or -errno. */
int bhi_links_open(const struct bhi_links_walk *walk);
void bhi_links_end(struct bhi_links_walk *walk);

/* Opens the folder that |path| leads to, name by name: no link on the way is a planted one. Returns
 * the descriptor, or -errno. -EPERM with a text in |out_link|: the name of the planted link, with
 * the names behind it. |out_link| is "" otherwise; it may be cut. */
int bhi_links_open_folder(const char *path, uid_t user, char *out_link, size_t size);

#endif

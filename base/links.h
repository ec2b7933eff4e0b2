/* Links that another user may have planted: docs/operating.md. */
#ifndef BHI_BASE_LINKS_H
#define BHI_BASE_LINKS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Returns true if |user| must not follow |link|, which is in |folder|. The rule is the kernel's for
 * fs.protected_symlinks (and for FIFOs, fs.protected_fifos): in a sticky folder that everybody can
 * write, a link must belong to the user or to the folder's owner. */
bool bhi_link_is_planted(int folder, const struct stat *link, uid_t user);

/* A walk along a path, name by name, as |user|. */
struct bhi_links_walk {
    int folder;              /* O_PATH: the current folder; -1: none */
    char left[2 * PATH_MAX]; /* the names that are still to be walked */
    struct stat status;      /* of the name that was looked at last */
    unsigned links;          /* how many links were followed */
    uid_t user;
};

/* Returns 0 or -errno. Call bhi_links_end in either case. */
int bhi_links_begin(struct bhi_links_walk *walk, const char *path, uid_t user);
/* Walks to the next name: enters a folder, or puts a link's target in its place. Returns 0 or
 * -errno. -EPERM: |left| begins with a planted link, which |status| describes. With |stops| the
 * walk ends before the last name, which need not exist and is no link: then it returns 1 and |left|
 * is that name, or -EISDIR if that name is "", "." or "..". */
int bhi_links_step(struct bhi_links_walk *walk, bool stops);
/* Opens the folder in which the walk is. Returns a descriptor, or -errno. */
int bhi_links_open(const struct bhi_links_walk *walk);
void bhi_links_end(struct bhi_links_walk *walk);

/* Opens the folder that |path| leads to, name by name: no link on the way is a planted one. Returns
 * the descriptor, or -errno. -EPERM with a text in |out_link|: the name of the planted link, with
 * the names behind it. |out_link| is "" otherwise; it may be cut. */
int bhi_links_open_folder(const char *path, uid_t user, char *out_link, size_t size);
/* The same, and makes the folder, durably and with mode 0700, if only that is missing. */
int bhi_links_make_folder(const char *path, uid_t user, char *out_link, size_t size);

#endif

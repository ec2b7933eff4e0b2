/* Links that another user may have planted: docs/owners.md. */
#ifndef BHI_BASE_LINKS_H
#define BHI_BASE_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Is |link|, which is in |folder|, one that |user| must not follow? As the kernel judges with
 * fs.protected_symlinks (and of FIFOs with fs.protected_fifos): in a sticky folder that everybody
 * can write, it is the user's or the folder's owner's. */
bool bhi_link_is_planted(int folder, const struct stat *link, uid_t user);

/* Opens the folder that |path| leads to, name by name: no link on the way is a planted one. Returns
 * the descriptor, or -errno. -EPERM with a text in |out_link|: the name of the planted link, with
 * the names behind it. |out_link| is "" otherwise; it may be cut. */
int bhi_links_open_folder(const char *path, uid_t user, char *out_link, size_t size);

#endif

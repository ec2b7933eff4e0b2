/* Folders through descriptors: what somebody has moved to a path meanwhile is left alone. */
#ifndef BHI_BASE_FOLDER_H
#define BHI_BASE_FOLDER_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

/* Opens the folder |path| below |folder| (AT_FDCWD, too) to list it; a link is refused. NULL: errno
 * says why. */
DIR *bhi_folder_open(int folder, const char *path);
/* Makes the names in |folder| durable. Some file systems cannot sync a folder (EINVAL): there that is
 * all that can be done. False: errno says why. */
bool bhi_folder_fsync(int folder);
/* Makes the names in the folder |path| below |folder| (AT_FDCWD, too) durable. Returns 0 or -errno. */
int bhi_folder_sync(int folder, const char *path);
/* Makes a folder, durably: with its name, also if it is there: whoever made it may have been killed before
 * that. |path| does not end with a slash. Returns 0 or -errno. */
int bhi_folder_make(int folder, const char *path, mode_t mode);
/* Removes the files in |folder|, then the folder, which was made as |name|. A folder inside is not
 * ours and stays, and so does |folder| with it. Opens no descriptor, and closes |folder|. Returns 0,
 * also if somebody has removed it before, or -errno; -ESTALE: |name| is something else now. */
int bhi_folder_remove(int folder, const char *name);

#endif

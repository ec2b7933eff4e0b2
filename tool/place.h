/* Where a path leads: an open folder, and a name in it that is not a link. Once found, changes that
 * others make to the path do not matter.
 *
 * Links are followed one at a time. A link in a sticky folder that everybody can write, such as
 * /tmp, is followed only if it belongs to us or to the folder's owner. The kernel has the same rule
 * with fs.protected_symlinks; this code applies it even if that is off, and to paths that are only
 * looked up.
 *
 * It is used for files that we write or rely on: outputs, reports, histories, state. Files that are
 * only read are opened as usual.
 */
#ifndef BHI_TOOL_PLACE_H
#define BHI_TOOL_PLACE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "tool/text.h"

struct bhi_place {
    int folder; /* descriptor; -1: closed */
    char *name; /* in |folder|, whether it exists or not; owned */
    int error;  /* errno of the last refusal; 0: none, or no system error */
};

#define BHI_PLACE_NONE {.folder = -1}

/* Refuses a path without a file name, a path whose folder does not exist, and links as described
 * above. */
bool bhi_place_find(const char *path, struct bhi_place *out_place, struct bhi_complaint *complaint);
/* Makes the missing folders on the way to the file |path|, durably, with the mode that the umask leaves
 * of 0777. Returns 0 or an errno. */
int bhi_place_make_folders(const char *path);
void bhi_place_close(struct bhi_place *place);
/* Refuses a file or folder |path| with |status| that belongs to another user, or that others can
 * write. The complaint names the owner and says what to do. */
bool bhi_place_is_ours(const struct stat *status, const char *path,
                       struct bhi_complaint *complaint);

#endif

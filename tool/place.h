/* Where a path leads: a folder, open, and a name in it that is no link. Nothing that others do to
 * the path afterwards changes it.
 *
 * Links are followed one at a time. One in a sticky folder that everybody can write, such as /tmp,
 * is followed only where it belongs to us or to the folder's owner, as the kernel does it with
 * fs.protected_symlinks: whether that is set or not, and for a path that is only looked up, too.
 *
 * For what we write or go by: outputs, reports, histories, state. What is only read is opened as
 * usual. */
#ifndef BHI_TOOL_PLACE_H
#define BHI_TOOL_PLACE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "tool/text.h"

struct bhi_place {
    int folder; /* descriptor; -1: closed */
    char *name; /* in it, there or not; owned */
    int error;  /* errno of the last refusal; 0: none, or nothing to do with the system */
};

#define BHI_PLACE_NONE {.folder = -1}

/* Refuses a path whose folder is not there, one that is no file name, and links as above. */
bool bhi_place_find(const char *path, struct bhi_place *out_place, struct bhi_complaint *complaint);
void bhi_place_close(struct bhi_place *place);
/* Is |status|, of what is called |path|, ours and not to be written by others? Refuses with its
 * owner and what to do. */
bool bhi_place_is_ours(const struct stat *status, const char *path,
                       struct bhi_complaint *complaint);

#endif

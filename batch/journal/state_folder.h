/* The folder of a batch's state: ours alone. What is in it is believed: jobs that it has are run
 * with our rights. So the folder and each of its files belong to the effective user, nobody else
 * can write them, and none is a link. */
#ifndef BHI_BATCH_JOURNAL_STATE_FOLDER_H
#define BHI_BATCH_JOURNAL_STATE_FOLDER_H

#include <stdbool.h>

#include "tool/text.h"

struct bhi_state_folder {
    int fd;       /* -1: closed */
    bool is_none; /* it could not be opened, because it is a file or a link */
    char *real;   /* its path without links: for SQLite, which opens files by their paths; owned */
};

/* Opens |path|, made 0700 where it is missing, and looks at what is there. */
bool bhi_state_folder_open(const char *path, struct bhi_state_folder *out_folder,
                           struct bhi_complaint *complaint);
/* Is it still what |real| leads to? */
bool bhi_state_folder_check(const struct bhi_state_folder *folder, const char *path,
                            struct bhi_complaint *complaint);
void bhi_state_folder_close(struct bhi_state_folder *folder);

#endif

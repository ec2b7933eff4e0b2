/* The folder of a batch's state. Its content is trusted: the jobs in it run with our rights. So the
 * folder and each of its files must belong to the effective user, nobody else may write them, and
 * none may be a link. */
#ifndef BHI_BATCH_JOURNAL_STATE_FOLDER_H
#define BHI_BATCH_JOURNAL_STATE_FOLDER_H

#include <stdbool.h>

#include "tool/text.h"

struct bhi_state_folder {
    int fd;       /* -1: closed */
    bool is_none; /* it is a file or a link, so it could not be opened */
    char *real;   /* its path without links, because SQLite opens files by path; owned */
};

/* Opens |path|, or makes it with mode 0700, and checks what is in it. */
bool bhi_state_folder_open(const char *path, struct bhi_state_folder *out_folder,
                           struct bhi_complaint *complaint);
/* Does |real| still lead to this folder? */
bool bhi_state_folder_check(const struct bhi_state_folder *folder, const char *path,
                            struct bhi_complaint *complaint);
/* Makes the names in the folder durable. */
bool bhi_state_folder_sync(const struct bhi_state_folder *folder, const char *path,
                           struct bhi_complaint *complaint);
void bhi_state_folder_close(struct bhi_state_folder *folder);

#endif

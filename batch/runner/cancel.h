/* A batch is cancelled by a file that somebody makes, on this machine or another one. A thread
 * looks for it: the file system may not answer for a while. */
#ifndef BHI_BATCH_RUNNER_CANCEL_H
#define BHI_BATCH_RUNNER_CANCEL_H

#include <stdbool.h>

#include "formats/complaint.h"

#define BHI_CANCEL_FILE "cancel" /* in a state folder */

struct bhi_cancel_watch;

/* Begins to look for |path| about twice a second. */
bool bhi_cancel_watch_begin(const char *path, struct bhi_cancel_watch **out_watch,
                            struct bhi_complaint *complaint);
/* Was the file there? Does not block. NULL: no. */
bool bhi_cancel_watch_seen(const struct bhi_cancel_watch *watch);
/* NULL is allowed. */
void bhi_cancel_watch_end(struct bhi_cancel_watch *watch);

#endif

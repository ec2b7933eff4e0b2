/* What a batch shares with other processes: the quarantine, and the file that cancels it. */
#ifndef BHI_CLI_BATCH_SHARED_H
#define BHI_CLI_BATCH_SHARED_H

#include "batch/runner/cancel.h"
#include "batch/runner/quarantine.h"

struct bhi_batch_shared {
    const char *quarantine_path, *given_cancel_file; /* options; NULL: not given */
    struct bhi_quarantine quarantine;
    char *cancel_file; /* owned */
    struct bhi_cancel_watch *watch;
};

#define BHI_BATCH_SHARED_CLOSED {.quarantine = {.folder = -1}}

/* Opens both, for a batch whose folder |state| this process has. Returns an exit status. */
int bhi_batch_shared_open(struct bhi_batch_shared *shared, const char *state);
void bhi_batch_shared_close(struct bhi_batch_shared *shared);

#endif

/* Cancelling a batch from outside. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "batch/journal/lock.h"
#include "batch/runner/cancel.h"
#include "batch/shards/shards.h"
#include "tool/outfile.h"

bool bhi_shards_cancel(const struct bhi_shards *shards, struct bhi_complaint *complaint) {
    struct bhi_lock_signature signature = {.pid = ""};
    struct bhi_complaint why;
    char text[sizeof signature + 8];
    if (shards->single) {
        signature = bhi_lock_read(shards->folder);
        if (!*signature.host) {
            return bhi_refuse(complaint, "%.600s: no process has it: there is nothing to cancel",
                              shards->path);
        }
    } else {
        snprintf(signature.pid, sizeof signature.pid, "%ld", (long)getpid());
        bhi_host_name(signature.host);
    }
    /* A single batch compares it with itself: a file for an earlier process means nothing. */
    snprintf(text, sizeof text, "%s %s\n", signature.pid, signature.host);
    return bhi_outfile_put(shards->folder, BHI_CANCEL_FILE, text, strlen(text), 0600, &why) ||
           bhi_refuse(complaint, "%.600s/" BHI_CANCEL_FILE " %.300s", shards->path, why.text);
}

#include "cli/batch_shared.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "batch/journal/host.h"
#include "tool/complain.h"
#include "tool/exit_status.h"

/* Is the file for this process? */
static bool is_for_us(const char *path) {
    char host[BHI_HOST_NAME], ours[BHI_HOST_NAME + 32], text[sizeof ours] = "";
    BHI_AUTO_FD fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    snprintf(ours, sizeof ours, "%ld %s\n", (long)getpid(), bhi_host_name(host));
    return length > 0 && !strcmp(text, ours);
}

/* Removes a file in the state folder that was for an earlier process, or has done its work. One
 * that was given stays: it may be for others, too. */
static void forget_cancel(const struct bhi_batch_shared *shared, bool ends) {
    if (!shared->given_cancel_file && (ends || !is_for_us(shared->cancel_file))) {
        (void)unlink(shared->cancel_file);
    }
}

int bhi_batch_shared_open(struct bhi_batch_shared *shared, const char *state) {
    const char *given = shared->given_cancel_file;
    struct bhi_complaint complaint;
    if (shared->quarantine_path &&
        !bhi_quarantine_open(shared->quarantine_path, &shared->quarantine, &complaint)) {
        return bhi_complain_environ("batch", "--quarantine %s: %s", shared->quarantine_path,
                                    complaint.text);
    }
    if (asprintf(&shared->cancel_file, given ? "%s" : "%s/" BHI_CANCEL_FILE,
                 given ? given : state) < 0) {
        shared->cancel_file = NULL;
        return bhi_complain_memory("batch");
    }
    forget_cancel(shared, false);
    if (!bhi_cancel_watch_begin(shared->cancel_file, &shared->watch, &complaint)) {
        return bhi_complain_environ("batch", "%s", complaint.text);
    }
    return BHI_EXIT_READY;
}

void bhi_batch_shared_close(struct bhi_batch_shared *shared) {
    if (shared->watch) {
        bhi_cancel_watch_end(shared->watch);
        forget_cancel(shared, true);
    }
    if (shared->quarantine.failed) {
        bhi_complain("batch", "--quarantine %s: a kernel could not be added: %s",
                     shared->quarantine_path, shared->quarantine.why.text);
    }
    bhi_quarantine_close(&shared->quarantine);
    free(shared->cancel_file);
}

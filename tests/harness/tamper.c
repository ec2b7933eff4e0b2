#include "tamper.h"
#include "harness.h"

#include <bulkhead/bulkhead.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

pid_t fx_parent(pid_t pid) {
    return (pid_t)bht_proc_number(pid, "status", "PPid:", 0);
}

/* With a descriptor of its own, since the library may close that one at any time. */
bool fx_map_progress(int fd, struct bhi_progress *out) {
    char path[64], target[128] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (readlink(path, target, sizeof target - 1) <= 0 || !strstr(target, "bulkhead-progress")) {
        return false;
    }
    int own = open(path, O_RDWR | O_CLOEXEC);
    if (own < 0) {
        return false;
    }
    bool mapped = bhi_progress_map(out, own, bhi_progress_bytes(BHI_PROGRESS_RESULTS)) == 0;
    close(own);
    return mapped;
}

struct bhi_progress fx_progress(void) {
    struct bhi_progress progress;
    for (int fd = 0; fd < 256; fd++) {
        if (fx_map_progress(fd, &progress)) {
            return progress;
        }
    }
    BHT_FAIL("no progress memory");
}

void fx_complete(struct bhi_progress *progress, uint64_t seq, uint64_t tail) {
    bhi_progress_result(progress,
                        &(struct bhi_result){.seq = seq,
                                             .command_index = BHI_NO_COMMAND,
                                             .executed = BH_EXECUTED_YES},
                        NULL);
    bhi_progress_publish(progress, seq, tail);
    bhi_progress_wake(progress);
}

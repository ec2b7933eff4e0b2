#include "base/exiting.h"

#include "base/fd.h"
#include "base/owner.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXITING 0x4u /* PF_EXITING, include/linux/sched.h */

/* Reads the file |stat| of a thread. */
static bool thread_is_exiting(int folder, const char *stat) {
    char text[512];
    unsigned flags = 0;
    BHI_AUTO_FD fd = openat(folder, stat, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1); /* whole, by seq_file */
    if (length < 0) {
        return true; /* it has just ended */
    }
    text[length] = '\0';
    /* The name may contain any characters, so the last ')' ends it. After it come state, ppid,
     * pgrp, session, tty, tpgid and flags. */
    const char *rest = strrchr(text, ')');
    return !rest || sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) != 1 ||
           (flags & EXITING) != 0;
}

bool bhi_first_thread_is_exiting(pid_t pid) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return thread_is_exiting(AT_FDCWD, path);
}

bool bhi_is_exiting(const struct bhi_proc_place *place) {
    char stat[sizeof((struct dirent *)0)->d_name + sizeof "/stat"];
    BHI_AUTO_DIR *threads = bhi_proc_place_threads(place);
    bool exiting = true;
    if (!threads) {
        return true;
    }
    for (const struct dirent *entry; exiting && (entry = readdir(threads));) {
        if (entry->d_name[0] != '.') {
            snprintf(stat, sizeof stat, "%s/stat", entry->d_name);
            exiting = thread_is_exiting(dirfd(threads), stat);
        }
    }
    return exiting;
}

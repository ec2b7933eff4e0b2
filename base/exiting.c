#include "base/exiting.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXITING 0x4u /* PF_EXITING, include/linux/sched.h */

bool bhi_is_exiting(pid_t pid) {
    char path[32], text[512];
    unsigned flags = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    BHI_AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1); /* whole, by seq_file */
    if (length < 0) {
        return true;
    }
    text[length] = '\0';
    /* The name may contain any characters, so the last ')' ends it. After it come state, ppid,
     * pgrp, session, tty, tpgid and flags. */
    const char *rest = strrchr(text, ')');
    return !rest || sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) != 1 ||
           (flags & EXITING) != 0;
}

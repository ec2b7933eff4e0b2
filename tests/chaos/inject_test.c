/* Whom a fault hits: a worker, and nobody who has its pid by now. */
#include "harness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos/engine/inject.h"
#include "tool/process_tree.h"

TEST(nobody_but_a_worker) {
    static const enum bhi_fault_kind kinds[] = {
        BHI_FAULT_KILL,  BHI_FAULT_SEGV,   BHI_FAULT_STOP, BHI_FAULT_GARBAGE,
        BHI_FAULT_CLOSE, BHI_FAULT_ZYGOTE, BHI_FAULT_SLOW, BHI_FAULT_DEVICE};
    const pid_t other = fork();
    BHT_GE(other, 0);
    if (!other) {
        for (;;) {
            pause();
        }
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct bhi_injection injection = {.kind = kinds[i], .pid = other};
        struct bhi_injected injected;
        bhi_inject(&injection, &injected);
        BHT_TRUE(injected.missed);
        BHT_TRUE(injected.why[0]);
    }
    BHT_EQ(kill(other, SIGSTOP), 0);
    int status;
    BHT_EQ(waitpid(other, &status, WUNTRACED), other);
    BHT_TRUE(WIFSTOPPED(status)); /* it lived until now */
    bhi_inject_resume(other);
    BHT_EQ(waitpid(other, &status, WCONTINUED | WNOHANG), 0);
    BHT_EQ(kill(other, SIGKILL), 0);
    BHT_EQ(waitpid(other, &status, 0), other);
    BHT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* -- a zygote that is none ---------------------------------------------------------------------- */

static struct {
    bool on;          /* what is said of processes is this: */
    pid_t zygote;     /* the first of another pid namespace, and the others are its workers */
    bool tree_unread; /* and /proc cannot be listed */
} pretended;

BHT_WRAP(bool, bhi_process_read, pid_t pid, struct bhi_process *out) {
    if (!pretended.on) {
        return __real_bhi_process_read(pid, out);
    }
    const bool is_zygote = pid == pretended.zygote;
    *out = (struct bhi_process){.pid = pid,
                                .parent = is_zygote ? getpid() : pretended.zygote,
                                .state = 'S',
                                .levels = 2,
                                .innermost = is_zygote ? 1 : 2};
    return true;
}

BHT_WRAP(bool, bhi_process_tree_read, pid_t root, struct bhi_process_tree *out) {
    if (!pretended.on) {
        return __real_bhi_process_tree_read(root, out);
    }
    errno = EMFILE;
    if (pretended.tree_unread) {
        return false;
    }
    *out = (struct bhi_process_tree){.processes = calloc(2, sizeof *out->processes), .count = 2};
    BHT_TRUE(out->processes);
    out->processes[0] = (struct bhi_process){.pid = root + 1, .parent = root};
    out->processes[1] = (struct bhi_process){.pid = root + 2, .parent = root + 1};
    return true;
}

/* Ends with 7 when the pipe is hung up. */
static pid_t start_zygote(int *out_pipe) {
    int ends[2];
    char byte;
    BHT_EQ(pipe(ends), 0);
    const pid_t pid = fork();
    BHT_GE(pid, 0);
    if (!pid) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 7 : 1);
    }
    close(ends[0]);
    *out_pipe = ends[1];
    return pid;
}

/* A zygote is stopped while its workers are listed. If they cannot be, it goes on, and all workers. */
TEST(a_zygote_that_is_spared_goes_on) {
    for (int spared = 0; spared < 2; spared++) {
        int hold, status = 0;
        const pid_t zygote = start_zygote(&hold);
        pretended.on = true;
        pretended.zygote = zygote;
        pretended.tree_unread = spared;
        const struct bhi_injection injection = {.kind = BHI_FAULT_ZYGOTE, .pid = zygote + 1};
        struct bhi_injected injected;
        bhi_inject(&injection, &injected);
        pretended.on = false;
        BHT_EQ(injected.missed, spared);
        BHT_EQ(injected.pid_count, !spared); /* a worker's child is none */
        BHT_EQ(close(hold), 0);
        WAIT_UNTIL(waitpid(zygote, &status, WNOHANG) == zygote, 10000);
        if (spared) {
            BHT_STR_HAS(injected.why, strerror(EMFILE));
            BHT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        } else {
            BHT_EQ(injected.pids[0], zygote + 1);
            BHT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        }
    }
}

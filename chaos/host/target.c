#include "chaos/host/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "chaos/history/fault.h"
#include "tool/orphan.h"
#include "tool/process_tree.h"

const char *const bhi_target_names[BHI_TARGET_KINDS + 1] = {
    [BHI_TARGET_WORKER] = "worker",     [BHI_TARGET_SPARE] = "spare",
    [BHI_TARGET_COMPILER] = "compiler", [BHI_TARGET_LOADER] = "loader",
    [BHI_TARGET_SENTINEL] = "sentinel", [BHI_TARGET_ZYGOTE] = "zygote",
    [BHI_TARGET_WARDEN] = "warden",     [BHI_TARGET_OPENER] = "opener",
    [BHI_TARGET_KINDS] = NULL,
};

/* What they call themselves (worker/title.h). */
static const char *const titles[BHI_TARGET_KINDS] = {
    [BHI_TARGET_WORKER] = "worker of ", [BHI_TARGET_SPARE] = "spare worker",
    [BHI_TARGET_COMPILER] = "compiler", [BHI_TARGET_LOADER] = "loader",
    [BHI_TARGET_SENTINEL] = "sentinel", [BHI_TARGET_ZYGOTE] = "zygote",
    [BHI_TARGET_WARDEN] = "warden",     [BHI_TARGET_OPENER] = "opener",
};

bool bhi_target_parse(const char *list, uint32_t *out_set, struct bhi_complaint *complaint) {
    return bhi_names_parse(list, bhi_target_names, "no process of a host", out_set, complaint);
}

/* A title proves nothing, since each process sets its own: the zygote is the first process of a
 * namespace below a warden, and what it has started is below it. */
static bool recognise(const struct bhi_process_tree *tree, const struct bhi_process *process,
                      struct bhi_target *out) {
    char title[BHI_PROCESS_TITLE], above[BHI_PROCESS_TITLE];
    bool ours, above_ours;
    const struct bhi_process *parent = bhi_process_tree_find(tree, process->parent);
    uint32_t kind = 0;
    if (process->state == 'Z' || process->state == 'X' ||
        !bhi_process_title(process->pid, title, &ours) || !ours) {
        return false;
    }
    while (kind < BHI_TARGET_KINDS && strncmp(title, titles[kind], strlen(titles[kind])) != 0) {
        kind++;
    }
    *out = (struct bhi_target){.kind = (enum bhi_target_kind)kind,
                               .pid = process->pid,
                               .host = process->parent,
                               .state = process->state};
    if (kind == BHI_TARGET_KINDS) {
        return false;
    }
    if (kind == BHI_TARGET_WARDEN || kind == BHI_TARGET_OPENER) {
        return true;
    }
    if (!parent || !bhi_process_title(parent->pid, above, &above_ours) || !above_ours) {
        return false;
    }
    if (kind == BHI_TARGET_ZYGOTE) {
        out->host = parent->parent;
        return bhi_process_is_zygote(process) && strcmp(above, titles[BHI_TARGET_WARDEN]) == 0;
    }
    const struct bhi_process *warden = bhi_process_tree_find(tree, parent->parent);
    if (kind == BHI_TARGET_WORKER) {
        snprintf(out->stream, sizeof out->stream, "%.63s", title + strlen(titles[kind]));
    }
    out->host = warden ? warden->parent : 0;
    return warden && bhi_process_is_zygote(parent);
}

static int by_pid(const void *a, const void *b) {
    const struct bhi_target *one = a, *other = b;
    return (one->pid > other->pid) - (one->pid < other->pid);
}

bool bhi_targets_find(pid_t root, struct bhi_targets *out_targets) {
    struct bhi_process_tree tree;
    *out_targets = (struct bhi_targets){0};
    if (!bhi_process_tree_read(root, &tree)) {
        return false;
    }
    out_targets->items = calloc(tree.count + 1, sizeof *out_targets->items);
    for (size_t i = 0; out_targets->items && i < tree.count; i++) {
        out_targets->count +=
            recognise(&tree, &tree.processes[i], &out_targets->items[out_targets->count]);
    }
    bhi_process_tree_free(&tree);
    if (!out_targets->items) {
        return false;
    }
    qsort(out_targets->items, out_targets->count, sizeof *out_targets->items, by_pid);
    return true;
}

void bhi_targets_free(struct bhi_targets *targets) {
    free(targets->items);
    *targets = (struct bhi_targets){0};
}

/* The pid may belong to another process by now, a pidfd never does. So it is opened first, and then the
 * pid must still be the target's: if it is, so is the pidfd, or its process has ended. */
int bhi_target_hold(pid_t root, const struct bhi_target *target) {
    struct bhi_targets now;
    bool same = false;
    const int pidfd = pidfd_open(target->pid, 0);
    if (pidfd < 0) {
        return -1;
    }
    if (bhi_targets_find(root, &now)) {
        for (size_t i = 0; i < now.count; i++) {
            same |= now.items[i].pid == target->pid && now.items[i].kind == target->kind;
        }
        bhi_targets_free(&now);
    }
    if (!same) {
        close(pidfd);
        errno = ESRCH;
        return -1;
    }
    return pidfd;
}

/* The processes below a given one, from /proc. */
#ifndef BHI_TOOL_PROCESS_TREE_H
#define BHI_TOOL_PROCESS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bhi_process {
    pid_t pid, parent;
    char state;      /* as in /proc/PID/stat: 'T' is stopped, 'Z' a zombie */
    uint32_t levels; /* the pid namespaces that it is in, counted from ours: 1 is only ours */
    pid_t innermost; /* its pid in the innermost one */
};

struct bhi_process_tree {
    struct bhi_process *processes; /* owned; parents before children */
    size_t count;
};

/* Lists all processes below |root|, without |root| and those that are hidden. Returns false if /proc
 * cannot be read or there is no memory. */
bool bhi_process_tree_read(pid_t root, struct bhi_process_tree *out_tree);
void bhi_process_tree_free(struct bhi_process_tree *tree);
/* Returns the process with that pid; NULL: it is not in the list. */
const struct bhi_process *bhi_process_tree_find(const struct bhi_process_tree *tree, pid_t pid);
/* Reads one process; false if there is none. */
bool bhi_process_read(pid_t pid, struct bhi_process *out_process);
/* The first process of another pid namespace is a zygote. */
static inline bool bhi_process_is_zygote(const struct bhi_process *process) {
    return process->levels > 1 && process->innermost == 1;
}

#endif

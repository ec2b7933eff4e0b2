/* The processes below one, as /proc shows them. */
#ifndef BHI_CHAOS_ENGINE_PROCESS_TREE_H
#define BHI_CHAOS_ENGINE_PROCESS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bhi_process {
    pid_t pid, parent;
    char state;      /* as /proc/PID/stat says: 'T' is stopped, 'Z' a zombie */
    uint32_t levels; /* pid namespaces that it is in, from ours on: 1 is ours */
    pid_t innermost; /* its pid in the last of them */
};

struct bhi_process_tree {
    struct bhi_process *processes; /* owned; parents before children */
    size_t count;
};

/* All that are below |root|, which is not among them. False: /proc could not be read, or there is
 * no memory. */
bool bhi_process_tree_read(pid_t root, struct bhi_process_tree *out_tree);
void bhi_process_tree_free(struct bhi_process_tree *tree);
/* One process; false: it is not there. */
bool bhi_process_read(pid_t pid, struct bhi_process *out_process);
/* The first of a pid namespace of its own: the zygote. */
static inline bool bhi_process_is_zygote(const struct bhi_process *process) {
    return process->levels > 1 && process->innermost == 1;
}

#endif

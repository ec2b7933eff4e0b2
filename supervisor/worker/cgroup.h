/* Memory cgroups for workers, v1 or v2, if this process may make them. One parent for each context,
 * one child for each worker. Nothing here blocks for long; all of it is plain file I/O. */
#ifndef BHI_SUPERVISOR_WORKER_CGROUP_H
#define BHI_SUPERVISOR_WORKER_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bhi_cgroup {
    int version;   /* 1 or 2; 0: none, use RLIMIT_DATA */
    char dir[512]; /* the context's parent; empty: none */
    int lock_fd;   /* descriptor that keeps others from sweeping it; with a version only */
};

/* Finds the memory controller and makes `bulkhead.<pid>.<serial>`: below this process's own cgroup,
 * on v2 (where a group with processes cannot have limited children) beside it.
 * Returns 0, or -errno with version 0 and one line in |why| that says what to enable. */
int bhi_cgroup_open(struct bhi_cgroup *cgroup, uint64_t serial, char *why, size_t why_size);
/* The same with other files than /proc/thread-self/cgroup and /proc/thread-self/mountinfo: for tests. */
int bhi_cgroup_open_from(struct bhi_cgroup *cgroup, uint64_t serial, const char *proc_cgroup,
                         const char *mountinfo, char *why, size_t why_size);
/* Removes the parent; its children must be empty (it waits for that, 1 s at most). */
void bhi_cgroup_close(struct bhi_cgroup *cgroup);
/* Makes child `w<id>` with |limit| bytes (and the same with swap, where swap is accounted). */
int bhi_cgroup_add(const struct bhi_cgroup *cgroup, uint64_t id, uint64_t limit);
int bhi_cgroup_enter(const struct bhi_cgroup *cgroup, uint64_t id, pid_t pid);
/* Whether Linux has killed a process in the child for lack of memory, and whose limit it was. */
enum bhi_oom {
    BHI_OOM_NONE,   /* it has not, or that is unknown */
    BHI_OOM_LIMIT,  /* the child's; also if that cannot be told */
    BHI_OOM_OTHERS, /* that of a group above, or the machine's: others may have used it up */
};
enum bhi_oom bhi_cgroup_oom(const struct bhi_cgroup *cgroup, uint64_t id);
/* Returns how many processes Linux has killed on this machine for lack of memory (since 4.13);
 * UINT64_MAX: that is not known. */
uint64_t bhi_oom_kills(void);
/* Removes the child; -EBUSY while a process is left in it: try again later. */
int bhi_cgroup_remove(const struct bhi_cgroup *cgroup, uint64_t id);

/* How much memory this process's own groups leave it, in bytes; UINT64_MAX: no limit is known. */
uint64_t bhi_cgroup_headroom(void);
uint64_t bhi_cgroup_headroom_from(const char *proc_cgroup, const char *mountinfo);

#endif

/* Limits of this process, in words for the messages of calls that fail because of them. Workers get
 * the hard limits (worker/host.c), so those are meant where a text is about workers. */
#ifndef BHI_BASE_LIMITS_H
#define BHI_BASE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

enum { BHI_LIMIT_TEXT = 96 };

/* Returns RLIMIT_AS of this process; UINT64_MAX: none. */
uint64_t bhi_limit_of_address_space(void);
/* Returns a hard limit (RLIMIT_...), which workers have; UINT64_MAX: none. */
uint64_t bhi_limit_of_workers(int resource);
/* Writes "; the address space is limited to N MiB: raise that (ulimit -v)", or "" if it is not
 * limited. Returns |out|. */
const char *bhi_limit_address_space(char out[BHI_LIMIT_TEXT]);
/* Writes "; processes and threads are limited to N: raise that (...)", or "": the lower one of the
 * user's limit and that of the pids cgroup. Returns |out|. */
const char *bhi_limit_processes(char out[BHI_LIMIT_TEXT]);
/* The same with other files than /proc/self/cgroup and those below /sys/fs/cgroup: for tests. */
const char *bhi_limit_processes_from(const char *cgroup, const char *mount,
                                     char out[BHI_LIMIT_TEXT]);
/* The same for the limit that |sys_errno| is about, or "": RLIMIT_FSIZE, which also counts memory
 * that processes share, for EFBIG; RLIMIT_NOFILE for EMFILE; RLIMIT_AS for ENOMEM; for EAGAIN that
 * of processes and threads, else RLIMIT_AS. */
const char *bhi_limit_named(int sys_errno, char out[BHI_LIMIT_TEXT]);
/* Lists the hard limits that can end or fail a worker: "processor time 60 s (ulimit -t), ...".
 * Returns their number. */
int bhi_limits_list(char *out, size_t size);

#endif

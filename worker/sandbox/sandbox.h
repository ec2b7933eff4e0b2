/* The sandbox: one file for each mechanism, behind one or two functions. bhi_sandbox_enter() and
 * worker.c have the order in which they are applied, with the reasons; docs/sandbox.md has the
 * overview. Every function returns 0, or -errno and fills |failure|; a layer that layers.def calls
 * optional may report that it is absent instead.
 *
 * Landlock, capabilities, no_new_privs and namespaces act only on the calling thread, so they are
 * applied before a second thread starts. The filters are set on all threads at once (TSYNC). */
#ifndef BHI_WORKER_SANDBOX_SANDBOX_H
#define BHI_WORKER_SANDBOX_SANDBOX_H

#include "worker/error.h"
#include "worker/sandbox/driver.h"
#include "worker/sandbox/namespaces.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Where the context's runtime folder is in the worker's root. */
#define BHI_SANDBOX_RUN "/run"

/* -- root.c ------------------------------------------------------------------------- */

/* Mounts a tmpfs over the runtime folder and makes it the working folder; *out_tree holds the
 * covered folder. This needs the rights of the folder's owner: call it before
 * bhi_sandbox_ids_take(). */
int bhi_sandbox_root_begin(const char *runtime_dir, int *out_tree, struct bhi_error *failure);
/* For the supervisor, which looks at the workers through it: opens a new proc, which shows only this
 * pid namespace, or the host's if the kernel refuses one (add_proc). *out_error: 0, or why it does.
 * Call it between the other two. */
int bhi_sandbox_proc(int *out_proc, int *out_error, struct bhi_error *failure);
/* Makes that tmpfs, read-only, the root of this mount namespace. It holds the paths of the driver's
 * table and, at /run, the context's runtime folder. Closes |tree|. */
int bhi_sandbox_root(const struct bhi_driver *driver, int tree, struct bhi_error *failure);

/* -- privileges.c ------------------------------------------------------------------- */

int bhi_sandbox_capabilities(struct bhi_error *failure);
int bhi_sandbox_no_new_privs(struct bhi_error *failure);
int bhi_sandbox_not_dumpable(struct bhi_error *failure);

/* -- landlock.c --------------------------------------------------------------------- */

/* Returns the ABI of this kernel's Landlock, or 0 if it has none. */
int bhi_sandbox_landlock_abi(void);
/* Of the driver's BHI_PATH_NODE only |node| can be opened; NULL: all of them. *out_applied is false
 * if the kernel has no Landlock. */
int bhi_sandbox_landlock(const struct bhi_driver *driver, const char *node, bool *out_applied,
                         struct bhi_error *failure);

/* -- rlimits.c ---------------------------------------------------------------------- */

/* |memory_limit| is RLIMIT_DATA in bytes, 0: none. *out_memory says whether it is in force. */
int bhi_sandbox_rlimits(const struct bhi_driver *driver, uint64_t memory_limit, bool *out_memory,
                        struct bhi_error *failure);

/* -- seccomp.c ---------------------------------------------------------------------- */

enum bhi_filter {
    BHI_FILTER_START,  /* A: what starting a driver needs */
    BHI_FILTER_STEADY, /* B: what running kernels needs; on top of A */
};

/* Installs the filter on all threads (TSYNC). Forbidden calls and foreign architectures kill the
 * process. Filter B allows reads and writes only of descriptors that are open when it is built. */
int bhi_sandbox_seccomp(enum bhi_filter filter, const struct bhi_driver *driver,
                        struct bhi_error *failure);

/* -- sandbox.c ------------------------------------------------------------------------------ */

/* Moves |fds| to 3, 4, 5 … (updates the array) and closes all others except 0, 1 and 2. */
int bhi_sandbox_descriptors(int *fds, size_t count, struct bhi_error *failure);

struct bhi_sandbox {
    const struct bhi_driver *driver;
    const char *node; /* the only one of BHI_PATH_NODE that it may open; NULL: all of them */
    uint64_t memory_limit;
    uint64_t layers; /* bits of the layers in force; the caller adds namespaces and root */
};

/* A worker's sandbox, after its descriptors: capabilities, no_new_privs, dumpable, Landlock,
 * rlimits. Call it while there is one thread. */
int bhi_sandbox_enter(struct bhi_sandbox *sandbox, struct bhi_error *failure);
/* Installs filter A or B and sets its bit. */
int bhi_sandbox_filter(struct bhi_sandbox *sandbox, enum bhi_filter filter,
                       struct bhi_error *failure);

#endif

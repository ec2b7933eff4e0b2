/* The namespaces of a zygote, and who it is outside of them. For the warden, which makes them, and the
 * zygote. Functions with |failure| return 0, or -errno and fill it. */
#ifndef BHI_WORKER_SANDBOX_NAMESPACES_H
#define BHI_WORKER_SANDBOX_NAMESPACES_H

#include "ipc/layers.h"
#include "worker/error.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define BHI_LAYER_BIT(NAME) (1ull << BHI_LAYER_##NAME)

/* The only user id and group id in the user namespace. Not 0, so that no process in it is root. */
#define BHI_SANDBOX_ID   1000
#define BHI_SANDBOX_HOST "bulkhead"

/* The user and group that the zygote and its workers are outside their user namespace. */
struct bhi_sandbox_ids {
    unsigned user;
    unsigned group;
    bool own; /* they are the host's own: bhi_sandbox_ids_take() does nothing */
};

/* Chooses the ids. For the warden, before bhi_sandbox_clone(). */
int bhi_sandbox_ids_choose(struct bhi_sandbox_ids *ids, struct bhi_error *failure);
/* Changes to the ids, without supplementary groups. For the child, after its ids are mapped and
 * when it needs no more files as the host's user. Unless the ids are its own, the kernel then
 * clears PDEATHSIG and dumpable. */
int bhi_sandbox_ids_take(const struct bhi_sandbox_ids *ids, struct bhi_error *failure);

/* Which namespaces a process is in: the inode numbers of /proc/self/ns, in the order of
 * bhi_namespace_layer(). 0: unknown. */
#define BHI_NAMESPACES 7
struct bhi_namespaces {
    uint64_t inode[BHI_NAMESPACES];
};
enum bhi_layer bhi_namespace_layer(unsigned index);
void bhi_namespaces_read(struct bhi_namespaces *out);
/* Forks a child into new namespaces of every kind. Returns its pid to the parent (with a pidfd), 0
 * to the child, or -errno. The child must wait for bhi_sandbox_map_ids() before it does anything.
 * |out_layers| gets the namespaces' bits. */
pid_t bhi_sandbox_clone(int *out_pidfd, uint64_t *out_layers, struct bhi_error *failure);
/* For the parent: gives |pid|'s user namespace its only user and group, which are |ids| outside. */
int bhi_sandbox_map_ids(pid_t pid, const struct bhi_sandbox_ids *ids, struct bhi_error *failure);
/* For the child, before it executes another program: that program gets the child's capabilities.
 * Returns 0 or -errno. */
int bhi_sandbox_keep_capabilities(void);
/* For the child, when its ids are mapped: sets the host name, and forbids nested user
 * namespaces. */
int bhi_sandbox_namespaces_fini(struct bhi_error *failure);

#endif

/* Processes of Bulkhead on this machine, as they call themselves (worker/title.h), and those whose
 * host is gone. A name proves nothing: this is for people who look at a machine. */
#ifndef BHI_TOOL_ORPHAN_H
#define BHI_TOOL_ORPHAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tool/process_tree.h"

enum { BHI_PROCESS_TITLE = 64 };

/* Writes what a process calls itself: "worker of matrix", "warden" for those of Bulkhead, otherwise
 * its short name. Returns false if it cannot be seen from here; the title is empty then. *out_ours:
 * it is one of Bulkhead's. */
bool bhi_process_title(pid_t pid, char out[BHI_PROCESS_TITLE], bool *out_ours);

/* Is |pid| a process of a context that may use a device (a worker, a spare one, a sentinel), and
 * lives, although the warden above it is gone? A warden outlives its host only to end the others.
 * |all| has all processes: those below 0. */
bool bhi_process_is_orphan(const struct bhi_process_tree *all, pid_t pid);

#endif

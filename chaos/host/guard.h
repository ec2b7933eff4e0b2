/* A second process that knows which processes were stopped, and continues them when this one ends,
 * however it ends. */
#ifndef BHI_CHAOS_HOST_GUARD_H
#define BHI_CHAOS_HOST_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

#include "formats/complaint.h"

struct bhi_stop_guard {
    pid_t pid; /* 0: none */
    int socket;
};

bool bhi_guard_start(struct bhi_stop_guard *guard, struct bhi_complaint *complaint);
/* Returns true once the guard has a copy of |pidfd|: then its process may be stopped. */
bool bhi_guard_watch(struct bhi_stop_guard *guard, int pidfd);
/* Continues all that it watches, and ends it. */
void bhi_guard_end(struct bhi_stop_guard *guard);

#endif

/* For a zygote whose warden has died. The zygote lives on for a short time, so that its workers can
 * stop what runs on a device (watchdog.h). Its death signal is SIGCONT, which also wakes a stopped
 * process; its handler sets a time limit. Normally the zygote's own loop sees the warden's pipe
 * hang up and ends earlier. Before the first worker the death signal is SIGKILL. */
#ifndef BHI_WORKER_SESSION_ORPHAN_H
#define BHI_WORKER_SESSION_ORPHAN_H

#include "worker/error.h"

/* For the zygote, before its first worker. |go|: the warden's pipe. |limit_ms|: how long the zygote
 * may live after that has hung up, whatever it does. */
int bhi_orphan_prepare(int go, unsigned limit_ms, struct bhi_error *failure);
/* For its children, as their first action: they have death signals of their own. */
void bhi_orphan_forget(void);

#endif

/* A zygote whose warden has died: it lives on for a moment, so that its workers can end what runs
 * on a device (watchdog.h), and no longer. Its death signal is SIGCONT, which also wakes one that
 * is stopped, with a handler that sets a limit; the zygote's own loop sees the warden's pipe hang
 * up and is done before that. Until there are workers the death signal is SIGKILL. */
#ifndef BHI_WORKER_SESSION_ORPHAN_H
#define BHI_WORKER_SESSION_ORPHAN_H

#include "worker/error.h"

/* The zygote, before its first worker. |go|: the warden's pipe. |limit_ms|: how long it may live
 * when that has hung up, whatever it is doing. */
int bhi_orphan_prepare(int go, unsigned limit_ms, struct bhi_error *failure);
/* Its children, first thing: they have death signals of their own. */
void bhi_orphan_forget(void);

#endif

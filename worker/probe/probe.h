/* Probes: does each layer that layers.def lists really hold? Short-lived processes prove it: they
 * enter the sandbox exactly as a worker does, and then try what the layer forbids.
 *
 *   zygote ─fork─▶ prober (trusted, no sandbox) ─fork─▶ victim (enters, tries, reports)
 *
 * Prober and victims report in a shared page. The zygote never waits for them: it goes on serving,
 * reaps the prober like any child, and kills it at its deadline. Victims die with their prober. */
#ifndef BHI_WORKER_PROBE_PROBE_H
#define BHI_WORKER_PROBE_PROBE_H

#include "ipc/wire.h"
#include "worker/probe/context.h"

/* A bound for a prober and all its victims. The whole doctor needs 1.2 s of a processor, and took
 * 32 s beside 20 endless loops on two. */
#define BHI_PROBE_TIMEOUT_NS 40000000000ull

/* Runs in the prober; fills in result and text. */
typedef void (*bhi_prober_fn)(const struct bhi_probe_context *context, const void *argument,
                              struct bhi_probe_report *report);
/* Forks a prober that runs |fn|. The rest is as in bhi_probe_start(). */
pid_t bhi_prober_start(const struct bhi_probe_context *context, bhi_prober_fn fn,
                       const void *argument, struct bhi_probe_report **out_report);
/* Forks a prober for |layer|. Returns its pid, or -errno. *out_report is a page for
 * bhi_probe_finish(). */
pid_t bhi_probe_start(const struct bhi_probe_context *context, uint32_t layer,
                      struct bhi_probe_report **out_report);
/* Writes the prober's answer after the prober was reaped. Unmaps the page. */
void bhi_probe_finish(struct bhi_probe_report *report, uint32_t layer, bool timed_out,
                      struct bhi_msg_probed *out);

#endif

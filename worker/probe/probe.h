/* Probes: is a layer that layers.def promises really there? Each is proven by throw-away processes
 * that go into the sandbox exactly as a worker does and then try what the layer takes away.
 *
 *   zygote ──fork──▶ prober (trusted, not sandboxed) ──fork──▶ victim (enters, tries, reports)
 *
 * Prober and victims report in a shared page. The zygote never waits for them: it goes on serving,
 * reaps the prober like any child, and kills it at its deadline; victims go with their prober. */
#ifndef BHI_WORKER_PROBE_PROBE_H
#define BHI_WORKER_PROBE_PROBE_H

#include "ipc/wire.h"
#include "worker/sandbox/nodes.h"
#include "worker/sandbox/sandbox.h"
#include <stdint.h>
#include <sys/types.h>

#define BHI_PROBE_TEXT       256u
#define BHI_PROBE_TIMEOUT_NS 10000000000ull /* for a prober with all its victims */

enum bhi_probe_result { BHI_PROBE_ABSENT, BHI_PROBE_HOLDS, BHI_PROBE_BROKEN };

/* Shared with the children; the zygote copies it before it looks. */
struct bhi_probe_report {
    uint32_t done; /* a result was written */
    uint32_t result;
    char text[BHI_PROBE_TEXT];
};

/* What a prober knows, collected by the zygote while it still sees the host. */
struct bhi_probe_context {
    const struct bhi_driver *driver;
    const struct bhi_nodes *nodes; /* of its devices */
    uint64_t layers;               /* that hold in the zygote */
    struct bhi_namespaces outside; /* the warden's */
    struct bhi_namespaces inside;  /* the zygote's */
    pid_t warden;                  /* its pid outside */
    unsigned user;                 /* who a worker is outside */
    char host_name[65];            /* outside */
};

/* What a prober does; it fills in result and text. */
typedef void (*bhi_prober_fn)(const struct bhi_probe_context *context, const void *argument,
                              struct bhi_probe_report *report);
/* Forks a prober that runs |fn|; for the rest see below. */
pid_t bhi_prober_start(const struct bhi_probe_context *context, bhi_prober_fn fn,
                       const void *argument, struct bhi_probe_report **out_report);
/* Forks a prober for |layer|. Returns its pid, or -errno. *out_report is a page to be given to
 * bhi_probe_finish(). */
pid_t bhi_probe_start(const struct bhi_probe_context *context, uint32_t layer,
                      struct bhi_probe_report **out_report);
/* After the prober was reaped: its answer. Unmaps the page. */
void bhi_probe_finish(struct bhi_probe_report *report, uint32_t layer, bool timed_out,
                      struct bhi_msg_probed *out);

#endif

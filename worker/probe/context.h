/* The context of a probe: what the prober knows about the host, and the page for its results. */
#ifndef BHI_WORKER_PROBE_CONTEXT_H
#define BHI_WORKER_PROBE_CONTEXT_H

#include "worker/sandbox/nodes.h"
#include "worker/sandbox/sandbox.h"
#include <stdint.h>
#include <sys/types.h>

#define BHI_PROBE_TEXT 256u

enum bhi_probe_result { BHI_PROBE_ABSENT, BHI_PROBE_HOLDS, BHI_PROBE_BROKEN };

/* Prober and victims write this page. The zygote copies it before it checks it. */
struct bhi_probe_report {
    uint32_t done; /* a result was written */
    uint32_t result;
    char text[BHI_PROBE_TEXT];
};

/* What a prober knows. The zygote collects it while it can still see the host. */
struct bhi_probe_context {
    const struct bhi_driver *driver;
    const struct bhi_nodes *nodes; /* those of the driver's devices */
    uint64_t layers;               /* in force in the zygote */
    struct bhi_namespaces outside; /* those of the warden */
    struct bhi_namespaces inside;  /* those of the zygote */
    pid_t warden;                  /* its pid outside of the namespaces */
    unsigned user;                 /* the user that a worker is outside */
    char host_name[65];            /* outside */
};

#endif

/* The zygote: pid 1 of the sandbox's namespaces. It has the driver's library loaded, no thread, and
 * forks workers on request.
 *
 * State:
 *
 *   (cloned) ──ids mapped──▶ loading ──▶ rooting ──zygote_ready──▶ serving ──end of file──▶ exit
 *       │                       │           │                        │ spawn   → spawned(pidfd)
 *       └────────── zygote_failed, exit ────┘                        │          | spawn_failed
 *                                                                    │ probe   → probed
 *                                                                    └ SIGCHLD → exited, once each
 * If the driver has several devices, the zygote runs scouts (scout.h) between rooting and serving.
 *
 * When it ends, the kernel kills all its workers, because they are in its pid namespace. */
#ifndef BHI_WORKER_PROCESS_ZYGOTE_H
#define BHI_WORKER_PROCESS_ZYGOTE_H

#include "ipc/wire.h"
#include "worker/sandbox/driver.h"
#include "worker/sandbox/sandbox.h"
#include <stdint.h>

/* Shared by warden and zygote; the zygote writes it. It tells the warden at which step of the start
 * the zygote died, for example in a driver's constructor. */
struct bhi_zygote_stage {
    _Atomic uint32_t answered; /* zygote_ready or zygote_failed was sent, or is about to be */
    _Atomic uint32_t stage;    /* enum bhi_zygote_stages */
#if BHI_FAULTS
    _Atomic uint32_t patient; /* for a test: workers are not killed while they end by themselves */
#endif
};
enum bhi_zygote_stages {
    BHI_ZYGOTE_CLONED,
    BHI_ZYGOTE_LOADING,
    BHI_ZYGOTE_ROOTING,
    BHI_ZYGOTE_SCOUTING,
    BHI_ZYGOTE_SERVING,
};

struct bhi_zygote_config {
    int socket;      /* the socket to the host */
    int go;          /* pipe: a byte once the ids are mapped; hung up when the host has gone */
    pid_t warden;    /* its pid outside, for probes */
    uint64_t layers; /* the namespaces' bits */
    struct bhi_driver driver;
    struct bhi_namespaces outside;
    struct bhi_sandbox_ids ids;
    struct bhi_zygote_stage *stage;
    struct bhi_msg_start start;
};

/* Never returns. */
_Noreturn void bhi_zygote_run(struct bhi_zygote_config *config);

#endif

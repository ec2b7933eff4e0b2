/* What the warden hands to the zygote, another program: four descriptors, and in one of them a page.
 * Both programs are of one build, or the zygote refuses the page by its size and ends. */
#ifndef BHI_WORKER_WARDEN_ZYGOTE_START_H
#define BHI_WORKER_WARDEN_ZYGOTE_START_H

#include "ipc/wire.h"
#include "worker/sandbox/namespaces.h"
#include <stdint.h>

/* How long workers have to end by themselves after the host has gone. Then the zygote ends, and its
 * workers with it. A guarded kernel on a GPU ends in about 20 ms. */
#define BHI_FAREWELL_MS 100

enum bhi_zygote_descriptors {
    BHI_ZYGOTE_SOCKET = 3, /* BHI_HOST_SOCKET: to the host */
    BHI_ZYGOTE_GO,         /* pipe: a byte, or the hang-up, when the host has gone */
    BHI_ZYGOTE_PAGE,       /* a sealed memfd: struct bhi_zygote_start */
    BHI_ZYGOTE_PROGRAM,    /* the worker program, which an interpreter of it would read */
};

/* How far a zygote has come. */
enum bhi_zygote_stages {
    BHI_ZYGOTE_CLONED,
    BHI_ZYGOTE_EXECUTED, /* the worker program was called; from here on it writes the page */
    BHI_ZYGOTE_BEGUN,
    BHI_ZYGOTE_LOADING,
    BHI_ZYGOTE_ROOTING,
    BHI_ZYGOTE_SCOUTING,
    BHI_ZYGOTE_SERVING,
};

struct bhi_zygote_start {
    /* For the warden, which reports from them at which step of the start the zygote died, for
     * example in a driver's constructor. */
    _Atomic uint32_t stage;    /* enum bhi_zygote_stages */
    _Atomic uint32_t answered; /* zygote_ready or zygote_failed was sent, or is about to be */
    _Atomic int32_t error;     /* errno of the step CLONED or EXECUTED; 0: it did not fail */
    char library[256];         /* of the driver, from LOADING on */
    /* Written by the warden before. */
    uint32_t bytes;  /* of this struct */
    int32_t warden;  /* its pid outside, for probes */
    uint64_t layers; /* the namespaces' bits */
    struct bhi_namespaces outside;
    struct bhi_sandbox_ids ids;
    struct bhi_msg_start start;
};

#endif

/* Traces show which system calls a driver makes, in which phase of a worker's life, and which of
 * them its table lacks. Only trusted work runs: device creation, the warm-up, and our own kernels;
 * never what a host has submitted.
 *
 *   zygote ──fork──▶ tracer ──fork──▶ tracee (enters the sandbox as a worker does, except the
 *                      ▲                │      filters: the tracer decides on every call)
 *                      └──── seccomp ───┘
 *
 * There are up to three tracees, one after the other: a worker; if it has exported device memory, a
 * worker that imports it; if it has exported its abort words, a sentinel that sets them.
 *
 * The tracer answers as the filters would. A call that no rule allows is let through, so that one
 * trace shows all such calls and not only the first. See docs/decisions/0002. */
#ifndef BHI_WORKER_TRACE_RUN_H
#define BHI_WORKER_TRACE_RUN_H

#include "ipc/trace.h"
#include "worker/backend.h"
#include "worker/probe/probe.h"

/* A bound for a tracer and its tracee. A trace needs some seconds of a processor, and took over
 * 60 s beside 20 endless loops a processor. */
#define BHI_TRACE_TIMEOUT_NS 300000000000ull

/* Shared memory of tracer and tracee. */
struct bhi_tracee_page {
    _Atomic uint32_t phase; /* enum bhi_trace_phase; BHI_TRACE_PHASES: calls of our own */
    _Atomic uint32_t complete;
    int32_t pid;       /* its pid in its own namespace */
    uint8_t open[512]; /* bits: its descriptors at the time when filter B would be set */
    char version[160];
    char failure[256];
    char left_out[256];
};

/* Forks a tracer for device |index|, which fills |page|. Returns its pid, or -errno. *out_report is
 * for bhi_probe_finish(). */
pid_t bhi_trace_start(const struct bhi_probe_context *context, uint32_t index,
                      struct bhi_trace_page *page, struct bhi_probe_report **out_report);

enum bhi_trace_role {
    BHI_TRACE_WORKER,    /* does all that a worker does, and makes device memory */
    BHI_TRACE_IMPORTER,  /* is the worker of another stream, and imports that memory */
    BHI_TRACE_SENTINELS, /* imports and sets the worker's abort words */
    BHI_TRACE_ROLES
};

/* What a tracee sends through its socket, with one descriptor, for the tracee of |role|. */
struct bhi_trace_handed {
    uint64_t bytes; /* of the memory */
    uint32_t role;
};

/* What the tracee needs and could not make inside the sandbox (course.c). */
struct bhi_trace_course {
    enum bhi_trace_role role;
    struct bhi_trace_handed handed; /* for this tracee, with |given|; -1: nothing */
    int given;
    int buffers[3];
    int cache;
    bool cuda; /* PTX instead of |code| */
    void *code;
    size_t code_bytes;
    void *markers;
};
/* Call it before the sandbox. Takes |given| over. Returns false on failure; |page|->failure says
 * why. */
bool bhi_trace_course_prepare(struct bhi_trace_course *course, enum bhi_trace_role role,
                              const struct bhi_trace_handed *handed, int given,
                              struct bhi_tracee_page *page);
/* The part that is traced. */
void bhi_trace_course_run(struct bhi_trace_course *course, const struct bhi_probe_context *context,
                          uint32_t index, struct bhi_tracee_page *page);

/* text.c: writes the arguments that a rule can compare as text. |pid| is the process whose memory
 * and descriptors they name. */
void bhi_trace_text(pid_t pid, int number, const uint64_t args[6], char *out, size_t size);

#endif

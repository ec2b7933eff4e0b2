/* Traces: which system calls a driver makes, in which phase of a worker's life, and which of them
 * its table does not know. Trusted work alone runs: device creation, the warm-up, and a course of
 * our own kernels; never what a host has submitted.
 *
 *   zygote ──fork──▶ tracer ──fork──▶ tracee (enters the sandbox as a worker does, but for the
 *                      ▲                │      filters: every call is put to the tracer)
 *                      └──── seccomp ───┘
 *
 * There are up to three tracees, one after the other: a worker; if it has exported device memory, a
 * worker that imports it; if it has exported its abort words, a sentinel that sets them.
 *
 * The tracer answers as the table would have the filters answer; what no rule knows it lets
 * through, so that one trace names all such calls and not the first. docs/decisions/0022. */
#ifndef BHI_WORKER_TRACE_RUN_H
#define BHI_WORKER_TRACE_RUN_H

#include "ipc/trace.h"
#include "worker/backend.h"
#include "worker/probe/probe.h"

#define BHI_TRACE_TIMEOUT_NS 60000000000ull

/* Shared by tracer and tracee. */
struct bhi_tracee_page {
    _Atomic uint32_t phase; /* enum bhi_trace_phase; BHI_TRACE_PHASES: what is called now is ours */
    _Atomic uint32_t complete;
    int32_t pid;       /* as the tracee sees it */
    uint8_t open[512]; /* bits: its descriptors when filter B would be set */
    char version[160];
    char failure[256];
    char left_out[256];
};

/* Forks a tracer for device |index|, which fills |page|. Returns its pid, or -errno. *out_report is
 * for bhi_probe_finish(). */
pid_t bhi_trace_start(const struct bhi_probe_context *context, uint32_t index,
                      struct bhi_trace_page *page, struct bhi_probe_report **out_report);

enum bhi_trace_role {
    BHI_TRACE_WORKER,    /* all that one does; makes device memory */
    BHI_TRACE_IMPORTER,  /* the worker of another stream: imports that memory */
    BHI_TRACE_SENTINELS, /* imports and sets the worker's abort words */
    BHI_TRACE_ROLES
};

/* What a tracee leaves in its socket, with one descriptor: for a tracee of |role|. */
struct bhi_trace_handed {
    uint64_t bytes; /* of the memory */
    uint32_t role;
};

/* What the tracee needs and cannot make any more once it is in (course.c). */
struct bhi_trace_course {
    enum bhi_trace_role role;
    struct bhi_trace_handed handed; /* to this tracee, with |given|; -1: nothing */
    int given;
    int buffers[3];
    int cache;
    void *code;
    size_t code_bytes;
    void *markers;
};
/* Before the sandbox. |given| is taken over. False: |page|->failure says why. */
bool bhi_trace_course_prepare(struct bhi_trace_course *course, enum bhi_trace_role role,
                              const struct bhi_trace_handed *handed, int given,
                              struct bhi_tracee_page *page);
/* Traced. */
void bhi_trace_course_run(struct bhi_trace_course *course, const struct bhi_probe_context *context,
                          uint32_t index, struct bhi_tracee_page *page);

/* text.c: the arguments that a table can look at, in words. |pid|: whose memory and
 * descriptors they name. */
void bhi_trace_text(pid_t pid, int number, const uint64_t args[6], char *out, size_t size);

#endif

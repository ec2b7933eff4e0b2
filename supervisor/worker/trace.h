/* A zygote's trace of its driver (ipc/trace.h). bh_trace_driver and bh_doctor request one, and so
 * does the first death of a worker by SIGSYS. */
#ifndef BHI_SUPERVISOR_WORKER_TRACE_H
#define BHI_SUPERVISOR_WORKER_TRACE_H

#include <bulkhead/bulkhead.h>
#include <bulkhead/trace.h>
#include <stdbool.h>

#define BHI_TRACE_NS (310ull * 1000000000) /* longer than the zygote gives the tracer */

struct bhi_trace_page;

/*   NONE ──▶ PENDING ──▶ DONE      asked for, answered; DONE ──▶ PENDING where one asks again
 *               └──────▶ FAILED    no trace can be had: why is in |text| */
enum bhi_trace_state { BHI_TRACE_NONE, BHI_TRACE_PENDING, BHI_TRACE_DONE, BHI_TRACE_FAILED };

/* Context's lock, except for |page|, which is not read while PENDING. */
struct bhi_zygote_trace {
    enum bhi_trace_state state;
    int fd;                      /* of the memfd; valid where |page| is */
    struct bhi_trace_page *page; /* our mapping; NULL: none yet */
    uint64_t deadline_ns;        /* PENDING */
    char text[256];              /* FAILED */
    char line[480]; /* DONE: the call that the table does not know, driver and version; or empty */
};

/* Asks the zygote at |socket|, which is READY, for a trace, unless one is PENDING. Returns false if
 * that fails. Lock held. */
bool bhi_trace_begin(struct bhi_zygote_trace *trace, int socket, uint32_t device_index);
/* Lock held. The zygote has answered. */
void bhi_trace_end(struct bhi_zygote_trace *trace, bool done, const char *text);
void bhi_trace_fini(struct bhi_zygote_trace *trace);

/* -- what a page has, each text copied once ---------------------------------------------------- */

void bhi_trace_read(const struct bhi_trace_page *page, bh_trace *out);
uint32_t bhi_trace_call_count(const struct bhi_trace_page *page);
/* Returns false if the entry makes no sense. */
bool bhi_trace_call_read(const struct bhi_trace_page *page, uint32_t index, bh_traced_call *out);
/* The first call that the driver's table does not know, in words; or empty. */
void bhi_trace_unknown(const struct bhi_trace_page *page, char *out, size_t size);

#endif

/* A zygote's trace of its driver (ipc/trace.h): asked for by bh_trace_driver, by bh_doctor, and
 * when a worker has died of SIGSYS while it started. */
#ifndef BHI_SUPERVISOR_TRACE_H
#define BHI_SUPERVISOR_TRACE_H

#include <bulkhead/bulkhead.h>

struct bhi_zygote;
struct bhi_worker;
struct bhi_trace_page;

/*   NONE ──▶ PENDING ──▶ DONE      asked for, answered; DONE ──▶ PENDING where one asks again
 *               └──────▶ FAILED    no trace can be had: why is in |text| */
enum bhi_trace_state { BHI_TRACE_NONE, BHI_TRACE_PENDING, BHI_TRACE_DONE, BHI_TRACE_FAILED };

/* Context's lock, but for |page|, which nobody reads while PENDING. */
struct bhi_zygote_trace {
    enum bhi_trace_state state;
    int fd;                      /* of the memfd; valid where |page| is */
    struct bhi_trace_page *page; /* our mapping; NULL: none yet */
    uint64_t deadline_ns;        /* PENDING */
    char text[256];              /* FAILED */
    char line[480]; /* DONE: the call that the table does not know, driver and version; or empty */
};

/* Lock held. Asks for one, unless one is on its way. False: that cannot be. */
bool bhi_trace_begin(struct bhi_zygote *zygote, uint32_t device_index);
/* Lock held. The zygote has answered. */
void bhi_trace_end(struct bhi_zygote *zygote, bool done, const char *text);
void bhi_trace_fini(struct bhi_zygote_trace *trace);
/* Lock held. |worker| has died of SIGSYS while it started: is its obituary to wait for the trace
 * that says of which call? Until *out_until_ns at the longest. */
bool bhi_trace_awaited(const struct bhi_worker *worker, uint64_t now_ns, uint64_t *out_until_ns);

#endif

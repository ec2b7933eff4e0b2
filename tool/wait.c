#include "tool/wait.h"

#include "tool/clock.h"
#include "tool/interrupt.h"

static const uint64_t start_limit_ns = 60000000000u;  /* for a worker to be ready */
static const uint64_t cancel_limit_ns = 10000000000u; /* for a cancelled submission to end */

bh_status bhi_wait_event(bh_event *event, bh_verdict *out_verdict, void (*look)(void *user),
                         void *user) {
    uint64_t give_up = UINT64_MAX;
    while (bh_event_wait(event, BHI_WAIT_SLICE_NS) == BH_TIMEOUT) {
        if (bhi_clock_ns() >= give_up) {
            return BH_TIMEOUT;
        }
        if (give_up == UINT64_MAX && bhi_interrupt_signal()) {
            (void)!bh_event_cancel(event);
            give_up = bhi_clock_ns() + cancel_limit_ns;
        }
        if (look) {
            look(user);
        }
    }
    out_verdict->struct_size = sizeof *out_verdict;
    return bh_event_verdict(event, out_verdict);
}

bh_status bhi_wait_ready(bh_stream *stream, bh_detail *detail) {
    const uint64_t end = bhi_clock_ns() + start_limit_ns;
    bh_status status;
    do {
        status = bh_stream_wait_ready(stream, BHI_WAIT_SLICE_NS, detail);
    } while (status == BH_TIMEOUT && !bhi_interrupt_signal() && bhi_clock_ns() < end);
    return status;
}

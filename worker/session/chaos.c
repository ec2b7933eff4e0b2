/* Faults that the host wants, to be tested with: the flags of a record (ipc/lane.h). They happen where
 * the driver's answer is read; from there on everything is as with a real one. */
#include "worker/session/internal.h"

static void linger(const struct bhi_session *s) {
    const uint64_t late_ms = BHI_RECORD_LATENESS_MS(s->records[0]->flags);
    const uint64_t until_ns = bhi_deadline_ns(late_ms * UINT64_C(1000000));
    _Atomic uint32_t never = 0;
    while (late_ms && bhi_now_ns() < until_ns) {
        (void)bhi_futex_wait(&never, 0, false, until_ns);
    }
}

bool bhi_session_chaos_lets(struct bhi_session *s) {
    if (!(s->records[0]->flags & BHI_RECORD_NO_MEMORY)) {
        return true;
    }
    const uint64_t now = bhi_now_ns();
    s->results[0] =
        (struct bhi_result){.seq = s->records[0]->seq, .started_ns = now, .ended_ns = now};
    BHI_ERROR(&s->errors[0], BH_REASON_NONE, .status = BH_OUT_OF_DEVICE_MEMORY,
              .text = "out of device memory");
    bhi_error_result(&s->errors[0], &s->results[0]);
    return false;
}

bool bhi_session_chaos_answers(struct bhi_session *s, bool alive) {
    linger(s);
    s->results[0].ended_ns = bhi_now_ns();
    if (!(s->records[0]->flags & BHI_RECORD_LOSES_DEVICE) || s->results[0].status != BH_OK) {
        return alive;
    }
    BHI_ERROR(&s->errors[0], BH_REASON_LOST);
    s->errors[0].executed = BH_EXECUTED_UNKNOWN;
    s->results[0].device_ns = 0;
    bhi_error_result(&s->errors[0], &s->results[0]);
    return false;
}

/* Copies that begin before it is their turn: while the device runs what is before them in the lane,
 * on another queue of it. Results are published in the order of the lane all the same. */
#include "worker/session/internal.h"

#include "ipc/commands.h"

/* May the record begin now? It waits for control messages that were not handled yet, since none is
 * handled while the device works. (No request to make memory is owed then: what runs waited for all.) */
static bool may_begin(const struct bhi_session *s, const struct bhi_lane_record *record,
                      uint64_t seq) {
    return bhi_record_check(record, record->size, NULL, 0) == 0 && record->seq == seq &&
           (int32_t)(record->control_seq - s->control_handled) <= 0 &&
           bhi_backend_copy_fits(s->backend, record);
}

bool bhi_session_announce(struct bhi_session *s, uint64_t seq) {
    atomic_store_explicit(&s->config.progress->header->started_seq, seq, memory_order_release);
    /* A withdrawal before this fence is seen here; a later one sees started_seq (lane.h). */
    atomic_thread_fence(memory_order_seq_cst);
    return bhi_lane_withdrawn(s->config.lane, seq);
}

void bhi_session_look_ahead(void *user) {
    struct bhi_session *s = user;
    for (;;) {
        const uint64_t seq = s->next_seq + s->batch + s->ahead;
        int err = 0;
        if (s->batch + s->ahead == 0 || s->passed_seq == seq ||
            !bhi_backend_copy_room(s->backend)) {
            return; /* nothing runs: this is the warm-up, say */
        }
        const struct bhi_lane_record *record = bhi_lane_peek(s->config.lane, s->ahead_bytes, &err);
        if (!record) {
            return;
        }
        /* The supervisor must not believe that it has withdrawn what has begun. */
        if (!may_begin(s, record, seq) || bhi_session_announce(s, seq)) {
            s->passed_seq = seq;
            return;
        }
        bhi_backend_copy_begin(s->backend, record);
        s->ahead++;
        s->ahead_bytes += record->size;
    }
}

/* One operation of the workload. One thread submits it; the thread of its stream collects it.
 *
 *   submitted ──▶ collected ──▶ looked at again ──▶ gone
 *        its event has ended   some operations later: END (and RESULT) is noted
 *        and its output was read
 */
#ifndef BHI_CHAOS_ENGINE_OPERATION_H
#define BHI_CHAOS_ENGINE_OPERATION_H

#include "base/list.h"
#include "chaos/history/history.h"

#include <stdatomic.h>

struct bhi_operation {
    struct bhi_list node; /* in the queue of its stream */
    _Atomic uint32_t refs;
    uint64_t number;
    uint64_t name; /* replay: its number in the other run; otherwise its own number */
    uint32_t stream, words;
    uint32_t home; /* the stream that its output was made for: that one's worker copies it */
    bool bait;
    bool on_device;         /* its output is in device memory */
    uint64_t last_reader;   /* number of the newest operation that was planned to read its output */
    bh_event *event;        /* referenced */
    bh_buffer *output;      /* referenced; words * 4 bytes */
    _Atomic bool collected; /* its collector has read its output */

    /* Used by its collector only. */
    bool lost;
    uint64_t seen_ns; /* when its end was seen, since the run began */
    bh_status waited; /* the first answer of each way to ask */
    bh_event_state state;
    bh_verdict first_look;
    struct bhi_record result;
};

/* Returns one with one reference, or NULL if out of memory. */
struct bhi_operation *bhi_operation_new(void);
void bhi_operation_retain(struct bhi_operation *operation);
void bhi_operation_release(struct bhi_operation *operation); /* NULL is fine */

/* Waits for its end for at most |patience_ns|. |start_ns| is when the run began. */
void bhi_operation_await(struct bhi_operation *operation, uint64_t patience_ns, uint64_t start_ns);
/* Reads its output; if it is poisoned, that must fail. Blocks. A worker that dies while it copies
 * an output out of device memory has not touched it (D2): it is read again, for at most a third of
 * |patience_ns|. */
void bhi_operation_read(struct bhi_operation *operation, uint64_t patience_ns, uint64_t start_ns);
/* Asks again, and fills in the record with the first answers. */
void bhi_operation_end_record(const struct bhi_operation *operation, uint64_t start_ns,
                              struct bhi_record *out_record);

#endif

/* One operation of the workload: submitted by one thread, collected by its stream's.
 *
 *   submitted ──▶ collected ──▶ looked at again ──▶ gone
 *        its event has ended   some operations later: END (and RESULT) is noted
 *        and was read back
 */
#ifndef BHI_CHAOS_ENGINE_OPERATION_H
#define BHI_CHAOS_ENGINE_OPERATION_H

#include "base/list.h"
#include "chaos/history/history.h"

#include <stdatomic.h>

struct bhi_operation {
    struct bhi_list node; /* of its stream's queue */
    _Atomic uint32_t refs;
    uint64_t number;
    uint64_t name; /* replay: its number in the other run; else the same */
    uint32_t stream, words;
    bool bait;
    uint64_t last_reader;   /* number of the newest operation that was told to read its output */
    bh_event *event;        /* referenced */
    bh_buffer *output;      /* referenced; words * 4 bytes */
    _Atomic bool collected; /* its collector has read what it gave */

    /* Its collector's alone. */
    bool lost;
    uint64_t seen_ns; /* when its end was, since the run began */
    bh_status waited; /* what each way to ask said first */
    bh_event_state state;
    bh_verdict first_look;
    struct bhi_record result;
};

/* With one reference. NULL: out of memory. */
struct bhi_operation *bhi_operation_new(void);
void bhi_operation_retain(struct bhi_operation *operation);
void bhi_operation_release(struct bhi_operation *operation); /* NULL is fine */

/* Waits for the end, |patience_ns| at most, and reads back. Blocks. |start_ns|: of the run. */
void bhi_operation_collect(struct bhi_operation *operation, uint64_t patience_ns,
                           uint64_t start_ns);
/* Looks again, and writes down what was seen at first. */
void bhi_operation_end_record(const struct bhi_operation *operation, uint64_t start_ns,
                              struct bhi_record *out_record);

#endif

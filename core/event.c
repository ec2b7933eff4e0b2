#include "core/event.h"
#include "base/check.h"
#include "core/core.h"
#include "core/submission.h"

void bhi_event_init(struct bh_event *event, struct bhi_core *core) {
    atomic_init(&event->refs, 1);
    atomic_init(&event->word, BH_EVENT_PENDING);
    event->id = 0;
    event->core = core;
    event->submission = NULL;
    bhi_list_init(&event->dependents);
    bhi_list_init(&event->observers);
    event->visit = 0;
    event->library = event->copy_failed = event->inherited = false;
    event->words = 0;
    event->content_of = 0;
    event->origin_tick = 0;
    /* The texts in the verdict are long and rarely used: only their first bytes are cleared. */
    event->verdict.status = BH_OK;
    event->verdict.kernel_name[0] = 0;
    event->verdict.stream_name[0] = 0;
    event->verdict.message[0] = 0;
    event->verdict.subject_name[0] = 0;
}

void bhi_event_unref(struct bh_event *event) {
    if (!event || atomic_fetch_sub_explicit(&event->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    /* A pending event is referenced by its submission. This event has no reference left, so it has
     * ended. */
    BHI_CHECK(!event->submission && bhi_list_empty(&event->dependents));
    event->core->ops->free_event(event);
}

bool bhi_event_doomed(const struct bh_event *event) {
    return bhi_event_state(event) == BH_EVENT_POISONED ||
           (event->submission && event->submission->doomed);
}

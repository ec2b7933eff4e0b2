/* Events as the supervisor's threads wait for them. Their state is the core's (core/event.h). */
#ifndef BHI_SUPERVISOR_EVENT_EVENT_H
#define BHI_SUPERVISOR_EVENT_EVENT_H

#include "core/event.h"

struct bh_event *bhi_event_create(bh_context *context); /* NULL: out of memory; one reference */

/* Waits until |event| has ended. BH_OK, BH_TIMEOUT, or BH_IN_CALLBACK where it would have to sleep:
 * what became of it is not looked at. */
bh_status bhi_event_await(struct bh_event *event, uint64_t deadline_ns);

/* Says in |detail| what became of a poisoned event, and which kernel it was. Returns its status. */
bh_status bhi_event_report(const struct bh_event *event, bh_detail *detail, const char *call,
                           const char *what);

/* Core ops. Lock held. */
void bhi_event_turned(struct bh_event *event); /* sleepers look again whom to follow */
void bhi_event_ended(struct bh_event *event);  /* wakes everybody */
void bhi_event_free(struct bh_event *event);

#endif

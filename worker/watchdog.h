/* The watchdog: a thread of the worker that waits for the supervisor's word that what runs shall
 * end (lane.abort_seq), while the session waits for the device. It calls nothing of the driver, and
 * allocates nothing. */
#ifndef BHI_WATCHDOG_H
#define BHI_WATCHDOG_H

#include "backend.h"
#include "failure.h"
#include "lane.h"

struct bhi_watchdog {
    const struct bhi_lane_header *lane;
    struct bhi_backend *_Atomic backend; /* NULL: nothing runs yet */
};

/* Starts it, for as long as the process lives: behind the sandbox's layers, which act on one thread
 * only, and before filter B, which knows no new threads. Returns 0 or -errno. */
int bhi_watchdog_start(struct bhi_watchdog *watchdog, const struct bhi_lane_view *lane,
                       struct bhi_failure *failure);

#endif

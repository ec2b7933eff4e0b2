/* A worker keeps the mapping of its lane until it ends; a test that plays one gives it back. */
#ifndef BHT_LANE_VIEW_H
#define BHT_LANE_VIEW_H

#include "base/memfd.h"
#include "ipc/lane.h"

#include <stdint.h>
#include <sys/mman.h>

static inline void bht_lane_view_unmap(struct bhi_lane_view *view) {
    if (view->header) {
        munmap((void *)(uintptr_t)view->header, bhi_page_round(1) + 2 * view->capacity);
        *view = (struct bhi_lane_view){0};
    }
}

#endif

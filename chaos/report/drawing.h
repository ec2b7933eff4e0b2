/* A chaos run as a drawing: streams and faults against time, memory and descriptors below. */
#ifndef BHI_CHAOS_REPORT_DRAWING_H
#define BHI_CHAOS_REPORT_DRAWING_H

#include "chaos/history/history.h"
#include "tool/report/page.h"

/* A figure. Where there is no memory for it, it says so. */
void bhi_drawing_put(struct bhi_page *page, const struct bhi_history *history);

#endif

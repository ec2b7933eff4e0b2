/* Draws a chaos run: streams and faults over time; memory and descriptors below. */
#ifndef BHI_CHAOS_REPORT_DRAWING_H
#define BHI_CHAOS_REPORT_DRAWING_H

#include "chaos/history/history.h"
#include "tool/report/page.h"

/* Adds a figure to the page, or a note if there is no memory for it. */
void bhi_drawing_put(struct bhi_page *page, const struct bhi_history *history);

#endif

/* A timeline: a row for each stream, a bar for each piece of work.
 *
 * Any number of bars may be added. Bars that are too narrow to be seen are merged with their
 * neighbours of the same kind, so that the page stays small. Long gaps without any work (a batch
 * that was continued the next day) are cut out.
 *
 *   init -> row, kind (names) -> add … -> layout -> title (of wide bars) -> draw -> fini
 */
#ifndef BHI_TOOL_REPORT_TIMELINE_H
#define BHI_TOOL_REPORT_TIMELINE_H

#include "tool/report/page.h"

enum { BHI_TIMELINE_ROWS = 80, BHI_TIMELINE_KINDS = 10, BHI_TIMELINE_CUTS = 32 };

/* A kind of bar. Kinds differ in colour, pattern and height. A merged bar ends higher than a single
 * one, so that it does not hide the bars of other kinds at the same time. */
struct bhi_timeline_kind {
    const char *name; /* for the legend, and for the description of merged bars: "READY" */
    enum bhi_page_tone tone;
    uint8_t top, bottom, merged_bottom; /* in units of 1/24 of a row's height */
    bool mark;                          /* drawn over other bars; takes no space */
};

struct bhi_timeline_bar {
    uint64_t from_ns, to_ns;
    char *title;  /* owned */
    uint64_t tag; /* for the caller's use */
    uint16_t row;
    uint8_t kind;
    uint8_t band; /* from the top, if several overlap */
    bool wide;    /* drawn as a bar of its own */
};

struct bhi_timeline {
    const struct bhi_timeline_kind *kinds; /* borrowed */
    size_t kind_count;
    const char *unit; /* "attempt", for merged bars */
    struct bhi_timeline_bar *bars;
    size_t count, capacity;
    bool failed; /* out of memory */
    char rows[BHI_TIMELINE_ROWS][32];
    bool thin[BHI_TIMELINE_ROWS];
    uint8_t bands[BHI_TIMELINE_ROWS];
    size_t row_count;
    uint64_t left_out; /* bars in rows beyond BHI_TIMELINE_ROWS */
    /* Set by layout: */
    uint64_t from_ns, shown_ns; /* shown_ns does not include the cuts */
    struct {
        uint64_t at_ns, length_ns;
    } cuts[BHI_TIMELINE_CUTS];
    size_t cut_count;
    unsigned bins;
    uint32_t *order; /* indices of bars, by row, then by kind */
    size_t starts[BHI_TIMELINE_ROWS * BHI_TIMELINE_KINDS + 1]; /* in |order|, of row and kind */
};

void bhi_timeline_init(struct bhi_timeline *timeline, const char *unit,
                       const struct bhi_timeline_kind *kinds, size_t kind_count);
/* Names row |row|. Rows are shown from 0 to the highest row that has a name. */
void bhi_timeline_row(struct bhi_timeline *timeline, uint32_t row, const char *name, bool thin);
void bhi_timeline_add(struct bhi_timeline *timeline, uint32_t row, uint8_t kind, uint64_t from_ns,
                      uint64_t to_ns, uint64_t tag);
/* Chooses the gaps to cut out and the wide bars. The bars keep their order. Returns false if memory
 * ran out. */
bool bhi_timeline_layout(struct bhi_timeline *timeline);
/* Sets the description of a wide bar. */
void bhi_timeline_title(struct bhi_timeline *timeline, size_t bar, const char *text);
void bhi_timeline_draw(const struct bhi_timeline *timeline, struct bhi_page *page);
void bhi_timeline_fini(struct bhi_timeline *timeline);

/* The index in |starts| of a row and a kind. Their bars are order[starts[k]] to order[starts[k + 1]
 * - 1]. */
static inline size_t bhi_timeline_key(size_t row, size_t kind) {
    return row * BHI_TIMELINE_KINDS + kind;
}
/* Converts a time to a place on the axis, 0 to shown_ns. Call it after layout. */
uint64_t bhi_timeline_place(const struct bhi_timeline *timeline, uint64_t ns);
/* Converts a place on the axis to the time since the beginning. */
uint64_t bhi_timeline_time(const struct bhi_timeline *timeline, uint64_t place);

#endif

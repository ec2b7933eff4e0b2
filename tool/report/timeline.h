/* A timeline: a row for each stream, a bar for each piece of work.
 *
 * Any number of bars may be added: those that would be too narrow to be seen are merged with their
 * neighbours of the same kind, so that the page stays small. Stretches in which nothing happened at
 * all (a batch that went on the next day) are cut out.
 *
 *   init -> row, kind (names) -> add … -> layout -> title (of those that are wide) -> draw -> fini
 */
#ifndef BHI_TOOL_REPORT_TIMELINE_H
#define BHI_TOOL_REPORT_TIMELINE_H

#include "tool/report/page.h"

enum { BHI_TIMELINE_ROWS = 80, BHI_TIMELINE_KINDS = 10, BHI_TIMELINE_CUTS = 32 };

/* What a bar says. Kinds differ in colour, filling and height. Merged bars stand in for many, most
 * of which are something else as a rule: they end higher up, so as not to hide it. */
struct bhi_timeline_kind {
    const char *name; /* for the legend, and of merged bars: "READY" */
    enum bhi_page_tone tone;
    uint8_t top, bottom, merged_bottom; /* of a row that is 24 high */
    bool mark;                          /* set over the row; makes no room for itself */
};

struct bhi_timeline_bar {
    uint64_t from_ns, to_ns;
    char *title;  /* owned */
    uint64_t tag; /* the caller's */
    uint16_t row;
    uint8_t kind;
    uint8_t band; /* where several overlap: from the top */
    bool wide;    /* drawn by itself */
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
    uint64_t left_out; /* bars of rows beyond */
    /* After layout */
    uint64_t from_ns, shown_ns; /* of which the cuts are not a part */
    struct {
        uint64_t at_ns, length_ns;
    } cuts[BHI_TIMELINE_CUTS];
    size_t cut_count;
    unsigned bins;
    uint32_t *order;                                           /* of bars: by row, then by kind */
    size_t starts[BHI_TIMELINE_ROWS * BHI_TIMELINE_KINDS + 1]; /* in it, of row and kind */
};

void bhi_timeline_init(struct bhi_timeline *timeline, const char *unit,
                       const struct bhi_timeline_kind *kinds, size_t kind_count);
/* Names row |row|; rows are shown from 0 to the highest that has a name. */
void bhi_timeline_row(struct bhi_timeline *timeline, uint32_t row, const char *name, bool thin);
void bhi_timeline_add(struct bhi_timeline *timeline, uint32_t row, uint8_t kind, uint64_t from_ns,
                      uint64_t to_ns, uint64_t tag);
/* Decides what is cut out and which bars are wide. Bars keep their order. False: out of memory. */
bool bhi_timeline_layout(struct bhi_timeline *timeline);
/* What is told of a wide bar. */
void bhi_timeline_title(struct bhi_timeline *timeline, size_t bar, const char *text);
void bhi_timeline_draw(const struct bhi_timeline *timeline, struct bhi_page *page);
void bhi_timeline_fini(struct bhi_timeline *timeline);

/* The bars of a kind on a row are order[starts[k]] to order[starts[k + 1] - 1]. */
static inline size_t bhi_timeline_key(size_t row, size_t kind) {
    return row * BHI_TIMELINE_KINDS + kind;
}
/* Where a time is: 0 to shown_ns. After layout. */
uint64_t bhi_timeline_place(const struct bhi_timeline *timeline, uint64_t ns);
/* And back, as time since the beginning. */
uint64_t bhi_timeline_time(const struct bhi_timeline *timeline, uint64_t place);

#endif

#include "tool/report/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/sort.h"
#include "tool/text.h"

enum {
    WIDE_MOST = 3000, /* bars that are drawn separately, at most */
    WIDE_BINS = 3,    /* their least width */
    BANDS = 8,
};
static const uint64_t cut_least_ns = 5000000000u;

void bhi_timeline_init(struct bhi_timeline *timeline, const char *unit,
                       const struct bhi_timeline_kind *kinds, size_t kind_count) {
    *timeline = (struct bhi_timeline){.unit = unit, .kinds = kinds, .kind_count = kind_count};
}

void bhi_timeline_fini(struct bhi_timeline *timeline) {
    for (size_t i = 0; i < timeline->count; i++) {
        free(timeline->bars[i].title);
    }
    free(timeline->bars);
    free(timeline->order);
    *timeline = (struct bhi_timeline){0};
}

void bhi_timeline_row(struct bhi_timeline *timeline, uint32_t row, const char *name, bool thin) {
    if (row >= BHI_TIMELINE_ROWS) {
        return;
    }
    bhi_text_clean(timeline->rows[row], sizeof timeline->rows[row], name);
    timeline->thin[row] = thin;
    if (row >= timeline->row_count) {
        timeline->row_count = row + 1;
    }
}

void bhi_timeline_add(struct bhi_timeline *timeline, uint32_t row, uint8_t kind, uint64_t from_ns,
                      uint64_t to_ns, uint64_t tag) {
    if (row >= BHI_TIMELINE_ROWS || timeline->failed || timeline->count == UINT32_MAX) {
        timeline->left_out++;
        return;
    }
    if (!BHI_ARRAY_RESERVE(timeline->bars, timeline->capacity, timeline->count + 1)) {
        timeline->failed = true;
        return;
    }
    timeline->bars[timeline->count++] =
        (struct bhi_timeline_bar){.from_ns = from_ns,
                                  .to_ns = to_ns < from_ns ? from_ns : to_ns,
                                  .tag = tag,
                                  .row = (uint16_t)row,
                                  .kind = kind};
}

void bhi_timeline_title(struct bhi_timeline *timeline, size_t bar, const char *text) {
    free(timeline->bars[bar].title);
    timeline->bars[bar].title = strdup(text);
}

/* -- gaps to cut out -------------------------------------------------------------------------- */

struct span {
    uint64_t from, to;
};

BHI_ORDER(compare_spans, struct span, from)

/* Merges overlapping spans in place. Returns how many are left; *out_busy is the sum of their
 * lengths. */
static size_t merge_spans(struct span *spans, size_t count, uint64_t *out_busy) {
    size_t used = 0;
    qsort(spans, count, sizeof *spans, compare_spans);
    for (size_t i = 0; i < count; i++) {
        if (used && spans[i].from <= spans[used - 1].to) {
            if (spans[i].to > spans[used - 1].to) {
                spans[used - 1].to = spans[i].to;
            }
        } else {
            spans[used++] = spans[i];
        }
    }
    *out_busy = 0;
    for (size_t i = 0; i < used; i++) {
        *out_busy += spans[i].to - spans[i].from;
    }
    return used;
}

/* Cuts each gap that is longer than a fifth of the busy time down to a fiftieth of it. */
static void find_cuts(struct bhi_timeline *timeline, const struct span *spans, size_t count,
                      uint64_t busy) {
    uint64_t least = busy / 5 > cut_least_ns ? busy / 5 : cut_least_ns;
    uint64_t whole = count ? spans[count - 1].to - spans[0].from : 0;
    timeline->from_ns = count ? spans[0].from : 0;
    for (size_t i = 1; i < count && timeline->cut_count < BHI_TIMELINE_CUTS; i++) {
        uint64_t gap = spans[i].from - spans[i - 1].to;
        if (gap <= least) {
            continue;
        }
        uint64_t kept = busy / 50;
        timeline->cuts[timeline->cut_count].at_ns = spans[i - 1].to + kept / 2;
        timeline->cuts[timeline->cut_count++].length_ns = gap - kept;
        whole -= gap - kept;
    }
    timeline->shown_ns = whole ? whole : 1;
}

uint64_t bhi_timeline_place(const struct bhi_timeline *timeline, uint64_t ns) {
    uint64_t removed = 0;
    if (ns < timeline->from_ns) {
        return 0;
    }
    for (size_t i = 0; i < timeline->cut_count && ns > timeline->cuts[i].at_ns; i++) {
        uint64_t into = ns - timeline->cuts[i].at_ns;
        removed += into < timeline->cuts[i].length_ns ? into : timeline->cuts[i].length_ns;
    }
    uint64_t place = ns - timeline->from_ns - removed;
    return place < timeline->shown_ns ? place : timeline->shown_ns;
}

uint64_t bhi_timeline_time(const struct bhi_timeline *timeline, uint64_t place) {
    uint64_t time = place;
    for (size_t i = 0; i < timeline->cut_count; i++) {
        if (timeline->from_ns + time > timeline->cuts[i].at_ns) {
            time += timeline->cuts[i].length_ns;
        }
    }
    return time;
}

/* -- wide bars -------------------------------------------------------------------------------- */

static uint64_t width_of(const struct bhi_timeline *timeline, size_t bar) {
    return bhi_timeline_place(timeline, timeline->bars[bar].to_ns) -
           bhi_timeline_place(timeline, timeline->bars[bar].from_ns);
}

static void choose_wide(struct bhi_timeline *timeline) {
    uint64_t most = timeline->shown_ns / timeline->bins * WIDE_BINS; /* of bars that are not wide */
    size_t count;
    do {
        count = 0;
        for (size_t i = 0; i < timeline->count; i++) {
            timeline->bars[i].wide = width_of(timeline, i) > most;
            count += timeline->bars[i].wide;
        }
        most = most > UINT64_MAX / 2 ? UINT64_MAX : 2 * most + 1;
    } while (count > WIDE_MOST);
}

/* Sorts the bars by row, then by kind. Bars of the same row and kind keep their order. */
static void sort_bars(struct bhi_timeline *timeline) {
    size_t *starts = timeline->starts;
    size_t keys = sizeof timeline->starts / sizeof timeline->starts[0] - 1;
    for (size_t i = 0; i < timeline->count; i++) {
        starts[bhi_timeline_key(timeline->bars[i].row, timeline->bars[i].kind)]++;
    }
    for (size_t key = 0, sum = 0; key <= keys; key++) {
        size_t count = starts[key];
        starts[key] = sum;
        sum += count;
    }
    for (size_t i = 0; i < timeline->count; i++) {
        timeline->order[starts[bhi_timeline_key(timeline->bars[i].row, timeline->bars[i].kind)]++] =
            (uint32_t)i;
    }
    /* each start was advanced to the start of the next key; move them back */
    memmove(starts + 1, starts, keys * sizeof *starts);
    starts[0] = 0;
}

static int compare_bars(const void *a, const void *b, void *user) {
    const struct bhi_timeline_bar *bars = user;
    const struct bhi_timeline_bar *x = &bars[*(const uint32_t *)a];
    const struct bhi_timeline_bar *y = &bars[*(const uint32_t *)b];
    if (x->row != y->row) {
        return x->row < y->row ? -1 : 1;
    }
    return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* Stacks overlapping wide bars: each bar goes into the first free band. */
static void stack_bars(struct bhi_timeline *timeline) {
    uint64_t free_at[BANDS] = {0};
    uint32_t order[WIDE_MOST];
    size_t count = 0;
    for (size_t i = 0; i < timeline->count && count < WIDE_MOST; i++) {
        if (timeline->bars[i].wide && !timeline->kinds[timeline->bars[i].kind].mark) {
            order[count++] = (uint32_t)i;
        }
    }
    qsort_r(order, count, sizeof *order, compare_bars, timeline->bars);
    for (size_t i = 0; i < count; i++) {
        struct bhi_timeline_bar *bar = &timeline->bars[order[i]];
        if (i == 0 || timeline->bars[order[i - 1]].row != bar->row) {
            memset(free_at, 0, sizeof free_at);
        }
        while (bar->band + 1 < BANDS && free_at[bar->band] > bar->from_ns) {
            bar->band++;
        }
        free_at[bar->band] = bar->to_ns;
        if (bar->band >= timeline->bands[bar->row]) {
            timeline->bands[bar->row] = bar->band + 1;
        }
    }
}

bool bhi_timeline_layout(struct bhi_timeline *timeline) {
    uint64_t busy;
    if (timeline->failed) {
        return false;
    }
    timeline->bins = timeline->row_count > 32 ? 200 : timeline->row_count > 16 ? 400 : 800;
    struct span *spans = calloc(timeline->count + 1, sizeof *spans);
    timeline->order = calloc(timeline->count + 1, sizeof *timeline->order);
    if (spans && timeline->order) {
        for (size_t i = 0; i < timeline->count; i++) {
            spans[i] = (struct span){timeline->bars[i].from_ns, timeline->bars[i].to_ns};
        }
        size_t count = merge_spans(spans, timeline->count, &busy);
        find_cuts(timeline, spans, count, busy);
        choose_wide(timeline);
        sort_bars(timeline);
        stack_bars(timeline);
    } else {
        timeline->failed = true;
    }
    free(spans);
    return !timeline->failed;
}

#include "tool/report/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "tool/quantity.h"

enum { WIDTH = 1600, HEIGHT = 24, TICKS = 5, LEAST = 3 };

/* The bars of one kind in one bin: how many begin in it, and how many have ended before it. */
struct bin {
    uint32_t beginning, ended;
};

static double x_of(const struct bhi_timeline *timeline, uint64_t ns) {
    return (double)bhi_timeline_place(timeline, ns) / (double)timeline->shown_ns * WIDTH;
}

static unsigned bin_of(const struct bhi_timeline *timeline, uint64_t ns) {
    double bin =
        (double)bhi_timeline_place(timeline, ns) / (double)timeline->shown_ns * timeline->bins;
    return bin < timeline->bins ? (unsigned)bin : timeline->bins - 1;
}

static void open_rect(struct bhi_page *page, const struct bhi_timeline_kind *kind, double x,
                      double width, double top, double bottom) {
    if (width < LEAST) { /* a narrower bar would be invisible */
        width = LEAST;
    }
    if (x + width > WIDTH) {
        x = WIDTH - width;
    }
    fprintf(page->out, "<rect class=\"%s\" x=\"%.4g\" y=\"%.3g\" width=\"%.4g\" height=\"%.3g\">",
            bhi_page_class(kind->tone), x, top, width, bottom - top);
}

/* -- merged bars ----------------------------------------------------------------------------- */

static void draw_run(const struct bhi_timeline *timeline, struct bhi_page *page,
                     const struct bhi_timeline_kind *kind, unsigned first, unsigned end,
                     uint64_t count) {
    char number[BHI_QUANTITY], from[BHI_QUANTITY], to[BHI_QUANTITY];
    double scale = (double)WIDTH / timeline->bins;
    double nanoseconds = (double)timeline->shown_ns / timeline->bins;
    open_rect(page, kind, first * scale, (end - first) * scale, kind->top, kind->merged_bottom);
    fprintf(page->out, "<title>%s %s%s, ", bhi_quantity_count(number, count), timeline->unit,
            count == 1 ? "" : "s");
    bhi_page_text(page, kind->name);
    fprintf(page->out, ": %s to %s</title></rect>\n",
            bhi_quantity_time(from, bhi_timeline_time(timeline, (uint64_t)(first * nanoseconds))),
            bhi_quantity_time(to, bhi_timeline_time(timeline, (uint64_t)(end * nanoseconds))));
}

static void draw_merged(const struct bhi_timeline *timeline, struct bhi_page *page, size_t row,
                        size_t kind, struct bin *bins) {
    size_t key = bhi_timeline_key(row, kind);
    memset(bins, 0, (timeline->bins + 1) * sizeof *bins);
    for (size_t i = timeline->starts[key]; i < timeline->starts[key + 1]; i++) {
        const struct bhi_timeline_bar *bar = &timeline->bars[timeline->order[i]];
        if (bar->wide) {
            continue;
        }
        bins[bin_of(timeline, bar->from_ns)].beginning++;
        bins[bin_of(timeline, bar->to_ns) + 1].ended++;
    }
    uint64_t touching = 0, count = 0;
    unsigned first = 0;
    for (unsigned i = 0; i <= timeline->bins; i++) {
        bool before = touching > 0;
        touching += bins[i].beginning;
        touching -= bins[i].ended;
        if (before && !touching) {
            draw_run(timeline, page, &timeline->kinds[kind], first, i, count);
            count = 0;
        } else if (!before && touching) {
            first = i;
        }
        count += bins[i].beginning;
    }
}

/* -- a row ----------------------------------------------------------------------------------- */

static void draw_wide(const struct bhi_timeline *timeline, struct bhi_page *page, size_t row,
                      size_t kind) {
    const struct bhi_timeline_kind *shape = &timeline->kinds[kind];
    unsigned bands = shape->mark || !timeline->bands[row] ? 1 : timeline->bands[row];
    double band = (double)HEIGHT / bands;
    size_t key = bhi_timeline_key(row, kind);
    for (size_t i = timeline->starts[key]; i < timeline->starts[key + 1]; i++) {
        const struct bhi_timeline_bar *bar = &timeline->bars[timeline->order[i]];
        if (!bar->wide) {
            continue;
        }
        double x = x_of(timeline, bar->from_ns), top = bar->band * band;
        open_rect(page, shape, x, x_of(timeline, bar->to_ns) - x, top + band * shape->top / HEIGHT,
                  top + band * shape->bottom / HEIGHT);
        bhi_page_between(page, "<title>", bar->title ? bar->title : shape->name,
                         "</title></rect>\n");
    }
}

static void draw_cuts(const struct bhi_timeline *timeline, struct bhi_page *page) {
    char length[BHI_QUANTITY];
    for (size_t i = 0; i < timeline->cut_count; i++) {
        double x = x_of(timeline, timeline->cuts[i].at_ns);
        fprintf(page->out,
                "<line class=\"cut\" x1=\"%.4g\" x2=\"%.4g\" y1=\"0\" y2=\"%d\"><title>%s without "
                "activity are left out here</title></line>\n",
                x, x, HEIGHT, bhi_quantity_time(length, timeline->cuts[i].length_ns));
    }
}

/* Writes the row's text for screen readers. */
static void describe_row(const struct bhi_timeline *timeline, struct bhi_page *page, size_t row) {
    char number[BHI_QUANTITY];
    bhi_page_text(page, timeline->rows[row]);
    for (size_t kind = 0; kind < timeline->kind_count; kind++) {
        size_t key = bhi_timeline_key(row, kind);
        size_t count = timeline->starts[key + 1] - timeline->starts[key];
        if (!count) {
            continue;
        }
        fprintf(page->out, ", %s ", bhi_quantity_count(number, count));
        bhi_page_text(page, timeline->kinds[kind].name);
    }
}

static void draw_row(const struct bhi_timeline *timeline, struct bhi_page *page, size_t row,
                     struct bin *bins) {
    fprintf(page->out, "<div class=\"row%s\"><span>", timeline->thin[row] ? " thin" : "");
    bhi_page_text(page, timeline->rows[row]);
    fprintf(page->out,
            "</span><svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"",
            WIDTH, HEIGHT);
    describe_row(timeline, page, row);
    fputs("\">\n", page->out);
    draw_cuts(timeline, page);
    for (size_t kind = 0; kind < timeline->kind_count; kind++) {
        draw_merged(timeline, page, row, kind, bins);
        draw_wide(timeline, page, row, kind);
    }
    fputs("</svg></div>\n", page->out);
}

/* -- the whole ------------------------------------------------------------------------------- */

/* Defines a pattern for each kind, so that kinds differ in more than colour. */
static void draw_patterns(struct bhi_page *page) {
    static const struct {
        enum bhi_page_tone tone;
        const char *path;
    } patterns[] = {{BHI_PAGE_LOST, "M0 8L8 0M-2 2L2 -2M6 10L10 6"},
                    {BHI_PAGE_INPUT, "M2 0V8M6 0V8"},
                    {BHI_PAGE_WARN, "M0 2H8M0 6H8"}};
    fputs("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"defs\" aria-hidden=\"true\"><defs>\n",
          page->out);
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        const char *name = bhi_page_class(patterns[i].tone);
        fprintf(page->out,
                "<pattern id=\"%s\" class=\"%s\" width=\"8\" height=\"8\" "
                "patternUnits=\"userSpaceOnUse\"><path d=\"%s\" stroke-width=\"2\" /></pattern>\n",
                name, name, patterns[i].path);
    }
    fputs("</defs></svg>\n", page->out);
}

static void draw_axis(const struct bhi_timeline *timeline, struct bhi_page *page) {
    char text[BHI_QUANTITY];
    uint64_t end = bhi_timeline_time(timeline, timeline->shown_ns);
    fputs("<div class=\"axis\" aria-hidden=\"true\">", page->out);
    for (unsigned i = 0; i < TICKS; i++) {
        uint64_t place = (uint64_t)((double)timeline->shown_ns / (TICKS - 1) * i);
        fprintf(page->out, "<span>%s</span>",
                bhi_quantity_tick(text, bhi_timeline_time(timeline, place), end));
    }
    fputs("</div>\n", page->out);
}

static void draw_legend(const struct bhi_timeline *timeline, struct bhi_page *page) {
    bool used[BHI_TIMELINE_KINDS] = {false};
    for (size_t i = 0; i < timeline->count; i++) {
        used[timeline->bars[i].kind] = true;
    }
    fputs("<ul class=\"legend\">\n", page->out);
    for (size_t kind = 0; kind < timeline->kind_count; kind++) {
        const struct bhi_timeline_kind *shape = &timeline->kinds[kind];
        if (!used[kind]) {
            continue;
        }
        fprintf(page->out,
                "<li><svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 40 %d\" "
                "preserveAspectRatio=\"none\" aria-hidden=\"true\">",
                HEIGHT);
        open_rect(page, shape, 4, 32, shape->top, shape->bottom);
        bhi_page_between(page, "</rect></svg>", shape->name, "</li>\n");
    }
    fputs("</ul>\n", page->out);
}

void bhi_timeline_draw(const struct bhi_timeline *timeline, struct bhi_page *page) {
    struct bin *bins = calloc(timeline->bins + 1, sizeof *bins);
    char number[BHI_QUANTITY];
    if (!bins) {
        bhi_page_paragraph(page, "The timeline is missing: out of memory.");
        return;
    }
    fputs("<figure>\n", page->out);
    draw_patterns(page);
    for (size_t row = 0; row < timeline->row_count; row++) {
        draw_row(timeline, page, row, bins);
    }
    draw_axis(timeline, page);
    draw_legend(timeline, page);
    fprintf(page->out, "<figcaption>Point at a bar to read what it is. Bars that would be too "
                       "narrow to be seen are joined.");
    for (size_t i = 0; i < timeline->cut_count; i++) {
        fprintf(page->out, " %s without activity are left out at a dashed line.",
                bhi_quantity_time(number, timeline->cuts[i].length_ns));
    }
    if (timeline->left_out) {
        fprintf(page->out, " %s more are on rows that are not shown.",
                bhi_quantity_count(number, timeline->left_out));
    }
    fputs("</figcaption>\n</figure>\n", page->out);
    free(bins);
}

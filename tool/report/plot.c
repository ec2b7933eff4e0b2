#include "tool/report/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tool/quantity.h"

enum { WIDTH = 900, HEIGHT = 420, LEFT = 96, RIGHT = 16, TOP = 12, BOTTOM = 52, RADIUS = 5 };

/* -- series ---------------------------------------------------------------------------------- */

void bhi_plot_begin(struct bhi_plot *plot, const char *name, bool joined, bool plain) {
    if (plot->series_count < BHI_PLOT_SERIES) {
        plot->series[plot->series_count++] =
            (struct bhi_plot_series){.name = name, .joined = joined, .plain = plain};
    }
}

void bhi_plot_add(struct bhi_plot *plot, double x, double y) {
    struct bhi_plot_series *series = &plot->series[plot->series_count - 1];
    if (!(x > 0) || !(y > 0) || !isfinite(x) || !isfinite(y)) {
        return;
    }
    if (!BHI_ARRAY_RESERVE(series->points, series->capacity, series->count + 1)) {
        plot->failed = true;
        return;
    }
    size_t at = series->count++;
    for (; at && series->points[at - 1].x > x; at--) {
        series->points[at] = series->points[at - 1];
    }
    series->points[at] = (struct bhi_plot_point){x, y};
}

bool bhi_plot_has_points(const struct bhi_plot *plot) {
    for (size_t i = 0; i < plot->series_count; i++) {
        if (plot->series[i].count) {
            return true;
        }
    }
    return false;
}

void bhi_plot_fini(struct bhi_plot *plot) {
    for (size_t i = 0; i < plot->series_count; i++) {
        free(plot->series[i].points);
    }
    plot->series_count = 0;
}

/* -- axes ------------------------------------------------------------------------------------ */

/* What an axis shows, as logarithms to base 10. */
struct range {
    double low, high;
};

static struct range range_of(const struct bhi_plot *plot, bool of_y) {
    struct range range = {INFINITY, -INFINITY};
    for (size_t i = 0; i < plot->series_count; i++) {
        const struct bhi_plot_series *series = &plot->series[i];
        for (size_t k = 0; k < series->count; k++) {
            const double at = log10(of_y ? series->points[k].y : series->points[k].x);
            range.low = at < range.low ? at : range.low;
            range.high = at > range.high ? at : range.high;
        }
    }
    /* Some room around the points, and a decade at least, so that noise does not look large. */
    const double margin = 0.06 * (range.high - range.low);
    const double lack = 1 - (range.high - range.low + 2 * margin);
    range.low -= margin + (lack > 0 ? lack / 2 : 0);
    range.high += margin + (lack > 0 ? lack / 2 : 0);
    return range;
}

static double place_x(struct range range, double x) {
    return LEFT + (log10(x) - range.low) / (range.high - range.low) * (WIDTH - LEFT - RIGHT);
}

static double place_y(struct range range, double y) {
    return HEIGHT - BOTTOM -
           (log10(y) - range.low) / (range.high - range.low) * (HEIGHT - TOP - BOTTOM);
}

/* A line across the plot at |value|, and its label. */
static void draw_tick(const struct bhi_plot *plot, struct bhi_page *page, struct range range,
                      bool of_y, double value) {
    char text[BHI_QUANTITY];
    const char *label = bhi_quantity_si(text, value, of_y ? plot->y.unit : plot->x.unit);
    if (of_y) {
        const double y = place_y(range, value);
        fprintf(page->out,
                "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" />"
                "<text class=\"end\" x=\"%d\" y=\"%.1f\">",
                LEFT, WIDTH - RIGHT, y, y, LEFT - 8, y + 4);
    } else {
        const double x = place_x(range, value);
        fprintf(page->out,
                "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" />"
                "<text class=\"middle\" x=\"%.1f\" y=\"%d\">",
                x, x, TOP, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 18);
    }
    bhi_page_between(page, "", label, "</text>\n");
}

/* A tick at each power of ten; also at 2 and 5 of it where there are few, and at every second or
 * third where there are many. */
static void draw_ticks(const struct bhi_plot *plot, struct bhi_page *page, struct range range,
                       bool of_y) {
    static const double steps[] = {1, 2, 5};
    const int first = (int)floor(range.low), last = (int)ceil(range.high);
    const int every = (last - first) / 8 + 1;
    const size_t count = last - first <= 3 ? 3 : 1;
    for (int decade = first; decade <= last; decade += every) {
        for (size_t i = 0; i < count; i++) {
            const double value = steps[i] * pow(10, decade), at = log10(value);
            if (at >= range.low && at <= range.high) {
                draw_tick(plot, page, range, of_y, value);
            }
        }
    }
}

static void draw_names(const struct bhi_plot *plot, struct bhi_page *page) {
    const int middle = (HEIGHT - BOTTOM + TOP) / 2;
    fprintf(page->out, "<text class=\"middle\" x=\"%d\" y=\"%d\">", (LEFT + WIDTH - RIGHT) / 2,
            HEIGHT - 8);
    bhi_page_text(page, plot->x.name);
    fprintf(page->out,
            "</text>\n<text class=\"middle\" x=\"14\" y=\"%d\" transform=\"rotate(-90 14 %d)\">",
            middle, middle);
    bhi_page_between(page, "", plot->y.name, "</text>\n");
}

/* -- what is drawn --------------------------------------------------------------------------- */

static const enum bhi_page_tone tones[] = {BHI_PAGE_LOST, BHI_PAGE_GOOD, BHI_PAGE_INPUT,
                                           BHI_PAGE_WARN, BHI_PAGE_BAD};
enum { TONES = sizeof tones / sizeof tones[0], SHAPES = 4 };

static const char *class_of(const struct bhi_plot *plot, size_t index) {
    return plot->series[index].plain ? bhi_page_class(BHI_PAGE_DIM)
                                     : bhi_page_class(tones[index % TONES]);
}

/* A circle, a square, a triangle or a diamond: five colours and four shapes make twenty kinds. */
static void draw_shape(struct bhi_page *page, size_t index, double x, double y) {
    const double r = RADIUS;
    switch (index % SHAPES) {
    case 0:
        fprintf(page->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\">", x, y, r);
        break;
    case 1:
        fprintf(page->out, "<path d=\"M%.1f %.1fh%.1fv%.1fh-%.1fz\">", x - r, y - r, 2 * r, 2 * r,
                2 * r);
        break;
    case 2:
        fprintf(page->out, "<path d=\"M%.1f %.1fl%.1f %.1fh-%.1fz\">", x, y - r, r, 2 * r, 2 * r);
        break;
    default:
        fprintf(page->out, "<path d=\"M%.1f %.1fl%.1f %.1fl-%.1f %.1fl-%.1f -%.1fz\">", x, y - r, r,
                r, r, r, r, r);
    }
}

static void end_shape(struct bhi_page *page, size_t index) {
    fputs(index % SHAPES ? "</path>\n" : "</circle>\n", page->out);
}

static void draw_points(const struct bhi_plot *plot, struct bhi_page *page, size_t index,
                        struct range x, struct range y) {
    const struct bhi_plot_series *series = &plot->series[index];
    char at[BHI_QUANTITY], value[BHI_QUANTITY];
    for (size_t i = 0; i < series->count; i++) {
        const struct bhi_plot_point *point = &series->points[i];
        draw_shape(page, index, place_x(x, point->x), place_y(y, point->y));
        bhi_page_between(page, "<title>", series->name, ": ");
        bhi_page_text(page, bhi_quantity_si(value, point->y, plot->y.unit));
        bhi_page_between(page, " at ", bhi_quantity_si(at, point->x, plot->x.unit), "</title>");
        end_shape(page, index);
    }
}

static void draw_series(const struct bhi_plot *plot, struct bhi_page *page, size_t index,
                        struct range x, struct range y) {
    const struct bhi_plot_series *series = &plot->series[index];
    fprintf(page->out, "<g class=\"%s\">\n", class_of(plot, index));
    if (series->joined) {
        fputs("<polyline points=\"", page->out);
        for (size_t i = 0; i < series->count; i++) {
            fprintf(page->out, "%s%.1f,%.1f", i ? " " : "", place_x(x, series->points[i].x),
                    place_y(y, series->points[i].y));
        }
        fprintf(page->out, "\"%s />\n", series->plain ? " stroke-dasharray=\"6 4\"" : "");
    }
    if (!series->plain) {
        draw_points(plot, page, index, x, y);
    }
    fputs("</g>\n", page->out);
}

static void draw_legend(const struct bhi_plot *plot, struct bhi_page *page) {
    fputs("<ul class=\"legend\">\n", page->out);
    for (size_t i = 0; i < plot->series_count; i++) {
        const struct bhi_plot_series *series = &plot->series[i];
        if (!series->count) {
            continue;
        }
        fprintf(page->out,
                "<li class=\"%s\"><svg xmlns=\"http://www.w3.org/2000/svg\" "
                "viewBox=\"0 0 26 14\" aria-hidden=\"true\">",
                class_of(plot, i));
        if (series->joined) {
            fprintf(page->out, "<polyline points=\"0,7 26,7\"%s />",
                    series->plain ? " stroke-dasharray=\"6 4\"" : "");
        }
        if (!series->plain) {
            draw_shape(page, i, 13, 7);
            end_shape(page, i);
        }
        bhi_page_between(page, "</svg><bdi>", series->name, "</bdi></li>\n");
    }
    fputs("</ul>\n", page->out);
}

void bhi_plot_draw(const struct bhi_plot *plot, struct bhi_page *page, const char *caption) {
    if (plot->failed || !bhi_plot_has_points(plot)) {
        bhi_page_paragraph(page, plot->failed ? "The plot is missing: out of memory."
                                              : "There is nothing to plot.");
        return;
    }
    const struct range x = range_of(plot, false), y = range_of(plot, true);
    fprintf(page->out,
            "<figure class=\"plot\">\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
            "viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"",
            WIDTH, HEIGHT);
    bhi_page_between(page, "", caption, "\">\n");
    draw_ticks(plot, page, x, false);
    draw_ticks(plot, page, y, true);
    draw_names(plot, page);
    for (size_t i = 0; i < plot->series_count; i++) {
        draw_series(plot, page, i, x, y);
    }
    fputs("</svg>\n", page->out);
    draw_legend(plot, page);
    bhi_page_between(page, "<figcaption>", caption,
                     " Point at a mark to read its numbers.</figcaption>\n</figure>\n");
}

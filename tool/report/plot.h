/* A plot with two logarithmic axes: points of several series, joined by lines where a series wants
 * that.
 *
 *   {.x = …, .y = …} -> bhi_plot_add … -> bhi_plot_draw -> bhi_plot_fini
 */
#ifndef BHI_TOOL_REPORT_PLOT_H
#define BHI_TOOL_REPORT_PLOT_H

#include "tool/report/page.h"

enum { BHI_PLOT_SERIES = 12 };

struct bhi_plot_axis {
    const char *name;
    const char *unit; /* as for bhi_quantity_si */
};

/* A series differs from the others in colour, in the shape of its points and in its line. */
struct bhi_plot_series {
    const char *name; /* borrowed until the plot is drawn; any text */
    bool joined;      /* its points by a line; otherwise it has none */
    bool plain;       /* a line without points, in a quiet colour, to which others are compared */
    struct bhi_plot_point {
        double x, y;
    } *points; /* owned */
    size_t count, capacity;
};

struct bhi_plot {
    struct bhi_plot_axis x, y;
    struct bhi_plot_series series[BHI_PLOT_SERIES];
    size_t series_count;
    bool failed; /* out of memory */
};

/* Begins a series, to which bhi_plot_add adds. Those beyond BHI_PLOT_SERIES are left out; the
 * caller says so. */
void bhi_plot_begin(struct bhi_plot *plot, const char *name, bool joined, bool plain);
/* The points of a series are joined from left to right, in whatever order they are added. What is
 * not a number above 0 has no place on the axes, and is left out. */
void bhi_plot_add(struct bhi_plot *plot, double x, double y);
/* Is there a point? */
bool bhi_plot_has_points(const struct bhi_plot *plot);
/* Draws it as a figure with a legend and |caption|. */
void bhi_plot_draw(const struct bhi_plot *plot, struct bhi_page *page, const char *caption);
void bhi_plot_fini(struct bhi_plot *plot);

#endif

#include "judge/report/report.h"

#include <stdio.h>

#include "tool/report/plot.h"

enum { FASTEST = 8 }; /* candidates that a plot shows */

/* The size along the x axis: its number if it has one, otherwise the bytes of all arrays. */
static double size_of(const struct bhi_task *task, size_t size) {
    struct bhi_complaint complaint;
    double bytes = 0;
    if (task->parameter_count == 1) {
        return (double)task->sizes[size].values[0];
    }
    for (size_t i = 0; i < task->array_count; i++) {
        struct bhi_array form;
        if (bhi_task_shape(task, size, &task->arrays[i], &form, &complaint)) {
            bytes += (double)form.bytes;
        }
    }
    return bytes;
}

static struct bhi_plot_axis size_axis(const struct bhi_task *task) {
    return task->parameter_count == 1 ? (struct bhi_plot_axis){task->parameters[0], ""}
                                      : (struct bhi_plot_axis){"bytes of all arrays", "B"};
}

static double amount_of(const struct bhi_task *task, size_t size,
                        const struct bhi_task_number *number) {
    struct bhi_complaint complaint;
    uint64_t amount;
    return bhi_task_amount(task, size, number, &amount, &complaint) ? (double)amount : 0;
}

/* What is drawn: x and y of a time that a size took. */
typedef void adder(struct bhi_plot *plot, const struct bhi_task *task, size_t size, double ns);

/* Adds the reference, as it was measured beside the fastest candidate, and the fastest ones. */
static void add_all(struct bhi_plot *plot, const struct bhi_judge_report *report,
                    const struct bhi_candidate *const *ranked, bool joined, adder *add) {
    size_t shown = 0;
    for (size_t i = 0; i < report->count && shown < FASTEST; i++) {
        const struct bhi_candidate *candidate = ranked[i];
        if (!candidate->judgement.timing_count) {
            continue;
        }
        if (!shown++) {
            bhi_plot_begin(plot, "the reference", joined, joined);
            for (size_t k = 0; k < candidate->judgement.timing_count; k++) {
                add(plot, report->task, candidate->judgement.timings[k].size_index,
                    candidate->judgement.timings[k].reference_ns);
            }
        }
        bhi_plot_begin(plot, candidate->file.path, joined, false);
        for (size_t k = 0; k < candidate->judgement.timing_count; k++) {
            add(plot, report->task, candidate->judgement.timings[k].size_index,
                candidate->judgement.timings[k].median_ns);
        }
    }
}

static void add_time(struct bhi_plot *plot, const struct bhi_task *task, size_t size, double ns) {
    bhi_plot_add(plot, size_of(task, size), ns * 1e-9);
}

static void add_bandwidth(struct bhi_plot *plot, const struct bhi_task *task, size_t size,
                          double ns) {
    bhi_plot_add(plot, size_of(task, size), amount_of(task, size, &task->bytes) / (ns * 1e-9));
}

static void add_speed(struct bhi_plot *plot, const struct bhi_task *task, size_t size, double ns) {
    bhi_plot_add(plot, size_of(task, size), amount_of(task, size, &task->operations) / (ns * 1e-9));
}

static void add_roofline(struct bhi_plot *plot, const struct bhi_task *task, size_t size,
                         double ns) {
    const double operations = amount_of(task, size, &task->operations);
    bhi_plot_add(plot, operations / amount_of(task, size, &task->bytes), operations / (ns * 1e-9));
}

void bhi_judge_plot_times(struct bhi_page *page, const struct bhi_judge_report *report,
                          const struct bhi_candidate *const *ranked) {
    struct bhi_plot plot = {.x = size_axis(report->task), .y = {"time of a run", "s"}};
    add_all(&plot, report, ranked, true, add_time);
    bhi_plot_draw(&plot, page, "Time against size: the reference, and at most the eight fastest.");
    bhi_plot_fini(&plot);
}

/* The roof: as fast as memory allows, up to what can be computed. Both are the best that was
 * measured here: what the device can do at most is not known. */
static void add_roof(struct bhi_plot *plot) {
    double bandwidth = 0, speed = 0, least = 0, most = 0;
    for (size_t i = 0; i < plot->series_count; i++) {
        for (size_t k = 0; k < plot->series[i].count; k++) {
            const struct bhi_plot_point *point = &plot->series[i].points[k];
            const double rate = point->y / point->x; /* bytes in a second */
            bandwidth = rate > bandwidth ? rate : bandwidth;
            speed = point->y > speed ? point->y : speed;
            least = !(least > 0) || point->x < least ? point->x : least;
            most = point->x > most ? point->x : most;
        }
    }
    if (!(bandwidth > 0)) {
        return;
    }
    const double ridge = speed / bandwidth;
    bhi_plot_begin(plot, "the best of all", true, true);
    bhi_plot_add(plot, least / 2, bandwidth * least / 2 < speed ? bandwidth * least / 2 : speed);
    if (ridge > least / 2 && ridge < most * 2) {
        bhi_plot_add(plot, ridge, speed);
    }
    bhi_plot_add(plot, most * 2, bandwidth * most * 2 < speed ? bandwidth * most * 2 : speed);
}

static bool is_given(const struct bhi_task_number *number) {
    return number->expression || number->value;
}

void bhi_judge_plot_rates(struct bhi_page *page, const struct bhi_judge_report *report,
                          const struct bhi_candidate *const *ranked) {
    const struct bhi_task *task = report->task;
    const bool bytes = is_given(&task->bytes), operations = is_given(&task->operations);
    struct bhi_plot plot = {.x = size_axis(task)};
    const char *caption = "Bytes of the task in a second, against size.";
    if (!bytes && !operations) {
        return;
    }
    if (bytes && operations) {
        plot.x = (struct bhi_plot_axis){"operations for each byte", ""};
        plot.y = (struct bhi_plot_axis){"operations in a second", "op/s"};
        caption = "Roofline, by the bytes and operations that the task names. The dashed line is "
                  "the most bytes and the most operations in a second that were measured here.";
        add_all(&plot, report, ranked, false, add_roofline);
        add_roof(&plot);
    } else if (bytes) {
        plot.y = (struct bhi_plot_axis){"bytes in a second", "B/s"};
        add_all(&plot, report, ranked, true, add_bandwidth);
    } else {
        plot.y = (struct bhi_plot_axis){"operations in a second", "op/s"};
        caption = "Operations of the task in a second, against size.";
        add_all(&plot, report, ranked, true, add_speed);
    }
    bhi_page_section(page, bytes && operations ? "Roofline" : "Rates");
    bhi_plot_draw(&plot, page, caption);
    bhi_plot_fini(&plot);
}

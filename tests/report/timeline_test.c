/* Timelines: nothing is lost where bars are joined, stretches of nothing are cut out, and the page
 * stays small. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "html.h"
#include "tool/report/timeline.h"

#define SECOND UINT64_C(1000000000)

static struct bhi_complaint complaint;
static const struct bhi_timeline_kind kinds[] = {{"READY", BHI_PAGE_GOOD, 10, 24, 24, false},
                                                 {"bad", BHI_PAGE_BAD, 0, 24, 10, false},
                                                 {"aimed", BHI_PAGE_PLAIN, 0, 4, 4, true}};

static void open_timeline(struct bhi_timeline *timeline) {
    bhi_timeline_init(timeline, "attempt", kinds, 3);
}

/* Draws it into page.html and returns its size. */
static size_t draw(struct bhi_timeline *timeline) {
    struct bhi_page page;
    size_t size;
    assert_true(bhi_page_open(&page, "timeline"));
    bhi_timeline_draw(timeline, &page);
    assert_true(bhi_page_write(&page, "page.html", &complaint));
    free(html_read("page.html", &size));
    return size;
}

/* The sum of the numbers at the beginning of the titles of a class's bars. */
static uint64_t sum_of_titles(const char *class) {
    char start[64], *text = html_read("page.html", NULL);
    uint64_t sum = 0;
    snprintf(start, sizeof start, "<rect class=\"%s\"", class);
    for (const char *at = text; (at = strstr(at, start));) {
        const char *title = strstr(at, "<title>"), *end = strstr(at, "</rect>");
        assert_non_null(end);
        at = end;
        if (!title || title > end) /* the legend's */
            continue;
        uint64_t number = 0;
        for (title += strlen("<title>"); *title == ',' || (*title >= '0' && *title <= '9'); title++)
            if (*title != ',')
                number = number * 10 + (uint64_t)(*title - '0');
        sum += number;
    }
    free(text);
    return sum;
}

static void nothing_at_all(void **state) {
    (void)state;
    struct bhi_timeline timeline;
    open_timeline(&timeline);
    assert_true(bhi_timeline_layout(&timeline));
    draw(&timeline);
    html_check("page.html");
    bhi_timeline_fini(&timeline);
    assert_int_equal(remove("page.html"), 0);
}

static void narrow_bars_are_joined_and_counted(void **state) {
    (void)state;
    enum { COUNT = 100000, ROWS = 3 };
    struct bhi_timeline timeline;
    uint64_t bad = 0;
    open_timeline(&timeline);
    for (uint32_t row = 0; row < ROWS; row++)
        bhi_timeline_row(&timeline, row, "a stream", false);
    for (uint64_t i = 0; i < COUNT; i++) {
        bool is_bad = i % 97 == 0;
        bad += is_bad;
        bhi_timeline_add(&timeline, i % ROWS, is_bad, i * 1000, i * 1000 + 900, i);
    }
    assert_true(bhi_timeline_layout(&timeline));
    for (size_t i = 0; i < timeline.count; i++)
        assert_false(timeline.bars[i].wide);
    assert_true(draw(&timeline) < 400000);
    html_check("page.html");
    assert_int_equal(sum_of_titles("good"), COUNT - bad);
    assert_int_equal(sum_of_titles("bad"), bad);
    bhi_timeline_fini(&timeline);
    assert_int_equal(remove("page.html"), 0);
}

/* As many rows as there can be, nothing joined: the worst. */
static void size_is_bounded(void **state) {
    (void)state;
    struct bhi_timeline timeline;
    open_timeline(&timeline);
    for (uint32_t row = 0; row < BHI_TIMELINE_ROWS; row++)
        bhi_timeline_row(&timeline, row, "a stream", false);
    for (uint64_t i = 0; i < 2000; i++)
        for (uint32_t row = 0; row < BHI_TIMELINE_ROWS; row++)
            bhi_timeline_add(&timeline, row, i % 3, i * SECOND, i * SECOND + SECOND / 10, i);
    for (uint32_t row = 0; row < 10; row++)
        bhi_timeline_add(&timeline, BHI_TIMELINE_ROWS + row, 0, 0, SECOND, 0);
    assert_true(bhi_timeline_layout(&timeline));
    assert_int_equal(timeline.left_out, 10);
    assert_true(draw(&timeline) < 4000000);
    html_check("page.html");
    bhi_timeline_fini(&timeline);
    assert_int_equal(remove("page.html"), 0);
}

static void wide_bars_have_their_own_titles(void **state) {
    (void)state;
    struct bhi_timeline timeline;
    open_timeline(&timeline);
    bhi_timeline_row(&timeline, 0, "a stream", false);
    bhi_timeline_add(&timeline, 0, 0, 0, 5 * SECOND, 0);
    bhi_timeline_add(&timeline, 0, 1, 4 * SECOND, 9 * SECOND, 1); /* overlaps */
    bhi_timeline_add(&timeline, 0, 0, 5 * SECOND, 10 * SECOND, 2);
    bhi_timeline_add(&timeline, 0, 2, 0, 10 * SECOND, 3); /* a mark: makes no room */
    assert_true(bhi_timeline_layout(&timeline));
    assert_int_equal(timeline.bands[0], 2);
    assert_int_equal(timeline.bars[0].band, 0);
    assert_int_equal(timeline.bars[1].band, 1);
    assert_int_equal(timeline.bars[2].band, 0);
    for (size_t i = 0; i < timeline.count; i++)
        assert_true(timeline.bars[i].wide);
    bhi_timeline_title(&timeline, 1, "\"><script>alert(1)</script>");
    draw(&timeline);
    html_check("page.html");
    char *title = html_path("page.html", "string(//s:rect[@class=\"bad\"]/s:title)");
    assert_string_equal(title, "\"><script>alert(1)</script>");
    free(title);
    char *label = html_path("page.html", "string(//s:svg/@aria-label)");
    assert_string_equal(label, "a stream, 2 READY, 1 bad, 1 aimed");
    free(label);
    bhi_timeline_fini(&timeline);
    assert_int_equal(remove("page.html"), 0);
}

/* A batch that was taken up again the next day. */
static void long_gaps_are_cut_out(void **state) {
    (void)state;
    const uint64_t day = 86400 * SECOND;
    struct bhi_timeline timeline;
    open_timeline(&timeline);
    bhi_timeline_row(&timeline, 0, "a stream", false);
    bhi_timeline_add(&timeline, 0, 0, day, day + 10 * SECOND, 0);
    bhi_timeline_add(&timeline, 0, 0, day + 11 * SECOND, day + 20 * SECOND, 1);
    bhi_timeline_add(&timeline, 0, 0, 2 * day, 2 * day + 30 * SECOND, 2);
    assert_true(bhi_timeline_layout(&timeline));
    assert_int_equal(timeline.cut_count, 1);
    assert_int_equal(timeline.from_ns, day);
    assert_true(timeline.shown_ns < 52 * SECOND && timeline.shown_ns > 49 * SECOND);
    assert_int_equal(bhi_timeline_place(&timeline, day), 0);
    assert_int_equal(bhi_timeline_place(&timeline, 0), 0);
    assert_int_equal(bhi_timeline_place(&timeline, day + 15 * SECOND), 15 * SECOND);
    assert_int_equal(bhi_timeline_place(&timeline, 2 * day + 30 * SECOND), timeline.shown_ns);
    assert_int_equal(bhi_timeline_place(&timeline, UINT64_MAX), timeline.shown_ns);
    assert_int_equal(bhi_timeline_time(&timeline, timeline.shown_ns), day + 30 * SECOND);
    assert_int_equal(bhi_timeline_time(&timeline, 15 * SECOND), 15 * SECOND);
    draw(&timeline);
    html_check("page.html");
    assert_int_equal(html_count("page.html", "//s:line[@class=\"cut\"]"), 1);
    bhi_timeline_fini(&timeline);
    assert_int_equal(remove("page.html"), 0);
}

/* Times that anybody may have written. */
static void absurd_times(void **state) {
    (void)state;
    struct bhi_timeline timeline;
    open_timeline(&timeline);
    bhi_timeline_row(&timeline, 0, "a stream", false);
    for (unsigned i = 0; i < 4000; i++) {
        bhi_timeline_add(&timeline, 0, 0, 0, UINT64_MAX, i);
        bhi_timeline_add(&timeline, 0, 1, UINT64_MAX, 0, i); /* ends before it begins */
        bhi_timeline_add(&timeline, 0, 1, UINT64_MAX - i, UINT64_MAX, i);
    }
    assert_true(bhi_timeline_layout(&timeline));
    size_t wide = 0;
    for (size_t i = 0; i < timeline.count; i++)
        wide += timeline.bars[i].wide;
    assert_true(wide <= 3000);
    draw(&timeline);
    html_check("page.html");
    assert_int_equal(sum_of_titles("good") + sum_of_titles("bad") + wide, timeline.count);
    bhi_timeline_fini(&timeline);
    assert_int_equal(remove("page.html"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_at_all),
        cmocka_unit_test(narrow_bars_are_joined_and_counted),
        cmocka_unit_test(size_is_bounded),
        cmocka_unit_test(wide_bars_have_their_own_titles),
        cmocka_unit_test(long_gaps_are_cut_out),
        cmocka_unit_test(absurd_times),
    };
    return cmocka_run_group_tests(tests, html_enter_folder, html_leave_folder);
}

/* Timelines: nothing is lost where bars are joined, stretches of nothing are cut out, and the page
 * stays small. */
#include "harness.h"
#include <stdio.h>

#include "html.h"
#include "tool/report/timeline.h"

#define SECOND UINT64_C(1000000000)

static struct bhi_complaint complaint;
static const struct bhi_timeline_kind kinds[] = {{"READY", BHI_PAGE_GOOD, 10, 24, 24, false},
                                                 {"bad", BHI_PAGE_BAD, 0, 24, 10, false},
                                                 {"aimed", BHI_PAGE_PLAIN, 0, 4, 4, true}};

static struct bhi_timeline timeline;

static void enter(void) {
    html_enter_folder();
    bhi_timeline_init(&timeline, "attempt", kinds, 3);
}

static void leave(void) {
    bhi_timeline_fini(&timeline);
    html_leave_folder();
}

/* Draws it into page.html, looks at that and returns its size. */
static size_t draw(void) {
    struct bhi_page page;
    size_t size;
    BHT_TRUE(bhi_page_open(&page, "timeline"));
    bhi_timeline_draw(&timeline, &page);
    BHT_TRUE(bhi_page_write(&page, "page.html", &complaint));
    html_check();
    (void)html_read("page.html", &size);
    return size;
}

/* The sum of the numbers at the beginning of the titles of a class's bars. */
static uint64_t sum_of_titles(const char *class) {
    char start[64];
    const char *text = html_read("page.html", NULL);
    uint64_t sum = 0;
    snprintf(start, sizeof start, "<rect class=\"%s\"", class);
    for (const char *at = text; (at = strstr(at, start));) {
        const char *title = strstr(at, "<title>"), *end = strstr(at, "</rect>");
        BHT_NE(end, NULL);
        at = end;
        if (!title || title > end) { /* the legend's */
            continue;
        }
        uint64_t number = 0;
        for (title += strlen("<title>"); *title == ',' || (*title >= '0' && *title <= '9');
             title++) {
            if (*title != ',') {
                number = number * 10 + (uint64_t)(*title - '0');
            }
        }
        sum += number;
    }
    return sum;
}

TEST(nothing_at_all) {
    BHT_TRUE(bhi_timeline_layout(&timeline));
    draw();
}

TEST(narrow_bars_are_joined_and_counted) {
    enum { COUNT = 100000, ROWS = 3 };
    uint64_t bad = 0;
    for (uint32_t row = 0; row < ROWS; row++) {
        bhi_timeline_row(&timeline, row, "a stream", false);
    }
    for (uint64_t i = 0; i < COUNT; i++) {
        bool is_bad = i % 97 == 0;
        bad += is_bad;
        bhi_timeline_add(&timeline, i % ROWS, is_bad, i * 1000, i * 1000 + 900, i);
    }
    BHT_TRUE(bhi_timeline_layout(&timeline));
    for (size_t i = 0; i < timeline.count; i++) {
        BHT_TRUE(!timeline.bars[i].wide);
    }
    BHT_LT(draw(), 400000);
    BHT_EQ(sum_of_titles("good"), COUNT - bad);
    BHT_EQ(sum_of_titles("bad"), bad);
}

/* As many rows as there can be, nothing joined: the worst. */
TEST(size_is_bounded) {
    for (uint32_t row = 0; row < BHI_TIMELINE_ROWS; row++) {
        bhi_timeline_row(&timeline, row, "a stream", false);
    }
    for (uint64_t i = 0; i < 2000; i++) {
        for (uint32_t row = 0; row < BHI_TIMELINE_ROWS; row++) {
            bhi_timeline_add(&timeline, row, i % 3, i * SECOND, i * SECOND + SECOND / 10, i);
        }
    }
    for (uint32_t row = 0; row < 10; row++) {
        bhi_timeline_add(&timeline, BHI_TIMELINE_ROWS + row, 0, 0, SECOND, 0);
    }
    BHT_TRUE(bhi_timeline_layout(&timeline));
    BHT_EQ(timeline.left_out, 10);
    BHT_LT(draw(), 4000000);
}

TEST(wide_bars_have_their_own_titles) {
    bhi_timeline_row(&timeline, 0, "a stream", false);
    bhi_timeline_add(&timeline, 0, 0, 0, 5 * SECOND, 0);
    bhi_timeline_add(&timeline, 0, 1, 4 * SECOND, 9 * SECOND, 1); /* overlaps */
    bhi_timeline_add(&timeline, 0, 0, 5 * SECOND, 10 * SECOND, 2);
    bhi_timeline_add(&timeline, 0, 2, 0, 10 * SECOND, 3); /* a mark: makes no room */
    BHT_TRUE(bhi_timeline_layout(&timeline));
    BHT_EQ(timeline.bands[0], 2);
    BHT_EQ(timeline.bars[0].band, 0);
    BHT_EQ(timeline.bars[1].band, 1);
    BHT_EQ(timeline.bars[2].band, 0);
    for (size_t i = 0; i < timeline.count; i++) {
        BHT_TRUE(timeline.bars[i].wide);
    }
    bhi_timeline_title(&timeline, 1, "\"><script>alert(1)</script>");
    draw();
    html_expect("string(//s:rect[@class=`bad`]/s:title)", "\"><script>alert(1)</script>");
    html_expect("string(//s:svg/@aria-label)", "a stream, 2 READY, 1 bad, 1 aimed");
}

/* A batch that was taken up again the next day. */
TEST(long_gaps_are_cut_out) {
    const uint64_t day = 86400 * SECOND;
    bhi_timeline_row(&timeline, 0, "a stream", false);
    bhi_timeline_add(&timeline, 0, 0, day, day + 10 * SECOND, 0);
    bhi_timeline_add(&timeline, 0, 0, day + 11 * SECOND, day + 20 * SECOND, 1);
    bhi_timeline_add(&timeline, 0, 0, 2 * day, 2 * day + 30 * SECOND, 2);
    BHT_TRUE(bhi_timeline_layout(&timeline));
    BHT_EQ(timeline.cut_count, 1);
    BHT_EQ(timeline.from_ns, day);
    BHT_TRUE(timeline.shown_ns < 52 * SECOND && timeline.shown_ns > 49 * SECOND);
    BHT_EQ(bhi_timeline_place(&timeline, day), 0);
    BHT_EQ(bhi_timeline_place(&timeline, 0), 0);
    BHT_EQ(bhi_timeline_place(&timeline, day + 15 * SECOND), 15 * SECOND);
    BHT_EQ(bhi_timeline_place(&timeline, 2 * day + 30 * SECOND), timeline.shown_ns);
    BHT_EQ(bhi_timeline_place(&timeline, UINT64_MAX), timeline.shown_ns);
    BHT_EQ(bhi_timeline_time(&timeline, timeline.shown_ns), day + 30 * SECOND);
    BHT_EQ(bhi_timeline_time(&timeline, 15 * SECOND), 15 * SECOND);
    draw();
    BHT_EQ(html_count("//s:line[@class=`cut`]"), 1);
}

/* Times that anybody may have written. */
TEST(absurd_times) {
    bhi_timeline_row(&timeline, 0, "a stream", false);
    for (unsigned i = 0; i < 4000; i++) {
        bhi_timeline_add(&timeline, 0, 0, 0, UINT64_MAX, i);
        bhi_timeline_add(&timeline, 0, 1, UINT64_MAX, 0, i); /* ends before it begins */
        bhi_timeline_add(&timeline, 0, 1, UINT64_MAX - i, UINT64_MAX, i);
    }
    BHT_TRUE(bhi_timeline_layout(&timeline));
    size_t wide = 0;
    for (size_t i = 0; i < timeline.count; i++) {
        wide += timeline.bars[i].wide;
    }
    BHT_LE(wide, 3000);
    draw();
    BHT_EQ(sum_of_titles("good") + sum_of_titles("bad") + wide, timeline.count);
}

BHT_AT_START(bht_around(enter, leave))

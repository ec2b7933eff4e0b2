/* What is said of a chaos run to a browser. */
#include "harness.h"
#include <stdio.h>

#include "chaos_sample.h"
#include "html.h"

static struct bhi_complaint complaint;

static void write_page(const struct bhi_history *history, const struct bhi_chaos_result *result) {
    BHT_TRUE(bhi_chaos_report_html("page.html", history, result, &complaint));
    html_check();
}

TEST(page_of_a_valid_run) {
    struct bhi_history history = sample();
    struct bhi_chaos_result result = good();
    write_page(&history, &result);
    html_expect("string(/h:html/h:head/h:title)", "Chaos, seed 18446744073709551615");
    html_expect("string(//h:p[@class=`verdict good`]/h:b)", "\xE2\x9C\x93 valid");
    /* Two streams, kills. */
    BHT_EQ(html_count("//h:div[starts-with(@class,`row`)]"), 3);
    html_expect("string(//h:div[@class=`row`][2]/s:svg/@aria-label)",
                "stream 1, 1 poisoned: hit itself, 1 fault aimed at the stream");
    html_expect("string(//s:rect[@class=`bad`]/s:title)",
                "operation 2: poisoned, WORKER_SIGNAL, process 4711, from 4.50 ms, took 1.00 ms");
    /* The histogram: from the first bucket with something in it to the last. */
    BHT_EQ(html_count("//h:table[h:caption=`Recovery times`]/h:tbody/h:tr"),
           BHI_RECOVERY_BUCKETS - 3);
    html_expect("string(//h:table[h:caption=`Recovery times`]/h:tbody/h:tr[1]/h:td[3])", "296");
    html_expect("string(//h:table[h:caption=`Faults by kind`]/h:tbody/h:tr[1]/h:td[2])", "298");
}

TEST(page_of_an_invalid_run) {
    struct bhi_history history = sample();
    struct bhi_chaos_result result = bad();
    write_page(&history, &result);
    html_expect("string(//h:p[@class=`verdict bad`]/h:b)", "\xE2\x9C\x97 invalid");
    BHT_EQ(html_count("//h:table[h:caption=`Findings`]/h:tbody/h:tr"), 2);
    html_expect("string(//h:table[h:caption=`Findings`]/h:tbody/h:tr[2]/h:td[4])",
                "operation 1 is READY, but <b>its</b> output ? is wrong");
}

TEST(page_of_nothing) {
    struct bhi_history history = {.count = 0};
    struct bhi_chaos_result result = {.verdict = BHI_CHAOS_UNKNOWN};
    write_page(&history, &result);
    html_expect("string(//h:p[@class=`verdict warn`]/h:b)", "? unknown");
}

/* Histories can be read from files that anybody wrote. */
TEST(page_of_an_absurd_history) {
    struct bhi_record absurd[] = {
        {.kind = BHI_RECORD_END, .op = 99, .end = {.lost = true}}, /* of nothing */
        {.kind = BHI_RECORD_OP, .op = UINT64_MAX, .stream = UINT32_MAX},
        {.kind = BHI_RECORD_END, .op = UINT64_MAX, .at_ns = UINT64_MAX, .end = {.lost = true}},
        {.kind = BHI_RECORD_OP, .op = 1},
        {.kind = BHI_RECORD_END,
         .op = 1,
         .end = {.state = BH_EVENT_POISONED, .started_ns = UINT64_MAX, .ended_ns = 1, .hops = 1}},
        {.kind = BHI_RECORD_REFUSED, .stream = UINT32_MAX},
        {.kind = BHI_RECORD_REFUSED, .stream = 0, .at_ns = UINT64_MAX},
        {.kind = BHI_RECORD_STALL, .at_ns = 5, .stall = {.lasted_ns = UINT64_MAX}},
        {.kind = BHI_RECORD_FAULT,
         .at_ns = UINT64_MAX,
         .stream = UINT32_MAX,
         .fault = {.kind = BHI_FAULT_SLOW, .lasts_ns = UINT64_MAX, .pid_count = 2}},
        {.kind = BHI_RECORD_FAULT, .fault = {.kind = BHI_FAULT_FULL, .missed = true}},
        {.kind = BHI_RECORD_SAMPLE, .at_ns = UINT64_MAX, .sample = {.rss_bytes = UINT64_MAX}},
        {.kind = BHI_RECORD_SAMPLE, .at_ns = 0},
        {.kind = BHI_RECORD_HEALED, .at_ns = 0}};
    struct bhi_history history = sample();
    history.records = absurd;
    history.count = BHT_COUNT(absurd);
    snprintf(history.header.driver, sizeof history.header.driver, "</dd><script>\xFF");
    struct bhi_chaos_result result = bad();
    for (uint32_t streams = 0; streams < 3; streams++) {
        history.header.streams = streams == 2 ? UINT32_MAX : streams;
        write_page(&history, &result);
    }
}

TEST(page_of_a_long_run_is_small) {
    enum { COUNT = 200000 };
    struct bhi_record *all = bht_own(calloc(COUNT, sizeof *all));
    for (uint64_t i = 0; i < COUNT; i += 4) {
        uint64_t at = i * 100000;
        all[i] = (struct bhi_record){
            .kind = BHI_RECORD_OP, .at_ns = at, .op = i + 1, .stream = i / 4 % BHI_CHAOS_STREAMS};
        all[i + 1] =
            (struct bhi_record){.kind = BHI_RECORD_END,
                                .at_ns = at + 300000,
                                .op = i + 1,
                                .end = {.state = i / 4 % 7 ? BH_EVENT_READY : BH_EVENT_POISONED,
                                        .submitted_ns = at,
                                        .started_ns = at + 1,
                                        .ended_ns = at + 200000}};
        all[i + 2] = (struct bhi_record){
            .kind = BHI_RECORD_FAULT,
            .at_ns = at + 1000,
            .stream = i / 4 % BHI_CHAOS_STREAMS,
            .fault = {.number = i, .kind = (enum bhi_fault_kind)(i / 4 % BHI_FAULT_KINDS)}};
        all[i + 3] = (struct bhi_record){.kind = BHI_RECORD_SAMPLE,
                                         .at_ns = at + 1000,
                                         .sample = {.rss_bytes = 1 << 20, .descriptors = 40}};
    }
    struct bhi_history history = sample();
    struct bhi_chaos_result result = bad();
    history.records = all;
    history.count = COUNT;
    history.header.streams = BHI_CHAOS_STREAMS;
    write_page(&history, &result);
    size_t size;
    (void)html_read("page.html", &size);
    BHT_LT(size, 4000000);
    BHT_EQ(html_count("//h:div[starts-with(@class,`row`)]"),
           BHI_CHAOS_STREAMS + BHI_FAULT_KINDS + 3);
}

TEST(refused_path_leaves_nothing) {
    struct bhi_history history = sample();
    struct bhi_chaos_result result = good();
    BHT_TRUE(!bhi_chaos_report_html("nowhere/page.html", &history, &result, &complaint));
    BHT_STR_HAS(complaint.text, "No such file");
    BHT_EQ(html_count_files(), 0);
}

BHT_AT_START(bht_around(html_enter_folder, html_leave_folder))

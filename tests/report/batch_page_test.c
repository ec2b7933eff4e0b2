/* What is said of a batch to a browser. */
#include "harness.h"

#include "batch_sample.h"
#include "html.h"

static struct bhi_complaint complaint;

static void write_page(struct bhi_queue *queue, const struct bhi_report_run *what) {
    BHT_TRUE(bhi_report_html("page.html", queue, what, &complaint));
    html_check();
}

TEST(page_says_it_all) {
    write_page(&mixed, &run);
    html_expect("string(/h:html/h:head/h:title)", "Batch jobs.jsonl");
    /* Tiles: jobs, done, failed, quarantined, waiting, attempts, those of this run, took, rate. */
    BHT_EQ(html_count("//h:li[@class][h:b]"), 9);
    html_expect("string(//h:li[h:span=`failed`]/h:b)", "2");
    /* Two streams and a row of what was refused before it had one; each attempt is a bar. */
    BHT_EQ(html_count("//h:div[starts-with(@class,`row`)]"), 3);
    BHT_EQ(html_count("//s:svg[@role=`img`]/s:rect"), 5);
    html_expect("string(//s:svg[@role=`img`][1]/@aria-label)", "stream 0, 1 READY");
    html_expect("string(//s:svg[@role=`img`]/s:rect[@class=`good`]/s:title)",
                "prepare, attempt 1: READY, from 0 us, took 1.00 s");
    /* Failures: the one that began it comes first. */
    BHT_EQ(html_count("//h:table[starts-with(h:caption,`Jobs that`)]/"
                      "h:tbody/h:tr"),
           3);
    html_expect("string(//h:table[starts-with(h:caption,`Jobs that`)]/h:tbody/h:tr[1]/h:td[1])",
                "bad");
    html_expect("string(//h:table[starts-with(h:caption,`Jobs that`)]/h:tbody/h:tr[2]/h:td[9])",
                "<script>alert(1)</script>\"'&??[31m?]]>");
    html_expect("string(//h:table[starts-with(h:caption,`Jobs that`)]/h:tbody/h:tr[1]/h:td[3])",
                "crash_shared.spv");
    html_expect("string(//h:table[h:caption=`All jobs`]/h:tbody/h:tr[3]/h:td[@data-h=`Kernel`])",
                "crash_shared.spv");
    /* As long as its bar. */
    html_expect("string(//h:table[h:caption=`All jobs`]/h:tbody/h:tr[1]/h:td[@data-h=`Took`])",
                "1.00 s");
    BHT_EQ(html_count("//h:p[contains(.,`device and memory`)]"), 0);
    /* An id has room, wherever it stands. */
    BHT_EQ(html_count("//h:table[starts-with(h:caption,`Jobs that`)]/"
                      "h:tbody/h:tr/h:td[8][@class=`id`]"
                      "[@data-h=`Origin`]"),
           3);
    BHT_EQ(html_count("//h:table[h:caption=`All jobs`]/h:tbody/h:tr"), 5);
}

TEST(page_names_devices) {
    struct bhi_queue spread = spread_over("gpu:0", "gpu:1");
    write_page(&spread, &run);
    html_expect("string(//s:svg[@role=`img`]/s:rect[@class=`good`]/s:title)",
                "prepare, attempt 1 on gpu:0: READY, from 0 us, took 1.00 s");
    html_expect("string(//h:table[starts-with(h:caption,`Jobs that`)]/h:tbody/h:tr[1]/"
                "h:td[@data-h=`Device`])",
                "gpu:1");
    html_expect("string(//h:table[h:caption=`All jobs`]/h:tbody/h:tr[1]/"
                "h:td[@data-h=`Device`])",
                "gpu:0");
    html_expect("string(//h:table[h:caption=`All jobs`]/h:tbody/h:tr[5]/"
                "h:td[@data-h=`Device`])",
                "-");
    BHT_EQ(html_count("//*[contains(text(),`gpu:0 2, gpu:1 1`)]"), 1);
    struct bhi_queue one = spread_over("gpu:0", "gpu:0");
    write_page(&one, &run);
    BHT_EQ(html_count("//*[contains(text(),`gpu:0`)]"), 0);
}

/* Stream 1 is of a second kind where each has one. */
TEST(page_of_two_kinds) {
    struct bhi_report_run two = run;
    two.streams = 1;
    write_page(&mixed, &two);
    BHT_EQ(html_count("//h:p[starts-with(.,`There is 1 stream for each "
                      "combination of device and memory`)]"),
           1);
}

TEST(page_of_nothing) {
    struct bhi_queue empty = {.job_count = 0};
    write_page(&empty, &run);
    BHT_EQ(html_count("//h:table"), 0);
}

TEST(page_of_one_job) {
    struct bhi_queue one = mixed;
    one.job_count = one.attempt_count = 1;
    write_page(&one, &run);
    BHT_EQ(html_count("//s:svg[@role=`img`]/s:rect"), 1);
}

/* Every state and every status, known or not. */
TEST(page_of_every_status) {
    enum { COUNT = 80 };
    struct bhi_job_record jobs[COUNT];
    struct bhi_attempt_record attempts[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        jobs[i] = (struct bhi_job_record){.number = i + 1,
                                          .id = "x",
                                          .line = i + 1,
                                          .state = (enum bhi_job_state)(i % BHI_JOB_STATES),
                                          .status = (bh_status)i,
                                          .origin = "",
                                          .message = ""};
        attempts[i] = (struct bhi_attempt_record){.job = i + 1,
                                                  .id = "x",
                                                  .attempt = 1,
                                                  .started = true,
                                                  .stream = i * 1000,
                                                  .started_ns = 1,
                                                  .ended_ns = i,
                                                  .verdict = {.status = (bh_status)i}};
    }
    struct bhi_queue queue = {jobs, COUNT, attempts, COUNT, false};
    write_page(&queue, &run);
}

TEST(page_of_many_is_small) {
    enum { COUNT = 100000 };
    static const char long_message[] =
        "a message of the usual length: the worker was killed by a signal while it ran the kernel "
        "with the name of some forty characters, and its dependents were poisoned";
    struct bhi_job_record *jobs = bht_own(calloc(COUNT, sizeof *jobs));
    struct bhi_attempt_record *attempts = bht_own(calloc(COUNT, sizeof *attempts));
    for (size_t i = 0; i < COUNT; i++) {
        bool bad = i % 3 == 0;
        uint64_t begin = UINT64_C(1790000000000000000) + i * 500000;
        jobs[i] = (struct bhi_job_record){.number = i + 1,
                                          .id = "simulation-2026-11-22-of-something",
                                          .line = i + 1,
                                          .state = bad ? BHI_JOB_FAILED : BHI_JOB_DONE,
                                          .attempts = 1,
                                          .started_ns = begin,
                                          .ended_ns = begin + 900000,
                                          .origin = "",
                                          .status = bad ? BH_WORKER_SIGNAL : BH_OK,
                                          .message = bad ? long_message : ""};
        attempts[i] =
            (struct bhi_attempt_record){.job = i + 1,
                                        .id = jobs[i].id,
                                        .attempt = 1,
                                        .started = true,
                                        .stream = i % 4,
                                        .started_ns = begin,
                                        .ended_ns = begin + 900000,
                                        .guilty = bad,
                                        .verdict = {.status = bad ? BH_WORKER_SIGNAL : BH_OK}};
    }
    struct bhi_queue queue = {jobs, COUNT, attempts, COUNT, false};
    write_page(&queue, &run);
    size_t size;
    const char *text = html_read("page.html", &size);
    BHT_LT(size, 3000000);
    BHT_STR_HAS(text, "And 32,334 more, which --json lists.");
    BHT_STR_HAS(text, "The first 5,000 of 100,000");
    BHT_EQ(html_count("//h:table[h:caption=`All jobs`]/h:tbody/h:tr"), 5000);
}

TEST(unreadable_leaves_nothing) {
    struct bhi_queue queue = mixed;
    queue.unreadable = true;
    BHT_TRUE(!bhi_report_html("page.html", &queue, &run, &complaint));
    BHT_STR_EQ(complaint.text, "the state in jobs.jsonl.state cannot be read");
    BHT_EQ(html_count_files(), 0);
    BHT_TRUE(!bhi_report_html("nowhere/page.html", &mixed, &run, &complaint));
    BHT_STR_HAS(complaint.text, "No such file");
}

BHT_AT_START(bht_around(html_enter_folder, html_leave_folder))

/* How far a batch is, where standard error is no terminal: a line every ten seconds of a clock that
 * only this test moves. */
#include "support.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "batch/runner/progress.h"

static uint64_t now_ns = UINT64_C(1000000000000);

BHT_WRAP(int, clock_gettime, clockid_t clock, struct timespec *time) {
    time->tv_sec = (time_t)(now_ns / 1000000000u);
    time->tv_nsec = (long)(now_ns % 1000000000u);
    return 0;
}

struct capture {
    FILE *file;
    int saved;
};

/* What goes to standard error. */
static struct capture begin_capture(void) {
    struct capture capture = {.file = tmpfile(), .saved = dup(STDERR_FILENO)};
    BHT_NE(capture.file, NULL);
    BHT_TRUE(capture.saved >= 0 && dup2(fileno(capture.file), STDERR_FILENO) >= 0);
    return capture;
}

static void end_capture(struct capture *capture, char *told, size_t size) {
    BHT_GE(dup2(capture->saved, STDERR_FILENO), 0);
    close(capture->saved);
    BHT_EQ(fseek(capture->file, 0, SEEK_SET), 0);
    told[fread(told, 1, size - 1, capture->file)] = '\0';
    fclose(capture->file);
}

/* What is told from the beginning until |seconds| later, where the runner asks ten times a second,
 * as it does. */
static void expect_told(const struct bhi_queue_counts *counts, unsigned seconds, bool ends,
                        const char *expected) {
    struct bhi_batch_progress progress;
    char told[1024];
    struct capture capture = begin_capture();
    bhi_progress_begin(&progress);
    struct bhi_queue_counts none = {.of = {[BHI_JOB_WAITING] = counts->total},
                                    .total = counts->total};
    bhi_progress_update(&progress, &none);
    for (unsigned tick = 0; tick < 10 * seconds; tick++) {
        now_ns += 100000000u;
        bhi_progress_update(&progress, counts);
    }
    if (ends) {
        bhi_progress_end(&progress, counts);
    }
    end_capture(&capture, told, sizeof told);
    BHT_STR_EQ(told, expected);
}

TEST(test_heartbeat) {
    struct bhi_queue_counts counts = {.of = {[BHI_JOB_SUBMITTED] = 4,
                                             [BHI_JOB_WAITING] = 13,
                                             [BHI_JOB_RUNNING] = 2,
                                             [BHI_JOB_DONE] = 17,
                                             [BHI_JOB_FAILED] = 3,
                                             [BHI_JOB_QUARANTINED] = 1},
                                      .total = 40};
    expect_told(&counts, 9, false, "");
    expect_told(&counts, 10, false,
                "9 s left, 17 of 40 done, 3 failed, 1 quarantined, 2 running, 17 waiting\n");
    /* What holds it up comes before what fits no more. */
    expect_told(&counts, 35, false,
                "9 s left, 17 of 40 done, 3 failed, 1 quarantined, 2 running, 17 waiting\n"
                "18 s left, no job has ended for 19 s, 17 of 40 done, 3 failed, 1 quarantined\n"
                "27 s left, no job has ended for 29 s, 17 of 40 done, 3 failed, 1 quarantined\n");
    /* It ended where it is, as with --halt: what waits takes no time any more. */
    expect_told(&counts, 9, true,
                "17 of 40 done, 3 failed, 1 quarantined, 2 running, 17 waiting, 2.33 a second\n");
    /* Nothing has ended yet: that is said, too. */
    counts = (struct bhi_queue_counts){.of = {[BHI_JOB_RUNNING] = 1}, .total = 1};
    expect_told(&counts, 20, false,
                "no job has ended for 10 s, 0 of 1 done, 0 failed, 1 running, 0 waiting\n"
                "no job has ended for 20 s, 0 of 1 done, 0 failed, 1 running, 0 waiting\n");
}

/* The last line that is told when |tell| has been called for each of |seconds|. */
static void expect_last(unsigned seconds,
                        void (*tell)(struct bhi_batch_progress *progress, unsigned second,
                                     struct bhi_queue_counts *counts),
                        const char *expected) {
    struct bhi_queue_counts counts = {.of = {[BHI_JOB_WAITING] = 10000}, .total = 10000};
    struct bhi_batch_progress progress;
    struct capture capture = begin_capture();
    char told[4096];
    bhi_progress_begin(&progress);
    bhi_progress_update(&progress, &counts);
    for (unsigned second = 0; second < seconds; second++) {
        now_ns += 1000000000u;
        tell(&progress, second, &counts);
        bhi_progress_update(&progress, &counts);
    }
    end_capture(&capture, told, sizeof told);
    told[strlen(told) - 1] = '\0'; /* the last newline */
    const char *last = strrchr(told, '\n');
    BHT_STR_EQ(last ? last + 1 : told, expected);
}

/* 90 a second for a minute and a half, then one. */
static void slow_down(struct bhi_batch_progress *progress, unsigned second,
                      struct bhi_queue_counts *counts) {
    const uint64_t ended = second < 90 ? 90 : 1;
    counts->of[BHI_JOB_DONE] += ended;
    counts->of[BHI_JOB_WAITING] -= ended;
}

TEST(test_the_rate_is_of_the_last_minute) {
    BHT_EQ(setenv("COLUMNS", "100", 1), 0);
    expect_last(90, slow_down,
                "21 s left, 8,100 of 10,000 done, 0 failed, 0 running, 1,900 waiting, "
                "90.0 a second");
    expect_last(160, slow_down,
                "30 min 30 s left, 8,170 of 10,000 done, 0 failed, 0 running, 1,830 waiting, "
                "1.00 a second");
}

/* Two jobs are tried again and again. */
static void run_late(struct bhi_batch_progress *progress, unsigned second,
                     struct bhi_queue_counts *counts) {
    const struct bhi_job jobs[] = {{.number = 3, .id = "a"}, {.number = 4, .id = "b"}};
    const struct bhi_attempt attempt = {.next = BHI_JOB_WAITING,
                                        .deadline_ns = UINT64_C(1500000000),
                                        .verdict = {.status = BH_DEADLINE}};
    counts->of[BHI_JOB_RUNNING] = 2;
    counts->of[BHI_JOB_WAITING] = counts->total - 2;
    bhi_progress_tell(progress, &jobs[second % 2], &attempt, false);
}

/* And one after another ends. */
static void run_late_and_end(struct bhi_batch_progress *progress, unsigned second,
                             struct bhi_queue_counts *counts) {
    run_late(progress, second, counts);
    counts->of[BHI_JOB_DONE] = second;
    counts->of[BHI_JOB_WAITING] -= second;
}

/* And after ten seconds one ends, and then none does. */
static void run_late_and_stop(struct bhi_batch_progress *progress, unsigned second,
                              struct bhi_queue_counts *counts) {
    if (second < 10) {
        run_late(progress, second, counts);
    } else {
        counts->of[BHI_JOB_DONE] = 1;
        counts->of[BHI_JOB_WAITING] = counts->total - 3;
    }
}

TEST(test_what_holds_it_up_is_named) {
    expect_last(30, run_late,
                "2 jobs run into their deadline of 1.50 s, 0 of 10,000 done, 0 failed");
    expect_last(30, run_late_and_end,
                "2 h 51 min left, 29 of 10,000 done, 0 failed, 2 running, 9,969 waiting");
    expect_last(40, run_late_and_stop,
                "4 d 15 h left, no job has ended for 29 s, 1 of 10,000 done, 0 failed");
}

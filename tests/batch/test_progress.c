/* How far a batch is, where standard error is no terminal: a line every ten seconds of a clock that
 * only this test moves. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "batch/runner/progress.h"

static uint64_t now_ns = UINT64_C(1000000000000);

/* A sanitizer's library refers to it, for the linker. */
#pragma GCC visibility push(default)
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
#pragma GCC visibility pop

int __wrap_clock_gettime(clockid_t clock, struct timespec *time) {
    (void)clock;
    time->tv_sec = (time_t)(now_ns / 1000000000u);
    time->tv_nsec = (long)(now_ns % 1000000000u);
    return 0;
}

/* What is told from the beginning until |seconds| later, where the runner asks ten times a second,
 * as it does. */
static void expect_told(const struct bhi_queue_counts *counts, unsigned seconds, bool ends,
                        const char *expected) {
    struct bhi_batch_progress progress;
    char told[1024] = "";
    FILE *file = tmpfile();
    const int saved = dup(STDERR_FILENO);
    BHT_NE(file, NULL);
    BHT_TRUE(saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
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
    BHT_GE(dup2(saved, STDERR_FILENO), 0);
    close(saved);
    rewind(file);
    told[fread(told, 1, sizeof told - 1, file)] = '\0';
    fclose(file);
    BHT_STR_EQ(told, expected);
}

static void test_heartbeat(void) {
    struct bhi_queue_counts counts = {.of = {[BHI_JOB_SUBMITTED] = 4,
                                             [BHI_JOB_WAITING] = 13,
                                             [BHI_JOB_RUNNING] = 2,
                                             [BHI_JOB_DONE] = 17,
                                             [BHI_JOB_FAILED] = 3,
                                             [BHI_JOB_QUARANTINED] = 1},
                                      .total = 40};
    expect_told(&counts, 9, false, "");
    expect_told(
        &counts, 10, false,
        "17 of 40 done, 3 failed, 1 quarantined, 2 running, 17 waiting, 2.1 jobs/s, 9 s left\n");
    expect_told(
        &counts, 35, false,
        "17 of 40 done, 3 failed, 1 quarantined, 2 running, 17 waiting, 2.1 jobs/s, 9 s left\n"
        "17 of 40 done, 3 failed, 1 quarantined, 2 running, 17 waiting, 1.1 jobs/s, 18 s left\n"
        "17 of 40 done, 3 failed, 1 quarantined, 2 running, 17 waiting, 42.0 jobs/min, "
        "27 s left\n");
    /* It ended where it is, as with --halt: what waits takes no time any more. */
    expect_told(&counts, 9, true,
                "17 of 40 done, 3 failed, 1 quarantined, 2 running, 17 waiting, 2.3 jobs/s\n");
    /* Nothing has ended yet: that is said, too. */
    counts = (struct bhi_queue_counts){.of = {[BHI_JOB_RUNNING] = 1}, .total = 1};
    expect_told(&counts, 20, false,
                "0 of 1 done, 0 failed, 1 running, 0 waiting\n"
                "0 of 1 done, 0 failed, 1 running, 0 waiting\n");
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {BHT_TEST(test_heartbeat)};
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}

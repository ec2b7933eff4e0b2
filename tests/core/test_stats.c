/* What a stream counts of a submission that has ended. */
#include "core/stats.h"
#include "harness.h"

TEST(test_each_end_is_counted_once) {
    static const struct {
        bh_status status;
        uint32_t hops;
        bool dependent;
    } ends[] = {{BH_OK, 0, false},       {BH_DEADLINE, 0, false},    {BH_DEADLINE, 1, true},
                {BH_CANCELLED, 3, true}, {BH_WORKER_LOST, 0, false}, {BH_STREAM_FAILED, 1, false}};
    for (size_t i = 0; i < BHT_COUNT(ends); i++) {
        struct bhi_stats stats = {0}, other = {0}, expected = {0};
        const bh_verdict verdict = {.status = ends[i].status, .hops = ends[i].hops};
        bhi_stats_ended(&stats, &verdict); /* it never began */
        (*(ends[i].dependent ? &expected.dependents : &expected.ended[ends[i].status]))++;
        BHT_MEM_EQ(&stats, &expected, sizeof stats);
        bhi_stats_add(&other, &stats);
        bhi_stats_add(&stats, &other);
        BHT_MEM_EQ(&other, &expected, sizeof stats);
        BHT_EQ(stats.ended[ends[i].status] + stats.dependents, 2);
    }
}

/* A bucket's limit belongs to it: so Prometheus has it. */
TEST(test_a_time_is_in_the_bucket_of_the_next_power_of_two) {
    static const struct {
        uint64_t ns;
        size_t bucket;
    } times[] = {{0, 0},
                 {1, 0},
                 {1024, 0},
                 {1025, 1},
                 {2048, 1},
                 {2049, 2},
                 {UINT64_C(1) << 40, 30},
                 {(UINT64_C(1) << 40) + 1, 31},
                 {UINT64_MAX - 7, 31}};
    for (size_t i = 0; i < BHT_COUNT(times); i++) {
        struct bhi_stats stats = {0};
        const bh_verdict verdict = {
            .submitted_ns = 2, .started_ns = 7, .ended_ns = 7 + times[i].ns};
        bhi_stats_ended(&stats, &verdict);
        for (size_t k = 0; k < BH_BUCKETS; k++) {
            BHT_EQ(stats.run.counts[k], k == times[i].bucket);
            BHT_EQ(stats.wait.counts[k], k == 0);
        }
        BHT_EQ(stats.run.sum_ns, times[i].ns);
        BHT_EQ(stats.wait.sum_ns, 5);
    }
}

/* A worker that was given it before it was queued, or ended it before it began, lies. */
TEST(test_no_time_is_negative) {
    struct bhi_stats stats = {0};
    const bh_verdict verdict = {.submitted_ns = 9, .started_ns = 7, .ended_ns = 5};
    bhi_stats_ended(&stats, &verdict);
    BHT_EQ(stats.wait.sum_ns + stats.run.sum_ns, 0);
    BHT_EQ(stats.wait.counts[0] + stats.run.counts[0], 2);
}

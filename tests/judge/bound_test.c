/* Claims of time against the host's clock. */
#include "judge/time/bound.h"

#include "harness.h"

enum { RUNS = 32, BASE_NS = 300000 };

/* A contender that claims |claim_us| a run, of which the host sees |host_us|. */
static struct bhi_seen seen(double claim_us, uint64_t host_us) {
    return (struct bhi_seen){.claim_ns = claim_us * 1000,
                             .batch_ns = BASE_NS + RUNS * host_us * 1000,
                             .base_ns = BASE_NS,
                             .runs = RUNS};
}

static enum bhi_honesty judge(struct bhi_seen candidate, struct bhi_seen reference) {
    return bhi_honesty_of(&candidate, &reference);
}

static void what_the_host_saw(void) {
    const struct bhi_seen a = seen(1, 100), tiny = seen(1, 1), none = {.runs = 1};
    BHT_TRUE(bhi_seen_run_ns(&a) == 100000);
    BHT_TRUE(bhi_seen_run_ns(&tiny) == 0); /* 32 us more than an empty batch: chance */
    BHT_TRUE(bhi_seen_run_ns(&none) == 0);
}

static void true_claims(void) {
    BHT_EQ(judge(seen(100, 100), seen(100, 100)), BHI_HONEST);
    BHT_EQ(judge(seen(80, 100), seen(100, 100)), BHI_HONEST);
    BHT_EQ(judge(seen(300, 100), seen(100, 100)), BHI_HONEST); /* cold, and in a batch warm */
    BHT_EQ(judge(seen(20, 20), seen(9000, 9000)), BHI_HONEST);
}

static void claims_that_are_too_short(void) {
    BHT_EQ(judge(seen(70, 100), seen(100, 100)), BHI_FORGED);
    BHT_EQ(judge(seen(0.001, 100), seen(100, 100)), BHI_FORGED);
    BHT_EQ(judge(seen(70, 100), seen(300, 100)), BHI_FORGED);
    BHT_EQ(judge(seen(70, 100), seen(1, 1)), BHI_FORGED); /* no yardstick */
}

/* What nobody could have seen is not called false. */
static void runs_that_are_too_short(void) {
    BHT_EQ(judge(seen(0.001, 1), seen(100, 100)), BHI_HONEST);
}

/* The reference's claims are true: what the host saw beyond them is the machine's doing. */
static void a_busy_machine(void) {
    BHT_EQ(judge(seen(60, 100), seen(60, 100)), BHI_HONEST);
    BHT_EQ(judge(seen(50, 100), seen(60, 100)), BHI_HONEST);
    BHT_EQ(judge(seen(40, 100), seen(60, 100)), BHI_FORGED);
    BHT_EQ(judge(seen(11, 100), seen(40, 100)), BHI_UNSURE);
    BHT_EQ(judge(seen(100, 100), seen(40, 100)), BHI_UNSURE);
    BHT_EQ(judge(seen(9, 100), seen(40, 100)), BHI_FORGED);
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(what_the_host_saw),
        BHT_TEST(true_claims),
        BHT_TEST(claims_that_are_too_short),
        BHT_TEST(runs_that_are_too_short),
        BHT_TEST(a_busy_machine),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}

/* Claims of time against the host's clock. */
#include "judge/time/bound.h"

#include "harness.h"

enum { RUNS = 32, BASE_NS = 300000 };

/* A contender that claims |claim_us| a run, of which the host sees |host_us|. */
static struct bhi_seen seen(double claim_us, uint64_t host_us) {
    return (struct bhi_seen){.claim_ns = claim_us * 1000,
                             .low_ns = claim_us * 1000,
                             .high_ns = claim_us * 1000,
                             .group_ns = claim_us * 1000,
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

/* By chance or because of load half of a few runs may be short. Such claims are not reported, and
 * false are only those of which a quarter would be, too. */
static void claims_that_vary(void) {
    struct bhi_seen some = seen(60, 100);
    some.high_ns = 74000;
    BHT_EQ(judge(some, seen(100, 100)), BHI_FORGED);
    some.high_ns = 76000;
    BHT_EQ(judge(some, seen(100, 100)), BHI_UNSURE);
    some.claim_ns = some.group_ns = 75000;
    BHT_EQ(judge(some, seen(100, 100)), BHI_HONEST);
}

/* The reference's claims are true: what the host saw beyond them is the machine's doing. */
static void a_busy_machine(void) {
    BHT_EQ(judge(seen(60, 100), seen(60, 100)), BHI_HONEST);
    BHT_EQ(judge(seen(50, 100), seen(60, 100)), BHI_HONEST);
    BHT_EQ(judge(seen(40, 100), seen(60, 100)), BHI_UNSURE);
    BHT_EQ(judge(seen(22, 100), seen(60, 100)), BHI_UNSURE);
    BHT_EQ(judge(seen(20, 100), seen(60, 100)), BHI_FORGED);
    BHT_EQ(judge(seen(11, 100), seen(40, 100)), BHI_UNSURE);
    BHT_EQ(judge(seen(100, 100), seen(40, 100)), BHI_UNSURE);
    BHT_EQ(judge(seen(9, 100), seen(40, 100)), BHI_FORGED);
}

/* The reference's runs were interrupted, and its batches were not: its median explains more than
 * there is to explain, and so its quickest runs say how busy the machine is. */
static void a_yardstick_of_few_runs(void) {
    struct bhi_seen reference = seen(300, 100);
    BHT_EQ(judge(seen(20, 100), reference), BHI_FORGED);
    reference.low_ns = 30000;
    BHT_EQ(judge(seen(20, 100), reference), BHI_UNSURE);
    BHT_EQ(judge(seen(7, 100), reference), BHI_FORGED);
    BHT_EQ(judge(seen(80, 100), reference), BHI_HONEST);
}

/* The less the reference's claims explain, the more must be wanting. */
static void a_machine_that_is_a_little_busy(void) {
    BHT_EQ(judge(seen(68, 100), seen(90, 100)), BHI_HONEST);
    BHT_EQ(judge(seen(67, 100), seen(90, 100)), BHI_UNSURE);
    BHT_EQ(judge(seen(59, 100), seen(90, 100)), BHI_UNSURE);
    BHT_EQ(judge(seen(58, 100), seen(90, 100)), BHI_FORGED);
}

/* A group that lies is seen, though all claims together are as they should be. */
static void a_group_that_is_too_short(void) {
    struct bhi_seen some = seen(100, 100), reference = seen(100, 100);
    some.group_ns = 76000;
    BHT_EQ(judge(some, reference), BHI_HONEST);
    some.group_ns = 74000;
    BHT_EQ(judge(some, reference), BHI_UNSURE);
    some.group_ns = 100;
    BHT_EQ(judge(some, reference), BHI_UNSURE);
    reference.group_ns = 70000; /* whose workers are not alike either */
    some.group_ns = 53000;
    BHT_EQ(judge(some, reference), BHI_HONEST);
    reference.group_ns = 1000; /* at most so much */
    BHT_EQ(judge(some, reference), BHI_HONEST);
    some.group_ns = 37000;
    BHT_EQ(judge(some, reference), BHI_UNSURE);
}

static enum bhi_honesty beside(struct bhi_seen candidate, struct bhi_seen reference,
                               struct bhi_seen alone) {
    return bhi_honesty_beside(&candidate, &reference, &alone);
}

/* A worker that keeps the processor busy during the reference's batches makes those twice as long.
 * Alone they are not. */
static void load_in_the_batches_of_the_reference(void) {
    const struct bhi_seen slowed = seen(100, 190), alone = seen(100, 100), none = {.runs = 0};
    BHT_EQ(beside(seen(40, 100), slowed, none), BHI_HONEST); /* so much could it gain */
    BHT_EQ(beside(seen(40, 100), slowed, alone), BHI_UNSURE);
    BHT_EQ(beside(seen(74, 100), slowed, alone), BHI_UNSURE);
    BHT_EQ(beside(seen(76, 100), slowed, alone), BHI_HONEST);
    struct bhi_seen some = seen(100, 100);
    some.group_ns = 60000; /* of one group */
    BHT_EQ(beside(some, slowed, none), BHI_HONEST);
    BHT_EQ(beside(some, slowed, alone), BHI_UNSURE);
}

/* It is no accusation that the machine is busier than it was, and no excuse that it was busy. */
static void a_machine_that_was_quieter(void) {
    BHT_EQ(beside(seen(60, 100), seen(60, 100), seen(100, 100)), BHI_UNSURE);
    BHT_EQ(beside(seen(60, 100), seen(60, 100), seen(60, 100)), BHI_HONEST);
    BHT_EQ(beside(seen(60, 100), seen(100, 100), seen(60, 100)), BHI_FORGED);
    BHT_EQ(beside(seen(60, 100), seen(60, 100), seen(300, 1)), BHI_HONEST); /* not seen: none */
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(what_the_host_saw),          BHT_TEST(true_claims),
        BHT_TEST(claims_that_are_too_short),  BHT_TEST(runs_that_are_too_short),
        BHT_TEST(claims_that_vary),           BHT_TEST(a_busy_machine),
        BHT_TEST(a_yardstick_of_few_runs),    BHT_TEST(a_machine_that_is_a_little_busy),
        BHT_TEST(a_group_that_is_too_short),  BHT_TEST(load_in_the_batches_of_the_reference),
        BHT_TEST(a_machine_that_was_quieter),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}

/* Claims of time, of batches and of single runs, against the host's clock. All times are synthetic. */
#include "judge/time/bound.h"

#include "harness.h"

#include "judge/data/draw.h"

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

TEST(what_the_host_saw) {
    const struct bhi_seen a = seen(1, 100), tiny = seen(1, 1), none = {.runs = 1};
    BHT_TRUE(bhi_seen_run_ns(&a) == 100000);
    BHT_TRUE(bhi_seen_run_ns(&tiny) == 0); /* 32 us more than an empty batch: chance */
    BHT_TRUE(bhi_seen_run_ns(&none) == 0);
}

TEST(true_claims) {
    BHT_EQ(judge(seen(100, 100), seen(100, 100)), BHI_HONEST);
    BHT_EQ(judge(seen(80, 100), seen(100, 100)), BHI_HONEST);
    BHT_EQ(judge(seen(300, 100), seen(100, 100)), BHI_HONEST); /* cold, and in a batch warm */
    BHT_EQ(judge(seen(20, 20), seen(9000, 9000)), BHI_HONEST);
}

TEST(claims_that_are_too_short) {
    BHT_EQ(judge(seen(70, 100), seen(100, 100)), BHI_FORGED);
    BHT_EQ(judge(seen(0.001, 100), seen(100, 100)), BHI_FORGED);
    BHT_EQ(judge(seen(70, 100), seen(300, 100)), BHI_FORGED);
    BHT_EQ(judge(seen(70, 100), seen(1, 1)), BHI_FORGED); /* no yardstick */
}

/* What nobody could have seen is not called false. */
TEST(runs_that_are_too_short) {
    BHT_EQ(judge(seen(0.001, 1), seen(100, 100)), BHI_HONEST);
}

/* By chance or because of load half of a few runs may be short. Such claims are not reported, and
 * false are only those of which a quarter would be, too. */
TEST(claims_that_vary) {
    struct bhi_seen some = seen(60, 100);
    some.high_ns = 74000;
    BHT_EQ(judge(some, seen(100, 100)), BHI_FORGED);
    some.high_ns = 76000;
    BHT_EQ(judge(some, seen(100, 100)), BHI_UNSURE);
    some.claim_ns = some.group_ns = 75000;
    BHT_EQ(judge(some, seen(100, 100)), BHI_HONEST);
}

/* The reference's claims are true: what the host saw beyond them is the machine's doing. */
TEST(a_busy_machine) {
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
TEST(a_yardstick_of_few_runs) {
    struct bhi_seen reference = seen(300, 100);
    BHT_EQ(judge(seen(20, 100), reference), BHI_FORGED);
    reference.low_ns = 30000;
    BHT_EQ(judge(seen(20, 100), reference), BHI_UNSURE);
    BHT_EQ(judge(seen(7, 100), reference), BHI_FORGED);
    BHT_EQ(judge(seen(80, 100), reference), BHI_HONEST);
}

/* The less the reference's claims explain, the more must be wanting. */
TEST(a_machine_that_is_a_little_busy) {
    BHT_EQ(judge(seen(68, 100), seen(90, 100)), BHI_HONEST);
    BHT_EQ(judge(seen(67, 100), seen(90, 100)), BHI_UNSURE);
    BHT_EQ(judge(seen(59, 100), seen(90, 100)), BHI_UNSURE);
    BHT_EQ(judge(seen(58, 100), seen(90, 100)), BHI_FORGED);
}

/* A group that lies is seen, though all claims together are as they should be. */
TEST(a_group_that_is_too_short) {
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
TEST(load_in_the_batches_of_the_reference) {
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
TEST(a_machine_that_was_quieter) {
    BHT_EQ(beside(seen(60, 100), seen(60, 100), seen(100, 100)), BHI_UNSURE);
    BHT_EQ(beside(seen(60, 100), seen(60, 100), seen(60, 100)), BHI_HONEST);
    BHT_EQ(beside(seen(60, 100), seen(100, 100), seen(60, 100)), BHI_FORGED);
    BHT_EQ(beside(seen(60, 100), seen(60, 100), seen(300, 1)), BHI_HONEST); /* not seen: none */
}

/* -- claims of single runs -----------------------------------------------------------------------
 */

enum { SINGLE = 50 };

static uint64_t hosts[SINGLE], claims[SINGLE];

/* A number below |below|, by |which| and |i| alone. */
static uint64_t noise(uint32_t which, uint32_t i, uint64_t below) {
    return bhi_philox(which, (struct bhi_philox){{i}}).words[0] % below;
}

/* Runs that take |run_us| on the device; the way there and back takes 150 us, and up to |noise_us|
 * more. The worker claims |claimed| of a hundred parts of |lies| runs of a hundred. */
static struct bhi_overhead runs(uint32_t which, uint64_t run_us, uint64_t noise_us,
                                uint64_t claimed, uint64_t lies) {
    struct bhi_overhead overhead;
    for (uint32_t i = 0; i < SINGLE; i++) {
        const uint64_t run_ns = run_us * 1000 + noise(which, i, run_us * 20); /* 2 % more */
        hosts[i] = run_ns + 150000 + noise(which + 1, i, noise_us * 1000);
        claims[i] = noise(which + 2, i, 100) < lies ? run_ns * claimed / 100 : run_ns;
    }
    BHT_TRUE(bhi_overhead_of(hosts, claims, SINGLE, &overhead));
    return overhead;
}

/* Is a worker found out that claims so much of so many runs? The reference runs for |run_us|. */
static bool exceeds(uint64_t run_us, uint64_t noise_us, uint64_t claimed, uint64_t lies) {
    const struct bhi_overhead usual = runs(100, run_us, noise_us, 100, 0);
    const struct bhi_overhead overhead = runs(200, run_us, noise_us, claimed, lies);
    return bhi_overhead_exceeds(&overhead, &usual);
}

static enum bhi_honesty honesty(uint64_t run_us, uint64_t claimed, uint64_t lies) {
    const struct bhi_overhead usual = runs(100, run_us, 20, 100, 0);
    const struct bhi_overhead overhead = runs(200, run_us, 20, claimed, lies);
    return bhi_overhead_honesty(&overhead, &usual);
}

TEST(what_the_overhead_is) {
    for (uint64_t i = 0; i < SINGLE; i++) {
        claims[i] = 1000000 + 1000 * i;
        hosts[i] = claims[i] + 200000 + 1000 * i;
    }
    hosts[0] = claims[0] - 5; /* a claim is never longer than its run; here it is none */
    struct bhi_overhead overhead;
    BHT_TRUE(bhi_overhead_of(hosts, claims, SINGLE, &overhead));
    BHT_TRUE(overhead.median_ns == 224500 && overhead.spread_ns == 39000);
    BHT_TRUE(overhead.host_ns == 1249000 && overhead.low_ns == 212000);
    BHT_TRUE(bhi_overhead_of(hosts, claims, 1, &overhead));
    BHT_TRUE(overhead.median_ns == 0 && overhead.spread_ns == 0);
}

TEST(true_claims_of_single_runs) {
    BHT_TRUE(!exceeds(10, 20, 100, 0));
    BHT_TRUE(!exceeds(400, 20, 100, 0));
    BHT_TRUE(!exceeds(10000, 20, 100, 0));
}

/* The longer the runs, the less can be left out. */
TEST(claims_of_single_runs_that_are_too_short) {
    BHT_TRUE(exceeds(400, 20, 60, 100));
    BHT_TRUE(exceeds(2000, 20, 93, 100));
    BHT_TRUE(exceeds(20000, 20, 93, 100));
    BHT_TRUE(!exceeds(20000, 20, 97, 100));
    BHT_TRUE(!exceeds(50, 20, 1, 100)); /* nobody could have seen it: see runs_that_are_too_short */
}

/* Lies that change the median of the claims change that of the overhead. */
TEST(lies_in_some_runs) {
    BHT_TRUE(exceeds(2000, 20, 80, 75));
    BHT_TRUE(!exceeds(2000, 20, 80, 20));
    BHT_EQ(honesty(2000, 80, 100), BHI_FORGED);
    BHT_EQ(honesty(2000, 80, 85), BHI_FORGED);
    BHT_EQ(honesty(2000, 80, 65), BHI_UNSURE);
    BHT_EQ(honesty(2000, 80, 20), BHI_HONEST);
}

static struct bhi_overhead first_runs(uint32_t which, size_t count, uint64_t noise_us,
                                      uint64_t claimed) {
    struct bhi_overhead overhead = runs(which, 5000, noise_us, claimed, 100);
    BHT_TRUE(bhi_overhead_of(hosts, claims, count, &overhead));
    return overhead;
}

/* By chance a few runs may be alike, so the bound is wider; it is one. */
TEST(few_runs) {
    const struct bhi_overhead five = first_runs(100, 5, 20, 100),
                              ten = first_runs(100, 10, 20, 100),
                              twenty = first_runs(100, 20, 20, 100);
    const struct bhi_overhead usual = {.count = 5, .spread_ns = 1e6, .host_ns = 1e6};
    struct bhi_overhead more = usual;
    BHT_TRUE(bhi_overhead_allowed(&usual, &usual) == 8e6);
    more.count = 50;
    BHT_TRUE(bhi_overhead_allowed(&more, &usual) == 8e6);
    BHT_TRUE(bhi_overhead_allowed(&more, &more) == 2e6);
    BHT_TRUE(bhi_overhead_allowed(&usual, &more) == 8e6);
    struct bhi_overhead lies = first_runs(200, 5, 20, 80);
    BHT_EQ(bhi_overhead_honesty(&lies, &five), BHI_FORGED);
    lies = first_runs(200, 10, 20, 80);
    BHT_EQ(bhi_overhead_honesty(&lies, &ten), BHI_FORGED);
    lies = first_runs(200, 20, 20, 80);
    BHT_EQ(bhi_overhead_honesty(&lies, &twenty), BHI_FORGED);
}

/* A fifth of these runs wait for a processor, up to 8 ms. Of a thousand pairs of five honest
 * runs one or two are called false. It takes three measurements that agree. */
TEST(few_runs_on_a_busy_machine) {
    int forged = 0, unsure = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        struct bhi_overhead of[2];
        for (uint32_t which = 0; which < 2; which++) {
            for (uint32_t k = 0; k < 5; k++) {
                const uint32_t key = 5000 + 10 * i + 5 * which + k;
                claims[k] = 1000000;
                hosts[k] = 1150000 + noise(key, 1, 20000) +
                           (noise(key, 2, 5) ? 0 : noise(key, 3, 8000000));
            }
            BHT_TRUE(bhi_overhead_of(hosts, claims, 5, &of[which]));
        }
        forged += bhi_overhead_honesty(&of[0], &of[1]) == BHI_FORGED;
        unsure += bhi_overhead_honesty(&of[0], &of[1]) == BHI_UNSURE;
    }
    BHT_LT(forged, 5);
    BHT_LT(unsure, 40);
}

static void mirror(uint64_t *times) {
    for (uint32_t i = 0; i < SINGLE / 2; i++) {
        const uint64_t first = times[i];
        times[i] = times[SINGLE - 1 - i];
        times[SINGLE - 1 - i] = first;
    }
}

/* Of runs that take |run_ns|, in five groups, those from |from| on claim |lie_ns| less. |late| of
 * the reference's runs take 50 ms longer, in all groups; |spread_us| is what it varies by alone. */
static struct bhi_overhead_verdict judge_groups(uint32_t from, uint64_t lie_ns, uint32_t late,
                                                uint64_t spread_us) {
    static uint64_t other_hosts[SINGLE], other_claims[SINGLE];
    const struct bhi_overhead_runs one = {hosts, claims}, other = {other_hosts, other_claims};
    const struct bhi_overhead alone = {.count = 20, .spread_ns = (double)spread_us * 1000};
    struct bhi_overhead_verdict verdict, mirrored;
    for (uint32_t i = 0; i < SINGLE; i++) {
        claims[i] = i < from ? 1000000 : 1000000 - lie_ns;
        other_claims[i] = 1000000;
        hosts[i] = other_hosts[i] = 1150000 + noise(7, i, 20000);
        other_hosts[i] += i * late % SINGLE < late ? 50000000 : 0;
    }
    BHT_TRUE(bhi_overhead_judge(&one, &other, SINGLE, 5, &alone, &verdict));
    uint64_t *const all[] = {hosts, claims, other_hosts, other_claims};
    for (size_t k = 0; k < BHT_COUNT(all); k++) {
        mirror(all[k]);
    }
    BHT_TRUE(bhi_overhead_judge(&one, &other, SINGLE, 5, &alone, &mirrored));
    BHT_EQ(mirrored.honesty, verdict.honesty); /* whichever group lies */
    return verdict;
}

TEST(lies_in_some_groups) {
    BHT_EQ(judge_groups(SINGLE, 500000, 0, 20).honesty, BHI_HONEST);
    BHT_EQ(judge_groups(SINGLE - 4, 500000, 0, 20).honesty,
           BHI_HONEST); /* fewer than half of a group */
    BHT_EQ(judge_groups(SINGLE - 6, 500000, 0, 20).honesty, BHI_UNSURE);
    BHT_TRUE(!judge_groups(SINGLE - 6, 500000, 0, 20).only_alone);
    BHT_EQ(judge_groups(SINGLE - 20, 500000, 0, 20).honesty, BHI_UNSURE);
    BHT_EQ(judge_groups(0, 500000, 0, 20).honesty, BHI_FORGED);
    BHT_EQ(judge_groups(0, 90000, 0, 20).honesty, BHI_HONEST);
    BHT_WITHIN((long)judge_groups(0, 500000, 0, 20).run_ns, 990000, 1010000);
}

/* A worker that delays a seventh of the reference's runs makes them vary by as much as it likes.
 * What they vary by alone it cannot change. */
TEST(a_worker_that_delays_some_runs) {
    for (uint32_t from = 0; from < SINGLE; from += SINGLE - 6) {
        const struct bhi_overhead_verdict verdict = judge_groups(from, 500000, SINGLE / 7, 20);
        BHT_EQ(verdict.honesty, BHI_UNSURE);
        BHT_TRUE(verdict.only_alone);
    }
    BHT_EQ(judge_groups(0, 500000, SINGLE / 7, 50000).honesty,
           BHI_HONEST); /* the machine is busy */
    BHT_EQ(judge_groups(SINGLE, 0, SINGLE / 7, 20).honesty, BHI_HONEST);
}

/* A candidate that takes ten times as long, or a tenth, has the same overhead. */
TEST(other_lengths) {
    const struct bhi_overhead one = runs(300, 500, 20, 100, 0);
    const struct bhi_overhead ten = runs(400, 5000, 20, 100, 0);
    BHT_TRUE(!bhi_overhead_exceeds(&ten, &one));
    BHT_TRUE(!bhi_overhead_exceeds(&one, &ten));
}

/* Where the way there and back takes milliseconds, a worker that has it worse than the reference's
 * all the time is not accused. */
TEST(a_way_that_varies) {
    for (uint32_t i = 0; i < 100; i++) {
        const struct bhi_overhead usual = runs(1000 + 3 * i, 400, 8000, 100, 0);
        struct bhi_overhead overhead = runs(2000 + 3 * i, 400, 8000, 100, 0);
        overhead.median_ns += 4e6;
        BHT_TRUE(!bhi_overhead_exceeds(&overhead, &usual));
    }
}

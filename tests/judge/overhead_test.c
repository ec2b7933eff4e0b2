/* Claims of single runs against the host's clock. All times are synthetic. */
#include "judge/time/overhead.h"

#include "harness.h"

#include "judge/data/philox.h"

enum { RUNS = 50 };

static uint64_t hosts[RUNS], claims[RUNS];

/* A number below |below|, by |which| and |i| alone. */
static uint64_t noise(uint32_t which, uint32_t i, uint64_t below) {
    return bhi_philox(which, (struct bhi_philox){{i}}).words[0] % below;
}

/* Runs that take |run_us| on the device; the way there and back takes 150 us, and up to |noise_us|
 * more. The worker claims |claimed| of a hundred parts of |lies| runs of a hundred. */
static struct bhi_overhead runs(uint32_t which, uint64_t run_us, uint64_t noise_us,
                                uint64_t claimed, uint64_t lies) {
    struct bhi_overhead overhead;
    for (uint32_t i = 0; i < RUNS; i++) {
        const uint64_t run_ns = run_us * 1000 + noise(which, i, run_us * 20); /* 2 % more */
        hosts[i] = run_ns + 150000 + noise(which + 1, i, noise_us * 1000);
        claims[i] = noise(which + 2, i, 100) < lies ? run_ns * claimed / 100 : run_ns;
    }
    BHT_TRUE(bhi_overhead_of(hosts, claims, RUNS, &overhead));
    return overhead;
}

/* Is a worker found out that claims so much of so many runs? The reference runs for |run_us|. */
static bool exceeds(uint64_t run_us, uint64_t noise_us, uint64_t claimed, uint64_t lies) {
    const struct bhi_overhead usual = runs(100, run_us, noise_us, 100, 0);
    const struct bhi_overhead overhead = runs(200, run_us, noise_us, claimed, lies);
    return bhi_overhead_exceeds(&overhead, &usual);
}

static void what_it_is(void) {
    for (uint64_t i = 0; i < RUNS; i++) {
        claims[i] = 1000000 + 1000 * i;
        hosts[i] = claims[i] + 200000 + 1000 * i;
    }
    hosts[0] = claims[0] - 5; /* a claim is never longer than its run; here it is none */
    struct bhi_overhead overhead;
    BHT_TRUE(bhi_overhead_of(hosts, claims, RUNS, &overhead));
    BHT_TRUE(overhead.median_ns == 224500 && overhead.spread_ns == 39000);
    BHT_TRUE(overhead.host_ns == 1249000);
    BHT_TRUE(bhi_overhead_of(hosts, claims, 1, &overhead));
    BHT_TRUE(overhead.median_ns == 0 && overhead.spread_ns == 0);
}

static void true_claims(void) {
    BHT_TRUE(!exceeds(10, 20, 100, 0));
    BHT_TRUE(!exceeds(400, 20, 100, 0));
    BHT_TRUE(!exceeds(10000, 20, 100, 0));
}

/* The longer the runs, the less can be left out. */
static void claims_that_are_too_short(void) {
    BHT_TRUE(exceeds(400, 20, 60, 100));
    BHT_TRUE(exceeds(2000, 20, 93, 100));
    BHT_TRUE(exceeds(20000, 20, 93, 100));
    BHT_TRUE(!exceeds(20000, 20, 97, 100));
    BHT_TRUE(!exceeds(50, 20, 1, 100)); /* nobody could have seen it: see bound_test.c */
}

/* Lies that change the median of the claims change that of the overhead. */
static void lies_in_some_runs(void) {
    BHT_TRUE(exceeds(2000, 20, 80, 75));
    BHT_TRUE(!exceeds(2000, 20, 80, 20));
}

/* By chance all of a few runs may be quick, or late. */
static void few_runs(void) {
    const struct bhi_overhead usual = runs(100, 2000, 20, 100, 0);
    struct bhi_overhead overhead = runs(200, 2000, 20, 50, 100);
    BHT_TRUE(bhi_overhead_exceeds(&overhead, &usual));
    BHT_TRUE(bhi_overhead_of(hosts, claims, 20, &overhead));
    BHT_TRUE(bhi_overhead_exceeds(&overhead, &usual));
    BHT_TRUE(bhi_overhead_of(hosts, claims, 19, &overhead));
    BHT_TRUE(!bhi_overhead_exceeds(&overhead, &usual));
}

/* A candidate that takes ten times as long, or a tenth, has the same overhead. */
static void other_lengths(void) {
    const struct bhi_overhead one = runs(300, 500, 20, 100, 0);
    const struct bhi_overhead ten = runs(400, 5000, 20, 100, 0);
    BHT_TRUE(!bhi_overhead_exceeds(&ten, &one));
    BHT_TRUE(!bhi_overhead_exceeds(&one, &ten));
}

/* Where the way there and back takes milliseconds, a worker that has it worse than the reference's
 * all the time is not accused. */
static void a_busy_machine(void) {
    for (uint32_t i = 0; i < 100; i++) {
        const struct bhi_overhead usual = runs(1000 + 3 * i, 400, 8000, 100, 0);
        struct bhi_overhead overhead = runs(2000 + 3 * i, 400, 8000, 100, 0);
        overhead.median_ns += 4e6;
        BHT_TRUE(!bhi_overhead_exceeds(&overhead, &usual));
    }
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(what_it_is),        BHT_TEST(true_claims), BHT_TEST(claims_that_are_too_short),
        BHT_TEST(lies_in_some_runs), BHT_TEST(few_runs),    BHT_TEST(other_lengths),
        BHT_TEST(a_busy_machine),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}

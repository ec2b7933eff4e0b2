/* The restart budget (case 50): what is charged, how starts are backed off, how both heal. */
#include "core/restart.h"
#include "harness.h"

#include <stdbool.h>

#define MS 1000000ull

static struct bhi_restart fresh(void) {
    struct bhi_restart restart;
    bhi_restart_init(&restart, 4, 4000 * MS, 0); /* a death costs a second */
    return restart;
}

static void lose(struct bhi_restart *restart, int times, uint64_t now_ns) {
    for (int i = 0; i < times; i++) {
        BHT_TRUE(!bhi_restart_lost(restart, false, now_ns));
    }
}

TEST(test_budget_is_spent) {
    struct bhi_restart restart = fresh();
    for (int i = 0; i < 4; i++) {
        BHT_TRUE(!bhi_restart_lost(&restart, false, 0));
    }
    BHT_TRUE(bhi_restart_lost(&restart, false, 0));
    bhi_restart_served(&restart, 1);
    BHT_TRUE(bhi_restart_lost(&restart, false, 999 * MS));
    bhi_restart_served(&restart, 999 * MS);
    BHT_TRUE(!bhi_restart_lost(&restart, false, 1000 * MS)); /* one has come back */
    bhi_restart_served(&restart, 1000 * MS);
    BHT_TRUE(bhi_restart_lost(&restart, false, 1001 * MS));
}

/* E9: each start fails later than a death's share of the window, which the clock would refill. */
TEST(test_starts_that_fail_slowly_spend_the_budget) {
    struct bhi_restart restart = fresh();
    uint64_t now_ns = 0;
    for (int i = 0; i < 4; i++) {
        BHT_TRUE(!bhi_restart_lost(&restart, false, now_ns += 1000 * MS));
    }
    BHT_TRUE(bhi_restart_lost(&restart, false, now_ns += 1000 * MS));
    /* The slower they fail, the fewer are tried: one of each quarter of the window. */
    bhi_restart_init(&restart, 16, 4000 * MS, 0);
    lose(&restart, 1, 1000 * MS);
    for (int i = 0; i < 3; i++) {
        lose(&restart, 1, (3000 + 2000 * (uint64_t)i) * MS);
    }
    BHT_TRUE(bhi_restart_lost(&restart, false, 9000 * MS));
    /* A worker that was ready ends the row, though not the row of deaths. */
    restart = fresh();
    for (int i = 0; i < 100; i++) {
        lose(&restart, 1, (1000 + 1000 * (uint64_t)i) * MS);
        bhi_restart_served(&restart, (1001 + 1000 * (uint64_t)i) * MS);
    }
}

TEST(test_refill) {
    struct bhi_restart restart = fresh();
    for (int i = 0; i < 5; i++) {
        (void)bhi_restart_lost(&restart, false, 0);
    }
    bhi_restart_refill(&restart, 1);
    for (int i = 0; i < 4; i++) {
        BHT_TRUE(!bhi_restart_lost(&restart, false, 1));
    }
    BHT_TRUE(bhi_restart_lost(&restart, false, 1));
}

TEST(test_credit_is_bounded) {
    struct bhi_restart restart = fresh();
    /* Even where the clock jumps far enough to wrap the sum. */
    BHT_TRUE(!bhi_restart_lost(&restart, false, UINT64_MAX - 1));
    for (int i = 0; i < 3; i++) {
        BHT_TRUE(!bhi_restart_lost(&restart, false, UINT64_MAX - 1));
    }
    BHT_TRUE(bhi_restart_lost(&restart, false, UINT64_MAX - 1));
}

TEST(test_backoff_doubles) {
    struct bhi_restart restart;
    bhi_restart_init(&restart, 1000, 1000000 * MS, 0);
    static const uint64_t expected_ms[] = {0, 10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000};
    for (size_t i = 0; i < sizeof expected_ms / sizeof expected_ms[0]; i++) {
        BHT_TRUE(!bhi_restart_lost(&restart, false, 5 * MS));
        uint64_t expected = expected_ms[i] ? (5 + expected_ms[i]) * MS : 0;
        BHT_EQ(restart.not_before_ns, expected);
    }
    for (int i = 0; i < 64; i++) { /* far beyond where doubling would end at 0 */
        lose(&restart, 1, 5 * MS);
        BHT_EQ(restart.not_before_ns, 1005 * MS);
    }
}

/* Only the second of two starts that fail in a row is charged by its time, and none after a refill. */
TEST(a_first_failed_start_costs_one_death) {
    struct bhi_restart restart;
    bhi_restart_init(&restart, 16, 4000 * MS, 0); /* a death costs a quarter of a second */
    for (int i = 0; i < 2; i++) {
        lose(&restart, 1, 2000 * MS);
        BHT_EQ(restart.credit_ns, 3750 * MS);
        bhi_restart_refill(&restart, 0);
    }
    lose(&restart, 2, 2000 * MS);
    lose(&restart, 1, 3000 * MS);
    BHT_EQ(restart.credit_ns, 2500 * MS);
}

TEST(test_a_long_life_ends_the_backoff) {
    struct bhi_restart restart = fresh();
    lose(&restart, 2, 0);
    BHT_NE(restart.not_before_ns, 0);
    bhi_restart_served(&restart, 1 * MS);
    BHT_TRUE(!bhi_restart_lost(&restart, false, 1000 * MS)); /* a millisecond short */
    BHT_EQ(restart.not_before_ns, 1020 * MS);
    bhi_restart_served(&restart, 2000 * MS);
    BHT_TRUE(!bhi_restart_lost(&restart, false, 3000 * MS));
    BHT_EQ(restart.not_before_ns, 0);
}

TEST(test_a_start_is_no_life) {
    struct bhi_restart restart = fresh();
    lose(&restart, 1, 0);
    bhi_restart_served(&restart, 1 * MS);
    lose(&restart, 1, 2 * MS);
    /* This one never served: the last one's life is not its. */
    BHT_TRUE(!bhi_restart_lost(&restart, false, 3000 * MS));
    BHT_EQ(restart.not_before_ns, 3020 * MS);
}

TEST(test_the_productive_are_free) {
    struct bhi_restart restart = fresh();
    lose(&restart, 2, 0);
    for (int i = 0; i < 100; i++) {
        bhi_restart_served(&restart, 1 * MS);
        restart.productive = true;
        BHT_TRUE(!bhi_restart_lost(&restart, false, 1 * MS));
        BHT_EQ(restart.not_before_ns, 0);
    }
    lose(&restart, 2, 1 * MS);
    BHT_TRUE(bhi_restart_lost(&restart, false, 1 * MS));
    /* The merit of one is not the next one's. */
    bhi_restart_served(&restart, 1 * MS);
    BHT_TRUE(bhi_restart_lost(&restart, false, 1 * MS));
}

TEST(test_the_blamed_are_free) {
    struct bhi_restart restart = fresh();
    for (int i = 0; i < 100; i++) {
        BHT_TRUE(!bhi_restart_lost(&restart, true, 0));
        BHT_EQ(restart.not_before_ns, 0);
    }
    lose(&restart, 4, 0);
}

/* Whatever else the death cost, and whoever is to blame. */
TEST(test_a_late_end_costs_a_quarter) {
    struct bhi_restart restart = fresh();
    for (int i = 0; i < 4; i++) {
        BHT_TRUE(!bhi_restart_lost(&restart, true, 5 * MS));
        BHT_TRUE(!bhi_restart_late(&restart, 4000 * MS, 5 * MS));
        BHT_EQ(restart.not_before_ns, 4005 * MS);
    }
    BHT_TRUE(bhi_restart_late(&restart, 4000 * MS, 5 * MS));
    BHT_TRUE(!bhi_restart_late(&restart, 4000 * MS, 1005 * MS)); /* one has come back */
}

/* E9: others' kills say nothing about a stream, but nothing waits for ever. */
TEST(what_others_end_is_free_up_to_a_limit) {
    struct bhi_restart restart = fresh();
    for (int i = 0; i < 32; i++) { /* while it starts, and before its first result */
        BHT_TRUE(!bhi_restart_taken(&restart, true, (uint64_t)i * 2000 * MS));
        bhi_restart_served(&restart, (uint64_t)i * 2000 * MS);
    }
    BHT_EQ(restart.credit_ns, 4000 * MS);
    BHT_TRUE(bhi_restart_taken(&restart, true, 64000 * MS));
    bhi_restart_refill(&restart, 64000 * MS);
    BHT_TRUE(!bhi_restart_taken(&restart, true, 64000 * MS));
}

TEST(what_ends_a_row_of_deaths_by_others) {
    enum { RESULT, BLAMED, NOTHING_WAITS, STARTING };
    for (int how = RESULT; how <= STARTING; how++) {
        struct bhi_restart restart = fresh();
        for (int i = 0; i < 100; i++) {
            if (how != STARTING) {
                bhi_restart_served(&restart, 1);
            }
            restart.productive = how == RESULT;
            const bool over = how == BLAMED && i % 32 == 31
                                  ? bhi_restart_lost(&restart, true, 1)
                                  : bhi_restart_taken(&restart, how == BLAMED, 1);
            if (over) {
                BHT_EQ(how, STARTING);
                BHT_EQ(i, 32);
                break;
            }
            BHT_TRUE(how != STARTING || i < 32);
        }
        BHT_EQ(restart.credit_ns, 4000 * MS);
    }
}

/* As after any other death before a result: a worker that is killed whenever it starts does not keep a
 * processor busy. */
TEST(deaths_by_others_are_backed_off) {
    struct bhi_restart restart = fresh();
    static const uint64_t pauses_ms[] = {0, 10, 20, 40};
    for (size_t i = 0; i < BHT_COUNT(pauses_ms); i++) {
        BHT_TRUE(!bhi_restart_taken(&restart, true, 5 * MS));
        BHT_EQ(restart.not_before_ns, i ? (5 + pauses_ms[i]) * MS : 0);
    }
    bhi_restart_served(&restart, 6 * MS);
    restart.productive = true;
    BHT_TRUE(!bhi_restart_taken(&restart, true, 7 * MS));
    BHT_EQ(restart.not_before_ns, 0);
}

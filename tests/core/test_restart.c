/* The restart budget (case 50): what is charged, how starts are backed off, how both heal. */
#include "cmocka_all.h"
#include "core/restart.h"

#include <stdbool.h>

#define MS 1000000ull

static struct bhi_restart fresh(void) {
    struct bhi_restart restart;
    bhi_restart_init(&restart, 4, 4000 * MS, 0); /* a death costs a second */
    return restart;
}

static void test_budget_is_spent(void **state) {
    (void)state;
    struct bhi_restart restart = fresh();
    for (int i = 0; i < 4; i++)
        assert_false(bhi_restart_lost(&restart, false, 0));
    assert_true(bhi_restart_lost(&restart, false, 0));
    assert_true(bhi_restart_lost(&restart, false, 999 * MS));
    assert_false(bhi_restart_lost(&restart, false, 1000 * MS)); /* one has come back */
    assert_true(bhi_restart_lost(&restart, false, 1001 * MS));
}

static void test_refill(void **state) {
    (void)state;
    struct bhi_restart restart = fresh();
    for (int i = 0; i < 5; i++)
        (void)bhi_restart_lost(&restart, false, 0);
    bhi_restart_refill(&restart, 1);
    for (int i = 0; i < 4; i++)
        assert_false(bhi_restart_lost(&restart, false, 1));
    assert_true(bhi_restart_lost(&restart, false, 1));
}

static void test_credit_is_bounded(void **state) {
    (void)state;
    struct bhi_restart restart = fresh();
    /* Even where the clock jumps far enough to wrap the sum. */
    assert_false(bhi_restart_lost(&restart, false, UINT64_MAX - 1));
    for (int i = 0; i < 3; i++)
        assert_false(bhi_restart_lost(&restart, false, UINT64_MAX - 1));
    assert_true(bhi_restart_lost(&restart, false, UINT64_MAX - 1));
}

static void test_backoff_doubles(void **state) {
    (void)state;
    struct bhi_restart restart;
    bhi_restart_init(&restart, 1000, 1000000 * MS, 0);
    static const uint64_t expected_ms[] = {0, 10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000};
    for (size_t i = 0; i < sizeof expected_ms / sizeof expected_ms[0]; i++) {
        assert_false(bhi_restart_lost(&restart, false, 5 * MS));
        uint64_t expected = expected_ms[i] ? (5 + expected_ms[i]) * MS : 0;
        assert_int_equal(restart.not_before_ns, expected);
    }
}

static void lose(struct bhi_restart *restart, int times, uint64_t now_ns) {
    for (int i = 0; i < times; i++)
        assert_false(bhi_restart_lost(restart, false, now_ns));
}

static void test_a_long_life_ends_the_backoff(void **state) {
    (void)state;
    struct bhi_restart restart = fresh();
    lose(&restart, 2, 0);
    assert_int_not_equal(restart.not_before_ns, 0);
    bhi_restart_served(&restart, 1 * MS);
    assert_false(bhi_restart_lost(&restart, false, 1000 * MS)); /* a millisecond short */
    assert_int_equal(restart.not_before_ns, 1020 * MS);
    bhi_restart_served(&restart, 2000 * MS);
    assert_false(bhi_restart_lost(&restart, false, 3000 * MS));
    assert_int_equal(restart.not_before_ns, 0);
}

static void test_a_start_is_no_life(void **state) {
    (void)state;
    struct bhi_restart restart = fresh();
    lose(&restart, 1, 0);
    bhi_restart_served(&restart, 1 * MS);
    lose(&restart, 1, 2 * MS);
    /* This one never served: the last one's life is not its. */
    assert_false(bhi_restart_lost(&restart, false, 3000 * MS));
    assert_int_equal(restart.not_before_ns, 3020 * MS);
}

static void test_the_productive_are_free(void **state) {
    (void)state;
    struct bhi_restart restart = fresh();
    lose(&restart, 2, 0);
    for (int i = 0; i < 100; i++) {
        bhi_restart_served(&restart, 1 * MS);
        restart.productive = true;
        assert_false(bhi_restart_lost(&restart, false, 1 * MS));
        assert_int_equal(restart.not_before_ns, 0);
    }
    lose(&restart, 2, 1 * MS);
    assert_true(bhi_restart_lost(&restart, false, 1 * MS));
    /* The merit of one is not the next one's. */
    bhi_restart_served(&restart, 1 * MS);
    assert_true(bhi_restart_lost(&restart, false, 1 * MS));
}

static void test_the_blamed_are_free(void **state) {
    (void)state;
    struct bhi_restart restart = fresh();
    for (int i = 0; i < 100; i++) {
        assert_false(bhi_restart_lost(&restart, true, 0));
        assert_int_equal(restart.not_before_ns, 0);
    }
    lose(&restart, 4, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget_is_spent),
        cmocka_unit_test(test_refill),
        cmocka_unit_test(test_credit_is_bounded),
        cmocka_unit_test(test_backoff_doubles),
        cmocka_unit_test(test_a_long_life_ends_the_backoff),
        cmocka_unit_test(test_a_start_is_no_life),
        cmocka_unit_test(test_the_productive_are_free),
        cmocka_unit_test(test_the_blamed_are_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

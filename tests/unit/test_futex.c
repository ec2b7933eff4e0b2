#include "base/futex.h"
#include "cmocka_all.h"
#include "tests/unit/slowness.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS      1000000ull
#define PATIENT (20000 * MS * slowness()) /* a wait that should be ended by a wake, not by this */

static void test_deadline_saturates(void **state) {
    (void)state;
    assert_true(bhi_deadline_ns(BHI_FOREVER) == BHI_FOREVER);
    assert_true(bhi_deadline_ns(BHI_FOREVER - 1) == BHI_FOREVER);
    uint64_t before = bhi_now_ns();
    uint64_t at = bhi_deadline_ns(5 * MS);
    assert_true(at >= before + 5 * MS && at <= bhi_now_ns() + 5 * MS);
    assert_true(bhi_deadline_ns(0) <= bhi_now_ns());
}

static void test_times_out_not_early(void **state) {
    (void)state;
    _Atomic uint32_t word = 7;
    for (int shared = 0; shared < 2; shared++) {
        uint64_t deadline = bhi_deadline_ns(5 * MS);
        int rc;
        while ((rc = bhi_futex_wait(&word, 7, shared, deadline)) == 0)
            ;
        assert_int_equal(rc, -ETIMEDOUT);
        assert_true(bhi_now_ns() >= deadline);
        struct bhi_futex_wait any[2] = {{&word, 7, shared}, {&word, 7, shared}};
        deadline = bhi_deadline_ns(5 * MS);
        while ((rc = bhi_futex_wait_any(any, 2, deadline)) == 0)
            ;
        assert_int_equal(rc, -ETIMEDOUT);
        assert_true(bhi_now_ns() >= deadline);
    }
    /* A deadline that has passed does not wait, and neither does a word that has changed. */
    assert_int_equal(bhi_futex_wait(&word, 7, false, 1), -ETIMEDOUT);
    assert_int_equal(bhi_futex_wait(&word, 6, false, BHI_FOREVER), 0);
    struct bhi_futex_wait any[2] = {{&word, 7, false}, {&word, 6, false}};
    assert_int_equal(bhi_futex_wait_any(any, 2, BHI_FOREVER), 0);
}

static void test_wait_any_limits(void **state) {
    (void)state;
    _Atomic uint32_t word = 7;
    struct bhi_futex_wait any[BHI_FUTEX_MAX + 1];
    for (size_t i = 0; i <= BHI_FUTEX_MAX; i++)
        any[i] = (struct bhi_futex_wait){&word, 7, false};
    assert_int_equal(bhi_futex_wait_any(any, 0, 1), -EINVAL);
    assert_int_equal(bhi_futex_wait_any(any, BHI_FUTEX_MAX + 1, 1), -EINVAL);
    assert_int_equal(bhi_futex_wait_any(any, BHI_FUTEX_MAX, 1), -ETIMEDOUT);
    any[BHI_FUTEX_MAX - 1].expected = 8;
    assert_int_equal(bhi_futex_wait_any(any, BHI_FUTEX_MAX, BHI_FOREVER), 0);
}

struct sleeper {
    _Atomic uint32_t *word;
    int rc;
};

static void *sleep_on_word(void *argument) {
    struct sleeper *s = argument;
    uint64_t deadline = bhi_deadline_ns(PATIENT);
    while ((s->rc = bhi_futex_wait(s->word, 0, false, deadline)) == 0 && atomic_load(s->word) == 0)
        ;
    return NULL;
}

static void test_wake_wakes(void **state) {
    (void)state;
    _Atomic uint32_t word = 0;
    struct sleeper sleepers[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        sleepers[i] = (struct sleeper){&word, -1};
        assert_int_equal(pthread_create(&threads[i], NULL, sleep_on_word, &sleepers[i]), 0);
    }
    atomic_store(&word, 1);
    bhi_futex_wake(&word, false, 3);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(sleepers[i].rc, 0);
    }
}

static void *wake_second(void *argument) {
    _Atomic uint32_t *words = argument;
    atomic_store(&words[1], 1);
    bhi_futex_wake(&words[1], false, 1);
    return NULL;
}

static void test_wait_any_wakes_on_either(void **state) {
    (void)state;
    _Atomic uint32_t words[2] = {0, 0};
    struct bhi_futex_wait any[2] = {{&words[0], 0, false}, {&words[1], 0, false}};
    pthread_t thread;
    uint64_t deadline = bhi_deadline_ns(PATIENT);
    assert_int_equal(pthread_create(&thread, NULL, wake_second, words), 0);
    while (atomic_load(&words[1]) == 0)
        assert_int_equal(bhi_futex_wait_any(any, 2, deadline), 0);
    pthread_join(thread, NULL);
}

/* The supervisor sleeps on a word that it has mapped read-only, in another process's memory. */
static void test_across_processes_read_only(void **state) {
    (void)state;
    int fd = memfd_create("futex", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, 4096), 0);
    const _Atomic uint32_t *view = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    _Atomic uint32_t *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(view != MAP_FAILED && word != MAP_FAILED);
    for (int any = 0; any < 2; any++) {
        atomic_store(word, 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            atomic_store(word, 1);
            bhi_futex_wake(word, true, 1);
            _exit(0);
        }
        uint64_t deadline = bhi_deadline_ns(PATIENT);
        struct bhi_futex_wait wait = {view, 0, true};
        while (atomic_load(view) == 0)
            assert_int_equal(any ? bhi_futex_wait_any(&wait, 1, deadline)
                                 : bhi_futex_wait(view, 0, true, deadline),
                             0);
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
    munmap((void *)(uintptr_t)view, 4096);
    munmap(word, 4096);
    close(fd);
}

static void test_spin_budget_adapts(void **state) {
    (void)state;
    _Atomic uint32_t word = 0;
    struct bhi_spin spin = BHI_SPIN_INIT(8000);
    /* Changed already: no spinning, and nothing is learned. */
    assert_true(bhi_spin_wait(&spin, &word, 1));
    assert_int_equal(atomic_load(&spin.budget_ns), 8000);
    /* Misses halve the budget, down to a floor from which it can recover. */
    assert_false(bhi_spin_wait(&spin, &word, 0));
    assert_int_equal(atomic_load(&spin.budget_ns), 4000);
    for (int i = 0; i < 10; i++)
        assert_false(bhi_spin_wait(&spin, &word, 0));
    assert_int_equal(atomic_load(&spin.budget_ns), 500);
    /* A budget from nowhere is cut to the limit before it is used. */
    struct bhi_spin wild = BHI_SPIN_INIT(UINT32_MAX);
    uint64_t before = bhi_now_ns();
    assert_false(bhi_spin_wait(&wild, &word, 0));
    assert_true(bhi_now_ns() - before < 4000 * MS);
    assert_int_equal(atomic_load(&wild.budget_ns), 25000);
    /* 0: this place never spins. */
    struct bhi_spin never = BHI_SPIN_INIT(0);
    assert_false(bhi_spin_wait(&never, &word, 0));
    assert_int_equal(atomic_load(&never.budget_ns), 0);
}

static void *count_up(void *argument) {
    _Atomic uint32_t *words = argument; /* [0] counts, [1] asks for one more, [2] ends it */
    uint32_t seen = 0;
    while (!atomic_load(&words[2])) {
        if (atomic_load(&words[1]) != seen) {
            seen = atomic_load(&words[1]);
            atomic_fetch_add(&words[0], 1);
        }
    }
    return NULL;
}

/* Once spinning catches the change, the budget rises, and never above 50 µs. */
static void test_spin_success_raises(void **state) {
    (void)state;
    _Atomic uint32_t words[3] = {0, 0, 0};
    struct bhi_spin spin = BHI_SPIN_INIT(50000);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, count_up, words), 0);
    uint64_t deadline = bhi_deadline_ns(PATIENT);
    bool raised = false;
    while (!raised && bhi_now_ns() < deadline) {
        uint32_t expected = atomic_load(&words[0]);
        uint32_t budget = 10000;
        atomic_store(&spin.budget_ns, budget);
        atomic_fetch_add(&words[1], 1);
        bhi_spin_wait(&spin, &words[0], expected);
        raised = atomic_load(&spin.budget_ns) > budget;
        while (atomic_load(&words[0]) == expected && bhi_now_ns() < deadline)
            ;
    }
    assert_true(raised);
    assert_true(atomic_load(&spin.budget_ns) <= 50000);
    atomic_store(&words[2], 1);
    pthread_join(thread, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deadline_saturates),
        cmocka_unit_test(test_times_out_not_early),
        cmocka_unit_test(test_wait_any_limits),
        cmocka_unit_test(test_wake_wakes),
        cmocka_unit_test(test_wait_any_wakes_on_either),
        cmocka_unit_test(test_across_processes_read_only),
        cmocka_unit_test(test_spin_budget_adapts),
        cmocka_unit_test(test_spin_success_raises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

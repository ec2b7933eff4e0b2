#include "base/futex.h"
#include "harness.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ull
#define PATIENT                                                                                    \
    (20000 * MS * bht_slowness()) /* a wait that should be ended by a wake, not by this */

TEST(test_deadline_saturates) {
    BHT_EQ(bhi_deadline_ns(BHI_FOREVER), BHI_FOREVER);
    BHT_EQ(bhi_deadline_ns(BHI_FOREVER - 1), BHI_FOREVER);
    uint64_t before = bhi_now_ns();
    uint64_t at = bhi_deadline_ns(5 * MS);
    BHT_TRUE(at >= before + 5 * MS && at <= bhi_now_ns() + 5 * MS);
    BHT_LE(bhi_deadline_ns(0), bhi_now_ns());
}

TEST(test_times_out_not_early) {
    _Atomic uint32_t word = 7;
    for (int shared = 0; shared < 2; shared++) {
        uint64_t deadline = bhi_deadline_ns(5 * MS);
        int rc;
        while ((rc = bhi_futex_wait(&word, 7, shared, deadline)) == 0)
            ;
        BHT_EQ(rc, -ETIMEDOUT);
        BHT_GE(bhi_now_ns(), deadline);
        struct bhi_futex_wait any[2] = {{&word, 7, shared}, {&word, 7, shared}};
        deadline = bhi_deadline_ns(5 * MS);
        while ((rc = bhi_futex_wait_any(any, 2, deadline)) == 0)
            ;
        BHT_EQ(rc, -ETIMEDOUT);
        BHT_GE(bhi_now_ns(), deadline);
    }
    /* A deadline that has passed does not wait, and neither does a word that has changed. */
    BHT_EQ(bhi_futex_wait(&word, 7, false, 1), -ETIMEDOUT);
    BHT_EQ(bhi_futex_wait(&word, 6, false, BHI_FOREVER), 0);
    struct bhi_futex_wait any[2] = {{&word, 7, false}, {&word, 6, false}};
    BHT_EQ(bhi_futex_wait_any(any, 2, BHI_FOREVER), 0);
}

TEST(test_wait_any_limits) {
    _Atomic uint32_t word = 7;
    struct bhi_futex_wait any[BHI_FUTEX_MAX + 1];
    for (size_t i = 0; i <= BHI_FUTEX_MAX; i++) {
        any[i] = (struct bhi_futex_wait){&word, 7, false};
    }
    BHT_EQ(bhi_futex_wait_any(any, 0, 1), -EINVAL);
    BHT_EQ(bhi_futex_wait_any(any, BHI_FUTEX_MAX + 1, 1), -EINVAL);
    BHT_EQ(bhi_futex_wait_any(any, BHI_FUTEX_MAX, 1), -ETIMEDOUT);
    any[BHI_FUTEX_MAX - 1].expected = 8;
    BHT_EQ(bhi_futex_wait_any(any, BHI_FUTEX_MAX, BHI_FOREVER), 0);
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

TEST(test_wake_wakes) {
    _Atomic uint32_t word = 0;
    struct sleeper sleepers[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        sleepers[i] = (struct sleeper){&word, -1};
        BHT_EQ(pthread_create(&threads[i], NULL, sleep_on_word, &sleepers[i]), 0);
    }
    atomic_store(&word, 1);
    bhi_futex_wake(&word, false, 3);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        BHT_EQ(sleepers[i].rc, 0);
    }
}

static void *wake_second(void *argument) {
    _Atomic uint32_t *words = argument;
    atomic_store(&words[1], 1);
    bhi_futex_wake(&words[1], false, 1);
    return NULL;
}

TEST(test_wait_any_wakes_on_either) {
    _Atomic uint32_t words[2] = {0, 0};
    struct bhi_futex_wait any[2] = {{&words[0], 0, false}, {&words[1], 0, false}};
    pthread_t thread;
    uint64_t deadline = bhi_deadline_ns(PATIENT);
    BHT_EQ(pthread_create(&thread, NULL, wake_second, words), 0);
    while (atomic_load(&words[1]) == 0) {
        BHT_EQ(bhi_futex_wait_any(any, 2, deadline), 0);
    }
    pthread_join(thread, NULL);
}

/* The supervisor sleeps on a word that it has mapped read-only, in another process's memory. */
TEST(test_across_processes_read_only) {
    int fd = memfd_create("futex", MFD_CLOEXEC);
    BHT_EQ(ftruncate(fd, 4096), 0);
    const _Atomic uint32_t *view = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    _Atomic uint32_t *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    BHT_TRUE(view != MAP_FAILED && word != MAP_FAILED);
    for (int any = 0; any < 2; any++) {
        atomic_store(word, 0);
        pid_t child = fork();
        BHT_GE(child, 0);
        if (child == 0) {
            atomic_store(word, 1);
            bhi_futex_wake(word, true, 1);
            _exit(0);
        }
        uint64_t deadline = bhi_deadline_ns(PATIENT);
        struct bhi_futex_wait wait = {view, 0, true};
        while (atomic_load(view) == 0) {
            BHT_EQ(any ? bhi_futex_wait_any(&wait, 1, deadline)
                       : bhi_futex_wait(view, 0, true, deadline),
                   0);
        }
        BHT_EQ(waitpid(child, NULL, 0), child);
    }
    munmap((void *)(uintptr_t)view, 4096);
    munmap(word, 4096);
    close(fd);
}

/* Spinning looks at the clock and gives way between two looks at its word: both are the test's here
 * (linked with --wrap), so that it does not matter how fast the machine is. */
static struct {
    uint64_t now_ns, tick_ns;  /* what it is; what each look at it costs. 0, 0: the real one */
    _Atomic uint32_t *answers; /* rises when the spinner gives way */
    uint64_t away_ns;          /* for how long others then have the processor */
    int processors;            /* 0: those of the machine */
} spun;

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out) {
    if (spun.now_ns == 0) {
        return __real_clock_gettime(clock, out);
    }
    *out = (struct timespec){.tv_nsec = (long)(spun.now_ns += spun.tick_ns)};
    return 0;
}

int __real_sched_yield(void);
int __wrap_sched_yield(void);
int __wrap_sched_yield(void) {
    if (spun.answers) {
        atomic_fetch_add(spun.answers, 1);
    }
    spun.now_ns += spun.away_ns;
    return __real_sched_yield();
}

int __real_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *out);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *out);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *out) {
    if (spun.processors == 0) {
        return __real_sched_getaffinity(pid, size, out);
    }
    CPU_ZERO(out);
    for (int i = 0; i < spun.processors; i++) {
        CPU_SET(i, out);
    }
    return 0;
}

TEST(test_spin_budget_adapts) {
    _Atomic uint32_t word = 0;
    struct bhi_spin spin = BHI_SPIN_INIT(8000);
    spun.now_ns = spun.tick_ns = 1000;
    /* Changed already: no spinning, and nothing is learned. */
    BHT_TRUE(bhi_spin_wait(&spin, &word, 1));
    BHT_EQ(atomic_load(&spin.budget_ns), 8000);
    /* Misses halve the budget, down to a floor from which it can recover. */
    BHT_TRUE(!bhi_spin_wait(&spin, &word, 0));
    BHT_EQ(atomic_load(&spin.budget_ns), 4000);
    for (int i = 0; i < 10; i++) {
        BHT_TRUE(!bhi_spin_wait(&spin, &word, 0));
    }
    BHT_EQ(atomic_load(&spin.budget_ns), 500);
    /* A budget from nowhere is cut to the limit before it is used. */
    struct bhi_spin wild = BHI_SPIN_INIT(UINT32_MAX);
    const uint64_t before = spun.now_ns;
    BHT_TRUE(!bhi_spin_wait(&wild, &word, 0));
    BHT_WITHIN(spun.now_ns - before, BHI_SPIN_MAX_NS, BHI_SPIN_MAX_NS + 2 * spun.tick_ns);
    BHT_EQ(atomic_load(&wild.budget_ns), 25000);
    /* 0: this place never spins. */
    struct bhi_spin never = BHI_SPIN_INIT(0);
    BHT_TRUE(!bhi_spin_wait(&never, &word, 0));
    BHT_EQ(atomic_load(&never.budget_ns), 0);
    spun.now_ns = spun.tick_ns = 0;
}

/* Once spinning catches the change, the budget rises, and never above 50 µs. */
TEST(test_spin_success_raises) {
    static const uint32_t budgets[] = {15000, 22500, 33750, 50000, 50000};
    _Atomic uint32_t word = 0;
    struct bhi_spin spin = BHI_SPIN_INIT(10000);
    spun.now_ns = spun.tick_ns = 1000;
    spun.answers = &word;
    for (uint32_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++) {
        BHT_TRUE(bhi_spin_wait(&spin, &word, i));
        BHT_EQ(atomic_load(&word), i + 1);
        BHT_EQ(atomic_load(&spin.budget_ns), budgets[i]);
    }
    spun.answers = NULL;
    spun.now_ns = spun.tick_ns = 0;
}

/* After a yield others have kept the processor: that is no success, and the next waits sleep. */
TEST(test_spin_leaves_a_busy_processor) {
    _Atomic uint32_t word = 0;
    struct bhi_spin spin = BHI_SPIN_INIT(10000);
    spun.now_ns = spun.tick_ns = 1000;
    spun.answers = &word;
    spun.away_ns = 4 * MS;
    BHT_TRUE(bhi_spin_wait(&spin, &word, 0));
    BHT_EQ(atomic_load(&spin.budget_ns), 10000);
    const uint64_t left_ns = spun.now_ns;
    spun.away_ns = 0;
    for (int i = 0; i < 100; i++) {
        BHT_TRUE(!bhi_spin_wait(&spin, &word, 1));
    }
    BHT_EQ(spun.now_ns, left_ns); /* it has not even begun */
    BHT_TRUE(bhi_spin_wait(&spin, &word, 1));
    BHT_EQ(atomic_load(&word), 2);
    BHT_EQ(atomic_load(&spin.budget_ns), 15000);
    spun.answers = NULL;
    spun.now_ns = spun.tick_ns = 0;
}

TEST(test_spin_yields_sooner_with_few_processors) {
    static const int processors[] = {1, 3, 4, 16}, pauses[] = {8, 8, 64, 64};
    for (size_t i = 0; i < BHT_COUNT(processors); i++) {
        spun.processors = processors[i];
        BHT_EQ(bhi_spin_prepare(), pauses[i]);
    }
    spun.processors = 0;
    (void)bhi_spin_prepare();
}

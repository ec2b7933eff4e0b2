#include "harness.h"
#include "faults.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_SECONDS 120
#define EXIT_FAILED     1
/* A test that ends by itself (exit() in the code under test) must not look like one that passed. */
#define EXIT_PASSED 113
#define EXIT_HUNG   114
/* From the time limit to the kill: to say what hangs. */
#define LAST_WORDS_SECONDS 5
#define NIGHTLY_FACTOR     100

static void (*describe)(void);
static void (*begin_test)(void), (*end_test)(void), (*end_first[8])(void);
static struct {
    void **list;
    size_t count;
} memory;
static unsigned default_flags;
static atomic_flag described = ATOMIC_FLAG_INIT;

void bht_describe_with(void (*function)(void)) {
    describe = function;
}

/* Once in each test: another thread's failure, or the time limit, may come meanwhile. */
static void describe_once(void) {
    if (describe && !atomic_flag_test_and_set(&described)) {
        describe();
    }
}

void bht_around(void (*set_up)(void), void (*tear_down)(void)) {
    begin_test = set_up;
    end_test = tear_down;
}

void bht_end_with(void (*end)(void)) {
    size_t i = 0;
    while (end_first[i] && end_first[i] != end) {
        i++;
    }
    BHT_LT(i, BHT_COUNT(end_first) - 1);
    end_first[i] = end;
}

void *bht_own(void *one) {
    memory.list = realloc(memory.list, (memory.count + 1) * sizeof *memory.list);
    BHT_TRUE(one && memory.list);
    memory.list[memory.count++] = one;
    return one;
}

static void end_all(void) {
    for (size_t i = 0; end_first[i]; i++) {
        end_first[i]();
    }
    while (memory.count > 0) {
        free(memory.list[--memory.count]);
    }
    free(memory.list);
    memory.list = NULL;
}

void bht_default_flags(unsigned flags) {
    default_flags = flags;
}

bool bht_nightly(void) {
    const char *value = getenv("BULKHEAD_TEST_NIGHTLY");
    return value && strcmp(value, "1") == 0;
}

unsigned bht_slowness(void) {
    const char *value = getenv("BULKHEAD_TEST_SLOWNESS");
    const long slowness = value ? strtol(value, NULL, 10) : 1;
    return slowness < 1 ? 1 : slowness > 100 ? 100 : (unsigned)slowness;
}

static unsigned limit_seconds(const struct bht_test *test) {
    unsigned seconds = test->seconds ? test->seconds : DEFAULT_SECONDS;
    return (bht_nightly() ? seconds * NIGHTLY_FACTOR : seconds) * bht_slowness();
}

void bht_fail(const char *file, int line, const char *format, ...) {
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s:%d: %s\n", file, line, text);
    describe_once();
    fflush(NULL);
    _exit(EXIT_FAILED);
}

void bht_check_int(const char *file, int line, const char *left_text, const char *right_text,
                   intmax_t left, intmax_t right, const char *op, bool holds) {
    if (!holds) {
        bht_fail(file, line, "%s %s %s does not hold: %jd and %jd", left_text, op, right_text, left,
                 right);
    }
}

void bht_check_float(const char *file, int line, const char *left_text, const char *right_text,
                     double left, double right, const char *op, bool holds) {
    if (!holds) {
        bht_fail(file, line, "%s %s %s does not hold: %.17g and %.17g", left_text, op, right_text,
                 left, right);
    }
}

void bht_check_str(const char *file, int line, const char *left_text, const char *left,
                   const char *right, bool contains) {
    bool holds = left && right && (contains ? !!strstr(left, right) : strcmp(left, right) == 0);
    if (!holds) {
        bht_fail(file, line, "%s is \"%s\", must %s \"%s\"", left_text, left ? left : "(null)",
                 contains ? "contain" : "be", right ? right : "(null)");
    }
}

void bht_check_mem(const char *file, int line, const char *left_text, const void *left,
                   const void *right, size_t size) {
    const unsigned char *a = left, *b = right;
    for (size_t i = 0; i < size; i++) {
        if (a[i] != b[i]) {
            bht_fail(file, line, "%s differs at byte %zu of %zu: 0x%02x, must be 0x%02x", left_text,
                     i, size, a[i], b[i]);
        }
    }
}

const char *bht_quoted(const char *text) {
    static char texts[4][1024];
    static size_t next;
    char *out = texts[next++ % BHT_COUNT(texts)], *end = out;
    BHT_LT(strlen(text), sizeof texts[0]);
    do {
        *end++ = *text == '`' ? '"' : *text;
    } while (*text++);
    return out;
}

uint64_t bht_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void bht_poll_pause(void) {
    const struct timespec pause = {.tv_nsec = 200 * 1000};
    nanosleep(&pause, NULL);
}

static void check_left(const char *what, size_t before, size_t after) {
    if (before != after) {
        fprintf(stderr, "%s: %zu before, %zu after\n", what, before, after);
        if (strcmp(what, "descriptors") == 0) {
            char command[64];
            snprintf(command, sizeof command, "ls -l /proc/%d/fd >&2", (int)getpid());
            (void)!system(command);
        }
        fflush(NULL);
        _exit(EXIT_FAILED);
    }
}

static struct {
    pthread_t all[64];
    size_t count;
} threads;

void bht_start(void *(*run)(void *argument), void *argument) {
    BHT_LT(threads.count, BHT_COUNT(threads.all));
    BHT_EQ(pthread_create(&threads.all[threads.count++], NULL, run, argument), 0);
}

void bht_join(void) {
    while (threads.count > 0) {
        BHT_EQ(pthread_join(threads.all[--threads.count], NULL), 0);
    }
}

/* The thread that describes a test that hangs. It is there before anything is counted, until after
 * everything was. It exists only where there is something to describe. */
static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t waits, over;
    bool is_waiting, is_over;
    uint64_t limit_ns;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .waits = PTHREAD_COND_INITIALIZER};

static void *watch_test(void *unused) {
    struct timespec end = {.tv_sec = (time_t)(watch.limit_ns / 1000000000u),
                           .tv_nsec = (long)(watch.limit_ns % 1000000000u)};
    pthread_mutex_lock(&watch.lock);
    watch.is_waiting = true;
    pthread_cond_signal(&watch.waits);
    int error = 0;
    while (!watch.is_over && error != ETIMEDOUT) {
        error = pthread_cond_timedwait(&watch.over, &watch.lock, &end);
    }
    bool is_over = watch.is_over;
    pthread_mutex_unlock(&watch.lock);
    if (is_over) {
        return unused;
    }
    fprintf(stderr, "the test has not ended in time\n");
    describe_once();
    _exit(EXIT_HUNG); /* no flush: a stream's lock may be what hangs, and stderr has no buffer */
}

static void start_watch(unsigned seconds) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&watch.over, &attributes);
    pthread_condattr_destroy(&attributes);
    watch.limit_ns = bht_now_ns() + seconds * UINT64_C(1000000000);
    /* Signals are the test's own business. */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&watch.thread, NULL, watch_test, NULL) != 0) {
        BHT_FAIL("pthread_create failed");
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    /* A thread that begins allocates, under ASan with a lock held that a test's first fork() would
     * hand to its child for ever. */
    pthread_mutex_lock(&watch.lock);
    while (!watch.is_waiting) {
        pthread_cond_wait(&watch.waits, &watch.lock);
    }
    pthread_mutex_unlock(&watch.lock);
}

static void stop_watch(void) {
    pthread_mutex_lock(&watch.lock);
    watch.is_over = true;
    pthread_cond_signal(&watch.over);
    pthread_mutex_unlock(&watch.lock);
    pthread_join(watch.thread, NULL);
}

__attribute__((noreturn)) static void run_in_child(const struct bht_test *test) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* where ctest kills the program, its test goes, too */
    /* Whoever is orphaned by the code under test comes to us and is counted. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    fflush(NULL);
    if (describe) {
        start_watch(limit_seconds(test));
    }
    struct bht_counts before = bht_count_self();
    if (begin_test) {
        begin_test();
    }
    test->run();
    end_all();
    if (end_test) {
        end_test();
    }
    struct bht_counts after = bht_count_self();
    /* A thread that has been joined is in /proc a moment longer; a child that is dying, and that
     * whoever started it reaps, is there until it has got a processor for that. */
    uint64_t end_ns = bht_now_ns() + UINT64_C(2000000000) * bht_slowness();
    while ((after.threads > before.threads || after.children > before.children) &&
           bht_now_ns() < end_ns) {
        bht_poll_pause();
        after = bht_count_self();
    }
    const unsigned flags = test->flags ? test->flags : default_flags;
    if ((flags & BHT_ALLOW_DESCRIPTORS) == 0) {
        check_left("descriptors", before.descriptors, after.descriptors);
    }
    check_left("children", before.children, after.children);
    check_left("blocks of memory", before.blocks, after.blocks);
    if ((flags & BHT_ALLOW_THREADS) == 0 && !BHT_TSAN) {
        check_left("threads", before.threads, after.threads);
    }
    if ((flags & BHT_ALLOW_MAPPINGS) == 0) {
        check_left("mappings", before.mappings, after.mappings);
    }
    bht_faults_check();
    if (describe) {
        stop_watch();
    }
    /* exit() and not _exit(): the leak checker runs there. atexit order makes ours the last word.
     */
    fflush(NULL);
    exit(EXIT_PASSED);
}

/* Returns NULL where the test passed, else why not. */
static const char *judge(const struct bht_test *test, int status, bool timed_out, char *text,
                         size_t size) {
    if (timed_out || (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_HUNG)) {
        snprintf(text, size, "killed after %u s", limit_seconds(test));
        return text;
    }
    if (WIFSIGNALED(status)) {
        if (test->signal != 0 && WTERMSIG(status) == test->signal) {
            return NULL;
        }
        snprintf(text, size, "died of signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
        return text;
    }
    if (test->signal != 0) {
        snprintf(text, size, "exit status %d, must die of signal %d", WEXITSTATUS(status),
                 test->signal);
        return text;
    }
    if (WEXITSTATUS(status) != EXIT_PASSED) {
        snprintf(text, size, "exit status %d", WEXITSTATUS(status));
        return text;
    }
    return NULL;
}

/* Kills and reaps what a failed test has left behind; its orphans come to us. */
static void sweep(pid_t group) {
    kill(-group, SIGKILL);
    uint64_t end = bht_now_ns() + UINT64_C(5000000000) * bht_slowness();
    pid_t left[64];
    while (bht_now_ns() < end) {
        size_t count = bht_descendants(getpid(), left, BHT_COUNT(left));
        for (size_t i = 0; i < count && i < BHT_COUNT(left); i++) {
            kill(left[i], SIGKILL);
        }
        pid_t reaped = waitpid(-1, NULL, WNOHANG);
        if (reaped < 0 && errno == ECHILD) {
            return;
        }
        if (reaped == 0) {
            bht_poll_pause();
        }
    }
    fprintf(stderr, "a process that a test has left behind cannot be killed\n");
}

static bool run_test(const struct bht_test *test) {
    uint64_t start = bht_now_ns();
    bht_faults_begin();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        run_in_child(test);
    }
    if (pid < 0) {
        printf("FAIL %s: fork: %s\n", test->name, strerror(errno));
        return false;
    }
    setpgid(pid, pid); /* both sides do it, so that the kill below cannot come too early */
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    unsigned seconds = limit_seconds(test) + (describe ? LAST_WORDS_SECONDS * bht_slowness() : 0);
    struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};
    bool timed_out = poll(&poll_fd, 1, (int)seconds * 1000) == 0;
    if (timed_out) {
        kill(-pid, SIGKILL);
        kill(pid, SIGKILL);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    close(pidfd);
    sweep(pid);
    bht_faults_end();
    char text[128];
    const char *why = judge(test, status, timed_out, text, sizeof text);
    double milliseconds = (double)(bht_now_ns() - start) / 1e6;
    if (why) {
        printf("FAIL %s: %s (%.0f ms)\n", test->name, why, milliseconds);
    } else {
        printf("ok   %s (%.0f ms)\n", test->name, milliseconds);
    }
    fflush(stdout);
    return !why;
}

static bool all_without(int argc, char **argv) {
    return argc > 1 && strcmp(argv[1], "--without") == 0;
}

static bool wanted(const char *name, int argc, char **argv) {
    const bool without = all_without(argc, argv);
    for (int i = without ? 2 : 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            return !without;
        }
    }
    return argc <= 1 || without;
}

/* How many tests the arguments ask for, if each of them is one. */
static size_t asked_for(int argc, char **argv, size_t count) {
    if (all_without(argc, argv)) {
        return count - (size_t)(argc - 2);
    }
    return argc > 1 ? (size_t)(argc - 1) : count;
}

static struct bht_test *added;
static size_t added_count;

void bht_add(const struct bht_test *test) {
    added = realloc(added, (added_count + 1) * sizeof *added);
    BHT_TRUE(added);
    size_t at = added_count++;
    for (; at > 0 && added[at - 1].line > test->line; at--) {
        added[at] = added[at - 1];
    }
    added[at] = *test;
}

int bht_main(int argc, char **argv, const struct bht_test *tests, size_t count) {
    if (!tests) {
        tests = added;
        count = added_count;
    }
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < count; i++) {
            puts(tests[i].name);
        }
        return 0;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    mallopt(M_PERTURB, 0x5a); /* what malloc gives, and what was freed, is never zero by chance */
    size_t passed = 0, failed = 0;
    for (size_t i = 0; i < count; i++) {
        if (wanted(tests[i].name, argc, argv)) {
            bool ok = run_test(&tests[i]);
            passed += ok;
            failed += !ok;
        }
    }
    printf("%zu passed, %zu failed\n", passed, failed);
    if (passed + failed == 0 || passed + failed != asked_for(argc, argv, count)) {
        fprintf(stderr, "no such test; --list lists them\n");
        return 2;
    }
    return failed == 0 ? 0 : 1;
}

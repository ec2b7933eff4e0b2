/* Test harness: each test runs in a child process of its own, under a time limit, and must leave
 * that process as it found it: descriptors, children, threads and mappings are counted before and
 * after. A crash, an exit or a hang is a failure of that test and of no other.
 *
 *     TEST(opens_and_closes) { BHT_EQ(bhi_thing_open(&thing), 0); … }
 *
 * That is the whole program: the harness has a main() for those that have none.
 * Arguments name the tests to run (all without); --without NAME... runs all others; --list lists
 * them.
 * Asserts end the test at once: no clean-up runs, which is fine in a process that is about to end.
 */
#ifndef BHT_HARNESS_H
#define BHT_HARNESS_H

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which sanitizer is in the test itself. TSan has a thread of its own, which starts when it likes.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BHT_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define BHT_TSAN 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define BHT_ASAN 1
#endif
#ifdef __SANITIZE_THREAD__
#define BHT_TSAN 1
#endif
#ifndef BHT_ASAN
#define BHT_ASAN 0
#endif
#ifndef BHT_TSAN
#define BHT_TSAN 0
#endif
/* What has to happen within a second may take five under a sanitizer, and more on a machine that
 * others keep busy. */
#define BHT_SECOND_MS (BHT_WAIT_SECOND_MS * (uint64_t)bht_slowness())
/* For WAIT_UNTIL, which multiplies by itself. */
#define BHT_WAIT_SECOND_MS (BHT_ASAN || BHT_TSAN ? 5000 : 1000)

#define BHT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum bht_flags {
    /* Mappings and threads are counted too. Off for a test that makes a library keep something on
     * purpose (an allocator's arena, a driver's thread): say why beside it. */
    BHT_ALLOW_MAPPINGS = 1u << 0,
    BHT_ALLOW_THREADS = 1u << 1,
    BHT_ALLOW_DESCRIPTORS = 1u << 2, /* as a GPU's driver keeps */
};

struct bht_test {
    const char *name;
    void (*run)(void);
    unsigned seconds; /* time limit; 0: 120; see bht_nightly */
    unsigned flags;   /* enum bht_flags */
    int signal;       /* the test must die of this signal (0: it must return) */
    int line;         /* of TEST; 0 in a table */
};

/* A test, which bht_main finds by itself. They run in the order of their lines. */
#define TEST(function)                  BHT_ADD(function, 0, 0, 0)
#define TEST_WITH(function, secs, bits) BHT_ADD(function, secs, bits, 0)
#define DEATH_TEST(function, signo)     BHT_ADD(function, 0, 0, signo)
#define BHT_ADD(function, ...)                                                                     \
    static void function(void);                                                                    \
    __attribute__((constructor)) static void bht_add_##function(void) {                            \
        static const struct bht_test test = {#function, function, __VA_ARGS__, __LINE__};          \
        bht_add(&test);                                                                            \
    }                                                                                              \
    static void function(void)
void bht_add(const struct bht_test *test);
/* Makes |call|, one of those below, before main. Once in a file. */
#define BHT_AT_START(call)                                                                         \
    __attribute__((constructor)) static void bht_at_start(void) {                                  \
        call;                                                                                      \
    }

/* In a table of a program that makes its tests itself, or has a main() of its own. */
#define BHT_TEST(function)                  {#function, function, 0, 0, 0, 0}
#define BHT_TEST_WITH(function, secs, bits) {#function, function, secs, bits, 0, 0}
#define BHT_DEATH_TEST(function, signo)     {#function, function, 0, 0, signo, 0}

/* Has a failing test say more: |describe| prints to standard error what the test was in. It is
 * called at a failed assert, and by a thread of the harness's own when the test has run into its
 * time limit, whatever the test's threads do then: it must not wait for them for ever. To be called
 * before main (a constructor) or first thing in it. */
void bht_describe_with(void (*describe)(void));

/* How many times as long everything may take: $BULKHEAD_TEST_SLOWNESS, 1 to 100 (`scripts/test
 * --under-load` sets it); else 1. It is in all bounds: the tests' limits, BHT_SECOND_MS,
 * FX_SECONDS, WAIT_UNTIL. */
unsigned bht_slowness(void);

/* Nightly: the long versions of the tests ($BULKHEAD_TEST_NIGHTLY is 1). Time limits are 100 times
 * as long. */
bool bht_nightly(void);

/* Both run in the process of each test, before and after it: what is counted has to be as before
 * once |tear_down| is through. Either may be NULL. To be called before bht_main: BHT_AT_START. */
void bht_around(void (*set_up)(void), void (*tear_down)(void));
/* Runs after a test that has returned, before the |tear_down| above: after each, if it was called
 * before main, else after the test that has called it. What was given first runs first, and once. */
void bht_end_with(void (*end)(void));
/* Memory of malloc() that is freed after the test, when all that |bht_end_with| got has run. Returns
 * it: never NULL. */
void *bht_own(void *memory);
/* A folder of its own below /tmp, which is removed after the test with all that is in it. */
const char *bht_folder(void);
/* Removes a folder with all that is in it. False: errno says why. */
bool bht_remove(const char *folder);
/* From now on this process has mounts of its own, and may mount; an ordinary user needs a user
 * namespace for that, which only a process with one thread can enter. False: it may not. */
bool bht_own_mounts(void);
/* Writes a file, and makes the folders above it. */
__attribute__((format(printf, 2, 3))) void bht_put(const char *text, const char *format, ...);
/* What a test of this program has whose flags are 0. The same. */
void bht_default_flags(unsigned flags);

/* |tests| NULL: those that TEST has added. Returns the exit status for main: 0 all passed, 1 some
 * failed, 2 bad usage. */
int bht_main(int argc, char **argv, const struct bht_test *tests, size_t count);

/* -- asserts -------------------------------------------------------------------------------- */

__attribute__((noreturn, format(printf, 3, 4))) void bht_fail(const char *file, int line,
                                                              const char *format, ...);
void bht_check_int(const char *file, int line, const char *left_text, const char *right_text,
                   intmax_t left, intmax_t right, const char *op, bool holds);
void bht_check_float(const char *file, int line, const char *left_text, const char *right_text,
                     double left, double right, const char *op, bool holds);
void bht_check_str(const char *file, int line, const char *left_text, const char *left,
                   const char *right, bool contains);
void bht_check_mem(const char *file, int line, const char *left_text, const void *left,
                   const void *right, size_t size);

#define BHT_IS_WHOLE(value) _Generic((value), float: 0, double: 0, default: 1)
#define BHT_NUMBER(value)                                                                          \
    ((double)_Generic((value),                                                                     \
         float: (value),                                                                           \
         double: (value),                                                                          \
         int: (value),                                                                             \
         unsigned: (value),                                                                        \
         long: (value),                                                                            \
         unsigned long: (value),                                                                   \
         default: 0))
#define BHT_FAIL(...) bht_fail(__FILE__, __LINE__, __VA_ARGS__)
#define BHT_TRUE(condition)                                                                        \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            bht_fail(__FILE__, __LINE__, "not true: %s", #condition);                              \
        }                                                                                          \
    } while (0)
/* Integers and pointers, or numbers of which one is a float. What is compared is evaluated once. */
#define BHT_COMPARE(left, op, right)                                                               \
    do {                                                                                           \
        if (BHT_IS_WHOLE(left) && BHT_IS_WHOLE(right)) {                                           \
            const intmax_t bht_left = (intmax_t)(left), bht_right = (intmax_t)(right);             \
            bht_check_int(__FILE__, __LINE__, #left, #right, bht_left, bht_right, #op,             \
                          bht_left op bht_right);                                                  \
        } else {                                                                                   \
            const double bht_left = BHT_NUMBER(left), bht_right = BHT_NUMBER(right);               \
            bht_check_float(__FILE__, __LINE__, #left, #right, bht_left, bht_right, #op,           \
                            bht_left op bht_right);                                                \
        }                                                                                          \
    } while (0)
#define BHT_EQ(left, right) BHT_COMPARE(left, ==, right)
#define BHT_NE(left, right) BHT_COMPARE(left, !=, right)
#define BHT_LT(left, right) BHT_COMPARE(left, <, right)
#define BHT_LE(left, right) BHT_COMPARE(left, <=, right)
#define BHT_GT(left, right) BHT_COMPARE(left, >, right)
#define BHT_GE(left, right) BHT_COMPARE(left, >=, right)
#define BHT_WITHIN(value, least, most)                                                             \
    do {                                                                                           \
        intmax_t bht_value = (intmax_t)(value);                                                    \
        bht_check_int(__FILE__, __LINE__, #value, #least, bht_value, (intmax_t)(least),            \
                      ">=", bht_value >= (intmax_t)(least));                                       \
        bht_check_int(__FILE__, __LINE__, #value, #most, bht_value, (intmax_t)(most),              \
                      "<=", bht_value <= (intmax_t)(most));                                        \
    } while (0)
#define BHT_STR_EQ(left, right)       bht_check_str(__FILE__, __LINE__, #left, left, right, false)
#define BHT_STR_HAS(left, needle)     bht_check_str(__FILE__, __LINE__, #left, left, needle, true)
#define BHT_MEM_EQ(left, right, size) bht_check_mem(__FILE__, __LINE__, #left, left, right, size)

/* |text| with a " for each `: for JSON in tables. The last four of them stay. */
const char *bht_quoted(const char *text);

/* -- waiting: always for a condition, always bounded ---------------------------------------- */

uint64_t bht_now_ns(void); /* CLOCK_MONOTONIC */
void bht_poll_pause(void); /* 200 us: between two looks at a condition, nothing else */

/* Looks at |condition| until it holds; fails the test after |milliseconds| (times bht_slowness()).
 */
#define WAIT_UNTIL(condition, milliseconds)                                                        \
    do {                                                                                           \
        uint64_t bht_end = bht_now_ns() + (uint64_t)(milliseconds) * 1000000u * bht_slowness();    \
        while (!(condition)) {                                                                     \
            if (bht_now_ns() > bht_end) {                                                          \
                bht_fail(__FILE__, __LINE__, "still not true after %" PRIu64 " ms: %s",            \
                         (uint64_t)(milliseconds), #condition);                                    \
            }                                                                                      \
            bht_poll_pause();                                                                      \
        }                                                                                          \
    } while (0)

/* -- in place of other functions ------------------------------------------------------------- */

/* What is called in place of |name| (the linker's --wrap); __real_name is what it replaces. A
 * sanitizer's library may refer to either.
 *     BHT_WRAP(int, stat, const char *path, struct stat *out) { return __real_stat(path, out); } */
#define BHT_WRAP(type, name, ...)                                                                  \
    __attribute__((visibility("default"))) type __real_##name(__VA_ARGS__);                        \
    __attribute__((visibility("default"))) type __wrap_##name(__VA_ARGS__);                        \
    type __wrap_##name(__VA_ARGS__)

/* -- threads of a test ---------------------------------------------------------------------- */

/* Starts one, in a thread of the test's; waits for all that were started. */
void bht_start(void *(*run)(void *argument), void *argument);
void bht_join(void);

/* -- counting ------------------------------------------------------------------------------- */

struct bht_counts {
    size_t descriptors; /* of this process */
    size_t children;    /* direct ones, zombies included */
    size_t threads;
    size_t blocks;   /* of the heap, in programs with heap.c */
    size_t mappings; /* lines of /proc/self/maps without heap, stack and anonymous memory */
};

struct bht_counts bht_count_self(void);
size_t bht_heap_blocks(void) __attribute__((weak)); /* heap.c */
size_t bht_count_descriptors(pid_t pid);            /* 0 where it cannot be seen */
/* Does it have such a file mapped? |file|: the beginning of its path, as in /proc/PID/maps. */
bool bht_maps(pid_t pid, const char *file);
size_t bht_count_children(pid_t pid);
/* All processes below |pid| (not itself), zombies left out. */
size_t bht_count_descendants(pid_t pid);
/* Up to |capacity| of them into |out|. Returns how many there are. */
size_t bht_descendants(pid_t pid, pid_t *out, size_t capacity);
/* One of them whose short name (comm) is |name|, no zombie; 0: there is none. */
pid_t bht_descendant_called(pid_t pid, const char *name);
/* Processes on the machine, zombies left out, whose command line's first word ends in |name|. */
size_t bht_count_processes(const char *name);
/* The state letter of /proc/PID/stat; 'X' where there is no such process. */
char bht_process_state(pid_t pid);
uint64_t bht_resident_bytes(pid_t pid);
/* Of the file |name| in /proc/PID: how many lines have |words|, 0 where it cannot be read; and the
 * number behind |key| in the first line that begins so, |none| where there is none. */
size_t bht_proc_lines(pid_t pid, const char *name, const char *words);
long long bht_proc_number(pid_t pid, const char *name, const char *key, long long none);

/* -- children of a test --------------------------------------------------------------------- */

/* Starts argv[0] (found in PATH) with standard output and error in one temporary file. */
struct bht_child {
    pid_t pid;
    int output; /* descriptor of the file */
};
void bht_spawn(struct bht_child *child, const char *const *argv);
/* Waits |milliseconds|, times bht_slowness(), at most (else kills it and fails the test). Returns
 * the exit status, or 128 plus the signal. |out| gets the beginning of its output, NUL-terminated;
 * may be NULL. */
int bht_finish(struct bht_child *child, unsigned milliseconds, char *out, size_t capacity);
/* Both at once; a time limit of 60 s. */
int bht_run(const char *const *argv, char *out, size_t capacity);
/* |built|, or what $BHT_PROGRAMS has in its place: a program of ours with a mistake (mutants/run). */
const char *bht_program(const char *built);

#ifdef __cplusplus
}
#endif
#endif

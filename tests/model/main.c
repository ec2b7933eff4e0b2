/* Plays random histories against the core and compares what comes of them with the oracle.
 *
 *   model_check [--seed S] [--count N]   N histories, from seed S on; the first that fails is
 *                                        shrunk and printed (--no-shrink: only named)
 *   model_check --replay S [--no-shrink] the history of seed S, step by step
 *   model_check --file PATH              a printed history, step by step; read up to a line that
 *                                        begins with #
 *   model_check --exhaustive [--count N] every schedule of some small programs, N at most each
 *
 * BULKHEAD_TEST_NIGHTLY=1: more of them, then every schedule there is. Exit status: 0 all is well,
 * 1 a history fails, 2 usage. */
#include "program.h"
#include "tally.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEFAULT_COUNT 100000ull
#define SMALL_COUNT   400000ull
#define NIGHTLY_COUNT 2000000ull

static bool shrinks = true;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Step by step, as far as it goes. */
static int show(const struct program *program) {
    char failure[400];
    program_print(program, stdout);
    printf("# what happens:\n");
    bool good = model_play(program, stdout, failure, sizeof failure);
    printf("# %s\n", good ? "nothing is wrong" : failure);
    return good ? 0 : 1;
}

static int fail(struct program *program, const char *failure, unsigned long long after) {
    printf("FAILED after %llu histories, seed %llu: %s\n", after, (unsigned long long)program->seed,
           failure);
    if (!shrinks) {
        return 1;
    }
    model_shrink(program);
    printf("# shrunk; replay it with --file, the whole with --replay %llu\n",
           (unsigned long long)program->seed);
    (void)show(program);
    return 1;
}

uint64_t model_tallies[TALLY_COUNT];

static const char *const TALLY_TEXTS[] = {
#define X(name, text) text,
    MODEL_TALLIES(X)
#undef X
};

/* Everything must have happened now and then, if there were enough histories for it. */
static int sum_up(uint64_t count) {
    int result = 0;
    for (int i = 0; i < TALLY_COUNT; i++) {
        printf("  %10llu %s\n", (unsigned long long)model_tallies[i], TALLY_TEXTS[i]);
        if (!model_tallies[i] && count >= 2000) {
            printf("FAILED: that has never happened\n");
            result = 1;
        }
    }
    return result;
}

static int check(uint64_t seed, uint64_t count) {
    static struct program program;
    char failure[400];
    double start = seconds();
    for (uint64_t i = 0; i < count; i++) {
        program_generate(&program, seed + i);
        if (!model_play(&program, NULL, failure, sizeof failure)) {
            return fail(&program, failure, i + 1);
        }
    }
    printf("%llu histories from seed %llu, %.1f s: nothing is wrong\n", (unsigned long long)count,
           (unsigned long long)seed, seconds() - start);
    return sum_up(count);
}

static int explore(uint64_t limit) {
    static struct program program;
    char failure[400];
    for (uint32_t i = 0; i < explore_count(); i++) {
        double start = seconds();
        bool complete;
        uint64_t played = explore_all(i, limit, &program, failure, sizeof failure, &complete);
        if (failure[0]) {
            return fail(&program, failure, played);
        }
        printf("%s: %llu schedules, %s, %.1f s: nothing is wrong\n", explore_name(i),
               (unsigned long long)played, complete ? "all there are" : "not all",
               seconds() - start);
    }
    return 0;
}

static int usage(void) {
    fprintf(stderr, "usage: model_check [--seed S] [--count N] | --replay S [--no-shrink] | "
                    "--file PATH | --exhaustive [--count N]\n");
    return 2;
}

int main(int argc, char **argv) {
    static struct program program;
    bool nightly = getenv("BULKHEAD_TEST_NIGHTLY");
    uint64_t seed = 1, count = 0;
    bool replay = false, exhaustive = false;
    const char *path = NULL;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--exhaustive") == 0) {
            exhaustive = true;
        } else if (strcmp(argv[i], "--no-shrink") == 0) {
            shrinks = false;
        } else if (!value) {
            return usage();
        } else if (strcmp(argv[i], "--seed") == 0) {
            seed = strtoull(argv[++i], NULL, 0);
        } else if (strcmp(argv[i], "--count") == 0) {
            count = strtoull(argv[++i], NULL, 0);
        } else if (strcmp(argv[i], "--replay") == 0) {
            replay = true, seed = strtoull(argv[++i], NULL, 0);
        } else if (strcmp(argv[i], "--file") == 0) {
            path = argv[++i];
        } else {
            return usage();
        }
    }
    if (path) {
        FILE *file = fopen(path, "r");
        bool good = file && program_parse(&program, file);
        if (file) {
            fclose(file);
        }
        if (!good) {
            return usage();
        }
        return show(&program);
    }
    if (replay) {
        char failure[400];
        program_generate(&program, seed);
        if (shrinks && !model_play(&program, NULL, failure, sizeof failure)) {
            return fail(&program, failure, 1);
        }
        return show(&program);
    }
    if (exhaustive) {
        return explore(count ? count : SMALL_COUNT);
    }
    if (!nightly) {
        return check(seed, count ? count : DEFAULT_COUNT);
    }
    int result = check(seed, count ? count : NIGHTLY_COUNT);
    return result ? result : explore(UINT64_MAX);
}

/* Prints the outcome of a run: as text on standard error, or as an object for --json. */
#ifndef BHI_TOOL_VERDICT_H
#define BHI_TOOL_VERDICT_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct bhi_ending;

/* The times of the rounds. The first round is a warm-up and is not part of the statistics. */
struct bhi_spread {
    bool known;     /* the time of every round is known */
    uint64_t count; /* rounds without the warm-up; 0: the statistics are unknown */
    uint64_t warm_up_ns, min_ns, median_ns, p99_ns;
};

/* Computes the spread of |count| times, which are in the order of the rounds; sorts them. p99 is
 * the least time that 99 of 100 rounds do not exceed. */
struct bhi_spread bhi_spread_of(uint64_t *times, uint64_t count);

struct bhi_run_outcome {
    bh_verdict verdict; /* of the last submission; 0 in a field means unknown */
    uint64_t submissions;
    uint64_t ready; /* submissions that ended READY; min_ns and median_ns are theirs */
    uint64_t min_ns, median_ns;
    bool timed; /* --time was given: */
    struct bhi_spread device, host;
};

/* The exit status for a status of the library. */
int bhi_verdict_exit_status(bh_status status);
/* The exit status for a verdict: it also distinguishes a kernel that crashed its compiler from one
 * that the compiler refused. */
int bhi_verdict_exit(const bh_verdict *verdict);

/* Prints a paragraph: what happened in |command|, to which kernel, whether it executed, and what to
 * do. |trusted|: it ran without the guard. */
void bhi_verdict_print(const char *command, const bh_verdict *verdict, bool trusted);
/* Prints the times of --time as a table. */
void bhi_verdict_print_times(FILE *stream, const struct bhi_run_outcome *outcome);
/* How a command ended, for --json. */
struct bhi_end {
    int exit_status;
    const char *kernel;         /* the kernel's name */
    const uint8_t *kernel_hash; /* NULL: no kernel was loaded */
    const struct bhi_ending *ending;
};

/* Prints one JSON object and a line end on stdout. The keys are the same for every ending. */
void bhi_verdict_print_json(const struct bhi_run_outcome *outcome, const struct bhi_end *end);

#endif

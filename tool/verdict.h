/* Prints the outcome of a run: as text on standard error, as an object for --json. */
#ifndef BHI_TOOL_VERDICT_H
#define BHI_TOOL_VERDICT_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct bhi_ending;

/* Times of rounds. The first one is the warm-up; the others are what is counted. */
struct bhi_spread {
    bool known;     /* all of them are */
    uint64_t count; /* without the warm-up; 0: what follows it is not known */
    uint64_t warm_up_ns, min_ns, median_ns, p99_ns;
};

/* Of |count| times, in order; sorts them. p99 is the least that 99 of 100 are not over. */
struct bhi_spread bhi_spread_of(uint64_t *times, uint64_t count);

struct bhi_run_outcome {
    bh_verdict verdict; /* of the last submission; a field that is not known is 0 */
    uint64_t submissions;
    uint64_t ready; /* of them; min_ns and median_ns are theirs */
    uint64_t min_ns, median_ns;
    bool timed; /* --time: */
    struct bhi_spread device, host;
};

/* The exit status that a status of the library leads to. */
int bhi_verdict_exit_status(bh_status status);
/* The same of a verdict, which says more: a kernel that ended its compiler is not one that the
 * compiler has refused. */
int bhi_verdict_exit(const bh_verdict *verdict);

/* A paragraph: what happened in |command|, to which kernel, whether it executed, what to do. */
void bhi_verdict_print(const char *command, const bh_verdict *verdict);
/* Those of --time, as a table. */
void bhi_verdict_print_times(FILE *stream, const struct bhi_run_outcome *outcome);
/* How it ended, as --json tells it. */
struct bhi_end {
    int exit_status;
    const char *kernel;         /* its name */
    const uint8_t *kernel_hash; /* NULL: there is no kernel yet */
    const struct bhi_ending *ending;
};

/* One JSON object on stdout, and a line end; with the same keys, however it ended. */
void bhi_verdict_print_json(const struct bhi_run_outcome *outcome, const struct bhi_end *end);

#endif

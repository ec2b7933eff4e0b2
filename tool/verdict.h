/* What became of a run, for a person (stderr) and for a program (--json). */
#ifndef BHI_TOOL_VERDICT_H
#define BHI_TOOL_VERDICT_H

#include <bulkhead/bulkhead.h>
#include <stdint.h>

struct bhi_ending;

struct bhi_run_outcome {
    bh_verdict verdict; /* of the last submission; a field that is not known is 0 */
    uint64_t submissions;
    uint64_t ready; /* of them; min_ns and median_ns are theirs */
    uint64_t min_ns, median_ns;
};

/* The exit status that a status of the library leads to. */
int bhi_verdict_exit_status(bh_status status);
/* The same of a verdict, which says more: a kernel that ended its compiler is not one that the
 * compiler has refused. */
int bhi_verdict_exit(const bh_verdict *verdict);

/* A paragraph: what happened in |command|, to which kernel, whether it executed, what to do. */
void bhi_verdict_print(const char *command, const bh_verdict *verdict);
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

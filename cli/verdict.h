/* What became of a run, for a person (stderr) and for a program (--json). */
#ifndef BHI_CLI_VERDICT_H
#define BHI_CLI_VERDICT_H

#include <bulkhead/bulkhead.h>
#include <stdint.h>

struct bhi_outcome {
    bh_verdict verdict; /* of the last submission; a field that is not known is 0 */
    uint64_t submissions;
    uint64_t ready; /* of them; min_ns and median_ns are theirs */
    uint64_t min_ns, median_ns;
};

/* The exit status that a status of the library leads to. */
int bhi_verdict_exit_status(bh_status status);

/* A paragraph: what happened in |command|, to which kernel, whether it executed, what to do. */
void bhi_verdict_print(const char *command, const bh_verdict *verdict);
/* One JSON object on stdout, and a line end. */
void bhi_verdict_print_json(const struct bhi_outcome *outcome);

#endif

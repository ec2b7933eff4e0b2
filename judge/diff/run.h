/* A run of `bulkhead judge`, as --json has written it. */
#ifndef BHI_JUDGE_DIFF_RUN_H
#define BHI_JUDGE_DIFF_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "formats/complaint.h"

/* Texts are borrowed from the run's |json|. */
struct bhi_past_candidate {
    const char *file, *verdict, *message;
    double ratio, low, high; /* geometric means of all sizes; 0: not measured */
};

struct bhi_past_run {
    json_t *json; /* owned */
    const char *task;
    struct bhi_past_candidate *list; /* owned */
    size_t count;
};

/* Reads the file at |path| ("-": standard input). The complaint begins with PATH:LINE: and the
 * field. *out_errno is the errno if the file cannot be read, otherwise 0. After a failure nothing
 * is owned. */
bool bhi_past_run_read(const char *path, struct bhi_past_run *out, int *out_errno,
                       struct bhi_complaint *complaint);
/* The same for a |text|; |name| is for complaints. */
bool bhi_past_run_parse(const char *name, const char *text, struct bhi_past_run *out,
                        struct bhi_complaint *complaint);
void bhi_past_run_free(struct bhi_past_run *run);

#endif

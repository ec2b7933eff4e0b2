/* A run of `bulkhead judge`, as --json has written it. */
#ifndef BHI_JUDGE_DIFF_RUN_H
#define BHI_JUDGE_DIFF_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "formats/complaint.h"

/* How a time was measured: times that differ in one of these say nothing about each other. */
enum bhi_condition {
    BHI_CONDITION_PROCESSORS, /* set: on one processor */
    BHI_CONDITION_CACHES,     /* set: cold */
    BHI_CONDITION_CLOCK,      /* set: the device's */
    BHI_CONDITIONS
};

/* Times of one size whose ratio is known. */
struct bhi_past_timing {
    const json_t *size; /* borrowed from the run's |json|; NULL: not recorded */
    double ratio, low, high;
    bool conditions[BHI_CONDITIONS];
};

/* Texts are borrowed from the run's |json|. */
struct bhi_past_candidate {
    const char *file, *verdict, *message;
    struct bhi_past_timing *timings; /* owned */
    size_t timing_count;
};

struct bhi_past_run {
    json_t *json; /* owned */
    const char *task;
    const char *device;              /* its selector; "": an earlier version has not recorded it */
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

/* What a job asks for, in full: what `bulkhead run` makes of the same arguments. Made when the
 * job's turn comes, and gone with its attempt. */
#ifndef BHI_BATCH_JOB_REQUEST_H
#define BHI_BATCH_JOB_REQUEST_H

#include <jansson.h>

#include "request/eval.h"

struct bhi_job_request {
    struct bhi_run_request run; /* kernel_path, in_path and out_path are in the folder given */
    json_t *object;             /* the parsed text, a reference; |run| borrows from it */
    char *kernel_path;          /* owned; |run|'s */
    int error; /* errno of the last refusal; 0: none, or nothing to do with the system */
};

/* Parses |text| (of bhi_job_spec or bhi_job). Paths in it are relative to |folder| and become
 * whole; NULL leaves them as they are written. What -I names is read here (|reads_includes|: who
 * makes no kernel needs none of it). The complaint names the key. On failure nothing is owned.
 * Thread: any. */
bool bhi_job_request_parse(const char *text, const char *folder, bool reads_includes,
                           struct bhi_job_request *out_request, struct bhi_complaint *complaint);
/* The same of an object (bhi_job_object_load). */
bool bhi_job_request_fill(json_t *object, const char *folder, bool reads_includes,
                          struct bhi_job_request *out_request, struct bhi_complaint *complaint);
void bhi_job_request_free(struct bhi_job_request *request);

#endif

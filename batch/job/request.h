/* The full request of a job, as `bulkhead run` makes it from the same arguments. Made when the
 * job's turn comes, and freed with the attempt. */
#ifndef BHI_BATCH_JOB_REQUEST_H
#define BHI_BATCH_JOB_REQUEST_H

#include <jansson.h>

#include "request/eval.h"

struct bhi_job_request {
    struct bhi_run_request run; /* its paths are inside the given folder */
    json_t *object;             /* a reference to the parsed text; |run| borrows from it */
    char *kernel_path;          /* owned; |run|'s */
    int error; /* errno of the last refusal; 0: none, or no system call was the reason */
};

/* Parses |text| (of bhi_job_spec or bhi_job). Paths in it are relative to |folder| and are joined
 * with it; NULL leaves them as written. With |reads_includes| the files of -I are read; without a
 * kernel to make they are not needed. The complaint names the key. On failure nothing is owned.
 * Thread: any. */
bool bhi_job_request_parse(const char *text, const char *folder, bool reads_includes,
                           struct bhi_job_request *out_request, struct bhi_complaint *complaint);
/* The same for an object (bhi_job_object_load). */
bool bhi_job_request_fill(json_t *object, const char *folder, bool reads_includes,
                          struct bhi_job_request *out_request, struct bhi_complaint *complaint);
void bhi_job_request_free(struct bhi_job_request *request);

#endif

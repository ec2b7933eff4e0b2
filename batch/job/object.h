/* A job's JSON object: which keys there are, of which kind, and how they become the arguments of
 * `bulkhead run`. Between job.c and request.c. */
#ifndef BHI_BATCH_JOB_OBJECT_H
#define BHI_BATCH_JOB_OBJECT_H

#include <jansson.h>

#include "batch/job/request.h"

/* One object, all of |text|; its keys are known and of the right kind. NULL with a complaint. */
json_t *bhi_job_object_load(const char *text, size_t length, struct bhi_complaint *complaint);
/* Parses what there is of `bulkhead run` in |object|, which |out_request| then holds a reference
 * of. |reads_includes|: reads what -I names. On failure nothing is owned, and out_request->error
 * says what the system had to do with it. */
bool bhi_job_object_parse(json_t *object, const char *folder, bool reads_includes,
                          struct bhi_job_request *out_request, struct bhi_complaint *complaint);

#endif

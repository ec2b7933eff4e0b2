/* A job's JSON object: which keys there are, and of which kind. */
#ifndef BHI_BATCH_JOB_OBJECT_H
#define BHI_BATCH_JOB_OBJECT_H

#include <jansson.h>

#include "formats/complaint.h"

/* One object, all of |text|; its keys are known and of the right kind. NULL with a complaint. */
json_t *bhi_job_object_load(const char *text, size_t length, struct bhi_complaint *complaint);

#endif

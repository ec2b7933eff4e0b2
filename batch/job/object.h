/* The JSON object of a job: which keys exist, and the kinds of their values. */
#ifndef BHI_BATCH_JOB_OBJECT_H
#define BHI_BATCH_JOB_OBJECT_H

#include <jansson.h>

#include "formats/complaint.h"

/* Parses |text|, which must be one object with known keys of the right kinds. Returns NULL with a
 * complaint on failure. */
json_t *bhi_job_object_load(const char *text, size_t length, struct bhi_complaint *complaint);

#endif

/* The JSON object of a job: which keys exist, and the kinds of their values. */
#ifndef BHI_BATCH_JOB_OBJECT_H
#define BHI_BATCH_JOB_OBJECT_H

#include <jansson.h>

#include "formats/complaint.h"

/* Parses |text|, which must be one object with known keys of the right kinds. Returns NULL with a
 * complaint on failure. */
json_t *bhi_job_object_load(const char *text, size_t length, struct bhi_complaint *complaint);

/* Replaces short forms in a job's object, whose keys must be of the right kinds:
 *   "id": 7, "depends_on": [7]   "7"
 *   "groups": 16                 [16]; "grid" and "block" likewise
 *   "push": [1, 2.5, "u8:3"]     "i32:1,f32:2.5,u8:3"
 * The complaint names the key. */
bool bhi_job_lengthen(json_t *object, struct bhi_complaint *complaint);

#endif

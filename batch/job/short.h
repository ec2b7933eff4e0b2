/* Short forms in a line of JOBS, such as a number as "id". Each is replaced by its full form, so
 * that lines that mean the same have the same text. */
#ifndef BHI_BATCH_JOB_SHORT_H
#define BHI_BATCH_JOB_SHORT_H

#include <jansson.h>
#include <stdbool.h>

#include "formats/complaint.h"

/* Replaces short forms in a job's object, whose keys must be of the right kinds:
 *   "id": 7, "depends_on": [7]   "7"
 *   "groups": 16                 [16]
 *   "push": [1, 2.5, "u8:3"]     "i32:1,f32:2.5,u8:3"
 * The complaint names the key. */
bool bhi_job_lengthen(json_t *object, struct bhi_complaint *complaint);

#endif

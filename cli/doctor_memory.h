/* The part of bulkhead doctor that looks at the memory of devices. */
#ifndef BHI_CLI_DOCTOR_MEMORY_H
#define BHI_CLI_DOCTOR_MEMORY_H

#include <bulkhead/bulkhead.h>
#include <bulkhead/doctor.h>
#include <jansson.h>

/* Adds the check device-memory of each device at |checks| + *inout_count, at most |capacity| in
 * all. Adds none if there are no devices. *out_json: an array with the numbers of each device.
 * Starts a worker on each GPU; blocks, at most 30 s a device. */
void bhi_doctor_memory(bh_context *context, bh_check *checks, size_t capacity, size_t *inout_count,
                       json_t **out_json);

#endif

/* The envelope of a pipeline cache on disk: whose it is, its length, and a checksum over all of it.
 * A file is used only if it is exactly what was sealed, for the same tenant, device, driver and
 * kernel. This finds damage; who may write the folder can seal anything. Works in memory only. */
#ifndef BHI_WORKER_OPENER_CACHE_ENVELOPE_H
#define BHI_WORKER_OPENER_CACHE_ENVELOPE_H

#include <stddef.h>
#include <stdint.h>

#define BHI_ENVELOPE_IDENTITY 32u
/* magic 8, version u32, header bytes u32, payload bytes u64, identity 32, checksum 32 */
#define BHI_ENVELOPE_HEADER 88u

/* Writes the header of |payload|. Little endian. */
void bhi_envelope_seal(uint8_t header[BHI_ENVELOPE_HEADER],
                       const uint8_t identity[BHI_ENVELOPE_IDENTITY], const void *payload,
                       size_t payload_bytes);
/* Returns NULL if |file| is complete and ours: its payload, of *out_bytes, follows the header. Else
 * returns the reason. */
const char *bhi_envelope_check(const uint8_t *file, size_t size,
                               const uint8_t identity[BHI_ENVELOPE_IDENTITY], size_t *out_bytes);

#endif

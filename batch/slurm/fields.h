/* Fields of the JSON files that a submitter leaves in its state folder. */
#ifndef BHI_BATCH_SLURM_FIELDS_H
#define BHI_BATCH_SLURM_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A whole number from 0 to |most|. Returns false if |object| has none under |key|. */
bool bhi_slurm_take_number(const json_t *object, const char *key, uint64_t most, uint64_t *out);
/* Exactly |digits| hexadecimal digits; |out| has room for a zero byte, too. Likewise. */
bool bhi_slurm_take_digits(const json_t *object, const char *key, char *out, size_t digits);

#endif

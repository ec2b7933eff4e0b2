/* The header of a .safetensors file: 8 bytes of length, then a JSON object with an entry for each
 * tensor. In memory only.
 *
 * Strict: what the format does not allow is refused, and what it says about the file has to hold
 * for all tensors, not only for the one that is wanted: known dtypes, shapes that fit their bytes,
 * offsets that are in order, aligned, inside the file, and cover its data without a gap or an
 * overlap. Duplicate names are refused by the JSON parser.
 */
#ifndef BHI_FORMATS_SAFETENSORS_H
#define BHI_FORMATS_SAFETENSORS_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/array.h"

enum {
    BHI_SAFETENSORS_PREAMBLE = 8,
    BHI_SAFETENSORS_MAX_HEADER = 16 << 20,
    BHI_SAFETENSORS_MAX_DEPTH = 8, /* more than any valid header has */
};

struct bhi_tensor {
    bh_dtype dtype;
    uint32_t dimensions;
    uint64_t shape[BHI_MAX_DIMENSIONS];
    uint64_t begin, bytes; /* from the end of the header on */
};

/* |bytes|: BHI_SAFETENSORS_PREAMBLE of them. *out_length: of the JSON text that follows. */
bool bhi_safetensors_parse_preamble(const uint8_t *bytes, uint64_t file_bytes, size_t *out_length,
                                    struct bhi_complaint *complaint);
/* Finds the tensor called |name| in the JSON |text|; |data_bytes| is what is left of the file after
 * it. */
bool bhi_safetensors_find(const char *text, size_t length, uint64_t data_bytes, const char *name,
                          struct bhi_tensor *out_tensor, struct bhi_complaint *complaint);

/* |type|: the dtype as the file calls it. Where it is not known here, tensor->dtype is NONE. */
typedef void (*bhi_tensor_seen)(void *user, const char *name, const char *type,
                                const struct bhi_tensor *tensor);
/* Calls |seen| for each tensor, in the order of the header. What |seen| was told counts only where
 * the return value is true: the header is refused as a whole. */
bool bhi_safetensors_list(const char *text, size_t length, uint64_t data_bytes,
                          bhi_tensor_seen seen, void *user, struct bhi_complaint *complaint);

#endif

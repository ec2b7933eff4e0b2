/* The header of a .safetensors file: 8 bytes of length, then a JSON object with an entry for each
 * tensor. Works in memory.
 *
 * The parser is strict. It refuses what the format does not allow. It checks all tensors, not only
 * the wanted one: shapes must fit their bytes; offsets must lie inside the file, and cover its data
 * without a gap or an overlap. They need not be aligned: the data is copied. The JSON parser refuses
 * duplicate names.
 */
#ifndef BHI_FORMATS_SAFETENSORS_H
#define BHI_FORMATS_SAFETENSORS_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/array.h"
#include "formats/readable.h"

enum {
    BHI_SAFETENSORS_PREAMBLE = 8,
    BHI_SAFETENSORS_MAX_HEADER = 16 << 20,
    BHI_SAFETENSORS_MAX_DEPTH = 8, /* more than any valid header has */
};

struct bhi_tensor {
    bh_dtype dtype;
    uint32_t dimensions;
    uint64_t shape[BHI_MAX_DIMENSIONS];
    uint64_t begin, bytes; /* |begin| counts from the end of the header */
};

/* Parses the file's first BHI_SAFETENSORS_PREAMBLE bytes. *out_length is the length of the JSON
 * text that follows. */
bool bhi_safetensors_parse_preamble(const uint8_t *bytes, uint64_t file_bytes, size_t *out_length,
                                    struct bhi_complaint *complaint);
/* Reads preamble and JSON text. The caller frees *out_text; the data begins at *out_data. */
bool bhi_safetensors_read(const struct bhi_readable *file, char **out_text, size_t *out_length,
                          uint64_t *out_data, struct bhi_complaint *complaint);
/* Finds the tensor called |name| in the JSON |text|. |data_bytes| is the size of the file after
 * |text|. */
bool bhi_safetensors_find(const char *text, size_t length, uint64_t data_bytes, const char *name,
                          struct bhi_tensor *out_tensor, struct bhi_complaint *complaint);

/* Writes the header of a file that has |array| alone, called |name|, so that the data behind it is
 * aligned to 8 bytes. Returns its size, or 0 where that is over |capacity|, the name is no UTF-8 or
 * is __metadata__, or there is no memory. */
size_t bhi_safetensors_write_header(const struct bhi_array *array, const char *name, uint8_t *out,
                                    size_t capacity);

/* |type| is the dtype as the file calls it. For an unknown type tensor->dtype is BH_DTYPE_NONE. */
typedef void (*bhi_tensor_seen)(void *user, const char *name, const char *type,
                                const struct bhi_tensor *tensor);
/* Calls |seen| for each tensor, in the order of the header. If it returns false, the whole header
 * is refused, and the caller must discard what |seen| got. */
bool bhi_safetensors_list(const char *text, size_t length, uint64_t data_bytes,
                          bhi_tensor_seen seen, void *user, struct bhi_complaint *complaint);

#endif

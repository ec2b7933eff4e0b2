/* The header of a .npy file, formats 1.0, 2.0 and 3.0: parses and writes it in memory.
 *
 * The header is a Python dict literal. The parser accepts only the literals that .npy allows. It
 * does not recurse, allocate or evaluate.
 */
#ifndef BHI_FORMATS_NPY_H
#define BHI_FORMATS_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/array.h"
#include "formats/complaint.h"
#include "formats/readable.h"

enum {
    BHI_NPY_MIN_PREAMBLE = 10, /* magic, version, 16-bit header length */
    BHI_NPY_MAX_PREAMBLE = 12, /* the same with a 32-bit length */
    BHI_NPY_MAX_HEADER = 65535,
};

/* Parses the first BHI_NPY_MAX_PREAMBLE bytes, or fewer if the file is shorter. *out_start is the
 * offset of the header's text, *out_length its length. */
bool bhi_npy_parse_preamble(const uint8_t *bytes, size_t size, size_t *out_start,
                            size_t *out_length, struct bhi_complaint *complaint);

/* Parses the header's text. Refuses what Bulkhead does not read: big-endian, raw, structured, object and other dtypes; a shape that
 * overflows. */
bool bhi_npy_parse_header(const char *text, size_t length, struct bhi_array *out_array,
                          struct bhi_complaint *complaint);

/* Reads and parses the header of the .npy that is at |begin| in |file| and has |bytes|, and requires
 * that the rest is its data: at *out_data. */
bool bhi_npy_read(const struct bhi_readable *file, uint64_t begin, uint64_t bytes,
                  struct bhi_array *out_array, uint64_t *out_data, struct bhi_complaint *complaint);

/* Writes preamble and header (format 1.0, padded to 64 bytes) of |array| to |out|, which has room
 * for |capacity| bytes. Returns their size, or 0 if they do not fit; they always fit into
 * BHI_NPY_WRITE_CAPACITY bytes. */
enum { BHI_NPY_WRITE_CAPACITY = 2048 };
size_t bhi_npy_write_header(const struct bhi_array *array, uint8_t *out, size_t capacity);

#endif

/* What the tests of buffers from files share. */
#ifndef BHT_FILES_H
#define BHT_FILES_H

#include "fixture.h"
#include <bulkhead/file.h>

/* Everything of a test is in a folder of its own, which is the current one, until after the test. */
void enter_folder(void);
/* 8 bytes of |length|, |header|, |bytes| of data 0, 1, 2, … */
void write_safetensors(const char *path, uint64_t length, const char *header, size_t bytes);
bh_file_source source_of(const char *path, bh_file_format format, const char *tensor);

/* An entry of a header. */
#define TENSOR(name, dtype, shape, offsets)                                                        \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" offsets "]}"

#endif

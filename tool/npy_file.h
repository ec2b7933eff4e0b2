/* A .npy that is being read: a regular file, or standard input for "-".
 *
 * Opening reads and checks the header only. The data is read from the descriptor directly into the
 * caller's memory. A shape that does not fit a regular file is refused when it is opened. A shape
 * that does not fit a stream is refused when the data ends early or continues; bhi_npy_file_spool
 * keeps such a shape from allocating too much memory.
 */
#ifndef BHI_TOOL_NPY_FILE_H
#define BHI_TOOL_NPY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/text.h"
#include "tool/values.h"

struct bhi_npy_file {
    int fd; /* -1: not open; not owned if it is standard input */
    bool is_stdin;
    bool size_checked; /* a regular file whose size fits the shape */
    bool interrupted;  /* a signal asked for the end during a read */
    struct bhi_array array;
    uint8_t *spool; /* owned */
    uint64_t spooled;
};

/* Opens |path|; "-" is standard input. After a failure nothing is open. The complaint does not name
 * the file: the caller knows which option it came from. */
bool bhi_npy_file_open(const char *path, struct bhi_npy_file *out_file,
                       struct bhi_complaint *complaint);
/* If the shape of a stream needs more than |trusted| bytes, reads all data into memory that grows
 * as data arrives. Otherwise, and for a regular file, does nothing. */
bool bhi_npy_file_spool(struct bhi_npy_file *file, uint64_t trusted,
                        struct bhi_complaint *complaint);
/* Reads file->array.bytes bytes to |destination|, in C order. Refuses fewer or more bytes. May be called once.
 */
bool bhi_npy_file_read(struct bhi_npy_file *file, void *destination,
                       struct bhi_complaint *complaint);
void bhi_npy_file_close(struct bhi_npy_file *file);

#endif

/* A .npy being read: a regular file, or standard input for "-".
 *
 * Opening reads and checks the header only; the data goes from the descriptor straight into the
 * place where it is wanted. A shape that lies about a regular file is refused on opening, by its
 * size; about a stream, when the data ends early or goes on. A stream's claim is not believed
 * beforehand: see bhi_npy_file_spool.
 */
#ifndef BHI_TOOL_NPY_FILE_H
#define BHI_TOOL_NPY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/text.h"
#include "tool/values.h"

struct bhi_npy_file {
    int fd; /* -1: not open; not owned where it is standard input */
    bool is_stdin;
    bool size_checked; /* a regular file: its size has been checked against the shape */
    bool interrupted;  /* a signal asked for the end while reading */
    struct bhi_array array;
    uint8_t *spool; /* owned */
    uint64_t spooled;
};

/* |path| "-" is standard input. On failure nothing stays open. The complaint does not name the
 * file: the caller knows which argument it came from. */
bool bhi_npy_file_open(const char *path, struct bhi_npy_file *out_file,
                       struct bhi_complaint *complaint);
/* Reads a stream's data to its end into memory that grows only as data arrives, where the shape
 * claims more than |trusted| bytes. Does nothing for a regular file or a small claim. */
bool bhi_npy_file_spool(struct bhi_npy_file *file, uint64_t trusted,
                        struct bhi_complaint *complaint);
/* Puts file->array.bytes bytes at |destination|; refuses when there are fewer or more. Once. */
bool bhi_npy_file_read(struct bhi_npy_file *file, void *destination,
                       struct bhi_complaint *complaint);
void bhi_npy_file_close(struct bhi_npy_file *file);

#endif

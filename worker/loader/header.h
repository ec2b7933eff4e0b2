/* The header of a file: parses it, and says where in the file the data is. */
#ifndef BHI_WORKER_LOADER_HEADER_H
#define BHI_WORKER_LOADER_HEADER_H

#include "formats/complaint.h"
#include "ipc/file_answer.h"
#include "ipc/wire.h"
#include <stdbool.h>

/* Fills in dtype, shape, offset and bytes of |answer|. On failure the complaint says what is wrong
 * and where, and *out_error is errno if a read failed. */
bool bhi_loader_header(const struct bhi_msg_file_attach *file, int fd,
                       struct bhi_file_answer *answer, int *out_error,
                       struct bhi_complaint *complaint);
/* Lists the arrays of the file: writes at most |room| rows into |out|, after the place of a struct
 * bhi_file_list. *out_count is the number of arrays. */
bool bhi_loader_list(const struct bhi_msg_file_attach *file, int fd, int out, uint64_t room,
                     uint64_t *out_count, int *out_error, struct bhi_complaint *complaint);

#endif

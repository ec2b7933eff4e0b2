/* The header of a file: parses it, and says where in the file the data is. */
#ifndef BHI_LOADER_HEADER_H
#define BHI_LOADER_HEADER_H

#include "complaint.h"
#include "file_answer.h"
#include "wire.h"
#include <stdbool.h>

/* Fills in dtype, shape, offset and bytes of |answer|. On failure the complaint says what is wrong
 * and where, and *out_error is errno where a read failed. */
bool bhi_loader_header(const struct bhi_msg_file_attach *file, int fd,
                       struct bhi_file_answer *answer, int *out_error,
                       struct bhi_complaint *complaint);

#endif

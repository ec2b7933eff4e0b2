/* What a loader says of a file whose header it has parsed: written into a buffer of its own, which
 * the supervisor copies once when the inspection has ended, and then checks. */
#ifndef BHI_FILE_ANSWER_H
#define BHI_FILE_ANSWER_H

#include <stdint.h>

#define BHI_FILE_DIMENSIONS 64u
#define BHI_FILE_TEXT       512u

struct bhi_file_answer {
    uint32_t refused; /* 1: |error| and |text| say why, the rest is 0 */
    int32_t error;    /* errno; 0: none */
    uint32_t dtype;   /* bh_dtype */
    uint32_t dimensions;
    uint64_t shape[BHI_FILE_DIMENSIONS];
    uint64_t offset, bytes; /* of the data, in the file */
    char text[BHI_FILE_TEXT];
};

#endif

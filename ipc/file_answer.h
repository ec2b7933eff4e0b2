/* A loader's answer about a file whose header it has parsed. It is in a buffer of its own. The
 * supervisor copies it once when the inspection has ended, then checks it. */
#ifndef BHI_IPC_FILE_ANSWER_H
#define BHI_IPC_FILE_ANSWER_H

#include <stdint.h>

#define BHI_FILE_DIMENSIONS 64u
#define BHI_FILE_TEXT       512u

struct bhi_file_answer {
    uint32_t refused; /* a bh_reason: |error| and |text| say more, and the rest is 0; 0: none */
    int32_t error;    /* errno; 0: none */
    uint32_t dtype;   /* bh_dtype */
    uint32_t dimensions;
    uint64_t shape[BHI_FILE_DIMENSIONS];
    uint64_t offset, bytes; /* of the data in the file */
    uint64_t fortran;       /* 1: the data is in Fortran order, the shape is not */
    char text[BHI_FILE_TEXT];
};

/* The answer to an inspection with room for a list: this struct, then the rows, as many as there is
 * room for. The loader writes the rows first. */
#define BHI_FILE_NAME    1024u
#define BHI_FILE_TYPE    16u
#define BHI_FILE_TENSORS (1u << 19) /* more than a header of 16 MiB can have */

struct bhi_file_list {
    uint32_t refused; /* as above */
    int32_t error;
    uint64_t count; /* tensors in the file */
    char text[BHI_FILE_TEXT];
};

struct bhi_file_row {
    uint32_t dtype; /* bh_dtype; NONE: unknown */
    uint32_t dimensions;
    uint64_t shape[BHI_FILE_DIMENSIONS];
    uint64_t offset, bytes;   /* of the data in the file */
    char type[BHI_FILE_TYPE]; /* the dtype as the file calls it */
    char name[BHI_FILE_NAME];
};

static inline uint64_t bhi_file_list_bytes(uint64_t room) {
    return sizeof(struct bhi_file_list) + room * sizeof(struct bhi_file_row);
}

#endif

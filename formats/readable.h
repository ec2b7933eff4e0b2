/* Where the bytes of an array file come from. */
#ifndef BHI_FORMATS_READABLE_H
#define BHI_FORMATS_READABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/complaint.h"

struct bhi_readable {
    /* Fills |out| with the bytes at |offset|, or refuses. */
    bool (*read)(void *user, void *out, uint64_t offset, uint64_t bytes,
                 struct bhi_complaint *complaint);
    void *user;
    uint64_t size; /* of the file */
};

#endif

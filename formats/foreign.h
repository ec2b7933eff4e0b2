/* Files of other kinds, under a name that promises an array or a kernel: the first bytes tell which
 * kind, and with it what to do. */
#ifndef BHI_FORMATS_FOREIGN_H
#define BHI_FORMATS_FOREIGN_H

#include <stddef.h>
#include <stdint.h>

#include "formats/complaint.h"

enum bhi_foreign {
    BHI_FOREIGN_NONE,
    BHI_FOREIGN_LFS,
    BHI_FOREIGN_MARKUP,
    BHI_FOREIGN_ZIP,
    BHI_FOREIGN_GZIP,
    BHI_FOREIGN_HDF5,
    BHI_FOREIGN_GGUF,
    BHI_FOREIGN_PICKLE,
    BHI_FOREIGN_NPY,
    BHI_FOREIGN_SAFETENSORS,
};

/* Recognises a file by its first |size| bytes; eight tell all kinds but .safetensors, which needs
 * nine. */
enum bhi_foreign bhi_foreign_find(const void *bytes, size_t size);
/* Refuses the file, which is no |wanted| (such as ".npy file"), and says what to do. */
bool bhi_foreign_refuse(enum bhi_foreign foreign, const char *wanted,
                        struct bhi_complaint *complaint);

#endif

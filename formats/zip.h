/* The directory of a ZIP archive, such as a .npz: which files it has, and where their bytes are. */
#ifndef BHI_FORMATS_ZIP_H
#define BHI_FORMATS_ZIP_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/readable.h"

enum { BHI_ZIP_NAME = 1024 };

struct bhi_zip_member {
    char name[BHI_ZIP_NAME]; /* cut if it is longer */
    uint64_t offset, bytes;  /* of its data, which lies in front of the directory */
    bool packed;             /* the data is compressed or encrypted */
};

/* False ends the walk. */
typedef bool bhi_zip_visitor(void *user, const struct bhi_zip_member *member,
                             struct bhi_complaint *complaint);

/* Calls |visit| for each file in the archive, in the directory's order. Zip64 is read; archives of
 * several disks and directories of more than 16 MiB are refused. */
bool bhi_zip_walk(const struct bhi_readable *file, bhi_zip_visitor *visit, void *user,
                  struct bhi_complaint *complaint);

#endif

/* A .npz: a ZIP archive of .npy files, each an array that is called as the file without ".npy". */
#ifndef BHI_FORMATS_NPZ_H
#define BHI_FORMATS_NPZ_H

#include "formats/zip.h"

/* Cuts ".npy" off the member's name. False: it is no array. */
bool bhi_npz_take_name(struct bhi_zip_member *member);
/* Finds the array |name|. Refuses one that is not there, is there twice, or is compressed. */
bool bhi_npz_find(const struct bhi_readable *file, const char *name, struct bhi_zip_member *out,
                  struct bhi_complaint *complaint);

#endif

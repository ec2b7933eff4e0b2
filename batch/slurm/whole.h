/* Small files that other machines read: each appears whole or not at all. */
#ifndef BHI_BATCH_SLURM_WHOLE_H
#define BHI_BATCH_SLURM_WHOLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "formats/complaint.h"

/* Replaces |path| by a file with |text|, durably. The mode is |mode|. */
bool bhi_whole_write(const char *path, const void *text, size_t size, mode_t mode,
                     struct bhi_complaint *complaint);
/* Reads a regular file of at most |most| bytes; a zero byte follows. The caller owns the text.
 * Returns NULL with an errno in *out_error: ENOENT if there is none, EFBIG if it is larger. */
char *bhi_whole_read(const char *path, size_t most, size_t *out_size, int *out_error);
/* Writes some KiB into |folder| and removes them: a full file system is found out so. */
bool bhi_whole_try(const char *folder, struct bhi_complaint *complaint);
/* Formats a path or any other text. The caller owns it; NULL if memory ran out. */
char *bhi_whole_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Fields of such a file that is JSON. */

/* A whole number from 0 to |most|. Returns false if |object| has none under |key|. */
bool bhi_slurm_take_number(const json_t *object, const char *key, uint64_t most, uint64_t *out);
/* Exactly |digits| hexadecimal digits; |out| has room for a zero byte, too. Likewise. */
bool bhi_slurm_take_digits(const json_t *object, const char *key, char *out, size_t digits);

#endif

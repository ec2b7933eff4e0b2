/* The first bytes of a database's file, looked at before SQLite opens it: so a folder that is not
 * ours stays as it is. */
#ifndef BHI_BATCH_JOURNAL_HEADER_H
#define BHI_BATCH_JOURNAL_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/complaint.h"

/* Checks that the database in |folder|, if there is one, is a batch's, in a format that this
 * version reads. |path| is its name for the complaint. */
bool bhi_header_peek(int folder, const char *path, struct bhi_complaint *complaint);
/* The same of what SQLite says about it. */
bool bhi_header_check(const char *path, int64_t application, int64_t version,
                      struct bhi_complaint *complaint);
/* Is there a database that has tables? */
bool bhi_header_has_tables(int folder);
/* Complains that it is none. Always returns false. */
bool bhi_header_complain_foreign(const char *path, struct bhi_complaint *complaint);

#endif

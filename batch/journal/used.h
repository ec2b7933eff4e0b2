/* The files that an attempt has read: its kernel, what that includes, and its inputs, each with the
 * mark of the content that it got. */
#ifndef BHI_BATCH_JOURNAL_USED_H
#define BHI_BATCH_JOURNAL_USED_H

#include <stdbool.h>
#include <stddef.h>

#include "batch/journal/marks.h"

struct bhi_used {
    char *bytes; /* owned: mark and path of each, each with its NUL */
    size_t size, capacity;
};

/* Each returns false if out of memory. */
bool bhi_used_add(struct bhi_used *used, const struct bhi_used_mark *mark, const char *path);
bool bhi_used_append(struct bhi_used *used, const struct bhi_used *others);
/* Moves *at, which begins as NULL, to the next mark; its path follows it. Returns NULL behind the
 * last one. */
const char *bhi_used_next(const struct bhi_used *used, const char **at);
void bhi_used_free(struct bhi_used *used);

#endif

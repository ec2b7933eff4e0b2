/* Suggests a name: the existing name that differs least from the typed one. */
#ifndef BHI_TOOL_NEAREST_H
#define BHI_TOOL_NEAREST_H

#include <stddef.h>

/* Set it to {.word = ...}, then call bhi_nearest_try for each candidate. */
struct bhi_nearest {
    const char *word; /* borrowed */
    const char *best; /* borrowed; NULL: none is close enough */
    size_t distance;  /* from |word| to |best| */
};

/* Keeps |candidate| if it is closer than those before. The distance counts letters that are
 * inserted, left out, changed, or swapped with the next one. A candidate is too far if more than a
 * third of its letters change, unless it begins with |word|. A synonym counts as the same word:
 * "timeout" means "deadline". */
void bhi_nearest_try(struct bhi_nearest *nearest, const char *candidate);

/* Writes "; did you mean 'BEST'?", or nothing, to |out| and returns it. */
const char *bhi_nearest_hint(const struct bhi_nearest *nearest, const char *before, char out[160]);

#endif

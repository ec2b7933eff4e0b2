/* Suggests a name: of all that exist, the one that differs least from the typed one. */
#ifndef BHI_TOOL_NEAREST_H
#define BHI_TOOL_NEAREST_H

#include <stddef.h>

/* Begin with {.word = ...}; then each candidate goes through bhi_nearest_try. */
struct bhi_nearest {
    const char *word; /* borrowed */
    const char *best; /* borrowed; NULL: none is near */
    size_t distance;  /* of |best| */
};

/* Keeps |candidate| where it is nearer than those before: a letter put in, left out, changed or
 * swapped with its neighbour counts one. What needs more than a third of its letters changed is
 * another word; one that |word| begins is near. */
void bhi_nearest_try(struct bhi_nearest *nearest, const char *candidate);

/* "; did you mean 'BEST'?", or nothing. Returns |out|. */
const char *bhi_nearest_hint(const struct bhi_nearest *nearest, const char *before, char out[160]);

#endif

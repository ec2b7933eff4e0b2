/* The push constants of a variant, in this order: the number of elements, the sizes of the axes, how a
 * reduction walks, the numbers of the launch, the numbers that are written in the expression. */
#ifndef BHI_TEMPLATES_CONSTANTS_H
#define BHI_TEMPLATES_CONSTANTS_H

#include "formats/dtype.h"
#include "templates/shape.h"

enum {
    BHI_PUSH_WORDS = 32, /* 128 bytes, the least limit of devices */
    BHI_CONSTANT_TEXT = 96,
};

struct bhi_constants {
    uint32_t words[BHI_PUSH_WORDS];
    uint32_t count; /* words in use; more than there are: too many numbers */
};

/* The word of an axis. Each has its size there, and then what bh_quotient multiplies by to divide by it;
 * but the outermost, 0, which nothing is divided by. */
static inline uint32_t bhi_constants_axis(uint32_t axis) {
    return 1 + 2 * (axis - 1);
}
void bhi_constants_put_axes(const struct bhi_axes *axes, uint32_t *words);
/* How many words a number takes: 1 or 2. */
uint32_t bhi_constant_words(bh_dtype dtype);
/* Writes a number of |dtype|, whose bytes are |bits|, as its words. */
void bhi_constant_put(bh_dtype dtype, uint64_t bits, uint32_t out_words[2]);
/* Appends that number. False: there is no room. */
bool bhi_constants_add(struct bhi_constants *push, bh_dtype dtype, uint64_t bits);
/* Writes GLSL that makes a |type| of the number at |word|, or of |written| words. */
const char *bhi_constant_text(bh_dtype dtype, const char *type, uint32_t word,
                              const uint32_t *written, char out[BHI_CONSTANT_TEXT]);

#endif

/* Margins: bytes around an output that no kernel may change. */
#ifndef BHI_JUDGE_CHECK_MARGIN_H
#define BHI_JUDGE_CHECK_MARGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "judge/data/filler.h"

enum { BHI_MARGIN = 4096 }; /* bytes before an output and behind it; no device aligns to more */

/* What the margins of one buffer held. */
struct bhi_margins {
    uint8_t before[BHI_MARGIN], behind[BHI_MARGIN];
};

/* Fills a buffer of |size| + 2 BHI_MARGIN bytes with noise, also where the output will be, so that
 * what a kernel does not write is not right by chance. */
void bhi_margins_fill(struct bhi_margins *margins, struct bhi_filler_place place, void *buffer,
                      uint64_t size);
/* Finds the first byte of the margins that has changed. *out_offset is its distance from the
 * output's first byte, negative in front of it. Returns false if there is none. */
bool bhi_margins_find(const struct bhi_margins *margins, const void *buffer, uint64_t size,
                      int64_t *out_offset);

#endif

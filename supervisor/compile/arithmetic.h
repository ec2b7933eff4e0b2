/* Does a device compute expressions as docs/templates.md promises? Tiny ones with known answers are
 * tried: those that drivers have got wrong, and those in which a driver could take liberties. */
#ifndef BHI_SUPERVISOR_COMPILE_ARITHMETIC_H
#define BHI_SUPERVISOR_COMPILE_ARITHMETIC_H

#include <bulkhead/bulkhead.h>

struct bhi_arithmetic {
    uint32_t tried, wrong; /* expressions */
    char lacking[40];      /* types that the device does not have: "f64, i64" */
    char which[120];       /* the first wrong ones: "f32 x * 0.0, i64 x < 0" */
};

/* Runs the expressions on |stream|; each submission has its deadline. Blocks. BH_OK: all of them ran,
 * whatever came out, but those of types that the device lacks. */
bh_status bhi_arithmetic_try(bh_context *context, bh_stream *stream, struct bhi_arithmetic *out,
                             bh_detail *detail);

#endif

/* Computes an expression over arrays that are larger than what a device binds at once, piece by
 * piece. Expressions are elementwise: a piece of the result needs the same piece of each input, or
 * all of it along dimensions that are stretched. */
#ifndef BHI_REQUEST_EVAL_PIECES_H
#define BHI_REQUEST_EVAL_PIECES_H

#include <bulkhead/bulkhead.h>
#include <bulkhead/template.h>

struct bhi_pieces {
    uint32_t count;
    bh_template_call *calls; /* owned; one for each piece, with its kernel */
    bh_command *commands;    /* owned; one for each call */
};

/* Computes how many bytes the largest array has. The first |arrays| of |arguments| have buffers, all of
 * which are described; the last of these is an output. */
bh_status bhi_pieces_measure(const bh_argument *arguments, uint32_t arrays, uint64_t *out_bytes,
                             bh_detail *detail);
/* Cuts the arrays into pieces of at most |bytes| bytes (0: one piece) that begin at multiples of
 * |alignment| bytes, and prepares the pieces. On failure there is nothing to free. */
bh_status bhi_pieces_cut(struct bhi_pieces *out_pieces, bh_template *template_,
                         const bh_argument *arguments, uint32_t count, uint32_t arrays,
                         uint64_t bytes, uint32_t alignment, bh_detail *detail);
void bhi_pieces_free(struct bhi_pieces *pieces);

#endif

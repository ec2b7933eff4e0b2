/* Computes an expression over arrays that are larger than what a device binds at once, piece by
 * piece. Expressions are elementwise: a piece of the result needs the same piece of each input, or
 * all of it along dimensions that are stretched. */
#ifndef BHI_REQUEST_EVAL_PIECES_H
#define BHI_REQUEST_EVAL_PIECES_H

#include <bulkhead/bulkhead.h>
#include <bulkhead/template.h>

struct bhi_pieces {
    uint32_t count, call_capacity, command_capacity;
    bh_template_call **calls; /* owned; one for each piece, with its kernel */
    bh_command *commands;     /* owned; one for each call; they are to run in order */
    bh_buffer **scratch;      /* owned, with a reference to each; the commands use these */
    uint32_t scratch_count, scratch_capacity;
};

/* How to bind arrays. */
struct bhi_eval_limits {
    uint64_t bytes; /* of an array in a piece; 0: all */
    uint32_t alignment;
    bh_stream *stream; /* that will run the pieces; NULL: not known */
};

/* A shape is cut along one dimension, into runs of |rows| of its steps; along those before it, into
 * single steps; not along those behind it. So a piece of any array is contiguous. */
struct bhi_piece_cut {
    uint32_t rank;
    uint64_t shape[BH_MAX_RANK]; /* of the result; of a reduction, of its operand */
    uint32_t along;
    uint64_t rows;
    uint64_t pieces, runs; /* in all; along |along| */
    /* Of a reduction: */
    bool reduces;
    bool reduced[BH_MAX_RANK]; /* its axes */
    bool splits;               /* the pieces along |along| are of the same results */
    uint64_t length;           /* elements for each result in a piece */
};

/* The most elements of a piece of a reduction, whose arrays may be much smaller. */
#define BHI_PIECE_ELEMENTS (UINT64_C(1) << 31)

/* Computes how many bytes the largest array has. The first |arrays| of |arguments| have buffers, all of
 * which are described; the last of these is an output. */
bh_status bhi_pieces_measure(const bh_argument *arguments, uint32_t arrays, uint64_t *out_bytes,
                             bh_detail *detail);
/* Cuts the arrays into pieces of at most |bytes| bytes (0: one piece) that begin at multiples of
 * |alignment| bytes, prepares the pieces, and appends them. On failure the caller frees what there is. */
bh_status bhi_pieces_cut(struct bhi_pieces *pieces, bh_template *template_,
                         const bh_argument *arguments, uint32_t count, uint32_t arrays,
                         uint64_t bytes, uint32_t alignment, bh_detail *detail);
/* Cuts the operand of a reduction, of cut->rank, cut->shape and cut->reduced. The first |arrays| of
 * |arguments| are what it reads, |bits| those of a result. */
bh_status bhi_pieces_cut_operand(const bh_argument *arguments, uint32_t arrays, uint32_t bits,
                                 uint64_t bytes, uint32_t alignment, struct bhi_piece_cut *cut,
                                 bh_detail *detail);
/* How many results the pieces leave along an axis of the operand. */
uint64_t bhi_piece_cut_steps(const struct bhi_piece_cut *cut, uint32_t axis);
/* Prepares the pieces of a reduction, and appends them. The last of the arrays is the output: all that
 * bhi_piece_cut_steps says, in |parts|. *first, if it is not NULL, is a number: the index of a piece's first
 * element among those of its results. */
bh_status bhi_pieces_reduce(struct bhi_pieces *pieces, bh_template *template_,
                            const bh_argument *arguments, uint32_t count, uint32_t arrays,
                            const struct bhi_piece_cut *cut, uint32_t parts, uint32_t alignment,
                            bh_argument *first, bh_detail *detail);
/* Appends one piece. */
bh_status bhi_pieces_add(struct bhi_pieces *pieces, bh_template *template_,
                         const bh_argument *arguments, uint32_t count, bh_detail *detail);
/* Takes a reference to a buffer that the pieces use. Returns false if out of memory. */
bool bhi_pieces_keep(struct bhi_pieces *pieces, bh_buffer *buffer);
void bhi_pieces_free(struct bhi_pieces *pieces);

#endif

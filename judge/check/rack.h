/* Buffers that runs have done with, for later runs of the same worker or its successor: to make
 * memory, and to introduce it to a worker, takes longer than most kernels do. Contents are fresh in
 * each run. */
#ifndef BHI_JUDGE_CHECK_RACK_H
#define BHI_JUDGE_CHECK_RACK_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stddef.h>

/* Margins: bytes around an output that no kernel may change. */

enum { BHI_MARGIN = 4096 }; /* bytes before an output and behind it; no device aligns to more */

/* What the margins of one buffer hold. */
struct bhi_margins {
    uint8_t before[BHI_MARGIN], behind[BHI_MARGIN];
};

struct bhi_racked {
    bh_buffer *buffer;           /* owned */
    struct bhi_margins *margins; /* room for what they hold; owned; NULL: it has none */
};

/* {0} is empty. One thread at a time. */
struct bhi_rack {
    struct bhi_racked *list; /* owned; those first that have been here longest */
    size_t count, room;
    size_t of; /* what trials they are for, by the caller's number */
};

/* Drops all, unless they are for |of|. */
void bhi_rack_turn(struct bhi_rack *rack, size_t of);
/* Takes one of |size| bytes, with margins, which is for an output, or without. Those two are never
 * exchanged: a worker could still write what had been its output. The caller owns it then. Returns
 * false if there is none. */
bool bhi_rack_take(struct bhi_rack *rack, uint64_t size, bool margins, struct bhi_racked *out);
/* Owns it from now on. Takes {0}, too. NULL, or without memory: releases it. */
void bhi_rack_give(struct bhi_rack *rack, struct bhi_racked racked);
/* Takes {0}, too. */
void bhi_rack_close(struct bhi_rack *rack);

#endif

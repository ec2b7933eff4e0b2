/* Makes inputs where they will be read: a kernel of the judge's own does on a device what bhi_filler_fill
 * does in the host, to the last bit. */
#ifndef BHI_JUDGE_CHECK_MAKER_H
#define BHI_JUDGE_CHECK_MAKER_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "judge/check/outcome.h"
#include "judge/check/trial.h"
#include "judge/data/filler.h"

/* An array that is made, and where in a buffer it begins. */
struct bhi_maker_array {
    struct bhi_filler filler; /* its ends computed */
    struct bhi_filler_place place;
    bh_dtype dtype;
    uint64_t count; /* elements */
    /* In bytes, a multiple of 4096. The buffer has room for a multiple of 4 bytes from there on: what
     * follows the last element becomes 0. */
    uint64_t offset;
};

struct bhi_maker_array bhi_maker_array_of(const struct bhi_trial_array *array, uint64_t offset);

/* It uses the stream from one thread at a time. */
struct bhi_maker {
    bh_stream *stream;              /* borrowed */
    bh_kernel *kernel;              /* owned; NULL: it makes nothing */
    uint32_t made[BHI_FILLER_FILE]; /* by kind of filler: a bit for each type that it makes */
};

/* Makes the kernel, which runs without the guard on |stream|, whose worker runs nothing that anybody
 * else has written. Lets it make some elements with each filler and type of |needs|, also far from
 * the first one, and compares them with the host's. What differs, it does not make; so it is with
 * what the device or its driver cannot do. Blocks. Fails only if nothing can be known: memory has run
 * out, a signal has come, the stream has no worker. After a failure nothing is owned.
 *
 * It is worth its while where the memory is a device's. A driver that runs kernels on the processor
 * is slower than bhi_filler_fill. */
bool bhi_maker_open(const struct bhi_court *court, bh_stream *stream,
                    const struct bhi_maker_array *needs, size_t count, struct bhi_maker *out,
                    struct bhi_judge_outcome *outcome);
/* Does it make such arrays? Kind and type must have been among the |needs|, and correct. */
bool bhi_maker_can(const struct bhi_maker *maker, const struct bhi_filler *filler, bh_dtype dtype);
/* Makes the arrays, all of which it can, in |into|, a buffer that the stream's worker may write:
 * in one submission, unless they are more than 256 pieces of 32 MiB or less. Blocks until they are
 * made. If it fails, the content of the buffer is not known. */
bool bhi_maker_make(const struct bhi_maker *maker, const struct bhi_maker_array *arrays,
                    size_t count, bh_buffer *into, struct bhi_judge_outcome *outcome);
/* Takes {0}, too. */
void bhi_maker_close(struct bhi_maker *maker);

#endif

/* Memory of timed runs: what those of a submission read is in one buffer, what they write in another. So
 * a worker imports memory once, however many runs and arrays there are. */
#ifndef BHI_JUDGE_CHECK_MATERIAL_H
#define BHI_JUDGE_CHECK_MATERIAL_H

#include <bulkhead/bulkhead.h>

#include "judge/check/maker.h"
#include "judge/check/outcome.h"
#include "judge/check/trial.h"

/* Where one run finds its arrays. */
struct bhi_lap_place {
    bh_buffer *inputs; /* NULL: the task has none; borrowed */
    uint64_t inputs_begin;
    bh_buffer *outputs; /* borrowed */
    uint64_t outputs_begin;
    uint32_t word; /* what all of the outputs' slot holds, over and over */
};

enum { BHI_LAP_ALIGNMENT = 4096 }; /* no device asks for more */

/* How many bytes of a slot |bytes| take. */
uint64_t bhi_lap_bytes(uint64_t bytes);
/* Where array |index|, an input, begins in its buffer. */
uint64_t bhi_lap_input(const struct bhi_lap_place *place, const struct bhi_task *task,
                       const struct bhi_trial *trial, uint32_t index);

/* The outputs and scratch of one contender's timed runs, which use the same memory again: each has a slot.
 * {0}: not made yet. */
struct bhi_tray {
    bh_buffer *buffer; /* owned; the court's source makes it */
    uint64_t stride;   /* of a slot */
};

/* Makes it, unless it is as large already. */
bool bhi_tray_fit(struct bhi_tray *tray, const struct bhi_court *court, size_t slots,
                  uint64_t stride, struct bhi_judge_outcome *outcome);
/* Fills slots with a word, over and over. No worker of a contender does that. */
bool bhi_tray_fill(struct bhi_tray *tray, const struct bhi_court *court, size_t first, size_t count,
                   uint32_t word, struct bhi_judge_outcome *outcome);
/* Takes {0}, too. */
void bhi_tray_close(struct bhi_tray *tray);

/* What workers read that do not trust each other. */
enum { BHI_MATERIAL_READERS = 4 };

/* The inputs of some timed runs, which several workers read one after the other. */
struct bhi_material {
    const struct bhi_court *court;
    const struct bhi_trial *of; /* a run is like it */
    uint64_t stride; /* from one run's inputs to the next one's, in bytes; 0: there are none */
    size_t count;    /* of runs */
    struct bhi_trial *trials; /* |count|; owned */
    bool is_made;             /* the maker makes it for each reader */
    void *content;            /* otherwise, of what is in device memory: |count| strides; owned */
    uint64_t size;            /* of |content| */
    /* Owned. Of host memory the first, for all readers: what they are given to read alone they
     * cannot write. A device's memory they could, so each reader has a copy. */
    bh_buffer *buffers[BHI_MATERIAL_READERS];
    bool written[BHI_MATERIAL_READERS]; /* of a device */
};

/* Opens a maker, on the court's source, for the inputs of runs like |of| (bhi_maker_open). */
bool bhi_maker_open_for(const struct bhi_court *court, const struct bhi_trial *of,
                        struct bhi_maker *out, struct bhi_judge_outcome *outcome);

/* Makes none yet. */
void bhi_material_open(const struct bhi_court *court, const struct bhi_trial *of,
                       struct bhi_material *out);
/* Makes the inputs of |count| runs, of the |seeds|, in place of those before; in memory that the court's
 * source makes and no contender's worker has: it gets it with the submission. After a failure there
 * are none. */
bool bhi_material_make(struct bhi_material *material, const uint64_t *seeds, size_t count,
                       struct bhi_judge_outcome *outcome);
/* Where a reader finds the inputs of run |index|. Readers with the same number trust each other. */
bool bhi_material_give(struct bhi_material *material, uint32_t reader, size_t index,
                       struct bhi_lap_place *out, struct bhi_judge_outcome *outcome);
/* Ends these runs: their memory is for others. What the host made them in is kept. */
void bhi_material_drop(struct bhi_material *material);
/* Takes {0}, too. */
void bhi_material_close(struct bhi_material *material);

#endif

/* What one run of a kernel or an expression needs: fresh buffers, with inputs, noise in a kernel's
 * outputs and margins around them, and the command that binds them. */
#ifndef BHI_JUDGE_CHECK_SETUP_H
#define BHI_JUDGE_CHECK_SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include "judge/check/kernel.h"
#include "judge/check/material.h"
#include "judge/check/outcome.h"
#include "judge/check/rack.h"
#include "judge/data/filler.h"

enum { BHI_TAIL = 16384 }; /* bytes behind an input: huge numbers, others in each run */

/* Fills a buffer of |size| + 2 BHI_MARGIN bytes with noise, also where the output will be, so that
 * what a kernel does not write is not right by chance. */
void bhi_margins_fill(struct bhi_margins *margins, struct bhi_filler_place place, void *buffer,
                      uint64_t size);
/* What they are in front of |size| bytes and behind them, where a word is there over and over. */
void bhi_margins_repeat(struct bhi_margins *margins, uint32_t word, uint64_t size);
/* Finds the first byte of the margins that has changed. *out_offset is its distance from the
 * output's first byte, negative in front of it. Returns false if there is none. */
bool bhi_margins_find(const struct bhi_margins *margins, const void *buffer, uint64_t size,
                      int64_t *out_offset);

/* What a run left. */
struct bhi_launched {
    void *outputs[BHI_TASK_ARRAYS]; /* copies, of INOUT and OUT; owned */
    void *sorted[BHI_TASK_ARRAYS];  /* those again that are compared in any order, sorted; owned */
    uint64_t number;                /* of the run */
    bool strayed;                   /* a margin has changed */
    const char *stray_place;        /* of this array, */
    uint64_t stray_bytes;           /* which has so many; borrowed */
    int64_t stray_offset;           /* in bytes from the output's beginning */
};

/* The template of the last run of an expression, which the next run uses if the text is the same.
 * {0} is none. */
struct bhi_reference_template {
    bh_template *template_; /* owned */
    char *text;             /* owned */
};
void bhi_reference_template_free(struct bhi_reference_template *cache);

/* The number of a run with zeros where others have noise: a kernel may look for noise. */
#define BHI_NO_NOISE UINT64_MAX

/* What runs; borrowed. */
struct bhi_program {
    const struct bhi_judged_kernel
        *kernel;                          /* NULL: the task's expression, as by `bulkhead eval`. It
                                               may use the inputs, and the sizes and push constants
                                               as numbers that are written in it */
    const struct bhi_task_groups *groups; /* of kernels whose plan has none */
    struct bhi_reference_template *cache; /* of the expression */
    uint64_t exact;                       /* a bit for each array and scratch: kernels cannot see
                                               what is behind it, as if the task allowed that; a
                                               CUDA kernel sees zeros there */
    uint64_t number;                      /* of the run, which decides its noise; 0: the next one */
    bool opposite;                        /* with the kernels' opposites */
    struct bhi_rack *rack;                /* of the worker; NULL: its buffers are of no other run */
};

struct bhi_setup;

/* What the push constants of a run are drawn by. Those of timed runs nobody has seen before, and all
 * runs of a size have the same: an expression is compiled once. */
uint64_t bhi_court_push_seed(const struct bhi_court *court, const struct bhi_trial *trial);
/* Compares the bindings and push constants of the kernel with the task's, and what its plan asks for
 * with what the task and the device allow, for each size. |groups|: as of bhi_program. */
bool bhi_court_check_kernel(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                            const struct bhi_task_groups *groups,
                            struct bhi_judge_outcome *outcome);
/* How many bytes of a place its outputs and scratch take, with their margins. */
bool bhi_setup_stride(const struct bhi_court *court, const struct bhi_program *program,
                      const struct bhi_trial *trial, uint64_t *out_stride,
                      struct bhi_judge_outcome *outcome);
/* Makes a setup; court, program and trial are borrowed. The buffers are in the
 * host's memory, of a CUDA kernel made by the court's keeper, or, of a timed run, in the |place|;
 * otherwise NULL. */
bool bhi_setup_make(struct bhi_court *court, const struct bhi_program *program,
                    const struct bhi_trial *trial, const struct bhi_lap_place *place,
                    struct bhi_setup **out_setup, struct bhi_judge_outcome *outcome);
/* The dispatches, valid as long as the setup. */
const bh_command *bhi_setup_commands(const struct bhi_setup *setup, uint32_t *out_count);
/* Reads |size| bytes from |offset| of array |index|. */
bool bhi_setup_peek(const struct bhi_setup *setup, uint32_t index, uint64_t offset, void *out,
                    uint64_t size, struct bhi_judge_outcome *outcome);
/* Takes the outputs, after the run. After a failure *out holds nothing. */
bool bhi_setup_take(const struct bhi_setup *setup, struct bhi_launched *out,
                    struct bhi_judge_outcome *outcome);
/* Takes NULL, too. */
void bhi_setup_free(struct bhi_setup *setup);
/* Makes the sorted ones. After a failure *out holds nothing. */
bool bhi_launched_sort(const struct bhi_task *task, const struct bhi_trial *trial,
                       struct bhi_launched *out, struct bhi_judge_outcome *outcome);
/* What is compared of output |index|. */
void *bhi_launched_compared(const struct bhi_launched *launched, uint32_t index);
/* Of the outputs, in any order where that is enough: two runs that leave different bytes have, nearly
 * always, different ones. */
uint64_t bhi_launched_digest(const struct bhi_task *task, const struct bhi_trial *trial,
                             const struct bhi_launched *launched);
void bhi_launched_free(struct bhi_launched *launched);

#endif

/* The arrays of a candidate's run, for a program that shows what is wrong (judge.h). */
#ifndef BULKHEAD_JUDGE_ARRAYS_H
#define BULKHEAD_JUDGE_ARRAYS_H

#include <bulkhead/array.h>
#include <bulkhead/detail.h>
#include <bulkhead/judgement.h>
#include <bulkhead/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Copies of the arrays of one run, which bh_judge_repeat makes. They belong to the caller, and do
 * not need the judge any more. Nothing changes them: any number of threads may read them. */
typedef struct bh_judge_arrays bh_judge_arrays;

/* What they are to the run. */
typedef enum bh_judge_part {
    BH_JUDGE_INPUTS = 0,   /* what the candidate read: the task's "in" and "inout" */
    BH_JUDGE_EXPECTED = 1, /* what the reference computed from that: "out" and "inout" */
    BH_JUDGE_ACTUAL = 2,   /* what the candidate wrote: "out" and "inout"; none of one that has
                              not run to its end */
} bh_judge_part;

/* One of them, where it is. */
typedef struct bh_judge_view {
    size_t struct_size;            /* sizeof(bh_judge_view) */
    const char *name;              /* the binding, as the task names it */
    bh_dtype dtype;                /* of an element */
    uint32_t rank;                 /* dimensions; 0: a single element */
    uint64_t shape[BH_JUDGE_RANK]; /* elements along each */
    const void *data;              /* the elements, in C order and the machine's byte order */
    uint64_t size;                 /* of |data|, in bytes */
} bh_judge_view;

/* Returns how many arrays the part has; 0 also for NULL and for a part that there is not. Does not
 * block. */
BH_API size_t bh_judge_arrays_count(const bh_judge_arrays *arrays, bh_judge_part part);
/* Gives an array of the part, in the order of the task. What *out_view points to lives as long as
 * |arrays|. Set out_view->struct_size first. Does not block. Returns BH_OK, or BH_INVALID_ARGUMENT
 * if there is no such array. */
BH_API BH_MUST_USE bh_status bh_judge_arrays_get(const bh_judge_arrays *arrays, bh_judge_part part,
                                                 size_t index, bh_judge_view *out_view,
                                                 bh_detail *detail);
/* Frees them. NULL is allowed. Does not block. */
BH_API void bh_judge_arrays_destroy(bh_judge_arrays *arrays);

#ifdef __cplusplus
}
#endif

#endif

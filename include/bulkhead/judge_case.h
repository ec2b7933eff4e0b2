/* What a callback of the program gets of a judge: one case of a task (judge.h). */
#ifndef BULKHEAD_JUDGE_CASE_H
#define BULKHEAD_JUDGE_CASE_H

#include <bulkhead/array.h>
#include <bulkhead/detail.h>
#include <bulkhead/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One array of a case, in C order, without gaps. Its size never changes: new fields take the place
 * of |reserved|. */
typedef struct bh_judge_array {
    const char *name;      /* the binding, as the task names it */
    bh_dtype dtype;        /* of its elements */
    uint32_t rank;         /* dimensions, at most BH_JUDGE_RANK; 0: a single element */
    const uint64_t *shape; /* elements along each dimension */
    uint64_t count;        /* elements */
    uint64_t bytes;        /* of all of them */
    const void *before;    /* what it holds before the run; NULL: the task's "out" */
    void *after;           /* what it holds after the run; NULL: the task's "in" */
    const void *expected;  /* to a check: what the reference has computed; otherwise NULL */
    uint64_t reserved[2];  /* 0 */
} bh_judge_array;

/* A size or a push constant. Its size never changes, as that of bh_judge_array. */
typedef struct bh_judge_number {
    const char *name;     /* as the task names it */
    const char *text;     /* "64", "-3", "2.5", "true": no digit is lost */
    double value;         /* rounded; of a bool 0 or 1 */
    int64_t whole;        /* of a whole number or a bool; 2^63 and above wrap; otherwise 0 */
    uint64_t reserved[2]; /* 0 */
} bh_judge_number;

/* One case: a size of the task with the inputs and push constants of one seed. The library owns all
 * of it, for as long as the callback runs. */
typedef struct bh_judge_case {
    size_t struct_size;            /* of this library's bh_judge_case */
    const bh_judge_array *arrays;  /* the task's "in", "inout" and "out", in this order */
    uint32_t array_count;          /* of |arrays| */
    uint32_t size_count;           /* of |sizes| */
    const bh_judge_number *sizes;  /* the names of the task's sizes, with this size's values */
    const bh_judge_number *pushes; /* as a candidate gets them, the drawn ones, too */
    uint32_t push_count;           /* of |pushes| */
    const char *text;              /* which case it is: "n=64, hidden seed 7, inputs: sorted" */
} bh_judge_case;

/* A reference: computes from |before| of the arrays, and the numbers, what is right, and writes all
 * of it to |after|, which is 0 before the call. It is trusted: it runs in the program, called by
 * the thread that is in bh_judge_prepare or bh_judge_run, for each case once, and by bh_judge_time
 * or a timed bh_judge_run for each run that is compared. Calls for one judge never overlap. It may
 * block; no deadline ends it, and bh_judge_cancel waits for it. Of the judge's functions it may
 * call bh_judge_cancel alone. The calling thread has the "C" locale meanwhile.
 *
 * Returns BH_OK, or the status with which it fails: then the call of the judge fails, and
 * |detail->message|, if it writes one, is part of the message. */
typedef bh_status (*bh_judge_reference)(const bh_judge_case *one, bh_detail *detail, void *user);

/* The size of a check's message. */
#define BH_JUDGE_MESSAGE 320

/* A check: says whether what a candidate has left in |after| of the arrays is right, for the
 * outputs that the task compares by "check". If not, it writes one line to |message|, which is
 * empty before the call, and becomes the message of a WRONG candidate. It is trusted as a reference
 * is, and has the same limits; with bh_judge_options.parallel above 1 several threads may call it
 * at once. It must not change what it gets. It is called for each run that is compared.
 *
 * Returns BH_OK, right or wrong, or the status with which it fails: then nothing is known of the
 * candidate, and bh_judge_run returns that status with |message|. */
typedef bh_status (*bh_judge_check)(const bh_judge_case *one, char message[BH_JUDGE_MESSAGE],
                                    void *user);

#ifdef __cplusplus
}
#endif

#endif

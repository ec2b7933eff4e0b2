/* A trial: one size, one seed, and so one content of all inputs and, once the reference has run, of
 * all expected outputs. */
#ifndef BHI_JUDGE_CHECK_TRIAL_H
#define BHI_JUDGE_CHECK_TRIAL_H

#include <bulkhead/judge_case.h>
#include <pthread.h>
#include <stdatomic.h>

#include "formats/array.h"
#include "judge/task/task.h"
#include "tool/content_hash.h"

struct bhi_trial_array {
    struct bhi_array form;
    uint64_t count; /* elements */
    /* Of IN and INOUT: how the content at the beginning is made (bhi_trial_write). */
    struct bhi_task_fill fill;
    struct bhi_filler_place place;
    void *before; /* that content, if it is kept; owned, unless |lent| */
    bool lent;
    void *expected; /* of INOUT and OUT; where any order is right, sorted; owned; NULL: not known
                       yet, or forgotten (expected.h) */
};

struct bhi_trial {
    size_t size; /* index in the task's sizes */
    uint64_t seed;
    bool hidden;   /* the seed is not in the task */
    uint32_t fill; /* of the task's, counted from 1; 0: as the generators make the inputs */
    bool repeats; /* kernels run it again (bhi_trial_runs), to see whether they are deterministic */
    bool timed;   /* made for a timed run: inputs of a seed that nobody knows, not of |seed| */
    uint64_t bytes; /* of all arrays */
    bool forgotten; /* what is expected, of which this is left: */
    uint8_t hash[BHI_CONTENT_HASH];
    struct bhi_trial_array *arrays; /* owned; by the task's index */
};

/* So many bytes of inputs are kept, and so many of what is expected. More than that is made again
 * whenever it is needed, so that memory is bounded. */
enum { BHI_TRIALS_LEAST = 4 << 20 };

struct bhi_trials {
    struct bhi_trial *list; /* owned; those with the fewest bytes first */
    size_t count;
    uint64_t kept;                /* bytes of inputs, without those of files */
    void *files[BHI_TASK_ARRAYS]; /* the content of inputs that are files; owned */
};

/* Makes the trials of a task: each size with each seed. Reads files.
 * |hidden_seeds| are those that the task does not have. */
bool bhi_trials_make(const struct bhi_task *task, const uint64_t *hidden_seeds, size_t hidden_count,
                     struct bhi_trials *out, struct bhi_complaint *complaint);
/* How often a candidate runs it. */
unsigned bhi_trial_runs(const struct bhi_task *task, const struct bhi_trial *trial);
/* Names its fill; "" if it has none. Returns |out|. */
const char *bhi_trial_fill_text(const struct bhi_task *task, const struct bhi_trial *trial,
                                char out[BHI_FILL_TEXT]);
/* Says which it is: "n=64, hidden seed 7, inputs: sorted", or "n=64, a timed run". Returns |out|. */
enum { BHI_TRIAL_TEXT = BHI_SIZE_TEXT + 128 };
const char *bhi_trial_text(const struct bhi_task *task, const struct bhi_trial *trial,
                           char out[BHI_TRIAL_TEXT]);

/* A fill that no task asks for is checked with a tolerance so many times as large: rounding may be worse on
 * sorted or equal numbers, and what it is to find is not a matter of rounding. */
enum { BHI_LENIENCE = 1000 };
bool bhi_trial_is_lenient(const struct bhi_task *task, const struct bhi_trial *trial);
/* Forgets what is expected, from the last trial on, until no more is known than BHI_TRIALS_LEAST bytes, or
 * |times| the bytes of the largest trial. Nobody may use what is known meanwhile. What files and
 * callbacks say is never forgotten. Returns false if memory ran out. */
bool bhi_trials_forget(const struct bhi_task *task, struct bhi_trials *trials, uint32_t times);
/* Hashes what is expected. Returns false if memory ran out. */
bool bhi_trial_hash(const struct bhi_task *task, const struct bhi_trial *trial,
                    uint8_t out[BHI_CONTENT_HASH]);
/* Ends a trial: the list is shorter then. */
void bhi_trials_drop(const struct bhi_task *task, struct bhi_trials *trials, size_t index);
/* Writes the first |count| elements of what the array, an input, holds at the beginning. Of one that is
 * arranged, |count| is all of them. */
void bhi_trial_write(const struct bhi_trial_array *array, uint64_t count, void *out);
/* Makes a trial of the size of |of| whose generated inputs are those of |seed|; those of a file are
 * the same, and borrowed. Nothing is expected of it yet. |rooms|: by the task's index, memory that the
 * caller lends, where what an array holds is written; NULL: it is not kept. Returns false if memory ran
 * out. */
bool bhi_trial_anew(const struct bhi_task *task, const struct bhi_trial *of, uint64_t seed,
                    void *const rooms[], struct bhi_trial *out);
void bhi_trial_free(const struct bhi_task *task, struct bhi_trial *trial);
void bhi_trials_free(const struct bhi_task *task, struct bhi_trials *trials);

/* Where an element of an array is, in words: "Y[2,17]". */

enum { BHI_POSITION_TEXT = 256 };

/* Splits |index|, which counts the elements in C order, into one index for each dimension. */
void bhi_position_of(const struct bhi_array *form, uint64_t index, uint64_t out_along[]);
/* The inverse. */
uint64_t bhi_position_index(const struct bhi_array *form, const uint64_t along[]);
/* |index| counts the elements in C order. Returns |out|. */
const char *bhi_position_text(const char *place, const struct bhi_array *form, uint64_t index,
                              char out[BHI_POSITION_TEXT]);

enum { BHI_COURT_SHARED = 64 }; /* as many as candidates are checked at once, at most */

/* What all runs of one judging share. Once the reference has run, several threads use it. */

struct bhi_court {
    const struct bhi_task *task;
    bh_context *context;  /* after a signal: destroyed, and then NULL */
    const char *selector; /* of the device; "": the default */
    bool cuda;            /* it is one for CUDA */
    bh_stream *keeper;    /* of a CUDA device: its worker makes and reads what candidates write, and
                             runs no kernel; owned; otherwise NULL */
    char device[48];      /* its selector, when the reference has run, or the keeper is there */
    struct bhi_trials trials;
    uint8_t reference[BHI_CONTENT_HASH]; /* hash of the kernel that computed what is expected */
    bh_judge_reference callback;         /* of BHI_REFERENCE_CALLBACK */
    void *callback_user;
    bh_judge_check check; /* of outputs of BHI_BY_CHECK; NULL: there are none */
    void *check_user;
    const struct bhi_candidate *baseline; /* what times are compared with in place of the reference;
                                             NULL: none; borrowed */
    bh_stream *source;         /* its worker makes what timed runs read, and runs no kernel but the
                                maker's; borrowed */
    struct bhi_maker *maker;   /* NULL: the host makes it; borrowed */
    uint32_t processor;        /* on which runs are timed, plus 1; 0: on all */
    uint32_t slowdown;         /* how many times as long as others those may take; 0: the same */
    uint64_t noise_seed;       /* of what outputs hold before a run; nobody else knows it */
    _Atomic uint64_t runs;     /* so far; each run has other noise */
    pthread_mutex_t recalling; /* guards |again| */
    struct bhi_reference *again; /* computes what was forgotten (expected.h); owned; NULL: none */
    bool shares;                 /* candidates are checked on workers that others had (launch.h) */
    pthread_mutex_t sharing;     /* guards the next two */
    bh_stream *shared[BHI_COURT_SHARED]; /* that no candidate has now; owned */
    size_t shared_count;
};

#endif

/* Judging kernels: does a kernel compute what a task wants? (docs/judge.md)
 *
 * The functions here are in a library of their own, libbulkhead-judge, which uses libbulkhead as
 * any program does. The rules of bulkhead.h hold for it, too. A judge owns a context of its own,
 * and does not affect other contexts.
 *
 * One judge serves one task, and any number of candidates: kernels that nobody trusts. A candidate
 * runs in a worker of its own, which runs no other kernel. If it crashes or hangs, that is its
 * judgement. The next candidate is not affected, even if the worker was taken over. */
#ifndef BULKHEAD_JUDGE_H
#define BULKHEAD_JUDGE_H

#include <bulkhead/context.h>
#include <bulkhead/detail.h>
#include <bulkhead/judge_arrays.h>
#include <bulkhead/judge_case.h>
#include <bulkhead/judgement.h>
#include <bulkhead/kernel.h>
#include <bulkhead/source.h>
#include <bulkhead/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A task, its inputs, and what its reference has computed. Threads may share one: calls of
 * bh_judge_prepare, bh_judge_run and bh_judge_time take turns, in no certain order, and block until
 * their turn; bh_judge_options.parallel says how many candidates are checked at the same time.
 * Nothing else runs while one is timed. All other functions but bh_judge_destroy are for any thread
 * at any time, and wait for no turn. */
typedef struct bh_judge bh_judge;

struct bh_judge_candidate;
/* How to create a judge. Give either |task_path| or
 * |task_text|. */
typedef struct bh_judge_options {
    size_t struct_size;    /* sizeof(bh_judge_options) */
    const char *task_path; /* a task file (docs/judge.md); what it names is relative to its folder;
                              NULL (default): |task_text| */
    const char *task_text; /* the content of a task file, NUL-terminated; NULL (default): none */
    const char *folder;    /* what the files that |task_text| names are relative to; NULL
                              (default): the current folder */
    const char *task_name; /* what messages call the task; NULL (default): its path, or "task" */
    const char *device;    /* selector of the device for all runs, such as "nvidia:1"; "cuda:0":
                              candidates are CUDA kernels; NULL (default): the default device. Not
                              "any" */
    const uint64_t *seeds; /* hidden seeds: inputs besides those of the task's seeds */
    size_t seed_count;     /* of |seeds|; 0 (default): one random seed */
    uint32_t parallel;     /* candidates that threads check at the same time, each in a worker of
                              its own; at most 64; 0 (default): one */
    bh_log_callback log;   /* receives the log of the judge's context; NULL (default): dropped */
    void *log_user;        /* passed to |log| */
    bool timed;            /* times candidates that are CORRECT beside the reference, which must be
                              a kernel or an expression, or |baseline|; default false. The
                              next fields need it */
    bool warm;             /* caches are not flushed before each timed run; default false */
    bool guard_cost;       /* also times candidates without the guard; default false */
    uint32_t timed_runs;   /* timed runs of each size, from 5 to 100000; default 50 */
    double slower_than;    /* a candidate that surely takes more than so many times as long as the
                              reference is SLOWER; 0 (default): none is */
    bool all_processors;   /* where the driver runs kernels on processors, timed runs use all of
                              them; default false: all timed runs are on one, because ratios are
                              more exact there */
    bool strict;           /* bh_judge_prepare refuses a task that is weak, or whose inputs are the
                              same in each run: see bh_judge_weakness; default false */
    bh_judge_reference reference; /* computes what is right, for a task that has no "reference";
                                     NULL (default): the task has one */
    void *reference_user;         /* passed to |reference| */
    const struct bh_judge_candidate *baseline; /* a kernel of the program's choice that times are
                                     compared with in place of the reference, which then needs to
                                     be none that takes time; NULL (default): the reference. Needs
                                     |timed|. It is judged like a candidate, and must be CORRECT */
    bh_judge_check check; /* compares the outputs that the task compares by "check"; NULL (default):
                             there are none */
    void *check_user;     /* passed to |check| */
    const char *state;    /* a folder that keeps each judgement as soon as it is known, for one
                              judge at a time; made if it does not exist; NULL (default): none */
    bool resume;          /* |state| has a judging of this task, on this device, which goes on: its
                              hidden seeds are the judge's, and a candidate of the same name (its
                              path, if it has none) and content has the judgement that is there;
                              default false: |state| must have none */
    const char *html;     /* the file that bh_judge_page writes: bh_judge_create checks that it can
                              be, and is a page if it exists; NULL (default): none */
    bool share_workers;   /* checks candidates on workers that CORRECT ones had before: faster where
                             a worker takes long to start. One that is not CORRECT there is judged
                             on a worker of its own. One that took over its worker could make later
                             ones CORRECT. Not for CUDA kernels; default false */
} bh_judge_options;

/* Reads and checks a task. Starts nothing: files that the task names are not opened yet. Nothing of
 * |options| needs to outlive the call, except for what is passed to callbacks. Blocks while the
 * file is read. The caller ends the judge with bh_judge_destroy. Returns BH_OK, or
 *   BH_INVALID_ARGUMENT  the task is wrong, or a field is. The detail begins with file and line
 *                        ("task" for a text) and names the field of the task
 *   BH_LOAD_FAILED       the task file cannot be read; the detail has errno
 *   BH_SYSTEM            also: the state folder is damaged, another process has it, or it cannot be
 *                        written
 *   BH_NO_MEMORY */
BH_API BH_MUST_USE bh_status bh_judge_create(const bh_judge_options *options, bh_judge **out_judge,
                                             bh_detail *detail);

/* Makes the inputs, starts the context, and runs the reference for each size and seed: a kernel or
 * an expression twice, a callback once. Judges the baseline, if there is one. You may leave it out:
 * the first bh_judge_run does it. After a failure the next call tries again. Thread: any. Blocks
 * until calls of other threads have had their turn, and as long as the reference runs;
 * bh_judge_cancel ends it early, but waits for a callback. Not in a log callback, nor in that of
 * the reference. Returns BH_OK, also if it was done before, or
 *   BH_INVALID_ARGUMENT  the reference cannot judge: it fails, is not deterministic, or computes a
 *                        NaN of which the task says nothing. The detail says which, and where; its
 *                        cause is the status with which it failed, or which the callback returned,
 *                        unless that is of class ENVIRON. BH_REASON_BASELINE: the baseline is not
 *                        CORRECT. With bh_judge_options.strict also: the task is weak. Or the task,
 *                        |guard_cost| or |timed| does not fit the kind of the device
 *   BH_LOAD_FAILED       a file that the task names cannot be read, or is not of its type and shape
 *   BH_CANCELLED         bh_judge_cancel was called
 *   a status of class ENVIRON: the machine cannot do it, or the state folder cannot be written
 * The state folder may be of another task, other files or another device: BH_INVALID_ARGUMENT. */
BH_API BH_MUST_USE bh_status bh_judge_prepare(bh_judge *judge, bh_detail *detail);

/* A kernel to be judged, or a plan of several (docs/judge.md). Give either |path| or |code|.
 * Nothing of it needs to outlive the call. */
typedef struct bh_judge_candidate {
    size_t struct_size;   /* sizeof(bh_judge_candidate) */
    const char *name;     /* for messages and the judgement; NULL: the file's name, or
                                   "candidate". Its ending may say the language */
    const char *path;     /* a file; NULL: |code| */
    const void *code;     /* SPIR-V, an image for CUDA, source text or a plan, in memory; NULL:
                                   |path| */
    size_t size;          /* of |code|; at most 64 MiB. 0: source text up to its NUL */
    bh_language language; /* of the file or |code|; default: by the name's ending, else by the
                                   first bytes; else GLSL */
    bool check_only;      /* bh_judge_run does not time it; bh_judge_time does, such as when all
                             candidates are checked; default false */
    /* How its kernels are made, in addition to what its plan says (docs/judge.md). */
    const bh_source_define *defines;          /* in order; NULL (default): none */
    const bh_source_include *includes;        /* what #include finds; NULL (default): none */
    const bh_specialization *specializations; /* values of constants; NULL (default): none */
    uint32_t define_count;                    /* at most 256 */
    uint32_t include_count;                   /* at most 1024 */
    uint32_t specialization_count;            /* at most 256, ids distinct */
    const char *entry;                        /* entry point; NULL (default): the usual one */
} bh_judge_candidate;

/* Judges one candidate. Calls bh_judge_prepare if nobody has. Thread: any. Blocks until
 * candidates of other threads have had their turn, then until all runs have ended: each has the
 * task's deadline, and so has its compilation; bh_judge_cancel ends both early. Not in a log
 * callback. Where another candidate may have ended it, it is judged again when the others that run
 * have ended, and alone. With bh_judge_options.timed one that is CORRECT is also timed, alone.
 *
 * Returns BH_OK if the candidate was judged, whatever came of it. A file that cannot be read, a
 * source that does not compile, bindings that are not the task's, a crash and a deadline are
 * judgements: FAILED with that status. Otherwise *out_judgement is zero, nothing is known about the
 * candidate, and the status is one of bh_judge_prepare, or
 *   BH_INVALID_ARGUMENT  a field of |candidate| is wrong, or, without that, the task's reference
 *   BH_CANCELLED         bh_judge_cancel was called
 *   a status with which bh_judge_options.check failed, or in timed runs the reference's callback */
BH_API BH_MUST_USE bh_status bh_judge_run(bh_judge *judge, const bh_judge_candidate *candidate,
                                          bh_judgement *out_judgement, bh_detail *detail);

/* Times a candidate that bh_judge_run has found CORRECT, if the judge is a timed one. *judgement is
 * what that call gave, maybe in another process. It gets other times, and becomes TIMING_FORGED,
 * SLOWER, WRONG or FAILED if the candidate is that now; if the code is no longer what was checked,
 * it is FAILED with LOAD_FAILED. One that is not CORRECT stays as it is. Thread: any. Blocks as
 * bh_judge_run does; nothing else runs meanwhile. Returns the same as that; after a failure
 * *judgement stays as it was.
 *   BH_INVALID_ARGUMENT  also if bh_judge_options.timed is false */
BH_API BH_MUST_USE bh_status bh_judge_time(bh_judge *judge, const bh_judge_candidate *candidate,
                                           bh_judgement *judgement, bh_detail *detail);

/* Gives the arrays of the run that ended the judging of a candidate: its inputs, what was expected,
 * and, unless the candidate is FAILED, what it writes when it runs again with the same inputs. One
 * that races may write other values than before, even the right ones. |judgement| is what
 * bh_judge_run gave, maybe of another judge with the same task and hidden seeds. Whoever has the
 * arrays knows the inputs of that hidden seed (docs/judge.md). *out_arrays is the caller's, who
 * ends it with bh_judge_arrays_destroy; NULL after a failure. Thread: any. Blocks as bh_judge_run
 * does. If the worker dies or its deadline passes, the call returns that status, and nothing else
 * is affected. Returns BH_OK, one of the statuses of bh_judge_prepare, or
 *   BH_INVALID_ARGUMENT  no run ended the judging, or a timed one, whose inputs nobody has, or the
 *                        task, its files or the hidden seeds are others
 *   BH_LOAD_FAILED       the candidate's code is no longer what was judged
 *   BH_CANCELLED         bh_judge_cancel was called
 *   a status of class GUILTY, INPUT or VICTIM: this time it did not run to its end */
BH_API BH_MUST_USE bh_status bh_judge_repeat(bh_judge *judge, const bh_judge_candidate *candidate,
                                             const bh_judgement *judgement,
                                             bh_judge_arrays **out_arrays, bh_detail *detail);

/* In which order a page lists those that are CORRECT. */
typedef enum bh_judge_order {
    BH_JUDGE_BY_TIME = 0,  /* relative to the reference */
    BH_JUDGE_BY_ERROR = 1, /* the largest absolute error of all outputs */
} bh_judge_order;

/* Writes bh_judge_options.html, whole or not at all: a leaderboard of |count| candidates, and plots
 * of what was measured. |judgements| are an array, |names| what it calls them (NULL, also of one:
 * the judgement's name). Thread: any. Blocks while the file is written. Returns BH_OK, or
 *   BH_INVALID_ARGUMENT  the judge has no html, is not prepared, or an argument is wrong
 *   BH_SYSTEM            the page cannot be written; what was there stays
 *   BH_CANCELLED, BH_NO_MEMORY */
BH_API BH_MUST_USE bh_status bh_judge_page(bh_judge *judge, const char *const *names,
                                           const bh_judgement *judgements, size_t count,
                                           bh_judge_order order, bh_detail *detail);

/* Returns the hidden seeds, so that the judging can be repeated: those of the options, or the
 * random one. Writes the first |capacity|; *out_count is how many there are. Does not block. */
BH_API BH_MUST_USE bh_status bh_judge_seeds(bh_judge *judge, uint64_t *out_seeds, size_t capacity,
                                            size_t *out_count);
/* Returns the selector of the device on which the reference has run, "" before. It lives as long as
 * the judge. */
BH_API const char *bh_judge_device(bh_judge *judge);
/* Returns the name of the task, "" if it has none. It lives as long as the judge. */
BH_API const char *bh_judge_name(bh_judge *judge);
/* Returns whether each run of a size has the same inputs, because all are files, or made by
 * generators that know one value. Then a kernel that only stores the results is CORRECT, too
 * (docs/judge.md). */
BH_API bool bh_judge_fixed_inputs(bh_judge *judge);

/* Writes the task's weakness with that index, in one line: an output for which a kernel that
 * computes nothing is right, such as "Y: zeros pass (n=65536)" (docs/judge.md). At most |size|
 * bytes with a NUL; |text| may be NULL if |size| is 0. Returns the length of the whole text, like
 * snprintf; 0 if there is none, or the reference has not run. Takes any judge, and NULL. */
BH_API size_t bh_judge_weakness(bh_judge *judge, size_t index, char *text, size_t size);

/* Writes the size with that index, such as "n=64, m=3": at most |size| bytes with a NUL; |text| may
 * be NULL if |size| is 0. Returns the length of the whole text without its NUL, like snprintf; 0 if
 * there is no such size. */
BH_API size_t bh_judge_size(bh_judge *judge, uint32_t size_index, char *text, size_t size);

/* Ends all judging, for good: calls that run and all later ones return BH_CANCELLED. Their workers
 * are killed. Thread: any. Blocks for some milliseconds for each worker. In a log callback it does
 * not block: a run that has begun ends by itself. NULL is allowed. */
BH_API void bh_judge_cancel(bh_judge *judge);
/* Cancels, waits until calls that run have returned, and frees the judge. No call may begin
 * afterwards, in any thread. Blocks until no process of the judge is left. Not in a log callback.
 * NULL is allowed. In the child of a fork() it does nothing. */
BH_API void bh_judge_destroy(bh_judge *judge);

#ifdef __cplusplus
}
#endif

#endif

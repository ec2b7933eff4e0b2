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
#include <bulkhead/source.h>
#include <bulkhead/status.h>
#include <bulkhead/verdict.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The maximum number of dimensions of a task's array. */
#define BH_JUDGE_RANK 8
/* The maximum number of a task's sizes. */
#define BH_JUDGE_SIZES 64

/* A task, its inputs, and what its reference has computed. Threads may share one: calls of
 * bh_judge_prepare, bh_judge_run and bh_judge_time take turns, in no certain order, and block until
 * their turn; bh_judge_options.parallel says how many candidates are checked at the same time.
 * Nothing else runs while one is timed. All other functions but bh_judge_destroy are for any thread
 * at any time, and wait for no turn. */
typedef struct bh_judge bh_judge;

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
    const char *device;    /* selector of the device for all runs, such as "nvidia:1"; NULL
                              (default): the default device. Not "any" */
    const uint64_t *seeds; /* hidden seeds: inputs besides those of the task's seeds */
    size_t seed_count;     /* of |seeds|; 0 (default): one random seed */
    uint32_t parallel;     /* candidates that threads check at the same time, each in a worker of
                              its own; at most 64; 0 (default): one */
    bh_log_callback log;   /* receives the log of the judge's context; NULL (default): dropped */
    void *log_user;        /* passed to |log| */
    bool timed;            /* times candidates that are CORRECT beside the reference, which must be
                              a kernel or an expression; default false. The next fields need it */
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
} bh_judge_options;

/* Reads and checks a task. Starts nothing: files that the task names are not opened yet. Nothing of
 * |options| needs to outlive the call, except for |log_user|. Blocks while the file is read. The
 * caller ends the judge with bh_judge_destroy. Returns BH_OK, or
 *   BH_INVALID_ARGUMENT  the task is wrong, or a field is. The detail begins with file and line
 *                        ("task" for a text) and names the field of the task
 *   BH_LOAD_FAILED       the task file cannot be read; the detail has errno
 *   BH_NO_MEMORY, BH_SYSTEM */
BH_API BH_MUST_USE bh_status bh_judge_create(const bh_judge_options *options, bh_judge **out_judge,
                                             bh_detail *detail);

/* Makes the inputs, starts the context, and runs the reference twice for each size and seed. You
 * may leave it out: the first bh_judge_run does it. After a failure the next call tries again.
 * Thread: any. Blocks until calls of other threads have had their turn, and as long as the
 * reference runs; bh_judge_cancel ends it early. Not in a log callback. Returns BH_OK, also
 * if it was done before, or
 *   BH_INVALID_ARGUMENT  the reference cannot judge: it fails, is not deterministic, or computes a
 *                        NaN of which the task says nothing. The detail says which, and where; its
 *                        cause is the status with which it failed. With bh_judge_options.strict
 *                        also: the task is weak
 *   BH_LOAD_FAILED       a file that the task names cannot be read, or is not of its type and shape
 *   BH_CANCELLED         bh_judge_cancel was called
 *   a status of class ENVIRON: the machine cannot do it */
BH_API BH_MUST_USE bh_status bh_judge_prepare(bh_judge *judge, bh_detail *detail);

/* A kernel to be judged. Give either |path| or |code|. Nothing of it needs to outlive the call. */
typedef struct bh_judge_candidate {
    size_t struct_size;   /* sizeof(bh_judge_candidate) */
    const char *name;     /* for messages and the judgement; NULL: the file's name, or
                                   "candidate". Its ending may say the language */
    const char *path;     /* a file; NULL: |code| */
    const void *code;     /* SPIR-V or source text, in memory; NULL: |path| */
    size_t size;          /* of |code|; at most 64 MiB. 0: source text up to its NUL */
    bh_language language; /* of the file or |code|; default: by the name's ending, else by the
                                   first bytes; else GLSL */
    bool check_only;      /* bh_judge_run does not time it; bh_judge_time does, such as when all
                             candidates are checked; default false */
} bh_judge_candidate;

/* What became of a candidate. */
typedef enum bh_judge_verdict {
    BH_JUDGE_CORRECT = 0,       /* each output of each run was right */
    BH_JUDGE_WRONG = 1,         /* an output was wrong */
    BH_JUDGE_STRAY_WRITE = 2,   /* it wrote outside of its outputs */
    BH_JUDGE_FAILED = 3,        /* it did not run to its end: see bh_judgement.status */
    BH_JUDGE_TIMING_FORGED = 4, /* timed: its worker claims times that cannot be */
    BH_JUDGE_SLOWER = 5,        /* it is right, and slower than bh_judge_options.slower_than */
    BH_JUDGE_STRAY_READ = 6,    /* its outputs depend on what is behind an array: see |output| */
} bh_judge_verdict;

/* Returns the name, such as "CORRECT" or "STRAY_WRITE"; of BH_JUDGE_FAILED the name of |status|,
 * such as "DEADLINE". A constant string, never NULL. */
BH_API const char *bh_judge_verdict_name(bh_judge_verdict verdict, bh_status status);

/* Why a ratio is not known. */
typedef enum bh_judge_doubt {
    BH_JUDGE_DOUBT_NONE = 0,   /* it is known */
    BH_JUDGE_DOUBT_CLAIMS = 1, /* the times exceed what the host saw, or it saw too little */
    BH_JUDGE_DOUBT_DRIFT = 2,  /* the device changed its speed meanwhile */
    BH_JUDGE_DOUBT_LOAD = 3,   /* the reference was slower than alone: the machine was too busy */
} bh_judge_doubt;

/* Times of one size, of candidate and reference, which took turns (docs/judge.md). Its size never
 * changes: new fields take the place of |reserved|. */
typedef struct bh_judge_timing {
    uint32_t size_index;  /* of the task's sizes */
    bool device;          /* by the device's timestamps; false: by the host's clock, in batches */
    bool cold;            /* caches were flushed before each run */
    bool noisy;           /* the noise stayed above 0.5 % */
    uint64_t runs;        /* timed runs of each */
    double median_ns;     /* of the candidate */
    double reference_ns;  /* median of the reference */
    double ratio;         /* the first over the second, from groups of runs; 0: not known, and
                             nothing confirms the times: see |doubt| */
    double low;           /* the ratio is between |low| and |high| with 95 % */
    double high;          /* see |low| */
    double noise;         /* relative, of the reference's median; 0.005 is 0.5 % */
    double drift;         /* relative, of the reference's median, between the halves of the runs */
    double host_ns;       /* a run of the candidate by the host's clock, in warm batches; with
                             |one_processor| by the processor time of its worker; 0: too short to
                             be seen */
    double guard_ratio;   /* how many times as long it takes with the guard; 0: not measured */
    bh_judge_doubt doubt; /* why the ratio is not known */
    bool spreads;         /* over processors, on which the driver runs kernels */
    bool one_processor;   /* the driver runs kernels on processors, and had one of them */
    uint64_t reserved[2]; /* 0 */
} bh_judge_timing;

/* The maximum number of outputs of a task. */
#define BH_JUDGE_OUTPUTS 32

/* How near an output came, at worst. */
typedef struct bh_judge_error {
    char output[64];   /* the binding, as the task names it */
    double absolute;   /* the largest distance from what was expected; of finite numbers alone */
    double relative;   /* the largest, relative to what was expected, where that is not 0 */
    uint64_t ulp;      /* the most steps of the type between both */
    uint64_t reserved; /* 0 */
} bh_judge_error;

/* The judgement of one candidate. It holds no pointers: the caller owns all of it, and has nothing
 * to free. */
typedef struct bh_judgement {
    size_t struct_size;       /* sizeof(bh_judgement) */
    bh_judge_verdict verdict; /* which of the fields below are set */
    bh_status status;         /* FAILED: why; otherwise BH_OK */
    bh_reason reason;         /* FAILED: why exactly; BH_REASON_NONE: nothing more is known */
    bh_subject subject;       /* FAILED: of what kind the thing is that |subject_name| names */
    bh_blame blame;      /* FAILED: how certain it is that the kernel is the cause. Where that is in
                           doubt it is tried again, up to three times, while nothing else runs */
    bool deterministic;  /* CORRECT, SLOWER: two runs with the same inputs left the same bytes */
    bool hashed;         /* |content| is known: there was code, also if it is no kernel */
    bool located;        /* |size_text|, |seed| and |hidden| are those of the run that ended it */
    bool hidden;         /* |seed| is a hidden one */
    uint64_t seed;       /* of that run */
    uint64_t runs;       /* that ended well, right or wrong */
    uint64_t wrong;      /* WRONG: how many elements are */
    uint64_t elements;   /* WRONG: of the output */
    uint64_t ulp;        /* WRONG: steps of the type between both; UINT64_MAX: one of them is NaN */
    uint32_t rank;       /* WRONG: of the output */
    uint32_t size_index; /* of that run: counts the task's sizes, check_sizes, hidden ones */
    uint64_t index[BH_JUDGE_RANK]; /* WRONG: of the first wrong element */
    char output[64];               /* WRONG, STRAY_WRITE, STRAY_READ: the binding, as the task
                                      names it */
    char expected[64];             /* WRONG: so that reading the text gives the same number */
    char got[64];                  /* WRONG: the same */
    char name[64];                 /* of the candidate: its file without folder and ending */
    char size_text[256];           /* of that run: "n=64, m=3"; "the only size" without names */
    char subject_name[64];         /* FAILED: such as a binding's; empty if it has none */
    uint8_t content[32];           /* a hash of the code: the same code has the same hash */
    char message[640];             /* what went wrong, in one line; empty if nothing did */
    uint64_t flushed_bytes;        /* that were written before each timed run; 0: none */
    uint64_t timing_count;         /* elements of |timings|; 0: it was not timed */
    bh_judge_timing timings[BH_JUDGE_SIZES]; /* in the order of the task's sizes */
    bool one_processor; /* it was timed on one processor, because the driver runs kernels on
                           processors; see bh_judge_options.all_processors */
    char fill[64];      /* of that run: how its inputs were made, such as "sorted" (docs/judge.md);
                           empty: by the generators */
    uint64_t error_count; /* elements of |errors|; 0: it is neither CORRECT nor SLOWER */
    bh_judge_error errors[BH_JUDGE_OUTPUTS]; /* of each output, over all runs that checked it with
                                                the task's own tolerance */
} bh_judgement;

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
 *   BH_CANCELLED         bh_judge_cancel was called */
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

/* Writes the task's weakness with that index, in one line: an output for which a kernel that computes
 * nothing is right, such as "Y: zeros pass (n=65536)" (docs/judge.md). At most |size| bytes with a NUL;
 * |text| may be NULL if |size| is 0. Returns the length of the whole text, like snprintf; 0 if there is
 * none, or the reference has not run. Takes any judge, and NULL. */
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

/* What a judge says of a candidate (judge.h). */
#ifndef BULKHEAD_JUDGEMENT_H
#define BULKHEAD_JUDGEMENT_H

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

/* What became of a candidate. */
typedef enum bh_judge_verdict {
    BH_JUDGE_CORRECT = 0,       /* each output of each run was right */
    BH_JUDGE_WRONG = 1,         /* an output was wrong */
    BH_JUDGE_STRAY_WRITE = 2,   /* it wrote outside of its outputs */
    BH_JUDGE_FAILED = 3,        /* it did not run to its end: bh_judgement.status says why */
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

/* Returns the name, such as "claims"; "" of BH_JUDGE_DOUBT_NONE and of an unknown one. A constant
 * string, never NULL. */
BH_API const char *bh_judge_doubt_name(bh_judge_doubt doubt);

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
    bh_status status;         /* CORRECT: BH_OK; FAILED: why; otherwise BH_NOT_CORRECT */
    bh_reason reason;         /* FAILED: why exactly; BH_REASON_NONE: nothing more is known */
    bh_subject subject;       /* FAILED: of what kind the thing is that |subject_name| names */
    bh_blame blame;      /* FAILED: how certain it is that the kernel is the cause. Where that is in
                           doubt it is tried again, up to three times, while nothing else runs */
    bool deterministic;  /* CORRECT, SLOWER: all repeats left the same bytes (docs/judge.md) */
    bool hashed;         /* |content| is known: there was code, also if it is no kernel */
    bool located;        /* |size_text|, |seed| and |hidden| are those of the run that ended it */
    bool hidden;         /* |seed| is a hidden one */
    uint64_t seed;       /* of that run */
    uint64_t runs;       /* that ended well, right or wrong */
    uint64_t wrong;      /* WRONG: how many elements are; by a norm or a check: all */
    uint64_t elements;   /* WRONG: of the output */
    uint64_t ulp;        /* WRONG: steps of the type between both; UINT64_MAX: one of them is NaN */
    uint32_t rank;       /* WRONG: of the output; by a check 0, and no element is named */
    uint32_t size_index; /* of that run: counts the task's sizes, check_sizes, hidden ones */
    uint64_t index[BH_JUDGE_RANK]; /* WRONG: of the first wrong element; in any order, of the least;
                                      by a norm, of the worst */
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
    bool timed; /* that run was a timed one: its inputs are not those of |seed| */
} bh_judgement;

#ifdef __cplusplus
}
#endif

#endif

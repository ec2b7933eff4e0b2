/* A task: what kernels are to compute, on which inputs, and when a result is right. It is read from
 * a JSON file (docs/judge.md). */
#ifndef BHI_JUDGE_TASK_TASK_H
#define BHI_JUDGE_TASK_TASK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "formats/array.h"
#include "judge/data/arrange.h"
#include "judge/data/compare.h"
#include "judge/data/filler.h"
#include "judge/task/size.h"

enum {
    BHI_TASK_NAME = 63,
    BHI_TASK_ARRAYS = 32,
    BHI_TASK_RANK = 8,
    BHI_TASK_PARAMETERS = 16,
    BHI_TASK_SIZES = 64,
    BHI_TASK_SEEDS = 16,
    BHI_TASK_PUSHES = 32,
    BHI_TASK_HIDDEN_SIZES = 16,
    BHI_TASK_FILLS = 16,
    BHI_PUSH_TEXT = 40,
};

/* SCRATCH is a candidate's (plan.h). */
enum bhi_task_role { BHI_TASK_IN, BHI_TASK_INOUT, BHI_TASK_OUT, BHI_TASK_SCRATCH };
/* As the task calls them: "in", "inout", "out"; "scratch". */
extern const char *const bhi_task_role_names[4];

/* A number of the task: as it is written, or an expression in the sizes. Borrowed from the task's
 * |json|. */
struct bhi_task_number {
    const char *expression; /* NULL: |value| */
    uint64_t value;
};

/* A file that the task names. */
struct bhi_task_file {
    char *path;  /* owned; NULL: none */
    char *field; /* where it is named, for complaints: PATH:LINE: "key" "key"; owned */
};

/* The first and the last number of INTEGERS as expressions in the sizes; NULL: the filler's. */
struct bhi_task_ends {
    const char *first, *last; /* borrowed from the task's |json| */
};

/* Another content of an input than its generator makes. */
struct bhi_task_fill {
    enum bhi_arrangement arrangement;
    struct bhi_filler filler; /* the array's, or another */
    struct bhi_task_ends ends;
    const char *name; /* as in the task; borrowed */
};

struct bhi_task_array {
    const char *place; /* the binding: its name or number */
    enum bhi_task_role role;
    bh_dtype dtype;
    struct bhi_task_number shape[BHI_TASK_RANK];
    uint32_t rank;
    struct bhi_filler filler;                   /* of IN and INOUT */
    struct bhi_task_ends ends;                  /* of |filler| */
    struct bhi_task_file file;                  /* of BHI_FILLER_FILE */
    struct bhi_task_fill fills[BHI_TASK_FILLS]; /* of an input that is no file */
    size_t fill_count;
    struct bhi_tolerance tolerance; /* of INOUT and OUT */
    struct bhi_task_file expected;  /* of a reference of files */
};

struct bhi_task_push {
    const char *name;
    const char *expression;   /* a whole number; NULL: |text| or |filler| */
    char text[BHI_PUSH_TEXT]; /* a number, as JSON has it, or true or false; "": |filler| */
    struct bhi_filler filler; /* what it is drawn from: UNIFORM, NORMAL or INTEGERS */
    struct bhi_task_ends ends;
};

enum bhi_task_reference {
    BHI_REFERENCE_KERNEL,
    BHI_REFERENCE_EVAL,
    BHI_REFERENCE_FILES,
    BHI_REFERENCE_CALLBACK, /* the task has none: the program computes what is right */
};

struct bhi_task_groups {
    struct bhi_task_number along[3];
};

/* How a CUDA kernel is launched. */
enum { BHI_CUDA_LIST = 72 }; /* arrays, scratch and push constants */
struct bhi_task_cuda {
    char *field; /* where the first of these is, for complaints; owned; NULL: there is none */
    const char *parameters[BHI_CUDA_LIST]; /* what each is: an array or a push constant */
    size_t parameter_count;        /* 0: as the task lists its arrays, then its push constants */
    uint32_t block[3];             /* threads of a block; 0: not given */
    struct bhi_task_number shared; /* bytes of dynamic shared memory; not given: 0 */
};

struct bhi_task {
    json_t *json; /* owned; texts are borrowed from it */
    char name[BHI_TASK_NAME + 1];
    const char *parameters[BHI_TASK_PARAMETERS];
    size_t parameter_count;
    struct bhi_task_size {
        uint64_t values[BHI_TASK_PARAMETERS];
        bool check_only; /* of "check_sizes": no time is taken */
        bool hidden;     /* drawn (bhi_task_draw_sizes); |check_only|, too */
    } sizes[BHI_TASK_SIZES];
    size_t size_count, written_count; /* the hidden ones are behind those that are written */
    /* How the hidden ones are drawn: each parameter from |low| to |high| in steps. */
    struct bhi_task_range {
        uint64_t low, high, step;
    } ranges[BHI_TASK_PARAMETERS];
    size_t hidden_count;
    struct bhi_task_array arrays[BHI_TASK_ARRAYS]; /* inputs, those in and out, outputs */
    size_t array_count;
    struct bhi_task_push pushes[BHI_TASK_PUSHES];
    size_t push_count;
    bool robust; /* kernels may access what is behind an array: there is nothing */
    struct bhi_task_groups groups;
    struct bhi_task_cuda cuda; /* with a |field| the task is for CUDA kernels alone */
    /* What a run moves and computes at least, for rates; not given: 0 and no expression. */
    struct bhi_task_number bytes, operations;
    uint64_t seeds[BHI_TASK_SEEDS];
    size_t seed_count;
    unsigned repeats;   /* how often the first run of each size is repeated */
    bool default_fills; /* the task has none: they are the usual ones */
    enum bhi_task_reference reference;
    struct bhi_task_file reference_kernel;
    struct bhi_task_groups reference_groups;
    const char *reference_eval;
    char *reference_eval_field;                              /* as that of a file; owned */
    uint64_t deadline_ns, compile_deadline_ns, memory_limit; /* 0: the default */
    bool limits_scratch;
    uint64_t scratch_limit; /* bytes that a candidate's plan may have; otherwise the usual limit */
};

/* Reads the task in the file at |path| ("-": standard input). The files that it names are relative
 * to its folder; they are not opened. All that can be checked without them is. The complaint begins
 * with PATH:LINE: and the field. *out_errno is the errno if the file cannot be read, otherwise 0.
 * */
bool bhi_task_read(const char *path, struct bhi_task *out_task, int *out_errno,
                   struct bhi_complaint *complaint);
/* The same for a |text|, which is borrowed; |name| is for complaints, |folder| what files are
 * relative to. */
bool bhi_task_parse(const char *name, const char *folder, const char *text,
                    struct bhi_task *out_task, struct bhi_complaint *complaint);
void bhi_task_free(struct bhi_task *task);

/* Computes every expression for a size. If one is impossible, |out_field| has the keys of its field, from
 * the outermost on, then NULL. */
enum { BHI_TASK_FIELD = 4 };
bool bhi_task_check_size(const struct bhi_task *task, size_t size,
                         const char *out_field[BHI_TASK_FIELD], struct bhi_complaint *complaint);
/* Draws the hidden sizes by the seed, behind those that are written, in place of those drawn before. Of
 * three one is prime and one odd in each parameter, where its range has such a number, and one is of the
 * range's upper tenth. */
bool bhi_task_draw_sizes(struct bhi_task *task, uint64_t seed, struct bhi_complaint *complaint);
/* The size as text: "n=64, m=3", or "the only size" without parameters. Returns |out|. */
enum { BHI_SIZE_TEXT = 256 };
const char *bhi_task_size_text(const struct bhi_task *task, size_t size, char out[BHI_SIZE_TEXT]);
/* Is one of the numbers of the size 0? Then arrays may be empty. */
bool bhi_task_has_zero(const struct bhi_task *task, size_t size);
/* Computes the array's type and shape for a size. */
bool bhi_task_shape(const struct bhi_task *task, size_t size, const struct bhi_task_array *array,
                    struct bhi_array *out_array, struct bhi_complaint *complaint);
/* Computes the ends of |filler| for a size. */
bool bhi_task_end_filler(const struct bhi_task *task, size_t size, const struct bhi_task_ends *ends,
                         struct bhi_filler *filler, struct bhi_complaint *complaint);
/* Computes the groups for a kernel whose workgroup is |local_size|, which expressions know as
 * local_x, local_y and local_z. Where that is 0 because a number of the size is, there is one. */
bool bhi_task_groups_for(const struct bhi_task *task, size_t size,
                         const struct bhi_task_groups *groups, const uint32_t local_size[3],
                         uint32_t out_groups[3], struct bhi_complaint *complaint);
/* Writes push constant |index| as a number, true or false; |seed| is for one that is drawn. */
bool bhi_task_push_value(const struct bhi_task *task, size_t size, size_t index, uint64_t seed,
                         char out[BHI_PUSH_TEXT], struct bhi_complaint *complaint);
/* Computes the push constants as "NAME=VALUE,…", for bhi_run_parse_push_names; |seed| is for those that are
 * drawn. The caller frees *out_text, which is "" if there are none. */
bool bhi_task_push_text(const struct bhi_task *task, size_t size, uint64_t seed, char **out_text,
                        struct bhi_complaint *complaint);
/* Computes |number|, the task's bytes or operations, for a size; 0 if it is not given. */
bool bhi_task_amount(const struct bhi_task *task, size_t size, const struct bhi_task_number *number,
                     uint64_t *out, struct bhi_complaint *complaint);
/* Names what the inputs of fill |index| are, such as "sorted", or "X sorted, Y ends". Returns |out|. */
enum { BHI_FILL_TEXT = 64 };
const char *bhi_task_fill_text(const struct bhi_task *task, size_t index, char out[BHI_FILL_TEXT]);
/* Does the filler make the same content from each seed? */
bool bhi_filler_knows_one_value(const struct bhi_filler *filler);
/* Do all inputs come from files, and is no push constant drawn? Then a seed changes nothing. */
bool bhi_task_is_fixed(const struct bhi_task *task);
/* Has each run of a size the same inputs, from files or from generators that know one value? Then a
 * kernel that only stores the results cannot be told from one that computes them. */
bool bhi_task_is_storable(const struct bhi_task *task);

#endif

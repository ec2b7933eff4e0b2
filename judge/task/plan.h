/* A candidate's plan: which kernels it launches one after the other, with how many groups, and what
 * they keep between them (docs/judge.md). Nobody trusts who has written it.
 *
 * It is a JSON object: a file of its own, or what follows "// bulkhead:" on a line of a source. There it may be short:
 * block=256 entry=saxpy. */
#ifndef BHI_JUDGE_TASK_PLAN_H
#define BHI_JUDGE_TASK_PLAN_H

#include "judge/task/task.h"
#include "request/language.h"
#include "request/source.h"

enum {
    BHI_PLAN_KERNELS = 16,
    BHI_PLAN_SCRATCH = 8,
    BHI_PLAN_INCLUDES = 16,
    BHI_PLAN_SPECS = 64,
    BHI_PLAN_TEXT = BHI_MAX_SOURCE,
    /* All that a run has buffers for. */
    BHI_PLAN_ARRAYS = BHI_TASK_ARRAYS + BHI_PLAN_SCRATCH,
};

enum bhi_judge_plan_field {
    BHI_PLAN_KERNEL,
    BHI_PLAN_GROUPS,
    BHI_PLAN_D,
    BHI_PLAN_SPEC,
    BHI_PLAN_I,
    BHI_PLAN_FIELDS
};

/* Texts are borrowed from the plan's |json|. */
struct bhi_judge_plan_kernel {
    const char *path;  /* of its file, from the candidate's folder; NULL: |text| */
    const char *text;  /* its source; NULL: the candidate's, in which the plan is */
    const char *entry; /* NULL: the default */
    /* Where its keys are, for complaints: NAME:LINE: "kernels" [0] "groups"; owned. */
    char *fields[BHI_PLAN_FIELDS];
    bool has_groups; /* otherwise those of the task */
    enum bhi_language language;
    struct bhi_task_groups groups;
    struct bhi_task_cuda
        cuda; /* of a CUDA kernel; what is not given is the task's, or the kernel's own */
    struct bhi_source source; /* its defines; owned */
    bh_specialization specs[BHI_PLAN_SPECS];
    uint32_t spec_count;
    const char *includes[BHI_PLAN_INCLUDES]; /* files and folders, as |path| is */
    uint32_t include_count;
};

struct bhi_judge_plan_scratch {
    struct bhi_task_array array; /* of BHI_TASK_SCRATCH */
    char *field;                 /* where it is; owned */
};

struct bhi_judge_plan {
    json_t *json; /* owned */
    struct bhi_judge_plan_kernel kernels[BHI_PLAN_KERNELS];
    size_t kernel_count; /* 1 at least */
    struct bhi_judge_plan_scratch scratch[BHI_PLAN_SCRATCH];
    size_t scratch_count;
};

/* A plan in short, as JSON: "block=256 shared=1024 entry=saxpy grid=ceildiv(n,256)" on |line| of the file |name|.
 * NULL: it is wrong. (line.c) */
json_t *bhi_judge_plan_line(const char *name, size_t line, const char *text, size_t length,
                            struct bhi_complaint *complaint);

/* Where the plan of a source is. */
struct bhi_judge_plan_place {
    const char *text; /* in the source; NULL: it has none */
    size_t length;
    size_t line; /* from 1 */
};

/* Looks for the plan of a source. Two are refused. */
bool bhi_judge_plan_find(const char *name, const char *source, size_t size,
                         struct bhi_judge_plan_place *out, struct bhi_complaint *complaint);
/* Reads a plan. |place|: where it is in the file called |name|. |in_source|: a kernel without a file
 * is that source. The complaint begins with NAME:LINE: and the field. The caller frees *out_plan. */
bool bhi_judge_plan_parse(const char *name, const struct bhi_judge_plan_place *place,
                          bool in_source, const struct bhi_task *task,
                          struct bhi_judge_plan **out_plan, struct bhi_complaint *complaint);
/* Takes NULL, too. */
void bhi_judge_plan_free(struct bhi_judge_plan *plan);

/* Computes the types and shapes of all scratch for a size. Refuses more than the task allows, whose
 * own arrays have |bytes|. */
bool bhi_judge_plan_shapes(const struct bhi_judge_plan *plan, const struct bhi_task *task,
                           size_t size, uint64_t bytes,
                           struct bhi_array out_scratch[BHI_PLAN_SCRATCH],
                           struct bhi_complaint *complaint);

#endif

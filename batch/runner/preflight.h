/* Checks the files of a batch before the first job starts. */
#ifndef BHI_BATCH_RUNNER_PREFLIGHT_H
#define BHI_BATCH_RUNNER_PREFLIGHT_H

#include "batch/graph/names.h"
#include "batch/job/job.h"
#include "request/eval.h"
#include "request/language.h"

/* Called when a file that job |index| needs is missing, or cannot be what the job needs. |cause| is
 * the same for all jobs with the same cause. */
typedef void (*bhi_preflight_visitor)(void *user, size_t index, const char *cause,
                                      const struct bhi_complaint *complaint);

/* Files that the batch itself needs; no output may replace them. Paths of this process; they may be
 * NULL or name what does not exist. */
struct bhi_preflight_own {
    const char *jobs;       /* the file of the jobs */
    const char *state;      /* the folder of the state; no output may be it or in it */
    const char *device;     /* of jobs that name none; NULL: the default */
    bool contents;          /* also check the content of kernels and inputs */
    bool makes;             /* the missing folders of outputs will be made */
    struct bhi_names *made; /* gets the whole paths of inputs, also of |skipped| jobs, that a job of
                             * the batch writes; NULL: not wanted */
};

/* Checks the files of those |specs| that are not |skipped| (may be NULL: none).
 * A kernel must be a regular file that can be read.
 * An input must be one that can be read, or that another job writes.
 * An output's folder must exist, or be one that can be made. The output must be a regular file or
 * not exist. Behind its links, it must be none of the files in |own|, and no file from which any of
 * the specs, skipped or not, gets its kernel (also with -I).
 * Expressions must be right, and kernels in a language that is compiled here, or images for CUDA by
 * their names; then a line must say what a launch of one needs.
 * With |own->contents| the beginning of kernels and inputs, and the size of inputs, must be right,
 * unless another job writes them.
 * Paths are relative to |folder|. Every error is reported. Returns false if there was one, or if
 * memory ran out (reported with index |count|). */
bool bhi_preflight(const struct bhi_job_spec *specs, size_t count, const bool *skipped,
                   const char *folder, const struct bhi_preflight_own *own,
                   bhi_preflight_visitor visit, void *user);

/* -- parts of it: one job's expression, kernel and inputs, without a worker (content.c) --------- */

/* Does the expression parse, read only given inputs, and assign all outputs? Opens no file. */
bool bhi_content_expression(const struct bhi_eval_request *eval, struct bhi_complaint *complaint);
/* Is the file in a language that can be compiled here, or an image for CUDA? |given| is the one in the
 * job's line. A file that is neither source nor image must begin as SPIR-V does. */
bool bhi_content_kernel(const char *path, enum bhi_language given, struct bhi_complaint *complaint);
/* Is the file a .npy (|tensor| is NULL), or a .safetensors or .npz with |tensor|? Checks headers and sizes,
 * but no elements. */
bool bhi_content_input(const char *path, const char *tensor, struct bhi_complaint *complaint);

#endif

/* Checks the files of a batch before the first job starts. */
#ifndef BHI_BATCH_RUNNER_PREFLIGHT_H
#define BHI_BATCH_RUNNER_PREFLIGHT_H

#include "batch/job/job.h"

/* A file that job |index| needs is not there, or cannot be what the job needs. */
typedef void (*bhi_preflight_visitor)(void *user, size_t index,
                                      const struct bhi_complaint *complaint);

/* What the batch itself lives on: no output may replace it. Paths of this process; may be NULL, or
 * name what is not there. */
struct bhi_preflight_own {
    const char *jobs;  /* the file of the jobs */
    const char *state; /* the folder of the state: it, and nothing in it */
    bool contents;     /* what is in kernels and inputs is looked at, too */
};

/* Looks at the files of those |specs| that are not |skipped| (may be NULL: none are). Each kernel
 * has to be a regular file that can be read, each input one that can be read or that another one
 * writes; an output's folder has to be there, and the output a regular file or nothing, and, its
 * links followed, none of its |own|, and nothing that one of the specs, skipped or not, has its
 * kernel from (-I with it). Expressions have to be right, and names of kernels to be of a language
 * that is compiled here. With |own->contents| kernels and inputs have to be such by their beginning
 * and, of inputs, their size, unless another job writes them. Paths are relative to |folder|. Every
 * fault is told. Returns false where there was one, or memory ran out (told with index |count|). */
bool bhi_preflight(const struct bhi_job_spec *specs, size_t count, const bool *skipped,
                   const char *folder, const struct bhi_preflight_own *own,
                   bhi_preflight_visitor visit, void *user);

#endif

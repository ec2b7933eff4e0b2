/* A file of jobs, one a line. */
#ifndef BHI_BATCH_JOB_FILE_H
#define BHI_BATCH_JOB_FILE_H

#include "batch/job/job.h"

/* One line that is not blank: |spec| with its line number set, which the visitor owns then; or NULL
 * and why it is no job, and |id| is the one that it seems to give ("": none). Returns whether to go
 * on. */
typedef bool (*bhi_job_visitor)(void *user, size_t line, struct bhi_job_spec *spec, const char *id,
                                const struct bhi_complaint *complaint);

/* Reads |path| ("-": standard input) to its end, or until the visitor has enough or a signal comes
 * (interrupt.h). A line that is too long is one bad line. False with a complaint where the file
 * cannot be read; *out_errno is why. */
bool bhi_job_file_read(const char *path, bhi_job_visitor visit, void *user, int *out_errno,
                       struct bhi_complaint *complaint);

#endif

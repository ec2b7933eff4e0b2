/* A file of jobs, one a line. */
#ifndef BHI_BATCH_JOB_FILE_H
#define BHI_BATCH_JOB_FILE_H

#include "batch/job/job.h"

/* Called for each line that is not blank. |spec| has the line number, and then belongs to the
 * visitor. If the line is bad, |spec| is NULL, the complaint says why, and |id| is what the id
 * seems to be ("": none). Returns whether to go on. */
typedef bool (*bhi_job_visitor)(void *user, size_t line, struct bhi_job_spec *spec, const char *id,
                                const struct bhi_complaint *complaint);

/* Reads |path| ("-": standard input) to its end, until the visitor stops, or until a signal comes
 * (interrupt.h). A line that is too long counts as one bad line. Returns false with a complaint if
 * the file cannot be read; *out_errno is the reason. */
bool bhi_job_file_read(const char *path, bhi_job_visitor visit, void *user, int *out_errno,
                       struct bhi_complaint *complaint);

#endif

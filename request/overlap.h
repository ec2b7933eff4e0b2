/* Refuses an output file that the same run also reads. */
#ifndef BHI_REQUEST_OVERLAP_H
#define BHI_REQUEST_OVERLAP_H

#include "request/run.h"

/* Looks at the files, also through symbolic and hard links, and at standard streams that are
 * regular files. NULL: no output is the file of an input or of the kernel, except where it is meant
 * to be replaced (--inout; in an expression, an output with the name of that input). Else the
 * binding whose output is; the complaint says which input reads that file and what to do, with
 * |dashes| before each option that it names. */
const struct bhi_run_binding *bhi_run_find_overlap(const struct bhi_run_request *request,
                                                   const char *dashes,
                                                   struct bhi_complaint *complaint);

#endif

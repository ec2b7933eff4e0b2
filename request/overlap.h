/* Refuses an output file that the same run also reads. */
#ifndef BHI_REQUEST_OVERLAP_H
#define BHI_REQUEST_OVERLAP_H

#include "request/run.h"

/* Compares the files, also through symbolic and hard links, and standard streams that are regular
 * files. Returns NULL if no output is the file of an input or of the kernel, unless it is meant to
 * be replaced (--inout; in an expression, an output with the name of that input). Else returns the
 * binding of that output; the complaint says which input reads the file and what to do, with
 * |dashes| before each option that it names. */
const struct bhi_run_binding *bhi_run_find_overlap(const struct bhi_run_request *request,
                                                   const char *dashes,
                                                   struct bhi_complaint *complaint);

#endif

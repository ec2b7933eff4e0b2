/* Gives a request the description of a loaded input: --inout saves an array of the same type and
 * shape. */
#ifndef BHI_REQUEST_ARRAY_H
#define BHI_REQUEST_ARRAY_H

#include "request/run.h"

/* Fills in the array of a binding whose buffer was loaded from a file. Refuses a dtype for which no
 * .npy file can be written, unless the binding is a tensor, which is only read. */
bool bhi_run_take_array(struct bhi_run_binding *binding, struct bhi_complaint *complaint);

#endif

/* Bindings and push constants that are given by name. The module has the names: until it has been
 * inspected such a binding has no slot, and the push constants have no bytes. */
#ifndef BHI_REQUEST_NAMES_H
#define BHI_REQUEST_NAMES_H

#include "request/types.h"

/* "a=2,n=u32:5,v=1,2,3" of --push is kept as it is (borrowed). Only its form is looked at. */
bool bhi_run_parse_push_names(struct bhi_run_request *request, const char *text,
                              struct bhi_complaint *complaint);

/* Whether anything was given by name: then the kernel has to be inspected. */
bool bhi_run_has_names(const struct bhi_run_request *request);
/* Finds what the names stand for: slots, and the bytes of the push constants. The complaint begins
 * with the argument, |dashes| before its option. Doing it again changes nothing. */
bool bhi_run_resolve_names(struct bhi_run_request *request, const struct bhi_kernel_types *types,
                           const char *dashes, struct bhi_complaint *complaint);

#endif

/* Bindings and push constants that are given by name. The names are in the module: until it has
 * been inspected, such a binding has no slot, and the push constants have no bytes. */
#ifndef BHI_REQUEST_NAMES_H
#define BHI_REQUEST_NAMES_H

#include "request/types.h"

/* Keeps "a=2,n=u32:5,v=1,2,3" of --push (borrowed). Checks only its form. */
bool bhi_run_parse_push_names(struct bhi_run_request *request, const char *text,
                              struct bhi_complaint *complaint);

/* Was anything given by name? Then the kernel must be inspected. */
bool bhi_run_has_names(const struct bhi_run_request *request);
/* Resolves the names: fills in slots, and the bytes of the push constants. Refuses a request that
 * lacks bindings (missing.h). The complaint begins with the argument, with |dashes| before its
 * option. A second call changes nothing. */
bool bhi_run_resolve_names(struct bhi_run_request *request, const struct bhi_kernel_types *types,
                           const char *dashes, struct bhi_complaint *complaint);

#endif

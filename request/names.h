/* Bindings and push constants that are given by name. The module has the names: until it has been
 * inspected such a binding has no slot, and the push constants have no bytes. */
#ifndef BHI_REQUEST_NAMES_H
#define BHI_REQUEST_NAMES_H

#include "request/types.h"

enum { BHI_RUN_LIST = 400 }; /* bytes of a list of names */

/* "X" or "X[2]", as |length| bytes of |text|: fills in binding->name, and of its slot the element.
 */
bool bhi_run_parse_name(struct bhi_run_binding *binding, const char *text, size_t length,
                        struct bhi_complaint *complaint);
/* "a=2,n=u32:5,v=1,2,3" of --push is kept as it is (borrowed). Only its form is looked at. */
bool bhi_run_parse_push_names(struct bhi_run_request *request, const char *text,
                              struct bhi_complaint *complaint);

/* Whether anything was given by name: then the kernel has to be inspected. */
bool bhi_run_has_names(const struct bhi_run_request *request);
/* Finds what the names stand for: slots, and the bytes of the push constants. The complaint begins
 * with the argument, |dashes| before its option. Doing it again changes nothing. */
bool bhi_run_resolve_names(struct bhi_run_request *request, const struct bhi_kernel_types *types,
                           const char *dashes, struct bhi_complaint *complaint);

/* "'a' (f32), 'n' (u32)"; of those without a name the type. */
void bhi_run_list_members(const struct bhi_kernel_types *types, char out[BHI_RUN_LIST]);

#endif

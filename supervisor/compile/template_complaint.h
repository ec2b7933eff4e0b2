/* Reports a template's complaint as the failure of a public call. */
#ifndef BHI_SUPERVISOR_COMPILE_TEMPLATE_COMPLAINT_H
#define BHI_SUPERVISOR_COMPILE_TEMPLATE_COMPLAINT_H

#include "templates/signature.h"
#include <bulkhead/bulkhead.h>

/* Returns the status of |complaint|, BH_INVALID_ARGUMENT or BH_NO_MEMORY, as |call|'s failure. */
bh_status bhi_template_fail(const struct bhi_complaint *complaint, const char *call,
                            bh_detail *detail);

#endif

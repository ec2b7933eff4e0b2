/* Reports a template's complaint as the failure of a public call. */
#ifndef BHI_SUPERVISOR_COMPILE_TEMPLATE_COMPLAINT_H
#define BHI_SUPERVISOR_COMPILE_TEMPLATE_COMPLAINT_H

#include "templates/signature.h"
#include <bulkhead/bulkhead.h>

/* |complaint| as |call|'s failure: INVALID_ARGUMENT, or NO_MEMORY where that was why. */
bh_status bhi_template_fail(const struct bhi_complaint *complaint, const char *call,
                            bh_detail *detail);

#endif

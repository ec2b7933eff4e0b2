/* Fills in the bh_detail of a caller: status, errno, and one line of text. NULL is allowed. */
#ifndef BHI_BASE_DETAIL_H
#define BHI_BASE_DETAIL_H

#include <bulkhead/bulkhead.h>

/* Returns |status|, so that a function can end with it. |detail| may be NULL. */
bh_status bhi_fail(bh_detail *detail, bh_status status, int sys_errno, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same with a reason. */
bh_status bhi_fail_for(bh_detail *detail, bh_status status, bh_reason reason, const char *format,
                       ...) __attribute__((format(printf, 4, 5)));
/* "SIGSEGV" for 11. */
const char *bhi_signal_name(int signal);
/* Returns true if a sandboxed process cannot end itself by |signal|: the filters let it send itself
 * SIGABRT alone, and its own faults and writes cause those listed in detail.c. So somebody else, or
 * a limit of the host, has ended it. */
bool bhi_signal_is_foreign(int signal);

#endif

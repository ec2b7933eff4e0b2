/* One-line complaints, on stderr. */
#ifndef BHI_TOOL_COMPLAIN_H
#define BHI_TOOL_COMPLAIN_H

#include <stdbool.h>

/* Says "bulkhead COMMAND: …", as one line that has been cleaned. |command| may be NULL. */
void bhi_complain(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Flushes stdout. Returns false after a write error, reported by then (disk full, closed pipe). */
bool bhi_text_flush(const char *command);

#endif

/* The option --isolate of `bulkhead batch`: parses its value. */
#ifndef BHI_TOOL_ISOLATION_H
#define BHI_TOOL_ISOLATION_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stddef.h>

#include "formats/complaint.h"

bool bhi_isolation_parse(const char *value, bh_isolation *out, struct bhi_complaint *complaint);
/* The values that the option takes, by index; NULL after the last. */
const char *bhi_isolation_word(size_t index);

#endif

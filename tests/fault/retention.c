/* The ablation switch of the test build (supervisor/buffer/retention.h). */
#include "supervisor/buffer/retention.h"

#include <stdlib.h>
#include <string.h>

bool bhi_retention_off(void) {
    const char *value = getenv("BULKHEAD_TEST_RETENTION");
    return value && strcmp(value, "off") == 0;
}

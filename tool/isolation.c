#include "tool/isolation.h"

#include <string.h>

static const char *const names[] = {[BH_ISOLATION_STREAM] = "stream",
                                    [BH_ISOLATION_KERNEL] = "kernel",
                                    [BH_ISOLATION_SUBMISSION] = "job"};

const char *bhi_isolation_word(size_t index) {
    return index < sizeof names / sizeof *names ? names[index] : NULL;
}

bool bhi_isolation_parse(const char *value, bh_isolation *out, struct bhi_complaint *complaint) {
    for (size_t i = 0; bhi_isolation_word(i); i++) {
        if (!strcmp(value, bhi_isolation_word(i))) {
            *out = (bh_isolation)i;
            return true;
        }
    }
    return bhi_refuse(complaint, "it is stream, kernel or job");
}

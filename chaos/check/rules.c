#include "chaos/check/rules.h"

#include <stdarg.h>
#include <stdio.h>

/* At most this many findings of one kind are reported, so that none hides the others. */
#define TOLD_OF_EACH (BHI_FINDINGS / BHI_ANOMALIES)

void bhi_find(struct bhi_check *check, enum bhi_anomaly anomaly, uint64_t op,
              const struct bhi_record *record, const char *format, ...) {
    struct bhi_chaos_result *result = check->result;
    if (result->by_anomaly[anomaly]++ >= TOLD_OF_EACH) {
        return;
    }
    struct bhi_finding *finding = &result->findings[result->finding_count++];
    *finding = (struct bhi_finding){.anomaly = anomaly, .op = op};
    finding->record = record ? (size_t)(record - check->history->records) : BHI_FINDING_NO_RECORD;
    va_list args;
    va_start(args, format);
    vsnprintf(finding->text, sizeof finding->text, format, args);
    va_end(args);
}

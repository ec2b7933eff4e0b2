#include "chaos/check/result.h"

const char *bhi_chaos_verdict_name(enum bhi_chaos_verdict verdict) {
    switch (verdict) {
    case BHI_CHAOS_VALID:
        return "valid";
    case BHI_CHAOS_INVALID:
        return "invalid";
    case BHI_CHAOS_UNKNOWN:
        break;
    }
    return "unknown";
}

const char *bhi_anomaly_name(enum bhi_anomaly anomaly) {
    static const char *const names[BHI_ANOMALIES] = {
        [BHI_ANOMALY_LOST] = "lost",
        [BHI_ANOMALY_FALSE_SUCCESS] = "false success",
        [BHI_ANOMALY_COLLATERAL] = "collateral",
        [BHI_ANOMALY_CHANGED] = "changed",
        [BHI_ANOMALY_RECOVERY] = "recovery",
        [BHI_ANOMALY_LEAK] = "leak",
        [BHI_ANOMALY_UNKNOWN] = "unknown",
    };
    return anomaly < BHI_ANOMALIES ? names[anomaly] : "unknown";
}

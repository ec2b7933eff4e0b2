/* Any bytes as the history of a chaos run: it is refused with a reason that names the line, or it
 * is one that the checker can judge, whatever it says. */
#include "chaos/check/check.h" /* there is one in ipc/, too */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

/* What the checker would compute anew: bounded by the file's size in earnest, here by patience. */
static uint64_t work_of(const struct bhi_history *history) {
    uint64_t work = 0;
    for (size_t i = 0; i < history->count; i++) {
        if (history->records[i].kind == BHI_RECORD_OP) {
            work += (uint64_t)history->records[i].submit.work.words *
                    (history->records[i].submit.work.rounds + 1);
        }
    }
    return work;
}

static void check_result(const struct bhi_history *history, const struct bhi_chaos_result *result) {
    uint64_t anomalies = 0;
    for (int i = 0; i < BHI_ANOMALIES; i++) {
        anomalies += i == BHI_ANOMALY_UNKNOWN ? 0 : result->by_anomaly[i];
    }
    if (history->overflow) {
        FUZZ_CHECK(result->verdict == BHI_CHAOS_UNKNOWN);
    } else if (anomalies) {
        FUZZ_CHECK(result->verdict == BHI_CHAOS_INVALID);
    } else {
        FUZZ_CHECK((result->verdict == BHI_CHAOS_UNKNOWN) ==
                   (result->by_anomaly[BHI_ANOMALY_UNKNOWN] > 0));
    }
    FUZZ_CHECK(result->verdict != BHI_CHAOS_VALID || (history->complete && result->ready));
    FUZZ_CHECK(result->finding_count <= BHI_FINDINGS);
    for (size_t i = 0; i < result->finding_count; i++) {
        const size_t record = result->findings[i].record;
        FUZZ_CHECK(record < history->count || record == BHI_FINDING_NO_RECORD);
        FUZZ_CHECK(result->findings[i].text[0]);
        FUZZ_CHECK(strlen(result->findings[i].text) < sizeof result->findings[i].text);
    }
    FUZZ_CHECK(result->operations <= history->count);
    FUZZ_CHECK(result->ready + result->poisoned + result->lost <= result->operations);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bhi_complaint complaint = {.text = ""};
    struct bhi_history history;
    static struct bhi_chaos_result result; /* large */
    if (size == 0) {
        return 0;
    }
    FILE *file = fmemopen((void *)(uintptr_t)data, size, "r");
    FUZZ_CHECK(file);
    const bool good = bhi_history_read(file, &history, &complaint);
    fclose(file);
    FUZZ_CHECK(good == (complaint.text[0] == '\0'));
    if (!good) {
        FUZZ_CHECK(strncmp(complaint.text, "line ", 5) == 0 && !history.records);
        return 0;
    }
    if (work_of(&history) < 1u << 22) {
        FUZZ_CHECK(bhi_chaos_check(&history, &result));
        check_result(&history, &result);
    }
    bhi_history_free(&history);
    return 0;
}

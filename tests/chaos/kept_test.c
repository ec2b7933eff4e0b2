/* The checker, on histories that a host has kept: one line too many, or one too few, and what it finds. */
#include "chaos/check/check.h"
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ATTEMPT(op, request, once)                                                                 \
    "{\"kind\":\"attempt\",\"at_ns\":10,\"op\":" op ",\"request\":" request ",\"once\":" once      \
    ",\"expects\":true,\"expected\":\"00112233445566778899aabbccddeeff\"}\n"
#define END(op, state, status, executed)                                                           \
    "{\"kind\":\"end\",\"at_ns\":40,\"op\":" op ",\"lost\":false,\"state\":\"" state               \
    "\",\"status\":\"" status "\",\"executed\":\"" executed                                        \
    "\",\"signal\":0,\"worker_pid\":7,\"origin\":1,\"hops\":0,\"submitted_ns\":10,\"started_ns\":" \
    "20,\"ended_ns\":30,\"blame\":\"none\",\"changed\":false}\n"
#define READY(op) END(op, "ready", "OK", "yes")
#define LOST(op)  END(op, "poisoned", "WORKER_SIGNAL", "unknown")
#define UNRUN(op) END(op, "poisoned", "UNAVAILABLE", "no")
#define RESULT(op, digest)                                                                         \
    "{\"kind\":\"result\",\"at_ns\":41,\"op\":" op ",\"status\":\"OK\",\"digest\":\"" digest "\"}" \
    "\n"
#define RIGHT(op) RESULT(op, "00112233445566778899aabbccddeeff")
#define WRONG(op) RESULT(op, "ff112233445566778899aabbccddeeff")
#define ANSWER_AT(at, request, good)                                                               \
    "{\"kind\":\"answer\",\"at_ns\":" at ",\"request\":" request ",\"good\":" good "}\n"
#define GOOD(request) ANSWER_AT("50", request, "true")
#define BAD(request)  ANSWER_AT("50", request, "false")
/* Another request, so that something is READY. */
#define FINE ATTEMPT("9", "9", "false") READY("9") RIGHT("9") GOOD("9")

static const struct {
    const char *lines;
    int anomaly; /* -1: none */
} rows[] = {
    {"", -1},
    {ATTEMPT("1", "1", "false") LOST("1") ATTEMPT("2", "1", "false") READY("2") RIGHT("2")
         GOOD("1"),
     -1},
    {ATTEMPT("1", "1", "true") UNRUN("1") ATTEMPT("2", "1", "true") READY("2") RIGHT("2") GOOD("1"),
     -1},
    {ATTEMPT("1", "1", "true") LOST("1") BAD("1"), -1},
    {ATTEMPT("1", "1", "false") RIGHT("1") READY("1") GOOD("1"), BHI_ANOMALY_FALSE_SUCCESS},
    {ATTEMPT("1", "1", "false") LOST("1") RIGHT("1") BAD("1"), BHI_ANOMALY_FALSE_SUCCESS},
    {ATTEMPT("1", "1", "false") READY("1") WRONG("1") BAD("1"), BHI_ANOMALY_FALSE_SUCCESS},
    {ATTEMPT("1", "1", "false") READY("1") GOOD("1") RIGHT("1"), BHI_ANOMALY_FALSE_SUCCESS},
    {GOOD("1"), BHI_ANOMALY_FALSE_SUCCESS},
    {BAD("1"), BHI_ANOMALY_COLLATERAL},
    {ATTEMPT("1", "1", "false") READY("1") BAD("1"), BHI_ANOMALY_COLLATERAL},
    {ATTEMPT("1", "1", "false") READY("1") RIGHT("1") BAD("1"), BHI_ANOMALY_COLLATERAL},
    {ATTEMPT("1", "1", "false") READY("1") RIGHT("1"), BHI_ANOMALY_LOST},
    {ATTEMPT("1", "1", "false") READY("1") RIGHT("1") ANSWER_AT("1011", "1", "true"),
     BHI_ANOMALY_LOST},
    {ATTEMPT("1", "1", "false") READY("1") RIGHT("1") ANSWER_AT("1010", "1", "true"), -1},
    {ATTEMPT("1", "1", "false") LOST("1") ATTEMPT("2", "1", "false") BAD("1"), BHI_ANOMALY_LOST},
    {ATTEMPT("1", "1", "false") READY("1") LOST("1") RIGHT("1") GOOD("1"), BHI_ANOMALY_CHANGED},
    {ATTEMPT("1", "1", "false") READY("1") RIGHT("1") GOOD("1") GOOD("1"), BHI_ANOMALY_CHANGED},
    {ATTEMPT("1", "1", "true") LOST("1") ATTEMPT("2", "1", "true") READY("2") RIGHT("2") GOOD("1"),
     BHI_ANOMALY_CHANGED},
    {ATTEMPT("1", "1", "false") LOST("1") BAD("1") ATTEMPT("2", "1", "false") LOST("2"),
     BHI_ANOMALY_CHANGED},
    /* It contradicts itself. */
    {LOST("1"), BHI_ANOMALY_UNKNOWN},
    {LOST("1") ATTEMPT("1", "1", "false") LOST("1") BAD("1"), BHI_ANOMALY_UNKNOWN},
};

static struct bhi_chaos_result judge(const char *lines, const char *last) {
    static const char header[] =
        "{\"bulkhead_chaos\":1,\"version\":\"1\",\"seed\":0,\"duration_ns\":0,\"faults_asked\":0,"
        "\"streams\":1,\"faults\":[],\"rate\":0.0,\"outside\":true,\"accelerator\":false,"
        "\"patience_ns\":1000,\"recovery_ns\":1,\"device\":\"\",\"driver\":\"\"}\n";
    char text[8192];
    struct bhi_complaint complaint;
    struct bhi_history history;
    static struct bhi_chaos_result result; /* large */
    const int length = snprintf(text, sizeof text, "%s%s%s%s", header, FINE, lines, last);
    BHT_TRUE(length > 0 && (size_t)length < sizeof text);
    FILE *file = fmemopen(text, (size_t)length, "r");
    if (!bhi_history_read(file, &history, &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
    fclose(file);
    BHT_TRUE(bhi_chaos_check(&history, &result));
    bhi_history_free(&history);
    return result;
}

TEST(what_a_host_has_kept_is_judged) {
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        const struct bhi_chaos_result result = judge(rows[i].lines, "{\"kind\":\"complete\"}\n");
        const enum bhi_chaos_verdict verdict = rows[i].anomaly < 0 ? BHI_CHAOS_VALID
                                               : rows[i].anomaly == BHI_ANOMALY_UNKNOWN
                                                   ? BHI_CHAOS_UNKNOWN
                                                   : BHI_CHAOS_INVALID;
        if (result.verdict != verdict ||
            (rows[i].anomaly >= 0 && !result.by_anomaly[rows[i].anomaly])) {
            BHT_FAIL("row %zu is %s: %s", i, bhi_chaos_verdict_name(result.verdict),
                     result.finding_count ? result.findings[0].text : "");
        }
    }
}

/* What is missing may have been said later; what was said stands. */
TEST(a_torn_history_proves_nothing) {
    BHT_EQ(judge(ATTEMPT("1", "1", "false"), "").verdict, BHI_CHAOS_UNKNOWN);
    BHT_EQ(judge("", "").verdict, BHI_CHAOS_UNKNOWN);
    BHT_EQ(judge(ATTEMPT("1", "1", "false") LOST("1") RIGHT("1"), "").verdict, BHI_CHAOS_INVALID);
}

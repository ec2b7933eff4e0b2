#include "judge.h"
#include "harness.h"

#include <signal.h>
#include <string.h>

struct bhi_chaos_result result;

const char *all_findings(void) {
    static char text[8192];
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < result.finding_count; i++) {
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "\n    %s: %s",
                             bhi_anomaly_name(result.findings[i].anomaly), result.findings[i].text);
    }
    return text;
}

void judge(struct tale *tale) {
    tale->now_ms += 100;
    tale_works(tale, 1100);
    tale->now_ms += 100;
    tale_sample(tale, 20, 50);
    BHT_TRUE(!tale->history.overflow);
    BHT_TRUE(bhi_chaos_check(&tale->history, &result));
    tale_end(tale);
}

void valid(struct tale *tale) {
    judge(tale);
    if (result.verdict != BHI_CHAOS_VALID) {
        BHT_FAIL("%s:%s", bhi_chaos_verdict_name(result.verdict), all_findings());
    }
}

void found(struct tale *tale, enum bhi_anomaly anomaly, uint64_t op, const char *words) {
    judge(tale);
    bool good =
        result.by_anomaly[anomaly] > 0 &&
        result.verdict == (anomaly == BHI_ANOMALY_UNKNOWN ? BHI_CHAOS_UNKNOWN : BHI_CHAOS_INVALID);
    for (int other = 0; other < BHI_ANOMALIES; other++) {
        good &= other == (int)anomaly || !result.by_anomaly[other];
    }
    bool said = false;
    for (size_t i = 0; i < result.finding_count; i++) {
        said |= strstr(result.findings[i].text, words) && (!op || result.findings[i].op == op);
    }
    if (!good || !said) {
        BHT_FAIL("%s, not %s of %llu ('%s'):%s", bhi_chaos_verdict_name(result.verdict),
                 bhi_anomaly_name(anomaly), (unsigned long long)op, words, all_findings());
    }
}

void killed(struct scene *s, enum bhi_fault_kind kind, bh_status status, int signal) {
    struct tale *t = &s->tale;
    tale_begin(t);
    t->now_ms = 10;
    s->killed = tale_op(t, 0, 0, 0);
    s->dependent = tale_op(t, 1, s->killed, 0);
    s->innocent = tale_op(t, 1, 0, 0);
    t->now_ms = 15;
    tale_fault(t, kind, 0, 1000);
    t->now_ms = 17;
    tale_poisoned(t, s->killed, status, signal, 1000, 12);
    tale_inherits(t, s->dependent, s->killed);
    tale_ready(t, s->innocent, 1001, 16);
}

void killed_by_signal(struct scene *s) {
    killed(s, BHI_FAULT_KILL, BH_WORKER_SIGNAL, SIGKILL);
}

uint64_t compiled_for_5_s(struct scene *s) {
    killed_by_signal(s);
    s->tale.now_ms = 30;
    tale_works(&s->tale, 1010);
    const uint64_t op = tale_op(&s->tale, 1, 0, 0);
    s->tale.now_ms = 5040;
    return op;
}

void stopped(struct tale *t, enum bhi_fault_kind kind, uint64_t lasts_ms, uint64_t took_ms) {
    tale_begin(t);
    t->now_ms = 10;
    uint64_t op = tale_op(t, 0, 0, 0);
    t->now_ms = 15;
    uint64_t fault = tale_fault(t, kind, 0, 1000);
    tale_last(t)->fault.lasts_ns = lasts_ms * TALE_MS;
    if (kind == BHI_FAULT_SLOW) {
        t->now_ms = 15 + lasts_ms;
        tale_healed(t, fault);
    }
    t->now_ms = 12 + took_ms;
    tale_poisoned(t, op, BH_DEADLINE, SIGKILL, 1000, 12);
}

void full(struct tale *t, uint64_t healed_ms) {
    tale_begin(t);
    t->now_ms = 10;
    uint64_t fault = tale_fault(t, BHI_FAULT_FULL, 0, 0);
    t->now_ms = healed_ms;
    tale_healed(t, fault);
}

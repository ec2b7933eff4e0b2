#include "chaos/check/check.h"
#include "chaos/check/power.h"
#include "chaos/check/rules.h"

#include <sodium.h>
#include <string.h>

static void doubt(void *user, const struct bhi_record *record, const char *text) {
    bhi_find(user, BHI_ANOMALY_UNKNOWN, record->op, record, "the history contradicts itself: %s",
             text);
}

static void count(struct bhi_check *check) {
    struct bhi_chaos_result *result = check->result;
    const struct bhi_ledger *ledger = &check->ledger;
    result->operations = ledger->op_count;
    result->cut_short = !check->history->complete;
    BHI_LEDGER_OPS(op, ledger) {
        result->ready += bhi_ledger_ready(op);
        result->poisoned += bhi_ledger_poisoned(op);
        result->lost +=
            op->end ? op->end->end.lost : check->history->complete && !check->history->overflow;
    }
    BHI_RECORDS(record, check->history) {
        result->refused += record->kind == BHI_RECORD_REFUSED;
        result->results += record->kind == BHI_RECORD_RESULT && record->result.status == BH_OK;
        if (record->kind != BHI_RECORD_FAULT) {
            continue;
        }
        result->missed += record->fault.missed;
        result->faults[record->fault.kind] += !record->fault.missed;
    }
}

/* Reports the reasons why nothing can be said of the run. */
static void check_substance(struct bhi_check *check, bool faults) {
    const struct bhi_history *history = check->history;
    if (history->overflow) {
        bhi_find(check, BHI_ANOMALY_UNKNOWN, 0, NULL,
                 "the history is incomplete: the run was out of memory");
    } else if (!history->complete) {
        bhi_find(check, BHI_ANOMALY_UNKNOWN, 0, NULL,
                 "the history is incomplete: the run was cut short");
    }
    if (faults && check->ledger.fault_count == 0) {
        bhi_find(check, BHI_ANOMALY_UNKNOWN, 0, NULL, "no fault was injected");
    }
    if (check->result->ready == 0) {
        bhi_find(check, BHI_ANOMALY_UNKNOWN, 0, NULL, "no operation was READY");
    }
}

/* Reports a run with too few operations to find an error. */
static void check_power(struct bhi_check *check) {
    const uint64_t compared = check->result->compared;
    const double asked = check->history->header.find_rate, found = bhi_power_rate(compared);
    if (check->history->complete && compared < bhi_power_needed(asked)) {
        bhi_find(check, BHI_ANOMALY_UNKNOWN, 0, NULL,
                 "too few operations: the run would have found one wrong operation in %.4g with a "
                 "probability of 95 %%, and one in %.4g was required",
                 1 / found, 1 / asked);
    }
}

static bool check_host(struct bhi_check *check) {
    count(check);
    const bool good = bhi_check_host(check);
    check_substance(check, false);
    check_power(check);
    return good;
}

static bool check_all(struct bhi_check *check) {
    count(check);
    check_substance(check, true);
    bhi_check_ends(check);
    if (!bhi_check_success(check)) {
        return false;
    }
    check_power(check);
    /* The other rules argue from missing records. They would blame what was only not recorded. */
    if (!check->history->complete || check->history->overflow) {
        return true;
    }
    bhi_check_poison(check);
    bhi_check_device(check);
    return bhi_check_recovery(check) && bhi_check_leaks(check);
}

static enum bhi_chaos_verdict verdict_of(const struct bhi_check *check) {
    const struct bhi_chaos_result *result = check->result;
    if (check->history->overflow) {
        return BHI_CHAOS_UNKNOWN;
    }
    for (int anomaly = 0; anomaly < BHI_ANOMALIES; anomaly++) {
        if (anomaly != BHI_ANOMALY_UNKNOWN && result->by_anomaly[anomaly]) {
            return BHI_CHAOS_INVALID;
        }
    }
    return result->by_anomaly[BHI_ANOMALY_UNKNOWN] ? BHI_CHAOS_UNKNOWN : BHI_CHAOS_VALID;
}

bool bhi_chaos_check(const struct bhi_history *history, struct bhi_chaos_result *out_result) {
    struct bhi_check check = {.history = history, .result = out_result};
    memset(out_result, 0, sizeof *out_result);
    const bool host = bhi_check_is_host(history);
    if (sodium_init() < 0 || (!host && !bhi_ledger_init(&check.ledger, history, doubt, &check))) {
        return false;
    }
    bool good = host ? check_host(&check) : check_all(&check);
    out_result->verdict = verdict_of(&check);
    bhi_ledger_fini(&check.ledger);
    return good;
}

/* False success: READY means that everything that the operation needed was READY before it began,
 * and that its output is bit for bit what it should be (E3, E5, E11, E15). */
#include "chaos/check/oracle.h"
#include "chaos/check/rules.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

/* -- the verdict ----------------------------------------------------------------------------- */

static const char *bad_verdict(const struct bhi_ledger_op *op) {
    const struct bhi_record *end = op->end;
    if (end->end.status != BH_OK) {
        return "its status is not success";
    }
    if (end->end.executed != BH_EXECUTED_YES || !end->end.started_ns) {
        return "it never ran";
    }
    if (!end->end.worker_pid) {
        return "it ran on no worker";
    }
    if (end->end.signal) {
        return "a signal killed its worker";
    }
    if (end->end.hops || end->end.origin != op->submit->submit.event) {
        return "it inherited that from another";
    }
    if (end->end.blame != BH_BLAME_NONE) {
        return "something is to blame for it";
    }
    return bhi_impossible_times(op);
}

static void check_need(struct bhi_check *check, const struct bhi_ledger_op *op,
                       const struct bhi_ledger_op *need) {
    if (!need || !need->end) {
        return; /* reported by another rule */
    }
    if (!bhi_ledger_ready(need)) {
        bhi_find(check, BHI_ANOMALY_FALSE_SUCCESS, op->number, op->end,
                 "operation %llu is READY, and %llu, which it needs, is not", (ull)op->number,
                 (ull)need->number);
    } else if (need->submit->stream != op->submit->stream &&
               need->end->end.ended_ns > op->end->end.started_ns) {
        bhi_find(check, BHI_ANOMALY_FALSE_SUCCESS, op->number, op->end,
                 "operation %llu is READY, and began before %llu, which it needs, had ended",
                 (ull)op->number, (ull)need->number);
    }
}

static void check_ready(struct bhi_check *check, const struct bhi_ledger_op *op) {
    const char *why = bad_verdict(op);
    if (why) {
        bhi_find(check, BHI_ANOMALY_FALSE_SUCCESS, op->number, op->end,
                 "operation %llu is READY, but %s", (ull)op->number, why);
    }
    if (op->bait && op->bait->record->fault.kind != BHI_FAULT_OOM) {
        const bool illegal = op->bait->record->fault.kind == BHI_FAULT_ILLEGAL;
        bhi_find(check, BHI_ANOMALY_FALSE_SUCCESS, op->number, op->end,
                 "operation %llu, %s, is READY", (ull)op->number,
                 illegal ? "a kernel that writes where no memory is" : "an endless kernel");
    }
    for (uint32_t i = 0; i < op->submit->submit.input_count; i++) {
        check_need(check, op, op->inputs[i]);
    }
    check_need(check, op, op->wait);
}

/* -- what it should give --------------------------------------------------------------------- */

/* Outputs of READY operations, for as long as a later one reads them. */
struct outputs {
    uint32_t **words; /* by place in the ledger */
    uint32_t *readers;
};

static size_t place_of(const struct bhi_ledger *ledger, const struct bhi_ledger_op *op) {
    return (size_t)(op - ledger->ops);
}

static void count_readers(const struct bhi_ledger *ledger, struct outputs *outputs) {
    for (size_t i = 0; i < ledger->op_count; i++) {
        for (uint32_t k = 0; k < BHI_CHAOS_INPUTS; k++) {
            if (ledger->ops[i].inputs[k]) {
                outputs->readers[place_of(ledger, ledger->ops[i].inputs[k])]++;
            }
        }
    }
}

/* Computes the output. *out_words is NULL if it cannot be known, because one of the inputs is not
 * known. Returns false if out of memory. */
static bool compute(const struct bhi_ledger *ledger, const struct outputs *outputs,
                    const struct bhi_ledger_op *op, uint32_t **out_words) {
    const struct bhi_record *submit = op->submit;
    const uint32_t *inputs[BHI_CHAOS_INPUTS];
    *out_words = NULL;
    for (uint32_t k = 0; k < submit->submit.input_count; k++) {
        if (!op->inputs[k] || !outputs->words[place_of(ledger, op->inputs[k])]) {
            return true;
        }
        inputs[k] = outputs->words[place_of(ledger, op->inputs[k])];
    }
    *out_words = malloc(((size_t)submit->submit.work.words + 1) * sizeof **out_words);
    if (!*out_words) {
        return false;
    }
    bhi_oracle_compute(&submit->submit.work, inputs, submit->submit.input_count, *out_words);
    return true;
}

static void drop(struct outputs *outputs, size_t place) {
    free(outputs->words[place]);
    outputs->words[place] = NULL;
}

static bool compute_all(struct bhi_ledger *ledger, struct outputs *outputs) {
    for (size_t i = 0; i < ledger->op_count; i++) {
        struct bhi_ledger_op *op = &ledger->ops[i];
        if (bhi_ledger_ready(op) && !op->submit->submit.bait) {
            if (!compute(ledger, outputs, op, &outputs->words[i])) {
                return false;
            }
            op->known = outputs->words[i];
            if (op->known) {
                bhi_oracle_digest(outputs->words[i], op->submit->submit.work.words, op->digest);
            }
        }
        for (uint32_t k = 0; k < BHI_CHAOS_INPUTS; k++) {
            if (op->inputs[k] && --outputs->readers[place_of(ledger, op->inputs[k])] == 0) {
                drop(outputs, place_of(ledger, op->inputs[k]));
            }
        }
        if (outputs->readers[i] == 0) {
            drop(outputs, i);
        }
    }
    return true;
}

static bool predict(struct bhi_ledger *ledger) {
    struct outputs outputs = {.words = calloc(ledger->op_count + 1, sizeof *outputs.words),
                              .readers = calloc(ledger->op_count + 1, sizeof *outputs.readers)};
    bool good = outputs.words && outputs.readers;
    if (good) {
        count_readers(ledger, &outputs);
        good = compute_all(ledger, &outputs);
    }
    for (size_t i = 0; outputs.words && i < ledger->op_count; i++) {
        free(outputs.words[i]);
    }
    free(outputs.words);
    free(outputs.readers);
    return good;
}

/* -- what was read back ---------------------------------------------------------------------- */

/* Returns false if the record says nothing about the output. */
static bool check_result(struct bhi_check *check, const struct bhi_ledger_op *op,
                         const struct bhi_record *record) {
    bh_status status = record->result.status;
    if (bhi_is_shortage(status) && status != op->end->end.status &&
        bhi_was_full(check, record->at_ns, record->at_ns)) {
        return false; /* it may be read another time */
    }
    if (bhi_ledger_poisoned(op) && status == BH_OK) {
        bhi_find(check, BHI_ANOMALY_FALSE_SUCCESS, op->number, record,
                 "operation %llu is POISONED, and its output can be read", (ull)op->number);
    } else if (bhi_ledger_poisoned(op) && status != op->end->end.status) {
        bhi_find(check, BHI_ANOMALY_CHANGED, op->number, record,
                 "operation %llu and its output have different verdicts", (ull)op->number);
    } else if (bhi_ledger_ready(op) && status != BH_OK) {
        bhi_find(check, BHI_ANOMALY_CHANGED, op->number, record,
                 "operation %llu is READY, and its output cannot be read", (ull)op->number);
    } else if (bhi_ledger_ready(op) && op->known &&
               memcmp(op->digest, record->result.digest, BHI_CHAOS_DIGEST) != 0) {
        bhi_find(check, BHI_ANOMALY_FALSE_SUCCESS, op->number, record,
                 "operation %llu is READY, and its output is wrong", (ull)op->number);
    }
    return true;
}

/* Marks the operations whose output was compared. */
static void check_results(struct bhi_check *check, bool *read) {
    const struct bhi_history *history = check->history;
    BHI_RECORDS_OF(record, history, BHI_RECORD_RESULT) {
        const struct bhi_ledger_op *op = bhi_ledger_find(&check->ledger, record->op);
        if (!op || !op->end) {
            continue;
        }
        if (check_result(check, op, record)) {
            read[place_of(&check->ledger, op)] = true;
            check->result->compared += bhi_ledger_ready(op) && op->known;
        }
    }
}

static bool needs_are_ready(const struct bhi_ledger_op *op) {
    for (uint32_t i = 0; i < op->submit->submit.input_count; i++) {
        if (op->inputs[i] && !bhi_ledger_ready(op->inputs[i])) {
            return false;
        }
    }
    return true;
}

/* A READY whose output was never compared proves nothing. */
static void check_unread(struct bhi_check *check, const bool *read) {
    if (!check->history->complete || check->history->overflow) {
        return;
    }
    for (size_t i = 0; i < check->ledger.op_count; i++) {
        const struct bhi_ledger_op *op = &check->ledger.ops[i];
        if (!bhi_ledger_ready(op) || op->submit->submit.bait) {
            continue;
        }
        if (!read[i]) {
            bhi_find(check, BHI_ANOMALY_UNKNOWN, op->number, op->end,
                     "operation %llu is READY, and its output was not read back", (ull)op->number);
        } else if (!op->known && needs_are_ready(op)) { /* otherwise another rule has reported it */
            bhi_find(check, BHI_ANOMALY_UNKNOWN, op->number, op->submit,
                     "operation %llu reads data that cannot be recomputed", (ull)op->number);
        }
    }
}

bool bhi_check_success(struct bhi_check *check) {
    struct bhi_ledger *ledger = &check->ledger;
    BHI_LEDGER_OPS(op, ledger) {
        if (bhi_ledger_ready(op)) {
            check_ready(check, op);
        }
    }
    bool *read = calloc(ledger->op_count + 1, sizeof *read);
    bool good = read && predict(ledger);
    if (good) {
        check_results(check, read);
        check_unread(check, read);
    }
    free(read);
    return good;
}

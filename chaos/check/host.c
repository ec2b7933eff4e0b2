/* The history of a host (<bulkhead/history.h>): whether the host has kept to what verdicts say. The rules are
 * in docs/chaos.md, "A history of your own". */
#include "base/sort.h"
#include "chaos/check/rules.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

struct attempt {
    const struct bhi_record *record,
        *end;                       /* |end|: the last look, unless one before had seen its end */
    const struct bhi_record *right; /* the first right result that was used; NULL: none */
};

struct host {
    struct bhi_check *check;
    struct attempt *attempts; /* by op */
    struct attempt **served;  /* the same, by request, then in the order of the history */
    size_t attempt_count;
    const struct bhi_record **answers; /* by request, then in the order of the history */
    size_t answer_count;
};

static int compare(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int by_op(const void *a, const void *b) {
    const struct attempt *x = a, *y = b;
    return compare(x->record->op, y->record->op)
               ?: compare((uintptr_t)x->record, (uintptr_t)y->record);
}

static int by_request(const void *a, const void *b) {
    const struct bhi_record *x = (*(struct attempt *const *)a)->record,
                            *y = (*(struct attempt *const *)b)->record;
    return compare(x->attempt.request, y->attempt.request) ?: compare((uintptr_t)x, (uintptr_t)y);
}

static int by_answered(const void *a, const void *b) {
    const struct bhi_record *x = *(const struct bhi_record *const *)a,
                            *y = *(const struct bhi_record *const *)b;
    return compare(x->answer.request, y->answer.request) ?: compare((uintptr_t)x, (uintptr_t)y);
}

static void doubt(const struct host *host, const struct bhi_record *record, const char *what) {
    bhi_find(host->check, BHI_ANOMALY_UNKNOWN, record->op, record,
             "the history contradicts itself: %s", what);
}

/* Returns the first attempt with the event |op|; *out_count is how many have it: equal sources have one
 * compile. Only those count that come before |record|. */
static struct attempt *find(const struct host *host, uint64_t op, const struct bhi_record *record,
                            size_t *out_count) {
    BHI_BISECT(at, host->attempt_count, host->attempts[middle].record->op < op)
    *out_count = 0;
    while (at + *out_count < host->attempt_count &&
           host->attempts[at + *out_count].record->op == op &&
           host->attempts[at + *out_count].record < record) {
        ++*out_count;
    }
    return host->attempts + at;
}

static bool is_over(const struct attempt *attempt) {
    return attempt->end && attempt->end->end.state != BH_EVENT_PENDING;
}

static bool is_poisoned(const struct attempt *attempt) {
    return attempt->end && attempt->end->end.state == BH_EVENT_POISONED;
}

/* -- what the host has seen and used ------------------------------------------------------------- */

static void see(const struct host *host, struct attempt *attempt, const struct bhi_record *end) {
    if (!is_over(attempt)) {
        attempt->end = end;
    } else if (attempt->end->end.state != end->end.state ||
               attempt->end->end.status != end->end.status) {
        bhi_find(host->check, BHI_ANOMALY_CHANGED, end->op, end,
                 "a later look at event %llu gave another answer", (ull)end->op);
    }
}

static void use(const struct host *host, struct attempt *attempt, const struct bhi_record *result) {
    const struct bhi_record *record = attempt->record;
    if (!is_over(attempt)) {
        bhi_find(host->check, BHI_ANOMALY_FALSE_SUCCESS, record->op, result,
                 "the result of event %llu was used before its verdict was looked at",
                 (ull)record->op);
    } else if (is_poisoned(attempt)) {
        bhi_find(host->check, BHI_ANOMALY_FALSE_SUCCESS, record->op, result,
                 "event %llu is POISONED, and its result was used", (ull)record->op);
    } else if (record->attempt.expects) {
        host->check->result->compared++;
        if (memcmp(record->attempt.expected, result->result.digest, BHI_CHAOS_DIGEST) != 0) {
            bhi_find(host->check, BHI_ANOMALY_FALSE_SUCCESS, record->op, result,
                     "event %llu is READY, and what was used as its result is wrong",
                     (ull)record->op);
        } else if (!attempt->right) {
            attempt->right = result;
        }
    }
}

static void follow(const struct host *host) {
    BHI_RECORDS(record, host->check->history) {
        size_t count;
        if (record->kind != BHI_RECORD_END && record->kind != BHI_RECORD_RESULT) {
            continue;
        }
        struct attempt *attempts = find(host, record->op, record, &count);
        if (!count) {
            doubt(host, record, "something is said of an event that was not submitted before");
        } else if (record->kind == BHI_RECORD_RESULT) {
            use(host, &attempts[count - 1], record);
        }
        for (size_t i = 0; i < count && record->kind == BHI_RECORD_END; i++) {
            see(host, &attempts[i], record);
        }
    }
}

/* -- what it has answered ------------------------------------------------------------------------ */

/* What the attempts of a request come to. */
struct service {
    bool expects, right; /* before the answer */
    bool poisoned;       /* the last one */
    const struct bhi_record *first, *last;
};

static struct service service_of(struct attempt *const *attempts, size_t count,
                                 const struct bhi_record *answer) {
    struct service service = {0};
    for (size_t i = 0; i < count; i++) {
        service.first = service.first ? service.first : attempts[i]->record;
        service.last = attempts[i]->record;
        service.expects |= attempts[i]->record->attempt.expects;
        service.poisoned = is_poisoned(attempts[i]);
        service.right |= attempts[i]->right && (!answer || attempts[i]->right < answer);
    }
    return service;
}

static void check_answer(const struct host *host, const struct bhi_record *answer,
                         const struct service *service) {
    struct bhi_check *check = host->check;
    const uint64_t patience_ns = check->history->header.patience_ns,
                   op = service->last ? service->last->op : 0;
    const ull request = answer->answer.request;
    if (answer->answer.good && !service->right && (service->expects || !service->last)) {
        bhi_find(check, BHI_ANOMALY_FALSE_SUCCESS, op, answer,
                 "request %llu was answered as good before a right result was used", request);
    } else if (answer->answer.good && !service->right) {
        bhi_find(check, BHI_ANOMALY_UNKNOWN, op, answer,
                 "request %llu was answered as good, and what is right was not said", request);
    } else if (!answer->answer.good && service->right) {
        bhi_find(check, BHI_ANOMALY_COLLATERAL, op, answer,
                 "request %llu was answered with a failure, and its result was right", request);
    } else if (!answer->answer.good && !service->poisoned) {
        bhi_find(check, BHI_ANOMALY_COLLATERAL, op, answer,
                 "request %llu was answered with a failure that no verdict explains", request);
    }
    if (service->first && answer->at_ns > bhi_later(service->first->at_ns, patience_ns)) {
        bhi_find(check, BHI_ANOMALY_LOST, op, answer,
                 "request %llu was answered later than the patience (%llu ms)", request,
                 (ull)(patience_ns / BHI_MS));
    }
    if (service->last && service->last > answer) {
        bhi_find(check, BHI_ANOMALY_CHANGED, op, service->last,
                 "request %llu was attempted after it was answered", request);
    }
}

static void check_attempts(const struct host *host, struct attempt *const *attempts, size_t count) {
    struct bhi_check *check = host->check;
    for (size_t i = 0; i < count; i++) {
        const struct bhi_record *record = attempts[i]->record, *end = attempts[i]->end;
        if (!is_over(attempts[i]) && check->history->complete) {
            bhi_find(check, BHI_ANOMALY_LOST, record->op, record,
                     "nobody has looked at the verdict of event %llu", (ull)record->op);
        }
        if (record->attempt.once && i + 1 < count &&
            (!end || end->end.executed != BH_EXECUTED_NO)) {
            bhi_find(
                check, BHI_ANOMALY_CHANGED, record->op, attempts[i + 1]->record,
                "request %llu may be done only once, and was attempted again though event %llu "
                "may have run",
                (ull)record->attempt.request, (ull)record->op);
        }
    }
}

/* Judges the request of the next attempt or answer, and moves on. */
static void check_request(const struct host *host, size_t *inout_attempt, size_t *inout_answer) {
    struct bhi_check *check = host->check;
    const size_t at = *inout_attempt, answered = *inout_answer;
    uint64_t request = UINT64_MAX;
    if (at < host->attempt_count) {
        request = host->served[at]->record->attempt.request;
    }
    if (answered < host->answer_count && host->answers[answered]->answer.request < request) {
        request = host->answers[answered]->answer.request;
    }
    while (*inout_attempt < host->attempt_count &&
           host->served[*inout_attempt]->record->attempt.request == request) {
        ++*inout_attempt;
    }
    while (*inout_answer < host->answer_count &&
           host->answers[*inout_answer]->answer.request == request) {
        ++*inout_answer;
    }
    const size_t answers = *inout_answer - answered, attempts = *inout_attempt - at;
    const struct bhi_record *answer = answers ? host->answers[answered] : NULL;
    const struct service service = service_of(host->served + at, attempts, answer);
    check_attempts(host, host->served + at, attempts);
    if (answer) {
        check_answer(host, answer, &service);
    } else if (check->history->complete) {
        bhi_find(check, BHI_ANOMALY_LOST, service.last->op, service.last,
                 "request %llu was not answered", (ull)request);
    }
    if (answers > 1) {
        bhi_find(check, BHI_ANOMALY_CHANGED, 0, host->answers[answered + 1],
                 "request %llu was answered twice", (ull)request);
    }
}

static void judge(const struct host *host) {
    struct bhi_chaos_result *result = host->check->result;
    qsort(host->attempts, host->attempt_count, sizeof *host->attempts, by_op);
    for (size_t i = 0; i < host->attempt_count; i++) {
        host->served[i] = &host->attempts[i];
        if (i && host->attempts[i].record->op == host->attempts[i - 1].record->op &&
            host->attempts[i].record->attempt.expects) {
            doubt(host, host->attempts[i].record, "an event was submitted twice");
        }
    }
    qsort(host->served, host->attempt_count, sizeof(struct attempt *), by_request);
    qsort(host->answers, host->answer_count, sizeof(struct bhi_record *), by_answered);
    follow(host);
    for (size_t attempt = 0, answer = 0;
         attempt < host->attempt_count || answer < host->answer_count;) {
        check_request(host, &attempt, &answer);
    }
    result->operations = host->attempt_count;
    for (size_t i = 0; i < host->attempt_count; i++) {
        const bool over = is_over(&host->attempts[i]), poisoned = is_poisoned(&host->attempts[i]);
        result->poisoned += poisoned;
        result->ready += over && !poisoned;
        result->lost += !over && host->check->history->complete;
    }
}

bool bhi_check_is_host(const struct bhi_history *history) {
    BHI_RECORDS(record, history) {
        if (record->kind == BHI_RECORD_ATTEMPT || record->kind == BHI_RECORD_ANSWER) {
            return true;
        }
    }
    return false;
}

bool bhi_check_host(struct bhi_check *check) {
    const struct bhi_history *history = check->history;
    struct host host = {.check = check,
                        .attempts = calloc(history->count + 1, sizeof *host.attempts),
                        .served = calloc(history->count + 1, sizeof(struct attempt *)),
                        .answers = calloc(history->count + 1, sizeof(struct bhi_record *))};
    const bool good = host.attempts && host.served && host.answers;
    bool sampled = false;
    for (size_t i = 0; good && i < history->count; i++) {
        const struct bhi_record *record = &history->records[i];
        sampled |= record->kind == BHI_RECORD_SAMPLE;
        if (record->kind == BHI_RECORD_ATTEMPT) {
            host.attempts[host.attempt_count++].record = record;
        } else if (record->kind == BHI_RECORD_ANSWER) {
            host.answers[host.answer_count++] = record;
        } else if (record->kind == BHI_RECORD_OP || record->kind == BHI_RECORD_FAULT) {
            doubt(&host, record, "a host's history has no such record");
        }
    }
    if (good) {
        judge(&host);
    }
    free(host.attempts);
    free(host.served);
    free(host.answers);
    return good && (!sampled || !history->complete || bhi_check_leaks(check));
}

#include "batch/runner/policy.h"

#include <errno.h>

static const uint64_t first_delay_ns = 100000000u;
enum { MOST_DOUBLINGS = 6 }; /* of the delay, to 6.4 s */

static bool may_be_scarcity(const bh_verdict *verdict) {
    return verdict->status == BH_SYSTEM || verdict->status == BH_LOAD_FAILED;
}

static bool is_out_of_memory(const bh_verdict *verdict) {
    return verdict->status == BH_NO_MEMORY ||
           (may_be_scarcity(verdict) && verdict->sys_errno == ENOMEM);
}

static bool is_out_of_descriptors(const bh_verdict *verdict) {
    return may_be_scarcity(verdict) &&
           (verdict->sys_errno == EMFILE || verdict->sys_errno == ENFILE);
}

static bh_status_class classify(const bh_verdict *verdict) {
    /* A job depends only on its own inputs, so only a failed load can poison it. A bad file stays
     * bad at the next attempt. If the loader died, the job is not to blame. */
    if (verdict->status == BH_LOAD_FAILED) {
        return BH_STATUS_CLASS_INPUT;
    }
    /* The file would exceed a limit (ulimit -f also counts shared memory), and would the next
     * time. */
    if (verdict->status == BH_SYSTEM && verdict->sys_errno == EFBIG) {
        return BH_STATUS_CLASS_INPUT;
    }
    /* Opening the file took too long, for example on a mount that does not answer at present. */
    if (verdict->status == BH_TIMEOUT) {
        return BH_STATUS_CLASS_ENVIRON;
    }
    return bh_verdict_classify(verdict);
}

/* A missing device stays missing: a new attempt does not help. */
static bool is_without_device(const bh_verdict *verdict) {
    return verdict->status == BH_NO_DEVICE || verdict->status == BH_UNSUPPORTED;
}

static void refuse_environ(const struct bhi_policy_case *given, struct bhi_policy_answer *answer) {
    const uint32_t doublings =
        given->refusals < MOST_DOUBLINGS ? given->refusals : (uint32_t)MOST_DOUBLINGS;
    answer->next = BHI_JOB_WAITING;
    answer->environment_failed = true;
    answer->refused_for_good = is_without_device(given->verdict);
    answer->delay_ns = first_delay_ns << doublings;
}

struct bhi_policy_answer bhi_policy(const struct bhi_policy_case *given) {
    const bh_verdict *verdict = given->verdict;
    struct bhi_policy_answer answer = {.next = BHI_JOB_FAILED};

    if (verdict->status == BH_OK) {
        answer.next = BHI_JOB_DONE;
        return answer;
    }
    if (given->stopping && (verdict->status == BH_CANCELLED || verdict->status == BH_CLOSED ||
                            verdict->status == BH_CONTEXT_CLOSED)) {
        answer.next = given->interrupted ? BHI_JOB_CANCELLED : BHI_JOB_WAITING;
        return answer;
    }
    /* Others may give back memory or descriptors. A job that ran alone may be too large for the
     * machine's memory; but no job needs more than a few descriptors, so those may come back. */
    const bool descriptors = is_out_of_descriptors(verdict);
    if (descriptors || is_out_of_memory(verdict)) {
        answer.waits_for_others = !given->nothing_else_held;
        answer.next = given->nothing_else_held ? BHI_JOB_FAILED : BHI_JOB_WAITING;
        if (descriptors && given->nothing_else_held) {
            refuse_environ(given, &answer);
            answer.refused_for_good =
                verdict->sys_errno == EMFILE && !given->batch_has_served && given->refused_long;
        }
        return answer;
    }
    const bh_status_class class_ = classify(verdict);
    if (verdict->blame == BH_BLAME_SUSPECTED && !given->tried_alone && !verdict->hops &&
        (class_ == BH_STATUS_CLASS_GUILTY || class_ == BH_STATUS_CLASS_INPUT)) {
        answer.unproven = true;
        answer.next = given->victim + 1 < BHI_POLICY_VICTIM ? BHI_JOB_WAITING : BHI_JOB_FAILED;
        return answer;
    }
    switch (class_) {
    case BH_STATUS_CLASS_GUILTY:
        answer.guilty = true;
        /* A loop that is too long stays so. */
        answer.next = given->guilty < given->retries && verdict->status != BH_LOOP_LIMIT
                          ? BHI_JOB_WAITING
                          : BHI_JOB_QUARANTINED;
        break;
    case BH_STATUS_CLASS_VICTIM:
        answer.next = given->victim + 1 < BHI_POLICY_VICTIM ? BHI_JOB_WAITING : BHI_JOB_FAILED;
        break;
    case BH_STATUS_CLASS_ENVIRON:
        if (!given->names_device || !is_without_device(verdict)) {
            refuse_environ(given, &answer);
        }
        break;
    case BH_STATUS_CLASS_NONE:
    case BH_STATUS_CLASS_CALLER:
    case BH_STATUS_CLASS_INPUT:
        break;
    }
    return answer;
}

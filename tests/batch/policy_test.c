/* What follows from a verdict, for every status there is. */
#include <errno.h>
/* after those four */
#include "harness.h"

#include "batch/runner/policy.h"

static struct bhi_policy_answer ask(bh_status status, struct bhi_policy_case given) {
    bh_verdict verdict = {.status = status};
    given.verdict = &verdict;
    return bhi_policy(&given);
}

static const bh_status every[] = {
#define BH_STATUS(name, value, class_, text, advice) BH_##name,
#include "base/status.def"
#undef BH_STATUS
};
enum { STATUSES = sizeof every / sizeof every[0] };

/* T2: what another job of the same worker may have done is not counted against this one, nor
 * believed of its input; it is tried again on a worker of its own. */
TEST(what_is_only_suspected_is_not_charged) {
    static const bh_status suspicions[] = {
        BH_WORKER_SIGNAL,  BH_DEADLINE,         BH_PROTOCOL,   BH_INVALID_KERNEL,
        BH_COMPILE_FAILED, BH_BINDING_MISMATCH, BH_DEVICE_LOST};
    for (size_t i = 0; i < sizeof suspicions / sizeof *suspicions; i++) {
        const bh_verdict verdict = {.status = suspicions[i], .blame = BH_BLAME_SUSPECTED};
        struct bhi_policy_case given = {.verdict = &verdict, .retries = 0, .guilty = 0};
        struct bhi_policy_answer answer = bhi_policy(&given);
        BHT_EQ(answer.next, BHI_JOB_WAITING);
        BHT_TRUE(answer.unproven);
        BHT_TRUE(!answer.guilty);
        given.victim = BHI_POLICY_VICTIM - 1; /* every job ends */
        answer = bhi_policy(&given);
        BHT_EQ(answer.next, BHI_JOB_FAILED);
    }
    /* Alone already: no other try would show more, and every try of a kernel that is too long for a
     * GPU that others use costs those some seconds. */
    const bh_verdict lost = {.status = BH_DEVICE_LOST, .blame = BH_BLAME_SUSPECTED};
    struct bhi_policy_case again = {.verdict = &lost, .retries = 1, .tried_alone = true};
    struct bhi_policy_answer answer = bhi_policy(&again);
    BHT_EQ(answer.next, BHI_JOB_WAITING);
    BHT_TRUE(answer.guilty);
    BHT_TRUE(!answer.unproven);
    again.guilty = 1;
    BHT_EQ(bhi_policy(&again).next, BHI_JOB_QUARANTINED);
    /* A bad file is one, whatever its loader had read before. */
    const bh_verdict load = {
        .status = BH_LOAD_FAILED, .blame = BH_BLAME_SUSPECTED, .hops = 1, .sys_errno = 0};
    const struct bhi_policy_case given = {.verdict = &load, .retries = 2};
    BHT_EQ(bhi_policy(&given).next, BHI_JOB_FAILED);
}

/* A job that has nothing to its name, two retries, others beside it. */
static const struct bhi_policy_case fresh = {.retries = 2};

TEST(every_status_has_its_answer) {
    for (size_t i = 0; i < STATUSES; i++) {
        const struct bhi_policy_answer answer = ask(every[i], fresh);
        switch (every[i]) {
        case BH_OK:
            BHT_EQ(answer.next, BHI_JOB_DONE);
            break;
        case BH_WORKER_SIGNAL:
        case BH_WORKER_EXIT:
        case BH_SECCOMP:
        case BH_DEADLINE:
        case BH_OUT_OF_HOST_MEMORY:
        case BH_OUT_OF_DEVICE_MEMORY:
        case BH_DEVICE_LOST:
        case BH_DEVICE_FAULT:
        case BH_VULKAN:
        case BH_CUDA:
        case BH_PROTOCOL:
        case BH_NOT_CORRECT: /* the judge's; no job has it */
            BHT_EQ(answer.next, BHI_JOB_WAITING);
            BHT_TRUE(answer.guilty);
            break;
        case BH_LOOP_LIMIT: /* the same would come again */
            BHT_EQ(answer.next, BHI_JOB_QUARANTINED);
            BHT_TRUE(answer.guilty);
            break;
        case BH_CANCELLED:
        case BH_ZYGOTE_LOST:
        case BH_CONTEXT_CLOSED:
        case BH_WORKER_LOST:
        case BH_STREAM_FAILED:
            BHT_EQ(answer.next, BHI_JOB_WAITING);
            break;
        case BH_NO_MEMORY:
            BHT_EQ(answer.next, BHI_JOB_WAITING);
            BHT_TRUE(answer.waits_for_others);
            break;
        case BH_TIMEOUT:
        case BH_SYSTEM:
        case BH_UNAVAILABLE:
        case BH_UNSUPPORTED:
        case BH_NO_DEVICE:
            BHT_EQ(answer.next, BHI_JOB_WAITING);
            BHT_TRUE(answer.environment_failed);
            BHT_GT(answer.delay_ns, 0);
            break;
        default: /* the job's own words were refused: they will be again */
            BHT_EQ(answer.next, BHI_JOB_FAILED);
            break;
        }
        BHT_EQ(answer.refused_for_good, every[i] == BH_NO_DEVICE || every[i] == BH_UNSUPPORTED);
        BHT_EQ(answer.guilty, bh_status_classify(every[i]) == BH_STATUS_CLASS_GUILTY);
        /* With nothing left to try every one of them ends, but for the machine's. */
        struct bhi_policy_case spent = {
            .retries = 2, .guilty = 2, .victim = 99, .nothing_else_held = true};
        const struct bhi_policy_answer last = ask(every[i], spent);
        BHT_TRUE(last.next != BHI_JOB_WAITING || last.environment_failed);
    }
}

/* The mistake of a job that names its device is not the machine's: other jobs go on. */
TEST(a_device_of_its_own) {
    for (size_t i = 0; i < STATUSES; i++) {
        const struct bhi_policy_case own = {.retries = 2, .names_device = true};
        const struct bhi_policy_answer answer = ask(every[i], own);
        const bool without = every[i] == BH_NO_DEVICE || every[i] == BH_UNSUPPORTED;
        BHT_EQ(answer.next, without ? BHI_JOB_FAILED : ask(every[i], fresh).next);
        BHT_EQ(answer.environment_failed, !without && ask(every[i], fresh).environment_failed);
        BHT_TRUE(!answer.refused_for_good);
    }
}

TEST(a_guilty_one_is_tried_so_often_and_quarantined) {
    for (uint32_t retries = 0; retries < 5; retries++) {
        for (uint32_t guilty = 0; guilty < 8; guilty++) {
            const struct bhi_policy_case given = {
                .retries = retries, .guilty = guilty, .victim = 50};
            BHT_EQ(ask(BH_DEADLINE, given).next,
                   guilty < retries ? BHI_JOB_WAITING : BHI_JOB_QUARANTINED);
        }
    }
}

TEST(a_victim_is_not_blamed_but_ends) {
    struct bhi_policy_case given = {.retries = 0, .guilty = 0};
    for (given.victim = 0; given.victim < 99; given.victim++) {
        const struct bhi_policy_answer answer = ask(BH_WORKER_LOST, given);
        BHT_EQ(answer.next, BHI_JOB_WAITING);
        BHT_TRUE(!answer.guilty);
        BHT_EQ(answer.delay_ns, 0);
    }
    BHT_EQ(ask(BH_WORKER_LOST, given).next, BHI_JOB_FAILED);
}

/* Poison comes from its inputs alone: a bad file is bad again, a lost loader is not its fault. */
TEST(poison_from_an_input) {
    bh_verdict verdict = {.status = BH_LOAD_FAILED, .hops = 1};
    struct bhi_policy_case given = {.verdict = &verdict};
    BHT_EQ(bhi_policy(&given).next, BHI_JOB_FAILED);
    verdict.status = BH_WORKER_SIGNAL;
    BHT_EQ(bhi_policy(&given).next, BHI_JOB_WAITING);
    BHT_TRUE(!(bhi_policy(&given).guilty));
    verdict.hops = 0;
    BHT_EQ(bhi_policy(&given).next, BHI_JOB_QUARANTINED);
}

TEST(what_is_scarce_is_waited_for) {
    static const int scarce[] = {EMFILE, ENFILE, ENOMEM};
    for (size_t i = 0; i < 3; i++) {
        bh_verdict verdict = {.status = i % 2 ? BH_LOAD_FAILED : BH_SYSTEM, .sys_errno = scarce[i]};
        struct bhi_policy_case given = {.verdict = &verdict};
        BHT_TRUE(bhi_policy(&given).waits_for_others);
        BHT_EQ(bhi_policy(&given).next, BHI_JOB_WAITING);
        /* A job may want more memory than there is, but not more descriptors. */
        given.nothing_else_held = true;
        const struct bhi_policy_answer answer = bhi_policy(&given);
        const bool memory = scarce[i] == ENOMEM;
        BHT_EQ(answer.next, memory ? BHI_JOB_FAILED : BHI_JOB_WAITING);
        BHT_EQ(answer.environment_failed, !memory);
        BHT_EQ(answer.delay_ns > 0, !memory);
        BHT_TRUE(!answer.waits_for_others);
        /* Workers that start have some that they give back. Where none has ended well after that,
         * this process will not have more; the machine may. */
        BHT_TRUE(!answer.refused_for_good);
        given.refused_long = true;
        BHT_EQ(bhi_policy(&given).refused_for_good, scarce[i] == EMFILE);
        given.batch_has_served = true;
        BHT_TRUE(!bhi_policy(&given).refused_for_good);
    }
    bh_verdict full = {.status = BH_SYSTEM, .sys_errno = ENOSPC};
    const struct bhi_policy_case given = {.verdict = &full, .nothing_else_held = true};
    BHT_TRUE(bhi_policy(&given).environment_failed); /* somebody may clean up */
    BHT_TRUE(!(bhi_policy(&given).refused_for_good));
    full.sys_errno = EFBIG; /* ulimit -f does not change any more */
    BHT_EQ(bhi_policy(&given).next, BHI_JOB_FAILED);
    BHT_TRUE(!(bhi_policy(&given).environment_failed));
}

TEST(pauses_double_up_to_a_bound) {
    uint64_t before = 0;
    for (uint32_t refusals = 0; refusals < 7; refusals++) {
        struct bhi_policy_case given = {.refusals = refusals};
        const uint64_t delay = ask(BH_UNAVAILABLE, given).delay_ns;
        BHT_TRUE(refusals == 0 || delay == 2 * before);
        before = delay;
    }
    struct bhi_policy_case many = {.refusals = UINT32_MAX};
    BHT_EQ(ask(BH_UNAVAILABLE, many).delay_ns, before);
    BHT_LT(before, UINT64_C(10000000000));
}

TEST(what_the_end_cancelled_is_no_verdict) {
    static const bh_status ours[] = {BH_CANCELLED, BH_CLOSED, BH_CONTEXT_CLOSED};
    for (size_t i = 0; i < 3; i++) {
        struct bhi_policy_case given = {.stopping = true, .interrupted = true};
        BHT_EQ(ask(ours[i], given).next, BHI_JOB_CANCELLED);
        given.interrupted = false; /* the machine gave out: it just waits */
        BHT_EQ(ask(ours[i], given).next, BHI_JOB_WAITING);
    }
    struct bhi_policy_case given = {.stopping = true, .interrupted = true};
    BHT_EQ(ask(BH_OK, given).next, BHI_JOB_DONE);
    BHT_EQ(ask(BH_DEADLINE, given).next, BHI_JOB_QUARANTINED);
}

/* What follows from a verdict, for every status there is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after those four */
#include <cmocka.h>

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
static void what_is_only_suspected_is_not_charged(void **state) {
    (void)state;
    static const bh_status suspicions[] = {
        BH_WORKER_SIGNAL,  BH_DEADLINE,         BH_PROTOCOL,   BH_INVALID_KERNEL,
        BH_COMPILE_FAILED, BH_BINDING_MISMATCH, BH_DEVICE_LOST};
    for (size_t i = 0; i < sizeof suspicions / sizeof *suspicions; i++) {
        const bh_verdict verdict = {.status = suspicions[i], .blame = BH_BLAME_SUSPECTED};
        struct bhi_policy_case given = {.verdict = &verdict, .retries = 0, .guilty = 0};
        struct bhi_policy_answer answer = bhi_policy(&given);
        assert_int_equal(answer.next, BHI_JOB_WAITING);
        assert_true(answer.unproven);
        assert_false(answer.guilty);
        given.victim = BHI_POLICY_VICTIM - 1; /* every job ends */
        answer = bhi_policy(&given);
        assert_int_equal(answer.next, BHI_JOB_FAILED);
    }
    /* A bad file is one, whatever its loader had read before. */
    const bh_verdict load = {
        .status = BH_LOAD_FAILED, .blame = BH_BLAME_SUSPECTED, .hops = 1, .sys_errno = 0};
    const struct bhi_policy_case given = {.verdict = &load, .retries = 2};
    assert_int_equal(bhi_policy(&given).next, BHI_JOB_FAILED);
}

/* A job that has nothing to its name, two retries, others beside it. */
static const struct bhi_policy_case fresh = {.retries = 2};

static void every_status_has_its_answer(void **state) {
    (void)state;
    for (size_t i = 0; i < STATUSES; i++) {
        const struct bhi_policy_answer answer = ask(every[i], fresh);
        switch (every[i]) {
        case BH_OK:
            assert_int_equal(answer.next, BHI_JOB_DONE);
            break;
        case BH_WORKER_SIGNAL:
        case BH_WORKER_EXIT:
        case BH_SECCOMP:
        case BH_DEADLINE:
        case BH_OUT_OF_HOST_MEMORY:
        case BH_OUT_OF_DEVICE_MEMORY:
        case BH_DEVICE_LOST:
        case BH_VULKAN:
        case BH_PROTOCOL:
            assert_int_equal(answer.next, BHI_JOB_WAITING);
            assert_true(answer.guilty);
            break;
        case BH_LOOP_LIMIT: /* the same would come again */
            assert_int_equal(answer.next, BHI_JOB_QUARANTINED);
            assert_true(answer.guilty);
            break;
        case BH_CANCELLED:
        case BH_ZYGOTE_LOST:
        case BH_CONTEXT_CLOSED:
        case BH_WORKER_LOST:
        case BH_STREAM_FAILED:
            assert_int_equal(answer.next, BHI_JOB_WAITING);
            break;
        case BH_NO_MEMORY:
            assert_int_equal(answer.next, BHI_JOB_WAITING);
            assert_true(answer.after_others);
            break;
        case BH_TIMEOUT:
        case BH_SYSTEM:
        case BH_UNAVAILABLE:
        case BH_UNSUPPORTED:
        case BH_NO_DEVICE:
            assert_int_equal(answer.next, BHI_JOB_WAITING);
            assert_true(answer.environ_);
            assert_true(answer.delay_ns > 0);
            break;
        default: /* the job's own words were refused: they will be again */
            assert_int_equal(answer.next, BHI_JOB_FAILED);
            break;
        }
        assert_int_equal(answer.hopeless, every[i] == BH_NO_DEVICE || every[i] == BH_UNSUPPORTED);
        assert_int_equal(answer.guilty, bh_status_classify(every[i]) == BH_CLASS_GUILTY);
        /* With nothing left to try every one of them ends, but for the machine's. */
        struct bhi_policy_case spent = {.retries = 2, .guilty = 2, .victim = 99, .alone = true};
        const struct bhi_policy_answer last = ask(every[i], spent);
        assert_true(last.next != BHI_JOB_WAITING || last.environ_);
    }
}

static void a_guilty_one_is_tried_so_often_and_quarantined(void **state) {
    (void)state;
    for (uint32_t retries = 0; retries < 5; retries++) {
        for (uint32_t guilty = 0; guilty < 8; guilty++) {
            const struct bhi_policy_case given = {
                .retries = retries, .guilty = guilty, .victim = 50};
            assert_int_equal(ask(BH_DEADLINE, given).next,
                             guilty < retries ? BHI_JOB_WAITING : BHI_JOB_QUARANTINED);
        }
    }
}

static void a_victim_is_not_blamed_but_ends(void **state) {
    (void)state;
    struct bhi_policy_case given = {.retries = 0, .guilty = 0};
    for (given.victim = 0; given.victim < 99; given.victim++) {
        const struct bhi_policy_answer answer = ask(BH_WORKER_LOST, given);
        assert_int_equal(answer.next, BHI_JOB_WAITING);
        assert_false(answer.guilty);
        assert_int_equal(answer.delay_ns, 0);
    }
    assert_int_equal(ask(BH_WORKER_LOST, given).next, BHI_JOB_FAILED);
}

/* Poison comes from its inputs alone: a bad file is bad again, a lost loader is not its fault. */
static void poison_from_an_input(void **state) {
    (void)state;
    bh_verdict verdict = {.status = BH_LOAD_FAILED, .hops = 1};
    struct bhi_policy_case given = {.verdict = &verdict};
    assert_int_equal(bhi_policy(&given).next, BHI_JOB_FAILED);
    verdict.status = BH_WORKER_SIGNAL;
    assert_int_equal(bhi_policy(&given).next, BHI_JOB_WAITING);
    assert_false(bhi_policy(&given).guilty);
    verdict.hops = 0;
    assert_int_equal(bhi_policy(&given).next, BHI_JOB_QUARANTINED);
}

static void what_is_scarce_is_waited_for(void **state) {
    (void)state;
    static const int scarce[] = {EMFILE, ENFILE, ENOMEM};
    for (size_t i = 0; i < 3; i++) {
        bh_verdict verdict = {.status = i % 2 ? BH_LOAD_FAILED : BH_SYSTEM, .sys_errno = scarce[i]};
        struct bhi_policy_case given = {.verdict = &verdict};
        assert_true(bhi_policy(&given).after_others);
        assert_int_equal(bhi_policy(&given).next, BHI_JOB_WAITING);
        /* A job may want more memory than there is, but not more descriptors. */
        given.alone = true;
        const struct bhi_policy_answer answer = bhi_policy(&given);
        const bool memory = scarce[i] == ENOMEM;
        assert_int_equal(answer.next, memory ? BHI_JOB_FAILED : BHI_JOB_WAITING);
        assert_int_equal(answer.environ_, !memory);
        assert_int_equal(answer.delay_ns > 0, !memory);
        assert_false(answer.after_others);
    }
    bh_verdict full = {.status = BH_SYSTEM, .sys_errno = ENOSPC};
    const struct bhi_policy_case given = {.verdict = &full, .alone = true};
    assert_true(bhi_policy(&given).environ_); /* somebody may clean up */
    assert_false(bhi_policy(&given).hopeless);
    full.sys_errno = EFBIG; /* ulimit -f does not change any more */
    assert_int_equal(bhi_policy(&given).next, BHI_JOB_FAILED);
    assert_false(bhi_policy(&given).environ_);
}

static void pauses_double_up_to_a_bound(void **state) {
    (void)state;
    uint64_t before = 0;
    for (uint32_t refusals = 0; refusals < 7; refusals++) {
        struct bhi_policy_case given = {.refusals = refusals};
        const uint64_t delay = ask(BH_UNAVAILABLE, given).delay_ns;
        assert_true(refusals == 0 || delay == 2 * before);
        before = delay;
    }
    struct bhi_policy_case many = {.refusals = UINT32_MAX};
    assert_int_equal(ask(BH_UNAVAILABLE, many).delay_ns, before);
    assert_true(before < UINT64_C(10000000000));
}

static void what_the_end_cancelled_is_no_verdict(void **state) {
    (void)state;
    static const bh_status ours[] = {BH_CANCELLED, BH_CLOSED, BH_CONTEXT_CLOSED};
    for (size_t i = 0; i < 3; i++) {
        struct bhi_policy_case given = {.stopping = true, .interrupted = true};
        assert_int_equal(ask(ours[i], given).next, BHI_JOB_CANCELLED);
        given.interrupted = false; /* the machine gave out: it just waits */
        assert_int_equal(ask(ours[i], given).next, BHI_JOB_WAITING);
    }
    struct bhi_policy_case given = {.stopping = true, .interrupted = true};
    assert_int_equal(ask(BH_OK, given).next, BHI_JOB_DONE);
    assert_int_equal(ask(BH_DEADLINE, given).next, BHI_JOB_QUARANTINED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_answer),
        cmocka_unit_test(what_is_only_suspected_is_not_charged),
        cmocka_unit_test(a_guilty_one_is_tried_so_often_and_quarantined),
        cmocka_unit_test(a_victim_is_not_blamed_but_ends),
        cmocka_unit_test(poison_from_an_input),
        cmocka_unit_test(what_is_scarce_is_waited_for),
        cmocka_unit_test(pauses_double_up_to_a_bound),
        cmocka_unit_test(what_the_end_cancelled_is_no_verdict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

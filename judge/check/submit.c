#include "judge/check/submit.h"

#include "tool/clock.h"
#include "tool/interrupt.h"
#include "tool/wait.h"

/* Waits for the end of a submission; a signal cancels it. Fills in |outcome| if it is poisoned. */
static bool await(bh_event *event, bh_verdict *verdict, struct bhi_judge_outcome *outcome) {
    const bh_status status = bhi_wait_event(event, verdict, NULL, NULL);
    if (status == BH_TIMEOUT || bhi_interrupt_signal()) {
        return bhi_judge_outcome_fail(outcome, BH_CANCELLED, "cancelled");
    }
    if (status != BH_OK) {
        return bhi_judge_outcome_fail(outcome, status, "%s", bh_status_text(status));
    }
    if (verdict->status != BH_OK) {
        bhi_judge_outcome_fail(outcome, verdict->status, "%s", verdict->message);
        outcome->blame = verdict->blame;
        bhi_judge_outcome_why(outcome, verdict->reason, verdict->subject, verdict->subject_name);
    }
    return verdict->status == BH_OK;
}

bool bhi_court_submit_within(bh_stream *stream, const bh_command *commands, uint32_t count,
                             uint64_t deadline_ns, struct bhi_clocked *out,
                             struct bhi_judge_outcome *outcome) {
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = commands,
                                 .command_count = count,
                                 .deadline_ns = deadline_ns,
                                 .flags = out ? BH_SUBMIT_TIMED : 0};
    bh_event *event = NULL;
    bh_verdict verdict = {.struct_size = sizeof verdict};
    bh_detail detail = {0};
    const uint64_t began = bhi_clock_ns();
    const bh_status status = bh_submit(stream, &info, &event, &detail);
    if (status != BH_OK) {
        return bhi_judge_outcome_take(outcome, status, &detail);
    }
    const bool good = await(event, &verdict, outcome);
    if (good && out) {
        out->host_ns = bhi_clock_ns() - began;
        out->device_ns = verdict.device_ns;
    }
    bh_event_release(event);
    return good;
}

bool bhi_court_submit(bh_stream *stream, const bh_command *commands, uint32_t count,
                      struct bhi_clocked *out, struct bhi_judge_outcome *outcome) {
    return bhi_court_submit_within(stream, commands, count, 0, out, outcome);
}

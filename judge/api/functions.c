/* Functions of the program that a judge calls: its reference, and its check. */
#include "base/detail.h"
#include "judge/api/judge.h"

static bh_status refuse(bh_detail *detail, const char *option, const char *why) {
    return BHI_FAIL(detail, "bh_judge_create", BH_REASON_ARGUMENT, option, .text = why);
}

/* Has an output that a check is to compare a check, and is there one for it? */
static bh_status check_checks(const bh_judge *judge, bh_detail *detail) {
    const char *output = NULL;
    for (size_t i = 0; i < judge->task.array_count; i++) {
        output = judge->task.arrays[i].tolerance.by == BHI_BY_CHECK ? judge->task.arrays[i].place
                                                                    : output;
    }
    if (output && !judge->court.check) {
        return BHI_FAIL(detail, "", BH_REASON_TASK, judge->place, .status = BH_INVALID_ARGUMENT,
                        .text = BHI_SAY("%.300s: output \"%.60s\" is compared by \"check\", which "
                                        "is a function of a program: there is none",
                                        judge->place, output));
    }
    return output || !judge->court.check
               ? BH_OK
               : refuse(detail, "options.check", "needs an output with \"compare\": \"check\"");
}

/* Is there one reference, and one that times can be compared with? */
static bh_status check_reference(const bh_judge *judge, bh_detail *detail) {
    const enum bhi_task_reference kind = judge->task.reference;
    if (kind == BHI_REFERENCE_CALLBACK && !judge->court.callback) {
        return BHI_FAIL(detail, "", BH_REASON_TASK, judge->place, .status = BH_INVALID_ARGUMENT,
                        .text = BHI_SAY("%.300s: there is no \"reference\": nothing says which "
                                        "result is right",
                                        judge->place));
    }
    if (kind != BHI_REFERENCE_CALLBACK && judge->court.callback) {
        return refuse(detail, "options.reference", "excludes the \"reference\" that the task has");
    }
    const bool takes_time = kind == BHI_REFERENCE_KERNEL || kind == BHI_REFERENCE_EVAL;
    return judge->options.timed && !judge->options.baseline && !takes_time
               ? refuse(detail, "options.timed",
                        "needs a reference that takes time: a kernel or an expression, not files "
                        "or a callback; or a baseline")
               : BH_OK;
}

bh_status bhi_judge_functions_take(bh_judge *judge, const bh_judge_options *options,
                                   bh_detail *detail) {
    judge->court.callback = options->reference;
    judge->court.callback_user = options->reference_user;
    judge->court.check = options->check;
    judge->court.check_user = options->check_user;
    BHI_TRY(check_checks(judge, detail));
    return check_reference(judge, detail);
}

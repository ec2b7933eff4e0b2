/* bulkhead judge --diff: what has changed between two runs. */
#include <string.h>

#include "cli/judge_diff.h"
#include "judge/diff/diff.h"
#include "tool/complain.h"
#include "tool/ending.h"
#include "tool/exit_status.h"

static int refused(bh_status status, const struct bhi_complaint *complaint) {
    bhi_complain("judge", "%s", complaint->text);
    bhi_ending_blame(status);
    return BHI_EXIT_USAGE;
}

static bool check_options(const struct bhi_args *args, struct bhi_complaint *complaint) {
    for (size_t i = 0; i < args->item_count; i++) {
        const enum bhi_option_id option = args->items[i].option;
        if (option != BHI_JUDGE_DIFF && option != BHI_JUDGE_JSON) {
            return bhi_refuse(complaint,
                              "--diff compares two files and runs nothing: it excludes --%s",
                              bhi_options[option].name);
        }
    }
    return args->operand_count == 2 ||
           bhi_refuse(complaint, "--diff compares two files, what --json has printed before and "
                                 "after; see bulkhead judge --help");
}

static int compare(const struct bhi_args *args, const struct bhi_past_run *before,
                   const struct bhi_past_run *after) {
    const char *const *paths = args->operands;
    struct bhi_complaint complaint;
    struct bhi_judge_diff diff;
    if (strcmp(before->task, after->task) != 0) {
        bhi_refuse(&complaint, "%.200s is of the task '%.100s', %.200s of '%.100s'", paths[0],
                   before->task, paths[1], after->task);
        return refused(BH_INVALID_ARGUMENT, &complaint);
    }
    if (!bhi_judge_diff_make(before, after, &diff)) {
        bhi_complain("judge", "out of memory");
        bhi_ending_blame(BH_NO_MEMORY);
        return BHI_EXIT_ENVIRON;
    }
    if (bhi_args_has(args, BHI_JUDGE_JSON)) {
        bhi_judge_diff_print_json(&diff, paths[0], paths[1]);
    } else {
        bhi_judge_diff_print(&diff, paths[0], paths[1]);
    }
    const bool worse = diff.of[BHI_CHANGE_WORSE] || diff.of[BHI_CHANGE_SLOWER];
    bhi_judge_diff_free(&diff);
    return worse ? BHI_EXIT_POISONED : BHI_EXIT_READY;
}

int bhi_judge_diff_main(const struct bhi_args *args) {
    struct bhi_past_run runs[2] = {{0}};
    struct bhi_complaint complaint;
    int error = 0, exit_status;
    if (!check_options(args, &complaint)) {
        return refused(BH_INVALID_ARGUMENT, &complaint);
    }
    if (bhi_past_run_read(args->operands[0], &runs[0], &error, &complaint) &&
        bhi_past_run_read(args->operands[1], &runs[1], &error, &complaint)) {
        exit_status = compare(args, &runs[0], &runs[1]);
    } else {
        exit_status = refused(error ? BH_LOAD_FAILED : BH_INVALID_ARGUMENT, &complaint);
    }
    bhi_past_run_free(&runs[0]);
    bhi_past_run_free(&runs[1]);
    return exit_status;
}

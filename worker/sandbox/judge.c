#include "worker/sandbox/judge.h"
#include "worker/sandbox/seccomp.h"

#include <signal.h>
#include <stdbool.h>

static bool holds(const struct scmp_arg_cmp *compare, uint64_t value) {
    switch (compare->op) {
    case SCMP_CMP_MASKED_EQ:
        return (value & compare->datum_a) == compare->datum_b;
    case SCMP_CMP_NE:
        return value != compare->datum_a;
    case SCMP_CMP_LE:
        return value <= compare->datum_a;
    default: /* rules.h has no other */
        return false;
    }
}

static bool matches(const struct bhi_seccomp_rule *rule, int number, const uint64_t args[6]) {
    bool all = rule->syscall == number;
    for (unsigned i = 0; all && i < rule->arg_count; i++) {
        all = holds(&rule->args[i], args[rule->args[i].arg]);
    }
    return all;
}

/* |best| is the answer of the earlier tables of the same filter. Within one filter, a rule that
 * allows wins. */
static int look(const struct bhi_seccomp_rule *rules, int number, const uint64_t args[6],
                int best) {
    for (; rules->syscall != BHI_RULES_END && best != 0; rules++) {
        if (matches(rules, number, args)) {
            best = rules->error;
        }
    }
    return best;
}

static int judge_one(const struct bhi_judge *judge, enum bhi_filter filter, int number,
                     const uint64_t args[6]) {
    const struct bhi_driver_info *info = judge->driver->info;
    const bool start = filter == BHI_FILTER_START;
    int best = look(bhi_rules_both, number, args, BHI_JUDGE_DIES);
    best = look(start ? bhi_rules_start : bhi_rules_steady, number, args, best);
    best = look(start ? info->start_rules : info->steady_rules, number, args, best);
    if (info->compiles) {
        best = look(bhi_rules_compile, number, args, best);
    }
    if (number == SCMP_SYS(tgkill) && (int)args[0] == judge->pid && (int)args[2] == SIGABRT) {
        best = 0;
    }
    const uint32_t fd = (uint32_t)args[0];
    if (!start && (number == SCMP_SYS(read) || number == SCMP_SYS(write)) &&
        fd < BHI_JUDGE_DESCRIPTORS && (judge->open[fd / 8] >> fd % 8 & 1) != 0) {
        best = 0;
    }
    return best;
}

int bhi_sandbox_judge(const struct bhi_judge *judge, enum bhi_filter filter, int number,
                      const uint64_t args[6]) {
    const int start = judge_one(judge, BHI_FILTER_START, number, args);
    if (filter == BHI_FILTER_START || start == BHI_JUDGE_DIES) {
        return start;
    }
    /* If two filters disagree, the kernel takes the harder answer: death before an errno. */
    const int steady = judge_one(judge, BHI_FILTER_STEADY, number, args);
    return steady == BHI_JUDGE_DIES || steady > 0 ? steady : start;
}

/* Builds and loads the filters. */
#include "worker/sandbox/seccomp.h"
#include "worker/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static int add(scmp_filter_ctx context, const struct bhi_seccomp_rule *rule) {
    return seccomp_rule_add_array(
        context, rule->error == 0 ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO((uint16_t)rule->error),
        rule->syscall, rule->arg_count, rule->args);
}

static int add_all(scmp_filter_ctx context, const struct bhi_seccomp_rule *rules) {
    int r = 0;
    for (; rules->syscall != BHI_RULES_END && r == 0; rules++) {
        r = add(context, rules);
    }
    return r;
}

/* A worker may send signals only to itself, and only those that end it: abort() must show as
 * SIGABRT, not as a forbidden call. */
static int add_signals(scmp_filter_ctx context) {
    const uint64_t self = (uint64_t)getpid();
    const struct bhi_seccomp_rule rules[] = {
        BHI_ALLOW2(tgkill, BHI_INT(0, self), BHI_INT(2, SIGABRT)),
        BHI_END_OF_RULES,
    };
    return add_all(context, rules);
}

/* Under filter B only descriptors that are open now can be read and written: the doorbell, ZeroMQ's
 * and the driver's, but no memfds. Descriptors that come later are only mapped or imported. */
static int add_descriptors(scmp_filter_ctx context) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return -errno;
    }
    int r = 0;
    for (int fd = 0; fd < (int)limit.rlim_cur && r == 0; fd++) {
        if (fcntl(fd, F_GETFD) < 0 || fcntl(fd, F_GET_SEALS) >= 0) {
            continue;
        }
        const struct bhi_seccomp_rule rules[] = {
            BHI_ALLOW1(read, BHI_INT(0, (uint64_t)fd)),
            BHI_ALLOW1(write, BHI_INT(0, (uint64_t)fd)),
            BHI_END_OF_RULES,
        };
        r = add_all(context, rules);
    }
    return r;
}

static int fill(scmp_filter_ctx context, enum bhi_filter filter, const struct bhi_driver *driver) {
    const bool start = filter == BHI_FILTER_START;
    int r;
    if ((r = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS)) != 0 ||
        (r = seccomp_attr_set(context, SCMP_FLTATR_CTL_NNP, 0)) != 0 || /* it is set already */
        (r = seccomp_attr_set(context, SCMP_FLTATR_CTL_TSYNC, 1)) != 0 ||
        (r = seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2)) != 0) {
        return r;
    }
    if ((r = add_all(context, bhi_rules_both)) != 0 ||
        (r = add_all(context, start ? bhi_rules_start : bhi_rules_steady)) != 0 ||
        (driver->info->compiles && (r = add_all(context, bhi_rules_compile)) != 0) ||
        (r = add_all(context, start ? driver->info->start_rules : driver->info->steady_rules)) !=
            0 ||
        (r = add_signals(context)) != 0) {
        return r;
    }
    return start ? 0 : add_descriptors(context);
}

/* A lack of memory may have passed when the next worker starts. */
static bh_reason reason_of(int error) {
    return error == -ENOMEM ? BH_REASON_SYSTEM_STEP : BH_REASON_STEP;
}

int bhi_sandbox_seccomp(enum bhi_filter filter, const struct bhi_driver *driver,
                        struct bhi_error *failure) {
    const char *name = filter == BHI_FILTER_START ? "A" : "B";
    scmp_filter_ctx context = seccomp_init(SCMP_ACT_KILL_PROCESS);
    if (!context) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "create a filter", .text = name,
                         .sys_errno = ENOMEM);
    }
    int r = fill(context, filter, driver);
    if (r != 0) {
        r = BHI_ERROR(failure, reason_of(r), "build a filter", .text = name, .sys_errno = -r);
    } else if ((r = seccomp_load(context)) != 0) {
        r = BHI_ERROR(failure, reason_of(r), "load a filter on all threads", .text = name,
                      .sys_errno = -r);
    }
    seccomp_release(context);
    return r;
}

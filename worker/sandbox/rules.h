/* Seccomp rules as tables. A rule allows a system call (or answers it with an errno) if all of its
 * comparisons hold. A call that no rule matches kills the process. */
#ifndef BHI_WORKER_SANDBOX_RULES_H
#define BHI_WORKER_SANDBOX_RULES_H

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdint.h>

#define BHI_RULE_ARGS 3

struct bhi_seccomp_rule {
    int syscall; /* BHI_RULES_END: end of the table */
    int error;   /* 0: allow; otherwise the errno it is answered with */
    unsigned arg_count;
    struct scmp_arg_cmp args[BHI_RULE_ARGS];
};

#define BHI_RULES_END (-10000)

/* The kernel takes an int argument from the low half of its register, so only that is compared. */
#define BHI_INT(arg, value)        {arg, SCMP_CMP_MASKED_EQ, 0xffffffffu, value}
#define BHI_BITS(arg, mask, value) {arg, SCMP_CMP_MASKED_EQ, (uint64_t)(mask), value}
#define BHI_MOST(arg, value)       {arg, SCMP_CMP_LE, value, 0}
#define BHI_NOT(arg, value)        {arg, SCMP_CMP_NE, value, 0}

#define BHI_RULE(name, answer, count, ...)                                                         \
    {                                                                                              \
        .syscall = SCMP_SYS(name), .error = answer, .arg_count = count, .args = { __VA_ARGS__ }    \
    }
#define BHI_ALLOW(name)             BHI_RULE(name, 0, 0, {0})
#define BHI_ALLOW1(name, a)         BHI_RULE(name, 0, 1, a)
#define BHI_ALLOW2(name, a, b)      BHI_RULE(name, 0, 2, a, b)
#define BHI_ALLOW3(name, a, b, c)   BHI_RULE(name, 0, 3, a, b, c)
#define BHI_ANSWER(name, error)     BHI_RULE(name, error, 0, {0})
#define BHI_ANSWER1(name, error, a) BHI_RULE(name, error, 1, a)
#define BHI_END_OF_RULES            {.syscall = BHI_RULES_END}

/* Look-ups of files find nothing. glibc opens /proc/sys/vm/overcommit_memory when it trims the
 * heap; killing the worker for that would fail most long runs. (The rules of openat are in the
 * drivers' tables.) */
#define BHI_ANSWER_LOOKUPS                                                                         \
    BHI_ANSWER(access, ENOENT), BHI_ANSWER(faccessat, ENOENT), BHI_ANSWER(faccessat2, ENOENT),     \
        BHI_ANSWER(readlink, ENOENT), BHI_ANSWER(stat, ENOENT), BHI_ANSWER(statfs, ENOENT),        \
        BHI_ANSWER(lseek, ESPIPE), BHI_ANSWER1(newfstatat, ENOENT, BHI_NOT(3, AT_EMPTY_PATH))

#endif

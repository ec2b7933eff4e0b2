/* Probes of the filters. Each forbidden call is tried by a victim of its own, which must be killed
 * for it; an allowed call must work. Pointers are invalid on purpose: if a filter allowed the call,
 * it would fail with EFAULT. */
#include "worker/probe/victim.h"
#include "worker/sandbox/judge.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct forbidden {
    const char *name;
    long number;
    long second; /* its second argument; 0: an invalid one */
};

/* Numbers for what is not in x86-64's table: another entry to the kernel, and another table. */
#define INT80  (-1)
#define X32    (-2)
#define THREAD (-3)

static const struct forbidden of_start[] = {
    {"socket", SYS_socket, 0},
    {"connect", SYS_connect, 0},
    {"execve", SYS_execve, 0},
    {"fork", SYS_fork, 0},
    {"kill", SYS_kill, 0},
    {"ptrace", SYS_ptrace, 0},
    {"mount", SYS_mount, 0},
    {"unshare", SYS_unshare, 0},
    {"setns", SYS_setns, 0},
    {"bpf", SYS_bpf, 0},
    {"io_uring_setup", SYS_io_uring_setup, 0},
    {"userfaultfd", SYS_userfaultfd, 0},
    {"perf_event_open", SYS_perf_event_open, 0},
    {"keyctl", SYS_keyctl, 0},
    {"process_vm_readv", SYS_process_vm_readv, 0},
#ifdef __x86_64__
    {"int 0x80", INT80, 0},
    {"x32", X32, 0},
#endif
};

static const struct forbidden of_steady[] = {
    {"rt_sigaction", SYS_rt_sigaction,
     0}, /* filter A allows the first two; filter B must forbid them */
    {"seccomp", SYS_seccomp, 0},
    {"socket", SYS_socket, 0},
    {"execve", SYS_execve, 0},
    {"clone", SYS_clone, 0},
    {"kill", SYS_kill, 0},
    {"ptrace", SYS_ptrace, 0},
    /* Calls that filter A allows for some drivers. */
    {"memfd_create", SYS_memfd_create, MFD_CLOEXEC | MFD_ALLOW_SEALING},
    {"ftruncate", SYS_ftruncate, 4096},
    {"fallocate", SYS_fallocate, 0},
    {"sendmsg", SYS_sendmsg, 0},
    {"ioctl FIONBIO", SYS_ioctl, 0x5421}, /* a driver's own requests have other numbers */
    {"ioctl SIOCGIFNAME", SYS_ioctl, 0x8910},
    {"io_uring_setup", SYS_io_uring_setup, 0},
    {"pidfd_getfd", SYS_pidfd_getfd, 0},
#ifdef __x86_64__
    {"int 0x80", INT80, 0},
    {"x32", X32, 0},
#endif
    {"seccomp in an older thread", THREAD, 0},
};

static void *call_in_thread(void *go) {
    pthread_mutex_lock(go);
    syscall(SYS_seccomp, -1L, -1L, -1L);
    return NULL;
}

/* Filter B must also hold for a thread that is older than it. The call is one that filter A
 * allows. */
static void try_thread(struct bhi_victim *victim) {
    struct bhi_error failure;
    pthread_mutex_t go = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    pthread_mutex_lock(&go);
    if (pthread_create(&thread, NULL, call_in_thread, &go) != 0) {
        bhi_victim_says(victim, false, "cannot create a thread");
        return;
    }
    if (bhi_sandbox_filter(&victim->sandbox, BHI_FILTER_STEADY, &failure) != 0) {
        bhi_victim_says(victim, false, "%.200s", bhi_error_line(&failure));
        return;
    }
    pthread_mutex_unlock(&go);
    pthread_join(thread, NULL);
}

static void try_call(struct bhi_victim *victim) {
    const struct forbidden *call = (const struct forbidden *)victim->argument;
    const long bad = -1;
    long r = 0;
    switch (call->number) {
#ifdef __x86_64__
    case INT80:
        __asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory"); /* the 32-bit getpid */
        break;
    case X32:
        r = syscall(0x40000000 | SYS_getpid);
        break;
#endif
    default:
        r = syscall(call->number, bad, call->second != 0 ? call->second : bad, bad, bad, bad, bad);
    }
    const int error = errno;
    struct bhi_judge judge = {.driver = victim->context->driver, .pid = (int)getpid()};
    const uint64_t args[6] = {UINT64_MAX, call->second != 0 ? (uint64_t)call->second : UINT64_MAX,
                              UINT64_MAX, UINT64_MAX,
                              UINT64_MAX, UINT64_MAX};
    /* A driver's table may answer the call with an error, which also forbids it. */
    const bool answered =
        r == -1 && call->number > 0 &&
        bhi_sandbox_judge(&judge, BHI_FILTER_STEADY, (int)call->number, args) == error;
    bhi_victim_says(victim, answered, "came back with %ld", r);
}

static void try_allowed(struct bhi_victim *victim) {
    long pid = syscall(SYS_getpid);
    bhi_victim_says(victim, pid > 0, "getpid() works");
}

static enum bhi_probe_result try_all(const struct bhi_probe_context *context, enum bhi_stage stage,
                                     const struct forbidden *calls, size_t count, char *text,
                                     size_t size) {
    const struct bhi_victim_plan allowed = {.stage = stage, .fn = try_allowed};
    if (bhi_victim_judge(context, &allowed, text, size) != BHI_PROBE_HOLDS) {
        return BHI_PROBE_BROKEN;
    }
    char names[BHI_PROBE_TEXT] = "";
    for (size_t i = 0; i < count; i++) {
        const bool thread = calls[i].number == THREAD;
        const struct bhi_victim_plan plan = {.stage = thread ? BHI_STAGE_START : stage,
                                             .fn = thread ? try_thread : try_call,
                                             .argument = (uintptr_t)&calls[i]};
        struct bhi_victim_outcome outcome;
        bhi_victim_run(context, &plan, &outcome);
        /* On a kernel without IA32 emulation int 0x80 causes a general protection fault. */
        const bool died =
            outcome.signal == SIGSYS || (calls[i].number == INT80 && outcome.signal == SIGSEGV);
        const bool answered = stage == BHI_STAGE_STEADY && outcome.done && outcome.holds;
        if (!outcome.entered || outcome.timed_out || (!died && !answered)) {
            snprintf(text, size, "%s did not end in SIGSYS: %s (signal %d)", calls[i].name,
                     outcome.timed_out ? "it did not end" : outcome.text, outcome.signal);
            return BHI_PROBE_BROKEN;
        }
        size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s%s%s", i == 0 ? "" : ", ", calls[i].name,
                 answered ? " (answered)" : "");
    }
    snprintf(text, size, "SIGSYS for each of %.220s", names);
    return BHI_PROBE_HOLDS;
}

enum bhi_probe_result bhi_probe_seccomp_start(const struct bhi_probe_context *context, char *text,
                                              size_t size) {
    return try_all(context, BHI_STAGE_START, of_start, sizeof of_start / sizeof of_start[0], text,
                   size);
}

enum bhi_probe_result bhi_probe_seccomp_steady(const struct bhi_probe_context *context, char *text,
                                               size_t size) {
    return try_all(context, BHI_STAGE_STEADY, of_steady, sizeof of_steady / sizeof of_steady[0],
                   text, size);
}

#include "cli/chaos_host.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos/host/host.h"
#include "tool/clock.h"
#include "tool/complain.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/values.h"

static const uint64_t default_duration_ns = 60000000000u, most_faults = 100000000;
static const double default_rate = 5;
enum { NOT_FOUND = 127, NOT_EXECUTABLE = 126, SIGNALLED = 128 }; /* as of a shell */

struct attack {
    uint64_t seed, duration_ns, count, pid;
    double rate;
    uint32_t fault_set, target_set;
    const char *schedule, *log;
    char *const *command; /* NULL: attached */
    bool seeded;
};

bool bhi_chaos_host_asked(const struct bhi_args *args) {
    return args->operand_count || bhi_args_has(args, BHI_CHAOS_ATTACH) ||
           bhi_args_has(args, BHI_CHAOS_RUN) || bhi_args_has(args, BHI_CHAOS_TARGETS) ||
           bhi_args_has(args, BHI_CHAOS_SCHEDULE) || bhi_args_has(args, BHI_CHAOS_LOG);
}

/* -- arguments ---------------------------------------------------------------------------------- */

static bool parse_faults(const char *value, uint32_t *out_set, struct bhi_complaint *complaint) {
    if (!bhi_fault_parse(value, out_set, complaint)) {
        return false;
    }
    for (uint32_t kind = 0; kind < BHI_FAULT_KINDS; kind++) {
        if (*out_set & ~BHI_HOST_FAULTS & 1u << kind) {
            return bhi_refuse(complaint,
                              "%s cannot be injected into another host: use kill, segv, stop, "
                              "slow, garbage, close",
                              bhi_fault_names[kind]);
        }
    }
    return true;
}

static bool parse_item(void *user, const struct bhi_arg *item, struct bhi_complaint *complaint) {
    struct attack *attack = user;
    const char *value = item->value;
    switch (item->option) {
    case BHI_CHAOS_ATTACH:
        return bhi_parse_count(value, 1, INT32_MAX, &attack->pid, complaint);
    case BHI_CHAOS_SEED:
        attack->seeded = true;
        return bhi_parse_count(value, 0, UINT64_MAX, &attack->seed, complaint);
    case BHI_CHAOS_DURATION:
        return bhi_parse_finite_duration(value, &attack->duration_ns, complaint);
    case BHI_CHAOS_COUNT:
        return bhi_parse_count(value, 1, most_faults, &attack->count, complaint);
    case BHI_CHAOS_FAULTS:
        return parse_faults(value, &attack->fault_set, complaint);
    case BHI_CHAOS_TARGETS:
        return bhi_target_parse(value, &attack->target_set, complaint);
    case BHI_CHAOS_RATE:
        return bhi_parse_rate(value, &attack->rate, complaint);
    case BHI_CHAOS_SCHEDULE:
        return bhi_parse_text(value, "file name", &attack->schedule, complaint);
    case BHI_CHAOS_LOG:
        return bhi_parse_text(value, "file name", &attack->log, complaint);
    case BHI_CHAOS_RUN:
        return true;
    default:
        return bhi_refuse(complaint, "this is no option of --attach and --run");
    }
}

static bool parse(struct attack *attack, const struct bhi_args *args,
                  struct bhi_complaint *complaint) {
    const bool attach = bhi_args_has(args, BHI_CHAOS_ATTACH),
               run = bhi_args_has(args, BHI_CHAOS_RUN);
    static const enum bhi_option_id of_a_seed[] = {BHI_CHAOS_SEED, BHI_CHAOS_FAULTS,
                                                   BHI_CHAOS_TARGETS, BHI_CHAOS_RATE};
    *attack = (struct attack){.rate = default_rate,
                              .fault_set = BHI_HOST_FAULTS_DEFAULT,
                              .target_set = BHI_HOST_TARGETS_DEFAULT,
                              .duration_ns = attach ? default_duration_ns : UINT64_MAX};
    if (attach == run) {
        return bhi_refuse(complaint, attach ? "--attach and --run exclude each other"
                                            : "--attach PID or --run -- COMMAND says whose "
                                              "processes are to be hit");
    }
    if (run != (args->operand_count > 0)) {
        return bhi_refuse(complaint, run ? "--run takes a command: --run -- COMMAND [ARGUMENT]..."
                                         : "only --run takes a command");
    }
    if (!bhi_args_each(args, parse_item, attack, complaint)) {
        return false;
    }
    for (size_t i = 0; attack->schedule && i < sizeof of_a_seed / sizeof of_a_seed[0]; i++) {
        if (bhi_args_has(args, of_a_seed[i])) {
            return bhi_refuse(complaint, "--schedule and --%s exclude each other",
                              bhi_options[of_a_seed[i]].name);
        }
    }
    if (attack->schedule && attach && !bhi_args_has(args, BHI_CHAOS_DURATION)) {
        attack->duration_ns = UINT64_MAX; /* it ends with its last fault */
    }
    attack->command = run ? (char *const *)(uintptr_t)args->operands : NULL;
    if (!attack->seeded && getrandom(&attack->seed, 4, 0) != 4) {
        attack->seed = bhi_clock_ns() & UINT32_MAX; /* short enough to type */
    }
    return true;
}

/* -- the host ----------------------------------------------------------------------------------- */

/* Runs the command, which ends with this process. Its standard streams are ours. */
static _Noreturn void become(char *const *command, pid_t parent) {
    static const int ours[] = {SIGINT, SIGTERM, SIGPIPE};
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        (void)signal(ours[i], SIG_DFL);
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        _exit(SIGNALLED + SIGTERM); /* it has ended meanwhile */
    }
    (void)execvp(command[0], command);
    const int error = errno;
    bhi_complain("chaos", "%s: %s", command[0], strerror(error));
    _exit(error == ENOENT ? NOT_FOUND : NOT_EXECUTABLE);
}

static bool find_host(const struct attack *attack, struct bhi_host_run *run,
                      struct bhi_complaint *complaint) {
    const pid_t self = getpid();
    run->root = (pid_t)attack->pid;
    if (attack->command && (run->root = fork()) == 0) {
        become(attack->command, self);
    }
    run->pidfd = run->root > 0 ? pidfd_open(run->root, 0) : -1;
    if (run->pidfd < 0) {
        return bhi_refuse(complaint, "process %d: %s", (int)run->root, strerror(errno));
    }
    return true;
}

/* Waits for the command, to which a signal to this process alone is passed on. Returns its exit status. */
static int await_command(pid_t pid) {
    int status;
    bool passed = false;
    for (;;) {
        if (bhi_interrupt_signal() && !passed) {
            passed = true;
            (void)kill(pid, bhi_interrupt_signal()); /* it is our child, and not reaped */
        }
        const pid_t ended = waitpid(pid, &status, 0);
        if (ended == pid) {
            break;
        }
        if (ended < 0 && errno != EINTR) {
            return BHI_EXIT_ENVIRON;
        }
    }
    return WIFSIGNALED(status) ? SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

/* -- the run ------------------------------------------------------------------------------------ */

static int attack_host(const struct attack *attack, struct bhi_host_run *run) {
    struct bhi_complaint complaint;
    if (!find_host(attack, run, &complaint)) {
        return bhi_complain_environ("chaos", "%s", complaint.text);
    }
    const bool logged = bhi_host_run(run);
    if (!logged) {
        bhi_complain("chaos", "the log cannot be written: %s", strerror(errno));
    }
    bhi_guard_end(run->guard); /* what is still stopped goes on */
    const int exit_status = attack->command ? await_command(run->root)
                            : logged        ? bhi_interrupt_or(BHI_EXIT_READY)
                                            : BHI_EXIT_ENVIRON;
    close(run->pidfd);
    char seed[48] = "";
    if (!attack->schedule) {
        snprintf(seed, sizeof seed, "; seed %llu", (unsigned long long)attack->seed);
    }
    bhi_complain("chaos", "%llu faults, %llu more hit nothing%s", (unsigned long long)run->hits,
                 (unsigned long long)run->misses, seed);
    return exit_status;
}

static FILE *open_log(const struct attack *attack) {
    return attack->log ? fopen(attack->log, "we") : attack->command ? stderr : stdout;
}

int bhi_chaos_host_main(const struct bhi_args *args) {
    struct bhi_complaint complaint;
    struct attack attack;
    struct bhi_host_plan plan;
    struct bhi_stop_guard guard;
    if (!parse(&attack, args, &complaint)) {
        return bhi_complain_usage("chaos", "%s; see bulkhead chaos --help", complaint.text);
    }
    if (!attack.schedule) {
        bhi_plan_draw(&plan, attack.seed, attack.fault_set, attack.target_set, attack.rate);
    } else if (!bhi_plan_load(&plan, attack.schedule, &complaint)) {
        bhi_plan_free(&plan);
        return bhi_complain_usage("chaos", "--schedule %s: %s", attack.schedule, complaint.text);
    }
    FILE *log = open_log(&attack);
    int exit_status;
    if (!log) {
        exit_status = bhi_complain_usage("chaos", "--log %s: %s", attack.log, strerror(errno));
    } else if (!bhi_guard_start(&guard, &complaint)) {
        exit_status = bhi_complain_environ("chaos", "%s", complaint.text);
    } else {
        struct bhi_host_run run = {.duration_ns = attack.duration_ns,
                                   .count = attack.count,
                                   .plan = &plan,
                                   .guard = &guard,
                                   .log = log};
        exit_status = attack_host(&attack, &run);
        bhi_guard_end(&guard);
    }
    if (log && attack.log) {
        (void)fclose(log);
    }
    bhi_plan_free(&plan);
    return exit_status;
}

/* The parts of a run against a host: its plan, its guard, and whom it takes for a target. */
#include "chaos/host/guard.h"
#include "chaos/host/plan.h"
#include "harness.h"
#include "tool/orphan.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* -- the plan ----------------------------------------------------------------------------------- */

enum { MANY = 4000 };

static const uint32_t some_faults = 1u << BHI_FAULT_KILL | 1u << BHI_FAULT_SLOW;
static const uint32_t some_targets = 1u << BHI_TARGET_WORKER | 1u << BHI_TARGET_ZYGOTE;

TEST(a_seed_is_a_plan) {
    struct bhi_host_plan one, other;
    bhi_plan_draw(&one, 7, some_faults, some_targets, 10);
    bhi_plan_draw(&other, 7, some_faults, some_targets, 10);
    uint64_t before_ns = 0, zygotes = 0;
    for (uint64_t i = 1; i <= MANY; i++) {
        struct bhi_planned a, b;
        BHT_TRUE(bhi_plan_next(&one, &a) && bhi_plan_next(&other, &b));
        BHT_EQ(a.number, i);
        BHT_EQ(a.at_ns, b.at_ns);
        BHT_EQ(a.fault, b.fault);
        BHT_EQ(a.target, b.target);
        BHT_EQ(a.salt, b.salt);
        BHT_GE(a.at_ns, before_ns);
        before_ns = a.at_ns;
        BHT_TRUE(some_faults & 1u << a.fault);
        BHT_TRUE(some_targets & 1u << a.target);
        BHT_EQ(a.lasts_ns > 0, a.fault == BHI_FAULT_SLOW);
        zygotes += a.target == BHI_TARGET_ZYGOTE;
    }
    BHT_GE(before_ns, UINT64_C(1000000000) * MANY / 10 * 9 / 10); /* ten a second */
    BHT_LE(before_ns, UINT64_C(1000000000) * MANY / 10 * 11 / 10);
    BHT_GE(zygotes, MANY / 13 / 2); /* one in thirteen */
    BHT_LE(zygotes, MANY / 13 * 2);
}

static bool load(const char *text, struct bhi_host_plan *plan) {
    char path[] = "/tmp/bulkhead-plan-XXXXXX";
    struct bhi_complaint complaint;
    const int fd = mkstemp(path);
    BHT_TRUE(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    const bool good = bhi_plan_load(plan, path, &complaint);
    unlink(path);
    return good;
}

#define LINE(at, fault, target, more)                                                              \
    "{\"number\": 3, \"at_ms\": " at ", \"fault\": \"" fault "\", \"target\": \"" target           \
    "\", \"salt\": \"18446744073709551615\"" more "}\n"

TEST(a_log_is_a_plan) {
    struct bhi_host_plan plan;
    struct bhi_planned planned;
    BHT_TRUE(load(LINE("1.5", "kill", "worker", ", \"stream\": \"matrix\"")
                      LINE("1.5", "slow", "compiler", ", \"lasts_ms\": 20"),
                  &plan));
    BHT_TRUE(bhi_plan_next(&plan, &planned));
    BHT_EQ(planned.number, 3);
    BHT_EQ(planned.at_ns, 1500000);
    BHT_EQ(planned.salt, UINT64_MAX);
    BHT_STR_EQ(planned.stream, "matrix");
    BHT_TRUE(bhi_plan_next(&plan, &planned));
    BHT_EQ(planned.fault, BHI_FAULT_SLOW);
    BHT_EQ(planned.target, BHI_TARGET_COMPILER);
    BHT_EQ(planned.lasts_ns, 20000000);
    BHT_TRUE(!bhi_plan_next(&plan, &planned));
    bhi_plan_free(&plan);
}

TEST(what_is_no_log_is_refused) {
    static const char *const bad[] = {
        "",
        "kill\n",
        LINE("-1", "kill", "worker", ""),
        LINE("1", "oom", "worker", ""),
        LINE("1", "kill", "host", ""),
        LINE("1", "slow", "worker", ""), /* for how long? */
        LINE("2", "kill", "worker", "") LINE("1", "kill", "worker", ""),
    };
    for (size_t i = 0; i < BHT_COUNT(bad); i++) {
        struct bhi_host_plan plan;
        if (load(bad[i], &plan)) {
            BHT_FAIL("text %zu was taken: %s", i, bad[i]);
        }
        bhi_plan_free(&plan);
    }
}

/* -- the guard ---------------------------------------------------------------------------------- */

static void await(pid_t pid, int options, int code) {
    siginfo_t info = {0};
    BHT_EQ(waitid(P_PID, (id_t)pid, &info, options), 0);
    BHT_EQ(info.si_code, code);
}

/* However its user ends: by itself, or killed. */
TEST(what_is_stopped_goes_on_when_its_user_has_ended) {
    for (int killed = 0; killed < 2; killed++) {
        int ends[2];
        char byte;
        BHT_EQ(pipe(ends), 0);
        const pid_t stopped = fork();
        if (stopped == 0) {
            close(ends[1]);
            for (;;) {
                pause();
            }
        }
        const pid_t user = fork();
        if (user == 0) {
            struct bhi_stop_guard guard;
            struct bhi_complaint complaint;
            const int pidfd = pidfd_open(stopped, 0);
            close(ends[1]);
            if (!bhi_guard_start(&guard, &complaint) || !bhi_guard_watch(&guard, pidfd)) {
                _exit(1);
            }
            (void)pidfd_send_signal(pidfd, SIGSTOP, NULL, 0);
            (void)!read(ends[0], &byte, 1);
            bhi_guard_end(&guard);
            _exit(0);
        }
        await(stopped, WSTOPPED, CLD_STOPPED);
        if (killed) {
            kill(user, SIGKILL);
        }
        close(ends[0]);
        close(ends[1]);
        await(user, WEXITED, killed ? CLD_KILLED : CLD_EXITED);
        await(stopped, WCONTINUED | (killed ? 0 : WNOHANG),
              CLD_CONTINUED); /* the user waits for its guard */
        kill(stopped, SIGKILL);
        await(stopped, WEXITED, CLD_KILLED);
        while (waitpid(-1, NULL, 0) > 0) { /* the guard of a user that was killed is ours now */
        }
    }
}

/* -- whom it hits ------------------------------------------------------------------------------- */

/* A name proves nothing: who calls itself a worker, and is not below a zygote, is no target. */
TEST(a_title_makes_no_worker) {
    static const char *const names[] = {"worker of x", "zygote", "compiler"};
    pid_t pids[BHT_COUNT(names)];
    int ready[2], go[2];
    char byte, title[BHI_PROCESS_TITLE];
    bool ours;
    BHT_EQ(chdir(bht_folder()), 0);
    BHT_TRUE(pipe(ready) == 0 && pipe(go) == 0);
    for (size_t i = 0; i < BHT_COUNT(names); i++) {
        bht_put("echo; read line", "%s", names[i]);
        if ((pids[i] = fork()) == 0) {
            (void)dup2(go[0], STDIN_FILENO);
            (void)dup2(ready[1], STDOUT_FILENO);
            close(go[1]);
            (void)execl("/bin/sh", "bulkhead-worker", names[i], NULL);
            _exit(0);
        }
        BHT_EQ(read(ready[0], &byte, 1), 1);
        BHT_TRUE(bhi_process_title(pids[i], title, &ours) && ours);
        BHT_STR_EQ(title, names[i]);
    }
    struct bhi_targets targets;
    BHT_TRUE(bhi_targets_find(getpid(), &targets));
    BHT_EQ(targets.count, 0);
    bhi_targets_free(&targets);
    const struct bhi_target named = {.kind = BHI_TARGET_WORKER, .pid = pids[0]};
    BHT_EQ(bhi_target_hold(getpid(), &named), -1);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(go[i]);
    }
    for (size_t i = 0; i < BHT_COUNT(names); i++) {
        await(pids[i], WEXITED, CLD_EXITED);
    }
}

TEST(lists_of_targets) {
    uint32_t set;
    struct bhi_complaint complaint;
    BHT_TRUE(bhi_target_parse("worker,opener", &set, &complaint));
    BHT_EQ(set, 1u << BHI_TARGET_WORKER | 1u << BHI_TARGET_OPENER);
    static const char *const bad[] = {"", "host", "worker,", "work", "worker,,spare"};
    for (size_t i = 0; i < BHT_COUNT(bad); i++) {
        BHT_TRUE(!bhi_target_parse(bad[i], &set, &complaint));
    }
}

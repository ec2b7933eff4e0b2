/* Obituaries as a table: how a worker's process ended, why it was killed and what it wrote, and the
 * verdict that comes of it. */
#include "core/submission.h"
#include "puppet.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/context/context.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define LIMIT_MIB 64

enum zygote_end { ALIVE, LOST };

/* -- in mid-job -------------------------------------------------------------------------------- */

struct row {
    enum bhi_kill kill;
    int code_kind, status; /* of its process; CLD_… 0: nobody has told */
    enum zygote_end zygote;
    bool refused;  /* an allocation, since its last result */
    bool closed;   /* the context */
    bool undead;   /* it was given up */
    bool compiles; /* it was compiling */
    bool innocent; /* nobody is blamed */
    bh_status verdict;
    int signal, exit_code;
    const char *words;
};

static const struct row rows[] = {
    /* What it ended with by itself. */
    {.code_kind = CLD_KILLED,
     .status = SIGSEGV,
     .verdict = BH_WORKER_SIGNAL,
     .signal = SIGSEGV,
     .exit_code = -1,
     .words = "worker 4242 was killed by SIGSEGV (signal 11)"},
    {.code_kind = CLD_DUMPED,
     .status = SIGABRT,
     .verdict = BH_WORKER_SIGNAL,
     .signal = SIGABRT,
     .exit_code = -1,
     .words = "(signal 6), core dumped"},
    /* Signals that no kernel can send its worker: somebody else has, or a limit of the host (T2). */
    {.code_kind = CLD_KILLED,
     .status = SIGKILL,
     .innocent = true,
     .verdict = BH_WORKER_SIGNAL,
     .signal = SIGKILL,
     .exit_code = -1,
     .words = "worker 4242 was killed by SIGKILL (signal 9) from outside"},
    {.code_kind = CLD_KILLED,
     .status = SIGTERM,
     .innocent = true,
     .verdict = BH_WORKER_SIGNAL,
     .signal = SIGTERM,
     .exit_code = -1,
     .words = "was killed by SIGTERM (signal 15) from outside"},
    {.code_kind = CLD_KILLED,
     .status = SIGXCPU,
     .innocent = true,
     .verdict = BH_WORKER_SIGNAL,
     .signal = SIGXCPU,
     .exit_code = -1,
     .words = "was killed by SIGXCPU (signal 24) from outside"},
    {.code_kind = CLD_KILLED, /* an allocation that was refused kills nobody like that */
     .status = SIGKILL,
     .refused = true,
     .innocent = true,
     .verdict = BH_WORKER_SIGNAL,
     .signal = SIGKILL,
     .exit_code = -1,
     .words = "was killed by SIGKILL (signal 9) from outside"},
    {.kill = BHI_KILL_DEADLINE,
     .code_kind = CLD_KILLED,
     .status = SIGTERM,
     .innocent = true,
     .verdict = BH_WORKER_SIGNAL,
     .signal = SIGTERM,
     .exit_code = -1,
     .words = "was killed by SIGTERM (signal 15) from outside"},
    {.code_kind = CLD_KILLED,
     .status = SIGSYS,
     .verdict = BH_SECCOMP,
     .signal = SIGSYS,
     .exit_code = -1,
     .words = "it made a system call that the sandbox forbids"},
    {.code_kind = CLD_EXITED,
     .status = 0,
     .verdict = BH_WORKER_EXIT,
     .exit_code = 0,
     .words = "exited with code 0"},
    {.code_kind = CLD_EXITED,
     .status = 7,
     .verdict = BH_WORKER_EXIT,
     .exit_code = 7,
     .words = "exited with code 7"},
    /* Memory was refused since its last result: that tells what the rest came of. */
    {.code_kind = CLD_KILLED,
     .status = SIGSEGV,
     .refused = true,
     .verdict = BH_OUT_OF_HOST_MEMORY,
     .signal = SIGSEGV,
     .exit_code = -1,
     .words = "exceeded its memory limit of 64 MiB"},
    {.code_kind = CLD_EXITED,
     .status = 1,
     .refused = true,
     .verdict = BH_OUT_OF_HOST_MEMORY,
     .exit_code = 1,
     .words = "exceeded its memory limit of 64 MiB"},
    /* It was killed for its deadline, and that is what it died of. */
    {.kill = BHI_KILL_DEADLINE,
     .code_kind = CLD_KILLED,
     .status = SIGKILL,
     .verdict = BH_DEADLINE,
     .signal = SIGKILL,
     .exit_code = -1,
     .words = "why it was killed; worker 4242 was killed"},
    {.kill = BHI_KILL_COMPILE,
     .code_kind = CLD_KILLED,
     .status = SIGKILL,
     .compiles = true,
     .verdict = BH_COMPILE_FAILED,
     .signal = SIGKILL,
     .exit_code = -1,
     .words = "why it was killed; worker 4242 was killed"},
    {.kill = BHI_KILL_CANCEL,
     .code_kind = CLD_KILLED,
     .status = SIGKILL,
     .verdict = BH_CANCELLED,
     .signal = SIGKILL,
     .exit_code = -1,
     .words = "why it was killed; worker 4242 was killed"},
    /* It was to be killed, and had died of something else before: that counts. */
    {.kill = BHI_KILL_DEADLINE,
     .code_kind = CLD_KILLED,
     .status = SIGSEGV,
     .verdict = BH_WORKER_SIGNAL,
     .signal = SIGSEGV,
     .exit_code = -1,
     .words = "was killed by SIGSEGV"},
    {.kill = BHI_KILL_DEADLINE,
     .code_kind = CLD_EXITED,
     .status = 3,
     .verdict = BH_WORKER_EXIT,
     .exit_code = 3,
     .words = "exited with code 3"},
    {.kill = BHI_KILL_CANCEL,
     .code_kind = CLD_KILLED,
     .status = SIGBUS,
     .verdict = BH_WORKER_SIGNAL,
     .signal = SIGBUS,
     .exit_code = -1,
     .words = "was killed by SIGBUS"},
    {.kill = BHI_KILL_COMPILE,
     .code_kind = CLD_KILLED,
     .status = SIGSEGV,
     .verdict = BH_WORKER_SIGNAL,
     .signal = SIGSEGV,
     .exit_code = -1,
     .words = "was killed by SIGSEGV"},
    {.kill = BHI_KILL_DEADLINE,
     .code_kind = CLD_KILLED,
     .status = SIGSEGV,
     .refused = true,
     .verdict = BH_OUT_OF_HOST_MEMORY,
     .signal = SIGSEGV,
     .exit_code = -1,
     .words = "exceeded its memory limit"},
    /* After a protocol violation the way it ended says nothing. */
    {.kill = BHI_KILL_PROTOCOL,
     .code_kind = CLD_KILLED,
     .status = SIGKILL,
     .verdict = BH_PROTOCOL,
     .signal = SIGKILL,
     .exit_code = -1,
     .words = "worker 4242 broke the protocol: why it was killed"},
    {.kill = BHI_KILL_PROTOCOL,
     .code_kind = CLD_KILLED,
     .status = SIGSEGV,
     .refused = true,
     .verdict = BH_PROTOCOL,
     .signal = SIGSEGV,
     .exit_code = -1,
     .words = "worker 4242 broke the protocol"},
    {.kill = BHI_KILL_PROTOCOL,
     .zygote = LOST,
     .verdict = BH_PROTOCOL,
     .exit_code = -1,
     .words = "worker 4242 broke the protocol"},
    /* Its zygote is gone, and nobody knows how it ended. */
    {.zygote = LOST,
     .verdict = BH_ZYGOTE_LOST,
     .exit_code = -1,
     .words = "worker 4242 died with its zygote"},
    {.kill = BHI_KILL_DEADLINE,
     .zygote = LOST,
     .verdict = BH_DEADLINE,
     .exit_code = -1,
     .words = "why it was killed; worker 4242 was killed"},
    {.zygote = LOST,
     .refused = true,
     .verdict = BH_OUT_OF_HOST_MEMORY,
     .exit_code = -1,
     .words = "exceeded its memory limit"},
    /* The context closes. */
    {.code_kind = CLD_KILLED,
     .status = SIGKILL,
     .closed = true,
     .verdict = BH_CONTEXT_CLOSED,
     .signal = SIGKILL,
     .exit_code = -1,
     .words = "the context was destroyed while it ran"},
    {.code_kind = CLD_KILLED,
     .status = SIGSEGV,
     .closed = true,
     .refused = true,
     .verdict = BH_CONTEXT_CLOSED,
     .signal = SIGSEGV,
     .exit_code = -1,
     .words = "the context was destroyed while it ran"},
    {.kill = BHI_KILL_DEADLINE,
     .code_kind = CLD_KILLED,
     .status = SIGKILL,
     .closed = true,
     .verdict = BH_DEADLINE,
     .signal = SIGKILL,
     .exit_code = -1,
     .words = "why it was killed"},
    /* Its compiler crashed. */
    {.code_kind = CLD_KILLED,
     .status = SIGSEGV,
     .compiles = true,
     .verdict = BH_COMPILE_FAILED,
     .signal = SIGSEGV,
     .exit_code = -1,
     .words = "died while compiling: worker 4242 was killed by SIGSEGV"},
    /* It could not be ended. */
    {.kill = BHI_KILL_DEADLINE,
     .undead = true,
     .verdict = BH_DEADLINE,
     .exit_code = -1,
     .words = "SIGKILL did not end the process: the kernel still holds it"},
};

/* Buries the worker as one whose memory cgroup counts no kill for memory. */
static void bury(struct puppet *p, struct bhi_worker *worker, struct bhi_obituary *obituary) {
    worker->memory_limit = LIMIT_MIB << 20;
    p->zygote->cgroup.version = 2;
    puppet_bury(worker, obituary);
    p->zygote->cgroup.version = 0;
}

static void play(const struct row *row, size_t number) {
    struct puppet p;
    puppet_open(&p);
    struct bhi_worker *worker = puppet_serving(&p);
    bh_event *event = puppet_submit(&p);
    struct bhi_progress side = puppet_side(worker);
    atomic_store(&side.header->started_seq, 1);
    atomic_store(&side.header->compile_seq, row->compiles);
    atomic_store(&side.header->refused_allocations, row->refused);
    bhi_progress_unmap(&side);
    bhi_context_lock(p.context);
    if (row->kill == BHI_KILL_PROTOCOL) {
        bhi_core_worker_violation(&worker->core, "why it was killed");
    } else if (row->kill != BHI_KILL_NONE) {
        bhi_core_worker_kill(&worker->core, row->kill, bh_event_id(event), "why it was killed");
    }
    p.context->closed = row->closed;
    bhi_context_pump_unlock(p.context);
    if (row->undead) { /* it lets go of what it had of the pool */
        BHI_LIST_EACH_SAFE(node, &worker->pool.exposures) {
            struct bhi_exposure *exposure = BHI_CONTAINER(node, struct bhi_exposure, of_worker);
            bhi_list_remove(&exposure->of_block);
            bhi_list_remove(&exposure->of_worker);
            free(exposure);
        }
        worker->core.life.given_up = true;
    }
    puppet_end_process(worker, row->code_kind, row->status);
    p.zygote->state = row->zygote == LOST ? BHI_ZYGOTE_LOST : BHI_ZYGOTE_READY;
    struct bhi_obituary obituary;
    bury(&p, worker, &obituary);
    const bh_verdict verdict = puppet_verdict(event);
    if (verdict.status != row->verdict || verdict.signal != row->signal ||
        verdict.exit_code != row->exit_code || !strstr(verdict.message, row->words)) {
        BHT_FAIL("row %zu: %s, signal %d, exit code %d, '%s'; must be %s, %d, %d, '%s'", number,
                 bh_status_name(verdict.status), verdict.signal, verdict.exit_code, verdict.message,
                 bh_status_name(row->verdict), row->signal, row->exit_code, row->words);
    }
    const bool victim = row->innocent || bh_status_classify(row->verdict) == BH_STATUS_CLASS_VICTIM;
    const bool late = row->kill == BHI_KILL_COMPILE && row->verdict == BH_COMPILE_FAILED;
    const bh_blame blame = victim ? BH_BLAME_NONE : late ? BH_BLAME_SUSPECTED : BH_BLAME_CERTAIN;
    if (verdict.blame != blame ||
        (bh_verdict_classify(&verdict) == BH_STATUS_CLASS_VICTIM) != victim) {
        BHT_FAIL("row %zu: '%s': blame %d, class %d", number, verdict.message, (int)verdict.blame,
                 (int)bh_verdict_classify(&verdict));
    }
    BHT_EQ(verdict.worker_pid, 4242);
    BHT_EQ(verdict.executed, row->compiles ? BH_EXECUTED_NO : BH_EXECUTED_UNKNOWN);
    /* The limit that it ran into, where there was one. */
    uint64_t limit = 0;
    if (verdict.status == BH_OUT_OF_HOST_MEMORY) {
        limit = LIMIT_MIB << 20;
    } else if (verdict.status == BH_DEADLINE) {
        limit = BH_FOREVER;
    } else if (row->kill == BHI_KILL_COMPILE && verdict.status == BH_COMPILE_FAILED) {
        limit = p.stream->core.compile_deadline_ns;
    }
    BHT_TRUE(verdict.limit == limit);
    /* The host's log has the same words, unless this is how it was told to end. */
    if (row->closed) {
        BHT_STR_EQ(obituary.line, "");
    } else {
        BHT_STR_HAS(obituary.line, row->compiles ? "stream one: " : row->words);
    }
    bh_event_release(event);
    puppet_close(&p);
}

TEST(a_death_in_mid_job) {
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        play(&rows[i], i);
    }
}

/* E13: somebody kills the worker while it compiles. Nothing has run, so the next worker does it. */
TEST(what_others_ended_while_it_compiled_runs_again) {
    struct puppet p;
    puppet_open(&p);
    bh_event *event = puppet_submit(&p);
    for (int deaths = 0; deaths < 3; deaths++) {
        struct bhi_worker *worker = puppet_serving(&p);
        BHT_EQ(worker->core.published, 1);
        struct bhi_progress side = puppet_side(worker);
        atomic_store(&side.header->started_seq, 1);
        atomic_store(&side.header->compile_seq, 1);
        bhi_progress_unmap(&side);
        puppet_end_process(worker, CLD_KILLED, SIGKILL);
        struct bhi_obituary obituary;
        bury(&p, worker, &obituary);
        BHT_STR_HAS(obituary.line, "worker 4242 was killed by SIGKILL (signal 9) from outside");
        BHT_EQ(bh_event_query(event), BH_EVENT_PENDING);
    }
    puppet_complete(puppet_serving(&p), 1);
    BHT_EQ(puppet_verdict(event).status, BH_OK);
    bh_event_release(event);
    puppet_close(&p);
}

/* A worker inherits the host's limit on the address space, which may be lower than its own. */
TEST(the_host_limits_its_address_space) {
#if !BHT_ASAN && !BHT_TSAN /* they need all of it */
    static const uint64_t own[] = {0, UINT64_C(7) << 40, UINT64_C(64) << 20};
    struct rlimit limit;
    BHT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
    limit.rlim_cur = limit.rlim_max = UINT64_C(3) << 40;
    BHT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    for (size_t i = 0; i < BHT_COUNT(own); i++) {
        const bool inherited = own[i] != UINT64_C(64) << 20;
        struct puppet p;
        puppet_open(&p);
        struct bhi_worker *worker = puppet_serving(&p);
        worker->memory_limit = own[i];
        bh_event *event = puppet_submit(&p);
        struct bhi_progress side = puppet_side(worker);
        atomic_store(&side.header->started_seq, 1);
        atomic_store(&side.header->refused_allocations, true);
        bhi_progress_unmap(&side);
        puppet_end_process(worker, CLD_KILLED, SIGSEGV);
        struct bhi_obituary obituary;
        puppet_bury(worker, &obituary);
        const bh_verdict verdict = puppet_verdict(event);
        BHT_EQ(verdict.status, BH_OUT_OF_HOST_MEMORY);
        BHT_EQ(verdict.limit, inherited ? UINT64_C(3) << 40 : own[i]);
        BHT_EQ(verdict.reason, inherited ? BH_REASON_ADDRESS_SPACE : BH_REASON_MEMORY_LIMIT);
        BHT_STR_HAS(verdict.message,
                    inherited ? "worker 4242 exceeded the 3145728 MiB of address space that the "
                                "host leaves it (raise ulimit -v)"
                              : "worker 4242 exceeded its memory limit of 64 MiB");
        bh_event_release(event);
        puppet_close(&p);
    }
#endif
}

/* -- what it had recorded ---------------------------------------------------------------------- */

/* Of four that it has, it had recorded two, at which nobody has looked: they are good (E11). It had
 * begun the third, which is lost; the fourth runs on the next worker (E13). */
TEST(what_it_had_recorded_is_good) {
    struct puppet p;
    puppet_open(&p);
    struct bhi_worker *worker = puppet_serving(&p);
    bh_event *events[4];
    for (size_t i = 0; i < BHT_COUNT(events); i++) {
        events[i] = puppet_submit(&p);
    }
    puppet_complete(worker, 2);
    struct bhi_progress side = puppet_side(worker);
    atomic_store(&side.header->started_seq, 3);
    bhi_progress_unmap(&side);
    BHT_EQ(worker->core.harvested, 0);
    puppet_end_process(worker, CLD_KILLED, SIGSEGV);
    puppet_bury(worker, NULL);
    BHT_EQ(puppet_verdict(events[0]).status, BH_OK);
    BHT_EQ(puppet_verdict(events[1]).status, BH_OK);
    BHT_EQ(puppet_verdict(events[2]).status, BH_WORKER_SIGNAL);
    BHT_EQ(bh_event_query(events[3]), BH_EVENT_PENDING);
    worker = puppet_serving(&p);
    BHT_EQ(worker->core.published, 1);
    puppet_complete(worker, 1);
    BHT_EQ(bh_event_query(events[3]), BH_EVENT_READY);
    for (size_t i = 0; i < BHT_COUNT(events); i++) {
        bh_event_release(events[i]);
    }
    puppet_close(&p);
}

/* A copy that had begun beside the first was let go (bhi_submission_let_go). It counts as not begun
 * when the worker dies, and nobody needs it any more. */
TEST(what_was_let_go_does_not_run_again) {
    struct puppet p;
    puppet_open(&p);
    struct bhi_worker *worker = puppet_serving(&p);
    bh_event *first = puppet_submit(&p), *second = puppet_submit(&p);
    struct bhi_progress side = puppet_side(worker);
    atomic_store(&side.header->started_seq, 2);
    bhi_context_lock(p.context);
    bhi_submission_let_go(second->submission);
    bhi_context_pump_unlock(p.context);
    BHT_EQ(bh_event_query(second), BH_EVENT_PENDING);
    BHT_EQ(worker->core.life.kill, BHI_KILL_NONE);
    atomic_store(&side.header->started_seq, 1);
    bhi_progress_unmap(&side);
    puppet_end_process(worker, CLD_KILLED, SIGSEGV);
    puppet_bury(worker, NULL);
    BHT_EQ(puppet_verdict(first).status, BH_WORKER_SIGNAL);
    BHT_EQ(puppet_verdict(second).status, BH_CANCELLED);
    bh_event_release(first);
    bh_event_release(second);
    puppet_close(&p);
}

/* -- what was refused before ------------------------------------------------------------------- */

/* An allocation that was refused for one that has its result since says nothing of a later death;
 * one that was refused after it does. */
TEST(an_old_refusal_is_no_cause) {
    for (int later = 0; later < 2; later++) {
        struct puppet p;
        puppet_open(&p);
        struct bhi_worker *worker = puppet_serving(&p);
        bh_event *first = puppet_submit(&p), *second = puppet_submit(&p);
        struct bhi_progress side = puppet_side(worker);
        atomic_store(&side.header->refused_allocations, 3);
        puppet_complete(worker, 1);
        BHT_EQ(bh_event_query(first), BH_EVENT_READY);
        atomic_store(&side.header->started_seq, 2);
        atomic_fetch_add(&side.header->refused_allocations, (unsigned)later);
        bhi_progress_unmap(&side);
        puppet_end_process(worker, CLD_KILLED, SIGSEGV);
        puppet_bury(worker, NULL);
        BHT_EQ(puppet_verdict(second).status, later ? BH_OUT_OF_HOST_MEMORY : BH_WORKER_SIGNAL);
        bh_event_release(first);
        bh_event_release(second);
        puppet_close(&p);
    }
}

/* -- whose limit it was ------------------------------------------------------------------------ */

/* Writes what the kernel counts in the worker's memory cgroup (v2). */
static void put_events(const char *folder, uint64_t worker, const char *events) {
    char path[128];
    snprintf(path, sizeof path, "%s/w%llu", folder, (unsigned long long)worker);
    BHT_EQ(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/w%llu/memory.events", folder, (unsigned long long)worker);
    FILE *file = fopen(path, "we");
    BHT_TRUE(file && fputs(events, file) >= 0 && fclose(file) == 0);
}

/* T2: a container's limit, or the machine's memory, may have been used up by others. */
TEST(memory_that_others_used_up) {
    for (int own = 0; own < 2; own++) {
        char folder[] = "/tmp/obituary.XXXXXX";
        const char *argv[] = {"rm", "-rf", folder, NULL};
        struct puppet p;
        BHT_TRUE(mkdtemp(folder));
        puppet_open(&p);
        struct bhi_worker *worker = puppet_serving(&p);
        worker->memory_limit = LIMIT_MIB << 20;
        put_events(folder, worker->id, own ? "oom 1\noom_kill 1\n" : "oom 0\noom_kill 1\n");
        p.zygote->cgroup.version = 2;
        snprintf(p.zygote->cgroup.dir, sizeof p.zygote->cgroup.dir, "%s", folder);
        bh_event *event = puppet_submit(&p);
        struct bhi_progress side = puppet_side(worker);
        atomic_store(&side.header->started_seq, 1);
        bhi_progress_unmap(&side);
        puppet_end_process(worker, CLD_KILLED, SIGKILL);
        puppet_bury(worker, NULL);
        p.zygote->cgroup.version = 0;
        const bh_verdict verdict = puppet_verdict(event);
        BHT_EQ(verdict.status, own ? BH_OUT_OF_HOST_MEMORY : BH_WORKER_SIGNAL);
        BHT_EQ(verdict.blame, own ? BH_BLAME_CERTAIN : BH_BLAME_SUSPECTED);
        BHT_STR_HAS(verdict.message, own ? "exceeded its memory limit of 64 MiB"
                                         : "the worker had not reached its own limit");
        bh_event_release(event);
        puppet_close(&p);
        BHT_EQ(bht_run(argv, NULL, 0), 0);
    }
}

/* T2: without a cgroup nobody says why Linux killed a worker. So if it has killed for memory since
 * the worker was started, that may have been why. */
TEST(memory_without_a_cgroup) {
    struct puppet p;
    puppet_open(&p);
    struct bhi_worker *worker = puppet_serving(&p);
    worker->oom_kills--;
    bh_event *event = puppet_submit(&p);
    struct bhi_progress side = puppet_side(worker);
    atomic_store(&side.header->started_seq, 1);
    bhi_progress_unmap(&side);
    puppet_end_process(worker, CLD_KILLED, SIGKILL);
    puppet_bury(worker, NULL);
    const bh_verdict verdict = puppet_verdict(event);
    BHT_EQ(verdict.status, BH_WORKER_SIGNAL);
    BHT_EQ(verdict.blame, BH_BLAME_SUSPECTED);
    BHT_STR_HAS(verdict.message, "memory");
    bh_event_release(event);
    puppet_close(&p);
}

/* -- while it starts --------------------------------------------------------------------------- */

static const struct start {
    enum bhi_kill kill;
    int code_kind, status;
    uint32_t step, step_status;
    int error;
    const char *text;
    bh_status why;
    int sys_errno;
    bool final; /* another one would not start either */
    const char *words;
} starts[] = {
    /* It has said what the machine lacks, and exited. */
    {.code_kind = CLD_EXITED,
     .status = 3,
     .step = BHI_STEP_DEVICE,
     .step_status = BH_NO_DEVICE,
     .text = "no such device",
     .why = BH_NO_DEVICE,
     .final = true,
     .words = "no such device"},
    {.code_kind = CLD_EXITED,
     .status = 3,
     .step = BHI_STEP_SANDBOX,
     .step_status = BH_UNSUPPORTED,
     .error = ENOSYS,
     .text = "landlock: not there",
     .why = BH_UNSUPPORTED,
     .sys_errno = ENOSYS,
     .final = true,
     .words = "landlock: not there"},
    {.code_kind = CLD_EXITED,
     .status = 3,
     .step = BHI_STEP_SANDBOX,
     .step_status = BH_UNSUPPORTED,
     .error = -7, /* no errno */
     .text = "landlock: not there",
     .why = BH_UNAVAILABLE,
     .words = "exited with code 3 while starting (step sandbox)"},
    /* A status that no start ends with, or that says nothing of the machine. */
    {.code_kind = CLD_EXITED,
     .status = 3,
     .step = BHI_STEP_WARM_UP,
     .step_status = 123456,
     .text = "whatever",
     .why = BH_UNAVAILABLE,
     .words = "exited with code 3 while starting (step warm-up): whatever"},
    {.code_kind = CLD_EXITED,
     .status = 3,
     .step = BHI_STEP_WARM_UP,
     .step_status = BH_VULKAN,
     .text = "vkQueueSubmit",
     .why = BH_UNAVAILABLE,
     .words = "while starting (step warm-up): vkQueueSubmit"},
    /* It died in the middle of it, whatever it has written. */
    {.code_kind = CLD_KILLED,
     .status = SIGSEGV,
     .step = BHI_STEP_DEVICE,
     .step_status = BH_NO_DEVICE,
     .text = "no such device",
     .why = BH_UNAVAILABLE,
     .words = "was killed by SIGSEGV (signal 11) while starting (step device)"},
    {.code_kind = CLD_KILLED,
     .status = SIGSYS,
     .step = 99,
     .why = BH_UNAVAILABLE,
     .words = "while starting (step unknown)"},
    /* It took too long. */
    {.kill = BHI_KILL_START,
     .code_kind = CLD_KILLED,
     .status = SIGKILL,
     .step = BHI_STEP_DEVICE,
     .why = BH_UNAVAILABLE,
     .words = "why it was killed"},
    /* It went with its zygote. */
    {.step = BHI_STEP_FORKED,
     .why = BH_UNAVAILABLE,
     .words = "died with its zygote while starting (step forked)"},
};

TEST(a_death_while_it_starts) {
    for (size_t i = 0; i < BHT_COUNT(starts); i++) {
        const struct start *start = &starts[i];
        struct puppet p;
        puppet_open(&p);
        struct bhi_worker *worker = puppet_worker(&p, BHI_HELD);
        struct bhi_progress side = puppet_side(worker);
        bhi_progress_step(&side, (enum bhi_step)start->step);
        if (start->text) {
            bhi_progress_step_failed(&side, &(struct bhi_why){.status = start->step_status,
                                                              .sys_errno = start->error,
                                                              .text = start->text});
        }
        bhi_progress_unmap(&side);
        bhi_context_lock(p.context);
        bhi_stream_bind(&p.stream->core, &worker->core);
        bhi_worker_retain(worker);
        if (start->kill != BHI_KILL_NONE) {
            bhi_core_worker_kill(&worker->core, start->kill, 0, "why it was killed");
        }
        bhi_context_pump_unlock(p.context);
        puppet_end_process(worker, start->code_kind, start->status);
        p.zygote->state = start->code_kind ? BHI_ZYGOTE_READY : BHI_ZYGOTE_LOST;
        struct bhi_obituary obituary;
        puppet_bury(worker, &obituary);
        const struct bhi_core_stream *stream = &p.stream->core;
        if (stream->trouble.status != start->why || stream->trouble.sys_errno != start->sys_errno ||
            !strstr(stream->trouble.message, start->words)) {
            BHT_FAIL("row %zu: %s, errno %d, '%s'; must be %s, %d, '%s'", i,
                     bh_status_name(stream->trouble.status), stream->trouble.sys_errno,
                     stream->trouble.message, bh_status_name(start->why), start->sys_errno,
                     start->words);
        }
        BHT_EQ(stream->state == BHI_STREAM_UNAVAILABLE, start->final);
        BHT_STR_HAS(obituary.line, start->words);
        puppet_close(&p);
    }
}

/* One that goes because it was told to has no obituary. */
TEST(one_that_is_retired_is_not_mourned) {
    struct puppet p;
    puppet_open(&p);
    struct bhi_worker *worker = puppet_serving(&p);
    bhi_context_lock(p.context);
    bhi_core_worker_kill(&worker->core, BHI_KILL_RETIRED, 0,
                         "it was replaced: the next submission needs a fresh worker");
    bhi_context_pump_unlock(p.context);
    puppet_end_process(worker, CLD_KILLED, SIGKILL);
    struct bhi_obituary obituary;
    puppet_bury(worker, &obituary);
    BHT_STR_EQ(obituary.line, "");
    BHT_EQ(p.stream->core.restart.losses, 0);
    puppet_close(&p);
}

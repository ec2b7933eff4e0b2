/* Obituaries as a table: how a worker's process ended, why it was killed and what it wrote, and the
 * verdict that comes of it. */
#include "../hostile/wrap.h"
#include "core/submission.h"
#include "puppet.h"
#include "supervisor/context/context.h"
#include "supervisor/reactor/burial.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define LIMIT_MIB 64

static uint64_t oom_kills; /* of the machine; UINT64_MAX: nobody can tell */

WRAP(uint64_t, bhi_oom_kills, void) {
    return oom_kills;
}

/* -- in mid-job -------------------------------------------------------------------------------- */

enum {
    REFUSED = 1 << 0, /* an allocation, since its last result */
    CLOSED = 1 << 1,  /* the context */
    UNDEAD = 1 << 2,  /* it was given up */
    COMPILES = 1 << 3,
    INNOCENT = 1 << 4, /* nobody is blamed */
    LOST = 1 << 5,     /* its zygote */
};

struct row {
    enum bhi_kill kill;
    int code_kind, status; /* of its process; CLD_… 0: nobody has told */
    unsigned flags;
    bh_status verdict;
    const char *words;
};

static const struct row rows[] = {
    /* What it ended with by itself. */
    {0, CLD_KILLED, SIGSEGV, 0, BH_WORKER_SIGNAL, "worker 4242 was killed by SIGSEGV (signal 11)"},
    {0, CLD_DUMPED, SIGABRT, 0, BH_WORKER_SIGNAL, "(signal 6), core dumped"},
    /* Signals that no kernel can send its worker: somebody else has, or a limit of the host (T2). */
    {0, CLD_KILLED, SIGKILL, INNOCENT, BH_WORKER_SIGNAL,
     "worker 4242 was killed by SIGKILL (signal 9) from outside"},
    {0, CLD_KILLED, SIGTERM, INNOCENT, BH_WORKER_SIGNAL, "by SIGTERM (signal 15) from outside"},
    {0, CLD_KILLED, SIGXCPU, INNOCENT, BH_WORKER_SIGNAL, "by SIGXCPU (signal 24) from outside"},
    /* An allocation that was refused kills nobody like that. */
    {0, CLD_KILLED, SIGKILL, REFUSED | INNOCENT, BH_WORKER_SIGNAL, "(signal 9) from outside"},
    {BHI_KILL_DEADLINE, CLD_KILLED, SIGTERM, INNOCENT, BH_WORKER_SIGNAL,
     "(signal 15) from outside"},
    {0, CLD_KILLED, SIGSYS, 0, BH_SECCOMP,
     "that the sandbox forbids; 'bulkhead doctor --trace-driver' shows whether"},
    {0, CLD_EXITED, 0, 0, BH_WORKER_EXIT, "exited with code 0"},
    {0, CLD_EXITED, 7, 0, BH_WORKER_EXIT, "exited with code 7"},
    /* Memory was refused since its last result: that tells what the rest came of. */
    {0, CLD_KILLED, SIGSEGV, REFUSED, BH_OUT_OF_HOST_MEMORY, "exceeded its memory limit of 64 MiB"},
    {0, CLD_EXITED, 1, REFUSED, BH_OUT_OF_HOST_MEMORY, "exceeded its memory limit of 64 MiB"},
    /* It was killed for its deadline, and that is what it died of. */
    {BHI_KILL_DEADLINE, CLD_KILLED, SIGKILL, 0, BH_DEADLINE, "killed; worker 4242 was killed"},
    {BHI_KILL_COMPILE, CLD_KILLED, SIGKILL, COMPILES, BH_COMPILE_FAILED,
     "why it was killed; worker 4242 was killed"},
    {BHI_KILL_CANCEL, CLD_KILLED, SIGKILL, 0, BH_CANCELLED, "killed; worker 4242 was killed"},
    {BHI_KILL_LOST, CLD_KILLED, SIGKILL, 0, BH_DEVICE_LOST, "the device of worker 4242 was lost"},
    /* It was to be killed, and had died of something else before: that counts. */
    {BHI_KILL_DEADLINE, CLD_KILLED, SIGSEGV, 0, BH_WORKER_SIGNAL, "was killed by SIGSEGV"},
    {BHI_KILL_DEADLINE, CLD_EXITED, 3, 0, BH_WORKER_EXIT, "exited with code 3"},
    {BHI_KILL_CANCEL, CLD_KILLED, SIGBUS, 0, BH_WORKER_SIGNAL, "was killed by SIGBUS"},
    {BHI_KILL_COMPILE, CLD_KILLED, SIGSEGV, 0, BH_WORKER_SIGNAL, "was killed by SIGSEGV"},
    {BHI_KILL_DEADLINE, CLD_KILLED, SIGSEGV, REFUSED, BH_OUT_OF_HOST_MEMORY, "its memory limit"},
    /* After a protocol violation the way it ended says nothing. */
    {BHI_KILL_PROTOCOL, CLD_KILLED, SIGKILL, 0, BH_PROTOCOL,
     "worker 4242 broke the protocol: why it was killed"},
    {BHI_KILL_PROTOCOL, CLD_KILLED, SIGSEGV, REFUSED, BH_PROTOCOL, "4242 broke the protocol"},
    {BHI_KILL_PROTOCOL, 0, 0, LOST, BH_PROTOCOL, "worker 4242 broke the protocol"},
    /* Its zygote is gone, and nobody knows how it ended. */
    {0, 0, 0, LOST, BH_ZYGOTE_LOST, "worker 4242 died with its zygote"},
    {BHI_KILL_DEADLINE, 0, 0, LOST, BH_DEADLINE, "why it was killed; worker 4242 was killed"},
    {0, 0, 0, LOST | REFUSED, BH_OUT_OF_HOST_MEMORY, "exceeded its memory limit"},
    /* The context closes. */
    {0, CLD_KILLED, SIGKILL, CLOSED, BH_CONTEXT_CLOSED, "the context was destroyed while it ran"},
    {0, CLD_KILLED, SIGSEGV, CLOSED | REFUSED, BH_CONTEXT_CLOSED, "destroyed while it ran"},
    {BHI_KILL_DEADLINE, CLD_KILLED, SIGKILL, CLOSED, BH_DEADLINE, "why it was killed"},
    /* Its compiler crashed. */
    {0, CLD_KILLED, SIGSEGV, COMPILES, BH_COMPILE_FAILED,
     "died while compiling: worker 4242 was killed by SIGSEGV"},
    /* It could not be ended. */
    {BHI_KILL_DEADLINE, 0, 0, UNDEAD, BH_DEADLINE,
     "SIGKILL did not end the process: the kernel still holds it"},
};

/* Buries the worker as one whose memory cgroup counts no kill for memory. */
static void bury(struct bhi_worker *worker) {
    worker->memory_limit = LIMIT_MIB << 20;
    puppet.zygote->cgroup.version = 2;
    puppet_bury(worker);
    puppet.zygote->cgroup.version = 0;
}

/* A submission that the worker has begun. */
static bh_event *begin(struct bhi_worker *worker) {
    bh_event *event = puppet_submit();
    puppet_begins(worker, 1);
    return event;
}

/* It was refused so many allocations. */
static void refuse(struct bhi_worker *worker, unsigned count) {
    atomic_store(&puppet_side(worker)->header->refused_allocations, count);
}

static void play(const struct row *row, size_t number) {
    const bool compiles = row->flags & COMPILES, closed = row->flags & CLOSED;
    struct bhi_worker *worker = puppet_serving();
    snprintf(worker->core.device, sizeof worker->core.device, "cpu:0");
    bh_event *event = begin(worker);
    atomic_store(&puppet_side(worker)->header->compile_seq, compiles);
    refuse(worker, row->flags & REFUSED);
    bhi_context_lock(puppet.context);
    if (row->kill == BHI_KILL_PROTOCOL) {
        bhi_core_worker_violation(&worker->core, "why it was killed");
        worker->core.life.kill_reason = BH_REASON_DEVICE_TIME;
    } else if (row->kill != BHI_KILL_NONE) {
        bhi_core_worker_kill(&worker->core, row->kill, bh_event_id(event), "why it was killed");
    }
    puppet.context->closed = closed;
    bhi_context_pump_unlock(puppet.context);
    if (row->flags & UNDEAD) { /* it lets go of what it had of the pool */
        BHI_LIST_FOR_SAFE(struct bhi_exposure, exposure, &worker->pool.exposures, of_worker) {
            bhi_list_remove(&exposure->of_block);
            bhi_list_remove(&exposure->of_worker);
            free(exposure);
        }
        worker->core.life.given_up = true;
    }
    puppet_end_process(worker, row->code_kind, row->status);
    puppet.zygote->state = row->flags & LOST ? BHI_ZYGOTE_LOST : BHI_ZYGOTE_READY;
    bury(worker);
    const bh_verdict verdict = fx_verdict(event);
    const int exit_code = row->code_kind == CLD_EXITED ? row->status : -1;
    const int signal = row->code_kind == CLD_EXITED ? 0 : row->status;
    if (verdict.status != row->verdict || verdict.signal != signal ||
        verdict.exit_code != exit_code || !strstr(verdict.message, row->words)) {
        BHT_FAIL("row %zu: %s, signal %d, exit code %d, '%s'; must be %s, %d, %d, '%s'", number,
                 bh_status_name(verdict.status), verdict.signal, verdict.exit_code, verdict.message,
                 bh_status_name(row->verdict), signal, exit_code, row->words);
    }
    const bool victim =
        row->flags & INNOCENT || bh_status_classify(row->verdict) == BH_STATUS_CLASS_VICTIM;
    const bool late = row->kill == BHI_KILL_COMPILE && row->verdict == BH_COMPILE_FAILED;
    const bh_blame blame = victim ? BH_BLAME_NONE : late ? BH_BLAME_SUSPECTED : BH_BLAME_CERTAIN;
    if (verdict.blame != blame ||
        (bh_verdict_classify(&verdict) == BH_STATUS_CLASS_VICTIM) != victim) {
        BHT_FAIL("row %zu: '%s': blame %d, class %d", number, verdict.message, (int)verdict.blame,
                 (int)bh_verdict_classify(&verdict));
    }
    BHT_EQ(verdict.worker_pid, 4242);
    BHT_STR_EQ(verdict.device, "cpu:0");
    BHT_EQ(verdict.reason, row->kill == BHI_KILL_PROTOCOL          ? BH_REASON_DEVICE_TIME
                           : late                                  ? BH_REASON_COMPILE_DEADLINE
                           : row->verdict == BH_OUT_OF_HOST_MEMORY ? BH_REASON_MEMORY_LIMIT
                                                                   : BH_REASON_NONE);
    BHT_EQ(verdict.executed, compiles ? BH_EXECUTED_NO : BH_EXECUTED_UNKNOWN);
    /* The limit that it ran into, where there was one. */
    uint64_t limit = 0;
    if (verdict.status == BH_OUT_OF_HOST_MEMORY) {
        limit = LIMIT_MIB << 20;
    } else if (verdict.status == BH_DEADLINE) {
        limit = BH_FOREVER;
    } else if (late) {
        limit = puppet.stream->core.compile_deadline_ns;
    }
    BHT_TRUE(verdict.limit == limit);
    /* The host's log has the same words, unless this is how it was told to end. */
    if (closed) {
        BHT_STR_EQ(puppet.obituary.line, "");
    } else {
        char line[sizeof verdict.message + 16];
        snprintf(line, sizeof line, "stream one: %s", compiles ? "" : verdict.message);
        BHT_EQ(strncmp(puppet.obituary.line, line, strlen(line)), 0);
    }
}

TEST(a_death_in_mid_job) {
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        puppet_again();
        play(&rows[i], i);
    }
}

/* E13: somebody kills the worker while it compiles. Nothing has run, so the next worker does it. */
TEST(what_others_ended_while_it_compiled_runs_again) {
    bh_event *event = puppet_submit();
    for (int deaths = 0; deaths < 3; deaths++) {
        struct bhi_worker *worker = puppet_serving();
        BHT_EQ(worker->core.published, 1);
        puppet_begins(worker, 1);
        atomic_store(&puppet_side(worker)->header->compile_seq, 1);
        puppet_end_process(worker, CLD_KILLED, SIGKILL);
        bury(worker);
        BHT_STR_HAS(puppet.obituary.line, "was killed by SIGKILL (signal 9) from outside");
        BHT_EQ(bh_event_query(event), BH_EVENT_PENDING);
    }
    puppet_complete(puppet_serving(), 1);
    fx_expect(event, BH_OK);
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
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        worker->memory_limit = own[i];
        bh_event *event = begin(worker);
        refuse(worker, 1);
        puppet_killed(worker, SIGSEGV);
        const bh_verdict verdict = fx_verdict(event);
        BHT_EQ(verdict.status, BH_OUT_OF_HOST_MEMORY);
        BHT_EQ(verdict.limit, inherited ? UINT64_C(3) << 40 : own[i]);
        BHT_EQ(verdict.reason, inherited ? BH_REASON_ADDRESS_SPACE : BH_REASON_MEMORY_LIMIT);
        BHT_STR_HAS(verdict.message,
                    inherited ? "worker 4242 exceeded the 3145728 MiB of address space that the "
                                "host leaves it (raise ulimit -v)"
                              : "worker 4242 exceeded its memory limit of 64 MiB");
    }
#endif
}

/* -- what it had recorded ---------------------------------------------------------------------- */

/* Of four that it has, it had recorded two, at which nobody has looked: they are good (E11). It had
 * begun the third, which is lost; the fourth runs on the next worker (E13). */
TEST(what_it_had_recorded_is_good) {
    struct bhi_worker *worker = puppet_serving();
    bh_event *events[4];
    for (size_t i = 0; i < BHT_COUNT(events); i++) {
        events[i] = puppet_submit();
    }
    puppet_complete(worker, 2);
    puppet_begins(worker, 3);
    BHT_EQ(worker->core.harvested, 0);
    puppet_killed(worker, SIGSEGV);
    fx_expect(events[0], BH_OK);
    fx_expect(events[1], BH_OK);
    fx_expect(events[2], BH_WORKER_SIGNAL);
    BHT_EQ(bh_event_query(events[3]), BH_EVENT_PENDING);
    worker = puppet_serving();
    BHT_EQ(worker->core.published, 1);
    puppet_complete(worker, 1);
    BHT_EQ(bh_event_query(events[3]), BH_EVENT_READY);
}

/* A copy that had begun beside the first was let go (bhi_submission_let_go). It counts as not begun
 * when the worker dies, and nobody needs it any more. */
TEST(what_was_let_go_does_not_run_again) {
    struct bhi_worker *worker = puppet_serving();
    bh_event *first = puppet_submit(), *second = puppet_submit();
    puppet_begins(worker, 2);
    bhi_context_lock(puppet.context);
    bhi_submission_let_go(second->submission);
    bhi_context_pump_unlock(puppet.context);
    BHT_EQ(bh_event_query(second), BH_EVENT_PENDING);
    BHT_EQ(worker->core.life.kill, BHI_KILL_NONE);
    puppet_begins(worker, 1);
    puppet_killed(worker, SIGSEGV);
    fx_expect(first, BH_WORKER_SIGNAL);
    fx_expect(second, BH_CANCELLED);
}

/* -- what was refused before ------------------------------------------------------------------- */

/* An allocation that was refused for one that has its result since says nothing of a later death;
 * one that was refused after it does. */
TEST(an_old_refusal_is_no_cause) {
    for (int later = 0; later < 2; later++) {
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        bh_event *first = puppet_submit(), *second = puppet_submit();
        refuse(worker, 3);
        puppet_complete(worker, 1);
        BHT_EQ(bh_event_query(first), BH_EVENT_READY);
        puppet_begins(worker, 2);
        refuse(worker, 3 + (unsigned)later);
        puppet_killed(worker, SIGSEGV);
        BHT_EQ(fx_verdict(second).status, later ? BH_OUT_OF_HOST_MEMORY : BH_WORKER_SIGNAL);
    }
}

/* -- whose limit it was ------------------------------------------------------------------------ */

/* T2: a container's limit, or the machine's memory, may have been used up by others. Linux sends no other
 * signal for that. */
TEST(memory_that_others_used_up) {
    static const struct {
        bool own;
        int signal;
        bh_status status;
        bh_blame blame;
        const char *words;
    } ends[] = {
        {false, SIGKILL, BH_WORKER_SIGNAL, BH_BLAME_SUSPECTED, "had not reached its own limit"},
        {true, SIGKILL, BH_OUT_OF_HOST_MEMORY, BH_BLAME_CERTAIN, "its memory limit of 64 MiB"},
        {false, SIGTERM, BH_WORKER_SIGNAL, BH_BLAME_NONE, " from outside: a kernel cannot do that"},
    };
    for (size_t i = 0; i < BHT_COUNT(ends); i++) {
        const char *folder = bht_folder();
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        worker->memory_limit = LIMIT_MIB << 20;
        bht_put(ends[i].own ? "oom 1\noom_kill 1\n" : "oom 0\noom_kill 1\n",
                "%s/w%llu/memory.events", folder, (unsigned long long)worker->id);
        puppet.zygote->cgroup.version = 2;
        snprintf(puppet.zygote->cgroup.dir, sizeof puppet.zygote->cgroup.dir, "%s", folder);
        bh_event *event = begin(worker);
        puppet_killed(worker, ends[i].signal);
        puppet.zygote->cgroup.version = 0;
        const bh_verdict verdict = fx_verdict(event);
        BHT_EQ(verdict.status, ends[i].status);
        BHT_EQ(verdict.blame, ends[i].blame);
        BHT_STR_HAS(verdict.message, ends[i].words);
    }
}

/* T2: without a cgroup nobody says why Linux killed a worker. So if it has killed for memory since
 * the worker was started, or if nobody can tell, that may have been why. */
static const struct without {
    uint64_t before, after; /* kills for memory on this machine */
    int signal;
    bh_blame blame;
    const char *words;
    bool has_cgroup; /* after all, which counts no kill */
} withouts[] = {
    {3, 3, SIGKILL, BH_BLAME_NONE, " from outside: a kernel cannot do that", false},
    {3, 4, SIGKILL, BH_BLAME_SUSPECTED, "was out of memory", false},
    {3, 4, SIGTERM, BH_BLAME_NONE, " from outside: a kernel cannot do that", false},
    {UINT64_MAX, UINT64_MAX, SIGTERM, BH_BLAME_NONE, " from outside: a kernel cannot do that",
     false},
    {UINT64_MAX, UINT64_MAX, SIGKILL, BH_BLAME_SUSPECTED, "by Linux because memory ran out", false},
    {UINT64_MAX - 1, UINT64_MAX, SIGKILL, BH_BLAME_SUSPECTED, "because memory ran out", false},
    {3, 4, SIGKILL, BH_BLAME_NONE, " from outside: a kernel cannot do that", true},
};

TEST(memory_without_a_cgroup) {
    for (size_t i = 0; i < BHT_COUNT(withouts); i++) {
        const struct without *row = &withouts[i];
        oom_kills = row->before;
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        bh_event *event = begin(worker);
        oom_kills = row->after;
        puppet_end_process(worker, CLD_KILLED, row->signal);
        if (row->has_cgroup) {
            bury(worker);
        } else {
            puppet_bury(worker);
        }
        const bh_verdict verdict = fx_verdict(event);
        BHT_EQ(verdict.status, BH_WORKER_SIGNAL);
        BHT_EQ(verdict.blame, row->blame);
        BHT_STR_HAS(verdict.message, row->words);
    }
}

/* Nor can a kernel end its worker's time, which the host limits. */
TEST(the_host_limits_its_processor_time) {
    const struct rlimit limit = {1000, 1000};
    static const uint64_t used_s[] = {0, 1000, 999};
    BHT_EQ(setrlimit(RLIMIT_CPU, &limit), 0);
    for (size_t i = 0; i < BHT_COUNT(used_s); i++) {
        puppet_again();
        struct bhi_worker *worker = puppet_serving();
        bh_event *event = begin(worker);
        worker->core.life.limited_ns = used_s[i] * UINT64_C(1000000000);
        puppet_killed(worker, SIGKILL);
        const bh_verdict verdict = fx_verdict(event);
        BHT_EQ(verdict.blame, BH_BLAME_NONE);
        BHT_STR_HAS(verdict.message, i < 2 ? "the host allows a process 1000 s of processor time"
                                           : " from outside: a kernel cannot do that");
    }
}

/* -- while it starts --------------------------------------------------------------------------- */

static const struct start {
    enum bhi_kill kill;
    int code_kind, status;
    enum bhi_step step;
    uint32_t step_status;
    int error;
    const char *text;
    bool final; /* another one would not start either */
    const char *words;
} starts[] = {
    /* It has said what the machine lacks, and exited. */
    {0, CLD_EXITED, 3, BHI_STEP_DEVICE, BH_NO_DEVICE, 0, "no such device", true, "no such device"},
    {0, CLD_EXITED, 3, BHI_STEP_SANDBOX, BH_UNSUPPORTED, ENOSYS, "landlock: not there", true,
     "landlock: not there"},
    {0, CLD_EXITED, 3, BHI_STEP_SANDBOX, BH_UNSUPPORTED, -7, /* no errno */
     "landlock: not there", false, "exited with code 3 while starting (step sandbox)"},
    /* A status that no start ends with, or that says nothing of the machine. */
    {0, CLD_EXITED, 3, BHI_STEP_WARM_UP, 123456, 0, "whatever", false,
     "exited with code 3 while starting (step warm-up): whatever"},
    {0, CLD_EXITED, 3, BHI_STEP_WARM_UP, BH_VULKAN, 0, "vkQueueSubmit", false,
     "while starting (step warm-up): vkQueueSubmit"},
    /* It died in the middle of it, whatever it has written. */
    {0, CLD_KILLED, SIGSEGV, BHI_STEP_DEVICE, BH_NO_DEVICE, 0, "no such device", false,
     "was killed by SIGSEGV (signal 11) while starting (step device)"},
    {0, CLD_KILLED, SIGSYS, (enum bhi_step)99, 0, 0, NULL, false, "while starting (step unknown)"},
    {0, CLD_KILLED, SIGABRT, BHI_STEP_DEVICE, 0, 0, NULL, false, "; it could not start a thread"},
    /* It took too long. */
    {BHI_KILL_START, CLD_KILLED, SIGKILL, BHI_STEP_DEVICE, 0, 0, NULL, false, "why it was killed"},
    /* It went with its zygote. */
    {0, 0, 0, BHI_STEP_FORKED, 0, 0, NULL, false,
     "died with its zygote while starting (step forked)"},
};

TEST(a_death_while_it_starts) {
    for (size_t i = 0; i < BHT_COUNT(starts); i++) {
        const struct start *start = &starts[i];
        puppet_again();
        struct bhi_worker *worker = puppet_worker(BHI_HELD);
        struct bhi_progress *side = puppet_side(worker);
        bhi_progress_step(side, start->step);
        if (start->text) {
            bhi_progress_step_failed(side, &(struct bhi_why){.status = start->step_status,
                                                             .sys_errno = start->error,
                                                             .text = start->text});
        }
        const bool threads = strstr(start->words, "a thread"); /* were refused */
        atomic_store(&side->header->refused_threads, threads);
        puppet_bind(worker, puppet.stream);
        bhi_context_lock(puppet.context);
        struct bhi_pool_need need;
        puppet.stream->runs_on.known = true;
        bhi_pool_give(puppet_block(true, &need));
        if (start->kill != BHI_KILL_NONE) {
            bhi_core_worker_kill(&worker->core, start->kill, 0, "why it was killed");
        }
        bhi_context_pump_unlock(puppet.context);
        puppet_end_process(worker, start->code_kind, start->status);
        puppet.zygote->state = start->code_kind ? BHI_ZYGOTE_READY : BHI_ZYGOTE_LOST;
        puppet_bury(worker);
        const struct bhi_core_stream *stream = &puppet.stream->core;
        const bh_status why = start->final ? (bh_status)start->step_status : BH_UNAVAILABLE;
        const int error = start->final ? start->error : threads ? EAGAIN : 0;
        if (stream->trouble.status != why || stream->trouble.sys_errno != error ||
            !strstr(stream->trouble.message, start->words)) {
            BHT_FAIL("row %zu: %s, errno %d, '%s'; must be %s, %d, '%s'", i,
                     bh_status_name(stream->trouble.status), stream->trouble.sys_errno,
                     stream->trouble.message, bh_status_name(why), error, start->words);
        }
        BHT_EQ(stream->state == BHI_STREAM_UNAVAILABLE, start->final);
        BHT_EQ(puppet.context->device_pool->stats.blocks, !start->final); /* D5 */
        BHT_STR_HAS(puppet.obituary.line, start->words);
        BHT_EQ(puppet.obituary.level, start->final ? BH_LOG_ERROR : BH_LOG_WARNING);
        BHT_EQ(puppet.context->counts.deaths[why], 1);
    }
}

/* One that goes because it was told to has no obituary. */
TEST(one_that_is_retired_is_not_mourned) {
    struct bhi_worker *worker = puppet_serving();
    bhi_context_lock(puppet.context);
    bhi_core_worker_kill(&worker->core, BHI_KILL_RETIRED, 0,
                         "it was replaced: the next submission needs a fresh worker");
    bhi_context_pump_unlock(puppet.context);
    puppet_killed(worker, SIGKILL);
    BHT_STR_EQ(puppet.obituary.line, "");
    BHT_EQ(puppet.stream->core.restart.losses, 0);
    BHT_EQ(puppet.context->counts.deaths[BH_OK], 1); /* nor has anything killed it */
}

TEST(an_obituary_says_what_had_no_stream) {
    static const struct {
        enum bhi_worker_kind kind;
        const char *words;
    } kinds[] = {{BHI_WORKER_DEVICE, "a spare: worker 4242 "},
                 {BHI_WORKER_SENTINEL, "a sentinel: worker 4242 "}};
    for (size_t i = 0; i < BHT_COUNT(kinds); i++) {
        puppet_again();
        struct bhi_worker *worker = puppet_worker(BHI_RUNNING);
        worker->kind = kinds[i].kind;
        puppet_killed(worker, SIGSEGV);
        BHT_EQ(strncmp(puppet.obituary.line, kinds[i].words, strlen(kinds[i].words)), 0);
    }
}

/* A zygote is kept for its workers, whosever worker is the last in the list. */
TEST(a_zygote_is_buried_after_its_workers) {
    struct bhi_zygote other = {.state = BHI_ZYGOTE_READY};
    struct bhi_worker *its = puppet_worker(BHI_RUNNING), *last = puppet_worker(BHI_RUNNING);
    last->zygote = &other;
    puppet.zygote->state = BHI_ZYGOTE_LOST;
    puppet.zygote->gone = puppet.zygote->warden_gone = true;
    bhi_burial_zygotes(puppet.context);
    BHT_EQ(puppet.context->counts.zygotes_lost, 0);
    BHT_TRUE(its->zygote == puppet.zygote && !bhi_list_empty(&puppet.zygote->link));
    last->zygote = puppet.zygote;
    puppet.zygote->state = BHI_ZYGOTE_READY;
    puppet.zygote->gone = puppet.zygote->warden_gone = false;
}

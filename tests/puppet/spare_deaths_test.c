/* What a spare costs that dies of what it was told. */
#include "../hostile/wrap.h"
#include "spares_scene.h"
#include "supervisor/context/context.h"
#include "supervisor/kernel/death_records.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/kernel/usage.h"
#include "supervisor/reactor/assignment.h"
#include "supervisor/reactor/lessons.h"
#include "supervisor/worker/proc_status.h"

static bool stopped; /* a spare that is about to be killed */

WRAP(bool, bhi_proc_is_stopped, const struct bhi_proc_place *place) {
    (void)place;
    return stopped;
}

static const struct bhi_death_record *record_of(int kernel, const char *tenant) {
    return bhi_death_records_held(puppet.context->death_records, tenant,
                                  spares.kernels[kernel]->body->hash, bhi_now_ns());
}

static bool on_trial(int kernel) {
    return bhi_death_records_on_trial(puppet.context->death_records, "",
                                      spares.kernels[kernel]->body->hash, bhi_now_ns());
}

static struct bhi_used_kernel *used(int kernel) {
    struct bhi_usage *usage = bhi_usage_find(puppet.context->usages, "", "");
    BHT_TRUE(usage);
    usage->quiet_until_ns = 0; /* as if a while had passed */
    return bhi_usage_kernel(usage, spares_id_of(kernel));
}

/* A spare dies while it compiles kernel 0, |before| which it has compiled kernel 1 or not. */
static void die(int code_kind, int status, bool before) {
    struct bhi_worker *spare = puppet_worker(BHI_RUNNING);
    spares_use("", 0, 5);
    if (before) {
        spares_use("", 1, 9);
    }
    spares_turn_due();
    if (before) {
        BHT_EQ(spare->lessons.kernel, spares_id_of(1));
        BHT_TRUE(!spares_answer(spare, spares_id_of(1), BH_OK));
        spares_turn();
    }
    BHT_EQ(spare->lessons.kernel, spares_id_of(0));
    puppet_end_process(spare, code_kind, status);
    puppet_bury(spare);
    BHT_TRUE(puppet.context->spares_due); /* others have something to learn */
}

/* K5. As for a launch that it was compiled for. */
TEST(a_crash_is_charged) {
    die(CLD_DUMPED, SIGSEGV, false);
    const struct bhi_death_record *record = record_of(0, "");
    BHT_TRUE(record);
    BHT_TRUE(record->uncompilable);
    BHT_EQ(record->cause, BH_COMPILE_FAILED);
    BHT_EQ(record->signal, SIGSEGV);
    BHT_STR_EQ(record->name, "a");
    BHT_STR_HAS(record->message, "a spare worker died while compiling it");
    BHT_TRUE(!record_of(0, "bob"));
    BHT_TRUE(used(0)->barred);
    BHT_STR_HAS(puppet.obituary.line,
                "a spare: worker 4242 died while it compiled kernel \"a\" before");
    /* No other spare is told. */
    struct bhi_worker *next = puppet_worker(BHI_RUNNING);
    spares_use("", 0, 9);
    spares_turn_due();
    BHT_EQ(next->lessons.kernel, 0);
    /* A launch says why it is refused. */
    const bh_verdict verdict = fx_verdict(spares_launch(puppet.stream, 0, false));
    BHT_EQ(verdict.status, BH_COMPILE_FAILED);
    BHT_STR_HAS(verdict.message, "did not survive it in a spare worker");
}

/* T2. What it had compiled before may be to blame. */
TEST(a_crash_after_another_kernel_is_suspected) {
    die(CLD_DUMPED, SIGSEGV, true);
    BHT_TRUE(!record_of(0, "") && !record_of(1, ""));
    BHT_TRUE(on_trial(0) && !on_trial(1));
    BHT_TRUE(used(0)->barred && !used(1)->barred);
}

/* T2, K5. So is a system call that the sandbox forbids: as a death, and not for the compile. */
TEST(a_forbidden_system_call_is_charged) {
    for (int before = 0; before < 2; before++) {
        puppet_again();
        puppet.context->death_records->most_deaths = 1;
        die(CLD_KILLED, SIGSYS, before);
        const struct bhi_death_record *record = record_of(0, "");
        BHT_EQ(!record, before);
        BHT_TRUE(before || (record->cause == BH_SECCOMP && !record->uncompilable));
        BHT_TRUE(on_trial(0) && used(0)->barred);
        if (!before) {
            fx_expect(spares_launch(puppet.stream, 0, false), BH_QUARANTINED);
        }
    }
}

/* T2. It was killed for its deadline, which a busy machine may have caused; nobody is blamed if its
 * process had been stopped. */
TEST(a_late_compile_is_suspected) {
    for (int i = 0; i < 2; i++) {
        stopped = i;
        puppet_again();
        struct bhi_worker *spare = puppet_worker(BHI_RUNNING);
        spares_use("", 0, 5);
        spares_turn_due();
        BHT_EQ(spare->lessons.kernel, spares_id_of(0));
        bhi_context_lock(puppet.context);
        spare->core.pid = 0; /* the processor time is unknown, and stays what it is */
        spare->core.compile.used_ns = 5;
        spare->lessons.until_ns = spare->lessons.since_ns + 5; /* its stream's compile deadline */
        BHT_EQ(bhi_lesson_check_deadline(spare, spare->lessons.until_ns), BH_FOREVER);
        bhi_context_pump_unlock(puppet.context);
        puppet_killed(spare, SIGKILL);
        BHT_STR_HAS(puppet.obituary.line, "before it is needed did not end within ");
        BHT_TRUE(!record_of(0, ""));
        BHT_EQ(on_trial(0), !stopped);
        BHT_EQ(used(0)->barred, !stopped);
    }
}

/* A kill from outside proves nothing. The kernel has to be used anew. There is no third time. */
TEST(a_kill_is_nobodys_fault) {
    die(CLD_KILLED, SIGKILL, false);
    BHT_TRUE(!record_of(0, "") && !on_trial(0));
    BHT_EQ(used(0)->uses, 0);
    struct bhi_worker *next = puppet_worker(BHI_RUNNING);
    spares_turn_due();
    BHT_EQ(next->lessons.kernel, 0);
    puppet_bury(next);
    die(CLD_KILLED, SIGKILL, false);
    BHT_TRUE(!record_of(0, "") && used(0)->barred);
}

/* A spare that ends with its zygote or its context, of which nobody says how it ended, or that is not
 * needed any more, says nothing of its lesson. */
TEST(some_ends_cost_nothing) {
    enum { LOST, CLOSED, UNKNOWN, RETIRED, ENDS };
    for (int how = 0; how < ENDS; how++) {
        puppet_again();
        struct bhi_worker *spare = puppet_worker(BHI_RUNNING);
        spares_use("", 0, 5);
        spares_turn();
        BHT_EQ(spare->lessons.kernel, spares_id_of(0));
        bhi_context_lock(puppet.context);
        if (how == RETIRED) {
            bhi_core_worker_kill(&spare->core, BHI_KILL_RETIRED, 0, "it is to go");
        }
        bhi_context_pump_unlock(puppet.context);
        puppet_end_process(spare, how == UNKNOWN ? 0 : CLD_KILLED, SIGSEGV);
        puppet.zygote->state = how == LOST ? BHI_ZYGOTE_LOST : BHI_ZYGOTE_STARTING;
        puppet.context->closed = how == CLOSED;
        puppet_bury(spare);
        puppet.context->closed = false;
        BHT_EQ(used(0)->uses, 5);
        BHT_TRUE(!used(0)->deaths && !used(0)->barred);
    }
}

/* After such a death no spare is told anything for a while: new spares stay alive meanwhile. */
TEST(a_death_makes_a_pause) {
    spares_use("", 1, 2);
    die(CLD_DUMPED, SIGSEGV, false);
    struct bhi_worker *next = puppet_worker(BHI_RUNNING);
    struct bhi_usage *usage = bhi_usage_find(puppet.context->usages, "", "");
    BHT_TRUE(usage->quiet_until_ns);
    usage->quiet_until_ns = bhi_now_ns() + 3600 * UINT64_C(1000000000); /* this one is not over */
    bhi_context_lock(puppet.context);
    puppet.context->spares_due = true;
    bhi_context_unlock(puppet.context);
    puppet.context->settings.spares = 2;
    struct bhi_worker *last = puppet_worker(BHI_RUNNING); /* for which there is nothing to learn */
    last->lessons.adopted = true;
    strcpy(last->lessons.tenant, "bob");
    BHT_EQ(bhi_assignment_turn(puppet.context), usage->quiet_until_ns);
    BHT_TRUE(!next->lessons.kernel && !next->lessons.adopted);
    usage->quiet_until_ns = 0;
    spares_turn();
    BHT_EQ(next->lessons.kernel, spares_id_of(1));
}

/* The worker says that it compiles a kernel, which it |has_run| before or not. */
static bh_event *begin_compile(bool has_run) {
    puppet_again();
    if (has_run) {
        bh_event *event = spares_launch(puppet.stream, 0, false);
        puppet_complete(spares.serving, 1);
        fx_expect(event, BH_OK);
    }
    bh_event *event = spares_launch(puppet.stream, 0, false);
    const uint64_t seq = spares.serving->core.published;
    puppet_begins(spares.serving, seq);
    atomic_store(&puppet_side(spares.serving)->header->compile_seq, seq);
    return event;
}

/* T6. A worker claims at its death to compile what it has run before. Else a kernel that somebody's
 * signal has ended would run again, as one that had not begun. */
TEST(who_has_run_it_does_not_compile_it) {
    for (int has_run = 0; has_run < 2; has_run++) {
        bh_event *event = begin_compile(has_run);
        puppet_killed(spares.serving, SIGKILL);
        BHT_EQ(bh_event_query(event) == BH_EVENT_PENDING, !has_run);
        if (has_run) {
            fx_expect(event, BH_PROTOCOL);
            BHT_EQ(fx_verdict(event).executed, BH_EXECUTED_UNKNOWN);
        }
    }
}

/* T6. Nor may it claim so when it is killed for its time: the kernel may have written. */
TEST(who_is_killed_for_its_time_does_not_compile_what_it_has_run) {
    for (int has_run = 0; has_run < 2; has_run++) {
        bh_event *event = begin_compile(has_run);
        bhi_context_lock(puppet.context);
        bhi_core_worker_kill(&spares.serving->core, BHI_KILL_DEADLINE, bh_event_id(event), "late");
        bhi_context_pump_unlock(puppet.context);
        puppet_killed(spares.serving, SIGKILL);
        fx_expect(event, BH_DEADLINE);
        BHT_EQ(fx_verdict(event).executed, has_run ? BH_EXECUTED_UNKNOWN : BH_EXECUTED_NO);
    }
}

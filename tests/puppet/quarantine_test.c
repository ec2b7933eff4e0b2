/* K5. What each end of a submission does to what is remembered of its kernels, and what a launch of
 * one that is held is told. */
#include "../hostile/wrap.h"
#include "spares_scene.h"
#include "supervisor/context/context.h"
#include "supervisor/event/event.h"
#include "supervisor/kernel/body.h"
#include "supervisor/kernel/death_records.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/kernel/quarantine.h"
#include "supervisor/kernel/usage.h"

#include <stdio.h>

#define SECOND UINT64_C(1000000000)

static uint64_t now_ns; /* 0: the time is the machine's */

WRAP(uint64_t, bhi_now_ns, void) {
    return now_ns ? now_ns : __real_bhi_now_ns();
}

static struct bhi_death_records *records(void) {
    return puppet.context->death_records;
}

static bh_verdict verdict_of(int kernel, bh_status status, bh_blame blame) {
    bh_verdict verdict = {.status = status, .blame = blame, .event = 7, .message = "it died"};
    memcpy(verdict.kernel_hash, spares.kernels[kernel]->body->hash, sizeof verdict.kernel_hash);
    snprintf(verdict.kernel_name, sizeof verdict.kernel_name, "%s", spares.kernels[kernel]->name);
    return verdict;
}

/* What is remembered of kernels "a" and "b": of each its deaths, its deadlines, and whether it is on
 * Trial, its compiler has Died, and it is Held. */
static const char *remembered(const char *tenant) {
    static char text[64];
    size_t used = 0;
    text[0] = 0;
    BHI_LIST_FOR(const struct bhi_death_record, record, &records()->ages, age) {
        for (int i = 0; i < 2 && strcmp(record->tenant, tenant) == 0; i++) {
            if (memcmp(record->hash, spares.kernels[i]->body->hash, 32) == 0) {
                used += (size_t)snprintf(
                    text + used, sizeof text - used, "%s%c%u+%u%s%s%s", used ? " " : "", 'a' + i,
                    record->deaths, (unsigned)record->deadlines, record->trial ? "T" : "",
                    record->uncompilable ? "D" : "",
                    bhi_death_records_held(records(), tenant, record->hash, now_ns) ? "H" : "");
            }
        }
    }
    return text;
}

/* -- what an end does -------------------------------------------------------------------------- */

enum {
    DEAD = 1 << 0,     /* its worker is buried */
    MIXED = 1 << 1,    /* it had been given other code */
    COMPILES = 1 << 2, /* no kernel ran */
    SOURCE = 1 << 3,   /* it compiled one, called "a" here */
    NOWHERE = 1 << 4,  /* no worker had it */
};
#define CERTAIN   BH_BLAME_CERTAIN
#define SUSPECTED BH_BLAME_SUSPECTED
#define NONE      BH_BLAME_NONE

/* The submission launches kernels "a" and "b"; its verdict names "a". Each kernel is first on trial,
 * or has passed a deadline, or died. */
static const struct {
    bh_status status;
    bh_blame blame;
    unsigned flags;
    const char *trial, *late, *died; /* then this is remembered */
} ends[] = {
    /* Its death counts, and only that of a worker that is dead (the culprit's is). */
    {BH_WORKER_SIGNAL, CERTAIN, DEAD, "b0+0T a1+0T", "b0+1 a1+1T", "b1+0T a2+0TH"},
    {BH_WORKER_EXIT, CERTAIN, DEAD, "b0+0T a1+0T", "b0+1 a1+1T", "b1+0T a2+0TH"},
    {BH_SECCOMP, CERTAIN, DEAD, "b0+0T a1+0T", "b0+1 a1+1T", "b1+0T a2+0TH"},
    {BH_OUT_OF_HOST_MEMORY, CERTAIN, DEAD, "b0+0T a1+0T", "b0+1 a1+1T", "b1+0T a2+0TH"},
    {BH_DEVICE_LOST, CERTAIN, DEAD, "a0+0T b0+0T", "a0+1 b0+1", "a1+0T b1+0T"},
    {BH_WORKER_LOST, CERTAIN, DEAD, "a0+0T b0+0T", "a0+1 b0+1", "a1+0T b1+0T"},
    {BH_PROTOCOL, CERTAIN, DEAD, "a0+0T b0+0T", "a0+1 b0+1", "a1+0T b1+0T"},
    {BH_WORKER_SIGNAL, CERTAIN, NOWHERE, "a0+0T b0+0T", "a0+1 b0+1", "a1+0T b1+0T"},
    {BH_WORKER_SIGNAL, NONE, DEAD, "a0+0T b0+0T", "a0+1 b0+1", "a1+0T b1+0T"},
    /* One is enough where the driver's compiler has died. */
    {BH_COMPILE_FAILED, CERTAIN, DEAD, "b0+0T a1+0TDH", "b0+1 a1+1TDH", "b1+0T a2+0TDH"},
    {BH_COMPILE_FAILED, CERTAIN, COMPILES, "a0+0T b0+0T", "a0+1 b0+1", "a1+0T b1+0T"},
    /* T2: a suspicion is no death, and costs a trial. */
    {BH_WORKER_SIGNAL, SUSPECTED, DEAD, "b0+0T a0+0T", "a0+1T b0+1", "a1+0T b1+0T"},
    {BH_COMPILE_FAILED, SUSPECTED, DEAD, "b0+0T a0+0T", "a0+1T b0+1", "a1+0T b1+0T"},
    /* Deadlines count whether or not the worker lives. */
    {BH_DEADLINE, CERTAIN, DEAD, "b0+0T a1+1T", "b0+1 a1+2TH", "b1+0T a2+1TH"},
    {BH_DEADLINE, CERTAIN, MIXED, "b0+0T a0+1T", "b0+1 a0+2H", "b1+0T a1+1T"},
    {BH_DEADLINE, CERTAIN, 0, "b0+0T a0+1", "b0+1 a0+2H", "b1+0T a1+1"},
    {BH_DEADLINE, CERTAIN, COMPILES, "a0+0T b0+0T", "a0+1 b0+1", "a1+0T b1+0T"},
    {BH_DEADLINE, SUSPECTED, 0, "b0+0T a0+0T", "a0+1T b0+1", "a1+0T b1+0T"},
    /* T2: what has ended by itself, on a worker that had no other code and lives, ends the trial. */
    {BH_INVALID_KERNEL, NONE, 0, "b0+0T", "a0+1 b0+1", "a1+0 b1+0T"},
    {BH_INVALID_KERNEL, NONE, MIXED, "a0+0T b0+0T", "a0+1 b0+1", "a1+0T b1+0T"},
    {BH_INVALID_KERNEL, NONE, COMPILES, "a0+0T b0+0T", "a0+1 b0+1", "a1+0T b1+0T"},
    {BH_CANCELLED, NONE, 0, "a0+0T b0+0T", "a0+1 b0+1", "a1+0T b1+0T"},
    /* READY: all of its kernels were in time, and none killed anything. */
    {BH_OK, NONE, 0, "", "", "a1+0 b1+0"},
    {BH_OK, NONE, MIXED, "a0+0T b0+0T", "", "a1+0T b1+0T"},
    {BH_OK, NONE, COMPILES, "a0+0T b0+0T", "a0+1 b0+1", "a1+0T b1+0T"},
    {BH_OK, NONE, DEAD, "a0+0T b0+0T", "", "a1+0T b1+0T"},
    /* A compiler that is only slow may be so because the machine is; and it runs no kernel. */
    {BH_WORKER_SIGNAL, CERTAIN, SOURCE | DEAD, "b0+0T a1+0TDH", "b0+1 a1+1TDH", "b1+0T a2+0TDH"},
    {BH_DEADLINE, CERTAIN, SOURCE | DEAD, "a0+0T b0+0T", "a0+1 b0+1", "a1+0T b1+0T"},
    {BH_WORKER_SIGNAL, SUSPECTED, SOURCE | DEAD, "a0+0T b0+0T", "a0+1 b0+1", "a1+0T b1+0T"},
    {BH_COMPILE_FAILED, CERTAIN, SOURCE, "a0+0T b0+0T", "a0+1 b0+1", "a1+0T b1+0T"},
};

enum before { TRIAL, LATE, DIED, BEFORES };

static void remember(const char *tenant, enum before before) {
    bhi_death_records_forget(records(), tenant, NULL);
    for (int i = 0; i < 2; i++) {
        const bh_verdict verdict = verdict_of(i, BH_WORKER_EXIT, CERTAIN);
        if (before == TRIAL) {
            bhi_death_records_try(records(), tenant, &verdict, now_ns);
        } else if (before == LATE) {
            BHT_TRUE(!bhi_death_records_late(records(), tenant, &verdict, now_ns));
        } else {
            BHT_TRUE(!bhi_death_records_note(records(), tenant, &verdict, false, now_ns));
        }
    }
}

/* A submission of |stream| that launches kernels "a" and "b", behind a fill. */
static bh_event *launch_both(bh_stream *stream) {
    return fx_commands(
        stream,
        (bh_command[]){{.type = BH_COMMAND_FILL, .fill = {.dst = puppet.buffer, .size = 4096}},
                       fx_dispatch(spares.kernels[1], NULL, 0),
                       fx_dispatch(spares.kernels[0], NULL, 0)},
        3);
}

static void begin(uint32_t most_deaths, uint64_t keep_ns) {
    now_ns = now_ns ? now_ns : __real_bhi_now_ns();
    records()->most_deaths = most_deaths;
    records()->most_deadlines = 2;
    records()->keep_ns = keep_ns;
}

TEST(k5_what_an_end_does) {
    static struct bhi_named_source source = {.name = "a"};
    bh_stream *stream = puppet_stream("s", "t");
    struct bhi_worker *worker = puppet_worker(BHI_RUNNING);
    puppet_bind(worker, stream);
    struct bhi_submission *submission = launch_both(stream)->submission;
    begin(2, BH_FOREVER);
    remember("", DIED);
    for (size_t i = 0; i < BEFORES * BHT_COUNT(ends); i++) {
        const enum before before = (enum before)(i % BEFORES);
        const unsigned flags = ends[i / BEFORES].flags;
        const char *then[] = {ends[i / BEFORES].trial, ends[i / BEFORES].late,
                              ends[i / BEFORES].died};
        const bh_verdict verdict = verdict_of(0, ends[i / BEFORES].status, ends[i / BEFORES].blame);
        remember("t", before);
        worker->core.life.state = flags & DEAD ? BHI_BURIED : BHI_RUNNING;
        worker->core.past = (struct bhi_past){.code = submission->code, .mixed = flags & MIXED};
        submission->runs_kernel = !(flags & (COMPILES | SOURCE));
        bhi_payload_of(submission)->source = flags & SOURCE ? &source : NULL;
        submission->worker = flags & NOWHERE ? NULL : &worker->core;
        bhi_context_lock(puppet.context);
        bhi_quarantine_note(submission, &verdict);
        bhi_context_unlock(puppet.context);
        if (strcmp(remembered("t"), then[before]) != 0) {
            BHT_FAIL("%s, blame %d, flags %x, before %d: %s; must be %s",
                     bh_status_name(verdict.status), (int)verdict.blame, flags, (int)before,
                     remembered("t"), then[before]);
        }
        BHT_STR_EQ(remembered(""), "a1+0T b1+0T"); /* another tenant's are nothing to it */
    }
    worker->core.life.state = BHI_RUNNING;
    submission->worker = &worker->core;
    bhi_payload_of(submission)->source = NULL;
}

/* What was lost with a device is one death, whatever else of the worker's ends with it. */
TEST(k5_a_lost_device_is_one_death) {
    struct bhi_submission *submissions[] = {launch_both(puppet.stream)->submission,
                                            launch_both(puppet.stream)->submission};
    begin(3, BH_FOREVER);
    for (enum bhi_loss loss = BHI_LOSS_NONE; loss < BHI_LOSS_BLAMED; loss++) {
        const bh_verdict verdict =
            verdict_of(0, loss == BHI_LOSS_NONE ? BH_DEVICE_LOST : BH_DEVICE_FAULT, CERTAIN);
        spares.serving->core.life.loss = loss;
        for (int i = 0; i < 2; i++) {
            bhi_quarantine_note(submissions[i], &verdict);
            BHT_STR_EQ(remembered(""), loss == BHI_LOSS_NONE ? "a1+0T" : "a2+0T");
            BHT_EQ(spares.serving->core.life.loss, BHI_LOSS_BLAMED);
        }
    }
}

/* T2: one that launches a suspect gets a worker of its own, be it the first kernel or the last. */
TEST(t2_which_launch_is_a_trial) {
    const struct bhi_submission *submission = launch_both(puppet.stream)->submission;
    begin(1, BH_FOREVER);
    BHT_TRUE(!bhi_quarantine_tries(submission));
    for (int kernel = 0; kernel < 3; kernel++) {
        const bh_verdict verdict = verdict_of(kernel, BH_WORKER_EXIT, SUSPECTED);
        bhi_death_records_try(records(), "", &verdict, now_ns);
        BHT_EQ(bhi_quarantine_tries(submission), kernel < 2);
        bhi_death_records_forget(records(), "", NULL);
        bhi_death_records_try(records(), "other", &verdict, now_ns);
        BHT_TRUE(!bhi_quarantine_tries(submission));
    }
}

/* -- what is said of it ------------------------------------------------------------------------ */

static char logged[256];

static void hear(bh_log_level level, const char *line, void *user) {
    (void)user;
    BHT_EQ(level, BH_LOG_WARNING);
    BHT_STR_EQ(logged, "");
    snprintf(logged, sizeof logged, "%s", line);
}

enum of { DEATHS, A_DEATH, DEADLINES, COMPILER, OF_SOURCE, IN_SPARE };
#define RELEASE "; bh_quarantine_release ends it earlier"

static const struct {
    enum of of;
    uint64_t keep_ns, passed_ns; /* since then */
    const char *line, *refusal;
} words[] = {
    {DEATHS, 10 * SECOND, 0,
     "kernel \"a\" of tenant \"t\" is quarantined after event 7; this expires in 10 s",
     "kernel \"a\" is quarantined: it has killed 2 workers, the last one at event 7 (it died); "
     "this "
     "expires in 10 s" RELEASE},
    {A_DEATH, 10 * SECOND, SECOND + 1,
     "kernel \"a\" of tenant \"t\" is quarantined after event 7; this expires in 10 s",
     "kernel \"a\" is quarantined: it has killed 1 worker, the last one at event 7 (it died); this "
     "expires in 9 s" RELEASE},
    {DEADLINES, 10 * SECOND, SECOND,
     "kernel \"a\" of tenant \"t\" is quarantined after event 7; this expires in 10 s",
     "kernel \"a\" is quarantined: its last 2 launches have passed their deadline, the last one at "
     "event 7 (it died); this expires in 9 s" RELEASE},
    {COMPILER, 10 * SECOND, 10 * SECOND - 1,
     "kernel \"a\" of tenant \"t\" is not compiled again after event 7; this expires in 10 s",
     "kernel \"a\" is not compiled again: the driver's compiler did not survive it at event 7 (it "
     "died); this expires in 1 s" RELEASE},
    {OF_SOURCE, BH_FOREVER, SECOND,
     "source \"a\" of tenant \"t\" is not compiled again after event 7; this expires never",
     "source \"of it\" is not compiled again: its compiler did not survive it at event 7 (it "
     "died); this expires never" RELEASE},
    {IN_SPARE, BH_FOREVER, SECOND,
     "kernel \"a\" of tenant \"t\" is not compiled again in a spare worker; this expires never",
     "kernel \"a\" is not compiled again: the driver's compiler did not survive it in a spare "
     "worker "
     "(it died); this expires never" RELEASE},
};

/* The one that is held is the last of what it launches. */
static void refuse(size_t i, bh_stream *stream, struct bhi_submission *submission) {
    static struct bhi_named_source source = {.name = "of it"};
    struct bhi_payload *payload = bhi_payload_of(submission);
    const enum of of = words[i].of;
    const bool compile = of >= COMPILER;
    struct bhi_outcome out;
    memcpy(source.hash, spares.kernels[0]->body->hash, sizeof source.hash);
    payload->source = of == OF_SOURCE ? &source : NULL;
    payload->kernel_count = of == OF_SOURCE ? 0 : 2;
    BHT_TRUE(bhi_quarantine_refuse(submission, &out));
    BHT_STR_EQ(out.message, words[i].refusal);
    const struct bhi_outcome must = {.status = compile ? BH_COMPILE_FAILED : BH_QUARANTINED,
                                     .reason = compile ? BH_REASON_NOT_AGAIN : BH_REASON_NONE,
                                     .subject = compile ? BH_SUBJECT_KERNEL : BH_SUBJECT_NONE,
                                     .executed = BH_EXECUTED_NO,
                                     .blame = BH_BLAME_CERTAIN,
                                     .exit_code = -1,
                                     .command_index = of == OF_SOURCE ? BH_NO_COMMAND : 2,
                                     .origin = of == IN_SPARE ? 0 : 7,
                                     .ended_ns = now_ns,
                                     .message = puppet.context->refusal};
    BHT_MEM_EQ(&out, &must, sizeof must);
    payload->source = NULL;
    payload->kernel_count = 2;
    if (of != OF_SOURCE) {
        BHT_EQ(fx_verdict(launch_both(stream)).status, must.status); /* the core asks, too */
    }
}

TEST(k5_what_is_said_of_it) {
    for (size_t i = 0; i < BHT_COUNT(words); i++) {
        const enum of of = words[i].of;
        struct bhi_outcome out;
        puppet_again();
        bh_stream *stream = puppet_stream("s", "t");
        struct bhi_worker *worker = puppet_worker(BHI_RUNNING);
        puppet_bind(worker, stream);
        struct bhi_submission *submission = launch_both(stream)->submission;
        bh_verdict verdict = verdict_of(0,
                                        of == DEADLINES  ? BH_DEADLINE
                                        : of == COMPILER ? BH_COMPILE_FAILED
                                                         : BH_WORKER_EXIT,
                                        CERTAIN);
        begin(of == A_DEATH ? 1 : 2, words[i].keep_ns);
        spares_use("t", 0, 5);
        spares_use("", 0, 5);
        logged[0] = 0;
        puppet.context->settings.log = hear;
        worker->core.life.state = of == DEADLINES ? BHI_RUNNING : BHI_BURIED;
        bhi_context_lock(puppet.context);
        if (of == IN_SPARE) {
            verdict.event = 0;
            verdict.status = BH_COMPILE_FAILED;
            bhi_quarantine_note_spare(puppet.context, "t", &verdict);
        } else if (of == OF_SOURCE) {
            bhi_payload_of(submission)->source = &(struct bhi_named_source){.name = "a"};
            bhi_quarantine_note(submission, &verdict);
        } else {
            for (int times = of == DEATHS || of == DEADLINES ? 2 : 1; times > 0; times--) {
                BHT_TRUE(!bhi_quarantine_refuse(submission, &out));
                bhi_quarantine_note(submission, &verdict);
            }
        }
        worker->core.life.state = BHI_RUNNING;
        bhi_context_settle_unlock(puppet.context);
        bhi_context_log_said(puppet.context);
        BHT_STR_EQ(logged, words[i].line);
        /* No spare is told that one again; another tenant's are. */
        BHT_EQ(bhi_usage_kernel(bhi_usage_find(puppet.context->usages, "", "t"), spares_id_of(0))
                   ->uses,
               0);
        BHT_EQ(
            bhi_usage_kernel(bhi_usage_find(puppet.context->usages, "", ""), spares_id_of(0))->uses,
            5);
        now_ns += words[i].passed_ns;
        refuse(i, stream, submission);
        BHT_TRUE(!bhi_quarantine_refuse(launch_both(puppet.stream)->submission, &out));
        bhi_quarantine_note(submission, &verdict);
        bhi_context_log_said(puppet.context); /* nothing: it was held before */
        puppet.context->settings.log = NULL;
    }
}

/* As many as there is room for, in a caller's structs of any size; how many there are is said. */
TEST(k5_it_is_listed) {
    struct {
        bh_quarantined entry;
        uint64_t beyond;
    } rows[4];
    begin(1, BH_FOREVER);
    for (int kernel = 0; kernel < 3; kernel++) {
        const bh_verdict verdict = verdict_of(kernel, BH_WORKER_EXIT, CERTAIN);
        BHT_TRUE(bhi_death_records_note(records(), "t", &verdict, false, now_ns));
    }
    for (size_t capacity = 0; capacity <= BHT_COUNT(rows); capacity++) {
        size_t count = 99;
        memset(rows, 0xee, sizeof rows);
        rows[0].entry.struct_size = sizeof rows[0];
        BHT_EQ(bh_quarantine_list(puppet.context, &rows[0].entry, capacity, &count, NULL), BH_OK);
        BHT_EQ(count, 3);
        for (size_t i = 0; i < BHT_COUNT(rows); i++) {
            if (i < 3 && i < capacity) {
                BHT_STR_EQ(rows[i].entry.kernel_name, spares.kernels[i]->name);
                BHT_STR_EQ(rows[i].entry.tenant, "t");
            } else {
                BHT_EQ(rows[i].entry.deaths, 0xeeeeeeee);
            }
        }
    }
    size_t count = 99; /* no caller's number is too large */
    BHT_EQ(bh_quarantine_list(puppet.context, &rows[0].entry, (size_t)1 << 40, &count, NULL),
           BH_OK);
    BHT_EQ(bh_quarantine_release(puppet.context, NULL, NULL, NULL), BH_OK);
    BHT_EQ(bh_quarantine_list(puppet.context, NULL, 0, &count, NULL), BH_OK);
    BHT_EQ(count, 3);
    BHT_EQ(bh_quarantine_release(puppet.context, "t", spares.kernels[1]->body->hash, NULL), BH_OK);
    BHT_STR_EQ(remembered("t"), "a1+0TH");
    BHT_EQ(bh_quarantine_release(puppet.context, "t", NULL, NULL), BH_OK);
    BHT_EQ(bh_quarantine_list(puppet.context, NULL, 0, &count, NULL), BH_OK);
    BHT_EQ(count, 0);
}

/* The injector's thread. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "chaos/engine/run.h"

#define MS 1000000ull

/* How long a fault waits for a worker on its stream, or for room for a bait. */
static const uint64_t worker_limit_ns = 500 * MS;
static const uint64_t worker_look_ns = MS;
static const uint64_t most_delay_ns = 2 * MS;  /* to allocate, clear and export, or to import */
static const uint64_t most_debt_ns = 100 * MS; /* a schedule that is later is not caught up */

/* How long a stream may take for some work between two faults. Without it a run would have few
 * operations and find little. */
static const uint64_t work_limit_ns = 3000 * MS;

enum {
    LEAST_WORK = 64,  /* results; every fourth fault does not wait, to hit starting workers */
    MOST_MISSES = 16, /* so many more misses than faults asked for end the run */
    /* The most baits that wait on a stream. Each may end the worker, or wait behind a stopped one,
     * and the last must still end within the run's patience. */
    MOST_BAITS = 4
};

static bool takes_worker(enum bhi_fault_kind kind) {
    return !bhi_fault_is_bait(kind) && kind != BHI_FAULT_FULL;
}

/* Returns true if the fault kills its workers at once. A worker whose socket was closed may live
 * until its next deadline. */
static bool is_lethal(enum bhi_fault_kind kind) {
    return bhi_fault_ends_workers(kind) && kind != BHI_FAULT_CLOSE;
}

/* -- taking back ----------------------------------------------------------------------------- */

static void heal(struct bhi_chaos_run *run, struct bhi_healing *healing) {
    struct bhi_record record = {.kind = BHI_RECORD_HEALED, .healed.number = healing->number};
    if (!healing->pending) {
        return;
    }
    if (healing->pid && run->outside.pid) {
        bhi_outside_resume(&run->outside, healing->pid);
    } else if (healing->pid) {
        bhi_inject_resume(healing->pid);
    } else {
        struct rlimit limit;
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
            limit.rlim_cur = (rlim_t)run->full_limit;
            setrlimit(RLIMIT_NOFILE, &limit);
        }
    }
    *healing = (struct bhi_healing){0};
    record.at_ns = bhi_run_now(run); /* it was in effect until now */
    bhi_run_note(run, &record);
}

static struct bhi_healing *healing_at(struct bhi_chaos_run *run, uint32_t index) {
    return index < run->stream_count ? &run->slow[index] : &run->full;
}

/* Ends the faults that are due. Returns when the next one is. */
static uint64_t heal_due(struct bhi_chaos_run *run, uint64_t now_ns) {
    uint64_t next_ns = UINT64_MAX;
    for (uint32_t i = 0; i <= run->stream_count; i++) {
        struct bhi_healing *healing = healing_at(run, i);
        if (healing->pending && healing->at_ns <= now_ns) {
            heal(run, healing);
        } else if (healing->pending && healing->at_ns < next_ns) {
            next_ns = healing->at_ns;
        }
    }
    return next_ns;
}

/* -- waiting --------------------------------------------------------------------------------- */

/* Ends all faults, and waits until the run goes on. Call it with |lock| held. */
static void rest(struct bhi_chaos_run *run) {
    pthread_mutex_unlock(&run->lock);
    heal_due(run, UINT64_MAX);
    pthread_mutex_lock(&run->lock);
    run->resting = true;
    pthread_cond_broadcast(&run->changed);
    while (run->rest_requested && !run->faults_stopped) {
        bhi_run_wait(run, UINT64_MAX);
    }
    run->resting = false;
}

/* Waits until |due_ns|, and until |after| has been submitted. Returns false if there are to be no
 * more faults. */
static bool await_turn(struct bhi_chaos_run *run, uint64_t due_ns, uint64_t after) {
    for (;;) {
        const uint64_t now_ns = bhi_run_now(run), heal_ns = heal_due(run, now_ns);
        pthread_mutex_lock(&run->lock);
        if (run->rest_requested && !run->faults_stopped) {
            rest(run);
        }
        const bool stop = run->faults_stopped, submitted = run->replayed >= after;
        if (!stop && (now_ns < due_ns || !submitted)) {
            const uint64_t wake_ns = !submitted || heal_ns < due_ns ? heal_ns : due_ns;
            bhi_run_wait(run, wake_ns);
        }
        pthread_mutex_unlock(&run->lock);
        if (stop || (now_ns >= due_ns && submitted)) {
            return !stop;
        }
    }
}

/* Returns the worker that serves |stream|, or 0 if there is none or it is doomed. */
static int32_t worker_of(struct bhi_chaos_run *run, uint32_t stream) {
    const int32_t pid = bh_stream_worker_pid(run->streams[stream].stream);
    return pid != run->hit[stream] ? pid : 0;
}

/* Returns true if another bait may wait on |stream|. */
static int32_t room_on(struct bhi_chaos_run *run, uint32_t stream) {
    pthread_mutex_lock(&run->lock);
    const bool room = run->streams[stream].baits < MOST_BAITS;
    pthread_mutex_unlock(&run->lock);
    return room;
}

/* Returns true if |stream| has done some work since the last fault. */
static int32_t has_worked(struct bhi_chaos_run *run, uint32_t stream) {
    pthread_mutex_lock(&run->lock);
    const bool worked = run->streams[stream].ready >= LEAST_WORK || run->rest_requested;
    pthread_mutex_unlock(&run->lock);
    return worked;
}

/* Calls |look| until it returns something, and returns that; 0 after |limit_ns|. */
static int32_t await(struct bhi_chaos_run *run, uint32_t stream,
                     int32_t (*look)(struct bhi_chaos_run *run, uint32_t stream),
                     uint64_t limit_ns) {
    const uint64_t end_ns = bhi_run_now(run) + limit_ns;
    for (;;) {
        const uint64_t now_ns = bhi_run_now(run);
        const int32_t seen = look(run, stream);
        if (seen) {
            return seen;
        }
        heal_due(run, now_ns);
        pthread_mutex_lock(&run->lock);
        const bool stop = run->faults_stopped || now_ns >= end_ns;
        if (!stop) {
            bhi_run_wait(run, now_ns + worker_look_ns);
        }
        pthread_mutex_unlock(&run->lock);
        if (stop) {
            return 0;
        }
    }
}

/* Returns true if the worker of |stream| has been given the kind of work with device memory that
 * run->stage names. */
static int32_t has_reached(struct bhi_chaos_run *run, uint32_t stream) {
    pthread_mutex_lock(&run->lock);
    const bool reached =
        run->streams[stream].stages[run->stage] != run->stage_seen || run->rest_requested;
    pthread_mutex_unlock(&run->lock);
    return reached;
}

/* Waits for the moment of the fault `device`: until the worker is given something to do with device
 * memory, and for as long after that as it may take. In a replay the fault comes after the same
 * operation. */
static void await_stage(struct bhi_chaos_run *run, const struct bhi_scheduled *fault) {
    const struct timespec delay = {.tv_nsec = (long)(fault->salt / BHI_STAGES % most_delay_ns)};
    if (!run->options->replay) {
        run->stage = (enum bhi_device_stage)(fault->salt % BHI_STAGES);
        pthread_mutex_lock(&run->lock);
        run->stage_seen = run->streams[fault->stream].stages[run->stage];
        pthread_mutex_unlock(&run->lock);
        (void)await(run, fault->stream, has_reached, worker_limit_ns * run->slowness);
    }
    nanosleep(&delay, NULL);
}

static void let_work(struct bhi_chaos_run *run, const struct bhi_scheduled *fault) {
    if (!run->options->replay && fault->number % 4 != 0) {
        (void)await(run, fault->stream, has_worked, work_limit_ns * run->slowness);
    }
}

/* -- breaking -------------------------------------------------------------------------------- */

static void note_fault(struct bhi_chaos_run *run, const struct bhi_scheduled *fault,
                       const struct bhi_injected *injected, uint64_t after_op) {
    struct bhi_record record = {.kind = BHI_RECORD_FAULT, .stream = fault->stream};
    record.at_ns = injected->at_ns > run->start_ns ? injected->at_ns - run->start_ns : 0;
    record.fault.number = fault->number;
    record.fault.kind = fault->kind;
    record.fault.outside = run->outside.pid != 0 && takes_worker(fault->kind);
    record.fault.missed = injected->missed;
    record.fault.pid_count = injected->pid_count;
    memcpy(record.fault.pids, injected->pids, sizeof record.fault.pids);
    record.fault.after_op = after_op;
    record.fault.lasts_ns = fault->lasts_ns;
    bhi_run_note(run, &record);
    if (injected->missed && !(run->missed_told & 1u << fault->kind)) {
        run->missed_told |= 1u << fault->kind;
        bhi_run_say(run, "%s could not be injected: %s", bhi_fault_name(fault->kind),
                    injected->why);
    }
}

static void miss(struct bhi_injected *injected, const char *why) {
    injected->missed = true;
    snprintf(injected->why, sizeof injected->why, "%s", why);
}

static uint64_t submitted(struct bhi_chaos_run *run) {
    pthread_mutex_lock(&run->lock);
    const uint64_t count = run->submitted;
    pthread_mutex_unlock(&run->lock);
    return count;
}

/* Sets the limit to the lowest free number: from now on only a closed descriptor makes room for a
 * new one. */
static void inject_full(struct bhi_chaos_run *run, const struct bhi_scheduled *fault,
                        struct bhi_injected *injected) {
    struct rlimit limit;
    heal(run, &run->full);
    pthread_mutex_lock(&run->looking);
    const int lowest = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (lowest < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        pthread_mutex_unlock(&run->looking);
        miss(injected, "the table cannot be checked");
        return;
    }
    close(lowest);
    run->full_limit = limit.rlim_cur;
    limit.rlim_cur = (rlim_t)lowest;
    const bool lowered = setrlimit(RLIMIT_NOFILE, &limit) == 0;
    pthread_mutex_unlock(&run->looking);
    if (!lowered) {
        miss(injected, "the limit cannot be lowered");
        return;
    }
    run->full = (struct bhi_healing){
        .pending = true, .number = fault->number, .at_ns = bhi_run_now(run) + fault->lasts_ns};
}

/* Notes what the fault did to the streams' workers. */
static void remember(struct bhi_chaos_run *run, const struct bhi_scheduled *fault,
                     const struct bhi_injected *injected) {
    const uint32_t s = fault->stream;
    if (injected->missed) {
        return;
    }
    if (is_lethal(fault->kind)) {
        for (uint32_t i = 0; i < run->stream_count; i++) {
            const int32_t pid = bh_stream_worker_pid(run->streams[i].stream);
            for (uint32_t k = 0; k < injected->pid_count; k++) {
                /* A stopped process handles no signal except SIGKILL. */
                if (injected->pids[k] == pid &&
                    (fault->kind != BHI_FAULT_SEGV || pid != run->stopped[i])) {
                    run->hit[i] = pid;
                }
            }
        }
    } else if (fault->kind == BHI_FAULT_STOP) {
        run->stopped[s] = injected->pids[0];
    } else if (fault->kind == BHI_FAULT_SLOW) {
        run->slow[s] = (struct bhi_healing){.pending = true,
                                            .number = fault->number,
                                            .pid = injected->pids[0],
                                            .at_ns = bhi_run_now(run) + fault->lasts_ns};
    }
}

/* *out_after_op: how many operations were submitted before the injection. */
static void inject_worker(struct bhi_chaos_run *run, const struct bhi_scheduled *fault,
                          struct bhi_injected *injected, uint64_t *out_after_op) {
    struct bhi_injection injection = {.kind = fault->kind, .salt = fault->salt};
    const bool stops = fault->kind == BHI_FAULT_STOP || fault->kind == BHI_FAULT_SLOW;
    if (stops) { /* otherwise the end of the earlier slow would end this one */
        heal(run, &run->slow[fault->stream]);
    }
    if (fault->kind == BHI_FAULT_DEVICE) {
        await_stage(run, fault);
    }
    if (!run->outside.pid) {
        injection.pid = await(run, fault->stream, worker_of, worker_limit_ns * run->slowness);
    }
    *out_after_op = submitted(run);
    if (run->outside.pid) {
        bhi_outside_inject(&run->outside, &injection, injected);
    } else if (!injection.pid) {
        miss(injected, "the stream has no worker at the moment");
    } else if (stops && injection.pid == run->stopped[fault->stream]) {
        miss(injected, "the worker stands still already");
    } else {
        bhi_inject(&injection, injected);
    }
    remember(run, fault, injected);
}

static void inject_bait(struct bhi_chaos_run *run, const struct bhi_scheduled *fault, uint64_t name,
                        struct bhi_injected *injected) {
    if (!await(run, fault->stream, room_on, worker_limit_ns * run->slowness)) {
        miss(injected, "too many operations wait on the stream already");
        note_fault(run, fault, injected, submitted(run));
        return;
    }
    pthread_mutex_lock(&run->submitting);
    injected->missed = !bhi_run_submit_bait(run, fault, name);
    pthread_mutex_unlock(&run->submitting);
}

static void inject(struct bhi_chaos_run *run, const struct bhi_scheduled *fault, uint64_t name) {
    struct bhi_injected injected = {.at_ns = run->start_ns + bhi_run_now(run)};
    uint64_t after_op = submitted(run);
    if (bhi_fault_is_bait(fault->kind)) {
        inject_bait(run, fault, name, &injected);
    } else {
        if (fault->kind == BHI_FAULT_FULL) {
            inject_full(run, fault, &injected);
        } else {
            inject_worker(run, fault, &injected, &after_op);
        }
        note_fault(run, fault, &injected, after_op);
    }
    pthread_mutex_lock(&run->lock);
    run->faults += !injected.missed;
    for (uint32_t i = 0; i < run->stream_count && !injected.missed; i++) {
        if (i == fault->stream || fault->kind == BHI_FAULT_ZYGOTE) {
            run->streams[i].ready = 0;
        }
    }
    bhi_recovered_struck(&run->recovered, fault->kind, injected.pids,
                         injected.missed ? 0 : injected.pid_count, run->submitted);
    pthread_mutex_unlock(&run->lock);
    if (run->options->verbose && !injected.missed) {
        bhi_run_say(run, "fault %llu: %s, stream %u, worker %d", (unsigned long long)fault->number,
                    bhi_fault_name(fault->kind), fault->stream,
                    injected.pid_count ? injected.pids[0] : 0);
    }
}

/* -- which one next -------------------------------------------------------------------------- */

struct source {
    struct bhi_schedule schedule;
    size_t record; /* replay: the next record to look at */
};

struct due {
    struct bhi_scheduled fault;
    uint64_t after; /* replay: the number of operations before it */
    uint64_t name;  /* replay: the name of its bait */
};

/* Returns the salt of the |number|th fault of the seed. */
static uint64_t salt_of(const struct bhi_history *history, struct bhi_schedule *schedule,
                        uint64_t number) {
    uint64_t salt = number;
    /* A run writes a record for each fault, also for one that misses. So a number above the count
     * of records is false, and the schedule is not followed to it. */
    while (number <= history->count && schedule->number < number) {
        salt = bhi_schedule_next(schedule).salt;
    }
    return salt;
}

static bool next_replayed(const struct bhi_history *history, struct source *source,
                          struct due *out_due) {
    while (source->record < history->count) {
        const struct bhi_record *record = &history->records[source->record++];
        if (record->kind != BHI_RECORD_FAULT || record->fault.missed) {
            continue;
        }
        *out_due = (struct due){
            .fault = {.number = record->fault.number,
                      .kind = record->fault.kind,
                      .stream = record->stream,
                      .lasts_ns = record->fault.lasts_ns,
                      .salt = salt_of(history, &source->schedule, record->fault.number)},
            .after = record->fault.after_op,
            .name = record->op};
        return true;
    }
    return false;
}

static bool next(const struct bhi_chaos_run *run, struct source *source, struct due *out_due) {
    const struct bhi_engine_options *options = run->options;
    if (options->replay) {
        return next_replayed(options->replay, source, out_due);
    }
    /* A fault that misses does not count. But if all miss, the run must end, too. */
    const uint64_t missed = source->schedule.number - run->faults;
    if (options->fault_count &&
        (run->faults == options->fault_count || missed == options->fault_count + MOST_MISSES)) {
        return false;
    }
    *out_due = (struct due){.fault = bhi_schedule_next(&source->schedule)};
    return true;
}

void *bhi_run_inject(void *argument) {
    struct bhi_chaos_run *run = argument;
    const struct bhi_engine_options *options = run->options;
    struct source source = {0};
    struct due due;
    uint64_t due_ns = bhi_run_now(run);
    bhi_schedule_init(&source.schedule, options->seed, options->fault_set, options->rate,
                      run->stream_count);
    while (next(run, &source, &due)) {
        let_work(run, &due.fault);
        const uint64_t now_ns = bhi_run_now(run);
        due_ns = (due_ns + most_debt_ns < now_ns ? now_ns : due_ns) + due.fault.gap_ns;
        pthread_mutex_lock(&run->lock);
        run->fault_after = options->replay ? due.after : UINT64_MAX;
        pthread_cond_broadcast(&run->changed);
        pthread_mutex_unlock(&run->lock);
        if (!await_turn(run, due_ns, due.after)) {
            break;
        }
        inject(run, &due.fault, due.name);
    }
    heal_due(run, UINT64_MAX);
    pthread_mutex_lock(&run->lock);
    run->fault_after = UINT64_MAX;
    run->injector_ended = true;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    return NULL;
}

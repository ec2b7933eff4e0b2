/* A worker: takes records in order, some at a time, runs them in order, publishes their results
 * together or a prefix first. It can fail, hang, lie or die between any two steps. */
#include "world.h"

#include <string.h>

static const struct work *work_at(const struct world *world, const struct worker *worker,
                                  uint64_t seq) {
    return &world->program->works[worker->records[seq].work];
}

static uint64_t garbage(int work, int buffer, uint32_t run) {
    return model_mix(0xbad + (uint64_t)work * 4096 + (uint64_t)buffer * 256 + run);
}

static uint64_t read_inputs(const struct world *world, int number) {
    const struct opinion *opinion = &world->oracle.works[number];
    uint64_t hash = 1;
    for (int b = 0; b < BUFFERS; b++) {
        if (opinion->read >> b & 1) {
            hash = model_mix(hash ^ world->buffers[b].value) + (uint64_t)b;
        }
    }
    return hash;
}

/* The device's own word, where several are merged: it begins this one, and has done the others. */
static void mark(struct worker *worker) {
    worker->marked = worker->current;
    worker->marker_started = (uint32_t)worker->current;
    worker->marker_completed = (uint32_t)worker->current - 1;
}

static void begin(struct world *world, struct worker *worker) {
    struct record *record = &worker->records[worker->current];
    const struct work *work = work_at(world, worker, worker->current);
    struct life *life = &world->lives[record->work];
    worker->phase = PHASE_BEGUN;
    worker->begun_ns = world->now_ns;
    if (worker->merged) {
        mark(worker);
    }
    world_trace(world, "  worker %d begins #%d", worker->core.pid, record->work);
    if (work->compiles) {
        return;
    }
    FAIL_IF(world, life->ended, "B2", "#%d begins to run although it has ended", record->work);
    FAIL_IF(world, life->runs++, "E13", "#%d runs for the second time", record->work);
    FAIL_IF(world, world->last_begun[work->stream] > record->work, "order",
            "#%d begins after #%d of its stream", record->work, world->last_begun[work->stream]);
    world->last_begun[work->stream] = record->work;
    life->begun = true;
    worker->seen = read_inputs(world, record->work);
    for (int b = 0; b < BUFFERS; b++) {
        life->old[b] = world->buffers[b].value;
    }
}

static void scribble(struct world *world, const struct worker *worker) {
    const struct record *record = &worker->records[worker->current];
    for (int b = 0; b < BUFFERS; b++) {
        if (world->oracle.works[record->work].written >> b & 1) {
            world->buffers[b].value = garbage(record->work, b, world->lives[record->work].runs);
        }
    }
}

static void computed(struct world *world, struct worker *worker) {
    if (!worker->records[worker->current].certain) {
        worker->records[worker->current].computed_ns = world->now_ns;
    }
    worker->computed = worker->current;
    worker->phase = PHASE_BEFORE;
    if (worker->current < worker->batch_last) {
        worker->current++;
        return;
    }
    worker->current = 0;
    if (worker->merged) {
        worker->marker_started = worker->marker_completed = (uint32_t)worker->batch_last;
    }
}

static void set_result(const struct world *world, struct record *record, bh_status status,
                       uint64_t started_ns) {
    record->result = (struct bhi_outcome)BHI_OUTCOME_INIT;
    record->result.status = status;
    record->result.started_ns = started_ns;
    record->result.ended_ns = world->now_ns;
}

/* It was told to end it, and what has been written stays as it is. */
static void end_early(struct world *world, struct record *record) {
    set_result(world, record, BH_DEADLINE, world->now_ns);
}

static void complete(struct world *world, struct worker *worker) {
    struct record *record = &worker->records[worker->current];
    if (record->stop_requested && !worker->ignores_stop) {
        world_trace(world, "  worker %d has ended #%d", worker->core.pid, record->work);
        end_early(world, record);
        computed(world, worker);
        return;
    }
    const struct work *work = work_at(world, worker, worker->current);
    struct life *life = &world->lives[record->work];
    const struct opinion *opinion = &world->oracle.works[record->work];
    world_trace(world, "  worker %d has done #%d", worker->core.pid, record->work);
    if (!work->compiles) {
        uint64_t inputs = worker->seen;
        for (int b = 0; b < BUFFERS; b++) {
            uint64_t expected =
                opinion->written >> b & 1 ? garbage(record->work, b, life->runs) : life->old[b];
            /* Somebody else wrote meanwhile what this one uses. */
            if ((opinion->written | opinion->read) >> b & 1 &&
                world->buffers[b].value != expected) {
                inputs = model_mix(inputs ^ world->buffers[b].value);
            }
        }
        for (int b = 0; b < BUFFERS; b++) {
            if (opinion->written >> b & 1) {
                world->buffers[b].value = life->out[b] = oracle_result(
                    record->work, b, inputs, life->old[b], !(opinion->whole >> b & 1));
            }
        }
        life->done = true;
    }
    set_result(world, record, BH_OK, worker->begun_ns);
    record->result.executed = BH_EXECUTED_YES;
    computed(world, worker);
}

static void skip(struct world *world, struct worker *worker) {
    struct record *record = &worker->records[worker->current];
    world_trace(world, "  worker %d skips #%d", worker->core.pid, record->work);
    record->skipped = true;
    tally_if(record->withdrawn && !record->certain, TALLY_SKIPPED_LATE);
    set_result(world, record, BH_CANCELLED, world->now_ns);
    computed(world, worker);
}

static bool take(struct world *world, struct worker *worker, uint32_t arg) {
    uint64_t there = worker->published - worker->taken;
    if (!there) {
        return false;
    }
    uint64_t count = 1 + arg % world->program->batch;
    count = count < there ? count : there;
    /* What has to be compiled is taken alone. */
    for (uint64_t i = 1; i <= count; i++) {
        if (work_at(world, worker, worker->taken + i)->cold) {
            count = i == 1 ? 1 : i - 1;
        }
    }
    /* It says what it is about to start, and only then looks what was withdrawn. */
    worker->started = worker->taken + count;
    for (uint64_t seq = worker->taken + 1; seq <= worker->started; seq++) {
        if (worker->records[seq].withdrawn) {
            count = 1;
        }
    }
    worker->batch_first = worker->current = worker->taken + 1;
    worker->batch_last = worker->taken = worker->taken + count;
    worker->phase = PHASE_BEFORE;
    worker->merged = count > 1;
    tally_if(worker->merged, TALLY_MERGED);
    world_trace(world, "  worker %d takes %llu%s", worker->core.pid, (unsigned long long)count,
                worker->merged ? ", merged" : "");
    return true;
}

static void compile(struct world *world, struct worker *worker) {
    worker->phase = PHASE_COMPILING;
    worker->compiles = worker->current;
    worker->compiling_ns = world->now_ns;
    world_trace(world, "  worker %d compiles #%d", worker->core.pid,
                worker->records[worker->current].work);
}

static void go(struct world *world, struct worker *worker) {
    switch (worker->phase) {
    case PHASE_BEFORE:
        if (!worker->merged && worker->records[worker->current].withdrawn) {
            skip(world, worker);
        } else if (work_at(world, worker, worker->current)->cold) {
            compile(world, worker);
        } else {
            begin(world, worker);
        }
        break;
    case PHASE_COMPILING:
        if (!work_at(world, worker, worker->current)->compiles) {
            worker->runs = worker->current;
            worker->records[worker->current].compiled_ns = world->now_ns;
        }
        begin(world, worker);
        break;
    case PHASE_BEGUN:
        worker->phase = PHASE_HALF;
        if (!work_at(world, worker, worker->current)->compiles) {
            scribble(world, worker);
        }
        break;
    case PHASE_HALF:
        complete(world, worker);
        break;
    }
}

static void publish(struct world *world, struct worker *worker, uint32_t arg) {
    uint64_t left = worker->batch_last - worker->completed;
    /* All together as a rule; a prefix at times. */
    worker->completed += arg % 4 ? left : 1 + arg / 4 % left;
    world_trace(world, "  worker %d has published up to number %llu", worker->core.pid,
                (unsigned long long)worker->completed);
}

static bool able(const struct worker *worker) {
    return worker && worker->ready && !worker->dead && !worker->stopped;
}

bool worker_busy(const struct worker *worker) {
    return able(worker) && !worker->hung &&
           (worker->current || worker->completed < worker->taken ||
            worker->taken < worker->published);
}

bool worker_work(struct world *world, struct worker *worker, uint32_t arg) {
    if (!worker_busy(worker)) {
        return false;
    }
    if (!worker->current && worker->completed < worker->taken) {
        publish(world, worker, arg);
    } else if (!worker->current) {
        return take(world, worker, arg);
    } else {
        for (uint32_t i = 0; i <= arg % 3 && worker->current; i++) {
            go(world, worker);
        }
    }
    return true;
}

bool worker_fail(struct world *world, struct worker *worker, uint32_t arg) {
    if (!able(worker) || worker->hung || !worker->current) {
        return false;
    }
    struct record *record = &worker->records[worker->current];
    if (worker->phase == PHASE_BEFORE && !worker->merged && record->withdrawn) {
        return false;
    }
    static const bh_status REFUSED[] = {BH_COMPILE_FAILED, BH_BINDING_MISMATCH};
    static const bh_status FAILED[] = {BH_VULKAN, BH_OUT_OF_DEVICE_MEMORY};
    bool begun = worker->phase > PHASE_COMPILING;
    if (worker->merged) {
        mark(worker);
    }
    if (begun) {
        scribble(world, worker);
    }
    set_result(world, record, begun ? FAILED[arg % 2] : REFUSED[arg % 2],
               begun ? worker->begun_ns : world->now_ns);
    record->result.executed = begun ? BH_EXECUTED_UNKNOWN : BH_EXECUTED_NO;
    record->result.command_index = arg / 2 % 4;
    record->result.sys_errno = arg / 16 % 3;
    record->result.vk_result = begun ? -(int32_t)(arg / 8 % 5) : 0;
    record->result.message = "it failed";
    world_trace(world, "  worker %d fails #%d", worker->core.pid, record->work);
    computed(world, worker);
    return true;
}

bool worker_hang(struct world *world, struct worker *worker) {
    if (!able(worker) || worker->hung) {
        return false;
    }
    if (worker->current && worker->phase != PHASE_BEFORE) {
        worker->hung = true;
    } else {
        worker->stopped = true;
    }
    world_trace(world, "  worker %d %s", worker->core.pid, worker->hung ? "hangs" : "is stopped");
    return true;
}

bool worker_lie(struct world *world, struct worker *worker, uint32_t arg) {
    if (!able(worker) || worker->violated) {
        return false;
    }
    worker->violated = true;
    if (arg % 2 && worker->current && worker->phase == PHASE_BEFORE &&
        !worker->records[worker->current].withdrawn) {
        world_trace(world, "  worker %d lies: it says that it had to skip", worker->core.pid);
        skip(world, worker);
    } else if (arg / 2 % 2 && worker->current && worker->phase == PHASE_BEFORE &&
               !worker->records[worker->current].withdrawn) {
        world_trace(world, "  worker %d lies: it says that it was told", worker->core.pid);
        tally(TALLY_LIED_DEADLINE);
        end_early(world, &worker->records[worker->current]);
        computed(world, worker);
    } else if (arg / 4 % 2 && worker->current && worker->phase >= PHASE_BEGUN) {
        world_trace(world, "  worker %d lies: of the time that #%d takes", worker->core.pid,
                    worker->records[worker->current].work);
        tally(TALLY_LIED_TIME);
        worker->records[worker->current].claims = true;
    } else {
        world_trace(world, "  worker %d lies: its progress is impossible", worker->core.pid);
        worker->lie_pending = true;
    }
    return true;
}

bool worker_die(struct world *world, struct worker *worker, uint32_t arg) {
    if (!worker || worker->dead) {
        return false;
    }
    static const int SIGNALS[] = {11, 6, 31};
    worker->dead = true;
    worker->death = (struct bhi_outcome)BHI_OUTCOME_INIT;
    worker->death.worker_pid = worker->core.pid;
    worker->death.message = "it died";
    if (worker->kill_requested && arg % 8) {
        worker->death.signal = 9;
    } else if (arg % 4 == 0) {
        worker->death.exit_code = 1;
    } else {
        worker->death.signal = SIGNALS[arg % 4 - 1];
    }
    if (worker->death.signal == 6 && arg / 8 % 2) {
        worker->death.signal = 9; /* by somebody outside */
    }
    world_trace(world, "  worker %d dies: signal %d", worker->core.pid, worker->death.signal);
    return true;
}

void worker_told(struct world *world, struct worker *worker, uint64_t seq) {
    struct record *record = &worker->records[seq];
    record->stop_requested = true;
    record->told_ns = world->now_ns;
    record->stopped_for_deadline = !world->oracle.works[record->work].end_requested;
    world_trace(world, "  worker %d is told to end #%d", worker->core.pid, record->work);
    if (worker->ignores_stop) {
        return;
    }
    if (worker->current == seq) {
        worker->hung = false;
    }
    /* It may find it done, but not recorded: nobody can know then. */
    else if (seq <= worker->computed && seq > worker->completed && seq % 2 &&
             record->result.status == BH_OK) {
        end_early(world, record);
    }
}

/* The newest that may have been started, as the supervisor can know it (ipc/progress.c): what it
 * has taken, or the device's own word where there is one for what is in flight. */
uint64_t worker_started(const struct worker *worker) {
    uint64_t harvested = worker->core.harvested;
    if (worker->started <= harvested) {
        return harvested;
    }
    uint32_t ahead = worker->marker_started - (uint32_t)harvested;
    return ahead >= 1 && ahead <= worker->started - harvested ? harvested + ahead : worker->started;
}

struct bhi_progress_snapshot worker_snapshot(const struct worker *worker) {
    return (struct bhi_progress_snapshot){
        .started = worker_started(worker),
        .marker = worker->marker_completed,
        .compiles = worker->compiles,
        .compile_ended = worker->runs >= worker->compiles,
    };
}

bool worker_is_starved(const struct worker *worker) {
    return worker->core.pid % 4 == 0;
}

uint64_t worker_turn(const struct worker *worker) {
    uint64_t seq = worker->completed + 1;
    if (worker->merged && worker->completed < worker->taken) {
        if (!worker->current) {
            return worker->batch_last;
        }
        if (worker->phase != PHASE_BEFORE) {
            return worker->current;
        }
        if (worker->marked >= worker->batch_first) {
            return worker->marked;
        }
    }
    while (seq <= worker->published && worker->records[seq].certain) {
        seq++;
    }
    return seq <= worker->published ? seq : 0;
}

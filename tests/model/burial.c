/* Workers that have died: what that means for each submission that they had, and for their streams. */
#include "trust.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* Did somebody else kill it? In the model, SIGKILL comes from outside if nobody here has sent it. */
static bool was_killed_by_others(const struct worker *worker) {
    return worker->death.signal == 9 && worker->core.life.kill == BHI_KILL_NONE &&
           !worker->zygote_lost;
}

static bool is_compiling(const struct worker *worker, uint64_t seq) {
    return !worker->caught && worker_compiles(worker, seq);
}

/* Nothing of it has run, and others ended its worker, or its zygote: it runs elsewhere, until eight
 * deaths have hit it. */
static bool is_spared(const struct world *world, const struct worker *worker, uint64_t seq) {
    const int work = worker->records[seq].work;
    const bool others = was_killed_by_others(worker) || worker->death.status == BH_ZYGOTE_LOST;
    return others && (is_compiling(worker, seq) || world->program->works[work].compiles) &&
           world->lives[work].deaths < 8;
}

/* What a death comes to for each that was in the lane, from what physically happened. */
static bool judge(struct world *world, const struct worker *worker, bool closing) {
    const struct bhi_core_worker *core_worker = &worker->core;
    uint64_t started = worker_started(worker), culprit = 0, first = 0, target = 0;
    /* The device says that it has done one when it begins the next. */
    uint64_t running = worker->merged ? worker->current : 0;
    if (running && worker->phase == PHASE_BEFORE) {
        running = worker->marked >= worker->batch_first ? worker->marked : 0;
    }
    bool lost = false;
    for (uint64_t seq = core_worker->harvested + 1; seq <= worker->published; seq++) {
        int work = worker->records[seq].work;
        if (world->lives[work].ended) {
            continue;
        }
        first = first ? first : seq;
        if (core_worker->life.kill_event && world->lives[work].id == core_worker->life.kill_event) {
            target = seq;
        }
        if (seq == running && seq <= started) {
            culprit = seq;
        }
    }
    if (!first) {
        return false;
    }
    /* Who it was killed for is to blame, unless that has ended before the signal came. */
    if (core_worker->life.kill_event) {
        culprit = target;
    } else if (!culprit || worker->caught) {
        culprit = first;
    }
    /* After a protocol violation it may have run anything in its lane. */
    if (worker->caught) {
        started = worker->published;
    } else if (core_worker->life.kill == BHI_KILL_DEADLINE ||
               core_worker->life.kill == BHI_KILL_CANCEL ||
               core_worker->life.kill == BHI_KILL_COMPILE) {
        started = started < culprit ? culprit : started;
    }
    if (culprit && culprit <= started && is_spared(world, worker, culprit)) {
        world->lives[worker->records[culprit].work].deaths++;
        lost = true; /* it costs the stream nothing */
        tally(TALLY_SPARED);
        if (!closing && is_spared(world, worker, culprit)) {
            culprit = 0; /* the next worker compiles it, and nobody is to blame for what is lost */
        }
    }
    bh_status status = worker->death.status;
    for (uint64_t seq = core_worker->harvested + 1; seq <= worker->published; seq++) {
        int work = worker->records[seq].work;
        if (world->lives[work].ended) {
            continue;
        }
        struct due due = {.status = status, .origin = NOBODY, .anyhow = true, .cause = NO_CAUSE};
        const struct opinion *opinion = &world->oracle.works[work];
        if (seq <= started && (closing || !is_spared(world, worker, seq))) {
            lost = true;
            due.cause.signal = worker->death.signal;
            due.cause.exit_code = worker->death.exit_code;
            due.cause.worker_pid = core_worker->pid;
            if (seq == culprit && status == BH_DEADLINE) {
                due.cause.limit = world->program->works[work].deadline_ms * MS;
            }
            const bool compiling = is_compiling(worker, seq);
            const bool begun = worker->caught || seq <= worker_started(worker);
            due.executed = world->program->works[work].compiles || compiling || !begun
                               ? BH_EXECUTED_NO
                               : BH_EXECUTED_UNKNOWN;
            if (seq == culprit && status == BH_COMPILE_FAILED) {
                due.cause.limit = world->program->streams[worker->stream].compile_ms * MS;
            }
            if (seq == culprit && compiling &&
                (status == BH_WORKER_EXIT ||
                 (status == BH_WORKER_SIGNAL && worker->death.signal != 9))) {
                due.status = BH_COMPILE_FAILED;
                tally(TALLY_DIED_COMPILING);
            }
            bool wanted = status == BH_CANCELLED && opinion->end_requested;
            if (seq == culprit) {
                due.cause.blame = trust_blame(worker, work, due.status);
                /* Its time passed before any of it ran. */
                if (due.cause.blame == BH_BLAME_CERTAIN && due.status == BH_DEADLINE &&
                    seq > worker->kill_started) {
                    due.cause.blame = BH_BLAME_SUSPECTED;
                }
                if (due.cause.blame == BH_BLAME_CERTAIN && status == BH_COMPILE_FAILED) {
                    due.cause.blame = BH_BLAME_SUSPECTED; /* its deadline passed */
                }
                if (was_killed_by_others(worker)) {
                    due.cause.blame = BH_BLAME_NONE;
                }
            }
            if (seq != culprit && !wanted && status != BH_CONTEXT_CLOSED &&
                status != BH_ZYGOTE_LOST) {
                due.status = BH_WORKER_LOST;
                due.origin = culprit ? worker->records[culprit].work : NOBODY;
            }
        } else if (closing) {
            due.status = BH_CONTEXT_CLOSED;
            due.cause.worker_pid = core_worker->pid;
        } else if (opinion->doomed || opinion->end_requested) {
            due.status = BH_CANCELLED;
        } else {
            continue; /* it never started: it runs elsewhere (E13) */
        }
        oracle_expect(world, work, &due);
    }
    return lost;
}

static void cause_of_death(struct world *world, struct worker *worker, char text[64]) {
    struct bhi_outcome *death = &worker->death;
    bool killed = death->signal == 9 || worker->zygote_lost;
    death->status = worker->caught                                          ? BH_PROTOCOL
                    : worker->core.life.kill == BHI_KILL_DEADLINE && killed ? BH_DEADLINE
                    : worker->core.life.kill == BHI_KILL_COMPILE && killed  ? BH_COMPILE_FAILED
                    : worker->core.life.kill == BHI_KILL_CANCEL && killed   ? BH_CANCELLED
                    : world->closed                                         ? BH_CONTEXT_CLOSED
                    : worker->zygote_lost                                   ? BH_ZYGOTE_LOST
                    : death->signal == 31                                   ? BH_SECCOMP
                    : death->signal                                         ? BH_WORKER_SIGNAL
                                                                            : BH_WORKER_EXIT;
    snprintf(text, 64, "worker %d died", worker->core.pid);
    death->message = text;
    death->worker_pid = worker->core.pid;
}

static void count_death(const struct world *world, const struct worker *worker, bool lost) {
    tally_if(worker->zygote_lost, TALLY_ZYGOTE_LOST);
    if (!worker->ready) {
        tally(TALLY_DIED_STARTING);
    } else if (!lost && worker->stream != NOBODY) {
        tally(TALLY_DIED_IDLE);
    }
    tally_if(worker->completed < worker->computed, TALLY_DONE_UNRECORDED);
    tally_if(worker->current && worker->phase == PHASE_HALF, TALLY_HALF_WRITTEN);
    if (worker->core.life.kill_event &&
        world->lives[world->work_of_id[worker->core.life.kill_event]].ended) {
        tally(TALLY_OUTLIVED_KILL);
    }
}

/* The supervisor learns that it is dead: from its zygote, or from the end of both. */
static void confirm(struct world *world, struct worker *worker) {
    struct bhi_life *life = &worker->core.life;
    const struct bhi_life_around around = {.zygote_lost = worker->zygote_lost,
                                           .zygote_gone = worker->zygote_lost};
    const bool alive = bhi_life_is_alive(life), killed = life->kill != BHI_KILL_NONE;
    FAIL_IF(world, alive == killed, "E11", "worker %d is in state %d", worker->core.pid,
            (int)life->state);
    if (life->born) {
        bhi_life_exit(life, 0, world->now_ns);
    }
    if (!worker->zygote_lost) {
        bhi_life_status(life, CLD_KILLED, worker->death.signal, world->now_ns);
    } else {
        uint64_t again_ns;
        const enum bhi_life_event event = bhi_life_due(life, &around, world->now_ns, &again_ns);
        if (event != BHI_LIFE_ORPHANED) {
            world_fail(world, "E9", "worker %d waits for its zygote", worker->core.pid);
            return;
        }
        (void)bhi_life_step(life, event, world->now_ns);
    }
}

bool burial_bury(struct world *world, struct worker *worker) {
    if (!worker || !worker->dead) {
        return false;
    }
    tally_if(supervise_harvest(world, worker), TALLY_RECORDED_BEFORE_DEATH);
    world_settle(world);
    if (world->failed) {
        return true;
    }
    int index = worker->stream;
    struct bhi_core_worker *core_worker = &worker->core;
    char text[64];
    cause_of_death(world, worker, text);
    struct bhi_death death = {
        .outcome = worker->death,
        .snapshot = worker_snapshot(worker),
        .closing = world->closed,
        .cause = was_killed_by_others(worker) ? BHI_CAUSE_OUTSIDE : BHI_CAUSE_OWN,
        .others_would_fail = !worker->ready && worker->death.exit_code == 1,
        .why = {.status = BH_UNAVAILABLE, .message = "it died"},
    };
    if (worker->caught) { /* it may have written anything there */
        death.snapshot.marker = (uint32_t)(core_worker->harvested + model_mix(world->now_ns) % 4);
    }
    if (death.others_would_fail) {
        death.why.status = BH_NO_DEVICE;
    }
    world_trace(world, "  worker %d is dead: status %d, started %llu, marker %u", core_worker->pid,
                death.outcome.status, (unsigned long long)death.snapshot.started,
                death.snapshot.marker);
    confirm(world, worker);
    bool lost = judge(world, worker, world->closed);
    const bool planned = core_worker->life.kill == BHI_KILL_RETIRED && index != NOBODY;
    const bool taken = !lost && !planned &&
                       (was_killed_by_others(worker) || death.outcome.status == BH_ZYGOTE_LOST);
    bool productive = lost || planned || worker->productive;
    tally_if(planned, TALLY_REPLACED);
    count_death(world, worker, lost);
    for (struct worker **at = &world->workers; *at; at = &(*at)->next) {
        if (*at == worker) {
            *at = worker->next;
            break;
        }
    }
    if (index != NOBODY) {
        world->serving[index] = NULL;
        losses_begin(world, index,
                     (death.others_would_fail ? NO_DEVICE : 0) | (productive ? 0 : UNAVAILABLE));
    }
    FAIL_IF(world, bhi_core_worker_died(core_worker, &death) != lost, "E13",
            "worker %d: blame is %sput on one of its submissions", core_worker->pid,
            lost ? "not " : "");
    FAIL_IF(world, core_worker->life.state != BHI_BURIED, "E12", "worker %d is not buried",
            core_worker->pid);
    if (index != NOBODY && !world->failed) {
        uint64_t cost_ns =
            world->program->streams[index].window_ms * MS / world->program->streams[index].budget;
        bool lived = worker->ready && world->now_ns - worker->ready_ns >= cost_ns;
        FAIL_IF(world, !lost && !planned && world->streams[index]->core.trouble.status == BH_OK,
                "budget", "stream %d does not say why it has no worker", index);
        losses_check_backoff(world, index, lived || worker->productive, productive);
        if (taken) {
            losses_check_taken(world, index, worker->productive, !worker->ready);
        } else if (!death.others_would_fail) {
            world->streams[index]->taken = productive ? 0 : world->streams[index]->taken;
            losses_check_budget(world, index, productive, !worker->ready);
        }
        losses_end(world, index);
    }
    for (int work = 0; work < world->submitted; work++) {
        struct life *life = &world->lives[work];
        FAIL_IF(world, life->worker == worker, "E9", "#%d stays with a dead worker", work);
        if (life->watched == worker) {
            life->watched = NULL;
        }
    }
    for (int i = 0; i < STREAMS; i++) {
        FAIL_IF(world, world->streams[i] && world->streams[i]->core.dying == core_worker, "E16",
                "stream %d waits for a worker that is buried", i);
    }
    if (world->failed) {
        return true;
    }
    bhi_core_worker_fini(core_worker);
    free(worker);
    world_settle(world);
    return true;
}

struct worker *burial_left(const struct world *world, int index) {
    struct worker *worker = world->workers;
    while (worker && worker->left != index) {
        worker = worker->next;
    }
    return worker;
}

/* Nothing that it was given is under way, its death is free, and nobody else has to judge it. */
static bool may_leave(const struct world *world, const struct worker *worker) {
    bool idle = worker->published == worker->core.harvested;
    for (uint64_t seq = 1; seq <= worker->published; seq++) {
        idle &= world->lives[worker->records[seq].work].ended;
    }
    return idle && worker->ready && worker->productive && !worker->caught &&
           !worker->kill_requested && !burial_left(world, worker->stream) &&
           trust_stream(world->program, worker->stream) == BHI_APART_NOT;
}

bool burial_leave(struct world *world, struct worker *worker) {
    if (!worker || !worker->dead || worker->zygote_lost || worker->stream == NOBODY) {
        return false;
    }
    (void)supervise_harvest(world, worker);
    world_settle(world);
    if (world->failed || worker->stream == NOBODY) {
        return true;
    }
    const int index = worker->stream;
    const bool may = bhi_core_worker_may_leave(&worker->core);
    FAIL_IF(world, may != may_leave(world, worker), "E13", "worker %d may %sleave its stream",
            worker->core.pid, may ? "" : "not ");
    if (!may || world->failed) {
        return world->failed;
    }
    world_trace(world, "  stream %d goes on without worker %d", index, worker->core.pid);
    tally(TALLY_LEFT);
    world->serving[index] = NULL;
    losses_begin(world, index, 0);
    const bh_detail why = {.status = BH_UNAVAILABLE, .message = "it died"};
    bhi_core_worker_leave(&worker->core, &why);
    worker->stream = NOBODY;
    worker->left = index;
    losses_check_backoff(world, index, true, true);
    world->streams[index]->taken = 0;
    losses_check_budget(world, index, true, false);
    losses_end(world, index);
    return true;
}

#include "core/life.h"

#include <signal.h>
#include <stdlib.h>

#define MS           1000000ull
#define HANG_UP_NS   (200 * MS)  /* for a worker to end after its sockets have closed */
#define PATIENCE_NS  (3000 * MS) /* for a killed loader to end */
#define REAP_NS      (2000 * MS) /* for the exit status: a busy machine delays it */
#define UNWATCHED_NS (200 * MS)  /* for a killed worker to end whose pidfd is not watched */
#define HELD_NS      (20 * MS)   /* how long a device is held for who took over */

#define IN(state) (1u << BHI_##state)
#define STARTS    (IN(SPAWNING) | IN(HELD) | IN(HUNG_UP) | IN(EXITING))
#define ALIVE     (STARTS | IN(RUNNING))
#define EXITS     (IN(EXITED) | IN(HOLDING) | IN(TOLD))
#define UNBURIED  (ALIVE | EXITS | IN(DOOMED) | IN(KILLED) | IN(CONFIRMED))
#define SAME      BHI_LIFE_STATES

struct rule {
    unsigned in;
    enum bhi_life_event event;
    enum bhi_life_state to;
    enum bhi_life_act act;
};

/* The machine. The first row that fits holds; where none fits, the event cannot be. Two states have
 * a twin: KILLED becomes DOOMED before it is born, EXITED becomes HOLDING if its zygote holds its
 * device. */
static const struct rule *find(enum bhi_life_state state, enum bhi_life_event event) {
    static const struct rule rules[] = {
        {IN(SPAWNING), BHI_LIFE_HELLO, BHI_HELD, BHI_DO_NOTHING},
        {IN(HELD), BHI_LIFE_READY, BHI_RUNNING, BHI_DO_NOTHING},
        {STARTS, BHI_LIFE_BORN, SAME, BHI_DO_NOTHING},
        {IN(DOOMED), BHI_LIFE_BORN, BHI_KILLED, BHI_DO_KILL},
        {STARTS | IN(DOOMED), BHI_LIFE_UNBORN, BHI_CONFIRMED, BHI_DO_NOTHING},
        {STARTS, BHI_LIFE_START_LATE, SAME, BHI_DO_END_START},

        {IN(SPAWNING) | IN(HELD) | IN(RUNNING), BHI_LIFE_HANG_UP, BHI_HUNG_UP, BHI_DO_NOTHING},
        {IN(HUNG_UP) | IN(EXITING), BHI_LIFE_SEEN, BHI_EXITING, BHI_DO_NOTHING},
        {IN(HUNG_UP) | IN(EXITING), BHI_LIFE_LATE, SAME, BHI_DO_LOOK},

        {ALIVE, BHI_LIFE_KILL, BHI_KILLED, BHI_DO_KILL},
        {IN(KILLED), BHI_LIFE_UNWATCHED, BHI_EXITED, BHI_DO_NOTHING},
        {IN(KILLED), BHI_LIFE_LATE, BHI_CONFIRMED, BHI_DO_GIVE_UP},

        {ALIVE | IN(KILLED), BHI_LIFE_EXIT, BHI_EXITED, BHI_DO_NOTHING},
        {IN(EXITED), BHI_LIFE_LATE, BHI_CONFIRMED, BHI_DO_NOTHING},
        {IN(HOLDING), BHI_LIFE_LATE, SAME, BHI_DO_RELEASE},
        {IN(HOLDING), BHI_LIFE_RELEASE, BHI_TOLD, BHI_DO_NOTHING},
        {STARTS | IN(DOOMED) | EXITS, BHI_LIFE_ORPHANED, BHI_CONFIRMED, BHI_DO_NOTHING},

        {UNBURIED, BHI_LIFE_STATUS, BHI_CONFIRMED, BHI_DO_NOTHING},
        {UNBURIED, BHI_LIFE_BURY, BHI_BURIED, BHI_DO_NOTHING},

        /* What comes when it changes nothing any more. */
        {UNBURIED, BHI_LIFE_HELLO, SAME, BHI_DO_NOTHING},
        {UNBURIED, BHI_LIFE_READY, SAME, BHI_DO_NOTHING},
        {UNBURIED, BHI_LIFE_HANG_UP, SAME, BHI_DO_NOTHING},
        {UNBURIED, BHI_LIFE_SEEN, SAME, BHI_DO_NOTHING},
        {UNBURIED, BHI_LIFE_KILL, SAME, BHI_DO_KILL},
        {IN(CONFIRMED), BHI_LIFE_EXIT, SAME, BHI_DO_NOTHING},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].event == event && (rules[i].in & 1u << state)) {
            return &rules[i];
        }
    }
    abort();
}

void bhi_life_init(struct bhi_life *life, uint64_t start_by_ns, bool is_loader) {
    *life =
        (struct bhi_life){.is_loader = is_loader, .start_by_ns = start_by_ns, .due_ns = BH_FOREVER};
}

static uint64_t bound_ns(const struct bhi_life *life, enum bhi_life_event event) {
    switch (life->state) {
    case BHI_HUNG_UP:
    case BHI_EXITING:
        return HANG_UP_NS;
    case BHI_KILLED:
        return life->is_loader ? PATIENCE_NS : BH_FOREVER;
    case BHI_EXITED:
        return event == BHI_LIFE_UNWATCHED ? UNWATCHED_NS : REAP_NS;
    case BHI_HOLDING:
        return HELD_NS;
    default:
        return BH_FOREVER;
    }
}

enum bhi_life_act bhi_life_step(struct bhi_life *life, enum bhi_life_event event, uint64_t now_ns) {
    const struct rule *rule = find(life->state, event);
    if (event == BHI_LIFE_HELLO) {
        life->came_to = BHI_HELD;
    } else if (event == BHI_LIFE_READY) {
        life->came_to = BHI_RUNNING;
    } else if (event == BHI_LIFE_EXIT || event == BHI_LIFE_UNWATCHED) {
        life->exited_ns = now_ns;
    }
    enum bhi_life_state to = rule->to;
    if (to == BHI_KILLED && !life->born) {
        to = BHI_DOOMED;
    } else if (to == BHI_EXITED && life->holds) {
        to = BHI_HOLDING;
    }
    if (to != SAME) {
        life->state = to;
        const uint64_t ns = bound_ns(life, event);
        life->due_ns = ns == BH_FOREVER ? BH_FOREVER : now_ns + ns;
    }
    life->given_up |= rule->act == BHI_DO_GIVE_UP;
    return rule->act;
}

enum bhi_life_act bhi_life_born(struct bhi_life *life, bool holds, uint64_t now_ns) {
    life->born = true;
    life->holds = holds;
    return bhi_life_step(life, BHI_LIFE_BORN, now_ns);
}

void bhi_life_unborn(struct bhi_life *life, uint64_t now_ns) {
    life->kill = BHI_KILL_START;
    life->exit_kind = CLD_EXITED; /* as if it had exited at once */
    (void)bhi_life_step(life, BHI_LIFE_UNBORN, now_ns);
}

void bhi_life_ended(struct bhi_life *life, int exit_kind, int exit_status) {
    life->exit_kind = exit_kind;
    life->exit_status = exit_status;
}

bool bhi_life_is_held(const struct bhi_life *life, uint64_t now_ns) {
    return (life->state == BHI_HOLDING || life->state == BHI_TOLD) &&
           (life->exit_kind || now_ns - life->exited_ns >= REAP_NS);
}

void bhi_life_status(struct bhi_life *life, int exit_kind, int exit_status, uint64_t now_ns) {
    bhi_life_ended(life, exit_kind, exit_status);
    (void)bhi_life_step(life, BHI_LIFE_STATUS, now_ns);
}

void bhi_life_exit(struct bhi_life *life, uint64_t limited_ns, uint64_t now_ns) {
    life->limited_ns = limited_ns;
    (void)bhi_life_step(life, BHI_LIFE_EXIT, now_ns);
}

int bhi_life_signal(const struct bhi_life *life) {
    return life->exit_kind && life->exit_kind != CLD_EXITED ? life->exit_status : 0;
}

bool bhi_life_is_overdue(const struct bhi_life *life, uint64_t now_ns) {
    return !life->born && life->state < BHI_CONFIRMED && life->start_by_ns <= now_ns;
}

enum bhi_life_event bhi_life_due(const struct bhi_life *life, const struct bhi_life_around *around,
                                 uint64_t now_ns, uint64_t *out_again_ns) {
    const unsigned in = 1u << life->state;
    *out_again_ns = BH_FOREVER;
    if (in & IN(CONFIRMED)) {
        *out_again_ns = around->obituary_at_ns > now_ns ? around->obituary_at_ns : BH_FOREVER;
        return around->obituary_at_ns > now_ns ? BHI_LIFE_NOTHING : BHI_LIFE_BURY;
    }
    if (in & (IN(HOLDING) | IN(TOLD))) { /* what it ran may run until its device is released */
        if (around->device_free) {
            return BHI_LIFE_ORPHANED;
        }
        if (around->zygote_lost) {
            return BHI_LIFE_NOTHING;
        }
        if (in & IN(HOLDING) && !around->stream_left) {
            return BHI_LIFE_LATE;
        }
        if (around->stream_left && !life->exit_kind && now_ns - life->exited_ns < REAP_NS) {
            *out_again_ns = life->exited_ns + REAP_NS; /* bhi_life_is_held */
        }
    } else if (in & IN(EXITED) ? around->zygote_lost : !life->born && around->zygote_gone) {
        return BHI_LIFE_ORPHANED;
    } else if (in & (STARTS | IN(DOOMED)) && !bhi_life_served(life)) {
        const bool late = life->start_by_ns <= now_ns;
        if (late && in & STARTS) {
            return BHI_LIFE_START_LATE;
        }
        *out_again_ns = late ? BH_FOREVER : life->start_by_ns;
    }
    if (life->due_ns <= now_ns) {
        return BHI_LIFE_LATE;
    }
    *out_again_ns = *out_again_ns < life->due_ns ? *out_again_ns : life->due_ns;
    return BHI_LIFE_NOTHING;
}

/* A worker's life, in every order of what can happen to it: it is born, sentenced, closes its sockets,
 * is seen to end, ends, its status comes, its stream goes on without it, its zygote dies, the context
 * closes, time passes, the reactor looks or does not yet. Each happens at most once, or as often as it
 * can. A truth beside the machine says when it may count as dead. From wherever an order stops, only
 * what somebody owes still comes, as late as it may: the worker must be buried then, once, and in
 * time. */
#include "core/life.h"
#include "harness.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define MS    1000000ull
#define BEGIN (1000 * MS)                 /* when it was asked for */
#define START (1000 * MS)                 /* how long its start may take */
#define TRACE (1000 * MS)                 /* how long its obituary waits for a trace */
#define MOST  (START + TRACE + 6000 * MS) /* all deadlines in a row, and what is owed at once */
#define JUMPS 3                           /* as often may time pass within an order */
#define MANY  20                          /* turns until the end, and more */
#define KEYS  (1u << 22)

enum fact {
    BORN = 1 << 0,
    UNBORN = 1 << 1,
    HELLO = 1 << 2,
    READY = 1 << 3,
    SENTENCED = 1 << 4,
    HUNG_UP = 1 << 5,
    SEEN = 1 << 6,
    EXITED = 1 << 7,
    UNWATCHED = 1 << 8,
    STATUS = 1 << 9,
    LOST = 1 << 10, /* its zygote */
    GONE = 1 << 11, /* and all that the zygote had forked */
    FREE = 1 << 12, /* and nobody holds its device */
    LEFT = 1 << 13,
    CLOSED = 1 << 14,
    TRACED = 1 << 15, /* its obituary waits */
};

enum action {
    IS_BORN,
    IS_BORN_UNWATCHED,
    IS_NOT_BORN,
    SAYS_HELLO,
    SAYS_READY,
    IS_SENTENCED,
    HANGS_UP,
    IS_SEEN,
    EXITS,
    STATUS_COMES,
    ZYGOTE_DIES,
    ZYGOTE_IS_GONE,
    DEVICE_IS_FREE,
    STREAM_LEAVES,
    CONTEXT_CLOSES,
    IS_TRACED,
    TIME_PASSES,
    REACTOR_LOOKS,
    REACTOR_LOOKS_IN_VAIN, /* it is not exiting, and the zygote's socket is full */
    ACTIONS
};

struct world {
    struct bhi_life life;
    unsigned facts;
    uint64_t now_ns, traced_ns;
    unsigned jumps, burials;
    bool holds; /* its zygote holds the device */
    bool shot;  /* SIGKILL was sent */
};

/* What two worlds have in common that will go the same ways. */
struct key {
    uint64_t due_ns, start_ns, traced_ns;
    uint32_t facts;
    uint8_t state, came_to, kill, jumps, shot, holds, used;
};

static struct key *keys;
static unsigned seen, looks;

static struct bhi_life_around around(const struct world *w) {
    return (struct bhi_life_around){
        .zygote_lost = w->facts & LOST,
        .zygote_gone = w->facts & GONE,
        .device_free = w->facts & FREE,
        .stream_left = w->facts & LEFT && !(w->facts & CLOSED),
        .obituary_at_ns = w->facts & TRACED && !(w->facts & (LOST | CLOSED)) ? w->traced_ns : 0,
    };
}

/* May it count as dead? */
static bool is_dead(const struct world *w) {
    const struct bhi_life *life = &w->life;
    if (w->facts & (STATUS | UNBORN)) {
        return true;
    }
    if (!(w->facts & BORN)) {
        return w->facts & GONE;
    }
    if (!(w->facts & (EXITED | UNWATCHED))) {
        return life->is_loader && w->shot && life->given_up;
    }
    return w->holds ? w->facts & FREE : w->facts & LOST || w->now_ns >= life->exited_ns + 200 * MS;
}

static void step(struct world *w, enum bhi_life_event event) {
    const enum bhi_life_act act = bhi_life_step(&w->life, event, w->now_ns);
    w->shot = w->shot || (act == BHI_DO_KILL && w->life.born);
}

static void sentence(struct world *w, enum bhi_kill kill) {
    w->facts |= SENTENCED;
    w->life.kill = w->life.kill ? w->life.kill : kill;
    step(w, BHI_LIFE_KILL);
}

/* A turn of the reactor. Returns true if it buries the worker. */
static bool look(struct world *w, bool exiting, bool has_room) {
    for (int i = 0; i < MANY; i++) {
        const struct bhi_life_around a = around(w);
        uint64_t again_ns;
        const enum bhi_life_event event = bhi_life_due(&w->life, &a, w->now_ns, &again_ns);
        looks++;
        if (event == BHI_LIFE_NOTHING) {
            BHT_TRUE(again_ns > w->now_ns);
            return false;
        }
        if (event == BHI_LIFE_BURY) {
            BHT_EQ(w->life.state, BHI_CONFIRMED);
            step(w, BHI_LIFE_BURY);
            w->burials++;
            return true;
        }
        switch (bhi_life_step(&w->life, event, w->now_ns)) {
        case BHI_DO_NOTHING:
            BHT_EQ(w->life.state, BHI_CONFIRMED);
            break;
        case BHI_DO_GIVE_UP:
            BHT_TRUE(w->life.is_loader);
            break;
        case BHI_DO_END_START:
            BHT_TRUE(!(w->facts & READY) && w->now_ns >= BEGIN + START);
            sentence(w, BHI_KILL_START);
            break;
        case BHI_DO_LOOK:
            BHT_TRUE(w->facts & HUNG_UP);
            if (exiting) {
                w->facts |= SEEN;
                step(w, BHI_LIFE_SEEN);
            } else {
                sentence(w, BHI_KILL_PROTOCOL);
            }
            break;
        case BHI_DO_RELEASE:
            BHT_TRUE(w->holds && w->facts & (EXITED | UNWATCHED) && !(w->facts & LOST));
            BHT_TRUE(!a.stream_left || w->now_ns >= w->life.exited_ns + 20 * MS);
            if (!has_room) {
                return false;
            }
            step(w, BHI_LIFE_RELEASE);
            break;
        case BHI_DO_KILL:
            BHT_FAIL("only a birth and a sentence send a signal");
        }
    }
    BHT_FAIL("a turn that does not end");
}

static bool pass_time(struct world *w) {
    const struct bhi_life_around a = around(w);
    uint64_t again_ns;
    if (bhi_life_due(&w->life, &a, w->now_ns, &again_ns) != BHI_LIFE_NOTHING ||
        again_ns == BH_FOREVER) {
        return false;
    }
    w->now_ns = again_ns;
    return true;
}

static bool first(struct world *w, unsigned fact, bool can_be) {
    const bool is = can_be && !(w->facts & fact);
    w->facts |= is ? fact : 0;
    return is;
}

static void be_born(struct world *w) {
    const bool sentenced = w->life.kill != BHI_KILL_NONE;
    const enum bhi_life_act act = bhi_life_born(&w->life, w->holds, w->now_ns);
    BHT_EQ(act, sentenced ? BHI_DO_KILL : BHI_DO_NOTHING);
    w->shot = w->shot || act == BHI_DO_KILL;
}

/* Returns false if it cannot happen now. */
static bool happen(struct world *w, enum action action) {
    const bool speaks = !(w->facts & LOST), born = w->facts & BORN;
    const bool unborn = speaks && !(w->facts & (BORN | UNBORN | STATUS));
    switch (action) {
    case IS_BORN:
    case IS_BORN_UNWATCHED:
        if (!first(w, BORN, unborn)) {
            return false;
        }
        be_born(w);
        if (action == IS_BORN_UNWATCHED) {
            w->facts |= UNWATCHED;
            sentence(w, BHI_KILL_START);
            step(w, BHI_LIFE_UNWATCHED);
        }
        return true;
    case IS_NOT_BORN:
        if (!first(w, UNBORN, unborn)) {
            return false;
        }
        bhi_life_unborn(&w->life, w->now_ns);
        return true;
    case SAYS_HELLO:
        return first(w, HELLO, true) && (step(w, BHI_LIFE_HELLO), true);
    case SAYS_READY:
        return first(w, READY, w->facts & HELLO && born && w->life.kill == BHI_KILL_NONE) &&
               (step(w, BHI_LIFE_READY), true);
    case IS_SENTENCED:
        if (w->facts & CLOSED) {
            return false;
        }
        sentence(w, BHI_KILL_DEADLINE); /* and again: a second sentence changes nothing */
        return true;
    case HANGS_UP:
        return first(w, HUNG_UP, w->facts & HELLO) && (step(w, BHI_LIFE_HANG_UP), true);
    case IS_SEEN:
        return first(w, SEEN, w->facts & HUNG_UP) && (step(w, BHI_LIFE_SEEN), true);
    case EXITS:
        if (!first(w, EXITED, born && !(w->facts & UNWATCHED))) {
            return false;
        }
        bhi_life_exit(&w->life, 1, w->now_ns);
        return true;
    case STATUS_COMES:
        if (!first(w, STATUS, speaks && !(w->facts & UNBORN))) {
            return false;
        }
        bhi_life_status(&w->life, CLD_KILLED, SIGKILL, w->now_ns);
        return true;
    case ZYGOTE_DIES:
        return first(w, LOST, true);
    case ZYGOTE_IS_GONE:
        return first(w, GONE, w->facts & LOST);
    case DEVICE_IS_FREE:
        return first(w, FREE, w->facts & GONE);
    case STREAM_LEAVES: /* bhi_core_worker_may_leave */
        if (!first(w, LEFT,
                   bhi_life_served(&w->life) && bhi_life_is_dying(&w->life) &&
                       w->life.kill == BHI_KILL_NONE && speaks)) {
            return false;
        }
        sentence(w, BHI_KILL_LEFT);
        return true;
    case CONTEXT_CLOSES:
        if (!first(w, CLOSED, true)) {
            return false;
        }
        sentence(w, BHI_KILL_RETIRED);
        return true;
    case IS_TRACED:
        w->traced_ns = w->now_ns + TRACE;
        return first(w, TRACED, w->facts & STATUS && !(w->facts & READY));
    case TIME_PASSES:
        return w->jumps++ < JUMPS && pass_time(w);
    case REACTOR_LOOKS:
    case REACTOR_LOOKS_IN_VAIN:
        (void)look(w, action == REACTOR_LOOKS, action == REACTOR_LOOKS);
        return true;
    case ACTIONS:
        break;
    }
    return false;
}

/* Its end is known, or was awaited for two seconds (E9). */
TEST(a_held_process_has_ended_for_certain) {
    for (uint32_t state = BHI_SPAWNING; state <= BHI_BURIED; state++) {
        const bool held = state == BHI_HOLDING || state == BHI_TOLD;
        struct bhi_life life = {.state = (enum bhi_life_state)state, .exited_ns = 5 * MS};
        BHT_TRUE(!bhi_life_is_held(&life, 2004 * MS));
        BHT_EQ(bhi_life_is_held(&life, 2005 * MS), held);
        bhi_life_ended(&life, CLD_KILLED, SIGKILL);
        BHT_EQ(bhi_life_is_held(&life, 5 * MS), held);
    }
}

/* What must hold at any time. */
static void check(const struct world *w, enum bhi_life_state before) {
    const struct bhi_life *life = &w->life;
    BHT_GE(life->state, before); /* it never comes back */
    BHT_EQ(life->came_to, w->facts & READY   ? BHI_RUNNING
                          : w->facts & HELLO ? BHI_HELD
                                             : BHI_SPAWNING);
    BHT_EQ(life->born, !!(w->facts & BORN));
    BHT_EQ(life->exited_ns != 0, !!(w->facts & (EXITED | UNWATCHED)));
    BHT_EQ(life->exit_kind != 0, !!(w->facts & (STATUS | UNBORN)));
    BHT_EQ(bhi_life_is_alive(life), life->kill == BHI_KILL_NONE && life->state < BHI_EXITED);
    BHT_EQ(w->shot, life->born && w->facts & SENTENCED);
    if (life->kill && life->state < BHI_EXITED) {
        BHT_EQ(life->state, life->born ? BHI_KILLED : BHI_DOOMED);
    }
    if (w->facts & (EXITED | UNWATCHED)) {
        BHT_GE(life->state, w->holds ? BHI_HOLDING : BHI_EXITED);
    }
    if (life->state >= BHI_CONFIRMED) {
        BHT_TRUE(is_dead(w));
    }
    if (w->facts & (STATUS | UNBORN)) {
        BHT_GE(life->state, BHI_CONFIRMED);
    }
}

/* Nothing else happens, but for what is owed: by the kernel after SIGKILL, or after the death of the
 * namespace's pid 1; by the zygote after an exit; by the reactor when its zygote does not answer. */
static void settle(struct world w) {
    const uint64_t since_ns = w.now_ns;
    for (int i = 0; i < MANY && !w.burials; i++) {
        const enum bhi_life_state before = w.life.state;
        if (look(&w, i < 2, i > 1) || pass_time(&w)) {
            check(&w, before);
            continue;
        }
        if (w.life.state == BHI_HOLDING && !(w.facts & LOST)) {
            continue; /* the socket was full */
        }
        if (w.life.state == BHI_RUNNING && !(w.facts & LOST)) {
            BHT_TRUE(!(w.facts & (SENTENCED | HUNG_UP | EXITED | STATUS)));
            return; /* alive and well */
        }
        const bool owed = w.shot ? !w.life.is_loader : w.facts & LOST; /* SIGKILL ends no loader */
        if (w.life.born && w.life.state < BHI_EXITED && owed) {
            BHT_TRUE(happen(&w, EXITS));
        } else if (w.facts & LOST) {
            BHT_TRUE(happen(&w, ZYGOTE_IS_GONE) || happen(&w, DEVICE_IS_FREE));
        } else if (w.life.state == BHI_TOLD) {
            BHT_TRUE(happen(&w, STATUS_COMES));
        } else {
            BHT_EQ(w.life.state, BHI_DOOMED);
            BHT_TRUE(bhi_life_is_overdue(&w.life, w.now_ns));
            BHT_TRUE(happen(&w, ZYGOTE_DIES));
        }
        check(&w, before);
    }
    BHT_EQ(w.burials, 1);
    BHT_EQ(w.life.state, BHI_BURIED);
    BHT_LE(w.now_ns - since_ns, MOST);
}

static uint64_t ahead_ns(uint64_t when_ns, uint64_t now_ns) {
    return when_ns == BH_FOREVER ? BH_FOREVER : when_ns > now_ns ? when_ns - now_ns : 0;
}

static bool is_new(const struct world *w) {
    struct key key;
    memset(&key, 0, sizeof key);
    key.due_ns = ahead_ns(w->life.due_ns, w->now_ns);
    key.start_ns = ahead_ns(w->life.start_by_ns, w->now_ns);
    key.traced_ns = w->facts & TRACED ? ahead_ns(w->traced_ns, w->now_ns) : 0;
    key.facts = w->facts;
    key.state = (uint8_t)w->life.state;
    key.came_to = (uint8_t)w->life.came_to;
    key.kill = (uint8_t)w->life.kill;
    key.jumps = (uint8_t)w->jumps;
    key.shot = w->shot;
    key.holds = w->holds;
    key.used = 1;
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < sizeof key; i++) {
        hash = (hash ^ ((const unsigned char *)&key)[i]) * 1099511628211u;
    }
    for (uint64_t at = hash ^ hash >> 32;; at++) {
        struct key *slot = &keys[at % KEYS];
        if (!slot->used) {
            *slot = key;
            BHT_LT(++seen, KEYS / 2);
            return true;
        }
        if (memcmp(slot, &key, sizeof key) == 0) {
            return false;
        }
    }
}

static void walk(const struct world *w) {
    if (!is_new(w)) {
        return;
    }
    settle(*w);
    for (enum action action = 0; action < ACTIONS; action++) {
        struct world next = *w;
        if (happen(&next, action)) {
            check(&next, w->life.state);
            if (!next.burials) {
                walk(&next);
            }
        }
    }
}

static void every_order(bool is_loader, bool holds) {
    struct world w = {.holds = holds, .now_ns = BEGIN};
    bhi_life_init(&w.life, BEGIN + START, is_loader);
    keys = calloc(KEYS, sizeof *keys);
    BHT_TRUE(keys);
    walk(&w);
    BHT_GE(seen, 8000);
    free(keys);
}

TEST(every_order_ends_in_one_burial) {
    every_order(false, false);
}

TEST(a_held_device_is_free_before_the_burial) {
    every_order(false, true);
}

TEST(a_loader_that_no_signal_ends_is_given_up) {
    every_order(true, false);
}

TEST(a_life_begins_with_nothing_but_its_time) {
    struct bhi_life life;
    for (int loader = 0; loader < 2; loader++) {
        memset(&life, 0xb5, sizeof life);
        bhi_life_init(&life, 100, loader);
        BHT_EQ(life.is_loader, loader);
        BHT_EQ(life.state, BHI_SPAWNING);
        BHT_EQ(life.kill, BHI_KILL_NONE);
        BHT_EQ(life.due_ns, BH_FOREVER);
        BHT_EQ(bhi_life_signal(&life), 0);
        BHT_TRUE(!bhi_life_is_overdue(&life, 99) && bhi_life_is_overdue(&life, 100));
    }
    (void)bhi_life_born(&life, false, 50);
    BHT_TRUE(!bhi_life_is_overdue(&life, 100));
    bhi_life_exit(&life, 7, 60);
    BHT_EQ(life.limited_ns, 7);
    bhi_life_ended(&life, CLD_EXITED, 3);
    BHT_EQ(bhi_life_signal(&life), 0); /* an exit status is no signal */
    bhi_life_ended(&life, CLD_DUMPED, 11);
    BHT_EQ(bhi_life_signal(&life), 11);
    bhi_life_init(&life, 100, false);
    bhi_life_unborn(&life, 50);
    BHT_EQ(life.kill, BHI_KILL_START);
    BHT_TRUE(!bhi_life_is_overdue(&life, 100)); /* it has ended */
}

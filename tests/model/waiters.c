#include "waiters.h"
#include "world.h"

#include <string.h>

static int number_of(const struct waiter *waiter) {
    return (int)(waiter - waiter->world->waiters);
}

/* What it sees of the event: the end, and what everybody else sees. */
static void see(struct waiter *waiter) {
    struct world *world = waiter->world;
    const struct life *life = &world->lives[waiter->work];
    if (!life->ended || bhi_event_state(life->event) == BH_EVENT_PENDING) {
        world_fail(world, "E3", "waiter %d is told of the end of #%d, which has not ended",
                   number_of(waiter), waiter->work);
    } else if (memcmp(&life->verdict, &life->event->verdict, sizeof life->verdict) != 0) {
        world_fail(world, "E2", "waiter %d of #%d sees another verdict", number_of(waiter),
                   waiter->work);
    }
    waiter->notified = true;
}

static void told(struct bhi_observer *observer) {
    struct waiter *waiter = BHI_CONTAINER(observer, struct waiter, observer);
    struct world *world = waiter->world;
    world_trace(world, "  waiter %d is told that #%d has ended", number_of(waiter), waiter->work);
    FAIL_IF(world, waiter->notified, "E1", "waiter %d is told twice", number_of(waiter));
    FAIL_IF(world, waiter->left, "E10", "waiter %d is told, and has given up", number_of(waiter));
    for (const struct waiter *other = world->waiters; other != waiter; other++) {
        if (other->work != waiter->work || other->left) {
            continue;
        }
        tally(TALLY_WAITED_TOGETHER);
        FAIL_IF(world, !other->notified, "order",
                "waiter %d is told before waiter %d, who came first", number_of(waiter),
                number_of(other));
    }
    see(waiter);
}

bool waiters_join(struct world *world, int work) {
    const struct life *life = &world->lives[work];
    if (!life->submitted || world->waiter_count == WAITERS) {
        return false;
    }
    struct waiter *waiter = &world->waiters[world->waiter_count++];
    *waiter = (struct waiter){.observer.ended = told, .world = world, .work = work};
    world_trace(world, "  waiter %d waits for #%d", number_of(waiter), work);
    FAIL_IF(world, bhi_observer_join(&waiter->observer, life->event) == life->ended, "E3",
            "waiter %d of #%d is kept, or sent away, wrongly", number_of(waiter), work);
    if (life->ended) {
        see(waiter);
    }
    return true;
}

bool waiters_leave(struct world *world, int work, uint32_t arg) {
    struct waiter *those[WAITERS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < world->waiter_count; i++) {
        if (world->waiters[i].work == work && !world->waiters[i].left) {
            those[count++] = &world->waiters[i];
        }
    }
    if (!count) {
        return false;
    }
    struct waiter *waiter = those[arg % count];
    tally_if(!waiter->notified, TALLY_GAVE_UP);
    waiter->left = true;
    bhi_observer_withdraw(&waiter->observer);
    return true;
}

void waiters_tell(struct world *world, int work) {
    bhi_observers_tell(world->lives[work].event);
    for (uint32_t i = 0; i < world->waiter_count; i++) {
        const struct waiter *waiter = &world->waiters[i];
        FAIL_IF(world, waiter->work == work && !waiter->notified && !waiter->left, "E9",
                "#%d has ended, and waiter %u is not told", work, i);
    }
}

void waiters_check(struct world *world) {
    for (uint32_t i = 0; i < world->waiter_count; i++) {
        const struct waiter *waiter = &world->waiters[i];
        const struct worker *worker = world->lives[waiter->work].worker;
        FAIL_IF(
            world,
            !waiter->notified && !waiter->left && worker && !worker->dead && !worker->end_watched,
            "E9", "nobody is to notice the end of #%d, which waiter %u waits for", waiter->work, i);
    }
}

/* What the reactor sees of a worker that serves: its doorbell, its side channel, how long it has been
 * idle, and what it costs meanwhile. */
#include "../hostile/wrap.h"
#include "ipc/fdpass.h"
#include "puppet.h"
#include "supervisor/event/event.h"
#include "supervisor/reactor/watch.h"
#include "supervisor/worker/conduct.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define LISTENING (EPOLLIN | EPOLLET)

static struct {
    uint64_t now_ns, cpu_ns;
    uint32_t heard; /* of the doorbell */
    unsigned listens, added, warnings;
} scene;

WRAP(uint64_t, bhi_now_ns, void) {
    return scene.now_ns ? scene.now_ns : __real_bhi_now_ns();
}

WRAP(uint64_t, bhi_proc_cpu_ns, pid_t pid) {
    (void)pid;
    return scene.cpu_ns;
}

WRAP(int, bhi_poller_control, struct bhi_poller *poller, int operation, int fd, uint32_t events,
     struct bhi_control_source *source) {
    (void)poller, (void)fd;
    if (source->kind == BHI_SOURCE_WORKER_DOORBELL) {
        scene.heard = events;
        scene.listens++;
    }
    scene.added += operation == EPOLL_CTL_ADD && events == LISTENING;
    return 0;
}

static void hear(bh_log_level level, const char *line, void *user) {
    (void)user;
    scene.warnings += level == BH_LOG_WARNING && strstr(line, "rings its doorbell without cause");
}

static void begin(void) {
    memset(&scene, 0, sizeof scene);
    scene.now_ns = __real_bhi_now_ns();
    puppet.context->settings.log = hear;
}

BHT_AT_START(puppet_around(begin, NULL))

static struct bhi_worker *serving(void) {
    struct bhi_worker *worker = puppet_serving();
    worker->doorbell_source = (struct bhi_control_source){BHI_SOURCE_WORKER_DOORBELL, worker};
    worker->fdpass_source = (struct bhi_control_source){BHI_SOURCE_WORKER_FDPASS, worker};
    return worker;
}

static uint64_t look(struct bhi_worker *worker, bool at_conduct) {
    bhi_context_lock(puppet.context);
    const uint64_t due_ns = bhi_watch_look(worker, at_conduct, scene.now_ns);
    bhi_context_pump_unlock(puppet.context);
    return due_ns;
}

static uint64_t look_after(struct bhi_worker *worker, uint64_t ns) {
    scene.now_ns += ns;
    return look(worker, false);
}

/* -- idle -------------------------------------------------------------------------------------- */

/* Its time begins when its last work has ended: what it has, what waits in its queue, and what came and
 * went between two looks are work. */
TEST(an_idle_worker_is_retired_when_its_time_is_over) {
    struct bhi_worker *worker = serving();
    const struct bhi_life *life = &worker->core.life;
    puppet.context->settings.worker_idle_ns = 100;
    BHT_EQ(look(worker, false), scene.now_ns + 100);
    BHT_EQ(look_after(worker, 99), scene.now_ns + 1);
    bh_event *event = puppet_submit();
    (void)look_after(worker, 1); /* it works */
    puppet_complete(worker, 1);
    BHT_EQ(bh_event_query(event), BH_EVENT_READY);
    BHT_EQ(look_after(worker, 60), scene.now_ns + 40);
    event = puppet_submit();
    puppet_complete(worker, 1);
    BHT_EQ(bh_event_query(event), BH_EVENT_READY);
    BHT_EQ(look_after(worker, 39), scene.now_ns + 100);
    bh_event *other = fx_fill(puppet_stream("other", NULL), fx_buffer(puppet.context, 64), 7);
    const bh_command fill = {.type = BH_COMMAND_FILL,
                             .fill = {.dst = puppet.buffer, .size = 64, .value = 7}};
    bh_event *waits = fx_command(puppet.stream, fill, &other, 1);
    BHT_EQ(look_after(worker, 100), scene.now_ns + 100);
    BHT_EQ(bh_event_cancel(waits), BH_OK);
    BHT_EQ(look_after(worker, 99), scene.now_ns + 1);
    BHT_EQ(life->kill, BHI_KILL_NONE);
    BHT_EQ(look_after(worker, 1), BH_FOREVER);
    BHT_EQ(life->kill, BHI_KILL_RETIRED);
    BHT_EQ(look_after(worker, 1), BH_FOREVER);
}

TEST(who_is_never_idle) {
    enum { NEVER, LOADER, SPARE, STARTS, LATER_THAN_EVER, WAYS };
    for (int way = NEVER; way < WAYS; way++) {
        puppet_again();
        struct bhi_worker *worker = way == SPARE ? puppet_worker(BHI_RUNNING) : serving();
        puppet_has_come_to(worker, way == STARTS ? BHI_HELD : BHI_RUNNING);
        worker->kind = way == LOADER ? BHI_WORKER_LOADER : BHI_WORKER_DEVICE;
        puppet.context->settings.worker_idle_ns = way == NEVER             ? 0
                                                  : way == LATER_THAN_EVER ? BH_FOREVER - 1
                                                                           : 1;
        for (int i = 0; i < 3; i++) {
            BHT_EQ(look_after(worker, 2), BH_FOREVER);
        }
        BHT_EQ(worker->core.life.kill, BHI_KILL_NONE);
        worker->kind = BHI_WORKER_DEVICE;
    }
}

/* -- the doorbell ------------------------------------------------------------------------------ */

/* T5. One that rings without cause is not heard for a while, again and again, and said once; then it is
 * killed. What it has completed counts. */
TEST(t5_a_doorbell_without_cause) {
    const struct bhi_conduct_limits *limits = &bhi_conduct_limits;
    struct bhi_worker *worker = serving();
    bh_event *event = puppet_submit();
    puppet_complete(worker, 1);
    bhi_watch_rung(worker);
    BHT_EQ(bhi_event_state(event), BH_EVENT_READY);
    for (uint32_t mutes = 0; mutes < limits->mutes; mutes++) {
        for (uint32_t rings = 0; scene.heard == LISTENING || !scene.listens; rings++) {
            BHT_LE(rings, limits->rings);
            bhi_watch_rung(worker);
        }
        BHT_EQ(scene.heard, 0);
        BHT_EQ(scene.listens, 2 * mutes + 1);
        BHT_EQ(look(worker, false), scene.now_ns + limits->mute_ns);
        BHT_EQ(look_after(worker, limits->mute_ns - 1), scene.now_ns + 1);
        BHT_EQ(scene.listens, 2 * mutes + 1);
        BHT_EQ(look_after(worker, 1), BH_FOREVER);
        BHT_EQ(scene.heard, LISTENING);
        BHT_EQ(look_after(worker, 1), BH_FOREVER);
        BHT_EQ(scene.listens, 2 * mutes + 2);
        bhi_watch_rung(worker); /* from before: it is free */
    }
    BHT_EQ(scene.warnings, 1);
    BHT_EQ(worker->core.life.kill, BHI_KILL_NONE);
    while (worker->core.life.kill == BHI_KILL_NONE) {
        bhi_watch_rung(worker);
    }
    BHT_TRUE(worker->core.life.violated);
    BHT_EQ(scene.heard, 0);
    worker->conduct.muted_until_ns = scene.now_ns;
    BHT_EQ(look_after(worker, 1), BH_FOREVER);
    BHT_EQ(scene.heard, 0); /* for ever */
}

/* -- the side channel -------------------------------------------------------------------------- */

/* T6. Nobody has asked for what comes. Its end is its end, whether or not it has read all. */
TEST(t6_what_comes_by_the_side_channel) {
    enum { NOTHING, UNASKED, UNASKED_OF_THE_DEAD, END, BREAK, CLOSED, WAYS };
    for (int way = NOTHING; way < WAYS; way++) {
        puppet_again();
        struct bhi_worker *worker = serving();
        int pair[2];
        BHT_EQ(bhi_fdpass_pair(pair), 0);
        bhi_watch_side_channel_end(worker); /* nothing is there to end */
        worker->fdpass = pair[0];
        bhi_watch_side_channel_end(worker); /* it is not watched */
        BHT_EQ(worker->fdpass, pair[0]);
        for (int i = 0; i < 2; i++) {
            bhi_watch_side_channel(worker);
        }
        BHT_EQ(scene.added, 1);
        if (way == UNASKED_OF_THE_DEAD) {
            bhi_context_lock(puppet.context);
            bhi_core_worker_kill(&worker->core, BHI_KILL_RETIRED, 0, "as the test says");
            bhi_context_pump_unlock(puppet.context);
        }
        if (way == UNASKED || way == UNASKED_OF_THE_DEAD) {
            BHT_EQ(bhi_fdpass_send(pair[1], "?", 1, NULL, 0), 0);
        }
        if (way == BREAK) {
            BHT_EQ(bhi_fdpass_send(pair[0], "?", 1, NULL, 0), 0);
        }
        if (way >= END) {
            close(pair[1]);
        }
        if (way == CLOSED) {
            const bh_event *event = puppet_submit();
            puppet_complete(worker, 1);
            bhi_watch_side_channel_end(worker);
            BHT_EQ(bhi_event_state(event), BH_EVENT_READY); /* what has come is taken in first */
            BHT_TRUE(worker->fdpass == -1 && fcntl(pair[0], F_GETFD) == -1);
        }
        BHT_EQ(bhi_watch_side_channel_event(worker), way == END || way == BREAK);
        BHT_EQ(worker->core.life.violated, way == UNASKED);
        if (way < END) {
            close(pair[1]);
        }
    }
}

/* -- conduct ----------------------------------------------------------------------------------- */

/* T5. What a worker uses of the processor counts while it has nothing to do: nothing in flight, and no
 * kernel to learn. */
TEST(t5_the_time_of_a_worker_that_does_nothing) {
    enum { NOTHING, LITTLE, LEARNS, WORKS, STARTS, DYING, WAYS };
    for (int way = NOTHING; way < WAYS; way++) {
        puppet_again();
        struct bhi_worker *worker = way == STARTS ? puppet_worker(BHI_SPAWNING) : serving();
        worker->lessons.kernel = way == LEARNS ? 7 : 0;
        worker->lessons.until_ns = way == LEARNS ? UINT64_MAX / 2 : 0;
        if (way == WORKS) {
            (void)puppet_submit();
        }
        if (way == DYING) {
            puppet_dies(worker);
            bhi_life_exit(&worker->core.life, 1, scene.now_ns);
        }
        scene.cpu_ns = 1;
        (void)look(worker, true);
        scene.now_ns += bhi_conduct_limits.look_ns;
        scene.cpu_ns += bhi_conduct_limits.idle_cpu_ns + (way != LITTLE);
        (void)look(worker, false); /* it is not looked at */
        BHT_TRUE(!worker->core.life.violated);
        (void)look(worker, true);
        BHT_EQ(worker->core.life.violated, way == NOTHING);
        worker->lessons.kernel = 0;
    }
}

/* Whoever has ended is not late any more: its death has another cause. */
TEST(t2_a_deadline_ends_with_its_worker) {
    for (int ends = 0; ends < 2; ends++) {
        puppet_again();
        struct bhi_worker *worker = serving();
        puppet.stream->deadline_ns = 5;
        (void)puppet_submit();
        puppet_begins(worker, 1);
        if (ends) {
            bhi_life_exit(&worker->core.life, 1, scene.now_ns);
        }
        for (int i = 0; i < 3; i++) {
            (void)look_after(worker, 1000);
        }
        BHT_EQ(worker->core.life.kill, ends ? BHI_KILL_NONE : BHI_KILL_DEADLINE);
    }
}

/* -- each look --------------------------------------------------------------------------------- */

/* What it has completed is taken in, and what it has sent is read on at once. */
TEST(each_look_takes_in_what_is_there) {
    struct bhi_worker *worker = serving();
    bh_event *event = puppet_submit();
    puppet_complete(worker, 1);
    worker->messages_left = true;
    BHT_EQ(look(worker, false), 0);
    BHT_EQ(bhi_event_state(event), BH_EVENT_READY);
    worker->messages_left = false;
    BHT_EQ(look(worker, false), BH_FOREVER);
    worker->lessons.kernel = 7;
    worker->lessons.since_ns = scene.now_ns;
    worker->lessons.until_ns = scene.now_ns + 10;
    BHT_EQ(look(worker, false), scene.now_ns + 10);
    worker->lessons.kernel = 0;
}

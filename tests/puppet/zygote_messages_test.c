/* What a zygote says: of workers, also of those that nobody waits for any more; that it is ready; what it
 * traces, or does not live to say. And what it says when there is no descriptor for it. */
#include "ipc/fdpass.h"
#include "ipc/trace.h"
#include "puppet.h"
#include "supervisor/reactor/control.h"
#include "supervisor/reactor/zygote_messages.h"
#include "supervisor/worker/cgroup.h"
#include "supervisor/worker/trace.h"

#include <bulkhead/trace.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

static struct {
    uint64_t now_ns;
    int watch_error, cgroup_error; /* -errno */
    unsigned watched, unwatched, entered, ready;
    int end; /* the zygote's, of its socket */
} scene;

BHT_WRAP(uint64_t, bhi_now_ns, void) {
    return scene.now_ns ? scene.now_ns : __real_bhi_now_ns();
}

BHT_WRAP(int, bhi_poller_watch, struct bhi_poller *poller, int fd,
         struct bhi_control_source *source) {
    if (!scene.now_ns) {
        return __real_bhi_poller_watch(poller, fd, source);
    }
    scene.watched++;
    return scene.watch_error;
}

BHT_WRAP(void, bhi_poller_unwatch, struct bhi_poller *poller, int fd) {
    if (!scene.now_ns) {
        __real_bhi_poller_unwatch(poller, fd);
    }
    scene.unwatched++;
}

BHT_WRAP(int, bhi_cgroup_enter, const struct bhi_cgroup *cgroup, uint64_t worker, pid_t pid) {
    (void)cgroup, (void)worker;
    BHT_GT(pid, 0);
    scene.entered++;
    return scene.cgroup_error;
}

BHT_WRAP(void, bhi_control_ready, struct bhi_worker *worker) {
    BHT_TRUE(worker->core.life.born && worker->pidfd >= 0);
    scene.ready++;
}

static void hear_zygote(void) {
    int pair[2];
    memset(&scene, 0, sizeof scene);
    scene.now_ns = __real_bhi_now_ns();
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    puppet.zygote->socket = pair[0];
    scene.end = pair[1];
}

static void stop_hearing(void) {
    close(scene.end);
    scene.now_ns = 0;
    puppet.zygote->cgroup.version = 0;
}

static pid_t fork_sleeper(int *out_pidfd) {
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(30); /* where nobody kills it that should */
        pause();
        _exit(1);
    }
    *out_pidfd = pidfd_open(pid, 0);
    BHT_GE(*out_pidfd, 0);
    return pid;
}

static void end_sleeper(pid_t pid) {
    int status;
    (void)kill(pid, SIGKILL);
    BHT_EQ(waitpid(pid, &status, 0), pid);
}

/* -- births ------------------------------------------------------------------------------------ */

static void say_born(uint64_t worker, bool held, int pidfd) {
    const struct bhi_message born = {.type = BHI_MSG_SPAWNED,
                                     .spawned = {.worker = worker, .held = held}};
    BHT_EQ(bhi_fdpass_send_message(scene.end, &born, &pidfd, 1), 0);
}

enum { LIMITED = 1, IN_CGROUP = 2, HELD = 4, IS_READY = 8, OTHERS = 16, DOOMED = 32 };

static const struct {
    unsigned flags;
    int cgroup_error, watch_error;
    bool entered, killed, unwatched, stranger;
} births[] = {
    {.flags = 0},
    {.flags = HELD},
    {.flags = IS_READY},
    {.flags = LIMITED},
    {.flags = IN_CGROUP},
    {.flags = LIMITED | IN_CGROUP, .entered = true},
    {.flags = LIMITED | IN_CGROUP, .cgroup_error = -ESRCH, .entered = true}, /* dead already */
    {.flags = LIMITED | IN_CGROUP, .cgroup_error = -ENOSPC, .entered = true, .killed = true},
    {.flags = 0, .watch_error = -ENOSPC, .killed = true, .unwatched = true},
    {.flags = OTHERS, .stranger = true},
    {.flags = DOOMED, .killed = true},
    {.flags = DOOMED | LIMITED | IN_CGROUP,
     .cgroup_error = -ESRCH,
     .entered = true,
     .killed = true},
};

/* It is limited before it is counted as born, and whoever cannot be limited or watched is killed, and so is
 * one that was to be killed before. The descriptors that were kept for it are kept again. One that is another zygote's is nobody's. */
TEST(each_birth) {
    for (size_t i = 0; i < BHT_COUNT(births); i++) {
        const unsigned flags = births[i].flags;
        struct bhi_zygote other = {.context = puppet.context};
        int pidfd;
        puppet_again();
        hear_zygote();
        scene.cgroup_error = births[i].cgroup_error;
        scene.watch_error = births[i].watch_error;
        puppet.zygote->cgroup.version = flags & IN_CGROUP ? 2 : 0;
        puppet.zygote->proc = -1;
        puppet.zygote->proc_error = EPERM;
        struct bhi_worker *worker = puppet_worker(BHI_SPAWNING);
        worker->memory_limit = flags & LIMITED ? 4096 : 0;
        worker->ready_logged = flags & IS_READY;
        worker->zygote = flags & OTHERS ? &other : puppet.zygote;
        worker->core.pid = 0;
        if (flags & DOOMED) {
            bhi_context_lock(puppet.context);
            bhi_core_worker_kill(&worker->core, BHI_KILL_START, 0, "it is late");
            bhi_context_pump_unlock(puppet.context);
        }
        const pid_t pid = fork_sleeper(&pidfd);
        say_born(worker->id, flags & HELD, pidfd);
        close(pidfd);
        BHT_TRUE(bhi_zygote_receive(puppet.zygote));
        worker->zygote = puppet.zygote;
        const struct bhi_life *life = &worker->core.life;
        BHT_EQ(life->born, !births[i].stranger);
        BHT_EQ(worker->core.pid, births[i].stranger ? 0 : pid);
        BHT_EQ(life->holds, !!(flags & HELD));
        BHT_EQ(scene.entered, births[i].entered);
        BHT_EQ(life->kill, births[i].killed ? BHI_KILL_START : BHI_KILL_NONE);
        BHT_EQ(life->state, births[i].unwatched ? BHI_EXITED
                            : births[i].killed  ? BHI_KILLED
                                                : BHI_SPAWNING);
        BHT_EQ(scene.ready, !!(flags & IS_READY));
        BHT_EQ(worker->room.count, births[i].stranger ? 0 : BHI_ROOM_HELD);
        if (births[i].killed || births[i].stranger) {
            int status;
            BHT_EQ(waitpid(pid, &status, 0), pid); /* by whoever noticed */
            BHT_EQ(status, SIGKILL);
        }
        if (!births[i].stranger) { /* nobody is born twice, or is not after all */
            const struct bhi_message not_born = {
                .type = BHI_MSG_SPAWN_FAILED,
                .spawn_failed = {.worker = worker->id, .error = ENOMEM}};
            BHT_EQ(bhi_fdpass_send_message(scene.end, &not_born, NULL, 0), 0);
            BHT_TRUE(!bhi_zygote_receive(puppet.zygote));
            say_born(worker->id, false, worker->pidfd);
            BHT_TRUE(!bhi_zygote_receive(puppet.zygote));
        }
        struct bhi_message answer;
        int fds[BHI_FDPASS_MAX];
        BHT_EQ(bhi_fdpass_recv_message(scene.end, BHI_S2Z, &answer, fds, MSG_DONTWAIT, NULL, 0),
               -EAGAIN); /* nothing is to be released */
        if (!births[i].killed && !births[i].stranger) {
            end_sleeper(pid);
        }
        worker->memory_limit = 0;
        stop_hearing();
    }
}

/* Without its pid nobody could limit or check it. */
TEST(one_whose_pid_cannot_be_read) {
    hear_zygote();
    struct bhi_worker *worker = puppet_worker(BHI_SPAWNING);
    puppet_bind(worker, puppet.stream);
    say_born(worker->id, false, scene.end); /* which is no pidfd */
    BHT_TRUE(bhi_zygote_receive(puppet.zygote));
    BHT_EQ(worker->core.pid, 0);
    BHT_EQ(worker->core.life.kill, BHI_KILL_START);
    BHT_STR_HAS(worker->core.life.kill_text, "its pid could not be read");
    stop_hearing();
}

/* One that could not be forked has not started, and its stream is told why. */
TEST(one_that_cannot_be_forked) {
    hear_zygote();
    struct bhi_worker *worker = puppet_worker(BHI_SPAWNING);
    puppet_bind(worker, puppet.stream);
    const struct bhi_message not_born = {.type = BHI_MSG_SPAWN_FAILED,
                                         .spawn_failed = {.worker = worker->id, .error = EPERM}};
    BHT_EQ(bhi_fdpass_send_message(scene.end, &not_born, NULL, 0), 0);
    BHT_TRUE(bhi_zygote_receive(puppet.zygote));
    BHT_EQ(worker->core.life.state, BHI_CONFIRMED);
    puppet_bury(worker);
    BHT_EQ(puppet.stream->core.trouble.reason, BH_REASON_START_REFUSED);
    BHT_STR_HAS(puppet.stream->core.trouble.message, "could not fork: EPERM");
    stop_hearing();
}

/* -- no descriptor for what it says ------------------------------------------------------------ */

static void say_ready(void) {
    struct bhi_message ready = {.type = BHI_MSG_ZYGOTE_READY};
    const int fds[] = {scene.end, scene.end};
    snprintf(ready.zygote_ready.driver, sizeof ready.zygote_ready.driver, "lavapipe");
    BHT_EQ(bhi_fdpass_send_message(scene.end, &ready, fds, 2), 0);
}

static struct rlimit limit;

/* No more can be opened than is. */
static void leave_no_room(void) {
    BHT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const int lowest = dup(0);
    BHT_GE(lowest, 0);
    close(lowest);
    const struct rlimit none = {(rlim_t)lowest, limit.rlim_max};
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
}

static void make_room(void) {
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* E9. The message stays, and is asked for again. A zygote that starts is given up after 200 ms; one that
 * serves is not, and what it says comes through when there is room. */
TEST(e9_a_message_without_a_descriptor_stays) {
    for (int starting = 0; starting < 2; starting++) {
        puppet_again();
        hear_zygote();
        struct bhi_zygote *zygote = puppet.zygote;
        struct bhi_worker *worker = puppet_worker(BHI_SPAWNING);
        int pidfd = -1;
        const pid_t pid = starting ? -1 : fork_sleeper(&pidfd);
        zygote->state = starting ? BHI_ZYGOTE_STARTING : BHI_ZYGOTE_READY;
        puppet.context->has_had_zygote = false;
        if (starting) {
            say_ready();
        } else {
            say_born(worker->id, false, pidfd);
        }
        const uint64_t begun_ns = scene.now_ns;
        leave_no_room();
        for (int i = 0; i < 2; i++) {
            BHT_TRUE(bhi_zygote_receive(zygote));
            BHT_EQ(zygote->deaf_since_ns, begun_ns);
            BHT_TRUE(zygote->socket_ignored);
            BHT_EQ(scene.unwatched, i + 1);
            scene.now_ns += 200 * MS - 1;
            scene.watch_error = i ? 0 : -ENOMEM;
            BHT_EQ(bhi_zygote_listen(zygote), !i || !starting);
            BHT_EQ(zygote->socket_ignored, !i || starting);
            scene.now_ns++;
        }
        BHT_EQ(zygote->failure.reason, starting ? BH_REASON_UNREACHABLE : BH_REASON_NONE);
        BHT_EQ(zygote->failure.sys_errno, starting ? EMFILE : 0);
        make_room();
        BHT_TRUE(bhi_zygote_receive(zygote));
        BHT_EQ(zygote->deaf_since_ns, 0);
        BHT_EQ(zygote->state, BHI_ZYGOTE_READY);
        BHT_EQ(puppet.context->has_had_zygote, starting);
        BHT_EQ(worker->core.life.born, !starting);
        if (!starting) {
            BHT_EQ(worker->core.pid, pid);
            close(pidfd);
            end_sleeper(pid);
        }
        stop_hearing();
    }
}

/* For the pidfd of a worker there is room, which was kept. */
TEST(e9_a_birth_has_its_descriptor) {
    hear_zygote();
    struct bhi_worker *worker = puppet_worker(BHI_SPAWNING);
    int pidfd;
    const pid_t pid = fork_sleeper(&pidfd);
    say_born(worker->id, false, pidfd);
    bhi_room_hold(&worker->room, pidfd);
    leave_no_room();
    BHT_TRUE(bhi_zygote_receive(puppet.zygote));
    make_room();
    BHT_TRUE(worker->core.life.born && !puppet.zygote->socket_ignored);
    BHT_EQ(scene.unwatched, 0);
    close(pidfd);
    end_sleeper(pid);
    stop_hearing();
}

/* One whose end cannot be watched is lost. Nobody is ready twice. What comes with a message that is not
 * expected is closed. */
TEST(one_that_is_ready) {
    for (int error = 0; error < 2; error++) {
        puppet_again();
        hear_zygote();
        struct bhi_zygote *zygote = puppet.zygote;
        zygote->state = BHI_ZYGOTE_STARTING;
        scene.watch_error = error ? -ENOSPC : 0;
        say_ready();
        BHT_EQ(bhi_zygote_receive(zygote), !error);
        BHT_EQ(zygote->state, error ? BHI_ZYGOTE_STARTING : BHI_ZYGOTE_READY);
        BHT_EQ(zygote->pidfd_unwatched, error);
        BHT_EQ(zygote->failure.sys_errno, error ? ENOSPC : 0);
        BHT_TRUE(zygote->pidfd >= 0 && zygote->proc >= 0 && zygote->pidfd != zygote->proc);
        BHT_STR_EQ(zygote->driver, "lavapipe");
        zygote->state = BHI_ZYGOTE_READY;
        say_ready();
        BHT_TRUE(!bhi_zygote_receive(zygote));
        stop_hearing();
    }
}

/* A start was given up, because there was no descriptor for the pidfd. Then there is one: the process
 * is killed, and the zygote lets go of its device. The worker may be buried by then, or be about to. */
static void a_birth_that_was_given_up(bool buried) {
    int pair[2], fds[BHI_FDPASS_MAX], status = 0;
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    puppet.zygote->socket = pair[0];
    struct bhi_worker *worker = puppet_worker(BHI_SPAWNING);
    const uint64_t id = worker->id;
    bhi_context_lock(puppet.context);
    bhi_zygote_give_up(worker);
    bhi_context_unlock(puppet.context);
    if (buried) {
        puppet_bury(worker);
    }
    const pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(1);
    }
    int pidfd = pidfd_open(pid, 0);
    BHT_GE(pidfd, 0);
    const struct bhi_message born = {.type = BHI_MSG_SPAWNED, .spawned = {.worker = id, .held = 1}};
    BHT_EQ(bhi_fdpass_send_message(pair[1], &born, &pidfd, 1), 0);
    close(pidfd);
    BHT_TRUE(bhi_zygote_receive(puppet.zygote));
    BHT_EQ(waitpid(pid, &status, 0), pid);
    BHT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    struct bhi_message answer;
    BHT_EQ(bhi_fdpass_recv_message(pair[1], BHI_S2Z, &answer, fds, MSG_DONTWAIT, NULL, 0), 1);
    BHT_EQ(answer.type, BHI_MSG_RELEASE);
    BHT_EQ(answer.release.worker, id);
    BHT_TRUE(buried || worker->pidfd < 0);
    close(pair[1]);
}

TEST(one_that_is_born_after_its_burial) {
    a_birth_that_was_given_up(true);
}

TEST(one_that_is_born_before_its_burial) {
    a_birth_that_was_given_up(false);
}

/* One that hangs before it has sent its pidfd learns from its socket that it is to end. */
TEST(a_start_can_be_ended) {
    int pair[2];
    char byte;
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    puppet.zygote->socket = pair[0];
    bhi_zygote_kill(puppet.zygote);
    BHT_EQ(recv(pair[1], &byte, 1, MSG_DONTWAIT), 0);
    close(pair[1]);
}

/* -- traces ------------------------------------------------------------------------------------ */

static enum { ENDS, FAILS, DIES, IS_LATE, FATES } fate;
static int waits; /* for the answer */

BHT_WRAP(int, bhi_futex_wait, const _Atomic uint32_t *word, uint32_t expected, bool shared,
         uint64_t deadline_ns) {
    struct bhi_zygote *zygote = puppet.zygote;
    if (word != &zygote->probe_word) {
        return __real_bhi_futex_wait(word, expected, shared, deadline_ns);
    }
    BHT_LT(waits++, 10);
    bhi_context_lock(puppet.context);
    zygote->trace.page->count = 3;
    zygote->trace.page->calls[1].phase = BHI_TRACE_PHASES; /* which is none */
    if (fate == DIES) {
        zygote->state = BHI_ZYGOTE_LOST;
    } else if (fate != IS_LATE) {
        bhi_trace_end(&zygote->trace, fate != FAILS, "as the test says");
    }
    bhi_context_unlock(puppet.context);
    return fate == IS_LATE ? -ETIMEDOUT : 0;
}

/* How a trace can end; what is seen of it is no more than there is room for. */
TEST(each_end_of_a_trace) {
    static const struct {
        bh_status status;
        bh_reason reason;
    } rows[FATES] = {[ENDS] = {BH_OK, BH_REASON_NONE},
                     [FAILS] = {BH_UNAVAILABLE, BH_REASON_TRACE},
                     [DIES] = {BH_UNAVAILABLE, BH_REASON_DIED},
                     [IS_LATE] = {BH_TIMEOUT, BH_REASON_LATE}};
    for (fate = ENDS; fate < FATES; fate++) {
        for (size_t room = 0; room < 4; room++) {
            puppet_again();
            int pair[2];
            BHT_EQ(bhi_fdpass_pair(pair), 0);
            bhi_context_lock(puppet.context);
            puppet.zygote->socket = pair[0];
            snprintf(puppet.zygote->driver, sizeof puppet.zygote->driver, "lavapipe");
            bhi_context_unlock(puppet.context);
            bh_traced_call calls[4] = {{.struct_size = sizeof calls[0]}};
            calls[room] = (bh_traced_call){.struct_size = sizeof calls[0], .count = 77};
            bh_trace trace = {.struct_size = sizeof trace};
            bh_detail detail = {0};
            size_t count = 9;
            waits = 0;
            const bh_status status =
                bh_trace_driver(puppet.context, "lavapipe", &trace, calls, room, &count, &detail);
            BHT_EQ(status, rows[fate].status);
            if (status != BH_OK) {
                BHT_EQ(detail.reason, rows[fate].reason);
            }
            BHT_EQ(count, fate == ENDS ? 2 : 0);
            BHT_EQ(calls[room].count, 77);
            BHT_EQ(waits, 1);
            close(pair[1]);
        }
    }
}

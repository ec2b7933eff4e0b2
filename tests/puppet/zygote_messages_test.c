/* What a zygote says of workers that nobody waits for any more; and of what it traces, or does not live
 * to say. */
#include "ipc/fdpass.h"
#include "ipc/trace.h"
#include "puppet.h"
#include "supervisor/reactor/zygote_messages.h"
#include "supervisor/worker/trace.h"

#include <bulkhead/trace.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

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

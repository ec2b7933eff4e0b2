/* What a zygote says of workers that nobody waits for any more. */
#include "ipc/fdpass.h"
#include "puppet.h"
#include "supervisor/reactor/zygote_messages.h"

#include <signal.h>
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

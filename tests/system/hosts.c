/* A good guest: hosts that reap every child, ignore SIGCHLD, fork, die, or look closely. */
#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void one_death_and_one_success(bh_context *context) {
    bh_stream *stream = fx_stream(context, "s", BH_FOREVER);
    pid_t pid = fx_ready(stream);
    bh_kernel *hang = fx_kernel(context, "gate");
    bh_buffer *gate = fx_words(context, 64, 0);
    bh_event *event = fx_gate(stream, hang, gate);
    fx_await_gate(gate);
    fx_kill(pid, SIGKILL);
    fx_expect(event, BH_WORKER_SIGNAL);
    BHT_EQ(fx_verdict(event).signal, SIGKILL);
    fx_expect_healthy(context, stream);
    bh_event_release(event);
    bh_kernel_release(hang);
    bh_buffer_release(gate);
    bh_stream_release(stream);
}

static _Atomic bool reaper_stop;

static void *reap_everything(void *unused) {
    (void)unused;
    while (!reaper_stop) {
        int status;
        if (waitpid(-1, &status, WNOHANG) <= 0)
            bht_poll_pause();
    }
    return NULL;
}

static void a_host_that_reaps_every_child(void) {
    pthread_t thread;
    BHT_EQ(pthread_create(&thread, NULL, reap_everything, NULL), 0);
    bh_context *context = fx_context(NULL);
    one_death_and_one_success(context);
    bh_context_destroy(context);
    reaper_stop = true;
    pthread_join(thread, NULL);
}

static void a_host_that_ignores_sigchld(void) {
    signal(SIGCHLD, SIG_IGN);
    bh_context *context = fx_context(NULL);
    one_death_and_one_success(context);
    bh_context_destroy(context);
}

static void a_host_that_adopts_orphans(void) {
    BHT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    bh_context *context = fx_context(NULL);
    one_death_and_one_success(context);
    bh_context_destroy(context);
    BHT_EQ(bht_count_children(getpid()), 0);
}

/* After a fork the child is refused, politely, and the parent goes on. */
static void a_host_that_forks(void) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = fx_words(context, 64, 0), *y = fx_words(context, 64, 0);
    bh_event *done = fx_square(stream, square, x, y);
    fx_expect(done, BH_OK);
    pid_t child = fork();
    if (child == 0) {
        bh_event *event = NULL;
        bh_buffer *buffer = NULL;
        bh_context *again = NULL;
        bh_verdict verdict;
        void *pointer;
        size_t index;
        const uint32_t groups[3] = {1, 1, 1};
        bool refused =
            bh_launch(stream, square, groups, NULL, 0, NULL, 0, &event, NULL) == BH_FORKED &&
            bh_buffer_create(context, 64, &buffer, NULL) == BH_FORKED &&
            bh_stream_synchronize(stream, 0, NULL) == BH_FORKED &&
            bh_stream_wait_ready(stream, 0, NULL) == BH_FORKED &&
            bh_buffer_map(y, BH_MAP_READ, 0, &pointer, NULL) == BH_FORKED &&
            bh_stream_worker_pid(stream) == 0 && bh_buffer_release(y) == BH_FORKED &&
            bh_event_wait(done, BH_FOREVER) == BH_OK && /* what had ended can be looked at */
            bh_event_wait_any(&done, 1, BH_FOREVER, &index) == BH_OK &&
            bh_event_verdict(done, &verdict) == BH_OK;
        bh_event_release(done);
        bh_buffer_release(x);
        bh_kernel_release(square);
        bh_stream_release(stream);
        bh_context_destroy(context);
        /* A context of its own is fine. (TSan knows no threads after such a fork.) */
        bool own = BHT_TSAN || bh_context_create(NULL, &again, NULL) == BH_OK;
        if (own)
            bh_context_destroy(again);
        _exit(refused && own ? 0 : 1);
    }
    int status = -1;
    BHT_EQ(waitpid(child, &status, 0), child);
    BHT_EQ(status, 0);
    fx_expect_healthy(context, stream);
    bh_event_release(done);
    bh_buffer_release(x);
    bh_buffer_release(y);
    bh_kernel_release(square);
    bh_stream_release(stream);
    bh_context_destroy(context);
}

static size_t runtime_folders(pid_t pid) {
    char prefix[64];
    snprintf(prefix, sizeof prefix, "bulkhead-%d-", (int)pid);
    size_t count = 0;
    DIR *dir = opendir("/tmp");
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    if (dir)
        closedir(dir);
    return count;
}

/* Nothing of the process is changed: handlers, mask, environment, working directory. */
static void nothing_of_the_host_is_touched(void) {
    static struct sigaction before[65], after[65]; /* zero for the two that are libc's own */
    for (int i = 1; i < 65; i++)
        sigaction(i, NULL, &before[i]);
    sigset_t mask_before, mask_after;
    pthread_sigmask(SIG_SETMASK, NULL, &mask_before);
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    fx_expect_healthy(context, stream);
    for (int i = 1; i < 65; i++) {
        sigaction(i, NULL, &after[i]);
        BHT_TRUE(before[i].sa_handler == after[i].sa_handler);
    }
    pthread_sigmask(SIG_SETMASK, NULL, &mask_after);
    for (int i = 1; i < 65; i++)
        BHT_EQ(sigismember(&mask_before, i), sigismember(&mask_after, i));
    BHT_EQ(prctl(PR_GET_DUMPABLE), 1);
    BHT_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
    bh_stream_release(stream);
    bh_context_destroy(context);
}

/* Destroying with everything in flight poisons it, and what the caller holds stays valid. */
static void a_context_is_destroyed_in_mid_job(void) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "s", BH_FOREVER);
    bh_kernel *hang = fx_kernel(context, "gate"), *square = fx_kernel(context, "square");
    bh_buffer *gate = fx_words(context, 64, 0);
    bh_buffer *x = fx_words(context, 64, 0), *y = fx_words(context, 64, 0);
    fx_ready(stream);
    bh_event *running = fx_gate(stream, hang, gate);
    fx_await_gate(gate);
    bh_event *queued = fx_square(stream, square, x, y);
    bh_context_destroy(context);
    fx_expect(running, BH_CONTEXT_CLOSED);
    fx_expect(queued, BH_CONTEXT_CLOSED);
    BHT_EQ(bht_count_descendants(getpid()), 0);
    BHT_EQ(runtime_folders(getpid()), 0);
    bh_event *event;
    const uint32_t groups[3] = {1, 1, 1};
    BHT_EQ(bh_launch(stream, square, groups, NULL, 0, NULL, 0, &event, NULL), BH_CLOSED);
    bh_detail detail;
    BHT_EQ(bh_stream_wait_ready(stream, FX_SECONDS, &detail), BH_CLOSED);
    bh_stream_release(stream);
    bh_kernel_release(hang);
    bh_kernel_release(square);
    bh_buffer_release(gate);
    bh_buffer_release(x);
    bh_buffer_release(y);
    BHT_EQ(bh_event_wait(running, 0), BH_CONTEXT_CLOSED); /* E1 */
    bh_event_release(running);
    bh_event_release(queued);
}

static void two_contexts_in_one_process(void) {
    bh_context *a = fx_context(NULL), *b = fx_context(NULL);
    bh_stream *sa = fx_stream(a, "a", FX_SECONDS), *sb = fx_stream(b, "b", FX_SECONDS);
    fx_expect_healthy(a, sa);
    fx_kill(fx_ready(sa), SIGKILL);
    fx_expect_healthy(b, sb);
    bh_stream_release(sa);
    bh_context_destroy(a);
    fx_expect_healthy(b, sb);
    bh_stream_release(sb);
    bh_context_destroy(b);
}

static void spares_take_over(void) {
    bh_context_options options = fx_options();
    options.spares = 1;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    pid_t first = fx_ready(stream);
    /* warden, zygote, the worker and the spare, each with its keeper */
    WAIT_UNTIL(bht_count_descendants(getpid()) == 2 + 2 * PROCESSES_A_WORKER, 10000);
    fx_kill(first, SIGKILL);
    fx_expect_healthy(context, stream);
    bh_stream_release(stream);
    bh_context_destroy(context);
    BHT_EQ(bht_count_descendants(getpid()), 0);
}

/* As daemons do: the library's own descriptors come to be 0, 1 and 2. */
static void a_host_without_standard_streams(void) {
    int kept[3];
    for (int fd = 0; fd < 3; fd++) {
        kept[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 100);
        BHT_EQ(close(fd), 0);
    }
    bh_context *context = fx_context(NULL);
    one_death_and_one_success(context);
    bh_context_destroy(context);
    for (int fd = 0; fd < 3; fd++) {
        BHT_EQ(fcntl(fd, F_GETFD), -1);
        BHT_EQ(dup2(kept[fd], fd), fd);
        close(kept[fd]);
    }
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(a_host_that_reaps_every_child),   BHT_TEST(a_host_that_ignores_sigchld),
        BHT_TEST(a_host_that_adopts_orphans),      BHT_TEST(a_host_that_forks),
        BHT_TEST(nothing_of_the_host_is_touched),  BHT_TEST(a_context_is_destroyed_in_mid_job),
        BHT_TEST(two_contexts_in_one_process),     BHT_TEST(spares_take_over),
        BHT_TEST(a_host_without_standard_streams),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}

/* A good guest: hosts that reap every child, ignore SIGCHLD, fork, die, or look closely. */
#include "fixture.h"
#include "tamper.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FEW = 200 }; /* descriptors */

static void one_death_and_one_success(bh_context *context) {
    bh_stream *stream = fx_stream(context, "s", BH_FOREVER);
    const struct fx_held held = fx_hold(context, stream);
    fx_kill(fx_ready(stream), SIGKILL);
    BHT_EQ(fx_expect(held.event, BH_WORKER_SIGNAL).signal, SIGKILL);
    fx_expect_healthy(context, stream);
    bh_stream_release(stream);
}

static _Atomic bool reaper_stop;

static void *reap_everything(void *unused) {
    (void)unused;
    while (!reaper_stop) {
        int status;
        if (waitpid(-1, &status, WNOHANG) <= 0) {
            bht_poll_pause();
        }
    }
    return NULL;
}

TEST(a_host_that_reaps_every_child) {
    pthread_t thread;
    BHT_EQ(pthread_create(&thread, NULL, reap_everything, NULL), 0);
    bh_context *context = fx_context(NULL);
    one_death_and_one_success(context);
    bh_context_destroy(context);
    reaper_stop = true;
    pthread_join(thread, NULL);
}

TEST(a_host_that_ignores_sigchld) {
    signal(SIGCHLD, SIG_IGN);
    bh_context *context = fx_context(NULL);
    one_death_and_one_success(context);
}

TEST(a_host_that_adopts_orphans) {
    BHT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    bh_context *context = fx_context(NULL);
    one_death_and_one_success(context);
    bh_context_destroy(context);
    BHT_EQ(bht_count_children(getpid()), 0);
}

/* After a fork the child is refused, politely, and the parent goes on. */
TEST(a_host_that_forks) {
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
        bh_verdict verdict = {.struct_size = sizeof verdict};
        void *pointer;
        size_t index;
        bool refused =
            bh_launch(stream, square, (uint32_t[]){1, 1, 1}, NULL, 0, NULL, 0, &event, NULL) ==
                BH_FORKED &&
            bh_buffer_create(context, 64, NULL, &buffer, NULL) == BH_FORKED &&
            bh_stream_synchronize(stream, 0, NULL) == BH_FORKED &&
            bh_stream_wait_ready(stream, 0, NULL) == BH_FORKED &&
            bh_buffer_map(y, BH_MAP_READ, 0, &pointer, NULL) == BH_FORKED &&
            bh_stream_worker_pid(stream) == 0 &&
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
        if (own) {
            bh_context_destroy(again);
        }
        _exit(refused && own ? 0 : 1);
    }
    int status = -1;
    BHT_EQ(waitpid(child, &status, 0), child);
    BHT_EQ(status, 0);
    fx_expect_healthy(context, stream);
}

static size_t runtime_folders(pid_t pid) {
    char prefix[64];
    snprintf(prefix, sizeof prefix, "bulkhead-%d-", (int)pid);
    size_t count = 0;
    DIR *dir = opendir("/tmp");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    }
    if (dir) {
        closedir(dir);
    }
    return count;
}

/* Nothing of the process is changed: handlers, mask, environment, working directory. */
TEST(nothing_of_the_host_is_touched) {
    static struct sigaction before[65], after[65]; /* zero for the two that are libc's own */
    for (int i = 1; i < 65; i++) {
        sigaction(i, NULL, &before[i]);
    }
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
    for (int i = 1; i < 65; i++) {
        BHT_EQ(sigismember(&mask_before, i), sigismember(&mask_after, i));
    }
    BHT_EQ(prctl(PR_GET_DUMPABLE), 1);
    BHT_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
}

/* Destroying with everything in flight poisons it, and what the caller holds stays valid. */
TEST(a_context_is_destroyed_in_mid_job) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "s", BH_FOREVER);
    bh_kernel *square = fx_kernel(context, "square");
    bh_buffer *x = fx_words(context, 64, 0), *y = fx_words(context, 64, 0);
    bh_event *running = fx_hold(context, stream).event;
    bh_event *queued = fx_square(stream, square, x, y);
    bh_context_destroy(context);
    fx_expect(running, BH_CONTEXT_CLOSED); /* E1 */
    fx_expect(queued, BH_CONTEXT_CLOSED);
    BHT_EQ(bht_count_descendants(getpid()), 0);
    BHT_EQ(runtime_folders(getpid()), 0);
}

TEST(two_contexts_in_one_process) {
    bh_context *a = fx_context(NULL), *b = fx_context(NULL);
    bh_stream *sa = fx_stream(a, "a", FX_SECONDS), *sb = fx_stream(b, "b", FX_SECONDS);
    fx_expect_healthy(a, sa);
    fx_kill(fx_ready(sa), SIGKILL);
    fx_expect_healthy(b, sb);
    bh_stream_release(sa);
    bh_context_destroy(a);
    fx_expect_healthy(b, sb);
}

/* What one context's worker had open, another context opens next: the numbers of descriptors are
 * the process's. Nothing but the number goes from |a|'s reactor to |b|'s; TSan has to be told which
 * of them libzmq has closed (channel.c). */
TEST(descriptors_go_from_context_to_context) {
    bh_context *a = fx_context(NULL), *b = fx_context(NULL);
    bh_stream *sb = fx_stream(b, "b", FX_SECONDS);
    for (int i = 0; i < 40; i++) {
        bh_stream *sa = fx_stream(a, "a", FX_SECONDS);
        fx_ready(sa);
        bh_stream_release(sa);
        fx_expect_healthy(b, sb);
    }
}

/* In the opener these paths would be others. */
static void expect_program(bh_context *context, const char *path) {
    const bh_file_source source = {
        .struct_size = sizeof source, .path = path, .format = BH_FILE_RAW};
    BHT_MEM_EQ(fx_mapped(fx_load(context, &source)), "\177ELF", 4);
}

static void *live_on(void *unused) {
    (void)unused;
    WAIT_UNTIL(bht_process_state(getpid()) == 'Z', 20000);
    bh_context *context = fx_context(NULL);
    one_death_and_one_success(context);
    expect_program(context, "/proc/self/exe");
    expect_program(context, "/proc/thread-self/exe");
    BHT_EQ(bh_context_destroy(context), BH_OK);
    _exit(0);
}

/* A thread's folder has neither task nor map_files. */
TEST(files_in_the_hosts_own_folder_of_proc) {
    bh_context *context = fx_context(NULL);
    char path[128];
    expect_program(context, "/proc/self/exe");
    expect_program(context, "/proc/thread-self/exe");
    snprintf(path, sizeof path, "/proc/self/task/%d/exe", (int)gettid());
    expect_program(context, path);
    unsigned long begin, end;
    FILE *maps = fopen("/proc/self/maps", "re");
    BHT_TRUE(maps && fscanf(maps, "%lx-%lx", &begin, &end) == 2);
    fclose(maps);
    snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", begin, end);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) { /* most users may not */
        close(fd);
        expect_program(context, path);
    }
}

/* Its /proc/self is empty from then on. */
TEST(a_host_whose_first_thread_has_ended) {
    const pid_t host = BHT_TSAN ? -1 : fork(); /* TSan knows no threads after a fork */
    if (host == 0) {
        pthread_t thread;
        BHT_EQ(pthread_create(&thread, NULL, live_on, NULL), 0);
        pthread_exit(NULL);
    }
    int status = 0;
    BHT_TRUE(BHT_TSAN || waitpid(host, &status, 0) == host);
    BHT_EQ(status, 0);
}

/* All of them are on their way to their device before one has come to it. */
TEST(workers_start_beside_each_other) {
    enum { COUNT = 8 };
    bh_context *context = fx_context("*:device:1=stop");
    bh_stream *streams[COUNT];
    for (int i = 0; i < COUNT; i++) {
        streams[i] = fx_stream(context, "s", FX_SECONDS);
    }
    WAIT_UNTIL(fx_stopped(NULL) == COUNT, 20000);
    for (int i = 0; i < COUNT; i++) {
        fx_kill(fx_await_stopped(), SIGCONT);
        WAIT_UNTIL(fx_stopped(NULL) == COUNT - 1 - (size_t)i, 20000);
    }
    for (int i = 0; i < COUNT; i++) {
        fx_ready(streams[i]);
    }
}

/* As daemons do: the library's own descriptors come to be 0, 1 and 2. */
TEST(a_host_without_standard_streams) {
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

/* The log function is called from the thread that everything else waits for. */
static struct {
    bh_context *context;
    bh_stream *stream;
    bh_event *running, *submitted;
    bh_status destroyed, synchronized, waited;
    _Atomic bool armed, called;
} logged;

static void call_back(bh_log_level level, const char *line, void *user) {
    (void)user, (void)level;
    if (!logged.armed || logged.called || !strstr(line, "zygote") || !strstr(line, "is lost")) {
        return;
    }
    bh_detail detail;
    logged.destroyed = bh_context_destroy(logged.context);
    logged.synchronized = bh_stream_synchronize(logged.stream, BH_FOREVER, &detail);
    logged.waited = bh_event_wait(logged.running, BH_FOREVER);
    logged.submitted = fx_fill(logged.stream, fx_words(logged.context, 64, 0), 0);
    logged.called = true;
}

TEST(a_log_function_that_calls_back) {
    bh_context_options options = fx_options();
    options.log = call_back;
    bh_context *context = logged.context = fx_context_with(options, NULL);
    bh_stream *held = logged.stream = fx_stream(context, "held", BH_FOREVER);
    bh_stream *other = fx_stream(context, "other", FX_SECONDS);
    logged.running = fx_hold(context, held).event;
    logged.armed = true;
    fx_kill(fx_parent(fx_ready(held)), SIGKILL); /* the zygote: that it is lost is logged */
    WAIT_UNTIL(logged.called, 20000);
    BHT_EQ(logged.destroyed, BH_IN_CALLBACK);
    BHT_EQ(logged.synchronized, BH_IN_CALLBACK);
    BHT_EQ(logged.waited, BH_IN_CALLBACK);
    fx_expect(logged.running, BH_ZYGOTE_LOST);
    fx_expect(logged.submitted, BH_OK);
    fx_expect_healthy(context, other);
}

/* E1: a verdict outlives its context, and keeps nothing of it open. */
TEST(a_verdict_keeps_no_descriptor) {
    size_t before = bht_count_self().descriptors;
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    bh_buffer *buffer = fx_words(context, 64, 0);
    bh_event *event = fx_fill(stream, buffer, 0);
    fx_expect(event, BH_OK);
    bh_buffer_release(buffer);
    BHT_EQ(bh_context_destroy(context), BH_OK);
    BHT_EQ(bht_count_self().descriptors, before);
    bh_stream_release(stream); /* a stream takes the lock, and would ring the reactor */
    fx_expect(event, BH_OK);
}

/* A second stream, for which there is no descriptor left at the moment when its worker is forked and
 * takes up its connection: what its start takes then has been held open for it. |zygote|, which has
 * been asked for it, stands still meanwhile. */
static bh_stream *stream_without_descriptors(bh_context *context, pid_t zygote) {
    static int fds[FEW];
    int count = 0;
    fx_stop(zygote);
    bh_stream *stream = fx_stream(context, "second", FX_SECONDS);
    /* All that goes to the worker is made in one go: lane, progress, sockets. */
    WAIT_UNTIL(fx_describes(context, "being forked"), 20000);
    while (count < FEW && (fds[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
        count++;
    }
    BHT_GT(count, 0);
    fx_kill(zygote, SIGCONT);
    fx_ready(stream);
    while (count > 0) {
        close(fds[--count]);
    }
    return stream;
}

static void limit_descriptors(void) {
    const struct rlimit few = {FEW, FEW};
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
}

TEST(a_host_out_of_descriptors) {
    limit_descriptors();
    bh_context *context = fx_context(NULL);
    bh_stream *first = fx_stream(context, "first", FX_SECONDS);
    bh_stream *second = stream_without_descriptors(context, fx_parent(fx_ready(first)));
    fx_expect_healthy(context, second);
    fx_expect_healthy(context, first);
}

/* Nor does it lose what is running elsewhere: for the descriptor that the zygote's word of a birth
 * brings there is room (E16). */
TEST(out_of_descriptors_while_another_runs) {
    limit_descriptors();
    bh_context *context = fx_context(NULL);
    bh_stream *first = fx_stream(context, "first", BH_FOREVER);
    const struct fx_held held = fx_hold(context, first);
    const pid_t pid = fx_ready(first);
    bh_stream *second = stream_without_descriptors(context, fx_parent(pid));
    BHT_EQ(bh_event_query(held.event), BH_EVENT_PENDING);
    BHT_EQ(bh_stream_worker_pid(first), pid);
    fx_open(held.word);
    fx_expect(held.event, BH_OK);
    fx_expect_healthy(context, second);
}

/* A zygote that was made meanwhile would hand the shortage to each of its workers, when there was
 * none any more. */
TEST(a_zygote_has_the_hosts_limit_but_not_its_shortage) {
    struct rlimit limit;
    BHT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    BHT_GT(limit.rlim_max, 200);
    limit.rlim_cur = 200;
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    char path[64], line[256];
    unsigned long long soft = 0, hard = 0;
    snprintf(path, sizeof path, "/proc/%d/limits", (int)fx_parent(fx_ready(stream)));
    FILE *file = fopen(path, "re");
    BHT_TRUE(file);
    while (fgets(line, sizeof line, file) &&
           sscanf(line, "Max open files %llu %llu", &soft, &hard) != 2)
        ;
    fclose(file);
    BHT_EQ(hard, limit.rlim_max);
    BHT_EQ(soft, hard);
}

/* An upgrade while a context runs: the worker's file is missing when a zygote has to be started. A worker
 * has run before, so it is tried again, and the warden executes the new file. */
TEST(a_worker_program_that_is_missing_for_a_moment) {
    char folder[] = "/tmp/bulkhead-upgrade-XXXXXX", path[64];
    BHT_TRUE(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/worker", folder);
    BHT_EQ(symlink(BHT_WORKER, path), 0);
    bh_context_options options = fx_options();
    options.worker_path = path;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    const pid_t worker = fx_ready(stream);
    BHT_EQ(unlink(path), 0);
    fx_kill(fx_parent(worker), SIGKILL);
    WAIT_UNTIL(fx_describes(context, "cannot be run: No such file"), 20000);
    BHT_EQ(symlink(BHT_WORKER, path), 0);
    fx_ready_after(stream, worker);
    fx_release_all();
    BHT_EQ(unlink(path), 0);
    BHT_EQ(rmdir(folder), 0);
}

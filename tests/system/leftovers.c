/* What is left of a context: nothing when it is destroyed. When host and warden are killed at the
 * same moment (one cgroup, one kill) nobody is left to clean up, and the next context does. */
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char parent[] = "/tmp/bulkhead-test-XXXXXX";
static char group[512]; /* of the host */

static bh_context *open_context(void) {
    bh_context_options options = fx_options();
    options.runtime_dir = parent;
    return fx_context_with(options, NULL);
}

/* Folders of |pid| in the parent; |out| gets the path of the last one. */
static size_t folders_of(pid_t pid, char out[300]) {
    char prefix[64];
    snprintf(prefix, sizeof prefix, "bulkhead-%d-", (int)pid);
    size_t count = 0;
    DIR *dir = opendir(parent);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0) {
            snprintf(out, 300, "%s/%s", parent, entry->d_name);
            count++;
        }
    }
    if (dir) {
        closedir(dir);
    }
    return count;
}

static void make_parent(void) {
    BHT_TRUE(mkdtemp(parent));
}

static void remove_parent(void) {
    BHT_EQ(rmdir(parent), 0);
}

static void age(const char *path) {
    const struct timespec then = {.tv_sec = time(NULL) - 100};
    const struct timespec times[2] = {then, then};
    BHT_EQ(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* A process with a context and a ready worker. It checks its health for each byte from |ask|. */
static pid_t start_host(int ask[2], int say[2]) {
    BHT_EQ(pipe2(ask, O_CLOEXEC), 0);
    BHT_EQ(pipe2(say, O_CLOEXEC), 0);
    pid_t host = fork();
    if (host == 0) {
        char byte;
        close(ask[1]);
        bh_context *context = open_context();
        bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
        fx_ready(stream);
        while (write(say[1], "r", 1) == 1 && read(ask[0], &byte, 1) == 1) {
            /* A worker of this stream, and a new one: that needs the folder. */
            fx_expect_healthy(context, stream);
            fx_kill(fx_ready(stream), SIGKILL);
            fx_expect_healthy(context, stream);
        }
        _exit(bh_context_destroy(context) == BH_OK ? 0 : 1);
    }
    char byte;
    close(ask[0]);
    close(say[1]);
    BHT_EQ(read(say[0], &byte, 1), 1);
    return host;
}

/* Nobody sees another's end: all are stopped before the first one is killed. */
static void kill_together(pid_t host) {
    pid_t pids[32];
    pids[0] = host;
    fx_stop(host);
    size_t count = 1 + bht_descendants(host, pids + 1, BHT_COUNT(pids) - 1);
    BHT_GE(count, 3 + PROCESSES_A_WORKER);
    for (size_t i = 1; i < count; i++) {
        BHT_EQ(kill(pids[i], SIGSTOP), 0);
    }
    for (size_t i = 1; i < count; i++) {
        WAIT_UNTIL(bht_process_state(pids[i]) == 'T', 5000);
    }
    for (size_t i = 0; i < count; i++) {
        BHT_TRUE(kill(pids[i], SIGKILL) == 0 || bht_process_state(pids[i]) == 'X');
    }
    WAIT_UNTIL(bht_process_state(host) == 'X' || waitpid(host, NULL, WNOHANG) == host, 20000);
}

static void use_a_context(void) {
    bh_context *context = open_context();
    fx_expect_healthy(context, fx_stream(context, "s", FX_SECONDS));
    bh_context_destroy(context);
}

TEST(the_next_context_cleans_up) {
    int ask[2], say[2];
    char folder[300], own[300], inside[310];
    struct stat info;
    pid_t host = start_host(ask, say);
    bool has_group = fx_find_group(host, group);
    kill_together(host);
    WAIT_UNTIL(fx_nobody_left(), 20000);
    BHT_EQ(folders_of(host, folder), 1);
    /* As of a worker that was just being started. */
    snprintf(inside, sizeof inside, "%s/w9", folder);
    BHT_EQ(mknod(inside, S_IFSOCK | 0600, 0), 0);
    BHT_TRUE(!has_group || stat(group, &info) == 0);

    use_a_context(); /* it is too young */
    BHT_EQ(folders_of(host, folder), 1);
    BHT_TRUE(!has_group || stat(group, &info) == 0);

    age(folder);
    if (has_group) {
        age(group);
    }
    bh_context *context = open_context();
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    fx_ready(stream); /* swept before its zygote had said a word */
    BHT_EQ(folders_of(host, folder), 0);
    BHT_TRUE(!has_group || (stat(group, &info) != 0 && errno == ENOENT));
    BHT_EQ(folders_of(getpid(), own), 1);
    close(ask[1]);
    close(say[0]);
}

/* A worker that lives, one that has died, and one that is in mid-job when the context goes. */
TEST(a_destroyed_context_leaves_nothing) {
    char folder[300], inside[600];
    bh_context *context = open_context();
    bh_stream *one = fx_stream(context, "one", FX_SECONDS);
    bh_stream *two = fx_stream(context, "two", BH_FOREVER);
    const pid_t died = fx_ready(one);
    fx_kill(died, SIGKILL);
    WAIT_UNTIL(bh_stream_worker_pid(one) != died, 20000);
    fx_expect_healthy(context, one);
    bh_event *event = fx_hold(context, two).event;
    BHT_EQ(folders_of(getpid(), folder), 1);
    /* Where there can be groups, the workers are in them. */
    BHT_EQ(fx_find_group(getpid(), group), fx_in_group(fx_ready(one)));
    if (group[0]) {
        snprintf(inside, sizeof inside, "%s/memory.%s", group,
                 strstr(group, "/memory/") ? "limit_in_bytes" : "max");
        BHT_EQ(access(inside, R_OK), 0);
    }
    BHT_EQ(bh_context_destroy(context), BH_OK);
    BHT_EQ(bh_event_wait(event, 0), BH_CONTEXT_CLOSED);
    BHT_EQ(folders_of(getpid(), folder), 0);
    BHT_TRUE(!fx_find_group(getpid(), group));
    BHT_TRUE(fx_nobody_left());
}

/* However old its folder and its group look. */
TEST(a_live_context_keeps_its_own) {
    int ask[2], say[2];
    char folder[300], byte;
    struct stat info;
    pid_t host = start_host(ask, say);
    BHT_EQ(folders_of(host, folder), 1);
    bool has_group = fx_find_group(host, group);
    age(folder);
    if (has_group) {
        age(group);
    }
    use_a_context();
    BHT_EQ(folders_of(host, folder), 1);
    BHT_TRUE(!has_group || stat(group, &info) == 0);
    BHT_EQ(write(ask[1], "?", 1), 1);
    BHT_EQ(read(say[0], &byte, 1), 1);
    close(ask[1]);
    int status = -1;
    BHT_EQ(waitpid(host, &status, 0), host);
    BHT_EQ(status, 0);
    close(say[0]);
}

int main(int argc, char **argv) {
    bht_around(make_parent, remove_parent);
    return bht_main(argc, argv, NULL, 0);
}

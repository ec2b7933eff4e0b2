/* The two programs that a context starts: where they are looked for, and how the first begins. A script
 * stands in for the warden. */
#include "harness.h"
#include "supervisor/worker/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t unwatched; /* the process of which no pidfd was given */
static bool no_pidfd;

BHT_WRAP(int, pidfd_open, pid_t pid, unsigned flags) {
    if (no_pidfd) {
        unwatched = pid;
        errno = EMFILE;
        return -1;
    }
    return __real_pidfd_open(pid, flags);
}

static const char *place; /* the test's folder */

static void begin(void) {
    place = bht_folder();
}

BHT_AT_START(bht_around(begin, NULL))

static void make(const char *name, const char *lines, char path[PATH_MAX]) {
    snprintf(path, PATH_MAX, "%s/%s", place, name);
    FILE *file = fopen(path, "we");
    BHT_TRUE(file);
    fprintf(file, "#!/bin/sh\n%s\n", lines);
    BHT_EQ(fclose(file), 0);
    BHT_EQ(chmod(path, 0755), 0);
}

/* Of the path only the file's name tells the two apart. */
TEST(the_warden_is_the_one_beside_the_worker) {
    static const char *const pairs[][2] = {{"worker.d/bulkhead-worker", "worker.d/bulkhead-warden"},
                                           {"worker.d/worker-2", "worker.d/warden-2"}};
    char folder[PATH_MAX], worker[PATH_MAX], warden[PATH_MAX];
    snprintf(folder, sizeof folder, "%s/worker.d", place);
    BHT_EQ(mkdir(folder, 0700), 0);
    for (size_t i = 0; i < BHT_COUNT(pairs); i++) {
        make(pairs[i][0], "", worker);
        make(pairs[i][1], "", warden);
        const bh_context_options options = {.worker_path = worker, .runtime_dir = place};
        struct bhi_context_settings settings = {0};
        bh_detail detail = {0};
        if (bhi_spawn_paths(&options, &settings, &detail) != BH_OK) {
            BHT_FAIL("%s", detail.message);
        }
        BHT_STR_EQ(settings.worker_path, worker);
        BHT_STR_EQ(settings.warden_path, warden);
        free(settings.worker_path);
        free(settings.warden_path);
        free(settings.runtime_parent);
    }
}

/* Starts it, and returns what it wrote to its descriptor 3 until it ended. */
static void run(const char *path, char *out, size_t size) {
    int ends[2];
    pid_t pid;
    size_t length = 0;
    BHT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const int pidfd = bhi_spawn(path, "warden", ends[1], &pid);
    BHT_GE(pidfd, 0);
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], out + length, size - 1 - length)) > 0;) {
        length += (size_t)got;
    }
    out[length] = '\0';
    close(ends[0]);
    bhi_spawn_kill(pidfd);
}

TEST(of_the_environment_it_has_what_drivers_need) {
    static char text[1 << 16], large[PATH_MAX + 1];
    char path[PATH_MAX];
    make("warden", "exec /usr/bin/env >&3", path);
    memset(large, 'x', PATH_MAX - sizeof "CUDA_PATH=");
    BHT_EQ(setenv("CUDA_PATH", large, 1), 0);
    BHT_EQ(setenv("SECRET", "key", 1), 0);
    BHT_EQ(setenv("VK_DRIVER_FILES", "here", 1), 0);
    run(path, text, sizeof text);
    BHT_STR_HAS(text, "VK_DRIVER_FILES=here\n");
    BHT_STR_HAS(text, large);
    BHT_TRUE(!strstr(text, "SECRET"));
    large[strlen(large)] = 'x'; /* too long, and so left out: half a path would be another one */
    BHT_EQ(setenv("CUDA_PATH", large, 1), 0);
    run(path, text, sizeof text);
    BHT_TRUE(!strstr(text, "CUDA_PATH"));
    BHT_STR_HAS(text, "VK_DRIVER_FILES=here\n");
}

/* What cannot be watched is not left to run, nor as a zombie; and nothing stays open. */
TEST(nothing_runs_that_nobody_watches) {
    char path[PATH_MAX];
    pid_t pid;
    make("warden", "exec sleep 1000", path);
    const struct bht_counts before = bht_count_self();
    no_pidfd = true;
    BHT_EQ(bhi_spawn(path, "warden", STDERR_FILENO, &pid), -EMFILE);
    no_pidfd = false;
    BHT_GT(unwatched, 0);
    BHT_EQ(waitpid(unwatched, NULL, WNOHANG), -1);
    BHT_EQ(errno, ECHILD);
    const int pidfd = bhi_spawn(path, "warden", STDERR_FILENO, &pid);
    BHT_GE(pidfd, 0);
    bhi_spawn_kill(pidfd);
    BHT_EQ(waitpid(pid, NULL, WNOHANG), -1);
    BHT_EQ(bhi_spawn("/nonexistent/warden", "warden", STDERR_FILENO, &pid), -ENOENT);
    BHT_EQ(bht_count_self().descriptors, before.descriptors);
}

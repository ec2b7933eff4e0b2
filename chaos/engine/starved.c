#include "chaos/engine/starved.h"

#include "base/sort.h"
#include "tool/clock.h"
#include "tool/process_tree.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

BHI_ORDER(by_tid, struct bhi_starved_thread, tid)

/* Reads the second number of schedstat: nanoseconds spent on a run queue. */
static int read_wait(pid_t pid, int32_t tid, uint64_t *out_waited_ns) {
    char path[64];
    unsigned long long ran, waited;
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
    FILE *file = fopen(path, "re");
    if (!file) {
        return 0;
    }
    const int read = fscanf(file, "%llu %llu", &ran, &waited);
    fclose(file);
    *out_waited_ns = waited;
    return read == 2;
}

/* Returns the longest time that a thread of |pid| has waited since |before|. Adds all its threads
 * to |now|. */
static uint64_t look_at(const struct bhi_starved *before, struct bhi_starved *now, pid_t pid) {
    char path[40];
    uint64_t longest_ns = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    if (!folder) {
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(folder)) && now->count < BHI_STARVED_THREADS;) {
        struct bhi_starved_thread thread = {.tid = atoi(entry->d_name)};
        if (thread.tid <= 0 || !read_wait(pid, thread.tid, &thread.waited_ns)) {
            continue;
        }
        now->threads[now->count++] = thread;
        const struct bhi_starved_thread *old =
            bsearch(&thread, before->threads, before->count, sizeof thread, by_tid);
        /* If a new thread has an old one's number, all of its time is new. */
        const uint64_t since_ns = old && old->waited_ns <= thread.waited_ns ? old->waited_ns : 0;
        if (thread.waited_ns - since_ns > longest_ns) {
            longest_ns = thread.waited_ns - since_ns;
        }
    }
    closedir(folder);
    return longest_ns;
}

size_t bhi_starved_look(struct bhi_starved *starved, pid_t root, uint64_t now_ns,
                        struct bhi_starved_process out_processes[BHI_STARVED_PROCESSES]) {
    struct bhi_process_tree tree;
    struct bhi_starved *now = calloc(1, sizeof *now);
    size_t found = 0;
    if (!now || !bhi_process_tree_read(root, &tree)) {
        free(now);
        return 0;
    }
    const uint64_t passed_ns = now_ns - starved->looked_ns;
    for (size_t i = 0; i <= tree.count; i++) {
        const pid_t pid = i < tree.count ? tree.processes[i].pid : root;
        uint64_t waited_ns = look_at(starved, now, pid);
        if (waited_ns > passed_ns) {
            waited_ns = passed_ns;
        }
        if (starved->looked_ns && waited_ns >= passed_ns / 2 && found < BHI_STARVED_PROCESSES) {
            out_processes[found++] =
                (struct bhi_starved_process){.pid = pid, .waited_ns = waited_ns};
        }
    }
    qsort(now->threads, now->count, sizeof *now->threads, by_tid);
    now->looked_ns = now_ns;
    *starved = *now;
    free(now);
    bhi_process_tree_free(&tree);
    return found;
}

static uint64_t used_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Works for longer than the time for which the scheduler prefers a thread that has slept. */
double bhi_starved_slowness(void) {
    static const uint64_t work_ns = 60000000;
    const uint64_t begun_ns = bhi_clock_ns(), used_before_ns = used_ns();
    uint64_t worked_ns;
    while ((worked_ns = used_ns() - used_before_ns) < work_ns)
        ;
    return (double)(bhi_clock_ns() - begun_ns) / (double)worked_ns;
}

#include "judge/data/team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/check.h"

enum { THREADS = 8 };

struct team {
    void (*work)(void *job, uint64_t part);
    void *job;
    uint64_t parts;
    _Atomic uint64_t next;
};

static void *take_parts(void *argument) {
    struct team *team = argument;
    uint64_t part;
    while ((part = atomic_fetch_add(&team->next, 1)) < team->parts) {
        team->work(team->job, part);
    }
    return NULL;
}

void bhi_team_run(uint64_t parts, void (*work)(void *job, uint64_t part), void *job) {
    struct team team = {.work = work, .job = job, .parts = parts};
    pthread_t threads[THREADS];
    const long processors = parts > 1 ? sysconf(_SC_NPROCESSORS_ONLN) : 1;
    int started = 0;
    while (started < THREADS - 1 && started + 1 < processors && (uint64_t)started + 1 < parts &&
           pthread_create(&threads[started], NULL, take_parts, &team) == 0) {
        started++;
    }
    (void)take_parts(&team);
    while (started > 0) {
        BHI_CHECK(pthread_join(threads[--started], NULL) == 0);
    }
}

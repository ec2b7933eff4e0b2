/* The run's own clock: notices when the machine stands still. */
#include <time.h>
#include <unistd.h>

#include "chaos/engine/run.h"

#define MS 1000000ull

/* Notes the processes of the run that wanted a processor and got none. */
static void look_for_starved(struct bhi_chaos_run *run) {
    struct bhi_starved_process starved[BHI_STARVED_PROCESSES];
    pthread_mutex_lock(&run->looking);
    const uint64_t now_ns = bhi_run_now(run);
    const size_t count = bhi_starved_look(&run->starved, getpid(), now_ns, starved);
    pthread_mutex_unlock(&run->looking);
    for (size_t i = 0; i < count; i++) {
        const struct bhi_record record = {
            .kind = BHI_RECORD_STALL,
            .at_ns = now_ns,
            .stall = {.lasted_ns = starved[i].waited_ns, .pid = starved[i].pid}};
        bhi_run_note(run, &record);
    }
}

/* This thread only wants to run every few milliseconds. While it cannot, no process can be blamed
 * for being late. */
void *bhi_run_watch_clock(void *argument) {
    static const uint64_t tick_ns = 20 * MS, stall_ns = 250 * MS, look_ns = 500 * MS;
    struct bhi_chaos_run *run = argument;
    const struct timespec tick = {.tv_nsec = (long)tick_ns};
    uint64_t before_ns = bhi_run_now(run), looked_ns = 0;
    for (bool closing = false; !closing;) {
        nanosleep(&tick, NULL);
        const uint64_t now_ns = bhi_run_now(run);
        const struct bhi_record record = {
            .kind = BHI_RECORD_STALL, .at_ns = now_ns, .stall.lasted_ns = now_ns - before_ns};
        if (now_ns - before_ns > stall_ns) {
            bhi_run_note(run, &record);
        }
        before_ns = now_ns;
        if (now_ns - looked_ns >= look_ns) {
            look_for_starved(run);
            before_ns = bhi_run_now(run); /* because the look takes time */
            looked_ns = now_ns;
        }
        pthread_mutex_lock(&run->lock);
        closing = run->closing;
        pthread_mutex_unlock(&run->lock);
    }
    return NULL;
}

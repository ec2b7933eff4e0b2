/* What wants a processor and has none is noticed, and what sleeps is not. */
#include "chaos/engine/starved.h"
#include "harness.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SPINNERS = 6, PATIENCE_S = 60 };

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* A child that computes, or one that sleeps, until it is killed. */
static pid_t child(bool spins) {
    const pid_t pid = fork();
    BHT_GE(pid, 0);
    if (pid) {
        return pid;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (volatile bool go = true; go;) {
        if (!spins) {
            pause();
        }
    }
    _exit(0);
}

/* All on the first processor that we may have, so that each has a sixth of it. */
static void share_one_processor(void) {
    cpu_set_t ours, one;
    CPU_ZERO(&one);
    BHT_EQ(sched_getaffinity(0, sizeof ours, &ours), 0);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &ours)) {
            CPU_SET(i, &one);
        }
    }
    BHT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

TEST(who_has_no_processor_is_seen) {
    static struct bhi_starved starved;
    struct bhi_starved_process seen[BHI_STARVED_PROCESSES];
    pid_t pids[SPINNERS + 1];
    bool noticed[SPINNERS + 1] = {false};
    share_one_processor();
    for (int i = 0; i <= SPINNERS; i++) {
        pids[i] = child(i < SPINNERS);
    }
    WAIT_UNTIL(bht_process_state(pids[SPINNERS]) == 'S', 20 * BHT_WAIT_SECOND_MS);
    BHT_EQ(bhi_starved_look(&starved, getpid(), now_ns(), seen), 0);
    const uint64_t end_ns = now_ns() + PATIENCE_S * 1000000000ull * bht_slowness();
    for (int count = 0; count < SPINNERS && now_ns() < end_ns;) {
        const struct timespec pause = {.tv_nsec = 100000000};
        nanosleep(&pause, NULL);
        const size_t found = bhi_starved_look(&starved, getpid(), now_ns(), seen);
        for (size_t k = 0; k < found; k++) {
            for (int i = 0; i <= SPINNERS; i++) {
                noticed[i] |= seen[k].pid == pids[i];
            }
        }
        count = 0;
        for (int i = 0; i < SPINNERS; i++) {
            count += noticed[i];
        }
    }
    for (int i = 0; i <= SPINNERS; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
        BHT_EQ(noticed[i], i < SPINNERS);
    }
}

/* A thread that has waited less than one with its number had is another one: what it has waited counts
 * from its beginning. */
TEST(a_number_that_is_used_again_is_another_thread) {
    static struct bhi_starved starved;
    struct bhi_starved_process seen[BHI_STARVED_PROCESSES];
    const uint64_t day_ns = 86400 * UINT64_C(1000000000);
    starved.looked_ns = 1;
    starved.threads[starved.count++] =
        (struct bhi_starved_thread){.tid = getpid(), .waited_ns = UINT64_C(1) << 62};
    BHT_EQ(bhi_starved_look(&starved, getpid(), day_ns, seen), 0);
}

/* None waits for longer than it was looked away. */
TEST(it_has_waited_since_the_last_look) {
    static struct bhi_starved starved = {.looked_ns = 1};
    struct bhi_starved_process seen[BHI_STARVED_PROCESSES];
    const size_t count = bhi_starved_look(&starved, getpid(), 3, seen);
    for (size_t i = 0; i < count; i++) {
        BHT_LE(seen[i].waited_ns, 2);
    }
}

/* Of seven each has a seventh of it. */
TEST(a_busy_machine_is_slow) {
    pid_t pids[SPINNERS];
    share_one_processor();
    for (int i = 0; i < SPINNERS; i++) {
        pids[i] = child(true);
    }
    double slowness = 0;
    for (int i = 0; i < 100 * (int)bht_slowness() && slowness < 2;
         i++) { /* until they have all begun */
        slowness = bhi_starved_slowness();
    }
    for (int i = 0; i < SPINNERS; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    BHT_GE(slowness, 2);
}

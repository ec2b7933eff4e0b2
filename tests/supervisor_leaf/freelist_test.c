/* Memory of one type for ever, in a process that forks. */
#include "harness.h"
#include "supervisor/context/freelist.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

struct thing {
    char bytes[200];
};

static struct bhi_freelist freelist = BHI_FREELIST_INIT(struct thing);

TEST(what_was_freed_is_used_again) {
    enum { MANY = 5000 };
    static void *things[MANY];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            things[i] = bhi_freelist_take(&freelist);
            BHT_TRUE(things[i]);
            memset(things[i], round, sizeof(struct thing));
        }
        for (int i = 0; i < MANY; i++) {
            for (size_t b = 0; b < sizeof(struct thing); b++) {
                BHT_EQ(((struct thing *)things[i])->bytes[b], round);
            }
            bhi_freelist_give(&freelist, things[i]);
        }
    }
    BHT_LT(bht_resident_bytes(getpid()), 32u << 20);
}

/* A handle that is used after its release is looked at, so its memory rests for a while. */
TEST(what_was_freed_rests_until_32_others_were) {
    enum { RESTING = 32, MORE = 8, ALL = RESTING + MORE };
    void *things[ALL];
    for (int i = 0; i < ALL; i++) {
        things[i] = bhi_freelist_take(&freelist);
    }
    for (int i = 0; i < ALL; i++) {
        bhi_freelist_give(&freelist, things[i]);
    }
    void *taken[ALL];
    for (int i = 0; i < ALL; i++) {
        taken[i] = bhi_freelist_take(&freelist);
        for (int k = 0; k < ALL; k++) {
            BHT_EQ(taken[i] == things[k], i == k && i < MORE);
        }
    }
    for (int i = 0; i < ALL; i++) {
        bhi_freelist_give(&freelist, taken[i]);
    }
}

static _Atomic bool stop;

static void *take_and_give(void *unused) {
    (void)unused;
    while (!stop) {
        bhi_freelist_give(&freelist, bhi_freelist_take(&freelist));
    }
    return NULL;
}

/* A fork while another thread holds the lock: that thread is not there in the child to drop it. */
TEST(a_fork_at_any_moment) {
    enum { THREADS = 3, FORKS = 200 };
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        BHT_EQ(pthread_create(&threads[i], NULL, take_and_give, NULL), 0);
    }
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(5 * bht_slowness());
            void *one = bhi_freelist_take(&freelist), *two = bhi_freelist_take(&freelist);
            bool good = one && two && one != two;
            bhi_freelist_give(&freelist, one);
            _exit(good ? 0 : 1);
        }
        int status = -1;
        BHT_EQ(waitpid(child, &status, 0), child);
        BHT_EQ(status, 0);
    }
    stop = true;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

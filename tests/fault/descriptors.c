/* libzmq aborts the process where its threads start and there is no descriptor left for one of
 * them. The supervisor holds open what they need, and more, until the moment before. */
#include "scene.h"
#include "supervisor/context/context.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#define STARTS 5  /* as in supervisor/reactor/reactor.c: fewer, and libzmq aborts */
#define HELD   13 /* with those for what other threads open at that moment */

static struct rlimit before;

static void leave_free(unsigned count) {
    struct rlimit limit = before;
    for (limit.rlim_cur = 0; count; limit.rlim_cur++) {
        count -= fcntl((int)limit.rlim_cur, F_GETFD) < 0;
    }
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void others_take_their_share(void *object) {
    (void)object;
    leave_free(STARTS);
}

/* The margin is gone at the worst moment, and libzmq starts all the same. */
static void room_goes_when_libzmq_starts(void) {
    BHT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    bht_at_step("libzmq_starts", 1, others_take_their_share);
    bh_context *context = fx_context(NULL);
    bht_at_step(NULL, 0, NULL);
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    bh_stream *stream = fx_stream(context, "s", FX_SECONDS);
    fx_expect_healthy(context, stream);
    bh_stream_release(stream);
    BHT_EQ(bh_context_destroy(context), BH_OK);
}

static void others_take_all(void *object) {
    (void)object;
    leave_free(HELD - 1);
}

/* Before that it is an error like others. */
static void room_goes_before_libzmq_starts(void) {
    BHT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    bht_at_step("libzmq_is_due", 1, others_take_all);
    bh_context_options options = fx_options();
    options.worker_path = BHT_WORKER;
    bh_context *context = NULL;
    bh_detail detail = {0};
    BHT_EQ(bh_context_create(&options, &context, &detail), BH_SYSTEM);
    BHT_EQ(detail.sys_errno, EMFILE);
    bht_at_step(NULL, 0, NULL);
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(room_goes_when_libzmq_starts),
        BHT_TEST(room_goes_before_libzmq_starts),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}

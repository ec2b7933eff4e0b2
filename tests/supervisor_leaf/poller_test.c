/* libzmq aborts the process if it cannot start its threads or open their descriptors: so its first
 * socket is made only where there is room for all of that. */
#include "base/limits.h"
#include "harness.h"
#include "supervisor/context/poller.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <zmq.h>

enum { NOTHING, THREAD, DESCRIPTOR, ADDRESSES };

static struct {
    int lacks, from; /* this, from so many on */
    int threads, descriptors, sockets;
    bool limited; /* the address space is */
} stage;

BHT_WRAP(int, pthread_create, pthread_t *thread, const pthread_attr_t *attributes,
         void *(*run)(void *), void *argument) {
    return ++stage.threads >= stage.from && stage.lacks == THREAD
               ? EAGAIN
               : __real_pthread_create(thread, attributes, run, argument);
}

BHT_WRAP(int, eventfd, unsigned count, int flags) {
    if (++stage.descriptors >= stage.from && stage.lacks == DESCRIPTOR) {
        errno = EMFILE;
        return -1;
    }
    return __real_eventfd(count, flags);
}

BHT_WRAP(uint64_t, bhi_limit_of_address_space, void) {
    return stage.limited ? UINT64_C(1) << 40 : UINT64_MAX;
}

BHT_WRAP(void *, mmap, void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    if (stage.lacks == ADDRESSES && protection == PROT_NONE) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap(at, size, protection, flags, fd, offset);
}

BHT_WRAP(void *, zmq_socket, void *context, int type) {
    stage.sockets++;
    return __real_zmq_socket(context, type);
}

static int open_and_close(int lacks, int from, bool limited) {
    const struct bht_counts before = bht_count_self();
    struct bhi_poller poller;
    stage.lacks = lacks;
    stage.from = from;
    stage.limited = limited;
    stage.threads = stage.descriptors = stage.sockets = 0;
    bhi_poller_init(&poller);
    const int error = bhi_poller_open(&poller);
    BHT_EQ(stage.sockets, error == 0);
    bhi_poller_close(&poller, true);
    stage.lacks = NOTHING;
    BHT_EQ(bht_count_self().descriptors, before.descriptors);
    WAIT_UNTIL(bht_count_self().threads == before.threads, 5000);
    return error;
}

TEST(there_is_room_before_libzmq_needs_it) {
    BHT_EQ(open_and_close(NOTHING, 0, false), 0);
    BHT_GE(stage.descriptors, 1 + 5 + 8); /* its own, libzmq's, and what others open meanwhile */
    const int descriptors = stage.descriptors;
    for (int from = 1; from <= descriptors; from++) {
        BHT_EQ(open_and_close(DESCRIPTOR, from, false), -EMFILE);
    }
    BHT_EQ(open_and_close(DESCRIPTOR, descriptors + 1, false), 0);
    for (int from = 1; from <= 3 && !BHT_TSAN; from++) {
        BHT_EQ(open_and_close(THREAD, from, false), -EAGAIN);
    }
    BHT_EQ(open_and_close(NOTHING, 0, true), 0);
    BHT_EQ(open_and_close(ADDRESSES, 0, true), -ENOMEM);
    BHT_EQ(open_and_close(ADDRESSES, 0, false), 0); /* then it is not looked for */
}

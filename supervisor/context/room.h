/* Room for descriptors, and for memory that workers share: how many this process may still open,
 * and how many each part of a context needs while it starts. libzmq aborts the process if its
 * threads find no free descriptor, and a worker that finds none in the middle of its start costs
 * seconds. So each start is checked first, and refused with the number that it needs.
 * docs/operating.md has the numbers. */
#ifndef BHI_SUPERVISOR_CONTEXT_ROOM_H
#define BHI_SUPERVISOR_CONTEXT_ROOM_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stdint.h>

/* The most that each has open at a time, and a few more for what the host opens meanwhile. */
#define BHI_ROOM_WORKER  12u /* lane, progress, doorbell, sockets, connection, pidfd */
#define BHI_ROOM_ZYGOTE  12u /* folder, cgroup, socket, pidfds, and what its start reads */
#define BHI_ROOM_CONTEXT 16u /* epoll, eventfd, libzmq's threads */
#define BHI_ROOM_OPENER  8u  /* its socket and pidfd, a request's socket pair and folder */
/* A context with one stream. */
#define BHI_ROOM_FIRST (BHI_ROOM_CONTEXT + BHI_ROOM_ZYGOTE + BHI_ROOM_WORKER)
/* What a driver opens while it starts in a worker, which has the host's hard limit. */
#define BHI_ROOM_PROCESS 64u

/* BH_OK; else BH_SYSTEM with EMFILE: "CALL: WHAT needs NEED file descriptors, and N are free ...".
 * |call| is the beginning of the message, up to the colon. */
bh_status bhi_room_check(const char *call, const char *what, uint32_t need, bh_detail *detail);
/* The same for the limit that workers inherit. */
bh_status bhi_room_check_process(const char *call, bh_detail *detail);
/* BH_OK; else BH_SYSTEM with EFBIG: RLIMIT_FSIZE forbids shared memory of |need| bytes. */
bh_status bhi_room_check_files(const char *call, uint64_t need, bh_detail *detail);
/* Descriptors that are held open to reserve room. They are closed when a later step needs it and
 * cannot be refused. There are fewer if not so many are free. */
#define BHI_ROOM_HELD 3
struct bhi_room_held {
    int fds[BHI_ROOM_HELD];
    uint32_t count;
};
void bhi_room_hold(struct bhi_room_held *held, int any_fd); /* copies of |any_fd| */
void bhi_room_give(struct bhi_room_held *held);
/* Returns true if |detail| is about missing descriptors. */
bool bhi_room_is_short(const bh_detail *detail);

#endif

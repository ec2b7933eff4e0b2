/* What a worker may cost its host beyond the work that it was given (T5): rings of its doorbell,
 * control messages, and processor time while nothing is in flight. Each has a budget that no honest
 * worker comes near. A worker that exceeds one is ignored for a while where that helps, and then
 * killed.
 *
 * A pure state machine: no clock and no call, so that its bounds are tested as a table. Reactor
 * thread only. */
#ifndef BHI_SUPERVISOR_WORKER_CONDUCT_H
#define BHI_SUPERVISOR_WORKER_CONDUCT_H

#include <stdbool.h>
#include <stdint.h>

struct bhi_conduct_limits {
    /* Rings. A submission causes four at most (worker/session/session.c): its compile's end, its
     * result, an error slot that is still taken, and going to sleep. They are credited when its
     * result has been read, not when it is published: thousands are published at once, and a level
     * is at least 0. In addition a worker has a burst of |rings|, and |rings_per_s|. When all are
     * used, the doorbell is ignored for |mute_ns|; the worker is killed when that has not helped
     * |mutes| times. */
    uint32_t rings_a_submission, rings, rings_per_s, mutes;
    uint64_t mute_ns;
    /* Log lines: the host sees a burst of |lines|, then |lines_per_s|. The others are dropped, and
     * after |lines_dropped| the worker is killed. */
    uint32_t lines, lines_per_s, lines_dropped;
    /* Other messages, and wake-ups that bring none, beyond what the host has asked for. */
    uint32_t messages, messages_per_s;
    /* Processor time while nothing is in flight: |idle_cpu_ns| is allowed in each |look_ns|. */
    uint64_t look_ns, idle_cpu_ns;
};

/* Tests lower the limits, so that they need not wait for seconds. */
#if BHI_STEP_POINTS
extern struct bhi_conduct_limits bhi_conduct_limits;
#else
extern const struct bhi_conduct_limits bhi_conduct_limits;
#endif

/* A leaky bucket: each use adds one, and time drains it. */
struct bhi_bucket {
    uint64_t level;
    uint64_t drained_ns;
};

/* All zero at first. */
struct bhi_conduct {
    struct bhi_bucket rings, lines, messages;
    uint64_t harvested;      /* results read when rings were last credited */
    uint32_t mutes;          /* one after the other */
    uint64_t muted_until_ns; /* 0: the doorbell is listened to */
    bool rearmed;            /* the next ring may be an old one: it is free */
    uint64_t asked;          /* messages and wake-ups that the host may have caused */
    uint64_t idle_published; /* at the last look, when nothing was in flight */
    uint64_t idle_cpu_ns;    /* its processor time then */
    uint64_t idle_since_ns;  /* and when that was */
    bool idle_known;         /* both are */
};

enum bhi_conduct_verdict {
    BHI_CONDUCT_FINE,
    BHI_CONDUCT_FIRST, /* not taken: the first one in a row */
    BHI_CONDUCT_OVER,  /* not taken */
    BHI_CONDUCT_KILL,
};

/* The worker has rung. |harvested|: number of its results that were ever read. FIRST, OVER: the
 * doorbell must be ignored until |muted_until_ns|. */
enum bhi_conduct_verdict bhi_conduct_ring(struct bhi_conduct *conduct, uint64_t now_ns,
                                          uint64_t harvested);
/* The doorbell is not ignored any more. */
void bhi_conduct_unmute(struct bhi_conduct *conduct);
/* The worker has sent a log line. FIRST, OVER: drop it. */
enum bhi_conduct_verdict bhi_conduct_line(struct bhi_conduct *conduct, uint64_t now_ns);
/* The worker has sent another message, or has woken the host for less than one. Returns FINE or
 * KILL. */
enum bhi_conduct_verdict bhi_conduct_message(struct bhi_conduct *conduct, uint64_t now_ns);
/* The host has sent something that may cause |messages| messages or wake-ups; they are free. */
void bhi_conduct_asks(struct bhi_conduct *conduct, uint64_t messages);
/* Checks |cpu_ns|, the processor time that the worker has used in its life (0: unknown). |idle|:
 * nothing is in flight. Returns FINE or KILL. *out_used_ns: what it has used without a cause in the
 * last *out_time_ns. */
enum bhi_conduct_verdict bhi_conduct_look(struct bhi_conduct *conduct, uint64_t now_ns,
                                          uint64_t published, bool idle, uint64_t cpu_ns,
                                          uint64_t *out_used_ns, uint64_t *out_time_ns);

#endif

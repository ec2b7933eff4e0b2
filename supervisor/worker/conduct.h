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
     * result, an error slot that is still taken, and going to sleep. They are given back when its
     * result has been read, not when it is published: thousands are published at once, and a level
     * knows no less than nothing. Beyond those: a burst, and so many a second. What goes beyond
     * that has the doorbell ignored for |mute_ns|; the worker is killed when that was of no use
     * |mutes| times. */
    uint32_t rings_a_submission, rings, rings_per_s, mutes;
    uint64_t mute_ns;
    /* Log lines: after a burst the host sees so many a second. The others are dropped, and when
     * that many are, the worker is killed. */
    uint32_t lines, lines_per_s, lines_dropped;
    /* Other messages, and wake-ups that bring none, beyond what the host has asked for. */
    uint32_t messages, messages_per_s;
    /* Processor time while nothing is in flight: looked at every |look_ns|, and this much is
     * allowed in that time. */
    uint64_t look_ns, idle_cpu_ns;
};

/* Test builds lower them: nobody waits for seconds there. */
#if BHI_STEP_POINTS
extern struct bhi_conduct_limits bhi_conduct_limits;
#else
extern const struct bhi_conduct_limits bhi_conduct_limits;
#endif

/* Fills by one at each use, and drains by itself. */
struct bhi_bucket {
    uint64_t level;
    uint64_t drained_ns;
};

/* All zero at first. */
struct bhi_conduct {
    struct bhi_bucket rings, lines, messages;
    uint64_t harvested;      /* when rings were last given back for results */
    uint32_t mutes;          /* one after the other */
    uint64_t muted_until_ns; /* 0: the doorbell is listened to */
    bool rearmed;            /* the next ring may be an old one: it is free */
    uint64_t asked;          /* messages that the host has asked for and not got */
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

/* It has rung. |harvested|: its results that were ever read. OVER: the doorbell is to be ignored
 * until |muted_until_ns|. */
enum bhi_conduct_verdict bhi_conduct_ring(struct bhi_conduct *conduct, uint64_t now_ns,
                                          uint64_t harvested);
/* The doorbell is listened to again. */
void bhi_conduct_unmute(struct bhi_conduct *conduct);
/* It has sent a log line. FIRST, OVER: it is to be dropped. */
enum bhi_conduct_verdict bhi_conduct_line(struct bhi_conduct *conduct, uint64_t now_ns);
/* It has sent another message, or woken the host for less than one. FINE or KILL. */
enum bhi_conduct_verdict bhi_conduct_message(struct bhi_conduct *conduct, uint64_t now_ns);
/* The host was asked for |messages| by what it has sent. */
void bhi_conduct_asks(struct bhi_conduct *conduct, uint64_t messages);
/* A look at |cpu_ns|, the processor time that it has used in its life (0: unknown). |idle|: nothing
 * is in flight. FINE or KILL. *out_used_ns: what it has used in the last *out_time_ns without a
 * cause. */
enum bhi_conduct_verdict bhi_conduct_look(struct bhi_conduct *conduct, uint64_t now_ns,
                                          uint64_t published, bool idle, uint64_t cpu_ns,
                                          uint64_t *out_used_ns, uint64_t *out_time_ns);

#endif

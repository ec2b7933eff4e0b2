#include "supervisor/worker/conduct.h"

#define NS_PER_S UINT64_C(1000000000)

/* An honest worker stays far below. The idle driver threads of an NVIDIA worker use 2 to 3 ms of
 * processor time a second. A worker writes at most half as many lines (worker/session/session.c)
 * and no unasked messages. conduct.h says when it rings. */
#if BHI_STEP_POINTS
#define FIXED
#else
#define FIXED const
#endif
FIXED struct bhi_conduct_limits bhi_conduct_limits = {
    .rings_a_submission = 4,
    .rings = 256,
    .rings_per_s = 64,
    .mutes = 20,
    .mute_ns = 10 * (NS_PER_S / 1000),
    .lines = 200,
    .lines_per_s = 20,
    .lines_dropped = 2000,
    .messages = 1024,
    .messages_per_s = 64,
    .look_ns = 4 * NS_PER_S,
    .idle_cpu_ns = NS_PER_S / 2,
};

/* Drains the bucket by |per_s|. Only whole units are drained: the remaining time counts later. */
static void drain(struct bhi_bucket *bucket, uint64_t now_ns, uint32_t per_s) {
    const uint64_t unit_ns = NS_PER_S / per_s;
    const uint64_t units =
        now_ns > bucket->drained_ns ? (now_ns - bucket->drained_ns) / unit_ns : 0;
    if (units >= bucket->level) {
        bucket->level = 0;
        bucket->drained_ns = now_ns;
    } else {
        bucket->level -= units;
        bucket->drained_ns += units * unit_ns;
    }
}

static uint64_t less(uint64_t from, uint64_t what) {
    return from > what ? from - what : 0;
}

enum bhi_conduct_verdict bhi_conduct_ring(struct bhi_conduct *conduct, uint64_t now_ns,
                                          uint64_t harvested) {
    const struct bhi_conduct_limits *limits = &bhi_conduct_limits;
    if (conduct->rearmed) {
        conduct->rearmed = false;
        return BHI_CONDUCT_FINE;
    }
    drain(&conduct->rings, now_ns, limits->rings_per_s);
    conduct->rings.level =
        less(conduct->rings.level, limits->rings_a_submission * (harvested - conduct->harvested));
    conduct->harvested = harvested;
    if (conduct->rings.level < limits->rings) {
        conduct->rings.level++;
        conduct->mutes = conduct->rings.level < limits->rings / 2 ? 0 : conduct->mutes;
        return BHI_CONDUCT_FINE;
    }
    if (conduct->mutes == limits->mutes) {
        return BHI_CONDUCT_KILL;
    }
    conduct->muted_until_ns = now_ns + limits->mute_ns;
    return conduct->mutes++ == 0 ? BHI_CONDUCT_FIRST : BHI_CONDUCT_OVER;
}

void bhi_conduct_unmute(struct bhi_conduct *conduct) {
    conduct->muted_until_ns = 0;
    conduct->rearmed = true;
}

enum bhi_conduct_verdict bhi_conduct_line(struct bhi_conduct *conduct, uint64_t now_ns) {
    const struct bhi_conduct_limits *limits = &bhi_conduct_limits;
    drain(&conduct->lines, now_ns, limits->lines_per_s);
    const uint64_t level = conduct->lines.level++;
    return level < limits->lines                           ? BHI_CONDUCT_FINE
           : level == limits->lines                        ? BHI_CONDUCT_FIRST
           : level < limits->lines + limits->lines_dropped ? BHI_CONDUCT_OVER
                                                           : BHI_CONDUCT_KILL;
}

enum bhi_conduct_verdict bhi_conduct_message(struct bhi_conduct *conduct, uint64_t now_ns) {
    if (conduct->asked > 0) {
        conduct->asked--;
        return BHI_CONDUCT_FINE;
    }
    drain(&conduct->messages, now_ns, bhi_conduct_limits.messages_per_s);
    return conduct->messages.level++ < bhi_conduct_limits.messages ? BHI_CONDUCT_FINE
                                                                   : BHI_CONDUCT_KILL;
}

void bhi_conduct_asks(struct bhi_conduct *conduct, uint64_t messages) {
    conduct->asked += messages;
}

enum bhi_conduct_verdict bhi_conduct_look(struct bhi_conduct *conduct, uint64_t now_ns,
                                          uint64_t published, bool idle, uint64_t cpu_ns,
                                          uint64_t *out_used_ns, uint64_t *out_time_ns) {
    const struct bhi_conduct_limits *limits = &bhi_conduct_limits;
    /* The time counts only if the worker was idle at the last look, too, and has got nothing since.
     * Otherwise it was work, or cannot be told from work. */
    const bool was_idle = conduct->idle_known && conduct->idle_published == published;
    *out_used_ns = idle && was_idle ? less(cpu_ns, conduct->idle_cpu_ns) : 0;
    *out_time_ns = less(now_ns, conduct->idle_since_ns);
    conduct->idle_known = idle && cpu_ns > 0;
    conduct->idle_published = published;
    conduct->idle_cpu_ns = cpu_ns;
    conduct->idle_since_ns = now_ns;
    /* The host may have been stopped for long: the allowance grows with the time. */
    const uint64_t looks = *out_time_ns / limits->look_ns;
    return *out_used_ns > limits->idle_cpu_ns * (looks ? looks : 1) ? BHI_CONDUCT_KILL
                                                                    : BHI_CONDUCT_FINE;
}

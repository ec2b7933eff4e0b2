/* T5: what a worker may cost beyond its work. Time is a number here. */
#include "harness.h"
#include "supervisor/worker/conduct.h"

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

#define LIMITS bhi_conduct_limits

/* Rings as fast as it can from |now_ns| on. Returns how many of them woke the host before it was
 * killed, or |most|. */
static uint32_t ring_until_killed(struct bhi_conduct *conduct, uint64_t now_ns, uint32_t most) {
    for (uint32_t woken = 0; woken < most; woken++) {
        const enum bhi_conduct_verdict verdict = bhi_conduct_ring(conduct, now_ns, 1);
        if (verdict == BHI_CONDUCT_KILL) {
            return woken;
        }
        if (verdict != BHI_CONDUCT_FINE) {
            BHT_EQ(conduct->muted_until_ns, now_ns + LIMITS.mute_ns);
            now_ns = conduct->muted_until_ns;
            bhi_conduct_unmute(conduct);
            BHT_EQ(conduct->muted_until_ns, 0);
        }
    }
    return most;
}

TEST(a_bell_that_rings_for_ever_is_bounded) {
    struct bhi_conduct conduct = {0};
    const uint32_t woken = ring_until_killed(&conduct, 5 * S, 1000000);
    BHT_GE(woken, LIMITS.rings);
    /* Two for each time that it is listened to again: the first may be an old one. */
    BHT_LE(woken, LIMITS.rings + LIMITS.rings_a_submission + 4 * LIMITS.mutes);
}

TEST(the_first_mute_is_told) {
    struct bhi_conduct conduct = {0};
    enum bhi_conduct_verdict verdict;
    while ((verdict = bhi_conduct_ring(&conduct, S, 0)) == BHI_CONDUCT_FINE)
        ;
    BHT_EQ(verdict, BHI_CONDUCT_FIRST);
    bhi_conduct_unmute(&conduct);
    BHT_EQ(bhi_conduct_ring(&conduct, S, 0), BHI_CONDUCT_FINE); /* free */
    BHT_EQ(bhi_conduct_ring(&conduct, S, 0), BHI_CONDUCT_OVER);
    /* Once it has been quiet for long it starts anew. */
    bhi_conduct_unmute(&conduct);
    BHT_EQ(bhi_conduct_ring(&conduct, S, 0), BHI_CONDUCT_FINE);
    BHT_EQ(bhi_conduct_ring(&conduct, 100 * S, 0), BHI_CONDUCT_FINE);
    BHT_EQ(conduct.mutes, 0);
    BHT_EQ(conduct.rings.level, 1);
}

/* However many results are read: what is given back is not hoarded, and that of one result is there
 * for its own rings. */
TEST(what_has_ended_may_be_rung_for) {
    struct bhi_conduct conduct = {0};
    uint64_t harvested = 1000000; /* read by others meanwhile */
    for (int i = 0; i < 100000; i++) {
        for (uint32_t k = 1; k < LIMITS.rings_a_submission; k++) {
            BHT_EQ(bhi_conduct_ring(&conduct, S, harvested), BHI_CONDUCT_FINE);
        }
        harvested++; /* that ring is taken when its result has been read */
        BHT_EQ(bhi_conduct_ring(&conduct, S, harvested), BHI_CONDUCT_FINE);
        BHT_LE(conduct.rings.level, 2 * LIMITS.rings_a_submission);
    }
    harvested += 1000000;
    BHT_EQ(bhi_conduct_ring(&conduct, S, harvested), BHI_CONDUCT_FINE);
    BHT_EQ(conduct.rings.level, 1);
    for (uint32_t i = 1; i < LIMITS.rings; i++) {
        BHT_EQ(bhi_conduct_ring(&conduct, S, harvested), BHI_CONDUCT_FINE);
    }
    BHT_EQ(bhi_conduct_ring(&conduct, S, harvested), BHI_CONDUCT_FIRST);
}

TEST(log_lines_are_dropped_then_deadly) {
    struct bhi_conduct conduct = {0};
    for (uint32_t i = 0; i < LIMITS.lines; i++) {
        BHT_EQ(bhi_conduct_line(&conduct, S), BHI_CONDUCT_FINE);
    }
    BHT_EQ(bhi_conduct_line(&conduct, S), BHI_CONDUCT_FIRST);
    for (uint32_t i = 1; i < LIMITS.lines_dropped; i++) {
        BHT_EQ(bhi_conduct_line(&conduct, S), BHI_CONDUCT_OVER);
    }
    BHT_EQ(bhi_conduct_line(&conduct, S), BHI_CONDUCT_KILL);
    /* At the rate that is allowed, for ever. */
    struct bhi_conduct slow = {0};
    for (uint64_t i = 0; i < 100000; i++) {
        BHT_EQ(bhi_conduct_line(&slow, i * S / LIMITS.lines_per_s), BHI_CONDUCT_FINE);
    }
    /* Likewise in pairs: what is left of a unit when it is looked at counts later. */
    struct bhi_conduct paired = {0};
    for (uint64_t i = 0; i < 100000; i++) {
        const uint64_t pair_ns = i / 2 * 2 * S / LIMITS.lines_per_s;
        BHT_EQ(bhi_conduct_line(&paired, pair_ns + i % 2 * MS), BHI_CONDUCT_FINE);
    }
}

TEST(messages_that_were_asked_for_are_free) {
    struct bhi_conduct conduct = {0};
    bhi_conduct_asks(&conduct, 100000);
    for (int i = 0; i < 100000; i++) {
        BHT_EQ(bhi_conduct_message(&conduct, S), BHI_CONDUCT_FINE);
    }
    for (uint32_t i = 0; i < LIMITS.messages; i++) {
        BHT_EQ(bhi_conduct_message(&conduct, S), BHI_CONDUCT_FINE);
    }
    BHT_EQ(bhi_conduct_message(&conduct, S), BHI_CONDUCT_KILL);
    struct bhi_conduct slow = {0};
    for (uint64_t i = 0; i < 100000; i++) {
        BHT_EQ(bhi_conduct_message(&slow, i * S / LIMITS.messages_per_s), BHI_CONDUCT_FINE);
    }
}

/* One look after the other: what each finds, and what is said then. */
TEST(processor_time_counts_while_nothing_is_in_flight) {
    const uint64_t most = LIMITS.idle_cpu_ns;
    const struct {
        uint64_t published;
        bool idle;
        uint64_t cpu_ns, used_ns;
        enum bhi_conduct_verdict verdict;
    } looks[] = {
        {0, true, 9 * S, 0, BHI_CONDUCT_FINE}, /* the first: its start, and who knows what */
        {0, true, 9 * S + most, most, BHI_CONDUCT_FINE},
        {1, false, 30 * S, 0, BHI_CONDUCT_FINE}, /* it works */
        {1, true, 40 * S, 0, BHI_CONDUCT_FINE},  /* it did, on the way here */
        {9, true, 50 * S, 0, BHI_CONDUCT_FINE},  /* more came, and has ended again */
        {9, true, 50 * S + 1, 1, BHI_CONDUCT_FINE},
        {9, true, 0, 0, BHI_CONDUCT_FINE}, /* its clock could not be read */
        {9, true, 50 * S, 0, BHI_CONDUCT_FINE},
        {9, true, 50 * S + most + 1, most + 1, BHI_CONDUCT_KILL},
    };
    struct bhi_conduct conduct = {0};
    uint64_t now_ns = S, used_ns, time_ns;
    for (size_t i = 0; i < BHT_COUNT(looks); i++) {
        now_ns += LIMITS.look_ns;
        BHT_EQ(bhi_conduct_look(&conduct, now_ns, looks[i].published, looks[i].idle,
                                looks[i].cpu_ns, &used_ns, &time_ns),
               looks[i].verdict);
        BHT_EQ(used_ns, looks[i].used_ns);
    }
    BHT_EQ(time_ns, LIMITS.look_ns);
    /* The host stood still for an hour: that is as many looks. */
    const uint64_t hour = 3600 * S, hourly = hour / LIMITS.look_ns * most;
    struct bhi_conduct late = {0};
    bhi_conduct_look(&late, S, 1, true, S, &used_ns, &time_ns);
    BHT_EQ(bhi_conduct_look(&late, S + hour, 1, true, S + hourly, &used_ns, &time_ns),
           BHI_CONDUCT_FINE);
    BHT_EQ(bhi_conduct_look(&late, S + 2 * hour, 1, true, S + 2 * hourly + 1, &used_ns, &time_ns),
           BHI_CONDUCT_KILL);
}

/* The faults of a run follow from its seed. */
#include "harness.h"

#include "chaos/engine/schedule.h"

enum { MANY = 20000, STREAMS = 3, ALL = (1 << BHI_FAULT_KINDS) - 1 };

static struct bhi_schedule schedule_of(uint64_t seed, uint32_t set, double rate) {
    struct bhi_schedule schedule;
    bhi_schedule_init(&schedule, seed, set, rate, STREAMS);
    return schedule;
}

TEST(the_same_seed_gives_the_same_faults) {
    struct bhi_schedule a = schedule_of(7, ALL, 20), b = schedule_of(7, ALL, 20);
    for (int i = 0; i < MANY; i++) {
        const struct bhi_scheduled x = bhi_schedule_next(&a), y = bhi_schedule_next(&b);
        BHT_EQ(x.number, i + 1);
        BHT_EQ(x.number, y.number);
        BHT_EQ(x.kind, y.kind);
        BHT_EQ(x.stream, y.stream);
        BHT_EQ(x.gap_ns, y.gap_ns);
        BHT_EQ(x.lasts_ns, y.lasts_ns);
        BHT_EQ(x.salt, y.salt);
    }
}

/* A seed that somebody has noted down: what it means does not change by accident. */
TEST(a_seed_means_the_same_for_ever) {
    static const struct {
        enum bhi_fault_kind kind;
        uint32_t stream;
    } first[] = {{BHI_FAULT_GARBAGE, 1}, {BHI_FAULT_KILL, 0}, {BHI_FAULT_SLOW, 2},
                 {BHI_FAULT_SLOW, 0},    {BHI_FAULT_STOP, 1}, {BHI_FAULT_KILL, 1},
                 {BHI_FAULT_KILL, 2},    {BHI_FAULT_KILL, 0}};
    struct bhi_schedule schedule = schedule_of(1, BHI_FAULTS_DEFAULT, 20);
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        const struct bhi_scheduled next = bhi_schedule_next(&schedule);
        BHT_STR_EQ(bhi_fault_name(next.kind), bhi_fault_name(first[i].kind));
        BHT_EQ(next.stream, first[i].stream);
    }
}

TEST(another_seed_gives_others) {
    struct bhi_schedule a = schedule_of(7, ALL, 20), b = schedule_of(8, ALL, 20);
    int same = 0;
    for (int i = 0; i < MANY; i++) {
        same += bhi_schedule_next(&a).kind == bhi_schedule_next(&b).kind;
    }
    BHT_WITHIN(same, 0, MANY / 2);
}

/* Nothing but what was asked for, all of it, on every stream, as often as was asked for. */
TEST(the_options_are_kept) {
    static const uint32_t sets[] = {1u << BHI_FAULT_KILL, 1u << BHI_FAULT_FULL,
                                    1u << BHI_FAULT_SLOW | 1u << BHI_FAULT_OOM, ALL};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        struct bhi_schedule schedule = schedule_of(i, sets[i], 50);
        uint32_t kinds = 0, streams = 0;
        uint64_t sum_ns = 0;
        for (int k = 0; k < MANY; k++) {
            const struct bhi_scheduled next = bhi_schedule_next(&schedule);
            const bool lasts = next.kind == BHI_FAULT_SLOW || next.kind == BHI_FAULT_FULL;
            kinds |= 1u << next.kind;
            streams |= 1u << next.stream;
            sum_ns += next.gap_ns;
            BHT_EQ(next.lasts_ns != 0, lasts);
            BHT_WITHIN(next.lasts_ns, 0, 201000000);
        }
        BHT_EQ(kinds, sets[i]);
        BHT_EQ(streams, (1u << STREAMS) - 1);
        BHT_WITHIN(sum_ns / MANY, 19000000, 21000000);
    }
}

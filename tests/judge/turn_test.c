/* In which order those run that take turns. */
#include "judge/time/round.h"

#include "harness.h"

enum { RACERS = 4, ROUNDS = 64 };

/* When |which| has its turn, counted from the first turn of all. */
static size_t turn(size_t which, uint64_t round) {
    for (size_t place = 0; place < RACERS; place++) {
        if (bhi_turn_of(round, place, RACERS) == which) {
            return round * RACERS + place;
        }
    }
    BHT_FAIL("%zu has no turn in round %llu", which, (unsigned long long)round);
}

TEST(each_has_a_turn) {
    for (uint64_t round = 0; round < ROUNDS; round++) {
        size_t sum = 0;
        for (size_t which = 0; which < RACERS; which++) {
            sum += turn(which, round) - round * RACERS;
        }
        BHT_EQ(sum, 0 + 1 + 2 + 3);
    }
}

TEST(each_is_first_as_often) {
    for (size_t one = 0; one < RACERS; one++) {
        for (size_t other = 0; other < one; other++) {
            int first = 0;
            for (uint64_t round = 0; round < ROUNDS; round++) {
                first += turn(one, round) < turn(other, round);
            }
            BHT_EQ(first, ROUNDS / 2);
        }
    }
}

/* In eight rounds a drift meets all alike, also one that becomes faster. */
TEST(a_drift_meets_all_alike) {
    uint64_t linear[RACERS] = {0}, square[RACERS] = {0};
    for (uint64_t round = 0; round < 8; round++) {
        for (size_t which = 0; which < RACERS; which++) {
            linear[which] += turn(which, round);
            square[which] += turn(which, round) * turn(which, round);
        }
    }
    for (size_t which = 1; which < RACERS; which++) {
        BHT_EQ(linear[which], linear[0]);
    }
    BHT_EQ(square[3], square[0]); /* the outer two, and the inner two */
    BHT_EQ(square[2], square[1]);
}

/* Load that comes and goes with any short period does not always meet the same one first. */
TEST(no_period) {
    for (uint64_t period = 2; period <= 5; period++) {
        for (uint64_t phase = 0; phase < period; phase++) {
            int ascending = 0, descending = 0;
            for (uint64_t round = phase; round < 32 * period; round += period) {
                const bool up = turn(0, round) < turn(1, round);
                ascending += up;
                descending += !up;
            }
            BHT_TRUE(ascending && descending);
        }
    }
}

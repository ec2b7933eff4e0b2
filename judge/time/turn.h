/* In which order those run that take turns. */
#ifndef BHI_JUDGE_TIME_TURN_H
#define BHI_JUDGE_TIME_TURN_H

#include <stddef.h>
#include <stdint.h>

/* Which of |count| is at |place| in a round: each round is in ascending or in descending order, by
 * the Thue-Morse sequence. So of two, each is first as often as the other; what changes evenly with
 * time, or with its square, meets both alike (ABBA BAAB); and no load that comes and goes stays in
 * step with it. */
static inline size_t bhi_turn_of(uint64_t round, size_t place, size_t count) {
    return __builtin_parityll(round) ? count - 1 - place : place;
}

#endif

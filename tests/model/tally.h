/* How often what a history is meant to contain has happened, over all of a run: a checker that no
 * longer gets anywhere must not pass. */
#ifndef MODEL_TALLY_H
#define MODEL_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#define MODEL_TALLIES(X)                                                                           \
    X(READY, "READY")                                                                              \
    X(POISONED_ALONE, "POISONED by itself")                                                        \
    X(POISONED_DIRECT, "POISONED one hop away")                                                    \
    X(POISONED_FAR, "POISONED further away")                                                       \
    X(POISONED_RUNNING, "POISONED while it ran")                                                   \
    X(POISONED_STRICT, "POISONED by its strict stream")                                            \
    X(OTHER_CAUSES, "POISONED for several reasons")                                                \
    X(WORKER_LOST, "lost with another one's worker")                                               \
    X(CANCELLED_ALL, "cancelled with all of its stream, unstarted")                                \
    X(CANCELLED_ALL_LATE, "cancelled with all of its stream, started")                             \
    X(REFUSED, "refused")                                                                          \
    X(REFUSED_LATE, "refused when its turn came")                                                  \
    X(WAITED_TOGETHER, "told after another who waits for the same")                                \
    X(GAVE_UP, "gave up waiting")                                                                  \
    X(WITHDRAWN, "withdrawn in time")                                                              \
    X(WITHDRAWN_LATE, "withdrawn too late")                                                        \
    X(SKIPPED_LATE, "withdrawn too late, and skipped all the same")                                \
    X(LANE_FULL, "found its lane full")                                                            \
    X(HELD_BACK, "held back by another stream")                                                    \
    X(NO_MEMORY, "found no memory")                                                                \
    X(MERGED, "ran merged with others")                                                            \
    X(PUT_BACK, "put back after a death")                                                          \
    X(RECORDED_BEFORE_DEATH, "recorded, and taken in after the death")                             \
    X(DONE_UNRECORDED, "all written, but not recorded before the death")                           \
    X(HALF_WRITTEN, "half written at the death")                                                   \
    X(DIED_IDLE, "worker died idle")                                                               \
    X(LEFT, "worker died idle, and its stream went on before the burial")                          \
    X(DIED_STARTING, "worker died while it started")                                               \
    X(REPLACED, "worker replaced for what came next")                                              \
    X(KILLED_DEADLINE, "worker killed for a deadline")                                             \
    X(KILLED_CANCEL, "worker killed for a cancel")                                                 \
    X(KILLED_LIE, "worker killed for a lie")                                                       \
    X(TOLD, "worker told to end what it runs")                                                     \
    X(ABORTED, "ended by a worker that goes on")                                                   \
    X(KILLED_DEAF, "worker killed that did not end it in time")                                    \
    X(KILLED_COMPILE, "worker killed for what it compiles")                                        \
    X(KILLED_STARVED, "worker killed for a compile that got no processor")                         \
    X(DIED_COMPILING, "worker died while it compiled")                                             \
    X(LIED_DEADLINE, "said that it was told, and was not")                                         \
    X(LIED_TIME, "claimed more time on the device than there was")                                 \
    X(OUTLIVED_KILL, "killed for one that ended before the signal")                                \
    X(SPARED, "put back, since others ended its worker while it compiled")                         \
    X(ZYGOTE_LOST, "worker lost with its zygote")                                                  \
    X(UNAVAILABLE, "stream became UNAVAILABLE")                                                    \
    X(HEALED, "stream healed")                                                                     \
    X(RESET, "stream with a failure was reset")                                                    \
    X(STREAM_GONE, "stream went in flight")                                                        \
    X(CLOSED, "context closed with submissions pending")                                           \
    X(MAP_CLEAN, "host read a CLEAN buffer")                                                       \
    X(MAP_POISONED, "host was refused a POISONED buffer")                                          \
    X(MAP_PENDING, "host had to wait")                                                             \
    X(CLEANED, "host cleaned a POISONED buffer")

enum tally {
#define X(name, text) TALLY_##name,
    MODEL_TALLIES(X)
#undef X
        TALLY_COUNT
};

extern uint64_t model_tallies[TALLY_COUNT];

static inline void tally(enum tally what) {
    model_tallies[what]++;
}

static inline void tally_if(bool happened, enum tally what) {
    model_tallies[what] += happened;
}

#endif

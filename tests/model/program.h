/* A history: what the host submits, and who takes which step when. Everything that happens follows
 * from it, so it can be replayed, printed, read back and shrunk. A step that is not possible when
 * its turn comes is passed over: any part of a history is a history. */
#ifndef MODEL_PROGRAM_H
#define MODEL_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define STREAMS 4
#define BUFFERS 5
#define WORKS   40 /* submissions; their numbers here are their order of submission */
#define STEPS   640
#define USES    4
#define WAITS   3
#define KINDS   4 /* of kernels; 0: none */

#define NO_DEADLINE UINT32_MAX

enum access { READ, OVERWRITE, PARTIAL, INOUT, ACCESS_COUNT };

struct work {
    uint8_t stream;
    uint8_t use_count, wait_count;
    struct {
        uint8_t buffer, access;
    } uses[USES];
    uint8_t waits[WAITS];
    uint32_t deadline_ms;
    bool compiles;  /* runs no kernel */
    bool cold;      /* has to be compiled first */
    bool guarded;   /* looks at the abort word */
    bool abandoned; /* refused after it had been built */
};

/* X(OP, name, what the target is) */
#define MODEL_OPS(X)                                                                               \
    X(SUBMIT, "submit", WORKS)                                                                     \
    X(CANCEL, "cancel", WORKS)                                                                     \
    X(MAP, "map", BUFFERS)         /* the host reads the whole of it */                            \
    X(DISCARD, "discard", BUFFERS) /* the host overwrites the whole of it */                       \
    X(PATCH, "patch", BUFFERS)     /* the host writes a part of it */                              \
    X(RESET, "reset", STREAMS)                                                                     \
    X(RELEASE, "release", STREAMS)                                                                 \
    X(CLOSE, "close", 1)                                                                           \
    X(WORK, "work", STREAMS)           /* its worker goes on; arg: how much, merged or not */      \
    X(FAIL, "fail", STREAMS)           /* what it runs fails softly */                             \
    X(HANG, "hang", STREAMS)           /* what it runs never ends */                               \
    X(LIE, "lie", STREAMS)             /* it breaks the protocol */                                \
    X(DIE, "die", STREAMS)             /* its process ends */                                      \
    X(ZYGOTE, "zygote", 1)             /* all processes end */                                     \
    X(HARVEST, "harvest", STREAMS)     /* the supervisor takes what its worker has published */    \
    X(BURY, "bury", STREAMS)           /* the supervisor is told of its worker's death */          \
    X(STAFF, "staff", STREAMS)         /* a new worker; arg: starting, spare, or none to be had */ \
    X(READY, "ready", STREAMS)         /* the starting worker is ready */                          \
    X(LOOK, "look", 1)                 /* the supervisor looks at the deadlines */                 \
    X(TIME, "time", 1)                 /* arg: ms pass */                                          \
    X(NO_MEMORY, "no-memory", STREAMS) /* the next publication finds no memory */                  \
    X(CANCEL_ALL, "cancel-all", STREAMS) /* all that the stream has on its way */                  \
    X(HOLD, "hold", KINDS)               /* a kernel is refused; arg: how, or no longer */         \
    X(WAIT, "wait", WORKS)               /* one more waits for its end */                          \
    X(LEAVE, "leave", WORKS)             /* one of those who wait gives up; arg: who */

enum op {
#define X(op, name, targets) OP_##op,
    MODEL_OPS(X)
#undef X
        OP_COUNT
};

struct step {
    uint8_t op, target;
    uint16_t arg;
};

struct program {
    uint64_t seed;
    uint8_t stream_count, buffer_count;
    uint8_t lane;  /* submissions that fit into a lane */
    uint8_t batch; /* that a worker takes at once, at most */
    struct {
        bool strict;
        uint32_t deadline_ms;
        uint8_t budget;
        uint32_t window_ms;
        uint32_t compile_ms, grace_ms;
    } streams[STREAMS];
    uint32_t work_count, step_count;
    struct work works[WORKS];
    struct step steps[STEPS];
};

/* splitmix64 */
static inline uint64_t model_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

void program_generate(struct program *program, uint64_t seed);
void program_print(const struct program *program, FILE *file);
bool program_parse(struct program *program, FILE *file);
const char *program_op_name(enum op op);
uint32_t program_op_targets(enum op op); /* how many there can be */

/* shrink.c: one history, played to its end; and a smaller one that fails in the same way. */
struct world;
/* Plays what |drive| does with the world, and goes on to the end. The rest as below. */
bool model_drive(const struct program *program, void (*drive)(struct world *world, void *state),
                 void *state, FILE *trace, char *failure, size_t size);
/* True: nothing is wrong. Otherwise |failure| says what, also where the core aborts, crashes or
 * does not come back. */
bool model_play(const struct program *program, FILE *trace, char *failure, size_t size);
/* Makes |program|, which fails, as small as can be found in bounded time: it breaks the same rule.
 */
void model_shrink(struct program *program);

/* explore.c: every schedule of a few small programs. */
uint32_t explore_count(void);
const char *explore_name(uint32_t index);
/* Plays the schedules of program |index|, |limit| at most (*out_complete: there are no more), until
 * one fails: |failure| is not empty then, and |program| is that history. Returns how many. */
uint64_t explore_all(uint32_t index, uint64_t limit, struct program *program, char *failure,
                     size_t size, bool *out_complete);

#endif

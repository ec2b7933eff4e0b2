/* A random program: what it did, in order, and what became of it. Made and run by
 * random_program.c on real workers, judged afterwards by random_oracle.c, which shares nothing with
 * the library but its public verdicts.
 */
#ifndef BHT_RANDOM_PROGRAM_H
#define BHT_RANDOM_PROGRAM_H

#include "fixture.h"

#define RP_WORDS   1024u /* in each buffer */
#define RP_BUFFERS 8u
#define RP_STREAMS 4u
#define RP_STEPS   320u /* at most, in one program */
#define RP_HITS    8192u

enum rp_command_kind { RP_COPY, RP_FILL, RP_MIX, RP_DERIVE, RP_MISBOUND };

/* Ranges are in words. MIX and DERIVE take whole buffers. MISBOUND leaves a binding of MIX out. */
struct rp_command {
    enum rp_command_kind kind;
    unsigned dst, src;
    uint32_t dst_offset, src_offset, count;
    uint32_t value; /* of a fill; k */
    uint32_t rounds;
};

enum rp_step_kind { RP_SUBMIT, RP_WRITE, RP_READ, RP_RESET };

struct rp_step {
    enum rp_step_kind kind;
    unsigned stream; /* submit, reset */
    /* submit */
    struct rp_command commands[4];
    unsigned command_count;
    unsigned waits[3]; /* steps */
    unsigned wait_count;
    uint64_t deadline_ns; /* that holds for it */
    bool cancelled;       /* the program asked for it */
    bh_event *event;
    bh_verdict verdict;
    /* the host writes a range with words that follow from |value|, or reads the whole */
    unsigned buffer;
    uint32_t offset, count, value;
    bh_status status;
    uint32_t *seen; /* what a successful read returned */
};

/* A process that the program sent a signal to. */
struct rp_hit {
    int32_t pid;
    int signal;
};

/* One context and what was done to it, for many programs. */
struct rp_group {
    uint64_t seed;
    uint64_t random;    /* state */
    const char *faults; /* injected into its workers; NULL: none */
    bh_context *context;
    bh_stream *streams[RP_STREAMS];
    uint64_t deadlines_ns[RP_STREAMS];
    bool strict[RP_STREAMS];
    bh_kernel *mix, *derive;
    bh_buffer *buffers[RP_BUFFERS];
    const uint32_t *raw[RP_BUFFERS]; /* their mappings, to be looked at when nothing is in flight */
    struct rp_hit hits[RP_HITS];
    size_t hit_count;
    unsigned zygote_kills;
    /* What happened, all programs together. */
    unsigned long submissions, ready, own_causes, inherited, lost, misbound, raw_checks, reads;
    unsigned long by_status[64];
};

struct rp_program {
    unsigned index; /* in its group */
    unsigned stream_count;
    struct rp_step steps[RP_STEPS];
    unsigned step_count;
    /* When everything has ended: what mapping each buffer for reading said. */
    bh_status content[RP_BUFFERS];
};

uint64_t rp_random(uint64_t *state);
/* In 0 … limit-1. */
uint32_t rp_below(uint64_t *state, uint32_t limit);
/* Word |i| of what the host writes. */
uint32_t rp_word(uint32_t value, uint32_t i);

/* Makes the program from the group's random numbers and runs it to its end: every event has ended
 * in bounded time. */
void rp_run(struct rp_group *group, struct rp_program *program);
void rp_release(struct rp_program *program);
/* Fails the test where the program's history breaks a rule. */
void rp_judge(struct rp_group *group, const struct rp_program *program);
/* Prints the program with its verdicts to standard error. */
void rp_print(const struct rp_group *group, const struct rp_program *program);

#endif

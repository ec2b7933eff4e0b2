/* What the numbered cases share. A "read" of the cases (docs/semantics.md) is here a submission
 * that stands still on a gate kernel and fails on command: its worker is killed. */
#ifndef BHT_STAGE_H
#define BHT_STAGE_H

#include "fixture.h"

#define STAGE_FLOATS 64u
/* A deadline that tests let pass, and that honest work on a busy machine keeps, its first compile
 * included. */
#define STAGE_DEADLINE_NS (BHT_SECOND_MS * FX_MS)

/* Two streams, both served; a gate runs on the first. */
struct stage {
    bh_context *context;
    bh_stream *a, *b;
    bh_kernel *hang, *square;
    bh_buffer *gate;
    uint32_t *word;           /* FX_GATE_OPEN opens it */
    bh_event *bad;            /* the gate's, on a */
    pid_t pid;                /* of a's worker */
    bh_buffer *x, *y, *z, *w; /* x holds 0, 1, 2, …; the others zero */
};

struct stage stage_open(void);
/* Without a gate (bad is NULL) where |faults| name a step for a's worker. */
struct stage stage_open_with(const char *faults, uint64_t deadline_ns);
void stage_gate(struct stage *s);
/* For those whose subject it is: releases all that is in it. */
void stage_close(struct stage *s);
/* Kills a's worker, and waits until the library has found out. No event is looked at. */
void stage_fail_unseen(struct stage *s);

bh_event *ev_submit(bh_stream *stream, const bh_command *commands, uint32_t count,
                    bh_event *const *waits, uint32_t wait_count);
/* |out| = |in| squared, after |waits|. */
bh_event *ev_square(struct stage *s, bh_stream *stream, bh_buffer *in, bh_buffer *out,
                    bh_event *const *waits, uint32_t wait_count);
/* One that its worker refuses (BH_BINDING_MISMATCH) when its turn comes; it declares to write
 * |out|. */
bh_event *ev_refused(struct stage *s, bh_stream *stream, bh_buffer *out);

/* Waits for the end. Then wait, query and verdict must agree, twice, here and in another thread,
 * and give the same bytes. */
bh_verdict ev_agree(bh_event *event, bh_status status);
bh_verdict ev_poisoned(bh_event *event, bh_status status, const bh_event *origin, uint32_t hops,
                       bh_executed executed);
void ev_ready(bh_event *event);
/* Fails the test where the two differ in anything. */
void ev_same_verdict(const bh_verdict *one, const bh_verdict *other);

/* The content is x squared |times| times; mapping and reading agree. */
void ev_squares(bh_buffer *buffer, int times);
/* Every way to see the content answers |status|, twice. */
void ev_content_poisoned(bh_buffer *buffer, bh_status status);
/* Both streams do new work. */
void ev_well(struct stage *s);

#endif

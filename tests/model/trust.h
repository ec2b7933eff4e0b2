/* What a worker was given before, and so what its word is worth (T2, T3): worked out anew each time
 * from all that was ever put into its lane. */
#ifndef MODEL_TRUST_H
#define MODEL_TRUST_H

#include "world.h"

/* Whose code a submission launches: few, so that workers meet them again; 0: nobody's. */
uint64_t trust_code(int work);
/* How far its stream, and its caller, want it kept apart. */
enum bhi_apart trust_stream(const struct program *program, int stream);
enum bhi_apart trust_alone(const struct program *program, int work);
/* Its kernel is on trial. */
bool trust_tried(const struct program *program, int work);
/* May |worker| be given |work| now? */
bool trust_suits(const struct world *world, const struct worker *worker, int work);
/* It has been. */
void trust_given(const struct world *world, struct worker *worker, int work);
/* The host has |code| refused from now on, or no longer. */
bool trust_hold(struct world *world, int code, uint32_t arg);
/* |work| must not run: what becomes of it? */
bool trust_refuses(const struct world *world, int work, struct due *out);
/* Nothing is left in its lane, and it has been given something: it may be replaced. */
bool trust_replaceable(const struct world *world, const struct worker *worker);
bh_blame trust_blame(const struct worker *worker, int work, bh_status status);

#endif

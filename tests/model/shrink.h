/* One history, played to its end; and a smaller one that fails in the same way. */
#ifndef MODEL_SHRINK_H
#define MODEL_SHRINK_H

#include "program.h"
#include <stddef.h>

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

#endif

/* Every schedule of a few small programs. */
#ifndef MODEL_EXPLORE_H
#define MODEL_EXPLORE_H

#include "program.h"
#include <stddef.h>

uint32_t explore_count(void);
const char *explore_name(uint32_t index);
/* Plays the schedules of program |index|, |limit| at most (*out_complete: there are no more), until
 * one fails: |failure| is not empty then, and |program| is that history. Returns how many. */
uint64_t explore_all(uint32_t index, uint64_t limit, struct program *program, char *failure,
                     size_t size, bool *out_complete);

#endif

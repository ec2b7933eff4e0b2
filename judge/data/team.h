/* Work that all processors share. */
#ifndef BHI_JUDGE_DATA_TEAM_H
#define BHI_JUDGE_DATA_TEAM_H

#include <stdint.h>

/* Does the parts from 0 on of |job|, on several threads, of which each takes the next part that is left.
 * The caller is one of them, and the only one where no other can be made. Returns when all are done. */
void bhi_team_run(uint64_t parts, void (*work)(void *job, uint64_t part), void *job);

#endif

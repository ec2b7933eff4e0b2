/* Runs in groups. The runs of a group have the same workers; the next group has fresh ones. */
#ifndef BHI_JUDGE_DATA_GROUP_H
#define BHI_JUDGE_DATA_GROUP_H

#include <stddef.h>

/* The first of |count| runs that is in |group|, or in a later one. All groups have as many runs, or
 * one more than others. */
static inline size_t bhi_group_begin(size_t count, size_t groups, size_t group) {
    return (size_t)((unsigned __int128)count * group / groups);
}

#endif

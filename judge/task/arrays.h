/* The arrays of a task: types, shapes, generators, tolerances. */
#ifndef BHI_JUDGE_TASK_ARRAYS_H
#define BHI_JUDGE_TASK_ARRAYS_H

#include "judge/task/fields.h"

/* The keys of the task that have arrays, by role. */
extern const char *const bhi_task_role_keys[3];

/* Takes all arrays of a role. */
bool bhi_task_take_arrays(struct bhi_task_parser *parser, enum bhi_task_role role);

#endif

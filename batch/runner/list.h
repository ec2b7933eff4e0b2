/* Lists of works. A work is in one list at a time. The runner's lock guards them. */
#ifndef BHI_BATCH_RUNNER_LIST_H
#define BHI_BATCH_RUNNER_LIST_H

#include "batch/runner/state.h"

void bhi_work_list_init(struct bhi_work_list *list);
void bhi_work_push(struct bhi_work_list *list, struct bhi_work *work);
struct bhi_work *bhi_work_pop(struct bhi_work_list *list); /* NULL: empty */

#endif

#include "batch/runner/list.h"

void bhi_work_list_init(struct bhi_work_list *list) {
    bhi_list_init(&list->works);
    list->count = 0;
}

void bhi_work_push(struct bhi_work_list *list, struct bhi_work *work) {
    bhi_list_append(&list->works, &work->node);
    list->count++;
}

struct bhi_work *bhi_work_pop(struct bhi_work_list *list) {
    if (!list->count) {
        return NULL;
    }
    struct bhi_work *work = BHI_CONTAINER(list->works.next, struct bhi_work, node);
    bhi_list_remove(&work->node);
    list->count--;
    return work;
}

#include "judge/check/kernel.h"

#include <stdlib.h>
#include <string.h>

uint32_t bhi_judged_arrays(const struct bhi_task *task, const struct bhi_judged_kernel *kernel) {
    return (uint32_t)(task->array_count +
                      (kernel && kernel->plan ? kernel->plan->scratch_count : 0));
}

const struct bhi_task_array *bhi_judged_array(const struct bhi_task *task,
                                              const struct bhi_judged_kernel *kernel,
                                              uint32_t index) {
    return index < task->array_count ? &task->arrays[index]
                                     : &kernel->plan->scratch[index - task->array_count].array;
}

void bhi_judged_kernel_free(struct bhi_judged_kernel *kernel) {
    for (size_t i = 0; i < kernel->count; i++) {
        bh_kernel_release(kernel->steps[i].kernel);
        bh_kernel_release(kernel->steps[i].opposite);
        free(kernel->steps[i].types);
    }
    bhi_judge_plan_free(kernel->plan);
    memset(kernel->steps, 0, sizeof kernel->steps);
    kernel->count = 0;
    kernel->plan = NULL;
}

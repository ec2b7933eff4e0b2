/* What a bh_judge tells of itself. */
#include <stdio.h>

#include "judge/api/judge.h"

BH_API bh_status bh_judge_seeds(bh_judge *judge, uint64_t *out_seeds, size_t capacity,
                                size_t *out_count) {
    if (!bhi_judge_is(judge) || !out_count || (capacity && !out_seeds)) {
        return BH_INVALID_ARGUMENT;
    }
    for (size_t i = 0; i < judge->seed_count && i < capacity; i++) {
        out_seeds[i] = judge->seeds[i];
    }
    *out_count = judge->seed_count;
    return BH_OK;
}

BH_API size_t bh_judge_size(bh_judge *judge, uint32_t size_index, char *text, size_t size) {
    char whole[BHI_SIZE_TEXT] = "";
    if (bhi_judge_is(judge) && size_index < judge->task.size_count) {
        (void)bhi_task_size_text(&judge->task, size_index, whole);
    }
    const int length = snprintf(text, size, "%s", whole);
    return length < 0 ? 0 : (size_t)length;
}

BH_API const char *bh_judge_device(bh_judge *judge) {
    return bhi_judge_is(judge) ? judge->court.device : "";
}

BH_API const char *bh_judge_name(bh_judge *judge) {
    return bhi_judge_is(judge) ? judge->task.name : "";
}

BH_API bool bh_judge_fixed_inputs(bh_judge *judge) {
    return bhi_judge_is(judge) && bhi_task_is_storable(&judge->task);
}

BH_API size_t bh_judge_weakness(bh_judge *judge, size_t index, char *text, size_t size) {
    char whole[BHI_WEAKNESS_TEXT] = "";
    if (bhi_judge_is(judge)) {
        pthread_mutex_lock(&judge->lock);
        const bool known = judge->ready && index < judge->weak_count;
        pthread_mutex_unlock(&judge->lock);
        if (known) {
            (void)bhi_weakness_text(&judge->task, &judge->weak[index], whole);
        }
    }
    const int length = snprintf(text, size, "%s", whole);
    return length < 0 ? 0 : (size_t)length;
}

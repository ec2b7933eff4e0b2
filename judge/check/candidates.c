#include "judge/check/candidates.h"

void bhi_candidates_init(struct bhi_candidates *candidates, struct bhi_court *court,
                         struct bhi_candidate *list, size_t count) {
    *candidates = (struct bhi_candidates){.court = court, .list = list, .count = count};
    pthread_mutex_init(&candidates->mutex, NULL);
}

/* Returns the next candidate that has no verdict; NULL: there is none, or nothing is begun. */
static struct bhi_candidate *take(struct bhi_candidates *candidates) {
    struct bhi_candidate *taken = NULL;
    pthread_mutex_lock(&candidates->mutex);
    while (!candidates->stopped && candidates->next < candidates->count && !taken) {
        struct bhi_candidate *candidate = &candidates->list[candidates->next++];
        taken = candidate->judged ? NULL : candidate;
    }
    pthread_mutex_unlock(&candidates->mutex);
    return taken;
}

/* |well|: the machine did not fail. */
static void put_back(struct bhi_candidates *candidates, struct bhi_candidate *candidate,
                     bool well) {
    pthread_mutex_lock(&candidates->mutex);
    if (!well) {
        candidates->stopped = true;
        candidates->failed = candidates->failed ? candidates->failed : candidate;
    } else if (candidate->judged && candidates->note &&
               !candidates->note(candidates->user, candidate)) {
        candidates->stopped = true;
    }
    pthread_mutex_unlock(&candidates->mutex);
}

void bhi_candidates_judge(struct bhi_candidates *candidates) {
    struct bhi_candidate *candidate;
    while ((candidate = take(candidates))) {
        put_back(candidates, candidate,
                 bhi_candidate_try(candidates->court, &candidate->file, candidate));
    }
}

void bhi_candidates_judge_again(struct bhi_candidates *candidates) {
    struct bhi_candidate *candidate;
    candidates->next = 0;
    while ((candidate = take(candidates))) {
        put_back(candidates, candidate,
                 bhi_candidate_judge(candidates->court, &candidate->file, candidate));
    }
}

void bhi_candidates_fini(struct bhi_candidates *candidates) {
    pthread_mutex_destroy(&candidates->mutex);
}

/* Judges many candidates, several at once. */
#ifndef BHI_JUDGE_CHECK_CANDIDATES_H
#define BHI_JUDGE_CHECK_CANDIDATES_H

#include <pthread.h>

#include "judge/check/candidate.h"

struct bhi_candidates {
    struct bhi_court *court;
    struct bhi_candidate *list; /* borrowed; those with |judged| are left as they are */
    size_t count;
    /* Is called with each candidate that has its verdict, by one thread at a time, in the order in
     * which they end. Returns false if it failed: then no further candidate is begun. May be
     * NULL. */
    bool (*note)(void *user, const struct bhi_candidate *candidate);
    void *user;
    /* Internal: */
    pthread_mutex_t mutex; /* guards the fields below */
    size_t next;           /* index of the candidate that is begun next */
    bool stopped;
    const struct bhi_candidate *failed; /* at this candidate the machine failed; NULL: at none */
};

void bhi_candidates_init(struct bhi_candidates *candidates, struct bhi_court *court,
                         struct bhi_candidate *list, size_t count);
/* Judges all, each once, whose paths are in |list|. Several threads may call it; each takes the
 * next one. */
void bhi_candidates_judge(struct bhi_candidates *candidates);
/* Call it when the others have returned. Judges those again whose workers may have ended because of
 * another candidate: one by one, so that only itself can be the cause. */
void bhi_candidates_judge_again(struct bhi_candidates *candidates);
void bhi_candidates_fini(struct bhi_candidates *candidates);

#endif

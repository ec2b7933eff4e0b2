/* A worker's past: whose code it has been given. From its first untrusted code on a worker may lie
 * about everything, so what it says, or how it dies, proves something only where it had been given
 * nothing else (T2). What is in its lane counts as given: when it came to it is its own word. */
#ifndef BHI_CORE_PAST_H
#define BHI_CORE_PAST_H

#include <bulkhead/bulkhead.h>

struct bhi_submission;

/* What else a worker may have been given that runs a submission. */
enum bhi_apart {
    BHI_APART_NOT,  /* anything */
    BHI_APART_CODE, /* no other code */
    BHI_APART_ALL,  /* nothing that has run */
};

struct bhi_past {
    uint64_t code;       /* the first that it was given; 0: none yet */
    bool mixed;          /* and another */
    bool used;           /* not only to compile it */
    enum bhi_apart kept; /* of what is in its lane, how far it is to be kept apart */
};

/* May it be given |submission|, which is to be kept apart that far? |idle|: nothing is in its lane.
 * One that has no past always may. */
bool bhi_past_suits(const struct bhi_past *past, const struct bhi_submission *submission,
                    enum bhi_apart apart, bool idle);
/* It has been given |submission|. |idle|: nothing was in its lane before. */
void bhi_past_add(struct bhi_past *past, const struct bhi_submission *submission,
                  enum bhi_apart apart, bool idle);
/* It has been given no code but that of |submission|. */
bool bhi_past_clean(const struct bhi_past *past, const struct bhi_submission *submission);
/* What |status|, which it has ended |submission| with, proves. */
bh_blame bhi_past_blame(const struct bhi_past *past, const struct bhi_submission *submission,
                        bh_status status);

#endif

/* A worker's past: which code it was given. From its first untrusted code on, a worker may lie
 * about everything. Its results, and the way it dies, prove something only if it was given no other
 * code (T2). Everything in its lane counts as given, because only the worker itself says when it
 * starts it. */
#ifndef BHI_CORE_PAST_H
#define BHI_CORE_PAST_H

#include <bulkhead/bulkhead.h>

struct bhi_submission;

/* What else a worker that runs a submission may have been given. */
enum bhi_apart {
    BHI_APART_NOT,  /* anything */
    BHI_APART_CODE, /* no other code */
    BHI_APART_ALL,  /* nothing that has run */
};

struct bhi_past {
    uint64_t code;       /* the first code that it was given; 0: none yet */
    bool mixed;          /* it was given other code, too, or began with what a worker left */
    bool used;           /* it has done more than compile the code */
    enum bhi_apart kept; /* the strictest separation that a submission in its lane needs */
};

/* Returns true if the worker may be given |submission|, which needs the separation |apart|. |idle|:
 * its lane is empty. A worker without a past always may. */
bool bhi_past_suits(const struct bhi_past *past, const struct bhi_submission *submission,
                    enum bhi_apart apart, bool idle);
/* The worker was given |submission|. |idle|: its lane was empty before. */
void bhi_past_add(struct bhi_past *past, const struct bhi_submission *submission,
                  enum bhi_apart apart, bool idle);
/* The worker was given |code| to compile, ahead of any submission. */
void bhi_past_compiles(struct bhi_past *past, uint64_t code);
/* The worker begins with what another worker of |code| has left: nothing that follows proves
 * anything. It has not been given anything yet. */
void bhi_past_inherit(struct bhi_past *past, uint64_t code);
/* Returns true if the worker was given no code but that of |submission|. */
bool bhi_past_clean(const struct bhi_past *past, const struct bhi_submission *submission);
/* Returns what the result |status| of |submission| proves. */
bh_blame bhi_past_blame(const struct bhi_past *past, const struct bhi_submission *submission,
                        bh_status status);
/* Something else than the kernel may be the cause: certain blame becomes suspected (T2). */
void bhi_blame_lower(bh_blame *blame);

#endif

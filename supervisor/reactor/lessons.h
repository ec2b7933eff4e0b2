/* Lessons: kernels that a spare compiles before a stream needs them, one at a time. No stream takes
 * it before the lesson has ended. All functions: reactor thread, lock held. */
#ifndef BHI_SUPERVISOR_REACTOR_LESSONS_H
#define BHI_SUPERVISOR_REACTOR_LESSONS_H

#include "supervisor/kernel/usage.h"
#include "supervisor/worker/worker_proc.h"

/* Returns the kernel of |usage| that the spare is to learn next: the most used one that it does not
 * know, and that may be compiled (K5). NULL: there is none. */
const struct bhi_used_kernel *bhi_lesson_find(bh_context *context, const struct bhi_worker *worker,
                                              const struct bhi_usage *usage, uint64_t now_ns);
/* Tells the spare to compile |lesson|, unless what it knows is used more and fills its place. */
void bhi_lesson_give(struct bhi_worker *worker, struct bhi_usage *usage,
                     const struct bhi_used_kernel *lesson, uint64_t now_ns);
/* The answer of a worker. Returns NULL, or why it breaks the protocol. */
const char *bhi_lesson_learned(struct bhi_worker *worker, const struct bhi_msg_learned *answer);
/* Kills a worker that has compiled for too long. Returns when to look again. */
uint64_t bhi_lesson_check_deadline(struct bhi_worker *worker, uint64_t now_ns);
/* The worker is confirmed dead, with |outcome|. What it was compiling is charged as it would be for
 * a submission (K5). Returns true if it was compiling. */
bool bhi_lesson_died(struct bhi_worker *worker, const struct bhi_outcome *outcome);
/* Returns how many kernels the worker knows, without the one that it compiles. Any thread. */
size_t bhi_lessons_known(const struct bhi_worker *worker);

#endif

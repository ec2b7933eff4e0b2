/* Which process the kernel kills first when the machine is out of memory: a worker, before the host
 * and all others, because it can be replaced. A worker has no /proc and is not dumpable, so it
 * cannot set its score. It inherits it: the zygote raises its own score while it forks. */
#ifndef BHI_WORKER_PROCESS_OOM_SCORE_H
#define BHI_WORKER_PROCESS_OOM_SCORE_H

struct bhi_oom_score {
    int fd; /* of our own /proc/self/oom_score_adj; -1: it cannot be opened, so nothing is raised */
    char own[8];
};

/* Call it while /proc is there and is ours. Later writes need only the open descriptor. */
void bhi_oom_score_open(struct bhi_oom_score *score);
void bhi_oom_score_raise(const struct bhi_oom_score *score);
void bhi_oom_score_restore(const struct bhi_oom_score *score);

#endif

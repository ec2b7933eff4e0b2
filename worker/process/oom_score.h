/* Who goes first when the machine is out of memory: a worker, before the host and whatever else is
 * there, since it can be replaced. It inherits its score from the zygote, which raises its own for
 * the time of the fork: a worker has no /proc, and is not dumpable. */
#ifndef BHI_WORKER_PROCESS_OOM_SCORE_H
#define BHI_WORKER_PROCESS_OOM_SCORE_H

struct bhi_oom_score {
    int fd; /* our own /proc/self/oom_score_adj; -1: not to be had, and nothing is raised */
    char own[8];
};

/* While /proc is there and our own. To write into the file later takes no right but to have opened
 * it. */
void bhi_oom_score_open(struct bhi_oom_score *score);
void bhi_oom_score_raise(const struct bhi_oom_score *score);
void bhi_oom_score_restore(const struct bhi_oom_score *score);

#endif

#include "worker/process/oom_score.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define FIRST "1000" /* the highest score */

void bhi_oom_score_open(struct bhi_oom_score *score) {
    score->fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    if (score->fd >= 0 && pread(score->fd, score->own, sizeof score->own - 1, 0) <= 0) {
        close(score->fd);
        score->fd = -1;
    }
}

static void set(const struct bhi_oom_score *score, const char *text) {
    if (score->fd >= 0) {
        (void)!pwrite(score->fd, text, strlen(text), 0);
    }
}

void bhi_oom_score_raise(const struct bhi_oom_score *score) {
    set(score, FIRST);
}

void bhi_oom_score_restore(const struct bhi_oom_score *score) {
    set(score, score->own);
}

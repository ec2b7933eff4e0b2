#include "fake_queue.h"

const char *bhi_job_state_name(enum bhi_job_state state) {
    static const char *const names[BHI_JOB_STATES] = {
        "submitted", "waiting", "running", "done", "failed", "quarantined", "cancelled"};
    return names[state];
}

bool bhi_job_state_is_end(enum bhi_job_state state) {
    return state >= BHI_JOB_DONE;
}

const char *bhi_queue_cwd(const struct bhi_queue *queue) {
    return "/somewhere";
}

const char *bhi_queue_batch_id(const struct bhi_queue *queue) {
    return "0123456789abcdef";
}

void bhi_queue_counts(struct bhi_queue *queue, struct bhi_queue_counts *out_counts) {
    *out_counts = (struct bhi_queue_counts){.total = queue->job_count};
    for (size_t i = 0; i < queue->job_count; i++) {
        out_counts->of[queue->jobs[i].state]++;
    }
}

bool bhi_queue_each_job(struct bhi_queue *queue,
                        bool (*visit)(void *user, const struct bhi_job_record *record),
                        void *user) {
    for (size_t i = 0; i < queue->job_count && !queue->unreadable; i++) {
        if (!visit(user, &queue->jobs[i])) {
            break;
        }
    }
    return !queue->unreadable;
}

bool bhi_queue_each_attempt(struct bhi_queue *queue,
                            bool (*visit)(void *user, const struct bhi_attempt_record *record),
                            void *user) {
    for (size_t i = 0; i < queue->attempt_count && !queue->unreadable; i++) {
        if (!visit(user, &queue->attempts[i])) {
            break;
        }
    }
    return !queue->unreadable;
}

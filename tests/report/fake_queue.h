/* A queue that is nothing but what a report reads of one. */
#ifndef FAKE_QUEUE_H
#define FAKE_QUEUE_H

#include "batch/report/report.h"

struct bhi_queue {
    const struct bhi_job_record *jobs;
    size_t job_count;
    const struct bhi_attempt_record *attempts;
    size_t attempt_count;
    bool unreadable;
};

#endif

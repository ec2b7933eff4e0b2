/* A batch in which a bit of everything happened. */
#ifndef TEST_BATCH_SAMPLE_H
#define TEST_BATCH_SAMPLE_H

#include <stdio.h>
#include <string.h>

#include "fake_queue.h"

/* Each byte of it means something to a terminal or to a browser. */
#define HOSTILE "<script>alert(1)</script>\"'&\xE2\x80\xAE\x1b[31m\xFF]]>"

static const struct bhi_report_run run = {.jobs_path = "jobs.jsonl",
                                          .state_folder = "jobs.jsonl.state",
                                          .streams = 2,
                                          .elapsed_ns = 4000000000u,
                                          .ran = 8,
                                          .exit_status = 1};

static const struct bhi_job_record mixed_jobs[] = {
    {.number = 1,
     .id = "prepare",
     .line = 1,
     .state = BHI_JOB_DONE,
     .attempts = 1,
     .started_ns = 1790000000000000000u,
     .ended_ns = 1790000001500000000u, /* its output was in place */
     .took_ns = 1000000000u,
     .message = "",
     .origin = "",
     .status = BH_OK},
    {.number = 2,
     .id = "after",
     .line = 2,
     .state = BHI_JOB_FAILED,
     .origin = "bad",
     .status = BH_PENDING,
     .message = ""},
    {.number = 3,
     .id = "bad",
     .text = "{\"id\":\"bad\",\"kernel\":\"shaders/crash_shared.spv\"}",
     .line = 3,
     .state = BHI_JOB_QUARANTINED,
     .attempts = 3,
     .guilty = 3,
     .origin = "",
     .status = BH_WORKER_SIGNAL,
     .message = "the worker was killed by SIGSEGV while it ran crash_shared"},
    {.number = 4,
     .id = HOSTILE,
     .text = "{\"kernel\":\"<b>\\u202e\\u001b.comp\"}",
     .line = 4,
     .state = BHI_JOB_FAILED,
     .attempts = 1,
     .origin = "",
     .status = BH_LOAD_FAILED,
     .message = HOSTILE},
    {.number = 5,
     .id = "late",
     .line = 5,
     .state = BHI_JOB_WAITING,
     .origin = "",
     .status = BH_PENDING,
     .message = ""}};

static const struct bhi_attempt_record mixed_attempts[] = {
    {.job = 1,
     .id = "prepare",
     .attempt = 1,
     .started = true,
     .started_ns = 1790000000000000000u,
     .ended_ns = 1790000001000000000u},
    {.job = 3,
     .id = "bad",
     .attempt = 1,
     .started = true,
     .stream = 1,
     .guilty = true,
     .started_ns = 1790000000500000000u,
     .ended_ns = 1790000000700000000u,
     .verdict = {.status = BH_WORKER_SIGNAL, .signal = 11, .worker_pid = 77}},
    {.job = 3,
     .id = "bad",
     .attempt = 2,
     .started = true,
     .stream = 1,
     .guilty = true,
     .started_ns = 1790000000700000000u,
     .ended_ns = 1790000000900000000u,
     .verdict = {.status = BH_WORKER_SIGNAL, .signal = 11, .worker_pid = 78}},
    {.job = 3,
     .id = "bad",
     .attempt = 3,
     .started = true,
     .stream = 1,
     .started_ns = 1790000001000000000u},
    {.job = 4,
     .id = HOSTILE,
     .attempt = 1,
     .started_ns = 1790000001000000000u,
     .ended_ns = 1790000001000000001u,
     .verdict = {.status = BH_LOAD_FAILED}}};

static struct bhi_queue mixed = {.jobs = mixed_jobs,
                                 .job_count = sizeof mixed_jobs / sizeof mixed_jobs[0],
                                 .attempts = mixed_attempts,
                                 .attempt_count = sizeof mixed_attempts / sizeof mixed_attempts[0]};

/* The same on a machine with two devices. */
static struct bhi_job_record spread_jobs[sizeof mixed_jobs / sizeof mixed_jobs[0]];
static struct bhi_attempt_record spread_attempts[sizeof mixed_attempts / sizeof mixed_attempts[0]];

static inline struct bhi_queue spread_over(const char *first, const char *second) {
    struct bhi_queue queue = mixed;
    memcpy(spread_jobs, mixed_jobs, sizeof mixed_jobs);
    memcpy(spread_attempts, mixed_attempts, sizeof mixed_attempts);
    spread_jobs[0].device = first;
    spread_jobs[2].device = second; /* of its second attempt: the third was cut off */
    snprintf(spread_attempts[0].verdict.device, 48, "%s", first);
    snprintf(spread_attempts[1].verdict.device, 48, "%s", first);
    snprintf(spread_attempts[2].verdict.device, 48, "%s", second);
    queue.jobs = spread_jobs;
    queue.attempts = spread_attempts;
    return queue;
}

#endif

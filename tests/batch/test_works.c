/* Works of a batch's runner by hand: what becomes of one whose way is odd. */
#include "few_jobs.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "batch/runner/finish.h"
#include "batch/runner/input_cache.h"
#include "batch/runner/reads.h"
#include "batch/runner/stage.h"
#include "batch/runner/state.h"
#include "batch/runner/work.h"

static const struct bhi_runner_options options = {.streams = 1};
static struct bhi_runner runner;
static struct bhi_work work;
static bool no_memory, no_looking; /* for a request; at a temporary file */

BHT_WRAP(bool, bhi_job_request_parse, const char *text, const char *folder, bool reads_includes,
         struct bhi_job_request *out, struct bhi_complaint *why) {
    if (no_memory) {
        *out = (struct bhi_job_request){.error = ENOMEM};
        return bhi_refuse(why, "out of memory");
    }
    return __real_bhi_job_request_parse(text, folder, reads_includes, out, why);
}

BHT_WRAP(int, fstatat, int folder, const char *name, struct stat *out, int flags) {
    if (no_looking && !strncmp(name, ".bulkhead-", 10)) {
        errno = EIO;
        return -1;
    }
    return __real_fstatat(folder, name, out, flags);
}

/* Buffers are none here. */
BHT_WRAP(uint64_t, bh_buffer_size, const bh_buffer *buffer) {
    return 0;
}

BHT_WRAP(void, bh_buffer_retain, bh_buffer *buffer) {}

/* Takes the only job, which writes y, in the folder of the test. */
static struct bhi_job *take_one(void) {
    struct bhi_work_list *const lists[] = {&runner.to_stage, &runner.to_compile, &runner.to_write,
                                           &runner.to_place, &runner.over,       &runner.thirsty};
    BHT_EQ(chdir(place.root), 0);
    fresh("a>y");
    runner = (struct bhi_runner){.queue = queue, .options = &options, .news = -1};
    for (size_t i = 0; i < BHT_COUNT(lists); i++) {
        bhi_work_list_init(lists[i]);
    }
    bhi_list_init(&runner.kernels);
    bhi_list_init(&runner.inputs);
    work = (struct bhi_work){.runner = &runner, .job = take("a")};
    runner.at[BHI_WORK_PREPARING] = 1;
    return work.job;
}

static void free_request(void) {
    if (work.request) {
        for (uint32_t i = 0; i < work.request->run.binding_count; i++) {
            bhi_outfile_abandon(&work.request->run.bindings[i].out);
        }
        bhi_job_request_free(work.request);
    }
    free(work.request);
    work.request = NULL;
}

/* What a killed process has half written goes, also where the job then fails. */
TEST(test_what_a_killed_one_left_is_swept) {
    char name[128];
    struct bhi_job *job = take_one();
    job->interrupted = true;
    snprintf(name, sizeof name, ".bulkhead-%s-1-0.100.tmp", bhi_queue_batch_id(queue));
    put_file(name, "half", 0600);
    bhi_stage(&work);
    BHT_EQ(runner.over.count, 1); /* there is no kernel */
    BHT_EQ(access(name, F_OK), -1);
    free_request();
}

/* What is complete does not fail for want of memory: it is tried again. */
TEST(test_a_sealed_one_waits_for_memory) {
    take_one()->sealed = true;
    no_memory = true;
    bhi_stage(&work);
    BHT_EQ(runner.over.count, 1);
    BHT_EQ(work.attempt.verdict.status, BH_SYSTEM);
    BHT_EQ(work.attempt.verdict.sys_errno, EAGAIN);
}

/* What cannot be looked at is not gone: the job stays sealed. */
TEST(test_an_output_that_cannot_be_looked_at) {
    struct bhi_work *works[] = {&work};
    struct bhi_job *job = take_one();
    job->sealed = true;
    job->outputs = "1@2";
    bhi_stage(&work);
    BHT_EQ(runner.to_place.count, 1);
    no_looking = true;
    bhi_finish_place(works, 1);
    BHT_STR_HAS(work.attempt.verdict.message, "Input/output error");
    BHT_TRUE(work.placement_failed);
    no_looking = false;
    job->outputs = NULL;
    free_request();
}

/* An input that a failure has come from is loaded again for the next job. */
TEST(test_an_input_that_a_failure_came_from) {
    struct bhi_run_binding binding = {.in_path = "x"};
    for (uint32_t hops = 0; hops < 3; hops++) {
        const struct bhi_input_identity identity = {.inode = 1};
        struct bhi_job_request request = {.run = {.bindings = &binding, .binding_count = 1}};
        take_one();
        work.request = &request;
        work.inputs = calloc(1, sizeof *work.inputs);
        bhi_input_cache_keep(&work, 0, &identity);
        BHT_EQ(runner.input_count, 1);
        work.attempt.verdict = (bh_verdict){.status = BH_LOAD_FAILED, .hops = hops};
        bhi_work_release(&work);
        BHT_EQ(runner.input_count, hops ? 0 : 1);
        bhi_inputs_free(&runner);
        work.request = NULL;
        renew_place();
    }
}

static void expect_read(uint64_t size) {
    struct stat status;
    struct bhi_used used;
    const char *at = NULL;
    char expected[BHI_USED_MARK_TEXT];
    BHT_EQ(stat("x", &status), 0);
    struct bhi_used_mark mark = bhi_reads_mark(&status);
    BHT_EQ(mark.size, size);
    work.reads = &mark;
    BHT_TRUE(bhi_reads_collect(&work, &used));
    bhi_reads_hash("x", &mark);
    bhi_used_mark_write(&mark, expected);
    BHT_STR_EQ(bhi_used_next(&used, &at), expected);
    bhi_used_free(&used);
    work.reads = NULL;
}

/* Of a file that has changed the record says what this job has read, not what an earlier one has. */
TEST(test_a_file_that_has_changed) {
    struct bhi_run_binding binding = {.in_path = "x"};
    struct bhi_job_request request = {.run = {.bindings = &binding, .binding_count = 1}};
    take_one();
    runner.hashes = bhi_read_hashes_make();
    work.request = &request;
    put_file("x", "ab", 0600);
    expect_read(2);
    put_file("x", "abc", 0600);
    expect_read(3);
    work.request = NULL;
    bhi_read_hashes_free(runner.hashes);
}

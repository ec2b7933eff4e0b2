/* Works of a batch's runner by hand: what becomes of one whose way is odd. */
#include "few_jobs.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/folder.h"
#include "batch/runner/finish.h"
#include "batch/runner/input_cache.h"
#include "batch/runner/quarantine.h"
#include "batch/runner/reads.h"
#include "batch/runner/runner.h"
#include "batch/runner/stage.h"
#include "batch/runner/state.h"
#include "batch/runner/streams.h"
#include "batch/runner/work.h"
#include "tool/clock.h"

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

static bh_stream_options asked; /* of the last stream */
static uint32_t streams, most = UINT32_MAX;

BHT_WRAP(bh_status, bh_stream_create, bh_context *context, const bh_stream_options *given,
         bh_stream **out, bh_detail *detail) {
    *out = NULL;
    asked = *given;
    if (streams == most) {
        return BH_NO_MEMORY;
    }
    streams++;
    return BH_OK;
}

BHT_WRAP(void, bh_stream_release, bh_stream *stream) {
    streams--;
}

BHT_WRAP(bh_status, bh_stream_cancel, bh_stream *stream) {
    return BH_OK;
}

BHT_WRAP(bh_status, bh_context_trim, bh_context *context, uint64_t bytes, bh_detail *detail) {
    return BH_OK;
}

static void (*script)(struct bhi_work *work); /* in place of staging */

BHT_WRAP(void, bhi_stage, struct bhi_work *one) {
    (script ? script : __real_bhi_stage)(one);
}

static _Atomic int64_t skew_s; /* of all clocks */

BHT_WRAP(int, clock_gettime, clockid_t clock, struct timespec *out) {
    const int result = __real_clock_gettime(clock, out);
    out->tv_sec += skew_s;
    return result;
}

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
    BHT_EQ(runner.over.count, 1); /* and it has ended once */
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

static uint32_t queries; /* of a device's limits */

static bh_status query(void *user, const char *selector, uint64_t *out_range,
                       uint32_t *out_alignment, bh_detail *detail) {
    *out_range = 100 + ++queries;
    *out_alignment = queries;
    return BH_OK;
}

/* A job's device and memory limit, or else the batch's, choose its streams. A kind has as many as each
 * other, and takes turns; its device is asked once. */
TEST(test_streams_by_kind) {
    static const struct {
        char *device;
        bool limits, limited;
        uint64_t limit, asked;
        uint32_t stream;
    } rows[] = {
        {NULL, false, false, 0, 0, 0}, {NULL, true, false, 0, BH_OFF, 2},
        {NULL, true, false, 5, 5, 4},  {"b", true, false, 5, 5, 6},
        {"b", false, false, 0, 0, 8},  {NULL, false, true, 5, 5, 5},
        {NULL, false, false, 0, 0, 1}, {"b", true, true, 5, 5, 7},
        {NULL, true, true, 0, 0, 3},
    };
    struct bhi_runner_options how = {.streams = 2, .limits = query, .limits_grace = true};
    struct bhi_job_request request = {.run = {.binding_count = 0}};
    bh_detail detail;
    take_one();
    runner.options = &how;
    BHT_TRUE(bhi_runner_make_streams(&runner, &complaint));
    BHT_EQ(asked.grace_ns, BH_OFF);
    how.grace_ns = 3;
    work.request = &request;
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        const uint32_t before = streams, kind = rows[i].stream / 2;
        uint64_t range;
        uint32_t alignment;
        how.limits_memory = rows[i].limited;
        how.memory_limit = rows[i].limited ? 5 : 0;
        request.run.device = rows[i].device;
        request.run.limits_memory = rows[i].limits;
        request.run.memory_limit = rows[i].limit;
        BHT_TRUE(bhi_runner_choose_stream(&work));
        BHT_EQ(work.stream, rows[i].stream);
        if (streams > before) {
            BHT_EQ(asked.grace_ns, 3);
            BHT_EQ(asked.memory_limit, rows[i].asked);
        }
        for (int again = 0; again < 2; again++) {
            BHT_EQ(bhi_runner_limits(&work, &range, &alignment, &detail), BH_OK);
            BHT_EQ(range, 101 + kind);
            BHT_EQ(alignment, 1 + kind);
        }
    }
    work.request = NULL; /* what would be released, too */
    bhi_work_release(&work);
    BHT_EQ(runner.streams[3].assigned, 0);
    BHT_EQ(streams, 10);
    most = 11; /* the first of a kind, and not the second */
    request.run.device = "c";
    work.request = &request;
    BHT_TRUE(!bhi_runner_choose_stream(&work));
    BHT_EQ(work.attempt.verdict.status, BH_NO_MEMORY);
    work.request = NULL;
    BHT_EQ(streams, 10);
    bhi_runner_free_streams(&runner);
    BHT_EQ(streams, 0);
}

/* All pieces of an expression share one submission, which has each one's time. */
TEST(test_deadlines_of_pieces) {
    static const struct {
        uint64_t batch, job, pieces, expected;
    } rows[] = {{7, 0, 0, 7},
                {7, 9, 1, 9},
                {7, 0, 3, 21},
                {7, 9, 3, 27},
                {BH_FOREVER, 0, 3, BH_FOREVER},
                {7, BH_FOREVER / 2, 3, BH_FOREVER}};
    struct bhi_runner_options how = {.streams = 1};
    struct bhi_job_request request = {.run = {.binding_count = 0}};
    take_one();
    runner.options = &how;
    work.request = &request;
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        how.deadline_ns = rows[i].batch;
        request.run.deadline_ns = rows[i].job;
        work.pieces.count = rows[i].pieces;
        BHT_EQ(bhi_work_deadline(&work), rows[i].expected);
    }
    work.request = NULL;
    work.pieces.count = 0;
}

/* -- what is the machine's --------------------------------------------------------------------- */

/* What may pass by itself is not the job's fault. */
TEST(test_errors_of_the_machine) {
    static const int machine[] = {EMFILE, ENFILE, ENOMEM, ENOBUFS,   ENOSPC, EDQUOT,
                                  EIO,    EAGAIN, EINTR,  ETIMEDOUT, ESTALE, EHOSTDOWN};
    for (int error = 0; error < 134; error++) {
        bool is = false;
        for (size_t i = 0; i < BHT_COUNT(machine); i++) {
            is |= machine[i] == error;
        }
        BHT_EQ(bhi_work_blame(error, BH_LOAD_FAILED), is ? BH_SYSTEM : BH_LOAD_FAILED);
    }
}

/* A verdict's clock begins with the machine; a record's times are the calendar's. */
TEST(test_times_of_a_verdict) {
    static const struct {
        uint64_t submitted_s, started_s, ended_s, expected_started_s, expected_ended_s; /* ago */
    } rows[] = {
        {9, 8, 7, 8, 7}, {9, 0, 7, 9, 7}, {0, 0, 7, 7, 7}, {9, 8, 0, 8, 0}, {0, 0, 0, 0, 0}};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        const uint64_t second = 1000000000, here = bhi_clock_calendar_ns(), now = bhi_clock_ns();
#define AGO(s) ((s) ? now - (s) * second : 0)
        struct bhi_attempt attempt = {.verdict = {.submitted_ns = AGO(rows[i].submitted_s),
                                                  .started_ns = AGO(rows[i].started_s),
                                                  .ended_ns = AGO(rows[i].ended_s)}};
        bhi_work_set_times(&attempt);
        const uint64_t late = bhi_clock_calendar_ns() - here; /* the clocks are read one by one */
        BHT_LE(attempt.started_ns + rows[i].expected_started_s * second - here + late, 2 * late);
        BHT_LE(attempt.ended_ns + rows[i].expected_ended_s * second - here + late, 2 * late);
    }
}

static uint32_t synced;

BHT_WRAP(bool, bhi_folder_fsync, int folder) {
    if (folder < 1000) {
        return __real_bhi_folder_fsync(folder);
    }
    synced++;
    errno = EIO;
    return folder != 1000;
}

/* One that cannot be is everybody's in it; another file system may have the same number. */
TEST(test_each_folder_is_synced_once) {
    static const struct {
        dev_t device;
        ino_t inode;
        bool stuck;
    } rows[] = {{1, 2, true}, {2, 2, false}, {1, 3, false}, {1, 2, true}, {2, 2, false}};
    enum { COUNT = BHT_COUNT(rows) };
    struct bhi_run_binding bindings[COUNT] = {{.in_path = NULL}};
    struct bhi_job_request requests[COUNT];
    struct bhi_work all[COUNT], *works[COUNT];
    take_one();
    for (int i = 0; i < COUNT; i++) {
        bindings[i].out = (struct bhi_outfile){
            .folder = 1000 + i, .folder_device = rows[i].device, .folder_inode = rows[i].inode};
        requests[i] =
            (struct bhi_job_request){.run = {.bindings = &bindings[i], .binding_count = 1}};
        all[i] = work;
        all[i].request = &requests[i];
        works[i] = &all[i];
    }
    bhi_finish_place(works, COUNT);
    BHT_EQ(synced, 3);
    for (int i = 0; i < COUNT; i++) {
        BHT_EQ(all[i].placement_failed, rows[i].stuck);
        BHT_EQ(all[i].attempt.verdict.status, rows[i].stuck ? BH_SYSTEM : BH_OK);
    }
}

/* -- a whole batch ------------------------------------------------------------------------------ */

/* Its works end where they would be staged, as |script| says: no library is asked. */
static void run_to(enum bhi_runner_result expected, const char *words,
                   void (*ends)(struct bhi_work *work), const struct bhi_runner_options *how,
                   const char *counts) {
    fresh(words);
    script = ends;
    complaint.text[0] = '\0';
    const enum bhi_runner_result result = bhi_runner_run(queue, how, &complaint);
    script = NULL;
    if (result != expected) {
        BHT_FAIL("result %d: %s", (int)result, complaint.text);
    }
    expect_counts(counts);
}

static void run_batch(const char *words, void (*ends)(struct bhi_work *work),
                      const struct bhi_runner_options *how, const char *counts) {
    run_to(BHI_RUNNER_FINISHED, words, ends, how, counts);
}

static _Atomic int tries; /* of the job a */

static void refuse_first(struct bhi_work *one) {
    if (!strcmp(one->job->id, "a") && tries++ == 0) {
        bhi_work_refuse(one, BH_SYSTEM, EIO, "at the first try");
    } else {
        bhi_work_end(one);
    }
}

static void wait_after_success(void *user, const struct bhi_job *job,
                               const struct bhi_attempt *attempt) {
    if (attempt->verdict.status == BH_OK) {
        skew_s += 70;
    }
}

/* A batch is given up when everything is refused for a minute, not when something once was. */
TEST(test_what_was_refused_once_is_forgotten) {
    const struct bhi_runner_options how = {.streams = 1, .ended = wait_after_success};
    run_batch("a b:a c:b", refuse_first, &how, "0/0/0/3/0/0/0 of 3");
    BHT_EQ(tries, 2);
}

static _Atomic bool ended;       /* the first try of a has */
static _Atomic uint32_t begun;   /* others */
static _Atomic uint32_t lasting; /* others that have ended, of those that last longer */
static _Atomic uint32_t looks;   /* of the main thread, each after it has taken what it may */
static _Atomic uint32_t beside;  /* others that have begun while a ran alone */

static void look(void *user, const struct bhi_queue_counts *counts) {
    if (++looks > 200) {
        BHT_FAIL("it has no end");
    }
}

static void await_look(void) {
    const uint32_t before = looks;
    WAIT_UNTIL(looks >= before + 2, 20 * BHT_WAIT_SECOND_MS);
}

/* Until b has ended there is room for four beside a: b to e. The others come when a has run alone. */
static void end_other(struct bhi_work *one) {
    const char id = *one->job->id;
    begun++;
    if (id == 'b') {
        WAIT_UNTIL(ended, 20 * BHT_WAIT_SECOND_MS);
        await_look();
        lasting++;
    } else {
        WAIT_UNTIL(id < 'f' ? lasting > 0 : tries == 2, 20 * BHT_WAIT_SECOND_MS);
    }
    bhi_work_end(one);
}

static void want_memory_first(struct bhi_work *one) {
    const uint32_t before = begun;
    if (strcmp(one->job->id, "a") != 0) {
        end_other(one);
    } else if (tries++ == 0) {
        bhi_work_refuse(one, BH_NO_MEMORY, 0, "too little");
        ended = true;
    } else {
        BHT_EQ(lasting, 1);
        await_look();
        beside = begun - before;
        bhi_work_end(one);
    }
}

/* What found too little memory is tried again when nothing else holds any: if that is too little, too,
 * the job is too large. */
TEST(test_what_wants_memory_runs_alone) {
    const struct bhi_runner_options how = {.streams = 1, .progress = look};
    run_batch("a@9 b c d e f g h i j k l m n", want_memory_first, &how, "0/0/0/14/0/0/0 of 14");
    BHT_EQ(tries, 2);
    BHT_EQ(beside, 0);
}

static bh_blame blame;

static void pass_deadline(struct bhi_work *one) {
    bh_verdict *verdict = &one->attempt.verdict;
    tries++;
    verdict->blame = blame;
    verdict->kernel_hash[0] = 7;
    one->attempt.started = true;
    bhi_work_refuse(one, BH_DEADLINE, 0, "too long");
}

/* Only the kernel of a job that was to blame for certain is shared as a bad one; other jobs of it are
 * not tried again then. */
TEST(test_what_batches_share) {
    const bh_verdict of = {.kernel_hash = {7}};
    struct bhi_quarantine quarantine;
    char path[128];
    snprintf(path, sizeof path, "%s/shared", place.root);
    BHT_TRUE(bhi_quarantine_open(path, &quarantine, &complaint));
    const struct bhi_runner_options how = {.streams = 1, .quarantine = &quarantine};
    blame = BH_BLAME_SUSPECTED;
    run_batch("a", pass_deadline, &how, "0/0/0/0/0/1/0 of 1");
    BHT_TRUE(!bhi_quarantine_has(&quarantine, &of));
    blame = BH_BLAME_CERTAIN;
    for (int batch = 0; batch < 2; batch++) {
        close_queue();
        BHT_TRUE(bht_remove(place.folder));
        tries = 0;
        run_batch("a b:a", pass_deadline, &how, "0/0/0/0/1/1/0 of 2");
        BHT_EQ(tries, batch ? 1 : 1 + 2);
        BHT_TRUE(bhi_quarantine_has(&quarantine, &of));
    }
    bhi_quarantine_close(&quarantine);
}

static bool stops(struct bhi_runner *its) {
    pthread_mutex_lock(&its->lock);
    const bool stopping = its->stopping;
    pthread_mutex_unlock(&its->lock);
    return stopping;
}

static void fail_or_stay(struct bhi_work *one) {
    if (*one->job->id == 's') {
        one->placement_failed = true;
        bhi_work_refuse(one, BH_SYSTEM, EIO, "it cannot be put there");
    } else if (*one->job->id == 'q') {
        blame = BH_BLAME_CERTAIN;
        one->job->retries = 0;
        pass_deadline(one);
    } else if (*one->job->id == 'f') {
        bhi_work_refuse(one, BH_INVALID_ARGUMENT, 0, "no such file");
    } else if (*one->job->id == 'w') {
        WAIT_UNTIL(stops(one->runner), 20 * BHT_WAIT_SECOND_MS);
        bhi_work_refuse(one, BH_CANCELLED, 0, "cancelled");
    } else {
        bhi_work_end(one);
    }
}

static void count_ended(void *user, const struct bhi_job *job, const struct bhi_attempt *attempt) {
    ++*(int *)user;
}

/* --halt counts what fails by itself, also by quarantine; what has not begun stays as it was; and where
 * nothing is left the batch is simply at its end. */
TEST(test_failures_that_halt) {
    int told = 0;
    const struct bhi_runner_options how = {
        .streams = 1, .halt = 2, .ended = count_ended, .user = &told};
    run_to(BHI_RUNNER_HALTED, "f q w a:w", fail_or_stay, &how, "1/1/0/0/1/1/0 of 4");
    BHT_EQ(told, 2);
    renew_place();
    run_to(BHI_RUNNER_FINISHED, "f q", fail_or_stay, &how, "0/0/0/0/1/1/0 of 2");
}

/* What is complete and cannot be put in its place is left for the next process; all others end. */
TEST(test_what_stays_is_told) {
    const struct bhi_runner_options how = {.streams = 1, .progress = look};
    run_to(BHI_RUNNER_STUCK, "s a b:s c", fail_or_stay, &how, "1/0/1/2/0/0/0 of 4");
    BHT_STR_EQ(complaint.text, "1 job is complete but cannot be put in place");
}

/* A request with one output, which is complete under its temporary name. */
static void complete_output(struct bhi_work *one) {
    char path[160];
    struct bhi_complaint why;
    snprintf(path, sizeof path, "%s/out-%s", place.root, one->job->id);
    one->request = calloc(1, sizeof *one->request);
    struct bhi_run_binding *binding = calloc(1, sizeof *binding);
    BHT_TRUE(one->request && binding);
    binding->in.fd = -1;
    binding->out_path = strdup(path);
    BHT_TRUE(binding->out_path);
    if (!bhi_outfile_open_named(path, ".bulkhead-out", 4, &binding->out, &why) ||
        !bhi_outfile_write(&binding->out, NULL, 0, "done", 4, &why) ||
        !bhi_outfile_seal(&binding->out, &why)) {
        BHT_FAIL("%s", why.text);
    }
    one->request->run.bindings = binding;
    one->request->run.binding_count = 1;
}

static void stay_or_fail(struct bhi_work *one) {
    complete_output(one);
    fail_or_stay(one);
}

static unsigned count_temporaries(void) {
    unsigned count = 0;
    DIR *entries = opendir(place.root);
    BHT_TRUE(entries);
    for (const struct dirent *entry; (entry = readdir(entries));) {
        count += !strncmp(entry->d_name, ".bulkhead-", 10);
    }
    closedir(entries);
    return count;
}

/* What the next process is to put in its place must be there; what a failed job has written is not. */
TEST(test_what_stays_is_there) {
    const struct bhi_runner_options how = {.streams = 1, .progress = look};
    run_to(BHI_RUNNER_STUCK, "s", stay_or_fail, &how, "0/0/1/0/0/0/0 of 1");
    BHT_EQ(count_temporaries(), 1);
    renew_place();
    run_to(BHI_RUNNER_FINISHED, "f", stay_or_fail, &how, "0/0/0/0/1/0/0 of 1");
    BHT_EQ(count_temporaries(), 0);
}

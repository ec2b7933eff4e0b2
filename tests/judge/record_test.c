/* The journal of a judging: each verdict comes back as it was recorded, and a record that cannot be
 * is refused. Nothing runs. */
#include "judge/api/judge.h"

#include "harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Two sizes, each with two seeds of the task and a hidden one, which is one of them: six trials. */
static const char text[] =
    "{\"sizes\": [{\"n\": 2}, {\"n\": 3}], \"seeds\": [5, 6], \"groups\": [1],\n"
    "\"in\": {\"X\": {\"dtype\": \"f32\", \"shape\": [\"n\"], \"fill\": \"uniform\"}},\n"
    "\"out\": {\"Y\": {\"dtype\": \"f32\", \"shape\": [2, \"n\"]},\n"
    "          \"Z\": {\"dtype\": \"u8\", \"shape\": []}},\n"
    "\"reference\": {\"kernel\": \"r.comp\"}, \"fills\": []}";
enum { Y = 1, Z, TRIALS = 6, LAST = TRIALS - 1 };

static const uint64_t hidden[] = {5};
static bh_judge judge;
static struct bhi_judge_journal journal = {.folder.fd = -1, .lock.fd = -1, .fd = -1};
static struct bhi_complaint complaint;
static struct bhi_candidate candidate;
static char state[128], records[160], kernel[160];

static void open_court(void) {
    const char *folder = bht_folder();
    judge.seed_count = 1;
    judge.seeds = malloc(sizeof *judge.seeds);
    judge.seeds[0] = hidden[0];
    BHT_TRUE(bhi_task_parse("t.json", "", text, &judge.task, &complaint));
    judge.court.task = &judge.task;
    BHT_TRUE(bhi_trials_make(&judge.task, hidden, 1, &judge.court.trials, &complaint));
    BHT_EQ(judge.court.trials.count, TRIALS);
    for (size_t i = 0; i < TRIALS; i++) {
        for (uint32_t k = Y; k <= Z; k++) {
            struct bhi_trial_array *array = &judge.court.trials.list[i].arrays[k];
            array->expected = calloc(1, array->form.bytes);
        }
    }
    strcpy(judge.court.device, "lavapipe:0");
    snprintf(state, sizeof state, "%s/state", folder);
    snprintf(records, sizeof records, "%s/judge.jsonl", state);
    snprintf(kernel, sizeof kernel, "%s/k.comp", folder);
    bht_put("void main() {}", "%s", kernel);
    candidate = (struct bhi_candidate){.file = {.path = kernel}};
}

static void close_court(void) {
    bhi_judge_journal_close(&journal);
    bhi_trials_free(&judge.task, &judge.court.trials);
    bhi_task_free(&judge.task);
    free(judge.seeds);
}

BHT_AT_START(bht_around(open_court, close_court))

static enum bhi_judge_journal_result try_open(bool resume) {
    bhi_judge_journal_close(&journal);
    const enum bhi_judge_journal_result result =
        bhi_judge_journal_open(&journal, state, resume, &complaint);
    return result == BHI_JOURNAL_OK ? bhi_judge_journal_begin(&journal, &judge.court, judge.seeds,
                                                              judge.seed_count, &complaint)
                                    : result;
}

static void open_journal(bool resume) {
    if (try_open(resume) != BHI_JOURNAL_OK) {
        BHT_FAIL("%s", complaint.text);
    }
}

/* The judgement that is recorded of the candidate; NULL: none is. */
static const bh_judgement *find(void) {
    candidate.judged = false;
    candidate.judgement = (bh_judgement){.struct_size = sizeof(bh_judgement)};
    bhi_judge_journal_find(&journal, &candidate);
    return candidate.judged ? &candidate.judgement : NULL;
}

/* Records a judgement of the candidate in a new journal, and resumes that. */
static void note(bh_judgement judgement) {
    const int fd = open(kernel, O_RDONLY | O_CLOEXEC);
    BHT_EQ(bhi_content_hash_of(fd, judgement.content), 0);
    close(fd);
    judgement.hashed = true;
    bht_remove(state);
    open_journal(false);
    candidate.judgement = judgement;
    BHT_TRUE(bhi_judge_journal_note(&journal, &candidate));
    open_journal(true);
}

static bh_judgement ended(size_t which, bh_judge_verdict verdict) {
    bh_judgement out = {.struct_size = sizeof out, .runs = 7, .message = "as it is"};
    bhi_judgement_end(&judge.task, &judge.court.trials.list[which], verdict, &out);
    return out;
}

/* The last element of Y in the trial with the most elements. */
static bh_judgement wrong(void) {
    bh_judgement out = ended(LAST, BH_JUDGE_WRONG);
    out.wrong = out.elements = 6;
    out.rank = 2;
    out.index[0] = 1;
    out.index[1] = 2;
    out.ulp = UINT64_MAX;
    strcpy(out.output, "Y");
    strcpy(out.expected, "0");
    strcpy(out.got, "nan");
    return out;
}

static bh_judgement timed(void) {
    bh_judgement out = {
        .struct_size = sizeof out, .runs = 7, .deterministic = true, .one_processor = true};
    out.timing_count = 2;
    for (uint32_t i = 0; i < 2; i++) {
        out.timings[i] = (bh_judge_timing){.size_index = i,
                                           .runs = 5,
                                           .ratio = 1.5,
                                           .low = 1.25,
                                           .high = 1.75,
                                           .median_ns = 3,
                                           .reference_ns = 2,
                                           .noise = 0.5,
                                           .drift = 0.25,
                                           .host_ns = 4,
                                           .guard_ratio = 1.125,
                                           .device = !i,
                                           .cold = i,
                                           .noisy = !i,
                                           .one_processor = !i,
                                           .spreads = i,
                                           .doubt = i ? BH_JUDGE_DOUBT_LOAD : BH_JUDGE_DOUBT_NONE};
    }
    return out;
}

/* -- what comes back ----------------------------------------------------------------------------
 */

TEST(each_verdict_comes_back) {
    bh_judgement all[] = {
        timed(),
        {.struct_size = sizeof *all, .verdict = BH_JUDGE_CORRECT, .runs = 6},
        {.struct_size = sizeof *all, .verdict = BH_JUDGE_SLOWER, .deterministic = true},
        wrong(),
        ended(0, BH_JUDGE_STRAY_WRITE),
        ended(1, BH_JUDGE_FAILED),
        {.struct_size = sizeof *all, .verdict = BH_JUDGE_FAILED, .message = "no kernel"},
        ended(2, BH_JUDGE_TIMING_FORGED),
        ended(LAST, BH_JUDGE_TIMING_FORGED),
        {.struct_size = sizeof *all, .verdict = BH_JUDGE_SLOWER, .message = "as it is"},
        ended(1, BH_JUDGE_STRAY_READ),
        ended(LAST, BH_JUDGE_STRAY_READ), /* behind which array is not known */
        ended(1, BH_JUDGE_STRAY_WRITE),   /* past the end of its scratch */
    };
    strcpy(all[12].output, "T");
    strcpy(all[4].output, "Z");
    all[7].timed = true;
    all[1].error_count = 2;
    all[1].errors[0] = (bh_judge_error){.output = "Y", .absolute = 0.5, .relative = 0.25, .ulp = 3};
    all[1].errors[1] = (bh_judge_error){.output = "Z", .absolute = 1, .ulp = UINT64_MAX};
    strcpy(all[10].output, "X");
    all[5].status = BH_DEADLINE;
    all[5].blame = BH_BLAME_CERTAIN;
    all[5].reason = BH_REASON_COMPILE_DEADLINE;
    all[5].subject = BH_SUBJECT_KERNEL;
    strcpy(all[5].subject_name, "k");
    all[6].status = BH_COMPILE_FAILED;
    for (size_t i = 0; i < BHT_COUNT(all); i++) {
        const bh_judgement *was = &all[i];
        note(*was);
        const bh_judgement *got = find();
        BHT_TRUE(got);
        BHT_EQ(got->verdict, was->verdict == BH_JUDGE_SLOWER ? BH_JUDGE_CORRECT : was->verdict);
        BHT_EQ(got->status, was->verdict == BH_JUDGE_FAILED || got->verdict == BH_JUDGE_CORRECT
                                ? was->status
                                : BH_NOT_CORRECT);
        BHT_EQ(got->timed, was->timed);
        BHT_EQ(got->blame, was->blame);
        BHT_EQ(got->reason, was->reason);
        BHT_EQ(got->subject, was->subject);
        BHT_STR_EQ(got->subject_name, was->subject_name);
        BHT_EQ(got->one_processor, was->one_processor);
        BHT_EQ(got->runs, was->runs);
        BHT_EQ(got->deterministic, was->deterministic);
        BHT_EQ(got->located, was->located);
        BHT_EQ(got->hidden, was->hidden);
        BHT_EQ(got->size_index, was->size_index);
        BHT_EQ(got->seed, was->seed);
        BHT_EQ(got->wrong, was->wrong);
        BHT_EQ(got->elements, was->elements);
        BHT_EQ(got->ulp, was->ulp);
        BHT_EQ(got->rank, was->rank);
        BHT_MEM_EQ(got->index, was->index, sizeof got->index);
        BHT_STR_EQ(got->output, was->output);
        BHT_STR_EQ(got->expected, was->expected);
        BHT_STR_EQ(got->got, was->got);
        BHT_STR_EQ(got->name, "k");
        BHT_STR_EQ(got->size_text, was->size_text);
        BHT_STR_EQ(got->message, was->verdict == BH_JUDGE_SLOWER ? "" : was->message);
        BHT_STR_EQ(got->fill, was->fill);
        BHT_EQ(got->error_count, was->error_count);
        BHT_MEM_EQ(got->errors, was->errors, sizeof got->errors);
        BHT_EQ(got->timing_count, was->timing_count);
        BHT_MEM_EQ(got->timings, was->timings, sizeof got->timings);
    }
}

/* The newest record of a file counts, while its content is what it was. */
TEST(a_record_is_that_of_its_file) {
    note(ended(0, BH_JUDGE_FAILED));
    BHT_EQ(find()->runs, 7);
    candidate.judgement.runs = 8;
    BHT_TRUE(bhi_judge_journal_note(&journal, &candidate));
    open_journal(true);
    BHT_EQ(find()->runs, 8);
    char other[200];
    snprintf(other, sizeof other, "%s.comp", kernel);
    bht_put("void main() {}", "%s", other);
    candidate.file.path = other;
    BHT_TRUE(!find());
    candidate.file.path = kernel;
    bht_put("void main() { }", "%s", kernel);
    BHT_TRUE(!find());
    BHT_EQ(unlink(kernel), 0);
    BHT_TRUE(!find());
    BHT_EQ(symlink(other, kernel), 0);
    BHT_EQ(find()->runs, 8);
}

/* What was being written when the process was killed is cut off, and nothing else. */
TEST(a_line_without_its_end_is_cut_off) {
    struct stat before, after;
    note(wrong());
    BHT_EQ(stat(records, &before), 0);
    bhi_judge_journal_close(&journal);
    const int fd = open(records, O_WRONLY | O_APPEND | O_CLOEXEC);
    BHT_EQ(write(fd, "{\"file\":", 8), 8);
    close(fd);
    open_journal(true);
    BHT_EQ(stat(records, &after), 0);
    BHT_EQ(after.st_size, before.st_size);
    BHT_EQ(find()->verdict, BH_JUDGE_WRONG);
    candidate.judgement.runs = 9;
    BHT_TRUE(bhi_judge_journal_note(&journal, &candidate));
    open_journal(true);
    BHT_EQ(find()->runs, 9);
}

/* Of a record that does not fit nothing stays, so that the next one does; and each shows other machines
 * that the folder is in use. */
TEST(a_record_that_does_not_fit_leaves_nothing) {
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    struct rlimit limit, before;
    struct stat status;
    char lock[160];
    note(wrong());
    BHT_EQ(stat(records, &status), 0);
    BHT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = (rlim_t)status.st_size + 10;
    signal(SIGXFSZ, SIG_IGN);
    BHT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    candidate.judgement.runs = 8;
    BHT_TRUE(!bhi_judge_journal_note(&journal, &candidate));
    BHT_STR_HAS(journal.complaint.text, "cannot be written: File too large; what it has is intact");
    BHT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    snprintf(lock, sizeof lock, "%s/lock", state);
    BHT_EQ(utimensat(AT_FDCWD, lock, old, 0), 0);
    BHT_TRUE(bhi_judge_journal_note(&journal, &candidate));
    BHT_EQ(stat(lock, &status), 0);
    BHT_GT(status.st_mtim.tv_sec, 1);
    open_journal(true);
    BHT_EQ(find()->runs, 8);
    BHT_EQ(json_array_size(journal.records), 2);
}

/* A cheat that knows one hidden seed's answers must meet the other. */
TEST(each_size_is_tried_with_each_seed) {
    static const uint64_t two[] = {77, 78}, all[] = {5, 6, 77, 78};
    struct bhi_trials trials;
    BHT_TRUE(bhi_trials_make(&judge.task, two, BHT_COUNT(two), &trials, &complaint));
    BHT_EQ(trials.count, 2 * BHT_COUNT(all));
    for (size_t seed = 0; seed < BHT_COUNT(all); seed++) {
        unsigned sizes = 0;
        for (size_t i = 0; i < trials.count; i++) {
            const struct bhi_trial *trial = &trials.list[i];
            if (trial->seed == all[seed]) {
                sizes |= 1u << trial->size;
                BHT_EQ(trial->hidden, seed >= 2);
            }
        }
        BHT_EQ(sizes, 3);
    }
    bhi_trials_free(&judge.task, &trials);
}

TEST(hidden_seeds_come_back) {
    uint64_t *seeds;
    size_t count;
    judge.seeds[0] = UINT64_MAX;
    note(wrong());
    judge.seeds[0] = 0;
    BHT_TRUE(bhi_judge_journal_seeds(&journal, &seeds, &count, &complaint));
    BHT_EQ(count, 1);
    BHT_TRUE(seeds[0] == UINT64_MAX);
    free(seeds);
}

/* -- what is refused ----------------------------------------------------------------------------
 */

/* Inputs, what is expected, and seeds are in a journal's identity. */
TEST(another_judging_is_refused) {
    note(wrong());
    struct bhi_trial *last = &judge.court.trials.list[LAST];
    uint8_t *const bytes[] = {last->arrays[0].before,
                              last->arrays[Y].expected,
                              (uint8_t *)last->arrays[Y].expected + 23,
                              last->arrays[Z].expected,
                              (uint8_t *)&last->seed,
                              (uint8_t *)judge.court.device};
    for (size_t i = 0; i < BHT_COUNT(bytes); i++) {
        bytes[i][0] ^= 1;
        BHT_EQ(try_open(true), BHI_JOURNAL_BAD_INPUT);
        BHT_STR_HAS(complaint.text, i < 5 ? "is of another task: " : "is of device lavapipe:0");
        bytes[i][0] ^= 1;
    }
    judge.court.baseline = &judge.baseline;
    BHT_EQ(try_open(true), BHI_JOURNAL_BAD_INPUT);
    BHT_STR_HAS(complaint.text, "or the baseline has changed");
    judge.court.baseline = NULL;
    open_journal(true);
    BHT_EQ(try_open(false), BHI_JOURNAL_BAD_INPUT);
    BHT_STR_HAS(complaint.text, "has a judging of 1 candidate: resume it");
    bht_remove(state);
    BHT_EQ(try_open(true), BHI_JOURNAL_BAD_INPUT);
}

static char whole[65536];

static void note_whole(bh_judgement judgement) {
    note(judgement);
    const int fd = open(records, O_RDONLY | O_CLOEXEC);
    const ssize_t size = read(fd, whole, sizeof whole - 1);
    BHT_GT(size, 0);
    whole[size] = '\0';
    close(fd);
}

/* |before| in the whole journal becomes |after|. */
static bool takes(const char *before, const char *after) {
    const char *const piece = bht_quoted(before), *const at = strstr(whole, piece);
    if (!at) {
        BHT_FAIL("'%s' is not in %s", piece, whole);
    }
    bhi_judge_journal_close(&journal);
    FILE *file = fopen(records, "we");
    fprintf(file, "%.*s%s%s", (int)(at - whole), whole, bht_quoted(after), at + strlen(piece));
    BHT_EQ(fclose(file), 0);
    const enum bhi_judge_journal_result result = try_open(true);
    BHT_TRUE(result == BHI_JOURNAL_OK || strstr(complaint.text, "judge.jsonl:2: it is damaged"));
    return result == BHI_JOURNAL_OK;
}

/* Each number at its limits is taken, and one beyond is refused. */
TEST(a_record_beyond_a_limit_is_damaged) {
    static const struct {
        const char *before, *after;
        bool taken, of_times;
    } cases[] = {
        {"`trial`:5", "`trial`:6", false, false}, /* there are six */
        {"`trial`:5", "`trial`:-1", false, false},
        {"`trial`:5", "`trial`:5.0", false, false},
        {"`trial`:5", "`trial`:null", false, false},
        {"`array`:1", "`array`:3", false, false}, /* three */
        {"`array`:1", "`array`:-1", false, false},
        {"`index`:5", "`index`:6", false, false}, /* six */
        {"`index`:5", "`index`:0", true, false},
        {"`index`:5", "`index`:-1", false, false},
        {"`wrong`:6", "`wrong`:7", false, false},
        {"`wrong`:6", "`wrong`:1", true, false},
        {"`wrong`:6", "`wrong`:-1", false, false},
        {"`judgement`:1", "`judgement`:6", true, false},
        {"`judgement`:1", "`judgement`:7", false, false},
        {"`judgement`:1", "`judgement`:-1", false, false},
        {"`blame`:0", "`blame`:2", true, false},
        {"`blame`:0", "`blame`:3", false, false},
        {"`blame`:0", "`blame`:-1", false, false},
        {"`status`:13", "`status`:-1", false, false},
        {"`runs`:7", "`runs`:0", true, false},
        {"`runs`:7", "`runs`:-1", false, false},
        {"`ulp`:`1844674407370955161", "`ulp`:`1844674407370955162", false, false},
        {"`got`:`nan`", "`got`:`012345678901234567890123456789012345678901234567890123456789012`",
         true, false},
        {"`got`:`nan`", "`got`:`0123456789012345678901234567890123456789012345678901234567890123`",
         false, false},
        {"`expected`:`0`",
         "`expected`:`0123456789012345678901234567890123456789012345678901234567890123`", false,
         false},
        {"`content`:`", "`content`:`0", false, false},
        {"`array`:0", "`array`:2", true, true},
        {"`array`:0", "`array`:3", false, true},
        {"`size`:1", "`size`:2", false, true}, /* two */
        {"`size`:1", "`size`:0", true, true},
        {"`size`:1", "`size`:-1", false, true},
        {"`runs`:5", "`runs`:-1", false, true},
        {"`doubt`:3", "`doubt`:4", false, true},
        {"`doubt`:3", "`doubt`:-1", false, true},
        {"`noisy`:true", "`noisy`:1", false, true},
        {"`timing`:[", "`timing`:[{},", false, true},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        if (!i || cases[i].of_times != cases[i - 1].of_times) {
            note_whole(cases[i].of_times ? timed() : wrong());
        }
        const bool taken = takes(cases[i].before, cases[i].after);
        if (taken != cases[i].taken) {
            BHT_FAIL("%s is %s", cases[i].after, taken ? "taken" : "refused");
        }
    }
}

/* What is in a folder that has no judging, or not one of ours. */
TEST(what_is_no_judging) {
    uint64_t *seeds;
    size_t count;
    static const struct {
        const char *lock, *lines; /* NULL: there is none */
        bool resume;
        enum bhi_judge_journal_result result;
        const char *why;
    } cases[] = {
        {NULL, NULL, true, BHI_JOURNAL_BAD_INPUT, "has no judging: there is nothing to resume"},
        {NULL, "", true, BHI_JOURNAL_BAD_INPUT, "has no judging: there is nothing to resume"},
        {NULL, "", false, BHI_JOURNAL_OK, ""},
        {NULL, "cut off", false, BHI_JOURNAL_OK, ""}, /* while it was begun */
        {"7\n", NULL, false, BHI_JOURNAL_OK, ""},
        {"used 7\n", "", false, BHI_JOURNAL_ENVIRON, "has lost its judge.jsonl"},
        {"theirs", NULL, false, BHI_JOURNAL_ENVIRON, "is another program's file"},
        {NULL, "{`bulkhead_judge`:99}\n", true, BHI_JOURNAL_ENVIRON, "another version"},
        {NULL, "{`bulkhead_judge`:`1`}\n", true, BHI_JOURNAL_ENVIRON,
         "judge.jsonl:1: it is damaged"},
        {NULL, "nonsense\n", false, BHI_JOURNAL_ENVIRON, "judge.jsonl:1: it is damaged"},
    };
    char lock[160];
    struct stat status;
    snprintf(lock, sizeof lock, "%s/lock", state);
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        bhi_judge_journal_close(&journal);
        bht_remove(state);
        bht_put("", "%s/nothing", state);
        BHT_EQ(chmod(state, 0700), 0);
        if (cases[i].lock) {
            bht_put(cases[i].lock, "%s", lock);
        }
        if (cases[i].lines) {
            bht_put(bht_quoted(cases[i].lines), "%s", records);
        }
        const enum bhi_judge_journal_result result = try_open(cases[i].resume);
        if (result != cases[i].result ||
            (result != BHI_JOURNAL_OK && !strstr(complaint.text, cases[i].why))) {
            BHT_FAIL("case %zu: %d, %s", i, (int)result, complaint.text);
        }
        bhi_judge_journal_close(&journal);
        BHT_EQ(stat(lock, &status) == 0, cases[i].lock || result == BHI_JOURNAL_OK);
        BHT_TRUE(result == BHI_JOURNAL_OK || !cases[i].lock ||
                 status.st_size == (off_t)strlen(cases[i].lock));
    }
    note(wrong());
    for (int i = 0; i < 2; i++) { /* no file */
        bhi_judge_journal_close(&journal);
        BHT_EQ(unlink(records), 0);
        BHT_EQ(i ? mkfifo(records, 0600) : symlink(kernel, records), 0);
        BHT_EQ(try_open(true), BHI_JOURNAL_ENVIRON);
        BHT_STR_HAS(complaint.text, i ? "is not a regular file: move it away" : "cannot be opened");
    }
    note_whole(wrong());
    BHT_EQ(chmod(records, 0666), 0);
    BHT_EQ(try_open(true), BHI_JOURNAL_ENVIRON);
    BHT_STR_HAS(complaint.text, "can be written by others");
    BHT_EQ(chmod(records, 0600), 0);
    BHT_EQ(unlink(lock), 0); /* it is made again, and stays */
    open_journal(true);
    candidate.judgement.hashed = false; /* there is nothing by which it is found again */
    candidate.judgement.runs = 9;
    BHT_TRUE(bhi_judge_journal_note(&journal, &candidate));
    open_journal(true);
    BHT_EQ(find()->runs, 7);
    bhi_judge_journal_close(&journal);
    BHT_EQ(stat(lock, &status), 0);
    BHT_EQ(takes("`5`]}", "5]}"), true);
    BHT_TRUE(!bhi_judge_journal_seeds(&journal, &seeds, &count, &complaint));
    BHT_TRUE(!seeds);
    BHT_STR_HAS(complaint.text, "judge.jsonl:1: it is damaged");
    bht_remove(state);
    bht_put("", "%s", state);
    BHT_EQ(try_open(false), BHI_JOURNAL_BAD_INPUT);
}

/* Only of the last line can a lost power have taken a part: there is nothing behind it to lose. */
TEST(zeros_before_the_last_record_are_damage) {
    struct stat first;
    note(wrong());
    BHT_EQ(stat(records, &first), 0);
    BHT_TRUE(bhi_judge_journal_note(&journal, &candidate));
    bhi_judge_journal_close(&journal);
    const int fd = open(records, O_WRONLY | O_CLOEXEC);
    BHT_EQ(pwrite(fd, "", 1, first.st_size - 2), 1); /* its end is there */
    close(fd);
    BHT_EQ(try_open(true), BHI_JOURNAL_ENVIRON);
    BHT_STR_HAS(complaint.text, "judge.jsonl:2: it is damaged");
}

/* As many times as a task may have sizes; what is behind them in memory is something else. */
TEST(times_of_too_many_sizes_are_damaged) {
    bh_judgement many = timed();
    many.timing_count = BH_JUDGE_SIZES;
    for (size_t i = 0; i < BH_JUDGE_SIZES; i++) {
        many.timings[i] = timed().timings[0];
    }
    note_whole(many);
    BHT_EQ(find()->timing_count, BH_JUDGE_SIZES);
    char one[512], two[1024];
    const json_t *record = json_array_get(journal.records, 0);
    char *first = json_dumps(json_array_get(json_object_get(record, "timing"), 0), JSON_COMPACT);
    snprintf(one, sizeof one, "%s", first);
    snprintf(two, sizeof two, "%s,%s", first, first);
    free(first);
    BHT_TRUE(!takes(one, two));
}

/* The journal of a judging: what is recorded comes back, and nothing that does not belong to it. */
#include "judge/journal/journal.h"

#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIR       "state"
#define FILE_NAME DIR "/judge.jsonl"

static const char text_of_task[] =
    "{\"name\": \"copy\", \"sizes\": [{\"n\": 4}, {\"n\": 7}],"
    " \"in\": {\"X\": {\"dtype\": \"f32\", \"shape\": [\"n\"], \"fill\": \"normal\"}},"
    " \"out\": {\"Y\": {\"dtype\": \"f32\", \"shape\": [\"n\"]}},"
    " \"groups\": [\"n\"], \"reference\": {\"eval\": \"Y = X\"}}";
static const uint64_t hidden[] = {UINT64_MAX, 7};

static struct bhi_complaint complaint;
static struct bhi_task task;
static struct bhi_court court;
static struct bhi_judge_journal journal;
static char folder[] = "/tmp/judge-journal-XXXXXX";

static void enter(void) {
    BHT_TRUE(mkdtemp(folder) && chdir(folder) == 0);
}

static void leave(void) {
    BHT_EQ(chdir("/"), 0);
    BHT_EQ(rmdir(folder), 0);
}

/* A court whose reference has computed |expected| everywhere. */
static void convene(float expected) {
    if (!bhi_task_parse("t.json", "", text_of_task, &task, &complaint) ||
        !bhi_trials_make(&task, hidden, 2, &court.trials, &complaint)) {
        BHT_FAIL("%s", complaint.text);
    }
    court.task = &task;
    for (size_t i = 0; i < court.trials.count; i++) {
        struct bhi_trial_array *array = &court.trials.list[i].arrays[1];
        float *out = array->expected = malloc(array->form.bytes);
        for (size_t k = 0; k < array->count; k++) {
            out[k] = expected;
        }
    }
}

static void adjourn(void) {
    bhi_trials_free(&task, &court.trials);
    bhi_task_free(&task);
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    BHT_TRUE(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void open_it(bool resume, enum bhi_judge_journal_result expected, const char *why) {
    const enum bhi_judge_journal_result result =
        bhi_judge_journal_open(&journal, DIR, resume, &complaint);
    if (result != expected) {
        BHT_FAIL("%d: %s", (int)result, result ? complaint.text : "taken");
    }
    if (why) {
        BHT_STR_HAS(complaint.text, why);
        bhi_judge_journal_close(&journal);
    }
}

static void begin(enum bhi_judge_journal_result expected, const char *why) {
    const enum bhi_judge_journal_result result =
        bhi_judge_journal_begin(&journal, &court, hidden, 2, &complaint);
    if (result != expected) {
        BHT_FAIL("%d: %s", (int)result, result ? complaint.text : "taken");
    }
    if (why) {
        BHT_STR_HAS(complaint.text, why);
        bhi_judge_journal_close(&journal);
    }
}

/* The candidate in the file |path|, which is its own content. */
static struct bhi_candidate candidate_of(const char *path) {
    struct bhi_candidate candidate = {.path = path, .judged = true, .has_content = true, .runs = 3};
    struct bhi_content_hash *hash = bhi_content_hash_begin();
    write_file(path, path);
    bhi_content_hash_add(hash, path, strlen(path));
    bhi_content_hash_end(hash, candidate.content);
    return candidate;
}

static void note(const struct bhi_candidate *candidate) {
    if (!bhi_judge_journal_note(&journal, candidate)) {
        BHT_FAIL("%s", journal.complaint.text);
    }
}

/* A judging with the verdicts of a.comp (WRONG), b.comp (CORRECT, timed) and c.comp (DEADLINE). */
static void make_three(void) {
    bh_judge_timing timing = {.size_index = 1,
                              .runs = 40,
                              .median_ns = 1234.5,
                              .reference_ns = 1000,
                              .ratio = 1.2345,
                              .low = 1.2,
                              .high = 1.25,
                              .noise = 0.004,
                              .drift = -0.001,
                              .host_ns = 1300,
                              .device = true,
                              .noisy = true,
                              .doubt = BH_JUDGE_DOUBT_LOAD,
                              .spreads = true,
                              .one_processor = true,
                              .guard_ratio = 1.01};
    struct bhi_candidate a = candidate_of("a.comp"), b = candidate_of("b.comp"),
                         c = candidate_of("c.comp");
    a.verdict = BH_JUDGE_WRONG;
    a.trial = &court.trials.list[3];
    a.array = 1;
    a.difference = (struct bhi_difference){
        .wrong = 2, .index = 5, .expected = "1", .got = "nan", .ulp = UINT64_MAX};
    strcpy(a.outcome.message, "Y[5] is nan\n\x1b[31m, \"expected\" 1");
    b.nondeterministic = true;
    b.timings = &timing;
    b.timing_count = 1;
    c.verdict = BH_JUDGE_FAILED;
    c.outcome = (struct bhi_judge_outcome){
        .status = BH_DEADLINE, .blame = BH_BLAME_CERTAIN, .message = "the deadline passed"};
    open_it(false, BHI_JOURNAL_OK, NULL);
    begin(BHI_JOURNAL_OK, NULL);
    note(&a);
    note(&b);
    note(&c);
    bhi_judge_journal_close(&journal);
}

static void remove_all(void) {
    unlink("a.comp");
    unlink("b.comp");
    unlink("c.comp");
    unlink(FILE_NAME);
    unlink(DIR "/lock");
    rmdir(DIR);
    adjourn();
}

static struct bhi_candidate find(const char *path) {
    struct bhi_candidate found = {.path = path};
    bhi_judge_journal_find(&journal, path, &found);
    BHT_STR_EQ(found.path, path);
    return found;
}

static void what_is_recorded_comes_back(void) {
    uint64_t *seeds;
    size_t count;
    convene(1);
    make_three();
    open_it(true, BHI_JOURNAL_OK, NULL);
    BHT_TRUE(bhi_judge_journal_seeds(&journal, &seeds, &count, &complaint));
    BHT_EQ(count, 2);
    BHT_TRUE(seeds[0] == UINT64_MAX && seeds[1] == 7);
    free(seeds);
    begin(BHI_JOURNAL_OK, NULL);
    const struct bhi_candidate a = find("a.comp"), c = find("c.comp");
    struct bhi_candidate b = find("b.comp");
    BHT_TRUE(a.judged && a.has_content && !a.nondeterministic && !a.timing_count);
    BHT_EQ(a.verdict, BH_JUDGE_WRONG);
    BHT_EQ(a.trial - court.trials.list, 3);
    BHT_EQ(a.array, 1);
    BHT_EQ(a.runs, 3);
    BHT_STR_EQ(a.name, "a");
    BHT_EQ(a.difference.wrong, 2);
    BHT_EQ(a.difference.index, 5);
    BHT_TRUE(a.difference.ulp == UINT64_MAX);
    BHT_STR_EQ(a.difference.expected, "1");
    BHT_STR_EQ(a.difference.got, "nan");
    BHT_STR_EQ(a.outcome.message, "Y[5] is nan ?[31m, \"expected\" 1");
    BHT_TRUE(b.judged && b.nondeterministic && !b.trial);
    BHT_EQ(b.timing_count, 1);
    const bh_judge_timing *timing = b.timings;
    BHT_TRUE(timing->size_index == 1 && timing->runs == 40 && timing->median_ns == 1234.5 &&
             timing->reference_ns == 1000 && timing->ratio == 1.2345 && timing->low == 1.2 &&
             timing->high == 1.25 && timing->noise == 0.004 && timing->drift == -0.001 &&
             timing->host_ns == 1300 && timing->device && !timing->cold && timing->noisy &&
             timing->doubt == BH_JUDGE_DOUBT_LOAD && timing->spreads && timing->one_processor &&
             timing->guard_ratio == 1.01);
    bhi_candidate_free(&b);
    BHT_EQ(c.verdict, BH_JUDGE_FAILED);
    BHT_EQ(c.outcome.status, BH_DEADLINE);
    BHT_EQ(c.outcome.blame, BH_BLAME_CERTAIN);
    bhi_judge_journal_close(&journal);
    remove_all();
}

/* SLOWER is said by an option. The times are recorded; the next run has an option of its own. */
static void slower_is_for_each_run_to_say(void) {
    convene(1);
    make_three();
    open_it(true, BHI_JOURNAL_OK, NULL);
    begin(BHI_JOURNAL_OK, NULL);
    struct bhi_candidate b = find("b.comp");
    b.verdict = BH_JUDGE_SLOWER;
    b.trial = &court.trials.list[0];
    strcpy(b.outcome.message, "it takes 3.000 times as long as the reference");
    note(&b);
    bhi_candidate_free(&b);
    bhi_judge_journal_close(&journal);
    open_it(true, BHI_JOURNAL_OK, NULL);
    begin(BHI_JOURNAL_OK, NULL);
    BHT_EQ(json_array_size(journal.records), 4);
    b = find("b.comp");
    BHT_TRUE(b.judged && b.verdict == BH_JUDGE_CORRECT && !b.trial && b.timing_count == 1);
    BHT_STR_EQ(b.outcome.message, "");
    bhi_candidate_free(&b);
    bhi_judge_journal_close(&journal);
    remove_all();
}

/* A file that has changed, and one that was never judged, are judged. */
static void other_files_are_judged(void) {
    convene(1);
    make_three();
    write_file("a.comp", "another");
    write_file("d.comp", "d.comp");
    BHT_EQ(rename("c.comp", "e.comp"), 0);
    open_it(true, BHI_JOURNAL_OK, NULL);
    begin(BHI_JOURNAL_OK, NULL);
    BHT_TRUE(!find("a.comp").judged);
    BHT_TRUE(!find("d.comp").judged);
    BHT_TRUE(!find("c.comp").judged);
    BHT_TRUE(!find("e.comp").judged);
    BHT_TRUE(!find(".").judged);
    bhi_judge_journal_close(&journal);
    unlink("d.comp");
    unlink("e.comp");
    remove_all();
}

/* A kill cuts off the line that was being written. What follows is written behind the lines that
 * are whole. */
static void a_line_that_was_cut_off(void) {
    struct stat before, after;
    convene(1);
    make_three();
    BHT_EQ(stat(FILE_NAME, &before), 0);
    BHT_EQ(truncate(FILE_NAME, before.st_size - 5), 0);
    open_it(true, BHI_JOURNAL_OK, NULL);
    begin(BHI_JOURNAL_OK, NULL);
    BHT_TRUE(find("a.comp").judged);
    BHT_TRUE(!find("c.comp").judged);
    struct bhi_candidate c = candidate_of("c.comp");
    note(&c);
    bhi_judge_journal_close(&journal);
    open_it(true, BHI_JOURNAL_OK, NULL);
    begin(BHI_JOURNAL_OK, NULL);
    BHT_EQ(find("c.comp").verdict, BH_JUDGE_CORRECT);
    BHT_EQ(json_array_size(journal.records), 3);
    bhi_judge_journal_close(&journal);
    BHT_EQ(stat(FILE_NAME, &after), 0);
    BHT_LT(after.st_size, before.st_size); /* CORRECT without a message is shorter */
    remove_all();
}

/* Replaces |before| in the journal by |after|, which is as long. */
static void damage(const char *before, const char *after) {
    static char text[1 << 16];
    const int fd = open(FILE_NAME, O_RDWR);
    const ssize_t size = pread(fd, text, sizeof text - 1, 0);
    BHT_GT(size, 0);
    text[size] = '\0';
    char *at = strstr(text, before);
    BHT_TRUE(at && strlen(before) == strlen(after));
    BHT_EQ(pwrite(fd, after, strlen(after), at - text), (ssize_t)strlen(after));
    close(fd);
}

static void damage_is_named(void) {
    static const struct {
        const char *before, *after, *why;
        bool at_once; /* known before the reference runs */
    } cases[] = {
        {"{\"bulkhead_judge\":2", "{\"bulkhead_judge\":[", DIR "/judge.jsonl:1: it is damaged",
         true},
        {"{\"bulkhead_judge\":2", "{\"bulkhead_judge\":3", "another version of bulkhead", true},
        {"{\"file\":\"b.comp\"", "{\"fine\":\"b.comp\"", DIR "/judge.jsonl:3: it is damaged", true},
        {"{\"file\":\"b.comp\"", "[\"file\":\"b.comp\"", DIR "/judge.jsonl:3: it is damaged", true},
        {"\"trial\":3", "\"trial\":9", DIR "/judge.jsonl:2: it is damaged", false},
        {"\"array\":1", "\"array\":2", DIR "/judge.jsonl:2: it is damaged", false},
        {"\"wrong\":2", "\"wrong\":-", DIR "/judge.jsonl:2: it is damaged", true},
        {"\"ulp\":\"1844", "\"ulp\":\"-844", DIR "/judge.jsonl:2: it is damaged", false},
        {"\"size\":1", "\"size\":2", DIR "/judge.jsonl:3: it is damaged", false},
        {"\"cold\":false", "\"cold\":90000", DIR "/judge.jsonl:3: it is damaged", false},
        {"\"judgement\":3", "\"judgement\":9", DIR "/judge.jsonl:4: it is damaged", false},
        {"\"identity\"", "\"identify\"", DIR " is of another task", false},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        convene(1);
        make_three();
        damage(cases[i].before, cases[i].after);
        open_it(true, cases[i].at_once ? BHI_JOURNAL_ENVIRON : BHI_JOURNAL_OK,
                cases[i].at_once ? cases[i].why : NULL);
        if (!cases[i].at_once) {
            begin(strstr(cases[i].why, "damaged") ? BHI_JOURNAL_ENVIRON : BHI_JOURNAL_BAD_INPUT,
                  cases[i].why);
        }
        remove_all();
    }
}

static void another_judging_is_refused(void) {
    convene(1);
    make_three();
    adjourn();
    convene(2); /* the reference computes something else now */
    open_it(true, BHI_JOURNAL_OK, NULL);
    begin(BHI_JOURNAL_BAD_INPUT, DIR " is of another task");
    adjourn();
    convene(1);
    strcpy(court.device, "nvidia:1"); /* what is right on one may be wrong on another */
    open_it(true, BHI_JOURNAL_OK, NULL);
    begin(BHI_JOURNAL_BAD_INPUT, DIR " is of device , and this is nvidia:1: name that one");
    court.device[0] = '\0';
    adjourn();
    convene(1);
    open_it(false, BHI_JOURNAL_BAD_INPUT,
            DIR " has a judging of 3 candidates: continue it (--resume)");
    BHT_EQ(unlink(FILE_NAME), 0);
    open_it(true, BHI_JOURNAL_ENVIRON, DIR " has lost its judge.jsonl");
    open_it(false, BHI_JOURNAL_ENVIRON, DIR " has lost its judge.jsonl");
    remove_all();
}

static void folders_that_are_refused(void) {
    convene(1);
    open_it(true, BHI_JOURNAL_BAD_INPUT, DIR " has no judging: there is nothing to resume");
    BHT_EQ(access(DIR "/lock", F_OK), -1); /* it was made and is gone again */
    BHT_EQ(rmdir(DIR), 0);
    write_file(DIR, "x");
    open_it(false, BHI_JOURNAL_BAD_INPUT, DIR " is not a folder");
    BHT_EQ(unlink(DIR), 0);
    BHT_EQ(mkdir(DIR, 0700), 0);
    write_file(DIR "/lock", "precious");
    open_it(false, BHI_JOURNAL_ENVIRON, DIR "/lock is another program's file");
    BHT_EQ(unlink(DIR "/lock"), 0);
    BHT_EQ(symlink("elsewhere", FILE_NAME), 0);
    open_it(false, BHI_JOURNAL_ENVIRON, FILE_NAME " cannot be opened");
    BHT_EQ(unlink(FILE_NAME), 0);
    write_file(FILE_NAME, "");
    BHT_EQ(chmod(FILE_NAME, 0622), 0);
    open_it(false, BHI_JOURNAL_ENVIRON, FILE_NAME " can be written by others");
    BHT_EQ(unlink(FILE_NAME), 0);
    /* While it is open nobody else has it. */
    struct bhi_judge_journal second;
    open_it(false, BHI_JOURNAL_OK, NULL);
    begin(BHI_JOURNAL_OK, NULL);
    BHT_EQ(bhi_judge_journal_open(&second, DIR, true, &complaint), BHI_JOURNAL_ENVIRON);
    BHT_STR_HAS(complaint.text, DIR " is in use by another process, pid ");
    bhi_judge_journal_close(&second);
    bhi_judge_journal_close(&journal);
    remove_all();
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(what_is_recorded_comes_back),
        BHT_TEST(slower_is_for_each_run_to_say),
        BHT_TEST(other_files_are_judged),
        BHT_TEST(a_line_that_was_cut_off),
        BHT_TEST(damage_is_named),
        BHT_TEST(another_judging_is_refused),
        BHT_TEST(folders_that_are_refused),
    };
    bht_around(enter, leave);
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}

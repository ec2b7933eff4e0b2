/* How jobs are cut into shards, array.json, what follows from the end of a task, its device, and
 * copies of files. */
#include "few_jobs.h"

#include <errno.h>

#include "batch/slurm/array.h"
#include "batch/slurm/cut.h"
#include "batch/slurm/decide.h"
#include "batch/slurm/devices.h"
#include "batch/slurm/places.h"
#include "batch/slurm/whole.h"
#include "tool/interrupt.h"

/* -- the cut ------------------------------------------------------------------------------------
 */

static void expect_cut(const struct jobs *jobs, uint32_t most, const char *expected) {
    struct bhi_cut cut;
    char text[400] = "";
    size_t used = 0;
    BHT_TRUE(bhi_cut_make(jobs->specs, jobs->count, most, &cut));
    for (uint32_t s = 0; s < cut.shards; s++) {
        uint64_t size = 0;
        for (size_t i = 0; i < jobs->count; i++) {
            if (cut.shard[i] == s) {
                used += (size_t)snprintf(text + used, sizeof text - used, "%s", jobs->specs[i].id);
                size++;
            }
        }
        BHT_EQ(cut.sizes[s], size);
        used += (size_t)snprintf(text + used, sizeof text - used, "|");
    }
    BHT_STR_EQ(text, expected);
    bhi_cut_free(&cut);
}

TEST(test_cut) {
    struct jobs jobs = {.count = 0};
    /* b on one that comes later; e joins two groups. */
    BHT_TRUE(read_jobs(&jobs, "a b:f c d:a e:d,c f g h:nobody"));
    expect_cut(&jobs, 1, "abcdefgh|");
    expect_cut(&jobs, 2, "acde|bfgh|");
    expect_cut(&jobs, 3, "acde|bf|gh|");
    expect_cut(&jobs, 100, "acde|bf|g|h|"); /* never an empty one */
    jobs.count = 0;
    expect_cut(&jobs, 3, "");
    jobs.count = 8;
    free_jobs(&jobs);
    /* The largest groups first, wherever they are. */
    BHT_TRUE(read_jobs(&jobs, "a b c:b d e:d f:d"));
    expect_cut(&jobs, 2, "def|abc|");
    free_jobs(&jobs);
}

/* Sizes differ by one at most where nothing depends on anything. */
TEST(test_cut_of_many) {
    enum { JOBS = 10007, SHARDS = 10 };
    struct bhi_job_spec *specs = calloc(JOBS, sizeof *specs);
    struct bhi_cut cut;
    for (int i = 0; i < JOBS; i++) {
        BHT_TRUE(asprintf(&specs[i].id, "%d", i) > 0);
    }
    BHT_TRUE(bhi_cut_make(specs, JOBS, SHARDS, &cut));
    BHT_EQ(cut.shards, SHARDS);
    for (uint32_t s = 0; s < SHARDS; s++) {
        BHT_TRUE(cut.sizes[s] == JOBS / SHARDS || cut.sizes[s] == JOBS / SHARDS + 1);
    }
    bhi_cut_free(&cut);
    for (int i = 0; i < JOBS; i++) {
        free(specs[i].id);
    }
    free(specs);
}

/* -- array.json ---------------------------------------------------------------------------------
 */

static void make_array(struct bhi_slurm_array *array) {
    const uint32_t all[] = {0, 1, 2, 3}, some[] = {1, 3};
    BHT_TRUE(bhi_array_init(array, &complaint));
    array->cwd = strdup("/a \"b\"");
    array->chdir = strdup("/tmp");
    array->jobs = strdup("jobs.jsonl");
    array->program = strdup("/usr/bin/bulkhead");
    memset(array->jobs_hash, 'a', 64);
    memset(array->shape_hash, 'b', 64);
    array->shards = 4;
    array->total = 10;
    array->sizes = calloc(5, sizeof *array->sizes);
    array->sizes[3] = 10;
    array->batch_options = calloc(3, sizeof(char *));
    array->batch_options[0] = strdup("--streams=4");
    array->sbatch_options = calloc(1, sizeof(char *));
    BHT_TRUE(bhi_array_add_round(array, all, 4, "first"));
    array->rounds[0].job = 17;
    BHT_TRUE(bhi_array_add_round(array, some, 2, "NODE_FAIL on n2"));
}

TEST(test_array) {
    const char *const folder = place.root;
    char path[96];
    struct bhi_slurm_array array, other;
    BHT_EQ(bhi_array_load(&other, folder, &complaint), BHI_ARRAY_NONE);
    make_array(&array);
    BHT_TRUE(bhi_array_save(&array, folder, &complaint));
    BHT_EQ(bhi_array_load(&other, folder, &complaint), BHI_ARRAY_LOADED);
    BHT_STR_EQ(other.id, array.id);
    BHT_STR_EQ(other.cwd, array.cwd);
    BHT_STR_EQ(other.batch_options[0], "--streams=4");
    BHT_EQ(other.batch_options[1], NULL);
    BHT_EQ(other.sizes[3], 10);
    BHT_EQ(other.round_count, 2);
    BHT_EQ(other.rounds[0].job, 17);
    BHT_EQ(other.rounds[1].job, 0);
    BHT_EQ(other.rounds[1].submitted_ns, array.rounds[1].submitted_ns);
    BHT_EQ(other.created_ns, array.created_ns);
    BHT_EQ(other.total, 10);
    BHT_STR_EQ(other.chdir, "/tmp");
    BHT_STR_EQ(other.jobs, "jobs.jsonl");
    BHT_STR_EQ(other.program, "/usr/bin/bulkhead");
    BHT_EQ(other.rounds[1].shards[1], 3);
    BHT_STR_EQ(other.rounds[1].why, "NODE_FAIL on n2");
    char *first = bhi_array_indexes(&other.rounds[0]),
         *second = bhi_array_indexes(&other.rounds[1]);
    BHT_STR_EQ(first, "0-3");
    BHT_STR_EQ(second, "1,3");
    free(first);
    free(second);
    bhi_array_free(&other);
    /* Each cut of the file is refused, and none of them leaks. */
    snprintf(path, sizeof path, "%s/array.json", folder);
    struct stat status;
    BHT_EQ(stat(path, &status), 0);
    for (off_t size = status.st_size - 1; size >= 0; size -= 7) {
        BHT_EQ(truncate(path, size), 0);
        BHT_EQ(bhi_array_load(&other, folder, &complaint), BHI_ARRAY_REFUSED);
    }
    bhi_array_free(&array);
}

/* What array.json says is counted by what it says elsewhere: at each limit it is taken, and one
 * beyond is refused. */
TEST(test_an_array_at_its_limits) {
    static const struct {
        const char *before, *after;
        bool taken;
    } cases[] = {
        {"`shards`:[1,3]", "`shards`:[1,4]", false}, /* there are four: 0 to 3 */
        {"`shards`:[1,3]", "`shards`:[0,3]", true},
        {"`shards`:[1,3]", "`shards`:[-1,3]", false},
        {"`shards`:[1,3]", "`shards`:[3,3]", false},
        {"`shards`:[1,3]", "`shards`:[3,1]", false},
        {"`shards`:[1,3]", "`shards`:[]", false},
        {"`shards`:[1,3]", "`shards`:[1,`3`]", false},
        {"`shards`:[0,1,2,3]", "`shards`:[0,1,2,3,4]", false},
        {"`sizes`:[0,0,0,10]", "`sizes`:[0,0,0]", false},
        {"`sizes`:[0,0,0,10]", "`sizes`:[0,0,0,10,0]", false},
        {"`sizes`:[0,0,0,10]", "`sizes`:[0,0,0,-1]", false},
        {"`shards`:4,", "`shards`:3,", false},
        {"`shards`:4,", "`shards`:5,", false},
        {"`shards`:4,`sizes`:[0,0,0,10]", "`shards`:0,`sizes`:[]", false},
        {"`job`:17", "`job`:4294967295", true},
        {"`job`:17", "`job`:4294967296", false},
        {"`job`:17", "`job`:-1", false},
        {"`format`:1", "`format`:0", false},
        {"`format`:1", "`format`:2", false},
        {"`total`:10", "`total`:-1", false},
    };
    static char whole[4096], text[4096];
    char path[96];
    struct bhi_slurm_array array, other;
    make_array(&array);
    BHT_TRUE(bhi_array_save(&array, place.root, &complaint));
    bhi_array_free(&array);
    snprintf(path, sizeof path, "%s/array.json", place.root);
    const ssize_t size = read_file(path, text);
    size_t used = 0;
    for (ssize_t i = 0; i < size; i++) { /* without blanks */
        if (!strchr(" \n", text[i])) {
            whole[used++] = text[i];
        }
    }
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const char *before = bht_quoted(cases[i].before), *at = strstr(whole, before);
        BHT_TRUE(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole,
                 bht_quoted(cases[i].after), at + strlen(before));
        write_file(path, text, strlen(text));
        const bool taken = bhi_array_load(&other, place.root, &complaint) == BHI_ARRAY_LOADED;
        if (taken != cases[i].taken) {
            BHT_FAIL("%s is %s", cases[i].after, taken ? "taken" : "refused");
        }
        bhi_array_free(&other);
    }
}

TEST(test_comments) {
    struct bhi_slurm_array array, other;
    char comment[BHI_ARRAY_COMMENT];
    size_t round = 99;
    BHT_TRUE(bhi_array_init(&array, &complaint));
    BHT_TRUE(bhi_array_init(&other, &complaint));
    bhi_array_comment(&array, 12, comment);
    BHT_TRUE(bhi_array_owns(&array, comment, strlen(comment), &round));
    BHT_EQ(round, 12);
    BHT_TRUE(!bhi_array_owns(&other, comment, strlen(comment), &round));
    BHT_TRUE(!bhi_array_owns(&array, comment, strlen(comment) - 2, &round)); /* no round */
    BHT_TRUE(!bhi_array_owns(&array, "", 0, &round));
    comment[strlen(comment) - 1] = 'x';
    BHT_TRUE(!bhi_array_owns(&array, comment, strlen(comment), &round));
}

/* -- what follows -------------------------------------------------------------------------------
 */

TEST(test_decisions) {
    const struct bhi_slurm_shard_ending good = {.array = 1, .status = 0, .node = "n1"};
    const struct bhi_slurm_shard_ending bad = {.array = 1, .status = 1, .node = "n1"};
    const struct bhi_slurm_shard_ending refused = {.array = 1, .status = 2, .node = "n1"};
    const struct bhi_slurm_shard_ending disk = {.array = 1, .status = 3, .node = "n1"};
    const struct bhi_slurm_shard_ending killed = {.array = 1, .status = 137, .node = "n1"};
    const struct bhi_slurm_shard_ending term = {.array = 1, .status = 143, .node = "n1"};
#define WAITS BHI_SLURM_SHARD_WAITS
#define ENDS  BHI_SLURM_SHARD_ENDED
#define AGAIN BHI_SLURM_SHARD_AGAIN
#define STUCK BHI_SLURM_SHARD_STUCK
    static const uint32_t last = BHI_SLURM_SHARD_FRUITLESS - 1;
    const struct {
        enum bhi_slurm_state state;
        const struct bhi_slurm_shard_ending *ending;
        bool settled, progressed, busy;
        uint32_t fruitless;
        enum bhi_slurm_shard_action action;
        unsigned delay_s;
        const char *why;
    } cases[] = {
        {BHI_SLURM_UNKNOWN, NULL, 0, 0, 0, 0, WAITS, 0, ""},
        {BHI_SLURM_PENDING, NULL, 1, 0, 0, 0, WAITS, 0, ""},
        {BHI_SLURM_RUNNING, NULL, 1, 1, 0, 0, WAITS, 0, ""},
        {BHI_SLURM_RUNNING, &killed, 1, 1, 0, 0, WAITS, 0, ""}, /* Slurm will say more */
        {BHI_SLURM_RUNNING, &good, 0, 0, 0, 0, ENDS, 0, ""},
        {BHI_SLURM_TIME, &good, 0, 0, 0, 0, ENDS, 0, ""}, /* it was through just then */
        {BHI_SLURM_UNKNOWN, &bad, 0, 0, 0, 0, ENDS, 0, ""},
        {BHI_SLURM_ENDED, &refused, 0, 0, 0, 0, STUCK, 0, "refused"},
        {BHI_SLURM_ENDED, NULL, 0, 0, 0, 0, WAITS, 0, ""},
        {BHI_SLURM_ENDED, NULL, 1, 0, 0, 0, AGAIN, 0, "left no word"},
        {BHI_SLURM_ENDED, &killed, 0, 0, 0, 0, AGAIN, 0, "SIGKILL on n1"},
        {BHI_SLURM_ENDED, &disk, 0, 0, 0, 1, AGAIN, 1, "status 3 on n1"},
        {BHI_SLURM_ENDED, &disk, 0, 0, 0, 4, AGAIN, 8, "status 3"},
        {BHI_SLURM_ENDED, &disk, 0, 0, 0, last, STUCK, 0, "no job ended in 6 tasks"},
        {BHI_SLURM_ENDED, &disk, 0, 1, 0, last, AGAIN, 0, "status 3"}, /* a job has ended */
        {BHI_SLURM_ENDED, &disk, 0, 0, 1, last + 9, AGAIN, 60, "still runs"},
        {BHI_SLURM_VICTIM, NULL, 0, 0, 0, 0, AGAIN, 0, "NODE_FAIL on n7"},
        {BHI_SLURM_VICTIM, &term, 0, 0, 0, 0, AGAIN, 0, "NODE_FAIL on n7"},
        {BHI_SLURM_VICTIM, NULL, 0, 0, 0, last, STUCK, 0, "NODE_FAIL on n7"},
        {BHI_SLURM_GONE, NULL, 0, 0, 0, 0, WAITS, 0, ""},
        {BHI_SLURM_GONE, NULL, 1, 0, 0, 0, AGAIN, 0, "NODE_FAIL"},
        {BHI_SLURM_GONE, &disk, 0, 0, 0, 0, AGAIN, 0, "status 3 on n1"},
        {BHI_SLURM_TIME, NULL, 0, 1, 0, 0, AGAIN, 0, "NODE_FAIL"},
        {BHI_SLURM_TIME, &term, 0, 0, 0, 0, STUCK, 0, "it was running j7: give more (--time)"},
        {BHI_SLURM_MEMORY, NULL, 0, 0, 0, 0, STUCK, 0, "it was running j7: give more (--sbatch"},
        {BHI_SLURM_MEMORY, NULL, 0, 1, 0, 0, AGAIN, 0, ""},
        {BHI_SLURM_CANCELLED, &term, 0, 1, 0, 0, STUCK, 0, "NODE_FAIL on n7"},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const struct bhi_slurm_shard_observation seen = {.state = cases[i].state,
                                                         .name = "NODE_FAIL",
                                                         .node = cases[i].ending ? "" : "n7",
                                                         .ending = cases[i].ending,
                                                         .settled = cases[i].settled,
                                                         .progressed = cases[i].progressed,
                                                         .busy = cases[i].busy,
                                                         .fruitless = cases[i].fruitless,
                                                         .cut_off = "j7"};
        struct bhi_slurm_shard_observation again = seen;
        struct bhi_slurm_shard_decision decision;
        if (cases[i].ending == &term) {
            again.node = "n7";
        }
        bhi_slurm_shard_decide(&again, &decision);
        if (decision.action != cases[i].action || !strstr(decision.why, cases[i].why) ||
            (decision.action == AGAIN &&
             decision.delay_ns != cases[i].delay_s * UINT64_C(1000000000))) {
            BHT_FAIL("case %zu: action %d after %" PRIu64 ": %s", i, decision.action,
                     decision.delay_ns, decision.why);
        }
        BHT_TRUE(!decision.cancelled);
        BHT_EQ(decision.status, decision.action == ENDS ? cases[i].ending->status : 0);
        /* Nothing is submitted again after --cancel; all else is as before. */
        again.cancelled = true;
        bhi_slurm_shard_decide(&again, &decision);
        BHT_EQ(decision.action, cases[i].action == AGAIN ? STUCK : cases[i].action);
        if (cases[i].action == AGAIN || cases[i].state == BHI_SLURM_CANCELLED) {
            BHT_STR_HAS(decision.why, "it was cancelled (--cancel)");
        }
        BHT_EQ(decision.cancelled,
               cases[i].action == AGAIN || cases[i].state == BHI_SLURM_CANCELLED);
    }
}

/* What may be scancel's doing, or that of bulkhead batch --cancel on another machine. */
TEST(a_task_that_looks_cancelled) {
    static const struct bhi_slurm_shard_ending term = {.status = 143}, killed = {.status = 137};
    static const struct {
        enum bhi_slurm_state state;
        const struct bhi_slurm_shard_ending *ending;
        bool looks;
    } cases[] = {
        {BHI_SLURM_CANCELLED, NULL, true}, {BHI_SLURM_CANCELLED, &killed, true},
        {BHI_SLURM_ENDED, &term, true},    {BHI_SLURM_ENDED, &killed, false},
        {BHI_SLURM_ENDED, NULL, false},    {BHI_SLURM_GONE, NULL, true},
        {BHI_SLURM_GONE, &killed, false},  {BHI_SLURM_RUNNING, NULL, false},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const struct bhi_slurm_shard_observation seen = {.state = cases[i].state,
                                                         .ending = cases[i].ending};
        if (bhi_slurm_shard_looks_cancelled(&seen) != cases[i].looks) {
            BHT_FAIL("case %zu", i);
        }
    }
}

#define BATCH "0123456789abcdef0123456789abcdef"

TEST(test_endings) {
    struct bhi_slurm_shard_ending ending;
    BHT_TRUE(bhi_slurm_shard_parse_ending(BATCH " 3 17 137 n1\n", &ending));
    BHT_STR_EQ(ending.id, BATCH);
    BHT_EQ(ending.round, 3);
    BHT_EQ(ending.array, 17);
    BHT_EQ(ending.status, 137);
    BHT_STR_EQ(ending.node, "n1");
    static const char *const refused[] = {"",
                                          "17 0 n1\n",
                                          "01234567 0 17 0 n1\n",
                                          BATCH,
                                          BATCH " 0 17 0",
                                          BATCH " 0 17 0 n1",
                                          BATCH " 0 17 0 n1\nx"};
    static const char *const lines[] = {
        " 0 17 0",      " 0 17 n1",   "0 0 17 0 n1", " 0 0 0 n1",       " 0 17 -1 n1",
        " 0 17 256 n1", " 0 -1 0 n1", " -1 17 0 n1", " 100000 17 0 n1", " 0 4294967296 0 n1"};
    for (size_t i = 0; i < BHT_COUNT(refused) + BHT_COUNT(lines); i++) {
        char line[80];
        sprintf(line, BATCH "%s\n", i < BHT_COUNT(lines) ? lines[i] : "");
        const char *text = i < BHT_COUNT(lines) ? line : refused[i - BHT_COUNT(lines)];
        if (bhi_slurm_shard_parse_ending(text, &ending)) {
            BHT_FAIL("accepted: %s", text);
        }
    }
}

TEST(test_logs) {
    static const char limit[] =
        "-- task 1_0 on n1\nslurmstepd-n1: error: Exceeded job memory limit\nend\n";
    static const char later[] =
        "-- task 1_0 on n1\nslurmstepd: error: Detected 1 oom_kill event in "
        "StepId=1.batch.\n-- task 2_0 on n1\nKilled\n";
    BHT_TRUE(bhi_slurm_shard_parse_log(limit));
    BHT_TRUE(bhi_slurm_shard_parse_log("slurmstepd: error: Detected 2 oom-kill event(s) in step"));
    BHT_TRUE(bhi_slurm_shard_parse_log("slurmstepd-n1: error: StepId=1.batch exceeded memory limit "
                                       "(329998336 > 62914560), being killed"));
    BHT_TRUE(!bhi_slurm_shard_parse_log(later)); /* of the task before it */
    BHT_TRUE(!bhi_slurm_shard_parse_log(""));
    BHT_TRUE(!bhi_slurm_shard_parse_log("\nj1: exceeded memory limit\nslurmstepd: error: killed"));
    BHT_TRUE(!bhi_slurm_shard_parse_log("slurmstepd: error: killed\nj2: oom_kill event"));
}

/* A shard is busy while a task has its folder, and not because its path says "in use". */
TEST(a_shard_is_busy_while_a_task_has_its_folder) {
    char root[96], path[128];
    struct bhi_slurm_shard_look look;
    snprintf(root, sizeof root, "%s/in use", place.root);
    snprintf(place.folder, sizeof place.folder, "%.60s/in use/shards/0000/state", place.root);
    put_file("in use/shards/0000/notes", "", 0600);
    fresh("");
    bhi_slurm_shard_look(root, 0, &look);
    BHT_TRUE(look.busy && !look.read);
    BHT_TRUE(close_queue());
    bhi_slurm_shard_look(root, 0, &look);
    BHT_TRUE(!look.busy && look.read);
    path_of("batch.db", path);
    write_file(path, "not a database", 14);
    bhi_slurm_shard_look(root, 0, &look);
    BHT_TRUE(!look.busy && !look.read);
}

TEST(test_quotes) {
    static const struct {
        const char *text, *quoted;
    } cases[] = {
        {"", "''"}, {"a b", "'a b'"}, {"it's", "'it'\\''s'"}, {"$(x)`y`\"", "'$(x)`y`\"'"}};
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        char *quoted = bhi_slurm_shard_quote(cases[i].text);
        BHT_STR_EQ(quoted, cases[i].quoted);
        free(quoted);
    }
}

/* -- what is staged -----------------------------------------------------------------------------
 */

TEST(test_a_copy) {
    static char bytes[200000];
    char from[96], to[96];
    struct stat status;
    memset(bytes, 7, sizeof bytes);
    snprintf(from, sizeof from, "%s/from", place.root);
    snprintf(to, sizeof to, "%s/to", place.root);
    write_file(from, bytes, sizeof bytes);
    const int fd = open(from, O_RDWR | O_CLOEXEC);
    const pid_t pid = fork(); /* the handlers stay for good */
    if (pid == 0) {
        bhi_interrupt_watch();
        (void)raise(SIGTERM);
        _exit(bhi_places_copy(fd, sizeof bytes, to));
    }
    int ended = 0;
    BHT_EQ(waitpid(pid, &ended, 0), pid);
    BHT_EQ(ended, EINTR << 8);
    BHT_TRUE(stat(to, &status) != 0); /* whole or not at all */
    BHT_EQ(close(fd), 0);
}

static bool full; /* no file can be put in its place */

BHT_WRAP(int, renameat, int from_folder, const char *from, int to_folder, const char *to) {
    if (full) {
        errno = EDQUOT;
        return -1;
    }
    return __real_renameat(from_folder, from, to_folder, to);
}

/* All of it is written, and it gets no name: that is a failure, too, and leaves nothing. */
TEST(test_a_file_that_gets_no_name) {
    char from[96], to[96];
    struct stat status;
    snprintf(from, sizeof from, "%s/from", place.root);
    snprintf(to, sizeof to, "%s/to", place.root);
    write_file(from, "abc", 3);
    const int fd = open(from, O_RDWR | O_CLOEXEC);
    for (int good = 0; good < 2; good++) {
        full = !good;
        BHT_EQ(bhi_places_copy(fd, 3, to), good ? 0 : EDQUOT);
        BHT_EQ(stat(to, &status) == 0, good);
        (void)unlink(to);
        BHT_EQ(bhi_whole_write(to, "abc", 3, 0600, &complaint), good);
        BHT_EQ(stat(to, &status) == 0, good);
        if (!good) {
            BHT_STR_HAS(complaint.text, to);
            BHT_STR_HAS(complaint.text, strerror(EDQUOT));
        }
    }
    BHT_EQ(close(fd), 0);
}

TEST_WITH(test_a_pipe_in_place_of_an_answer_is_not_waited_for, 10, 0) {
    char path[96];
    size_t size;
    int error = 0;
    snprintf(path, sizeof path, "%s/pipe", place.root);
    BHT_EQ(mkfifo(path, 0600), 0);
    BHT_EQ(bhi_whole_read(path, 4096, &size, &error), NULL);
    BHT_EQ(error, EINVAL);
}

/* -- devices ------------------------------------------------------------------------------------
 */

static bh_device_info device(const char *selector, const char *pci, uint8_t uuid, bool cpu) {
    bh_device_info info = {.struct_size = sizeof info};
    snprintf(info.selector, sizeof info.selector, "%s", selector);
    snprintf(info.pci, sizeof info.pci, "%s", pci);
    info.uuid[0] = uuid;
    info.uuid[1] = 0xab;
    info.device_type = cpu ? 4 : 2;
    return info;
}

TEST(test_devices) {
    /* In an order that is not that of the addresses; a CPU driver, and another GPU's. CUDA's is
     * not counted. */
    bh_device_info devices[] = {
        device("cuda:0", "0000:17:00.0", 0x32, false),
        device("nvidia:0", "0000:65:00.0", 0x89, false),
        device("nvidia:1", "0000:17:00.0", 0x32, false),
        device("nvidia:2", "0000:b3:00.0", 0x77, false),
        device("lavapipe:0", "", 0, true),
        device("other:0", "0000:01:00.0", 1, false),
        device("nvid:0", "0000:02:00.0", 2, false),
    };
    static const struct {
        size_t devices;                            /* how many of them are here */
        const char *job_gpus, *visible, *selector; /* NULL: refused */
        size_t unused;
    } cases[] = {
        {6, NULL, NULL, "", 0},
        {6, "", "", "", 0},
        {6, "0", NULL, "nvidia:1", 0}, /* the lowest address */
        {6, "1", "0", "nvidia:0", 0},  /* the machine's number counts */
        {6, "2", NULL, "nvidia:2", 0},
        {6, "2,0", NULL, "nvidia:2", 1},
        {6, "0,1,2", NULL, "any", 0}, /* all of them */
        {6, NULL, "GPU-89ab", "nvidia:0", 0},
        {6, NULL, "GPU-32AB0000-0000", "nvidia:1", 0},
        {6, NULL, "GPU-99", NULL, 0},
        {6, NULL, "7", NULL, 0},
        {6, NULL, "x", NULL, 0},
        {6, NULL, "1x", NULL, 0},
        {6, NULL, "GPU--", NULL, 0},
        {6, NULL, "GPU-32ab00000000000000000000000000000", NULL, 0}, /* a digit too many */
        {7, "0", NULL, "nvidia:1", 0}, /* another driver, whose name begins alike */
        {2, "3", NULL, "nvidia:0", 0}, /* confined: the only one that it sees */
        {3, "3,5", NULL, "any", 0},
        {1, "0", NULL, NULL, 0},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        const struct bhi_slurm_grant grant = {.job_gpus = cases[i].job_gpus,
                                              .visible = cases[i].visible};
        const struct bhi_device_list list = {.devices = devices, .count = cases[i].devices};
        char selector[sizeof devices[0].selector];
        size_t unused;
        complaint.text[0] = '\0';
        const bool good = bhi_slurm_device(&grant, &list, selector, &unused, &complaint);
        if (good != !!cases[i].selector || (good && strcmp(selector, cases[i].selector) != 0) ||
            (good && unused != cases[i].unused) || (!good && !complaint.text[0])) {
            BHT_FAIL("case %zu: %d \"%s\" %s", i, good, selector, complaint.text);
        }
    }
}

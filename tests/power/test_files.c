/* What is written without a device loses power: verdicts of a judge, pipeline caches, quarantined
 * kernels, the files of a batch on Slurm. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/folder.h"
#include "batch/runner/quarantine.h"
#include "batch/slurm/probe_record.h"
#include "batch/slurm/shard.h"
#include "batch/slurm/whole.h"
#include "cli/batch_slurm_parts.h"
#include "harness.h"
#include "ipc/cache_area.h"
#include "judge/journal/journal.h"
#include "power.h"
#include "worker/opener/cache_files.h"

static char root[64];

static void make_root(void) {
    strcpy(root, "/dev/shm/bulkhead-power-XXXXXX");
    BHT_TRUE(mkdtemp(root));
    BHT_EQ(chdir(root), 0);
}

static void end_root(void) {
    power_end();
    BHT_TRUE(chdir("/") == 0 && bht_remove(root));
}

BHT_AT_START(bht_around(make_root, end_root))

static struct bhi_complaint complaint;

#define BHT_GOOD(call)                                                                             \
    do {                                                                                           \
        complaint.text[0] = '\0';                                                                  \
        if (!(call)) {                                                                             \
            BHT_FAIL("%s: %s", #call, complaint.text);                                             \
        }                                                                                          \
    } while (0)

/* -- scenes ------------------------------------------------------------------------------------ */

/* Something that writes files, and says what it has made durable. It may run again. */
struct scene {
    void (*prepare)(void); /* what is there before; may be NULL */
    void (*run)(void);
    void (*check)(const char *said); /* opens what is there */
};

static void begin(const struct scene *scene) {
    power_empty(root);
    if (scene->prepare) {
        scene->prepare();
    }
    power_begin(root);
}

static void lose_power(const struct scene *scene) {
    begin(scene);
    scene->run();
    power_end();
    power_lose_everywhere(scene->check);
}

/* In a process whose |at|th step fails, or kills it. Where the scene cannot go on, an assertion ends it.
 * Returns whether there is such a step. */
static bool run_broken(const struct scene *scene, enum power_mode mode, long at) {
    begin(scene);
    *power = (struct power){.mode = mode, .error = EIO, .at = at};
    const pid_t child = fork();
    BHT_GE(child, 0);
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) {
            _exit(9);
        }
        scene->run();
        _exit(0);
    }
    BHT_EQ(waitpid(child, NULL, 0), child);
    power->mode = POWER_GOOD;
    return power->hit;
}

static void fail_everywhere(const struct scene *scene) {
    for (long at = 1; run_broken(scene, POWER_ONCE, at); at++) {
        power_end();
        power_lose_after(power_steps(), scene->check);
    }
}

/* The next process makes durable what the killed one has not. */
static void kill_everywhere(const struct scene *scene) {
    for (long at = 1; run_broken(scene, POWER_KILL, at); at++) {
        scene->run();
        power_end();
        power_lose_after(power_steps(), scene->check);
    }
}

#define SCENE(name, prepare, run, check)                                                           \
    static const struct scene name = {prepare, run, check};                                        \
    TEST(name##_when_power_is_lost) {                                                              \
        lose_power(&name);                                                                         \
    }                                                                                              \
    TEST(name##_when_a_step_fails) {                                                               \
        fail_everywhere(&name);                                                                    \
    }                                                                                              \
    TEST(name##_after_a_kill) {                                                                    \
        kill_everywhere(&name);                                                                    \
    }

/* -- the judge ---------------------------------------------------------------------------------- */

static struct bhi_task task;
static struct bhi_court court = {.task = &task};
static const char *const candidates[] = {"a.comp", "b.comp", "c.comp"};

static json_t *no_json(void) {
    static json_t *object;
    return object ? object : (object = json_object());
}

static struct bhi_candidate candidate_of(const char *path) {
    struct bhi_candidate candidate = {.file.path = path, .judged = true};
    candidate.judgement = (bh_judgement){.struct_size = sizeof candidate.judgement,
                                         .hashed = true,
                                         .verdict = BH_JUDGE_CORRECT,
                                         .deterministic = true};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    BHT_EQ(bhi_content_hash_of(fd, candidate.judgement.content), 0);
    close(fd);
    return candidate;
}

/* Opens the journal, new or not, and begins. Says so. */
static void open_journal(struct bhi_judge_journal *journal) {
    enum bhi_judge_journal_result result =
        bhi_judge_journal_open(journal, "own/state", false, &complaint);
    if (result == BHI_JOURNAL_BAD_INPUT) {
        bhi_judge_journal_close(journal);
        result = bhi_judge_journal_open(journal, "own/state", true, &complaint);
    }
    BHT_GOOD(result == BHI_JOURNAL_OK);
    BHT_GOOD(bhi_judge_journal_begin(journal, &court, NULL, 0, &complaint) == BHI_JOURNAL_OK);
}

static void make_judge(void) {
    for (size_t i = 0; i < BHT_COUNT(candidates); i++) {
        bht_put(candidates[i], "%s/%s", root, candidates[i]);
    }
    bht_put("", "%s/own/nothing", root);
    task = (struct bhi_task){.name = "task", .array_count = 1};
    task.json = no_json();
    strcpy(court.device, "script:0");
}

/* Notes all that are not known. Says which are. */
static void judge_all(void) {
    struct bhi_judge_journal journal;
    char known[8] = "";
    open_journal(&journal);
    power_say("-");
    for (size_t i = 0; i < BHT_COUNT(candidates); i++) {
        struct bhi_candidate found = {.file.path = candidates[i]};
        bhi_judge_journal_find(&journal, &found);
        if (!found.judged) {
            found = candidate_of(candidates[i]);
            if (!bhi_judge_journal_note(&journal, &found)) {
                break;
            }
        }
        BHT_EQ(found.judgement.verdict, BH_JUDGE_CORRECT);
        strncat(known, candidates[i], 1);
        power_say(known);
    }
    bhi_judge_journal_close(&journal);
}

static void expect_known(const char *said) {
    struct bhi_judge_journal journal;
    open_journal(&journal);
    for (size_t i = 0; i < BHT_COUNT(candidates); i++) {
        struct bhi_candidate found = {.file.path = candidates[i]};
        bhi_judge_journal_find(&journal, &found);
        if (!found.judged && strchr(said, candidates[i][0])) {
            BHT_FAIL("%s has lost its verdict", candidates[i]);
        }
        if (found.judged) {
            const struct bhi_candidate same = candidate_of(candidates[i]);
            BHT_EQ(found.judgement.verdict, BH_JUDGE_CORRECT);
            BHT_MEM_EQ(found.judgement.content, same.judgement.content,
                       sizeof same.judgement.content);
        }
    }
    if (*said) {
        BHT_TRUE(bhi_lock_is_used(&journal.lock));
    }
    bhi_judge_journal_close(&journal);
}

/* All whose verdicts somebody has seen are known, and others can be noted. */
static void expect_verdicts(const char *said) {
    expect_known(said);
    judge_all();
    expect_known("abc");
}

SCENE(verdicts, make_judge, judge_all, expect_verdicts)

/* -- pipeline caches ---------------------------------------------------------------------------- */

enum { CACHE = 3000 };

static void store(int byte) {
    uint64_t bytes;
    char what[160];
    struct bhi_cache_area header = {.bytes = CACHE, .stamp = 2};
    char data[CACHE];
    memset(data, byte, CACHE);
    struct bhi_cache_file file = {.folder = "caches", .identity = {7}, .room = CACHE};
    file.area = memfd_create("area", MFD_CLOEXEC);
    BHT_EQ(pwrite(file.area, &header, sizeof header, 0), sizeof header);
    BHT_EQ(pwrite(file.area, data, CACHE, BHI_CACHE_AREA_HEADER), CACHE);
    BHT_EQ(bhi_cache_store(&file, &bytes, what, sizeof what), 0);
    close(file.area);
    power_say((char[]){(char)byte, '\0'});
}

static void expect_cache(const char *said) {
    uint64_t bytes;
    char what[160], data[CACHE];
    struct bhi_cache_file file = {.folder = "caches", .identity = {7}, .room = CACHE};
    file.area = memfd_create("area", MFD_CLOEXEC);
    BHT_EQ(bhi_cache_load(&file, &bytes, what, sizeof what), 0);
    BHT_STR_EQ(what, ""); /* nothing that has to be ignored */
    if (*said || bytes) {
        BHT_EQ(bytes, CACHE);
        BHT_EQ(pread(file.area, data, CACHE, BHI_CACHE_AREA_HEADER), CACHE);
        BHT_TRUE(data[0] == '1' || data[0] == '2');
        BHT_TRUE(data[0] >= *said);
        for (size_t i = 1; i < CACHE; i++) {
            BHT_EQ(data[i], data[0]);
        }
    }
    close(file.area);
}

static void store_two(void) {
    store('1');
    store('2');
}

SCENE(caches, NULL, store_two, expect_cache)

/* -- quarantine --------------------------------------------------------------------------------- */

static const bh_verdict guilty = {.status = BH_WORKER_SIGNAL, .kernel_hash = {9}};

static void expect_quarantine(const char *said) {
    struct bhi_quarantine quarantine;
    BHT_GOOD(bhi_quarantine_open("shared", &quarantine, &complaint));
    BHT_TRUE(!*said || bhi_quarantine_has(&quarantine, &guilty));
    bhi_quarantine_close(&quarantine);
}

static void put_kernel(void) {
    struct bhi_quarantine quarantine;
    BHT_GOOD(bhi_quarantine_open("shared", &quarantine, &complaint));
    bhi_quarantine_put(&quarantine, &guilty, "job");
    BHT_TRUE(!quarantine.failed);
    power_say("put");
    bhi_quarantine_close(&quarantine);
}

SCENE(quarantine, NULL, put_kernel, expect_quarantine)

/* -- Slurm -------------------------------------------------------------------------------------- */

static const char *const lines[] = {"{\"id\":\"a\",\"kernel\":\"k.spv\",\"groups\":[1]}",
                                    "{\"id\":\"b\",\"kernel\":\"k.spv\",\"groups\":[1]}"};

/* As before a submission: what the tasks need, then the record. */
static void write_batch(void) {
    struct bhi_job_spec specs[2];
    struct bhi_slurm_batch batch = {.jobs = {.specs = specs, .count = 2}};
    struct bhi_places places;
    static char *none[] = {NULL};
    for (size_t i = 0; i < 2; i++) {
        BHT_GOOD(bhi_job_parse(lines[i], strlen(lines[i]), &specs[i], &complaint));
        specs[i].line = i + 1;
    }
    BHT_GOOD(bhi_state_folder_open("own/state", &batch.folder, &complaint));
    BHT_TRUE(bhi_cut_make(specs, 2, 2, &batch.cut));
    BHT_EQ(batch.cut.shards, 2);
    BHT_GOOD(bhi_places_init(&places, specs, 2, root, &complaint));
    struct bhi_probe_path *paths = bhi_places_paths(&places);
    for (size_t i = 0; i < places.count; i++) {
        paths[i].is_seen = paths[i].folder;
    }
    BHT_GOOD(bhi_places_stage(&places, paths, batch.folder.real, "node", &complaint));
    BHT_EQ(places.staged, 1);
    BHT_GOOD(bhi_batch_slurm_write_shards(&batch, &places, &complaint));
    BHT_GOOD(bhi_array_init(&batch.array, &complaint));
    batch.array.cwd = batch.array.chdir = batch.array.jobs = batch.array.program = root;
    batch.array.batch_options = batch.array.sbatch_options = none;
    memset(batch.array.jobs_hash, 'a', 64);
    memset(batch.array.shape_hash, 'b', 64);
    batch.array.total = 2;
    batch.array.shards = 2;
    batch.array.sizes = (uint64_t[]){1, 1};
    BHT_TRUE(bhi_array_add_round(&batch.array, (uint32_t[]){0, 1}, 2, "first"));
    for (uint64_t job = 0; job < 2; job++) { /* before sbatch, and after it */
        batch.array.rounds[0].job = job * 17;
        BHT_GOOD(bhi_array_save(&batch.array, batch.folder.real, &complaint));
        power_say(job ? "submitted" : "recorded");
    }
    free(batch.array.rounds[0].shards);
    free(batch.array.rounds);
    free(paths);
    bhi_places_fini(&places);
    bhi_cut_free(&batch.cut);
    bhi_state_folder_close(&batch.folder);
    bhi_job_spec_free(&specs[0]);
    bhi_job_spec_free(&specs[1]);
}

static void expect_shard(uint32_t shard) {
    size_t size;
    int error;
    char *path = bhi_slurm_shard_path("own/state", shard, "jobs.jsonl");
    char *text = bhi_whole_read(path, 4096, &size, &error);
    struct bhi_job_spec spec;
    struct stat status;
    BHT_TRUE(text);
    const char *line = text + strspn(text, "\n"); /* the second has the second line */
    BHT_GOOD(bhi_job_parse(line, strlen(line) - 1, &spec, &complaint));
    BHT_STR_HAS(spec.kernel, "/staged/");
    BHT_EQ(stat(spec.kernel, &status), 0);
    BHT_EQ(status.st_size, 4);
    bhi_job_spec_free(&spec);
    free(path);
    free(text);
}

/* What is recorded as to be submitted can be run. */
static void expect_batch(const char *said) {
    struct bhi_slurm_array array;
    const enum bhi_array_result result = bhi_array_load(&array, "own/state", &complaint);
    if (!*said && result == BHI_ARRAY_NONE) {
        return;
    }
    BHT_GOOD(result == BHI_ARRAY_LOADED);
    BHT_TRUE(array.rounds[0].job == 17 || strcmp(said, "submitted") != 0);
    expect_shard(0);
    expect_shard(1);
    bhi_array_free(&array);
}

static void make_kernel(void) {
    bht_put("", "%s/own/nothing", root);
    bht_put("\x03\x02\x23\x07", "%s/k.spv", root);
}

SCENE(slurm, make_kernel, write_batch, expect_batch)

static void expect_probe(const char *said) {
    struct bhi_probe_record record;
    if (bhi_probe_record_load(&record, "own") || *said) {
        BHT_EQ(record.job, 17);
    }
}

static void save_probe(void) {
    struct bhi_probe_record record = {.job = 17, .submitted_ns = 5};
    memset(record.id, 'a', BHI_ARRAY_ID);
    memset(record.nonce, 'b', BHI_PROBE_NONCE);
    memset(record.asks, 'c', sizeof record.asks - 1);
    BHT_GOOD(bhi_probe_record_save(&record, "own", &complaint));
    power_say("saved");
}

SCENE(probe, make_kernel, save_probe, expect_probe)

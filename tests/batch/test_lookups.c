/* How often the file system is asked before a batch begins, and by what a file is known. Thousands of jobs
 * name the same kernel, the same inputs and a few folders; on a network file system each question takes a
 * while. */
#include "few_jobs.h"

#include "batch/graph/paths.h"
#include "batch/journal/state_folder.h"
#include "batch/runner/input_cache.h"
#include "batch/runner/preflight.h"
#include "batch/runner/state.h"

static int realpaths, stats, lstats, accesses;

/* What is said of the file at this path; NULL: the truth of all. */
static struct {
    const char *path;
    void (*tell)(struct stat *out);
} told;

static int tell(const char *path, struct stat *out, int result) {
    if (told.path && result == 0 && !strcmp(path, told.path)) {
        told.tell(out);
    }
    return result;
}

BHT_WRAP(char *, realpath, const char *path, char *out) {
    realpaths++;
    return __real_realpath(path, out);
}

BHT_WRAP(int, stat, const char *path, struct stat *out) {
    stats++;
    return tell(path, out, __real_stat(path, out));
}

BHT_WRAP(int, lstat, const char *path, struct stat *out) {
    lstats++;
    return tell(path, out, __real_lstat(path, out));
}

BHT_WRAP(int, access, const char *path, int mode) {
    accesses++;
    return __real_access(path, mode);
}

static const char *const folder = place.root;

static void make_folder(void) {
    BHT_EQ(chdir(folder), 0);
    BHT_EQ(mkdir("one", 0700), 0);
    BHT_EQ(mkdir("two", 0700), 0);
    BHT_EQ(symlink("one", "link"), 0);
    write_file("x", "", 0);
    write_file("k", "", 0); /* the kernel of all jobs */
}

static void expect_path(struct bhi_paths *paths, const char *path, const char *real) {
    char *normal = bhi_paths_normalize(paths, path);
    BHT_STR_EQ(normal, real);
    free(normal);
}

/* Jobs that read from some folders and write into others. */
TEST(test_paths_ask_once) {
    struct bhi_paths paths;
    char path[40], real[40];
    make_folder();
    BHT_TRUE(bhi_paths_init(&paths, folder));
    realpaths = lstats = 0;
    for (int i = 0; i < 500; i++) {
        snprintf(path, sizeof path, "two/../link/%d", i);
        snprintf(real, sizeof real, "one/%d", i);
        expect_path(&paths, "x", "x");
        expect_path(&paths, path, real);
    }
    BHT_EQ(realpaths, 2);    /* of both folders */
    BHT_EQ(lstats, 500 + 1); /* of each file */
    bhi_paths_fini(&paths);
}

/* A link that leads to nothing yet, from its folder or from the root. */
TEST(test_links_to_what_is_to_be_made) {
    struct bhi_paths paths;
    char target[128];
    make_folder();
    snprintf(target, sizeof target, "%s/two/made", folder);
    BHT_EQ(symlink("./made", "one/near"), 0);
    BHT_EQ(symlink("../two/made", "one/far"), 0);
    BHT_EQ(symlink(target, "one/whole"), 0);
    BHT_TRUE(bhi_paths_init(&paths, folder));
    expect_path(&paths, "one/near", "one/made");
    expect_path(&paths, "one/far", "two/made");
    expect_path(&paths, "one/whole", "two/made");
    bhi_paths_fini(&paths);
}

/* Whatever they are called. */
TEST(test_four_folders) {
    struct bhi_paths paths;
    char path[40];
    make_folder();
    BHT_TRUE(bhi_paths_init(&paths, folder));
    for (int names = 0; names < 60; names++) {
        realpaths = 0;
        for (int i = 0; i < 40; i++) {
            snprintf(path, sizeof path, "none-%d-%d/%d", names, i % 4, i);
            expect_path(&paths, path, path);
        }
        BHT_EQ(realpaths, 4);
    }
    bhi_paths_fini(&paths);
}

/* A folder's link may lead elsewhere when more jobs come. */
TEST(test_links_of_later_jobs) {
    make_folder();
    open_unkept("jobs.jsonl");
    add("a>link/w");
    BHT_EQ(unlink("link"), 0);
    BHT_EQ(symlink("two", "link"), 0);
    add("b>link/w");
    expect_refused("c>two/w", "\"c\" writes two/w, which \"b\"");
}

static void expect_no_fault(void *user, size_t index, const char *cause,
                            const struct bhi_complaint *why) {
    BHT_FAIL("job %zu: %s", index, why->text);
}

static void count_faults(void *user, size_t index, const char *cause,
                         const struct bhi_complaint *why) {
    BHT_STR_HAS(why->text, "output no/");
    BHT_STR_HAS(why->text, ": its folder: No such file or directory (looked for in ");
    BHT_STR_HAS(why->text, "); make it first");
    ++*(int *)user;
}

TEST(test_preflight_asks_once) {
    struct jobs jobs = {.count = 0};
    const struct bhi_preflight_own own = {.jobs = "/dev/stdin"};
    char words[96];
    int faults = 0;
    make_folder();
    for (int i = 0; i < 60; i++) {
        snprintf(words, sizeof words, "%d<x>%s/link/%d", i, folder, i);
        BHT_TRUE(read_jobs(&jobs, words));
    }
    stats = accesses = lstats = 0;
    BHT_TRUE(bhi_preflight(jobs.specs, jobs.count, NULL, folder, &own, expect_no_fault, NULL));
    /* Once of what the jobs share: the folder under both of its names, the input, the kernel, the
     * file of jobs. */
    BHT_EQ(stats, 60 + 5);
    BHT_EQ(accesses, 4);
    BHT_LE(lstats, 2 * 60 + 10); /* before the first job, and then; some are remembered */
    free_jobs(&jobs);
    /* What is wrong with a folder is wrong with each output in it. */
    BHT_TRUE(read_jobs(&jobs, "a>no/a b>no/b"));
    BHT_TRUE(!bhi_preflight(jobs.specs, jobs.count, NULL, folder, &own, count_faults, &faults));
    BHT_EQ(faults, 2);
    free_jobs(&jobs);
}

/* -- which file it is ---------------------------------------------------------------------------- */

static struct stat other;          /* the file that it is compared with */
static bool its_device, its_inode; /* are those of the other one */
enum { KINSHIPS = 4 };             /* both in the last */

static void tell_kinship(struct stat *out) {
    out->st_dev = other.st_dev + !its_device;
    out->st_ino = other.st_ino + !its_inode;
}

/* From now on what is at |path| is kin to what is at |of|. Returns whether it is the same. */
static bool be_kin(int kinship, const char *path, const char *of) {
    told.path = NULL;
    BHT_EQ(stat(of, &other), 0);
    its_device = kinship & 1;
    its_inode = kinship & 2;
    told.path = path;
    told.tell = tell_kinship;
    return its_device && its_inode;
}

static void count_own(void *user, size_t index, const char *cause,
                      const struct bhi_complaint *why) {
    ++*(int *)user;
}

/* Another file system has the same inodes. Nothing is written over the jobs, or among the state, by
 * whatever name; a batch is known by its jobs' file, and a folder may be replaced. */
TEST(test_a_file_is_known_by_its_device_and_inode) {
    for (int kinship = 0; kinship < KINSHIPS; kinship++) {
        char path[128];
        renew_place();
        make_folder();
        put_file("jobs.jsonl", "", 0600);
        put_file("w", "", 0600);
        const struct bhi_preflight_own own = {.jobs = "jobs.jsonl", .state = "two"};
        static const char *const outputs[] = {"a>w", "a>one/w"};
        for (int i = 0; i < 2; i++) {
            struct jobs jobs = {.count = 0};
            int faults = 0;
            BHT_TRUE(read_jobs(&jobs, outputs[i]));
            snprintf(path, sizeof path, "%s/%s", folder, i ? "one/" : "w");
            const bool same = be_kin(kinship, path, i ? own.state : own.jobs);
            (void)bhi_preflight(jobs.specs, jobs.count, NULL, folder, &own, count_own, &faults);
            BHT_EQ(faults, same);
            told.path = NULL;
            free_jobs(&jobs);
        }
        /* Of the recorded batch, by another name. */
        fresh("a");
        close_queue();
        bool same = be_kin(kinship, "w", "jobs.jsonl");
        const struct bhi_queue_options options = {
            .folder = place.folder, .jobs_path = "w", .retries = 2};
        BHT_EQ(bhi_queue_open(&options, &queue, &complaint), BHI_QUEUE_BAD_INPUT);
        BHT_STR_HAS(complaint.text, same ? "has a batch of 1 job" : "has another batch, of ");
        /* The folder that is open. */
        snprintf(path, sizeof path, "%s/one", folder);
        struct bhi_state_folder opened = {.fd = open(path, O_RDONLY | O_CLOEXEC), .real = path};
        same = be_kin(kinship, path, path);
        BHT_EQ(bhi_state_folder_check(&opened, path, &complaint), same);
        told.path = NULL;
        close(opened.fd);
    }
}

static int changed; /* field of a file */

static void tell_change(struct stat *out) {
    out->st_dev += changed == 0;
    out->st_ino += changed == 1;
    out->st_size += changed == 2;
    out->st_mtim.tv_nsec ^= changed == 3;
    out->st_ctim.tv_nsec ^= changed == 4;
}

/* An input is read again if anything of its file has changed, or if it is to be in another memory. */
TEST(test_an_input_is_known_by_all_of_its_file) {
    enum { SAME = 5, ON_DEVICE, ON_ANOTHER, CHANGES };
    struct bhi_runner_options options = {.memory = BH_MEMORY_HOST, .streams = 2};
    struct bhi_runner runner = {.options = &options};
    struct bhi_work work = {.runner = &runner};
    struct bhi_input_identity first, next;
    make_folder();
    BHT_TRUE(bhi_input_identify(&work, "x", &first));
    told.path = "x";
    told.tell = tell_change;
    for (changed = 0; changed < CHANGES; changed++) {
        options.memory = changed < ON_DEVICE ? BH_MEMORY_HOST : BH_MEMORY_DEVICE;
        work.stream = changed == ON_ANOTHER ? 2 : 1;
        BHT_TRUE(bhi_input_identify(&work, "x", &next));
        BHT_EQ(memcmp(&first, &next, sizeof next) == 0, changed == SAME);
        first = changed == ON_DEVICE ? next : first;
    }
    told.path = NULL;
}

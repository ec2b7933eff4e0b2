/* The order of bulkhead batch --executor slurm: what can be refused without Slurm is refused first;
 * then the folder is made and locked, the shards are written, and array.json; only then is anything
 * submitted. A killed submitter leaves either no array.json, and then nothing is submitted, or one
 * that says what to look for. */
#include "cli/batch_slurm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/owner.h"
#include "batch/journal/state_folder.h"
#include "batch/slurm/cut.h"
#include "batch/slurm/watch.h"
#include "batch/slurm/whole.h"
#include "cli/batch_jobs.h"
#include "tool/clock.h"
#include "tool/complain.h"
#include "tool/content_hash.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/report/quantity.h"

#define SECOND UINT64_C(1000000000)

/* A submission that a killed submitter had begun may end this much later. */
#define LOCK_PATIENCE (60 * SECOND)
/* More bytes of blank lines than this are not written to keep the numbers of the lines. */
#define MOST_BLANK (UINT64_C(256) << 20)

struct slurm_batch {
    const struct bhi_batch_slurm *options;
    const struct bhi_args *args;
    bool resume, keep_going, retry_failed, has_array;
    const char *given_state; /* as it was given, for messages */
    struct bhi_state_folder folder;
    int lock;
    struct bhi_batch_jobs jobs;
    struct bhi_cut cut;
    struct bhi_slurm_array array;
    char jobs_hash[65], shape_hash[65];
    uint64_t began_ns, shown_ns;
    struct bhi_watch watch;
};

static int out_of_memory(void) {
    bhi_complain("batch", "out of memory");
    return BHI_EXIT_ENVIRON;
}

/* -- jobs ---------------------------------------------------------------------------------------
 */

/* What the queue checks between lines: ids, dependencies, circles, files that two jobs share. */
static int check_graph(struct slurm_batch *batch) {
    const struct bhi_queue_options options = {.jobs_path = batch->jobs.path, .dry_run = true};
    struct bhi_queue *queue = NULL;
    struct bhi_complaint complaint;
    enum bhi_queue_result result = bhi_queue_open(&options, &queue, &complaint);
    if (result == BHI_QUEUE_OK) {
        result = bhi_queue_add(queue, batch->jobs.specs, batch->jobs.count, &complaint);
    }
    bhi_queue_close(queue);
    if (result == BHI_QUEUE_OK) {
        return BHI_EXIT_READY;
    }
    bhi_complain("batch", "%s", complaint.text);
    return result == BHI_QUEUE_BAD_INPUT ? BHI_EXIT_USAGE : BHI_EXIT_ENVIRON;
}

static int judge_lines(struct slurm_batch *batch) {
    const size_t bad = batch->jobs.bad;
    bhi_batch_jobs_tell(&batch->jobs);
    if (bad && !batch->keep_going) {
        bhi_complain("batch",
                     "%zu line%s %s bad: nothing was submitted; --keep-going skips bad lines", bad,
                     bad == 1 ? "" : "s", bad == 1 ? "is" : "are");
        return BHI_EXIT_USAGE;
    }
    if (!batch->jobs.count) {
        bhi_complain("batch", "%s: it contains no jobs", batch->jobs.name);
        return BHI_EXIT_USAGE;
    }
    return BHI_EXIT_READY;
}

/* A batch that goes on has been checked: a finished job needs its files no more. */
static int read_jobs(struct slurm_batch *batch, const char *cwd) {
    int exit_status = bhi_batch_jobs_read(&batch->jobs, batch->args->operands[0]);
    if (exit_status == BHI_EXIT_READY && !batch->has_array) {
        (void)((batch->keep_going && (exit_status = bhi_batch_jobs_drop_orphans(
                                          &batch->jobs, NULL)) != BHI_EXIT_READY) ||
               (exit_status = bhi_batch_jobs_check(&batch->jobs, NULL, cwd, batch->given_state)) !=
                   BHI_EXIT_READY ||
               (batch->keep_going &&
                (exit_status = bhi_batch_jobs_drop_orphans(&batch->jobs, NULL)) != BHI_EXIT_READY));
    } else if (exit_status == BHI_EXIT_READY && batch->keep_going) {
        exit_status = bhi_batch_jobs_drop_orphans(&batch->jobs, NULL);
    }
    if (exit_status == BHI_EXIT_READY) {
        (void)((exit_status = judge_lines(batch)) != BHI_EXIT_READY ||
               (exit_status = check_graph(batch)) != BHI_EXIT_READY);
    }
    return exit_status;
}

static void to_hex(struct bhi_content_hash *hash, char out[65]) {
    uint8_t bytes[BHI_CONTENT_HASH];
    bhi_content_hash_end(hash, bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    }
}

/* The cut follows from the shape alone: ids, dependencies, their order. */
static bool hash_jobs(struct slurm_batch *batch) {
    struct bhi_content_hash *jobs = bhi_content_hash_begin(), *shape = bhi_content_hash_begin();
    if (!jobs || !shape) {
        bhi_content_hash_end(jobs, NULL);
        bhi_content_hash_end(shape, NULL);
        return false;
    }
    for (size_t i = 0; i < batch->jobs.count; i++) {
        const struct bhi_job_spec *spec = &batch->jobs.specs[i];
        bhi_content_hash_add(jobs, spec->text, strlen(spec->text) + 1);
        bhi_content_hash_add(shape, spec->id, strlen(spec->id) + 1);
        for (size_t k = 0; k < spec->depends_count; k++) {
            bhi_content_hash_add(shape, spec->depends_on[k], strlen(spec->depends_on[k]) + 1);
        }
        bhi_content_hash_add(shape, "", 1);
    }
    to_hex(jobs, batch->jobs_hash);
    to_hex(shape, batch->shape_hash);
    return true;
}

/* -- the folder ---------------------------------------------------------------------------------
 */

/* One submitter uses a folder at a time. sbatch inherits the lock, so that a new submitter waits
 * until a submission that an earlier one had begun has ended. */
static int lock_folder(struct slurm_batch *batch) {
    const uint64_t end = bhi_clock_ns() + LOCK_PATIENCE;
    char holder[128] = "", name[64] = "?";
    BHI_AUTO_FREE char *path = bhi_whole_text("%s/lock", batch->folder.real);
    batch->lock = path ? open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
    if (batch->lock < 0) {
        bhi_complain("batch", "%s/lock cannot be opened: %s", batch->given_state, strerror(errno));
        return BHI_EXIT_ENVIRON;
    }
    while (flock(batch->lock, LOCK_EX | LOCK_NB) != 0) {
        const ssize_t size = pread(batch->lock, holder, sizeof holder - 1, 0);
        int pid = 0;
        char machine[64] = "";
        holder[size > 0 ? size : 0] = '\0';
        (void)gethostname(name, sizeof name - 1);
        const bool is_gone = sscanf(holder, "%d %63s", &pid, machine) == 2 && pid > 1 &&
                             !strcmp(machine, name) && kill(pid, 0) != 0 && errno == ESRCH;
        if (!is_gone || bhi_clock_ns() > end || !bhi_slurm_pause(SECOND / 10)) {
            bhi_complain("batch",
                         "%s is in use by another bulkhead batch (%.100s): wait for its end, or "
                         "give another folder (--state)",
                         batch->given_state, *holder ? holder : "not known");
            return BHI_EXIT_ENVIRON;
        }
    }
    (void)gethostname(name, sizeof name - 1);
    if (ftruncate(batch->lock, 0) != 0 || dprintf(batch->lock, "%d %s", getpid(), name) < 0) {
        bhi_complain("batch", "%s/lock cannot be written: %s", batch->given_state, strerror(errno));
        return BHI_EXIT_ENVIRON;
    }
    return BHI_EXIT_READY;
}

static bool has_file(const char *folder, const char *name) {
    BHI_AUTO_FREE char *path = bhi_whole_text("%s/%s", folder, name);
    return !path || access(path, F_OK) == 0 || errno != ENOENT;
}

static bool is_plain(const char *path) {
    for (const unsigned char *c = (const unsigned char *)path; *c; c++) {
        if (*c < 0x20 || *c == 0x7f || *c == '\\') {
            return false;
        }
    }
    return true;
}

static int open_folder(struct slurm_batch *batch) {
    struct bhi_complaint complaint;
    if (has_file(batch->given_state, "batch.db")) {
        bhi_complain("batch", "%s has a batch that runs on one machine: give another folder",
                     batch->given_state);
        return BHI_EXIT_USAGE;
    }
    if (!bhi_state_folder_open(batch->given_state, &batch->folder, &complaint)) {
        bhi_complain("batch", "%s", complaint.text);
        return batch->folder.is_none ? BHI_EXIT_USAGE : BHI_EXIT_ENVIRON;
    }
    if (!is_plain(batch->folder.real)) {
        bhi_complain("batch", "%s: Slurm takes no \\ and no control characters in paths",
                     batch->given_state);
        return BHI_EXIT_USAGE;
    }
    return lock_folder(batch);
}

/* Jobs stand in the lines that they have in the file, so that messages name those. */
static bool write_shard(struct slurm_batch *batch, uint32_t shard,
                        struct bhi_complaint *complaint) {
    const struct bhi_batch_jobs *jobs = &batch->jobs;
    BHI_AUTO_FREE char *folder = bhi_slurm_shard_path(batch->folder.real, shard, "");
    BHI_AUTO_FREE char *path = bhi_slurm_shard_path(batch->folder.real, shard, "jobs.jsonl");
    char *text = NULL;
    size_t size = 0, line = 1;
    FILE *stream = folder && path ? open_memstream(&text, &size) : NULL;
    if (!stream) {
        return bhi_refuse(complaint, "out of memory");
    }
    const size_t last = jobs->count ? jobs->specs[jobs->count - 1].line : 0;
    const bool keeps_lines = (uint64_t)last * batch->cut.shards <= MOST_BLANK;
    for (size_t i = 0; i < jobs->count; i++) {
        if (batch->cut.shard[i] != shard) {
            continue;
        }
        for (; keeps_lines && line < jobs->specs[i].line; line++) {
            fputc('\n', stream);
        }
        fprintf(stream, "%s\n", jobs->specs[i].text);
        line++;
    }
    const bool good = !ferror(stream);
    const bool closed = fclose(stream) == 0;
    const bool written =
        good && closed
            ? (mkdir(folder, 0700) == 0 || errno == EEXIST
                   ? bhi_whole_write(path, text, size, 0600, complaint)
                   : bhi_refuse(complaint, "%.600s cannot be made: %s", folder, strerror(errno)))
            : bhi_refuse(complaint, "out of memory");
    free(text);
    return written;
}

static bool write_shards(struct slurm_batch *batch, struct bhi_complaint *complaint) {
    BHI_AUTO_FREE char *shards = bhi_whole_text("%s/shards", batch->folder.real);
    BHI_AUTO_FREE char *quarantine = bhi_whole_text("%s/quarantine", batch->folder.real);
    if (!shards || !quarantine) {
        return bhi_refuse(complaint, "out of memory");
    }
    if ((mkdir(shards, 0700) != 0 && errno != EEXIST) ||
        (mkdir(quarantine, 0700) != 0 && errno != EEXIST)) {
        return bhi_refuse(complaint, "%.600s cannot be made: %s", shards, strerror(errno));
    }
    for (uint32_t i = 0; i < batch->cut.shards; i++) {
        if (!write_shard(batch, i, complaint)) {
            return false;
        }
    }
    return true;
}

/* -- array.json ---------------------------------------------------------------------------------
 */

static void free_texts(char **texts) {
    for (size_t i = 0; texts && texts[i]; i++) {
        free(texts[i]);
    }
    free(texts);
}

/* Does the shards' own `bulkhead batch` get this option? */
static bool is_passed(enum bhi_option_id option) {
    return !bhi_batch_slurm_has(option) && option != BHI_BATCH_STATE &&
           option != BHI_BATCH_RESUME && option != BHI_BATCH_RETRY_FAILED &&
           option != BHI_BATCH_KEEP_GOING;
}

static const char *sbatch_name(enum bhi_option_id option) {
    return option == BHI_BATCH_PARTITION ? "partition"
           : option == BHI_BATCH_GRES    ? "gres"
           : option == BHI_BATCH_TIME    ? "time"
                                         : NULL;
}

/* Takes the options of this call, also on --resume: a longer --time is a reason to resume. */
static bool take_options(struct slurm_batch *batch) {
    struct bhi_slurm_array *array = &batch->array;
    const size_t most = batch->args->item_count + 2;
    size_t passed = 0, given = 0;
    free_texts(array->batch_options);
    free_texts(array->sbatch_options);
    array->batch_options = calloc(most, sizeof *array->batch_options);
    array->sbatch_options = calloc(most, sizeof *array->sbatch_options);
    bool good = array->batch_options && array->sbatch_options;
    for (size_t i = 0; good && i < batch->args->item_count; i++) {
        const struct bhi_arg *item = &batch->args->items[i];
        const char *name = bhi_options[item->option].name;
        if (item->option == BHI_BATCH_SBATCH_OPTION) {
            good = (array->sbatch_options[given++] = strdup(item->value));
        } else if (sbatch_name(item->option)) {
            good = (array->sbatch_options[given++] =
                        bhi_whole_text("--%s=%s", sbatch_name(item->option), item->value));
        } else if (is_passed(item->option)) {
            good = (array->batch_options[passed++] =
                        item->value ? bhi_whole_text("--%s=%s", name, item->value)
                                    : bhi_whole_text("--%s", name));
        }
    }
    return good;
}

static char *own_program(void) {
    char path[PATH_MAX];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    if (size <= 0) {
        return NULL;
    }
    path[size] = '\0';
    return strdup(path);
}

static bool make_array(struct slurm_batch *batch, const char *cwd,
                       struct bhi_complaint *complaint) {
    struct bhi_slurm_array *array = &batch->array;
    if (!batch->has_array) {
        if (!bhi_array_init(array, complaint)) {
            return false;
        }
        array->cwd = strdup(cwd);
        array->total = batch->jobs.count;
        array->shards = batch->cut.shards;
        array->sizes = calloc(batch->cut.shards + 1u, sizeof *array->sizes);
        if (!array->sizes || !array->cwd) {
            return bhi_refuse(complaint, "out of memory");
        }
        memcpy(array->sizes, batch->cut.sizes, batch->cut.shards * sizeof *array->sizes);
    }
    memcpy(array->jobs_hash, batch->jobs_hash, sizeof array->jobs_hash);
    memcpy(array->shape_hash, batch->shape_hash, sizeof array->shape_hash);
    free(array->jobs);
    free(array->program);
    array->jobs = strdup(batch->jobs.path);
    array->program = own_program();
    if (!array->jobs || !array->program || !take_options(batch)) {
        return bhi_refuse(complaint, "out of memory");
    }
    return true;
}

/* -- running ------------------------------------------------------------------------------------
 */

static void on_tell(void *user, const char *line) {
    (void)user;
    bhi_complain("batch", "%s", line);
}

static void on_wait(void *user, const char *why) {
    (void)user;
    bhi_complain("batch", "%s; it is tried again", why);
}

/* A line every ten seconds. */
static void on_progress(void *user, const struct bhi_watch_progress *progress) {
    struct slurm_batch *batch = user;
    const uint64_t now = bhi_clock_ns();
    const bool over = progress->ended + progress->stuck == progress->shards;
    if (!over && now - batch->shown_ns < 10 * SECOND) {
        return;
    }
    batch->shown_ns = now;
    fprintf(stderr, "%u of %u shards ended", progress->ended, progress->shards);
    if (progress->stuck) {
        fprintf(stderr, ", %u stuck", progress->stuck);
    }
    if (progress->running + progress->pending) {
        fprintf(stderr, ", %u running, %u pending", progress->running, progress->pending);
    }
    if (progress->pending && *progress->reason) {
        fprintf(stderr, " (%s)", progress->reason);
    }
    if (progress->due) {
        fprintf(stderr, ", %u to be submitted again", progress->due);
    }
    fputc('\n', stderr);
}

static bool wants_cancel(const struct slurm_batch *batch) {
    char answer[16];
    if (batch->options->on_interrupt != BHI_INTERRUPT_ASKS) {
        return batch->options->on_interrupt == BHI_INTERRUPT_CANCELS;
    }
    if (bhi_interrupt_signal() != SIGINT || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        return false;
    }
    fprintf(stderr, "\nCancel the job array? Otherwise it goes on. [y/N] ");
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static int end_interrupted(struct slurm_batch *batch) {
    struct bhi_complaint complaint;
    if (!wants_cancel(batch)) {
        bhi_complain("batch",
                     "SIG%s: what is submitted goes on; --resume follows it again, --resume "
                     "--on-interrupt cancel and a signal end it",
                     sigabbrev_np(bhi_interrupt_signal()));
    } else if (bhi_watch_cancel(&batch->watch, &complaint)) {
        bhi_complain("batch", "SIG%s: the job array is cancelled; --resume continues",
                     sigabbrev_np(bhi_interrupt_signal()));
    } else {
        bhi_complain("batch", "SIG%s: the job array is not cancelled: %s",
                     sigabbrev_np(bhi_interrupt_signal()), complaint.text);
    }
    return bhi_interrupt_exit_status();
}

/* The sums of what the shards' journals say. */
static int report(struct slurm_batch *batch) {
    uint64_t of[BHI_JOB_STATES] = {0}, known = 0;
    uint32_t stuck = 0, again = 0;
    char number[BHI_QUANTITY], done[BHI_QUANTITY], took[BHI_QUANTITY];
    for (uint32_t i = 0; i < batch->array.shards; i++) {
        struct bhi_slurm_shard_look look;
        bhi_slurm_shard_look(batch->folder.real, i, &look);
        stuck += batch->watch.shards[i].state == BHI_WATCH_STUCK;
        for (int s = 0; s < BHI_JOB_STATES; s++) {
            of[s] += look.counts.of[s];
            known += look.counts.of[s];
        }
    }
    for (size_t i = 1; i < batch->array.round_count; i++) {
        again += batch->array.rounds[i].count;
    }
    const uint64_t bad = batch->jobs.bads_count, total = batch->array.total + bad;
    const uint64_t failed = of[BHI_JOB_FAILED] + bad;
    const uint64_t left =
        batch->array.total - of[BHI_JOB_DONE] - of[BHI_JOB_FAILED] - of[BHI_JOB_QUARANTINED];
    (void)known;
    printf("%s job%s: %s done, %llu failed", bhi_quantity_count(number, total),
           total == 1 ? "" : "s", bhi_quantity_count(done, of[BHI_JOB_DONE]),
           (unsigned long long)failed);
    if (of[BHI_JOB_QUARANTINED]) {
        printf(", %llu quarantined", (unsigned long long)of[BHI_JOB_QUARANTINED]);
    }
    if (left) {
        printf(", %llu left", (unsigned long long)left);
    }
    printf("\n%u shard%s in %s", batch->array.shards, batch->array.shards == 1 ? "" : "s",
           bhi_quantity_time(took, bhi_clock_ns() - batch->began_ns));
    if (again) {
        printf(", %u of their tasks submitted again", again);
    }
    putchar('\n');
    if (stuck) {
        bhi_complain("batch",
                     "%u shard%s stuck: fix what is said above, then repeat the command with "
                     "--resume",
                     stuck, stuck == 1 ? " is" : "s are");
        return BHI_EXIT_ENVIRON;
    }
    return failed + of[BHI_JOB_QUARANTINED] ? BHI_EXIT_POISONED : BHI_EXIT_READY;
}

static int watch_batch(struct slurm_batch *batch) {
    struct bhi_complaint complaint;
    batch->watch = (struct bhi_watch){.state = batch->folder.real,
                                      .array = &batch->array,
                                      .client = {.patience_ns = batch->options->patience_ns,
                                                 .lock = batch->lock,
                                                 .waits = on_wait},
                                      .poll_ns = batch->options->poll_ns,
                                      .retry_failed = batch->retry_failed,
                                      .tell = on_tell,
                                      .progress = on_progress,
                                      .user = batch};
    batch->shown_ns = bhi_clock_ns();
    switch (bhi_watch_run(&batch->watch, batch->has_array, &complaint)) {
    case BHI_WATCH_DONE:
        return report(batch);
    case BHI_WATCH_INTERRUPTED:
        return end_interrupted(batch);
    case BHI_WATCH_REFUSED:
        bhi_complain("batch", "%s; nothing was submitted", complaint.text);
        return BHI_EXIT_USAGE;
    case BHI_WATCH_DOWN:
        bhi_complain("batch", "the controller of Slurm was not reached: %s; --resume tries again",
                     complaint.text);
        return BHI_EXIT_ENVIRON;
    case BHI_WATCH_FAILED:
        break;
    }
    bhi_complain("batch", "%s; --resume continues", complaint.text);
    return BHI_EXIT_ENVIRON;
}

/* Compares what is given with what was submitted. Other lines are taken only where nothing runs by
 * the old ones. */
static int compare(struct slurm_batch *batch, bool *out_changed) {
    *out_changed = batch->has_array && strcmp(batch->jobs_hash, batch->array.jobs_hash) != 0;
    if (batch->has_array && (strcmp(batch->shape_hash, batch->array.shape_hash) != 0 ||
                             batch->array.shards != batch->cut.shards)) {
        bhi_complain("batch",
                     "%s has a batch of other jobs or of another number of shards (%u): ids, "
                     "dependencies, their order and --shards stay as they were; give another "
                     "folder (--state) for others",
                     batch->given_state, batch->array.shards);
        return BHI_EXIT_USAGE;
    }
    if (*out_changed && !batch->retry_failed) {
        bhi_complain("batch",
                     "%s has changed since it was submitted: --retry-failed takes other lines for "
                     "failed jobs",
                     batch->jobs.name);
        return BHI_EXIT_USAGE;
    }
    return BHI_EXIT_READY;
}

static int prepare(struct slurm_batch *batch) {
    struct bhi_complaint complaint;
    bool changed = false;
    int exit_status;
    BHI_AUTO_FREE char *here = getcwd(NULL, 0);
    BHI_AUTO_FREE char *cwd = batch->array.cwd ? strdup(batch->array.cwd)
                              : here           ? strdup(here)
                                               : NULL;
    if (!cwd) {
        bhi_complain("batch", "the current folder cannot be found");
        return BHI_EXIT_ENVIRON;
    }
    if ((exit_status = read_jobs(batch, cwd)) != BHI_EXIT_READY) {
        return exit_status;
    }
    if (!hash_jobs(batch) || !bhi_cut_make(batch->jobs.specs, batch->jobs.count,
                                           (uint32_t)batch->options->shards, &batch->cut)) {
        return out_of_memory();
    }
    (void)((exit_status = compare(batch, &changed)) != BHI_EXIT_READY ||
           (exit_status = batch->has_array ? BHI_EXIT_READY : open_folder(batch)) !=
               BHI_EXIT_READY);
    if (exit_status != BHI_EXIT_READY) {
        return exit_status;
    }
    if (!make_array(batch, cwd, &complaint) ||
        ((!batch->has_array || changed) && !write_shards(batch, &complaint)) ||
        !bhi_slurm_shard_write_script(batch->folder.real, batch->array.id, batch->array.program,
                                      batch->array.batch_options, &complaint) ||
        !bhi_array_save(&batch->array, batch->folder.real, &complaint)) {
        bhi_complain("batch", "%s", complaint.text);
        return BHI_EXIT_ENVIRON;
    }
    return BHI_EXIT_READY;
}

/* A folder with a batch is opened before its file is read, a new one is made after that. */
static int load(struct slurm_batch *batch) {
    struct bhi_complaint complaint;
    int exit_status;
    if (!has_file(batch->given_state, "array.json")) {
        return BHI_EXIT_READY;
    }
    if (!batch->resume) {
        bhi_complain("batch",
                     "%s has a batch already: continue it (--resume), or give another folder "
                     "(--state)",
                     batch->given_state);
        return BHI_EXIT_USAGE;
    }
    if ((exit_status = open_folder(batch)) != BHI_EXIT_READY) {
        return exit_status;
    }
    if (bhi_array_load(&batch->array, batch->folder.real, &complaint) != BHI_ARRAY_LOADED) {
        bhi_complain("batch", "%s", complaint.text);
        return BHI_EXIT_ENVIRON;
    }
    batch->has_array = true;
    (void)unlinkat(batch->folder.fd, "cancel", 0); /* of --cancel: it goes on now */
    return BHI_EXIT_READY;
}

int bhi_batch_slurm_run(const struct bhi_batch_slurm *slurm, const struct bhi_args *args,
                        const char *state) {
    struct bhi_complaint complaint;
    int exit_status = BHI_EXIT_ENVIRON;
    struct slurm_batch batch = {.options = slurm,
                                .args = args,
                                .resume = bhi_args_has(args, BHI_BATCH_RESUME),
                                .keep_going = bhi_args_has(args, BHI_BATCH_KEEP_GOING),
                                .retry_failed = bhi_args_has(args, BHI_BATCH_RETRY_FAILED),
                                .given_state = state,
                                .folder = {.fd = -1},
                                .lock = -1,
                                .began_ns = bhi_clock_ns()};
    if (!bhi_slurm_check(&complaint)) {
        bhi_complain("batch", "%s", complaint.text);
    } else {
        (void)((exit_status = load(&batch)) != BHI_EXIT_READY ||
               (exit_status = prepare(&batch)) != BHI_EXIT_READY ||
               (exit_status = watch_batch(&batch)) != BHI_EXIT_READY);
    }
    bhi_batch_jobs_tell(&batch.jobs);
    bhi_watch_fini(&batch.watch);
    bhi_array_free(&batch.array);
    bhi_cut_free(&batch.cut);
    bhi_batch_jobs_free(&batch.jobs);
    bhi_fd_close(&batch.lock);
    bhi_state_folder_close(&batch.folder);
    return exit_status;
}

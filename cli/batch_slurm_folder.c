/* The state folder of a batch on a cluster: its lock, and what the shards get. */
#include "cli/batch_slurm.h"
#include "cli/batch_slurm_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/owner.h"
#include "batch/journal/host.h"
#include "batch/slurm/whole.h"
#include "tool/clock.h"
#include "tool/complain.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"

#define SECOND UINT64_C(1000000000)

/* A submission that a killed submitter had begun may end this much later. */
#define LOCK_PATIENCE (60 * SECOND)
/* More bytes of blank lines than this are not written to keep the numbers of the lines. */
#define MOST_BLANK (UINT64_C(256) << 20)

bool bhi_batch_slurm_load_array(struct bhi_slurm_batch *batch, struct bhi_complaint *complaint) {
    if (bhi_array_load(&batch->array, batch->folder.real, complaint) != BHI_ARRAY_LOADED) {
        return false;
    }
    const size_t rounds = batch->array.round_count;
    batch->has_array = true;
    batch->watch.unsure = rounds && !batch->array.rounds[rounds - 1].job;
    return true;
}

bool bhi_batch_slurm_holder_is_gone(const char *holder) {
    int pid = 0;
    char machine[BHI_HOST_NAME] = "", here[BHI_HOST_NAME];
    _Static_assert(BHI_HOST_NAME == 65, "the format below");
    return sscanf(holder, "%d %64s", &pid, machine) == 2 && pid > 1 &&
           !strcmp(machine, bhi_host_name(here)) && kill(pid, 0) != 0 && errno == ESRCH;
}

/* One submitter uses a folder at a time. sbatch inherits the lock, so that a new submitter waits
 * until a submission that an earlier one had begun has ended. */
static int lock_folder(struct bhi_slurm_batch *batch) {
    const uint64_t end = bhi_clock_ns() + LOCK_PATIENCE;
    char holder[128] = "", name[BHI_HOST_NAME];
    struct bhi_complaint complaint;
    BHI_AUTO_FREE char *path = bhi_whole_text("%s/lock", batch->folder.real);
    batch->lock = path ? open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
    if (batch->lock < 0) {
        return bhi_complain_environ("batch", "%s/lock cannot be opened: %s", batch->given_state,
                                    strerror(errno));
    }
    while (flock(batch->lock, LOCK_EX | LOCK_NB) != 0) {
        const ssize_t size = pread(batch->lock, holder, sizeof holder - 1, 0);
        holder[size > 0 ? size : 0] = '\0';
        const bool waits = bhi_batch_slurm_holder_is_gone(holder) && bhi_clock_ns() <= end;
        if (waits && !bhi_interrupt_pause(SECOND / 10)) {
            if (bhi_batch_slurm_has_file(batch->given_state, BHI_ARRAY_FILE)) {
                (void)bhi_batch_slurm_load_array(batch, &complaint);
            }
            return bhi_batch_slurm_end_interrupted(batch);
        }
        if (!waits) {
            return bhi_complain_environ(
                "batch",
                "%s is in use by another bulkhead batch (%.100s): wait for its end, or "
                "give another folder (--state)",
                batch->given_state, *holder ? holder : "not known");
        }
    }
    if (ftruncate(batch->lock, 0) != 0 ||
        dprintf(batch->lock, "%d %s", getpid(), bhi_host_name(name)) < 0) {
        return bhi_complain_environ("batch", "%s/lock cannot be written: %s", batch->given_state,
                                    strerror(errno));
    }
    return BHI_EXIT_READY;
}

bool bhi_batch_slurm_has_file(const char *folder, const char *name) {
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

static int refuse_place(const char *path) {
    return bhi_complain_usage("batch", "%s: Slurm takes no \\ and no control characters in paths",
                              path);
}

/* Is the path plain that a new folder |path| will have? */
static bool will_be_plain(const char *path) {
    BHI_AUTO_FREE char *copy = strdup(path);
    BHI_AUTO_FREE char *parent = copy ? realpath(dirname(copy), NULL) : NULL;
    return is_plain(path) && (!parent || is_plain(parent));
}

static bool takes(const char *text, const char *what, const char *records) {
    if (!text || bhi_array_takes(text)) {
        return true;
    }
    bhi_complain("batch",
                 "%s %s is not UTF-8, and " BHI_ARRAY_FILE
                 ", which %s it, is: rename it, or choose another",
                 what, text, records);
    return false;
}

char *bhi_batch_slurm_own_program(struct bhi_complaint *complaint) {
    static const char link[] = "/proc/thread-self/exe", deleted[] = " (deleted)";
    char path[PATH_MAX];
    struct stat running, there;
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0 || stat(link, &running) != 0) {
        bhi_refuse(complaint, "the path of this program cannot be found: %s", strerror(errno));
        return NULL;
    }
    path[size] = '\0';
    if (stat(path, &there) == 0 && there.st_dev == running.st_dev &&
        there.st_ino == running.st_ino) {
        char *copy = strdup(path);
        if (!copy) {
            bhi_refuse(complaint, "out of memory");
        }
        return copy;
    }
    /* What the kernel says behind the path of a file that is there no more. */
    const size_t bare = (size_t)size - (sizeof deleted - 1);
    if ((size_t)size > sizeof deleted && !strcmp(path + bare, deleted)) {
        path[bare] = '\0';
    }
    bhi_refuse(complaint,
               "%.600s, which tasks are to start, was %s while it ran: give the command again",
               path, stat(path, &there) == 0 ? "replaced by another program" : "removed");
    return NULL;
}

int bhi_batch_slurm_check_texts(const struct bhi_slurm_batch *batch, const char *cwd) {
    struct bhi_complaint complaint;
    BHI_AUTO_FREE char *program = bhi_batch_slurm_own_program(&complaint);
    if (!program) {
        return bhi_complain_environ("batch", "%s", complaint.text);
    }
    bool good = takes(cwd, "the current folder", "records") &&
                takes(batch->args->operands[0], "the path of the jobs", "records") &&
                takes(program, "the path of this program", "records") &&
                /* with staged files, or where tasks cannot start in the current folder */
                takes(batch->given_state, "the state folder", "may record");
    for (size_t i = 0; good && i < batch->args->item_count; i++) {
        const struct bhi_arg *item = &batch->args->items[i];
        good = !bhi_batch_slurm_records(item->option) ||
               takes(item->value, "the option's value", "records");
    }
    if (!good) {
        return BHI_EXIT_USAGE;
    }
    if (!is_plain(cwd)) {
        return refuse_place(cwd);
    }
    return will_be_plain(batch->given_state) ? BHI_EXIT_READY : refuse_place(batch->given_state);
}

int bhi_batch_slurm_open_folder(struct bhi_slurm_batch *batch) {
    struct bhi_complaint complaint;
    if (bhi_batch_slurm_has_file(batch->given_state, "batch.db")) {
        return bhi_complain_usage("batch",
                                  "%s has a batch that runs on one machine: give another folder",
                                  batch->given_state);
    }
    if (!bhi_state_folder_open(batch->given_state, &batch->folder, &complaint)) {
        bhi_complain("batch", "%s", complaint.text);
        return batch->folder.is_none ? BHI_EXIT_USAGE : BHI_EXIT_ENVIRON;
    }
    if (!is_plain(batch->folder.real)) {
        return refuse_place(batch->given_state);
    }
    return lock_folder(batch);
}

/* Jobs stand in the lines that they have in the file, so that messages name those. */
static bool write_shard(const struct bhi_slurm_batch *batch, const struct bhi_places *places,
                        uint32_t shard, struct bhi_complaint *complaint) {
    const struct bhi_batch_jobs *jobs = &batch->jobs;
    BHI_AUTO_FREE char *folder = bhi_slurm_shard_path(batch->folder.real, shard, "");
    BHI_AUTO_FREE char *path = bhi_slurm_shard_path(batch->folder.real, shard, "jobs.jsonl");
    char *text = NULL;
    size_t size = 0, line = 1;
    bool lost = false;
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
        BHI_AUTO_FREE char *staged = places ? bhi_places_rewrite(places, &jobs->specs[i]) : NULL;
        if (places && !staged) {
            lost = true;
            break;
        }
        fprintf(stream, "%s\n", staged ? staged : jobs->specs[i].text);
        line++;
    }
    const bool good = !ferror(stream) && !lost;
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

bool bhi_batch_slurm_write_shards(const struct bhi_slurm_batch *batch,
                                  const struct bhi_places *places,
                                  struct bhi_complaint *complaint) {
    BHI_AUTO_FREE char *shards = bhi_whole_text("%s/shards", batch->folder.real);
    BHI_AUTO_FREE char *quarantine = bhi_whole_text("%s/quarantine", batch->folder.real);
    if (!shards || !quarantine) {
        return bhi_refuse(complaint, "out of memory");
    }
    const char *const folders[] = {shards, quarantine};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        const int error = bhi_folder_make(AT_FDCWD, folders[i], 0700);
        if (error) {
            return bhi_refuse(complaint, "%.600s cannot be made: %s", folders[i], strerror(-error));
        }
    }
    for (uint32_t i = 0; i < batch->cut.shards; i++) {
        if (!write_shard(batch, places, i, complaint)) {
            return false;
        }
    }
    const int error = bhi_folder_sync(AT_FDCWD, shards); /* once for the names of all */
    return !error || bhi_refuse(complaint, "%.600s: %s", shards, strerror(-error));
}

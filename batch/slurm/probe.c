#include "batch/slurm/probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/owner.h"
#include "batch/graph/names.h"
#include "batch/runner/cancel.h"
#include "batch/slurm/sbatch_option.h"
#include "batch/slurm/shard.h"
#include "batch/slurm/whole.h"
#include "tool/clock.h"
#include "tool/content_hash.h"
#include "tool/interrupt.h"

#define SECOND UINT64_C(1000000000)
/* Pauses between two looks for the answer: an eighth of the time that has passed, within these. */
#define LEAST_TICK (SECOND / 50)
#define MOST_TICK  (SECOND / 5)
/* How long a network file system may take to show what another machine has written. */
#define SETTLES (10 * SECOND)

enum { MOST_ANSWER = 256 << 20, MOST_HEADER = 1024 };

/* |answer| comes last, and by a rename, so that the others are complete when it is there. What is
 * written has the probe's nonce in its name: the probe of a killed submitter may run only now. */
static const char script[] =
    "#!/bin/sh\n"
    "# Looks on a machine of the cluster for what a batch needs. Written by bulkhead batch.\n"
    "probe=%s/probe\n"
    "program=%s\n"
    "nonce=%s\n"
    "said=$probe/.answer.$SLURM_JOB_ID\n"
    "xargs -0 -r stat -L --printf='%%f %%s %%Y %%n\\0' < \"$probe/files\" > "
    "\"$probe/seen.files.$nonce\" 2> /dev/null\n"
    "xargs -0 -r sh -c 'for f; do [ -e \"$f/%s\" ] && [ -w \"$f\" ] && printf \"%%s\\0\" \"$f\"; "
    "done' sh < \"$probe/folders\" > \"$probe/seen.folders.$nonce\"\n"
    "{ echo \"${SLURMD_NODENAME:-$(uname -n)}\"; \"$program\" version | head -n 1; } > \"$said\" "
    "2> /dev/null && mv -f \"$said\" \"$probe/answer.$nonce\"\n";

static char *probe_path(const struct bhi_probe *probe, const char *name) {
    return bhi_whole_text("%s/probe%s%s", probe->state, *name ? "/" : "", name);
}

/* The path of what this probe writes. */
static char *answer_path(const struct bhi_probe *probe, const char *name) {
    return bhi_whole_text("%s/probe/%s.%s", probe->state, name, probe->record.nonce);
}

enum { MARK = 40 };

/* The same for each probe of a state folder: what a killed one leaves, the next one removes. */
static void name_mark(const struct bhi_probe *probe, char out[MARK]) {
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (const unsigned char *c = (const unsigned char *)probe->state; *c; c++) {
        hash = (hash ^ *c) * UINT64_C(1099511628211);
    }
    snprintf(out, MARK, ".bulkhead-probe-%016llx", (unsigned long long)hash);
}

/* Another folder may have the same name there, such as /tmp: an output's folder is recognised by an
 * empty file that is in it while the probe runs. */
static bool mark_folders(const struct bhi_probe *probe, bool marks,
                         struct bhi_complaint *complaint) {
    char name[MARK];
    name_mark(probe, name);
    for (size_t i = 0; i < probe->count; i++) {
        if (!probe->paths[i].folder) {
            continue;
        }
        BHI_AUTO_FREE char *path = bhi_whole_text("%s/%s", probe->paths[i].path, name);
        if (!path) {
            return bhi_refuse(complaint, "out of memory");
        }
        BHI_AUTO_FD mark =
            marks ? open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600) : -1;
        if (marks && mark < 0) {
            return bhi_refuse(complaint, "%.600s cannot be made: %s", path, strerror(errno));
        }
        if (!marks) {
            (void)unlink(path);
        }
    }
    return true;
}

/* Writes the files, or the folders, each with a zero byte at its end. */
static bool write_list(const struct bhi_probe *probe, bool folders, const char *name,
                       struct bhi_complaint *complaint) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    bool good = stream;
    for (size_t i = 0; good && i < probe->count; i++) {
        if (probe->paths[i].folder == folders) {
            good = fwrite(probe->paths[i].path, strlen(probe->paths[i].path) + 1, 1, stream) == 1;
        }
    }
    good = stream && fclose(stream) == 0 && good;
    BHI_AUTO_FREE char *path = probe_path(probe, name);
    good = good && path ? bhi_whole_write(path, text, size, 0600, complaint)
                        : bhi_refuse(complaint, "out of memory");
    free(text);
    return good;
}

/* The script of a probe with |nonce|. The caller owns it; NULL if out of memory. */
static char *make_script(const struct bhi_probe *probe, const char *nonce) {
    BHI_AUTO_FREE char *folder = bhi_slurm_shard_quote(probe->state);
    BHI_AUTO_FREE char *program = bhi_slurm_shard_quote(probe->array->program);
    char mark[MARK];
    name_mark(probe, mark);
    return folder && program ? bhi_whole_text(script, folder, program, nonce, mark) : NULL;
}

static bool write_script(const struct bhi_probe *probe, struct bhi_complaint *complaint) {
    BHI_AUTO_FREE char *path = probe_path(probe, "probe.sh");
    BHI_AUTO_FREE char *text = make_script(probe, probe->record.nonce);
    return text && path ? bhi_whole_write(path, text, strlen(text), 0700, complaint)
                        : bhi_refuse(complaint, "out of memory");
}

/* Removes what earlier probes of this state folder have written. */
static void clean(const char *path) {
    static const char *const old[] = {"answer", "seen.", ".answer.", "log"};
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        for (size_t i = 0; i < sizeof old / sizeof old[0]; i++) {
            if (!strncmp(entry->d_name, old[i], strlen(old[i]))) {
                (void)unlinkat(dirfd(folder), entry->d_name, 0);
            }
        }
    }
    if (folder) {
        closedir(folder);
    }
}

/* Everything that the answer depends on, and where the probe runs. */
static bool hash_question(const struct bhi_probe *probe, char out[65]) {
    BHI_AUTO_FREE char *text = make_script(probe, "");
    struct bhi_content_hash *hash = text ? bhi_content_hash_begin() : NULL;
    uint8_t bytes[BHI_CONTENT_HASH];
    if (!hash) {
        return false;
    }
    bhi_content_hash_add(hash, text, strlen(text) + 1);
    for (size_t i = 0; i < probe->count; i++) {
        const struct bhi_probe_path *path = &probe->paths[i];
        bhi_content_hash_add(hash, path->folder ? "d" : "f", 1);
        bhi_content_hash_add(hash, path->path, strlen(path->path) + 1);
    }
    for (size_t i = 0; probe->array->sbatch_options[i]; i++) {
        const char *option = probe->array->sbatch_options[i];
        bhi_content_hash_add(hash, option, strlen(option) + 1);
    }
    bhi_content_hash_end(hash, bytes);
    sodium_bin2hex(out, 65, bytes, sizeof bytes);
    return true;
}

/* Writes what a new probe needs. |record.asks| is set. */
static bool begin(struct bhi_probe *probe, struct bhi_complaint *complaint) {
    uint8_t random[BHI_PROBE_NONCE / 2];
    struct bhi_probe_record *record = &probe->record;
    BHI_AUTO_FREE char *folder = probe_path(probe, "");
    if (!folder) {
        return bhi_refuse(complaint, "out of memory");
    }
    randombytes_buf(random, sizeof random);
    sodium_bin2hex(record->nonce, sizeof record->nonce, random, sizeof random);
    memcpy(record->id, probe->array->id, sizeof record->id);
    record->job = 0;
    record->submitted_ns = bhi_clock_calendar_ns();
    clean(folder);
    return write_list(probe, false, "files", complaint) &&
           write_list(probe, true, "folders", complaint) && write_script(probe, complaint);
}

/* Forgets |record|, and cancels its probe, in whatever state that is. */
static void drop(const struct bhi_probe_record *record, const char *state) {
    char comment[BHI_PROBE_COMMENT];
    struct bhi_complaint inner;
    uint32_t tasks;
    bhi_probe_record_comment(record, comment);
    (void)bhi_slurm_cancel_comment(comment, &tasks, &inner);
    bhi_probe_record_remove(state);
}

void bhi_probe_drop(const char *state) {
    struct bhi_probe_record record;
    if (bhi_probe_record_load(&record, state)) {
        drop(&record, state);
    }
}

static bool prepare(struct bhi_probe *probe, struct bhi_complaint *complaint) {
    struct bhi_probe_record old;
    BHI_AUTO_FREE char *folder = probe_path(probe, "");
    if (!folder) {
        return bhi_refuse(complaint, "out of memory");
    }
    if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
        return bhi_refuse(complaint, "%.600s cannot be made: %s", folder, strerror(errno));
    }
    if (sodium_init() < 0) {
        return bhi_refuse(complaint, "libsodium cannot start");
    }
    if (!hash_question(probe, probe->record.asks)) {
        return bhi_refuse(complaint, "out of memory");
    }
    if (bhi_probe_record_load(&old, probe->state)) {
        probe->taken_up =
            !strcmp(old.id, probe->array->id) && !strcmp(old.asks, probe->record.asks);
        if (probe->taken_up) {
            probe->record = old;
            return true;
        }
        drop(&old, probe->state);
    }
    return begin(probe, complaint);
}

/* -- the answer ------------------------------------------------------------------------------ */

static bool is_same(const char *path, unsigned mode, unsigned long long size, long long seconds) {
    struct stat here;
    if (stat(path, &here) != 0 || (here.st_mode & S_IFMT) != (mode & S_IFMT)) {
        return false;
    }
    return S_ISDIR(here.st_mode) ||
           ((unsigned long long)here.st_size == size && here.st_mtime == seconds);
}

/* Calls |take| for the path of each record that is whole. */
static size_t take_records(struct bhi_probe *probe, const char *text, size_t size, bool folders) {
    struct bhi_names names;
    BHI_AUTO_FREE size_t *index = calloc(probe->count + 1, sizeof *index);
    size_t seen = 0;
    bool good = index;
    bhi_names_init(&names);
    for (size_t i = 0; good && i < probe->count; i++) {
        if (probe->paths[i].folder == folders &&
            bhi_names_find(&names, probe->paths[i].path) == BHI_NO_NAME) {
            index[names.count] = i;
            good = bhi_names_add(&names, probe->paths[i].path) != BHI_NO_NAME;
        }
    }
    for (const char *at = text, *end; good && at < text + size; at = end + 1) {
        unsigned mode = 0;
        unsigned long long bytes = 0;
        long long seconds = 0;
        int used = 0;
        end = memchr(at, '\0', (size_t)(text + size - at));
        if (!end) {
            break; /* cut short */
        }
        if (!folders && (sscanf(at, "%x %llu %lld%n", &mode, &bytes, &seconds, &used) != 3 ||
                         at[used] != ' ')) {
            continue;
        }
        const uint32_t name = bhi_names_find(&names, folders ? at : at + used + 1);
        if (name != BHI_NO_NAME) {
            struct bhi_probe_path *path = &probe->paths[index[name]];
            path->is_seen = folders || is_same(path->path, mode, bytes, seconds);
            seen += path->is_seen;
        }
    }
    bhi_names_fini(&names);
    return seen;
}

size_t bhi_probe_take_files(struct bhi_probe *probe, const char *text, size_t size) {
    return take_records(probe, text, size, false);
}

static void take_list(struct bhi_probe *probe, const char *name, bool folders) {
    size_t size = 0;
    int error;
    BHI_AUTO_FREE char *path = answer_path(probe, name);
    BHI_AUTO_FREE char *text = path ? bhi_whole_read(path, MOST_ANSWER, &size, &error) : NULL;
    if (text) {
        (void)take_records(probe, text, size, folders);
    }
}

static bool take_answer(struct bhi_probe *probe) {
    size_t size = 0;
    int error;
    BHI_AUTO_FREE char *path = answer_path(probe, "answer");
    BHI_AUTO_FREE char *text = path ? bhi_whole_read(path, MOST_HEADER, &size, &error) : NULL;
    if (!text) {
        return false;
    }
    const size_t node = strcspn(text, "\n");
    snprintf(probe->node, sizeof probe->node, "%.*s", (int)node, text);
    const char *version = text + node + (text[node] == '\n');
    snprintf(probe->version, sizeof probe->version, "%.*s", (int)strcspn(version, "\n"), version);
    take_list(probe, "seen.files", false);
    take_list(probe, "seen.folders", true);
    return true;
}

/* -- waiting --------------------------------------------------------------------------------- */

struct last_seen {
    uint64_t job;
    struct bhi_slurm_task task;
    bool found;
};

static void see(void *user, const struct bhi_slurm_task *task) {
    struct last_seen *seen = user;
    if (task->array == seen->job) {
        seen->task = *task;
        seen->found = true;
    }
}

/* Has somebody asked for the end (bulkhead batch --cancel)? */
static bool is_cancelled(const struct bhi_probe *probe) {
    BHI_AUTO_FREE char *path = bhi_whole_text("%s/" BHI_CANCEL_FILE, probe->state);
    return path && access(path, F_OK) == 0;
}

/* The probe is cancelled if that can be done soon. One that runs all the same harms nobody. */
static enum bhi_slurm_probe_result end(struct bhi_probe *probe, enum bhi_slurm_probe_result result,
                                       struct bhi_complaint *complaint) {
    struct bhi_complaint inner;
    probe->may_come = !bhi_slurm_cancel(probe->record.job, &inner);
    bhi_refuse(complaint, "interrupted");
    return result;
}

/* The task has ended, or is gone, and its answer has not come. */
static enum bhi_slurm_probe_result judge_silence(const struct bhi_probe *probe,
                                                 const struct last_seen *seen,
                                                 struct bhi_complaint *complaint) {
    char line[300];
    const char *node = seen->found && *seen->task.node ? seen->task.node : "a node";
    if (seen->found && seen->task.state == BHI_SLURM_CANCELLED) {
        bhi_refuse(complaint, "the probe was cancelled");
        return BHI_PROBE_REFUSED;
    }
    BHI_AUTO_FREE char *log = probe_path(probe, "log");
    if (log && *bhi_slurm_log_end(log, line, sizeof line)) {
        bhi_refuse(complaint,
                   "a probe ended on %.63s (%s) without an answer: its log, %.400s, ends with: %s",
                   node, seen->found ? seen->task.name : "gone", log, line);
        return BHI_PROBE_REFUSED;
    }
    bhi_refuse(
        complaint,
        "the state folder %.400s is not shared: a probe ran on %.63s (%s), and what it wrote "
        "there is not here; give a folder on a file system that the machines share (--state)",
        probe->state, node, seen->found ? seen->task.name : "gone");
    return BHI_PROBE_NOT_SHARED;
}

/* Nothing more is heard of the probe. */
static enum bhi_slurm_probe_result give_up(struct bhi_probe *probe,
                                           enum bhi_slurm_probe_result result, const char *why,
                                           struct bhi_complaint *complaint) {
    struct bhi_complaint inner;
    probe->may_come = !bhi_slurm_cancel(probe->record.job, &inner);
    bhi_refuse(complaint, "%.600s%s", why,
               probe->may_come ? " (the probe may still be in Slurm's queue)" : "");
    return result;
}

/* What has been heard of a probe. */
struct wait {
    struct last_seen seen;
    uint64_t failing_ns, bad_ns, running_ns, ended_ns; /* since when; 0: it is not so */
};

/* Asks Slurm once. Returns BHI_PROBE_DONE if the wait goes on. */
static enum bhi_slurm_probe_result look(struct bhi_probe *probe, struct wait *wait,
                                        const char *comment, struct bhi_complaint *complaint) {
    struct bhi_complaint inner;
    const struct bhi_slurm_client *client = probe->client;
    const struct bhi_slurm_task *task = &wait->seen.task;
    wait->seen.found = false;
    const enum bhi_slurm_result result = bhi_slurm_tasks(comment, see, &wait->seen, &inner);
    const uint64_t now = bhi_clock_ns();
    if (result == BHI_SLURM_DONE) {
        wait->failing_ns = wait->bad_ns = 0;
        wait->ended_ns = !wait->seen.found || task->state >= BHI_SLURM_ENDED ? now : 0;
        if (wait->ended_ns && !bhi_whole_try(probe->state, complaint)) {
            return BHI_PROBE_FAILED; /* the probe could not answer there either */
        }
        const bool runs = wait->seen.found && task->state == BHI_SLURM_RUNNING;
        wait->running_ns = !runs ? 0 : wait->running_ns ? wait->running_ns : now;
        if (wait->seen.found && task->state == BHI_SLURM_PENDING && probe->waits) {
            probe->waits(probe->user, task->reason);
        }
        if (runs && now - wait->running_ns > probe->runs_ns) {
            BHI_AUTO_FREE char *why = bhi_whole_text(
                "the probe has run on %s for %llu s and has not answered; "
                "%s/probe/log may say why, and --no-probe submits without one",
                task->node, (unsigned long long)(probe->runs_ns / SECOND), probe->state);
            return give_up(probe, BHI_PROBE_REFUSED, why ? why : "out of memory", complaint);
        }
    } else if (result != BHI_SLURM_INTERRUPTED) {
        const bool is_first = !wait->failing_ns;
        wait->failing_ns = is_first ? now : wait->failing_ns;
        if (bhi_slurm_is_bad(result, BHI_SLURM_BAD_NS, &wait->bad_ns) ||
            now - wait->failing_ns >= client->patience_ns) {
            return give_up(probe, BHI_PROBE_DOWN, inner.text, complaint);
        }
        if (is_first && client->waits) {
            client->waits(client->user, inner.text);
        }
    }
    return BHI_PROBE_DONE;
}

/* Has the answer had time to appear? A script that failed has written none. */
static bool is_settled(const struct bhi_probe *probe, const struct wait *wait) {
    char line[8];
    BHI_AUTO_FREE char *log = probe_path(probe, "log");
    return wait->ended_ns && (bhi_clock_ns() - wait->ended_ns > SETTLES ||
                              (wait->seen.found && !strcmp(wait->seen.task.name, "FAILED") && log &&
                               *bhi_slurm_log_end(log, line, sizeof line)));
}

static enum bhi_slurm_probe_result await(struct bhi_probe *probe, const char *comment,
                                         struct bhi_complaint *complaint) {
    struct wait wait = {.seen = {.job = probe->record.job}};
    const uint64_t began_ns = bhi_clock_ns();
    uint64_t look_ns = began_ns + probe->poll_ns;
    while (!take_answer(probe)) {
        const uint64_t now = bhi_clock_ns();
        if (is_cancelled(probe)) {
            return end(probe, BHI_PROBE_CANCELLED, complaint);
        }
        if (is_settled(probe, &wait)) {
            return judge_silence(probe, &wait.seen, complaint);
        }
        if (!wait.ended_ns && now >= look_ns) {
            look_ns = now + probe->poll_ns;
            const enum bhi_slurm_probe_result result = look(probe, &wait, comment, complaint);
            if (result != BHI_PROBE_DONE) {
                return result;
            }
        }
        const uint64_t tick_ns = (bhi_clock_ns() - began_ns) / 8;
        if (!bhi_interrupt_pause(tick_ns < LEAST_TICK  ? LEAST_TICK
                                 : tick_ns > MOST_TICK ? MOST_TICK
                                                       : tick_ns)) {
            return end(probe, BHI_PROBE_INTERRUPTED, complaint);
        }
    }
    return BHI_PROBE_DONE;
}

/* -- submitting ------------------------------------------------------------------------------ */

/* The probe gets the array's options, so that it runs where the array will. */
static enum bhi_slurm_result submit(struct bhi_probe *probe, const char *comment, bool asks_first,
                                    struct bhi_complaint *complaint) {
    char *const *given = probe->array->sbatch_options;
    size_t count = 0;
    while (given[count]) {
        count++;
    }
    BHI_AUTO_FREE const char **options = calloc(2 * count + 4, sizeof *options);
    BHI_AUTO_FREE char *path = probe_path(probe, "probe.sh");
    BHI_AUTO_FREE char *log = probe_path(probe, "log");
    BHI_AUTO_FREE char *output = log ? bhi_slurm_output(log, "") : NULL;
    if (!options || !path || !output) {
        bhi_refuse(complaint, "out of memory");
        return BHI_SLURM_DOWN;
    }
    size_t used = bhi_slurm_put_options(given, options);
    options[used++] = "--job-name=bulkhead-probe";
    options[used++] = "--chdir=/";
    options[used++] = output;
    const struct bhi_slurm_submission submission = {
        .comment = comment, .script = path, .options = options, .asks_first = asks_first};
    return bhi_slurm_submit(probe->client, &submission, &probe->record.job, complaint);
}

static void see_any(void *user, const struct bhi_slurm_task *task) {
    struct last_seen *seen = user;
    seen->task = *task;
    seen->found = true;
}

/* What has become of an earlier submitter's probe. */
enum earlier { ANSWERED, WAITS, GONE, NOT_KNOWN };

static enum earlier find_earlier(struct bhi_probe *probe, const char *comment) {
    struct last_seen seen = {.found = false};
    struct bhi_complaint inner;
    const enum bhi_slurm_result result = bhi_slurm_tasks(comment, see_any, &seen, &inner);
    if (take_answer(probe)) {
        return ANSWERED;
    }
    if (result == BHI_SLURM_DONE && seen.found) {
        probe->record.job = seen.task.array;
        return seen.task.state < BHI_SLURM_ENDED ? WAITS : GONE;
    }
    if (!probe->record.job) {
        return NOT_KNOWN; /* its sbatch may have been on its way */
    }
    return result == BHI_SLURM_DONE ? GONE : WAITS;
}

/* Submits the probe that is recorded, and waits for it. */
static enum bhi_slurm_probe_result run(struct bhi_probe *probe, bool asks_first,
                                       struct bhi_complaint *complaint) {
    char comment[BHI_PROBE_COMMENT];
    uint32_t tasks;
    struct bhi_complaint inner;
    bhi_probe_record_comment(&probe->record, comment);
    if (!bhi_probe_record_save(&probe->record, probe->state, complaint)) {
        return BHI_PROBE_FAILED;
    }
    switch (submit(probe, comment, asks_first, complaint)) {
    case BHI_SLURM_DONE:
        /* A full disk is found out later; its comment leads to the probe, too. */
        (void)bhi_probe_record_save(&probe->record, probe->state, &inner);
        return await(probe, comment, complaint);
    case BHI_SLURM_BAD:
        return BHI_PROBE_REFUSED;
    case BHI_SLURM_DOWN:
        probe->may_come = true;
        return BHI_PROBE_DOWN;
    case BHI_SLURM_CUT_OFF:
        /* Only the probe: with --resume the batch's tasks may run. */
        probe->may_come = !bhi_slurm_cancel_comment(comment, &tasks, &inner) || !tasks;
        break;
    case BHI_SLURM_INTERRUPTED:
        break;
    }
    return BHI_PROBE_INTERRUPTED;
}

static enum bhi_slurm_probe_result take_up(struct bhi_probe *probe,
                                           struct bhi_complaint *complaint) {
    char comment[BHI_PROBE_COMMENT];
    struct bhi_complaint inner;
    bhi_probe_record_comment(&probe->record, comment);
    switch (find_earlier(probe, comment)) {
    case ANSWERED:
        return BHI_PROBE_DONE;
    case WAITS:
        (void)bhi_probe_record_save(&probe->record, probe->state, &inner);
        if (probe->found) {
            probe->found(probe->user, probe->record.job);
        }
        return await(probe, comment, complaint);
    case NOT_KNOWN:
        return run(probe, true, complaint);
    case GONE:
        break;
    }
    return begin(probe, complaint) ? run(probe, false, complaint) : BHI_PROBE_FAILED;
}

enum bhi_slurm_probe_result bhi_probe_run(struct bhi_probe *probe,
                                          struct bhi_complaint *complaint) {
    struct bhi_complaint inner;
    enum bhi_slurm_probe_result result = BHI_PROBE_FAILED;
    if (prepare(probe, complaint) && mark_folders(probe, true, complaint)) {
        result = probe->taken_up ? take_up(probe, complaint) : run(probe, false, complaint);
    } else {
        probe->may_come = probe->taken_up;
    }
    if (!probe->may_come) { /* otherwise it may still look for the marks */
        (void)mark_folders(probe, false, &inner);
        bhi_probe_record_remove(probe->state);
    }
    return result;
}

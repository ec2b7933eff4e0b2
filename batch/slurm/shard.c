#include "batch/slurm/shard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/owner.h"
#include "batch/queue/queue.h"
#include "batch/runner/cancel.h"
#include "batch/slurm/array.h"
#include "batch/slurm/whole.h"
#include "tool/text.h"

enum { MOST_ENDING = 512, NAMED = 3, LOG_END = 8192 };
/* How the line begins that a task prints first. */
#define TASK_LINE "-- task "

char *bhi_slurm_shard_path(const char *state, uint32_t shard, const char *name) {
    return bhi_whole_text("%s/shards/%04u%s%s", state, shard, *name ? "/" : "", name);
}

char *bhi_slurm_shard_quote(const char *text) {
    size_t quotes = 0;
    for (const char *c = text; *c; c++) {
        quotes += *c == '\'';
    }
    char *out = malloc(strlen(text) + 3 * quotes + 3), *at = out;
    if (!out) {
        return NULL;
    }
    *at++ = '\'';
    for (const char *c = text; *c; c++) {
        if (*c == '\'') {
            memcpy(at, "'\\''", 4);
            at += 4;
        } else {
            *at++ = *c;
        }
    }
    *at++ = '\'';
    *at = '\0';
    return out;
}

/* A signal of Slurm goes to all processes of a task. The shell outlives it, to say how the batch
 * has ended. A second task of the same shard ends at once: the state folder is in use. */
static const char script[] =
    "#!/bin/sh\n"
    "# One shard of a batch: a task of a job array. Written by bulkhead batch.\n"
    "batch=%s\n"
    "state=%s\n"
    "program=%s\n"
    "round=$1\n"
    "shift\n"
    "shard=$state/shards/$(printf %%04d \"$SLURM_ARRAY_TASK_ID\")\n"
    "node=${SLURMD_NODENAME:-$(uname -n)}\n"
    "echo \"" TASK_LINE
    "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID on $node, $(date -u +%%FT%%TZ)\"\n"
    "trap : TERM INT\n"
    "status=0\n"
    "\"$program\" batch \"$shard/jobs.jsonl\" --state \"$shard/state\" --resume \\\n"
    "    --quarantine \"$state/quarantine\" --cancel-file \"$state/" BHI_CANCEL_FILE
    "\"%s \"$@\" || status=$?\n"
    "said=$shard/.ended.$SLURM_JOB_ID\n"
    "echo \"$batch $round $SLURM_ARRAY_JOB_ID $status $node\" > \"$said\" &&\n"
    "    mv -f \"$said\" \"$shard/ended\"\n"
    "rm -f \"$said\"\n" /* of a folder that is full */
    "exit \"$status\"\n";

bool bhi_slurm_shard_write_script(const char *state, const char *id, const char *program,
                                  char *const *batch_options, struct bhi_complaint *complaint) {
    char *words = NULL, *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&words, &size);
    bool good = stream;
    for (size_t i = 0; good && batch_options[i]; i++) {
        BHI_AUTO_FREE char *quoted = bhi_slurm_shard_quote(batch_options[i]);
        good = quoted && fprintf(stream, " %s", quoted) > 0;
    }
    good = stream && fclose(stream) == 0 && good;
    BHI_AUTO_FREE char *folder = bhi_slurm_shard_quote(state);
    BHI_AUTO_FREE char *command = bhi_slurm_shard_quote(program);
    BHI_AUTO_FREE char *path = bhi_whole_text("%s/task.sh", state);
    if (good && folder && command && path) {
        text = bhi_whole_text(script, id, folder, command, words);
    }
    free(words);
    good = text ? bhi_whole_write(path, text, strlen(text), 0700, complaint)
                : bhi_refuse(complaint, "out of memory");
    free(text);
    return good;
}

bool bhi_slurm_shard_parse_ending(const char *text, struct bhi_slurm_shard_ending *out_ending) {
    struct bhi_slurm_shard_ending ending = {0};
    unsigned long long round, array;
    int used = 0;
    if (sscanf(text, "%32[0-9a-f] %llu %llu %d %63[^\n]%n", ending.id, &round, &array,
               &ending.status, ending.node, &used) != 5 ||
        strcmp(text + used, "\n") != 0 || strlen(ending.id) != BHI_ARRAY_ID ||
        round >= BHI_ARRAY_ROUNDS || array > UINT32_MAX || ending.status < 0 ||
        ending.status > 255) {
        return false;
    }
    ending.round = round;
    ending.array = array;
    *out_ending = ending;
    return array > 0;
}

void bhi_slurm_shard_read_ending(const char *state, uint32_t shard,
                                 struct bhi_slurm_shard_ending *out_ending) {
    size_t size = 0;
    int error;
    BHI_AUTO_FREE char *path = bhi_slurm_shard_path(state, shard, "ended");
    BHI_AUTO_FREE char *text = path ? bhi_whole_read(path, MOST_ENDING, &size, &error) : NULL;
    if (!text || !bhi_slurm_shard_parse_ending(text, out_ending)) {
        *out_ending = (struct bhi_slurm_shard_ending){0};
    }
}

bool bhi_slurm_shard_any_has_run(const char *state) {
    BHI_AUTO_FREE char *shards = bhi_whole_text("%s/shards", state);
    DIR *folder = shards ? opendir(shards) : NULL;
    if (!folder) {
        return !shards || errno != ENOENT;
    }
    bool has = false;
    for (const struct dirent *entry; !has && (entry = readdir(folder));) {
        BHI_AUTO_FREE char *path = bhi_whole_text("%s/state/batch.db", entry->d_name);
        has = !path || faccessat(dirfd(folder), path, F_OK, 0) == 0;
    }
    closedir(folder);
    return has;
}

bool bhi_slurm_shard_parse_log(const char *text) {
    static const char *const said[] = {"xceeded memory limit", "xceeded job memory limit",
                                       "oom_kill event", "oom-kill event"};
    bool found = false;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t length = strcspn(line, "\n");
        found &= strncmp(line, TASK_LINE, strlen(TASK_LINE)) != 0; /* another one begins */
        for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
            found |=
                !strncmp(line, "slurmstepd", 10) && memmem(line, length, said[i], strlen(said[i]));
        }
    }
    return found;
}

/* Reads the last bytes of a log; "" if there is none. */
static void read_end(const char *path, char text[LOG_END + 1]) {
    struct stat status;
    BHI_AUTO_FD fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t got = 0;
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        got = pread(fd, text, LOG_END, status.st_size > LOG_END ? status.st_size - LOG_END : 0);
    }
    text[got > 0 ? got : 0] = '\0';
}

bool bhi_slurm_shard_ran_out(const char *state, uint32_t shard) {
    char text[LOG_END + 1] = "";
    BHI_AUTO_FREE char *path = bhi_slurm_shard_path(state, shard, "log");
    if (path) {
        read_end(path, text);
    }
    return bhi_slurm_shard_parse_log(text);
}

const char *bhi_slurm_log_end(const char *path, char *out, size_t capacity) {
    char text[LOG_END + 1];
    char *line = text;
    read_end(path, text);
    for (size_t size = strlen(text);
         size > 0 && (text[size - 1] == '\n' || text[size - 1] == ' ');) {
        text[--size] = '\0';
    }
    if (strrchr(text, '\n')) {
        line = strrchr(text, '\n') + 1;
    }
    /* "-- task": it has begun, and printed nothing. */
    return bhi_text_clean(out, capacity, strncmp(line, TASK_LINE, strlen(TASK_LINE)) ? line : "");
}

struct naming {
    char *out;
    size_t used, capacity, count;
};

/* A job that has begun and not ended. It is recorded as running, or as cancelled by the signal that
 * comes before the kill; as waiting if its worker got that signal first. */
static bool name_cut_off(void *user, const struct bhi_job_record *record) {
    struct naming *naming = user;
    const bool cut_off = (record->state == BHI_JOB_RUNNING && !record->sealed) ||
                         record->state == BHI_JOB_CANCELLED || record->state == BHI_JOB_WAITING;
    if (cut_off && record->attempts > 0 && naming->count++ < NAMED) {
        const int length = snprintf(naming->out + naming->used, naming->capacity - naming->used,
                                    "%s%.50s", naming->used ? ", " : "", record->id);
        naming->used += length > 0 ? (size_t)length : 0;
    }
    return naming->used < naming->capacity;
}

enum bhi_queue_result bhi_slurm_shard_open(const char *state, uint32_t shard,
                                           struct bhi_queue **out_queue,
                                           struct bhi_complaint *complaint) {
    BHI_AUTO_FREE char *folder = bhi_slurm_shard_path(state, shard, "state");
    const struct bhi_queue_options options = {
        .folder = folder,
        .jobs_path = "jobs.jsonl",
        .resume = true,
        .dry_run = true,
        .silence_ns = 1}; /* the task that had it is known to have ended */
    if (!folder) {
        bhi_refuse(complaint, "out of memory");
        return BHI_QUEUE_ENVIRON;
    }
    return bhi_queue_open(&options, out_queue, complaint);
}

void bhi_slurm_shard_look(const char *state, uint32_t shard,
                          struct bhi_slurm_shard_look *out_look) {
    struct bhi_complaint complaint;
    struct bhi_queue *queue = NULL;
    struct naming naming = {.out = out_look->cut_off, .capacity = sizeof out_look->cut_off};
    BHI_AUTO_FREE char *database = bhi_slurm_shard_path(state, shard, "state/batch.db");
    *out_look = (struct bhi_slurm_shard_look){0};
    if (!database || access(database, F_OK) != 0) {
        return;
    }
    const enum bhi_queue_result result = bhi_slurm_shard_open(state, shard, &queue, &complaint);
    out_look->busy = result == BHI_QUEUE_BUSY;
    if (result != BHI_QUEUE_OK) {
        return;
    }
    bhi_queue_counts(queue, &out_look->counts);
    out_look->read = bhi_queue_each_job(queue, name_cut_off, &naming);
    bhi_queue_close(queue);
}

uint64_t bhi_slurm_shard_ended_jobs(const struct bhi_slurm_shard_look *look) {
    const uint64_t *of = look->counts.of;
    return of[BHI_JOB_DONE] + of[BHI_JOB_FAILED] + of[BHI_JOB_QUARANTINED];
}

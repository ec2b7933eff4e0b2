/* A batch of which only the probe has been submitted: what --status, --logs and --cancel do. */
#include "cli/batch_slurm.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/owner.h"
#include "batch/shards/shards.h"
#include "batch/slurm/array.h"
#include "batch/slurm/client.h"
#include "batch/slurm/probe_record.h"
#include "batch/slurm/whole.h"
#include "cli/batch_slurm_parts.h"
#include "tool/clock.h"
#include "tool/complain.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/json.h"
#include "tool/quantity.h"

#define SECOND UINT64_C(1000000000)
#define POLL   (10 * SECOND)
/* How long the shards may take to appear after the probe's answer: files are staged meanwhile. */
#define STAGES (60 * SECOND)

static bool has(const char *state, const char *name) {
    BHI_AUTO_FREE char *path = bhi_whole_text("%s/%s", state, name);
    return path && access(path, F_OK) == 0;
}

bool bhi_batch_probe_waits(const char *state) {
    struct bhi_probe_record record;
    return !has(state, "shards") && bhi_probe_record_load(&record, state);
}

/* -- what Slurm says ------------------------------------------------------------------------- */

struct look {
    struct bhi_slurm_task task;
    bool found;
    enum bhi_slurm_result result;
    struct bhi_complaint why;
};

static void see(void *user, const struct bhi_slurm_task *task) {
    struct look *look = user;
    look->task = *task;
    look->found = true;
}

static void ask(const struct bhi_probe_record *record, struct look *out_look) {
    char comment[BHI_PROBE_COMMENT];
    bhi_probe_record_comment(record, comment);
    out_look->found = false;
    out_look->result = bhi_slurm_tasks(comment, see, out_look, &out_look->why);
}

/* Has the submitter that signed the lock ended? */
static bool submitter_is_gone(const char *state) {
    char text[128] = "";
    BHI_AUTO_FREE char *path = bhi_whole_text("%s/lock", state);
    BHI_AUTO_FD fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    return fd >= 0 && read(fd, text, sizeof text - 1) > 0 && bhi_batch_slurm_holder_is_gone(text);
}

static const char *node_of(const struct look *look) {
    return *look->task.node ? look->task.node : "a node";
}

/* "waiting for the probe: job 18 is PENDING (Resources), submitted at …". The caller owns it. */
static char *describe(const char *state, const struct bhi_probe_record *record,
                      const struct look *look) {
    const struct bhi_slurm_task *task = &look->task;
    const unsigned long long job = look->found ? task->array : record->job;
    char date[BHI_QUANTITY];
    BHI_AUTO_FREE char *what =
        look->result != BHI_SLURM_DONE
            ? bhi_whole_text("job %llu, whose state is not known (%.300s)", job, look->why.text)
        : !look->found && !job ? bhi_whole_text("it is being submitted")
        : !look->found         ? bhi_whole_text("job %llu is not in Slurm's queue any more", job)
        : task->state >= BHI_SLURM_ENDED
            ? bhi_whole_text("job %llu has ended on %s (%s)", job, node_of(look), task->name)
        : task->state == BHI_SLURM_PENDING
            ? bhi_whole_text("job %llu is %s (%s)", job, task->name,
                             *task->reason ? task->reason : "None")
            : bhi_whole_text("job %llu is %s on %s", job, task->name, node_of(look));
    return what ? bhi_whole_text("waiting for the probe: %s, submitted at %s%s", what,
                                 bhi_quantity_date(date, record->submitted_ns),
                                 submitter_is_gone(state)
                                     ? "; its submitter has ended: repeat the command to continue"
                                     : "")
                : NULL;
}

static char *describe_now(const char *state, const struct bhi_probe_record *record) {
    struct look look;
    ask(record, &look);
    return describe(state, record, &look);
}

void bhi_batch_probe_note(const char *state) {
    struct bhi_probe_record record;
    BHI_AUTO_FREE char *line =
        bhi_probe_record_load(&record, state) ? describe_now(state, &record) : NULL;
    if (line) {
        bhi_complain("batch", "%s", line);
    }
}

/* -- what is asked for ----------------------------------------------------------------------- */

/* Waits until there is an array. Returns false if the probe has ended and none comes. */
static bool follow(const char *state) {
    BHI_AUTO_FREE char *last = NULL;
    struct bhi_probe_record record;
    uint64_t asked_ns = 0, ended_ns = 0;
    while (!has(state, BHI_ARRAY_FILE) && !bhi_interrupt_signal()) {
        const uint64_t now = bhi_clock_ns();
        const bool waits = bhi_probe_record_load(&record, state);
        ended_ns = waits ? 0 : ended_ns ? ended_ns : now;
        if (ended_ns && now - ended_ns > (submitter_is_gone(state) ? SECOND : STAGES)) {
            return false;
        }
        if (waits && (!asked_ns || now - asked_ns >= POLL)) {
            char *line = describe_now(state, &record);
            asked_ns = now;
            if (line && (!last || strcmp(line, last) != 0)) {
                fprintf(stderr, "%s\n", line);
            }
            free(last);
            last = line;
        }
        (void)bhi_interrupt_pause(SECOND / 5);
    }
    return true;
}

static void print_json(const struct bhi_probe_record *record, const struct look *look) {
    const bool found = look->result == BHI_SLURM_DONE && look->found;
    const uint64_t job = found ? look->task.array : record->job;
    json_t *probe = BHI_JSON({"job", job ? bhi_json_number(job) : json_null()},
                             {"state", bhi_json_text_or_null(found ? look->task.name : "")},
                             {"reason", bhi_json_text_or_null(found ? look->task.reason : "")},
                             {"host", bhi_json_text_or_null(found ? look->task.node : "")},
                             {"submitted", bhi_json_ms(record->submitted_ns)});
    bhi_json_print(json_pack("{s:s, s:o}", "waiting_for", "probe", "probe", probe));
}

int bhi_batch_probe_status(const char *state, const struct bhi_args *args, bool *out_go_on) {
    struct bhi_probe_record record;
    struct look look;
    *out_go_on = false;
    if (bhi_args_has(args, BHI_BATCH_FOLLOW)) {
        const bool comes = follow(state);
        if (bhi_interrupt_signal()) {
            return bhi_interrupt_exit_status();
        }
        if (!comes) {
            return bhi_complain_environ("batch",
                                        "%s: the probe has ended, and nothing is submitted", state);
        }
        *out_go_on = true;
        return BHI_EXIT_READY;
    }
    if (!bhi_probe_record_load(&record, state)) {
        *out_go_on = true; /* just now */
        return BHI_EXIT_READY;
    }
    ask(&record, &look);
    if (bhi_args_has(args, BHI_BATCH_JSON)) {
        print_json(&record, &look);
    } else {
        BHI_AUTO_FREE char *line = describe(state, &record, &look);
        puts(line ? line : "waiting for the probe");
    }
    if (bhi_args_has(args, BHI_BATCH_HTML)) {
        bhi_complain("batch", "--html: no job has begun, and no page is written");
    }
    return BHI_EXIT_READY;
}

int bhi_batch_probe_logs(const char *state, const struct bhi_args *args) {
    struct bhi_probe_record record;
    struct look look;
    (void)bhi_probe_record_load(&record, state);
    ask(&record, &look);
    if (bhi_args_has(args, BHI_BATCH_JSON)) {
        print_json(&record, &look);
        return BHI_EXIT_READY;
    }
    BHI_AUTO_FREE char *line = describe(state, &record, &look);
    printf("no job has begun, and no shard is written: %s\n",
           line ? line : "waiting for the probe");
    return BHI_EXIT_READY;
}

/* The file ends a submitter that waits for the probe; scancel ends the probe. */
int bhi_batch_probe_cancel(const char *state) {
    struct bhi_probe_record record;
    struct bhi_complaint complaint;
    uint32_t tasks = 0;
    bool good = true;
    BHI_AUTO_FD folder = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)bhi_probe_record_load(&record, state);
    if (folder < 0) {
        bhi_complain("batch", "--cancel: %s: %s", state, strerror(errno));
        good = false;
    } else if (!bhi_shards_cancel_folder(folder, state, &complaint)) {
        bhi_complain("batch", "%s", complaint.text);
        good = false;
    }
    if (!bhi_slurm_cancel_all(record.id, &tasks, &complaint)) {
        bhi_complain("batch",
                     "%s: the probe is not removed from Slurm's queue; if its submitter runs, it "
                     "does that; give --cancel again where scancel works",
                     complaint.text);
        good = false;
    } else if (tasks) {
        bhi_probe_record_remove(state);
    }
    if (bhi_interrupt_signal()) {
        return bhi_interrupt_exit_status();
    }
    if (good && tasks) {
        printf("%s is cancelled, with its probe (job %llu): nothing was submitted\n", state,
               (unsigned long long)record.job);
    } else if (good) {
        printf("%s is cancelled: its probe is not in Slurm's queue; nothing was submitted\n",
               state);
    }
    return good ? BHI_EXIT_READY : BHI_EXIT_ENVIRON;
}

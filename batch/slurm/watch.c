#include "batch/slurm/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"
#include "base/owner.h"
#include "batch/runner/cancel.h"
#include "batch/slurm/sbatch_option.h"
#include "batch/slurm/whole.h"
#include "tool/clock.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"

#define SECOND UINT64_C(1000000000)

enum { ENDINGS_A_TICK = 64, FEEDS_A_TICK = 16, MISSES = 2 };
/* How often it is said that squeue fails. */
#define REMINDS (600 * SECOND)

static uint32_t count_in(const struct bhi_watch *watch, enum bhi_watch_state state) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < watch->array->shards; i++) {
        count += watch->shards[i].state == state;
    }
    return count;
}

static void tell(struct bhi_watch *watch, uint32_t shard, const char *what, const char *then) {
    BHI_AUTO_FREE char *line = bhi_whole_text("shard %u: %s%s", shard, what, then);
    if (line) {
        watch->tell(watch->user, line);
    }
}

/* -- submitting ------------------------------------------------------------------------------ */

static const char **sbatch_options(const struct bhi_watch *watch, const char *array,
                                   const char *chdir, const char *output, const char *name) {
    char *const *given = watch->array->sbatch_options;
    size_t count = 0, used = 0;
    while (given[count]) {
        count++;
    }
    const char **options = calloc(2 * count + 5, sizeof *options);
    if (!options) {
        return NULL;
    }
    options[used++] = name; /* the user's options may give another */
    used += bhi_slurm_put_options(given, options + used);
    options[used++] = array;
    options[used++] = chdir;
    options[used++] = output;
    return options;
}

static const char redo_changed[] = "--redo-changed";
static const char retry_failed[] = "--retry-failed"; /* an option of a task, and why it is tried */

/* Submits a round that is recorded. |asks_first|: it may have been submitted already. */
static enum bhi_slurm_result submit_round(struct bhi_watch *watch, size_t number, bool asks_first,
                                          bool retries_failed, struct bhi_complaint *complaint) {
    struct bhi_slurm_round *round = &watch->array->rounds[number];
    char comment[BHI_ARRAY_COMMENT], name[32];
    char round_word[24];
    const char *const words[] = {round_word, retries_failed ? retry_failed : NULL, NULL};
    bhi_array_comment(watch->array, number, comment);
    snprintf(round_word, sizeof round_word, "%zu", number);
    snprintf(name, sizeof name, "--job-name=bulkhead-%.8s", watch->array->id);
    BHI_AUTO_FREE char *indexes = bhi_array_indexes(round);
    BHI_AUTO_FREE char *folder = bhi_whole_text("%s/shards", watch->state);
    BHI_AUTO_FREE char *array = indexes ? bhi_whole_text("--array=%s", indexes) : NULL;
    BHI_AUTO_FREE char *chdir = bhi_whole_text("--chdir=%s", watch->array->chdir);
    BHI_AUTO_FREE char *output = folder ? bhi_slurm_output(folder, "/%4a/log") : NULL;
    BHI_AUTO_FREE char *script = bhi_whole_text("%s/task.sh", watch->state);
    BHI_AUTO_FREE const char **options =
        array && chdir && output ? sbatch_options(watch, array, chdir, output, name) : NULL;
    if (!options || !script) {
        bhi_refuse(complaint, "out of memory");
        return BHI_SLURM_DOWN;
    }
    const struct bhi_slurm_submission submission = {.comment = comment,
                                                    .script = script,
                                                    .options = options,
                                                    .words = words,
                                                    .asks_first = asks_first};
    const enum bhi_slurm_result result =
        bhi_slurm_submit(&watch->client, &submission, &round->job, complaint);
    if (result == BHI_SLURM_BAD && strstr(complaint->text, "Invalid job array specification")) {
        const struct bhi_complaint said = *complaint;
        bhi_refuse(complaint,
                   "%.600s: the largest task of this array is %u, and MaxArraySize must be larger "
                   "(scontrol show config): give fewer --shards",
                   said.text, round->shards[round->count - 1]);
    }
    return result;
}

static void mark_submitted(struct bhi_watch *watch, size_t number) {
    const struct bhi_slurm_round *round = &watch->array->rounds[number];
    for (uint32_t i = 0; i < round->count; i++) {
        struct bhi_watch_shard *shard = &watch->shards[round->shards[i]];
        shard->state = BHI_WATCH_SUBMITTED;
        shard->round = number;
        shard->slurm = BHI_SLURM_UNKNOWN;
        shard->missed = 0;
        shard->lost_ns = 0;
        shard->running = shard->near = shard->resumed = shard->again = false;
        shard->name[0] = shard->node[0] = '\0';
    }
}

static uint64_t ended_jobs(const struct bhi_watch *watch, uint32_t number) {
    struct bhi_slurm_shard_look look;
    bhi_slurm_shard_look(watch->state, number, &look);
    return look.read ? bhi_slurm_shard_ended_jobs(&look) : UINT64_MAX;
}

/* Collects the shards that are due; those of one round are all tried again, or none. */
static uint32_t collect(struct bhi_watch *watch, bool again, uint32_t *out_shards) {
    const uint64_t now = bhi_clock_ns();
    uint32_t count = 0;
    for (uint32_t i = 0; i < watch->array->shards; i++) {
        const struct bhi_watch_shard *shard = &watch->shards[i];
        if (shard->state == BHI_WATCH_DUE && shard->due_ns <= now && shard->again == again) {
            out_shards[count++] = i;
        }
    }
    return count;
}

/* A first array that is not submitted leaves nothing: the same command may be given again. But if
 * its shards have run, it is not the first, whatever array.json says. */
static void give_up_first(const struct bhi_watch *watch) {
    BHI_AUTO_FREE char *path = bhi_whole_text("%s/" BHI_ARRAY_FILE, watch->state);
    if (path) {
        (void)remove(path);
    }
}

static enum bhi_watch_result end_round(struct bhi_watch *watch, size_t number,
                                       enum bhi_slurm_result result,
                                       struct bhi_complaint *complaint) {
    struct bhi_slurm_round *round = &watch->array->rounds[number];
    struct bhi_complaint inner;
    if (result == BHI_SLURM_DONE) {
        mark_submitted(watch, number);
        return bhi_array_save(watch->array, watch->state, complaint) ? BHI_WATCH_DONE
                                                                     : BHI_WATCH_FAILED;
    }
    const bool is_first = number == 0 && !bhi_slurm_shard_any_has_run(watch->state);
    if (result == BHI_SLURM_INTERRUPTED || result == BHI_SLURM_CUT_OFF) {
        watch->unsure = result == BHI_SLURM_CUT_OFF;
        if (is_first && !watch->unsure) {
            give_up_first(watch);
        }
        return BHI_WATCH_INTERRUPTED;
    }
    if (result == BHI_SLURM_BAD && is_first) {
        give_up_first(watch);
        return BHI_WATCH_REFUSED;
    }
    const bool others = count_in(watch, BHI_WATCH_SUBMITTED) > 0;
    for (uint32_t i = 0; i < round->count; i++) {
        struct bhi_watch_shard *shard = &watch->shards[round->shards[i]];
        shard->due_ns = bhi_clock_ns() + watch->poll_ns;
        if (result == BHI_SLURM_BAD) {
            shard->state = BHI_WATCH_STUCK;
            bhi_format(shard->why, sizeof shard->why, "it is not submitted again: %.250s",
                       complaint->text);
            tell(watch, round->shards[i], shard->why, "");
        }
    }
    if (result == BHI_SLURM_DOWN && !others) {
        return BHI_WATCH_DOWN;
    }
    /* The round stays, without a job; its comment is never used again. */
    return bhi_array_save(watch->array, watch->state, &inner) ? BHI_WATCH_DONE : BHI_WATCH_FAILED;
}

/* Submits all shards that are due, as one array. */
static enum bhi_watch_result submit_due(struct bhi_watch *watch, bool again,
                                        struct bhi_complaint *complaint) {
    BHI_AUTO_FREE uint32_t *shards = calloc(watch->array->shards + 1u, sizeof *shards);
    const uint32_t count = shards ? collect(watch, again, shards) : 0;
    if (!shards) {
        bhi_refuse(complaint, "out of memory");
        return BHI_WATCH_FAILED;
    }
    if (!count) {
        return BHI_WATCH_DONE;
    }
    const bool first = watch->array->round_count == 0;
    for (uint32_t i = 0; i < count; i++) {
        watch->shards[shards[i]].before = first ? 0 : ended_jobs(watch, shards[i]);
    }
    const char *why = first ? "first" : again ? retry_failed : watch->shards[shards[0]].why;
    if (!bhi_array_add_round(watch->array, shards, count, why)) {
        bhi_refuse(complaint, "out of memory");
        return BHI_WATCH_FAILED;
    }
    const size_t number = watch->array->round_count - 1;
    if (!bhi_array_save(watch->array, watch->state, complaint)) {
        return BHI_WATCH_FAILED;
    }
    return end_round(watch, number, submit_round(watch, number, false, again, complaint),
                     complaint);
}

/* -- looking --------------------------------------------------------------------------------- */

/* Has the shard's last task said how it ended? */
static bool read_ending(const struct bhi_watch *watch, uint32_t number,
                        struct bhi_slurm_shard_ending *out_ending) {
    const size_t round = watch->shards[number].round;
    bhi_slurm_shard_read_ending(watch->state, number, out_ending);
    return out_ending->array && out_ending->array == watch->array->rounds[round].job &&
           out_ending->round == round && !strcmp(out_ending->id, watch->array->id);
}

/* Has somebody asked for the end? The tasks see the same file. */
static bool is_cancelled(const struct bhi_watch *watch) {
    BHI_AUTO_FREE char *path = bhi_whole_text("%s/" BHI_CANCEL_FILE, watch->state);
    return path && access(path, F_OK) == 0;
}

/* Nothing is submitted any more. */
static void drop_due(struct bhi_watch *watch) {
    for (uint32_t i = 0; i < watch->array->shards; i++) {
        struct bhi_watch_shard *shard = &watch->shards[i];
        if (shard->state == BHI_WATCH_DUE) {
            shard->state = BHI_WATCH_STUCK;
            shard->cancelled = true;
            bhi_format(shard->why, sizeof shard->why, "%s", BHI_SLURM_SHARD_CANCELLED);
            tell(watch, i, shard->why, "");
        }
    }
}

/* Why the state folder cannot be written; "" if it can. Many tasks may end at once because of that.
 */
static const char *why_full(struct bhi_watch *watch) {
    struct bhi_complaint complaint;
    const uint64_t now = bhi_clock_ns();
    if (!watch->tried_ns || now - watch->tried_ns >= SECOND) {
        const bool good = bhi_whole_try(watch->state, &complaint);
        bhi_format(watch->full, sizeof watch->full, "%.290s", good ? "" : complaint.text);
        watch->tried_ns = now;
    }
    return watch->full;
}

/* What people need beside the exit status of a batch, or where it left none: that the folder is
 * full, or what the task printed last. The caller owns it; NULL: nothing. */
static char *explain(struct bhi_watch *watch, uint32_t number,
                     const struct bhi_slurm_shard_observation *seen) {
    char line[400];
    const bool says_enough = seen->cancelled ||
                             (seen->ending && seen->ending->status > BHI_EXIT_SIGNALLED) ||
                             seen->state == BHI_SLURM_VICTIM || seen->state == BHI_SLURM_TIME ||
                             seen->state == BHI_SLURM_MEMORY || seen->state == BHI_SLURM_CANCELLED;
    if (says_enough) {
        return NULL;
    }
    if (*why_full(watch)) {
        return bhi_whole_text("; %s", watch->full);
    }
    if (!seen->ending && seen->state != BHI_SLURM_ENDED) {
        return NULL; /* it was cut off somewhere */
    }
    BHI_AUTO_FREE char *log = bhi_slurm_shard_path(watch->state, number, "log");
    return log && *bhi_slurm_log_end(log, line, sizeof line)
               ? bhi_whole_text("; its log, %s, ends with: %s", log, line)
               : NULL;
}

/* Applies what follows from what is known of a shard. */
static void judge(struct bhi_watch *watch, uint32_t number) {
    struct bhi_watch_shard *shard = &watch->shards[number];
    struct bhi_slurm_shard_ending ending;
    struct bhi_slurm_shard_look look = {.read = false};
    struct bhi_slurm_shard_decision decision;
    const uint64_t now = bhi_clock_ns();
    const bool said = read_ending(watch, number, &ending);
    const bool over = shard->slurm >= BHI_SLURM_ENDED;
    if (over && !shard->lost_ns) {
        shard->lost_ns = now;
    }
    struct bhi_slurm_shard_observation seen = {.state = shard->slurm,
                                               .name = shard->name,
                                               .node = shard->node,
                                               .ending = said ? &ending : NULL,
                                               .settled = over && now - shard->lost_ns >=
                                                                      BHI_WATCH_SETTLES_NS,
                                               .fruitless = shard->fruitless,
                                               .cut_off = ""};
    bhi_slurm_shard_decide(&seen, &decision);
    if (decision.action == BHI_SLURM_SHARD_AGAIN || decision.action == BHI_SLURM_SHARD_STUCK) {
        /* Only now is the journal read: the task does not use it any more. */
        bhi_slurm_shard_look(watch->state, number, &look);
        seen.progressed = shard->before == UINT64_MAX ||
                          (look.read && bhi_slurm_shard_ended_jobs(&look) > shard->before);
        seen.busy = look.busy;
        seen.cancelled = is_cancelled(watch);
        seen.cut_off = look.cut_off;
        if (seen.state == BHI_SLURM_ENDED && bhi_slurm_shard_ran_out(watch->state, number)) {
            seen.state = BHI_SLURM_MEMORY;
        }
        bhi_slurm_shard_decide(&seen, &decision);
    }
    if (decision.action == BHI_SLURM_SHARD_WAITS) {
        return;
    }
    BHI_AUTO_FREE char *more =
        decision.action == BHI_SLURM_SHARD_ENDED ? NULL : explain(watch, number, &seen);
    if (shard->resumed && watch->was_cancelled && bhi_slurm_shard_looks_cancelled(&seen)) {
        bhi_format(decision.why, sizeof decision.why, "%s", BHI_SLURM_SHARD_CANCELLED);
    }
    shard->status = decision.status;
    shard->cancelled = decision.cancelled;
    bhi_format(shard->why, sizeof shard->why, "%s", decision.why);
    const bool retries = watch->retry_failed && decision.status != 0;
    const bool redoes = watch->redo && watch->redo[number];
    if (decision.action == BHI_SLURM_SHARD_ENDED && shard->resumed && (retries || redoes)) {
        shard->state = BHI_WATCH_DUE;
        shard->again = watch->retry_failed;
        bhi_format(shard->why, sizeof shard->why, "%s", retries ? retry_failed : redo_changed);
    } else if (decision.action == BHI_SLURM_SHARD_ENDED) {
        shard->state = BHI_WATCH_ENDED;
    } else if (decision.action == BHI_SLURM_SHARD_STUCK && !shard->resumed) {
        shard->state = BHI_WATCH_STUCK;
        tell(watch, number, decision.why, more ? more : "");
    } else {
        shard->state = BHI_WATCH_DUE;
        shard->again = shard->resumed && watch->retry_failed; /* its lines may be others now */
        shard->fruitless = seen.progressed ? 0 : shard->fruitless + 1;
        shard->due_ns = now + (shard->resumed ? 0 : decision.delay_ns);
        BHI_AUTO_FREE char *then =
            bhi_whole_text("%s: it is submitted again and continues", more ? more : "");
        tell(watch, number, decision.why, then ? then : "");
    }
}

static void take_task(void *user, const struct bhi_slurm_task *task) {
    struct bhi_watch *watch = user;
    size_t number;
    if (!bhi_array_owns(watch->array, task->comment, task->comment_length, &number) ||
        task->index >= watch->array->shards) {
        return;
    }
    struct bhi_watch_shard *shard = &watch->shards[task->index];
    if (shard->state != BHI_WATCH_SUBMITTED || shard->round != number ||
        watch->array->rounds[number].job != task->array) {
        return;
    }
    shard->missed = 0;
    shard->slurm = task->state;
    shard->running = task->state == BHI_SLURM_RUNNING;
    shard->resumed &= task->state >= BHI_SLURM_ENDED; /* it has outlived the earlier submitter */
    bhi_format(shard->name, sizeof shard->name, "%s", task->name);
    if (*task->node) {
        bhi_format(shard->node, sizeof shard->node, "%s", task->node);
    }
    if (task->state == BHI_SLURM_PENDING && strcmp(task->reason, "None") != 0) {
        bhi_format(watch->reason, sizeof watch->reason, "%s", task->reason);
    }
}

/* squeue has failed. What a controller that is down does not hear goes on; but what will never be
 * answered is not waited for. Returns false to give up. */
static bool bear_failure(struct bhi_watch *watch, enum bhi_slurm_result result, const char *why) {
    const uint64_t now = bhi_clock_ns();
    if (bhi_slurm_is_bad(result, watch->client.patience_ns, &watch->bad_ns)) {
        return false;
    }
    if (!watch->told_ns || now - watch->told_ns >= REMINDS) {
        BHI_AUTO_FREE char *line =
            bhi_whole_text("%s; what is submitted goes on, and is asked for again", why);
        watch->told_ns = now;
        watch->tell(watch->user, line ? line : "squeue fails");
    }
    return true;
}

/* One look at Slurm's queue for all shards. Who asked for the end may have had no scancel, or may
 * not have seen what was being submitted. Returns false, with a complaint, to give up. */
static bool look(struct bhi_watch *watch, struct bhi_complaint *complaint) {
    struct bhi_complaint inner;
    uint32_t tasks;
    if (is_cancelled(watch)) {
        (void)bhi_slurm_cancel_all(watch->array->id, &tasks, &inner);
    }
    char prefix[BHI_ARRAY_COMMENT];
    bhi_format(prefix, sizeof prefix, "bulkhead:%s:", watch->array->id);
    for (uint32_t i = 0; i < watch->array->shards; i++) {
        watch->shards[i].missed++;
    }
    watch->reason[0] = '\0';
    const enum bhi_slurm_result result = bhi_slurm_tasks(prefix, take_task, watch, &inner);
    const bool failed = result != BHI_SLURM_DONE;
    if (!failed) {
        watch->bad_ns = watch->told_ns = 0;
    } else if (result != BHI_SLURM_INTERRUPTED && !bear_failure(watch, result, inner.text)) {
        return bhi_refuse(complaint, "%.600s: what is submitted goes on", inner.text);
    }
    for (uint32_t i = 0; i < watch->array->shards; i++) {
        struct bhi_watch_shard *shard = &watch->shards[i];
        if (shard->state != BHI_WATCH_SUBMITTED) {
            continue;
        }
        if (failed) {
            shard->missed = 0;
        } else if (shard->missed >= MISSES && shard->slurm < BHI_SLURM_ENDED) {
            shard->slurm =
                bhi_slurm_account(watch->array->rounds[shard->round].job, i, shard->name);
            shard->running = false;
        }
        judge(watch, i);
    }
    return true;
}

/* A task that has ended well says so in a file. */
static void look_at_ending(struct bhi_watch *watch, uint32_t number) {
    struct bhi_slurm_shard_ending ending;
    if (watch->shards[number].state == BHI_WATCH_SUBMITTED &&
        (watch->shards[number].lost_ns || read_ending(watch, number, &ending))) {
        judge(watch, number);
    }
}

/* Returns when the shard is to be looked at again. */
static uint64_t follow(struct bhi_watch *watch, uint32_t number) {
    struct bhi_watch_shard *shard = &watch->shards[number];
    if (!watch->follow || shard->state != BHI_WATCH_SUBMITTED) {
        return BHI_WATCH_TICK_NS;
    }
    const uint64_t pause_ns = watch->follow(watch->user, number, BHI_WATCH_TICK_NS);
    shard->near = pause_ns < BHI_WATCH_TICK_NS;
    return pause_ns;
}

/* Between two looks at Slurm's queue: what the tasks write into the folder. All shards have their
 * turn, some each tick; those that are nearly through have it before that. Reading feeds takes no
 * longer than a tick. Returns when to look again. */
static uint64_t look_at_files(struct bhi_watch *watch) {
    const uint32_t shards = watch->array->shards;
    const uint64_t now = bhi_clock_ns();
    const bool ticks = now >= watch->files_ns;
    uint64_t pause_ns = BHI_WATCH_TICK_NS;
    uint32_t near = 0;
    for (uint32_t i = 0; ticks && i < shards && i < FEEDS_A_TICK; i++) {
        const uint32_t number = (uint32_t)(watch->followed++ % shards);
        if (!watch->shards[number].near && bhi_clock_ns() - now < BHI_WATCH_TICK_NS) {
            const uint64_t next_ns = follow(watch, number);
            pause_ns = next_ns < pause_ns ? next_ns : pause_ns;
        }
    }
    for (uint32_t i = 0; i < shards && near < FEEDS_A_TICK; i++) {
        if (watch->shards[i].near && watch->shards[i].state == BHI_WATCH_SUBMITTED) {
            const uint64_t next_ns = follow(watch, i);
            pause_ns = next_ns < pause_ns ? next_ns : pause_ns;
            look_at_ending(watch, i);
            near++;
        }
    }
    for (uint32_t i = 0; ticks && i < shards && i < ENDINGS_A_TICK; i++) {
        look_at_ending(watch, (uint32_t)(watch->looked++ % shards));
    }
    watch->files_ns = ticks ? now + BHI_WATCH_TICK_NS : watch->files_ns;
    return pause_ns;
}

static void show(struct bhi_watch *watch) {
    struct bhi_watch_progress progress = {.shards = watch->array->shards,
                                          .ended = count_in(watch, BHI_WATCH_ENDED),
                                          .due = count_in(watch, BHI_WATCH_DUE),
                                          .reason = watch->reason};
    for (uint32_t i = 0; i < watch->array->shards; i++) {
        progress.running +=
            watch->shards[i].state == BHI_WATCH_SUBMITTED && watch->shards[i].running;
    }
    progress.stuck = bhi_watch_stuck(watch, &progress.cancelled);
    progress.stuck -= progress.cancelled;
    progress.pending = count_in(watch, BHI_WATCH_SUBMITTED) - progress.running;
    watch->progress(watch->user, &progress);
}

/* -- the whole ------------------------------------------------------------------------------- */

/* Takes up what an earlier submitter has left: each shard is in the last round that has it. A round
 * whose job is not recorded is looked for in Slurm's queue, and submitted if it is not there. */
static enum bhi_watch_result take_up(struct bhi_watch *watch, struct bhi_complaint *complaint) {
    enum bhi_watch_result result = BHI_WATCH_DONE;
    for (size_t i = 0; i < watch->array->round_count && result == BHI_WATCH_DONE; i++) {
        if (watch->array->rounds[i].job) {
            mark_submitted(watch, i);
        } else if (i + 1 == watch->array->round_count) {
            const bool again =
                watch->retry_failed || strcmp(watch->array->rounds[i].why, retry_failed) == 0;
            result = end_round(watch, i, submit_round(watch, i, true, again, complaint), complaint);
        }
    }
    for (uint32_t i = 0; i < watch->array->shards; i++) {
        struct bhi_watch_shard *shard = &watch->shards[i];
        shard->before = UINT64_MAX;
        shard->resumed = shard->state == BHI_WATCH_SUBMITTED;
    }
    return result;
}

enum bhi_watch_result bhi_watch_run(struct bhi_watch *watch, bool is_resumed,
                                    struct bhi_complaint *complaint) {
    enum bhi_watch_result result = BHI_WATCH_DONE;
    uint64_t look_ns = 0;
    watch->shards = calloc(watch->array->shards + 1u, sizeof *watch->shards);
    if (!watch->shards) {
        bhi_refuse(complaint, "out of memory");
        return BHI_WATCH_FAILED;
    }
    if (is_resumed) {
        result = take_up(watch, complaint);
    }
    while (result == BHI_WATCH_DONE) {
        if (is_cancelled(watch)) {
            drop_due(watch);
        }
        (void)((result = submit_due(watch, false, complaint)) != BHI_WATCH_DONE ||
               (result = submit_due(watch, true, complaint)) != BHI_WATCH_DONE);
        if (result != BHI_WATCH_DONE) {
            break;
        }
        const uint64_t pause_ns = look_at_files(watch);
        if (count_in(watch, BHI_WATCH_DUE) + count_in(watch, BHI_WATCH_SUBMITTED) == 0) {
            show(watch);
            return BHI_WATCH_DONE;
        }
        if (bhi_clock_ns() >= look_ns) {
            if (!look(watch, complaint)) {
                return BHI_WATCH_FAILED;
            }
            look_ns = bhi_clock_ns() + watch->poll_ns;
        }
        show(watch);
        if (!bhi_interrupt_pause(pause_ns)) {
            bhi_refuse(complaint, "interrupted");
            return BHI_WATCH_INTERRUPTED;
        }
    }
    return result;
}

uint32_t bhi_watch_stuck(const struct bhi_watch *watch, uint32_t *out_cancelled) {
    uint32_t stuck = 0;
    *out_cancelled = 0;
    for (uint32_t i = 0; watch->shards && i < watch->array->shards; i++) {
        const bool is_stuck = watch->shards[i].state == BHI_WATCH_STUCK;
        stuck += is_stuck;
        *out_cancelled += is_stuck && watch->shards[i].cancelled;
    }
    return stuck;
}

bool bhi_watch_is_over(const struct bhi_watch *watch) {
    struct bhi_slurm_shard_ending ending;
    for (uint32_t i = 0; watch->shards && i < watch->array->shards; i++) {
        const enum bhi_watch_state state = watch->shards[i].state;
        const bool said = state == BHI_WATCH_SUBMITTED && read_ending(watch, i, &ending) &&
                          (ending.status == BHI_EXIT_READY || ending.status == BHI_EXIT_POISONED);
        if (state == BHI_WATCH_DUE || (state == BHI_WATCH_SUBMITTED && !said)) {
            return false;
        }
    }
    return watch->shards;
}

void bhi_watch_fini(struct bhi_watch *watch) {
    free(watch->shards);
    watch->shards = NULL;
}

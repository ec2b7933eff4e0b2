/* The life of a judge. A call enters, waits for its turn, and leaves. bh_judge_cancel destroys the
 * context under the calls that run: that ends whatever they wait for. */
#include "judge/api/judge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/detail.h"
#include "supervisor/context/layout.h"

/* -- calls --------------------------------------------------------------------------------------
 */

static bool is_judge(const bh_judge *judge) {
    return judge && judge->magic == BHI_JUDGE_MAGIC;
}

bh_status bhi_judge_enter(bh_judge *judge, const char *call, bh_detail *detail) {
    if (!is_judge(judge)) {
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "%s: judge: NULL, or destroyed", call);
    }
    if (judge->pid != getpid()) {
        return bhi_fail(detail, BH_FORKED, 0, "%s: the judge belongs to the parent process", call);
    }
    pthread_mutex_lock(&judge->lock);
    const bool cancelled = judge->cancelled;
    judge->users += !cancelled;
    pthread_mutex_unlock(&judge->lock);
    return cancelled ? BHI_FAIL(detail, call, BH_REASON_CANCELLED) : BH_OK;
}

void bhi_judge_leave(bh_judge *judge) {
    pthread_mutex_lock(&judge->lock);
    if (!--judge->users) {
        pthread_cond_broadcast(&judge->idle);
    }
    pthread_mutex_unlock(&judge->lock);
}

void bhi_judge_begin_turn(bh_judge *judge) {
    pthread_mutex_lock(&judge->turn);
    judge->before = uselocale(judge->c);
}

void bhi_judge_end_turn(bh_judge *judge) {
    (void)uselocale(judge->before);
    pthread_mutex_unlock(&judge->turn);
}

bool bhi_judge_is_cancelled(bh_judge *judge) {
    pthread_mutex_lock(&judge->lock);
    const bool cancelled = judge->cancelled;
    pthread_mutex_unlock(&judge->lock);
    return cancelled;
}

bool bhi_judge_put_context(bh_judge *judge, bh_context *context) {
    pthread_mutex_lock(&judge->lock);
    const bool cancelled = judge->cancelled;
    if (!cancelled) {
        judge->court.context = context;
    }
    pthread_mutex_unlock(&judge->lock);
    if (cancelled) {
        (void)bh_context_destroy(context);
    }
    return !cancelled;
}

/* -- create -------------------------------------------------------------------------------------
 */

static bh_status refuse(bh_detail *detail, const char *why) {
    return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_judge_create: options.%s", why);
}

static bh_status check_timing(const bh_judge_options *options, bh_detail *detail) {
    if (!options->timed && (options->warm || options->all_processors || options->guard_cost ||
                            options->slower_than != 0)) {
        return refuse(detail, options->warm             ? "warm: it needs timed"
                              : options->all_processors ? "all_processors: it needs timed"
                              : options->guard_cost     ? "guard_cost: it needs timed"
                                                        : "slower_than: it needs timed");
    }
    if (options->timed_runs < BHI_TIMED_RUNS_LEAST || options->timed_runs > BHI_TIMED_RUNS_MOST) {
        return refuse(detail, "timed_runs: from 5 to 100000 are possible");
    }
    return options->slower_than >= 0
               ? BH_OK
               : refuse(detail, "slower_than: it must be a number above 0, such as 1.05");
}

static bh_status check(const bh_judge_options *options, bh_detail *detail) {
    if (!options->task_path == !options->task_text) {
        return refuse(detail, options->task_path ? "task_text: there is a task_path, too"
                                                 : "task_path: NULL, and so is task_text");
    }
    if (options->folder && !options->task_text) {
        return refuse(detail, "folder: it is for task_text alone");
    }
    if (options->device && (!*options->device || !strcmp(options->device, "any"))) {
        return refuse(detail, "device: all candidates run on one device: name it, or give NULL");
    }
    if (options->seed_count > BHI_JUDGE_SEEDS || (options->seed_count && !options->seeds)) {
        return refuse(detail, "seeds: NULL, or more than 16");
    }
    return check_timing(options, detail);
}

/* The noise has a seed of its own, which is never shown. */
static bh_status take_seeds(bh_judge *judge, const bh_judge_options *options, bh_detail *detail) {
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return bhi_fail(detail, BH_SYSTEM, errno, "bh_judge_create: getrandom: %s",
                        strerror(errno));
    }
    judge->court.noise_seed = random[0];
    judge->seeds[0] = random[1];
    judge->seed_count = 1;
    if (options->seed_count) {
        memcpy(judge->seeds, options->seeds, options->seed_count * sizeof judge->seeds[0]);
        judge->seed_count = options->seed_count;
    }
    return BH_OK;
}

static bh_status read_task(bh_judge *judge, const bh_judge_options *options, bh_detail *detail) {
    struct bhi_complaint complaint;
    int error = 0;
    const bool good = options->task_text
                          ? bhi_task_parse(judge->place, options->folder ? options->folder : "",
                                           options->task_text, &judge->task, &complaint)
                          : bhi_task_read(judge->place, &judge->task, &error, &complaint);
    judge->court.task = &judge->task;
    if (!good) {
        return bhi_fail(detail, error ? BH_LOAD_FAILED : BH_INVALID_ARGUMENT, error, "%.500s",
                        complaint.text);
    }
    return judge->timed && judge->task.reference == BHI_REFERENCE_FILES
               ? refuse(detail, "timed: the reference of the task is files, which take no time; a "
                                "kernel or an expression does")
               : BH_OK;
}

static bh_status fill(bh_judge *judge, const bh_judge_options *options, bh_detail *detail) {
    const char *path = options->task_path;
    judge->log = options->log;
    judge->log_user = options->log_user;
    judge->timed = options->timed;
    judge->timing_options = (struct bhi_timing_options){
        .runs = options->timed_runs,
        .warm = options->warm,
        .all_processors = options->all_processors,
        .guard = options->guard_cost,
        .slower = options->slower_than,
    };
    judge->court.selector = judge->selector;
    /* "-" is a file of this name: standard input is the program's. */
    judge->place = strdup(!path ? "task" : strcmp(path, "-") != 0 ? path : "./-");
    judge->device = options->device ? strdup(options->device) : NULL;
    if (!judge->place || (options->device && !judge->device)) {
        return BHI_FAIL(detail, "bh_judge_create", BH_REASON_MEMORY);
    }
    const bh_status status = take_seeds(judge, options, detail);
    return status == BH_OK ? read_task(judge, options, detail) : status;
}

static void free_judge(bh_judge *judge) {
    if (judge->timing) {
        bhi_timekeeper_close(&judge->timer);
    }
    bhi_trials_free(&judge->task, &judge->court.trials);
    bhi_task_free(&judge->task);
    bh_buffer_release(judge->pin);
    free(judge->place);
    free(judge->device);
    pthread_mutex_destroy(&judge->lock);
    pthread_mutex_destroy(&judge->turn);
    pthread_cond_destroy(&judge->idle);
    if (judge->c) {
        freelocale(judge->c);
    }
    judge->magic = 0;
    free(judge);
}

BH_API bh_status bh_judge_create(const bh_judge_options *options, bh_judge **out_judge,
                                 bh_detail *detail) {
    bh_judge_options ours = {0};
    if (!out_judge || !options) {
        return BHI_FAIL(detail, "bh_judge_create", BH_REASON_NULL,
                        out_judge ? "options" : "out_judge");
    }
    *out_judge = NULL;
    bh_status status = bhi_layout_take(BHI_OURS(bh_judge_options), &ours, options,
                                       "bh_judge_create", "options", detail);
    if (status == BH_OK) {
        ours.timed_runs = ours.timed_runs ? ours.timed_runs : BHI_TIMED_RUNS;
        status = check(&ours, detail);
    }
    if (status != BH_OK) {
        return status;
    }
    bh_judge *judge = calloc(1, sizeof *judge);
    if (!judge) {
        return BHI_FAIL(detail, "bh_judge_create", BH_REASON_MEMORY);
    }
    judge->magic = BHI_JUDGE_MAGIC;
    judge->pid = getpid();
    pthread_mutex_init(&judge->lock, NULL);
    pthread_mutex_init(&judge->turn, NULL);
    pthread_cond_init(&judge->idle, NULL);
    judge->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (judge->c) {
        bhi_judge_begin_turn(judge);
        status = fill(judge, &ours, detail);
        bhi_judge_end_turn(judge);
    } else {
        status = BHI_FAIL(detail, "bh_judge_create", BH_REASON_MEMORY);
    }
    if (status == BH_OK) {
        *out_judge = judge;
    } else {
        free_judge(judge);
    }
    return status;
}

/* -- the end ------------------------------------------------------------------------------------
 */

BH_API void bh_judge_cancel(bh_judge *judge) {
    if (!is_judge(judge) || judge->pid != getpid()) {
        return;
    }
    pthread_mutex_lock(&judge->lock);
    judge->cancelled = true;
    bh_context *context = judge->ended ? NULL : judge->court.context;
    judge->ended = context || judge->ended;
    pthread_mutex_unlock(&judge->lock);
    if (bh_context_destroy(context) == BH_IN_CALLBACK) {
        pthread_mutex_lock(&judge->lock);
        judge->ended = false; /* bh_judge_destroy does it */
        pthread_mutex_unlock(&judge->lock);
    }
}

BH_API void bh_judge_destroy(bh_judge *judge) {
    if (!is_judge(judge) || judge->pid != getpid()) {
        return;
    }
    bh_judge_cancel(judge);
    pthread_mutex_lock(&judge->lock);
    while (judge->users) {
        pthread_cond_wait(&judge->idle, &judge->lock);
    }
    pthread_mutex_unlock(&judge->lock);
    free_judge(judge);
}

/* -- what it is ---------------------------------------------------------------------------------
 */

BH_API bh_status bh_judge_seeds(bh_judge *judge, uint64_t *out_seeds, size_t capacity,
                                size_t *out_count) {
    if (!is_judge(judge) || !out_count || (capacity && !out_seeds)) {
        return BH_INVALID_ARGUMENT;
    }
    for (size_t i = 0; i < judge->seed_count && i < capacity; i++) {
        out_seeds[i] = judge->seeds[i];
    }
    *out_count = judge->seed_count;
    return BH_OK;
}

BH_API size_t bh_judge_size(bh_judge *judge, uint32_t size_index, char *text, size_t size) {
    char whole[BHI_SIZE_TEXT] = "";
    if (is_judge(judge) && size_index < judge->task.size_count) {
        (void)bhi_task_size_text(&judge->task, size_index, whole);
    }
    const int length = snprintf(text, size, "%s", whole);
    return length < 0 ? 0 : (size_t)length;
}

BH_API const char *bh_judge_name(bh_judge *judge) {
    return is_judge(judge) ? judge->task.name : "";
}

BH_API bool bh_judge_fixed_inputs(bh_judge *judge) {
    return is_judge(judge) && bhi_task_is_storable(&judge->task);
}

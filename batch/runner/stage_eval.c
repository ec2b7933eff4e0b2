/* Jobs that compute an expression, as `bulkhead eval` does. A template is made once, however many
 * jobs compute the same, and keeps its kernels. */
#include <stdlib.h>
#include <string.h>

#include "batch/runner/stage.h"
#include "batch/runner/state.h"
#include "batch/runner/streams.h"
#include "batch/runner/work.h"
#include "request/eval_compute.h"
#include "tool/device_list.h"
#include "tool/text.h"

enum { MOST_TEMPLATES = 64 };

struct bhi_template_entry {
    struct bhi_list node; /* in runner->templates */
    char *key;            /* owned */
    uint64_t used;
    struct bhi_eval_plan *plan; /* a reference */
};

/* Refuses the work with the user's expression and without the prefix "bh_template_prepare: ".
 * Returns false. */
static bool refuse(struct bhi_work *work, bh_status status, const bh_detail *detail) {
    work->attempt.verdict.reason = detail->reason;
    return bhi_work_refuse(
        work, status, detail->sys_errno, "'%.100s': %.380s", work->request->run.eval->expression,
        detail->message[0] ? bhi_text_without_call(detail->message) : bh_status_text(status));
}

/* -- templates ------------------------------------------------------------------------------- */

/* Returns a text of all that makes up a template; NULL if out of memory. */
static char *make_key(const struct bhi_work *work) {
    const struct bhi_eval_request *eval = work->request->run.eval;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        return NULL;
    }
    fprintf(out, "%llu %s", (unsigned long long)work->request->run.compile_deadline_ns,
            eval->expression);
    for (uint32_t i = 0; i < eval->count; i++) {
        fprintf(out, "\n%d %s", (int)eval->parameters[i].role, eval->parameters[i].name);
    }
    const bool good = !ferror(out);
    if (fclose(out) == 0 && good) {
        return text;
    }
    free(text);
    return NULL;
}

static struct bhi_template_entry *entry_of(struct bhi_list *node) {
    return BHI_CONTAINER(node, struct bhi_template_entry, node);
}

static void free_entry(struct bhi_template_entry *entry) {
    bhi_eval_plan_release(entry->plan);
    free(entry->key);
    free(entry);
}

/* Call it with the lock. */
static bool find(struct bhi_work *work, const char *key) {
    struct bhi_runner *runner = work->runner;
    BHI_LIST_EACH(node, &runner->templates) {
        struct bhi_template_entry *entry = entry_of(node);
        if (strcmp(entry->key, key) != 0) {
            continue;
        }
        bhi_eval_plan_retain(entry->plan);
        entry->used = ++runner->ticks;
        work->plan = entry->plan;
        return true;
    }
    return false;
}

/* Keeps the work's template; without memory for the entry it is made again next time. Call it with
 * the lock. */
static void keep(struct bhi_work *work, char *key) {
    struct bhi_runner *runner = work->runner;
    struct bhi_template_entry *entry = calloc(1, sizeof *entry);
    if (!entry) {
        free(key);
        return;
    }
    if (runner->template_count == MOST_TEMPLATES) {
        struct bhi_template_entry *oldest = entry_of(runner->templates.next);
        BHI_LIST_EACH(node, &runner->templates) {
            oldest = entry_of(node)->used < oldest->used ? entry_of(node) : oldest;
        }
        bhi_list_remove(&oldest->node);
        free_entry(oldest);
        runner->template_count--;
    }
    entry->key = key;
    entry->used = ++runner->ticks;
    bhi_eval_plan_retain(work->plan);
    entry->plan = work->plan;
    bhi_list_append(&runner->templates, &entry->node);
    runner->template_count++;
}

bool bhi_stage_template(struct bhi_work *work) {
    struct bhi_runner *runner = work->runner;
    const struct bhi_run_request *request = &work->request->run;
    bh_detail detail = {0};
    if (work->plan) {
        return true; /* made before the work had to wait for memory */
    }
    char *key = make_key(work);
    if (!key) {
        return refuse(work, BH_NO_MEMORY, &detail);
    }
    pthread_mutex_lock(&runner->lock);
    const bool found = find(work, key);
    pthread_mutex_unlock(&runner->lock);
    if (found) {
        free(key);
        return true;
    }
    const bh_status status =
        bhi_eval_make_plan(work->request->run.eval, runner->options->context,
                           request->compile_deadline_ns ? request->compile_deadline_ns
                                                        : runner->options->compile_deadline_ns,
                           &work->plan, &detail);
    if (status != BH_OK) {
        free(key);
        return refuse(work, status, &detail);
    }
    pthread_mutex_lock(&runner->lock);
    keep(work, key);
    pthread_mutex_unlock(&runner->lock);
    return true;
}

void bhi_templates_free(struct bhi_runner *runner) {
    BHI_LIST_EACH_SAFE(node, &runner->templates) {
        free_entry(entry_of(node));
    }
    bhi_list_init(&runner->templates);
}

/* -- arrays ---------------------------------------------------------------------------------- */

bool bhi_stage_infer(struct bhi_work *work) {
    struct bhi_job_request *request = work->request;
    const struct bhi_run_binding *bad;
    bh_detail detail = {0};
    bh_status status = bhi_eval_take_inputs(request->run.eval, &request->run, &bad, &detail);
    if (status == BH_OK) {
        status = bhi_eval_infer_outputs(request->run.eval, &request->run, work->plan, &detail);
    }
    return status == BH_OK || refuse(work, status, &detail);
}

/* Computes how many bytes of an array one command binds; 0: all. */
static bh_status choose_piece(const struct bhi_work *work, uint64_t *out_bytes,
                              uint32_t *out_alignment, bh_detail *detail) {
    const struct bhi_eval_request *eval = work->request->run.eval;
    uint64_t whole, longest;
    *out_bytes = 0;
    *out_alignment = 1;
    bh_status status =
        bhi_pieces_measure(eval->arguments, eval->inputs + eval->outputs, &whole, detail);
    if (status != BH_OK || whole <= (eval->piece ? eval->piece : BHI_RANGE_OF_ALL)) {
        return status;
    }
    status = bhi_runner_limits(work, &longest, out_alignment, detail);
    *out_bytes = eval->piece && (eval->piece < longest || !longest) ? eval->piece : longest;
    return status;
}

bool bhi_stage_cut(struct bhi_work *work) {
    struct bhi_eval_request *eval = work->request->run.eval;
    const uint32_t arrays = eval->inputs + eval->outputs;
    bh_detail detail = {0};
    uint64_t piece;
    uint32_t alignment;
    bh_status status = bhi_eval_take_outputs(eval, &work->request->run, &detail);
    if (status == BH_OK) {
        status = choose_piece(work, &piece, &alignment, &detail);
    }
    if (status == BH_OK) {
        const struct bhi_eval_limits limits = {.bytes = piece,
                                               .alignment = alignment ? alignment : 1};
        status = bhi_eval_plan_cut(work->plan, eval->arguments, eval->count, arrays, &limits,
                                   &work->pieces, &detail);
    }
    return status == BH_OK || refuse(work, status, &detail);
}

/* The plan of a batch (--dry-run). */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "batch/report/tally.h"
#include "cli/batch_look.h"
#include "tool/complain.h"
#include "tool/ending.h"
#include "tool/exit_status.h"
#include "tool/json.h"
#include "tool/quantity.h"
#include "tool/report/columns.h"

static const struct bhi_column columns[] = {{.name = "JOB", .most = 24},
                                            {.name = "LINE", .right = true},
                                            {.name = "KERNEL", .most = 24},
                                            {.name = "AFTER"}};
enum { COLUMN_COUNT = sizeof columns / sizeof columns[0], NAMED = 8 };

struct plan {
    struct bhi_columns table;
    json_t *list; /* owned; NULL: print a table */
    uint64_t count;
};

/* Writes "a, b and 5 more", or "-" for nothing. */
static void name_needs(const json_t *needs, char *out, size_t capacity) {
    size_t used = 0, i;
    json_t *id;
    snprintf(out, capacity, "-");
    json_array_foreach(needs, i, id) {
        if (i == NAMED) {
            snprintf(out + used, capacity - used, " and %zu more", json_array_size(needs) - i);
            return;
        }
        used += (size_t)snprintf(out + used, capacity - used, "%s%s", i ? ", " : "",
                                 json_string_value(id));
    }
}

static bool add(struct plan *plan, const struct bhi_job *job) {
    const struct bhi_job_record record = {.text = job->text};
    char kernel[BHI_TALLY_KERNEL], line[24], after[NAMED * (BHI_JOB_ID + 2) + 40];
    json_t *object = json_loads(job->text, 0, NULL);
    json_t *needs = json_object_get(object, "depends_on");
    plan->count++;
    if (plan->list) {
        json_array_append_new(plan->list,
                              json_pack("{s:o, s:I, s:o, s:o, s:b}", "id", bhi_json_text(job->id),
                                        "line", (json_int_t)job->line, "kernel",
                                        bhi_json_text(bhi_tally_kernel(&record, kernel)),
                                        "depends_on", needs ? json_incref(needs) : json_array(),
                                        "complete", job->sealed));
    } else {
        snprintf(line, sizeof line, "%zu", job->line);
        if (job->sealed) {
            snprintf(after, sizeof after, "it is complete: only its outputs are put in place");
        } else {
            name_needs(needs, after, sizeof after);
        }
        const char *const cells[COLUMN_COUNT] = {job->id, line,
                                                 bhi_tally_kernel_short(&record, kernel), after};
        bhi_columns_row(&plan->table, cells, BHI_TONE_PLAIN);
    }
    json_decref(object);
    return !plan->table.failed;
}

static bool print(struct plan *plan, const struct bhi_batch_look *look, int exit_status) {
    char number[BHI_QUANTITY];
    if (plan->list) {
        json_t *object =
            json_pack("{s:b, s:o, s:o, s:I, s:i, s:O}", "dry_run", true, "jobs",
                      bhi_json_text(look->jobs_path), "state", bhi_json_text(look->state), "total",
                      (json_int_t)plan->count, "exit_status", exit_status, "plan", plan->list);
        const bool good = object && json_dumpf(object, stdout, JSON_INDENT(2)) == 0;
        bhi_ending_answered();
        fputc('\n', stdout);
        json_decref(object);
        return good;
    }
    printf("%s job%s would run, one by one in this order; nothing was started\n",
           bhi_quantity_count(number, plan->count), plan->count == 1 ? "" : "s");
    if (plan->count) {
        fputc('\n', stdout);
    }
    return !plan->count || bhi_columns_print(&plan->table, stdout, 2, bhi_columns_width(stdout));
}

int bhi_batch_plan(struct bhi_queue *queue, const struct bhi_batch_look *look) {
    const struct bhi_attempt done = {.next = BHI_JOB_DONE};
    const int exit_status = look->bad ? BHI_EXIT_POISONED : BHI_EXIT_READY;
    struct plan plan = {.list = look->json ? json_array() : NULL};
    struct bhi_job *job;
    bool good = true;
    bhi_columns_init(&plan.table, columns, COLUMN_COUNT);
    while (good && (job = bhi_queue_take(queue))) {
        good = add(&plan, job);
        bhi_queue_ended(queue, job, &done, 0);
    }
    good = good && print(&plan, look, exit_status);
    bhi_columns_free(&plan.table);
    json_decref(plan.list);
    if (!good && !ferror(stdout)) {
        return bhi_complain_memory("batch");
    }
    return good ? exit_status : BHI_EXIT_ENVIRON;
}

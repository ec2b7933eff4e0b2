#include "few_jobs.h"

#include "support.h"

#include <stdio.h>

struct bhi_queue *open_queue_of(const char *jobs_path) {
    const struct bhi_queue_options options = {.jobs_path = jobs_path, .retries = 2};
    struct bhi_complaint complaint;
    struct bhi_queue *queue;
    if (bhi_queue_open(&options, &queue, &complaint) != BHI_QUEUE_OK) {
        BHT_FAIL("%s", complaint.text);
    }
    return queue;
}

struct bhi_queue *open_queue(void) {
    return open_queue_of("jobs.jsonl");
}

static void take_words(char *line, size_t used, const char *key, const char *words, bool bindings) {
    char copy[512], *save = NULL;
    int i = !strcmp(key, "out") ? 100 : !strcmp(key, "inout") ? 200 : 0;
    snprintf(copy, sizeof copy, "%s", words);
    sprintf(line + used, ", \"%s\": %c", key, bindings ? '{' : '[');
    const char *comma = "";
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *end = line + strlen(line);
        if (bindings) {
            sprintf(end, "%s\"%d\": \"%s%s\"", comma, i, word, i >= 100 && i < 200 ? ":u8[1]" : "");
        } else {
            sprintf(end, "%s\"%s\"", comma, word);
        }
        comma = ", ";
        i++;
    }
    strcat(line, bindings ? "}" : "]");
}

static bool has_word(const char *words, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at++) {
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length])) {
            return true;
        }
    }
    return false;
}

/* Those of |words| that are (not) among |others|, too. */
static void choose(char out[512], const char *words, const char *others, bool among) {
    char copy[512], *save = NULL;
    size_t used = 0;
    snprintf(copy, sizeof copy, "%s", words);
    *out = '\0';
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        if (has_word(others, word) == among) {
            used += (size_t)sprintf(out + used, "%s%s", used ? " " : "", word);
        }
    }
}

void job(struct jobs *jobs, const char *id, const char *needs, const char *reads,
         const char *writes, int priority) {
    char line[4096];
    struct bhi_complaint complaint;
    sprintf(line, "{\"id\": \"%s\", \"kernel\": \"k\", \"groups\": [1], \"priority\": %d", id,
            priority);
    take_words(line, strlen(line), "depends_on", needs, false);
    char words[512];
    choose(words, reads, writes, false);
    take_words(line, strlen(line), "in", words, true);
    choose(words, writes, reads, false);
    take_words(line, strlen(line), "out", words, true);
    choose(words, reads, writes, true); /* what it replaces */
    take_words(line, strlen(line), "inout", words, true);
    strcat(line, "}");
    struct bhi_job_spec *spec = &jobs->specs[jobs->count];
    if (!bhi_job_parse(line, strlen(line), spec, &complaint)) {
        BHT_FAIL("%s: %s", line, complaint.text);
    }
    spec->line = ++jobs->count;
}

void free_jobs(struct jobs *jobs) {
    for (size_t i = 0; i < jobs->count; i++) {
        bhi_job_spec_free(&jobs->specs[i]);
    }
    jobs->count = 0;
}

void add(struct bhi_queue *queue, struct jobs *jobs) {
    struct bhi_complaint complaint;
    if (bhi_queue_add(queue, jobs->specs, jobs->count, &complaint) != BHI_QUEUE_OK) {
        BHT_FAIL("%s", complaint.text);
    }
    free_jobs(jobs);
}

void expect_refused(struct bhi_queue *queue, struct jobs *jobs, const char *words) {
    struct bhi_complaint complaint;
    BHT_EQ(bhi_queue_add(queue, jobs->specs, jobs->count, &complaint), BHI_QUEUE_BAD_INPUT);
    if (!strstr(complaint.text, words)) {
        BHT_FAIL("\"%s\" has no \"%s\"", complaint.text, words);
    }
    free_jobs(jobs);
}

struct bhi_job *expect_next(struct bhi_queue *queue, const char *id) {
    struct bhi_job *next = bhi_queue_take(queue);
    if (!next != !id) {
        BHT_FAIL("%s instead of %s", next ? next->id : "none", id ? id : "none");
    }
    if (id) {
        BHT_STR_EQ(next->id, id);
    }
    return next;
}

void end(struct bhi_queue *queue, struct bhi_job *job, enum bhi_job_state next, bh_status status,
         uint64_t delay_ns) {
    const struct bhi_attempt attempt = {.next = next,
                                        .guilty =
                                            bh_status_classify(status) == BH_STATUS_CLASS_GUILTY,
                                        .started = true,
                                        .verdict = {.status = status}};
    bhi_queue_started(queue, job, 0);
    bhi_queue_ended(queue, job, &attempt, delay_ns);
}

void run(struct bhi_queue *queue, const char *id) {
    end(queue, expect_next(queue, id), BHI_JOB_DONE, BH_OK, 0);
}

void expect_counts(struct bhi_queue *queue, const uint64_t expected[BHI_JOB_STATES]) {
    struct bhi_queue_counts counts;
    uint64_t total = 0;
    bhi_queue_counts(queue, &counts);
    for (int i = 0; i < BHI_JOB_STATES; i++) {
        if (counts.of[i] != expected[i]) {
            BHT_FAIL("%llu are %s instead of %llu", (unsigned long long)counts.of[i],
                     bhi_job_state_name((enum bhi_job_state)i), (unsigned long long)expected[i]);
        }
        total += counts.of[i];
    }
    BHT_EQ(counts.total, total);
}

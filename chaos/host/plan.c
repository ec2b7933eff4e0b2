#include "chaos/host/plan.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "chaos/engine/schedule.h"
#include "tool/interrupt.h"

#define MS 1000000ull

/* How often each comes. A dead zygote takes all workers with it. */
static const uint32_t fault_shares[BHI_FAULT_KINDS] = {
    [BHI_FAULT_KILL] = 6,    [BHI_FAULT_SEGV] = 4,  [BHI_FAULT_STOP] = 1,
    [BHI_FAULT_GARBAGE] = 2, [BHI_FAULT_CLOSE] = 1, [BHI_FAULT_SLOW] = 3,
};
static const uint32_t target_shares[BHI_TARGET_KINDS] = {
    [BHI_TARGET_WORKER] = 12, [BHI_TARGET_SPARE] = 3,    [BHI_TARGET_COMPILER] = 8,
    [BHI_TARGET_LOADER] = 4,  [BHI_TARGET_SENTINEL] = 1, [BHI_TARGET_ZYGOTE] = 1,
    [BHI_TARGET_WARDEN] = 1,  [BHI_TARGET_OPENER] = 1,
};

void bhi_plan_draw(struct bhi_host_plan *plan, uint64_t seed, uint32_t fault_set,
                   uint32_t target_set, double rate) {
    *plan = (struct bhi_host_plan){.fault_set = fault_set, .target_set = target_set};
    bhi_random_seed(&plan->random, seed, 2);
    plan->twice_gap_ns = bhi_schedule_twice_gap(rate);
}

/* Draws the same number of values for each fault, so that no kind shifts the later ones. */
static void draw_next(struct bhi_host_plan *plan) {
    struct bhi_planned *next = &plan->last;
    next->number++;
    next->at_ns += bhi_random_below(&plan->random, plan->twice_gap_ns + 1);
    next->fault =
        (enum bhi_fault_kind)bhi_schedule_draw(&plan->random, fault_shares, plan->fault_set);
    next->target =
        (enum bhi_target_kind)bhi_schedule_draw(&plan->random, target_shares, plan->target_set);
    const uint64_t lasts_ns = bhi_schedule_lasts(&plan->random);
    next->lasts_ns = next->fault == BHI_FAULT_SLOW ? lasts_ns : 0;
    next->salt = bhi_random_next(&plan->random);
}

bool bhi_plan_next(struct bhi_host_plan *plan, struct bhi_planned *out_planned) {
    if (!plan->read) {
        draw_next(plan);
    } else if (plan->next < plan->read_count) {
        plan->last = plan->read[plan->next++];
    } else {
        return false;
    }
    *out_planned = plan->last;
    return true;
}

/* -- from a file -------------------------------------------------------------------------------- */

static int read_name(const json_t *line, const char *key, const char *const *names) {
    const char *name = json_string_value(json_object_get(line, key));
    return name ? bhi_name_find(names, name, strlen(name)) : -1;
}

static bool read_number(const json_t *line, const char *key, uint64_t unit, uint64_t *out) {
    const json_t *value = json_object_get(line, key);
    const double number = json_is_number(value) ? json_number_value(value) : -1;
    *out = number >= 0 && number < 1e12 ? (uint64_t)(number * (double)unit + 0.5) : 0;
    return number >= 0 && number < 1e12;
}

static bool read_planned(const json_t *line, struct bhi_planned *out) {
    const int fault = read_name(line, "fault", bhi_fault_names);
    const int target = read_name(line, "target", bhi_target_names);
    const char *salt = json_string_value(json_object_get(line, "salt"));
    const char *stream = json_string_value(json_object_get(line, "stream"));
    *out = (struct bhi_planned){.salt = salt ? strtoull(salt, NULL, 10) : 0};
    if (fault < 0 || !(BHI_HOST_FAULTS & 1u << fault) || target < 0 ||
        !read_number(line, "number", 1, &out->number) ||
        !read_number(line, "at_ms", MS, &out->at_ns)) {
        return false;
    }
    (void)read_number(line, "lasts_ms", MS, &out->lasts_ns);
    out->fault = (enum bhi_fault_kind)fault;
    out->target = (enum bhi_target_kind)target;
    snprintf(out->stream, sizeof out->stream, "%s", stream ? stream : "");
    return fault != BHI_FAULT_SLOW || out->lasts_ns;
}

static bool load_lines(struct bhi_host_plan *plan, FILE *file, struct bhi_complaint *complaint) {
    char *text = NULL;
    size_t size = 0, capacity = 0, number = 0;
    bool good = true;
    while (good && getline(&text, &size, file) >= 0) {
        number++;
        json_t *line = json_loads(text, 0, NULL);
        struct bhi_planned planned;
        if (!read_planned(line, &planned) || planned.at_ns < plan->last.at_ns) {
            good =
                bhi_refuse(complaint, "line %zu is no fault of a host, or comes too late", number);
        } else if (!BHI_ARRAY_RESERVE(plan->read, capacity, plan->read_count + 1)) {
            good = bhi_refuse_memory(complaint);
        } else {
            plan->read[plan->read_count++] = plan->last = planned;
        }
        json_decref(line);
    }
    free(text);
    return good;
}

bool bhi_plan_load(struct bhi_host_plan *plan, const char *path, struct bhi_complaint *complaint) {
    *plan = (struct bhi_host_plan){0};
    FILE *file = bhi_interrupt_open(path);
    if (!file) {
        return bhi_refuse(complaint, "it cannot be opened: %s", strerror(errno));
    }
    const bool good = load_lines(plan, file, complaint);
    fclose(file);
    if (good && !plan->read_count) {
        return bhi_refuse(complaint, "there is no fault in it");
    }
    return good;
}

void bhi_plan_free(struct bhi_host_plan *plan) {
    free(plan->read);
    *plan = (struct bhi_host_plan){0};
}

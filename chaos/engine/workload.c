#include "chaos/engine/workload.h"

/* A poisoned operation poisons those that read it. With one input or more on average, poison would
 * never die out. So the average is lower, and an operation that is known to be poisoned is seldom
 * read. */
static const uint32_t input_shares[] = {8, 7, 3, 1, 1}; /* of 20: none, one, two, … */
static const uint32_t sizes[] = {64, 256, 1024, 4096};

void bhi_workload_init(struct bhi_workload *workload, uint64_t seed, bool uses_device) {
    *workload = (struct bhi_workload){.uses_device = uses_device};
    bhi_random_seed(&workload->random, seed, 2);
}

void bhi_workload_forget(struct bhi_workload *workload) {
    for (uint32_t i = 0; i < BHI_WORKLOAD_RECENT; i++) {
        bhi_operation_release(workload->recent[i]);
        workload->recent[i] = NULL;
    }
}

static uint32_t draw(struct bhi_workload *workload, uint32_t end) {
    return (uint32_t)bhi_random_below(&workload->random, end);
}

/* Draws one of the recent operations that can be read, or NULL. */
static struct bhi_operation *draw_recent(struct bhi_workload *workload, bool bait) {
    struct bhi_operation *found = workload->recent[draw(workload, BHI_WORKLOAD_RECENT)];
    const bool poisoned_too = draw(workload, 8) == 0;
    if (!found || (found->bait && !bait) ||
        (!poisoned_too && bh_event_query(found->event) == BH_EVENT_POISONED)) {
        return NULL;
    }
    return found;
}

static struct bhi_operation *retained(struct bhi_operation *operation) {
    bhi_operation_retain(operation);
    return operation;
}

static bool reads(const struct bhi_plan *plan, const struct bhi_operation *operation) {
    for (uint32_t i = 0; i < plan->input_count; i++) {
        if (plan->inputs[i] == operation) {
            return true;
        }
    }
    return false;
}

static bool can_be_reused(const struct bhi_operation *old, const struct bhi_plan *plan) {
    return old && !old->bait && atomic_load(&old->collected) && old->words == plan->work.words &&
           !reads(plan, old);
}

/* Lets the plan overwrite the output of |slot|, if that is possible. No later operation is planned
 * to read it; some earlier ones may not have begun yet. */
static void take_over(struct bhi_operation **slot, struct bhi_plan *plan) {
    if (!can_be_reused(*slot, plan)) {
        return;
    }
    plan->reuses = *slot;
    *slot = NULL;
}

/* Returns the output with the newest reader: its readers are the most likely not to have begun. */
static struct bhi_operation **pick_reusable(struct bhi_workload *workload,
                                            const struct bhi_plan *plan) {
    struct bhi_operation **found = &workload->recent[0];
    for (uint32_t i = 0; i < BHI_WORKLOAD_RECENT; i++) {
        struct bhi_operation **slot = &workload->recent[i];
        if (can_be_reused(*slot, plan) &&
            (!can_be_reused(*found, plan) || (*slot)->last_reader > (*found)->last_reader)) {
            found = slot;
        }
    }
    return found;
}

void bhi_workload_plan(struct bhi_workload *workload, uint32_t stream, struct bhi_plan *out_plan) {
    struct bhi_plan plan = {.stream = stream};
    uint32_t share = draw(workload, 20), wanted = 0;
    while (share >= input_shares[wanted]) {
        share -= input_shares[wanted++];
    }
    plan.work.words = sizes[draw(workload, sizeof sizes / sizeof sizes[0])];
    for (uint32_t i = 0; i < wanted; i++) {
        struct bhi_operation *input = draw_recent(workload, false);
        if (!input) {
            continue;
        }
        plan.inputs[plan.input_count++] = retained(input);
        if (input->words < plan.work.words) {
            plan.work.words = input->words;
        }
    }
    struct bhi_operation *wait = draw(workload, 8) == 0 ? draw_recent(workload, true) : NULL;
    if (wait) {
        plan.wait = retained(wait);
    }
    plan.work.multiplier = (uint32_t)bhi_random_next(&workload->random) | 1;
    plan.work.addend = (uint32_t)bhi_random_next(&workload->random);
    plan.work.shift = draw(workload, 32);
    plan.work.rounds = 1 + draw(workload, 8);
    if (draw(workload, 2)) {
        take_over(pick_reusable(workload, &plan), &plan);
    }
    plan.on_device = workload->uses_device && draw(workload, 4) != 0;
    *out_plan = plan;
}

static struct bhi_operation **find(struct bhi_workload *workload, uint64_t name) {
    static struct bhi_operation *none;
    for (uint32_t i = 0; name && i < BHI_WORKLOAD_RECENT; i++) {
        if (workload->recent[i] && workload->recent[i]->name == name) {
            return &workload->recent[i];
        }
    }
    return &none;
}

void bhi_workload_plan_again(struct bhi_workload *workload, const struct bhi_record *op,
                             struct bhi_plan *out_plan) {
    struct bhi_plan plan = {
        .stream = op->stream, .work = op->submit.work, .on_device = op->submit.device};
    for (uint32_t i = 0; i < op->submit.input_count; i++) {
        struct bhi_operation *input = *find(workload, op->submit.inputs[i]);
        if (input && input->words >= plan.work.words) { /* the input was refused this time */
            plan.inputs[plan.input_count++] = retained(input);
        }
    }
    struct bhi_operation *wait = *find(workload, op->submit.wait);
    if (wait) {
        plan.wait = retained(wait);
    }
    take_over(find(workload, op->submit.reuses), &plan);
    *out_plan = plan;
}

void bhi_plan_release(struct bhi_plan *plan) {
    for (uint32_t i = 0; i < plan->input_count; i++) {
        bhi_operation_release(plan->inputs[i]);
    }
    bhi_operation_release(plan->wait);
    bhi_operation_release(plan->reuses);
}

void bhi_workload_add(struct bhi_workload *workload, struct bhi_operation *operation) {
    struct bhi_operation **slot = &workload->recent[workload->at++ % BHI_WORKLOAD_RECENT];
    bhi_operation_release(*slot);
    *slot = retained(operation);
}

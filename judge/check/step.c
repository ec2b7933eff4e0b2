#include "judge/check/step.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "formats/dtype.h"
#include "request/fill.h"
#include "request/missing.h"
#include "request/names.h"
#include "tool/device_list.h"

/* Puts the kernel in front of what is wrong with it, if it is one of several. Returns false. */
static bool blame(const struct bhi_judged_kernel *kernel, size_t number,
                  struct bhi_complaint *complaint) {
    const struct bhi_complaint inner = *complaint;
    if (kernel->count > 1 && !complaint->memory) {
        bhi_refuse(complaint, "%.300s: %.600s",
                   kernel->plan->kernels[number].fields[BHI_PLAN_KERNEL], inner.text);
    }
    return false;
}

/* -- groups ---------------------------------------------------------------------------------- */

static bool has_groups(const struct bhi_judged_kernel *kernel, size_t number) {
    return kernel->plan && kernel->plan->kernels[number].has_groups;
}

static const char *groups_field(const struct bhi_judged_kernel *kernel, size_t number) {
    return has_groups(kernel, number) ? kernel->plan->kernels[number].fields[BHI_PLAN_GROUPS]
                                      : "groups";
}

/* Of one kernel for a size. */
static bool compute_groups(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                           size_t number, const struct bhi_task_groups *groups, size_t size,
                           uint32_t out_groups[3], struct bhi_judge_outcome *outcome) {
    const uint32_t *const local = kernel->steps[number].types->local_size;
    struct bhi_complaint complaint;
    if (has_groups(kernel, number)) {
        groups = &kernel->plan->kernels[number].groups;
    }
    if (!bhi_task_groups_for(court->task, size, groups, local, out_groups, &complaint)) {
        return bhi_judge_outcome_fail(
            outcome, BH_BINDING_MISMATCH, "%.300s: %.250s, and a workgroup of %ux%ux%u",
            groups_field(kernel, number), complaint.text, local[0], local[1], local[2]);
    }
    return true;
}

/* The device is asked only where Vulkan does not say that each takes as many. */
bool bhi_setup_steps_check_groups(const struct bhi_court *court,
                                  const struct bhi_judged_kernel *kernel,
                                  const struct bhi_setup_step *steps, size_t size,
                                  struct bhi_judge_outcome *outcome) {
    static const uint32_t every_device = 65535;
    const bh_device_info *device;
    struct bhi_device_list list;
    bh_detail detail = {0};
    char text[BHI_SIZE_TEXT];
    bool good = true;
    for (size_t k = 0; k < kernel->count; k++) {
        for (int i = 0; i < 3; i++) {
            good = good && steps[k].groups[i] <= every_device;
        }
    }
    if (good) {
        return true;
    }
    const bh_status status = bhi_device_list_fetch(court->context, &list, &detail);
    if (status != BH_OK) {
        return bhi_judge_outcome_take(outcome, status, &detail);
    }
    device = bhi_device_list_select(&list, court->device);
    good = true;
    for (size_t k = 0; k < kernel->count && device; k++) {
        for (int i = 0; i < 3 && good; i++) {
            if (steps[k].groups[i] > device->max_groups[i]) {
                good = bhi_judge_outcome_fail(
                    outcome, BH_BINDING_MISMATCH,
                    "%.300s: %u groups along %c: the device takes %u (with %.100s)",
                    groups_field(kernel, k), steps[k].groups[i], "xyz"[i], device -> max_groups[i],
                    bhi_task_size_text(court->task, size, text));
            }
        }
    }
    bhi_device_list_free(&list);
    return good;
}

/* -- bindings -------------------------------------------------------------------------------- */

static const struct bhi_kernel_type *find_named(const struct bhi_kernel_types *types,
                                                const char *name) {
    for (uint32_t i = 0; i < types->count; i++) {
        if (!strcmp(types->types[i].name, name)) {
            return &types->types[i];
        }
    }
    return NULL;
}

static bool declares(const struct bhi_kernel_types *types, const struct bhi_run_binding *binding) {
    return binding->name[0] ? find_named(types, binding->name)
                            : bhi_kernel_types_find(types, binding->slot);
}

static bool add_bindings(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                         size_t number, const struct bhi_array forms[], struct bhi_setup_step *step,
                         struct bhi_complaint *complaint) {
    const uint32_t count = bhi_judged_arrays(court->task, kernel);
    for (uint32_t i = 0; i < count; i++) {
        const struct bhi_task_array *array = bhi_judged_array(court->task, kernel, i);
        const size_t length = strlen(array->place);
        struct bhi_run_binding place = {.text = NULL};
        const struct bhi_kernel_type *const parameter =
            kernel->cuda ? find_named(kernel->steps[number].types, array->place) : NULL;
        if (!bhi_binding_parse_place(&place, array->place, length, complaint)) {
            return false;
        }
        if (kernel->cuda ? !parameter
                         : kernel->count > 1 && !declares(kernel->steps[number].types, &place)) {
            continue;
        }
        step->arrays[step->request.binding_count] = i;
        struct bhi_run_binding *binding =
            bhi_run_add_binding(&step->request, bhi_task_role_names[array->role], array->place,
                                length, bhi_dtype_name(array->dtype), complaint);
        if (!binding || !bhi_binding_parse_place(binding, array->place, length, complaint)) {
            return false;
        }
        binding->text[length] = '\0'; /* complaints name the place alone */
        if (parameter) {
            binding->name[0] = '\0';
            binding->slot = parameter->slot;
        }
        binding->access = array->role == BHI_TASK_IN ? BH_ACCESS_READ : BH_ACCESS_READ_WRITE;
        binding->array = forms[i];
    }
    return true;
}

/* What one kernel of several only reads another has written, or it is no different from noise. */
static bool check_access(const struct bhi_judged_kernel *kernel, struct bhi_run_binding *given,
                         bh_access declared, bool is_scratch, struct bhi_complaint *complaint) {
    if (given->access != BH_ACCESS_READ && declared == BH_ACCESS_READ) {
        if (kernel->count == 1 && !is_scratch) {
            return bhi_refuse(complaint, "%s %s: the kernel does not write it", given->option,
                              given->text);
        }
        given->access = BH_ACCESS_READ;
    }
    return given->access != BH_ACCESS_READ || !(declared & BH_ACCESS_WRITE) ||
           bhi_refuse(complaint, "%s %s: the kernel may write it; declare it readonly",
                      given->option, given->text);
}

/* A kernel may read numbers packed, or as another type: all that counts is that its elements fill the
 * array. */
static bool check_type(const struct bhi_run_binding *given, const char *type,
                       struct bhi_complaint *complaint) {
    const uint64_t bytes = given->array.bytes;
    const uint32_t element = bhi_type_element(type);
    return bhi_type_takes(type, given->array.dtype) || !element || bytes % element == 0 ||
           bhi_refuse(complaint,
                      "%s %s: the kernel declares %s, and %" PRIu64
                      " bytes are no whole number of its elements",
                      given->option, given->text, type, bytes);
}

/* Compares what is given with what the kernel declares, binding by binding. */
static bool check_bindings(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                           size_t number, struct bhi_setup_step *step,
                           struct bhi_complaint *complaint) {
    for (uint32_t i = 0; i < step->request.binding_count; i++) {
        struct bhi_run_binding *given = &step->request.bindings[i];
        const struct bhi_kernel_type *type =
            bhi_kernel_types_find(kernel->steps[number].types, given->slot);
        if (!type) {
            return bhi_refuse(complaint, "%s %s: the kernel has no such binding", given->option,
                              given->text);
        }
        const bool is_scratch = step->arrays[i] >= court->task->array_count;
        if (!check_access(kernel, given, type->access, is_scratch, complaint) ||
            !check_type(given, type->type, complaint)) {
            return false;
        }
    }
    return true;
}

/* Each array has to be bound by one kernel, and what is right to be written by one. */
static bool check_all_bound(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                            const struct bhi_setup_step *steps, struct bhi_complaint *complaint) {
    for (uint32_t i = 0; i < bhi_judged_arrays(court->task, kernel); i++) {
        const struct bhi_task_array *array = bhi_judged_array(court->task, kernel, i);
        bool bound = false, written = array->role == BHI_TASK_IN;
        for (size_t k = 0; k < kernel->count; k++) {
            for (uint32_t b = 0; b < steps[k].request.binding_count; b++) {
                const bool is_it = steps[k].arrays[b] == i;
                bound |= is_it;
                written |= is_it && steps[k].request.bindings[b].access != BH_ACCESS_READ;
            }
        }
        if (!bound || !written) {
            return bhi_refuse(complaint, "%s %s: no kernel %s it", bhi_task_role_names[array->role],
                              array->place, bound ? "writes" : "binds");
        }
    }
    return true;
}

bool bhi_setup_step_shows(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                          const struct bhi_setup_step *step, size_t number, uint32_t binding) {
    const struct bhi_kernel_type *type =
        bhi_kernel_types_find(kernel->steps[number].types, step->request.bindings[binding].slot);
    return !court->task->robust && type && type->kind == BH_BINDING_STORAGE_BUFFER &&
           !type->measured;
}

/* -- push constants -------------------------------------------------------------------------- */

static bool has_member(const struct bhi_kernel_types *types, const char *name, size_t length) {
    bool named = false;
    for (uint32_t i = 0; i < types->member_count; i++) {
        const char *const one = types->members[i].name;
        named |= *one != '\0';
        if (!strncmp(one, name, length) && !one[length]) {
            return true;
        }
    }
    return !named; /* stripped: that is said when they are resolved */
}

/* Leaves those that the kernel has, in place: it need not take all. */
static void leave_out(const struct bhi_kernel_types *types, char *push) {
    char *to = push;
    for (const char *at = push; *at;) {
        const size_t length = strcspn(at, ",");
        if (has_member(types, at, strcspn(at, "="))) {
            if (to != push) {
                *to++ = ',';
            }
            memmove(to, at, length);
            to += length;
        }
        at += length + (at[length] == ',');
    }
    *to = '\0';
}

static bool take_push(const struct bhi_court *court, const struct bhi_kernel_types *types,
                      const struct bhi_trial *trial, uint64_t seed, struct bhi_setup_step *step,
                      struct bhi_complaint *complaint) {
    if (!bhi_task_push_text(court->task, trial->size, seed, &step->push, complaint)) {
        return false;
    }
    const bool takes = types->push_size > 0; /* it need not */
    const bool none = !*step->push;
    leave_out(types, step->push);
    if (takes && !*step->push) {
        return bhi_refuse(complaint, "push: the kernel has push constants, and the task has none%s",
                          none ? "" : " of them");
    }
    return !takes || !*step->push ||
           bhi_run_parse_push_names(&step->request, step->push, complaint);
}

/* -- all ------------------------------------------------------------------------------------- */

static bool make(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                 size_t number, const struct bhi_trial *trial, const struct bhi_array forms[],
                 uint64_t push_seed, struct bhi_setup_step *step, struct bhi_complaint *complaint) {
    const struct bhi_kernel_types *types = kernel->steps[number].types;
    if (!bhi_run_request_init(&step->request, kernel->name, bhi_judged_arrays(court->task, kernel),
                              complaint)) {
        return false;
    }
    step->request.sources = "in \"in\", \"out\" or \"inout\" of the task, or \"scratch\" of a plan";
    return add_bindings(court, kernel, number, forms, step, complaint) &&
           take_push(court, types, trial, push_seed, step, complaint) &&
           bhi_run_resolve_names(&step->request, types, "", complaint) &&
           check_bindings(court, kernel, number, step, complaint);
}

static bool compute_shared(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                           size_t number, size_t size, uint32_t *out,
                           struct bhi_complaint *complaint) {
    uint64_t bytes = 0;
    if (!kernel->plan) {
        return true;
    }
    const struct bhi_task_cuda *plan = &kernel->plan->kernels[number].cuda;
    if (!bhi_task_amount(court->task, size, &plan->shared, &bytes, complaint)) {
        const struct bhi_complaint inner = *complaint;
        return bhi_refuse(complaint, "\"shared\": %.500s", inner.text);
    }
    *out = (uint32_t)bytes;
    return bytes <= UINT32_MAX || bhi_refuse(complaint, "\"shared\": more than 4 GiB");
}

bool bhi_setup_steps_make(const struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                          const struct bhi_task_groups *groups, const struct bhi_trial *trial,
                          const struct bhi_array forms[], uint64_t push_seed,
                          struct bhi_setup_step **out_steps, struct bhi_judge_outcome *outcome) {
    struct bhi_complaint complaint = {.text = ""};
    struct bhi_setup_step *steps = calloc(kernel->count, sizeof *steps);
    bool good = steps || bhi_judge_outcome_memory(outcome);
    for (size_t i = 0; i < kernel->count && good; i++) {
        good = compute_groups(court, kernel, i, groups, trial->size, steps[i].groups, outcome);
        if (good &&
            (!make(court, kernel, i, trial, forms, push_seed, &steps[i], &complaint) ||
             !compute_shared(court, kernel, i, trial->size, &steps[i].shared_bytes, &complaint))) {
            blame(kernel, i, &complaint);
            good = bhi_judge_outcome_refuse(outcome, BH_BINDING_MISMATCH, &complaint);
        }
    }
    if (good && !check_all_bound(court, kernel, steps, &complaint)) {
        good = bhi_judge_outcome_refuse(outcome, BH_BINDING_MISMATCH, &complaint);
    }
    if (!good) {
        bhi_setup_steps_free(steps, kernel->count);
        steps = NULL;
    }
    *out_steps = steps;
    return good;
}

void bhi_setup_steps_free(struct bhi_setup_step *steps, size_t count) {
    for (size_t i = 0; i < count && steps; i++) {
        bhi_run_request_free(&steps[i].request);
        free(steps[i].push);
    }
    free(steps);
}

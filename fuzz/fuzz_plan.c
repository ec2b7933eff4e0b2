/* Any bytes as a candidate, of which nobody knows who has written it: it has no plan, or one that is
 * refused with a reason, or one within its bounds, whose scratch can be computed or is refused. */
#include "fuzz.h"
#include "judge/task/plan.h"

#include <stdlib.h>
#include <string.h>

static const char task_text[] =
    "{\"sizes\": [{\"n\": 1000, \"m\": 1}], \"groups\": [1],\n"
    "\"in\": {\"X\": {\"dtype\": \"f32\", \"shape\": [\"n\"], \"fill\": \"uniform\"}},\n"
    "\"out\": {\"Y\": {\"dtype\": \"f32\", \"shape\": [\"n\"]}},\n"
    "\"reference\": {\"kernel\": \"r\"}}";

static void check_kernel(const struct bhi_judge_plan_kernel *kernel, bool in_source) {
    FUZZ_CHECK(in_source || kernel->path || kernel->text);
    FUZZ_CHECK(!kernel->path || !kernel->text);
    FUZZ_CHECK((!kernel->path || *kernel->path) && (!kernel->text || *kernel->text));
    FUZZ_CHECK(kernel->source.define_count <= BHI_MAX_DEFINES);
    FUZZ_CHECK(kernel->spec_count <= BHI_PLAN_SPECS);
    for (int i = 0; i < 3; i++) {
        FUZZ_CHECK(kernel->cuda.block[i] <= 1024 &&
                   !kernel->cuda.block[i] == !kernel->cuda.block[0]);
    }
    FUZZ_CHECK(kernel->cuda.parameter_count <= BHI_CUDA_LIST);
    FUZZ_CHECK(kernel->include_count <= BHI_PLAN_INCLUDES && !kernel->source.include_count);
    for (size_t i = 0; i < BHI_PLAN_FIELDS; i++) {
        FUZZ_CHECK(kernel->fields[i] && !strncmp(kernel->fields[i], "c:", 2));
    }
    for (uint32_t i = 0; i < kernel->spec_count; i++) {
        const uint32_t size = kernel->specs[i].size;
        FUZZ_CHECK(size == 1 || size == 2 || size == 4 || size == 8);
    }
    for (uint32_t i = 0; i < kernel->source.define_count; i++) {
        const char *const value = kernel->source.defines[i].value;
        FUZZ_CHECK(!value || !strpbrk(value, "\r\n"));
    }
}

static void check_plan(const struct bhi_judge_plan *plan, const struct bhi_task *task,
                       bool in_source) {
    static const uint32_t local[3] = {64, 1, 1};
    struct bhi_array shapes[BHI_PLAN_SCRATCH];
    struct bhi_complaint complaint = {.text = ""};
    FUZZ_CHECK(plan->kernel_count >= 1 && plan->kernel_count <= BHI_PLAN_KERNELS);
    FUZZ_CHECK(plan->scratch_count <= BHI_PLAN_SCRATCH);
    for (size_t i = 0; i < plan->kernel_count; i++) {
        uint32_t groups[3];
        const struct bhi_judge_plan_kernel *kernel = &plan->kernels[i];
        check_kernel(kernel, in_source);
        if (kernel->has_groups &&
            bhi_task_groups_for(task, 0, &kernel->groups, local, groups, &complaint)) {
            FUZZ_CHECK(groups[0] && groups[1] && groups[2]);
        }
    }
    if (bhi_judge_plan_shapes(plan, task, 0, 8000, shapes, &complaint)) {
        uint64_t bytes = 0;
        for (size_t i = 0; i < plan->scratch_count; i++) {
            bytes += shapes[i].bytes;
        }
        FUZZ_CHECK(bytes <= 16 << 20);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bhi_complaint complaint = {.text = ""};
    struct bhi_judge_plan_place whole = {(const char *)data, size, 1}, found;
    struct bhi_judge_plan *plan;
    struct bhi_task task;
    FUZZ_CHECK(bhi_task_parse("t", "", task_text, &task, &complaint));
    for (int in_source = 0; in_source < 2; in_source++) {
        if (bhi_judge_plan_parse("c", &whole, in_source, &task, &plan, &complaint)) {
            check_plan(plan, &task, in_source);
            bhi_judge_plan_free(plan);
        } else {
            FUZZ_CHECK(!plan && !strncmp(complaint.text, "c:", 2));
        }
        if (in_source || !bhi_judge_plan_find("c", whole.text, size, &found, &complaint) ||
            !found.text) {
            break;
        }
        FUZZ_CHECK(found.text >= whole.text && found.length <= size && found.line > 0);
        FUZZ_CHECK((size_t)(found.text - whole.text) + found.length <= size);
        FUZZ_CHECK(!memchr(found.text, '\n', found.length));
        whole = found;
    }
    bhi_task_free(&task);
    return 0;
}

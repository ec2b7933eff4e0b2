#include "judge/time/contender.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "judge/check/candidate.h"
#include "judge/check/content.h"
#include "judge/check/kernel_make.h"
#include "judge/check/launch.h"

bool bhi_contender_open(struct bhi_court *court, const struct bhi_kernel_file *file, bool trusted,
                        const struct bhi_task_groups *groups, struct bhi_contender *out,
                        struct bhi_judge_outcome *outcome) {
    *out = (struct bhi_contender){.groups = groups};
    if (!bhi_judged_kernel_make(court, file, trusted, 0, &out->kernel, outcome)) {
        return false;
    }
    if (!bhi_court_timed_stream(court, &out->stream, outcome)) {
        bhi_judged_kernel_free(&out->kernel);
        return false;
    }
    return true;
}

/* Closes it if its kernel is not what it was when candidates were checked. */
static bool is_unchanged(struct bhi_contender *contender, const uint8_t content[BHI_CONTENT_HASH],
                         const char *path, struct bhi_judge_outcome *outcome) {
    const struct bhi_judged_kernel *kernel = &contender->kernel;
    if (!kernel->has_content || !memcmp(kernel->content, content, BHI_CONTENT_HASH)) {
        return true;
    }
    bhi_contender_close(contender);
    return bhi_judge_outcome_fail(outcome, BH_LOAD_FAILED,
                                  "%.400s: the reference has changed since the candidates were "
                                  "checked with it",
                                  path);
}

bool bhi_contender_open_reference(struct bhi_court *court, struct bhi_contender *out,
                                  struct bhi_judge_outcome *outcome) {
    const struct bhi_task *task = court->task;
    const struct bhi_candidate *baseline = court->baseline;
    if (baseline) {
        return bhi_contender_open(court, &baseline->file, false, &task->groups, out, outcome) &&
               is_unchanged(out, baseline->judgement.content, baseline->file.path, outcome);
    }
    if (task->reference == BHI_REFERENCE_KERNEL) {
        const struct bhi_kernel_file file = {.path = task->reference_kernel.path,
                                             .deadline_ns = task->compile_deadline_ns};
        return bhi_contender_open(court, &file, false, &task->reference_groups, out, outcome) &&
               is_unchanged(out, court->reference, file.path, outcome);
    }
    *out = (struct bhi_contender){.is_expression = true};
    return bhi_court_timed_stream(court, &out->stream, outcome);
}

void bhi_contender_rest(struct bhi_contender *contender) {
    bh_stream_release(contender->stream);
    contender->stream = NULL;
}

bool bhi_contender_renew(const struct bhi_court *court, struct bhi_contender *contender,
                         struct bhi_judge_outcome *outcome) {
    bh_stream *fresh;
    if (!bhi_court_timed_stream(court, &fresh, outcome)) {
        return false;
    }
    bhi_contender_rest(contender);
    contender->stream = fresh;
    return true;
}

void bhi_contender_close(struct bhi_contender *contender) {
    bh_stream_release(contender->stream);
    bhi_judged_kernel_free(&contender->kernel);
    bhi_reference_template_free(&contender->cache);
    bhi_tray_close(&contender->tray);
    *contender = (struct bhi_contender){0};
}

struct bhi_program bhi_contender_program(struct bhi_contender *contender) {
    return (struct bhi_program){.kernel = contender->is_expression ? NULL : &contender->kernel,
                                .groups = contender->groups,
                                .cache = &contender->cache};
}

/* -- the caches ------------------------------------------------------------------------------ */

/* 1.5 times the L2 of a GPU. Vulkan does not say how large that is; none is larger than 128 MiB. */
static const uint64_t gpu_size = UINT64_C(192) << 20;
/* Of a driver that runs on the processor: 1.5 times the L2 caches of all processors. At least, for
 * machines that do not say; at most, so that a run takes no longer than need be. */
static const uint64_t least_size = UINT64_C(8) << 20, most_size = UINT64_C(64) << 20;

static uint64_t processor_size(void) {
    const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE), processors = sysconf(_SC_NPROCESSORS_ONLN);
    const uint64_t all =
        (cache > 0 ? (uint64_t)cache : 0) * (processors > 0 ? (uint64_t)processors : 0);
    const uint64_t size = (all + all / 2) / 4096 * 4096;
    return size < least_size ? least_size : size > most_size ? most_size : size;
}

bool bhi_flush_open(const struct bhi_court *court, struct bhi_flush *out,
                    struct bhi_judge_outcome *outcome) {
    *out = (struct bhi_flush){0};
    if (!bhi_court_timed_stream(court, &out->stream, outcome)) {
        return false;
    }
    bool on_processor;
    if (!bhi_stream_is_on_processor(out->stream, &on_processor, outcome)) {
        bhi_flush_close(out);
        return false;
    }
    out->size = on_processor ? processor_size() : gpu_size;
    if (!bhi_content_make(court->context, out->stream, out->size, &out->buffer, outcome)) {
        bhi_flush_close(out);
        return false;
    }
    return true;
}

bool bhi_flush_run(struct bhi_flush *flush, struct bhi_judge_outcome *outcome) {
    const bh_command command = {
        .type = BH_COMMAND_FILL,
        .fill = {.dst = flush->buffer, .size = BH_WHOLE_SIZE, .value = ++flush->value}};
    return bhi_court_submit(flush->stream, &command, 1, NULL, outcome);
}

void bhi_flush_close(struct bhi_flush *flush) {
    bh_buffer_release(flush->buffer);
    bh_stream_release(flush->stream);
    *flush = (struct bhi_flush){0};
}

/* -- the empty kernel ------------------------------------------------------------------------ */

bool bhi_base_open(const struct bhi_court *court, struct bhi_base *out,
                   struct bhi_judge_outcome *outcome) {
    *out = (struct bhi_base){0};
    return bhi_court_timed_stream(court, &out->stream, outcome);
}

/* GLSL that declares the bindings of the dispatch and does nothing. They must be used somewhere, or
 * the compiler leaves them out. */
static char *write_source(const bh_command *of) {
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (!out) {
        return NULL;
    }
    fprintf(out, "#version 450\nlayout(local_size_x = 1) in;\n");
    for (uint32_t i = 0; i < of->dispatch.binding_count; i++) {
        const bh_binding *binding = &of->dispatch.bindings[i];
        fprintf(out, "layout(set = %u, binding = %u) %sbuffer B%u { uint w%u[]; };\n", binding->set,
                binding->binding, binding->access == BH_ACCESS_READ ? "readonly " : "", i, i);
    }
    fprintf(out, "void main() {\n    if (gl_NumWorkGroups.x == 1u) return;\n    uint sum = 0u;\n");
    for (int pass = 0; pass < 2; pass++) { /* what is read must be written somewhere */
        for (uint32_t i = 0; i < of->dispatch.binding_count; i++) {
            const bool reads = of->dispatch.bindings[i].access == BH_ACCESS_READ;
            if (reads == !pass) {
                fprintf(out, reads ? "    sum += w%u[0];\n" : "    w%u[0] = sum;\n", i);
            }
        }
    }
    fprintf(out, "}\n");
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* The same as PTX. Parameters of the candidate between those that are bound are left out by all: they are words. */
static char *write_ptx(const bh_command *of, uint32_t *out_words) {
    char *text = NULL;
    size_t length;
    uint32_t last = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out) {
        return NULL;
    }
    for (uint32_t i = 0; i < of->dispatch.binding_count; i++) {
        const uint32_t position = of->dispatch.bindings[i].binding;
        last = position > last ? position : last;
    }
    fprintf(out, ".version 5.0\n.target sm_60\n.address_size 64\n.visible .entry nothing(");
    for (uint32_t k = 0; k <= last; k++) {
        bool bound = false;
        for (uint32_t i = 0; i < of->dispatch.binding_count; i++) {
            bound |= of->dispatch.bindings[i].binding == k;
        }
        fprintf(out, "%s.param .%s p%u", k ? ", " : "", bound ? "u64" : "u32", k);
        *out_words += !bound;
    }
    fprintf(out, ")\n{\n    ret;\n}\n");
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* An image is no candidate's: nothing of it needs to be found out. */
static bool make_image(struct bhi_judged_kernel *kernel, const struct bhi_court *court,
                       const char *ptx, struct bhi_judge_outcome *outcome) {
    const bh_kernel_options options = {.struct_size = sizeof options, .entry = "nothing"};
    bh_detail detail = {0};
    const bh_status status = bh_kernel_create_image(court->context, ptx, strlen(ptx), &options,
                                                    &kernel->steps[0].kernel, &detail);
    kernel->count = status == BH_OK;
    return status == BH_OK || bhi_judge_outcome_take(outcome, status, &detail);
}

static bool make_kernel(struct bhi_base_kernel *base, struct bhi_court *court, char *source,
                        struct bhi_judge_outcome *outcome) {
    const struct bhi_kernel_file file = {.path = "empty.comp",
                                         .code = source,
                                         .size = strlen(source),
                                         .deadline_ns = court->task->compile_deadline_ns};
    bhi_judged_kernel_free(&base->kernel);
    free(base->source);
    base->source = source;
    return court->cuda ? make_image(&base->kernel, court, source, outcome)
                       : bhi_judged_kernel_make(court, &file, false, 0, &base->kernel, outcome);
}

bool bhi_base_command(struct bhi_base *base, struct bhi_court *court, size_t step,
                      const bh_command *of, bh_command *out, struct bhi_judge_outcome *outcome) {
    struct bhi_base_kernel *const empty = &base->kernels[step];
    static const uint32_t zeros[BHI_CUDA_LIST];
    uint32_t words = 0;
    char *source = court->cuda ? write_ptx(of, &words) : write_source(of);
    if (!source) {
        return bhi_judge_outcome_memory(outcome);
    }
    if (empty->kernel.count && !strcmp(empty->source, source)) {
        free(source);
    } else if (!make_kernel(empty, court, source, outcome)) {
        return false;
    }
    *out = *of;
    out->dispatch.kernel = empty->kernel.steps[0].kernel;
    out->dispatch.groups[0] = out->dispatch.groups[1] = out->dispatch.groups[2] = 1;
    out->dispatch.push = zeros;
    out->dispatch.push_size = words * (uint32_t)sizeof zeros[0];
    out->dispatch.shared_bytes = 0;
    for (int i = 0; i < 3 && court->cuda; i++) {
        out->dispatch.block[i] = 1;
    }
    return true;
}

void bhi_base_close(struct bhi_base *base) {
    bh_stream_release(base->stream);
    bhi_tray_close(&base->tray);
    for (size_t i = 0; i < BHI_PLAN_KERNELS; i++) {
        bhi_judged_kernel_free(&base->kernels[i].kernel);
        free(base->kernels[i].source);
    }
    *base = (struct bhi_base){0};
}

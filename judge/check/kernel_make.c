#include "judge/check/kernel_make.h"

#include <stdlib.h>
#include <string.h>

#include "judge/check/cuda.h"
#include "request/kernel_maker.h"
#include "tool/text.h"

/* Makes the opposite of a kernel: |options| are those of the kernel. */
static bool make_opposite(bh_context *context, bh_kernel_options options,
                          struct bhi_judged_step *step, struct bhi_judge_outcome *outcome) {
    bh_detail detail;
    size_t size;
    void *code = NULL;
    options.noise ^= 1;
    bh_status status = bh_kernel_code(step->kernel, NULL, 0, &size, &detail);
    if (status == BH_OK && !(code = malloc(size))) {
        return bhi_judge_outcome_memory(outcome);
    }
    if (status == BH_OK) {
        status = bh_kernel_code(step->kernel, code, size, &size, &detail);
    }
    if (status == BH_OK) {
        status = bh_kernel_create_spirv(context, code, size, &options, &step->opposite, &detail);
    }
    free(code);
    if (status != BH_OK) {
        bhi_judge_outcome_take(outcome, status, &detail);
    }
    return status == BH_OK;
}

static bool make(const struct bhi_court *court, const struct bhi_kernel_file *file, bool trusted,
                 uint32_t noise, struct bhi_judged_step *out, struct bhi_judge_outcome *outcome) {
    static const struct bhi_kernel_words words = {.entry = "entry",
                                                  .source = "defines and includes",
                                                  .otherwise = "",
                                                  .log = BHI_LOG_IS_QUOTED};
    struct bhi_kernel_make *make = calloc(1, sizeof *make);
    bh_kernel_options options = {.struct_size = sizeof options};
    char name[64], entry[BHI_PTX_NAME];
    options.entry = file->entry;
    if (!make) {
        return bhi_judge_outcome_memory(outcome);
    }
    if (court->cuda && !bhi_cuda_entry(file, entry, &options.entry, outcome)) {
        free(make);
        return false;
    }
    bhi_kernel_file_name(file->name ? file->name : file->path, name);
    options.name = name;
    options.specializations = file->specs;
    options.specialization_count = file->spec_count;
    options.trusted = trusted;
    options.noise = court->cuda ? 0 : noise; /* it is the guard's */
    make->words = &words;
    make->context = court->context;
    make->file = file;
    make->options = &options;
    bhi_kernel_make(make);
    out->kernel = make->kernel;
    if (make->status == BH_OK && !court->cuda) {
        make->status =
            bhi_kernel_types_ask(out->kernel, file->deadline_ns, &out->types, &make->detail);
    }
    if (make->status != BH_OK) {
        /* Of code that is no module at all, the library says that it is a wrong argument. */
        const bool is_code = make->status == BH_INVALID_ARGUMENT;
        bhi_judge_outcome_take(outcome, is_code ? BH_INVALID_KERNEL : make->status, &make->detail);
        const char *why = bhi_text_without_name(outcome->message, name);
        memmove(outcome->message, why, strlen(why) + 1);
    }
    const bool good = make->status == BH_OK;
    free(make);
    return good && (!options.noise || make_opposite(court->context, options, out, outcome));
}

static bool make_all(const struct bhi_court *court, const struct bhi_judged_form *form,
                     bool trusted, uint32_t noise, struct bhi_judged_kernel *out,
                     struct bhi_judge_outcome *outcome) {
    struct bhi_complaint complaint;
    bool good = true;
    for (size_t i = 0; i < form->count && good; i++) {
        const struct bhi_kernel_file *file = &form->kernels[i].file;
        const struct bhi_judge_plan_kernel *plan = out->plan ? &out->plan->kernels[i] : NULL;
        out->count++;
        good = bhi_language_compiles(bhi_kernel_file_language(file), true, &complaint)
                   ? bhi_cuda_check_device(court, plan, file, outcome) &&
                         make(court, file, trusted, noise, &out->steps[i], outcome) &&
                         (!court->cuda || bhi_cuda_types(court, out, i, file, outcome))
                   : bhi_judge_outcome_refuse(outcome, BH_COMPILE_FAILED, &complaint);
    }
    return good;
}

bool bhi_judged_kernel_make(const struct bhi_court *court, const struct bhi_kernel_file *file,
                            bool trusted, uint32_t noise, struct bhi_judged_kernel *out,
                            struct bhi_judge_outcome *outcome) {
    struct bhi_judged_form *form = calloc(1, sizeof *form);
    *out = (struct bhi_judged_kernel){0};
    out->cuda = court->cuda;
    bhi_kernel_file_name(file->name ? file->name : file->path, out->name);
    if (!form) {
        return bhi_judge_outcome_memory(outcome);
    }
    bool good = bhi_judged_form_read(file, court->task, form, outcome);
    out->has_content = form->has_content;
    memcpy(out->content, form->content, sizeof out->content);
    if (good) {
        out->plan = form->plan;
        form->plan = NULL;
    }
    if (good && !(good = make_all(court, form, trusted, noise, out, outcome))) {
        bhi_judged_kernel_free(out);
    }
    bhi_judged_form_free(form);
    free(form);
    return good;
}

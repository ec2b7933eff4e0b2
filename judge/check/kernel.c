#include "judge/check/setup.h"

#include <stdlib.h>
#include <string.h>

#include "request/kernel_maker.h"
#include "tool/text.h"

static bool make(const struct bhi_kernel_file *file, bool trusted, uint32_t noise,
                 bh_context *context, struct bhi_judged_kernel *out,
                 struct bhi_judge_outcome *outcome) {
    static const struct bhi_kernel_words words = {.otherwise = "", .log = BHI_LOG_IS_QUOTED};
    struct bhi_kernel_make *make = calloc(1, sizeof *make);
    bh_kernel_options options = {.struct_size = sizeof options};
    if (!make) {
        return bhi_judge_outcome_memory(outcome);
    }
    options.name = out->name;
    options.trusted = trusted;
    options.shared_noise = noise;
    make->words = &words;
    make->context = context;
    make->file = file;
    make->options = &options;
    bhi_kernel_make(make);
    out->kernel = make->kernel;
    if (make->status == BH_OK) {
        make->status =
            bhi_kernel_types_ask(out->kernel, file->deadline_ns, &out->types, &make->detail);
    }
    if (make->status != BH_OK) {
        /* Of code that is no module at all, the library says that it is a wrong argument. */
        const bool is_code = make->status == BH_INVALID_ARGUMENT;
        bhi_judge_outcome_take(outcome, is_code ? BH_INVALID_KERNEL : make->status, &make->detail);
        const char *why = bhi_text_without_name(outcome->message, out->name);
        memmove(outcome->message, why, strlen(why) + 1);
    }
    const bool good = make->status == BH_OK;
    free(make);
    return good;
}

bool bhi_judged_kernel_make(const struct bhi_kernel_file *file, bool trusted, uint32_t noise,
                            bh_context *context, struct bhi_judged_kernel *out,
                            struct bhi_judge_outcome *outcome) {
    struct bhi_kernel_file whole = *file;
    struct bhi_complaint complaint;
    void *code = NULL;
    int error;
    *out = (struct bhi_judged_kernel){0};
    const bh_status status = bhi_kernel_file_read(&whole, &code, &error, &complaint);
    bhi_kernel_file_name(whole.name ? whole.name : whole.path, out->name);
    bool good = status == BH_OK;
    if (!whole.code) {
        return bhi_judge_outcome_fail(outcome, status, "%.400s: %.150s", file->path,
                                      complaint.text);
    }
    if (!good) {
        bhi_judge_outcome_refuse(outcome, BH_COMPILE_FAILED, &complaint);
    }
    if (!good || !(good = make(&whole, trusted, noise, context, out, outcome))) {
        bhi_judged_kernel_free(out);
    }
    struct bhi_content_hash *hash = bhi_content_hash_begin();
    if (hash) {
        bhi_content_hash_add(hash, whole.code, whole.size);
        bhi_content_hash_end(hash, out->content);
        out->has_content = true;
    }
    free(code);
    return good;
}

void bhi_judged_kernel_free(struct bhi_judged_kernel *kernel) {
    bh_kernel_release(kernel->kernel);
    free(kernel->types);
    kernel->kernel = NULL;
    kernel->types = NULL;
}

#include "judge/check/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "request/code.h"
#include "request/kernel_file.h"
#include "request/launch.h"
#include "tool/text.h"

enum { LOG_SIZE = 33 << 10 };

/* What compiling and inspecting needs and finds out. */
struct making {
    bh_context *context;
    const struct bhi_kernel_file *file;
    bool trusted;
    struct bhi_judged_kernel *out;
    bh_inspection inspection;
    bool inspected;
    bh_status status;
    bh_detail detail;
    char log[LOG_SIZE];
};

static bh_status compile(struct making *making) {
    bh_kernel_options options;
    bh_glsl_source source;
    const enum bhi_language language = bhi_kernel_file_language(making->file);
    bh_kernel_options_init(&options);
    options.name = making->out->name;
    options.trusted = making->trusted;
    if (language != BHI_LANGUAGE_GLSL && language != BHI_LANGUAGE_HLSL) {
        return bh_kernel_create_spirv(making->context, making->file->code, making->file->size,
                                      &options, &making->out->kernel, &making->detail);
    }
    bhi_kernel_file_source(making->file, &source);
    source.log = making->log;
    source.log_size = sizeof making->log;
    return bh_kernel_create_glsl(making->context, &source, &options, &making->out->kernel,
                                 &making->detail);
}

static void make(struct making *making) {
    bh_inspect_options options;
    making->status = compile(making);
    if (making->status != BH_OK) {
        return;
    }
    bh_inspect_options_init(&options);
    if (making->file->deadline_ns) {
        options.deadline_ns = making->file->deadline_ns;
    }
    making->inspected = true;
    making->status =
        bh_kernel_inspect(making->out->kernel, &options, &making->inspection, &making->detail);
}

/* Finds the first line of the compiler's log with an error; the first line if there is none. */
static void first_error(const char *log, char *out, size_t capacity) {
    const char *error = strstr(log, "error:"), *line = log;
    for (const char *at = log; error && at < error; at++) {
        if (*at == '\n') {
            line = at + 1;
        }
    }
    const size_t length = strcspn(line, "\n");
    bhi_format(out, capacity, "%.*s", (int)(length < 400 ? length : 400), line);
}

static bool conclude(struct making *making, struct bhi_judge_outcome *outcome) {
    struct bhi_judged_kernel *out = making->out;
    char line[512];
    if (making->status == BH_OK) {
        memcpy(out->local_size, making->inspection.local_size, sizeof out->local_size);
        out->types = bhi_kernel_types_take(&making->inspection);
        return out->types || bhi_judge_outcome_fail(outcome, BH_NO_MEMORY, "out of memory");
    }
    if (making->status == BH_COMPILE_FAILED && !making->inspected && making->log[0]) {
        first_error(making->log, line, sizeof line);
        return bhi_judge_outcome_fail(outcome, BH_COMPILE_FAILED, "it does not compile: %s", line);
    }
    /* Of code that is no module at all, the library says that it is a wrong argument. */
    const bool is_code = making->status == BH_INVALID_ARGUMENT;
    bhi_judge_outcome_take(outcome, is_code ? BH_INVALID_KERNEL : making->status, &making->detail);
    const char *why = bhi_text_without_name(bhi_text_without_name(outcome->message, out->name),
                                            making->file->path);
    memmove(outcome->message, why, strlen(why) + 1);
    if (outcome->reason == BH_REASON_NOT_SPIRV) {
        bhi_text_append(outcome->message, sizeof outcome->message,
                        "; a source needs a name that ends in .comp, .glsl or .hlsl");
    }
    return false;
}

static bool make_from(const struct bhi_kernel_file *file, bool trusted, bh_context *context,
                      struct bhi_judged_kernel *out, struct bhi_judge_outcome *outcome) {
    struct making *making = calloc(1, sizeof *making);
    if (!making) {
        return bhi_judge_outcome_fail(outcome, BH_NO_MEMORY, "out of memory");
    }
    making->context = context;
    making->file = file;
    making->trusted = trusted;
    making->out = out;
    make(making);
    const bool good = conclude(making, outcome);
    free(making);
    return good;
}

static bool make_of_code(const struct bhi_kernel_file *file, bool trusted, bh_context *context,
                         struct bhi_judged_kernel *out, struct bhi_judge_outcome *outcome) {
    struct bhi_complaint complaint;
    bhi_kernel_file_name(file->path, out->name);
    bool good = bhi_language_compiles(bhi_kernel_file_language(file), &complaint);
    if (!good) {
        bhi_judge_outcome_fail(outcome, BH_COMPILE_FAILED, "%.500s", complaint.text);
    }
    good = good && make_from(file, trusted, context, out, outcome);
    if (!good) {
        bhi_judged_kernel_free(out);
    }
    return good;
}

bool bhi_judged_kernel_make(const struct bhi_kernel_file *file, bool trusted, bh_context *context,
                            struct bhi_judged_kernel *out, struct bhi_judge_outcome *outcome) {
    struct bhi_kernel_file whole = *file;
    struct bhi_complaint complaint;
    void *code = NULL;
    int error;
    *out = (struct bhi_judged_kernel){0};
    if (!file->code) {
        if (!bhi_code_read(file->path, &code, &whole.size, &error, &complaint)) {
            return bhi_judge_outcome_fail(outcome, BH_LOAD_FAILED, "%.400s: %.150s", file->path,
                                          complaint.text);
        }
        whole.code = code;
    }
    const bool good = make_of_code(&whole, trusted, context, out, outcome);
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
    (void)bh_kernel_release(kernel->kernel);
    free(kernel->types);
    kernel->kernel = NULL;
    kernel->types = NULL;
}

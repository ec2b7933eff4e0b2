#include "judge/check/form.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "request/code.h"

/* -- files that a plan names -------------------------------------------------------------------- */

/* A candidate may name what is in its folder, and nothing else of this machine: what a compiler says
 * of a file is in the report. Returns the whole path, for the caller to free. */
static char *place(const struct bhi_kernel_file *of, const char *path, const char *field,
                   struct bhi_complaint *complaint) {
    const char *slash = strrchr(of->path, '/');
    const size_t folder = slash ? (size_t)(slash - of->path) + 1 : 0;
    char *whole = NULL;
    if (of->code) {
        bhi_refuse(complaint, "%.400s: a candidate in memory has no files: give \"source\"", field);
        return NULL;
    }
    if (path[0] == '/' || asprintf(&whole, "%.*s%s", (int)folder, of->path, path) < 0) {
        bhi_refuse(complaint, "%.400s: %.200s: it must be in the candidate's folder", field, path);
        return NULL;
    }
    char *at = whole + folder;
    for (bool more = true; more; at++) {
        struct stat status;
        char *const begin = at;
        at += strcspn(at, "/");
        const char end = *at;
        more = end;
        *at = '\0';
        const bool is_up = !strcmp(begin, "..");
        const int error = lstat(whole, &status) != 0 ? errno : 0;
        *at = end;
        if (is_up || (!error && S_ISLNK(status.st_mode))) {
            bhi_refuse(complaint,
                       is_up ? "%.400s: %.200s: it must be in the candidate's folder"
                             : "%.400s: %.200s: it must not be, or be behind, a symbolic link",
                       field, path);
            free(whole);
            return NULL;
        }
        if (error) {
            bhi_refuse(complaint, "%.400s: %.200s: %s", field, path, strerror(error));
            free(whole);
            return NULL;
        }
    }
    return whole;
}

/* Is it the reference? Whoever launches that is right. */
static bool check_own(const struct bhi_task *task, const char *path, const char *field,
                      struct bhi_complaint *complaint) {
    struct stat status, reference;
    const bool is_reference = task->reference_kernel.path && stat(path, &status) == 0 &&
                              stat(task->reference_kernel.path, &reference) == 0 &&
                              status.st_dev == reference.st_dev &&
                              status.st_ino == reference.st_ino;
    return !is_reference ||
           bhi_refuse(complaint, "%.400s: %.400s is the task's reference", field, path);
}

static bool read_code(const struct bhi_kernel_file *of, const struct bhi_task *task,
                      const struct bhi_judge_plan_kernel *plan, struct bhi_judged_form_kernel *out,
                      struct bhi_complaint *complaint) {
    struct bhi_complaint inner;
    int error;
    out->path = place(of, plan->path, plan->fields[BHI_PLAN_KERNEL], complaint);
    if (!out->path || !check_own(task, out->path, plan->fields[BHI_PLAN_KERNEL], complaint)) {
        return false;
    }
    out->file.path = out->path;
    out->file.name = NULL;
    out->file.language = plan->language;
    if (!bhi_code_read(out->path, &out->code, &out->file.size, &error, &inner)) {
        return error == ENOMEM ? bhi_refuse_memory(complaint)
                               : bhi_refuse(complaint, "%.400s: %.200s: %.300s",
                                            plan->fields[BHI_PLAN_KERNEL], plan->path, inner.text);
    }
    out->file.code = out->code;
    return true;
}

static bool read_includes(const struct bhi_kernel_file *of, const struct bhi_task *task,
                          const struct bhi_judge_plan_kernel *plan, struct bhi_source *out,
                          struct bhi_complaint *complaint) {
    const char *const field = plan->fields[BHI_PLAN_I];
    struct bhi_complaint inner = {.text = ""};
    for (uint32_t i = 0; i < plan->include_count; i++) {
        char *path = place(of, plan->includes[i], field, complaint);
        const bool good = path && bhi_source_include(out, path, &inner);
        free(path);
        if (!good) {
            return path &&
                   (out->error == ENOMEM ? bhi_refuse_memory(complaint)
                                         : bhi_refuse(complaint, "%.400s: %.200s: %.300s", field,
                                                      plan->includes[i], inner.text));
        }
    }
    for (uint32_t i = 0; i < out->include_count; i++) {
        if (!check_own(task, out->include_paths[i], field, complaint)) {
            return false;
        }
    }
    return true;
}

/* -- what a kernel is made with ------------------------------------------------------------------ */

/* Those of |a|, then those of |b|. Returns NULL if memory ran out. */
static void *join(const void *a, size_t a_count, const void *b, size_t b_count, size_t size) {
    uint8_t *all = calloc(a_count + b_count + 1, size);
    if (all && a_count) {
        memcpy(all, a, a_count * size);
    }
    if (all && b_count) {
        memcpy(all + a_count * size, b, b_count * size);
    }
    return all;
}

/* What the judge gives to all kernels a plan cannot change. */
static bool check_once(const struct bhi_kernel_file *given,
                       const struct bhi_judge_plan_kernel *plan, struct bhi_complaint *complaint) {
    for (uint32_t i = 0; i < given->source.define_count; i++) {
        for (uint32_t k = 0; k < plan->source.define_count; k++) {
            if (!strcmp(given->source.defines[i].name, plan->source.defines[k].name)) {
                return bhi_refuse(complaint, "%.400s: the judge defines %.100s",
                                  plan->fields[BHI_PLAN_D], plan->source.defines[k].name);
            }
        }
    }
    for (uint32_t i = 0; i < given->spec_count; i++) {
        for (uint32_t k = 0; k < plan->spec_count; k++) {
            if (given->specs[i].constant_id == plan->specs[k].constant_id) {
                return bhi_refuse(complaint, "%.400s: the judge sets constant %u",
                                  plan->fields[BHI_PLAN_SPEC], plan->specs[k].constant_id);
            }
        }
    }
    return true;
}

static bool add_plan(const struct bhi_kernel_file *given, const struct bhi_task *task,
                     const struct bhi_judge_plan_kernel *plan, struct bhi_judged_form_kernel *out,
                     struct bhi_complaint *complaint) {
    struct bhi_source *source = &out->file.source;
    if (!check_once(given, plan, complaint) ||
        !read_includes(given, task, plan, &out->read, complaint)) {
        return false;
    }
    out->defines = join(given->source.defines, given->source.define_count, plan->source.defines,
                        plan->source.define_count, sizeof *out->defines);
    out->includes = join(given->source.includes, given->source.include_count, out->read.includes,
                         out->read.include_count, sizeof *out->includes);
    out->specs =
        join(given->specs, given->spec_count, plan->specs, plan->spec_count, sizeof *out->specs);
    if (!out->defines || !out->includes || !out->specs) {
        return bhi_refuse_memory(complaint);
    }
    source->defines = out->defines;
    source->define_count += plan->source.define_count;
    source->includes = out->includes;
    source->include_count += out->read.include_count;
    source->given |= plan->source.given || out->read.given;
    out->file.specs = out->specs;
    out->file.spec_count += plan->spec_count;
    out->file.entry = plan->entry ? plan->entry : given->entry;
    return true;
}

/* |own|: the candidate's file, with its code. */
static bool read_kernel(const struct bhi_kernel_file *given, const struct bhi_kernel_file *own,
                        const struct bhi_task *task, const struct bhi_judge_plan_kernel *plan,
                        struct bhi_judged_form_kernel *out, struct bhi_complaint *complaint) {
    out->file = *own;
    if (plan->text) {
        out->file.name = NULL;
        const enum bhi_language said = bhi_language_of_code(plan->text, strlen(plan->text));
        out->file.language = plan->language               ? plan->language
                             : bhi_language_is_cuda(said) ? said
                                                          : BHI_LANGUAGE_GLSL;
        out->file.code = plan->text;
        out->file.size = strlen(plan->text);
    } else if (plan->path && !read_code(given, task, plan, out, complaint)) {
        return false;
    }
    return add_plan(given, task, plan, out, complaint);
}

/* -- all of it ----------------------------------------------------------------------------------- */

static void hash_text(struct bhi_content_hash *hash, const char *text) {
    bhi_content_hash_add(hash, text ? text : "", text ? strlen(text) + 1 : 1);
}

/* What else than its text decides what a kernel is. */
static void hash_kernel(struct bhi_content_hash *hash, const struct bhi_kernel_file *file) {
    const struct bhi_source *source = &file->source;
    const uint64_t counts[] = {file->size, source->define_count, source->include_count,
                               file->spec_count};
    bhi_content_hash_add(hash, counts, sizeof counts);
    bhi_content_hash_add(hash, file->code, file->size);
    hash_text(hash, file->entry);
    for (uint32_t i = 0; i < source->define_count; i++) {
        hash_text(hash, source->defines[i].name);
        hash_text(hash, source->defines[i].value ? "=" : "");
        hash_text(hash, source->defines[i].value);
    }
    for (uint32_t i = 0; i < source->include_count; i++) {
        const bh_source_include *include = &source->includes[i];
        const uint64_t length = include->length ? include->length : strlen(include->text);
        hash_text(hash, include->name);
        bhi_content_hash_add(hash, &length, sizeof length);
        bhi_content_hash_add(hash, include->text, length);
    }
    for (uint32_t i = 0; i < file->spec_count; i++) {
        const bh_specialization *spec = &file->specs[i];
        const uint64_t numbers[] = {spec->constant_id, spec->size, spec->bits};
        bhi_content_hash_add(hash, numbers, sizeof numbers);
    }
}

/* A file without a plan that is made with nothing else is known by its own content. */
static void identify(const struct bhi_kernel_file *own, struct bhi_judged_form *form) {
    struct bhi_content_hash *hash = bhi_content_hash_begin();
    if (!hash) {
        return;
    }
    bhi_content_hash_add(hash, own->code, own->size);
    if (form->plan || own->source.given || own->spec_count || own->entry) {
        for (size_t i = 0; i < form->count; i++) {
            hash_kernel(hash, &form->kernels[i].file);
        }
    }
    bhi_content_hash_end(hash, form->content);
    form->has_content = true;
}

/* No source and no module begins with a brace. */
static bool is_plan(const struct bhi_kernel_file *file) {
    static const char ending[] = ".json";
    const char *const name = file->name ? file->name : file->path, *const text = file->code;
    const size_t length = strlen(name), blanks = strspn(text, " \t\r\n");
    return (length >= sizeof ending && !strcmp(name + length - (sizeof ending - 1), ending)) ||
           (blanks < file->size && text[blanks] == '{');
}

/* Is it text, on a line of which its plan can be? */
static bool has_lines(const struct bhi_kernel_file *file) {
    return bhi_kernel_file_is_source(file) ||
           (bhi_kernel_file_is_cuda(file) && !bhi_language_is_binary_image(file->code, file->size));
}

static bool find_plan(const struct bhi_kernel_file *own, const struct bhi_task *task,
                      struct bhi_judged_form *out, struct bhi_complaint *complaint) {
    const char *const name = own->name ? own->name : own->path;
    struct bhi_judge_plan_place whole = {own->code, own->size, 1};
    const bool is_json = is_plan(own);
    if (!is_json && has_lines(own) &&
        !bhi_judge_plan_find(name, own->code, own->size, &whole, complaint)) {
        return false;
    }
    if (!is_json && (!has_lines(own) || !whole.text)) {
        return true;
    }
    return bhi_judge_plan_parse(name, &whole, !is_json, task, &out->plan, complaint);
}

static bool read_kernels(const struct bhi_kernel_file *given, const struct bhi_kernel_file *own,
                         const struct bhi_task *task, struct bhi_judged_form *out,
                         struct bhi_complaint *complaint) {
    if (!out->plan) {
        out->count = 1;
        out->kernels[0].file = *own;
        return true;
    }
    for (size_t i = 0; i < out->plan->kernel_count; i++) {
        out->count++;
        if (!read_kernel(given, own, task, &out->plan->kernels[i], &out->kernels[i], complaint)) {
            return false;
        }
    }
    return true;
}

bool bhi_judged_form_read(const struct bhi_kernel_file *file, const struct bhi_task *task,
                          struct bhi_judged_form *out, struct bhi_judge_outcome *outcome) {
    struct bhi_kernel_file own = *file;
    struct bhi_complaint complaint = {.text = ""};
    int error;
    *out = (struct bhi_judged_form){.plan = NULL};
    if (!own.code) {
        if (!bhi_code_read(own.path, &out->code, &own.size, &error, &complaint)) {
            return bhi_judge_outcome_fail(outcome, error == ENOMEM ? BH_NO_MEMORY : BH_LOAD_FAILED,
                                          "%.400s: %.150s", own.path, complaint.text);
        }
        own.code = out->code;
    }
    const bool has_plan = find_plan(&own, task, out, &complaint);
    const bool good = has_plan && read_kernels(file, &own, task, out, &complaint);
    /* What a plan names may be there, or be another file, next time. */
    if (good || !has_plan) {
        identify(&own, out);
    }
    if (!good) {
        bhi_judged_form_free(out);
        bhi_judge_outcome_refuse(outcome, has_plan ? BH_LOAD_FAILED : BH_INVALID_ARGUMENT,
                                 &complaint);
    }
    return good;
}

void bhi_judged_form_free(struct bhi_judged_form *form) {
    for (size_t i = 0; i < form->count; i++) {
        struct bhi_judged_form_kernel *kernel = &form->kernels[i];
        bhi_source_free(&kernel->read);
        free(kernel->path);
        free(kernel->code);
        free(kernel->defines);
        free(kernel->includes);
        free(kernel->specs);
    }
    bhi_judge_plan_free(form->plan);
    free(form->code);
    form->plan = NULL;
    form->code = NULL;
    form->count = 0;
}

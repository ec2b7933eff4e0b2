/* Makes kernels. Compiling a source takes long: works that wait for it are parked, and others go
 * on. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "batch/runner/stage_kernel.h"

#include "base/format.h"
#include "batch/runner/kernel_cache.h"
#include "batch/runner/list.h"
#include "batch/runner/reads.h"
#include "batch/runner/state.h"
#include "batch/runner/work.h"
#include "request/code.h"
#include "request/kernel_file.h"
#include "request/launch.h"
#include "request/names.h"
#include "request/types.h"
#include "tool/text.h"

enum { LOG_SIZE = 33 << 10 };

/* -- which one it is ----------------------------------------------------------------------------
 */

static void add_bytes(crypto_generichash_state *state, const void *bytes, size_t size) {
    const uint64_t length = size;
    crypto_generichash_update(state, (const uint8_t *)&length, sizeof length);
    if (size) {
        crypto_generichash_update(state, bytes, size);
    }
}

static void add_text(crypto_generichash_state *state, const char *text) {
    add_bytes(state, text ? text : "", text ? strlen(text) + 1 : 0);
}

/* Returns true if the kernel must be inspected: its types are compared, or names are looked up. */
static bool is_inspected(const struct bhi_run_request *request) {
    return !request->reinterpret || bhi_run_has_names(request);
}

/* Makes a key from all that defines the kernel, except the file's content, which is read once. */
static void make_key(const struct bhi_run_request *request, uint8_t key[32]) {
    const bool inspected = is_inspected(request);
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, 32);
    add_text(&state, request->kernel_path);
    add_text(&state, request->entry);
    add_bytes(&state, &request->language, sizeof request->language);
    add_bytes(&state, &request->compile_deadline_ns, sizeof request->compile_deadline_ns);
    add_bytes(&state, &request->trusted, sizeof request->trusted);
    add_bytes(&state, &inspected, sizeof inspected);
    for (uint32_t i = 0; i < request->spec_count; i++) {
        const bh_specialization *spec = &request->specs[i];
        const uint64_t words[3] = {spec->constant_id, spec->size, spec->bits};
        add_bytes(&state, words, sizeof words);
    }
    add_text(&state, NULL);
    for (uint32_t i = 0; i < request->source.define_count; i++) {
        add_text(&state, request->source.defines[i].name);
        add_text(&state, request->source.defines[i].value);
    }
    add_text(&state, NULL);
    for (uint32_t i = 0; i < request->source.include_count; i++) {
        add_text(&state, request->source.includes[i].name);
        add_text(&state, request->source.includes[i].text);
    }
    crypto_generichash_final(&state, key, 32);
}

/* -- making one ---------------------------------------------------------------------------------
 */

/* Writes the first line of the compiler's log with an error, or the first line. "PATH:4: …"
 * becomes "line 4: …" for the file itself, because the reader knows which file it is. */
static void first_error(const char *log, const char *path, char *out, size_t capacity) {
    const char *error = strstr(log, "error:");
    const char *line = log;
    for (const char *at = log; error && at < error; at++) {
        if (*at == '\n') {
            line = at + 1;
        }
    }
    const size_t named = strlen(path);
    const bool own = !strncmp(line, path, named) && line[named] == ':';
    line += own ? named + 1 : 0;
    line += own ? strspn(line, " ") : 0;
    const bool numbered = own && *line >= '0' && *line <= '9';
    const size_t length = strcspn(line, "\n");
    bhi_format(out, capacity, "%s%.*s", numbered ? "line " : "", (int)(length < 512 ? length : 512),
               line);
}

static bh_status make_source(bh_context *context, const struct bhi_kernel_file *file,
                             const bh_kernel_options *options, struct bhi_kernel_entry *entry) {
    bh_glsl_source source;
    bh_detail detail = {0};
    char line[400];
    char *log = calloc(1, LOG_SIZE);
    if (!log) {
        return BH_NO_MEMORY;
    }
    bhi_kernel_file_source(file, &source);
    source.log = log;
    source.log_size = LOG_SIZE;
    bh_status status = bh_kernel_create_glsl(context, &source, options, &entry->kernel, &detail);
    entry->sys_errno = detail.sys_errno;
    entry->reason = detail.reason;
    entry->signal = status == BH_WORKER_SIGNAL ? detail.signal : 0;
    bhi_text_name_includes(log, "(\"I\")");
    first_error(log, file->path, line, sizeof line);
    if (status == BH_COMPILE_FAILED && line[0]) {
        bhi_format(entry->message, sizeof entry->message, "it does not compile: %s", line);
    } else if (status != BH_OK) {
        bhi_format(entry->message, sizeof entry->message, "%s",
                   bhi_text_without_name(detail.message, source.name));
    }
    free(log);
    return status;
}

/* Reads what the kernel declares, and so finds out whether it is valid. */
static bh_status take_types(struct bhi_kernel_entry *entry, const char *name,
                            uint64_t deadline_ns) {
    bh_inspect_options options;
    bh_detail detail = {0};
    bh_inspection *said = calloc(1, sizeof *said);
    bh_inspect_options_init(&options);
    if (deadline_ns) {
        options.deadline_ns = deadline_ns;
    }
    bh_status status =
        said ? bh_kernel_inspect(entry->kernel, &options, said, &detail) : BH_NO_MEMORY;
    if (status == BH_OK && !(entry->types = bhi_kernel_types_take(said))) {
        status = BH_NO_MEMORY;
    }
    free(said);
    if (status == BH_INVALID_KERNEL) {
        bhi_format(entry->message, sizeof entry->message, "%.400s",
                   bhi_text_without_name(detail.message, name));
    }
    if (status == BH_OK || status == BH_INVALID_KERNEL) {
        return status;
    }
    const bool own = status == BH_LIMIT_EXCEEDED || status == BH_COMPILE_FAILED;
    entry->sys_errno = detail.sys_errno;
    entry->reason = detail.reason;
    bhi_format(entry->message, sizeof entry->message, "%s%.400s%s",
               own ? "its declared types cannot be determined: " : "",
               bhi_text_without_name(detail.message, name),
               own ? "; \"reinterpret\" runs it without checking types" : "");
    return status;
}

/* The library names the field of its options; here it is a key of the job. */
static bool refuse_entry(const struct bhi_run_request *request, enum bhi_language language,
                         struct bhi_kernel_entry *entry) {
    if (language != BHI_LANGUAGE_GLSL || !request->entry || !strcmp(request->entry, "main")) {
        return false;
    }
    bhi_format(entry->message, sizeof entry->message,
               "\"entry\" is \"%.100s\": the entry point of GLSL is main; leave \"entry\" out",
               request->entry);
    return true;
}

static bh_status make(const struct bhi_runner_options *runner,
                      const struct bhi_run_request *request, struct bhi_kernel_entry *entry) {
    bh_context *context = runner->context;
    struct bhi_kernel_file file = {.path = request->kernel_path,
                                   .language = request->language,
                                   .source = request->source,
                                   .deadline_ns = request->compile_deadline_ns
                                                      ? request->compile_deadline_ns
                                                      : runner->compile_deadline_ns};
    struct bhi_complaint complaint;
    bh_kernel_options options;
    bh_detail detail = {0};
    void *code = NULL;

    if (!bhi_code_read(request->kernel_path, &code, &file.size, &entry->sys_errno, &complaint)) {
        bhi_format(entry->message, sizeof entry->message, "%.500s", complaint.text);
        return bhi_work_blame(entry->sys_errno, BH_LOAD_FAILED);
    }
    file.code = code;
    if (!bhi_reads_add_code(&entry->files, request->kernel_path, code, file.size, &file.source)) {
        free(code);
        return BH_NO_MEMORY;
    }
    bhi_run_request_kernel_options(request, &options);
    bh_status status = BH_INVALID_ARGUMENT;
    const enum bhi_language language = bhi_kernel_file_language(&file);
    if (!bhi_language_compiles(language, &complaint)) {
        bhi_format(entry->message, sizeof entry->message, "%.500s", complaint.text);
        status = BH_INVALID_KERNEL;
    } else if (refuse_entry(request, language, entry)) {
        status = BH_INVALID_ARGUMENT;
    } else if (language == BHI_LANGUAGE_GLSL || language == BHI_LANGUAGE_HLSL) {
        status = make_source(context, &file, &options, entry);
    } else if (file.source.given) {
        snprintf(entry->message, sizeof entry->message,
                 "it is SPIR-V: D and I are for GLSL (.comp, .glsl) and HLSL");
    } else {
        status =
            bh_kernel_create_spirv(context, code, file.size, &options, &entry->kernel, &detail);
        entry->sys_errno = detail.sys_errno;
        if (status != BH_OK) {
            bhi_format(entry->message, sizeof entry->message, "%s%s",
                       bhi_text_without_call(detail.message),
                       detail.reason == BH_REASON_NOT_SPIRV
                           ? "; a source needs \"language\", or a name that ends in .comp, .glsl "
                             "or .hlsl"
                           : "");
        }
    }
    free(code);
    if (status == BH_OK && is_inspected(request)) {
        status = take_types(entry, request->kernel_name, file.deadline_ns);
    }
    return status;
}

/* Makes the kernel, and wakes the works that wait for it. A refusal that is due to the kernel is
 * kept; one that is due to the machine is not. */
static void make_and_settle(struct bhi_work *work) {
    struct bhi_runner *runner = work->runner;
    struct bhi_kernel_entry *entry = work->kernel;
    struct bhi_work *parked;
    const bh_status status = make(runner->options, &work->request->run, entry);

    pthread_mutex_lock(&runner->lock);
    entry->status = status;
    entry->state = status == BH_OK ? BHI_KERNEL_MADE : BHI_KERNEL_FAILED;
    const bh_status_class class_ = bh_status_classify(status);
    if (status != BH_OK && class_ != BH_STATUS_CLASS_INPUT && class_ != BH_STATUS_CLASS_CALLER) {
        bhi_kernel_cache_forget(runner, entry);
    }
    while ((parked = bhi_work_pop(&entry->parked))) {
        bhi_work_enter(parked, BHI_WORK_PREPARING);
        bhi_work_push(&runner->to_stage, parked);
    }
    pthread_cond_broadcast(&runner->stage_wake);
    bhi_runner_wake(runner);
    pthread_mutex_unlock(&runner->lock);
}

void bhi_stage_compile(struct bhi_work *work) {
    struct bhi_runner *runner = work->runner;
    make_and_settle(work);
    pthread_mutex_lock(&runner->lock);
    bhi_work_enter(work, BHI_WORK_PREPARING);
    bhi_work_push(&runner->to_stage, work);
    pthread_cond_signal(&runner->stage_wake);
    pthread_mutex_unlock(&runner->lock);
}

/* Finds the work's kernel, or begins one. Returns whether |work| still belongs to the caller. */
static bool look_up(struct bhi_work *work, const uint8_t key[32], bool *out_make) {
    struct bhi_runner *runner = work->runner;
    const struct bhi_kernel_file file = {.path = work->request->run.kernel_path,
                                         .language = work->request->run.language};
    const enum bhi_language language = bhi_kernel_file_language(&file);
    struct bhi_kernel_entry *entry = bhi_kernel_cache_find(runner, key);
    const bool found = entry;
    *out_make = false;
    if (!entry && !(entry = bhi_kernel_cache_add(runner, key))) {
        return true;
    }
    entry->users++;
    entry->used = ++runner->ticks;
    work->kernel = entry;
    if (found && entry->state == BHI_KERNEL_MAKING) {
        bhi_work_enter(work, BHI_WORK_PARKED);
        bhi_work_push(&entry->parked, work);
        return false;
    }
    if (!found && (language == BHI_LANGUAGE_GLSL || language == BHI_LANGUAGE_HLSL)) {
        bhi_work_enter(work, BHI_WORK_PARKED);
        bhi_work_push(&runner->to_compile, work);
        pthread_cond_signal(&runner->compile_wake);
        bhi_runner_wake(runner);
        return false;
    }
    *out_make = !found;
    return true;
}

bool bhi_stage_kernel(struct bhi_work *work) {
    struct bhi_runner *runner = work->runner;
    uint8_t key[32];
    if (!work->kernel) {
        bool is_to_make;
        make_key(&work->request->run, key);
        pthread_mutex_lock(&runner->lock);
        const bool ours = look_up(work, key, &is_to_make);
        pthread_mutex_unlock(&runner->lock);
        if (!ours) {
            return false;
        }
        if (!work->kernel) {
            bhi_work_refuse(work, BH_NO_MEMORY, 0, "out of memory");
            return false;
        }
        if (is_to_make) {
            make_and_settle(work);
        }
    }
    struct bhi_kernel_entry *entry = work->kernel;
    if (entry->state == BHI_KERNEL_MADE) {
        return true;
    }
    work->attempt.verdict.signal = entry->signal;
    work->attempt.verdict.reason = entry->reason;
    bhi_work_refuse(work, entry->status, entry->sys_errno, "kernel %.200s: %.300s",
                    work->request->run.kernel_path,
                    entry->message[0] ? entry->message : bh_status_text(entry->status));
    return false;
}

/* Makes kernels. Compiling a source takes long: works that wait for it are parked, and others go
 * on. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "batch/runner/kernel_cache.h"
#include "batch/runner/reads.h"
#include "batch/runner/stage.h"
#include "batch/runner/state.h"
#include "batch/runner/work.h"
#include "request/image.h"
#include "request/kernel_maker.h"
#include "request/names.h"
#include "request/run.h"
#include "request/types.h"
#include "tool/text.h"

/* -- which one it is ------------------------------------------------------------------------- */

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

/* -- making one ------------------------------------------------------------------------------ */

/* Reads what the kernel declares, and so finds out whether it is valid. */
static bh_status take_types(struct bhi_kernel_entry *entry, const char *name,
                            uint64_t deadline_ns) {
    bh_detail detail = {0};
    const bh_status status =
        bhi_kernel_types_ask(entry->kernel, deadline_ns, &entry->types, &detail);
    if (status == BH_OK) {
        return status;
    }
    const bool own = status == BH_LIMIT_EXCEEDED || status == BH_COMPILE_FAILED;
    if (status != BH_INVALID_KERNEL) {
        entry->sys_errno = detail.sys_errno;
        entry->reason = detail.reason;
    }
    bhi_format(entry->message, sizeof entry->message, "%s%.400s%s",
               own ? "its declared types cannot be determined: " : "",
               bhi_text_without_name(detail.message, name),
               own ? "; \"reinterpret\" runs it without checking types" : "");
    return status;
}

static bh_status make(const struct bhi_runner_options *runner, struct bhi_run_request *request,
                      struct bhi_kernel_entry *entry) {
    static const struct bhi_kernel_words words = {.entry = "\"entry\"",
                                                  .source = "D and I",
                                                  .otherwise = ", or \"language\"",
                                                  .log = BHI_LOG_IS_QUOTED_HERE};
    struct bhi_kernel_file file = {.path = request->kernel_path,
                                   .language = request->language,
                                   .source = request->source,
                                   .deadline_ns = request->compile_deadline_ns
                                                      ? request->compile_deadline_ns
                                                      : runner->compile_deadline_ns,
                                   .takes_cuda = true};
    struct bhi_complaint complaint;
    bh_kernel_options options;
    void *code;
    bh_status status = bhi_kernel_file_read(&file, &code, &entry->sys_errno, &complaint);
    if (file.code &&
        !bhi_reads_add_code(&entry->files, request->kernel_path, code, file.size, &file.source)) {
        free(code);
        return BH_NO_MEMORY;
    }
    if (status != BH_OK) {
        free(code);
        bhi_format(entry->message, sizeof entry->message, "%.500s", complaint.text);
        return file.code ? status : bhi_work_blame(entry->sys_errno, BH_LOAD_FAILED);
    }
    entry->language = bhi_kernel_file_language(&file);
    bhi_run_note_language(request, entry->language);
    struct bhi_kernel_make *make = calloc(1, sizeof *make);
    if (!make) {
        free(code);
        return BH_NO_MEMORY;
    }
    bhi_run_request_kernel_options(request, &options);
    make->words = &words;
    make->context = runner->context;
    make->file = &file;
    make->options = &options;
    bhi_kernel_make(make);
    status = make->status;
    entry->kernel = make->kernel;
    entry->sys_errno = make->detail.sys_errno;
    entry->reason = make->detail.reason;
    entry->signal = status == BH_WORKER_SIGNAL ? make->detail.signal : 0;
    bhi_format(entry->message, sizeof entry->message, "%s",
               status == BH_OK ? "" : make->detail.message);
    free(make);
    free(code);
    if (status == BH_OK && is_inspected(request) && !request->image) {
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
    if (!found && bhi_kernel_file_is_source(&file)) {
        bhi_work_enter(work, BHI_WORK_PARKED);
        bhi_work_push(&runner->to_compile, work);
        pthread_cond_signal(&runner->compile_wake);
        bhi_runner_wake(runner);
        return false;
    }
    *out_make = !found;
    return true;
}

/* Checks what the job's line says of a kernel whose file was read. */
static bool check_line(struct bhi_work *work) {
    struct bhi_run_request *request = &work->request->run;
    struct bhi_complaint complaint;
    bhi_run_note_language(request, work->kernel->language);
    return work->kernel->language == BHI_LANGUAGE_UNKNOWN ||
           bhi_run_check_image(request,
                               request->device ? request->device : work->runner->options->device,
                               "", &complaint) ||
           bhi_work_refuse(work, BH_INVALID_ARGUMENT, 0, "kernel %.200s: %.300s",
                           request->kernel_path, complaint.text);
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
            return bhi_work_refuse(work, BH_NO_MEMORY, 0, "out of memory");
        }
        if (is_to_make) {
            make_and_settle(work);
        }
    }
    struct bhi_kernel_entry *entry = work->kernel;
    if (!check_line(work)) {
        return false;
    }
    if (entry->state == BHI_KERNEL_MADE) {
        return true;
    }
    work->attempt.verdict.signal = entry->signal;
    work->attempt.verdict.reason = entry->reason;
    return bhi_work_refuse(work, entry->status, entry->sys_errno, "kernel %.200s: %.300s",
                           work->request->run.kernel_path,
                           entry->message[0] ? entry->message : bh_status_text(entry->status));
}

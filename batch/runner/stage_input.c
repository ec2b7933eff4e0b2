/* Inputs, and accounting for the memory of buffers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "batch/runner/input_cache.h"
#include "batch/runner/reads.h"
#include "batch/runner/stage.h"
#include "batch/runner/state.h"
#include "batch/runner/work.h"
#include "request/content.h"
#include "tool/gpu_nodes.h"
#include "tool/text.h"
#include <bulkhead/file.h>

enum { MOST_INPUTS = 256 };

/* The assumed size of a tensor, until its header is known. */
static const uint64_t tensor_guess = 64u << 20;

/* -- memory ---------------------------------------------------------------------------------- */

/* Returns how many more bytes the work is going to need. */
static uint64_t count_bytes(struct bhi_work *work) {
    const struct bhi_run_request *request = &work->request->run;
    uint64_t total = 0, largest = 0;
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *binding = &request->bindings[i];
        struct bhi_input_identity identity;
        uint64_t bytes = binding->in_path ? 0 : binding->array.bytes;
        if (binding->like &&
            bhi_input_identify(work, request->bindings[binding->like_index].in_path, &identity)) {
            bytes = (uint64_t)identity.size; /* the array is not larger than its file */
        }
        if (binding->in_path && bhi_input_identify(work, binding->in_path, &identity)) {
            bytes = (uint64_t)identity.size;
            if (binding->tensor && bytes > tensor_guess) {
                bytes = tensor_guess;
            }
            largest = bytes > largest ? bytes : largest;
            pthread_mutex_lock(&work->runner->lock);
            if (binding->access == BH_ACCESS_READ &&
                bhi_input_cache_has(work->runner, binding->in_path, binding->tensor, &identity)) {
                bytes = 0;
            }
            pthread_mutex_unlock(&work->runner->lock);
        }
        if (work->request->run.eval && !binding->in_path) {
            bytes = largest; /* an estimate: its type is unknown */
        }
        if (__builtin_add_overflow(total, bytes, &total)) {
            total = UINT64_MAX / 2;
        }
    }
    return total;
}

bool bhi_stage_reserve(struct bhi_work *work) {
    struct bhi_runner *runner = work->runner;
    const uint64_t need = count_bytes(work);
    pthread_mutex_lock(&runner->lock);
    while (runner->bytes + need > runner->bytes_limit && bhi_input_cache_evict(runner)) {
        continue;
    }
    while (runner->input_count >= MOST_INPUTS && bhi_input_cache_evict(runner)) {
        continue;
    }
    /* One work is always granted. Otherwise a job that is larger than the limit would wait for
     * ever. */
    const bool granted = runner->bytes + need <= runner->bytes_limit || runner->holders == 0;
    if (granted) {
        runner->holders++;
        runner->bytes += need;
        work->bytes = need;
        work->holds_counted = true;
    } else {
        bhi_work_push(&runner->thirsty, work);
    }
    pthread_mutex_unlock(&runner->lock);
    return granted;
}

/* -- one input ------------------------------------------------------------------------------- */

/* Takes the array of the loaded buffer. Returns false if the work is over. */
static bool take_array(struct bhi_work *work, struct bhi_run_binding *binding) {
    struct bhi_complaint complaint;
    if (bhi_run_take_array(binding, &complaint)) {
        return true;
    }
    return bhi_work_refuse(work, BH_LOAD_FAILED, 0, "%s %.100s: %.390s", binding->option,
                           binding->text, complaint.text);
}

static struct bhi_used_mark mark_of(const struct bhi_input_identity *identity) {
    const struct stat status = {
        .st_size = identity->size, .st_mtim = identity->modified, .st_ctim = identity->changed};
    return bhi_reads_mark(&status);
}

bool bhi_stage_input(struct bhi_work *work, uint32_t index) {
    struct bhi_run_binding *binding = &work->request->run.bindings[index];
    struct bhi_input_identity before, after;
    bh_file_source source = {.struct_size = sizeof source};
    bh_detail detail = {0};

    const bool known = bhi_input_identify(work, binding->in_path, &before);
    const bool shared = known && binding->access == BH_ACCESS_READ;
    if (shared && bhi_input_cache_use(work, index, &before)) {
        work->reads[index] = mark_of(&before);
        return take_array(work, binding);
    }
    source.path = binding->in_path;
    source.tensor = binding->tensor;
    source.format = bhi_binding_format(binding->in_path, binding->tensor);
    const bh_buffer_options options = {
        .struct_size = sizeof options,
        .file = &source,
        .stream = work->runner->streams[work->stream].stream, /* its tenant is also the file's */
        .memory = bhi_memory_for_file(work->runner->options->memory, binding->in_path),
    };
    bh_status status =
        bh_buffer_create(work->runner->options->context, 0, &options, &binding->buffer, &detail);
    if (status != BH_OK) {
        return bhi_work_refuse(
            work, status, detail.sys_errno, "%s %.100s: %.390s", binding->option, binding->text,
            detail.message[0] ? bhi_text_without_call(detail.message) : bh_status_text(status));
    }
    if (!take_array(work, binding)) {
        return false;
    }
    /* The file's identity is compared before and after: only if it is the same, the identity is
     * that of the loaded content. */
    if (known && bhi_input_identify(work, binding->in_path, &after) &&
        !memcmp(&before, &after, sizeof before)) {
        work->reads[index] = mark_of(&before);
        if (shared) {
            bhi_input_cache_keep(work, index, &before);
        }
    }
    return true;
}

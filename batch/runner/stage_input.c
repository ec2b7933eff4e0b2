/* Inputs, and the memory that buffers take. What is only read is kept for the next job that reads
 * it, as long as there is room and the file is the same. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "batch/runner/internal.h"
#include "request/array.h"
#include "tool/text.h"

enum { MOST_INPUTS = 256 };

/* A tensor's size is not known before its header is: counted as this much at first. */
static const uint64_t tensor_guess = 64u << 20;

/* Which file it is, and which state of it. */
struct identity {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified, changed;
};

struct bhi_input_entry {
    struct bhi_input_entry *next;
    char *path, *tensor; /* owned; tensor may be NULL */
    struct identity identity;
    size_t users;
    uint64_t used;
    bool forgotten; /* out of the list, freed with its last user */
    bh_buffer *buffer;
    uint64_t bytes; /* of runner->bytes */
};

static bool identify(const char *path, struct identity *out) {
    struct stat status;
    memset(out, 0, sizeof *out); /* compared as bytes */
    if (stat(path, &status) != 0) {
        return false;
    }
    out->device = status.st_dev;
    out->inode = status.st_ino;
    out->size = status.st_size;
    out->modified = status.st_mtim;
    out->changed = status.st_ctim;
    return true;
}

/* -- the cache ----------------------------------------------------------------------------------
 */

static void free_entry(struct bhi_input_entry *entry) {
    bh_buffer_release(entry->buffer);
    free(entry->path);
    free(entry->tensor);
    free(entry);
}

static void forget(struct bhi_runner *runner, struct bhi_input_entry *entry) {
    for (struct bhi_input_entry **at = &runner->inputs; *at; at = &(*at)->next) {
        if (*at == entry) {
            *at = entry->next;
            entry->forgotten = true;
            runner->input_count--;
            return;
        }
    }
}

/* Frees what was not used for the longest time, and nobody uses. */
static bool evict(struct bhi_runner *runner) {
    struct bhi_input_entry *oldest = NULL;
    for (struct bhi_input_entry *entry = runner->inputs; entry; entry = entry->next) {
        if (entry->users == 0 && (!oldest || entry->used < oldest->used)) {
            oldest = entry;
        }
    }
    if (!oldest) {
        return false;
    }
    forget(runner, oldest);
    runner->bytes -= oldest->bytes;
    free_entry(oldest);
    return true;
}

static struct bhi_input_entry *find(const struct bhi_runner *runner, const char *path,
                                    const char *tensor, const struct identity *identity) {
    for (struct bhi_input_entry *entry = runner->inputs; entry; entry = entry->next) {
        if (!strcmp(entry->path, path) && !strcmp(entry->tensor, tensor ? tensor : "") &&
            !memcmp(&entry->identity, identity, sizeof *identity)) {
            return entry;
        }
    }
    return NULL;
}

void bhi_input_entry_drop(struct bhi_runner *runner, struct bhi_input_entry *entry, bool spoilt) {
    pthread_mutex_lock(&runner->lock);
    if (spoilt && !entry->forgotten) {
        forget(runner, entry);
    }
    const bool last = --entry->users == 0 && entry->forgotten;
    if (last) {
        runner->bytes -= entry->bytes;
    }
    pthread_mutex_unlock(&runner->lock);
    if (last) {
        free_entry(entry);
    }
}

void bhi_inputs_drop_unused(struct bhi_runner *runner) {
    pthread_mutex_lock(&runner->lock);
    while (evict(runner)) {
        continue;
    }
    pthread_mutex_unlock(&runner->lock);
}

void bhi_inputs_free(struct bhi_runner *runner) {
    while (runner->inputs) {
        struct bhi_input_entry *entry = runner->inputs;
        runner->inputs = entry->next;
        free_entry(entry);
    }
}

/* -- memory -------------------------------------------------------------------------------------
 */

/* What the work is going to need that is not there yet. */
static uint64_t count_bytes(struct bhi_work *work) {
    const struct bhi_run_request *request = &work->request->run;
    uint64_t total = 0, largest = 0;
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *binding = &request->bindings[i];
        struct identity identity;
        uint64_t bytes = binding->in_path ? 0 : binding->array.bytes;
        if (binding->like && identify(request->bindings[binding->like_index].in_path, &identity)) {
            bytes = (uint64_t)identity.size; /* its input's array is no larger */
        }
        if (binding->in_path && identify(binding->in_path, &identity)) {
            bytes = (uint64_t)identity.size;
            if (binding->tensor && bytes > tensor_guess) {
                bytes = tensor_guess;
            }
            largest = bytes > largest ? bytes : largest;
            pthread_mutex_lock(&work->runner->lock);
            if (binding->access == BH_ACCESS_READ &&
                find(work->runner, binding->in_path, binding->tensor, &identity)) {
                bytes = 0;
            }
            pthread_mutex_unlock(&work->runner->lock);
        }
        if (work->request->run.eval && !binding->in_path) {
            bytes = largest; /* about: its type is not known yet */
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
    while (runner->bytes + need > runner->bytes_limit && evict(runner)) {
        continue;
    }
    while (runner->input_count >= MOST_INPUTS && evict(runner)) {
        continue;
    }
    /* One may always: else a job that is larger than the bound would wait for ever. */
    const bool granted = runner->bytes + need <= runner->bytes_limit || runner->holders == 0;
    if (granted) {
        runner->holders++;
        runner->bytes += need;
        work->bytes = need;
        work->holds = true;
    } else {
        bhi_work_push(&runner->thirsty, work);
    }
    pthread_mutex_unlock(&runner->lock);
    return granted;
}

/* -- one input ----------------------------------------------------------------------------------
 */

/* Keeps |buffer| for others, with the work as its first user. */
static void keep(struct bhi_work *work, uint32_t index, const struct identity *identity) {
    struct bhi_runner *runner = work->runner;
    struct bhi_run_binding *binding = &work->request->run.bindings[index];
    struct bhi_input_entry *entry = calloc(1, sizeof *entry);
    if (!entry) {
        return;
    }
    entry->path = strdup(binding->in_path);
    entry->tensor = strdup(binding->tensor ? binding->tensor : "");
    entry->identity = *identity;
    entry->users = 1;
    entry->bytes = bh_buffer_size(binding->buffer);
    if (!entry->path || !entry->tensor || bh_buffer_retain(binding->buffer) != BH_OK) {
        free(entry->path);
        free(entry->tensor);
        free(entry);
        return;
    }
    entry->buffer = binding->buffer;
    pthread_mutex_lock(&runner->lock);
    const bool known = find(runner, binding->in_path, binding->tensor, identity);
    if (!known) {
        entry->used = ++runner->ticks;
        entry->next = runner->inputs;
        runner->inputs = entry;
        runner->input_count++;
        /* It counts as the cache's from now on. */
        const uint64_t moved = entry->bytes < work->bytes ? entry->bytes : work->bytes;
        work->bytes -= moved;
        runner->bytes += entry->bytes - moved;
        work->inputs[index] = entry;
    }
    pthread_mutex_unlock(&runner->lock);
    if (known) { /* another job was as quick: this one has its own */
        free_entry(entry);
    }
}

static bool use_kept(struct bhi_work *work, uint32_t index, const struct identity *identity) {
    struct bhi_runner *runner = work->runner;
    struct bhi_run_binding *binding = &work->request->run.bindings[index];
    pthread_mutex_lock(&runner->lock);
    struct bhi_input_entry *entry = find(runner, binding->in_path, binding->tensor, identity);
    if (entry && bh_buffer_retain(entry->buffer) == BH_OK) {
        entry->users++;
        entry->used = ++runner->ticks;
        work->inputs[index] = entry;
        binding->buffer = entry->buffer;
    } else {
        entry = NULL;
    }
    pthread_mutex_unlock(&runner->lock);
    return entry;
}

/* What is in the buffer. False: the work is over. */
static bool take_array(struct bhi_work *work, struct bhi_run_binding *binding) {
    struct bhi_complaint complaint;
    if (bhi_run_take_array(binding, &complaint)) {
        return true;
    }
    bhi_work_refuse(work, BH_LOAD_FAILED, 0, "%s %.100s: %.390s", binding->option, binding->text,
                    complaint.text);
    return false;
}

bool bhi_stage_input(struct bhi_work *work, uint32_t index) {
    struct bhi_run_binding *binding = &work->request->run.bindings[index];
    struct identity before, after;
    bh_file_source source;
    bh_detail detail = {0};

    const bool shared = binding->access == BH_ACCESS_READ && identify(binding->in_path, &before) &&
                        (uint64_t)before.size <= bhi_stage_whole(work);
    if (shared && use_kept(work, index, &before)) {
        return take_array(work, binding);
    }
    bh_file_source_init(&source);
    source.path = binding->in_path;
    source.tensor = binding->tensor;
    source.format = binding->tensor ? BH_FILE_SAFETENSORS : BH_FILE_NPY;
    bh_status status =
        bh_buffer_from_file(work->runner->options->context, &source, &binding->buffer, &detail);
    if (status != BH_OK) {
        bhi_work_refuse(
            work, status, detail.sys_errno, "%s %.100s: %.390s", binding->option, binding->text,
            detail.message[0] ? bhi_text_without_call(detail.message) : bh_status_text(status));
        return false;
    }
    if (!take_array(work, binding)) {
        return false;
    }
    /* What was opened is what was looked at before only if it is so after it, too. */
    if (shared && identify(binding->in_path, &after) && !memcmp(&before, &after, sizeof before)) {
        keep(work, index, &before);
    }
    return true;
}

/* Which inputs are kept, which works use them, and which are freed when memory is needed. */
#include "batch/runner/input_cache.h"

#include <stdlib.h>
#include <string.h>

#include "batch/runner/state.h"
#include "tool/gpu_nodes.h"

struct bhi_input_entry {
    struct bhi_list node; /* in runner->inputs */
    char *path, *tensor;  /* owned; tensor may be NULL */
    struct bhi_input_identity identity;
    size_t users;
    uint64_t used;
    bool forgotten; /* not in the list any more; freed with its last user */
    bh_buffer *buffer;
    uint64_t bytes; /* its part of runner->bytes */
};

static struct bhi_input_entry *entry_of(struct bhi_list *node) {
    return BHI_CONTAINER(node, struct bhi_input_entry, node);
}

bool bhi_input_identify(const struct bhi_work *work, const char *path,
                        struct bhi_input_identity *out) {
    const struct bhi_runner_options *options = work->runner->options;
    struct stat status;
    memset(out, 0, sizeof *out); /* also the padding, because it is compared as bytes */
    if (stat(path, &status) != 0) {
        return false;
    }
    out->device = status.st_dev;
    out->inode = status.st_ino;
    out->size = status.st_size;
    out->modified = status.st_mtim;
    out->changed = status.st_ctim;
    out->place = bhi_memory_for_file(options->memory, path) == BH_MEMORY_HOST
                     ? 0
                     : 1 + work->stream / options->streams;
    return true;
}

static void free_entry(struct bhi_input_entry *entry) {
    bh_buffer_release(entry->buffer);
    free(entry->path);
    free(entry->tensor);
    free(entry);
}

static void forget(struct bhi_runner *runner, struct bhi_input_entry *entry) {
    if (!entry->forgotten) {
        bhi_list_remove(&entry->node);
        entry->forgotten = true;
        runner->input_count--;
    }
}

bool bhi_input_cache_evict(struct bhi_runner *runner) {
    struct bhi_input_entry *oldest = NULL;
    BHI_LIST_EACH(node, &runner->inputs) {
        struct bhi_input_entry *entry = entry_of(node);
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
                                    const char *tensor, const struct bhi_input_identity *identity) {
    BHI_LIST_EACH(node, &runner->inputs) {
        struct bhi_input_entry *entry = entry_of(node);
        if (!strcmp(entry->path, path) && !strcmp(entry->tensor, tensor ? tensor : "") &&
            !memcmp(&entry->identity, identity, sizeof *identity)) {
            return entry;
        }
    }
    return NULL;
}

bool bhi_input_cache_has(const struct bhi_runner *runner, const char *path, const char *tensor,
                         const struct bhi_input_identity *identity) {
    return find(runner, path, tensor, identity);
}

void bhi_input_entry_drop(struct bhi_runner *runner, struct bhi_input_entry *entry, bool spoilt) {
    pthread_mutex_lock(&runner->lock);
    if (spoilt) {
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
    while (bhi_input_cache_evict(runner)) {
        continue;
    }
    pthread_mutex_unlock(&runner->lock);
}

void bhi_inputs_free(struct bhi_runner *runner) {
    BHI_LIST_EACH_SAFE(node, &runner->inputs) {
        free_entry(entry_of(node));
    }
    bhi_list_init(&runner->inputs);
}

void bhi_input_cache_keep(struct bhi_work *work, uint32_t index,
                          const struct bhi_input_identity *identity) {
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
    if (!entry->path || !entry->tensor) {
        free(entry->path);
        free(entry->tensor);
        free(entry);
        return;
    }
    entry->buffer = binding->buffer;
    bh_buffer_retain(entry->buffer);
    pthread_mutex_lock(&runner->lock);
    const bool known = find(runner, binding->in_path, binding->tensor, identity);
    if (!known) {
        entry->used = ++runner->ticks;
        bhi_list_append(&runner->inputs, &entry->node);
        runner->input_count++;
        /* From now on the cache accounts for it. */
        const uint64_t moved = entry->bytes < work->bytes ? entry->bytes : work->bytes;
        work->bytes -= moved;
        runner->bytes += entry->bytes - moved;
        work->inputs[index] = entry;
    }
    pthread_mutex_unlock(&runner->lock);
    if (known) { /* another job was faster; this one keeps its own copy */
        free_entry(entry);
    }
}

bool bhi_input_cache_use(struct bhi_work *work, uint32_t index,
                         const struct bhi_input_identity *identity) {
    struct bhi_runner *runner = work->runner;
    struct bhi_run_binding *binding = &work->request->run.bindings[index];
    pthread_mutex_lock(&runner->lock);
    struct bhi_input_entry *entry = find(runner, binding->in_path, binding->tensor, identity);
    if (entry) {
        bh_buffer_retain(entry->buffer);
        entry->users++;
        entry->used = ++runner->ticks;
        work->inputs[index] = entry;
        binding->buffer = entry->buffer;
    }
    pthread_mutex_unlock(&runner->lock);
    return entry;
}

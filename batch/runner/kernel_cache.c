/* Which kernels there are, which works use them, and which is freed if there are too many. */
#include "batch/runner/kernel_cache.h"

#include <stdlib.h>
#include <string.h>

#include "batch/runner/state.h"

enum { MOST_KERNELS = 512 };

static struct bhi_kernel_entry *entry_of(struct bhi_list *node) {
    return BHI_CONTAINER(node, struct bhi_kernel_entry, node);
}

static void free_entry(struct bhi_kernel_entry *entry) {
    bh_kernel_release(entry->kernel);
    free(entry->types);
    bhi_used_free(&entry->files);
    free(entry);
}

void bhi_kernel_cache_forget(struct bhi_runner *runner, struct bhi_kernel_entry *entry) {
    if (!entry->forgotten) {
        bhi_list_remove(&entry->node);
        entry->forgotten = true;
        runner->kernel_count--;
    }
}

static void make_room(struct bhi_runner *runner) {
    struct bhi_kernel_entry *oldest = NULL;
    if (runner->kernel_count < MOST_KERNELS) {
        return;
    }
    BHI_LIST_EACH(node, &runner->kernels) {
        struct bhi_kernel_entry *entry = entry_of(node);
        if (entry->users == 0 && (!oldest || entry->used < oldest->used)) {
            oldest = entry;
        }
    }
    if (!oldest) {
        return;
    }
    bhi_kernel_cache_forget(runner, oldest);
    free_entry(oldest);
}

struct bhi_kernel_entry *bhi_kernel_cache_find(const struct bhi_runner *runner,
                                               const uint8_t key[32]) {
    BHI_LIST_EACH(node, &runner->kernels) {
        struct bhi_kernel_entry *entry = entry_of(node);
        if (!memcmp(entry->key, key, sizeof entry->key)) {
            return entry;
        }
    }
    return NULL;
}

struct bhi_kernel_entry *bhi_kernel_cache_add(struct bhi_runner *runner, const uint8_t key[32]) {
    struct bhi_kernel_entry *entry = calloc(1, sizeof *entry);
    if (!entry) {
        return NULL;
    }
    make_room(runner);
    memcpy(entry->key, key, sizeof entry->key);
    bhi_work_list_init(&entry->parked);
    bhi_list_append(&runner->kernels, &entry->node);
    runner->kernel_count++;
    return entry;
}

void bhi_kernel_entry_drop(struct bhi_runner *runner, struct bhi_kernel_entry *entry) {
    pthread_mutex_lock(&runner->lock);
    const bool last = --entry->users == 0 && entry->forgotten;
    pthread_mutex_unlock(&runner->lock);
    if (last) {
        free_entry(entry);
    }
}

void bhi_kernels_free(struct bhi_runner *runner) {
    BHI_LIST_EACH_SAFE(node, &runner->kernels) {
        free_entry(entry_of(node));
    }
    bhi_list_init(&runner->kernels);
}

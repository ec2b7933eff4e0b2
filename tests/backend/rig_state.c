/* What must hold of a backend whenever nothing runs, whatever was run before: each count is the number of
 * what it counts, nothing refers to what has gone, and nothing of a run is left. */
#include "rig.h"

#include "worker/vulkan/backend.h"

static const struct bhi_vk_backend *b;

static bool is_attached(const void *object) {
    for (size_t i = 0; i < b->buffers.capacity; i++) {
        if (b->buffers.entries[i].value == object) {
            return true;
        }
    }
    return false;
}

static bool is_ready(const struct bhi_vk_kernel *kernel) {
    for (size_t i = 0; i < b->kernels.map.capacity; i++) {
        if (b->kernels.map.entries[i].value == kernel) {
            return kernel->state == BHI_KERNEL_READY;
        }
    }
    return false;
}

/* How many have a place in the table of hashes. */
static size_t chained(const struct bhi_map *map) {
    size_t count = 0;
    for (size_t i = 0; i < map->capacity; i++) {
        for (const struct bhi_chain *node = map->entries[i].value; node; node = node->next) {
            count++;
        }
    }
    return count;
}

static void check_kernels(void) {
    uint32_t ready = 0, used = 0;
    const struct bhi_vk_kernel *last = NULL;
    uint64_t last_run = 0;
    for (size_t i = 0; i < b->kernels.map.capacity; i++) {
        const struct bhi_vk_kernel *kernel = b->kernels.map.entries[i].value;
        if (kernel) {
            ready += kernel->state == BHI_KERNEL_READY;
            BHT_EQ(kernel->pipeline != VK_NULL_HANDLE, kernel->state == BHI_KERNEL_READY);
            BHT_TRUE(kernel->state == BHI_KERNEL_READY || !kernel->has_run);
            BHT_TRUE(kernel->state == BHI_KERNEL_READY || kernel->split == VK_NULL_HANDLE);
        }
    }
    BHI_LIST_FOR(const struct bhi_vk_kernel, kernel, &b->kernels.used, used) {
        used++;
        BHT_TRUE(is_ready(kernel));
        BHT_GE(kernel->last_run, last_run); /* the least recently used one first */
        last_run = kernel->last_run;
    }
    BHT_EQ(b->kernels.pipelines, ready);
    BHT_EQ(used, ready);
    for (const struct bhi_vk_kernel *at = b->kernels.reflected_first; at; at = at->next_reflected) {
        last = at;
    }
    BHT_EQ(b->kernels.reflected_last, last);
}

static void check_buffers(void) {
    uint64_t bytes = 0;
    size_t staged = 0;
    for (size_t i = 0; i < b->buffers.capacity; i++) {
        const struct bhi_vk_buffer *buffer = b->buffers.entries[i].value;
        if (buffer) {
            bytes += buffer->error.status == BH_OK ? buffer->size : 0;
            staged += !!buffer->source;
            BHT_EQ(buffer->stage_end, 0);
            BHT_LE(buffer->staged_begin, buffer->staged_end);
        }
    }
    BHT_EQ(b->imported_bytes, bytes);
    BHT_EQ(b->staged, staged);
}

static uint32_t references_to(const struct bhi_vk_group *group) {
    uint32_t count = 0;
    BHI_LIST_FOR(const struct bhi_vk_recording, r, &b->recordings.used, used) {
        for (size_t i = 0; i < r->groups.count; i++) {
            count += r->groups.items[i] == group;
        }
    }
    return count;
}

static void check_groups(void) {
    uint32_t count = 0, kept = 0, sets = BHI_ABORT_SETS;
    uint64_t bytes = 0;
    BHI_LIST_FOR(const struct bhi_vk_group, group, &b->groups.used, used) {
        count++;
        sets += group->kernel->reflection->set_count;
        bytes += group->bytes;
        kept += group->references == 0;
        BHT_EQ(group->references, references_to(group));
        BHT_TRUE(is_ready(group->kernel));
        BHT_EQ(group->range_count, group->kernel->reflection->buffer_count);
        /* A set takes a page, a descriptor at most 512 bytes. */
        BHT_EQ(group->bytes, group->kernel->reflection->set_count * 4096 +
                                 (group->range_count + group->kernel->guard_shares_set) * 512);
        for (uint32_t i = 0; i < group->range_count; i++) {
            BHT_TRUE(is_attached(group->ranges[i].buffer));
        }
    }
    BHT_EQ(b->groups.count, count);
    BHT_EQ(b->groups.bytes, bytes);
    BHT_EQ(chained(&b->groups.map), count);
    BHT_EQ(rig_live_sets(), sets);
    /* What is only kept gives way. */
    BHT_TRUE(kept == 0 || (count <= b->groups.limit && bytes <= b->groups.max_bytes));
}

static bool uses_once(const struct bhi_pointers *list) {
    for (size_t i = 0; i < list->count; i++) {
        for (size_t k = i + 1; k < list->count && list->count < 100; k++) {
            if (list->items[i] == list->items[k]) {
                return false;
            }
        }
    }
    return true;
}

static void check_empty(const struct bhi_vk_recording *r) {
    BHT_EQ(r->groups.count, 0);
    BHT_EQ(r->buffers.count, 0);
    BHT_EQ(r->kernels.count, 0);
    BHT_EQ(r->barriers, 0);
    BHT_EQ(r->last_run, 0);
}

static void check_recordings(void) {
    uint32_t count = 0, valid = 0;
    size_t bytes = 0;
    uint64_t last_run = 0;
    BHI_LIST_FOR(const struct bhi_vk_recording, r, &b->recordings.used, used) {
        count++;
        bytes += r->capacity;
        valid += r->valid;
        BHT_LE(r->size, r->capacity);
        if (!r->valid) {
            check_empty(r);
            continue;
        }
        BHT_GE(r->last_run, last_run); /* the least recently used one first */
        BHT_LE(r->last_run, b->run);
        last_run = r->last_run;
        BHT_TRUE(uses_once(&r->buffers) && uses_once(&r->kernels));
        for (size_t i = 0; i < r->buffers.count; i++) {
            BHT_TRUE(is_attached(r->buffers.items[i]));
        }
        for (size_t i = 0; i < r->kernels.count; i++) {
            BHT_TRUE(is_ready(r->kernels.items[i]));
        }
    }
    BHT_EQ(b->recordings.count, count);
    BHT_EQ(b->recordings.bytes, bytes);
    BHT_EQ(chained(&b->recordings.valid), valid);
    BHT_TRUE(!b->merged.valid);
    check_empty(&b->merged);
}

static void check_words(void) {
    BHT_EQ(b->abort.count, 0);
    BHT_EQ(b->abort.aborted, 0);
    for (uint32_t slot = 0; b->abort.slots && slot < BHI_ABORT_SETS; slot++) {
        const struct bhi_guard_words *words =
            (const void *)(b->abort.slots + bhi_vk_abort_offset(slot));
        BHT_EQ(words->abort, slot == BHI_ABORT_SET);
        /* Flags of the last one are those of kernels that were only compiled. */
        BHT_TRUE(words->flags == 0 || slot == BHI_ABORT_SET || b->device.whole_loops);
    }
}

void rig_check_state(void) {
    b = bhi_vk(rig.backend);
    check_kernels();
    check_buffers();
    check_groups();
    check_recordings();
    check_words();
    BHT_EQ(b->copies.beside_count, 0);
    BHT_TRUE(!b->base.starved);
}

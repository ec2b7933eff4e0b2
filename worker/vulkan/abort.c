#include "worker/vulkan/abort.h"

#include "worker/vulkan/memory.h"
#include "worker/vulkan/result.h"

#include <stdatomic.h>
#include <string.h>

#define BYTES (BHI_ABORT_SETS * 256u)

_Static_assert(sizeof(struct bhi_guard_words) <= 256, "a slot is as large as any alignment");
_Static_assert(BHI_ABORT_SLOTS <= 64, "a bit for each");

static _Atomic uint32_t *word_of(const struct bhi_vk_abort *a, uint32_t slot) {
    return (_Atomic uint32_t *)(void *)(a->slots + bhi_vk_abort_offset(slot) +
                                        offsetof(struct bhi_guard_words, abort));
}

static struct bhi_vk_fill fill_of(uint32_t slot, uint32_t value) {
    return (struct bhi_vk_fill){.offset = bhi_vk_abort_offset(slot) +
                                          offsetof(struct bhi_guard_words, abort),
                                .size = sizeof value,
                                .value = value};
}

/* Makes the words in memory that a sentinel can import. */
static VkResult create_remote(struct bhi_vk_device *device, struct bhi_vk_abort *a,
                              VkBufferUsageFlags usage, const char **out_call) {
    static const struct bhi_vk_fill zero = {.size = VK_WHOLE_SIZE};
    struct bhi_vk_fill first[BHI_ABORT_SETS];
    VkResult result = bhi_vk_words_create(device, &a->words, BYTES, usage, -1, out_call);
    if (result != VK_SUCCESS) {
        return result;
    }
    a->buffer = a->words.buffer;
    a->remote = a->visible_to_kernels = true;
    result = bhi_vk_transfer_init(device, &a->transfer, out_call);
    for (uint32_t slot = 0; slot < BHI_ABORT_SETS; slot++) {
        first[slot] = fill_of(slot, slot == BHI_ABORT_SET);
    }
    *out_call = "vkCmdFillBuffer (abort words)";
    if (result == VK_SUCCESS) {
        result = bhi_vk_transfer_fill(device, &a->transfer, a->buffer, &zero, 1);
    }
    /* This is also the longest command that is ever recorded. It runs more than once, so that the
     * driver has allocated all that it needs for it. */
    for (int i = 0; result == VK_SUCCESS && i < 2; i++) {
        result = bhi_vk_transfer_fill(device, &a->transfer, a->buffer, first, BHI_ABORT_SETS);
    }
    return result;
}

static VkResult create_memory(struct bhi_vk_device *device, struct bhi_vk_abort *a,
                              const char **out_call) {
    const struct bhi_vk_api *vk = &device->api;
    const VkBufferUsageFlags parts = /* dispatch.c uses the words as conditions and writes counts */
        device->in_parts
            ? VK_BUFFER_USAGE_CONDITIONAL_RENDERING_BIT_EXT | VK_BUFFER_USAGE_TRANSFER_DST_BIT
            : 0;
    if (device->transfer_family != UINT32_MAX) {
        VkResult remote = create_remote(device, a, parts, out_call);
        if (remote != VK_ERROR_FORMAT_NOT_SUPPORTED) {
            return remote;
        }
    }
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = BYTES,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | parts,
                                     .sharingMode = VK_SHARING_MODE_EXCLUSIVE};
    *out_call = "vkCreateBuffer (abort words)";
    VkResult result = vk->CreateBuffer(device->device, &info, NULL, &a->buffer);
    if (result != VK_SUCCESS) {
        a->buffer = VK_NULL_HANDLE;
        return result;
    }
    VkMemoryRequirements needs;
    vk->GetBufferMemoryRequirements(device->device, a->buffer, &needs);
    const int type = bhi_vk_memory_for_words(&device->memory, needs.memoryTypeBits, device->is_cpu,
                                             &a->visible_to_kernels);
    const VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                           .allocationSize = needs.size,
                                           .memoryTypeIndex = type < 0 ? 0 : (uint32_t)type};
    *out_call = "vkAllocateMemory (abort words)";
    result = type < 0 ? VK_ERROR_OUT_OF_DEVICE_MEMORY
                      : vk->AllocateMemory(device->device, &allocate, NULL, &a->memory);
    if (result != VK_SUCCESS) {
        a->memory = VK_NULL_HANDLE;
        return result;
    }
    *out_call = "vkBindBufferMemory (abort words)";
    result = vk->BindBufferMemory(device->device, a->buffer, a->memory, 0);
    if (result != VK_SUCCESS) {
        return result;
    }
    void *mapped = NULL;
    *out_call = "vkMapMemory (abort words)";
    result = vk->MapMemory(device->device, a->memory, 0, VK_WHOLE_SIZE, 0, &mapped);
    a->slots = mapped;
    if (result == VK_SUCCESS) {
        memset(a->slots, 0, BYTES);
        atomic_store(word_of(a, BHI_ABORT_SET), 1);
    }
    return result;
}

static void write_words(struct bhi_vk_device *device, const struct bhi_vk_abort *a,
                        VkDescriptorSet set, uint32_t binding, VkDescriptorType type,
                        uint32_t offset) {
    const VkDescriptorBufferInfo buffer = {a->buffer, offset, sizeof(struct bhi_guard_words)};
    const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                        .dstSet = set,
                                        .dstBinding = binding,
                                        .descriptorCount = 1,
                                        .descriptorType = type,
                                        .pBufferInfo = &buffer};
    device->api.UpdateDescriptorSets(device->device, 1, &write, 0, NULL);
}

void bhi_vk_abort_write_shared(struct bhi_vk_device *device, const struct bhi_vk_abort *a,
                               VkDescriptorSet set, uint32_t binding) {
    write_words(device, a, set, binding, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC, 0);
}

static VkResult create_sets(struct bhi_vk_device *device, struct bhi_vk_abort *a,
                            const char **out_call) {
    const struct bhi_vk_api *vk = &device->api;
    const VkDescriptorSetLayoutBinding binding = {.descriptorType =
                                                      VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                  .descriptorCount = 1,
                                                  .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    VkDescriptorSetLayout layouts[BHI_ABORT_SETS];
    VkDescriptorSetLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    *out_call = "vkCreateDescriptorSetLayout (abort words)";
    VkResult result = vk->CreateDescriptorSetLayout(device->device, &layout, NULL, &a->empty);
    if (result != VK_SUCCESS) {
        a->empty = VK_NULL_HANDLE;
        return result;
    }
    layout.bindingCount = 1;
    layout.pBindings = &binding;
    result = vk->CreateDescriptorSetLayout(device->device, &layout, NULL, &a->layout);
    if (result != VK_SUCCESS) {
        a->layout = VK_NULL_HANDLE;
        return result;
    }
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, BHI_ABORT_SETS};
    const VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = BHI_ABORT_SETS,
                                             .poolSizeCount = 1,
                                             .pPoolSizes = &size};
    *out_call = "vkCreateDescriptorPool (abort words)";
    result = vk->CreateDescriptorPool(device->device, &pool, NULL, &a->pool);
    if (result != VK_SUCCESS) {
        a->pool = VK_NULL_HANDLE;
        return result;
    }
    for (uint32_t slot = 0; slot < BHI_ABORT_SETS; slot++) {
        layouts[slot] = a->layout;
    }
    const VkDescriptorSetAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = a->pool,
        .descriptorSetCount = BHI_ABORT_SETS,
        .pSetLayouts = layouts};
    *out_call = "vkAllocateDescriptorSets (abort words)";
    result = vk->AllocateDescriptorSets(device->device, &allocate, a->sets);
    for (uint32_t slot = 0; result == VK_SUCCESS && slot < BHI_ABORT_SETS; slot++) {
        write_words(device, a, a->sets[slot], 0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                    bhi_vk_abort_offset(slot));
    }
    return result;
}

bool bhi_vk_abort_init(struct bhi_vk_device *device, struct bhi_vk_abort *a,
                       struct bhi_error *error) {
    const char *call;
    a->device = device;
    a->wanted = UINT64_MAX;
    pthread_mutex_init(&a->mutex, NULL);
    a->mutex_made = true;
    VkResult result = create_memory(device, a, &call);
    if (result == VK_SUCCESS) {
        result = create_sets(device, a, &call);
    }
    if (result != VK_SUCCESS) {
        bhi_error_vk(error, result, call);
    }
    return result == VK_SUCCESS;
}

void bhi_vk_abort_fini(struct bhi_vk_device *device, struct bhi_vk_abort *a) {
    const struct bhi_vk_api *vk = &device->api;
    vk->DestroyDescriptorPool(device->device, a->pool, NULL);
    vk->DestroyDescriptorSetLayout(device->device, a->layout, NULL);
    vk->DestroyDescriptorSetLayout(device->device, a->empty, NULL);
    bhi_vk_transfer_fini(device, &a->transfer);
    bhi_vk_words_destroy(device, &a->words);
    if (!a->remote) {
        vk->DestroyBuffer(device->device, a->buffer, NULL);
    }
    vk->FreeMemory(device->device, a->memory, NULL); /* unmaps it */
    if (a->mutex_made) {
        pthread_mutex_destroy(&a->mutex);
    }
    memset(a, 0, sizeof *a);
}

/* Sets the word of each slot in |slots| to |value|. Call it with the mutex. The fence also flushes
 * writes that the processor has combined for memory behind a bus. */
static void set_words(struct bhi_vk_abort *a, uint64_t slots, uint32_t value) {
    struct bhi_vk_fill fills[BHI_ABORT_SLOTS];
    size_t count = 0;
    for (uint32_t slot = 0; slot < BHI_ABORT_SLOTS; slot++) {
        if (!(slots >> slot & 1)) {
            continue;
        }
        if (!a->remote) {
            atomic_store_explicit(word_of(a, slot), value, memory_order_relaxed);
            continue;
        }
        fills[count++] = fill_of(slot, value);
    }
    if (count > 0 &&
        bhi_vk_transfer_fill(a->device, &a->transfer, a->buffer, fills, count) != VK_SUCCESS) {
        a->transfer.lost = true; /* the values of the words are unknown from now on */
    }
    atomic_thread_fence(memory_order_seq_cst);
}

static void end_wanted(struct bhi_vk_abort *a) {
    uint64_t slots = 0;
    for (uint32_t slot = 0; slot < a->count; slot++) {
        if (a->all_aborted || a->running[slot] == a->wanted) {
            slots |= UINT64_C(1) << slot;
        }
    }
    if (slots != 0) {
        a->aborted |= slots;
        set_words(a, slots, 1);
    }
}

void bhi_vk_abort_begin(struct bhi_vk_abort *a, const uint64_t *seqs, uint32_t count) {
    pthread_mutex_lock(&a->mutex);
    memcpy(a->running, seqs, count * sizeof *seqs);
    a->count = count;
    end_wanted(a);
    pthread_mutex_unlock(&a->mutex);
}

uint64_t bhi_vk_abort_end(struct bhi_vk_abort *a, bool *out_lost) {
    pthread_mutex_lock(&a->mutex);
    const uint64_t aborted = a->aborted;
    if (aborted != 0) {
        set_words(a, aborted, 0);
    }
    a->aborted = 0;
    a->count = 0;
    *out_lost = a->transfer.lost;
    pthread_mutex_unlock(&a->mutex);
    return aborted;
}

void bhi_vk_abort_one(struct bhi_vk_abort *a, uint64_t seq) {
    pthread_mutex_lock(&a->mutex);
    a->wanted = seq;
    end_wanted(a);
    pthread_mutex_unlock(&a->mutex);
}

void bhi_vk_abort_all(struct bhi_vk_abort *a) {
    pthread_mutex_lock(&a->mutex);
    a->all_aborted = true;
    end_wanted(a);
    pthread_mutex_unlock(&a->mutex);
}

uint32_t bhi_vk_abort_flags(struct bhi_vk_abort *a, uint32_t slot) {
    _Atomic uint32_t *flags = (_Atomic uint32_t *)(void *)(a->slots + bhi_vk_abort_offset(slot) +
                                                           offsetof(struct bhi_guard_words, flags));
    const uint32_t found = atomic_load(flags);
    if (found != 0) {
        atomic_store(flags, 0);
    }
    return found;
}

int bhi_vk_abort_export(struct bhi_vk_device *device, const struct bhi_vk_abort *a,
                        uint64_t *out_bytes) {
    *out_bytes = a->words.bytes;
    return a->remote ? bhi_vk_words_export(device, &a->words) : -1;
}

/* A Vulkan device in this process that runs a module, guarded or not, on buffers with known
 * content: without the rest of the backend. */
#ifndef GUARD_RUNNER_H
#define GUARD_RUNNER_H

#include "guard.h"
#include "reflect.h"
#include "stand.h"
#include "vk_device.h"

#define RUNNER_WORDS 16384u /* in each buffer */

struct runner {
    struct bhi_vk_device vk;
    PFN_vkMapMemory map;
    VkCommandPool pool;
    VkDescriptorPool descriptors;
};

struct runner_run {
    const uint32_t *code;
    size_t words;
    const struct bhi_reflection *reflection; /* of the module as it came */
    const struct bhi_guarded *guarded;       /* NULL: run it as it is */
    const struct bhi_spec_constant *constants;
    uint32_t constant_count;
    uint32_t groups[3];
    const void *push; /* as many bytes as the reflection says */
    uint32_t abort;   /* the guard's word */
    uint32_t *data;   /* in and out: RUNNER_WORDS for each binding, in their order */
    uint32_t flags;   /* out: the guard's */
};

void runner_open(struct runner *device);
void runner_close(struct runner *device);
/* Fails the test when any call does. */
void runner_dispatch(struct runner *device, struct runner_run *run);

#endif

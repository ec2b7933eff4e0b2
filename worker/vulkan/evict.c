#include "worker/vulkan/evict.h"

void bhi_vk_forget_kernel(struct bhi_vk_device *device, struct bhi_vk_recordings *recordings,
                          struct bhi_vk_groups *groups, const struct bhi_vk_kernel *kernel) {
    bhi_vk_recordings_forget(device, recordings, groups, kernel);
    bhi_vk_groups_forget(device, groups, NULL, kernel);
}

void bhi_vk_evict_pipelines(struct bhi_vk_device *device, struct bhi_vk_kernels *kernels,
                            struct bhi_vk_recordings *recordings, struct bhi_vk_groups *groups,
                            uint64_t run) {
    struct bhi_vk_kernel *victim;
    while ((victim = bhi_vk_kernel_victim(kernels, run))) {
        bhi_vk_forget_kernel(device, recordings, groups, victim);
        bhi_vk_kernel_evict(device, kernels, victim);
    }
}

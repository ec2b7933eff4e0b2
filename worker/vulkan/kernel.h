/* Kernels are validated, reflected and compiled at their first use. The number of pipelines is
 * limited: the least recently used is destroyed first. */
#ifndef BHI_WORKER_VULKAN_KERNEL_H
#define BHI_WORKER_VULKAN_KERNEL_H

#include "base/list.h"
#include "base/map.h"
#include "worker/spirv/reflect.h"
#include "worker/vulkan/abort.h"
#include "worker/vulkan/cache.h"
#include "worker/vulkan/device.h"

/*  NEW ──validate, reflect, layouts──▶ REFLECTED ──pipeline──▶ READY
 *   └────────────▶ FAILED ◀──────────────┘   ◀──evicted──┘
 * FAILED is final. OUT_OF_* errors are not a failure of the kernel: it stays as it was. */
enum bhi_kernel_state { BHI_KERNEL_NEW, BHI_KERNEL_REFLECTED, BHI_KERNEL_READY, BHI_KERNEL_FAILED };

struct bhi_vk_kernel {
    uint64_t id;
    enum bhi_kernel_state state;
    struct bhi_error error; /* if FAILED */
    char entry[256];
    char name[64];
    uint32_t *code; /* from REFLECTED on: the guarded code, unless the kernel is trusted */
    size_t words;
    struct bhi_spec_constant *constants;
    uint32_t constant_count;
    bool trusted;           /* not guarded */
    bool in_parts;          /* from REFLECTED on: large grids run in parts */
    uint32_t noise;         /* as in the message */
    bool reads_grid;        /* if in_parts: it reads the grid's size, and needs |split| */
    uint32_t grid_constant; /* the specialization constant that |split| sets */
    uint32_t guard_set, guard_binding;      /* from REFLECTED on: where the abort word is bound */
    bool guard_shares_set;                  /* the abort word is in one of the kernel's own sets */
    struct bhi_module_bindings *reflection; /* from REFLECTED on */
    struct bhi_vk_kernel *next_reflected;   /* next one whose reflection was not reported yet */
    VkDescriptorSetLayout set_layouts[BHI_MAX_SETS];
    VkPipelineLayout layout;
    VkPipeline pipeline;  /* if READY */
    VkPipeline split;     /* READY and reads_grid: for a grid in parts; NULL until needed */
    bool has_run;         /* a dispatch of this pipeline has ended: the driver has compiled it */
    uint64_t last_run;    /* number of the last bhi_backend_run() that used it */
    uint64_t stamp;       /* the newest recording that lists it */
    struct bhi_list used; /* if READY: its place in the order of use */
};

struct bhi_vk_kernels {
    struct bhi_map map;
    struct bhi_list used; /* READY kernels, least recently used first */
    struct bhi_vk_kernel *reflected_first, *reflected_last;
    uint32_t pipelines, max_pipelines;
    const struct bhi_vk_abort *abort; /* for the layouts of guarded kernels */
    struct bhi_vk_cache *cache;
};

#define BHI_NO_SET UINT32_MAX

/* Does the kernel read the abort word? Valid from REFLECTED on, and as an assumption before. */
static inline bool bhi_vk_kernel_guarded(const struct bhi_vk_kernel *kernel) {
    return !kernel->trusted;
}

/* Returns NULL if out of memory. */
struct bhi_vk_kernel *bhi_vk_kernel_new(const struct bhi_msg_kernel_create *info, const void *code,
                                        const struct bhi_spec_constant *constants,
                                        uint32_t constant_count);
/* Destroys the kernel and its Vulkan objects. Takes it out of the lists, not out of the map. */
void bhi_vk_kernel_free(struct bhi_vk_device *device, struct bhi_vk_kernels *kernels,
                        struct bhi_vk_kernel *kernel);
/* Brings the kernel to READY, or sets *error. */
bool bhi_vk_kernel_prepare(struct bhi_vk_device *device, struct bhi_vk_kernels *kernels,
                           struct bhi_vk_kernel *kernel, struct bhi_error *error);
/* Makes |split| for a READY kernel. */
bool bhi_vk_kernel_prepare_split(struct bhi_vk_device *device, struct bhi_vk_kernels *kernels,
                                 struct bhi_vk_kernel *kernel, struct bhi_error *error);
/* Run |run| uses the kernel: it becomes the most recently used. */
void bhi_vk_kernel_touch(struct bhi_vk_kernels *kernels, struct bhi_vk_kernel *kernel,
                         uint64_t run);
/* Returns a kernel whose pipeline should be destroyed: there are more than max_pipelines, and |run|
 * does not use it. NULL: none. */
struct bhi_vk_kernel *bhi_vk_kernel_victim(const struct bhi_vk_kernels *kernels, uint64_t run);
void bhi_vk_kernel_evict(struct bhi_vk_device *device, struct bhi_vk_kernels *kernels,
                         struct bhi_vk_kernel *kernel);
/* The name of a kernel in messages, as in: kernel "name". */
#define BHI_KERNEL_LABEL(kernel) ((kernel)->name[0] ? (kernel)->name : (kernel)->entry)

#endif

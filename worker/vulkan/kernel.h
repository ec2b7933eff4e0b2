/* Kernels: validated, reflected and compiled at first use; pipelines bounded, least recently used
 * out first. */
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
    struct bhi_error error; /* FAILED */
    char entry[256];
    char name[64];
    uint32_t *code; /* from REFLECTED on: guarded, unless it is trusted */
    size_t words;
    struct bhi_spec_constant *constants;
    uint32_t constant_count;
    bool trusted;                           /* not guarded */
    bool in_parts;                          /* from REFLECTED on: a large grid is split */
    bool reads_grid;                        /* and then it is told how large it is, by |split| */
    uint32_t grid_constant;                 /* the specialization constant that makes that one */
    uint32_t guard_set, guard_binding;      /* from REFLECTED on: where its abort word is bound */
    bool guard_shares_set;                  /* that is one of its own sets */
    struct bhi_module_bindings *reflection; /* from REFLECTED on */
    struct bhi_vk_kernel *next_reflected;   /* queue of those not yet reported */
    VkDescriptorSetLayout set_layouts[BHI_MAX_SETS];
    VkPipelineLayout layout;
    VkPipeline pipeline;  /* READY */
    VkPipeline split;     /* READY, and reads_grid: for a grid in parts; NULL until there is one */
    bool has_run;         /* a dispatch of this pipeline has ended: the driver's JIT is done */
    uint64_t last_run;    /* number of the last bhi_backend_run() that used it */
    uint64_t stamp;       /* the newest recording that lists it */
    struct bhi_list used; /* READY: its place in the order of use */
};

struct bhi_vk_kernels {
    struct bhi_map map;
    struct bhi_list used; /* those that are READY, the longest unused first */
    struct bhi_vk_kernel *reflected_first, *reflected_last;
    uint32_t pipelines, max_pipelines;
    const struct bhi_vk_abort *abort; /* for the layouts of guarded ones */
    struct bhi_vk_cache *cache;
};

#define BHI_NO_SET UINT32_MAX

/* Does it look at the abort word? Its state is REFLECTED or READY, or it is not known yet. */
static inline bool bhi_vk_kernel_guarded(const struct bhi_vk_kernel *kernel) {
    return !kernel->trusted;
}

/* NULL: out of memory. */
struct bhi_vk_kernel *bhi_vk_kernel_new(const struct bhi_msg_kernel_create *info, const void *code,
                                        const struct bhi_spec_constant *constants,
                                        uint32_t constant_count);
/* Destroys its Vulkan objects and itself; takes it out of the lists, not out of the map. */
void bhi_vk_kernel_free(struct bhi_vk_device *device, struct bhi_vk_kernels *kernels,
                        struct bhi_vk_kernel *kernel);
/* Brings it to READY, or gives *error. */
bool bhi_vk_kernel_prepare(struct bhi_vk_device *device, struct bhi_vk_kernels *kernels,
                           struct bhi_vk_kernel *kernel, struct bhi_error *error);
/* Makes |split|; it is READY. */
bool bhi_vk_kernel_prepare_split(struct bhi_vk_device *device, struct bhi_vk_kernels *kernels,
                                 struct bhi_vk_kernel *kernel, struct bhi_error *error);
/* It is used by run |run|: the newest now. */
void bhi_vk_kernel_touch(struct bhi_vk_kernels *kernels, struct bhi_vk_kernel *kernel,
                         uint64_t run);
/* The one whose pipeline is to go: more than max_pipelines, and not used by |run|. NULL: none. */
struct bhi_vk_kernel *bhi_vk_kernel_victim(const struct bhi_vk_kernels *kernels, uint64_t run);
void bhi_vk_kernel_evict(struct bhi_vk_device *device, struct bhi_vk_kernels *kernels,
                         struct bhi_vk_kernel *kernel);
/* "kernel "name"" for messages. */
#define BHI_KERNEL_LABEL(kernel) ((kernel)->name[0] ? (kernel)->name : (kernel)->entry)

#endif

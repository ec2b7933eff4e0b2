#include "worker/cuda/device.h"

#include "base/text.h"
#include "ipc/layers.h"
#include "worker/cuda/result.h"

#include <bulkhead/bulkhead.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NVIDIA       0x10deu
#define DISCRETE_GPU 2u /* VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU */
/* What a context reserves for each thread that the GPU can run, for printf() and for malloc() in
 * kernels: 256 MiB without these. A kernel that needs more stack gets it when it is launched. */
#define PRINTF_BYTES 65536u
#define HEAP_BYTES   65536u

#define MOST_GPUS   16
#define CAUSE_BYTES 96

/* -- the driver ------------------------------------------------------------------------------- */

/* Is a GPU divided into instances (MIG)? */
static bool is_divided(void) {
    bool found = false;
    for (int gpu = 0; gpu < MOST_GPUS && !found; gpu++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/driver/nvidia/capabilities/gpu%d/mig", gpu);
        DIR *instances = opendir(path);
        const struct dirent *entry;
        while (instances && !found && (entry = readdir(instances))) {
            found = strncmp(entry->d_name, "gi", 2) == 0;
        }
        if (instances) {
            closedir(instances);
        }
    }
    return found;
}

/* Returns 0, or an errno, with its words. */
static int try_to_open(const char *node, char out[CAUSE_BYTES]) {
    const int fd = open(node, O_RDWR | O_CLOEXEC);
    const int err = fd < 0 ? errno : 0;
    if (err == 0) {
        close(fd);
    } else {
        snprintf(out, CAUSE_BYTES, "%s: %s", node, strerror(err));
    }
    return err;
}

/* Which of the nodes that CUDA begins with cannot be opened? Of several GPUs a worker has one node. */
static bool find_shut_node(char out[CAUSE_BYTES]) {
    if (try_to_open("/dev/nvidiactl", out) != 0 || try_to_open("/dev/nvidia-uvm", out) != 0) {
        return true;
    }
    bool shut = false;
    for (int gpu = 0; gpu < MOST_GPUS; gpu++) {
        char node[32], why[CAUSE_BYTES];
        snprintf(node, sizeof node, "/dev/nvidia%d", gpu);
        const int err = try_to_open(node, why);
        if (err == 0) {
            return false;
        }
        if (err != ENOENT && !shut) {
            shut = true;
            memcpy(out, why, CAUSE_BYTES);
        }
    }
    return shut;
}

/* Why CUDA does not begin, where its name of the error says little; NULL: it may be another one later. */
static const char *cause(CUresult result, char out[CAUSE_BYTES]) {
    const bool no_device = result == CUDA_ERROR_NO_DEVICE;
    if (no_device && is_divided()) {
        return "a GPU is divided by MIG, and workers reach no instance of one";
    }
    if ((no_device || result == CUDA_ERROR_UNKNOWN) && find_shut_node(out)) {
        return out;
    }
    switch (result) {
    case CUDA_ERROR_NO_DEVICE:
        return "it sees no GPU";
    case CUDA_ERROR_OPERATING_SYSTEM:
        return "the system refuses it /proc or a device node";
    case CUDA_ERROR_SYSTEM_NOT_READY:
        return "the GPUs are not set up yet: where NVSwitches connect them, nvidia-fabricmanager "
               "does it";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return "libcuda.so.1 does not belong to the loaded kernel module";
    case CUDA_ERROR_UNKNOWN:
        return "the driver says no more; the kernel's log may";
    default:
        return NULL;
    }
}

bool bhi_cuda_load(struct bhi_cuda_api *api, const struct bhi_backend_config *config,
                   struct bhi_error *error) {
    int since;
    const char *missing = bhi_cuda_find(api, (bhi_cuda_entry)config->entry, &since);
    if (missing) {
        BHI_ERROR_SAY(error, BH_REASON_DEVICE_LACKS, "%s: it needs CUDA %d.%d or later", missing,
                      since / 1000, since % 1000 / 10);
        bhi_text_line(error->told.name, sizeof error->told.name, "the CUDA driver", 15);
        return false;
    }
    const CUresult result = api->cuInit(0);
    if (result != CUDA_SUCCESS) {
        char text[CAUSE_BYTES];
        const char *why = cause(result, text);
        BHI_ERROR(error, BH_REASON_NONE, .status = why ? BH_NO_DEVICE : BH_CUDA,
                  .value = (uint64_t)result,
                  .text = BHI_SAY("cuInit: %s (%d)%s%s", bhi_cuda_name(api, result), (int)result,
                                  why ? ": " : "", why ? why : ""));
        return false;
    }
    return true;
}

static uint32_t ask(const struct bhi_cuda_api *api, CUdevice device, int attribute) {
    int value = 0;
    (void)api->cuDeviceGetAttribute(&value, attribute, device);
    return value > 0 ? (uint32_t)value : 0;
}

static struct bhi_pci address_of(const struct bhi_cuda_api *api, CUdevice device) {
    return (struct bhi_pci){.domain = ask(api, device, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
                            .bus = ask(api, device, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
                            .device = ask(api, device, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID),
                            .known = true};
}

/* -- ours ------------------------------------------------------------------------------------- */

/* Finds the wanted device, which may have another number in a process that sees fewer. */
static bool find_device(struct bhi_cuda_device *d, const struct bhi_backend_config *config,
                        struct bhi_error *error) {
    int count = 0;
    const CUresult result = d->api.cuDeviceGetCount(&count);
    if (result != CUDA_SUCCESS) {
        bhi_error_cuda(error, &d->api, result, "cuDeviceGetCount");
        return false;
    }
    for (int i = 0; i < count; i++) {
        CUdevice device;
        if (d->api.cuDeviceGet(&device, i) != CUDA_SUCCESS) {
            continue;
        }
        const struct bhi_pci there = address_of(&d->api, device);
        if (config->pci && config->pci->known ? bhi_pci_equal(&there, config->pci)
                                              : (uint32_t)i == config->device_index) {
            d->device = device;
            d->index = (uint32_t)i;
            return true;
        }
    }
    BHI_ERROR_SAY(error, BH_REASON_DEVICE_GONE, "%u", config->device_index);
    return false;
}

static void ask_limits(struct bhi_cuda_device *d) {
    for (int axis = 0; axis < 3; axis++) {
        d->max_grid[axis] = ask(&d->api, d->device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + axis);
        d->max_block[axis] = ask(&d->api, d->device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + axis);
    }
    d->max_threads = ask(&d->api, d->device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    d->max_shared = ask(&d->api, d->device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    d->registers_read_only =
        ask(&d->api, d->device, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED);
}

static bool has_what_we_need(struct bhi_cuda_device *d, struct bhi_error *error) {
    if (!ask(&d->api, d->device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) ||
        !ask(&d->api, d->device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED)) {
        BHI_ERROR(error, BH_REASON_DEVICE_LACKS, "the GPU",
                  .text = "virtual memory management with descriptors");
        return false;
    }
    if (ask(&d->api, d->device, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS)) {
        BHI_ERROR(error, BH_REASON_DEVICE_LACKS, "the GPU",
                  .text = "wall between kernels and the memory of their process: HMM or ATS is on "
                          "(nvidia_uvm's parameter uvm_disable_hmm=1 turns HMM off)");
        return false;
    }
    return true;
}

CUmemAllocationProp bhi_cuda_properties(const struct bhi_cuda_device *d) {
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = d->device},
    };
}

static CUresult create(struct bhi_cuda_device *d, const char **out_call) {
    *out_call = "cuCtxCreate";
    CUresult result = d->api.cuCtxCreate(&d->context, CU_CTX_MAP_HOST, d->device);
    if (result != CUDA_SUCCESS) {
        d->context = NULL;
        return result;
    }
    *out_call = "cuCtxSetLimit";
    (void)d->api.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 0); /* it takes its own least */
    result = d->api.cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, PRINTF_BYTES);
    if (result == CUDA_SUCCESS) {
        result = d->api.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, HEAP_BYTES);
    }
    if (result == CUDA_SUCCESS) {
        *out_call = "cuStreamCreate";
        result = d->api.cuStreamCreate(&d->stream, CU_STREAM_NON_BLOCKING);
    }
    if (result == CUDA_SUCCESS) {
        *out_call = "cuMemGetAllocationGranularity";
        const CUmemAllocationProp properties = bhi_cuda_properties(d);
        result = d->api.cuMemGetAllocationGranularity(&d->granularity, &properties,
                                                      CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    }
    return result;
}

bool bhi_cuda_device_init(struct bhi_cuda_device *d, const struct bhi_backend_config *config,
                          struct bhi_error *error) {
    if (!bhi_cuda_load(&d->api, config, error) || !find_device(d, config, error) ||
        !has_what_we_need(d, error)) {
        return false;
    }
    ask_limits(d);
    const char *call;
    const CUresult result = create(d, &call);
    if (result != CUDA_SUCCESS) {
        static const char *const modes[] = {
            [2] = " (the GPU's compute mode is prohibited)",
            [3] = " (the GPU's compute mode is exclusive-process: one worker has it, or another)"};
        const uint32_t mode = ask(&d->api, d->device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
        bhi_error_cuda(error, &d->api, result, call);
        BHI_ERROR_APPEND(error, "%s", mode == 2 || mode == 3 ? modes[mode] : "");
    }
    return result == CUDA_SUCCESS;
}

void bhi_cuda_device_fini(struct bhi_cuda_device *d) {
    if (d->context) {
        (void)d->api.cuCtxDestroy(d->context); /* with the stream */
    }
    d->context = NULL;
}

/* -- what the host is told -------------------------------------------------------------------- */

static void describe(const struct bhi_cuda_api *api, CUdevice device, struct bhi_msg_device *out) {
    char name[256] = "", version_text[32];
    size_t bytes = 0;
    int version = 0;
    CUuuid uuid = {{0}};
    (void)api->cuDeviceGetName(name, sizeof name, device);
    (void)api->cuDeviceTotalMem(&bytes, device);
    (void)api->cuDriverGetVersion(&version);
    (void)api->cuDeviceGetUuid(&uuid, device);
    const struct bhi_pci pci = address_of(api, device);
    out->vendor_id = NVIDIA;
    out->device_type = DISCRETE_GPU;
    out->driver_version = version > 0 ? (uint32_t)version : 0;
    out->api_version = out->driver_version / 1000 << 22 | out->driver_version % 1000 / 10 << 12;
    memcpy(out->uuid, uuid.bytes, sizeof out->uuid);
    out->features = BHI_FEATURE_HOST_IMPORT | BHI_FEATURE_NULL_DESCRIPTOR | BHI_FEATURE_INT8 |
                    BHI_FEATURE_INT16 | BHI_FEATURE_INT64 | BHI_FEATURE_FLOAT16 |
                    BHI_FEATURE_FLOAT64 | BHI_FEATURE_WHOLE_LOOPS | BHI_FEATURE_WHOLE_GRIDS |
                    BHI_FEATURE_MEMORY_EXPORT;
    out->memory_bytes = out->memory_total = bytes;
    out->pci_known = 1;
    out->pci_domain = pci.domain;
    out->pci_bus = pci.bus & 0xff;
    out->pci_device = pci.device & 0x1f;
    uint32_t *groups[] = {&out->max_groups_x, &out->max_groups_y, &out->max_groups_z};
    for (int axis = 0; axis < 3; axis++) {
        const uint32_t most = ask(api, device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + axis);
        *groups[axis] = most > 0 ? most : 1;
    }
    const uint32_t threads = ask(api, device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    out->max_group_invocations = threads > 0 ? threads : 1;
    out->max_shared_bytes = ask(api, device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    out->max_push_bytes = 4096;
    out->max_storage_range = out->max_uniform_range = bytes;
    out->storage_alignment = out->uniform_alignment = 1;
    out->import_alignment = 4096;
    bhi_text_sanitise(out->name, sizeof out->name, name, strnlen(name, sizeof name));
    snprintf(version_text, sizeof version_text, "CUDA %d.%d", version / 1000, version % 1000 / 10);
    bhi_text_sanitise(out->driver, sizeof out->driver, "NVIDIA", 6);
    bhi_text_sanitise(out->driver_info, sizeof out->driver_info, version_text,
                      strlen(version_text));
}

size_t bhi_cuda_device_messages(const struct bhi_cuda_api *api, uint32_t chosen,
                                struct bhi_msg_device *out, struct bhi_pci *out_pci,
                                size_t capacity) {
    int count = 0;
    size_t written = 0;
    (void)api->cuDeviceGetCount(&count);
    for (int i = 0; i < count && written < capacity; i++) {
        CUdevice device;
        if (api->cuDeviceGet(&device, i) != CUDA_SUCCESS) {
            continue;
        }
        struct bhi_msg_device *message = &out[written];
        memset(message, 0, sizeof *message);
        message->index = (uint32_t)i;
        message->count = (uint32_t)count;
        message->chosen = (uint32_t)i == chosen;
        describe(api, device, message);
        if (out_pci) {
            out_pci[written] = address_of(api, device);
        }
        written++;
    }
    return written;
}

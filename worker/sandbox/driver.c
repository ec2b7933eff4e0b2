/* The table of drivers, and loading one. */
#include "worker/sandbox/driver.h"

#include "base/fd.h"
#include "base/format.h"
#include "base/limits.h"
#include "ipc/compile.h"
#include "ipc/refusal.h"
#include "worker/sandbox/nvrtc.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vulkan/vk_icd.h>

#define MFD_EXEC_BIT 0x10u /* since Linux 6.3 */
#define CUDA_ENTRY   "cuGetProcAddress_v2"

/* What a GPU's driver may do with files while it starts: read its libraries, /proc and /sys, and
 * open its nodes. Landlock and the root decide which files. It can create nothing, and open nothing
 * but a node for writing. */
#define READS_FILES                                                                                \
    BHI_ALLOW1(openat, BHI_BITS(2, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0)),                   \
        BHI_ANSWER1(openat, EROFS, BHI_BITS(2, O_CREAT, O_CREAT)), BHI_ALLOW(newfstatat),          \
        BHI_ALLOW(stat), BHI_ALLOW(lstat), BHI_ALLOW(statx), BHI_ALLOW(statfs),                    \
        BHI_ALLOW(fstatfs), BHI_ALLOW(access), BHI_ALLOW(faccessat), BHI_ALLOW(faccessat2),        \
        BHI_ALLOW(readlink), BHI_ALLOW(readlinkat), BHI_ALLOW(getcwd), BHI_ALLOW(getdents64),      \
        BHI_ALLOW(lseek), BHI_ALLOW(pread64), BHI_ALLOW(readv)

/* -- nvidia --------------------------------------------------------------------------------- */

static const struct bhi_driver_env nvidia_environment[] = {
    /* With a shared cache of native code a worker could plant code for others. */
    {"__GL_SHADER_DISK_CACHE", "0"},
    {NULL, NULL},
};
/* The paths that version 580.159.04 opens in a trace, and where other distributions keep the same
 * files. Of /usr only the libraries that it loads when the instance is created, and what leads it
 * to them. */
static const struct bhi_driver_path nvidia_paths[] = {
    {"/dev/nvidiactl", BHI_PATH_DEVICE},
    {"/dev/nvidia[0-9]*", BHI_PATH_NODE},
    {"/proc", BHI_PATH_PROC},
    {"/proc/self", BHI_PATH_INSIDE},
    {"/proc/stat", BHI_PATH_INSIDE},
    {"/proc/meminfo", BHI_PATH_INSIDE},
    {"/proc/cpuinfo", BHI_PATH_INSIDE},
    {"/proc/driver/nvidia", BHI_PATH_INSIDE},
    {"/sys/devices/system/cpu", BHI_PATH_READ},
    {"/sys/devices/system/memory", BHI_PATH_READ},
    {"/sys/module/nvidia", BHI_PATH_READ},
    {BHI_PATH_OF_LIBRARY, BHI_PATH_LIBS},
    {"/usr/lib/*-linux-gnu", BHI_PATH_LIBS},
    {"/usr/lib64", BHI_PATH_LIBS},
    {"/lib", BHI_PATH_LIBS},
    {"/lib64", BHI_PATH_LIBS},
    {"/usr/share/glvnd", BHI_PATH_READ},
    {"/usr/share/egl", BHI_PATH_READ},
    {"/usr/share/nvidia", BHI_PATH_READ},
    {"/usr/local/nvidia/share/glvnd", BHI_PATH_READ}, /* in containers the paths above link to it */
    {"/etc/ld.so.cache", BHI_PATH_READ},
    {NULL, BHI_PATH_READ},
};

/* A worker sends the device memory that it has made to the supervisor. */
#define SENDS_DESCRIPTORS BHI_ALLOW1(sendmsg, BHI_INT(0, BHI_FDPASS_DESCRIPTOR))

/* The driver's requests. All have type 'F' and read and write; the size is not compared, because it
 * changes with the version. Requests that other files understand, such as sockets and terminals,
 * kill. */
#define REQUEST(number)                                                                            \
    BHI_ALLOW1(ioctl, BHI_BITS(1, 0xc000ffffu, _IOC(_IOC_READ | _IOC_WRITE, 'F', number, 0)))
/* Needed for a worker's whole life: memory is allocated, mapped, imported and given back. */
#define NVIDIA_REQUESTS                                                                            \
    REQUEST(0x27),     /* ALLOC_MEMORY */                                                          \
        REQUEST(0x29), /* FREE */                                                                  \
        REQUEST(0x2a), /* CONTROL */                                                               \
        REQUEST(0x2b), /* ALLOC */                                                                 \
        REQUEST(0x34), /* DUP_OBJECT */                                                            \
        REQUEST(0x4a), /* VID_HEAP_CONTROL */                                                      \
        REQUEST(0x4e), /* MAP_MEMORY */                                                            \
        REQUEST(0x4f), /* UNMAP_MEMORY: undoes MAP_MEMORY; no trace has shown it yet */            \
        REQUEST(0x52), /* GET_EVENT_DATA: asked when the device is lost */                         \
        REQUEST(0x54), /* ALLOC_CONTEXT_DMA2 */                                                    \
        REQUEST(0x57), /* MAP_MEMORY_DMA */                                                        \
        REQUEST(0x58), /* UNMAP_MEMORY_DMA */                                                      \
        REQUEST(0x5e), /* UPDATE_DEVICE_MAPPING_INFO */                                            \
        REQUEST(0xc9), /* REGISTER_FD */                                                           \
        REQUEST(0xce), /* ALLOC_OS_EVENT */                                                        \
        REQUEST(0xcf)  /* FREE_OS_EVENT: no trace has shown it yet */

static const struct bhi_seccomp_rule nvidia_start[] = {
    NVIDIA_REQUESTS,
    REQUEST(0xc8), /* CARD_INFO */
    REQUEST(0xd2), /* CHECK_VERSION_STR */
    REQUEST(0xd4), /* ATTACH_GPUS_TO_FD */
    REQUEST(0xd6), /* SYS_PARAMS */
    REQUEST(0xd7), /* NUMA_INFO */
    BHI_ALLOW1(sendmsg, BHI_INT(0, BHI_DEVICE_HOLDER_DESCRIPTOR)),
    READS_FILES,
    BHI_ALLOW2(fcntl, BHI_INT(1, F_SETFD), BHI_INT(2, FD_CLOEXEC)),
    BHI_ALLOW1(fcntl, BHI_INT(1, F_ADD_SEALS)),
    /* The driver maps the code of its libraries. Under filter B no new code can be mapped. */
    BHI_ALLOW1(mmap, BHI_BITS(2, ~(uint64_t)(PROT_READ | PROT_EXEC), 0)),
    BHI_ALLOW1(madvise, BHI_INT(2, MADV_DONTFORK)),
    BHI_ALLOW1(madvise, BHI_INT(2, MADV_DOFORK)),
    /* A sealed memfd, a pipe and an eventfd between its threads. */
    BHI_ALLOW1(memfd_create,
               BHI_BITS(1, ~(uint64_t)(MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC_BIT), 0)),
    BHI_ALLOW(ftruncate),
    BHI_ALLOW1(fallocate, BHI_INT(1, 0)),
    BHI_ALLOW1(pipe2, BHI_BITS(1, ~(uint64_t)(O_CLOEXEC | O_NONBLOCK), 0)),
    BHI_ALLOW(eventfd2),
    BHI_ALLOW(getppid),
    /* The driver tries to make or repair its device nodes, and works without that. */
    BHI_ANSWER(mknod, EPERM),
    BHI_ANSWER(mknodat, EPERM),
    BHI_ANSWER(chmod, EPERM),
    BHI_ANSWER(fchmod, EPERM),
    BHI_ANSWER(mkdir, EROFS),
    BHI_ANSWER(mkdirat, EROFS),
    BHI_ANSWER(unlink, EROFS),
    BHI_ANSWER(unlinkat, EROFS),
    BHI_END_OF_RULES,
};
static const struct bhi_seccomp_rule nvidia_steady[] = {
    NVIDIA_REQUESTS,
    SENDS_DESCRIPTORS,
    REQUEST(0xd4), /* ATTACH_GPUS_TO_FD: of the open node that stands for exported memory */
    /* To map more device memory, the driver opens a device node again. Only nodes can be opened for
     * reading and writing (Landlock, read-only mounts). An open for reading finds no file. */
    BHI_ALLOW1(openat, BHI_BITS(2, ~(uint64_t)O_CLOEXEC, O_RDWR)),
    BHI_ANSWER1(openat, ENOENT, BHI_BITS(2, O_ACCMODE, O_RDONLY)),
    BHI_ALLOW2(fcntl, BHI_INT(1, F_SETFD), BHI_INT(2, FD_CLOEXEC)),
    BHI_ALLOW1(madvise, BHI_INT(2, MADV_DONTFORK)),
    BHI_ALLOW1(madvise, BHI_INT(2, MADV_DOFORK)),
    BHI_ANSWER(chmod, EPERM),
    BHI_ANSWER(mknod, EPERM),
    BHI_ANSWER_LOOKUPS,
    BHI_END_OF_RULES,
};

/* -- cuda ----------------------------------------------------------------------------------- */

/* libcuda finds out what is there by itself: cuInit says what is missing. */
static const char *const no_devices[] = {NULL};
static const struct bhi_driver_env cuda_environment[] = {
    /* With a shared cache of native code a worker could plant code for others. */
    {"CUDA_CACHE_DISABLE", "1"},
    /* A module's kernels are loaded when they are first launched: a large library costs no more than
     * what is used of it. It is the default since CUDA 12.2. */
    {"CUDA_MODULE_LOADING", "LAZY"},
    /* The numbers of nvidia-smi, whichever node can be opened. (CUDA_VISIBLE_DEVICES is not set: nothing
     * of the host's environment gets here.) */
    {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
    /* No MPS: clients of one server share the GPU's fault of each. A folder that is not there. */
    {"CUDA_MPS_PIPE_DIRECTORY", "/no-mps"},
    {NULL, NULL},
};
static const char *const cuda_preloads[] = {
    /* libcuda loads these when it needs them: to begin, for PTX, and for code of NVVM. Behind filter B
     * nothing can be opened. The dynamic linker knows a loaded library by its name. */
    "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1", "libnvidia-nvvm.so.4", NULL};
static const struct bhi_driver_path cuda_paths[] = {
    {"/dev/nvidiactl", BHI_PATH_DEVICE},
    {"/dev/nvidia-uvm", BHI_PATH_DEVICE},
    {"/dev/nvidia[0-9]*", BHI_PATH_NODE},
    {"/proc", BHI_PATH_PROC}, /* of its own pid namespace, or cuInit fails (304) */
    {"/proc/self", BHI_PATH_INSIDE},
    {"/proc/stat", BHI_PATH_INSIDE},
    {"/proc/meminfo", BHI_PATH_INSIDE},
    {"/proc/cpuinfo", BHI_PATH_INSIDE},
    {"/proc/devices", BHI_PATH_INSIDE},
    {"/proc/modules", BHI_PATH_INSIDE},
    {"/proc/driver/nvidia", BHI_PATH_INSIDE},
    {"/sys/devices/system/cpu", BHI_PATH_READ},
    {"/sys/devices/system/node", BHI_PATH_READ},
    {"/sys/devices/system/memory", BHI_PATH_READ},
    {"/sys/module/nvidia", BHI_PATH_READ},
    {BHI_PATH_OF_LIBRARY, BHI_PATH_LIBS},
    {"/usr/lib/*-linux-gnu", BHI_PATH_LIBS},
    {"/usr/lib64", BHI_PATH_LIBS},
    {"/lib", BHI_PATH_LIBS},
    {"/lib64", BHI_PATH_LIBS},
    {"/etc/ld.so.cache", BHI_PATH_READ},
    {NULL, BHI_PATH_READ},
};

/* Those of nvidia-uvm are bare numbers. A filter sees a request's number and not what is behind the
 * descriptor, so a worker can send these to its sockets and memfds, too. None of them means anything
 * there: the kernel's own requests have a type, but for 1 and 2 (FIBMAP, FIGETBSZ), which are not in the
 * list. */
#define UVM(number) BHI_ALLOW1(ioctl, BHI_INT(1, number))
#define UVM_REQUESTS                                                                               \
    UVM(28),     /* UNREGISTER_CHANNEL: undoes what the start does; no trace has shown it yet */   \
        UVM(33), /* MAP_EXTERNAL_ALLOCATION */                                                     \
        UVM(34), /* FREE */                                                                        \
        UVM(66), /* UNMAP_EXTERNAL: undoes MAP_EXTERNAL_ALLOCATION; the same */                    \
        UVM(68), /* ALLOC_SEMAPHORE_POOL: for more events than at the start; the same */           \
        UVM(72), /* VALIDATE_VA_RANGE: follows it */                                               \
        UVM(73)  /* CREATE_EXTERNAL_RANGE */

/* Pages that it shares with nobody, as no fork follows: of the device, and of kernels with printf() or
 * assert(), when the first one is loaded. */
#define CUDA_PAGES                                                                                 \
    BHI_ALLOW3(mmap, BHI_MOST(1, 64u << 20), BHI_INT(2, PROT_READ | PROT_WRITE),                   \
               BHI_BITS(3, ~(uint64_t)MAP_FIXED, MAP_SHARED | MAP_ANONYMOUS))
static const struct bhi_seccomp_rule cuda_start[] = {
    NVIDIA_REQUESTS,
    REQUEST(0xc8), /* CARD_INFO */
    REQUEST(0xd2), /* CHECK_VERSION_STR */
    REQUEST(0xd4), /* ATTACH_GPUS_TO_FD */
    REQUEST(0xd6), /* SYS_PARAMS */
    REQUEST(0xd7), /* NUMA_INFO */
    UVM_REQUESTS,
    UVM(0x30000001), /* INITIALIZE */
    UVM(0x30000002), /* DEINITIALIZE */
    UVM(23),         /* CREATE_RANGE_GROUP */
    UVM(24),         /* DESTROY_RANGE_GROUP: when cuInit gives up */
    UVM(25),         /* REGISTER_GPU_VASPACE */
    UVM(27),         /* REGISTER_CHANNEL */
    UVM(37),         /* REGISTER_GPU */
    UVM(38),         /* UNREGISTER_GPU: the same */
    UVM(39),         /* PAGEABLE_MEM_ACCESS */
    UVM(65),         /* MAP_DYNAMIC_PARALLELISM_REGION */
    UVM(75),         /* MM_INITIALIZE */
    BHI_ALLOW1(sendmsg, BHI_INT(0, BHI_DEVICE_HOLDER_DESCRIPTOR)),
    READS_FILES,
    BHI_ALLOW2(fcntl, BHI_INT(1, F_SETFD), BHI_INT(2, FD_CLOEXEC)),
    BHI_ALLOW2(fcntl, BHI_INT(1, F_SETFL), BHI_INT(2, O_NONBLOCK)), /* of its pipes */
    /* The driver maps the code of its libraries. Under filter B no new code can be mapped. */
    BHI_ALLOW1(mmap, BHI_BITS(2, ~(uint64_t)(PROT_READ | PROT_EXEC), 0)),
    BHI_ALLOW1(madvise, BHI_INT(2, MADV_DONTFORK)),
    BHI_ALLOW1(madvise, BHI_INT(2, MADV_DOFORK)),
    BHI_ALLOW1(memfd_create,
               BHI_BITS(1, ~(uint64_t)(MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC_BIT), 0)),
    BHI_ALLOW(ftruncate),
    BHI_ALLOW1(pipe2, BHI_BITS(1, ~(uint64_t)(O_CLOEXEC | O_NONBLOCK), 0)),
    BHI_ALLOW(eventfd2),
    /* cuInit looks for MPS, which it does not find, and listens at an abstract address (cuda-uvmfd-...), where
     * nobody comes: workers may connect to nothing, and Landlock keeps them from each other's. */
    BHI_ALLOW2(socket, BHI_INT(0, AF_UNIX), BHI_INT(1, SOCK_SEQPACKET | SOCK_CLOEXEC)),
    BHI_ALLOW1(setsockopt, BHI_INT(1, SOL_SOCKET)),
    BHI_ANSWER1(connect, ECONNREFUSED, BHI_MOST(2, 128)),
    BHI_ALLOW(bind),
    BHI_ALLOW(listen),
    BHI_ALLOW(get_mempolicy),
    BHI_ALLOW(dup),
    CUDA_PAGES,
    BHI_ALLOW(getppid),
    BHI_ANSWER(mknod, EPERM), /* as for nvidia */
    BHI_ANSWER(mknodat, EPERM),
    BHI_ANSWER(chmod, EPERM),
    BHI_ANSWER(mkdir, EROFS),
    BHI_ANSWER(unlink, ENOENT),
    BHI_END_OF_RULES,
};
static const struct bhi_seccomp_rule cuda_steady[] = {
    NVIDIA_REQUESTS,
    UVM_REQUESTS,
    SENDS_DESCRIPTORS,
    REQUEST(0xd4), /* ATTACH_GPUS_TO_FD: of the open node that stands for exported memory */
    CUDA_PAGES,
    /* Memory is exported and imported through a node that is opened for it, as for nvidia. */
    BHI_ALLOW1(openat, BHI_BITS(2, ~(uint64_t)O_CLOEXEC, O_RDWR)),
    BHI_ANSWER1(openat, ENOENT, BHI_BITS(2, O_ACCMODE, O_RDONLY)),
    BHI_ALLOW2(fcntl, BHI_INT(1, F_SETFD), BHI_INT(2, FD_CLOEXEC)),
    BHI_ALLOW1(madvise, BHI_INT(2, MADV_DONTFORK)),
    BHI_ALLOW1(madvise, BHI_INT(2, MADV_DOFORK)),
    BHI_ANSWER(chmod, EPERM),
    BHI_ANSWER(mknod, EPERM),
    BHI_ANSWER_LOOKUPS,
    BHI_END_OF_RULES,
};

/* -- lavapipe ------------------------------------------------------------------------------- */

static const struct bhi_driver_env lavapipe_environment[] = {
    /* As for NVIDIA. Without this setting Mesa would also ask nscd, through a socket, for a home
     * folder. */
    {"MESA_SHADER_CACHE_DISABLE", "true"},
#if BHI_QUICK_COMPILER /* in builds with a sanitizer, which is not in the driver */
    {"GALLIVM_PERF", "nopt"},
#endif
    {NULL, NULL},
};
/* Once the library is loaded, the device can be created in an empty root. */
static const struct bhi_driver_path lavapipe_paths[] = {{NULL, BHI_PATH_READ}};
static const struct bhi_seccomp_rule lavapipe_start[] = {
    BHI_ANSWER(openat, ENOENT),
    BHI_ANSWER_LOOKUPS,
    /* Since Mesa 23 lavapipe keeps its memory in a memfd. The memfd gets its length and its seals
     * before filter B. RLIMIT_FSIZE has the same value, for calls other than ftruncate that could
     * make it longer. */
    BHI_ALLOW1(memfd_create, BHI_INT(1, MFD_CLOEXEC | MFD_ALLOW_SEALING)),
    BHI_ALLOW1(ftruncate, BHI_MOST(1, BHI_DRIVER_FILE_MOST)),
    BHI_ALLOW2(fcntl, BHI_INT(1, F_ADD_SEALS), BHI_INT(2, BHI_DRIVER_FILE_SEALS)),
    BHI_END_OF_RULES,
};
static const struct bhi_seccomp_rule lavapipe_steady[] = {
    BHI_ANSWER(openat, ENOENT),
    BHI_ANSWER_LOOKUPS,
    BHI_END_OF_RULES,
};

/* -- radv, anv: not tried ------------------------------------------------------------------- */

/* Mesa's drivers for AMD's and Intel's GPUs, written from the documents of libdrm and the kernel.
 * They use render nodes, which need no master and do not show other processes' buffers, and libdrm
 * reads about these in sysfs (drmGetDevices2). On a machine with such a GPU, begin with bulkhead
 * doctor --trace-driver. */
static const struct bhi_driver_path render_paths[] = {
    {"/dev/dri/renderD[0-9]*", BHI_PATH_DEVICE},
    {"/dev/dri", BHI_PATH_INSIDE}, /* the drivers list this folder to see which nodes exist */
    {"/sys/dev/char", BHI_PATH_READ},
    {"/sys/devices/pci*", BHI_PATH_READ},
    {"/sys/bus/pci", BHI_PATH_READ},
    {"/sys/devices/system/cpu", BHI_PATH_READ},
    {"/usr/share/libdrm", BHI_PATH_READ},
    {"/usr/share/drirc.d", BHI_PATH_READ},
    {"/etc/drirc", BHI_PATH_READ},
    {NULL, BHI_PATH_READ},
};
/* Requests of type 'd'. The numbers below 0x40 and from 0xa0 on are common to all drivers, those
 * between belong to one driver. On a render node the kernel allows only requests that are marked
 * for it (DRM_RENDER_ALLOW). */
#define DRM(mask, number) BHI_ALLOW1(ioctl, BHI_BITS(1, 0xff00u | (mask), 0x6400u | (number)))
#define DRM_REQUESTS                                                                               \
    DRM(0xff, 0x00),     /* VERSION */                                                             \
        DRM(0xff, 0x09), /* GEM_CLOSE */                                                           \
        DRM(0xff, 0x0c), /* GET_CAP */                                                             \
        DRM(0xff, 0x2d), /* PRIME_HANDLE_TO_FD */                                                  \
        DRM(0xff, 0x2e), /* PRIME_FD_TO_HANDLE */                                                  \
        DRM(0xc0, 0x40), /* 0x40 to 0x7f: amdgpu, i915, xe */                                      \
        DRM(0xff, 0xbf), /* SYNCOBJ_CREATE */                                                      \
        DRM(0xf0, 0xc0)  /* SYNCOBJ_DESTROY and the others of its kind, to 0xcf */
static const struct bhi_seccomp_rule render_start[] = {
    DRM_REQUESTS,
    READS_FILES,
    BHI_ALLOW2(fcntl, BHI_INT(1, F_SETFD), BHI_INT(2, FD_CLOEXEC)),
    BHI_ALLOW1(fcntl, BHI_INT(1, F_DUPFD_CLOEXEC)),
    BHI_END_OF_RULES,
};
static const struct bhi_seccomp_rule render_steady[] = {
    DRM_REQUESTS,       SENDS_DESCRIPTORS, BHI_ANSWER(openat, ENOENT),
    BHI_ANSWER_LOOKUPS, BHI_END_OF_RULES,
};

#define RENDER_DRIVER(called, library)                                                             \
    {                                                                                              \
        .name = called,                                                                            \
        .package = "mesa-vulkan-drivers; a container needs the devices in /dev/dri, too",          \
        .libraries = (const char *const[]){library, NULL},                                         \
        .devices = (const char *const[]){"/dev/dri/renderD[0-9]*", NULL},                          \
        .environment = lavapipe_environment, .paths = render_paths, .start_rules = render_start,   \
        .steady_rules = render_steady,                                                             \
        .limits = {.descriptors = 1024, .file_bytes = 64u << 20, .locked = UINT64_MAX},            \
        .compiles = true, .versions = (const char *const[]) {                                      \
            "Mesa *", NULL                                                                         \
        }                                                                                          \
    }

/* -- swiftshader ---------------------------------------------------------------------------- */

static const struct bhi_driver_env no_environment[] = {{NULL, NULL}};
static const struct bhi_seccomp_rule swiftshader_start[] = {
    BHI_ANSWER(openat, ENOENT),
    BHI_ANSWER_LOOKUPS,
    /* SwiftShader keeps its compiled code in private mappings of one memfd. The file itself stays
     * empty: it only names the mappings, and must be as long as the longest. It gets its length
     * while the worker starts (worker/vulkan/reserve.h). */
    BHI_ALLOW1(memfd_create, BHI_INT(1, 0)),
    BHI_ALLOW1(ftruncate, BHI_MOST(1, BHI_DRIVER_CODE_BYTES)),
    BHI_END_OF_RULES,
};
static const struct bhi_seccomp_rule swiftshader_steady[] = {
    BHI_ANSWER(openat, ENOENT),
    BHI_ANSWER_LOOKUPS,
    BHI_ANSWER(ftruncate, EPERM), /* it tries to make the file shorter, and ignores the error */
    BHI_END_OF_RULES,
};

/* -- none: a loader, a compiler ------------------------------------------------------------- */

/* A loader uses the files and buffers that it is given. The filters are built before their
 * descriptors are known, so they allow only reads and writes at an offset, on any descriptor; the
 * files are open for reading only. A file waits at a socket, and the loader may only look at it
 * there (MSG_PEEK): another loader may need it, too. */
static const struct bhi_seccomp_rule loader_rules[] = {
    BHI_ALLOW(pread64),
    BHI_ALLOW(pwrite64),
    BHI_ALLOW1(recvmsg, BHI_INT(2, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC)),
    BHI_ANSWER(openat, ENOENT),
    BHI_ANSWER_LOOKUPS,
    BHI_END_OF_RULES,
};
static const struct bhi_driver_info loader_info = {
    .name = "loader",
    .devices = no_devices,
    .paths = lavapipe_paths,
    .start_rules = loader_rules,
    .steady_rules = loader_rules,
    .limits = {.descriptors = 256, .file_bytes = UINT64_C(2) << 40, .locked = 65536},
};

/* A compiler only computes, in memory that it is given or allocates. glslang also prints some of
 * its messages to standard output, which is /dev/null, and stdio asks whether that is a
 * terminal. */
#define COMPILES BHI_ANSWER(openat, ENOENT), BHI_ANSWER(ioctl, ENOTTY), BHI_ANSWER_LOOKUPS
static const struct bhi_seccomp_rule compiler_rules[] = {COMPILES, BHI_END_OF_RULES};
static const struct bhi_driver_info compiler_info = {
    .name = "compiler",
    .devices = no_devices,
    .paths = lavapipe_paths,
    .start_rules = compiler_rules,
    .steady_rules = compiler_rules,
    .limits = {.descriptors = 256, .file_bytes = 0, .locked = 65536},
};

/* NVRTC is in memory when the worker is forked, and opens nothing else. It ignores SIGINT, SIGTERM and
 * SIGXFSZ meanwhile, raises its limit of the stack, and asks for the time zone; it works without all of
 * that. It does not without the folder, which is "/": it takes the length of a name that it has not got. */
#define NVRTC_COMPILES COMPILES, BHI_ALLOW(getcwd), BHI_ANSWER1(prlimit64, EPERM, BHI_NOT(2, 0))
static const struct bhi_seccomp_rule nvrtc_start[] = {NVRTC_COMPILES, BHI_END_OF_RULES};
static const struct bhi_seccomp_rule nvrtc_steady[] = {
    NVRTC_COMPILES, BHI_ANSWER(rt_sigaction, EPERM), BHI_END_OF_RULES};
static const struct bhi_driver_info nvrtc_info = {
    .name = BHI_NVRTC,
    .compiler = true,
    .package = BHI_NVRTC_PACKAGE,
    .devices = no_devices,
    .environment = no_environment,
    .paths = lavapipe_paths,
    .start_rules = nvrtc_start,
    .steady_rules = nvrtc_steady,
    .versions = (const char *const[]){NULL},
    .limits = {.descriptors = 256, .file_bytes = 0, .locked = 65536},
};

const struct bhi_driver *bhi_driver_none(enum bhi_worker_kind kind,
                                         const struct bhi_driver *driver) {
    static const struct bhi_driver loader = {.info = &loader_info};
    static const struct bhi_driver compiler = {.info = &compiler_info};
    return kind != BHI_WORKER_COMPILER ? &loader : driver->info->compiler ? driver : &compiler;
}

/* -- the table ------------------------------------------------------------------------------ */

/* In the order of preference. */
static const struct bhi_driver_info drivers[] = {
    {
        .name = "nvidia",
        .package = "NVIDIA's driver with its Vulkan part; a container needs the devices, too",
        .libraries = (const char *const[]){"libGLX_nvidia.so*", "libEGL_nvidia.so*", NULL},
        .devices = (const char *const[]){"/dev/nvidiactl", "/dev/nvidia[0-9]*", NULL},
        .environment = nvidia_environment,
        .paths = nvidia_paths,
        .node_folder = "/proc/driver/nvidia/gpus",
        .start_rules = nvidia_start,
        .steady_rules = nvidia_steady,
        .limits = {.descriptors = 1024, .file_bytes = 64u << 20, .locked = UINT64_MAX},
        .lingers = true,
        .compiles = true,
        .versions = (const char *const[]){"580.*", NULL},
        .tried = true,
    },
    {
        .name = "lavapipe",
        .package = "mesa-vulkan-drivers",
        .libraries = (const char *const[]){"libvulkan_lvp.so*", NULL},
        .devices = no_devices,
        .environment = lavapipe_environment,
        .paths = lavapipe_paths,
        .start_rules = lavapipe_start,
        .steady_rules = lavapipe_steady,
        .limits = {.descriptors = 256, .file_bytes = BHI_DRIVER_FILE_MOST, .locked = 65536},
        .compiles = true,
        .versions = (const char *const[]){"Mesa 22.3.*", "Mesa 25.0.*", "Mesa 26.1.*", NULL},
        .tried = true,
    },
    {
        .name = "swiftshader",
        .package = "SwiftShader, which Chromium has",
        .libraries = (const char *const[]){"libvk_swiftshader.so*", NULL},
        /* Debian's package chromium-common installs it there, with a manifest where no Vulkan
         * loader looks. */
        .folders = (const char *const[]){"/usr/lib/chromium", NULL},
        .devices = no_devices,
        .environment = no_environment,
        .paths = lavapipe_paths,
        .start_rules = swiftshader_start,
        .steady_rules = swiftshader_steady,
        .limits = {.descriptors = 256, .file_bytes = BHI_DRIVER_CODE_BYTES, .locked = 65536},
        .compiles = true,
        .versions = (const char *const[]){"5.*", NULL},
        .tried = true,
    },
    RENDER_DRIVER("radv", "libvulkan_radeon.so*"),
    RENDER_DRIVER("anv", "libvulkan_intel.so*"),
    {
        .name = "cuda",
        .cuda = true,
        .package = "NVIDIA's driver with libcuda.so.1; a container needs the devices, too",
        .libraries = (const char *const[]){"libcuda.so.1", NULL},
        .preloads = cuda_preloads,
        .devices = no_devices,
        .environment = cuda_environment,
        .paths = cuda_paths,
        .node_folder = "/proc/driver/nvidia/gpus",
        .start_rules = cuda_start,
        .steady_rules = cuda_steady,
        /* Behind filter B no file can be made or made longer: the length is that of what the driver
         * makes before. */
        .limits = {.descriptors = 1024, .file_bytes = UINT64_C(4) << 30, .locked = UINT64_MAX},
        .lingers = true,
        .versions = (const char *const[]){"CUDA 13.0", NULL},
        .tried = true,
    },
};

#define DRIVERS (sizeof drivers / sizeof drivers[0])

const struct bhi_driver_info *bhi_driver_info(const char *name) {
    for (size_t i = 0; i < DRIVERS; i++) {
        if (strcmp(drivers[i].name, name) == 0) {
            return &drivers[i];
        }
    }
    return NULL;
}

const char *bhi_driver_pattern(const struct bhi_driver *driver,
                               const struct bhi_driver_path *path) {
    return strcmp(path->pattern, BHI_PATH_OF_LIBRARY) == 0 ? driver->folder : path->pattern;
}

void bhi_driver_version(const struct bhi_msg_device *device, char *out, size_t size) {
    if (device->driver_info[0] != '\0') {
        snprintf(out, size, "%s", device->driver_info);
    } else {
        snprintf(out, size, "%u.%u.%u", VK_API_VERSION_MAJOR(device->driver_version),
                 VK_API_VERSION_MINOR(device->driver_version),
                 VK_API_VERSION_PATCH(device->driver_version));
    }
}

bool bhi_driver_knows(const struct bhi_driver_info *info, const char *version) {
    for (const char *const *pattern = info->versions; *pattern; pattern++) {
        if (fnmatch(*pattern, version, 0) == 0) {
            return true;
        }
    }
    return false;
}

void bhi_driver_made_for(const struct bhi_driver_info *info, char *out, size_t size) {
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; info->versions[i] && used < size; i++) {
        used +=
            (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "", info->versions[i]);
    }
}

static int find(struct bhi_driver *driver, const struct bhi_driver_info *info, char *seen,
                size_t seen_size) {
    for (const char *const *device = info->devices; *device; device++) {
        glob_t found;
        if (glob(*device, GLOB_NOSORT, NULL, &found) != 0) {
            snprintf(seen, seen_size, "%s: no %s", info->name, *device);
            return -ENOENT;
        }
        globfree(&found);
    }
    int r = 0;
    if (info->cuda) { /* the dynamic linker finds it */
        snprintf(driver->library, sizeof driver->library, "%s", info->libraries[0]);
    } else {
        r = bhi_driver_manifest(info, driver->library, sizeof driver->library, seen, seen_size);
    }
    if (r == 0) {
        driver->info = info;
    }
    return r;
}

static int refuse_name(const char *name, struct bhi_error *failure) {
    char known[128] = "";
    for (size_t i = 0, used = 0; i < DRIVERS && used < sizeof known; i++) {
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 drivers[i].name);
    }
    return BHI_ERROR(failure, BH_REASON_DRIVER_NAME, name, .text = known);
}

/* Returns what to do if the driver |info|, or any (NULL), is not found. A list in a variable excludes
 * all other manifests. */
static const char *correction(const struct bhi_driver_info *info, char out[160]) {
    const char *variable = info && info->cuda ? NULL : bhi_driver_variable();
    if (variable) {
        snprintf(out, 160, "unset %s, or let it name the manifest (*.json) of a driver", variable);
    } else {
        snprintf(out, 160, "install %s",
                 info ? info->package
                      : "mesa-vulkan-drivers, or the Vulkan part of NVIDIA's driver");
    }
    return out;
}

int bhi_driver_pick(struct bhi_driver *driver, const char *name, struct bhi_error *failure) {
    char seen[DRIVERS][200] = {{0}}, what[160];
    memset(driver, 0, sizeof *driver);
    if (strcmp(name, nvrtc_info.name) == 0) {
        driver->info = &nvrtc_info;
        snprintf(driver->library, sizeof driver->library, "%s", name); /* until it is found */
        return 0;
    }
    if (name[0] != '\0') {
        const struct bhi_driver_info *info = bhi_driver_info(name);
        if (!info) {
            return refuse_name(name, failure);
        }
        if (find(driver, info, seen[0], sizeof seen[0]) != 0) {
            return BHI_ERROR(failure, BH_REASON_DRIVER_ABSENT, info->name, .text = seen[0],
                             .advice = correction(info, what));
        }
        return 0;
    }
    for (size_t i = 0; i < DRIVERS; i++) {
        /* A driver that was not tried is used only if the host names it; so is CUDA, which is on the
         * device of another driver. */
        if (drivers[i].tried && !drivers[i].cuda &&
            find(driver, &drivers[i], seen[i], sizeof seen[i]) == 0) {
            return 0;
        }
    }
    char both[sizeof seen];
    bhi_format(both, sizeof both, "%s; %s", seen[0], seen[1]);
    return BHI_ERROR(failure, BH_REASON_NO_DRIVER, .text = both, .advice = correction(NULL, what));
}

/* Returns the number of threads of this process, or -errno. Needs the host's /proc. */
static int count_threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks) {
        return -errno;
    }
    int threads = 0;
    for (const struct dirent *entry; (entry = readdir(tasks));) {
        threads += entry->d_name[0] != '.';
    }
    closedir(tasks);
    return threads;
}

int bhi_driver_load(struct bhi_driver *driver, struct bhi_error *failure) {
    for (const struct bhi_driver_env *env = driver->info->environment; env->name; env++) {
        if (setenv(env->name, env->value, 1) != 0) {
            return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "set a variable", .text = env->name,
                             .sys_errno = errno);
        }
    }
    /* RTLD_NOW: after the root is gone, no symbol can be looked up any more. */
    const struct bhi_driver_info *info = driver->info;
    if (info->compiler) {
        if (!(driver->handle = bhi_nvrtc_load(failure))) {
            return -ENOENT;
        }
    } else if (!(driver->handle = dlopen(driver->library, RTLD_NOW | RTLD_LOCAL))) {
        char limit[BHI_LIMIT_TEXT], what[160];
        const bool limited = *bhi_limit_address_space(limit);
        /* No manifest says that CUDA is here: the dynamic linker knows. */
        return info->cuda && !limited
                   ? BHI_ERROR(failure, BH_REASON_DRIVER_ABSENT, info->name, .text = dlerror(),
                               .advice = correction(info, what))
                   : BHI_ERROR(failure, BH_REASON_DRIVER_BROKEN, info->name, .text = dlerror(),
                               .sys_errno = limited ? ENOMEM : 0);
    }
    if (info->cuda && !dlsym(driver->handle, CUDA_ENTRY)) {
        return BHI_ERROR(failure, BH_REASON_DRIVER_BROKEN, info->name,
                         .text = "it has no " CUDA_ENTRY ": CUDA 12 or later is needed");
    }
    if (!info->cuda && !info->compiler &&
        (!dlsym(driver->handle, "vk_icdNegotiateLoaderICDInterfaceVersion") ||
         !dlsym(driver->handle, "vk_icdGetInstanceProcAddr"))) {
        return BHI_ERROR(failure, BH_REASON_DRIVER_BROKEN, info->name,
                         .text = "it has no vk_icd... functions, so it is no Vulkan driver");
    }
    for (const char *const *name = info->preloads; name && *name; name++) {
        (void)dlopen(*name, RTLD_NOW | RTLD_LOCAL); /* the driver says what it misses */
    }
    struct link_map *map = NULL;
    if (dlinfo(driver->handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] == '/') {
        snprintf(driver->library, sizeof driver->library, "%s", map->l_name);
    }
    const char *slash = strrchr(driver->library, '/');
    snprintf(driver->folder, sizeof driver->folder, "%.*s",
             !slash ? 0 : (int)(slash - driver->library), driver->library);
    int threads = count_threads();
    if (threads != 1) {
        return BHI_ERROR(
            failure, BH_REASON_DRIVER_USE, driver->info->name, .value = (uint64_t)threads - 1,
            .text =
                "it starts threads when it is loaded; a process with threads cannot fork workers");
    }
    return 0;
}

bhi_entry bhi_driver_entry(const struct bhi_driver *driver, struct bhi_error *failure) {
    if (driver->info->compiler) {
        (void)refuse_name(driver->info->name, failure);
        return NULL;
    }
    if (driver->info->cuda) {
        return (bhi_entry)dlsym(driver->handle, CUDA_ENTRY);
    }
    PFN_vkNegotiateLoaderICDInterfaceVersion negotiate =
        (PFN_vkNegotiateLoaderICDInterfaceVersion)dlsym(driver->handle,
                                                        "vk_icdNegotiateLoaderICDInterfaceVersion");
    bhi_entry entry = (bhi_entry)dlsym(driver->handle, "vk_icdGetInstanceProcAddr");
    uint32_t version = 5; /* the newest version that we use; newer ones concern only loaders */
    VkResult result = negotiate(&version);
    if (result != VK_SUCCESS || version < 2) {
        BHI_ERROR(failure, BH_REASON_DRIVER_USE, driver->info->name, .vk_result = result,
                  .text = "it refuses interface version 5 of Vulkan loaders");
        return NULL;
    }
    return entry;
}

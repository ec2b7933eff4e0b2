/* The drivers that a worker knows: what each one needs to find, to see and to call. One table entry
 * holds everything that differs between drivers; the rest of the sandbox is the same for all.
 *
 * A driver's library is loaded directly, not through the Vulkan loader: in an emptied root the
 * loader would not find its manifests. CUDA's has none: the dynamic linker finds libcuda.so.1. */
#ifndef BHI_WORKER_SANDBOX_DRIVER_H
#define BHI_WORKER_SANDBOX_DRIVER_H

#include "base/worker_kind.h"
#include "ipc/wire.h"
#include "worker/backend.h"
#include "worker/error.h"
#include "worker/sandbox/rules.h"
#include <stdbool.h>
#include <stdint.h>

#define BHI_DRIVER_PATH 256

/* What a path of the host becomes in the worker's root, and what Landlock lets a worker do there.
 * Both come from this one list, so they always agree. */
enum bhi_path_kind {
    BHI_PATH_READ,   /* bound read-only, nodev, noexec */
    BHI_PATH_LIBS,   /* bound read-only, nodev; libraries may be mapped from it */
    BHI_PATH_DEVICE, /* a device node, or a folder of them: read, write, ioctl */
    BHI_PATH_NODE,   /* device nodes, one for each device: as DEVICE, only its own (nodes.h) */
    /* A new proc of our pid namespace, else the host's; read-only. Landlock closes it, except for
     * the paths of the kind INSIDE. */
    BHI_PATH_PROC,
    BHI_PATH_INSIDE, /* inside a path that is mounted: no mount of its own, only Landlock's rule */
};

/* A pattern that stands for the folder that the driver's library was loaded from. */
#define BHI_PATH_OF_LIBRARY "@"

struct bhi_driver_path {
    const char *pattern; /* a glob; missing paths are skipped; NULL: end of the list */
    enum bhi_path_kind kind;
};

struct bhi_driver_env {
    const char *name; /* NULL: end of the list */
    const char *value;
};

/* For drivers of a CPU that keep their memory in an anonymous file: the file's final length, the
 * most that a worker may give it while it starts (this length, plus what the driver has made
 * before), and the seals that it then gets (worker/vulkan/reserve.h). */
#define BHI_DRIVER_FILE_BYTES (UINT64_C(256) << 20)
#define BHI_DRIVER_FILE_MOST  (BHI_DRIVER_FILE_BYTES + (UINT64_C(16) << 20))
#define BHI_DRIVER_FILE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* The length of the file that SwiftShader's code is mapped from. */
#define BHI_DRIVER_CODE_BYTES (UINT64_C(64) << 20)

struct bhi_driver_limits {
    uint64_t descriptors; /* RLIMIT_NOFILE */
    uint64_t file_bytes;  /* RLIMIT_FSIZE */
    uint64_t locked;      /* RLIMIT_MEMLOCK; UINT64_MAX: as inherited */
};

struct bhi_driver_info {
    const char *name;
    bool cuda;           /* for CUDA, not Vulkan: no manifest leads to it, and it must be named */
    bool compiler;       /* no driver of a device, but NVRTC: its workers are compilers only */
    const char *package; /* what to install where it is missing */
    const char *const *libraries; /* fnmatch patterns of the library's file name; NULL-terminated */
    const char *const *preloads; /* what the library loads later; those that are here; NULL: none */
    const char *const *folders;  /* further folders with manifests of this driver; NULL: none */
    const char *const *devices;  /* nodes that must exist; NULL-terminated */
    const struct bhi_driver_env *environment;
    const struct bhi_driver_path *paths;
    const char *node_folder; /* files with the node of each device (nodes.h); NULL: none needed */
    const struct bhi_seccomp_rule *start_rules;  /* added to filter A; SYSCALL -1 ends the list */
    const struct bhi_seccomp_rule *steady_rules; /* added to filter B */
    struct bhi_driver_limits limits;
    bool lingers;  /* others wait while it releases a dead process: see device_holder.h */
    bool compiles; /* it runs code that it has compiled itself */
    /* The versions that the table was made for: fnmatch patterns of bhi_driver_version();
     * NULL-terminated. */
    const char *const *versions;
    bool tried; /* on a machine with the driver; false: it was written from documents */
};

/* A driver that is installed on this machine. */
struct bhi_driver {
    const struct bhi_driver_info *info; /* NULL: none */
    char library[BHI_DRIVER_PATH];      /* the path for dlopen; after loading: its real path */
    char folder[BHI_DRIVER_PATH];       /* the folder of the loaded library */
    void *handle;
};

const struct bhi_driver_info *bhi_driver_info(const char *name);
/* Does it drive a GPU? Its workers' address space has no bound. */
static inline bool bhi_driver_is_gpu(const struct bhi_driver_info *info) {
    return info->cuda || info->devices[0];
}
/* Returns the glob that |path| stands for. */
const char *bhi_driver_pattern(const struct bhi_driver *driver, const struct bhi_driver_path *path);
/* Writes the version of a driver as its table names it: the driver's own text, else the number in
 * |device|. */
void bhi_driver_version(const struct bhi_msg_device *device, char *out, size_t size);
/* Is |version| one that the table was made for? */
bool bhi_driver_knows(const struct bhi_driver_info *info, const char *version);
/* Writes the versions that the table was made for: "Mesa 22.3.*, Mesa 25.0.*". */
void bhi_driver_made_for(const struct bhi_driver_info *info, char *out, size_t size);
/* Returns what a worker without a device has in place of |driver|, which its zygote has loaded: rules of
 * its own, and no paths. */
const struct bhi_driver *bhi_driver_none(enum bhi_worker_kind kind,
                                         const struct bhi_driver *driver);
/* Picks the driver called |name|, or for "" the first of the table that is present: its manifest is
 * found and its device nodes exist. Returns 0, or -errno with |failure| (NO_DEVICE). */
int bhi_driver_pick(struct bhi_driver *driver, const char *name, struct bhi_error *failure);
/* Returns the name of the variable that lists manifests: VK_DRIVER_FILES, else VK_ICD_FILENAMES.
 * NULL: neither is set. */
const char *bhi_driver_variable(void);
/* Finds the library that a manifest of this machine names for |info|. Searches the list of that
 * variable, or without it the system's folders. Returns 0 or -ENOENT. |seen| gets a line that
 * says where it looked. */
int bhi_driver_manifest(const struct bhi_driver_info *info, char *library, size_t library_size,
                        char *seen, size_t seen_size);
/* Sets the driver's environment and loads its library. The process has one thread before; after
 * loading this is checked, because the process will fork. */
int bhi_driver_load(struct bhi_driver *driver, struct bhi_error *failure);
/* Negotiates the interface version and returns the entry point (vkGetInstanceProcAddr); of CUDA
 * cuGetProcAddress. This runs code of the driver: call it in a worker. */
bhi_entry bhi_driver_entry(const struct bhi_driver *driver, struct bhi_error *failure);

#endif

/* The table of drivers, and loading one. */
#include "driver.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vulkan/vk_icd.h>

/* -- nvidia --------------------------------------------------------------------------------- */

static const char *const nvidia_libraries[] = {"libGLX_nvidia.so*", "libEGL_nvidia.so*", NULL};
static const char *const nvidia_devices[] = {"/dev/nvidiactl", "/dev/nvidia[0-9]*", NULL};
static const struct bhi_driver_env nvidia_environment[] = {
    /* A shared cache of native code is a way to poison a neighbour. */
    {"__GL_SHADER_DISK_CACHE", "0"},
    {NULL, NULL},
};
static const struct bhi_driver_path nvidia_paths[] = {
    {"/dev/nvidiactl", BHI_PATH_DEVICE},
    {"/dev/nvidia[0-9]*", BHI_PATH_DEVICE},
    {"/dev/nvidia-uvm", BHI_PATH_DEVICE},
    {"/dev/nvidia-caps", BHI_PATH_READ},
    {"/proc", BHI_PATH_PROC},
    {"/sys", BHI_PATH_READ},
    /* The driver loads most of itself when the instance is created. */
    {"/usr", BHI_PATH_LIBS},
    {"/lib", BHI_PATH_LIBS},
    {"/lib64", BHI_PATH_LIBS},
    {"/etc/ld.so.cache", BHI_PATH_READ},
    {NULL, BHI_PATH_READ},
};
static const struct bhi_seccomp_rule nvidia_start[] = {
    BHI_ALLOW(ioctl),
    /* Its libraries, /proc and /sys; Landlock and the root say which files. */
    BHI_ALLOW(openat),
    BHI_ALLOW(newfstatat),
    BHI_ALLOW(stat),
    BHI_ALLOW(lstat),
    BHI_ALLOW(statx),
    BHI_ALLOW(statfs),
    BHI_ALLOW(fstatfs),
    BHI_ALLOW(access),
    BHI_ALLOW(faccessat),
    BHI_ALLOW(faccessat2),
    BHI_ALLOW(readlink),
    BHI_ALLOW(readlinkat),
    BHI_ALLOW(getcwd),
    BHI_ALLOW(getdents64),
    BHI_ALLOW(lseek),
    BHI_ALLOW(pread64),
    BHI_ALLOW(readv),
    BHI_ALLOW(fcntl),
    BHI_ALLOW(mmap), /* behind B no new code can be mapped */
    BHI_ALLOW(mprotect),
    BHI_ALLOW(madvise),
    /* A sealed memfd, a pipe and an eventfd between its threads. */
    BHI_ALLOW(memfd_create),
    BHI_ALLOW(ftruncate),
    BHI_ALLOW(fallocate),
    BHI_ALLOW(pipe2),
    BHI_ALLOW(eventfd2),
    BHI_ALLOW(getppid),
    /* It would make and mend its device nodes, and lives without. */
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
    BHI_ALLOW(ioctl), /* importing and allocating memory */
    /* A mapping of more device memory takes another open of a device node. To read and write is
     * how only those can be opened (Landlock, read-only mounts); to read, nothing is found. */
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

static const char *const lavapipe_libraries[] = {"libvulkan_lvp.so*", NULL};
static const char *const lavapipe_devices[] = {NULL};
static const struct bhi_driver_env lavapipe_environment[] = {
    /* See above; and without it Mesa asks nscd, through a socket, for a home folder. */
    {"MESA_SHADER_CACHE_DISABLE", "true"},
    {NULL, NULL},
};
/* The whole device creation works in an empty root once the library is loaded. */
static const struct bhi_driver_path lavapipe_paths[] = {{NULL, BHI_PATH_READ}};
static const struct bhi_seccomp_rule lavapipe_start[] = {
    BHI_ANSWER(openat, ENOENT),
    BHI_ANSWER_LOOKUPS,
    /* Since Mesa 23 it keeps its memory in a memfd, which gets its length, and is sealed, before
     * filter B. RLIMIT_FSIZE is the same number, for what else could make it longer. */
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

/* -- none: a loader, a compiler ------------------------------------------------------------- */

/* The files and buffers are what it is given. Which descriptors those will be is not known when the
 * filters are built; to read and write at an offset is all that can be done with any, and the files
 * are open for reading only. A file waits at a socket, and may only be looked at there: another
 * loader may need it, too. */
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
    .devices = lavapipe_devices,
    .paths = lavapipe_paths,
    .start_rules = loader_rules,
    .steady_rules = loader_rules,
    .limits = {.descriptors = 256, .file_bytes = UINT64_C(2) << 40, .locked = 65536},
};

/* A compiler computes, in memory that it is given or allocates. glslang says some of what it has to
 * say on standard output too, which is /dev/null, and stdio asks whether that is a terminal. */
static const struct bhi_seccomp_rule compiler_rules[] = {
    BHI_ANSWER(openat, ENOENT),
    BHI_ANSWER(ioctl, ENOTTY),
    BHI_ANSWER_LOOKUPS,
    BHI_END_OF_RULES,
};
static const struct bhi_driver_info compiler_info = {
    .name = "compiler",
    .devices = lavapipe_devices,
    .paths = lavapipe_paths,
    .start_rules = compiler_rules,
    .steady_rules = compiler_rules,
    .limits = {.descriptors = 256, .file_bytes = 0, .locked = 65536},
};

const struct bhi_driver *bhi_driver_none(enum bhi_worker_kind kind) {
    static const struct bhi_driver loader = {.info = &loader_info};
    static const struct bhi_driver compiler = {.info = &compiler_info};
    return kind == BHI_WORKER_COMPILER ? &compiler : &loader;
}

/* -- the table ------------------------------------------------------------------------------ */

/* In the order of preference. */
static const struct bhi_driver_info drivers[] = {
    {
        .name = "nvidia",
        .libraries = nvidia_libraries,
        .devices = nvidia_devices,
        .environment = nvidia_environment,
        .paths = nvidia_paths,
        .start_rules = nvidia_start,
        .steady_rules = nvidia_steady,
        .limits = {.descriptors = 1024, .file_bytes = 64u << 20, .locked = UINT64_MAX},
        .compiles = true,
    },
    {
        .name = "lavapipe",
        .libraries = lavapipe_libraries,
        .devices = lavapipe_devices,
        .environment = lavapipe_environment,
        .paths = lavapipe_paths,
        .start_rules = lavapipe_start,
        .steady_rules = lavapipe_steady,
        .limits = {.descriptors = 256, .file_bytes = BHI_DRIVER_FILE_MOST, .locked = 65536},
        .compiles = true,
#if !BHI_SANITIZED /* the sanitizers' runtime would see a second process in its memory */
        .keeper = true,
#endif
    },
};

#define DRIVERS (sizeof drivers / sizeof drivers[0])

const struct bhi_driver_info *bhi_driver_at(unsigned index) {
    return index < DRIVERS ? &drivers[index] : NULL;
}

const struct bhi_driver_info *bhi_driver_info(const char *name) {
    for (size_t i = 0; i < DRIVERS; i++) {
        if (strcmp(drivers[i].name, name) == 0) {
            return &drivers[i];
        }
    }
    return NULL;
}

static int find(struct bhi_driver *driver, const struct bhi_driver_info *info, char *seen,
                size_t seen_size) {
    for (const char *const *device = info->devices; *device != NULL; device++) {
        glob_t found;
        if (glob(*device, GLOB_NOSORT, NULL, &found) != 0) {
            snprintf(seen, seen_size, "%s: no %s", info->name, *device);
            return -ENOENT;
        }
        globfree(&found);
    }
    int r = bhi_driver_manifest(info, driver->library, sizeof driver->library, seen, seen_size);
    if (r == 0) {
        driver->info = info;
    }
    return r;
}

int bhi_driver_pick(struct bhi_driver *driver, const char *name, struct bhi_failure *failure) {
    char seen[DRIVERS][200] = {{0}};
    memset(driver, 0, sizeof *driver);
    if (name[0] != '\0') {
        const struct bhi_driver_info *info = bhi_driver_info(name);
        if (info == NULL) {
            return bhi_fail(failure, BH_NO_DEVICE, 0,
                            "no driver is called '%s' (known: nvidia, lavapipe)", name);
        }
        if (find(driver, info, seen[0], sizeof seen[0]) != 0) {
            return bhi_fail(failure, BH_NO_DEVICE, 0, "driver not present: %s", seen[0]);
        }
        return 0;
    }
    for (size_t i = 0; i < DRIVERS; i++) {
        if (find(driver, &drivers[i], seen[i], sizeof seen[i]) == 0) {
            return 0;
        }
    }
    return bhi_fail(failure, BH_NO_DEVICE, 0,
                    "no known Vulkan driver is present (%s; %s); install mesa-vulkan-drivers or "
                    "the NVIDIA driver's Vulkan part",
                    seen[0], seen[1]);
}

/* Threads of this process, or -errno; needs the host's /proc. */
static int count_threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL) {
        return -errno;
    }
    int threads = 0;
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        threads += entry->d_name[0] != '.';
    }
    closedir(tasks);
    return threads;
}

int bhi_driver_load(struct bhi_driver *driver, struct bhi_failure *failure) {
    for (const struct bhi_driver_env *env = driver->info->environment; env->name != NULL; env++) {
        if (setenv(env->name, env->value, 1) != 0) {
            return bhi_fail(failure, BH_SYSTEM, errno, "cannot set %s", env->name);
        }
    }
    /* RTLD_NOW: nothing may have to be looked up once the root is gone. */
    driver->handle = dlopen(driver->library, RTLD_NOW | RTLD_LOCAL);
    if (driver->handle == NULL) {
        return bhi_fail(failure, BH_NO_DEVICE, 0, "cannot load driver %s: %s", driver->info->name,
                        dlerror());
    }
    if (dlsym(driver->handle, "vk_icdNegotiateLoaderICDInterfaceVersion") == NULL ||
        dlsym(driver->handle, "vk_icdGetInstanceProcAddr") == NULL) {
        return bhi_fail(failure, BH_NO_DEVICE, 0, "%s is not a Vulkan driver: no vk_icd… symbols",
                        driver->library);
    }
    struct link_map *map = NULL;
    if (dlinfo(driver->handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] == '/') {
        snprintf(driver->library, sizeof driver->library, "%s", map->l_name);
    }
    const char *slash = strrchr(driver->library, '/');
    snprintf(driver->folder, sizeof driver->folder, "%.*s",
             slash == NULL ? 0 : (int)(slash - driver->library), driver->library);
    int threads = count_threads();
    if (threads != 1) {
        return bhi_fail(failure, BH_UNSUPPORTED, 0,
                        "driver %s started %d threads when it was loaded: it cannot be forked from",
                        driver->info->name, threads - 1);
    }
    return 0;
}

PFN_vkGetInstanceProcAddr bhi_driver_entry(const struct bhi_driver *driver,
                                           struct bhi_failure *failure) {
    PFN_vkNegotiateLoaderICDInterfaceVersion negotiate =
        (PFN_vkNegotiateLoaderICDInterfaceVersion)dlsym(driver->handle,
                                                        "vk_icdNegotiateLoaderICDInterfaceVersion");
    PFN_vkGetInstanceProcAddr entry =
        (PFN_vkGetInstanceProcAddr)dlsym(driver->handle, "vk_icdGetInstanceProcAddr");
    uint32_t version = 5; /* all that we use; what is newer concerns loaders */
    VkResult result = negotiate(&version);
    if (result != VK_SUCCESS || version < 2) {
        bhi_fail(failure, BH_UNSUPPORTED, 0, "driver %s refused interface version 5 (VkResult %d)",
                 driver->info->name, result);
        return NULL;
    }
    return entry;
}

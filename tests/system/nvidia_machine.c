#include "nvidia_machine.h"

#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* As the fake has them: its device 0 is /dev/nvidia2. */
static const char *const address_of[NVIDIA_NODES] = {"0000:65:00.0", "0000:17:00.0",
                                                     "0000:ca:00.0"};

void nvidia_write(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        BHT_FAIL("cannot write %s: %s", path, strerror(errno));
    }
    BHT_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* Here there is one thread. */
static bool may_mount;
BHT_AT_START(may_mount = bht_own_mounts())

static const char *folder; /* the driver's */

/* Of the host's /dev what programs need. It is made in |folder| and put over /dev then. (In a tmpfs
 * a node that is a plain file would pass for a memfd.) */
static void make_dev(unsigned nodes, const char *behaviour) {
    static const char *const kept[] = {"null", "zero", "full", "random", "urandom"};
    char from[64];
    char path[96];
    BHT_EQ(mount("dev", folder, "ramfs", 0, "mode=0755"), 0);
    for (size_t i = 0; i < BHT_COUNT(kept); i++) {
        snprintf(from, sizeof from, "/dev/%s", kept[i]);
        snprintf(path, sizeof path, "%s/%s", folder, kept[i]);
        nvidia_write(path, "");
        BHT_EQ(mount(from, path, NULL, MS_BIND, NULL), 0);
    }
    snprintf(path, sizeof path, "%s/shm", folder);
    BHT_EQ(mkdir(path, 01777), 0);
    snprintf(path, sizeof path, "%s/nvidiactl", folder);
    nvidia_write(path, behaviour);
    for (unsigned i = 0; i < nodes; i++) {
        snprintf(path, sizeof path, "%s/nvidia%u", folder, i);
        nvidia_write(path, "");
    }
    BHT_EQ(mount(folder, "/dev", NULL, MS_MOVE, NULL), 0);
}

static void make_proc(unsigned nodes) {
    char path[96];
    char text[256];
    BHT_EQ(mount("proc-driver", "/proc/driver", "tmpfs", 0, "mode=0755"), 0);
    BHT_EQ(mkdir("/proc/driver/nvidia", 0755), 0);
    BHT_EQ(mkdir("/proc/driver/nvidia/gpus", 0755), 0);
    for (unsigned i = 0; i < nodes; i++) {
        snprintf(path, sizeof path, "/proc/driver/nvidia/gpus/%s", address_of[i]);
        BHT_EQ(mkdir(path, 0755), 0);
        snprintf(path, sizeof path, "/proc/driver/nvidia/gpus/%s/information", address_of[i]);
        snprintf(text, sizeof text,
                 "Model: \t\t NVIDIA H200\nIRQ:   \t\t 24\nBus Type: \t PCIe\n"
                 "Bus Location: \t %s\nDevice Minor: \t %u\nGPU Excluded:\t No\n",
                 address_of[i], i);
        nvidia_write(path, text);
    }
}

static void unmount(void) {
    BHT_EQ(umount2(folder, MNT_DETACH), 0);
}

/* The driver's library is in a folder that everybody can read: workers of a root's host are nobody
 * here. */
void nvidia_machine(unsigned nodes, const char *behaviour) {
    char path[96];
    char text[256];
    bht_end_with(unmount); /* before the folder is removed */
    folder = bht_folder();
    BHT_TRUE(may_mount && bht_own_mounts());
    umask(0);
    make_dev(nodes, behaviour);
    make_proc(nodes);
    BHT_EQ(mount("driver", folder, "tmpfs", 0, "mode=0755"), 0);
    snprintf(path, sizeof path, "%s/libGLX_nvidia.so.0", folder);
    nvidia_write(path, "");
    BHT_EQ(mount(BHT_FAKE_NVIDIA, path, NULL, MS_BIND, NULL), 0);
    snprintf(text, sizeof text,
             "{\"file_format_version\": \"1.0.0\","
             " \"ICD\": {\"library_path\": \"%s\", \"api_version\": \"1.3.0\"}}",
             path);
    snprintf(path, sizeof path, "%s/nvidia_icd.json", folder);
    nvidia_write(path, text);
    BHT_EQ(setenv("VK_DRIVER_FILES", path, 1), 0);
}

/* A machine with three GPUs of NVIDIA's, or what looks like it (fake_nvidia.c): a worker can open
 * the node of its own device and no other's. /dev and /proc/driver are this process's own. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define NODES 3

/* As the fake has them: its device 0 is /dev/nvidia2. */
static const char *const address_of[NODES] = {"0000:65:00.0", "0000:17:00.0", "0000:ca:00.0"};

static void write_text(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        BHT_FAIL("cannot write %s: %s", path, strerror(errno));
    }
    BHT_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void read_text(const char *path, char *out, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    BHT_GE(fd, 0);
    ssize_t n = read(fd, out, size - 1);
    close(fd);
    BHT_GE(n, 0);
    out[n] = '\0';
}

static bool write_map(const char *path, unsigned id) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && dprintf(fd, "%u %u 1", id, id) > 0;
    close(fd);
    return good;
}

/* The right to mount, for an ordinary user: while there is one thread, so for all tests. */
static bool may_mount(void) {
    const unsigned user = geteuid(), group = getegid();
    if (user == 0) {
        return true;
    }
    if (unshare(CLONE_NEWUSER) != 0) {
        return false;
    }
    int fd = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, "deny", 4) == 4;
    close(fd);
    return good && write_map("/proc/self/uid_map", user) && write_map("/proc/self/gid_map", group);
}

/* Of the host's /dev what programs need. It is made in |folder| and put over /dev then. (In a tmpfs
 * a node that is a plain file would pass for a memfd.) */
static void make_dev(const char *folder, unsigned nodes, const char *behaviour) {
    static const char *const kept[] = {"null", "zero", "full", "random", "urandom"};
    char from[64];
    char path[96];
    BHT_EQ(mount("dev", folder, "ramfs", 0, "mode=0755"), 0);
    for (size_t i = 0; i < BHT_COUNT(kept); i++) {
        snprintf(from, sizeof from, "/dev/%s", kept[i]);
        snprintf(path, sizeof path, "%s/%s", folder, kept[i]);
        write_text(path, "");
        BHT_EQ(mount(from, path, NULL, MS_BIND, NULL), 0);
    }
    snprintf(path, sizeof path, "%s/shm", folder);
    BHT_EQ(mkdir(path, 01777), 0);
    snprintf(path, sizeof path, "%s/nvidiactl", folder);
    write_text(path, behaviour);
    for (unsigned i = 0; i < nodes; i++) {
        snprintf(path, sizeof path, "%s/nvidia%u", folder, i);
        write_text(path, "");
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
        write_text(path, text);
    }
}

/* The machine. Its driver's library is in a folder that everybody can read: workers of a root's
 * host are nobody here. */
static void machine(unsigned nodes, const char *behaviour) {
    static char folder[] = "/tmp/bulkhead-nodes-XXXXXX";
    char path[96];
    char text[256];
    BHT_EQ(unshare(CLONE_NEWNS), 0);
    BHT_EQ(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    umask(0);
    BHT_TRUE(mkdtemp(folder));
    make_dev(folder, nodes, behaviour);
    make_proc(nodes);
    BHT_EQ(mount("driver", folder, "tmpfs", 0, "mode=0755"), 0);
    snprintf(path, sizeof path, "%s/libGLX_nvidia.so.0", folder);
    write_text(path, "");
    BHT_EQ(mount(BHT_FAKE_NVIDIA, path, NULL, MS_BIND, NULL), 0);
    snprintf(text, sizeof text,
             "{\"file_format_version\": \"1.0.0\","
             " \"ICD\": {\"library_path\": \"%s\", \"api_version\": \"1.3.0\"}}",
             path);
    snprintf(path, sizeof path, "%s/nvidia_icd.json", folder);
    write_text(path, text);
    BHT_EQ(setenv("VK_DRIVER_FILES", path, 1), 0);
}

/* The folder that the machine was made in. */
static void scrap(void) {
    char folder[96];
    snprintf(folder, sizeof folder, "%s", getenv("VK_DRIVER_FILES"));
    *strrchr(folder, '/') = '\0';
    BHT_EQ(umount2(folder, MNT_DETACH), 0);
    BHT_EQ(rmdir(folder), 0);
}

/* Has a worker of the driver's |index|th device run something, and returns what it could open
 * behind filter B, as fake_nvidia.c reports it. */
static void run_on(bh_context *context, unsigned index, char *out, size_t size) {
    char text[32];
    char path[32];
    char seen[4096];
    snprintf(text, sizeof text, "nvidia:%u", index);
    snprintf(path, sizeof path, "/dev/nvidia%u", NODES - 1 - index);
    write_text(path, "");
    bh_stream *stream = fx_stream_on(context, text);
    bh_detail detail = {0};
    if (bh_stream_wait_ready(stream, FX_SECONDS, &detail) != BH_OK) {
        BHT_FAIL("%s: %s", text, detail.message);
    }
    fx_expect_healthy(context, stream);
    bh_stream_release(stream);
    read_text(path, seen, sizeof seen);
    const char *line = strstr(seen, "\nB ");
    if (!line) {
        BHT_FAIL("nothing was run behind filter B: %s", seen);
    }
    snprintf(out, size, "%.*s", (int)strcspn(line + 1, "\n"), line + 1);
}

static const char *doctor_says(bh_context *context, const char *name) {
    static bh_check checks[64];
    bh_detail detail = {0};
    size_t count = 0;
    BHT_EQ(bh_doctor(context, checks, 64, &count, &detail), BH_OK);
    for (size_t i = 0; i < count && i < 64; i++) {
        if (strcmp(checks[i].name, name) == 0) {
            BHT_EQ(checks[i].result, BH_CHECK_HOLDS);
            return checks[i].text;
        }
    }
    BHT_FAIL("the doctor says nothing of %s", name);
}

static const char *landlock_says(bh_context *context) {
    return doctor_says(context, "landlock");
}

static void a_worker_opens_its_own_node(void) {
    static const char *const expected[NODES] = {
        "B 0:EACCES 1:EACCES 2:open ctl:open",
        "B 0:EACCES 1:open 2:EACCES ctl:open",
        "B 0:open 1:EACCES 2:EACCES ctl:open",
    };
    char seen[128];
    machine(NODES, "");
    bh_context *context = fx_context(NULL);
    for (unsigned i = 0; i < NODES; i++) {
        run_on(context, i, seen, sizeof seen);
        BHT_STR_EQ(seen, expected[i]);
    }
    BHT_STR_HAS(landlock_says(context),
                "of 3 device nodes a worker has its own: 2 of the others are refused");
    if (!BHT_ASAN && !BHT_TSAN) { /* they reserve what no limit allows, so there is none */
        BHT_STR_HAS(doctor_says(context, "memory-rlimit"),
                    "; not against a hostile worker: this driver's address space has no bound");
    }
    bh_context_destroy(context);
    scrap();
}

/* Though each worker sees one alone. */
static void all_devices_are_listed(void) {
    static bh_device_info devices[8];
    bh_detail detail = {0};
    size_t count = 0;
    machine(NODES, "");
    bh_context *context = fx_context(NULL);
    BHT_EQ(bh_devices(context, devices, 8, &count, &detail), BH_OK);
    BHT_EQ(count, NODES);
    for (unsigned i = 0; i < NODES; i++) {
        char text[32];
        snprintf(text, sizeof text, "nvidia:%u", i);
        BHT_STR_EQ(devices[i].selector, text);
        snprintf(text, sizeof text, "Fake GPU %u", NODES - 1 - i);
        BHT_STR_EQ(devices[i].name, text);
    }
    bh_context_destroy(context);
    scrap();
}

/* A number that there is none of is refused as it was. */
static void no_such_device(void) {
    machine(NODES, "");
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream_on(context, "nvidia:3");
    bh_detail detail = {0};
    BHT_EQ(bh_stream_wait_ready(stream, FX_SECONDS, &detail), BH_NO_DEVICE);
    BHT_STR_HAS(detail.message, "the driver has 3 devices; there is no number 3");
    bh_stream_release(stream);
    bh_context_destroy(context);
    scrap();
}

/* It works as it did before, and the doctor says so. */
static void all_nodes(const char *behaviour, const char *why) {
    char seen[128];
    machine(NODES, behaviour);
    bh_context *context = fx_context(NULL);
    run_on(context, 1, seen, sizeof seen);
    BHT_STR_EQ(seen, "B 0:open 1:open 2:open ctl:open");
    const char *text = landlock_says(context);
    BHT_STR_HAS(text, "a worker can open all 3 device nodes");
    BHT_STR_HAS(text, why);
    bh_context_destroy(context);
    scrap();
}

static void a_driver_that_needs_all_nodes(void) {
    all_nodes("picky", "device 0: with its own node alone: vkCreateInstance");
}
static void a_driver_that_dies_of_a_refusal(void) {
    all_nodes("dies", "device 0: with its own node alone: the driver was killed by signal 6");
}
static void a_driver_without_addresses(void) {
    all_nodes("silent", "device 0: the driver does not report the PCI address of the device");
}

/* The others have their own all the same. */
static void one_that_is_not_known(void) {
    char seen[128];
    machine(NODES, "");
    write_text("/proc/driver/nvidia/gpus/0000:17:00.0/information", "Device Minor: \t 0\n");
    bh_context *context = fx_context(NULL);
    run_on(context, 1, seen, sizeof seen);
    BHT_STR_EQ(seen, "B 0:open 1:open 2:open ctl:open");
    run_on(context, 2, seen, sizeof seen);
    BHT_STR_EQ(seen, "B 0:open 1:EACCES 2:EACCES ctl:open");
    BHT_STR_HAS(landlock_says(context), "device 1: its minor number is not known (EBADMSG)");
    bh_context_destroy(context);
    scrap();
}

/* As on most machines: nobody looks, and nothing is said. */
static void one_device(void) {
    machine(1, "");
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "one", FX_SECONDS);
    fx_ready(stream);
    fx_expect_healthy(context, stream);
    bh_stream_release(stream);
    BHT_TRUE(!strstr(landlock_says(context), "device node"));
    bh_context_destroy(context);
    scrap();
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST_WITH(a_worker_opens_its_own_node, 100, 0),
        BHT_TEST(all_devices_are_listed),
        BHT_TEST(no_such_device),
        BHT_TEST_WITH(a_driver_that_needs_all_nodes, 100, 0),
        BHT_TEST_WITH(a_driver_that_dies_of_a_refusal, 100, 0),
        BHT_TEST_WITH(a_driver_without_addresses, 100, 0),
        BHT_TEST_WITH(one_that_is_not_known, 100, 0),
        BHT_TEST_WITH(one_device, 100, 0),
    };
    if (!may_mount()) {
        fprintf(stderr, "no user namespace to mount in: %s\n", strerror(errno));
        return 1;
    }
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}

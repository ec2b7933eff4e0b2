/* Which node is whose: from files as NVIDIA's driver has them, and from such as it has not. And the
 * ruleset that leaves one of several. (What becomes of it in a worker: tests/system/nodes.c.) */
#include "harness.h"
#include "known_drivers.h"
#include "worker/sandbox/nodes.h"
#include "worker/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define GOOD                                                                                       \
    "Model: \t\t NVIDIA H200\nIRQ:   \t\t 175\nGPU UUID: \t GPU-00000000-0000-0000-0000-0000\n"    \
    "Video BIOS: \t 96.00.a5.00.01\nBus Type: \t PCIe\nDMA Size: \t 52 bits\n"                     \
    "DMA Mask: \t 0xfffffffffffff\nBus Location: \t 0000:65:00.0\nDevice Minor: \t 3\n"            \
    "GPU Firmware: \t 580.159.04\nGPU Excluded:\t No\n"

static const struct bhi_pci where = {.bus = 0x65, .known = true};
static const char *folder;
static char device[96];
static char file[128];

/* A folder with that of a device, which has no file yet. */
static void begin(void) {
    folder = bht_folder();
    snprintf(device, sizeof device, "%s/0000:65:00.0", folder);
    snprintf(file, sizeof file, "%s/information", device);
    BHT_EQ(mkdir(device, 0700), 0);
}

BHT_AT_START(bht_around(begin, NULL))

static void write_bytes(const char *path, const void *text, size_t size) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    BHT_GE(fd, 0);
    BHT_EQ(write(fd, text, size), (ssize_t)size);
    close(fd);
}

static int minor_of(const void *text, size_t size) {
    unsigned number = 999;
    write_bytes(file, text, size);
    int r = bhi_nodes_minor(folder, &where, &number);
    BHT_EQ(number == 999, r != 0); /* nothing is written where nothing is known */
    return r != 0 ? r : (int)number;
}

#define LOCATION "Bus Location: \t 0000:65:00.0\n"

TEST(files) {
    static const struct {
        const char *text;
        int minor_number;
    } cases[] = {
        {GOOD, 3},
        {LOCATION "Device Minor: \t 0\n", 0},
        {LOCATION "Device Minor: 247", 247},
        {LOCATION "Device Minor:\t12 \t\n", 12},
        {"Device Minor: 7\n" LOCATION, 7},
        /* Not a number that a device has. */
        {LOCATION "Device Minor: 248\n", -EBADMSG},
        {LOCATION "Device Minor: 255\n", -EBADMSG}, /* nvidiactl */
        {LOCATION "Device Minor: 4294967296\n", -EBADMSG},
        {LOCATION "Device Minor: 0003\n", -EBADMSG},
        {LOCATION "Device Minor: -1\n", -EBADMSG},
        {LOCATION "Device Minor: +1\n", -EBADMSG},
        {LOCATION "Device Minor: 0x1\n", -EBADMSG},
        {LOCATION "Device Minor: 1 2\n", -EBADMSG},
        {LOCATION "Device Minor: 1/../2\n", -EBADMSG},
        {LOCATION "Device Minor: \n1\n", -EBADMSG},
        {LOCATION "Device Minor:\n", -EBADMSG},
        {LOCATION "Device Minor:", -EBADMSG},
        {LOCATION "device minor: 1\n", -EBADMSG},
        {LOCATION " Device Minor: 1\n", -EBADMSG},
        {LOCATION "Model: Device Minor: 1\n", -EBADMSG},
        {LOCATION "Device Minor: 11111111111111111111111111111111111111111111111\n", -EBADMSG},
        /* Two of them: which? */
        {LOCATION "Device Minor: 1\nDevice Minor: 2\n", -EBADMSG},
        {LOCATION "Device Minor: 1\nDevice Minor: 1\n", -EBADMSG},
        {LOCATION LOCATION "Device Minor: 1\n", -EBADMSG},
        /* Another device's file. */
        {"Bus Location: 0000:17:00.0\nDevice Minor: 1\n", -EBADMSG},
        {"Bus Location: 0000:65:00.00\nDevice Minor: 1\n", -EBADMSG},
        {"Device Minor: 1\n", -EBADMSG},
        {"\n\n\n", -EBADMSG},
        {"", -EBADMSG},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        int got = minor_of(cases[i].text, strlen(cases[i].text));
        if (got != cases[i].minor_number) {
            BHT_FAIL("'%s' gives %d, not %d", cases[i].text, got, cases[i].minor_number);
        }
    }
}

TEST(files_of_other_kinds) {
    static char long_one[8192];
    static const char zero[] = LOCATION "Device Minor: 1\0\n";
    unsigned number;
    BHT_EQ(bhi_nodes_minor(folder, &where, &number), -ENOENT);
    BHT_EQ(minor_of(zero, sizeof zero - 1), -EBADMSG);
    memset(long_one, '\n', sizeof long_one);
    memcpy(long_one, GOOD, sizeof GOOD - 1);
    BHT_EQ(minor_of(long_one, sizeof long_one), -EBADMSG);
    BHT_EQ(minor_of(long_one, 4096), -EBADMSG);
    BHT_EQ(minor_of(long_one, 4095), 3);
    /* Not followed, not waited for. */
    char other[128];
    snprintf(other, sizeof other, "%s/other", device);
    BHT_EQ(rename(file, other), 0);
    BHT_EQ(symlink("other", file), 0);
    BHT_EQ(bhi_nodes_minor(folder, &where, &number), -ELOOP);
    BHT_EQ(unlink(file), 0);
    BHT_EQ(unlink(other), 0);
    BHT_EQ(mkfifo(file, 0600), 0);
    BHT_EQ(bhi_nodes_minor(folder, &where, &number), -EBADMSG);
}

TEST(addresses) {
    static const struct bhi_pci bad[] = {
        {.bus = 0x65},
        {.bus = 0x165, .known = true},
        {.bus = 0x65, .device = 32, .known = true},
        {.bus = 0x65, .function = 8, .known = true},
    };
    unsigned number;
    bht_put(GOOD, "%s", file);
    for (size_t i = 0; i < BHT_COUNT(bad); i++) {
        BHT_EQ(bhi_nodes_minor(folder, &bad[i], &number), -EBADMSG);
    }
    BHT_EQ(bhi_nodes_minor(folder, &where, &number), 0);
    const struct bhi_pci domain = {.domain = 0x10000, .bus = 0x65, .known = true};
    BHT_EQ(bhi_nodes_minor(folder, &domain, &number), -ENOENT);
    const struct bhi_pci none = {.known = false};
    BHT_TRUE(bhi_pci_equal(&where, &where));
    BHT_TRUE(!bhi_pci_equal(&where, &domain));
    BHT_TRUE(!bhi_pci_equal(&none, &none));
}

/* -- whose ---------------------------------------------------------------------------------- */

/* Nodes of the names |names| in the folder, and two devices, of which the first one's file is
 * |first| and the second's |second|. */
static void expect_match(const char *const *names, const char *first, const char *second,
                         const char *first_node, const char *second_node, const char *why) {
    static struct bhi_nodes nodes;
    begin();
    memset(&nodes, 0, sizeof nodes);
    for (; *names; names++) {
        char *node = nodes.paths[nodes.count++];
        snprintf(node, BHI_NODE_PATH, "%s/%s", folder, *names);
        bht_put("", "%s", node);
    }
    bht_put(first, "%s", file);
    bht_put(second, "%s/0000:17:00.0/information", folder);
    nodes.devices = 2;
    nodes.of[0].pci = where;
    nodes.of[1].pci = (struct bhi_pci){.bus = 0x17, .known = true};
    bhi_nodes_match(&nodes, folder);
    const char *const expected[] = {first_node, second_node};
    for (unsigned i = 0; i < 2; i++) {
        const char *got = bhi_nodes_path(&nodes, i);
        BHT_STR_EQ(!got ? "none" : strrchr(got, '/') + 1, expected[i]);
        BHT_EQ(!!bhi_nodes_pci(&nodes, i), !!got);
    }
    BHT_STR_EQ(nodes.why, why);
    BHT_TRUE(!bhi_nodes_path(&nodes, 2));
    BHT_TRUE(!bhi_nodes_path(NULL, 0));
}

#define FIRST(n)  "Bus Location: 0000:65:00.0\nDevice Minor: " n "\n"
#define SECOND(n) "Bus Location: 0000:17:00.0\nDevice Minor: " n "\n"

TEST(whose_node) {
    static const char *const two[] = {"nvidia0", "nvidia1", NULL};
    static const char *const many[] = {"nvidia1", "nvidia11", "nvidia111", NULL};
    expect_match(two, FIRST("1"), SECOND("0"), "nvidia1", "nvidia0", "");
    expect_match(many, FIRST("11"), SECOND("1"), "nvidia11", "nvidia1", "");
    expect_match(two, FIRST("1"), SECOND("2"), "nvidia1", "none",
                 "device 1: no node has its minor number, 2");
    expect_match(two, FIRST("1"), FIRST("0"), "nvidia1", "none",
                 "device 1: its minor number is not known (EBADMSG)");
    expect_match(two, "", "", "none", "none", "device 0: its minor number is not known (EBADMSG)");
    /* One node cannot be both's. */
    expect_match(two, FIRST("1"), SECOND("1"), "none", "none",
                 "device 1: another device has the same node");
}

/* A name says one number and the node itself another. */
TEST(a_node_that_is_another) {
    static struct bhi_nodes nodes;
    bht_put(FIRST("3"), "%s", file);
    nodes.count = nodes.devices = 1;
    nodes.of[0].pci = where;
    snprintf(nodes.paths[0], BHI_NODE_PATH, "%s/null3", folder);
    BHT_EQ(symlink("/dev/null", nodes.paths[0]), 0); /* 1:3, and another where it is not */
    bhi_nodes_match(&nodes, folder);
    BHT_STR_EQ(nodes.of[0].path, nodes.paths[0]);
    BHT_EQ(unlink(nodes.paths[0]), 0);
    BHT_EQ(symlink("/dev/zero", nodes.paths[0]), 0); /* 1:5 */
    bhi_nodes_match(&nodes, folder);
    BHT_STR_EQ(nodes.of[0].path, "");
}

/* -- the ruleset ---------------------------------------------------------------------------- */

/* In a child: the answers to opening control, node 1 and node 10, as a number of three digits, each
 * 1 where it opens and 2 where it is refused. */
static int open_behind(const struct bhi_driver *driver, const char *node,
                       const char *const paths[3]) {
    pid_t pid = fork();
    BHT_GE(pid, 0);
    if (pid == 0) {
        struct bhi_error failure = {.status = BH_OK};
        bool applied = false;
        int answers = 0;
        if (bhi_sandbox_no_new_privs(&failure) != 0 ||
            bhi_sandbox_landlock(driver, node, &applied, &failure) != 0 || !applied) {
            _exit(0);
        }
        for (int i = 0; i < 3; i++) {
            int fd = open(paths[i], O_RDWR | O_CLOEXEC);
            answers = 3 * answers + (fd >= 0 ? 1 : errno == EACCES ? 2 : 0);
        }
        _exit(answers);
    }
    int status;
    BHT_EQ(waitpid(pid, &status, 0), pid);
    BHT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(one_node_is_left) {
    if (bhi_sandbox_landlock_abi() == 0) {
        printf("  this kernel has no Landlock\n");
        return;
    }
    char control[96], pattern[96], nodes[2][96];
    snprintf(control, sizeof control, "%s/nodectl", folder);
    snprintf(pattern, sizeof pattern, "%s/node[0-9]*", folder);
    bht_put("", "%s", control);
    for (int i = 0; i < 2; i++) {
        snprintf(nodes[i], sizeof nodes[i], "%s/node%s", folder, i ? "10" : "1");
        bht_put("", "%s", nodes[i]);
    }
    const struct bhi_driver_path paths[] = {
        {control, BHI_PATH_DEVICE}, {pattern, BHI_PATH_NODE}, {NULL, BHI_PATH_READ}};
    const struct bhi_driver_info info = {.name = "test", .paths = paths};
    const struct bhi_driver driver = {.info = &info};
    const char *const tried[3] = {control, nodes[0], nodes[1]};
    BHT_EQ(open_behind(&driver, NULL, tried), 9 * 1 + 3 * 1 + 1);
    BHT_EQ(open_behind(&driver, nodes[0], tried), 9 * 1 + 3 * 1 + 2);
    BHT_EQ(open_behind(&driver, nodes[1], tried), 9 * 1 + 3 * 2 + 1);
    BHT_EQ(open_behind(&driver, "/dev/null", tried), 9 * 1 + 3 * 2 + 2);
    static struct bhi_nodes listed;
    bhi_nodes_list(&listed, &driver);
    BHT_EQ(listed.count, 2);
    BHT_STR_EQ(listed.paths[0], nodes[0]);
    BHT_STR_EQ(listed.paths[1], nodes[1]);
}

/* Only such drivers are looked at closer. */
TEST(of_the_table) {
    const struct bhi_driver_info *known[KNOWN_DRIVERS];
    const size_t count = known_drivers(known);
    for (size_t i = 0; i < count; i++) {
        const struct bhi_driver_info *info = known[i];
        bool several = false;
        for (const struct bhi_driver_path *p = info->paths; p->pattern; p++) {
            several |= p->kind == BHI_PATH_NODE;
        }
        BHT_EQ(several, !!info->node_folder);
        BHT_EQ(several, !strcmp(info->name, "nvidia") || info->cuda);
    }
}

/* CUDA's devices are those of another driver once more: nobody gets one who has not named it. */
TEST(cuda_must_be_named) {
    struct bhi_driver driver = {0};
    struct bhi_error failure = {0};
    setenv("VK_DRIVER_FILES", "/nonexistent", 1);
    BHT_NE(bhi_driver_pick(&driver, "", &failure), 0);
    BHT_EQ(failure.told.reason, BH_REASON_NO_DRIVER);
    BHT_EQ(bhi_driver_pick(&driver, "cuda", &failure), 0);
    BHT_TRUE(driver.info->cuda);
}

/* The host has named that driver: what another one lacks is no help. */
TEST(a_missing_driver_says_what_to_install_for_it) {
    const struct bhi_driver_info *known[KNOWN_DRIVERS];
    const size_t count = known_drivers(known);
    unsetenv("VK_DRIVER_FILES");
    unsetenv("VK_ICD_FILENAMES");
    for (size_t i = 0; i < count; i++) {
        struct bhi_driver driver;
        struct bhi_error failure = {0};
        char remedy[160];
        BHT_NE(known[i]->package, NULL);
        snprintf(remedy, sizeof remedy, "install %s", known[i]->package);
        BHT_EQ(!strstr(remedy, "NVIDIA"), strcmp(known[i]->name, "nvidia") && !known[i]->cuda);
        if (bhi_driver_pick(&driver, known[i]->name, &failure) != 0) {
            BHT_STR_HAS(failure.told.advice, remedy);
        }
    }
}

/* On a machine with three GPUs of NVIDIA's a worker can open the node of its own device and no
 * other's. */
#include "fixture.h"
#include "nvidia_machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define NODES NVIDIA_NODES

static void read_text(const char *path, char *out, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    BHT_GE(fd, 0);
    ssize_t n = read(fd, out, size - 1);
    close(fd);
    BHT_GE(n, 0);
    out[n] = '\0';
}

/* Has a worker of the driver's |index|th device run something, and returns what it could open
 * behind filter B, as fake_nvidia.c reports it. */
static void run_on(bh_context *context, unsigned index, char *out, size_t size) {
    char text[32];
    char path[32];
    char seen[4096];
    snprintf(text, sizeof text, "nvidia:%u", index);
    snprintf(path, sizeof path, "/dev/nvidia%u", NODES - 1 - index);
    nvidia_write(path, "");
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
    static bh_check checks[64] = {{.struct_size = sizeof checks[0]}};
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
    nvidia_machine(NODES, "");
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
    nvidia_scrap();
}

/* Though each worker sees one alone. */
static void all_devices_are_listed(void) {
    static bh_device_info devices[8] = {{.struct_size = sizeof devices[0]}};
    bh_detail detail = {0};
    size_t count = 0;
    nvidia_machine(NODES, "");
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
    nvidia_scrap();
}

/* A number that there is none of is refused as it was. */
static void no_such_device(void) {
    nvidia_machine(NODES, "");
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream_on(context, "nvidia:3");
    bh_detail detail = {0};
    BHT_EQ(bh_stream_wait_ready(stream, FX_SECONDS, &detail), BH_NO_DEVICE);
    BHT_STR_HAS(detail.message, "the driver has no device number 3: it has 3");
    bh_stream_release(stream);
    bh_context_destroy(context);
    nvidia_scrap();
}

/* It works as it did before, and the doctor says so. */
static void all_nodes(const char *behaviour, const char *why) {
    char seen[128];
    nvidia_machine(NODES, behaviour);
    bh_context *context = fx_context(NULL);
    run_on(context, 1, seen, sizeof seen);
    BHT_STR_EQ(seen, "B 0:open 1:open 2:open ctl:open");
    const char *text = landlock_says(context);
    BHT_STR_HAS(text, "a worker can open all 3 device nodes");
    BHT_STR_HAS(text, why);
    bh_context_destroy(context);
    nvidia_scrap();
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
    nvidia_machine(NODES, "");
    nvidia_write("/proc/driver/nvidia/gpus/0000:17:00.0/information", "Device Minor: \t 0\n");
    bh_context *context = fx_context(NULL);
    run_on(context, 1, seen, sizeof seen);
    BHT_STR_EQ(seen, "B 0:open 1:open 2:open ctl:open");
    run_on(context, 2, seen, sizeof seen);
    BHT_STR_EQ(seen, "B 0:open 1:EACCES 2:EACCES ctl:open");
    BHT_STR_HAS(landlock_says(context), "device 1: its minor number is not known (EBADMSG)");
    bh_context_destroy(context);
    nvidia_scrap();
}

/* As on most machines: nobody looks, and nothing is said. */
static void one_device(void) {
    nvidia_machine(1, "");
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "one", FX_SECONDS);
    fx_ready(stream);
    fx_expect_healthy(context, stream);
    bh_stream_release(stream);
    BHT_TRUE(!strstr(landlock_says(context), "device node"));
    bh_context_destroy(context);
    nvidia_scrap();
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
    if (!nvidia_may_mount()) {
        fprintf(stderr, "no user namespace to mount in: %s\n", strerror(errno));
        return 1;
    }
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}

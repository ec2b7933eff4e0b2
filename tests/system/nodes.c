/* On a machine with three GPUs of NVIDIA's a worker can open the node of its own device and no
 * other's. */
#include "cuda.h"
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
    fx_ready(stream);
    fx_expect_healthy(context, stream);
    bh_stream_release(stream);
    read_text(path, seen, sizeof seen);
    const char *line = strstr(seen, "\nB ");
    if (!line) {
        BHT_FAIL("nothing was run behind filter B: %s", seen);
    }
    snprintf(out, size, "%.*s", (int)strcspn(line + 1, "\n"), line + 1);
}

static const char *holds(bh_context *context, const char *name) {
    const bh_check *check = fx_doctor_says(context, name);
    BHT_EQ(check->result, BH_CHECK_HOLDS);
    return check->text;
}

static const char *landlock_says(bh_context *context) {
    return holds(context, "landlock");
}

TEST(a_worker_opens_its_own_node) {
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
        BHT_STR_HAS(holds(context, "memory-rlimit"),
                    "; not against a hostile worker: this driver's address space has no bound");
    }
}

/* The same of CUDA, whose devices have other numbers than their nodes. */
TEST(a_cuda_worker_opens_its_own_node) {
    static const uint32_t expected[2][NODES] = {{EACCES, EACCES, 0}, {0, EACCES, EACCES}};
    nvidia_machine(NODES, "");
    fx_cuda_install("FAKE_CUDA_DEVICES=2\n");
    nvidia_write("/dev/nvidia-uvm", "");
    bht_put("Bus Location: \t 0000:fa:00.0\nDevice Minor: \t 2\n",
            "/proc/driver/nvidia/gpus/0000:fa:00.0/information");
    bht_put("Bus Location: \t 0000:fa:01.0\nDevice Minor: \t 0\n",
            "/proc/driver/nvidia/gpus/0000:fa:01.0/information");
    bh_context *context = fx_context(NULL);
    bh_kernel *opens =
        cuda_kernel(context, "opens_nodes", &(bh_kernel_options){.name = "opens_nodes"});
    for (size_t i = 0; i < BHT_COUNT(expected); i++) {
        bh_stream *stream = fx_stream_on(context, i == 0 ? "cuda:0" : "cuda:1");
        bh_buffer *errors = fx_words(context, 64, UINT32_MAX);
        const bh_binding binding = bh_bind_read_write(0, errors);
        fx_expect(fx_launch(stream, opens, 1, &binding, 1, 0), BH_OK);
        BHT_MEM_EQ(fx_mapped(errors), expected[i], sizeof expected[i]);
    }
}

/* Though each worker sees one alone. */
TEST(all_devices_are_listed) {
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
}

/* A number that there is none of is refused as it was. */
TEST(no_such_device) {
    nvidia_machine(NODES, "");
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream_on(context, "nvidia:3");
    bh_detail detail = {0};
    BHT_EQ(bh_stream_wait_ready(stream, FX_SECONDS, &detail), BH_NO_DEVICE);
    BHT_STR_HAS(detail.message, "the driver has no device number 3: it has 3");
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
}

TEST(a_driver_that_needs_all_nodes) {
    all_nodes("picky", "device 0: with its own node alone: vkCreateInstance");
}
TEST(a_driver_that_dies_of_a_refusal) {
    all_nodes("dies", "device 0: with its own node alone: the driver was killed by signal 6");
}
TEST(a_driver_without_addresses) {
    all_nodes("silent", "device 0: the driver does not report the PCI address of the device");
}

/* The others have their own all the same. */
TEST(one_that_is_not_known) {
    char seen[128];
    nvidia_machine(NODES, "");
    nvidia_write("/proc/driver/nvidia/gpus/0000:17:00.0/information", "Device Minor: \t 0\n");
    bh_context *context = fx_context(NULL);
    run_on(context, 1, seen, sizeof seen);
    BHT_STR_EQ(seen, "B 0:open 1:open 2:open ctl:open");
    run_on(context, 2, seen, sizeof seen);
    BHT_STR_EQ(seen, "B 0:open 1:EACCES 2:EACCES ctl:open");
    BHT_STR_HAS(landlock_says(context), "device 1: its minor number is not known (EBADMSG)");
}

/* As on most machines: nobody looks, and nothing is said. */
TEST(one_device) {
    nvidia_machine(1, "");
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "one", FX_SECONDS);
    fx_ready(stream);
    fx_expect_healthy(context, stream);
    BHT_TRUE(!strstr(landlock_says(context), "device node"));
}

/* What bulkhead doctor makes of what is known of a device's memory. */
#include "harness.h"

#include <jansson.h>
#include <stdio.h>

#include "cli/ghost.h"

#define MIB (UINT64_C(1) << 20)

static bh_device_info device = {.struct_size = sizeof device};
static struct bhi_ghost_view view;
static bh_check check = {.struct_size = sizeof check};

/* A GPU with two processes, one of which is ours: nothing is wrong. */
static void set_up(void) {
    device = (bh_device_info){.selector = "nvidia:0",
                              .pci = "0000:65:00.0",
                              .vendor_id = 0x10de,
                              .device_type = 2,
                              .memory_total = 8192 * MIB,
                              .memory_free = 6144 * MIB,
                              .memory_known = 1};
    view = (struct bhi_ghost_view){
        .device = &device,
        .nvml_known = true,
        .nvml = {.memory_known = true,
                 .total = 8192 * MIB,
                 .used = 700 * MIB,
                 .reserved_known = true,
                 .reserved = 512 * MIB,
                 .utilisation_known = true,
                 .utilisation = 3,
                 .processes_known = true},
        .holders = {{.pid = 7, .bytes_known = true, .bytes = 400 * MIB, .title = "python3"},
                    {.pid = 9,
                     .bytes_known = true,
                     .bytes = 44 * MIB,
                     .title = "worker of doctor",
                     .own = true}},
        .holder_count = 2};
}

static void judge(bh_check_result result, const char *text, const char *advice) {
    memset(&check, 0x5a, sizeof check);
    bhi_ghost_judge(&view, &check);
    BHT_STR_EQ(check.text, text);
    BHT_EQ(check.result, result);
    BHT_STR_EQ(check.advice, advice);
    BHT_STR_EQ(check.group, "driver");
    BHT_STR_EQ(check.name, "device-memory");
    BHT_TRUE(!check.required);
    json_t *object = bhi_ghost_json(&view);
    BHT_TRUE(object);
    BHT_EQ(json_is_true(json_object_get(object, "ghost")), result == BH_CHECK_BROKEN);
    BHT_EQ(json_array_size(json_object_get(object, "processes")), view.holder_count);
    json_decref(object);
}

TEST(all_is_accounted_for) {
    set_up();
    judge(BH_CHECK_HOLDS,
          "nvidia:0: 700 MiB of 8.00 GiB in use, 3 % busy: 444 MiB by 2 processes (7 python3 400 "
          "MiB, 9 worker of doctor 44.0 MiB), 256 MiB by none",
          "");
    view.nvml.used = 100 * MIB; /* memory that two of them share counts twice */
    judge(BH_CHECK_HOLDS,
          "nvidia:0: 100 MiB of 8.00 GiB in use, 3 % busy: 444 MiB by 2 processes (7 python3 400 "
          "MiB, 9 worker of doctor 44.0 MiB), 0 bytes by none",
          "");
    view.nvml.utilisation_known = false;
    view.holder_count = 1;
    view.holders[0] = view.holders[1];
    judge(BH_CHECK_HOLDS,
          "nvidia:0: 100 MiB of 8.00 GiB in use: 44.0 MiB by 1 process (9 worker of doctor 44.0 "
          "MiB), 56.0 MiB by none",
          "");
    /* Of many the three that have most. */
    for (size_t i = 1; i < BHI_GHOST_HOLDERS; i++) {
        view.holders[i] = (struct bhi_ghost_holder){
            .pid = 1000 + (int32_t)i, .bytes_known = true, .bytes = i < 3 ? MIB : 0};
    }
    view.holder_count = BHI_GHOST_HOLDERS;
    judge(BH_CHECK_HOLDS,
          "nvidia:0: 100 MiB of 8.00 GiB in use: 46.0 MiB by 256 processes (9 worker of doctor "
          "44.0 MiB, 1001 (not visible) 1.00 MiB, 1002 (not visible) 1.00 MiB, "
          "...), 54.0 MiB by none",
          "");
}

TEST(memory_of_nobody) {
    set_up();
    view.nvml.used += 1; /* of what is held one byte more than the slack belongs to nobody */
    judge(BH_CHECK_BROKEN,
          "nvidia:0: ghost memory: 256 MiB belong to no process. 700 MiB of 8.00 GiB in use, 3 % "
          "busy, 444 MiB by 2 processes",
          "end all programs that use this GPU; if the memory stays in use: nvidia-smi --gpu-reset "
          "-i 0000:65:00.0");
    json_t *object = bhi_ghost_json(&view);
    BHT_EQ(json_integer_value(json_object_get(object, "unaccounted")), 256 * MIB + 1);
    BHT_EQ(json_integer_value(json_object_get(object, "held")), 444 * MIB);
    BHT_EQ(json_integer_value(json_object_get(object, "slack")), 256 * MIB);
    BHT_TRUE(json_is_null(json_object_get(object, "not_known")));
    json_t *nvml = json_object_get(object, "nvml");
    BHT_EQ(json_integer_value(json_object_get(nvml, "used")), 700 * MIB + 1);
    BHT_EQ(json_integer_value(json_object_get(nvml, "utilisation")), 3);
    BHT_EQ(json_integer_value(json_object_get(object, "free")), 6144 * MIB);
    json_decref(object);
}

TEST(a_worker_without_a_host) {
    set_up();
    view.holders[0].orphan = true;
    snprintf(view.holders[0].title, sizeof view.holders[0].title, "worker of render");
    judge(BH_CHECK_BROKEN,
          "nvidia:0: ghost memory: process 7 (worker of render) lives, and its host is gone; it "
          "holds 400 MiB",
          "kill -9 7");
    view.holder_count = 3; /* the first is named */
    view.holders[2] = view.holders[0];
    judge(BH_CHECK_BROKEN,
          "nvidia:0: ghost memory: process 7 (worker of render) lives, and its host is gone; it "
          "holds 400 MiB; so do 1 more",
          "kill -9 7");
    /* Without NVML it is known that it lives, and not where. */
    set_up();
    view.nvml_known = false;
    snprintf(view.why, sizeof view.why, "libnvidia-ml.so.1: not there");
    view.holder_count = 1;
    view.holders[0] = (struct bhi_ghost_holder){.pid = 7, .title = "sentinel", .orphan = true};
    judge(BH_CHECK_BROKEN,
          "nvidia:0: ghost memory: process 7 (sentinel) lives, and its host is gone; it holds "
          "memory of a device",
          "kill -9 7");
}

TEST(who_holds_it_is_not_known) {
    static const char in_vain[] = "run it outside of containers, with NVIDIA's driver 510 or later";
    set_up();
    view.holders[1].own = false; /* although a worker of ours has the device open */
    view.nvml.used = 4096 * MIB;
    judge(BH_CHECK_ABSENT,
          "nvidia:0: 4.00 GiB of 8.00 GiB in use, 3 % busy; by whom is not known: NVML does not "
          "list the processes of this pid namespace",
          in_vain);
    set_up();
    view.nvml.used = 4096 * MIB;
    view.nvml.reserved_known = false;
    judge(BH_CHECK_ABSENT,
          "nvidia:0: 4.00 GiB of 8.00 GiB in use, 3 % busy; by whom is not known: NVML does not "
          "tell apart what the driver keeps for itself",
          in_vain);
    set_up();
    view.nvml.used = 4096 * MIB;
    view.holders[0].bytes_known = false;
    judge(BH_CHECK_ABSENT,
          "nvidia:0: 4.00 GiB of 8.00 GiB in use, 3 % busy; by whom is not known: NVML lists a "
          "process without its memory",
          in_vain);
    set_up();
    view.nvml.processes_known = view.nvml.memory_known = false;
    view.holder_count = 0;
    snprintf(view.nvml.why, sizeof view.nvml.why, "memory: Scripted Error (4)");
    judge(BH_CHECK_ABSENT,
          "nvidia:0: 2.00 GiB of 8.00 GiB in use, 3 % busy; by whom is not known: memory: Scripted "
          "Error (4)",
          in_vain);
}

TEST(without_nvml) {
    set_up();
    view.nvml_known = false;
    view.holder_count = 0;
    view.nvml = (struct bhi_nvml_reading){0};
    snprintf(view.why, sizeof view.why, "libnvidia-ml.so.1: cannot open shared object file");
    judge(BH_CHECK_ABSENT,
          "nvidia:0: 2.00 GiB of 8.00 GiB in use; by whom is not known: libnvidia-ml.so.1: cannot "
          "open shared object file",
          "install libnvidia-ml.so.1 of NVIDIA's driver: it reports who holds memory");
    device.memory_known = 0;
    device.memory_free = 0;
    device.vendor_id = 0x1002;
    judge(BH_CHECK_ABSENT,
          "nvidia:0: how much is in use is not known; by whom is not known: libnvidia-ml.so.1: "
          "cannot open shared object file",
          "nothing: only NVIDIA's driver reports who holds memory");
    json_t *object = bhi_ghost_json(&view);
    BHT_TRUE(json_is_null(json_object_get(object, "free")));
    BHT_TRUE(json_is_null(json_object_get(object, "nvml")));
    BHT_TRUE(json_is_null(json_object_get(object, "unaccounted")));
    json_decref(object);
}

TEST(a_processor) {
    set_up();
    device.device_type = 4;
    view.nvml_known = false;
    view.holder_count = 0;
    judge(BH_CHECK_HOLDS, "nvidia:0: not available: CPU driver", "");
}

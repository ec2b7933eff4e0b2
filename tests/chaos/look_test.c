/* What a look at the run's devices takes for the run's own, and what for others'. The driver, NVML and
 * the machine's processes are made up. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chaos/engine/look.h"
#include "tool/device_list.h"
#include "tool/nvml.h"
#include "tool/orphan.h"

#define MIB (UINT64_C(1) << 20)

enum { OWN = 100, ORPHAN, OTHER, SHY, PROCESSES };

static struct bhi_history history;
static struct bhi_look look;
static uint64_t left_behind; /* bytes of the orphan */
static uint32_t looks, pauses;
static const char *selector = "nvidia:0";

BHT_WRAP(bh_status, bh_context_create, const bh_context_options *options, bh_context **out,
         bh_detail *detail) {
    *out = (bh_context *)&look;
    looks++;
    return BH_OK;
}

BHT_WRAP(bh_status, bh_context_destroy, bh_context *context) {
    return BH_OK;
}

BHT_WRAP(bh_status, bh_devices, bh_context *context, bh_device_info *out, size_t capacity,
         size_t *out_count, bh_detail *detail) {
    out[0] = (bh_device_info){.struct_size = sizeof *out, .device_type = 2, .pci = "0000:65:00.0"};
    strcpy(out[0].selector, selector);
    *out_count = 1;
    return BH_OK;
}

BHT_WRAP(struct bhi_nvml *, bhi_nvml_open, char why[BHI_NVML_WHY]) {
    return (struct bhi_nvml *)&look;
}

BHT_WRAP(void, bhi_nvml_close, struct bhi_nvml *nvml) {}

BHT_WRAP(bool, bhi_nvml_read, const struct bhi_nvml *nvml, const char *pci,
         struct bhi_nvml_reading *out) {
    *out = (struct bhi_nvml_reading){
        .memory_known = true,
        .total = 1000 * MIB,
        .used = 300 * MIB + left_behind,
        .processes_known = true,
        .process_count = 5,
        .processes = {{.pid = getpid(), .bytes_known = true, .bytes = 1 * MIB},
                      {.pid = OWN, .bytes_known = true, .bytes = 2 * MIB},
                      {.pid = ORPHAN, .bytes_known = true, .bytes = left_behind},
                      {.pid = OTHER, .bytes_known = true, .bytes = 30 * MIB},
                      {.pid = SHY, .bytes = 7}}};
    return true;
}

BHT_WRAP(bool, bhi_process_tree_read, pid_t root, struct bhi_process_tree *out) {
    *out = (struct bhi_process_tree){.processes = calloc(PROCESSES, sizeof *out->processes)};
    BHT_NE(out->processes, NULL);
    for (pid_t pid = OWN; pid < (root ? OWN + 1 : PROCESSES); pid++) {
        out->processes[out->count++].pid = pid;
    }
    return true;
}

BHT_WRAP(bool, bhi_process_is_orphan, const struct bhi_process_tree *all, pid_t pid) {
    return pid == ORPHAN;
}

BHT_WRAP(bool, bhi_interrupt_pause, uint64_t ns) {
    pauses++;
    return pauses < 6;
}

/* What a worker holds that the run has left behind is the run's, not somebody else's (E14). */
TEST(memory_of_what_is_left_behind_is_the_run_s) {
    bhi_history_init(&history);
    bhi_look_first(&look, &history);
    BHT_EQ(look.count, 1);
    BHT_EQ(look.first[0].memory.others, 30 * MIB);
    BHT_EQ(look.first[0].memory.other_processes, 2);
    bhi_look_last(&look, &history);
    BHT_EQ(looks, 2); /* it is as it was */
    BHT_EQ(pauses, 0);
    left_behind = 100 * MIB;
    bhi_look_last(&look, &history);
    BHT_EQ(looks, 2 + 6); /* until a signal: ten seconds have not passed */
    BHT_EQ(history.count, 3);
    BHT_EQ(history.records[2].memory.others, 30 * MIB);
    BHT_EQ(history.records[2].memory.used, 400 * MIB);
    left_behind = pauses = 0;
    selector = "nvidia:1"; /* the first one is gone, and this one is no other name of it */
    bhi_look_last(&look, &history);
    BHT_STR_EQ(history.records[3].memory.device, "nvidia:0");
    BHT_TRUE(!history.records[3].memory.nvml);
    bhi_history_free(&history);
}

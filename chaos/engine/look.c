#include "chaos/engine/look.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "chaos/history/device_memory.h"
#include "tool/clock.h"
#include "tool/device_list.h"
#include "tool/interrupt.h"
#include "tool/nvml.h"
#include "tool/orphan.h"

static const uint64_t pause_ns = 200000000;
enum { LEAST_LOOKS = 3 }; /* on a machine on which a look takes seconds, too */

/* -- the devices ----------------------------------------------------------------------------- */

static size_t list_devices(const struct bhi_look *look, bh_device_info out[BHI_LOOK_DEVICES]) {
    bh_context_options options = {.struct_size = sizeof options};
    bh_context *context = NULL;
    size_t count = 0;
    options.spares = BH_OFF; /* a spare one would be on the device */
    options.runtime_dir = look->runtime_parent;
    if (bh_context_create(&options, &context, NULL) != BH_OK) {
        return 0;
    }
    out->struct_size = sizeof *out;
    if (bh_devices(context, out, BHI_LOOK_DEVICES, &count, NULL) != BH_OK) {
        count = 0;
    }
    bh_context_destroy(context);
    return count < BHI_LOOK_DEVICES ? count : BHI_LOOK_DEVICES;
}

static bool wants_any(const struct bhi_look *look) {
    return look->wanted && !strcmp(look->wanted, "any");
}

/* -- a look ---------------------------------------------------------------------------------- */

/* Adds up what processes have that are not of this run: neither below this process nor orphans,
 * which it may have left behind. */
static void add_others(const struct bhi_nvml_reading *nvml, struct bhi_record *record) {
    struct bhi_process_tree own, all;
    if (!nvml->processes_known || !bhi_process_tree_read(getpid(), &own)) {
        return;
    }
    if (bhi_process_tree_read(0, &all)) {
        record->memory.listed = true;
        for (uint32_t i = 0; i < nvml->process_count; i++) {
            const struct bhi_nvml_process *process = &nvml->processes[i];
            if (process->pid != getpid() && !bhi_process_tree_find(&own, process->pid) &&
                !bhi_process_is_orphan(&all, process->pid)) {
                record->memory.other_processes++;
                record->memory.others += process->bytes_known ? process->bytes : 0;
            }
        }
        bhi_process_tree_free(&all);
    }
    bhi_process_tree_free(&own);
}

static void read_nvml(const struct bhi_nvml *nvml, const char *pci, struct bhi_record *record) {
    struct bhi_nvml_reading reading;
    if (!bhi_nvml_read(nvml, pci, &reading)) {
        return;
    }
    record->memory.nvml = reading.memory_known;
    record->memory.used = reading.used;
    record->memory.utilised = reading.utilisation_known;
    record->memory.utilisation = reading.utilisation;
    add_others(&reading, record);
}

struct seen {
    bh_device_info devices[BHI_LOOK_DEVICES];
    struct bhi_record records[BHI_LOOK_DEVICES];
    size_t count;
};

/* NVML comes last, when the look's own processes have gone, and is closed again: what it keeps open
 * is no leak of the run. */
static void look_once(const struct bhi_look *look, struct seen *out_seen) {
    char why[BHI_NVML_WHY];
    struct bhi_nvml *nvml = NULL;
    bool tried = false;
    memset(out_seen, 0, sizeof *out_seen);
    out_seen->count = list_devices(look, out_seen->devices);
    for (size_t i = 0; i < out_seen->count; i++) {
        const bh_device_info *device = &out_seen->devices[i];
        struct bhi_record *record = &out_seen->records[i];
        *record = (struct bhi_record){.kind = BHI_RECORD_MEMORY};
        snprintf(record->memory.device, sizeof record->memory.device, "%s", device->selector);
        record->memory.budget = device->memory_known;
        record->memory.total = device->memory_total;
        record->memory.unused = device->memory_free;
        if (bhi_device_is_cpu(device)) {
            continue;
        }
        if (!tried) {
            tried = true;
            nvml = bhi_nvml_open(why);
        }
        if (nvml) {
            read_nvml(nvml, device->pci, record);
        }
        record->at_ns = bhi_clock_ns() - look->start_ns;
    }
    bhi_nvml_close(nvml);
}

/* -- before and after ------------------------------------------------------------------------ */

static void name_device(const struct bhi_look *look, const bh_device_info *device,
                        struct bhi_history_header *header) {
    snprintf(header->device, sizeof header->device, "%.63s",
             wants_any(look) ? look->wanted : device->selector);
    snprintf(header->driver, sizeof header->driver, "%.50s, %.70s", device->name, device->driver);
    header->accelerator = !bhi_device_is_cpu(device);
}

void bhi_look_first(struct bhi_look *look, struct bhi_history *history) {
    struct seen *seen = malloc(sizeof *seen);
    if (!seen) {
        return;
    }
    look_once(look, seen);
    const struct bhi_device_list list = {.devices = seen->devices, .count = seen->count};
    for (size_t i = 0; i < seen->count; i++) {
        if (!bhi_device_list_serves(&list, look->wanted, &seen->devices[i])) {
            continue;
        }
        if (!history->header.device[0]) {
            name_device(look, &seen->devices[i], &history->header);
        }
        if (!bhi_device_is_cpu(&seen->devices[i])) {
            look->first[look->count++] = seen->records[i];
            bhi_history_note(history, &seen->records[i]);
        }
    }
    free(seen);
}

/* Returns what was seen of the device of |first|; nothing of it is known if it was not seen. */
static struct bhi_record find(const struct seen *seen, const struct bhi_record *first) {
    struct bhi_record nothing = {.kind = BHI_RECORD_MEMORY};
    for (size_t i = 0; i < seen->count; i++) {
        if (strcmp(seen->records[i].memory.device, first->memory.device) == 0) {
            return seen->records[i];
        }
    }
    memcpy(nothing.memory.device, first->memory.device, sizeof nothing.memory.device);
    return nothing;
}

static bool is_clean(const struct bhi_look *look, const struct seen *seen) {
    bool clean = true;
    for (uint32_t i = 0; i < look->count; i++) {
        const struct bhi_record last = find(seen, &look->first[i]);
        clean &= bhi_device_clean(&look->first[i], &last);
    }
    return clean;
}

void bhi_look_last(const struct bhi_look *look, struct bhi_history *history) {
    const uint64_t begun_ns = bhi_clock_ns();
    struct seen *seen = look->count ? malloc(sizeof *seen) : NULL;
    uint64_t waited_ns;
    if (!seen) {
        return;
    }
    for (int looks = 1;; looks++) {
        look_once(look, seen);
        waited_ns = bhi_clock_ns() - begun_ns;
        if (is_clean(look, seen) || (waited_ns >= BHI_CHAOS_DEVICE_NS && looks >= LEAST_LOOKS) ||
            !bhi_interrupt_pause(pause_ns)) {
            break;
        }
    }
    for (uint32_t i = 0; i < look->count; i++) {
        struct bhi_record record = find(seen, &look->first[i]);
        record.at_ns = bhi_clock_ns() - look->start_ns;
        record.memory.last = true;
        record.memory.waited_ns = waited_ns;
        bhi_history_note(history, &record);
    }
    free(seen);
}

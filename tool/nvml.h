/* NVML, NVIDIA's library for the management of GPUs: how much memory of a GPU is in use, by whom,
 * and how busy it is. Only the command loads it, at run time, if there is one; the library and its
 * workers never do. It is optional, so it causes no error: what it does not tell, or tells
 * absurdly, is not known. */
#ifndef BHI_TOOL_NVML_H
#define BHI_TOOL_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BHI_NVML_PROCESSES = 256, BHI_NVML_WHY = 160 };

/* A process that holds memory of the GPU. */
struct bhi_nvml_process {
    int32_t pid; /* in the pid namespace of the caller, if the driver translates it */
    bool bytes_known;
    uint64_t bytes;
};

struct bhi_nvml_reading {
    bool memory_known;
    uint64_t total, used;
    bool reserved_known; /* false: |used| contains what the driver keeps for itself */
    uint64_t reserved;
    bool utilisation_known;
    uint32_t utilisation; /* percent of the driver's last sampling period (1/6 s to 1 s) */
    bool processes_known;
    uint32_t process_count;
    struct bhi_nvml_process processes[BHI_NVML_PROCESSES]; /* each pid once */
    char why[BHI_NVML_WHY]; /* the first thing that is not known, and why; empty: all is known */
};

struct bhi_nvml;

/* Loads and starts the library. Returns NULL if it is not available; |why| is the reason. */
struct bhi_nvml *bhi_nvml_open(char why[BHI_NVML_WHY]);
void bhi_nvml_close(struct bhi_nvml *nvml); /* NULL: nothing */
/* Reads what is known of the GPU with this PCI address (as in bh_device_info). Returns false if the
 * library does not know such a GPU; |why| of the reading is the reason. */
bool bhi_nvml_read(const struct bhi_nvml *nvml, const char *pci,
                   struct bhi_nvml_reading *out_reading);

#endif

#include "base/memory.h"

#include <stdio.h>

#include "base/owner.h"

uint64_t bhi_memory_unused(void) {
    unsigned long long kib;
    char line[128];
    BHI_AUTO_FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) {
            return (uint64_t)kib * 1024;
        }
    }
    return UINT64_MAX;
}
